"""What people write for periods: numbers, dates, months, quarters, labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpsc.data.columns import TIME, is_decimal, is_number
from dpsc.errors import Parameter, TableError

_ISO_DATE = re.compile(r"^\d{4}-\d{1,2}(-\d{1,2})?([ T]\d{1,2}:\d{2}(:\d{2})?)?$")
_WHOLE = r"^-?\d+(\.0*)?$"
_QUARTER = re.compile(r"^\d{4}-?[Qq][1-4]$")
AS_WRITTEN = Parameter("time_format", "'%d/%m/%Y'")
NameRow = Callable[[int], str]


def understood(labels: Sequence[Any], column: str, row_name: NameRow, time_format: str | None) -> pd.Series[Any]:
    """Return labels as numbers, dates, quarters or text; if most are dates, all must be.

    Parameters
    ----------
    labels
        As the table writes them, in its order; a label may occur several times.
    column : str
        The column of the labels, for messages.
    row_name : callable
        Returns the name of a row, given the position of its label.
    time_format : str, optional
        How dates are written, if the labels do not show it.
    """
    series = pd.Series(list(labels), dtype=object).infer_objects()
    empty = (series.isna() | (series.astype(str) == "")).to_numpy()
    if empty.any():
        raise TableError(f"{row_name(int(np.argmax(empty)))} has no period in column {column!r} ({{time}}).", time=TIME)
    if pd.api.types.is_integer_dtype(series) and time_format is None:
        return _months(series)
    if pd.api.types.is_float_dtype(series):
        if (series % 1 != 0).any():
            raise _has_decimals(column, row_name(int(np.argmax((series % 1 != 0).to_numpy()))))
        return _months(series.astype(np.int64))
    if not any(test(series) for test in (pd.api.types.is_object_dtype, pd.api.types.is_string_dtype,
                                         pd.api.types.is_integer_dtype)):  # fmt: skip
        return series
    text = series.astype(str).str.strip()
    distinct = pd.Series(text.unique())
    fractions = distinct[distinct.map(is_decimal) & ~distinct.str.match(_WHOLE)]
    if time_format is None and len(fractions):
        raise _has_decimals(column, row_name(int(np.argmax((text == fractions.iloc[0]).to_numpy()))))
    parsed = _parsed(distinct, column, time_format)
    return text.map(dict(zip(distinct, parsed, strict=True)))


def _parsed(distinct: pd.Series[str], column: str, time_format: str | None) -> list[Any]:
    if time_format is not None:
        require_format(time_format)
        dates = pd.to_datetime(distinct, format=time_format, errors="coerce")
        _require_dates(distinct, dates, column, time_format)
        return list(dates)
    if distinct.map(lambda text: bool(_QUARTER.match(text))).all():
        return list(pd.PeriodIndex(distinct.str.replace("-", "").str.upper(), freq="Q"))
    whole = distinct.str.match(_WHOLE)
    if whole.all():
        return list(_months(distinct.str.replace(r"\.0*$", "", regex=True).astype(np.int64)))
    if whole.mean() > 0.5:
        raise TableError(
            f"column {column!r} ({{time}}) holds whole numbers and, among its distinct values, something else; periods "
            "are whole numbers, dates or labels, all of one kind. Is it the right column?",
            time=TIME,
        )
    looks = distinct.map(lambda text: bool(_ISO_DATE.match(text)))
    if looks.mean() > 0.5:  # a column of dates: anything else is a mistake
        dates = pd.to_datetime(distinct, format="ISO8601", errors="coerce")
        _require_dates(distinct, dates, column, None)
        return list(dates)
    return list(distinct)


def _months(values: pd.Series[Any]) -> pd.Series[Any]:
    """Read numbers such as 202112 and 202201 as months, if all of them can be months."""
    years, months = values // 100, values % 100
    if not (years.between(1800, 2200) & months.between(1, 12)).all():
        return values
    return pd.to_datetime(values.astype(str), format="%Y%m")


def _has_decimals(column: str, row: str) -> TableError:
    return TableError(
        f"column {column!r} ({{time}}) holds a number with decimals in {row}; periods are whole numbers, dates or "
        "labels. Is it the right column?",
        time=TIME,
    )


def _require_dates(distinct: pd.Series[str], dates: pd.Series[Any], column: str, time_format: str | None) -> None:
    if not dates.isna().any():
        return
    wrong = distinct[dates.isna()].iloc[0]
    complaint = "is not a date, though most periods are" if time_format is None else "does not match {given}"
    raise TableError(
        f"{wrong[:40]!r} in column {column!r} ({{time}}) {complaint}. Write dates as 2024-01-31, or say how they are "
        "written, for example {as_written}.",
        time=TIME, given=Parameter("time_format", repr(time_format), repr(time_format)), as_written=AS_WRITTEN,
    )  # fmt: skip


def require_format(time_format: str) -> None:
    """Refuse a way of writing dates that cannot be understood."""
    try:
        pd.to_datetime(["2000"], format=time_format, errors="coerce")
    except (ValueError, TypeError):
        raise TableError(
            f"{{it}} {time_format!r} is not a way of writing dates; for example {{as_written}}.",
            it=Parameter("time_format"), as_written=AS_WRITTEN,
        ) from None  # fmt: skip


def typed_period(text: str, index: pd.Index[Any], time_format: str | None, name: str = "treatment_time") -> Any:
    """Find the first treated period that the user typed; refuse, and do not round, one that is not there."""
    it = Parameter(name, repr(text), repr(text))
    label: Any = text
    if isinstance(index, pd.DatetimeIndex):
        label = _typed_date(text, time_format)
        if label is None:
            raise TableError(f"{{it}} is not a date as the table writes them; write {period_name(index[0])}.", it=it)
        label = label.tz_localize(index.tz) if index.tz is not None else label
    elif isinstance(index, pd.PeriodIndex):
        if not _QUARTER.match(text):
            raise TableError(f"{{it}} is not a quarter; write it as {index[0]}.", it=it)
        label = pd.Period(text.replace("-", "").upper(), freq="Q")
    elif pd.api.types.is_numeric_dtype(index):
        label = float(text) if is_number(text) else None
    matches = [position for position, period in enumerate(index) if period == label or str(period) == text]
    if not matches:
        raise TableError(
            f"{{it}} is not one of the periods, which run from {period_name(index[0])} to {period_name(index[-1])}. "
            "Name the first treated period itself.",
            it=it,
        )
    return index[matches[0]]


def _typed_date(text: str, time_format: str | None) -> pd.Timestamp | None:
    if time_format is None and not (_ISO_DATE.match(text) or re.match(r"^\d{6}$", text)):
        return None
    try:
        return pd.to_datetime(text, format=time_format or ("ISO8601" if "-" in text else "%Y%m"))
    except ValueError:
        return None


def period_name(label: Any) -> str:
    """Write a period; leave out the time if it is midnight."""
    return str(label).removesuffix(" 00:00:00")
