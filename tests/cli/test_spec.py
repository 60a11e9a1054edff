"""Spec files: what 0.1.0 wrote still loads, what people write is understood, and mistakes are told in our own words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc.cli import spec
from dpsc.cli.analysis import Analysis
from dpsc.errors import DpscError, TableError
from tests.making import long

WRITTEN_BY_0_1_0 = """
dpsc-analysis: 1
method: output
data: panel.csv
unit: who
treated_unit: clinic
treatment_time: '2021-03-01'
time: month
outcome: cost
units: dollars
epsilon: 2.0
delta: 1.0e-06
bounds:
- -10.0
- 60.0
split: 0.5
lambda: 3.0
"""
NEEDED = "dpsc-analysis: 1\ndata: x.csv\nunit: who\ntreated_unit: a\ntreatment_time: 3\nmethod: nonprivate\n"


def load(folder: Path, text: str, name: str = "a.yaml") -> Analysis:
    (folder / name).write_text(text, "utf-8")
    return spec.load(folder / name)


def test_a_spec_of_0_1_0_loads_and_is_written_the_same(tmp_path: Path) -> None:
    analysis = load(tmp_path, WRITTEN_BY_0_1_0)
    assert analysis.data == tmp_path / "panel.csv"
    assert (analysis.measured_in, analysis.lambda_, analysis.bounds) == ("dollars", 3.0, (-10.0, 60.0))
    spec.save(analysis, tmp_path / "again.yaml")
    assert (tmp_path / "again.yaml").read_text("utf-8") == WRITTEN_BY_0_1_0.lstrip()


@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
def test_what_is_written_is_read_back(tmp_path: Path, name: str) -> None:
    analysis = Analysis(
        data=tmp_path / "x.csv", unit="who", treated_unit="a", treatment_time="3", epsilon=1, delta=1e-6,
        reference=tmp_path / "r.csv", units="€", wide=True, smoothness="none", like=tmp_path / "l.csv", like_before="3",
    )  # fmt: skip
    spec.save(analysis, tmp_path / name)
    assert spec.load(tmp_path / name) == analysis


def test_numbers_dates_and_names_are_understood_as_people_write_them(tmp_path: Path) -> None:
    text = NEEDED.replace("nonprivate", "gram").replace("treatment_time: 3", "treatment_time: 2020-01-31")
    analysis = load(tmp_path, text.replace(": a\n", ": 7\n") + "epsilon: 1\ndelta: 1e-6\ntime: ~\nbounds: [0, 1e3]\n")
    assert (analysis.treatment_time, analysis.treated_unit, analysis.time) == ("2020-01-31", "7", None)
    assert (analysis.epsilon, analysis.delta, analysis.bounds) == (1.0, 1e-6, (0.0, 1000.0))
    assert isinstance(analysis.epsilon, float)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("epsilon: yes", "epsilon must be a number."),
        ("epsilon: .nan", "epsilon must be a finite number."),
        (f"epsilon: 1{'0' * 400}", "epsilon must be a number."),
        ("level: ~", "level must be a number."),
        ("lambda: [1]", "lambda must be a number."),
        ("wide: ~", "wide must be true or false."),
        ("wide: 'yes'", "wide must be true or false."),
        ("units: {a: 1}", "units must be text."),
        ("time: false", "time must be text."),
        ("reference: [1]", "reference must be text."),
        ("bounds: [1]", "bounds must be two numbers, [lo, hi]."),
        ("bounds: [1, 2, 3]", "bounds must be two numbers, [lo, hi]."),
        ("bounds: [1, many]", "bounds must be two numbers, [lo, hi]."),
        ("bounds: [1, .inf]", "bounds must be two numbers, [lo, hi]."),
        ("scale: much", "scale must be a number."),
        ("like: 3.5\nlike_before: [1]", "like_before must be text."),
        ("scale: 2", "scale belongs to --method gram, not to nonprivate."),
        ("like: l.csv", "like belongs to --method gram, not to nonprivate."),
        ("missing: 3", "missing '3' is not one of error, interpolate, midpoint, kernel."),
        ("missing: kernel", "missing='kernel' belongs to --method gram, not to nonprivate."),
        ("smoothness: very", "smoothness 'very' is not one of high, mild, none."),
        ("lambd: 3", "'lambd' is not a field of an analysis. Did you mean 'lambda'?"),
        ("3: 3", "'3' is not a field of an analysis."),
        ("? [a]\n: 3", "a name in the spec is not text."),
        ("unit: again", "the spec says 'unit' twice."),
    ],
)
def test_a_mistake_is_told_with_the_file_the_field_and_what_is_expected(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(TableError) as refusal:
        load(tmp_path, NEEDED + line)
    assert str(refusal.value) == f"{tmp_path / 'a.yaml'}: {said}"


def test_a_name_twice_is_refused_in_json_too(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="says 'data' twice"):
        load(tmp_path, '{"dpsc-analysis": 1, "data": "a", "data": "b"}', "a.json")


MANY = {"a.yaml": NEEDED + "".join(f"k{i}: 1\n" for i in range(5000)), "a.json": str({f"k{i}": 1 for i in range(5000)})}


@pytest.mark.parametrize("name", MANY)
def test_a_spec_with_more_names_than_any_analysis_has_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(TableError, match="more than 100 names"):
        load(tmp_path, MANY[name].replace("'", '"'), name)


@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
def test_a_spec_is_small_and_a_larger_file_is_not_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(TableError, match="larger than 64 kB"):
        load(tmp_path, NEEDED + "title: " + "x" * 2**16, name)
    assert load(tmp_path, NEEDED + "title: " + "x" * (2**16 - len(NEEDED) - 7)).title is not None


def test_a_spec_cannot_refer_to_itself(tmp_path: Path) -> None:
    """Ten lines, each a list of ten of the line before, are ten thousand million values when they are written out."""
    lines = [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}' if k else 'x'] * 10)}]" for k in range(10)]
    with pytest.raises(TableError, match="refers to itself"):
        load(tmp_path, NEEDED + "\n".join([*lines[:3], "missing: *a2"]))  # not all ten: the old reader wrote them out
    with pytest.raises(TableError, match="refers to itself"):
        load(tmp_path, NEEDED + "\n".join([*lines, "missing: *a9"]))


def test_a_spec_says_what_cells_are_that_several_rows_give(tmp_path: Path) -> None:
    table = long(np.arange(30.0).reshape(6, 5), list("abcdef"), range(1, 6), ("who", "year", "x"))
    pd.concat([table, table.iloc[[7]]]).to_csv(tmp_path / "x.csv", index=False)
    said = NEEDED + "time: year\noutcome: x\nperiods: 1..5\nrepeated: "
    assert load(tmp_path, said + "sum").panel().donors[0].tolist() == [5.0, 6.0, 14.0, 8.0, 9.0]
    with pytest.raises(DpscError, match="repeated 'first' is not one of missing, sum, mean, last"):
        load(tmp_path, said + "first")


@pytest.mark.parametrize(("method", "rule"), [("gram", "kernel"), ("nonprivate", "interpolate")])
def test_with_declared_periods_only_a_gram_release_leaves_cells_missing(tmp_path: Path, method: str, rule: str) -> None:
    values = np.random.default_rng(0).normal(size=(6, 5))
    table = long(values, units=list("abcdef"), times=range(1, 6), names=("who", "year", "x")).drop(index=8)
    table.to_csv(tmp_path / "x.csv", index=False)
    said = NEEDED.replace("nonprivate", method) + "time: year\noutcome: x\nperiods: 1..5\n"
    panel = load(tmp_path, said + ("epsilon: 1\ndelta: 1e-6\n" if method == "gram" else "")).panel()
    assert panel.missing == rule
    assert np.isnan(panel.donors).sum() == (method == "gram")
