"""``dpsc plan``: the error to expect, before any budget is spent and without touching a donor."""

from __future__ import annotations

import json as js
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer
from rich.table import Table as Grid
from rich.text import Text

from dpsc import files
from dpsc.cli import terminal
from dpsc.cli.options import (
    A_DELTA,
    A_STATISTIC,
    Force,
    Json,
    Knowledge,
    Periods,
    SegmentOptions,
    TableOptions,
    command,
    option,
    require_for_people,
)
from dpsc.errors import DpscError, PanelError, Parameter, ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from dpsc.analyst.plan import Plan, Taking
    from dpsc.release.settings import Settings
    from dpsc.tables.spec import TableSpec
    from dpsc.types import JsonObject, Times

_in_groups = partial(option, panel="People in groups (instead of donors)")
_EACH = ("detectable", "error", "error_in_shock")  # of which ranges are shown


@dataclass(frozen=True, kw_only=True)
class Asked:
    """How many donors there are, and which budgets."""

    n: list[int] = option("How many donors, at all sites together. May be repeated.", "--n", default=())
    epsilon: list[float] | None = option("A budget. May be repeated; 0.5, 1, 2, 4 by default.")
    delta: float = option(A_DELTA, default=1e-6)
    averages: int = option("How many units the target is the average of.", min=1, default=1)


@dataclass(frozen=True, kw_only=True)
class Dates:
    """Which periods there are, or how many; --treatment-time says which of them are before the intervention."""

    periods: Periods = None
    before: int = option(
        "Instead of dates: how many periods are before the intervention.", default=0, show_default=False, min=0
    )
    after: int = option(
        "Instead of dates: how many periods there are from the intervention on.",
        default=0,
        show_default=False,
        min=0,
    )


@dataclass(frozen=True)
class When:
    """The periods of a plan.

    Attributes
    ----------
    T0, after : int
        Periods before the intervention, and from it on; 0 if that is not known.
    T : int
        All periods; 0 if that is not known.
    index : Index or None
        The periods, as they were declared.
    history : Series or None
        The target before the intervention.
    """

    T0: int
    after: int
    T: int
    index: Times | None
    history: pd.Series[float] | None

    @classmethod
    def of(cls, dates: Dates, knowledge: Knowledge, spec: TableSpec) -> When:
        """Understand what was said; a target that goes on after the intervention shows the periods by itself."""
        from dpsc.periods.match import aligned, first_treated
        from dpsc.tables import reader, series
        from dpsc.tables.formats import in_file

        periods, treated, index = dates.periods, knowledge.like_before, None
        target = series.like(knowledge.like, None, spec, alone=True)
        if periods is not None and not periods.isdecimal():
            index = reader.typed_periods(periods, series.reference(knowledge.reference, spec), spec.time_format)
        T = dates.before + dates.after
        T = (int(periods) if index is None else len(index)) if periods is not None else T
        T0, after = dates.before, dates.after
        if T0 or after:
            T0, after = T0 or max(0, T - after), after or max(0, T - T0)
        if treated is not None:
            known, date = index if index is not None or target is None else target.index, Parameter("treatment_time")
            if wrong := next((name for name in ("before", "after") if getattr(dates, name)), None):
                raise ParameterError(f"give {date} or {Parameter(wrong)}, not both.")
            if known is None:
                raise ParameterError(f"{date} needs the periods: {Parameter('periods', 'FIRST..LAST')}.")
            try:
                T0 = first_treated(known, treated, time_format=spec.time_format)
            except PanelError as problem:
                more = "" if index is not None else f" Or say all periods: {Parameter('periods', 'FIRST..LAST')}."
                raise ParameterError(problem.message + more) from None
            T, after = len(known), len(known) - T0
            if T0 == 0:
                raise ParameterError(f"{Parameter('treatment_time', treated)} leaves no period before it.")
        elif (T0 or after) and T0 + after != T:
            raise ParameterError(f"{Parameter('periods')} are {T}, and --before and --after make {T0 + after}.")
        if target is None or index is None:
            return cls(T0, after, T, index, None if target is None else target.iloc[: T0 or None])
        with in_file(knowledge.like or ""):
            history = aligned(target, index, whole="declared periods", spare=True)[0].iloc[: T0 or None]
        return cls(T0, after, T, index, history.dropna())

    def require(self, asked: Asked) -> None:
        """Refuse a plan of nothing."""
        if asked.n and self.T0 and self.after:
            return
        dates = f"{Parameter('periods', 'FIRST..LAST')} {Parameter('treatment_time', 'PERIOD')}"
        missing = f"{dates} (or --before and --after)" if asked.n else str(Parameter("n"))
        raise ParameterError(
            f"{missing} is needed. A plan for donors takes {Parameter('n')} and the periods, by their dates or by how "
            f"many they are; one for people in groups takes {Parameter('units')}, {Parameter('people')} and "
            f"{Parameter('periods')}."
        )


