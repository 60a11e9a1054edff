"""The streaming engine: donors in files larger than memory, read and added up block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpsc.data.arrow import Files
from dpsc.data.blocks import Identities
from dpsc.gram.kernel import Kernel
from dpsc.gram.summing import OnRows, add_up, rows_of_a_block
from dpsc.types import Array, Integers


@dataclass(frozen=True)
class StreamedDonors:
    """Donors in files; memory stays at a few blocks however many there are."""

    files: Files
    threads: int | None = None

    @property
    def times(self) -> pd.Index[Any]:
        """The periods, in order."""
        return self.files.times

    @property
    def outcome(self) -> str:
        """What the numbers are called."""
        return self.files.outcome

    def add_up(self, kernel: Kernel, reference: Array | None, bits: int, on_rows: OnRows) -> tuple[Integers, int]:
        """Read the files once and add up their rows."""
        T = len(self.times)
        identities = Identities(self.files.exclude, sorted_already=not self.files.layout.wide)
        blocks = self.files.blocks(rows_of_a_block(T, bits), identities)
        total, n = add_up(blocks, T, kernel, reference, bits, on_rows, self.threads)
        self.files.require_plausible(n)
        identities.finish(self.files.path, self.files.layout.unit)
        return total, n
