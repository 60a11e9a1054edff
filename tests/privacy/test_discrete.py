from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpsc import DpscError, ParameterError
from dpsc.privacy import discrete, source
from dpsc.types import Integers
from tests.conftest import scale_pvalue

ALPHA = 1e-6  # the draws come from the operating system: a false alarm once in a million runs of each check
KINDS: list[discrete.Kind] = ["laplace", "gaussian"]


def draws(kind: discrete.Kind, scale: float, size: int, seed: int | None = None) -> Integers:
    return discrete.add(np.zeros(size, dtype=np.int64), kind, scale, source.choose(seed), largest=0)


def pvalue(sample: Integers, kind: discrete.Kind, scale: float) -> float:
    """Chi-square test against the exact probabilities, the tails pooled."""
    reach = int(3 * scale)
    k = np.arange(-60 * reach, 60 * reach + 1)
    weights = np.exp(-np.abs(k) / scale) if kind == "laplace" else np.exp(-(k**2) / (2 * scale**2))
    mass = weights / weights.sum()
    inside = np.abs(k) <= reach
    expected = np.append(mass[inside], mass[~inside].sum()) * sample.size
    far = np.abs(sample) > reach
    observed = np.append(np.bincount(sample[~far] + reach, minlength=2 * reach + 1), far.sum())
    return float(stats.chisquare(observed, expected).pvalue)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
def test_the_samplers_have_the_stated_law_and_a_scale_10_percent_too_small_is_rejected(
    kind: discrete.Kind,
) -> None:
    assert pvalue(draws(kind, 3.3, 40_000), kind, 3.3) > ALPHA
    assert pvalue(draws(kind, 0.9 * 3.3, 40_000), kind, 3.3) < ALPHA


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
def test_wide_noise_has_the_continuous_law_from_both_sources(kind: discrete.Kind) -> None:
    law = stats.laplace() if kind == "laplace" else stats.norm()
    for seed in (None, 1):
        sample = draws(kind, 2.0**40, 20_000, seed) / 2.0**40
        assert stats.kstest(sample, law.cdf).pvalue > ALPHA
        assert scale_pvalue(sample, kind) > ALPHA
        assert scale_pvalue(0.9 * sample, kind) < ALPHA


def test_opendp_states_the_same_privacy_loss() -> None:
    assert discrete.measurement("laplace", 40.0).map(10) == pytest.approx(10 / 40.0)
    assert discrete.measurement("gaussian", 40.0).map(10.0) == pytest.approx(10.0**2 / (2 * 40.0**2))


@pytest.mark.parametrize("version", ["0.12.0", "0.14.1", "0.9.2", "0.14.2a20251105001", "0.15.0.dev0", "unknown"])
def test_an_opendp_with_biased_noise_is_refused_when_noise_is_drawn(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before 0.14.2 the probability of no Laplace noise at scale 3 was 0.158 instead of 0.165."""
    discrete.measurement.cache_clear()
    monkeypatch.setattr("importlib.metadata.version", lambda name: {"opendp": version}[name])
    for kind in KINDS:
        with pytest.raises(DpscError, match=rf"OpenDP {version} .* pip install 'opendp>=0\.14\.2'\.$"):
            draws(kind, 3.0, 5)
        draws(kind, 3.0, 5, seed=0)  # not OpenDP's, and without a guarantee


@pytest.mark.parametrize("version", ["0.14.2", "0.14.10", "0.16.0", "0.14.2.post1", "1.0.0"])
def test_an_opendp_whose_noise_has_the_stated_law_is_used(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    discrete.measurement.cache_clear()
    monkeypatch.setattr("importlib.metadata.version", lambda name: {"opendp": version}[name])
    assert draws("laplace", 1e6, 5).any()


def test_the_required_opendp_is_the_one_that_is_accepted() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    assert "opendp>=" + ".".join(map(str, discrete._FIRST_UNBIASED)) in project["dependencies"]


def test_values_beyond_32_bits_keep_their_size() -> None:
    values = np.array([2**50, -(2**50)])
    noisy = discrete.add(values, "gaussian", 5.0, source.system(), largest=2.0**50)
    assert np.abs(noisy - values).max() < 100


def test_scales_that_could_overflow_are_refused_from_public_numbers() -> None:
    for scale, largest in ((2.0**57, 0.0), (1.0, 2.0**62)):
        with pytest.raises(ParameterError, match="64-bit"):
            discrete.add(np.zeros(2, dtype=np.int64), "laplace", scale, source.system(), largest=largest)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_private_noise_is_opendps_and_never_a_rounded_float(
    kind: discrete.Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounded floats have nearly the same law, so no statistical test would tell them apart."""

    def refuse(*arguments: object) -> None:
        raise AssertionError("a private source must not be asked for floats")

    monkeypatch.setattr(discrete, "_continuous", refuse)
    assert discrete.add(np.zeros(5, dtype=np.int64), kind, 1e6, source.system(), largest=0).any()
    with pytest.raises(AssertionError, match="floats"):
        discrete.add(np.zeros(5, dtype=np.int64), kind, 1e6, source.seeded(0), largest=0)


@pytest.mark.parametrize("kind", KINDS)
def test_every_block_of_draws_has_noise_of_its_own(kind: discrete.Kind) -> None:
    """One entry after another, blocks included: noise that is used twice can be subtracted."""
    size = 2 * discrete._BLOCK + 100
    values = np.arange(size, dtype=np.int64)
    told: list[int] = []
    noise = discrete.add(values, kind, 2.0**40, source.system(), largest=size, on_progress=told.append) - values
    assert len(np.unique(noise)) >= size - 5
    assert told == [discrete._BLOCK, discrete._BLOCK, 100]