@dataclass(frozen=True, kw_only=True)
class InGroups:
    """People inside few units, instead of donors: the table itself is released."""

    units: int | None = _in_groups("How many units.")
    people: int | None = _in_groups("People in a usual cell: a unit in a period.")
    statistic: str | None = _in_groups(A_STATISTIC)
    bounds: tuple[float, float] | None = _in_groups("Public bounds of a person's value in a cell.", metavar="LO HI")
    person_bound: list[float] | None = _in_groups(
        "A public bound on all values of a person together (the root of the sum of their squares). May be repeated."
    )
    cells_per_period: int = _in_groups("In how many units a person counts in one period.", default=1)
    cells_per_person: int | None = _in_groups("In how many cells a person counts over all periods.")
    usual: float | None = _in_groups(
        "A usual value of the outcome; by default the mean of the target, or of the bounds."
    )
    change: float | None = _in_groups(
        "Instead of --target, how much the target usually changes from one period to the next."
    )
    lengths: tuple[float, float] | None = _in_groups(
        "What people's values are together, from public knowledge: half of the people are below the first number, nine "
        "in ten below the second. It says what a bound would cut.",
        metavar="HALF MOST",
    )
    monthly: int | None = _in_groups(
        "The panel grows by one period in each of so many releases, which share the budget."
    )


@dataclass(frozen=True, kw_only=True)
class Question:
    """What it takes to reach something, and what is known from a pilot."""

    error: float | None = option("Say what it takes to make an error no larger than this.")
    detect: str | None = option(
        "Say what it takes to see an average effect of this size: a number, or 5% of the target's mean before the "
        "intervention."
    )
    pilot: Path | None = option(
        "A release of the same donors at a small budget: it tells how closely they follow the target, and narrows the "
        "range of the smallest effect."
    )
    releases: int | None = option(
        "How many releases share --epsilon, such as one a quarter. With --detect or --error: each must show it, and "
        "the budget of all is said.",
        min=2,
        max=1000,
    )

    def require_one(self, asked: Asked) -> None:
        """Refuse questions that do not go together."""
        budget = self.error is not None or self.detect is not None
        if self.error is not None and self.detect is not None:
            raise ParameterError("give one of --error and --detect.")
        if self.pilot is not None and (budget or self.releases is not None):
            raise ParameterError("--pilot is for budgets of one release; leave out --error, --detect and --releases.")
        if budget and len(asked.n) != 1:
            raise ParameterError(
                "--error and --detect are for one --n; the answer says whether more donors would help."
            )
        if budget and asked.epsilon is not None:
            raise ParameterError("--error and --detect find the budget themselves; leave out --epsilon.")
        if self.releases is not None and not budget and (len(asked.n) != 1 or len(asked.epsilon or ()) != 1):
            raise ParameterError("--releases shares one --epsilon, the budget of all, at one --n; give one of each.")


@dataclass(frozen=True, kw_only=True)
class Assumed:
    """What donors are assumed to be like, and how many panels are simulated."""

    rank: int = option("Assumed: how many factors the donors share.", default=3)
    signal_to_noise: float | None = option(
        "Assumed: the size of what donors share over that of what each has alone; by default what is likely "
        "after the target's history."
    )
    runs: int | None = option("How many panels to simulate; by default some seconds' worth.", min=1)


