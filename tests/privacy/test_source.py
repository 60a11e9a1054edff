from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpsc import ParameterError
from dpsc.privacy import source


def test_system_noise_differs_from_draw_to_draw_and_seeded_noise_does_not() -> None:
    assert not np.array_equal(source.system().normals((5,)), source.system().normals((5,)))
    np.testing.assert_array_equal(source.seeded(3).normals((5,)), source.seeded(3).normals((5,)))


def test_only_system_noise_counts_as_private() -> None:
    assert source.choose(None).private
    assert not source.choose(0).private


def test_system_noise_ignores_numpys_global_seed() -> None:
    np.random.seed(0)  # noqa: NPY002
    first = source.system().normals((5,))
    np.random.seed(0)  # noqa: NPY002
    assert not np.array_equal(first, source.system().normals((5,)))


@pytest.mark.statistical
def test_the_operating_systems_bits_become_the_right_laws() -> None:
    """Not seeded, so a false alarm has probability 2e-6 each; a 10% wrong scale is rejected in the same breath."""
    system = source.system()
    normals, gammas = system.normals((100_000,)), system.gammas(7, (20_000,))
    assert np.isfinite(normals).all()
    assert stats.kstest(normals, "norm").pvalue > 1e-6
    assert stats.kstest(0.9 * normals, "norm").pvalue < 1e-6
    assert stats.kstest(gammas, stats.gamma(7).cdf).pvalue > 1e-6
    assert stats.kstest(0.9 * gammas, stats.gamma(7).cdf).pvalue < 1e-6


def test_a_seed_must_be_a_whole_number() -> None:
    for seed in (-1, 1.5, True):
        with pytest.raises(ParameterError, match="seed"):
            source.seeded(seed)  # type: ignore[arg-type]


def test_system_floats_are_made_of_the_operating_systems_bytes_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No statistical test tells a good generator from the system's; only the second one cannot be wound back."""
    given: list[int] = []

    def urandom(size: int) -> bytes:
        given.append(size)
        return bytes(range(size))

    monkeypatch.setattr("os.urandom", urandom)
    bits = np.frombuffer(bytes(range(32)), dtype=np.uint64) >> np.uint64(12)
    uniforms = (bits + 0.5) / 2.0**52
    np.testing.assert_array_equal(source.system().normals((4,)), stats.norm.ppf(uniforms))
    np.testing.assert_array_equal(source.system().gammas(4, (1,)), [-np.log(uniforms).sum()])
    assert given == [32, 32]


def test_each_normal_is_a_draw_of_its_own() -> None:
    assert len(np.unique(source.system().normals((1000,)))) == 1000
