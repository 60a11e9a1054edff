"""A target as it comes, matched to the periods of a release."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.analyst.models import TargetModels
from dpsc.errors import PanelError, ParameterError, ReleaseError
from dpsc.periods import match as matching
from dpsc.periods.calendar import holes
from dpsc.periods.dates import period_name
from dpsc.periods.match import first_treated
from dpsc.privacy.guarantee import Guarantee
from dpsc.release.population import Population
from dpsc.release.scale import Scale
from dpsc.types import Array, Column, Label, TargetLike, Times, to_floats

_OTHER_UNITS = 10.0 ** np.array([-9, -6, -5, -4, -3, -2, 0, 2, 3, 4, 5, 6, 9])  # factors; 1 is among them
_FOR_EXAMPLE = {  # what a target so many times too large may be in, and what the donors are in then
    100: ("cents", "euros"),
    1_000: ("single units", "thousands"),
    1_000_000: ("single units", "millions"),
}
_CLEAR = 10.0  # a log Bayes factor
_LEVEL_SPREAD = 1.2  # of the logarithm of a target's level over a typical one
_LARGEST = 1000.0  # c^2


class Source(Protocol):
    """What donors are read from: a Gram release, or the rows of a private panel."""

    @property
    def n(self) -> int:
        """The number of donors."""

    @property
    def times(self) -> Times:
        """The periods."""

    @property
    def outcome(self) -> str:
        """The outcome's name."""

    @property
    def reference(self) -> Array | None:
        """The path that was subtracted from every donor."""

    @property
    def scale(self) -> Scale:
        """How much donors move."""

    @property
    def population(self) -> Population:
        """The donors' population."""

    @property
    def guarantee(self) -> Guarantee | None:
        """What is promised."""

    @property
    def no_guarantee(self) -> str:
        """Why nothing is."""


@contextmanager
def about_unit(name: Label) -> Iterator[None]:
    """Say which unit something is about that is wrong."""
    try:
        yield
    except (PanelError, ParameterError, ReleaseError) as problem:
        raise ReleaseError(f"unit {str(name)!r}: {problem.message}") from None


def require_order(target: Any, treatment_time: Any) -> None:
    """Refuse arguments that were given the other way round: of one target, or of several by name."""
    if isinstance(target, dict) and isinstance(treatment_time, dict | pd.DataFrame):
        swapped = all(np.ndim(value) == 0 for value in target.values()) and any(
            np.ndim(treatment_time[name]) > 0 for name in treatment_time
        )
    else:
        swapped = np.ndim(target) == 0 and not isinstance(target, dict) and np.ndim(treatment_time) > 0
    if swapped:
        raise ReleaseError("the target comes first, then the treatment time; they are the other way round.")


def matched(
    release: Source, target: TargetLike, treatment_time: Label
) -> tuple[pd.Series[float], int, tuple[str, ...]]:
    """Return the target over the release's periods, the number of periods before the first treated one, and notes.

    Periods beyond the release are cut, periods of the release after the target's end are left empty; notes say so.
    """
    T0 = first_treated(release.times, treatment_time)
    if T0 < 2:
        raise ReleaseError(
            f"treatment time {period_name(treatment_time)} leaves {T0} periods before it; at least 2 are needed."
        )
    given = as_series(release, target)
    series, cut = _over_the_periods(release, given, T0)
    return series.rename(release.outcome), T0, tuple(cut)


def as_series(release: Source, target: TargetLike) -> pd.Series[float]:
    """Understand a Series by period, a frame (two columns, one column, one row, or a long table), or numbers alone."""
    if isinstance(target, pd.DataFrame):
        target = _from_frame(release, target)
    if isinstance(target, pd.Series):
        return pd.Series(to_floats(target, "target"), index=target.index)
    if isinstance(target, dict):
        return as_series(release, pd.Series(target))
    values = to_floats(target, "target")
    if values.ndim != 1 or not 2 <= len(values) <= len(release.times):
        raise ReleaseError(f"target has shape {values.shape}; the release has {len(release.times)} periods.")
    return pd.Series(values, index=release.times[: len(values)])


