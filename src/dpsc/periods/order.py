"""Periods: one kind of label, and their order.

Labels may be integers, floats, strings, ``datetime``/``Timestamp`` or ``Period``. They are not converted here: what
calendar they are, :mod:`dpsc.periods.calendar` says.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pandas as pd

from dpsc.errors import PanelError, UnorderedError
from dpsc.types import Column, PeriodsLike, Times
from dpsc.types import Positions as Positions

_DAY_OR_MONTH_NAME = re.compile(
    r"(?<![a-z])(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?"
    r"|nov(ember)?|dec(ember)?|mon(day)?|tue(s?day)?|wed(nesday)?|thu(rsday)?|fri(day)?|sat(urday)?|sun(day)?)(?![a-z])",
    re.IGNORECASE,
)
_SHORT_YEAR_LAST = re.compile(r"^\d{1,2}([-/. ])\d{1,2}\1\d{2}$")
_YEAR_LAST = re.compile(r"^((?!.*\d{4}.*\d{4}$).*\D)(1[5-9]|20)\d\d$")


def as_index(times: PeriodsLike, name: str = "time") -> Times:
    """Turn unique times into an index of one kind, or say which kinds are mixed.

    Examples
    --------
    >>> as_index(["9", "10"])
    Index(['9', '10'], dtype='str', name='time')
    """
    try:
        index: Times = pd.Index(times, name=name, tupleize_cols=False).infer_objects()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise PanelError("times must be a list of single labels, one for each period.") from None
    if isinstance(index, pd.CategoricalIndex):
        index = index.remove_unused_categories()
        index = index if _has_own_order(index) else plain(index)
    if isinstance(index, pd.MultiIndex):
        raise PanelError("times must be single labels, not a MultiIndex.")
    if _any_missing(index):
        raise PanelError(f"column {name!r} has missing times; every row needs a period.")
    if index.dtype.kind in "bc" or isinstance(index, pd.IntervalIndex):
        raise PanelError(f"times of kind {index.dtype} cannot be ordered; use numbers, strings or dates.")
    if index.dtype == object:
        kinds = sorted({type(value).__name__ for value in index})
        if len(kinds) > 1:
            raise PanelError(
                f"the times mix kinds ({', '.join(kinds)}); convert them to one kind, "
                "for example with pd.to_datetime or astype(str)."
            )
        if kinds and kinds[0] in ("tuple", "list", "dict", "set", "Period"):  # Periods of one frequency are inferred
            raise PanelError(f"times of kind {kinds[0]} cannot be ordered; use single labels of one frequency.")
    if pd.api.types.is_datetime64_any_dtype(index.dtype):
        return pd.DatetimeIndex(index)  # from Arrow, too
    return index


def require_one_kind(times: Column) -> None:
    """Refuse times of several kinds or zones, row by row: 1 and 1.0 are equal, and the first would name the period."""
    if times.dtype != object:
        return
    kinds = {(type(value), str(getattr(value, "tzinfo", None))) for value in times}
    if len(kinds) > 1:
        raise PanelError("the times mix kinds or time zones; convert them to one, for example with pd.to_datetime.")


def plain(index: Times) -> Times:
    """Return the labels of a categorical index as an index of their own kind, and any other index as it is."""
    return index.astype(index.categories.dtype) if isinstance(index, pd.CategoricalIndex) else index


def in_order(index: Times) -> Positions:
    """Return the positions that sort the times.

    An ordered categorical keeps its order. Strings are sorted naturally, numbers in them by value: ``"t2"``
    before ``"t10"``. Strings whose alphabetical order is not their order in time (names of months and days,
    dates with the year last) are refused.

    Examples
    --------
    >>> in_order(as_index(["t10", "t2", "t1"])).tolist()
    [2, 1, 0]
    """
    if not _holds_strings(index):
        try:
            return np.asarray(index.argsort(), dtype=np.intp)
        except TypeError:
            raise PanelError(f"times of kind {index.dtype} cannot be put in order.") from None
    labels = [str(label).strip() for label in index]
    unordered = _not_in_text_order(labels)
    if unordered is not None:
        raise UnorderedError(unordered)
    keys: list[Any] = _numbers(labels) or [_natural_key(label) for label in labels]
    return np.asarray(sorted(range(len(labels)), key=keys.__getitem__), dtype=np.intp)


def _any_missing(index: Times) -> bool:
    try:
        return bool(index.hasnans)
    except ArithmeticError:  # a signalling NaN among Decimals
        return True


def _holds_strings(index: Times) -> bool:
    return isinstance(index[0], str) and not isinstance(index, pd.CategoricalIndex)


def _has_own_order(index: pd.CategoricalIndex[Any]) -> bool:
    """Tell whether the caller chose the order; pandas itself chooses the alphabetical one."""
    return bool(index.ordered) and not index.categories.is_monotonic_increasing


def _not_in_text_order(labels: list[str]) -> str | None:
    """Return a label that names a month or a day, or is a date with the year last; None if there is none."""
    for label in labels:
        if _DAY_OR_MONTH_NAME.search(label) or _SHORT_YEAR_LAST.match(label):
            return label
    year_last = {match[1]: match[0] for match in map(_YEAR_LAST.match, labels) if match}
    # "FY2001", "FY2002" sort well: the text before the year is always the same.
    return next(iter(year_last.values())) if len(year_last) > 1 else None


def _numbers(labels: list[str]) -> list[Decimal] | None:
    """Return the exact numbers that the labels are, or None if one of them is not a number."""
    try:
        numbers = [Decimal(label) for label in labels]
    except InvalidOperation:
        return None
    return numbers if all(number.is_finite() for number in numbers) else None


def _natural_key(label: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts digits by value (no leading zeros; by length, then by digits) and the rest as text."""
    parts = [part for part in re.split(r"([0-9]+)", label) if part]
    return [(0, len(part.lstrip("0")), part.lstrip("0")) if part[0] in "0123456789" else (1, 0, part) for part in parts]
