"""The in-memory engine: donors are an array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpsc.gram.kernel import Kernel
from dpsc.gram.rows import written
from dpsc.gram.summing import OnRows, add_up, rows_of_a_block
from dpsc.types import Array, Integers


@dataclass(frozen=True, eq=False, repr=False)
class ArrayDonors:
    """Donors as an n × T array of finite numbers, periods in order."""

    values: Array
    times: pd.Index[Any]
    outcome: str

    def add_up(self, kernel: Kernel, reference: Array | None, bits: int, on_rows: OnRows) -> tuple[Integers, int]:
        """Add up the rows."""
        return sum_of_rows(self.values, kernel, reference, bits, on_rows=on_rows), len(self.values)


def sum_of_rows(
    donors: Array,
    kernel: Kernel,
    reference: Array | None,
    bits: int,
    *,
    block: int | None = None,
    threads: int | None = None,
    on_rows: OnRows = lambda rows: None,
) -> Integers:
    """Return the exact T × T sum over donors of q q'."""
    n, T = donors.shape
    block = min(block or n, rows_of_a_block(T, bits), n)
    blocks = (written(donors[start : start + block]) for start in range(0, n, block))
    return add_up(blocks, T, kernel, reference, bits, on_rows, threads)[0]
