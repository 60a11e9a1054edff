from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsc import Donors, GramRelease, OutputPerturbation, Panel, PanelError, ParameterError, SyntheticControl, scan
from dpsc.custodian.donors.blocks import row_writer
from dpsc.custodian.donors.donor_files import Engine
from dpsc.custodian.gram.exact_sum import Counts, Products
from dpsc.custodian.gram.integer_rows import IntegerRows, Movements, complete_in_place
from dpsc.custodian.gram.sources import sum_of_rows
from dpsc.release.kernel import Kernel, Smoothness
from dpsc.types import Array
from tests.making import long, row_map, save, wide

MAKE = GramRelease(epsilon=1.0, delta=1e-6, scale=2.0)


def with_holes(shape: tuple[int, int], seed: int = 0, share: float = 0.4) -> Array:
    """Rows that miss cells at random, join late or leave early; some are complete, one has one cell, one has none."""
    rng = np.random.default_rng(seed)
    n, T = shape
    rows = 100 + np.cumsum(rng.normal(size=shape), axis=1)
    rows[1::4][rng.random(rows[1::4].shape) < share] = np.nan
    for i in range(2, n, 4):
        rows[i, : rng.integers(1, T)] = np.nan
    for i in range(3, n, 4):
        rows[i, rng.integers(1, T) :] = np.nan
    rows[1], rows[5] = np.nan, np.nan
    rows[5, T // 2] = 7.0
    return rows


def conditional_mean(row: Array, kernel: Kernel) -> Array:
    """The same by dense algebra: generalised least squares for the level, then regression on the cells seen."""
    seen = ~np.isnan(row)
    K = kernel.matrix(len(row))
    inverse = np.linalg.inv(K[np.ix_(seen, seen)])
    left = row[seen] - inverse.sum(axis=0) @ row[seen] / inverse.sum()
    path = K[:, seen] @ inverse @ left
    path[seen] = left
    return np.asarray(path)


@pytest.mark.parametrize("smoothness", ["high", "mild", "none"])
@pytest.mark.parametrize("T", [2, 3, 9, 60])
def test_a_missing_cell_gets_its_conditional_mean_with_a_free_level(smoothness: Smoothness, T: int) -> None:
    rows, kernel = with_holes((40, T)), Kernel.named(smoothness)
    columns = rows.T.copy()
    with np.errstate(invalid="ignore"):
        complete_in_place(columns, kernel)
    for row, made in zip(rows, columns.T, strict=True):
        if np.isnan(row).all():
            assert np.isnan(made).all()
        elif np.isnan(row).any():
            np.testing.assert_allclose(made, conditional_mean(row, kernel), atol=1e-11)
        else:
            np.testing.assert_array_equal(made, row)


def test_no_other_way_to_fill_a_row_moves_less() -> None:
    kernel, rng = Kernel.named("high"), np.random.default_rng(1)
    row = np.where(np.arange(12) % 3 == 1, np.nan, rng.normal(size=12))
    column = row[:, np.newaxis].copy()
    complete_in_place(column, kernel)

    def size(path: Array) -> float:
        moved = np.array(path, ndmin=2).T.copy()
        kernel.whiten_movement_in_place(moved)
        return float(np.linalg.norm(moved))

    least = size(column[:, 0])
    assert least > 0.5
    for _ in range(200):
        assert size(column[:, 0] + np.where(np.isnan(row), 0.1 * rng.normal(size=12), 0.0)) > least


@pytest.mark.parametrize(("reference", "directions"), [(None, 22), (np.linspace(-1, 1, 23), 6)])
def test_rows_with_holes_are_the_same_to_the_last_bit_in_any_block_order_and_thread(
    reference: Array | None, directions: int
) -> None:
    rng = np.random.default_rng(2)
    rows = with_holes((401, 23)) * 10.0 ** rng.integers(-250, 250, (401, 1))
    rows[-100:] = np.where(np.isnan(rows[-100:]), 0.5, rows[-100:])  # whole blocks without a hole
    made = row_map(23, directions=directions, reference=reference)
    for summand in (Products(made), Counts(23, made.kernel, reference)):
        total = sum_of_rows(rows, summand)
        for block, threads in ((1, 1), (7, 2), (64, 3), (5000, 2)):
            np.testing.assert_array_equal(sum_of_rows(rows, summand, block=block, threads=threads), total)
        np.testing.assert_array_equal(sum_of_rows(rows[rng.permutation(401)], summand, block=129), total)


def test_a_complete_row_is_not_touched_by_holes_beside_it() -> None:
    rows, made = with_holes((200, 15)), row_map(15)
    complete = ~np.isnan(rows).any(axis=1)
    assert 30 < complete.sum() < 170
    together = IntegerRows(made, 200)(row_writer(rows)).copy()
    alone = IntegerRows(made, 200)(row_writer(rows[complete]))
    np.testing.assert_array_equal(together[:, complete], alone)


@pytest.mark.parametrize("directions", [6, 3])
def test_a_donor_with_no_cell_is_the_public_unit_vector_and_one_cell_is_no_movement(directions: int) -> None:
    rows = np.full((3, 7), np.nan)
    rows[1, 4] = 1e15
    rows[2, [0, 6]] = 3.25
    q = IntegerRows(row_map(7, directions=directions), 3)(row_writer(rows))
    np.testing.assert_array_equal(q[:, 0], [2**18] + [0] * directions)
    assert not q[1:].any()
    assert q[0, 1:].min() >= 2**18 - 1
    _, squares = Movements(7, 3, Kernel.named("high"), None)(row_writer(rows))
    assert squares[1:].tolist() == [0.0, 0.0]


def test_a_donor_with_huge_cells_and_holes_keeps_its_direction() -> None:
    row, made = np.random.default_rng(0).normal(size=(1, 9)), row_map(9, directions=5)
    row[0, [0, 1, 5]] = np.nan
    far = IntegerRows(made, 1)(row_writer(row * 1e50)).copy()
    np.testing.assert_allclose(IntegerRows(made, 1)(row_writer(row * 1e300)), far, atol=1.0)
    assert np.abs(far[1:]).max() > 1000


def test_an_unseen_period_follows_the_reference() -> None:
    """What is completed is the row less the reference: a donor that moves with it, as far as it is seen, does so."""
    reference = np.arange(8.0) ** 2
    row = np.where(np.arange(8) < 5, np.nan, reference + 3)
    q = IntegerRows(row_map(8, reference=reference), 1)(row_writer(row[np.newaxis]))
    assert not q[1:].any()


@pytest.fixture(scope="module")
def scheduler(cluster: Any) -> str:
    return str(cluster.scheduler_address)


def test_every_engine_and_frame_gives_the_same_integers(tmp_path: Path, scheduler: str) -> None:
    rows = with_holes((300, 12))
    times = list(range(2001, 2013))
    table = long(rows, times=times).dropna()
    table = table[table["who"] != "p00001"]  # a donor without any row is not there at all
    kept = np.delete(rows, 1, axis=0)
    expected = MAKE.custodian_sum(kept, missing="kernel").total
    columns: dict[str, Any] = {"unit": "who", "time": "week", "outcome": "cost", "periods": "2001..2012"}
    path = save(table, tmp_path / "long.parquet")
    engines: tuple[Engine, ...] = ("memory", "stream", "dask")
    for engine in engines:
        source = scan(path, **columns, engine=engine, scheduler=scheduler if engine == "dask" else None)
        np.testing.assert_array_equal(MAKE.custodian_sum(source).total, expected)
    pool = Donors.from_long(table, **columns)
    assert pool.missing == "kernel"
    assert pool.custodian_diagnostics()["filled_cells"] == np.isnan(kept).sum()
    np.testing.assert_array_equal(MAKE.custodian_sum(pool).total, expected)
    other = scan(save(wide(kept, times=times), tmp_path / "wide.csv"), unit="who", wide=True, missing="kernel")
    np.testing.assert_array_equal(MAKE.custodian_sum(other).total, expected)
    filled = MAKE.custodian_sum(Donors.from_long(table, **columns, missing="interpolate"))
    assert (filled.total != expected).any()


def test_the_rule_is_kernel_only_if_periods_are_declared() -> None:
    rows = with_holes((40, 6))
    with pytest.raises(PanelError, match="missing or infinite cells; missing='kernel'"):
        MAKE.release(rows)
    with pytest.raises(PanelError, match="choose missing='kernel', missing='interpolate' or missing='midpoint'"):
        Donors.from_arrays(rows)
    assert MAKE.release(rows, missing="kernel").n == 40
    with pytest.raises(ParameterError, match="have a rule already"):
        MAKE.release(Donors.from_arrays(rows, missing="kernel"), missing="kernel")
    with pytest.raises(ParameterError, match="not for a sum"):
        MAKE.release(MAKE.custodian_sum(rows, missing="kernel"), missing="kernel")


def test_bounds_are_applied_to_the_cells_that_are_there() -> None:
    rows = with_holes((40, 6))
    pool = Donors.from_arrays(rows, missing="kernel", bounds=(99, 101))
    np.testing.assert_array_equal(pool.values, np.clip(rows, 99, 101))


@pytest.mark.parametrize("holes", [True, False])
def test_what_needs_every_cell_refuses_the_rule_whether_or_not_a_cell_is_missing(holes: bool) -> None:
    """If the refusal depended on it, it would tell that a donor lacks a cell."""
    rows = 100 + np.random.default_rng(0).normal(size=(30, 8))
    if holes:
        rows[3, 2] = np.nan
    panel = Panel.from_arrays(rows, np.full(8, 100.0), treatment_time=5, bounds=(0, 200), missing="kernel")
    with pytest.raises(PanelError, match=r"needs every cell.*build it with missing='interpolate'"):
        OutputPerturbation(epsilon=1.0, seed=1).fit(panel)
    if holes:  # which is not private anyway
        with pytest.raises(PanelError, match="SyntheticControl needs every cell"):
            SyntheticControl().fit(panel)
    else:
        SyntheticControl().fit(panel)
    assert MAKE.release(panel).n == 30
