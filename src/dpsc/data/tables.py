"""Reading a whole table from disk: CSV, TSV, Parquet and Feather, compressed or not."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from dpsc.errors import DpscError, TableError
from dpsc.tabular.wording import is_decimal, is_number, is_text

MISSING = ("", "#N/A", "#NA", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
KINDS = "CSV (.csv, .csv.gz), TSV (.tsv), Parquet (.parquet) or Feather (.feather)"


def read(path: Path, text: Sequence[str] = ()) -> pd.DataFrame:
    """Read a whole table; the columns ``text`` stay as they are written, so that 007 is not 7 and NA is a name."""
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
    if any(name is not None for name in table.index.names):  # saved as the index of a frame
        table = table.reset_index()
    _check_header(table, path)
    if not len(table):
        raise TableError(f"{path} has a header and no rows.")
    return table


def _reader(path: Path, text: Sequence[str]) -> Any:
    name = path.name.lower().removesuffix(".gz")
    if name.endswith((".csv", ".txt", ".tsv")):
        return partial(_read_csv, separator="\t" if name.endswith(".tsv") else ",", text=text)
    if name.endswith((".parquet", ".pq")):
        return pd.read_parquet
    if name.endswith((".feather", ".arrow")):
        return pd.read_feather
    raise TableError(f"{path}: cannot tell what kind of table this is from its name; use {KINDS}.")


def _read_csv(path: Path, *, separator: str, text: Sequence[str]) -> pd.DataFrame:
    header = pd.read_csv(path, sep=separator, nrows=0).columns
    missing = {name: list(MISSING) for name in header if name not in text}
    return pd.read_csv(path, sep=separator, low_memory=False, dtype=dict.fromkeys(text, str), na_values=missing,
                       keep_default_na=False)  # fmt: skip


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
    if repeated and not is_number(repeated[0]):
        raise TableError(f"{path} has two columns {re.sub(r'.[0-9]+$', '', repeated[0])!r}; rename one.")
    require_header(names, path)
    if len(names) == 1 and ";" in names[0]:
        raise TableError(
            f"{path} is separated by semicolons, as some spreadsheets write it; save it with commas (and decimal "
            "points), or as a .tsv file with tabs."
        )
    if not isinstance(table.index, pd.RangeIndex) and is_text(path):
        raise TableError(f"{path}: its lines have more fields than its header has names.")
    if names[-1].startswith("Unnamed:") and table.iloc[:, -1].isna().all():
        raise TableError(f"{path}: its lines end in a separator, which makes an empty last column; remove it.")
    if any(name.startswith("Unnamed:") for name in names):
        raise TableError(f"{path} has a column without a name (row numbers that were saved with it?); remove it.")


def require_header(names: Sequence[str], path: Path) -> None:
    """Refuse names of columns that are numbers with decimals: they are a row of data."""
    if any(is_decimal(name) for name in names):
        raise TableError(
            f"{path} has numbers with decimals where names of columns should be; does it have a header line?"
        )


def _expected(path: Path) -> str:
    name = path.name.lower()
    packed = " compressed with gzip" if name.endswith(".gz") else ""
    kind = next(
        (kind for end, kind in (("parquet", "Parquet"), ("feather", "Feather"), ("tsv", "TSV")) if end in name), "CSV"
    )
    return f"{kind} in UTF-8{packed}" if kind in ("CSV", "TSV") else kind
