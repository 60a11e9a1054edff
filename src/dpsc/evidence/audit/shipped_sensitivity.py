"""Every stated sensitivity bound, as cases for the audit: which share of it neighbours reach."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from dpsc.custodian.donors.blocks import row_writer
from dpsc.custodian.gram.exact_sum import Products
from dpsc.custodian.gram.integer_rows import IntegerRows
from dpsc.custodian.gram.sources import sum_of_rows
from dpsc.evidence.audit import search as climb
from dpsc.evidence.audit import search as neighbours
from dpsc.evidence.audit.case import Case, ClaimedLoss, Exact
from dpsc.privacy import sensitivity
from dpsc.release.kernel import Kernel, Smoothness
from dpsc.release.matrix import GRID_BITS
from dpsc.release.rowmap import RowMap
from dpsc.types import Array

_UNIT = "Δ ="
_KINDS: tuple[Smoothness, ...] = ("high", "mild", "none")


def ridge(tries: int = 6) -> Case:
    """Attack the exact ridge sensitivity, in both of its cases."""
    attacks = tuple(
        Exact(
            f"ascent, λ = {lambda_:g}, R = {R:g}",
            ClaimedLoss(sensitivity.exact_ridge(1.0, R, lambda_), unit=_UNIT),
            lambda lambda_=lambda_, R=R: climb.ridge(lambda_, R, tries=tries),  # type: ignore[misc]
            f"{tries} starts",
        )
        for lambda_, R in ((0.5, 1.0), (2.0, 1.0), (5.0, 1.0), (3.0, 2.5))
    )
    return Case("ridge-sensitivity", "exact ridge sensitivity", attacks)


def printed_ridge(tries: int = 6) -> Case:
    """Attack the paper's ridge sensitivity."""
    n, T0, lambda_ = 1, 3, 300.0  # the bound is closest to the truth for one donor and a large lambda
    claim = ClaimedLoss(sensitivity.printed_ridge(n, T0, lambda_), unit=_UNIT)
    attack = Exact("ascent", claim, lambda: climb.boxed_ridge(n, T0, lambda_, tries=tries), f"{tries} starts")
    return Case("printed-ridge-sensitivity", "printed ridge sensitivity", (attack,))


def answer() -> Case:
    """Attack the answer's sensitivity, in both norms."""
    f, lower, upper = np.array([0.2, -0.5, 0.3]), np.array([-1.0, 0.0]), np.array([1.0, 0.5])
    bounds = sensitivity.answer(float(np.abs(f).max()), upper - lower)
    attacks = _norms(bounds, lambda: climb.answer(f, lower, upper, tries=3))
    return Case("answer-sensitivity", "sensitivity of the answer", attacks)


def ball_gradient() -> Case:
    """Attack the gradient's sensitivity over the l1 ball."""
    n, T0 = 4, 3
    bounds = sensitivity.constrained_gradient(n, T0)
    attacks = _norms(bounds, lambda: climb.ball_gradient(n, T0, tries=1))
    return Case("gradient-sensitivity", "gradient over the l1 ball", attacks)


def ball_jacobian() -> Case:
    """Attack the bound on Jacobians over the l1 ball."""
    T0, nu = 4, 30.0
    attacks = tuple(
        Exact(
            f"corners, {n} donors",
            ClaimedLoss(sensitivity.constrained_jacobian(n, T0, nu) - 1, unit="J - 1 ="),
            lambda n=n: climb.ball_jacobian(n, T0, nu, tries=200) - 1,  # type: ignore[misc]
        )
        for n in (1, 3, 6)
    )
    return Case("jacobian", "Jacobians over the l1 ball", attacks)


def post_period() -> Case:
    """Replace a row of ones by minus ones after the intervention."""
    h = 5
    pair = neighbours.opposite_rows(2, h)
    claim = ClaimedLoss(sensitivity.post_period(h), unit=_UNIT)
    reach = float(np.linalg.norm(pair.donors[:, 2:] - pair.neighbour[:, 2:]))
    return Case("post-period-sensitivity", "post-period sensitivity", (Exact("opposite rows", claim, lambda: reach),))


def rows() -> Case:
    """Look for integer vectors longer than one, and for a pair of rows that changes the Gram matrix too much."""

    def longest() -> float:
        best = 0.0
        for row_map in _maps((2, 7, 30)):
            data = neighbours.rows_of_every_kind(row_map.T, 2000, seed=row_map.T)

            def to_integers(block: Array, row_map: RowMap = row_map) -> Array:
                return IntegerRows(row_map, len(block))(row_writer(block))

            best = max(best, climb.longest_row(to_integers, data, GRID_BITS))
        return best

    def change() -> float:
        best = 0.0
        for row_map in _maps((2, 5)):
            for worst in (neighbours.still_and_moving, neighbours.orthogonal_rows, neighbours.mirrored_rows):
                one, other = (sum_of_rows(pool, Products(row_map)) for pool in worst(row_map).pools)
                best = max(best, climb.gram_change(one - other) / 4.0**GRID_BITS)
        return best

    return Case(
        "gram-rows",
        "vectors of the Gram matrix",
        (
            Exact(
                "longest vector",
                ClaimedLoss(1.0, unit="length² ="),
                longest,
                "36,000 rows, in whole numbers",
                slack=0.0,
            ),
            Exact("orthogonal vectors", ClaimedLoss(math.sqrt(2), unit=_UNIT), change, "in whole numbers"),
        ),
    )


def _maps(periods: tuple[int, ...]) -> list[RowMap]:
    """Return public maps of rows, with all directions and with fewer."""
    return [
        RowMap(T, Kernel.named(kind), None, directions, 1.0, GRID_BITS)
        for kind, T in itertools.product(_KINDS, periods)
        for directions in (T - 1, (T + 1) // 2)
    ]


def _norms(bounds: tuple[float, float], search: Callable[[], tuple[float, float]]) -> tuple[Exact, Exact]:
    """Return the attacks in l1 and l2 on a pair of bounds; the search runs once."""
    reached = lru_cache(maxsize=1)(search)
    return (
        Exact("ascent, l1", ClaimedLoss(bounds[0], unit="Δ₁ ="), lambda: reached()[0]),
        Exact("ascent, l2", ClaimedLoss(bounds[1], unit="Δ₂ ="), lambda: reached()[1]),
    )
