"""Results and releases as tables on the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpsc.answers.base import Verdict
from dpsc.answers.compare import Comparison
from dpsc.answers.document import guarantee_json
from dpsc.answers.effects import Effect
from dpsc.answers.result import Result
from dpsc.answers.study import Study
from dpsc.answers.words import (
    answer,
    column,
    donors_help,
    no_effect_chance,
    number,
    p_text,
    percent,
    sentence,
    signed,
    study_answer,
)
from dpsc.cli import common
from dpsc.data.calendars import holes
from dpsc.data.dates import period_name
from dpsc.gram.mapping import whitened_size
from dpsc.gram.release import Release


def show_result(result: Result, units: str | None = None) -> None:
    """Print the effect of each period with its interval, effects as people state them, and the answer in words."""
    screen = common.console()
    frame = result.to_frame().drop(columns=result.baselines.columns)
    paths = [*frame["observed"], *frame["counterfactual"]]
    columns = {
        str(result.target.index.name or "time"): [period_name(time) for time in frame.index],
        "observed": column(frame["observed"], like=paths),
        "counterfactual": column(frame["counterfactual"], like=paths),
        "gap": column(frame["gap"], sign=True),
    }
    for name, end in (("from", "gap_lower"), ("to", "gap_upper")):
        if end in frame:
            columns[name] = column(frame[end], sign=True, like=list(frame["gap"]))
    screen.print(_table(columns, title=result.headline))
    screen.print()
    _show_question(screen, result.title)
    facts = Table.grid(padding=(0, 2))
    if math.isfinite(result.att):
        facts.add_row("average effect", Text(_with_interval(result)))
    if result.interval_kind == "effect":
        _add_effects(facts, result.average, result.total, result.level)
        facts.add_row("could be seen", Text(f"an average effect of {number(result.detectable())} or more, up or down"))
    _add_guarantee(facts, result.private, str(result.guarantee), result.reason)
    for note in result.notes:
        facts.add_row("beware", Text(note), style="yellow")
    screen.print(facts)
    screen.print()
    screen.print(Text(" ".join(answer(result, units))))
    if result.verdict is not None:
        screen.print()
        screen.print(_light(result.verdict))


def show_study(study: Study, units: str | None = None) -> None:
    """Print the effect on each unit, by time since the intervention, pooled, and the answer in words."""
    screen = common.console()
    rows = study.by_unit()
    columns = {
        "unit": [str(name) for name in rows.index],
        "first treated": list(rows["treatment_time"]),
        "periods": [str(count) for count in rows["periods"]],
        **({"weight": column(rows["weight"])} if rows["weight"].nunique() > 1 else {}),
        **_effect_columns(rows),
        "donors help": ["–" if grade is None else str(grade) for grade in rows["donors_help"]],
    }
    screen.print(_table(columns, title=f"{len(rows)} treated units", left=2))
    screen.print()
    event = study.by_event_time()
    shown = {"periods after": [str(k) for k in event.index], "units": [str(count) for count in event["units"]]}
    screen.print(_table(shown | _effect_columns(event), title="by time since the intervention, 0 is the first"))
    screen.print()
    _show_question(screen, study.title)
    facts = Table.grid(padding=(0, 2))
    for name, row in study.effects().iloc[:2].iterrows():
        effect, low, high = column([row["effect"], row["lower"], row["upper"]], sign=True)
        interval = f"{percent(study.level)} interval {low} to {high}"
        facts.add_row(str(name), Text(f"{effect}   {interval}   p-value {p_text(row['p_value'])}"))
    _add_guarantee(facts, study.private, str(study.guarantee), study.reason)
    if study.never_treated:
        names = ", ".join(map(str, study.never_treated))
        facts.add_row("never treated", Text(f"{names}: for the reader only, no number rests on them"))
    for name, result in study.results.items():
        for note in result.notes:
            facts.add_row("beware", Text(f"{name}: {note}"), style="yellow")
    screen.print(facts)
    screen.print()
    screen.print(Text(" ".join(study_answer(study, units))))


def show_comparison(compared: Comparison) -> None:
    """Print answers side by side, and what differs between them."""
    screen = common.console()
    screen.print(_table(compared.columns()))
    screen.print()
    screen.print(Text(compared.sentence()))
    differing = compared.differences()
    if differing:
        screen.print()
        screen.print(_table({"answer": compared.names} | differing, left=1 + len(differing)))


def _table(columns: Mapping[str, Sequence[str]], title: str | None = None, left: int = 1) -> Table:
    """Return a table whose first ``left`` columns are text and the others numbers."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)
    for k, (name, cells) in enumerate(columns.items()):
        width = min(max(map(len, [*cells, *name.split()])), 24)  # a long name is broken before a number is
        table.add_column(Text(name), justify="left" if k < left else "right", min_width=width)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(Text, row))
    return table


def _effect_columns(rows: pd.DataFrame) -> dict[str, list[str]]:
    effect, low, high = (
        column(rows[name], sign=True, like=list(rows["effect"])) for name in ("effect", "lower", "upper")
    )
    return {"effect": effect, "from": low, "to": high, "p-value": [p_text(p) for p in rows["p_value"]]}


def _show_question(screen: Console, title: str) -> None:
    if title:
        screen.print(Text(title, "bold"))
        screen.print()


