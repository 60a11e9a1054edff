"""The errors dpsc raises on purpose.

A message says what is wrong, where, and what to do. It may name columns, periods and the position of a donor in the
input; it never contains a donor's value or a password. Parameters in it stay recognisable, because Python writes
``missing='interpolate'`` where the command writes ``--missing interpolate`` and a page the name of a field.
"""

from __future__ import annotations

import re
import shlex
from ast import literal_eval
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_IN_URL = re.compile(r"(\w:/{1,2}[^\s:/@]*:).*@", re.DOTALL)  # to the last @: a password may hold one, too
_IN_OPTION = re.compile(r"(passw(?:or)?d\s*=\s*)('[^']*'|[^\s&;]+)", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """Return a text with the passwords of URLs and connection strings in it replaced by stars.

    Examples
    --------
    >>> without_passwords("no ledger at postgresql://ann:secret@db.example.org/privacy?password=secret")
    'no ledger at postgresql://ann:***@db.example.org/privacy?password=***'
    """
    return _IN_OPTION.sub(r"\1***", _IN_URL.sub(r"\1***@", text))


def typed(value: object) -> str:
    """Write a value as people type it: 155, not 155.0; 1e-6, not 1e-06; with all its digits."""
    if not isinstance(value, float):
        return str(value)
    return as_people_write(repr(float(value)).removesuffix(".0"))


def as_people_write(number: str) -> str:
    """Write the exponent of a number without needless zeros."""
    return re.sub(r"e([+-])0+", r"e\1", number)


@dataclass(frozen=True)
class Parameter:
    """A parameter that a message mentions. Written into a text it stays one, until the text is shown.

    Attributes
    ----------
    name : str
        As Python writes it.
    value : str, number, bool or tuple of names, optional
        Empty for a parameter that holds what the message has named before: ``(time=)``.

    Examples
    --------
    >>> rule, limits = Parameter("missing", "interpolate"), Parameter("bounds", ("lo", "hi"))
    >>> rule.python, limits.python, Parameter("time", "").python, Parameter("epsilon").python
    ("missing='interpolate'", 'bounds=(lo, hi)', 'time=', 'epsilon')
    >>> rule.option, limits.option, Parameter("time_format", "%d %m").option, Parameter("wide", True).option
    ('--missing interpolate', '--bounds LO HI', "--time-format '%d %m'", '--wide')
    >>> Parameter("person_bound", 155.0).option, Parameter("delta", 1e-6).option
    ('--person-bound 155', '--delta 1e-6')
    >>> rendered(f"give {rule} and {limits}", lambda parameter: parameter.option)
    'give --missing interpolate and --bounds LO HI'
    """

    name: str
    value: str | float | bool | tuple[str, ...] | None = None

    @property
    def python(self) -> str:
        """The parameter as Python writes it."""
        if self.value is None:
            return self.name
        if isinstance(self.value, tuple):
            return f"{self.name}=({', '.join(self.value)})"
        return f"{self.name}={self.value!r}" if self.value != "" else f"{self.name}="

    @property
    def option(self) -> str:
        """The parameter as an option of a command."""
        return f"--{self.name.strip('_').replace('_', '-')} {self.typed}".rstrip()

    @property
    def typed(self) -> str:
        """The value as somebody types it."""
        if self.value in (None, True):
            return ""
        if isinstance(self.value, tuple):
            return " ".join(self.value).upper()
        return shlex.quote(typed(self.value)) if self.value else ""

    def __str__(self) -> str:
        return f"{_BEGIN}{self.name}={self.value!r}{_END}"


# Two characters that Unicode reserves for a program's own use: the name of a column or file does not have them, and
# where one has, it is shown with them written out.
_BEGIN, _END = "\ufdd0", "\ufdd1"
_PARAMETER = re.compile(rf"{_BEGIN}(\w+)=([^{_BEGIN}{_END}]*){_END}")


def mentioned(text: str) -> list[Parameter]:
    """Return the parameters that a text mentions, in order."""
    return [Parameter(name, _value(written)) for name, written in _PARAMETER.findall(text)]


def rendered(text: str, write: Callable[[Parameter], str] = lambda parameter: parameter.python) -> str:
    """Return a text with the parameters that it mentions as ``write`` writes them."""
    return _PARAMETER.sub(lambda found: write(Parameter(found[1], _value(found[2]))), text)


def _value(written: str) -> Any:
    return float(written) if written in ("inf", "-inf", "nan") else literal_eval(written)


class DpscError(Exception):
    """Base class of every error that dpsc raises on purpose.

    Attributes
    ----------
    message : str
        With its parameters still recognisable; see :func:`rendered`.
    file : str or None
        The file that the message is about, shown in front of it.

    Examples
    --------
    >>> print(DpscError(f"give {Parameter('bounds', ('lo', 'hi'))}, chosen from public knowledge."))
    give bounds=(lo, hi), chosen from public knowledge.
    """

    def __init__(self, message: str) -> None:
        self.message = without_passwords(message)
        super().__init__(self.message)
        self.file: str | None = None

    def text(self, write: Callable[[Parameter], str]) -> str:
        """Return the message with its parameters as ``write`` writes them."""
        text = rendered(self.message, write)
        return without_passwords(text if not self.file else f"{self.file}: {text}")

    def __str__(self) -> str:
        return self.text(lambda parameter: parameter.python)


class PanelError(DpscError):
    """The data do not form a panel that dpsc can use."""


class UnorderedError(PanelError):
    """The periods are text whose alphabetical order is not their order in time.

    Attributes
    ----------
    label : str
        One of these labels.
    """

    def __init__(self, label: str) -> None:
        super().__init__(
            f"the period label {label!r} does not sort in time order as text; convert the times first, for example "
            "with pd.to_datetime(..., format=...), pd.PeriodIndex(...) or an ordered pd.Categorical."
        )
        self.label = label


class TableError(PanelError):
    """A file that cannot be read as a table, or a column of it."""


class ParameterError(DpscError):
    """A parameter has a value that makes no sense or that the guarantee does not allow."""


class UnwiseError(ParameterError):
    """What was asked for is possible, but protects or teaches nobody; ``i_know=True`` goes on all the same."""


class UnprovenError(DpscError):
    """An algorithm without a proof of privacy was called on data without ``unproven=True``."""


class ReleaseError(DpscError):
    """A release file is damaged, edited, from a newer version, or does not fit what is asked of it."""


class LedgerError(DpscError):
    """The privacy ledger cannot be used: it is not there, locked or damaged, or it refuses a booking."""


class BudgetError(LedgerError):
    """A booking would exceed a data set's budget.

    Attributes
    ----------
    requested, remaining, difference : float
        Epsilons at the delta of the request; ``difference`` is how much too large the request was.
    """

    def __init__(self, message: str, *, requested: float, remaining: float) -> None:
        super().__init__(message)
        self.requested, self.remaining, self.difference = requested, remaining, requested - remaining


class DpscWarning(UserWarning):
    """Something public that the user should know. Never about donors."""
