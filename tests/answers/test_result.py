from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from dpsc import OutputPerturbation, Panel, SyntheticControl
from tests.making import make_panel

ALGORITHM = OutputPerturbation.as_printed(epsilon1=1.0, epsilon2=1.0, lambda_=8.0)


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
        figure = result.plot()
        assert isinstance(figure, Figure)
        top, bottom = figure.axes
        drawn = {line.get_label(): np.asarray(line.get_ydata(), dtype=float) for line in top.lines}
        np.testing.assert_allclose(drawn["counterfactual"], result.counterfactual.to_numpy())
        np.testing.assert_allclose(np.asarray(bottom.lines[1].get_ydata(), dtype=float), result.gaps.to_numpy())
        figure.canvas.draw()


def test_dollars_one_period_and_long_labels_can_be_drawn() -> None:
    times = [f"a very long name of week {i}" for i in range(9)]
    plain = make_panel(T0=8, h=1)
    panel = Panel.from_arrays(
        plain.donors, plain.target.to_numpy(), treatment_time=times[8], times=times, bounds=(-1, 1), outcome="cost_$_$"
    )
    figure = ALGORITHM.fit(panel).plot()
    figure.canvas.draw()
    top, bottom = figure.axes
    assert top.get_ylabel() == "cost_$_$"
    assert len(bottom.get_xticks()) <= 4
    assert len(top.collections) == 1  # the bar that stands for a band over a single period


def test_the_summary_shows_effect_guarantee_and_parameters(panel: Panel) -> None:
    result = ALGORITHM.fit(panel)
    text = result.summary()
    assert "(2, 0)-differential privacy" in text
    assert f"a = {result.parameters['a']:.4g}" in text
    assert f"average effect (att): {result.att:.4g}" in text
