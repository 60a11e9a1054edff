"""What is public about a release: in words, as a page, as a card in a notebook, as a record for registries.

The fields are those of the Differential Privacy Deployments Registry (version: docs/guides/handover.md). What its
file does not tell is null here, for the custodian to fill in; nothing is guessed.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dpsc.answers import figures as plot
from dpsc.answers import report, words
from dpsc.answers.figures import plan
from dpsc.answers.figures.result import promise
from dpsc.answers.figures.sheet import Sheet
from dpsc.answers.report import image
from dpsc.answers.words import meaning, number
from dpsc.errors import ReleaseError
from dpsc.periods.calendar import holes
from dpsc.periods.dates import period_name
from dpsc.periods.match import listed
from dpsc.privacy.guarantee import Guarantee, mark_of
from dpsc.release.kernel import Kernel
from dpsc.release.matrix import ReleasedMatrix
from dpsc.release.outcomes import ReleasedOutcomes
from dpsc.release.panel import ReleasedPanel
from dpsc.release.rowmap import whitened_size
from dpsc.release.segments import OTHER, READABLE
from dpsc.types import JsonObject

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Released: TypeAlias = "ReleasedMatrix | ReleasedOutcomes[Any]"
_FROM = {"declared": ", declared beforehand", "rows": ", read from the donors, of whom each has a row for every period"}
_SMOOTHNESS = {
    Kernel.named("high"): "high: series were assumed to change slowly",
    Kernel.named(
        "mild"
    ): "mild: half of a series' variance was assumed to be slow change, half to be chance in each period",
    Kernel.named("none"): "none: nothing was assumed about how series move",
}


def parts_of(release: Released) -> tuple[ReleasedMatrix, ...]:
    """Return the releases of all outcomes, or the only one."""
    return tuple(release.values()) if isinstance(release, ReleasedOutcomes) else (release,)


def of_each(release: Released, say: Callable[[ReleasedMatrix], str]) -> str:
    """Say something of a release, with the name of each outcome if there are several."""
    parts = parts_of(release)
    return "; ".join(say(part) if len(parts) == 1 else f"{part.outcome}: {say(part)}" for part in parts)


def outcomes(release: Released) -> str:
    """Name the outcome, or all of them."""
    return listed([part.outcome for part in parts_of(release)], most=20)


def donors(release: ReleasedMatrix) -> str:
    """Say how many there are."""
    return f"{release.n:,}" + (f" from {release.sites} sites" if release.sites > 1 else "")


def span(release: ReleasedMatrix) -> str:
    """Say which periods there are."""
    return f"{release.T} periods from {period_name(release.times[0])} to {period_name(release.times[-1])}"


def periods(release: ReleasedMatrix) -> str:
    """Say which periods there are, where they are from, and which a calendar would have besides."""
    said = span(release).replace(" periods from", ", from", 1)
    return said + "; ".join([_FROM.get(release.periods_from, ""), *holes(release.times)])


def noise(release: ReleasedMatrix) -> str:
    """Say how large the noise is, by what it can hide."""
    return noise_of(release.noise_in_donors / release.n, release.n)


def noise_of(share: float, n: int) -> str:
    """Say how large noise is that is a share of n donors together."""
    if share >= 1:
        return f"larger than all {n:,} donors together ({share:.0%}): nothing can be learned from this release"
    count = f"{share * n:,.0f}" if share * n >= 10 else f"{share * n:.2g}"
    part = f"{share:.1%}" if share >= 0.001 else "less than 0.1%"
    return f"as large as the sum of {count} donors who all move in the same way ({part} of the {n:,} donors)"


def segments(release: ReleasedMatrix) -> str:
    """Say by what donors are divided, and about how many each segment has; empty if they are not."""
    if release.segments is None:
        return ""
    several = [f"{one['segment']} about {one['donors']:,}" for one in segment_rows(release)]
    alone = release.of(OTHER).noise_in_donors
    error = (
        f"each number within about {2 * release.sizes_error:,.0f} of the true one; each segment has noise as large as "
    )
    error += f"the sum of {alone:,.0f} donors who all move in the same way"
    return f"by {release.segments.by}: {', '.join(several)}; {error}"


def segment_rows(release: ReleasedMatrix) -> list[JsonObject]:
    """Return each segment, about how many donors it has, and whether they are enough to be read by themselves."""
    if release.segments is None:
        return []
    one = [release.of(label) for label in release.segments.labels]
    return [
        {"segment": label, "donors": round(part.donors), "error": part.donors_error, "readable": part.readable}
        for label, part in zip(release.segments.labels, one, strict=True)
    ]


def readable(release: ReleasedMatrix) -> str:
    """Say which segments may be asked by themselves."""
    rows, least = segment_rows(release), math.ceil(READABLE * release.of(OTHER).noise_in_donors)
    those = [row["segment"] for row in rows if row["readable"]]
    which = {0: "no segment", len(rows): "every segment"}.get(len(those), ", ".join(those))
    return f"{which}; a segment with fewer than about {least:,} donors says little"


def seen(release: ReleasedMatrix) -> str:
    """Say how many patterns of movement are larger than the noise."""
    count = release.population.directions
    what = {0: "no pattern that many donors share is", 1: "1 pattern that many donors share is"}
    besides = "" if release.row_map.directions is None else ", besides the donors' average path"
    return what.get(count, f"{count} patterns that many donors share are") + f" larger than the noise{besides}"


def directions(release: ReleasedMatrix) -> str:
    """Say which patterns of movement were kept."""
    kept, T = release.row_map.directions, release.T
    if kept is None:
        return "all, and the level: made by dpsc 0.1.0"
    which = f"all {kept}" if kept == T - 1 else f"the {kept} smoothest of the {T - 1}"
    return f"{which} patterns in which a series of {T} periods can move"


def deviation(release: ReleasedMatrix) -> float | None:
    """Return the scale as it is given: how far a typical donor is from its own mean, in the outcome's units."""
    if release.scale.source == "none":
        return None
    return release.scale.value / whitened_size(1.0, release.T, release.kernel)


