from __future__ import annotations

import ast
import dataclasses
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, ObjectivePerturbation, OutputPerturbation, Panel, ParameterError, SyntheticControl
from dpsc.answers.effects import IntervalKind
from dpsc.answers.figures import figure_of
from dpsc.answers.result import Result
from dpsc.answers.words import number
from tests.making import make_panel

ROOT = Path(__file__).resolve().parents[2]
ALGORITHM = OutputPerturbation.as_printed(epsilon1=1.0, epsilon2=1.0, lambda_=8.0)
ALL_KINDS = ("gram", "gram with a seed", "two steps", "unproven", "not private")


def result_of(kind: str, panel: Panel) -> Result:
    if kind.startswith("gram"):
        release = GramRelease(epsilon=1.0, delta=1e-6, seed=1 if "seed" in kind else None).release(panel)
        return release.estimate(panel.target, panel.treatment_time)
    if kind == "unproven":
        printed = ObjectivePerturbation.as_printed(epsilon1=1.0, epsilon2=1.0, lambda_=8.0)
        return printed.fit(panel, unproven=True)
    return SyntheticControl().fit(panel) if kind == "not private" else ALGORITHM.fit(panel)


@pytest.mark.parametrize(
    ("kind", "private", "intervals"),
    [
        ("gram", True, "effect"),
        ("gram with a seed", False, "effect"),
        ("two steps", True, "projection noise"),
        ("unproven", False, "projection noise"),
        ("not private", False, "none"),
    ],
)
def test_every_result_says_what_it_is(kind: str, private: bool, intervals: IntervalKind, panel: Panel) -> None:
    result = result_of(kind, panel)
    assert result.private is private is (result.guarantee is not None)
    assert (result.reason == "") is private
    assert ("NOT PRIVATE" in result.headline) is not private
    assert result.interval_kind == intervals
    assert result.interval().columns.tolist() == ["lower", "upper"]
    for bounds in (result.interval(), result.att_interval()):
        assert bool(np.isfinite(np.asarray(bounds)).all()) is (intervals != "none")
    assert ("gap_lower" in result.to_frame()) is (intervals != "none")
    assert set(result.baselines) == ({"last value", "line"} if intervals == "effect" else set())
    assert result.fitted.empty is (intervals == "projection noise")
    assert isinstance(result.notes, tuple)
    assert (result.verdict is not None) is (intervals == "effect")
    assert dict(pickle.loads(pickle.dumps(result)).parameters) == dict(result.parameters)
    assert bool(result.repeats.placebo_dates) is (intervals == "effect")
    if not result.repeats.placebo_dates:
        with pytest.raises(ParameterError, match="touch the donors again"):
            result.repeats.placebo()


def test_no_guarantee_can_be_put_on_a_result_without_one(panel: Panel) -> None:
    guarantee = ALGORITHM.fit(panel).guarantee
    for kind in ("gram with a seed", "unproven", "not private"):
        with pytest.raises((TypeError, ValueError), match="guarantee"):
            dataclasses.replace(result_of(kind, panel), guarantee=guarantee)


def test_a_placebo_is_free_only_where_there_are_periods_for_it() -> None:
    for T0 in (2, 3):
        result = result_of("gram", make_panel(T0=T0, h=2))
        assert bool(result.repeats.placebo_dates) is (T0 == 3)
        if T0 == 2:
            with pytest.raises(ParameterError, match="at least 2 periods"):
                result.repeats.placebo()
        else:
            assert result.repeats.placebo().T0 == 2
            assert result.trials().in_time is not None
            without_it = result.during(gap=1)  # the only period that a placebo could be about is left out
            assert without_it.repeats.placebo_dates == []
            assert without_it.trials().in_time is None


def test_nobody_asks_a_result_for_its_class() -> None:
    sources = [*(ROOT / "src/dpsc/answers").glob("*.py"), *(ROOT / "src/dpsc/cli").glob("*.py")]
    assert len(sources) > 10
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                asked = node.func.id in ("isinstance", "getattr", "hasattr") and ast.unparse(node.args[0]) == "result"
                assert not asked, f"{source.name}: {ast.unparse(node)}"


def test_colours_are_named_once() -> None:
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
    with_colours = {source.name for source in sources if re.search(r"#[0-9a-fA-F]{6}\b", source.read_text("utf-8"))}
    assert with_colours == {"sheet.py"}


def test_results_are_frozen(panel: Panel) -> None:
    result = ALGORITHM.fit(panel)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.T0 = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        result.parameters["a"] = 0  # type: ignore[index]


def test_an_unobserved_period_has_no_gap_and_does_not_spoil_the_average() -> None:
    donors = np.tile([1.0, 2.0, 3.0, 4.0, 5.0], (2, 1))
    panel = Panel.from_arrays(donors, [1.0, 2.0, 3.0, 5.0, np.nan], treatment_time=3)
    result = SyntheticControl(method="simplex").fit(panel)
    assert result.gaps.isna().tolist() == [False, True]
    assert result.att == pytest.approx(1)
    assert result.rmse_post == pytest.approx(1)


@pytest.mark.parametrize(
    "times",
    [
        list(range(11)),
        [f"week {i}" for i in range(11)],
        list(pd.date_range("2020-01-31", periods=11, freq="ME")),
        list(pd.period_range("2020Q1", periods=11, freq="Q")),
    ],
)
def test_every_kind_of_time_can_be_drawn(times: list[object]) -> None:
    plain = make_panel()
    panel = Panel.from_arrays(
        plain.donors, plain.target.to_numpy(), treatment_time=times[8], times=times, bounds=(-1, 1)
    )
    for result in (SyntheticControl().fit(panel), ALGORITHM.fit(panel)):
        figure = figure_of(result.plot())
        top, bottom = figure.axes
        after = slice(-len(result.counterfactual), None)
        for axes, line, numbers in ((top, 1, result.counterfactual), (bottom, 1, result.gaps)):
            np.testing.assert_allclose(np.asarray(axes.lines[line].get_ydata(), dtype=float)[after], numbers)
        figure.draw_without_rendering()


def test_dollars_one_period_and_long_labels_can_be_drawn() -> None:
    times = [f"a very long name of week {i}" for i in range(9)]
    plain = make_panel(T0=8, h=1)
    panel = Panel.from_arrays(
        plain.donors, plain.target.to_numpy(), treatment_time=times[8], times=times, bounds=(-1, 1), outcome="cost_$_$"
    )
    figure = figure_of(ALGORITHM.fit(panel).plot())
    figure.draw_without_rendering()
    top, bottom = figure.axes
    assert "cost_$_$" in [text.get_text() for text in top.figure.texts]
    assert len(bottom.get_xticks()) <= 4
    assert len(top.collections) == 1  # the bar that stands for a band over a single period


def test_the_summary_shows_effect_guarantee_and_parameters(panel: Panel) -> None:
    result = ALGORITHM.fit(panel)
    text = result.summary()
    assert "(2, 0)-differential privacy" in text
    assert "95% interval" in text
    assert f"a = {number(result.parameters['a'])}" in text
    assert f"average effect (att): {number(result.att)}" in text
