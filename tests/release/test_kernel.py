from __future__ import annotations

import numpy as np
import pytest

from dpsc import ParameterError
from dpsc.release.kernel import Kernel, Smoothness


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


@pytest.mark.parametrize("smoothness", ["high", "mild", "none"])
@pytest.mark.parametrize("T", [2, 3, 7, 110])
def test_a_whitened_movement_is_white_and_has_no_level(smoothness: Smoothness, T: int) -> None:
    """W K W' = I in T - 1 directions, and W 1 = 0: all that K shows of a row besides its level."""
    kernel, W = Kernel.named(smoothness), np.eye(T)
    kernel.whiten_movement_in_place(W)
    assert not W[0].any()
    np.testing.assert_allclose(W[1:] @ kernel.matrix(T) @ W[1:].T, np.eye(T - 1), atol=1e-12)
    np.testing.assert_allclose(W.sum(axis=1), 0, atol=1e-13)
    level = np.linalg.solve(kernel.root(T), np.ones(T))  # what is projected out, in the coordinates of the root
    left = np.eye(T) - np.outer(level, level) / (level @ level)
    np.testing.assert_allclose(kernel.root(T).T @ W.T @ W @ kernel.root(T), left, atol=1e-12)


@pytest.mark.parametrize("smoothness", ["high", "none"])
@pytest.mark.parametrize("level", [1.0, -1e6])
def test_a_level_changes_no_movement(smoothness: Smoothness, level: float) -> None:
    columns = np.random.default_rng(3).normal(size=(30, 8))
    shifted = columns + level
    for block in (columns, shifted):
        Kernel.named(smoothness).whiten_movement_in_place(block)
    np.testing.assert_allclose(shifted, columns, atol=1e-14 * max(30, abs(level)))


@pytest.mark.parametrize("T", [2, 9, 50])
def test_a_movement_does_not_depend_on_the_columns_beside_it(T: int) -> None:
    """To the last bit, whatever the block, its layout in memory and its neighbours are."""
    rng, kernel = np.random.default_rng(T), Kernel.named("high")
    columns = rng.normal(size=(T, 60)) * 10.0 ** rng.integers(-100, 100, 60)
    together = columns.copy()
    kernel.whiten_movement_in_place(together, np.full((3, 60), np.nan))
    for width in (1, 7, 59):
        for j in range(0, 60 - width + 1, width):
            for alone in (
                np.ascontiguousarray(columns[:, j : j + width]),
                np.asfortranarray(columns[:, j : j + width]),
            ):
                part = alone.copy(order="K")
                kernel.whiten_movement_in_place(part)
                np.testing.assert_array_equal(part, together[:, j : j + width])


def test_unknown_smoothness_is_refused() -> None:
    with pytest.raises(ParameterError, match="smoothness"):
        Kernel.named("low")  # type: ignore[arg-type]
