"""A target as it comes, matched to the periods of a release."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.analyst.models import TargetModels
from dpsc.errors import PanelError, ReleaseError
from dpsc.periods import match as matching
from dpsc.periods.calendar import holes
from dpsc.periods.dates import period_name
from dpsc.periods.match import first_treated
from dpsc.release.matrix import ReleasedMatrix
from dpsc.release.rowmap import movement
from dpsc.types import Column, Label, TargetLike, to_floats

OTHER_UNITS = ": is it in other units than the donors were, such as thousands?"
_OTHER_UNITS = (1e-3, 1e-2, 1e2, 1e3)
_CLEAR = 10.0  # a log Bayes factor
_LARGEST = 1000.0  # c^2
_LARGER, _SMALLER = 100.0, 500.0  # so many times suggest other units; averages of many move less


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
    release: ReleasedMatrix, target: TargetLike, treatment_time: Label
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
    notes = [*cut, *_other_units(release, series, T0)]
    return series.rename(release.outcome), T0, tuple(notes)


def as_series(release: ReleasedMatrix, target: TargetLike) -> pd.Series[float]:
    """Understand a Series by period, a frame (two columns, one column, one row, or a long table), or numbers alone."""
    if isinstance(target, pd.DataFrame):
        target = _from_frame(release, target)
    if isinstance(target, pd.Series):
        return pd.Series(to_floats(target, "target"), index=target.index)
    if isinstance(target, dict):
        return as_series(release, pd.Series(target))
    values = to_floats(target, "target")
    if values.ndim != 1 or not 2 <= len(values) <= release.T:
        raise ReleaseError(f"target has shape {values.shape}; the release has {release.T} periods.")
    return pd.Series(values, index=release.times[: len(values)])


def _from_frame(release: ReleasedMatrix, frame: pd.DataFrame) -> Column:
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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _are_the_periods(release: ReleasedMatrix, column: Column) -> bool:
    """Tell whether a column holds periods of the release, most of them."""
    try:
        match = matching.matched(column.unique(), release.times)
    except PanelError:
        return False
    return int((match.positions >= 0).sum()) >= 2


def _over_the_periods(release: ReleasedMatrix, given: pd.Series[float], T0: int) -> tuple[pd.Series[float], list[str]]:
    """Return the series over the release's periods, and notes on what was cut or is missing after the intervention."""
    try:
        series, match = matching.aligned(given, release.times)
        matching.require_complete(series.iloc[:T0])
    except PanelError as problem:
        raise ReleaseError(problem.message, **problem.parameters) from None
    if np.isinf(series.to_numpy(dtype=np.float64)).any():
        raise ReleaseError("target is infinite in a period after the intervention.")
    if isinstance(given.index.name, str):
        series.index = series.index.rename(given.index.name)
    missing = matching.incomplete(series.iloc[T0:])
    return series, [*(f"in the release, {hole}" for hole in holes(release.times)), *match.notes, *missing]


def _other_units(release: ReleasedMatrix, series: pd.Series[float], T0: int) -> list[str]:
    """Ask whether the target is measured in other units than the donors were."""
    y = series.to_numpy(dtype=np.float64)[:T0]
    if release.reference is not None:
        size, usual, against = np.median(np.abs(y)), np.median(np.abs(release.reference[:T0])), "the reference path"
    elif release.scale.source != "none":
        size, usual, against = movement(y, release.kernel), release.scale.value, "a typical donor's movement"
    else:
        return []
    size, usual = float(size), float(usual)
    if size == 0 or usual == 0 or 1 / _SMALLER < size / usual < _LARGER:
        return []
    times = min(max(size / usual, usual / size), 1e18)  # beyond which the number would fill the line
    direction = "larger" if size > usual else "smaller"
    return [f"the target is about {float(f'{times:.1g}'):,.0f} times {direction} than {against}{OTHER_UNITS}"]


def in_other_units(models: TargetModels) -> str:
    """Return a question if the target would fit the donors far better in other units, or is far larger than they are."""
    if models.population.has_level:
        return ""
    logs = {factor: models.log_evidence_if_times(factor) for factor in (1.0, *_OTHER_UNITS)}
    best = max(logs, key=lambda factor: logs[factor])
    if logs[best] > logs[1.0] + _CLEAR:
        return f"the target fits the donors much better times {best:g}{OTHER_UNITS}"
    size = math.exp(sum(c.weight * math.log(c.size) for c in models.candidates))
    if size > _LARGEST:
        return f"the target's movements are {math.sqrt(size):,.0f} times a donor's{OTHER_UNITS}"
    return ""


def require_averages(averages: int | None) -> None:
    """Refuse what is no number of units."""
    if averages is not None:
        checks.whole_number("averages", averages, at_least=1)


def other_units(notes: tuple[str, ...]) -> str:
    """Return the note that asks about units, if there is one."""
    return next((note for note in notes if note.endswith(OTHER_UNITS)), "")
