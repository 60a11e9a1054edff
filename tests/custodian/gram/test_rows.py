from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpsc.custodian.donors.blocks import row_writer
from dpsc.custodian.gram.exact_sum import Products
from dpsc.custodian.gram.integer_rows import IntegerRows, sum_of_squares
from dpsc.custodian.gram.sources import sum_of_rows
from dpsc.release.kernel import Smoothness
from dpsc.release.rowmap import RowMap
from dpsc.types import Array, Integers
from tests.making import row_map
from tests.soak import quick_or_long


def integers(rows: Array, made: RowMap) -> Array:
    rows = np.asarray(rows, dtype=np.float64)
    return IntegerRows(made, rows.shape[0])(row_writer(rows))


def squared_lengths(columns: Array) -> list[int]:
    return [sum(int(v) ** 2 for v in column) for column in columns.T]


@settings(max_examples=quick_or_long(100, 20_000))
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(2, 8)), elements=st.floats(width=64)),
    st.sampled_from(["high", "mild", "none"]),
    st.integers(4, 26),
    st.integers(1, 7),
    st.one_of(st.floats(1e-61, 1e61), st.sampled_from([0.0, 1e-320, 1e-162, 1e-155, 1e155])),
)
def test_no_row_whatever_its_cells_is_longer_than_one(
    rows: Array, smoothness: Smoothness, bits: int, directions: int, constant: float
) -> None:
    T = rows.shape[1]
    made = row_map(T, smoothness, directions=min(directions, T - 1), constant=constant, bits=bits)
    columns = integers(rows, made)
    lengths = squared_lengths(columns)
    assert max(lengths) <= 4**bits
    assert min(lengths) > 0
    np.testing.assert_array_equal(columns, np.trunc(columns))


def test_a_length_that_lost_its_digits_makes_no_vector_longer() -> None:
    """Squares below the smallest number are rounded by half and more; no release has so small a constant."""
    rows = np.outer(np.geomspace(1e-163, 1e-160, 200), [0.0, 1.0])
    assert max(squared_lengths(integers(rows, row_map(2, "none", constant=1e-320)))) <= 4**18


@pytest.mark.parametrize("directions", [29, 28, 4])
def test_rows_use_their_whole_length(directions: int) -> None:
    """Truncation shortens by at most sqrt(T) units, so the sensitivity that the noise pays for is really used."""
    rows = np.random.default_rng(0).normal(size=(200, 30))
    lengths = np.sqrt(squared_lengths(integers(rows, row_map(30, directions=directions))))
    assert lengths.min() > 2**18 - 2 * np.sqrt(30)


@pytest.mark.parametrize("directions", [19, 6])
def test_entries_are_truncated_toward_zero(directions: int) -> None:
    rows = np.random.default_rng(4).normal(size=(300, 20))
    made = row_map(20, "none", directions=directions)
    vectors = np.vstack([np.ones(300), made.whitening @ rows.T])
    unit = vectors / np.linalg.norm(vectors, axis=0) * 2**18
    left = np.sign(unit) * (unit - integers(rows, made))
    rounding = 1e-6 if directions == 19 else 0.1  # the rotation gives entries to 2^-26
    assert left.min() > -rounding
    assert left.max() < 1 + rounding
    assert 0.45 < left.mean() < 0.55  # of rounding to the nearest it would be 0


def test_rounding_to_nearest_would_make_rows_too_long() -> None:
    """The attack that truncation closes: of rounded rows about half are longer than the bound."""
    rows = np.random.default_rng(0).normal(size=(500, 30))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    rounded = np.rint(unit * 2**18)
    assert np.mean((rounded**2).sum(axis=1) > 4**18) > 0.3


@pytest.mark.parametrize("directions", [6, 3])
@pytest.mark.parametrize("unit", [1e-60, 1e-5, 1e5, 1e60])
def test_the_unit_of_the_outcome_does_not_matter(unit: float, directions: int) -> None:
    rows = np.random.default_rng(1).normal(size=(20, 7))
    one, other = (row_map(7, directions=directions, constant=c) for c in (1.0, unit))
    np.testing.assert_allclose(integers(rows * unit, other), integers(rows, one), atol=1.0)


@pytest.mark.parametrize("directions", [6, 3])
@pytest.mark.parametrize("size", [1e99, 1e101, 1e200, 1e300, 1e307])
def test_of_rows_that_move_far_more_than_the_constant_only_the_direction_counts(size: float, directions: int) -> None:
    rows = np.random.default_rng(1).normal(size=(20, 7))
    made = row_map(7, directions=directions)
    far = integers(rows * 1e50, made)
    assert not far[0].any()
    np.testing.assert_allclose(integers(rows * size, made), far, atol=1.0)


@pytest.mark.parametrize("directions", [4, 2])
@pytest.mark.parametrize(
    "row",
    [
        [0.0] * 5, [7.5] * 5, [-1e300] * 5, [1e-320] * 5, [1e-310, 0, 3e-311, 0, 1e-312], [np.inf, 0, 0, 0, 0],
        [np.nan] * 5, [1.0, np.inf, -np.inf, 0, 0],
    ],
)  # fmt: skip
def test_a_row_that_does_not_move_or_is_not_finite_becomes_the_first_unit_vector(
    row: list[float], directions: int
) -> None:
    made = row_map(5, "none", directions=directions)
    assert integers(np.array([row]), made)[:, 0].tolist() == [2**18] + [0] * directions


