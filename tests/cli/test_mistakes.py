"""Mistakes people make: exit code 2, a message naming file, column or option and the next step, no donor's value."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease
from tests.cli.conftest import dpsc, quick, start
from tests.making import SECRET, told

COLUMNS = ("--unit", "who", "--time", "month", "--outcome", "cost")
BUDGET = ("--epsilon", 1, "--delta", 1e-6)


def refused(arguments: Sequence[object], *said: str) -> None:
    code, out, err = quick(*arguments)
    assert code == 2, (out, err)
    message = " ".join(err.replace("│", " ").split())
    for words in said:
        assert words in message
    assert "Traceback" not in message
    assert not told(message, out)
    assert out == ""


def release(
    files: Path, *more: object, source: str = "donors.csv", columns: Sequence[object] = COLUMNS
) -> list[object]:
    return ["release", "--no-ledger", files / source, *columns, *BUDGET, "-o", files / "r.json", *more]


def fit(files: Path, *more: object, source: str = "panel.csv") -> list[object]:
    return [
        "fit",
        "--no-ledger",
        files / source,
        *COLUMNS,
        "--treated-unit",
        "clinic",
        "--treatment-time",
        "2021-03-01",
        *more,
    ]


@pytest.mark.parametrize("method", ["output", "objective"])
def test_no_bounds_for_a_method_that_needs_them(files: Path, method: str) -> None:
    refused(
        fit(files, "--method", method, "--epsilon", 1), f"--method {method} needs --bounds LO HI", "never from the data"
    )


def test_bounds_that_the_target_exceeds(files: Path) -> None:
    refused(fit(files, *BUDGET, "--bounds", 0, 3), "panel.csv", "the target is outside the bounds", "Widen them")


def test_a_wrong_column_suggests_the_near_one(files: Path) -> None:
    columns = ("--unit", "who", "--time", "month", "--outcome", "costs")
    refused(
        release(files, columns=columns), "donors.csv: there is no column 'costs' (--outcome)", "Did you mean 'cost'?"
    )
    refused(release(files, columns=("--unit", "zzz", *COLUMNS[2:])), "(--unit)", "'who', 'month', 'cost'")


def test_a_target_of_several_columns_asks_for_what_was_not_said(files: Path) -> None:
    frame = pd.read_csv(files / "target.csv").assign(price=1.0)
    frame.to_csv(files / "three.csv", index=False)
    asked = ("plan", "--n", 300, "--target", files / "three.csv", "--treatment-time", "2021-03", "--epsilon", 1)
    columns = f"They are {', '.join(map(repr, frame.columns))}."
    refused(asked, "there are 3 columns; say which hold the periods and the numbers: --time, --outcome.", columns)
    refused((*asked, "--outcome", "price"), "say which holds the periods: --time.")
    refused((*asked, "--time", frame.columns[0]), "say which holds the numbers: --outcome.")


def test_a_missing_option_for_a_long_table(files: Path) -> None:
    refused(release(files, columns=("--unit", "who", "--time", "month")), "needs --outcome COLUMN", "--wide")
    refused(release(files, columns=("--unit", "who", "--time", "who", "--outcome", "cost")), "different columns")


def test_a_file_that_is_not_there_empty_or_not_a_table(files: Path) -> None:
    refused(release(files, source="donor.csv"), "there is no such file", "Did you mean 'donors.csv'?")
    (files / "empty.csv").write_text("")
    refused(release(files, source="empty.csv"), "empty.csv: the file is empty")
    (files / "header.csv").write_text("who,month,cost\n")
    refused(release(files, source="header.csv"), "no rows below the header")
    (files / "ragged.csv").write_text(f"who,month,cost\na,1,2\nb,1,2,{SECRET}\n")
    refused(release(files, source="ragged.csv"), "ragged.csv: it cannot be read near line 3")
    (files / "binary.csv").write_bytes(b"\xff\xfe\x00\x80who")
    refused(release(files, source="binary.csv"), "binary.csv")
    (files / "not.parquet").write_text("who,month,cost\n")
    refused(release(files, source="not.parquet"), "not.parquet: it cannot be read", "Parquet")
    (files / "not.csv.gz").write_text("who,month,cost\n")
    refused(release(files, source="not.csv.gz"), "not.csv.gz: it cannot be read", "gzip")
    (files / "donors.xlsx").write_text("?")
    refused(release(files, source="donors.xlsx"), "it cannot be read; is it really an Excel workbook")
    (files / "donors.doc").write_text("?")
    refused(release(files, source="donors.doc"), "cannot tell what kind of table", ".csv")
    (files / "folder").mkdir()
    refused(release(files, source="folder"), "this is a folder without files")
    refused(fit(files, *BUDGET, source="folder"), "this is a folder without files")


def test_a_reference_that_lacks_a_period(files: Path) -> None:
    target = pd.read_csv(files / "target.csv")
    target.iloc[:-1].to_csv(files / "reference.csv", index=False)
    said = ("reference.csv: --reference has no number for the period 2021-06,",)
    refused(release(files, "--reference", files / "reference.csv"), *said)
    refused(fit(files, *BUDGET, "--reference", files / "reference.csv"), *said)


def test_an_engine_that_is_not_installed(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsc.custodian.donors.donor_files.find_spec", lambda name: None)
    refused(release(files, "--engine", "dask"), "needs Dask: pip install 'dpsc[dask]'")


def test_an_engine_that_does_not_fit(files: Path) -> None:
    refused(release(files, "--engine", "spark"), "'spark' is not one of auto, memory, stream, dask")
    refused(
        release(files, "--engine", "stream", "--scheduler", "tcp://nowhere:1"), "--scheduler belongs to --engine dask"
    )
    refused(release(files, "--scheduler", "nonsense"), "no Dask scheduler at nonsense")
    refused(release(files, "--engine", "stream", "--workers", 2), "--workers belongs to --engine dask")


def test_what_nobody_foresaw_is_not_quoted(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError(f"cell {SECRET}")

    monkeypatch.setattr("dpsc.custodian.donors.donor_files.Files.blocks", broken)
    code, out, err = quick(*release(files))
    assert code == 1
    assert "ZeroDivisionError" in err
    assert not told(out, err)
    monkeypatch.setenv("DPSC_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        quick(*release(files))


def test_a_grid_that_does_not_fit(files: Path) -> None:
    refused(release(files, "--grid-bits", 30), "--grid-bits must be between 4 and 26")
    refused(
        release(files, "--grid-bits", 26, "--epsilon", 0.5),
        "400 donors could exceed 64-bit integers",
        "use --grid-bits 25",
    )
    assert quick(*release(files, "--grid-bits", 25, "--epsilon", 0.5))[0] == 0


def change(files: Path, column: str, row: int, value: object) -> None:
    table = pd.read_csv(files / "donors.csv").astype(object)
    table[column] = pd.Series([value if i == row else old for i, old in enumerate(table[column])], dtype=object)
    table.to_csv(files / "donors.csv", index=False)


def test_text_in_the_outcome_is_located_and_not_repeated(files: Path) -> None:
    change(files, "cost", 5, f"{SECRET} EUR")
    refused(release(files), "column 'cost' holds text in line 7", "only numbers")


def test_dates_that_do_not_parse(files: Path) -> None:
    change(files, "month", 5, "2020-13-45")
    refused(release(files), "the period of line 7 in column 'month' (--time) is not a date", "--time-format")
    table = pd.read_csv(files / "panel.csv")
    table["month"] = pd.to_datetime(table["month"]).dt.strftime("%d/%m/%Y")
    table.to_csv(files / "european.csv", index=False)
    refused(release(files, source="european.csv"), "--time-format %d/%m/%Y")
    refused(release(files, "--time-format", "%Y", source="european.csv"), "does not match --time-format %Y")
    code, _, err = quick(*release(files, "--time-format", "%d/%m/%Y", source="european.csv"))
    assert code == 0, err


def test_a_period_or_a_unit_that_is_missing(files: Path) -> None:
    change(files, "who", 4, None)
    refused(release(files), "the donor at position 0 does not have a row for every period")
    change(files, "month", 9, None)
    refused(release(files), "line 11 has no period in column 'month' (--time)")


def test_duplicate_rows(files: Path) -> None:
    table = pd.read_csv(files / "donors.csv")
    pd.concat([table, table.iloc[[3]]]).to_csv(files / "donors.csv", index=False)
    refused(
        release(files), "the donor at position 0 has no value in period 2020-04, or several rows for it", "--repeated"
    )
    refused(release(files, "--repeated", "first"), "must be 'missing', 'sum', 'mean' or 'last'")
    for rule in ("sum", "mean", "last"):
        code, _, err = quick(*release(files, "--repeated", rule, "--force"))
        assert code == 0, err


def test_missing_cells_name_the_options_that_fill_them(files: Path) -> None:
    change(files, "cost", 7, None)
    refused(
        release(files), "donors.csv", "has no value in period 2020-08, or several rows for it", "--missing interpolate"
    )
    refused(release(files, "--missing", "midpoint"), "--bounds LO HI")
    refused(release(files, "--missing", "guess"), "missing must be")
    refused(release(files), "--missing kernel")
    for rule in ("interpolate", "kernel"):
        code, _, err = quick(*release(files, "--missing", rule, "--force"))
        assert code == 0, err


def test_a_missing_row_names_the_option_that_declares_the_periods(files: Path) -> None:
    pd.read_csv(files / "donors.csv").drop(index=7).to_csv(files / "donors.csv", index=False)
    said = ("the donor at position 0 does not have a row for every period", "--periods 2022-01..2024-12")
    refused(release(files), *said)
    refused(release(files, "--missing", "interpolate"), *said)
    refused(release(files, "--periods", "2020.."), "--periods '2020..' cannot be read: write a range")
    refused(release(files, "--periods", "reference"), "give --reference")
    refused(release(files, "--periods", "1990..1999"), "no row of the table has one of the declared periods")
    code, out, err = quick(*release(files, "--periods", "2020-01..2021-06"))
    assert code == 0, err
    assert "declared beforehand" in out


def test_a_long_table_taken_for_a_wide_one(files: Path) -> None:
    refused(release(files, columns=("--wide", "--unit", "who")), "'month' does not look like a period", "--outcome")
    table = pd.read_csv(files / "donors.csv")
    table[["who"]].assign(**{"2020": table["cost"], "2021": table["cost"]}).to_csv(files / "w.csv", index=False)
    refused(
        release(files, source="w.csv", columns=("--wide", "--unit", "who")),
        "the donor at position 0 has no value in period 2020, or several rows for it",
    )
    wide = pd.read_csv(files / "donors.csv").pivot(index="who", columns="month", values="cost").reset_index()
    wide.assign(region="north").to_csv(files / "wide.csv", index=False)
    refused(
        release(files, source="wide.csv", columns=("--wide", "--unit", "who")),
        "column 'region' does not look like a period",
    )


def test_a_treatment_time_outside(files: Path) -> None:
    outside = [*fit(files, *BUDGET)[:-4], "--treatment-time", "2031-01-01", *BUDGET]
    refused(outside, "panel.csv", "--treatment-time 2031-01-01 is not one of the periods", "2020-01 to 2021-06")
    year = [*fit(files, *BUDGET)[:-4], "--treatment-time", "2021", *BUDGET]
    refused(year, "--treatment-time 2021 is not a date that can be read", "write it as 2020-01")
    quarter = [*fit(files, *BUDGET)[:-4], "--treatment-time", "2021Q1", *BUDGET]
    refused(quarter, "2021Q1 is not one of the periods", "Name the period itself")
    mixed_up = [*fit(files, *BUDGET)[:-4], "--treatment-time", "01/03/2021", *BUDGET]
    refused(mixed_up, "01/03/2021 can be 1 March 2021 or 3 January 2021", "--time-format %d/%m/%Y")


def test_a_treatment_time_is_read_as_the_table_writes_dates(files: Path) -> None:
    table = pd.read_csv(files / "panel.csv")
    table["month"] = pd.to_datetime(table["month"]).dt.strftime("%d/%m/%Y")
    table.to_csv(files / "european.csv", index=False)
    code, out, err = quick(
        "fit", "--no-ledger", files / "european.csv", *COLUMNS, "--time-format", "%d/%m/%Y", "--treated-unit", "clinic",
        "--treatment-time", "01/03/2021", *BUDGET, "--json",
    )  # fmt: skip
    assert code == 0, err
    assert json.loads(out)["treatment_time"] == "2021-03"


def test_output_never_replaces_what_is_read(files: Path) -> None:
    before = (files / "donors.csv").read_bytes()
    arguments = ["release", files / "donors.csv", *COLUMNS, *BUDGET, "-o", files / "donors.csv", "--force"]
    refused(arguments, "is read by this command")
    refused(fit(files, *BUDGET, "-o", files / "panel.csv", "--force"), "is read by this command")
    assert (files / "donors.csv").read_bytes() == before


def test_identifiers_stay_as_they_are_written(files: Path) -> None:
    table = pd.read_csv(files / "panel.csv")
    numbers = {name: f"{i:05}" for i, name in enumerate(table["who"].unique())}
    table.assign(who=table["who"].map(numbers)).to_csv(files / "zeros.csv", index=False)
    treated = numbers["clinic"]
    code, _, err = quick(*[w if w != "clinic" else treated for w in fit(files, *BUDGET, source="zeros.csv")])
    assert code == 0, err
    code, _, err = quick(*release(files, "--exclude", treated, "--engine", "stream", source="zeros.csv"))
    assert code == 0, err


def test_a_file_without_a_header_does_not_have_its_first_row_repeated(files: Path) -> None:
    (files / "bare.csv").write_text(f"a,1,{SECRET}\nb,1,2.5\na,2,3.5\nb,2,4.5\n")
    refused(release(files, source="bare.csv"), "does it have a header line?")
    (files / "whole.csv").write_text(f"a,1,{SECRET:.0f}\nb,1,2\n")
    refused(release(files, source="whole.csv"), "does it have a header line?")


def test_columns_that_cannot_be_periods(files: Path) -> None:
    swapped = ("--unit", "month", "--time", "who", "--outcome", "cost")
    refused(release(files, columns=swapped), "are the two swapped?")
    wrong = ("--unit", "who", "--time", "cost", "--outcome", "extra")
    pd.read_csv(files / "donors.csv").assign(extra=1.0).to_csv(files / "extra.csv", index=False)
    refused(release(files, source="extra.csv", columns=wrong), "a number with decimals in line", "the right column?")
    table = pd.read_csv(files / "donors.csv").astype({"month": object})
    table["month"] = table.groupby("who").cumcount().astype(object)
    table["month"] = pd.Series([SECRET if i == 3 else m for i, m in enumerate(table["month"])], dtype=object)
    table.to_csv(files / "mixed.csv", index=False)
    refused(release(files, source="mixed.csv"), "decimals", "the right column?")


def test_a_header_that_cannot_be(files: Path) -> None:
    (files / "trailing.csv").write_text("who,month,cost,\na,1,2,\nb,1,2,\n")
    refused(release(files, source="trailing.csv"), "end in a separator")
    (files / "twice.csv").write_text("who,month,cost,cost\na,1,2,3\n")
    refused(release(files, source="twice.csv"), "two columns have the same name")


def test_a_delta_that_protects_nobody_needs_a_word(files: Path) -> None:
    arguments = [
        "release",
        "--no-ledger",
        files / "donors.csv",
        *COLUMNS,
        "--epsilon",
        1,
        "--delta",
        0.5,
        "-o",
        files / "r.json",
    ]
    refused(arguments, "--delta 0.5 is not below one over the number of donors", "--i-know")
    refused(fit(files, "--epsilon", 1, "--delta", 0.5), "--delta 0.5")


def test_a_treated_unit_that_is_not_there(files: Path) -> None:
    arguments = [w if w != "clinic" else "klinik" for w in fit(files, *BUDGET)]
    refused(arguments, "the unit 'klinik' (--treated-unit) is not in the data")


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf"])
def test_an_epsilon_that_makes_no_sense(files: Path, epsilon: str) -> None:
    refused(
        [*release(files)[:-6], "--epsilon", epsilon, "--delta", 1e-6, "-o", files / "r.json"],
        "--epsilon must be a number above 0",
    )


def test_an_epsilon_that_protects_nobody_needs_a_word(files: Path) -> None:
    arguments = [
        "release",
        "--no-ledger",
        files / "donors.csv",
        *COLUMNS,
        "--epsilon",
        50,
        "--delta",
        1e-6,
        "-o",
        files / "r.json",
    ]
    refused(arguments, "--epsilon 50 is above 20", "--i-know")
    code, _, err = quick(*arguments, "--i-know")
    assert code == 0, err


def test_a_method_without_a_budget_or_with_options_of_another(files: Path) -> None:
    refused(fit(files), "--method gram needs --epsilon")
    refused(fit(files, "--epsilon", 1), "needs --delta")
    refused(fit(files, "--method", "gramm"), "'gramm' is not one of gram, output, objective, nonprivate")
    refused(
        fit(files, "--method", "nonprivate", "--epsilon", 1),
        "--epsilon belongs to --method gram or output or objective",
    )
    refused(fit(files, *BUDGET, "--lambda", 1), "--lambda belongs to")
    refused(fit(files, "--method", "nonprivate", "--like-before", 1), "--like-before belongs to --method gram, not to")
    refused(fit(files, *BUDGET, "--smoothness", "very"), "'very' is not one of high, mild, none")
    refused(["fit", files / "panel.csv"], "--unit is needed")


def test_existing_output_is_not_replaced_without_a_word(files: Path) -> None:
    (files / "r.json").write_text("mine")
    refused(release(files), "r.json already exists", "--force")
    assert (files / "r.json").read_text() == "mine"
    assert quick(*release(files, "--force"))[0] == 0
    (files / "answer").mkdir()
    (files / "answer" / "note.txt").write_text("mine")
    refused(fit(files, *BUDGET, "-o", files / "answer"), "already has files in it", "--force")
    two_step = ("--method", "output", "--bounds", -10, 60)  # with fewer figures
    assert quick(*fit(files, *BUDGET, *two_step, "-o", files / "answer", "--force"))[0] == 0
    assert (files / "answer" / "note.txt").read_text() == "mine"
    refused(fit(files, *BUDGET, "-o", files / "r.json"), "already exists", "--force")


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_spent(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GramRelease, "release", lambda *a, **k: pytest.fail("noise was drawn"))
    nowhere = ["release", "--no-ledger", files / "donors.csv", *COLUMNS, *BUDGET, "-o", "/proc/none/r.json"]
    refused(nowhere, "cannot write to /proc/none", "-o")
    refused(fit(files, *BUDGET, "-o", "/proc/none/answer"), "cannot write to /proc/none", "-o")
    (files / "locked").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK or "locked" not in str(path))
    refused(fit(files, *BUDGET, "-o", files / "locked"), "cannot write to", "permission denied", "-o")


def test_a_release_from_a_newer_version_or_damaged(files: Path) -> None:
    GramRelease(epsilon=1.0, delta=1e-6, scale=1.0).release(np.eye(20)[:, :6] + 1.0, dataset=None).save(
        files / "r.json"
    )
    text = (files / "r.json").read_text("utf-8")
    (files / "new.json").write_text(json.dumps(json.loads(text) | {"version": 99}), "utf-8")
    refused(["inspect", files / "new.json"], "new.json", "version 99", "upgrade dpsc")
    (files / "cut.json").write_text(text[:300], "utf-8")
    refused(["inspect", files / "cut.json"], "cut.json", "truncated")
    (files / "edited.json").write_text(text.replace('"n": 20', '"n": 21'), "utf-8")
    refused(["estimate", files / "edited.json", files / "target.csv", "--treatment-time", "4"], "checksum")
    refused(["inspect", files / "nowhere.json"], "nowhere.json")


def test_a_target_that_does_not_fit_the_release(files: Path) -> None:
    assert quick(*release(files))[0] == 0
    target = pd.read_csv(files / "target.csv")
    target.iloc[1:].to_csv(files / "short.csv", index=False)
    refused(
        ["estimate", files / "r.json", files / "short.csv", "--treatment-time", "2021-03-01"],
        "target has no number in period",
    )
    target.assign(month=range(len(target))).to_csv(files / "numbers.csv", index=False)
    refused(
        ["estimate", files / "r.json", files / "numbers.csv", "--treatment-time", "2021-03-01"],
        "numbers.csv",
        "its periods are numbers (0), those of the release months",
    )
    refused(
        ["estimate", files / "r.json", files / "panel.csv", "--treatment-time", "2021-03-01"], "3 columns", "--outcome"
    )


@pytest.mark.end_to_end
def test_an_interrupted_command_leaves_nothing(files: Path) -> None:
    table = pd.read_csv(files / "donors.csv")
    many = pd.concat([table.assign(who=table["who"] + f" {i}") for i in range(100)])
    many.to_csv(files / "many.csv", index=False)
    before = set(os.listdir(files))
    command = ["release", "many.csv", *COLUMNS, *BUDGET, "--no-ledger", "-o", "out.json"]
    process = start(*command, cwd=files)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and set(os.listdir(files)) == before:
        time.sleep(0.01)  # until the temporary folder is there, which is before the donors are read
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2, (out, err)
    assert "interrupted" in err
    assert "Traceback" not in err
    assert set(os.listdir(files)) == before


@pytest.mark.end_to_end
def test_a_mistake_looks_the_same_from_the_installed_command(files: Path) -> None:
    done = dpsc(
        "release", "donors.csv", "--unit", "whom", *COLUMNS[2:], *BUDGET, "--no-ledger", "-o", "r.json", cwd=files
    )
    assert done.returncode == 2
    assert done.stderr == "dpsc release: donors.csv: there is no column 'whom' (--unit). Did you mean 'who'?\n"
    assert done.stdout == ""
    assert not (files / "r.json").exists()
