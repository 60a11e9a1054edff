"""Differentially private synthetic control.

A custodian turns private donor rows into a private release; an analyst turns the release and a public target into a
counterfactual. Every name here is part of the public contract. Names load when first used, so that ``dpsc --help``
does not wait for numerical libraries.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dpsc.version import __version__

if TYPE_CHECKING:
    from dpsc import datasets
    from dpsc.answers.report import report
    from dpsc.answers.result import NonPrivateResult, PrivateResult, UnprovenResult
    from dpsc.answers.study import Study
    from dpsc.data.donors import Donors
    from dpsc.data.panel import Panel
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
    from dpsc.gram.algorithm import GramRelease
    from dpsc.gram.planning import Plan, plan
    from dpsc.gram.release import Release
    from dpsc.gram.sources import scan
    from dpsc.ledger import Ledger
    from dpsc.privacy.guarantee import Guarantee
    from dpsc.weights.classic import SyntheticControl
    from dpsc.weights.objective import ObjectivePerturbation
    from dpsc.weights.output import OutputPerturbation

__all__ = [
    "BudgetError",
    "Donors",
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
    "Study",
    "SyntheticControl",
    "UnprovenError",
    "UnprovenResult",
    "__version__",
    "datasets",
    "plan",
    "report",
    "scan",
]

_HOME = {
    "BudgetError": "errors",
    "DpscError": "errors",
    "DpscWarning": "errors",
    "GramRelease": "gram.algorithm",
    "Guarantee": "privacy.guarantee",
    "Ledger": "ledger",
    "LedgerError": "errors",
    "NonPrivateResult": "answers.result",
    "ObjectivePerturbation": "weights.objective",
    "OutputPerturbation": "weights.output",
    "Donors": "data.donors",
    "Panel": "data.panel",
    "PanelError": "errors",
    "ParameterError": "errors",
    "Plan": "gram.planning",
    "PrivateResult": "answers.result",
    "Release": "gram.release",
    "ReleaseError": "errors",
    "Study": "answers.study",
    "SyntheticControl": "weights.classic",
    "UnprovenError": "errors",
    "UnprovenResult": "answers.result",
    "datasets": "datasets",
    "plan": "gram.planning",
    "report": "answers.report",
    "scan": "gram.sources",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module the first time it is used."""
    if name not in _HOME:
        raise AttributeError(f"module 'dpsc' has no attribute {name!r}")
    home = import_module(f"dpsc.{_HOME[name]}")
    value = home if name == _HOME[name] else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
