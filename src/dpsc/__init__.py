"""Differentially private synthetic control.

A custodian turns private donor rows into a private release; an analyst turns the release and a public target into a
counterfactual. Every name here is part of the public contract.
"""

from dpsc.algorithms.objective import ObjectivePerturbation
from dpsc.algorithms.output import OutputPerturbation
from dpsc.errors import DpscError, PanelError, ParameterError, UnprovenError
from dpsc.guarantee import Guarantee
from dpsc.panel import Panel
from dpsc.result import NonPrivateResult, PrivateResult, UnprovenResult
from dpsc.synthetic import SyntheticControl

__version__ = "0.1.0"

__all__ = [
    "DpscError",
    "Guarantee",
    "NonPrivateResult",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Panel",
    "PanelError",
    "ParameterError",
    "PrivateResult",
    "SyntheticControl",
    "UnprovenError",
    "UnprovenResult",
    "__version__",
]
