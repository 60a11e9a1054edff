"""Differentially private synthetic control.

Synthetic control estimates what would have happened without an intervention, from units without it: the donors.
dpsc protects people: each donor with its whole series (patients, customers, firms), or each person inside the donors
(regions, hospitals, shops). The custodian, who holds the records, publishes one small file, the release, with so much
random noise that it tells almost nothing about anyone protected (differential privacy; epsilon says how little).
Analysts ask this file as often as they like what would have happened to a unit without the intervention; the answers
have intervals and cost no further privacy.

Every name here is part of the public contract. Names load when first used, so that ``dpsc --help`` does not wait for
numerical libraries.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dpsc.version import __version__ as __version__

if TYPE_CHECKING:  # for type checkers; "as" makes a name public
    from dpsc import datasets as datasets
    from dpsc.analyst.plan import Plan as Plan
    from dpsc.analyst.plan import plan as plan
    from dpsc.analyst.plan_panel import PanelPlan as PanelPlan
    from dpsc.analyst.plan_panel import plan_panel as plan_panel
    from dpsc.analyst.private_panel import PrivatePanel as PrivatePanel
    from dpsc.analyst.private_panel import load as load
    from dpsc.analyst.release import Release as Release
    from dpsc.analyst.releases import Releases as Releases
    from dpsc.answers.report import report as report
    from dpsc.answers.result import NonPrivateResult as NonPrivateResult
    from dpsc.answers.result import PrivateResult as PrivateResult
    from dpsc.answers.result import UnprovenResult as UnprovenResult
    from dpsc.answers.study import Study as Study
    from dpsc.custodian.donors.donors import Donors as Donors
    from dpsc.custodian.donors.panel import Panel as Panel
    from dpsc.custodian.gram.algorithm import GramRelease as GramRelease
    from dpsc.custodian.groups.algorithm import PanelRelease as PanelRelease
    from dpsc.custodian.groups.sources import People as People
    from dpsc.custodian.scan import scan as scan
    from dpsc.custodian.weights.classic import SyntheticControl as SyntheticControl
    from dpsc.custodian.weights.objective import ObjectivePerturbation as ObjectivePerturbation
    from dpsc.custodian.weights.output import OutputPerturbation as OutputPerturbation
    from dpsc.errors import BudgetError as BudgetError
    from dpsc.errors import DpscError as DpscError
    from dpsc.errors import DpscWarning as DpscWarning
    from dpsc.errors import LedgerError as LedgerError
    from dpsc.errors import PanelError as PanelError
    from dpsc.errors import ParameterError as ParameterError
    from dpsc.errors import ReleaseError as ReleaseError
    from dpsc.errors import UnprovenError as UnprovenError
    from dpsc.ledger import Ledger as Ledger
    from dpsc.privacy.guarantee import Guarantee as Guarantee

_HOME = {
    name: module
    for module, names in {
        "analyst.plan": "Plan plan",
        "analyst.plan_panel": "PanelPlan plan_panel",
        "analyst.private_panel": "PrivatePanel load",
        "analyst.release": "Release",
        "analyst.releases": "Releases",
        "answers.result": "NonPrivateResult PrivateResult UnprovenResult",
        "answers.study": "Study",
        "custodian.donors.donors": "Donors",
        "custodian.donors.panel": "Panel",
        "custodian.gram.algorithm": "GramRelease",
        "custodian.groups.algorithm": "PanelRelease",
        "custodian.groups.sources": "People",
        "custodian.scan": "scan",
        "custodian.weights.classic": "SyntheticControl",
        "custodian.weights.objective": "ObjectivePerturbation",
        "custodian.weights.output": "OutputPerturbation",
        "datasets": "datasets",
        "errors": "BudgetError DpscError DpscWarning LedgerError PanelError ParameterError ReleaseError UnprovenError",
        "ledger": "Ledger",
        "privacy.guarantee": "Guarantee",
    }.items()
    for name in names.split()
}
__all__ = sorted(["__version__", *_HOME])
_DEPRECATED = {"report": "answers.report"}  # still there, and warn when they are called


def __getattr__(name: str) -> object:
    """Load a public name from its module the first time it is used."""
    where = _HOME.get(name) or _DEPRECATED.get(name)
    if where is None:
        raise AttributeError(f"module 'dpsc' has no attribute {name!r}")
    home = import_module(f"dpsc.{where}")
    value = home if name == where else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
