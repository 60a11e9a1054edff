from __future__ import annotations

import numpy as np
import pytest

from dpsc import ParameterError
from dpsc.gram.kernel import Kernel, Smoothness


@pytest.mark.parametrize("smoothness", ["high", "mild", "none"])
@pytest.mark.parametrize("T", [1, 2, 7, 110])
def test_the_recursion_multiplies_by_the_inverse_of_the_kernels_root(smoothness: Smoothness, T: int) -> None:
    kernel = Kernel.named(smoothness)
    columns = np.random.default_rng(T).normal(size=(T, 9))
    expected = np.linalg.solve(kernel.root(T), columns)
    kernel.whiten_in_place(columns)
    np.testing.assert_allclose(columns, expected, atol=1e-12)


def test_whitening_makes_a_series_with_that_kernel_white() -> None:
    kernel, T = Kernel.named("high"), 12
    root = kernel.root(T)
    np.testing.assert_allclose(root @ root.T, kernel.matrix(T), atol=1e-12)
    columns = root.copy()
    kernel.whiten_in_place(columns)
    np.testing.assert_allclose(columns, np.eye(T), atol=1e-12)


def test_unknown_smoothness_is_refused() -> None:
    with pytest.raises(ParameterError, match="smoothness"):
        Kernel.named("low")  # type: ignore[arg-type]
