from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import minimize

from dpsc import DpscWarning, GramRelease, Panel, PanelError, ParameterError, PrivateResult, UnprovenResult
from dpsc.gram.kernel import Kernel
from dpsc.gram.sources import sum_of_rows
from dpsc.privacy import accounting
from dpsc.types import Array
from tests.conftest import scale_pvalue
from tests.making import make_panel

MAKE = GramRelease(epsilon=1.0, delta=1e-6)
HIGH = Kernel.named("high")


def difference(x: Array, other: Array, kernel: Kernel = HIGH) -> Array:
    """By how much the integer matrix changes when row x becomes another."""
    return np.asarray(
        sum_of_rows(x[np.newaxis], kernel, None, 18) - sum_of_rows(other[np.newaxis], kernel, None, 18), dtype=float
    )


def loss(D: Array) -> float:
    """The zCDP loss of a change D, in the units of rho, at the scales that epsilon = 1, delta = 1e-6 gives."""
    diagonal = MAKE.release(np.ones((1, 2))).diagonal_scale
    above = D[np.triu_indices(len(D), 1)]
    return float(np.sum(np.diag(D) ** 2) / (2 * diagonal**2) + np.sum(above**2) / (2 * (diagonal / math.sqrt(2)) ** 2))


def test_no_neighbour_costs_more_than_rho_and_orthogonal_rows_cost_it_all() -> None:
    rho = accounting.zcdp_rho(1.0, 1e-6)
    rng = np.random.default_rng(0)
    for T in (2, 5, 20):
        for _ in range(50):
            assert loss(difference(rng.normal(size=T), rng.normal(size=T))) <= rho
        root = HIGH.root(T)
        worst = loss(difference(root[:, 0], root[:, 1]))  # whitened, these are the first two unit vectors
        assert 0.999 * rho < worst <= rho
        assert worst > 0.9 * rho  # a bound 10% too small would be broken


def test_gradient_ascent_finds_orthogonal_rows_and_nothing_worse() -> None:
    rho = accounting.zcdp_rho(1.0, 1e-6)
    kernel = Kernel.named("none")

    def smooth(flat: Array) -> float:
        u, v = flat.reshape(2, 4) / np.linalg.norm(flat.reshape(2, 4), axis=1, keepdims=True)
        return -float(np.sum((np.outer(u, u) - np.outer(v, v)) ** 2))

    best = minimize(smooth, np.random.default_rng(1).normal(size=8)).x.reshape(2, 4)
    assert 0.999 * rho < loss(difference(best[0], best[1], kernel)) <= rho


@pytest.mark.statistical
def test_the_noise_has_the_stated_scales_and_the_test_rejects_10_percent_less() -> None:
    rows = np.random.default_rng(0).normal(size=(40, 120))
    exact = sum_of_rows(rows, HIGH, None, 18)
    release = MAKE.release(rows)
    noise = (release.matrix - exact).astype(float)
    np.testing.assert_array_equal(noise, noise.T)
    assert release.diagonal_scale == pytest.approx(4.0**18 * 6.408, rel=1e-3)
    assert release.off_diagonal_scale == pytest.approx(release.diagonal_scale / math.sqrt(2))
    above = noise[np.triu_indices(120, 1)] / release.off_diagonal_scale
    few = rows[:, :40]
    exact = sum_of_rows(few, HIGH, None, 18)
    diagonal = np.array([np.diag(MAKE.release(few).matrix - exact) for _ in range(120)]) / release.diagonal_scale
    for sample in (above, diagonal.ravel()):
        assert stats.kstest(sample, "norm").pvalue > 1e-6
        assert scale_pvalue(sample, "gaussian") > 1e-6
        assert scale_pvalue(0.9 * sample, "gaussian") < 1e-4


def test_the_guarantee_is_exact_and_its_loss_is_rho() -> None:
    release = MAKE.release(make_panel())
    assert release.guarantee is not None
    assert (release.guarantee.epsilon, release.guarantee.delta) == (1.0, 1e-6)
    assert release.guarantee.arithmetic == "exact"
    assert release.guarantee.loss.rho == accounting.zcdp_rho(1.0, 1e-6)
    assert "exact arithmetic" in repr(release)


def test_panels_frames_and_arrays_give_the_same_release() -> None:
    panel = make_panel(n=30)
    frame = pd.DataFrame(panel.donors, columns=panel.times)[panel.times[::-1]]
    seeded = GramRelease(epsilon=1.0, delta=1e-6, seed=5)
    releases = [seeded.release(donors) for donors in (panel, panel.donors, frame, panel.donors.tolist())]
    for release in releases[1:]:
        np.testing.assert_array_equal(release.matrix, releases[0].matrix)
        assert release.times.equals(releases[0].times)


def test_bounds_are_applied_first_if_the_panel_has_them() -> None:
    donors = np.array([[1.0, 50.0, -3.0, 2.0], [1.0, 1.0, 2.0, 2.0]])
    seeded = GramRelease(epsilon=1.0, delta=1e-6, seed=5)
    panel = Panel.from_arrays(donors, np.ones(4), treatment_time=2, bounds=(-2, 2))
    np.testing.assert_array_equal(seeded.release(panel).matrix, seeded.release(np.clip(donors, -2, 2)).matrix)


