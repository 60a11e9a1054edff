"""What a notebook shows of a release: a few sentences, and how its donors move. Post-processing of what is public."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpsc.answers import plot, web
from dpsc.answers.figures import before
from dpsc.answers.figures.one import promise
from dpsc.answers.figures.sheet import Sheet
from dpsc.data.dates import period_name
from dpsc.gram.contents import ReleasedMatrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def card(release: ReleasedMatrix) -> str:
    """Return the page."""
    sites = f" from {release.sites} sites" if release.sites > 1 else ""
    lines = [
        f"{release.n:,} donors{sites}, {release.T} periods from {period_name(release.times[0])} to "
        f"{period_name(release.times[-1])}.",
        promise(release.guarantee, release.no_guarantee),
        "Any number of questions can be asked of it, at no further cost: estimate(target, treatment_time).",
    ]
    figure = plot.figure_of(movement(release, Sheet()))
    private = release.guarantee is not None
    return web.card(f"A release of {release.outcome}", lines, figure, private, release.no_guarantee)


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
