"""What a cell is that several rows give depends on these rows alone, and not on their order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsc import Donors, GramRelease, Panel, PanelError
from dpsc.custodian.donors.missing import settled
from dpsc.errors import DpscError
from dpsc.tables.spec import Repeated

LARGEST = float(np.finfo(float).max)
RULES: tuple[Repeated, ...] = ("missing", "sum", "mean", "last")


def cell(values: list[float], rule: Repeated) -> float:
    """One cell, given by several rows."""
    cells, numbers = settled(np.zeros(len(values), dtype=np.intp), np.array(values), rule)
    assert cells.tolist() == [0]
    return float(numbers[0])


@pytest.mark.parametrize(
    ("values", "missing", "added", "mean", "last"),
    [
        ([0.0, 50.0], math.nan, 50.0, 25.0, 50.0),
        ([7.0, 7.0], math.nan, 14.0, 7.0, 7.0),  # the same number twice, too: two people may have it
        ([1e16, 1.0, -1e16], math.nan, 1.0, 1 / 3, -1e16),
        ([0.1] * 10, math.nan, 1.0, 0.1, 0.1),
        ([math.nan, 3.0], 3.0, 3.0, 3.0, 3.0),
        ([3.0, math.nan, math.inf], 3.0, 3.0, 3.0, 3.0),
        ([1.0, 2.0, math.nan], math.nan, 3.0, 1.5, 2.0),
        ([math.nan, math.inf], math.nan, math.nan, math.nan, math.nan),
        ([LARGEST] * 3, math.nan, math.inf, LARGEST, LARGEST),
        ([LARGEST, LARGEST, -LARGEST], math.nan, LARGEST, LARGEST / 3, -LARGEST),
        ([5e-324, 5e-324], math.nan, 1e-323, 5e-324, 5e-324),
        ([0.0, 0.0], math.nan, 0.0, 0.0, 0.0),
    ],
)
def test_what_each_rule_makes_of_a_cell(
    values: list[float], missing: float, added: float, mean: float, last: float
) -> None:
    for rule, expected in zip(RULES, (missing, added, mean, last), strict=True):
        np.testing.assert_equal(cell(values, rule), expected, rule)


numbers = st.one_of(st.floats(), st.sampled_from([1e16, -1e16, 1.0, LARGEST, -LARGEST, 5e-324, 0.1, math.nan]))


@given(st.lists(numbers, min_size=2, max_size=8), st.randoms())
def test_sum_and_mean_do_not_depend_on_the_order_of_rows(values: list[float], chance: object) -> None:
    other = list(values)
    chance.shuffle(other)  # type: ignore[attr-defined]
    for rule in ("missing", "sum", "mean"):
        np.testing.assert_equal(cell(other, rule), cell(values, rule))


@given(st.lists(st.tuples(st.integers(0, 4), numbers), min_size=2, max_size=20), st.sampled_from(RULES))
def test_a_cell_is_what_it_would_be_alone(rows: list[tuple[int, float]], rule: Repeated) -> None:
    """Other donors' cells say nothing about it, not even about one without any number."""
    where, values = (np.array(column) for column in zip(*rows, strict=True))
    found, made = settled(where, values.astype(float), rule)
    assert found.tolist() == [k for k in range(5) if (where == k).sum() > 1]
    for one, number in zip(found, made, strict=True):
        np.testing.assert_equal(float(number), cell(values[where == one].tolist(), rule))


LONG = pd.DataFrame({"who": list("aaabbb"), "t": [1, 1, 2, 1, 2, 2], "x": [0.0, 50.0, 3.0, 4.0, np.nan, 6.0]})
WIDE = pd.DataFrame({"who": ["a", "b", None, "a"], "1": [0.0, 4.0, 99.0, 50.0], "2": [3.0, 6.0, 99.0, np.nan]})


@pytest.mark.parametrize(("rule", "value"), [("missing", np.nan), ("sum", 50.0), ("mean", 25.0), ("last", 50.0)])
def test_frames_follow_the_rule(rule: Repeated, value: float) -> None:
    expected = [[value, 3.0], [4.0, 6.0]]
    for source in (
        Donors.from_long(LONG, unit="who", time="t", outcome="x", periods="1..2", repeated=rule),
        Donors.from_long(LONG, unit="who", time="t", outcome="x", missing="kernel", repeated=rule),
        Donors.from_wide(WIDE, unit="who", missing="kernel", repeated=rule),
    ):
        np.testing.assert_array_equal(source.values, expected)
        assert source.custodian_diagnostics()["repeated_cells"] == 2
    assert source.custodian_diagnostics()["rows_without_unit"] == 1
    assert source.labels.tolist() == ["a", "b"]


def test_missing_is_the_default_and_other_rules_are_refused() -> None:
    pool = Donors.from_long(LONG, unit="who", time="t", outcome="x", periods="1..2")
    np.testing.assert_array_equal(pool.values, [[np.nan, 3.0], [4.0, 6.0]])
    with pytest.raises(PanelError, match="several rows for it, which count as none unless repeated says otherwise"):
        Donors.from_long(LONG, unit="who", time="t", outcome="x")
    with pytest.raises(PanelError, match="the donor at position 0 has no value in period 1, or several rows for it"):
        Donors.from_wide(WIDE, unit="who")
    with pytest.raises(DpscError, match="missing or infinite"):
        GramRelease(epsilon=1.0, delta=1e-6, scale=1.0).release(WIDE.set_index("who"))
    with pytest.raises(PanelError, match="must be 'missing', 'sum', 'mean' or 'last', not 'first'"):
        Donors.from_long(LONG, unit="who", time="t", outcome="x", repeated="first")  # type: ignore[arg-type]


def test_the_targets_own_cells_follow_the_rule_too() -> None:
    frame = pd.DataFrame({"who": list("aaabbbb"), "t": [1, 2, 3, 1, 2, 3, 3], "x": [1.0, 2, 3, 4, 5, 6, 8]})
    frame = pd.concat([frame, frame.iloc[[0]]])
    options: dict[str, Any] = {"unit": "who", "time": "t", "outcome": "x", "treated_unit": "a", "treatment_time": 3}
    panel = Panel.from_long(frame, **options, periods="1..3", repeated="mean")
    assert panel.target.tolist() == [1.0, 2.0, 3.0]
    assert panel.donors.tolist() == [[4.0, 5.0, 7.0]]
    with pytest.raises(PanelError, match="target is missing in period 1"):
        Panel.from_long(frame, **options, periods="1..3")
