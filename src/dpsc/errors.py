"""The errors dpsc raises on purpose.

A message says what is wrong, where, and what to do. It may name columns, periods and the position of a donor in the
input; it never contains a donor's value or a password. Parameters in it are kept as values, because the library writes
``missing='interpolate'`` where the command writes ``--missing interpolate``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Parameter:
    """A parameter that a message mentions.

    Attributes
    ----------
    name : str
        As Python writes it.
    value : str, optional
        As Python writes it. Empty for a parameter that holds what the message has named before: ``(time=)``.
    typed : str, optional
        The value as it is typed after the command's option, if that is written differently.

    Examples
    --------
    >>> str(Parameter("missing", "'interpolate'")), str(Parameter("time", "")), str(Parameter("epsilon"))
    ("missing='interpolate'", 'time=', 'epsilon')
    """

    name: str
    value: str | None = None
    typed: str | None = None

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value}"


class DpscError(Exception):
    """Base class of every error that dpsc raises on purpose.

    Parameters
    ----------
    message : str
        ``{name}`` stands for the parameter given under that name.
    **parameters : Parameter

    Attributes
    ----------
    file : str or None
        The file that the message is about, shown in front of it.

    Examples
    --------
    >>> print(DpscError("give {bounds}, chosen from public knowledge.", bounds=Parameter("bounds", "(lo, hi)")))
    give bounds=(lo, hi), chosen from public knowledge.
    """

    def __init__(self, message: str, **parameters: Parameter) -> None:
        self.message, self.parameters = without_passwords(message), parameters
        super().__init__(self.message)
        self.file: str | None = None

    def text(self, write: Callable[[Parameter], str]) -> str:
        """Return the message with its parameters as ``write`` writes them."""
        text = self.message
        for name, parameter in self.parameters.items():
            text = text.replace(f"{{{name}}}", write(parameter))
        return without_passwords(text if not self.file else f"{self.file}: {text}")

    def __str__(self) -> str:
        return self.text(str)


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
