"""What a table is: long or wide, which column holds what, and what to do with cells that are missing or given twice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal, get_args

from dpsc.checks import did_you_mean, is_decimal, is_number, options, shown
from dpsc.errors import PanelError, Parameter, TableError
from dpsc.tables.dialect import UNSAID, Dialect

Missing = Literal["error", "interpolate", "midpoint", "kernel"]
Repeated = Literal["missing", "sum", "mean", "last"]
REPEATED = Parameter("repeated")
INTERPOLATE, MIDPOINT, KERNEL = (Parameter("missing", rule) for rule in ("interpolate", "midpoint", "kernel"))


def rule_for(missing: Missing | None, declared: bool) -> Missing:
    """Return the rule for missing cells: as given, else "kernel" if the periods were declared, else "error"."""
    if missing is None:
        return "kernel" if declared else "error"
    if not isinstance(missing, str) or missing not in get_args(Missing):
        raise PanelError(
            f"{Parameter('missing')} must be 'error', 'interpolate', 'midpoint' or 'kernel', not {shown(missing)}."
        )
    return missing


def require_repeated(repeated: Repeated) -> None:
    """Refuse what is not a rule for cells that are given more than once."""
    if not isinstance(repeated, str) or repeated not in get_args(Repeated):
        raise PanelError(f"{REPEATED} must be 'missing', 'sum', 'mean' or 'last', not {shown(repeated)}.")


MISSING = ("", "#N/A", "#NA", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")
PERSON, UNIT, TIME, OUTCOME = (Parameter(name, "") for name in ("person", "unit", "time", "outcome"))
WIDE = Parameter("wide", True)


@dataclass(frozen=True)
class TableSpec:
    """What a table is and how it is read, as far as that was said.

    Attributes
    ----------
    unit : str
        The column that names the units; empty if it was not said.
    time, outcome : str, optional
        The columns of periods and of numbers. A wide table has neither: ``outcome`` is then a name for its numbers.
    wide : bool
        One row per unit and one column per period; otherwise one row per unit and period.
    time_format : str, optional
        How dates are written.
    repeated : {"missing", "sum", "mean", "last"}, optional
        What a cell is that several rows give, in a wide table by naming the same unit; "missing" if it was not said.
    missing : {"error", "interpolate", "midpoint", "kernel"}, optional
        The rule for missing cells.
    periods : str, optional
        The declared periods, as they are typed.
    person : str, optional
        The column that names people, if each row is a record of a person in a unit and period.
    units : str, optional
        The declared units of people, as they are typed.
    by : str, optional
        The column of donors' segments.
    labels : str, optional
        The declared segments, as they are typed.
    dialect : Dialect
        How the file writes its table.
    """

    unit: str = ""
    time: str | None = None
    outcome: str | None = None
    wide: bool = False
    time_format: str | None = None
    repeated: Repeated | None = None
    missing: Missing | None = None
    periods: str | None = None
    person: str | None = None
    units: str | None = None
    by: str | None = None
    labels: str | None = None
    dialect: Dialect = UNSAID

    def __post_init__(self) -> None:
        require_repeated(self.repeated or "missing")
        rule_for(self.missing, declared=True)
        if self.wide and self.time is not None:
            raise TableError(
                f"{WIDE} means one column per period, so there is no {Parameter('time')} column; leave one of them out."
            )
        if self.person is None and self.units is not None:
            raise TableError(f"{Parameter('units')} belong to {Parameter('person')}, the column that names people.")
        others = ("wide", "missing", "repeated", "by", "labels")
        if self.person is not None and (name := next(filter(partial(getattr, self), others), None)):
            raise TableError(f"{Parameter(name, getattr(self, name))} is not for records of people; leave it out.")
        columns = (self.person, self.unit, self.time, None if self.wide else self.outcome, self.by)
        names = [name for name in columns if name]
        if len(set(names)) < len(names):
            among = ("person",) * (self.person is not None) + ("unit", "time")
            among += ("outcome",) * (self.by is not None)
            last = "outcome" if self.by is None else "by"
            listed = f"{', '.join(str(Parameter(name)) for name in among)} and {Parameter(last)}"
            raise TableError(f"{listed} must name different columns.")

    def complete(self) -> TableSpec:
        """Return this, or refuse it if a column that a reader must know was not said."""
        if self.person is not None:
            if self.time is None:
                raise TableError(f"records of people need {Parameter('time', 'COLUMN')}, the column of periods.")
        elif not self.wide and (self.time is None or self.outcome is None):
            name = "time" if self.time is None else "outcome"
            raise TableError(
                f"a long table (one row per unit and period) needs {Parameter(name, 'COLUMN')}; for a table "
                f"with one row per unit and one column per period say {WIDE}."
            )
        return self

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> TableSpec:
        """Return what parameters say, by their names; None and what is empty was not said."""
        said = {name: value for name, value in given.items() if value not in (None, "", False)}
        how = {field.name: said.pop(field.name) for field in fields(Dialect) if field.name in said}
        return cls(**said, dialect=Dialect(**how))

    def parts(self) -> dict[str, str | bool]:
        """Return what was said, by the names of parameters: what :meth:`of` reads.

        Examples
        --------
        >>> TableSpec("firm", wide=True, periods="2021..2023", dialect=Dialect(decimal=",")).parts()
        {'unit': 'firm', 'wide': True, 'periods': '2021..2023', 'decimal': 'comma'}
        """
        columns = ("person", "unit", "wide", "time", "outcome", "by", "labels", "time_format", "periods", "units")
        said = {name: getattr(self, name) for name in columns} | self.dialect.words()
        said |= {"missing": self.missing, "repeated": self.repeated}
        return {name: value for name, value in said.items() if value}

    def options(self) -> list[str]:
        """Return it as options of a command.

        Examples
        --------
        >>> TableSpec("--wide", "month", "cost").options()
        ['--unit=--wide', '--time', 'month', '--outcome', 'cost']
        """
        return options(self.parts())

    def python(self) -> str:
        """Return it as arguments of :func:`dpsc.scan`.

        Examples
        --------
        >>> TableSpec("firm", wide=True).python()
        "unit='firm', wide=True"
        """
        return ", ".join(Parameter(name, value).python for name, value in self.parts().items())

    @property
    def name(self) -> str:
        """The name of the outcome."""
        return self.outcome or "outcome"


NOTHING_SAID = TableSpec()


def require_header(names: Sequence[str], *, text: bool) -> None:
    """Refuse a first line that is not a header, without quoting it: it may be a donor's row."""
    if any(is_decimal(name) or _DECIMAL_COMMA.fullmatch(name) for name in names):
        raise TableError(
            "there are numbers with decimals where names of columns should be; does it have a header line?"
        )
    if any(names.count(name) > 1 and not is_number(name) for name in names):  # not quoted: perhaps a row of data
        raise TableError("two columns have the same name; rename one. Or is there no header line?")
    if not text:
        return
    if names[-1] == "":
        raise TableError("the lines end in a separator, which makes an empty last column; remove it.")
    if "" in names:
        raise TableError("there is a column without a name (saved row numbers?); remove it.")


