"""What is public about a panel of people: in words, as a page for whoever receives it, as a record for registries."""

from __future__ import annotations

import math
import shlex

import numpy as np

from dpsc.answers import report, tables, words
from dpsc.answers.words import number
from dpsc.errors import ReleaseError
from dpsc.periods.calendar import holes
from dpsc.periods.dates import period_name
from dpsc.privacy.guarantee import mark_of
from dpsc.release.describe import accounting, mechanism, registered
from dpsc.release.lengths import SHARE, Bins, NoisyLengths
from dpsc.release.panel import ENOUGH_PEOPLE, Block, ReleasedPanel
from dpsc.types import JsonObject

_MOST_LISTED = 12  # units in a sentence
_MOST_ROWS = 100  # of the page's table
_HEADER = "unit", "first value", "last value", "noise of a cell", "people in a cell"
_STATISTICS = {
    "mean": "the mean of {outcome} over the people of a cell",
    "total": "the total of {outcome} over the people of a cell",
    "share": "the share of the people of a cell for whom {outcome} is not zero",
    "count": "the number of people of a cell",
}


def units(panel: ReleasedPanel) -> str:
    """Say which units there are."""
    more = len(panel.units) - _MOST_LISTED
    listed = ", ".join(panel.units[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
    sites = f" of {len(panel.sites)} sites with different people" if len(panel.sites) > 1 else ""
    return f"{len(panel.units)}{sites}: {listed}"


def periods(panel: ReleasedPanel) -> str:
    """Say which periods there are, and in how many releases they came."""
    said = f"{len(panel.times)}, from {period_name(panel.times[0])} to {period_name(panel.times[-1])}"
    grown = f"published in {len(panel.blocks)} releases" if len(panel.blocks) > len(panel.sites) else ""
    return "; ".join(filter(None, [said, grown, *holes(panel.times)]))


def statistic(panel: ReleasedPanel) -> str:
    """Say what a cell's value is."""
    if panel.rule is None:
        return "not known"
    return _STATISTICS[panel.rule.statistic].format(outcome=panel.outcome)


def bounding(panel: ReleasedPanel) -> str:
    """Say how each person was bounded; never how many people that cut."""
    said = [_bounding(block) for block in panel.blocks]
    return "; then ".join(dict.fromkeys(said)) or "not known"


def _bounding(block: Block) -> str:
    rule, parts = block.rule, []
    if rule.bounds is not None:
        low, high = map(number, rule.bounds)
        parts.append(
            f"a person's value in a cell was set to {low} where it was below, and to {high} where it was above"
        )
    if rule.person_bound is not None:
        less = " less the middle of the bounds" if rule.counts_people else ""
        parts.append(
            f"all values of a person{less} were made smaller by one factor, down to length "
            f"{number(rule.person_bound)}, where their length (the root of the sum of their squares) was above it"
        )
    if block.lengths is not None:
        parts.append(_found(block.lengths, rule.person_bound is not None))
    units = "1 unit" if rule.cells_per_period == 1 else f"{rule.cells_per_period} units"
    cells = "1 cell" if rule.most_cells == 1 else f"{rule.most_cells:,} cells"
    thinned = f" and in at most {cells} in all, which a hash chooses" if rule.is_thinned else ""
    parts.append(f"a person counts in at most {units} in each period{thinned}")
    return ", ".join(parts)


def _found(lengths: NoisyLengths, is_bound: bool) -> str:
    """Say how a bound on a person was found, and how noisy the counts are that it was found from."""
    counts = (
        f"noisy counts of people by length, which cost {SHARE:.0%} of the budget (each has noise with a standard "
        f"deviation of {lengths.noise:,.0f} people)"
    )
    if is_bound:
        return f"this bound leaves about {lengths.quantile:.0%} of people unchanged and was found from {counts}"
    return f"no bound on the length of all values of a person was found from {counts}"


def noise(panel: ReleasedPanel) -> str:
    """Say how large the noise of a cell usually is."""
    known = panel.table.noise[np.isfinite(panel.table.noise)]
    if not len(known):
        return "nothing can be read from this panel: every cell has too few people"
    low, usual, high = (number(float(f"{level:.2g}")) for level in np.quantile(known, [0.05, 0.5, 0.95]))
    span = "" if low == high else f", {low} to {high} in nine of ten cells"
    return f"a standard deviation of {usual} in the usual cell{span}"


def too_few(panel: ReleasedPanel) -> str:
    """Say how many cells are missing, because they have too few people to be read."""
    missing, cells = int(np.isnan(panel.table.values).sum()), panel.table.values.size
    if panel.rule is None or not panel.rule.counts_people:
        return f"{missing:,} of {cells:,} cells are missing"
    least = " or ".join(dict.fromkeys(f"{enough_people(block):,}" for block in panel.blocks))
    return f"{missing:,} of {cells:,} cells have fewer than about {least} people and are missing"


def enough_people(block: Block) -> int:
    """Return how many people a cell needs, by the noisy count, to be read."""
    return math.ceil(ENOUGH_PEOPLE * block.deviation / block.rule.one_person)


def promise(panel: ReleasedPanel) -> str:
    """Say what is guaranteed, or why nothing is."""
    return f"none: {panel.no_guarantee}" if panel.guarantee is None else str(panel.guarantee)


SAYINGS = units, periods, statistic, bounding, noise, too_few, mechanism, accounting


def page(panel: ReleasedPanel, name: str, sha256: str) -> str:
    """Return the page for whoever receives a panel: a function of its file, whose name and hash are given."""
    time = panel.times[2 * len(panel.times) // 3]
    return report.render(
        "panel.html",
        panel=panel,
        name=name,
        quoted=shlex.quote(name),
        title="the outcome" if panel.outcome == "outcome" else panel.outcome,
        unit=shlex.quote(panel.units[0]),
        when=period_name(time),
        code=str(time) if isinstance(time, int | np.integer) else f'"{period_name(time)}"',
        sha256=sha256,
        meaning=[] if panel.guarantee is None else words.meaning(panel.guarantee),
        shown=tables.TextTable(list(_HEADER), [list(row) for row in _rows(panel)[:_MOST_ROWS]]),
        provenance=panel.provenances,
        made=made(panel),
        mark=mark_of(panel.no_guarantee),
        words={say.__name__: say for say in SAYINGS},
    )


def _rows(panel: ReleasedPanel) -> list[tuple[str, ...]]:
    """Return for each unit the first and the last value, the usual noise and the usual number of people."""
    table = panel.table
    rows: list[tuple[str, ...]] = []
    for row, unit in enumerate(table.units):
        values, noises = table.values[row], table.noise[row]
        there = np.flatnonzero(np.isfinite(values))
        if not len(there):
            rows.append((unit, "–", "–", "–", "–"))
            continue
        people = "–" if table.people is None else f"{max(0.0, float(np.nanmedian(table.people[row]))):,.0f}"
        told = words.column([values[there[0]], values[there[-1]], float(np.median(noises[there]))])
        rows.append((unit, *told, people))
    return rows


def made(panel: ReleasedPanel) -> str:
    """Say what made it and when."""
    return "; ".join(dict.fromkeys(" on ".join(filter(None, (b.made_by, b.made_on))) for b in panel.blocks)) or "others"


def to_json(panel: ReleasedPanel) -> JsonObject:
    """Return what is public about it, for programs; the cells themselves are in the file."""
    from dpsc.answers.document import guarantee_json

    return {
        "kind": "panel",
        "outcome": panel.outcome,
        "statistic": None if panel.rule is None else panel.rule.statistic,
        "units": list(panel.units),
        "sites": len(panel.sites),
        "periods": [period_name(time) for time in panel.times],
        "holes": holes(panel.times),
        "guarantee": guarantee_json(panel.guarantee),
        "no_guarantee": panel.no_guarantee or None,
        "noise": float(np.nanmedian(panel.table.noise)) if np.isfinite(panel.table.noise).any() else None,
        "missing_cells": int(np.isnan(panel.table.values).sum()),
        "releases": [
            {
                "identity": block.identity,
                "dataset": block.dataset or None,
                "periods": [period_name(time) for time in block.times],
                "bounds": block.rule.bounds,
                "person_bound": block.rule.person_bound,
                "person_bound_found": _lengths_json(block),
                "cells_per_period": block.rule.cells_per_period,
                "cells_per_person": block.rule.cells_per_person,
                "noise_law": block.law,
                "guarantee": guarantee_json(block.guarantee),
                "provenance": block.provenance,
                "made_by": block.made_by,
                "made_on": block.made_on or None,
            }
            for block in panel.blocks
        ],
    }


def _lengths_json(block: Block) -> JsonObject | None:
    """Return the noisy counts that a bound on a person was found from; each is of people up to a length."""
    lengths = block.lengths
    if lengths is None:
        return None
    return {
        "quantile": lengths.quantile,
        "share_of_budget": SHARE,
        "up_to": [rule.person_bound for rule in Bins(block.rule).rules],
        "people": lengths.people.tolist(),
        "noise": lengths.noise,
    }


def record(
    panel: ReleasedPanel, sha256: str, *, custodian: str | None = None, intended_use: str | None = None
) -> JsonObject:
    """Return the record for a registry; ``sha256`` is the hash of the panel's file."""
    guarantee = panel.guarantee
    if guarantee is None:
        raise ReleaseError(f"this panel has no guarantee to register: {panel.no_guarantee}.")
    span = f"{len(panel.units)} units, {len(panel.times)} periods from {period_name(panel.times[0])} to "
    span += period_name(panel.times[-1])
    counted = any(block.lengths is not None for block in panel.blocks)
    chosen = "All but a bound that was found from noisy counts" if counted else "It"
    composed = ["Counts of people by length, then the table: their losses add up."] if counted else []
    if len(panel.blocks) > 1:
        composed.append(
            f"{len(panel.blocks)} releases: the losses of releases of the same units add up; of sites with different "
            "people, by the word of whoever joined them, the largest loss counts."
        )
    said = {
        "name": f"Private table of {panel.outcome}, {span}",
        "description": f"For each unit and period {statistic(panel)}, with noise that hides each person.",
        "date": max((block.made_on for block in panel.blocks), default=""),
        "domain": f"records of people in {span}; a person may have any number of records, of any size",
        "public": "the units, the periods, the outcome's name, and how people were bounded",
        "unit": "Person: all records of one person, in all units and periods",
        "neighbours": f"Neighbours: {guarantee.adjacency}, by any other records or by none.",
        "number": None,
        "model": None,
        "many": "people",
        "product": "panel",
        "releases": "One release" if len(panel.blocks) == 1 else "Several releases",
        "chosen": f"Bounding: {bounding(panel)}. {chosen} must be chosen without looking at people; the file cannot "
        "show that it was.",
        "mechanisms": f"{mechanism(panel)}. Software: {made(panel)}.",
        "composition": " ".join(composed) or "One mechanism.",
        "utility": f"Noise: {noise(panel)}; {too_few(panel)}.",
        "file": f"SHA-256 of the file: {sha256}",
    }
    return registered(guarantee, said, panel.identities, panel.datasets, custodian, intended_use)
