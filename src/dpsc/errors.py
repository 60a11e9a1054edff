"""The errors dpsc raises on purpose.

A message says what is wrong, where, and what to do. It may name columns, periods and the position
of a donor in the input; it never contains a donor's value.
"""


class DpscError(Exception):
    """Base class of every error that dpsc raises on purpose."""


class PanelError(DpscError):
    """The data do not form a panel that dpsc can use."""


class TableError(PanelError):
    """A file that cannot be read as a table, or a column of it."""


class ParameterError(DpscError):
    """A parameter has a value that makes no sense or that the guarantee does not allow."""


class UnprovenError(DpscError):
    """An algorithm without a proof of privacy was about to run on data without the caller's word."""


class ReleaseError(DpscError):
    """A release file is damaged, edited, from a newer version, or does not fit what is asked of it."""


class LedgerError(DpscError):
    """The privacy ledger cannot be used as asked: not there, locked, damaged, or it refuses a booking."""


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
