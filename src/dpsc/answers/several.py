"""What a study is to those who write and draw it: the answers of several units, and their pooled effects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pandas as pd

from dpsc.answers.base import Answer
from dpsc.answers.effects import Effect
from dpsc.privacy.guarantee import Guarantee


class Several(Protocol):
    """Several treated units; :class:`dpsc.answers.study.Study` says what the parts mean."""

    @property
    def results(self) -> Mapping[Any, Answer]:
        """The answer of each treated unit."""
        ...

    @property
    def never_treated(self) -> Mapping[Any, pd.Series[float]]:
        """Units that are there for the reader only."""
        ...

    @property
    def weights(self) -> pd.Series[float]:
        """The weight of each treated unit."""
        ...

    @property
    def level(self) -> float:
        """The level of the intervals."""
        ...

    @property
    def title(self) -> str:
        """The question; empty for the usual one."""
        ...

    @property
    def guarantee(self) -> Guarantee | None:
        """The release's guarantee."""
        ...

    @property
    def reason(self) -> str:
        """Why there is no guarantee."""
        ...

    @property
    def private(self) -> bool:
        """Whether it carries a guarantee."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings to the reader."""
        ...

    @property
    def average(self) -> Effect:
        """The average effect over treated units and periods."""
        ...

    def effects(self, level: float | None = None) -> pd.DataFrame:
        """Return pooled effects."""
        ...

    def by_unit(self, level: float | None = None) -> pd.DataFrame:
        """Return the effect on each unit."""
        ...

    def by_event_time(self, level: float | None = None) -> pd.DataFrame:
        """Return the effect k periods after adoption."""
        ...

    def by_calendar_time(self, level: float | None = None) -> pd.DataFrame:
        """Return the effect in each period."""
        ...

    def to_frame(self) -> pd.DataFrame:
        """Return every unit's table, one below the other."""
        ...
