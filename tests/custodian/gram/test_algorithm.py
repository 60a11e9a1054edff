from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpsc import DpscWarning, GramRelease, Panel, PanelError, ParameterError, PrivateResult, UnprovenResult
from dpsc.analyst.release import Release
from dpsc.custodian.gram.algorithm import CustodianSum
from dpsc.privacy import accounting, discrete
from dpsc.privacy.rounded_gaussian import discrete_gaussian_slack, released_mu
from dpsc.types import Array, Integers
from tests.conftest import scale_pvalue
from tests.making import make_panel, row_map

MAKE = GramRelease(epsilon=1.0, delta=1e-6, scale=1.0)
COUNTING = GramRelease(epsilon=1.0, delta=1e-6)
WALKS = np.random.default_rng(7).normal(size=(400, 8)).cumsum(axis=1)


def mu_squared(change: Integers, release: Release) -> float:
    """What a change of the integers costs: squared, in standard deviations of the noise that the release states."""
    D = np.asarray(change, dtype=np.float64)
    diagonal = np.sum(np.diag(D) ** 2) / release.diagonal_scale**2
    return float(diagonal + np.sum(D[np.triu_indices(len(D), 1)] ** 2) / release.off_diagonal_scale**2)


@pytest.mark.parametrize("options", [{}, {"directions": 1}, {"reference": "path"}, {"smoothness": "none"}], ids=str)
def test_no_neighbour_costs_more_than_mu_squared_and_orthogonal_rows_cost_it_all(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    for T in (2, 5, 20):
        path = {"reference": np.linspace(0, 9, T)} if "reference" in options else {}
        make = replace(MAKE, **(options | path))
        release = make.release(np.ones((1, T)))
        assert release.guarantee is not None
        budget = release.guarantee.loss.mu_squared
        assert budget == released_mu(1.0, 1e-6) ** 2
        assert budget == pytest.approx(accounting.gaussian_mu(1.0, 1e-6) ** 2, rel=1e-4)

        def cost(x: Array, other: Array, make: GramRelease = make, release: Release = release) -> float:
            one, two = (make.custodian_sum(row[np.newaxis]).total for row in (x, other))
            return mu_squared(one - two, release)

        for _ in range(20):
            assert cost(*rng.normal(size=(2, T)) * 10.0 ** rng.integers(-2, 3, (2, 1))) <= budget
        still, moving = 0 * release.row_map.back[:, 0], 1e9 * release.row_map.back[:, 0]
        worst = cost(still + (0 if release.reference is None else release.reference), moving)
        assert 0.999 * budget < worst <= budget  # so noise 10% too small would be too little


def drawn(make: GramRelease, donors: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Release, list[tuple[int, float]]]:
    """A release, and how many numbers got noise of which scale, as the sampler was asked for."""
    asked: list[tuple[int, float]] = []
    add = discrete.add

    def watched(values: Any, kind: Any, scale: float, *rest: Any, **options: Any) -> Any:
        assert kind == "gaussian"
        asked.append((len(values), scale))
        return add(values, kind, scale, *rest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(discrete, "add", watched)
        return make.release(donors), asked


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 8.0])
@pytest.mark.parametrize("options", [{"scale": 1.0}, {"like": np.arange(8.0)}, {}], ids=str)
def test_counts_and_matrix_together_cost_what_the_guarantee_says(
    epsilon: float, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Squared sensitivities over the variances that noise was drawn with, added up: the whole budget, no more."""
    make = GramRelease(epsilon=epsilon, delta=1e-6, **options)
    release, asked = drawn(make, np.tile(WALKS, (6, 1)), monkeypatch)
    assert release.guarantee is not None
    budget, unit = release.guarantee.loss.mu_squared, 4.0**release.grid_bits
    (size, diagonal), (above, off_diagonal) = asked[-2:]
    assert (size, above) == (release.row_map.size, size * (size - 1) // 2)
    assert (diagonal, off_diagonal) == (release.diagonal_scale, release.off_diagonal_scale)
    spent = 2 * unit**2 / min(diagonal**2, 2 * off_diagonal**2)
    for count, sigma in asked[:-2]:
        assert count == 81
        assert 2 * unit**2 / sigma**2 == pytest.approx(release.scale.share * budget, rel=1e-9)
        spent += 2 * unit**2 / sigma**2
    assert len(asked) == (2 if "scale" in options else 3)
    assert 0.999 * budget < spent <= budget
    smallest = min(sigma for _, sigma in asked)  # of all of them, the slack was charged for
    assert smallest >= unit / math.sqrt(budget)


@pytest.mark.statistical
def test_the_noise_has_the_stated_scales_and_the_test_rejects_10_percent_less() -> None:
    make = replace(MAKE, directions=19)
    summed = make.custodian_sum(np.random.default_rng(0).normal(size=(40, 30)))
    releases = [make.release(summed) for _ in range(240)]
    noise = np.array([release.matrix - summed.total for release in releases]).astype(float)
    np.testing.assert_array_equal(noise, noise.transpose(0, 2, 1))
    stated = releases[0]
    assert stated.diagonal_scale == pytest.approx(4.0**18 * math.sqrt(2) * 4.2247, rel=1e-4)
    assert stated.off_diagonal_scale == pytest.approx(stated.diagonal_scale / math.sqrt(2))
    diagonal = np.diagonal(noise, axis1=1, axis2=2) / stated.diagonal_scale
    above = noise[:, *np.triu_indices(20, 1)] / stated.off_diagonal_scale
    for sample in (above[:40].ravel(), diagonal.ravel()):
        assert stats.kstest(sample, "norm").pvalue > 1e-6
        assert scale_pvalue(sample, "gaussian") > 1e-6
        assert scale_pvalue(0.9 * sample, "gaussian") < 1e-4


def test_the_guarantee_is_exact_and_its_loss_is_gaussian_with_a_slack() -> None:
    release = MAKE.release(make_panel())
    assert release.guarantee is not None
    assert (release.guarantee.epsilon, release.guarantee.delta) == (1.0, 1e-6)
    assert release.guarantee.arithmetic == "exact"
    loss = release.guarantee.loss
    assert loss.rho == loss.pure == 0
    assert 0 < loss.rest_epsilon < 1e-9
    assert 0 < loss.rest_delta < 1e-15
    assert loss.epsilon(1e-6) <= 1.0
    assert "exact arithmetic" in repr(release)


def test_a_grid_too_coarse_for_the_slack_is_accounted_as_zcdp() -> None:
    coarse = replace(MAKE, grid_bits=4).release(make_panel())
    assert coarse.guarantee is not None
    assert coarse.guarantee.loss.mu_squared == 0
    assert coarse.guarantee.loss.rho == accounting.zcdp_rho(1.0, 1e-6)
    fine = MAKE.release(make_panel())
    assert coarse.diagonal_scale / 4.0**4 == pytest.approx(6.408, rel=1e-3)
    assert fine.noise_scale < 0.94 * coarse.noise_scale


@pytest.mark.parametrize(
    "other",
    [{"epsilon": 0.5}, {"epsilon": 2.0}, {"delta": 1e-9}, {"seed": 1}],
    ids=str,
)
def test_a_counted_scale_is_released_only_by_the_budget_and_source_that_paid_for_it(other: dict[str, Any]) -> None:
    """Otherwise counts could be made with little noise, or with a seed, and released under a stronger claim."""
    for first, second in ((COUNTING, replace(COUNTING, **other)), (replace(COUNTING, **other), COUNTING)):
        summed = first.custodian_sum(WALKS)
        assert first.release(summed).n == 400
        with pytest.raises(ParameterError, match="another epsilon, delta or seed"):
            second.release(summed)
    given = replace(MAKE, **other)
    assert given.release(MAKE.custodian_sum(WALKS)).n == 400  # nothing was paid yet


@pytest.mark.parametrize(
    "other",
    [{"smoothness": "mild"}, {"reference": np.ones(8)}, {"scale": None}, {"grid_bits": 17}, {"directions": 3}],
    ids=str,
)
def test_a_sum_made_in_another_way_is_not_released(other: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="this sum was made with another"):
        replace(MAKE, **other).release(MAKE.custodian_sum(WALKS))


def test_the_map_follows_from_public_numbers_and_the_scale() -> None:
    for donors, kept in ((WALKS, 7), (WALKS[:20], 3)):
        summed = MAKE.custodian_sum(donors)
        assert isinstance(summed, CustodianSum)
        assert summed.row_map.same_as(row_map(8, directions=kept, constant=summed.row_map.constant))
        assert summed.total.shape == (kept + 1, kept + 1)
    assert replace(MAKE, directions=99).custodian_sum(WALKS).row_map.directions == 7
    assert replace(MAKE, directions=2).release(WALKS).matrix.shape == (3, 3)


def test_one_period_does_not_move() -> None:
    with pytest.raises(PanelError, match="at least 2 periods"):
        MAKE.release(np.ones((5, 1)))


def test_panels_frames_and_arrays_give_the_same_release() -> None:
    panel = make_panel(n=30)
    frame = pd.DataFrame(panel.donors, columns=panel.times)[panel.times[::-1]]
    seeded = replace(MAKE, seed=5)
    releases = [seeded.release(donors) for donors in (panel, panel.donors, frame, panel.donors.tolist())]
    for release in releases[1:]:
        np.testing.assert_array_equal(release.matrix, releases[0].matrix)
        assert release.times.equals(releases[0].times)


def test_bounds_are_applied_first_if_the_panel_has_them() -> None:
    donors = np.array([[1.0, 50.0, -3.0, 2.0], [1.0, 1.0, 2.0, 2.0]])
    seeded = replace(MAKE, seed=5)
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
    for make in (replace(MAKE, seed=1), replace(COUNTING, seed=1)):
        with pytest.warns(DpscWarning, match="seed=1 .* NOT PRIVATE"):
            release = make.release(panel)
        assert make.guarantee is None
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
        GramRelease(epsilon=1.0, delta=0.1, scale=1.0).release(np.ones((10, 3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GramRelease(epsilon=1.0, delta=0.01, scale=1.0).release(np.zeros((10, 3)))


def test_sizes_are_refused_before_the_donors_are_touched() -> None:
    with pytest.raises(PanelError, match="2001 periods"):
        MAKE.release(np.zeros((2, 2001)))
    huge = np.lib.stride_tricks.as_strided(np.zeros(3), shape=(2**12, 3), strides=(0, 8))
    with pytest.raises(ParameterError, match="64-bit integers with grid_bits=26; use grid_bits=24") as refusal:
        replace(MAKE, delta=1e-9, grid_bits=26).release(huge)
    assert "4,096 donors" in str(refusal.value)
    with pytest.raises(ParameterError, match="grid_bits=25"):
        replace(MAKE, delta=1e-9, grid_bits=25).release(huge)
    assert replace(MAKE, delta=1e-9, grid_bits=24).release(huge).n == 2**12


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
        replace(MAKE, reference=reference).release(np.ones((5, 3)))


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
        MAKE.release(donors)


def test_the_published_matrix_is_symmetric_to_the_last_unit() -> None:
    """Two draws for one entry would let anybody halve the variance of its noise."""
    matrix = MAKE.release(np.ones((5, 6))).matrix
    np.testing.assert_array_equal(matrix, matrix.T)


def test_no_two_entries_share_their_noise() -> None:
    """More than 32,768 entries above the diagonal, so that several blocks of noise are drawn."""
    release = replace(MAKE, smoothness="none").release(np.eye(2, 300))
    upper = release.matrix[np.triu_indices(300)]
    assert len(np.unique(upper)) >= upper.size - 5


@pytest.mark.parametrize("bits", [10, 12, 18])
def test_the_slack_covers_every_number_with_noise_of_the_largest_release(bits: int) -> None:
    """A matrix of 2,000 periods, and the 81 counts that find the scale: the counts could be left out unnoticed."""
    loss = GramRelease(epsilon=1.0, delta=1e-6, grid_bits=bits).loss
    numbers = 2000 * 2001 // 2 + 81
    epsilon, delta = discrete_gaussian_slack(math.sqrt(loss.mu_squared), numbers, 4.0**bits)
    assert loss.rest_epsilon >= epsilon
    assert loss.rest_delta >= delta
