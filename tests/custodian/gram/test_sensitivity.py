"""Neighbours that try to move the sum, or the counts, further than the noise pays for, through the real map.

One row replaced changes the sum of q q' by D with ||D||_F^2 = |q|^4 + |p|^4 - 2 (q.p)^2 <= 2 * 16^bits, whatever the
public map is; and it changes two counts by one. The attacks reach these bounds, so that smaller ones would break.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize

from dpsc import GramRelease, scan
from dpsc.custodian.donors.blocks import row_writer
from dpsc.custodian.gram.exact_sum import Counts, Products
from dpsc.custodian.gram.integer_rows import IntegerRows
from dpsc.custodian.gram.sources import sum_of_rows
from dpsc.evidence.audit.sensitivities import rows_of_every_kind
from dpsc.release.kernel import Kernel
from dpsc.release.rowmap import RowMap, constant_for
from dpsc.release.scale import LEAST, MOST, MOST_COUNTS
from dpsc.types import Array, Integers
from tests.making import row_map
from tests.soak import quick_or_long

PATH = np.sin(np.arange(8.0)) * 50
MAPS: dict[str, RowMap] = {
    "all directions": row_map(8, constant=2.0),
    "a few directions": row_map(8, directions=3, constant=2.0),
    "one direction": row_map(8, directions=1),
    "a reference": row_map(8, reference=PATH, constant=0.1),
    "a few directions and a reference": row_map(8, "mild", directions=4, reference=PATH),
    "no smoothness": row_map(8, "none"),
    "two periods": row_map(2),
    "a tiny constant": row_map(8, directions=5, constant=1e-60),
    "a huge constant": row_map(8, constant=1e60),
    "a coarse grid": row_map(8, directions=3, bits=4),
    "a fine grid": row_map(8, bits=26),
}


def vectors(rows: Array, made: RowMap) -> list[list[int]]:
    """The rows' integer vectors, made by the code of a release, as Python's integers."""
    return [[int(v) for v in column] for column in IntegerRows(made, len(rows))(row_writer(rows)).T]


def hostile_rows(made: RowMap) -> Array:
    """Rows of all kinds and sizes, rows that do not move, and rows that are orthogonal once they are mapped."""
    T, size = made.T, max(1.0, made.constant)
    kinds = rows_of_every_kind(T, 60, seed=T)
    flat = np.outer([0.0, 1.0, -1e308, 5e-324], np.ones(T))
    alternating = np.outer([1e-308, 1e-160, 1.0, 1e99, 1e101, 1e155, 8e307], (-1.0) ** np.arange(T))
    single = np.eye(T) * 1.7e308
    orthogonal = 1e9 * size * made.back.T  # so large that nothing is left of the constant
    equal = made.constant * made.back.T  # |w| = R: with the constant, halfway between two unit vectors
    rows = np.vstack([kinds, flat, alternating, single, orthogonal, equal, -equal, orthogonal + 1e3 * size])
    return rows if made.reference is None else np.vstack([rows, rows[-4 * T :] + made.reference])


def change(one: list[int], other: list[int]) -> int:
    """The squared Frobenius norm of q q' - p p', exactly."""
    q, p, product = (
        sum(a * b for a, b in zip(x, y, strict=True)) for x, y in ((one, one), (other, other), (one, other))
    )
    return q * q + p * p - 2 * product * product


@pytest.mark.parametrize("name", MAPS)
def test_no_pair_of_rows_moves_the_matrix_further_than_sqrt_2_and_some_move_it_so_far(name: str) -> None:
    made = MAPS[name]
    q = vectors(hostile_rows(made), made)
    bound = 2 * 16**made.grid_bits
    assert max(sum(v * v for v in vector) for vector in q) <= 4**made.grid_bits
    worst = max(change(one, other) for i, one in enumerate(q) for other in q[:i])
    assert worst <= bound
    assert worst >= 0.99**2 * bound
    assert worst > 0.9**2 * bound  # a bound 10% too small would be broken


def patterns_of(rows: Array, seed: int) -> Array:
    """The rows with cells missing: late, early, at random, all but one or two, all; hostile rows as well as any."""
    rng, T = np.random.default_rng(seed), rows.shape[1]
    found = []
    for row in rows:
        late, few, first = np.arange(T) < rng.integers(0, T + 1), np.zeros(T, bool), np.arange(T) == rng.integers(T)
        few[rng.choice(T, 2, replace=False)] = True
        found += [np.where(gone, np.nan, row) for gone in (late, ~late, rng.random(T) < 0.5, ~few, ~first)]
    return np.array(found)


@pytest.mark.parametrize("name", MAPS)
def test_no_pair_of_rows_with_different_cells_missing_moves_the_matrix_further(name: str) -> None:
    """Completing a row by a public kernel is a public map of that row: the bound is the same, and reached."""
    made = MAPS[name]
    hostile = hostile_rows(made)
    q = vectors(patterns_of(hostile[np.random.default_rng(1).permutation(len(hostile))[:50]], seed=made.T), made)
    q += vectors(np.where(np.arange(made.T) < made.T // 2, np.nan, hostile[-2 * made.T :]), made)
    bound = 2 * 16**made.grid_bits
    assert all(0 < sum(v * v for v in vector) <= 4**made.grid_bits for vector in q)
    worst = max(change(one, other) for i, one in enumerate(q) for other in q[:i])
    assert 0.99**2 * bound <= worst <= bound
    assert worst > 0.9**2 * bound  # a bound 10% too small would be broken


def test_a_cell_that_goes_missing_moves_the_sum_almost_as_far_as_a_donor_replaced() -> None:
    """The neighbour is the same donor, one cell less: the one in which it moved very much."""
    made, rng = MAPS["all directions"], np.random.default_rng(0)
    rows = np.vstack([rng.normal(size=(30, 8)), [0, 0, 0, 1e9, 0, 0, 0, 0]])
    neighbour = rows.copy()
    neighbour[-1, 3] = np.nan
    one, other = (sum_of_rows(pool, Products(made)).astype(object) for pool in (rows, neighbour))
    moved = math.sqrt(float(((one - other) ** 2).sum())) / 4.0**made.grid_bits
    assert 0.999 * math.sqrt(2) < moved <= math.sqrt(2)


@pytest.mark.parametrize("name", ["all directions", "a few directions and a reference"])
def test_the_sum_over_donors_moves_as_far_as_the_vectors_say(name: str) -> None:
    made = MAPS[name]
    rng = np.random.default_rng(0)
    rows, (first, second) = rng.normal(size=(30, 8)), 1e9 * made.back.T[:2]
    pools = [np.vstack([rows, row]) for row in (first, second)]
    one, other = (sum_of_rows(pool, Products(made)).astype(object) for pool in pools)
    moved = math.sqrt(float(((one - other) ** 2).sum())) / 4.0**made.grid_bits
    assert 0.999 * math.sqrt(2) < moved <= math.sqrt(2)


@pytest.mark.parametrize("name", ["all directions", "a few directions"])
def test_gradient_ascent_over_pairs_of_rows_finds_orthogonal_vectors_and_nothing_worse(name: str) -> None:
    made = MAPS[name]

    def unit(row: Array) -> Array:
        vector = np.append(made.constant, made.whitening @ row)
        return np.asarray(vector / np.linalg.norm(vector))

    def product(flat: Array) -> float:
        return float(unit(flat[:8]) @ unit(flat[8:])) ** 2

    best = minimize(product, np.random.default_rng(1).normal(size=16)).x.reshape(2, 8)
    moved = change(*vectors(best, made)) / 16**made.grid_bits
    assert 0.999 * 2 < moved <= 2


def counted(rows: Array, kernel: Kernel, reference: Array | None = None) -> Integers:
    return sum_of_rows(rows, Counts(rows.shape[1], kernel, reference))


@settings(max_examples=quick_or_long(100, 20_000))
@given(
    hnp.arrays(np.float64, st.tuples(st.just(6), st.integers(2, 6)), elements=st.floats(width=64)),
    st.sampled_from([Kernel.named("high"), Kernel.named("none")]),
    st.booleans(),
)
def test_any_donor_is_in_one_count_and_so_one_replaced_changes_two(rows: Array, kernel: Kernel, shifted: bool) -> None:
    reference = np.linspace(-1e100, 1e100, rows.shape[1]) if shifted else None
    before, after = counted(rows[:5], kernel, reference), counted(rows[1:], kernel, reference)
    assert before.sum() == after.sum() == 5
    assert before.min() >= 0
    difference = np.abs(after - before)
    assert difference.sum() in (0, 2)
    assert difference.max() <= 1
    for row in rows:
        assert sorted(counted(row[np.newaxis], kernel, reference))[-2:] == [0, 1]


def test_the_counts_change_by_sqrt_2_for_donors_that_move_differently() -> None:
    rows = np.random.default_rng(0).normal(size=(40, 8))
    neighbour = rows.copy()
    neighbour[7] *= 1000
    moved = np.linalg.norm(counted(rows, Kernel.named("high")) - counted(neighbour, Kernel.named("high")))
    assert moved == math.sqrt(2)


@pytest.mark.parametrize(
    ("row", "power"),
    [
        ([0.0, 1.0, 0.0], None), ([4.0] * 3, LEAST), ([np.nan] * 3, LEAST), ([1e308, -1e308, 1e308], MOST),
        ([1e-320, 0, 0], LEAST), ([0, 0, 1e-200], LEAST), ([0, 1e160, 0], MOST), ([np.inf, 0, 0], None),
    ],
)  # fmt: skip
def test_donors_are_counted_by_powers_of_two_of_their_movement(row: list[float], power: int | None) -> None:
    """Those beyond the ends count at the ends, and what is not finite counts somewhere, once."""
    counts = counted(np.array([row]), Kernel.named("none"))
    assert counts.shape == (MOST_COUNTS,)
    assert counts.sum() == 1
    if power is not None:
        assert counts[power - LEAST] == 1


def test_a_movement_is_counted_between_the_powers_of_two_around_it() -> None:
    rng, kernel = np.random.default_rng(0), Kernel.named("high")
    rows = rng.normal(size=(500, 8)) * 2.0 ** rng.uniform(-30, 30, (500, 1))
    sizes = np.linalg.norm(row_map(8).whitening @ rows.T, axis=0)
    counts = sum_of_rows(rows, Counts(8, kernel, None), block=7)
    expected = np.bincount(np.floor(np.log2(sizes)).astype(int) - LEAST, minlength=MOST_COUNTS)
    np.testing.assert_array_equal(counts, expected)


def test_one_donor_replaced_moves_the_sum_no_further_although_the_constant_follows_from_their_number(
    tmp_path: Path,
) -> None:
    """A donor whose cells are all unusable still counts; if it did not, all vectors would change."""
    rng, n = np.random.default_rng(0), 60
    rows = np.cumsum(rng.normal(size=(n, 8)), axis=1)
    make = GramRelease(epsilon=400.0, delta=1e-6, scale=2.0, seed=0)
    totals = []
    for replaced in (rows[0], np.full(8, np.nan), np.full(8, np.inf), np.eye(8)[3] * 1e300, np.zeros(8)):
        frame = pd.DataFrame(np.vstack([replaced, rows[1:]]), index=[f"p{i:02}" for i in range(n)])
        path = tmp_path / "donors.csv"
        long = frame.reset_index(names="u").melt("u", var_name="t", value_name="y").sort_values(["u", "t"])
        long.to_csv(path, index=False)
        for engine in ("memory", "stream"):
            columns: dict[str, Any] = {"unit": "u", "time": "t", "outcome": "y", "engine": engine}
            totals.append(make.custodian_sum(scan(path, **columns, periods="0..7", missing="kernel")))
    first = totals[0]
    assert first.row_map.constant > 1.1 * constant_for(first.scale.value, 0.7)  # it follows from n
    for other in totals[1:]:
        assert other.n == n
        assert other.row_map.constant == first.row_map.constant
        assert ((first.total - other.total).astype(object) ** 2).sum() <= 2 * 16**18
    fewer = make.custodian_sum(rows[:50])
    assert fewer.row_map.constant < first.row_map.constant
