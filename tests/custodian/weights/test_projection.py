from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsc import Panel, PanelError
from dpsc.custodian.weights.projection import onto_l1_ball, release_answer
from dpsc.privacy.additive import StepBudget
from dpsc.types import Array
from tests.conftest import NoNoise
from tests.making import make_panel


def of_rows(panel: Panel, donors: Array) -> Panel:
    """A panel that somebody rebuilt by hand."""
    return replace(panel, pool=replace(panel.pool, values=donors))


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20))
def test_the_projection_is_in_the_ball_and_fixes_what_is_inside(values: list[float]) -> None:
    f = np.array(values)
    projected = onto_l1_ball(f)
    assert np.abs(projected).sum() <= 1 + 1e-12
    np.testing.assert_allclose(onto_l1_ball(projected), projected, atol=1e-12)
    if np.abs(f).sum() <= 1:
        np.testing.assert_array_equal(projected, f)


def test_the_projection_is_the_nearest_point() -> None:
    f = np.random.default_rng(0).normal(size=8)
    variable = cp.Variable(8)
    cp.Problem(cp.Minimize(cp.sum_squares(variable - f)), [cp.norm1(variable) <= 1]).solve(solver="CLARABEL")
    np.testing.assert_allclose(onto_l1_ball(f), variable.value, atol=1e-6)


@pytest.mark.parametrize("size", [1e3, 1e9, 1e17, 1e300])
def test_ties_far_outside_the_ball_share_it(size: float) -> None:
    f = np.full(1000, size)
    f[::2] *= -1
    projected = onto_l1_ball(f)
    np.testing.assert_allclose(np.abs(projected), 1e-3, rtol=1e-9)
    np.testing.assert_array_equal(np.sign(projected), np.sign(f))
    assert np.count_nonzero(onto_l1_ball(np.append(f, 2 * size))) == 1


def noiseless(panel: Panel, weights: Array) -> tuple[Array, float, float]:
    """The answer without noise, and the sensitivities that its noise was calibrated to, all in real units."""
    data = panel.scaled("test")
    answer, laplace = release_answer(data, weights, StepBudget("epsilon", 1.0), NoNoise())
    _, gaussian = release_answer(data, weights, StepBudget("rho", 0.5), NoNoise())
    return answer, laplace.scale, gaussian.scale


def test_exact_arithmetic_computes_the_answer() -> None:
    panel, weights = make_panel(n=50), np.random.default_rng(0).normal(size=50)
    answer, _, _ = noiseless(panel, weights)
    np.testing.assert_allclose(answer, panel.scaled("test").Z.T @ weights, atol=1e-4)


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (0.0, 3.0), (-2.0, 5.0)])
def test_no_neighbour_moves_the_answer_further_than_its_noise_is_calibrated_to(bounds: tuple[float, float]) -> None:
    """The worst neighbour, all of one row from one bound to the other, reaches it to one part in a thousand."""
    rng = np.random.default_rng(1)
    n, T0, h = 6, 3, 4
    weights = rng.normal(size=n)
    donors = rng.uniform(*bounds, (n, T0 + h))
    worst = 0.0
    for i in range(n):
        low, high = donors.copy(), donors.copy()
        low[i], high[i] = bounds
        answers = []
        for rows in (low, high):
            panel = Panel.from_arrays(rows, np.full(T0 + h, bounds[1]), treatment_time=T0, bounds=bounds)
            answer, l1, l2 = noiseless(panel, weights)
            answers.append(answer)
        change = answers[1] - answers[0]
        assert np.abs(change).sum() <= l1
        assert np.linalg.norm(change) <= l2
        worst = max(worst, np.abs(change).sum() / l1)
    assert worst > 0.999


def test_weights_of_zero_need_no_noise() -> None:
    panel = make_panel()
    answer, noise = release_answer(panel.scaled("test"), np.zeros(panel.n), StepBudget("epsilon", 1.0), NoNoise())
    assert not answer.any()
    assert noise.scale == 0


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 3.0), (2.0, 4.0)])
def test_a_panel_rebuilt_with_other_donors_moves_the_answer_no_further(bounds: tuple[float, float]) -> None:
    """``dataclasses.replace`` skips the clipping of donors; with bounds from 0 they could move twice as far."""
    panel = make_panel(n=4, bounds=bounds)
    weights = np.array([1.0, 0.2, -0.1, 0.0])
    rows = [np.where(np.arange(4)[:, np.newaxis] == 0, value, panel.donors) for value in (-1e6, -1.0, 1e6, np.inf)]
    made = [noiseless(of_rows(panel, donors), weights) for donors in rows]
    for answer, l1, l2 in made:
        for other, _, _ in made:
            assert np.abs(answer - other).sum() <= l1 * (1 + 1e-9)
            assert np.linalg.norm(answer - other) <= l2 * (1 + 1e-9)
    assert np.linalg.norm(made[0][0] - made[2][0]) > 0.99 * made[0][2]
    for donors in rows:  # what the weights are learned from is clipped too
        assert np.abs(of_rows(panel, donors).scaled("test").X).max() <= 1
    with pytest.raises(PanelError, match="missing value"):
        of_rows(panel, np.full_like(panel.donors, np.nan)).scaled("test")