def scale(release: ReleasedMatrix) -> str:
    """Say how much a typical donor moves, how this is known and what it cost."""
    whose = "its part of the budget" if release.part_of else "the budget"
    found, share = deviation(release), f"{100 * release.scale.share:.2g}% of {whose}"
    if found is None:
        return "none: made by dpsc 0.1.0"
    known = {
        "given": "given, as public knowledge, at no cost",
        "counted": f"found privately with {share}",
        "like and counted": f"from a public series, corrected privately with {share}",
    }[release.scale.source]
    amount = number(found) if release.scale.source == "given" else f"about {number(float(f'{found:.2g}'))}"
    less = "" if release.reference is None else ", after the reference path is subtracted,"
    return f"a typical donor{less} deviates by {amount} from its own mean over time; {known}"


def kernel(release: ReleasedMatrix) -> str:
    """Say how smooth series were taken to be."""
    phi, nu = release.kernel.phi, release.kernel.nu
    return f"{_SMOOTHNESS[release.kernel]} (phi = {phi:g}, nu = {nu:g})"


def reference(release: ReleasedMatrix) -> str:
    """Say whether a public path was subtracted."""
    return "none" if release.reference is None else "a public path was subtracted from every donor"


def accounting(release: Released | ReleasedPanel) -> str:
    """Say how the loss is accounted for, in the terms of those who add losses up; empty without a guarantee."""
    return "" if release.guarantee is None else accounting_of(release.guarantee)


def accounting_of(guarantee: Guarantee) -> str:
    """Say the same of a guarantee; empty if epsilon and delta are all that is known."""
    loss, parts = guarantee.loss, []
    if loss.mu_squared > 0:
        parts.append(f"mu-Gaussian differential privacy with mu = {math.sqrt(loss.mu_squared):.6g}")
    if loss.mu_squared + loss.rho > 0:
        parts.append(f"zero-concentrated differential privacy with rho = {loss.mu_squared / 2 + loss.rho:.6g}")
    if loss.rest_epsilon + loss.rest_delta > 0 and parts:
        parts.append(
            f"and epsilon {loss.rest_epsilon:.2g} and delta {loss.rest_delta:.2g} more, because the noise is discrete"
        )
    return "; ".join(parts)


