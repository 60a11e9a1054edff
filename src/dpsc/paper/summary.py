"""The findings in words: what holds, what came from noise that was too small, and what replaces it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dpsc.paper import yardsticks
from dpsc.paper.claims import Judgement
from dpsc.paper.points import DATA, DELTA, EPSILONS, Outcome, Point, Recipe
from dpsc.paper.sweep import dataset

WHY_NOT_PRIVATE = (
    "Its noise vectors have a radius of mean a where the theory needs n times that, so their density has a spike at "
    "zero and no finite epsilon holds; its Gaussian noise has variance β instead of β²; it adds the privacy δ where "
    "the algorithm adds curvature; and it scales the data by their own extremes."
)


def paragraphs(
    recipes: Sequence[Recipe], findings: Sequence[Judgement], outcomes: Mapping[Point, Outcome], seed: int
) -> list[str]:
    """Return one paragraph per recipe."""
    texts = {"published": _published, "printed": _printed, "ours": _ours}
    return [" ".join(filter(None, texts[recipe](findings, outcomes, seed))) for recipe in recipes]


def _count(recipe: Recipe, findings: Sequence[Judgement]) -> str:
    counts = Counter(finding.verdict for finding in findings if finding.recipe == recipe)
    if not counts:
        return ""
    total = sum(counts.values())
    return (
        f"Of {total} claims {counts['holds']} hold, {counts['does not hold']} do not hold and "
        f"{counts['undecided']} are within the noise of the runs."
    )


def _published(findings: Sequence[Judgement], outcomes: Mapping[Point, Outcome], seed: int) -> list[str]:
    return [
        "Published code (NOT PRIVATE): the recipe that made the paper's figures.", _count("published", findings),
        "So the figures are what the code computes, but the code protects nobody.", WHY_NOT_PRIVATE,
    ]  # fmt: skip


def _printed(findings: Sequence[Judgement], outcomes: Mapping[Point, Outcome], seed: int) -> list[str]:
    sentences = ["As printed: the same algorithms with the noise that the paper's text and proofs ask for.",
                 _count("printed", findings)]  # fmt: skip
    point = Point("printed", "out", 100, 10, 10.0, 50.0, 50.0)
    other = Point("published", "out", 100, 10, 10.0, 50.0, 50.0)
    if point in outcomes:
        against = f", where the published code shows {outcomes[other].mean:.2g}" if other in outcomes else ""
        sentences.append(
            f"On data between -1 and 1 the error of DPSC_out at n = 100, T0 = 10 and a total ε of 100 is "
            f"{outcomes[point].mean:.3g}{against}."
        )
    best = _best("printed", outcomes)
    if best is not None:
        point, outcome = best
        last = yardsticks.donor_free(dataset(DATA["printed"], point.n, point.T0, seed))["last value"]
        sentences.append(
            f"The smallest error over all ε up to {EPSILONS[-1]:g} at λ = T0 is {outcome.mean:.2g} "
            f"(DPSC_{point.method}, n = {point.n}, T0 = {point.T0}), {outcome.mean / last:.2g} times that of the "
            "target's last value. "
            "Besides, DPSC_obj is not proved private: its proof assumes weights that its minimisation does not ensure."
        )
    return sentences


def _best(recipe: Recipe, outcomes: Mapping[Point, Outcome]) -> tuple[Point, Outcome] | None:
    mine = {p: o for p, o in outcomes.items() if p.recipe == recipe and p.lambda_ == p.T0 and p.method != "gram"}
    return min(mine.items(), key=lambda item: item[1].mean) if mine else None


def _ours(findings: Sequence[Judgement], outcomes: Mapping[Point, Outcome], seed: int) -> list[str]:
    sentences = ["Ours: the same two ideas with exact sensitivities and the answer projected instead of the data, and "
                 "the Gram release, all at the same total ε and with a guarantee that holds.", _count("ours", findings),
                 "The claims are about the two-step algorithms; objective perturbation, once it is private, is no "
                 "longer the better one."]  # fmt: skip
    for n, T0 in ((100, 10), (10, 10)):
        epsilon = EPSILONS[0]
        point = Point("ours", "gram", n, T0, 0.0, epsilon / 2, epsilon / 2, DELTA)
        two_step = Point("ours", "out", n, T0, float(T0), epsilon / 2, epsilon / 2)
        if point in outcomes and two_step in outcomes:
            ridge = yardsticks.ridge(dataset(DATA["ours"], n, T0, seed), float(T0))
            sentences.append(
                f"With n = {n}, T0 = {T0} and ε = {epsilon:g} the error of the Gram release is "
                f"{outcomes[point].mean:.2g}, of our output perturbation {outcomes[two_step].mean:.2g} and of "
                f"non-private ridge at λ = T0 {ridge:.2g}."
            )
    line = yardsticks.donor_free(dataset(DATA["ours"], 10, 10, seed))["straight line"]
    sentences.append(
        f"On these data the error of a straight line through the target, without any donor, is {line:.2g} "
        "(n = T0 = 10). So they cannot show that donors help; the project's benchmarks use factor models and real "
        "panels for that."
    )
    return sentences
