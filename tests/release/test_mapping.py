"""The public map of a row: what its directions are, and that W, its way back and the integers speak of the same."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from dpsc.custodian.donors.blocks import row_writer
from dpsc.custodian.gram.integer_rows import IntegerRows
from dpsc.release.kernel import Kernel, Smoothness
from dpsc.release.rowmap import (
    ENOUGH_FOR_CONSTANT,
    RowMap,
    constant_for,
    constant_over_scale,
    directions_for,
    movement,
    whitened_size,
)
from tests.making import row_map

KINDS: tuple[Smoothness, ...] = ("high", "mild", "none")
SIZES = [(2, 1), (8, 7), (8, 1), (8, 4), (40, 39), (40, 38), (40, 5)]


@pytest.mark.parametrize("smoothness", KINDS)
@pytest.mark.parametrize(("T", "k"), SIZES)
def test_w_is_white_and_has_no_level(smoothness: Smoothness, T: int, k: int) -> None:
    made = row_map(T, smoothness, directions=k)
    assert made.whitening.shape == (k, T)
    assert made.size == k + 1
    np.testing.assert_allclose(made.whitening @ made.kernel.matrix(T) @ made.whitening.T, np.eye(k), atol=1e-11)
    np.testing.assert_allclose(made.whitening @ np.ones(T), 0, atol=1e-12)


@pytest.mark.parametrize("smoothness", KINDS)
@pytest.mark.parametrize(("T", "k"), SIZES)
def test_the_integers_are_those_of_w(smoothness: Smoothness, T: int, k: int) -> None:
    """(R, W x) / |(R, W x)|, up to truncation and the 2^-26 of the rotation, with a reference and without."""
    rng = np.random.default_rng(T)
    rows = rng.normal(size=(50, T)).cumsum(axis=1) + 1000 * rng.normal(size=(50, 1))
    for reference in (None, rng.normal(size=T)):
        made = row_map(T, smoothness, directions=k, constant=0.7, reference=reference)
        w = made.whitening @ (rows if reference is None else rows - reference).T
        vectors = np.vstack([np.full(50, 0.7), w])
        unit = vectors / np.linalg.norm(vectors, axis=0)
        q = IntegerRows(made, 50)(row_writer(rows))
        assert q.shape == (k + 1, 50)
        np.testing.assert_allclose(q / 2**18, unit, atol=2**-18 + 1e-6 * (k < T - 1))


@pytest.mark.parametrize(("T", "k"), [(8, 4), (40, 5), (40, 38)])
def test_the_smoothest_directions_are_cosines(T: int, k: int) -> None:
    """What k directions show is the space of the first k cosines, and the rotation keeps exactly it."""
    made = row_map(T, directions=k)
    cosines = np.cos(math.pi * np.outer(np.arange(1, k + 1), np.arange(T) + 0.5) / T)
    assert np.linalg.matrix_rank(np.vstack([made.whitening, cosines])) == k
    assert made.rotation is not None
    np.testing.assert_allclose(made.rotation @ made.rotation.T, np.eye(k), atol=1e-11)
    whole = np.eye(T)
    made.kernel.whiten_movement_in_place(whole)
    np.testing.assert_allclose(made.rotation @ whole[1:], made.whitening, atol=1e-11)


@pytest.mark.parametrize(("T", "k"), [(8, 7), (40, 39), (40, 20)])
def test_whitening_without_the_matrix_is_the_same(T: int, k: int) -> None:
    made, columns = row_map(T, directions=k), np.random.default_rng(T).normal(size=(T, T))
    np.testing.assert_allclose(made.whitened(columns), made.whitening @ columns, atol=1e-11)
    expected = made.whitening @ (columns @ columns.T) @ made.whitening.T
    np.testing.assert_allclose(made.whitened_covariance(columns @ columns.T), expected, atol=1e-9)


@pytest.mark.parametrize(("T", "k"), [(20, 19), (20, 12)])
def test_the_smoothest_of_the_directions_are_those_of_a_map_with_fewer(T: int, k: int) -> None:
    made = row_map(T, directions=k)
    rows = made.smoothest(5)
    assert rows is not None
    np.testing.assert_allclose(rows @ rows.T, np.eye(5), atol=1e-11)
    few = row_map(T, directions=5).whitening
    assert np.linalg.matrix_rank(np.vstack([rows @ made.whitening, few]), tol=1e-9) == 5
    assert made.smoothest(k) is None
    assert made.smoothest(k + 1) is None


def test_all_directions_need_no_rotation() -> None:
    assert row_map(8).rotation is None
    assert RowMap(8, Kernel.named("high"), None, None, 0.0, 18).rotation is None


@pytest.mark.parametrize("smoothness", KINDS)
@pytest.mark.parametrize(("T", "k"), SIZES)
def test_back_is_the_expected_movement_given_w(smoothness: Smoothness, T: int, k: int) -> None:
    made = row_map(T, smoothness, directions=k)
    W, K, C = made.whitening, made.kernel.matrix(T), np.eye(T) - 1 / T
    np.testing.assert_allclose(made.back, C @ K @ W.T @ np.linalg.inv(W @ K @ W.T), atol=1e-10)
    np.testing.assert_allclose(W @ made.back, np.eye(k), atol=1e-10)
    if k == T - 1:  # nothing of a movement is lost
        np.testing.assert_allclose(made.back @ W, C, atol=1e-10)


def test_the_map_of_version_0_1_0_keeps_the_level() -> None:
    old = RowMap(6, Kernel.named("mild"), None, None, 0.0, 18)
    assert old.size == 6
    np.testing.assert_allclose(old.whitening, np.linalg.inv(old.kernel.root(6)), atol=1e-12)
    np.testing.assert_allclose(old.back @ old.whitening, np.eye(6), atol=1e-12)


def test_maps_are_the_same_if_everything_public_is() -> None:
    path = np.arange(6.0)
    made = row_map(6, reference=path)
    assert made.same_as(row_map(6, reference=path.copy()))
    assert made.same_as(pickle.loads(pickle.dumps(made)))
    others = [
        row_map(6),
        row_map(6, reference=path + 1e-12),
        row_map(6, "mild", reference=path),
        row_map(7),
        row_map(6, reference=path, directions=4),
        row_map(6, reference=path, constant=1 + 1e-15),
        row_map(6, reference=path, bits=17),
        RowMap(6, Kernel.named("high"), path, None, 1.0, 18),
    ]
    assert not any(made.same_as(other) or other.same_as(made) for other in others)


def test_directions_grow_with_the_donors_up_to_all() -> None:
    high = Kernel.named("high")
    kept = [directions_for(n, 50, 6.0, high) for n in (1, 50, 100, 200, 10**6)]
    assert kept == sorted(kept)
    assert kept[0] == 3
    assert 3 < kept[2] < kept[3] < 49 == kept[4]
    assert directions_for(100, 50, 3.0, high) > kept[2]  # less noise shows more
    assert directions_for(1, 3, 6.0, high) == 2
    assert directions_for(1, 50, 6.0, Kernel.named("none")) == 49  # no direction is smoother than another


@pytest.mark.parametrize("smoothness", KINDS)
def test_a_path_of_the_kernel_moves_as_much_as_its_deviation_says(smoothness: Smoothness) -> None:
    T, kernel = 30, Kernel.named(smoothness)
    paths = 3.0 * kernel.root(T) @ np.random.default_rng(0).normal(size=(T, 20_000)) + 100
    deviation = math.sqrt(float(paths.var(axis=0).mean()))
    sizes = np.array([movement(path, kernel) for path in paths.T[:300]])
    assert math.sqrt(float((sizes**2).mean())) == pytest.approx(3 * math.sqrt(T - 1), rel=0.05)
    assert whitened_size(deviation, T, kernel) == pytest.approx(3 * math.sqrt(T - 1), rel=0.01)
    assert whitened_size(2 * deviation, T, kernel) == pytest.approx(2 * whitened_size(deviation, T, kernel))


def test_the_constant_grows_with_the_donors_between_two_bounds() -> None:
    shares = [constant_over_scale(n, 6.0) for n in (1, 100, 1000, 5000, 20_000, 100_000, 10**9)]
    assert shares == sorted(shares)
    assert shares[0] == shares[2] == 0.7
    assert shares[-2] == shares[-1] == 2.5
    assert 1 < shares[3] < shares[4] < 2.5
    enough = math.ceil(ENOUGH_FOR_CONSTANT * 6.0)
    assert constant_over_scale(enough, 6.0) == 2.5 > constant_over_scale(enough - enough // 100, 6.0)
    assert constant_over_scale(5000, 60.0) == 0.7  # more noise, as fewer donors
    assert constant_for(1e6, 0.7) == pytest.approx(0.7e6)


def test_a_movement_is_the_length_of_w_and_leaves_its_path_alone() -> None:
    path = np.random.default_rng(0).normal(size=9) + 50
    before = path.copy()
    assert movement(path, Kernel.named("high")) == pytest.approx(float(np.linalg.norm(row_map(9).whitening @ path)))
    np.testing.assert_array_equal(path, before)
