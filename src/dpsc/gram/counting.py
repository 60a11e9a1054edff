"""How many donors move how much: what :mod:`dpsc.gram.scale` estimates a typical movement from. Private."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsc.data.writing import BLOCK_CELLS
from dpsc.gram.kernel import Kernel
from dpsc.gram.rows import Movements
from dpsc.gram.scale import LEAST, MOST, MOST_COUNTS
from dpsc.gram.summing import BlockSum
from dpsc.types import Array, Integers, Write


@dataclass(frozen=True, eq=False)
class Counts:
    """The numbers of donors whose movement is between two powers of two."""

    T: int
    kernel: Kernel
    reference: Array | None

    @property
    def rows_of_a_block(self) -> int:
        """As many as fit the cache."""
        return max(1, BLOCK_CELLS // self.T)

    @property
    def zero(self) -> Integers:
        """Nobody yet."""
        return np.zeros(MOST_COUNTS, dtype=np.int64)

    def for_blocks(self) -> BlockSum:
        """Return what counts the donors of blocks. A donor that is not finite counts as one that does not move."""
        movements = Movements(self.T, self.rows_of_a_block, self.kernel, self.reference)

        def part(block: Write) -> tuple[Integers, int]:
            _, squares = movements(block)
            squares[np.isnan(squares)] = 0.0
            powers = np.where(np.isinf(squares), MOST, np.floor_divide(np.frexp(squares)[1] - 1, 2))
            powers = np.where(squares == 0, LEAST, powers)
            return np.bincount(np.clip(powers, LEAST, MOST) - LEAST, minlength=MOST_COUNTS), len(squares)

        return part
