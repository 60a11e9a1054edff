"""How a table holds a panel."""

from __future__ import annotations

from dataclasses import dataclass

from dpsc.errors import TableError


@dataclass(frozen=True)
class Layout:
    """How a table holds a panel: one row per unit and period, or one row a unit and one column a period."""

    unit: str
    time: str | None = None
    outcome: str | None = None
    wide: bool = False
    time_format: str | None = None

    def __post_init__(self) -> None:
        if self.wide and self.time is not None:
            raise TableError("--wide means one column a period, so there is no --time column; leave one of them out.")
        if not self.wide and (self.time is None or self.outcome is None):
            missing = "--time" if self.time is None else "--outcome"
            raise TableError(
                f"a long table (one row per unit and period) needs {missing} COLUMN; for a table with one row a unit "
                "and one column a period say --wide."
            )
        names = [name for name in (self.unit, self.time, None if self.wide else self.outcome) if name is not None]
        if len(set(names)) < len(names):
            raise TableError("--unit, --time and --outcome must name different columns.")

    @property
    def name(self) -> str:
        """What the numbers are called."""
        return self.outcome or "outcome"
