"""Tables on disk: CSV, TSV, Parquet and Feather, compressed or not, and what people get wrong in them.

Errors name the file, the column or the row and the next step in the words of the command line. They never quote a
donor's value; names of columns and periods are public.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsc import frames, times
from dpsc.bounds import Bounds
from dpsc.errors import DpscError, PanelError, ReleaseError, TableError
from dpsc.frames import Missing

KINDS = "CSV (.csv, .csv.gz), TSV (.tsv), Parquet (.parquet) or Feather (.feather)"
_ISO_DATE = re.compile(r"^\d{4}-\d{1,2}(-\d{1,2})?([ T]\d{1,2}:\d{2}(:\d{2})?)?$")
_QUARTER = re.compile(r"^\d{4}-?[Qq][1-4]$")


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


def read(path: Path, text: str | None = None) -> pd.DataFrame:
    """Read a whole table; the column ``text`` is not taken for numbers, so that 007 stays 007."""
    if not path.exists():
        here = [f.name for f in path.parent.iterdir() if not f.name.startswith(".")] if path.parent.is_dir() else []
        near = get_close_matches(path.name, here, 1)
        raise TableError(f"there is no file {path}." + (f" Did you mean {path.parent / near[0]}?" if near else ""))
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a file: {KINDS}.")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty.")
    with _unreadable(path):
        table: pd.DataFrame = _reader(path, text)(path)
    _check_header(table, path)
    if not len(table):
        raise TableError(f"{path} has a header and no rows.")
    return table


def _reader(path: Path, text: str | None) -> Any:
    name = path.name.lower().removesuffix(".gz")
    if name.endswith((".csv", ".txt", ".tsv")):
        kinds = {} if text is None else {text: str}
        return partial(pd.read_csv, sep="\t" if name.endswith(".tsv") else ",", low_memory=False, dtype=kinds)
    if name.endswith((".parquet", ".pq")):
        return pd.read_parquet
    if name.endswith((".feather", ".arrow")):
        return pd.read_feather
    raise TableError(f"{path}: cannot tell what kind of table this is from its name; use {KINDS}.")


@contextmanager
def _unreadable(path: Path) -> Iterator[None]:
    """Say that a file cannot be read without repeating what the parser quotes from it."""
    try:
        yield
    except DpscError:
        raise
    except PermissionError:
        raise TableError(f"{path} may not be read by you; check its permissions.") from None
    except MemoryError:
        raise TableError(f"{path} does not fit into memory.") from None
    except (OSError, ValueError, EOFError, zlib.error, UnicodeError, pd.errors.ParserError) as problem:
        line = re.search(r"line (\d+)", str(problem))
        where = f" near line {line[1]}" if line else ""
        raise TableError(f"{path} cannot be read{where}; is it really {_expected(path)}, and whole?") from None


def _check_header(table: pd.DataFrame, path: Path) -> None:
    """Refuse a first line that is not a header, without repeating it: it may be a donor's row."""
    names = [str(name) for name in table.columns]
    repeated = [name for name in names if re.search(r"\.\d+$", name) and re.sub(r"\.\d+$", "", name) in names]
    if repeated and not _is_number(repeated[0]):
        raise TableError(f"{path} has two columns {re.sub(r'.[0-9]+$', '', repeated[0])!r}; rename one.")
    if sum(_is_decimal(name) for name in names) > 0:
        raise TableError(
            f"{path} has numbers with decimals where names of columns should be; does it have a header line?"
        )
    if len(names) == 1 and ";" in names[0]:
        raise TableError(
            f"{path} is separated by semicolons, as some spreadsheets write it; save it with commas (and decimal "
            "points), or as a .tsv file with tabs."
        )
    if names[-1].startswith("Unnamed:") and table.iloc[:, -1].isna().all():
        raise TableError(f"{path}: its lines end in a separator, which makes an empty last column; remove it.")


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _is_decimal(name: str) -> bool:
    return _is_number(name) and bool(
        re.search(r"[.eE]", re.sub(r"\.\d{1,2}$", "", name) if name.count(".") > 1 else name)
    )


def _expected(path: Path) -> str:
    name = path.name.lower()
    packed = " compressed with gzip" if name.endswith(".gz") else ""
    kind = next(
        (kind for end, kind in (("parquet", "Parquet"), ("feather", "Feather"), ("tsv", "TSV")) if end in name), "CSV"
    )
    return f"{kind} in UTF-8{packed}" if kind in ("CSV", "TSV") else kind


def column(table: pd.DataFrame, name: str, option: str, path: Path) -> pd.Series[Any]:
    """Return a column, or refuse and suggest the near one."""
    return table.iloc[:, position([str(label) for label in table.columns], name, option, path)]


