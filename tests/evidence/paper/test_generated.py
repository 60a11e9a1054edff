from __future__ import annotations

import numpy as np
import pytest

from dpsc.evidence.paper.points import Generator, generate


@pytest.mark.parametrize("n", [10, 100])
def test_the_printed_data_are_lines_through_zero_within_their_public_bounds(n: int) -> None:
    data = generate("printed", n, 10, np.random.default_rng(0))
    scale = 5 * 13 + 1
    slopes = data.donor_signal[:, 0] * scale
    assert slopes.min() >= 3
    assert slopes.max() <= 5
    np.testing.assert_allclose(data.donor_signal * scale, np.outer(slopes, np.arange(1, 14)))
    assert np.abs((data.donors - data.donor_signal) * scale).max() <= 1
    assert np.abs(data.donors).max() <= 1


def test_the_printed_noise_has_variance_a_tenth() -> None:
    data = generate("printed", 20_000, 10, np.random.default_rng(0))
    noise = (data.donors - data.donor_signal) * 66
    assert np.var(noise) == pytest.approx(0.1, rel=0.03)  # truncation at three standard deviations takes a little
    assert data.sigma * 66 == pytest.approx(float(np.std(noise)), rel=0.01)


def test_the_published_data_have_the_slips_of_the_published_code() -> None:
    data = generate("published", 2000, 10, np.random.default_rng(0))
    signal = np.vstack([data.donor_signal, data.signal])
    assert signal.min() == pytest.approx(-1)
    assert signal.max() == pytest.approx(1)
    many = [generate("published", 100, 10, np.random.default_rng(i)).donors.max() for i in range(200)]
    assert 1.05 < max(many) <= 1.1
    noise = data.donors - data.donor_signal
    assert 0.0999 < np.abs(noise).max() <= 0.1
    # Slopes in [7, 9] and intercepts in [-1, 1], up to the common scale: the steepest is below 9/7 of the flattest.
    slopes = np.diff(data.donor_signal, axis=1)[:, 0]
    assert 1.1 < slopes.max() / slopes.min() < 9 / 7


@pytest.mark.parametrize("generator", ["printed", "published"])
def test_the_truth_is_the_signal_and_the_error_of_the_truth_is_zero(generator: Generator) -> None:
    data = generate(generator, 10, 10, np.random.default_rng(0))
    assert data.truth.shape == (3,)
    assert data.rmse(data.truth) == 0
    assert data.rmse(data.truth + 2.0) == pytest.approx(2)
