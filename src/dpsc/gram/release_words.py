"""What is public about a release, in plain words: for the terminal, the page beside it, notebooks and registries."""

from __future__ import annotations

import math

from dpsc.answers.words import number
from dpsc.data.calendars import holes
from dpsc.data.dates import period_name
from dpsc.gram.contents import ReleasedMatrix
from dpsc.gram.kernel import Kernel
from dpsc.gram.mapping import whitened_size

_FROM = {"declared": ", declared beforehand", "rows": ", read from the donors, who all have every one"}
_SMOOTHNESS = {
    Kernel.named("high"): "high: series were taken to change slowly",
    Kernel.named("mild"): "mild: series were taken to change slowly, with as much chance from period to period",
    Kernel.named("none"): "none: nothing was assumed about how series move",
}


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


def noise_in_donors(release: ReleasedMatrix) -> float:
    """Return the size of the largest direction of the noise, as a number of donors who all move in this direction."""
    return release.noise_scale * math.sqrt(2 * release.row_map.size)


def noise(release: ReleasedMatrix) -> str:
    """Say how large the noise is, by what it can hide."""
    return noise_of(noise_in_donors(release) / release.n, release.n)


def noise_of(share: float, n: int) -> str:
    """Say how large noise is that is a share of n donors together."""
    if share >= 1:
        return f"larger than all {n:,} donors together ({share:.0%}): nothing can be learned from this release"
    count = f"{share * n:,.0f}" if share * n >= 10 else f"{share * n:.2g}"
    return f"as large as {count} of the {n:,} donors moving alike: {share:.1%} of what all donors say together"


def seen(release: ReleasedMatrix) -> str:
    """Say how much stands out above the noise."""
    count = release.population.directions
    what = {0: "no way to move", 1: "1 way to move"}.get(count, f"{count} ways to move")
    besides = "" if release.row_map.directions is None else " beside the donors' average path"
    verb = "stands" if count <= 1 else "stand"
    return f"{what} that many donors share {verb} out above the noise,{besides}".rstrip(",")


def directions(release: ReleasedMatrix) -> str:
    """Say which ways to move were kept."""
    kept, T = release.row_map.directions, release.T
    if kept is None:
        return "all, and the level: made by dpsc 0.1.0"
    which = f"all {kept}" if kept == T - 1 else f"the {kept} smoothest of the {T - 1}"
    return f"{which} in which a series of {T} periods can move"


def deviation(release: ReleasedMatrix) -> float | None:
    """Return the scale as it is given: how far a typical donor is from its own mean, in the outcome's units."""
    if release.scale.source == "none":
        return None
    return release.scale.value / whitened_size(1.0, release.T, release.kernel)


def scale(release: ReleasedMatrix) -> str:
    """Say how much a typical donor moves, how this is known and what it cost."""
    found, share = deviation(release), f"{100 * release.scale.share:.2g}% of the budget"
    if found is None:
        return "none: made by dpsc 0.1.0"
    known = {
        "given": "given, as public knowledge, at no cost",
        "counted": f"found privately with {share}",
        "like and counted": f"from a public series, corrected privately with {share}",
    }[release.scale.source]
    amount = number(found) if release.scale.source == "given" else f"about {number(float(f'{found:.2g}'))}"
    less = "" if release.reference is None else ", less the reference path,"
    return f"a typical donor{less} deviates by {amount} from its own mean over time; {known}"


def kernel(release: ReleasedMatrix) -> str:
    """Say how smooth series were taken to be."""
    phi, nu = release.kernel.phi, release.kernel.nu
    return f"{_SMOOTHNESS[release.kernel]} (phi = {phi:g}, nu = {nu:g})"


def reference(release: ReleasedMatrix) -> str:
    """Say whether a public path was subtracted."""
    return "none" if release.reference is None else "a public path was subtracted from every donor"


def accounting(release: ReleasedMatrix) -> str:
    """Say how the loss is accounted for, in the terms of those who add losses up; empty without a guarantee."""
    if release.guarantee is None:
        return ""
    loss, parts = release.guarantee.loss, []
    if loss.mu_squared > 0:
        parts.append(f"mu-Gaussian differential privacy with mu = {math.sqrt(loss.mu_squared):.6g}")
    if loss.mu_squared + loss.rho > 0:
        parts.append(f"zero-concentrated differential privacy with rho = {loss.mu_squared / 2 + loss.rho:.6g}")
    if loss.rest_epsilon + loss.rest_delta > 0 and parts:
        parts.append(
            f"a slack of epsilon {loss.rest_epsilon:.2g} and delta {loss.rest_delta:.2g} because the noise is discrete"
        )
    return "; ".join(parts)


def mechanism(release: ReleasedMatrix) -> str:
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