def test_a_long_frame_is_not_taken_for_a_wide_one() -> None:
    """Otherwise every row would count as a donor, and the guarantee would protect a patient-month, not a patient."""
    frame = pd.DataFrame({"patient": np.repeat(range(9), 4), "month": np.tile(range(4), 9), "cost": range(36)})
    with pytest.raises(PanelError, match="from_long"):
        MAKE.release(frame)
    wide = frame.pivot(index="patient", columns="month", values="cost").rename(columns=lambda t: f"m{t}").reset_index()
    with pytest.raises(PanelError, match="'patient'"):
        MAKE.release(wide)
    assert MAKE.release(wide.set_index("patient"), outcome="cost").outcome == "cost"


def test_the_donors_array_is_left_alone() -> None:
    donors = np.random.default_rng(0).normal(size=(50, 6))
    before = donors.copy()
    MAKE.release(donors)
    np.testing.assert_array_equal(donors, before)


def test_a_seeded_release_and_what_comes_of_it_say_not_private() -> None:
    panel = make_panel(n=50)
    release = GramRelease(epsilon=1.0, delta=1e-6, seed=1).release(panel)
    assert release.guarantee is None
    assert "not private" in repr(release)
    result = release.estimate(panel.target, panel.treatment_time)
    assert isinstance(result, UnprovenResult)
    assert "not private" in result.summary()
    assert isinstance(MAKE.release(panel).estimate(panel.target, panel.treatment_time), PrivateResult)


def test_delta_zero_is_refused_with_what_to_use_instead() -> None:
    with pytest.raises(ParameterError, match="OutputPerturbation"):
        GramRelease(epsilon=1.0, delta=0)


def test_a_delta_that_is_too_large_for_n_is_warned_about_with_public_numbers() -> None:
    with pytest.warns(DpscWarning, match="1/n"):
        GramRelease(epsilon=1.0, delta=0.1).release(np.ones((10, 3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GramRelease(epsilon=1.0, delta=0.01).release(np.zeros((10, 3)))


def test_sizes_are_refused_before_the_donors_are_touched() -> None:
    with pytest.raises(PanelError, match="2001 periods"):
        MAKE.release(np.zeros((2, 2001)))
    huge = np.lib.stride_tricks.as_strided(np.zeros(3), shape=(2**12, 3), strides=(0, 8))
    with pytest.raises(ParameterError, match="64-bit integers with grid_bits=26; use grid_bits=24") as refusal:
        GramRelease(epsilon=1.0, delta=1e-9, grid_bits=26).release(huge)
    assert "4,096 donors" in str(refusal.value)
    with pytest.raises(ParameterError, match="grid_bits=25"):
        GramRelease(epsilon=1.0, delta=1e-9, grid_bits=25).release(huge)
    assert GramRelease(epsilon=1.0, delta=1e-9, grid_bits=24).release(huge).n == 2**12


def test_the_largest_numbers_of_donors_are_named_with_a_grid_that_fits() -> None:
    for n, bits in ((60_000_000, 18), (250_000_000, 17), (10**9, 16), (10**11, 12)):
        GramRelease(epsilon=1.0, delta=1e-12, grid_bits=bits)._check_sizes(n, 50)
        with pytest.raises(ParameterError, match=f"use grid_bits={bits}"):
            GramRelease(epsilon=1.0, delta=1e-12, grid_bits=bits + 1)._check_sizes(n, 50)


@pytest.mark.parametrize("bad", [np.zeros(4), np.zeros((0, 4)), np.array([[1.0, np.nan]]), [["a", "b"]], "text"])
def test_what_are_no_donors_is_refused(bad: object) -> None:
    with pytest.raises(PanelError):
        MAKE.release(bad)


@pytest.mark.parametrize(
    "reference", [["a", "b", "c"], {"a": 1}, [1.0, 2.0], [1.0, np.nan, 2.0], pd.Series([1.0], index=[9])]
)
def test_a_reference_that_does_not_fit_is_refused(reference: object) -> None:
    with pytest.raises(ParameterError, match="reference"):
        GramRelease(epsilon=1.0, delta=1e-6, reference=reference).release(np.ones((5, 3)))


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"smoothness": "low"}, "smoothness"),
        ({"grid_bits": 40}, "grid_bits"),
    ],
)
def test_senseless_parameters_are_refused_by_name(changes: dict[str, object], name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        GramRelease(**({"epsilon": 1.0, "delta": 1e-6} | changes))  # type: ignore[arg-type]


def test_nothing_public_about_a_release_depends_on_the_donors() -> None:
    first, second = (MAKE.release(np.full((7, 4), value)) for value in (0.0, 1e12))
    for name in ("n", "outcome", "kernel", "grid_bits", "diagonal_scale", "off_diagonal_scale", "guarantee", "sites"):
        assert getattr(first, name) == getattr(second, name)


def test_masked_cells_are_missing_and_not_the_numbers_under_the_mask() -> None:
    donors = np.ma.masked_array(np.ones((5, 4)), mask=np.eye(5, 4, dtype=bool))
    with pytest.raises(PanelError, match="missing"):
        GramRelease(epsilon=1.0, delta=1e-6).release(donors)


def test_the_published_matrix_is_symmetric_to_the_last_unit() -> None:
    """Two draws for one entry would let anybody halve the variance of its noise."""
    matrix = GramRelease(epsilon=1.0, delta=1e-6).release(np.ones((5, 6))).matrix
    np.testing.assert_array_equal(matrix, matrix.T)


def test_no_two_entries_share_their_noise() -> None:
    """More than 32,768 entries above the diagonal, so that several blocks of noise are drawn."""
    release = GramRelease(epsilon=1.0, delta=1e-6, smoothness="none").release(np.eye(2, 300))
    upper = release.matrix[np.triu_indices(300)]
    assert len(np.unique(upper)) >= upper.size - 5
