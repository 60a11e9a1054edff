"""``dpsc check``: a private screen, all problems at once, and a command that runs as it is printed."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import Release
from dpsc.analyst.plan import in_range
from dpsc.answers import words
from dpsc.checks import is_printable
from dpsc.custodian.check.examine import MARK
from tests.cli.conftest import T0, H, N, quick, shown
from tests.cli.test_mistakes import refused
from tests.making import SECRET, long, save, told, wide
from tests.test_architecture import graph

PERIODS = f"{shown()[0]}..{shown()[-1]}"


def checked(*arguments: object, code: int = 0) -> str:
    """Run ``dpsc check`` and return its screen on one line, marked at both ends, with nothing beside it."""
    done, out, err = quick("check", *arguments)
    assert (done, err) == (code, ""), (out, err)
    lines = [line.strip() for line in out.splitlines()]
    assert lines[0] == lines[-1] == MARK
    return " ".join(out.replace("\\\n", " ").split())


def commands_in(out: str) -> list[list[str]]:
    """Return the commands as a shell would read them."""
    joined = out.replace("\\\n", " ")
    return [shlex.split(line)[1:] for line in joined.splitlines() if re.match(r"\s*dpsc (ledger init|release) ", line)]


def run_as_printed(*arguments: object) -> None:
    code, out, err = quick("check", *arguments)
    assert (code, err) == (0, "")
    commands = commands_in(out)
    assert len(commands) == 2
    for command in commands:
        code, _, err = quick(*command)
        assert code == 0, err


def messy(path: Path) -> Path:
    """A table of 300 patients with everything wrong at once, as a spreadsheet writes it."""
    rng = np.random.default_rng(0)
    months = [f"{day:%d.%m.%Y}" for day in pd.date_range("2022-01-31", periods=18, freq="ME")]
    rows = []
    for i in range(300):
        start = 0 if i % 3 else int(rng.integers(1, 10))
        path_of_one = 100 + np.cumsum(rng.normal(size=18))
        cells = [f"{value:.2f}".replace(".", ",") for value in path_of_one]
        rows += [[f"Patient {i}", month, cell] for month, cell in zip(months[start:], cells[start:], strict=True)]
    rows = [row for row in rows if row[1] != months[12]]
    of = {name: [k for k, row in enumerate(rows) if row[0] == f"Patient {name}"] for name in (1, 2, 4, 5)}
    rows[of[1][0]][2], rows[of[1][1]][2] = "k. A.", "-3,50"
    rows[of[1][2]][2] = "98765432,10"
    for k in of[2]:
        rows[k][2] = "80,00"
    for k in of[4][9:]:
        rows[k][0] = "patient  4"
    rows[of[5][0]][0] = ""
    rows.append(list(rows[of[5][1]]))
    pd.DataFrame(rows, columns=["Person", "Monat", "Kosten"]).to_csv(path, index=False, sep=";", encoding="cp1252")
    return path


def test_everything_that_is_wrong_is_on_one_screen(tmp_path: Path) -> None:
    before = set(tmp_path.iterdir()) | {messy(tmp_path / "d.csv")}
    screen = checked(tmp_path / "d.csv", code=1)
    for said in (
        "NOT READY: 6 things to correct",
        "separator semicolon, encoding utf-8, decimal comma",
        "units in 'Person', periods in 'Monat', numbers in 'Kosten'",
        "18 months, from 2022-01 to 2023-06; the table writes",
        "--unit, --time, --outcome, --periods, --decimal: they were not given",
        "1 cell is no number", "says 'k. A.'",
        "1 row has no unit",
        "1 cell is given by several rows. Units: 1, rows beyond the first: 1 (1 with the same number)",
        "--repeated missing takes them for missing; --repeated sum adds them up, as for bills",
        "2 units have names that differ only in case, spaces or Unicode form", "'Patient 4' (line ",
        "2023-01: missing for EVERYBODY",
        "1 number is below zero", "says -3.5",
        "1 number is more than 100 times the median", "Are cents and euros mixed?",
        "1 unit has the same number in every period",
        "2022 ▃", "2023 █▁▁▁▁▁",
        "joined late 10",
        "What each rule for missing cells would fill", "kernel", "interpolate", "midpoint",
        "What must NOT be chosen from this view The periods, how dates and numbers are written, what is done with",
        "the guarantee would no longer hold",
        "not by looking at single people",
        "right at most 73.1% of the time",
        "Say --periods and --decimal and check again", "the rows show --periods 2022-01..2023-06",
        "--periods FIRST..LAST", "--decimal MARK",
    ):  # fmt: skip
        assert said in screen, said
    assert set(tmp_path.iterdir()) == before
    assert not any(Path.cwd().iterdir())


def test_a_clean_table_is_ready_and_its_command_runs_as_printed(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = files / "a folder with 'quotes'"
    place.mkdir()
    monkeypatch.chdir(place)
    shutil.copy(files / "donors.csv", place / "my donors.csv")
    assert "Say --periods and check again" in checked("my donors.csv", code=1)
    run_as_printed("my donors.csv", "--periods", PERIODS)
    made = Release.load(place / "my donors.dpsc.json")
    assert (made.n, made.T, made.periods_from) == (N, T0 + H, "declared")
    assert made.guarantee is not None
    assert (made.guarantee.epsilon, made.guarantee.delta) == (1.0, 1e-6)
    table = pd.read_csv("my donors.csv")
    pd.concat([table, table.iloc[[3, 40]]]).to_csv("twice.csv", index=False)
    screen = checked("twice.csv", "--periods", PERIODS, code=1)
    assert "2 cells are given by several rows. Units: " in screen
    assert "--repeated mean averages them, as for readings; --repeated last takes the last row" in screen
    assert re.search(r"kernel 2 \(.+?\) 2 what the public kernel expects", screen)
    screen = checked("twice.csv", "--periods", PERIODS, "--repeated", "mean")
    assert "--repeated mean averages them" in screen
    assert "--repeated mean" in screen[screen.index("dpsc release") :]
    assert "every rule for them (--missing) does nothing" in screen
    refused(["check", "twice.csv", "--repeated", "first"], "--repeated must be 'missing', 'sum', 'mean' or 'last'")
    again = commands_in(quick("check", "my donors.csv", "--periods", PERIODS)[1])
    assert len(again) == 1  # there is a ledger now
    assert again[0][-1] == "my donors-2.dpsc.json"


def test_columns_and_files_that_are_named_like_options(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    frame = pd.read_csv("donors.csv").rename(columns={"who": "--wide", "month": "-o", "cost": "{unit}"})
    frame.to_csv("--sheet.csv", index=False)
    said = ("--unit=--wide", "--time=-o", "--outcome", "{unit}")
    screen = checked("./--sheet.csv", *said, "--periods", PERIODS)
    assert "units in '--wide', periods in '-o', numbers in '{unit}'" in screen
    assert "long: one row per unit and period" in screen
    run_as_printed("./--sheet.csv", *said, "--periods", PERIODS)
    made = Release.load(files / "sheet.dpsc.json")
    assert (made.n, made.T, made.outcome) == (N, T0 + H, "{unit}")
    refused(["check", "./--sheet.csv", "--unit", "{time}"], "there is no column '{time}' (--unit)")


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_commands_for_other_tables_run_too(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values = 100 + np.cumsum(np.random.default_rng(0).normal(size=(260, 8)), axis=1).round(2)
    frame = wide(values, times=[f"{2015 + t}" for t in range(8)], unit="firm")
    save(frame, tmp_path / f"d.{ending}")
    run_as_printed(f"d.{ending}")
    assert Release.load(tmp_path / "d.dpsc.json").n == 260


def test_a_target_gives_its_units_and_a_better_scale(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    given = (
        "donors.csv",
        "--periods",
        PERIODS,
        "--target",
        "target.csv",
        "--before",
        T0,
        "--averages",
        5,
        "--epsilon",
        2,
    )
    screen = checked(*given)
    assert "measured in cost" in screen
    assert f"{T0} before an intervention" in screen
    assert "--target target.csv --treatment-time 2021-03" in screen
    run_as_printed(*given)
    assert Release.load(files / "donors.dpsc.json").scale.source == "like and counted"


def test_what_is_said_of_how_donors_move_is_in_the_command_too(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target with a column of its unit is read by the names of the donors' columns."""
    monkeypatch.chdir(files)
    pd.read_csv("target.csv").assign(who="the clinic")[["who", "month", "cost"]].to_csv("three.csv", index=False)
    pd.read_csv("target.csv").rename(columns={"cost": "index"}).to_csv("path.csv", index=False)
    given = ("donors.csv", "--periods", "reference", "--target", "three.csv", "--treatment-time", "2021-03",
             "--smoothness", "mild", "--reference", "path.csv")  # fmt: skip
    assert f"{T0} before an intervention" in checked(*given)
    run_as_printed(*given)
    made = Release.load(files / "donors.dpsc.json")
    assert made.row_map.kernel.phi == 0.9
    assert made.row_map.reference is not None
    refused(["check", *given, "--before", T0], "give --before or --treatment-time, not both")
    refused(["check", "donors.csv", *given[3:5], "--treatment-time", "2031-01"], "2031-01 is not one of the periods")
    refused(["check", "donors.csv", "--scale", -1], "--scale must be a finite number above 0")