def position(names: list[str], name: str, option: str, path: Path) -> int:
    """Return where the one column of that name is."""
    if name not in names:
        near = get_close_matches(name, names, 1) or [other for other in names if other.lower() == name.lower()]
        if not near and any(map(_is_number, names)):  # perhaps a row of data: do not repeat it
            raise TableError(f"{path} has no column {name!r} ({option}); does it have a header line?")
        hint = f"Did you mean {near[0]!r}?" if near else f"Its columns are {', '.join(map(repr, names[:12]))}."
        raise TableError(f"{path} has no column {name!r} ({option}). {hint}")
    if names.count(name) > 1:
        raise TableError(f"{path} has {names.count(name)} columns {name!r} ({option}); rename one.")
    return names.index(name)


def numbers(values: pd.Series[Any], name: str, option: str, path: Path) -> pd.Series[float]:
    """Return a column as numbers, or say in which row there is text; the text itself is not repeated."""
    if pd.api.types.is_bool_dtype(values) or not (
        pd.api.types.is_numeric_dtype(values)
        or pd.api.types.is_object_dtype(values)
        or pd.api.types.is_string_dtype(values)
    ):
        raise TableError(f"{path}: column {name!r} ({option}) holds {values.dtype}, not numbers.")
    converted = pd.to_numeric(values, errors="coerce")
    text = converted.isna() & values.notna()
    if text.any():
        row = int(np.argmax(text.to_numpy()))
        raise TableError(
            f"{path}: column {name!r} ({option}) holds text in {_row(row, path)}; it must hold numbers alone (no "
            "units, no thousands separators). Leave a missing value empty."
        )
    return converted.astype(np.float64)


def periods(values: pd.Series[Any] | pd.Index[Any], name: str, path: Path, time_format: str | None) -> pd.Series[Any]:
    """Return times as numbers, dates, quarters or labels: text that looks like dates must be dates throughout."""
    series = pd.Series(values).reset_index(drop=True)
    if series.isna().any():
        raise TableError(
            f"{path}: {_row(int(np.argmax(series.isna())), path)} has no period in column {name!r} (--time)."
        )
    if pd.api.types.is_integer_dtype(series) and time_format is None:
        return _months(series)
    if pd.api.types.is_float_dtype(series):
        if (series % 1 != 0).any():
            row = _row(int(np.argmax((series % 1 != 0).to_numpy())), path)
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
    parsed = _parsed(distinct, time_format, name, path)
    return series.astype(str).str.strip().map(dict(zip(distinct, parsed, strict=True)))


def _parsed(distinct: pd.Series[str], time_format: str | None, name: str, path: Path) -> list[Any]:
    if time_format is not None:
        dates = pd.to_datetime(distinct, format=time_format, errors="coerce")
        _require_dates(distinct, dates, f"does not match --time-format {time_format!r}", name, path)
        return list(dates)
    if distinct.map(lambda text: bool(_QUARTER.match(text))).all():
        return list(pd.PeriodIndex(distinct.str.replace("-", "").str.upper(), freq="Q"))
    whole = distinct.map(lambda text: bool(re.match(r"^-?\d+$", text)))
    if whole.all():
        return list(_months(distinct.astype(np.int64)))
    if whole.mean() > 0.5 or distinct.map(_is_decimal).any():
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
        label = float(text) if _is_number(text) else None
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


def panel_frame(path: Path, layout: Layout) -> pd.DataFrame:
    """Read a table and check it: long with three columns, or wide with units as its index and periods as columns."""
    table = read(path, text=layout.unit)
    unit = column(table, layout.unit, "--unit", path)
    if unit.isna().any():
        raise TableError(
            f"{path}: {_row(int(np.argmax(unit.isna())), path)} has no unit in column {layout.unit!r} (--unit)."
        )
    if layout.wide:
        return _from_wide(table, unit, path, layout)
    time, outcome = str(layout.time), str(layout.outcome)
    when = periods(column(table, time, "--time", path), time, path, layout.time_format)
    values = numbers(column(table, outcome, "--outcome", path), outcome, "--outcome", path)
    long = pd.DataFrame({layout.unit: unit.array, time: when.array, outcome: values.array})
    repeated = long.duplicated([layout.unit, time]).to_numpy()
    if repeated.any():
        raise TableError(
            f"{path}: {_row(int(np.argmax(repeated)), path)} repeats a unit and period that another row has; each may "
            f"occur once. Are {layout.unit!r} (--unit) and {layout.time!r} (--time) the right columns?"
        )
    labels = long[time].drop_duplicates()
    text = pd.api.types.is_object_dtype(labels) or pd.api.types.is_string_dtype(labels)
    if text and len(labels) > long[layout.unit].nunique():
        raise TableError(
            f"{path}: column {time!r} (--time) has more different labels than column {layout.unit!r} (--unit) has "
            "units; are the two swapped?"
        )
    return long


