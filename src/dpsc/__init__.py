"""Differentially private synthetic control.

A custodian turns private donor rows into a private release; an analyst turns the release and a public target into a
counterfactual. Every name here is part of the public contract. Names load when first used, so that ``dpsc --help``
does not wait for numerical libraries.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpsc.algorithms.gram import GramRelease
    from dpsc.algorithms.objective import ObjectivePerturbation
    from dpsc.algorithms.output import OutputPerturbation
    from dpsc.errors import (
        BudgetError,
        DpscError,
        DpscWarning,
        LedgerError,
        PanelError,
        ParameterError,
        ReleaseError,
        UnprovenError,
    )
    from dpsc.guarantee import Guarantee
    from dpsc.ledger import Ledger
    from dpsc.panel import Panel
    from dpsc.planning import Plan, plan
    from dpsc.release import Release
    from dpsc.result import NonPrivateResult, PrivateResult, UnprovenResult
    from dpsc.synthetic import SyntheticControl

__version__ = "0.1.0"

__all__ = [
    "BudgetError",
    "DpscError",
    "DpscWarning",
    "GramRelease",
    "Guarantee",
    "Ledger",
    "LedgerError",
    "NonPrivateResult",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Panel",
    "PanelError",
    "ParameterError",
    "Plan",
    "PrivateResult",
    "Release",
    "ReleaseError",
    "SyntheticControl",
    "UnprovenError",
    "UnprovenResult",
    "__version__",
    "plan",
]

_HOME = {
    "BudgetError": "errors",
    "DpscError": "errors",
    "DpscWarning": "errors",
    "GramRelease": "algorithms.gram",
    "Guarantee": "guarantee",
    "Ledger": "ledger",
    "LedgerError": "errors",
    "NonPrivateResult": "result",
    "ObjectivePerturbation": "algorithms.objective",
    "OutputPerturbation": "algorithms.output",
    "Panel": "panel",
    "PanelError": "errors",
    "ParameterError": "errors",
    "Plan": "planning",
    "PrivateResult": "result",
    "Release": "release",
    "ReleaseError": "errors",
    "SyntheticControl": "synthetic",
    "UnprovenError": "errors",
    "UnprovenResult": "result",
    "plan": "planning",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module the first time it is used."""
    if name not in _HOME:
        raise AttributeError(f"module 'dpsc' has no attribute {name!r}")
    value = getattr(import_module(f"dpsc.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