def test_a_row_equal_to_the_reference_becomes_the_first_unit_vector() -> None:
    reference = np.arange(5.0) ** 2
    for row in (reference, reference + 12):
        columns = integers(row[np.newaxis], row_map(5, reference=reference))
        assert columns[:, 0].tolist() == [2**18, 0, 0, 0, 0]


def test_the_reference_is_subtracted_before_anything_else() -> None:
    rng = np.random.default_rng(0)
    rows, reference = rng.normal(size=(9, 6)), rng.normal(size=6)
    np.testing.assert_array_equal(
        integers(rows, row_map(6, reference=reference)), integers(rows - reference, row_map(6))
    )


def test_the_constant_stands_first() -> None:
    """q_0 / |(q_1, ...)| is R / |w|: half the movement weighs the constant twice as much."""
    made = row_map(9, constant=0.3)
    row = np.random.default_rng(0).normal(size=9)
    for size in (1.0, 0.5):
        q = integers(size * row[np.newaxis], made)[:, 0]
        expected = 0.3 / np.linalg.norm(made.whitening @ (size * row))
        assert q[0] / np.linalg.norm(q[1:]) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("reference", "directions"), [(None, 22), (np.linspace(-1, 1, 23), 6)])
def test_the_sum_is_the_same_to_the_last_bit_for_any_block_order_and_number_of_threads(
    reference: Array | None, directions: int
) -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(1501, 23)) * 10.0 ** rng.integers(-250, 250, (1501, 1))
    rows[1::3] /= 10.0 ** np.floor(np.log10(np.abs(rows[1::3]).max(axis=1, keepdims=True)))  # of the constant's size
    rows[::100] = 0
    made = row_map(23, directions=directions, reference=reference)

    def total_of(rows: Array, **how: Any) -> Integers:
        return sum_of_rows(rows, Products(made), **how)

    total = total_of(rows)
    q = integers(rows, made).astype(np.int64)
    np.testing.assert_array_equal(total, q @ q.T)
    for block, threads in ((1, 1), (7, 2), (64, 3), (1000, 2), (5000, 8)):
        np.testing.assert_array_equal(total_of(rows, block=block, threads=threads), total)
    np.testing.assert_array_equal(total_of(rows[rng.permutation(len(rows))], block=129), total)
    np.testing.assert_array_equal(total_of(np.asfortranarray(rows)), total)
    np.testing.assert_array_equal(total_of(rows[:634]) + total_of(rows[634:]), total)


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


@pytest.mark.parametrize("directions", [3, 2])
def test_large_grids_stay_exact(directions: int) -> None:
    rows = np.random.default_rng(3).normal(size=(500, 4))
    made = row_map(4, directions=directions, bits=26)
    q = integers(rows, made).astype(np.int64).astype(object)
    np.testing.assert_array_equal(sum_of_rows(rows, Products(made)), (q @ q.T).astype(np.int64))


@pytest.mark.parametrize(("T", "k"), [(6, 3), (150, 40), (300, 3)])
def test_the_rotation_is_a_product_of_whole_numbers_without_any_rounding(
    T: int, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against Python's integers, also for columns along the rows of the rotation, which reach the bound of 2^52."""
    made = row_map(T, directions=k)
    turn = IntegerRows(made, 1)
    assert turn._rotation is not None
    rng = np.random.default_rng(T)
    along = turn._rotation.T / 2.0**26
    signs = np.abs(along) * np.sign(rng.normal(size=along.shape))  # partial sums that go up and down
    w = np.hstack([along, -along, signs, rng.normal(size=(T - 1, 20)), 1e90 * rng.normal(size=(T - 1, 5))])
    columns = np.vstack([np.ones(w.shape[1]), w])
    products: list[tuple[Array, Array]] = []
    multiply = np.matmul

    def watched(left: Array, right: Array, out: Array) -> Array:
        result = multiply(left, right, out=out)
        products.append((right.copy(), result.copy()))
        return result

    monkeypatch.setattr(np, "matmul", watched)
    turn._rotated(columns, sum_of_squares(w))
    monkeypatch.undo()
    ((whole, product),) = products
    np.testing.assert_array_equal(whole, np.trunc(whole))
    exact = turn._rotation.astype(np.int64).astype(object) @ whole.astype(np.int64).astype(object)
    np.testing.assert_array_equal(product.astype(np.int64).astype(object), exact)
    sizes = np.abs(turn._rotation) @ np.abs(whole)  # whatever the order of addition is, no partial sum is larger
    assert 0.99 * 2.0**52 < sizes.max() < 2.0**52 * (1 + 1e-9)
    for order in (rng.permutation(T - 1), slice(None, None, -1)):
        np.testing.assert_array_equal(turn._rotation[:, order] @ whole[order], product)
