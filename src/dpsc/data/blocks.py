"""Blocks of donors as they come from files: the excluded left out, nobody twice, every cell there and in bounds."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dpsc import tabular
from dpsc.data.bounds import Bounds
from dpsc.data.frames import Missing, fill_missing
from dpsc.errors import PanelError, TableError
from dpsc.types import Array, Write


@dataclass(frozen=True, eq=False)
class Completion:
    """Fills or refuses missing cells and clips to the bounds, each row by itself."""

    times: pd.Index[Any]
    missing: Missing
    bounds: tuple[float, float] | None

    @np.errstate(all="ignore")  # which a thread does not inherit: a warning would tell of donors' values
    def in_place(self, columns: Array, path: str) -> None:
        """Complete donors that are the columns of a T × rows array; ``path`` is where they are from."""
        public = None if self.bounds is None else Bounds.parse(self.bounds, len(columns))
        # A sum is finite only if all of it is; adding up is quicker than looking at every cell.
        if not np.isfinite(columns.sum()) and not np.isfinite(columns).all():
            with tabular.naming(Path(path)):
                self._fill(columns.T, public)
        if public is not None:
            public.clip(columns.T, out=columns.T)

    def _fill(self, rows: Array, public: Bounds | None) -> None:
        try:
            fill_missing(rows, self.missing, public, self.times)
        except PanelError as problem:  # positions are of this block, and tell nobody anything
            raise PanelError(re.sub(r"the donor at position \d+", "a donor", str(problem))) from None


class Identities:
    """Who has been seen: leaves out the excluded, and refuses a donor with two rows, whom the guarantee would fail.

    Eight bytes a donor are kept, a hash of the unit's label. Two donors with one hash would be refused by mistake: one
    release of ten million donors in 400,000, one of a billion in forty.
    """

    def __init__(self, exclude: tuple[str, ...], *, sorted_already: bool) -> None:
        self.exclude, self.sorted_already = exclude, sorted_already
        self.hashes = array("Q")  # grows in place
        self.left_out: list[int] = []

    def keep(self, units: Any) -> np.ndarray[Any, Any]:
        """Return which of the next donors to use."""
        kept = np.ones(len(units), dtype=bool)
        if self.exclude:
            kept = ~pc.is_in(units.cast(pa.string()), value_set=pa.array(self.exclude)).to_numpy(zero_copy_only=False)
            self.left_out.append(int((~kept).sum()))  # appended, not added to: several threads come here
        if not self.sorted_already:
            labels = units.to_numpy(zero_copy_only=False)
            hashes = pd.util.hash_array(labels, categorize=False)
            self.hashes.frombytes(hashes.tobytes())  # in one call, as several threads come here
        return kept

    def finish(self, path: Path, unit: str) -> None:
        """Check what can only be known at the end."""
        if sum(self.left_out) != len(set(self.exclude)):
            raise TableError(
                f"{path}: not every unit of --exclude is in the data; labels are matched as they are written."
            )
        if self.hashes:
            hashes = np.frombuffer(self.hashes, dtype=np.uint64)
            hashes.sort()  # in place: there may be many
            if (hashes[1:] == hashes[:-1]).any():
                raise TableError(
                    f"{path}: a unit has more than one row in column {unit!r} (--unit); --wide means one row a unit. "
                    "For one row per unit and period give --time and --outcome instead."
                )


@dataclass(frozen=True, eq=False)
class CheckedBlock:
    """Some donors of a file, written when and where they are needed (a :data:`~dpsc.gram.rows.Write`)."""

    path: str
    units: Any
    raw: Write
    identities: Identities
    completion: Completion

    def __call__(self, memory: Array) -> Array:
        """Write the donors, checked, into T × size memory; return the part that they fill."""
        columns = self.raw(memory)
        if not self._kept.all():
            columns = columns[:, self._kept]
        self.completion.in_place(columns, self.path)
        return columns

    @cached_property
    def _kept(self) -> np.ndarray[Any, Any]:
        """Which donors are used; asked for once, as everybody counts once."""
        return self.identities.keep(self.units)