def test_a_release_from_which_nothing_could_be_learned_is_not_ready(files: Path) -> None:
    donors = pd.read_csv(files / "donors.csv")
    donors[donors["who"].isin(["patient 1", "patient 2"])].to_csv(files / "two.csv", index=False)
    assert "Nothing could be learned: with 2 donors" in checked(files / "two.csv", code=1)
    few = donors[donors["who"].isin(donors["who"].unique()[:60])]
    few.to_csv(files / "few.csv", index=False)
    assert "60 donors are too few to find out privately how much a donor moves" in checked(files / "few.csv", code=1)
    checked(files / "few.csv", "--periods", PERIODS, "--target", files / "target.csv", "--before", T0)
    assert "Delta 0.05 is not below" in checked(files / "few.csv", "--delta", 0.05, code=1)


def test_the_page_and_the_numbers_are_marked_and_for_one_person(tmp_path: Path) -> None:
    messy(tmp_path / "d.csv")
    page, numbers = tmp_path / "private-check.html", tmp_path / "private-check.json"
    checked(tmp_path / "d.csv", "-o", page, code=1)
    text = page.read_text("utf-8")
    assert text.count(MARK) == 3  # and in the title
    assert "k. A." in text
    assert page.stat().st_mode & 0o077 == 0
    checked(tmp_path / "d.csv", "-o", numbers, code=1)
    code, out, err = quick("check", tmp_path / "d.csv", "--json")
    assert (code, err) == (1, "")
    assert json.loads(out) == json.loads(numbers.read_text("utf-8"))
    found = json.loads(out)
    assert (found["private"], found["mark"], found["ready"]) == (MARK, MARK, False)
    assert {f["kind"] for f in found["examination"]["findings"] if f["grade"] == "correct"} == {
        "text", "no unit", "twice", "alike", "nobody", "to be said",
    }  # fmt: skip
    assert found["outlook"]["n"] == found["examination"]["units"] == 301
    for name in ("error", "detectable"):  # the ranges of the screen
        low, likely, high = (found["outlook"][f"{name}{end}"] for end in ("_low", "", "_high"))
        assert in_range(name, likely) == words.likely(low, likely, high)
        assert in_range(name, likely).split(",")[0] in text


