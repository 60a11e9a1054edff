"""What to do with cells that are missing, or given more than once: public choices, made without looking at a donor."""

from __future__ import annotations

from typing import Literal, get_args

from dpsc.checks import shown
from dpsc.errors import PanelError, Parameter

Missing = Literal["error", "interpolate", "midpoint", "kernel"]
Repeated = Literal["missing", "sum", "mean", "last"]
REPEATED = Parameter("repeated")
INTERPOLATE, MIDPOINT, KERNEL = (Parameter("missing", f"'{rule}'") for rule in ("interpolate", "midpoint", "kernel"))


def rule_for(missing: Missing | None, declared: bool) -> Missing:
    """Return the rule for missing cells: as given, else "kernel" if the periods were declared, else "error"."""
    if missing is None:
        return "kernel" if declared else "error"
    if not isinstance(missing, str) or missing not in get_args(Missing):
        raise PanelError(
            f"{{missing}} must be 'error', 'interpolate', 'midpoint' or 'kernel', not {shown(missing)}.",
            missing=Parameter("missing"),
        )
    return missing


def require_repeated(repeated: Repeated) -> None:
    """Refuse what is not a rule for cells that are given more than once."""
    if not isinstance(repeated, str) or repeated not in get_args(Repeated):
        raise PanelError(
            f"{{repeated}} must be 'missing', 'sum', 'mean' or 'last', not {shown(repeated)}.", repeated=REPEATED
        )