def mechanism(release: ReleasedMatrix | ReleasedPanel) -> str:
    """Say which mechanism made it."""
    if release.guarantee is None:
        return f"none that protects: {release.no_guarantee}"
    exact = release.guarantee.arithmetic == "exact"
    how = (
        "exact integer arithmetic and exact samplers from the OpenDP library, so that no rounding leaks"
        if exact
        else "floating-point arithmetic"
    )
    return f"{release.guarantee.basis}; {how}"


def record(
    release: Released, sha256: str, *, custodian: str | None = None, intended_use: str | None = None
) -> JsonObject:
    """Return the record; ``sha256`` is the hash of the release's file."""
    parts, guarantee = parts_of(release), release.guarantee
    first, moves = parts[0], "move" if len(parts) > 1 else "moves"
    if guarantee is None:
        raise ReleaseError(f"this release has no guarantee to register: {first.no_guarantee}.")
    what = (
        f"Noisy sums over {donors(first)} donors of how {outcomes(release)} {moves}, from "
        f"{period_name(first.times[0])} to {period_name(first.times[-1])}: what synthetic control needs to say "
        "what would have happened to another unit without an intervention."
    )
    said = {
        "name": f"Private second moments and mean of {outcomes(release)}, {span(first)}",
        "description": f"{what} {first.provenance}".strip(),
        "date": first.made_on,
        "domain": f"one row per donor: {outcomes(release)} in {span(first)}; any numbers, of which some may be "
        "missing, brought to length one by a public map of the donor's own row",
        "public": f"the number of donors ({first.n}) and the order of their rows; the periods, the outcome's name, the "
        "kernel, the reference path, bounds and every other parameter"
        + ("" if first.segments is None else f"; the names of the segments ({first.segments})"),
        "unit": "Donor: one unit's whole record, every value in every period",
        "neighbours": f"Neighbours: {guarantee.adjacency}. Two data sets are adjacent if they have the same number of "
        "rows and differ in one row, which may be any other row (change-one distance at most 1).",
        "number": first.n,
        "model": f"Noisy matrices of {first.sites} sites were added up." if first.sites > 1 else None,
        "many": "donors",
        "product": "release",
        "releases": "One release",
        "chosen": f"Scale: {of_each(release, scale)}. Smoothness: {of_each(release, kernel)}. Directions: "
        f"{of_each(release, directions)}. Reference path: {of_each(release, reference)}. Periods: {periods(first)}. "
        "They must be chosen without looking at donors, except for a scale that was found privately: its cost is part "
        "of epsilon. The file cannot show that they were.",
        "mechanisms": f"{of_each(release, mechanism)}. Software: {first.made_by}.",
        "composition": f"{len(parts)} outcomes of the same donors, each with its part of mu squared: composition "
        "within epsilon. Where donors were counted to find a scale, the part of its outcome pays for it."
        if len(parts) > 1
        else f"Merged from {first.sites} sites, with different donors by the word of whoever merged them: parallel "
        f"composition.{more_each(first)}"
        if first.sites > 1
        else f"The mean of {len(first.identities)} releases of the same donors: their losses add up."
        if len(first.identities) > 1
        else "Donors were counted for the scale, then the matrix was made: adaptive composition within epsilon."
        if first.scale.share > 0
        else "One mechanism.",
        "utility": f"The noise is {of_each(release, noise)}; {of_each(release, seen)}."
        + ("" if first.segments is None else f" Donors {of_each(release, segments)}."),
        "file": f"SHA-256 of the release file: {sha256}",
    }
    return registered(guarantee, said, first.identities, first.datasets, custodian, intended_use)