def _from_wide(table: pd.DataFrame, unit: pd.Series[Any], path: Path, layout: Layout) -> pd.DataFrame:
    labels = [label for label in table.columns if str(label) != layout.unit]
    if not labels:
        raise TableError(f"{path} has no columns besides {layout.unit!r} (--unit); --wide needs one column a period.")
    if unit.duplicated().any():
        row = int(np.argmax(unit.duplicated().to_numpy()))
        raise TableError(
            f"{path}: {_row(row, path)} names a unit that another row has; --wide means one row a unit. For one row "
            "per unit and period give --time and --outcome instead."
        )
    words = [str(label) for label in labels if not any(character.isdigit() for character in str(label))]
    if words:
        raise TableError(
            f"{path}: the column {words[0]!r} does not look like a period. --wide takes every column but --unit for "
            "one; drop the others, or give a long table with --time and --outcome."
        )
    when = periods(pd.Index(labels, dtype=object), "its header", path, layout.time_format)
    values = {
        moment: numbers(table[label], str(label), "a period", path).to_numpy()
        for moment, label in zip(when, labels, strict=True)
    }
    if len(values) < len(labels):
        raise TableError(f"{path}: two columns stand for the same period.")
    return pd.DataFrame(values, index=pd.Index(unit.array, tupleize_cols=False))


def donors(
    path: Path, layout: Layout, *, bounds: tuple[float, float] | None, missing: Missing, exclude: Sequence[str] = ()
) -> pd.DataFrame:
    """Return donors, one row each and one column a period in time order, clipped to the bounds if there are any."""
    table = panel_frame(path, layout)
    with naming(path):
        matrix = (
            frames.read_wide(table, None, None)
            if layout.wide
            else frames.read_long(table, layout.unit, layout.time, layout.outcome)
        )
        order = times.in_order(matrix.times)
        index = times.plain(matrix.times[order])
        kept = np.ones(len(matrix.units), dtype=bool)
        for label in exclude:
            kept[unit_position(matrix.units, label, "--exclude")] = False
        if not kept.any():
            raise TableError("no donor is left.")
        values = matrix.values[np.ix_(np.flatnonzero(kept), order)]
        public = None if bounds is None else Bounds.parse(bounds, len(index))
        frames.fill_missing(values, missing, public, index)
        if public is not None:
            values = public.clip(values)
    return pd.DataFrame(values, columns=index)


def series(path: Path, time: str | None, outcome: str | None, time_format: str | None = None) -> pd.Series[float]:
    """Return a public path from a table with a column of periods and one of numbers."""
    table = read(path)
    if (time is None or outcome is None) and len(table.columns) != 2:
        raise TableError(
            f"{path} has {len(table.columns)} columns; say which hold the periods and the numbers: --time, --outcome."
        )
    names = [str(name) for name in table.columns]
    time = names[0] if time is None else time
    outcome = next(name for name in names if name != time) if outcome is None else outcome
    when = periods(column(table, time, "--time", path), time, path, time_format)
    values = numbers(column(table, outcome, "--outcome", path), outcome, "--outcome", path)
    if when.duplicated().any():
        raise TableError(f"{path}: the period {when[when.duplicated()].iloc[0]} occurs twice in column {time!r}.")
    with naming(path):
        return pd.Series(values.to_numpy(), index=times.as_index(list(when), str(time)), name=outcome)


def require_periods(path: pd.Series[float] | None, index: pd.Index[Any], file: Path | str | None) -> None:
    """Refuse a reference path that does not have a number for every period of the donors."""
    if path is None:
        return
    numbers_ = path.reindex(index) if path.index.dtype == index.dtype else pd.Series(np.nan, index=index)
    if not np.isfinite(numbers_).all():
        hole = index[~np.isfinite(numbers_.to_numpy())][0]
        raise TableError(f"{file} (--reference) has no number for the period {_shown(hole)}, which the donors have.")


def unit_position(units: pd.Index[Any], label: Hashable, option: str) -> int:
    """Find a unit by its label, whether the file holds it as a number or as text."""
    matches = np.flatnonzero(units.astype(str) == str(label))
    if len(matches) != 1:
        raise TableError(f"the unit {label!r} ({option}) is not in the data; labels are matched as they are written.")
    return int(matches[0])


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the file before what the library says of its content, in the command's own words."""
    try:
        yield
    except TableError as problem:
        raise TableError(str(problem) if str(path) in str(problem) else f"{path}: {problem}") from None
    except (PanelError, ReleaseError) as problem:
        raise TableError(f"{path}: {in_options(str(problem))}") from None


def in_options(message: str) -> str:
    """Turn Python arguments in a message into the options that set them."""
    for pattern, option in (
        (r"missing='(\w+)'", r"--missing \1"),
        (r"bounds=\(lo, hi\)", "--bounds LO HI"),
        (r"\bdonors=", "--exclude"),
        (r"\blambda_\b", "--lambda"),
        (
            r"convert the times first, for example with .*",
            "say how the dates are written, for example --time-format %d/%m/%Y.",
        ),
    ):
        message = re.sub(pattern, option, message)
    return message


def _row(position: int, path: Path) -> str:
    """Name a row as an editor would: the header of a CSV is line 1."""
    if re.search(r"\.(csv|tsv|txt)(\.gz)?$", path.name.lower()):
        return f"line {position + 2}"
    return f"row {position + 1}"