@dataclass(frozen=True, kw_only=True)
class Agreed:
    """What several sites agree on."""

    settings: Path | None = option("Also write what sites must agree on, for dpsc release --settings.")
    segments: int | None = option(
        "Into how many equal segments donors are divided: the plan says how small one may be.",
        min=2,
        max=63,
    )
    sites: int = option("At how many sites the donors are; their releases are added up.", min=1, default=1)


@command(
    "plan",
    "dpsc plan --n 600 --target clinic.csv --treatment-time 2023-04 --averages 40",
    "dpsc plan --units 40 --people 300 --periods 36 --after 12 --bounds 0 300 --change 4",
)
def plan(
    asked: Asked,
    dates: Dates,
    knowledge: Knowledge,
    groups: InGroups,
    table: TableOptions,
    question: Question,
    assumed: Assumed,
    agreed: Agreed,
    divided: SegmentOptions,
    out: Path | None = option("The folder for the curves and the table.", "--out", "-o", metavar="FOLDER"),
    force: Force = False,
    json: Json = False,
) -> None:
    """Say what a release would show, from public numbers alone: the effect, the error, and what it takes."""
    spec = table.spec()
    when = When.of(dates, knowledge, spec)
    if groups.units is not None:
        require_for_people({name: getattr(knowledge, name) for name in ("scale", "smoothness", "reference")})
        usual = {"averages": 1, "rank": 3, "sites": 1}
        for_donors = {"n": tuple(asked.n) or None, "averages": asked.averages, "out": out} | asdict(divided)
        for_donors |= asdict(question) | asdict(replace(assumed, runs=None)) | asdict(agreed)  # nothing is simulated
        require_for_people({name: value for name, value in for_donors.items() if value != usual.get(name)})
        _of_people(asked, groups, when, json)
        return
    when.require(asked)
    (known,) = knowledge.each(1)
    if agreed.settings is None and (divided.by or divided.labels):
        raise ParameterError(
            f"{Parameter('by')} and {Parameter('labels')} are for {Parameter('settings', 'FILE')}; to ask how small a "
            f"segment may be, say how many there are: {Parameter('segments', 5)}."
        )
    if agreed.settings is None and (knowledge.scale or knowledge.reference is not None):
        wrong = Parameter("scale" if knowledge.scale else "reference")
        raise ParameterError(f"{wrong} is for {Parameter('settings', 'FILE')}; leave it out.")
    if agreed.segments is not None and len(asked.n) != 1:
        raise ParameterError(f"{Parameter('segments')} are for one {Parameter('n')}; give one.")
    from dpsc.analyst.plan import default_runs, what_it_takes
    from dpsc.analyst.plan import plan as expected
    from dpsc.analyst.release import Release

    for path in (out, agreed.settings):
        terminal.keep_apart(path, knowledge.like, knowledge.reference, question.pilot)
    history, wished = when.history, None
    if question.detect is not None:
        wished = _share_of(question.detect, None if history is None else float(history.mean()))
    question.require_one(asked)
    sizes, budgets = (when.T0, when.after), asked.epsilon or [0.5, 1.0, 2.0, 4.0]
    options: dict[str, Any] = {
        **asdict(assumed),
        "smoothness": knowledge.smoothness or "high",
        "averages": asked.averages,
        "sites": agreed.sites,
        "target": history,
    }
    place = agreed.settings
    writing = nullcontext() if place is None else terminal.output_file(place, force, "--settings")
    searched = question.error is not None or wished is not None
    panels = None if searched else assumed.runs or default_runs(sum(sizes))  # a search takes as many as it needs
    with writing as file, terminal.progress("simulating panels", panels) as advance:
        if file is not None:
            _settings(asked, agreed, divided, spec, when, known).save(file.place)
        options["on_progress"] = advance
        taking = rows = None
        if searched:
            taking = what_it_takes(
                asked.n[0], *sizes, error=question.error, detect=wished, delta=asked.delta, **options
            )
            result = taking.expected
        elif question.releases is not None:
            planned = partial(expected, asked.n, *sizes, delta=asked.delta, **options)
            result, rows = _shared(question.releases, budgets[0], asked.delta, planned)
        else:
            n = asked.n if agreed.segments is None else [*asked.n, max(1, asked.n[0] // agreed.segments)]
            pilot = None if question.pilot is None else Release.load(question.pilot)
            result = expected(n, *sizes, budgets, asked.delta, pilot=pilot, **options)
    if out is not None:
        _write(out, force, result)
    smallest = None if agreed.segments is None else _smallest(asked, agreed, when, knowledge.smoothness, budgets)
    if json:
        more: JsonObject = {}
        if taking is not None:
            together = _budgets_of_all(taking, question.releases, asked.delta)
            more["ways"] = [asdict(way) | of_all for way, of_all in zip(taking.ways, together, strict=True)]
        more |= {} if rows is None else {"releases": rows}
        more |= {} if smallest is None else {"segments": smallest}
        more |= {} if place is None else {"settings": str(place)}
        typer.echo(js.dumps({"unit": result.unit, "table": result.table.to_dict("records"), **more}, allow_nan=False))
        return
    if taking is not None:
        _show_ways(taking, _wish(question, wished))
        for way, of_all in zip(taking.ways, _budgets_of_all(taking, question.releases, asked.delta), strict=True):
            for budget in of_all.values():
                told = f"{question.releases} releases at ε = {way.epsilon:.2g} each need a budget of ε = {budget:g}"
                terminal.console().print(f"{told} at δ = {asked.delta:g} together.", style="bold")
    if smallest is not None:
        _show_segments(smallest, asked.n[0], agreed.segments or 1)
    if rows is None:
        _show(result, question.pilot is not None)
    else:
        _show_releases(rows, (budgets[0], asked.delta), result.unit)
    if place is not None:
        terminal.console().print(f"\nSettings for all sites are in {place}", soft_wrap=True)
    if out is not None:
        terminal.console().print(f"\nOpen {out / 'plan.png'}", soft_wrap=True)


def _of_people(asked: Asked, groups: InGroups, when: When, json: bool) -> None:
    """Plan a private panel: the noise of its cells, and what could be done against it."""
    from dpsc.analyst.plan_panel import plan_panel

    if groups.people is None:
        raise ParameterError(f"{Parameter('people')} is needed: how many people a usual cell has.")
    T, series = when.T, when.history
    if T == 0:
        raise ParameterError(f"{Parameter('periods')} is needed: how many there are, or which.")
    after = when.after if when.T0 and when.after else min(6, max(1, T // 3))
    planned = plan_panel(
        groups.units or 0,
        groups.people,
        T,
        after,
        epsilon=asked.epsilon or (0.5, 1.0, 2.0),
        delta=asked.delta,
        statistic=groups.statistic or "mean",  # type: ignore[arg-type]
        bounds=groups.bounds,
        person_bound=groups.person_bound or None,
        cells_per_period=groups.cells_per_period,
        cells_per_person=groups.cells_per_person,
        usual=groups.usual,
        change=groups.change,
        target=series,
        monthly=groups.monthly,
        lengths=groups.lengths,
    )
    middle = planned.table["epsilon"].iloc[len(planned.table) // 2]
    ways = planned.ways(float(middle), None if not groups.person_bound else groups.person_bound[0])
    finding = planned.finding(float(middle))
    if json:
        found = {"table": planned.table.to_dict("records"), "ways": ways.reset_index().to_dict("records")}
        found |= {"finding_the_person_bound": finding}  # type: ignore[dict-item]
        typer.echo(js.dumps(found, allow_nan=False))
        return
    unit = "the outcome's units" if series is None else str(series.name)
    heads = {
        "epsilon": "ε",
        "epsilon_each": "ε of each\nrelease",
        "guess": "attacker\nright",
        "person_bound": "at most\nfor a person",
        "people_cut": "people\ncut",
        "kept": "kept\nof all",
        "noise": "noise\nof a cell",
        "noise_over_change": "over the\nusual change",
        "fewest_people": "people\nneeded",
        "detectable": "smallest\neffect\nseen",
        "error": "error",
    }
    if groups.lengths is not None:  # what still fits on a screen
        del heads["guess"], heads["fewest_people"], heads["error"]
    screen, T0 = terminal.console(), T - after
    title = f"{groups.units} units of {groups.people:,} people, {T0} + {after} periods ({unit})"
    shown: list[Grid | Text] = [_panel_grid(title, planned.table, heads)]
    ways_heads = {"change": ""} | {name: heads[name] for name in ("kept", "noise", "noise_over_change")}
    ways_heads |= {name: heads[name] for name in ("fewest_people", "detectable", "error") if name in heads}
    shown.append(_panel_grid(f"What else could be done at ε = {middle:g}", ways, ways_heads))
    if finding is not None:
        shown.append(Text(_FINDING.format(epsilon=middle, more=finding["more_noise"], **finding)))
    terminal.blocks(screen, *shown, Text("\n".join(_LEGEND_OF_PANELS), "dim"))


def _panel_grid(title: str, table: pd.DataFrame, heads: dict[str, str]) -> Grid:
    from dpsc.answers import words

    table = table.reset_index() if "change" in heads else table
    kept = {name: head for name, head in heads.items() if name in table}
    grid = Grid(title=title, title_justify="left", show_edge=False)
    cells = []
    for name, head in kept.items():
        justify: Literal["left", "right"] = "left" if name == "change" else "right"
        grid.add_column(head, justify=justify, no_wrap=name == "guess" or f"{name}_low" in table)
        if name in ("people_cut", "kept"):
            cells.append([f"{value:.0%}" for value in table[name]])
        elif name == "guess":
            cells.append([_right(value) for value in table[name]])
        elif name in ("change", "epsilon"):
            cells.append([value if isinstance(value, str) else f"{value:g}" for value in table[name]])
        elif f"{name}_low" in table:
            cells.append(_ranges(table, name))
        elif name == "fewest_people":
            cells.append([f"{math.ceil(value):,}" if value else "–" for value in table[name]])
        else:
            cells.append(words.column(table[name]))
    for row in zip(*cells, strict=True):
        grid.add_row(*row)
    return grid


_FINDING = (
    "If you do not know a bound on a person, dpsc release --person-bound-quantile 0.5 finds one privately: {more:.1%} "
    "more noise than if it were known; at ε = {epsilon:g} it takes about {fewest_people:,.0f} people in all."
)
_LEGEND_OF_PANELS = (
    "Attacker: someone who knows all other people guesses which of two equally likely sets of records a person has; "
    "50% is blind.",
    "Noise of a cell: one standard deviation. Over the usual change from one period to the next: up to 1, privacy "
    "costs little; above 2, do one of the things above. It needs --target or --change.",
    "People needed: a cell with fewer is marked as having too few people. Kept of all: what a bound on a person "
    "leaves.",
    "Smallest effect seen: the average effect that would have a p-value below 0.05 in 8 of 10 cases. Error: root mean "
    "squared error of the counterfactual. Ranges hold what comes in about 8 of 10 cases.",
)


def _smallest(
    asked: Asked, agreed: Agreed, when: When, smoothness: str | None, budgets: Sequence[float]
) -> list[dict[str, float]]:
    """Return how many donors a segment needs at each budget, so that its noise lets it be read by itself."""
    from dpsc.custodian.gram.algorithm import GramRelease
    from dpsc.release.segments import READABLE

    n, T = asked.n[0], when.T
    found = []
    for epsilon in budgets:
        make = GramRelease(epsilon=epsilon, delta=asked.delta, smoothness=smoothness or "high")  # type: ignore[arg-type]
        noise = make.noise_share(n, T) * n * math.sqrt(agreed.sites)
        found.append({"epsilon": epsilon, "smallest": math.ceil(READABLE * noise)})
    return found


def _show_segments(smallest: list[dict[str, float]], n: int, segments: int) -> None:
    """Say how small a segment may be, and what the rows of the table below are."""
    needs = ", ".join(f"{row['smallest']:,} at ε = {row['epsilon']:g}" for row in smallest)
    each, times = max(1, n // segments), math.sqrt(segments + 1)
    told = (
        f"{segments} segments, and one for other donors, cost what one costs. By itself a segment says nothing with "
        f"fewer donors than about {needs}. Below, {each:,} donors are one of {segments} equal segments asked by "
        f"itself, if they are as alike as all {n:,} are. All segments asked together have {times:.1f} times the noise "
        f"of {n:,} undivided donors."
    )
    terminal.console().print(told + "\n", soft_wrap=False)


def _settings(
    asked: Asked, agreed: Agreed, divided: SegmentOptions, spec: TableSpec, when: When, known: JsonObject
) -> Settings:
    """Return what the sites agree on, from the options of one plan."""
    from dpsc.custodian.gram.algorithm import GramRelease
    from dpsc.release import settings
    from dpsc.release.segments import Segments
    from dpsc.tables import series
    from dpsc.tables.formats import in_file

    if len(asked.n) != 1 or len(asked.epsilon or ()) != 1:
        raise DpscError("--settings are for one --n, the donors of all sites, and one --epsilon; give one of each.")
    n, (epsilon,), index, values = asked.n[0], asked.epsilon or [], when.index, None
    path = series.reference(known["reference"], spec)
    if path is not None:
        if index is None:
            raise ParameterError(f"a reference in the settings needs {Parameter('periods', 'reference')}.")
        with in_file(known["reference"] or ""):
            values = GramRelease(epsilon=epsilon, delta=asked.delta, reference=path).reference_for(index)
    return settings.agreed(
        n,
        when.T,
        epsilon,
        asked.delta,
        sites=agreed.sites,
        scale=known["scale"],
        like=None if known["scale"] is not None else when.history,
        smoothness=known["smoothness"] or "high",
        periods=index,
        reference=values,
        outcome=spec.outcome,
        segments=Segments.declared(divided.by, divided.labels),
    )


def _write(out: Path, force: bool, expected: Plan) -> None:
    """Write the curves and the table."""
    from dpsc.answers import figures as plot
    from dpsc.answers.figures.plan import plan_curves

    with terminal.output_folder(out, force) as output, terminal.working("drawing"):
        table = expected.table
        figure = plot.figure_of(plan_curves(table, expected.unit, plot.Sheet()))
        text = files.csv_text(table.columns, table.itertuples(index=False, name=None))
        files.write(output.place / "plan.csv", text)
        for kind in ("png", "svg"):
            files.write(output.place / f"plan.{kind}", plot.as_bytes(figure, kind))


def _show(expected: Plan, pilot: bool) -> None:
    """Print one row per number of donors and budget, in plain words."""
    from dpsc.answers.words import number

    table, heads = expected.table, ["donors", "ε", "attacker\nguesses right"]
    shown = _grid(f"What to expect ({expected.unit})", heads, ["smallest effect\nseen", "error", "error\nin a shock"])
    for row, *cells in zip(table.itertuples(), *(_ranges(table, name) for name in _EACH), strict=True):
        shown.add_row(f"{row.n:,}", f"{row.epsilon:g}", _right(row.guess), *cells)
    without = ", ".join(
        f"{number(e)} with {n:,} donors" for n, e in table.groupby("n")["without_privacy"].first().items()
    )
    last = number(float(table["last_value"].iloc[0]))
    told = f"The error without privacy: {without}. Without donors, by the target's last value: {last}."
    terminal.blocks(terminal.console(), shown, Text(told), Text("\n".join((*_LEGEND, _FROM[pilot])), "dim"))


def _grid(title: str, heads: Sequence[str], ranges: Sequence[str]) -> Grid:
    grid = Grid(title=title, title_justify="left", show_edge=False)
    for head in (*heads, *ranges):
        grid.add_column(head, justify="right", no_wrap=head in ranges)
    return grid


def _ranges(table: pd.DataFrame, name: str) -> list[str]:
    """Return a cell for each row: the range, and below it what is likely."""
    from dpsc.answers import words

    ends = zip(table[f"{name}_low"], table[name], table[f"{name}_high"], strict=True)
    return [words.likely(*each).replace(", ", "\n") for each in ends]


def _right(guess: float) -> str:
    """Say how often a guess is right; never always."""
    return f"{guess:.1%}" if guess < 0.9995 else "> 99.9%"


_LEGEND = (
    "Attacker: someone who knows all other donors guesses which of two equally likely records a donor has; 50% is "
    "blind.",
    "Ranges hold what comes in about 8 of 10 cases.",
    "Smallest effect seen: the average effect that would have a p-value below 0.05 in 8 of 10 cases.",
    "Error: root mean squared error of the counterfactual. Shock: something new hits target and donors alike.",
    "Without privacy: the better of ridge and this estimator, on the raw donors.",
)
_FROM = {
    False: "Simulated from public assumptions; no donor was touched and nothing was spent. On real panels 78% of "
    "errors and 76% of smallest effects were in their range (docs/guides/choosing-epsilon.md).",
    True: "The pilot tells how closely these donors follow the target. To read it cost nothing; dpsc ledger show says "
    "what is left of the budget. On real panels 79% of smallest effects were in such a range.",
}


def _show_ways(taking: Taking, wished: str) -> None:
    """Say what it takes to reach what is wished, or what to change."""
    from dpsc.analyst.plan import EPSILONS
    from dpsc.privacy.guarantee import best_guess

    n = int(taking.expected.table["n"].iloc[0])
    said = []
    for way in taking.ways:
        guess = f"an attacker would guess right {_right(best_guess(way.epsilon, 0))} of the time"
        enough = f"ε = {way.epsilon:.2g} is likely enough"
        if way.change == "budget":
            large = "; that is a large budget" if way.epsilon > 4 else ""
            said.append(f"{enough} with {n:,} donors ({guess}){large}.")
        else:
            donors = way.change == "donors"
            what = f"{way.n:,} donors" if donors else f"{way.T0} periods before the intervention"
            said.append(f"with {what}, {enough} ({guess}).")
    nothing = (
        f"no budget up to ε = {EPSILONS[-1]:g} is likely enough, nor ten times as many donors, nor twice as many "
        "periods before the intervention. What would help: a target that averages more units."
    )
    for line in said or [nothing]:
        terminal.console().print(f"{wished}: {line}", style="bold")


def _budgets_of_all(taking: Taking, releases: int | None, delta: float) -> list[dict[str, float]]:
    """Return for each way the budget that so many releases need; nothing if it is about one."""
    from dpsc.ledger.budget import needed

    return [{} if releases is None else {"budget_of_all": needed(releases, way.epsilon, delta)} for way in taking.ways]


def _wish(question: Question, wished: float | None) -> str:
    """Say what is to be reached; of a percentage, also what it is of and how much."""
    from dpsc.answers import words

    if question.error is not None:
        return f"An error of {words.number(question.error)}"
    said = f"To see an effect of {question.detect}"
    if wished is None or not said.endswith("%"):
        return said
    return f"{said} of the target's mean before the intervention, which is {words.number(wished)}"


def _show_releases(rows: list[dict[str, float]], budget: tuple[float, float], unit: str) -> None:
    """Print what each of several releases may cost, and what fewer would bring."""
    import pandas as pd

    title = f"Sharing ε = {budget[0]:g}, δ = {budget[1]:g} among releases from the same donors ({unit})"
    shown = _grid(title, ["releases", "ε of each"], ["smallest effect\nseen", "error", "error\nin a shock"])
    table = pd.DataFrame(rows)
    for row, *cells in zip(rows, *(_ranges(table, name) for name in _EACH), strict=True):
        shown.add_row(f"{row['releases']:g}", f"{row['epsilon']:g}", *cells)
    told = (
        "Ranges hold what comes in about 8 of 10 cases. The ε of each is what the ledger's own accounting allows. One "
        "release answers any number of questions; only "
        "new periods or new donors need another."
    )
    terminal.blocks(terminal.console(), shown, Text(told, "dim"))


def _share_of(text: str, level: float | None) -> float:
    """Understand an effect: a number, or a percentage of the target's mean before the intervention."""
    is_percent = text.strip().endswith("%")
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise ParameterError(f"{Parameter('detect')} must be a number above 0, or a percentage such as 5%.")
    if not is_percent:
        return value
    if level is None:
        raise ParameterError(f"{Parameter('detect')} in percent needs --target, whose mean it is a percentage of.")
    return value / 100 * abs(level)


def _shared(
    releases: int, epsilon: float, delta: float, planned: Callable[[list[float]], Plan]
) -> tuple[Plan, list[dict[str, float]]]:
    """Return the plan and, for that many releases and for half of them and so on, what each may cost and show."""
    from dpsc.ledger.budget import Budget

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
        shown = [f"{name}{end}" for name in _EACH for end in ("", "_low", "_high")]
        rows.append({"releases": count, "epsilon": each} | {name: float(found[name]) for name in shown})
    return result, rows
