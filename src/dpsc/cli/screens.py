"""Results and releases as tables on the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpsc.answers.base import Verdict
from dpsc.answers.report import guarantee_json
from dpsc.answers.result import Result
from dpsc.answers.words import answer, donors_help, number, percent, sentence, signed
from dpsc.cli import common
from dpsc.data.calendars import holes
from dpsc.data.dates import period_name
from dpsc.gram.mapping import whitened_size
from dpsc.gram.release import Release


def show_result(result: Result, units: str | None = None) -> None:
    """Print the effect of each period with its interval, the average, the guarantee, and the answer in words."""
    screen = common.console()
    frame = result.to_frame().drop(columns=result.baselines.columns)
    table = Table(title=result.headline, title_justify="left", show_edge=False)
    table.add_column(str(result.target.index.name or "time"))
    for name in frame:
        table.add_column(str(name), justify="right")
    for time, row in zip(frame.index, frame.to_dict("records"), strict=True):
        cells = [signed(value) if name == "gap" else number(value) for name, value in row.items()]
        table.add_row(period_name(time), *cells)
    screen.print(table)
    screen.print()
    facts = Table.grid(padding=(0, 2))
    if math.isfinite(result.att):
        facts.add_row("average effect", Text(f"{signed(result.att)}{_interval(result)}"))
    if result.private:
        facts.add_row("guarantee", Text(str(result.guarantee)))
    else:
        facts.add_row("guarantee", Text(f"none, NOT PRIVATE: {result.reason}"), style="bold red")
    for note in result.notes:
        facts.add_row("beware", Text(note), style="yellow")
    screen.print(facts)
    screen.print()
    screen.print(Text(" ".join(answer(result, units))))
    if result.verdict is not None:
        screen.print()
        screen.print(_light(result.verdict))


_LIGHTS = {"yes": ("●", "bold green"), "unclear": ("◐", "bold yellow"), "no": ("○", "bold red")}


def _light(verdict: Verdict) -> Table:
    """Return whether the donors help: a light whose form says as much as its colour, and the words beside it."""
    light = Table.grid(padding=(0, 1))
    light.add_row(Text(*_LIGHTS[verdict.grade]), Text(donors_help(verdict), "bold"))
    light.add_row("", Text(sentence(verdict.reason)))
    return light


def _interval(result: Result) -> str:
    if result.interval_kind == "none":
        return ""
    low, high = result.att_interval()
    of_what = " of projection noise only" if result.interval_kind == "projection noise" else ""
    return f"   {percent(result.level)} interval{of_what} {signed(low)} to {signed(high)}"


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
