"""What donors in files know of themselves, whoever adds them up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsc.data.frames import PeriodsFrom

if TYPE_CHECKING:
    from dpsc.data.arrow import Files


@dataclass(frozen=True)
class FileSource:
    """Donors in files."""

    files: Files

    @property
    def times(self) -> pd.Index[Any]:
        """The periods, in order."""
        return self.files.times

    @property
    def outcome(self) -> str:
        """The name of the outcome."""
        return self.files.outcome

    @property
    def periods_from(self) -> PeriodsFrom:
        """Where the periods are from."""
        return self.files.periods_from

    def rows_expected(self) -> int | None:
        """Return how many donors to expect, if that is known."""
        return self.files.rows_expected()