def find(names: Sequence[str], name: str, parameter: Parameter) -> int:
    """Return the position of the column with that name, or refuse and suggest a similar name."""
    if name not in names:
        hint = did_you_mean(name, names)
        if not hint and any(map(_looks_like_data, names)):  # perhaps a row of data, which is not quoted
            raise TableError(f"there is no column {name!r} ({parameter}); does it have a header line?")
        hint = hint or f" The columns are {', '.join(map(repr, names[:12]))}."
        raise TableError(f"there is no column {name!r} ({parameter}).{hint}")
    if names.count(name) > 1:
        raise TableError(f"there are {names.count(name)} columns {name!r} ({parameter}); rename one.")
    return names.index(name)


def undecided(names: Sequence[str], time: str | None, outcome: str | None) -> str:
    """Return what to say of a table whose columns of periods and of numbers are not all known."""
    unsaid = {"the periods": TIME} if outcome is not None else {"the numbers": OUTCOME}
    unsaid = {"the periods": TIME, "the numbers": OUTCOME} if time is None and outcome is None else unsaid
    hold = "hold" if len(unsaid) > 1 else "holds"
    which = f"say which {hold} {' and '.join(unsaid)}: {', '.join(map(str, unsaid.values()))}"
    return f"there are {len(names)} columns; {which}. They are {', '.join(map(repr, names[:12]))}."


def require_period_names(names: Sequence[str], advice: str) -> None:
    """Refuse a column of a wide table that does not look like a period."""
    for name in names:
        if not any(character.isdigit() for character in name):
            raise TableError(f"the column {name!r} does not look like a period. {advice}")


def _looks_like_data(name: str) -> bool:
    return is_number(name) or name in MISSING or bool(re.match(r"^[+-]?\d{1,4}[-/., '\s]\d{1,3}", name))