def test_wrong_options_are_refused(files: Path) -> None:
    donors = files / "donors.csv"
    refused(["check", donors, "--unit", "whom"], "there is no column 'whom' (--unit)")
    refused(["check", files / "nothing.csv"], "there is no such file")
    refused(["check", donors, "-o", files / "page.txt"], "a page (.html) or its numbers (.json)")
    refused(["check", donors, "-o", donors, "--force"], "is read by this command")
    refused(["check", donors, "--missing", "midpoint"], "--missing midpoint needs --bounds LO HI")
    refused(["check", donors, "--missing", "mean"], "--missing must be 'error'")
    refused(["check", donors, "--before", T0 + H], "leaves no period after the intervention")
    refused(["check", donors, "--epsilon", 50], "--i-know")


def test_nothing_of_it_reaches_a_release_a_ledger_or_a_log(
    files: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The screen quotes a donor's number, because it is the custodian's own; nothing that is made afterwards does."""
    monkeypatch.chdir(files)
    donors = pd.read_csv(files / "donors.csv")
    donors.loc[7, "cost"] = SECRET
    donors.to_csv(files / "donors.csv", index=False)
    code, out, err = quick("check", "donors.csv", "--periods", PERIODS)
    assert code == 0
    assert told(out)
    assert not told(err, caplog.text)
    for command in commands_in(out):
        code, shown, err = quick(*command)
        assert code == 0
        assert not told(shown, err)
    for made in ("donors.dpsc.json", "dpsc-ledger.sqlite"):
        assert not told((files / made).read_bytes().decode("latin-1"))


def test_only_the_screen_knows_what_was_seen() -> None:
    """Nothing that makes or reads a release, books or reports, imports the rehearsal."""
    known_to = ("dpsc.custodian.check", "dpsc.cli.check", "dpsc.web.custodian")
    for module, others in graph().items():
        if not module.startswith(known_to):
            assert not [other for other in others if other.startswith("dpsc.custodian.check.")], module


def test_names_of_columns_and_files_do_nothing_to_a_terminal_or_when_pasted(tmp_path: Path) -> None:
    """A header is somebody else's text: colours, a hidden link, keys such as Ctrl-C in the command to paste."""
    columns = ["who\x1b[31m", "t\u202e", "x\x9b2J\x03"]
    rows = [f"p{i},{t},{i * t}" for i in range(20) for t in range(2000, 2006)]
    path = tmp_path / "donors\x1b]8;;evil\x07.csv"
    path.write_text("\n".join([",".join(columns), *rows]) + "\n", "utf-8")
    table = tmp_path / "wide.csv"
    labels = [f"wave{t}\x1b[8m" for t in range(6)]
    table.write_text("\n".join([",".join(["who", *labels]), *(f"p{i},1,2,3,4,5,{i}" for i in range(20))]), "utf-8")
    for arguments in ((path,), (path, "--json"), (table, "--wide", "--unit", "who")):
        _, out, err = quick("check", *arguments)
        assert is_printable((out + err).replace("\n", ""))
        assert ("x\\x9b2J\\x03" in out) == (arguments == (path,))


def weekly(path: Path, people: bool = False) -> Path:
    """Weekly costs of 300 donors, or of as many people in three regions."""
    days = [str(day.date()) for day in pd.date_range("2024-01-01", "2024-12-23", freq="7D")]
    values = 100 + np.cumsum(np.random.default_rng(0).normal(size=(300, len(days))), axis=1).round(2)
    table = long(values, [f"p{i}" for i in range(300)], days, ("who", "week", "cost"))
    if people:
        table.insert(1, "region", [f"region {int(who[1:]) % 3}" for who in table["who"]])
    save(table, path)
    return path


DAILY, BY_WEEK = "2024-01-01..2024-12-23", "2024-01-01..2024-12-23 by week"


def test_weekly_dates_are_declared_by_week_and_the_command_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    weekly(tmp_path / "d.csv")
    screen = checked("d.csv", code=1)
    assert "52 periods, one every week, from 2024-01-01 to 2024-12-23" in screen
    assert f"the rows show --periods '{BY_WEEK}'" in screen
    assert "--periods 'FIRST..LAST by week'" in screen
    screen = checked("d.csv", "--periods", DAILY, code=1)
    assert "306 of the 358 declared periods have no donor" in screen
    assert f"these fit the rows: --periods '{BY_WEEK}'" in screen
    assert f"--periods '{BY_WEEK}'" in screen[screen.index("dpsc release") :]
    between = checked("d.csv", "--periods", "2024-01-01..2024-12-23 by 4 weeks", code=1)
    assert "rows lie between the declared periods, and a release ignores them" in between
    assert f"these fit the rows: --periods '{BY_WEEK}'" in between
    assert f"--periods '{BY_WEEK}'" in checked("d.csv", "--periods", "2019-01-01..2020-12-29 by week", code=1)
    run_as_printed("d.csv", "--periods", BY_WEEK)
    assert Release.load(tmp_path / "d.dpsc.json").T == 52


def test_a_row_of_one_donor_does_not_decide_which_periods_would_fit(tmp_path: Path) -> None:
    table = pd.read_csv(weekly(tmp_path / "d.csv"))
    stray = pd.DataFrame({"who": ["p0", "p0"], "week": ["1924-05-06", "2024-05-07"], "cost": [1.0, 2.0]})
    pd.concat([table, stray]).sort_values("who", kind="stable").to_csv(tmp_path / "d.csv", index=False)
    screen = checked(tmp_path / "d.csv", "--periods", DAILY, code=1)
    assert f"these fit the rows: --periods '{BY_WEEK}'" in screen


@pytest.mark.parametrize("people", [False, True])
@pytest.mark.parametrize("rule", ["kernel", "interpolate"])
def test_a_dry_run_shows_periods_without_donors_to_the_custodian_alone(
    people: bool, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On stderr, marked; what it prints for others says nothing of it. Nothing is refused; a release says nothing."""
    if people and rule == "interpolate":
        return
    monkeypatch.chdir(tmp_path)
    weekly(tmp_path / "d.csv", people)
    said = ["--time", "week", "--outcome", "cost", "--epsilon", 1, "--delta", 1e-6, "-o", "r.dpsc.json"]
    units = "region 0,region 1,region 2"
    said += ["--person", "who", "--unit", "region", "--units", units] if people else ["--unit", "who"]
    said += ["--bounds", 0, 200] if people else ["--missing", rule]
    marked = "PRIVATE, for the custodian only: 306 of the 358 declared periods have no "
    for more in ([], ["--json"]):
        code, out, err = quick("release", "d.csv", *said, "--periods", DAILY, "--dry-run", *more)
        assert code == 0
        assert err.startswith(marked)
        assert f"--periods '{BY_WEEK}'" in err
        assert not {"306", "52", "by week"} & set(re.findall(r"by week|\d+", out))
    code, _, err = quick("release", "d.csv", *said, "--periods", BY_WEEK, "--dry-run")
    assert (code, err) == (0, "PRIVATE, for the custodian only: the table was held in memory.\n")
    code, out, err = quick("release", "--no-ledger", "d.csv", *said, "--periods", DAILY)
    assert code == 0
    assert "306 of" not in out + err
    if people:
        screen = checked("d.csv", *said[:4], *said[10:], "--periods", DAILY, code=1)
        assert "306 of the 358 declared periods have no record of anybody" in screen
        assert f"--periods '{BY_WEEK}'" in screen[screen.index("dpsc release") :]
