"""What ``dpsc plan`` writes and shows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from dpsc.analyst.plan import EPSILONS, Plan, Taking, Way
from dpsc.answers import words
from dpsc.cli import terminal
from dpsc.custodian.gram.algorithm import GramRelease
from dpsc.errors import DpscError, Parameter, ParameterError
from dpsc.ledger.budget import Budget
from dpsc.privacy.guarantee import best_guess
from dpsc.release import settings
from dpsc.release.kernel import Smoothness
from dpsc.tables import reader, series
from dpsc.tables.dialect import UNSAID, Dialect
from dpsc.tables.formats import in_file
from dpsc.tables.spec import TableSpec


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
    path = series.reference(reference, TableSpec(time_format=time_format, dialect=dialect))
    index = None if periods is None else reader.typed_periods(periods, path, time_format)
    values = None
    if index is not None and len(index) != T:
        raise ParameterError(f"{Parameter('periods')} are {len(index)}, and --before and --after make {T}.")
    if path is not None:
        if index is None:
            raise ParameterError(f"a reference in the settings needs {Parameter('periods', 'reference')}.")
        with in_file(reference or ""):
            values = GramRelease(epsilon=epsilon[0], delta=delta, reference=path).reference_for(index)
    return settings.agreed(
        n[0], T, epsilon[0], delta, sites=sites, scale=scale, like=None if scale is not None else like,
        smoothness=smoothness, periods=index, reference=values, outcome=outcome,
    )  # fmt: skip


def show(table: pd.DataFrame, unit: str) -> None:
    """Print one row per number of donors and budget, in plain words."""
    screen = terminal.console()
    shown = Table(title=f"What to expect ({unit})", title_justify="left", show_edge=False)
    for name in (
        "donors", "ε", "attacker\nguesses right", "smallest effect\nseen", "error", "error\nin a shock",
        "without\nprivacy", "without\ndonors",
    ):  # fmt: skip
        shown.add_column(name, justify="right")
    columns = [words.column(table[name]) for name in ("detectable", "error", "error_in_shock", "without_privacy",
                                                      "last_value")]  # fmt: skip
    for row, *cells in zip(table.itertuples(), *columns, strict=True):
        shown.add_row(f"{row.n:,}", f"{row.epsilon:g}", _right(row.guess), *cells)
    screen.print(shown)
    screen.print()
    for line in _LEGEND:
        screen.print(line, style="dim")


def _right(guess: float) -> str:
    """Say how often a guess is right; never always."""
    return f"{guess:.1%}" if guess < 0.9995 else "> 99.9%"


_LEGEND = (
    "Attacker: someone who knows all other donors guesses which of two equally likely records a donor has; 50% is "
    "blind.",
    "Smallest effect seen: the average effect that would have a p-value below 0.05 in 8 of 10 cases.",
    "Error: typical root mean squared error of the counterfactual. Shock: something new hits target and donors alike.",
    "Without privacy: the better of ridge and this estimator, on the raw donors. Without donors: the last value.",
    "Simulated from public assumptions; no donor was touched and nothing was spent. Real errors were within a factor "
    "of 2 of the plan for nine of ten targets of real panels, more often above than below it "
    "(docs/choosing-epsilon.md).",
)


def show_ways(taking: Taking, wished: str) -> None:
    """Say what it takes to reach what is wished, or what to change."""
    screen = terminal.console()
    n = int(taking.expected.table["n"].iloc[0])
    if not taking.ways:
        screen.print(
            f"{wished}: no budget up to ε = {EPSILONS[-1]:g} is enough, nor ten times as many donors, nor twice as "
            "many periods before the intervention. What would help: a target that averages more units.",
            style="bold",
        )
        return
    for way in taking.ways:
        screen.print(f"{wished}: {_way(way, n)}", style="bold")


def _way(way: Way, n: int) -> str:
    guess = f"an attacker would guess right {_right(best_guess(way.epsilon, 0))} of the time"
    if way.change == "budget":
        large = "; that is a large budget" if way.epsilon > 4 else ""
        return f"ε = {way.epsilon:.2g} is enough with {n:,} donors ({guess}){large}."
    what = f"{way.n:,} donors" if way.change == "donors" else f"{way.T0} periods before the intervention"
    return f"with {what}, ε = {way.epsilon:.2g} is enough ({guess})."


def show_releases(rows: list[dict[str, float]], budget: tuple[float, float], unit: str) -> None:
    """Print what each of several releases may cost, and what fewer would bring."""
    screen = terminal.console()
    title = f"Sharing ε = {budget[0]:g}, δ = {budget[1]:g} among releases from the same donors ({unit})"
    shown = Table(title=title, title_justify="left", show_edge=False)
    for name in ("releases", "ε of each", "smallest effect\nseen", "error", "error\nin a shock"):
        shown.add_column(name, justify="right")
    columns = [words.column([row[name] for row in rows]) for name in ("detectable", "error", "error_in_shock")]
    for row, *cells in zip(rows, *columns, strict=True):
        shown.add_row(f"{row['releases']:g}", f"{row['epsilon']:.3g}", *cells)
    screen.print(shown)
    screen.print(
        "\nThe ε of each is what the ledger's own accounting allows. One release answers any number of questions; only "
        "new periods or new donors need another.",
        style="dim",
    )


def as_json(table: pd.DataFrame, unit: str, more: dict[str, Any]) -> str:
    """Return a plan for programs."""
    return json.dumps({"unit": unit, "table": table.to_dict("records"), **more}, allow_nan=False)


def wish(text: str | None, value: float | None) -> str:
    """Say which effect is wished: a number, or a percentage, of what and how much that is."""
    said = f"To see an effect of {text}"
    if value is None or not str(text).endswith("%"):
        return said
    return f"{said} of the target's mean before the intervention, which is {words.number(value)}"


def share_of(text: str, level: float | None) -> float:
    """Understand an effect: a number, or a percentage of the target's mean before the intervention."""
    number_, is_percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        value = float(number_)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise ParameterError(f"{Parameter('detect')} must be a number above 0, or a percentage such as 5%.")
    if not is_percent:
        return value
    if level is None:
        raise ParameterError(f"{Parameter('detect')} in percent needs --target, whose mean it is a percentage of.")
    return value / 100 * abs(level)