def registered(
    guarantee: Guarantee,
    said: JsonObject,
    identities: Sequence[str],
    datasets: Sequence[str],
    custodian: str | None,
    intended_use: str | None,
) -> JsonObject:
    """Return a record of the registry, from what is said of a release or a panel."""
    ledger = [f"data set in the custodian's ledger: {', '.join(datasets)}"] if datasets else []
    accounted = accounting_of(guarantee) or "epsilon and delta"
    return {
        "url_slug": f"dpsc-{said['product']}-{identities[0][:12]}",
        "deployment": {
            "basic": {
                "name": said["name"],
                "data_curators": [{"data_curator_name": custodian, "data_curator_type": None}],
                "description": said["description"],
                "intended_use": intended_use,
                "data_product_type": "Summary statistics",
                "data_product_region": None,
                "data_product_sector": None,
                "publication_date": said["date"] or None,
            },
            "dp_variant": {
                "variant_name": "Pure DP" if guarantee.delta == 0 else "Approximate DP",
                "data_domain": said["domain"],
                "unprotected_quantities": said["public"],
            },
            "privacy_loss": {
                "privacy_unit": said["unit"],
                "privacy_unit_details": said["neighbours"],
                "number_of_privacy_units": said["number"],
                "privacy_parameters": {"epsilon": guarantee.epsilon, "delta": guarantee.delta},
                "privacy_parameters_details": " ".join([f"Accounting: {accounted}.", *meaning(guarantee)]),
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": said["model"],
                "trust_assumptions": f"{said['many'].capitalize()} trust the custodian, who holds their records and "
                f"draws the noise. Nobody who receives the {'table' if said['product'] == 'panel' else 'release'} "
                "needs to be trusted, whatever else they know.",
                "actors": None,
                "release_type": said["releases"],
                "release_type_details": "This record is about one file, which shows no other releases of the same "
                f"{said['many']}. Their losses would add up.",
                "data_source_type": None,
                "data_source_type_details": None,
                "access_type": "Non-interactive",
                "access_type_details": "Answers are computed from the file and cost nothing more.",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": said["chosen"],
                "mechanisms": said["mechanisms"],
                "composition": said["composition"],
                "post_processing": "None in the file.",
                "justification": None,
                "utility": said["utility"],
                "additional_information": "; ".join([said["file"], f"identity: {', '.join(identities)}", *ledger]),
            },
            "administrative": {"evidence_sources": None, "status": "Draft", "registry_authors": None, "tier": 2},
        },
    }


def more_each(release: ReleasedMatrix) -> str:
    """Say how losses add up where a merged site has several releases; empty if none has."""
    more = len(release.identities) > release.sites
    return " Losses of several releases of the same donors, which it has as their mean, add up." if more else ""


def card(release: ReleasedMatrix) -> str:
    """Return what a notebook shows."""
    lines = [
        f"{donors(release)} donors, {span(release)}.",
        promise(release.guarantee, release.no_guarantee),
        f"The noise is {noise(release)}.",
        "Any number of questions can be asked of it, at no further cost: estimate(target, treatment_time).",
    ]
    figure = plot.figure_of(movement(release, Sheet()))
    mark = "" if release.guarantee else mark_of(release.no_guarantee)
    return report.card(f"A release of {release.outcome}", lines, figure, mark, release.no_guarantee)


_SAYINGS = donors, noise, segment_rows, seen, mechanism, periods, kernel, directions, scale, reference


def page(release: Released, name: str, sha256: str) -> str:
    """Return the page for whoever receives a release: a function of its file, whose name and hash are given."""
    parts, guarantee = parts_of(release), release.guarantee
    first = parts[0]
    time = first.times[2 * first.T // 3]
    when = period_name(time)
    return report.render(
        "handover.html",
        release=first,
        parts_of_it=[(part, image(partial(movement, part))) for part in parts],
        guarantee=guarantee,
        name=name,
        quoted=shlex.quote(name),
        segment=shlex.quote("other" if first.segments is None else first.segments.labels[0]),
        title="the outcome" if outcomes(release) == "outcome" else outcomes(release),
        first=period_name(first.times[0]),
        last=period_name(first.times[-1]),
        when=when,
        code=str(time) if isinstance(time, int | np.integer) else f'"{when}"',
        sha256=sha256,
        meaning=[] if guarantee is None else words.meaning(guarantee),
        accounting=accounting(release),
        words={say.__name__: say for say in _SAYINGS},
    )


def movement(release: ReleasedMatrix, sheet: Sheet) -> Axes:
    """Draw how donors move on average, how sure that is, and how far single donors are from it."""
    population = release.population
    mean = population.mean + (0.0 if release.reference is None else release.reference)
    spread = np.diag(population.common + population.direction_error + population.bulk).clip(0)
    error = np.sqrt(np.diag(population.mean_error).clip(0))
    return plan.movement(
        release.times,
        mean - mean.mean(),
        error,
        np.sqrt(spread),
        sheet,
        outcome=release.outcome,
        caption=promise(release.guarantee, release.no_guarantee),
        mark="" if release.guarantee else mark_of(release.no_guarantee),
    )
