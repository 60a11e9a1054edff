"""How a file writes its table: what was said about it, and what its first line shows.

The separator and the encoding are recognised from the header line and the byte-order mark, which are public, and never
from a row: see docs/proofs/sensitivity.md.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpsc.errors import Parameter, ParameterError, TableError
from dpsc.tables.numbers import PLAIN, THOUSANDS, Numbers

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
_DECIMALS = {"point": ".", "comma": ","}
_THOUSANDS = {"comma": ",", "point": ".", "space": " ", "apostrophe": "'", "none": ""}
_ALSO = {"\\t": "\t", "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u2019": "'"}
_WORDS: dict[str, dict[str, str]] = {
    "sep": {mark: word for word, mark in SEPARATORS.items()},
    "decimal": {mark: word for word, mark in _DECIMALS.items()},
    "thousands": {mark: word for word, mark in _THOUSANDS.items()},
    "encoding": {"cp1252": "windows-1252", "iso8859-1": "latin-1"},
    "sheet": {},
}
ENCODING = Parameter("encoding", "windows-1252")
DECIMAL_COMMA, DECIMAL_POINT = Parameter("decimal", "comma"), Parameter("decimal", "point")


def _sign(name: str, value: str | None, known: dict[str, str]) -> str | None:
    if value is None:
        return None
    sign = known.get(str(value).strip().lower(), _ALSO.get(str(value), value))
    if sign not in known.values():
        words = ", ".join(f"{word} ({mark})" if mark.strip() else word for word, mark in known.items())
        raise ParameterError(f"{Parameter(name)} {str(value)[:20]!r} is not one of {words}.")
    return sign


def _codec(name: str | None) -> str | None:
    if name is None:
        return None
    try:
        found = codecs.lookup(name).name
        "".encode(found)
    except (LookupError, ValueError, TypeError):
        raise ParameterError(
            f"{Parameter('encoding')} {str(name)[:20]!r} is not an encoding; usual ones are utf-8, utf-16, "
            "windows-1252 and latin-1."
        ) from None
    return "utf-8" if found == "utf-8-sig" else found


@dataclass(frozen=True)
class Dialect:
    """What was said about how a file writes its table; None for what was not said.

    Attributes
    ----------
    sep : str, optional
        What separates columns: comma, semicolon, tab, pipe, or the sign itself.
    decimal : str, optional
        The mark before decimals: point, comma, or the sign itself.
    thousands : str, optional
        The mark between groups of three digits: comma, point, space (also one that is thin or does not break),
        apostrophe, none, or the sign itself.
    encoding : str, optional
        As Python names it: utf-8, utf-16, windows-1252, latin-1.
    sheet : str, optional
        Of an Excel workbook.
    beside : bool
        Whether this was said about another table, the donors, beside which a public series is read.
    """

    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    beside: bool = False

    def __post_init__(self) -> None:
        for name, known in (("sep", SEPARATORS), ("decimal", _DECIMALS), ("thousands", _THOUSANDS)):
            object.__setattr__(self, name, _sign(name, getattr(self, name), known))
        object.__setattr__(self, "encoding", _codec(self.encoding))
        if self.decimal is not None and self.decimal == self.thousands:
            raise ParameterError(
                f"{Parameter('decimal')} and {Parameter('thousands')} are the same mark; a number could not be read."
            )

    def words(self) -> dict[str, str]:
        """Return what was said, as somebody would type it.

        Examples
        --------
        >>> Dialect(sep=";", thousands="", encoding="cp1252").words()
        {'sep': 'semicolon', 'thousands': 'none', 'encoding': 'windows-1252'}
        """
        said = {name: getattr(self, name) for name in ("sep", "decimal", "thousands", "encoding", "sheet")}
        return {name: _WORDS[name].get(value, value) for name, value in said.items() if value is not None}

    def for_series(self) -> Dialect:
        """Return what it says about a public series in another file: nothing that the file itself shows."""
        return replace(self, sep=None, encoding=None, beside=True)

    def numbers(self, sep: str | None = None) -> Numbers:
        """Return how numbers are written in a file with this separator; None stands for files of other kinds.

        Semicolons are in use because of decimal commas, but also with points, so each number shows by itself what its
        marks are. With any other separator, decimals follow a point unless something else was said.
        """
        usual = sep != ";"
        decimal, thousands = (None, None) if self.beside and sep == "," else (self.decimal, self.thousands)
        if decimal is None and thousands is None:
            return PLAIN if usual else Numbers(".,", THOUSANDS)
        if decimal is None:
            decimal = "." if usual and thousands != "." else ".,".replace(thousands or " ", "")
        if thousands is None:
            thousands = "" if usual and decimal == "." else THOUSANDS.replace(decimal, "")
        return Numbers(decimal, thousands)


@dataclass(frozen=True)
class Reading:
    """How a file is read.

    Attributes
    ----------
    sep, encoding : str
        Of a text file.
    numbers : Numbers
    doubtful : bool
        Whether decimal points are only the custom for such files: nothing was said and the separator does not show it.
    """

    sep: str = ","
    encoding: str = "utf-8"
    numbers: Numbers = PLAIN
    doubtful: bool = False

    @property
    def words(self) -> str:
        """What was understood, in words."""
        name = next(word for word, sign in SEPARATORS.items() if sign == self.sep)
        marks = self.numbers.decimals
        decimals = "each number by itself" if len(marks) > 1 else f"decimal {'point' if marks == '.' else 'comma'}"
        return f"separator {name}, encoding {self.encoding_name}, {decimals}"

    @property
    def encoding_name(self) -> str:
        """The encoding as most people call it."""
        return _WORDS["encoding"].get(self.encoding, self.encoding)


UNSAID, AS_USUAL = Dialect(), Reading()


def reading_of(line: str, encoding: str, given: Dialect, named: Sequence[str], *, tabs: bool) -> Reading:
    """Return how to read a file with this first line.

    Parameters
    ----------
    line : str
        The names of the columns.
    encoding : str
    given : Dialect
        What was said.
    named : list of str
        Columns that must be there; they tell which separator it is.
    tabs : bool
        Whether the file's name says that tabs separate its columns.
    """
    sep = given.sep or ("\t" if tabs else _separator(line, named))
    numbers = given.numbers(sep)
    said = given.decimal is not None or given.thousands is not None
    return Reading(sep, encoding, numbers, doubtful=sep in "\t|" and numbers.plain and not said)


def names_in(line: str, sep: str) -> list[str]:
    """Return the names of the columns in a header line."""
    try:
        return next(csv.reader([line], delimiter=sep), [])
    except csv.Error:
        return []


def _separator(line: str, named: Sequence[str]) -> str:
    """Return the separator under which the first line has the named columns; without names, the only one in it."""
    headers = {sep: names_in(line, sep) for sep in SEPARATORS.values()}
    several = [sep for sep, names in headers.items() if len(names) > 1]
    fitting = [sep for sep in several if set(named) <= set(headers[sep])]
    if len(fitting) > 1:
        one, other = (next(word for word, sign in SEPARATORS.items() if sign == sep) for sep in fitting[:2])
        raise TableError(
            f"the header can be read with two separators, {one} and {other}; say which it is: "
            f"{Parameter('sep', one)} or {Parameter('sep', other)}."
        )
    return (fitting or sorted(several, key=lambda sep: -len(headers[sep])) or [","])[0]
