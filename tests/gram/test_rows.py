from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpsc.data.writing import row_writer
from dpsc.gram.kernel import Kernel, Smoothness
from dpsc.gram.rows import IntegerRows, sum_of_squares
from dpsc.gram.sources import sum_of_rows
from dpsc.types import Array
from tests.soak import quick_or_long

HIGH = Kernel.named("high")


def integers(rows: Array, kernel: Kernel = HIGH, reference: Array | None = None, bits: int = 18) -> Array:
    rows = np.asarray(rows, dtype=np.float64)
    return IntegerRows(rows.shape[1], rows.shape[0], kernel, reference, bits)(row_writer(rows))


def squared_lengths(columns: Array) -> list[int]:
    return [sum(int(v) ** 2 for v in column) for column in columns.T]


@settings(max_examples=quick_or_long(150, 20_000))
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 8)), elements=st.floats(width=64)),
    st.sampled_from(["high", "mild", "none"]),
    st.integers(4, 26),
)
def test_no_row_whatever_its_cells_is_longer_than_one(rows: Array, smoothness: Smoothness, bits: int) -> None:
    columns = integers(rows, Kernel.named(smoothness), bits=bits)
    lengths = squared_lengths(columns)
    assert max(lengths) <= 4**bits
    assert min(lengths) > 0
    np.testing.assert_array_equal(columns, np.trunc(columns))


def test_rows_use_their_whole_length() -> None:
    """Truncation shortens by at most sqrt(T) units, so the sensitivity that the noise pays for is really used."""
    rows = np.random.default_rng(0).normal(size=(200, 30))
    lengths = np.sqrt(squared_lengths(integers(rows)))
    assert lengths.min() > 2**18 - 2 * np.sqrt(30)


def test_entries_are_truncated_toward_zero() -> None:
    rows = np.random.default_rng(4).normal(size=(300, 20))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True) * 2**18
    columns = integers(rows, Kernel.named("none"))
    np.testing.assert_array_equal(columns.T, np.trunc(unit * (1 - 1e-13)))


def test_rounding_to_nearest_would_make_rows_too_long() -> None:
    """The attack that truncation closes: of rounded rows about half are longer than the bound."""
    rows = np.random.default_rng(0).normal(size=(500, 30))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    rounded = np.rint(unit * 2**18)
    assert np.mean((rounded**2).sum(axis=1) > 4**18) > 0.3


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-5, 1e5, 1e200, 1e300])
def test_the_scale_of_a_row_does_not_matter(scale: float) -> None:
    rows = np.random.default_rng(1).normal(size=(20, 7))
    np.testing.assert_allclose(integers(rows * scale), integers(rows), atol=1.0)


def test_a_single_cell_is_a_direction() -> None:
    rows = np.zeros((3, 6))
    rows[0, 2], rows[1, 2], rows[2, 2] = 1e-300, 1.0, -1e300
    first, second, third = integers(rows, Kernel.named("none")).T
    assert first.tolist() == second.tolist() == (-third).tolist() == [0, 0, 2**18, 0, 0, 0]


@pytest.mark.parametrize("row", [[0.0] * 5, [np.inf, 0, 0, 0, 0], [np.nan] * 5, [1.0, np.inf, -np.inf, 0, 0]])
def test_a_row_without_direction_becomes_the_public_vector(row: list[float]) -> None:
    assert integers(np.array([row]))[:, 0].tolist() == [2**18, 0, 0, 0, 0]


def test_a_row_equal_to_the_reference_becomes_the_public_vector() -> None:
    reference = np.arange(5.0)
    assert integers(reference[np.newaxis], reference=reference)[:, 0].tolist() == [2**18, 0, 0, 0, 0]


def test_the_reference_is_subtracted_before_anything_else() -> None:
    rng = np.random.default_rng(0)
    rows, reference = rng.normal(size=(9, 6)), rng.normal(size=6)
    np.testing.assert_array_equal(integers(rows, reference=reference), integers(rows - reference))


@pytest.mark.parametrize("reference", [None, np.linspace(-1, 1, 23)])
def test_the_sum_is_the_same_to_the_last_bit_for_any_block_order_and_number_of_threads(reference: Array | None) -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(3001, 23)) * 10.0 ** rng.integers(-250, 250, (3001, 1))
    rows[::100] = 0
    total = sum_of_rows(rows, HIGH, reference, 18)
    q = integers(rows, reference=reference).astype(np.int64)
    np.testing.assert_array_equal(total, q @ q.T)
    for block, threads in ((1, 1), (7, 2), (64, 3), (1000, 2), (5000, 8)):
        np.testing.assert_array_equal(sum_of_rows(rows, HIGH, reference, 18, block=block, threads=threads), total)
    shuffled = rows[rng.permutation(len(rows))]
    np.testing.assert_array_equal(sum_of_rows(shuffled, HIGH, reference, 18, block=129), total)
    np.testing.assert_array_equal(sum_of_rows(np.asfortranarray(rows), HIGH, reference, 18), total)
    halves = sum_of_rows(rows[:1234], HIGH, reference, 18) + sum_of_rows(rows[1234:], HIGH, reference, 18)
    np.testing.assert_array_equal(halves, total)


@pytest.mark.parametrize("T", [2, 7, 50])
def test_lengths_do_not_depend_on_the_columns_beside_or_on_the_layout_of_memory(T: int) -> None:
    """What decides the last bit of a length decides, once in a billion cells, an integer."""
    columns = np.random.default_rng(T).normal(size=(T, 500))
    expected = sum_of_squares(columns)
    np.testing.assert_array_equal(sum_of_squares(np.asfortranarray(columns)), expected)
    for m in (1, 2, 3, 8):
        for copy in (np.ascontiguousarray, np.asfortranarray, np.asarray):
            parts = [sum_of_squares(copy(columns[:, j : j + m])) for j in range(0, 500, m)]
            np.testing.assert_array_equal(np.concatenate(parts), expected)


def test_large_grids_stay_exact() -> None:
    rows = np.random.default_rng(3).normal(size=(500, 4))
    q = integers(rows, bits=26).astype(np.int64).astype(object)
    np.testing.assert_array_equal(sum_of_rows(rows, HIGH, None, 26), (q @ q.T).astype(np.int64))