def require_one_question(
    error: float | None, detect: str | None, releases: int | None, n: list[int], epsilon: list[float] | None
) -> None:
    """Refuse questions that do not go together."""
    if sum(option is not None for option in (error, detect, releases)) > 1:
        raise ParameterError("give one of --error, --detect and --releases.")
    if (error is not None or detect is not None) and len(n) != 1:
        raise ParameterError("--error and --detect are for one --n; the answer says whether more donors would help.")
    if (error is not None or detect is not None) and epsilon is not None:
        raise ParameterError("--error and --detect find the budget themselves; leave out --epsilon.")
    if releases is not None and (len(n) != 1 or epsilon is None or len(epsilon) != 1):
        raise ParameterError("--releases shares one --epsilon, the budget of all, at one --n; give one of each.")


def shared(
    releases: int, epsilon: float, delta: float, planned: Callable[[list[float]], Plan]
) -> tuple[Plan, list[dict[str, float]]]:
    """Return the plan and, for that many releases and for half of them and so on, what each may cost and show."""
    counts = [releases]
    while counts[-1] > 1:
        counts.append(counts[-1] // 2)
    budgets = {count: Budget(epsilon, delta).each(count, delta) for count in counts}
    if not all(budgets.values()):
        raise ParameterError(f"{Parameter('epsilon')} {epsilon:g} is too small to be shared among {releases}.")
    result = planned(list(budgets.values()))
    rows = []
    for count, each in budgets.items():
        found = result.table[result.table["epsilon"] == each].iloc[0]
        rows.append({"releases": count, "epsilon": each,
                     **{name: float(found[name]) for name in ("detectable", "error", "error_in_shock")}})  # fmt: skip
    return result, rows
