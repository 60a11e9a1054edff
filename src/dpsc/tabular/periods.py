"""What people write for periods: numbers, dates, months, quarters, labels."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsc.errors import TableError
from dpsc.tabular.wording import is_decimal, is_number, row_name

_ISO_DATE = re.compile(r"^\d{4}-\d{1,2}(-\d{1,2})?([ T]\d{1,2}:\d{2}(:\d{2})?)?$")
_WHOLE = r"^-?\d+(\.0*)?$"
_QUARTER = re.compile(r"^\d{4}-?[Qq][1-4]$")


def periods(values: pd.Series[Any] | pd.Index[Any], name: str, path: Path, time_format: str | None) -> pd.Series[Any]:
    """Return times as numbers, dates, quarters or labels: text that looks like dates must be dates throughout."""
    series = pd.Series(values).reset_index(drop=True)
    empty = (series.isna() | (series.astype(str) == "")).to_numpy()
    if empty.any():
        raise TableError(f"{path}: {row_name(int(np.argmax(empty)), path)} has no period in column {name!r} (--time).")
    if pd.api.types.is_integer_dtype(series) and time_format is None:
        return _months(series)
    if pd.api.types.is_float_dtype(series):
        if (series % 1 != 0).any():
            row = row_name(int(np.argmax((series % 1 != 0).to_numpy())), path)
            raise TableError(
                f"{path}: column {name!r} (--time) holds a number with decimals in {row}; periods are whole numbers, "
                "dates or labels. Is it the right column?"
            )
        return _months(series.astype(np.int64))
    if not (
        pd.api.types.is_object_dtype(series)
        or pd.api.types.is_string_dtype(series)
        or pd.api.types.is_integer_dtype(series)
    ):
        return series
    distinct = pd.Series(series.astype(str).str.strip().unique())
    fractions = distinct[distinct.map(is_decimal) & ~distinct.str.match(_WHOLE)]
    if time_format is None and len(fractions):
        row = row_name(int(np.argmax((series.astype(str).str.strip() == fractions.iloc[0]).to_numpy())), path)
        raise TableError(
            f"{path}: column {name!r} (--time) holds a number with decimals in {row}; periods are whole numbers, "
            "dates or labels. Is it the right column?"
        )
    parsed = _parsed(distinct, time_format, name, path)
    return series.astype(str).str.strip().map(dict(zip(distinct, parsed, strict=True)))


def _parsed(distinct: pd.Series[str], time_format: str | None, name: str, path: Path) -> list[Any]:
    if time_format is not None:
        dates = pd.to_datetime(distinct, format=time_format, errors="coerce")
        _require_dates(distinct, dates, f"does not match --time-format {time_format!r}", name, path)
        return list(dates)
    if distinct.map(lambda text: bool(_QUARTER.match(text))).all():
        return list(pd.PeriodIndex(distinct.str.replace("-", "").str.upper(), freq="Q"))
    whole = distinct.str.match(_WHOLE)
    if whole.all():
        return list(_months(distinct.str.replace(r"\.0*$", "", regex=True).astype(np.int64)))
    if whole.mean() > 0.5:
        raise TableError(
            f"{path}: column {name!r} (--time) holds whole numbers and, among its distinct values, something else; "
            "periods are whole numbers, dates or labels, all of one kind. Is it the right column?"
        )
    looks = distinct.map(lambda text: bool(_ISO_DATE.match(text)))
    if looks.mean() > 0.5:  # a column of dates, in which anything else is a slip
        dates = pd.to_datetime(distinct, format="ISO8601", errors="coerce")
        _require_dates(distinct, dates, "is not a date, though most periods are", name, path)
        return list(dates)
    return list(distinct)


def _months(values: pd.Series[Any]) -> pd.Series[Any]:
    """Take 202112, 202201 for months, which are no years."""
    years, months = values // 100, values % 100
    if not (years.between(1800, 2200) & months.between(1, 12)).all():
        return values
    return pd.to_datetime(values.astype(str), format="%Y%m")


def moment(text: str, index: pd.Index[Any], time_format: str | None) -> Any:
    """Find the period that ``--treatment-time`` names; one that is not there is refused, not rounded."""
    where = f"the periods run from {_shown(index[0])} to {_shown(index[-1])}"
    label: Any = text
    if isinstance(index, pd.DatetimeIndex):
        dates = bool(_ISO_DATE.match(text)) or bool(re.match(r"^\d{6}$", text))
        try:
            shape = time_format or ("ISO8601" if "-" in text else "%Y%m")
            label = pd.to_datetime(text, format=shape) if dates or time_format else None
        except ValueError:
            label = None
        if label is None:
            raise TableError(
                f"--treatment-time {text!r} is not a date as the table writes them; write {_shown(index[0])}."
            )
        label = label.tz_localize(index.tz) if index.tz is not None else label
    elif isinstance(index, pd.PeriodIndex):
        if not _QUARTER.match(text):
            raise TableError(f"--treatment-time {text!r} is not a quarter; write it as {index[0]}.")
        label = pd.Period(text.replace("-", "").upper(), freq="Q")
    elif pd.api.types.is_numeric_dtype(index):
        label = float(text) if is_number(text) else None
    matches = [position for position, period in enumerate(index) if period == label or str(period) == text]
    if not matches:
        raise TableError(
            f"--treatment-time {text!r} is not one of the periods; {where}. Name the first treated period itself."
        )
    return index[matches[0]]


def _shown(label: Any) -> str:
    return str(label).removesuffix(" 00:00:00")


def _require_dates(distinct: pd.Series[str], dates: pd.Series[Any], complaint: str, name: str, path: Path) -> None:
    if dates.isna().any():
        wrong = distinct[dates.isna()].iloc[0]
        raise TableError(
            f"{path}: {wrong[:40]!r} in column {name!r} (--time) {complaint}. Write dates as 2024-01-31, or say how "
            "they are written, for example --time-format %d/%m/%Y."
        )


def require_periods(path: pd.Series[float] | None, index: pd.Index[Any], file: Path | str | None) -> None:
    """Refuse a reference path that does not have a number for every period of the donors."""
    if path is None:
        return
    numbers_ = path.reindex(index) if path.index.dtype == index.dtype else pd.Series(np.nan, index=index)
    if not np.isfinite(numbers_).all():
        hole = index[~np.isfinite(numbers_.to_numpy())][0]
        raise TableError(f"{file} (--reference) has no number for the period {_shown(hole)}, which the donors have.")
