"""What is rehearsed in floating point is what a release does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpsc import GramRelease, Panel, Release
from dpsc.analyst.simulate import Rehearsal
from dpsc.release.kernel import Smoothness
from dpsc.release.settings import agreed
from dpsc.types import Array

T0, T = 9, 12


def paths(n: int) -> Array:
    rng = np.random.default_rng(3)
    return rng.uniform(0, 2, (n + 1, 1)) * np.cumsum(rng.normal(size=T)) + rng.normal(size=(n + 1, T))


@pytest.mark.parametrize(("n", "smoothness"), [(8, "high"), (60, "mild"), (500, "none"), (500, "high")])
def test_noise_and_directions_are_those_of_a_release(n: int, smoothness: Smoothness) -> None:
    units = paths(n)
    panel = Panel.from_arrays(units[1:], units[0], treatment_time=T0)
    release = GramRelease(epsilon=0.8, delta=1e-7, smoothness=smoothness, seed=0).release(panel)
    matrix, noise, row_map = Rehearsal(0.8, 1e-7, smoothness).release(
        units[1:], n, units[0, :T0], np.random.default_rng(0)
    )
    assert noise == pytest.approx(release.noise_scale, rel=1e-6)
    assert row_map.directions == release.row_map.directions
    assert len(matrix) == len(release.matrix)


@pytest.mark.statistical
def test_the_scale_has_the_law_of_that_of_a_release() -> None:
    """It is random, because donors are counted with noise."""
    units = paths(40)
    panel = Panel.from_arrays(units[1:], units[0], treatment_time=T0)
    real = [
        GramRelease(epsilon=1.0, delta=1e-6, seed=seed).custodian_sum(panel).row_map.constant for seed in range(250)
    ]
    rng, rehearsal = np.random.default_rng(0), Rehearsal(1.0, 1e-6)
    rehearsed = [rehearsal.release(units[1:], 40, units[0, :T0], rng)[2].constant for _ in range(2500)]
    assert stats.ks_2samp(rehearsed, real).pvalue > 1e-3

    about = np.mean(np.log(rehearsed))
    narrower = np.exp(about + 0.7 * (np.log(rehearsed) - about))
    assert stats.ks_2samp(narrower, real).pvalue < 1e-3
    assert stats.ks_2samp(1.2 * np.array(rehearsed), real).pvalue < 1e-3


def test_without_noise_the_matrix_is_that_of_a_release() -> None:
    """With so large a budget the noise is small, and both matrices show the donors."""
    units = paths(300)
    panel = Panel.from_arrays(units[1:], units[0], treatment_time=T0)
    release = GramRelease(epsilon=1e5, delta=1e-6, seed=0).release(panel)
    matrix, _, _ = Rehearsal(1e5, 1e-6).release(units[1:], 300, units[0, :T0], np.random.default_rng(0))
    np.testing.assert_allclose(matrix, release.noisy_moments, atol=0.02 * np.abs(matrix).max())


def test_several_sites_have_the_noise_and_the_map_of_their_merged_releases() -> None:
    units = paths(90)
    settings = agreed(90, T, 1.0, 1e-6, sites=3, like=units[0, :T0])
    parts = [GramRelease.from_settings(settings).release(units[1 + 30 * k : 31 + 30 * k]) for k in range(3)]
    merged = Release.merge(parts, disjoint=True)
    _, noise, row_map = Rehearsal(1.0, 1e-6, sites=3).release(units[1:], 90, units[0, :T0], np.random.default_rng(0))
    assert noise == pytest.approx(merged.noise_scale, rel=1e-6)
    assert row_map.directions == merged.row_map.directions
    assert row_map.constant == pytest.approx(merged.row_map.constant, rel=0.01)  # agreed on to three digits
