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

from dpsc.answers.report import guarantee_json
from dpsc.answers.result import Result
from dpsc.answers.words import answer, number, percent, signed
from dpsc.cli import common
from dpsc.data.dates import period_name
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
    if math.isfinite(result.att):
        screen.print(Text(f"average effect  {signed(result.att)}{_interval(result)}"))
    if result.private:
        screen.print(Text(f"guarantee       {result.guarantee}"))
    else:
        screen.print(Text(f"guarantee       none, NOT PRIVATE: {result.reason}", style="bold red"))
    for note in result.notes:
        screen.print(Text(f"beware          {note}", style="yellow"))
    screen.print()
    screen.print(Text(" ".join(answer(result, units))))


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
    share = release.noise_scale * math.sqrt(2 * release.T) / release.n
    return {
        "outcome": release.outcome,
        "donors": f"{release.n:,}" + (f" from {release.sites} sites" if release.sites > 1 else ""),
        "periods": f"{release.T}, from {period_name(release.times[0])} to {period_name(release.times[-1])}"
        + _FROM.get(release.periods_from, ""),
        "guarantee": f"none: {release.no_guarantee}" if release.guarantee is None else str(release.guarantee),
        "noise": f"{release.noise_scale:.3g} on a diagonal entry, where all donors together add about "
        f"{release.n / release.T:,.0f}; the largest noise direction is {share:.1%} of the donors' total",
        "kernel": smoothness,
        "reference path": "none" if release.reference is None else "subtracted",
        "provenance": release.provenance or "–",
    }


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
        "kernel": asdict(release.kernel),
        "reference": None if release.reference is None else [float(v) for v in release.reference],
        "provenance": release.provenance,
        "periods_from": release.periods_from or None,
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