def _add_effects(facts: Table, average: Effect, total: Effect, level: float) -> None:
    """Add the total, the percentage and the p-value, where they are known."""
    if math.isfinite(total.effect):
        effect, low, high = column([total.effect, total.lower, total.upper], sign=True)
        facts.add_row("total effect", Text(f"{effect}   {percent(level)} interval {low} to {high}"))
    if math.isfinite(average.percent):
        part, low, high = column([average.percent, average.percent_lower, average.percent_upper], sign=True, decimals=1)
        facts.add_row("in percent", Text(f"{part}%   {percent(level)} interval {low}% to {high}%"))
    if math.isfinite(average.p_value):
        facts.add_row("p-value", Text(f"{p_text(average.p_value)}   {no_effect_chance(average)}"))


def _add_guarantee(facts: Table, private: bool, guarantee: str, reason: str) -> None:
    if private:
        facts.add_row("guarantee", Text(guarantee))
    else:
        facts.add_row("guarantee", Text(f"none, NOT PRIVATE: {reason}"), style="bold red")


_LIGHTS = {"yes": ("●", "bold green"), "unclear": ("◐", "bold yellow"), "no": ("○", "bold red")}


def _light(verdict: Verdict) -> Table:
    """Return whether the donors help: a light whose form says as much as its colour, and the words beside it."""
    light = Table.grid(padding=(0, 1))
    light.add_row(Text(*_LIGHTS[verdict.grade]), Text(donors_help(verdict), "bold"))
    light.add_row("", Text(sentence(verdict.reason)))
    return light


def _with_interval(result: Result) -> str:
    if result.interval_kind == "none":
        return signed(result.att)
    of_what = " of projection noise only" if result.interval_kind == "projection noise" else ""
    effect, low, high = column([result.att, *result.att_interval()], sign=True)
    return f"{effect}   {percent(result.level)} interval{of_what} {low} to {high}"


def show_release(release: Release, path: Path) -> None:
    """Print what is in a release, what it guarantees and how noisy it is."""
    table = Table(title=str(path), title_justify="left", show_header=False, show_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in describe(release).items():
        table.add_row(name, Text(str(value)))
    common.console().print(table)


_FROM = {"declared": ", declared beforehand", "rows": ", read from the donors, who all have every one"}


def describe(release: Release) -> dict[str, Any]:
    """Return what is public about a release."""
    smoothness = f"phi = {release.kernel.phi:g}, nu = {release.kernel.nu:g}"
    size = release.row_map.size
    share = release.noise_scale * math.sqrt(2 * size) / release.n
    return {
        "outcome": release.outcome,
        "donors": f"{release.n:,}" + (f" from {release.sites} sites" if release.sites > 1 else ""),
        "periods": f"{release.T}, from {period_name(release.times[0])} to {period_name(release.times[-1])}"
        + "; ".join([_FROM.get(release.periods_from, ""), *holes(release.times)]),
        "guarantee": f"none: {release.no_guarantee}" if release.guarantee is None else str(release.guarantee),
        "noise": f"{release.noise_scale:.3g} on a diagonal entry, where all donors together add about "
        f"{release.n / size:,.0f}; the largest noise direction is {share:.1%} of the donors' total",
        "directions": _directions(release),
        "scale": _scale(release),
        "kernel": smoothness,
        "reference path": "none" if release.reference is None else "subtracted",
        "provenance": release.provenance or "–",
    }


def _directions(release: Release) -> str:
    """Say which ways to move were kept."""
    kept, T = release.row_map.directions, release.T
    if kept is None:
        return "all, and the level: made by dpsc 0.1.0"
    which = f"all {kept}" if kept == T - 1 else f"the {kept} smoothest of the {T - 1}"
    return f"{which} in which a series of {T} periods can move"


def _scale(release: Release) -> str:
    """Say how much a typical donor moves, and how this is known."""
    deviation, share = _deviation(release), f"{100 * release.scale.share:.2g}% of the budget"
    if deviation is None:
        return "none: made by dpsc 0.1.0"
    known = {
        "given": "given, as public knowledge",
        "counted": f"found privately with {share}",
        "like and counted": f"from a public series, corrected privately with {share}",
    }[release.scale.source]
    amount = number(deviation) if release.scale.source == "given" else f"about {number(float(f'{deviation:.2g}'))}"
    less = "" if release.reference is None else ", less the reference path,"
    return f"a typical donor{less} deviates by {amount} from its own mean over time; {known}"


def _deviation(release: Release) -> float | None:
    """Return the scale as it is given: how far a typical donor is from its own mean, in the outcome's units."""
    if release.scale.source == "none":
        return None
    return release.scale.value / whitened_size(1.0, release.T, release.kernel)


def release_json(release: Release) -> dict[str, Any]:
    """Return what is public about a release, for programs."""
    return {
        "outcome": release.outcome,
        "donors": release.n,
        "sites": release.sites,
        "periods": [period_name(time) for time in release.times],
        "guarantee": guarantee_json(release.guarantee),
        "no_guarantee": release.no_guarantee or None,
        "noise_scale": release.noise_scale,
        "directions": release.row_map.directions,
        "scale": {"deviation": _deviation(release), "source": release.scale.source, "share": release.scale.share},
        "kernel": asdict(release.kernel),
        "reference": None if release.reference is None else [float(v) for v in release.reference],
        "provenance": release.provenance,
        "periods_from": release.periods_from or None,
        "holes": holes(release.times),
    }


@contextmanager
def progress(description: str, total: int | None) -> Iterator[Callable[..., None]]:
    """Show a bar on stderr, on a terminal only, and give a function that moves it, by one or by more."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    screen = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=screen, disable=not screen.is_terminal, transient=True,
    )  # fmt: skip
    with bar:
        task = bar.add_task(description, total=total)
        yield lambda steps=1: bar.advance(task, steps)
