"""A release of several outcomes of the same donors, and the questions to it: the same as to one, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dpsc import checks
from dpsc.analyst.release import Release
from dpsc.answers.outcomes import Found, Outcomes
from dpsc.errors import ParameterError, ReleaseError
from dpsc.release import describe, file_format
from dpsc.release.outcomes import ReleasedOutcomes
from dpsc.types import DatesLike, Label, TargetLike, TargetsLike


@dataclass(frozen=True, eq=False, repr=False)
class Releases(ReleasedOutcomes[Release]):
    """A private release of several outcomes of the same donors, made by :class:`dpsc.GramRelease`.

    It is a mapping: ``releases["orders"]`` is the :class:`dpsc.Release` of one outcome, with the guarantee of its own
    part of the budget. ``guarantee`` is what all of them promise together.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsc import GramRelease
    >>> orders = np.cumsum(np.random.default_rng(0).normal(size=(401, 12)), axis=1)
    >>> revenue = 20 * orders + np.cumsum(np.random.default_rng(1).normal(size=(401, 12)), axis=1)
    >>> make = GramRelease(epsilon=2.0, delta=1e-6)
    >>> releases = make.release({"orders": orders[1:], "revenue": revenue[1:]})
    >>> releases.guarantee.epsilon, round(releases["orders"].guarantee.epsilon, 2)
    (2.0, 1.37)
    >>> found = releases.estimate({"orders": orders[0], "revenue": revenue[0]}, treatment_time=9)
    >>> list(found)
    ['orders', 'revenue']
    """

    def save(self, path: str | Path) -> None:
        """Write one JSON file, completely or not at all."""
        unpaid = any(part.unpaid for part in self.parts)
        file_format.write(Path(path), file_format.dumps_outcomes(self.parts, self.guarantee), unpaid=unpaid)

    def estimate(
        self, targets: TargetsLike, treatment_time: Label = None, *, title: str = "", **options: Any
    ) -> Outcomes:
        """Return a counterfactual for each outcome of a public target, side by side; it costs nothing more.

        Parameters
        ----------
        targets : mapping of outcomes to series, or frame with a column per outcome
            A frame has the periods in its index, or in one more column. A mapping may leave outcomes out.
        treatment_time, title, options
            As in :meth:`dpsc.Release.estimate`, the same for all outcomes: ``pool=``, ``treatment_end=``, ...
        """
        each = self._by_column(targets) if isinstance(targets, pd.DataFrame) else targets
        return self._asked(each, lambda part, target: part.estimate(target, treatment_time, title=title, **options))

    def study(
        self,
        targets: Mapping[str, TargetsLike],
        treatment_times: DatesLike | None = None,
        *,
        title: str = "",
        **options: Any,
    ) -> Outcomes:
        """Return a study of several treated units for each outcome, side by side; it costs nothing more.

        Parameters
        ----------
        targets : mapping of outcomes to targets
            The targets of an outcome are those of :meth:`dpsc.Release.study`: ``{"orders": {"north": series, ...}}``.
        treatment_times, title, options
            As there, the same for all outcomes.
        """
        return self._asked(targets, lambda part, units: part.study(units, treatment_times, title=title, **options))

    def _asked(self, targets: Any, ask: Callable[[Release, Any], Found]) -> Outcomes:
        if not isinstance(targets, Mapping) or not targets:
            raise ReleaseError("targets must be a mapping of outcomes to series, or a frame with a column per outcome.")
        found = {}
        for name, target in targets.items():
            part = self[name]
            try:
                found[str(name)] = ask(part, target)
            except (ReleaseError, ParameterError) as problem:
                raise type(problem)(f"outcome {str(name)!r}: {problem.message}") from None
        return Outcomes(found, len(self), self.guarantee, next(iter(found.values())).title)

    def _by_column(self, frame: pd.DataFrame) -> dict[str, TargetLike]:
        """Return the column of each outcome, with that of the periods if there is one more."""
        missing = next((name for name in self if name not in frame.columns), None)
        if missing is not None:
            close = checks.did_you_mean(missing, [str(name) for name in frame.columns])
            raise ReleaseError(
                f"the frame has no column {missing!r}, an outcome of the release.{close} To ask about some outcomes "
                "only, give a mapping of their names to series."
            )
        others = [name for name in frame.columns if name not in self]
        if len(others) > 1:
            raise ReleaseError(f"the frame has columns beside outcomes and periods: {', '.join(map(str, others))}.")
        return {name: frame[[*others, name]] if others else frame[name] for name in self}

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a card for each outcome."""
        return "".join(describe.card(part) for part in self.values())