def _from_frame(release: Source, frame: pd.DataFrame) -> Column:
    """Return the one series in a frame: by a column of periods, by its index, or by the names of its columns."""
    if len(frame) == 1 and len(frame.columns) > 2:
        row = frame.iloc[0]
        return row[[name for name in frame.columns if _is_number(row[name])]].infer_objects()
    numbers = [name for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name])]
    if len(frame.columns) == 1 and numbers:
        return frame[numbers[0]]
    times = [name for name in frame.columns if _are_the_periods(release, frame[name])]
    values = [name for name in numbers if name not in times[:1]]
    others = [name for name in frame.columns if name not in (*times[:1], *values)]
    if times and len(values) == 1 and all(frame[name].nunique(dropna=False) == 1 for name in others):
        return frame.set_index(times[0])[values[0]]
    if times and len(values) == 1:
        raise ReleaseError(f"the target's table has several units in column {others[0]!r}: use study for several.")
    raise ReleaseError(
        "the target must be one series: a Series by period, or a table with one column of the release's periods, such "
        f"as {period_name(release.times[0])}, and one of numbers."
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _are_the_periods(release: Source, column: Column) -> bool:
    """Tell whether a column holds periods of the release, most of them."""
    try:
        match = matching.matched(column.unique(), release.times)
    except PanelError:
        return False
    return int((match.positions >= 0).sum()) >= 2


def _over_the_periods(release: Source, given: pd.Series[float], T0: int) -> tuple[pd.Series[float], list[str]]:
    """Return the series over the release's periods, and notes on what was cut or is missing after the intervention."""
    try:
        series, match = matching.aligned(given, release.times)
        matching.require_complete(series.iloc[:T0])
    except PanelError as problem:
        raise ReleaseError(problem.message) from None
    if np.isinf(series.to_numpy(dtype=np.float64)).any():
        raise ReleaseError("target is infinite in a period after the intervention.")
    if isinstance(given.index.name, str):
        series.index = series.index.rename(given.index.name)
    missing = matching.incomplete(series.iloc[T0:])
    return series, [*(f"in the release, {hole}" for hole in holes(release.times)), *match.notes, *missing]


def question_of_units(release: Source, models: TargetModels, reference: Array) -> str:
    """Return a question if the target is far more likely in other units than in those of the donors, "" if it is not.

    Witnesses are how the target moves, against how donors do, and its level, if a typical one is public: the
    reference's, or that of the series which told the custodian how much donors move. That series may have been this
    target, in the same wrong units, so it can only add to the doubt.
    """
    level = float(np.abs(models.y + reference).mean())
    if release.reference is not None:
        usual, least = float(np.abs(reference).mean()), -math.inf
    else:
        usual, least = release.scale.level, 0.0
    logs: Array = np.zeros(len(_OTHER_UNITS))
    if not models.population.has_level:
        logs = models.log_evidence_in_units(_OTHER_UNITS, reference)
    if usual > 0 and level > 0:
        apart = math.log(level) - math.log(usual)  # of the quotient, a reference next to nothing makes infinity
        away = ((np.log(_OTHER_UNITS) + apart) / _LEVEL_SPREAD) ** 2 / 2
        logs = logs + np.maximum((apart / _LEVEL_SPREAD) ** 2 / 2 - away, least)
    as_it_is = logs[_OTHER_UNITS == 1][0]
    factor = float(_OTHER_UNITS[np.argmax(logs)])
    if logs.max() > as_it_is + _CLEAR:
        return _question(factor)
    size = math.exp(sum(c.weight * math.log(c.size) for c in models.candidates))
    if models.population.has_level or size < _LARGEST:
        return ""
    return _question(10.0 ** -round(math.log10(size) / 2))


def _question(factor: float) -> str:
    """Ask about a target that should be ``factor`` times as large."""
    times = float(f"{max(factor, 1 / factor):.1g}")
    share = f"{times:,.0f} times" if factor < 1 else f"1/{times:,.0f} of"
    units = _FOR_EXAMPLE.get(round(times))
    example = "" if units is None else ", such as {} instead of {}".format(*(units if factor < 1 else units[::-1]))
    return f"the target is about {share} what the donors' outcome suggests: is it in other units{example}?"


def require_averages(averages: int | None) -> None:
    """Refuse what is no number of units."""
    if averages is not None:
        checks.whole_number("averages", averages, at_least=1)
