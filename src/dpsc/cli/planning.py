"""What ``dpsc plan`` writes and shows."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from dpsc.answers.words import number
from dpsc.cli import common, public_series
from dpsc.data import tables
from dpsc.data.dialects import UNSAID, Dialect
from dpsc.data.formats import in_file
from dpsc.errors import DpscError, Parameter, ParameterError
from dpsc.gram import settings
from dpsc.gram.algorithm import GramRelease
from dpsc.gram.kernel import Smoothness

_CALM = "Expected error of the counterfactual ({unit})"
_SHOCK = "The same, if something new hits target and donors alike after the intervention"


def settings_of(
    n: list[int],
    T: int,
    epsilon: list[float],
    delta: float,
    *,
    sites: int,
    scale: float | None,
    like: Any | None,
    smoothness: Smoothness,
    periods: str | None,
    reference: Path | None,
    outcome: str | None,
    time_format: str | None,
    dialect: Dialect = UNSAID,
) -> settings.Settings:
    """Return what the sites agree on, from the options of one plan."""
    if len(n) != 1 or len(epsilon) != 1:
        raise DpscError("--settings are for one --n, the donors of all sites, and one --epsilon; give one of each.")
    path = public_series.reference(reference, time_format, dialect)
    index = None if periods is None else tables.typed_periods(periods, path, time_format)
    values = None
    if index is not None and len(index) != T:
        raise ParameterError(f"{{it}} are {len(index)}, and --before and --after make {T}.", it=Parameter("periods"))
    if path is not None:
        if index is None:
            raise ParameterError("a reference in the settings needs {it}.", it=Parameter("periods", "'reference'"))
        with in_file(reference or ""):
            values = GramRelease(epsilon=epsilon[0], delta=delta, reference=path).reference_for(index)
    return settings.agreed(
        n[0], T, epsilon[0], delta, sites=sites, scale=scale, like=None if scale is not None else like,
        smoothness=smoothness, periods=index, reference=values, outcome=outcome,
    )  # fmt: skip


def show(table: pd.DataFrame, unit: str, needed: dict[int, float], error: float | None) -> None:
    """Print the expected errors in calm times and in a shock, and which budgets bring them down to ``error``."""
    screen = common.console()
    screen.print(_errors(table, _CALM.format(unit=unit), ""))
    screen.print()
    screen.print(_errors(table, _SHOCK, "_in_shock"))
    for n, epsilon in needed.items():
        reached = f"takes ε = {epsilon:.2g}" if math.isfinite(epsilon) else "is reached with none of these budgets"
        screen.print(f"With {n:,} donors an error of {number(error or 0)} in calm times {reached}.")
    screen.print("\nSimulated from public assumptions; no donor was touched and nothing was spent.", style="dim")


def _errors(table: pd.DataFrame, title: str, when: str) -> Table:
    """Return one row per number of donors and one column per budget."""
    shown = Table(title=title, title_justify="left", show_edge=False)
    shown.add_column("donors", justify="right")
    for epsilon in sorted(table["epsilon"].unique()):
        shown.add_column(f"ε = {epsilon:g}", justify="right")
    shown.add_column("no privacy", justify="right")
    shown.add_column("last value", justify="right")
    for n, rows in table.groupby("n"):
        rows = rows.sort_values("epsilon")
        others = (rows[f"{name}{when}"].iloc[0] for name in ("without_privacy", "last_value"))
        shown.add_row(f"{n:,}", *(number(float(v)) for v in (*rows[f"error{when}"], *others)))
    return shown


def as_json(table: pd.DataFrame, unit: str, needed: dict[int, float], written: Path | None) -> str:
    """Return a plan for programs."""
    epsilons = {str(n): epsilon if math.isfinite(epsilon) else None for n, epsilon in needed.items()}
    body = {"unit": unit, "table": table.to_dict("records"), "epsilon_for_error": epsilons}
    return json.dumps(body | ({} if written is None else {"settings": str(written)}))
