"""A release shown to people: a card in a notebook, and the page that goes out with it. Post-processing, all of it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import numpy as np

from dpsc.answers import pages, plot, web, words
from dpsc.answers.figures import before
from dpsc.answers.figures.one import promise
from dpsc.answers.figures.sheet import Sheet
from dpsc.data.dates import period_name
from dpsc.gram import release_words
from dpsc.gram.contents import ReleasedMatrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def card(release: ReleasedMatrix) -> str:
    """Return what a notebook shows."""
    lines = [
        f"{release_words.donors(release)} donors, {release_words.span(release)}.",
        promise(release.guarantee, release.no_guarantee),
        f"The noise is {release_words.noise(release)}.",
        "Any number of questions can be asked of it, at no further cost: estimate(target, treatment_time).",
    ]
    figure = plot.figure_of(movement(release, Sheet()))
    private = release.guarantee is not None
    return web.card(f"A release of {release.outcome}", lines, figure, private, release.no_guarantee)


def page(release: ReleasedMatrix, name: str, sha256: str) -> str:
    """Return the page for whoever receives a release: a function of its file, whose name and hash are given."""
    time = release.times[2 * release.T // 3]
    when = period_name(time)
    return web.render(
        "handover.html",
        release=release,
        name=name,
        quoted=shlex.quote(name),
        title="the outcome" if release.outcome == "outcome" else release.outcome,
        first=period_name(release.times[0]),
        last=period_name(release.times[-1]),
        when=when,
        code=str(time) if isinstance(time, int | np.integer) else f'"{when}"',
        sha256=sha256,
        meaning=[] if release.guarantee is None else words.meaning(release.guarantee),
        words=release_words,
        image=pages.image(lambda figsize: movement(release, Sheet(title="", figsize=figsize))),
    )


def movement(release: ReleasedMatrix, sheet: Sheet) -> Axes:
    """Draw how donors move on average, how sure that is, and how far single donors are from it."""
    population = release.population
    mean = population.mean + (0.0 if release.reference is None else release.reference)
    spread = np.diag(population.common + population.direction_error + population.bulk).clip(0)
    error = np.sqrt(np.diag(population.mean_error).clip(0))
    return before.movement(
        release.times, mean - mean.mean(), error, np.sqrt(spread), sheet, outcome=release.outcome,
        caption=promise(release.guarantee, release.no_guarantee), private=release.guarantee is not None,
    )  # fmt: skip
