"""What the experiment section says it found: each sentence as a check that returns a verdict with its numbers.

Verdicts use 95% intervals of the mean RMSE. A claim about many points holds if every comparison agrees with it, fails
if one significantly disagrees, and is undecided otherwise. Where the paper's words are vague ("around",
"substantially"), the constants below say which number we use for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from dpsc.evidence.paper import points, theory
from dpsc.evidence.paper.figures import EACH, SMALL, Name, setting_of
from dpsc.evidence.paper.points import (
    BETTER,
    DATA,
    DELTA,
    EPSILONS,
    LAMBDAS,
    METHODS,
    SIZES,
    UNCLEAR,
    WORSE,
    AlgorithmName,
    Dataset,
    Outcome,
    Point,
    Recipe,
    Verdict,
    all_of,
    compare,
    dataset,
    geometric_mean,
    most_of,
    named,
    tally,
)

Size = tuple[int, int]
Check = Callable[["Evidence"], tuple[Verdict, str]]
AnyCheck = TypeVar("AnyCheck", bound=Callable[..., tuple[Verdict, str]])

AROUND = 5.0  # "around lambda = T0": the best lambda is within this factor of T0, two or three steps of the grid
NEAR = 2.0  # "near-optimal": at most this many times the best error on the grid
SUBSTANTIAL = 1.5  # "substantially", "significantly": by this factor
SLIGHT = 1.5  # "slightly": by less than this factor
CONVERGED = 0.02  # "converges": within two percent
DRAMATIC = 2.0  # "dramatically better": by this factor, averaged over the curve


@dataclass(frozen=True)
class Judgement:
    """A claim, a recipe, the verdict and its numbers."""

    claim: Claim
    recipe: Recipe
    verdict: Verdict
    evidence: str


@dataclass(frozen=True)
class Claim:
    """One sentence of the experiment section, in our words."""

    name: str
    figures: tuple[Name, ...]  # that must have been run; the first one shows it
    sentence: str
    check: Check


CLAIMS: list[Claim] = []  # in the order of the paper


def claim(name: str, figure: Name, sentence: str, *, also: Name | None = None) -> Callable[[AnyCheck], AnyCheck]:
    """Enter the check that follows as the one of a claim."""

    def enter(check: AnyCheck) -> AnyCheck:
        CLAIMS.append(Claim(name, (figure, also) if also else (figure,), sentence, check))
        return check

    return enter


@dataclass(frozen=True, eq=False)
class Evidence:
    """The outcomes of one recipe, by the parameters that the claims are about."""

    recipe: Recipe
    outcomes: Mapping[Point, Outcome]
    seed: int

    def at_lambda(self, method: AlgorithmName, size: Size, lambda_: float) -> Outcome:
        """Return the outcome at epsilon1 = epsilon2 = 50."""
        return self.outcomes[Point(self.recipe, method, *size, lambda_, EACH, EACH)]

    def at_epsilon(self, method: AlgorithmName, size: Size, epsilon: float, delta: float = 0.0) -> Outcome:
        """Return the outcome at lambda = T0 for a total epsilon."""
        return self.outcomes[Point(self.recipe, method, *size, float(size[1]), epsilon / 2, epsilon / 2, delta)]

    def data(self, size: Size) -> Dataset:
        """Return the data set of a size."""
        return dataset(DATA[self.recipe], *size, self.seed)

    def ridge(self, size: Size, lambda_: float) -> float:
        """Return the error of the non-private method."""
        return points.ridge(self.data(size), lambda_)


def judge(
    recipes: Iterable[Recipe], figures: Iterable[Name], outcomes: Mapping[Point, Outcome], seed: int
) -> list[Judgement]:
    """Check every claim whose figure was run, for each recipe."""
    figures, recipes = set(figures), list(recipes)
    findings = []
    for claim in CLAIMS:
        if not figures.issuperset(claim.figures):
            continue
        for recipe in recipes:
            verdict, evidence = claim.check(Evidence(recipe, outcomes, seed))
            findings.append(Judgement(claim, recipe, verdict, evidence))
    return findings


@claim(
    "obj-in-many-regimes",
    "epsilon-sizes",
    "DPSC_obj is better than DPSC_out in many regimes but not in all.",
    also="lambda-sizes",
)
def obj_better_in_many_regimes(e: Evidence) -> tuple[Verdict, str]:
    """Better in more than half of all points, and significantly worse in at least one."""
    signs = [compare(e.at_lambda("obj", s, v), e.at_lambda("out", s, v)) for s in SIZES for v in LAMBDAS]
    signs += [compare(e.at_epsilon("obj", s, v), e.at_epsilon("out", s, v)) for s in SIZES for v in EPSILONS]
    verdict = most_of(signs)
    if verdict == "holds" and WORSE not in signs:
        verdict = "undecided"  # it might be better in all
    return verdict, f"objective better: {tally(signs)}, of {len(signs)} points"


@claim("beats-theory", "theory", "Both algorithms do better than their theoretical bounds.")
def beats_theory(e: Evidence) -> tuple[Verdict, str]:
    """Every measured error is below the printed bound."""
    ratios = _measured_over_printed_bound(e)
    signs = [BETTER if ratio < 1 else WORSE for ratio in ratios]
    return all_of(signs), f"measured / printed bound: {min(ratios):.2g} to {max(ratios):.2g}"


def _measured_over_printed_bound(e: Evidence) -> list[float]:
    ratios = []
    for method in METHODS:
        for lambda_ in LAMBDAS:
            setting = setting_of(e.data(SMALL), lambda_)
            ratios.append(e.at_lambda(method, SMALL, lambda_).mean / theory.bound(method, setting, "as_printed"))
    return ratios


@claim("near-optimal", "lambda-sizes", "λ = T0 is optimal or near-optimal across regimes.")
def T0_is_near_optimal(e: Evidence) -> tuple[Verdict, str]:
    """At lambda = T0 the error is at most twice the best on the grid, for both algorithms on four sizes."""
    signs, ratios = [], {}
    for method in METHODS:
        for size in SIZES:
            curve = _curve(e, method, size)
            best, chosen = min(curve.values(), key=lambda o: o.mean), curve[float(size[1])]
            signs.append(-compare(best, chosen, NEAR) or (BETTER if chosen.mean <= NEAR * best.mean else UNCLEAR))
            ratios[f"{method} {named(size)}"] = chosen.mean / best.mean
    worst = max(ratios, key=lambda name: ratios[name])
    return all_of(signs), f"error at λ = T0 over the best: up to {ratios[worst]:.3g} ({worst})"


def _curve(e: Evidence, method: AlgorithmName, size: Size) -> dict[float, Outcome]:
    return {v: e.at_lambda(method, size, v) for v in LAMBDAS}


@claim("improves-with-epsilon", "epsilon-sizes", "Both private methods improve as ε grows.")
def improves_with_epsilon(e: Evidence, sizes: Sequence[Size] = SIZES) -> tuple[Verdict, str]:
    """From each epsilon to the next the error does not significantly rise, and from the first to the last it falls."""
    rises = []
    for m in METHODS:
        for s in sizes:
            for low, high in pairwise(EPSILONS):
                if compare(e.at_epsilon(m, s, low), e.at_epsilon(m, s, high)) == BETTER:
                    rises.append(f"{m} {named(s)} from ε={low:g} to {high:g}")
    falls = [compare(e.at_epsilon(m, s, EPSILONS[-1]), e.at_epsilon(m, s, EPSILONS[0])) for m in METHODS for s in sizes]
    verdict = "does not hold" if rises else all_of(falls)
    return verdict, f"{len(rises)} significant rises" + (f", e.g. {rises[0]}" if rises else "")


@claim("converge", "lambda", "The three methods converge as λ grows large.")
def converge_at_large_lambda(e: Evidence) -> tuple[Verdict, str]:
    """At the largest lambda both private errors are within two percent of the non-private one."""
    ridge = e.ridge(SMALL, LAMBDAS[-1])
    apart = [abs(e.at_lambda(m, SMALL, LAMBDAS[-1]).mean / ridge - 1) for m in METHODS]
    verdict: Verdict = "holds" if max(apart) <= CONVERGED else "does not hold"
    return verdict, f"at λ = 5000: {apart[0]:.2%} (out) and {apart[1]:.2%} (obj) from non-private"


@claim("above-non-private", "lambda", "At λ ≤ 20 both private methods are worse than the non-private one.")
def worse_than_non_private_at_small_lambda(e: Evidence) -> tuple[Verdict, str]:
    """Both private errors are above the non-private one at every lambda up to 20."""
    small = [v for v in LAMBDAS if v <= 20]
    signs = [compare(e.ridge(SMALL, v), e.at_lambda(m, SMALL, v)) for m in METHODS for v in small]
    top = max(e.at_lambda(m, SMALL, v).mean / e.ridge(SMALL, v) for m in METHODS for v in small)
    return all_of(signs), f"private above non-private at λ ≤ 20: {tally(signs)}; up to {top:.3g} times"


@claim(
    "obj-substantially", "lambda", "At small λ objective perturbation is substantially better than output perturbation."
)
def obj_substantially_better_at_small_lambda(e: Evidence) -> tuple[Verdict, str]:
    """At lambda up to 20 the error of DPSC_out is 1.5 times that of DPSC_obj on average, and nowhere below it."""
    small = [v for v in LAMBDAS if v <= 20]
    signs = [compare(e.at_lambda("obj", SMALL, v), e.at_lambda("out", SMALL, v)) for v in small]
    ratio = geometric_mean(e.at_lambda("out", SMALL, v).mean / e.at_lambda("obj", SMALL, v).mean for v in small)
    verdict: Verdict = "holds" if ratio >= SUBSTANTIAL and WORSE not in signs else "does not hold"
    return verdict, f"out / obj at λ ≤ 20: {ratio:.2g} on average"


@claim("u-shape", "lambda", "The private curves over λ are U-shaped.")
def u_shape(e: Evidence) -> tuple[Verdict, str]:
    """The best lambda is significantly better than the smallest and the largest, for both algorithms."""
    signs, best = [], []
    for method in METHODS:
        curve = _curve(e, method, SMALL)
        best.append(min(curve, key=lambda v: curve[v].mean))
        signs += [compare(curve[best[-1]], curve[end]) for end in (LAMBDAS[0], LAMBDAS[-1])]
    return all_of(signs), f"best λ {best[0]:g} (out), {best[1]:g} (obj); ends above it: {tally(signs)}"


@claim("around-T0", "lambda-sizes", "The error is minimised around λ = T0 on all four sizes.")
def minimised_around_T0(e: Evidence) -> tuple[Verdict, str]:
    """Every lambda that could be the best is within a factor of five of T0, for both algorithms on four sizes."""
    signs, found = [], []
    for method in METHODS:
        for size in SIZES:
            curve = _curve(e, method, size)
            best = min(curve, key=lambda v: curve[v].mean)
            could_be = [v for v in curve if compare(curve[best], curve[v]) != BETTER]
            close = [1 / AROUND <= v / size[1] <= AROUND for v in could_be]
            signs.append(BETTER if all(close) else WORSE if not any(close) else UNCLEAR)
            found.append(f"{best / size[1]:g}")
    return all_of(signs), f"best λ / T0: out {', '.join(found[:4])}; obj {', '.join(found[4:])}"


@claim("obj-then-converge", "theory", "DPSC_obj is better than DPSC_out at small λ and both meet at large λ.")
def obj_better_at_small_lambda_then_converge(e: Evidence) -> tuple[Verdict, str]:
    """DPSC_obj is better at lambda up to 5, and both are within two percent of each other at the largest."""
    signs = [compare(e.at_lambda("obj", SMALL, v), e.at_lambda("out", SMALL, v)) for v in LAMBDAS if v <= 5]
    apart = abs(e.at_lambda("obj", SMALL, LAMBDAS[-1]).mean / e.at_lambda("out", SMALL, LAMBDAS[-1]).mean - 1)
    verdict = all_of(signs) if apart <= CONVERGED else "does not hold"
    return verdict, f"objective better at λ ≤ 5: {tally(signs)}; at λ = 5000 {apart:.2%} apart"


@claim("dramatically", "theory", "Both do dramatically better than the bounds predict.")
def dramatically_beats_theory(e: Evidence) -> tuple[Verdict, str]:
    """Below the printed bound everywhere, and for each algorithm by a factor of two on average where noise matters."""
    out, obj = np.array_split(_measured_over_printed_bound(e), 2)
    noisy = [i for i, v in enumerate(LAMBDAS) if v <= 20]
    factors = [1 / geometric_mean(ratios[noisy]) for ratios in (out, obj)]
    below = max(out.max(), obj.max()) < 1
    verdict: Verdict = "holds" if below and min(factors) >= DRAMATIC else "does not hold"
    return verdict, f"at λ ≤ 20 the bound is {factors[0]:.2g} (out) and {factors[1]:.2g} (obj) times the measured error"


@claim("diminishes", "epsilon", "The error diminishes with larger ε (n = T0 = 10).")
def diminishes_on_the_small_set(e: Evidence) -> tuple[Verdict, str]:
    """The same for n = T0 = 10 alone."""
    return improves_with_epsilon(e, [SMALL])


@claim("obj-most-epsilons", "epsilon", "DPSC_obj is better than DPSC_out at most ε (n = T0 = 10).")
def obj_better_for_most_epsilons(e: Evidence) -> tuple[Verdict, str]:
    """DPSC_obj is better at more than half of the epsilons, n = T0 = 10."""
    signs = [compare(e.at_epsilon("obj", SMALL, v), e.at_epsilon("out", SMALL, v)) for v in EPSILONS]
    return most_of(signs), f"objective better: {tally(signs)}"


@claim("out-at-2", "epsilon", "At ε = 2 DPSC_out is slightly better (n = T0 = 10).")
def out_slightly_better_at_2(e: Evidence, sizes: Sequence[Size] = (SMALL,)) -> tuple[Verdict, str]:
    """At epsilon = 2 the error of DPSC_out is below that of DPSC_obj, by a factor of less than 1.5."""
    pairs = [(e.at_epsilon("out", s, 2.0), e.at_epsilon("obj", s, 2.0)) for s in sizes]
    ratios = [obj.mean / out.mean for out, obj in pairs]
    signs = [compare(out, obj) if compare(out, obj, SLIGHT) != BETTER else WORSE for out, obj in pairs]
    return all_of(signs), f"obj / out at ε = 2: {', '.join(f'{ratio:.3g}' for ratio in ratios)}"


@claim("out-at-2-not-all", "epsilon-sizes", "That is not so on every size.")
def not_for_all_sizes(e: Evidence) -> tuple[Verdict, str]:
    """At epsilon = 2 DPSC_obj is significantly better on at least one size."""
    signs = [compare(e.at_epsilon("obj", s, 2.0), e.at_epsilon("out", s, 2.0)) for s in SIZES]
    verdict: Verdict = "holds" if BETTER in signs else "does not hold" if set(signs) == {WORSE} else "undecided"
    return verdict, f"objective better at ε = 2: {tally(signs)}, of four sizes"


@claim("too-high", "epsilon", "At ε ≤ 4 the error is too high for practical use.")
def too_high_for_use(e: Evidence) -> tuple[Verdict, str]:
    """At epsilon up to 4 both algorithms are worse than the last value of the target, which needs no donors."""
    last = points.donor_free(e.data(SMALL))["last value"]
    values = [e.at_epsilon(m, SMALL, v) for m in METHODS for v in EPSILONS if v <= 4]
    signs = [compare(last, outcome) for outcome in values]
    return all_of(signs), f"{min(o.mean for o in values) / last:.3g} times the error of the last value, or more"


@claim("gaussian-most", "delta", "Gaussian noise improves the error at most ε.")
def gaussian_better(e: Evidence) -> tuple[Verdict, str]:
    """Gaussian noise is better at more than half of all points."""
    signs = [_gaussian(e, s, v) for s in SIZES for v in EPSILONS]
    return most_of(signs), f"Gaussian better: {tally(signs)}"


def _gaussian(e: Evidence, size: Size, epsilon: float) -> int:
    return compare(e.at_epsilon("obj", size, epsilon, DELTA), e.at_epsilon("obj", size, epsilon))


@claim("gaussian-below-10", "delta", "Gaussian noise improves the error especially at ε < 10.")
def gaussian_better_below_10(e: Evidence) -> tuple[Verdict, str]:
    """At epsilon below 10 Gaussian noise is better at most points, and its gain is larger than from 10 on."""
    signs = [_gaussian(e, s, v) for s in SIZES for v in EPSILONS if v < 10]
    below, above = (
        geometric_mean(_gaussian_gain(e, s, v) for s in SIZES for v in EPSILONS if (v < 10) == small)
        for small in (True, False)
    )
    verdict = most_of(signs) if below > above else "does not hold"
    return verdict, f"Gaussian better at ε < 10: {tally(signs)}; gain {below:.3g}, and {above:.3g} from ε = 10 on"


def _gaussian_gain(e: Evidence, size: Size, epsilon: float) -> float:
    return e.at_epsilon("obj", size, epsilon).mean / e.at_epsilon("obj", size, epsilon, DELTA).mean


@claim("gaussian-T0", "delta", "It helps more where T0 = 100.")
def gaussian_helps_most_at_T0_100(e: Evidence) -> tuple[Verdict, str]:
    """Below epsilon 10 Gaussian noise helps at T0 = 100, and more than at T0 = 10, for both n."""
    gains = {s: geometric_mean(_gaussian_gain(e, s, v) for v in EPSILONS if v < 10) for s in SIZES}
    more = all(gains[(n, 100)] > max(gains[(n, 10)], 1) for n in (10, 100))
    verdict: Verdict = "holds" if more else "does not hold"
    return verdict, "gain at ε < 10: " + ", ".join(f"{named(s)} {gain:.3g}" for s, gain in gains.items())


@claim(
    "laplace-order",
    "delta",
    "With Laplace noise the sizes with n = 10 are alike and significantly better than those with n = 100.",
)
def laplace_n_10_below_n_100(e: Evidence) -> tuple[Verdict, str]:
    """With Laplace noise each size with n = 10 averages at most 1/1.5 of each with n = 100; those with n = 10 agree."""
    level = {s: geometric_mean(e.at_epsilon("obj", s, v).mean for v in EPSILONS) for s in SIZES}
    ten, hundred = ([level[s] for s in SIZES if s[0] == n] for n in (10, 100))
    lower = min(hundred) >= SUBSTANTIAL * max(ten)
    verdict: Verdict = "holds" if lower and max(ten) <= SLIGHT * min(ten) else "does not hold"
    return verdict, "mean over ε: " + ", ".join(f"{named(s)} {value:.3g}" for s, value in level.items())


@claim("gaussian-order", "delta", "With Gaussian noise the sizes with T0 = 100 are the best.")
def gaussian_T0_100_best(e: Evidence) -> tuple[Verdict, str]:
    """With Gaussian noise, averaged over epsilon, the two sizes with T0 = 100 are better than the two with T0 = 10."""
    level = {s: geometric_mean(e.at_epsilon("obj", s, v, DELTA).mean for v in EPSILONS) for s in SIZES}
    long, short = ([level[s] for s in SIZES if s[1] == T0] for T0 in (100, 10))
    verdict: Verdict = "holds" if max(long) < min(short) else "does not hold"
    return verdict, "mean over ε: " + ", ".join(f"{named(s)} {value:.3g}" for s, value in level.items())


@claim("less-dependence", "epsilon-sizes", "DPSC_obj depends less on the size of the data than DPSC_out.")
def obj_depends_less_on_size(e: Evidence) -> tuple[Verdict, str]:
    """Over four sizes the error of DPSC_obj spreads less than that of DPSC_out, at most epsilons below 100."""
    spreads = [[_spread(e, m, v) for m in METHODS] for v in EPSILONS if v < 100]
    signs = [BETTER if obj < out else WORSE for out, obj in spreads]
    out, obj = (geometric_mean(column) for column in zip(*spreads, strict=True))
    return most_of(signs), f"largest / smallest error over sizes at ε < 100: out {out:.3g}, obj {obj:.3g}"


def _spread(e: Evidence, method: AlgorithmName, epsilon: float) -> float:
    values = [e.at_epsilon(method, s, epsilon).mean for s in SIZES]
    return max(values) / min(values)


@claim("small-n", "epsilon-sizes", "For DPSC_out a smaller n is significantly better at ε < 100.")
def out_better_with_small_n(e: Evidence) -> tuple[Verdict, str]:
    """At epsilon below 100 the error of DPSC_out with n = 100 is 1.5 times that with n = 10, or more, on average."""
    grid = [(T0, v) for T0 in (10, 100) for v in EPSILONS if v < 100]
    pairs = [(e.at_epsilon("out", (10, T0), v), e.at_epsilon("out", (100, T0), v)) for T0, v in grid]
    ratio = geometric_mean(large.mean / small.mean for small, large in pairs)
    signs = [compare(small, large) for small, large in pairs]
    verdict = all_of(signs) if ratio >= SUBSTANTIAL else "does not hold"
    return verdict, f"n = 100 / n = 10: {ratio:.3g} on average; {tally(signs)}"


@claim("n-over-epsilon", "epsilon-sizes", "That is consistent with an error of order n/ε.")
def out_grows_at_most_like_n_over_epsilon(e: Evidence) -> tuple[Verdict, str]:
    """From n = 10 to 100 and from epsilon = 20 down to 2 the error of DPSC_out grows at most tenfold each."""
    in_n = geometric_mean(
        e.at_epsilon("out", (100, T0), v).mean / e.at_epsilon("out", (10, T0), v).mean
        for T0 in (10, 100)
        for v in (2, 20)
    )
    in_epsilon = geometric_mean(e.at_epsilon("out", s, 2.0).mean / e.at_epsilon("out", s, 20.0).mean for s in SIZES)
    bounded = math.log10(in_n) <= 1.2 and math.log10(in_epsilon) <= 1.2
    exponents = f"error grows as n^{math.log10(in_n):.2f} and as (1/ε)^{math.log10(in_epsilon):.2f}"
    return ("holds" if bounded else "does not hold"), f"{exponents} (below ε = 20)"


@claim("little-T0", "epsilon-sizes", "For DPSC_obj a dependence on T0 is hardly visible.")
def T0_matters_little_for_obj(e: Evidence) -> tuple[Verdict, str]:
    """At epsilon below 100 the error of DPSC_obj at T0 = 100 averages within a factor of 1.5 of that at T0 = 10."""
    grid = [(n, v) for n in (10, 100) for v in EPSILONS if v < 100]
    ratio = geometric_mean(
        e.at_epsilon("obj", (n, 100), v).mean / e.at_epsilon("obj", (n, 10), v).mean for n, v in grid
    )
    verdict: Verdict = "holds" if 1 / SLIGHT <= ratio <= SLIGHT else "does not hold"
    return verdict, f"T0 = 100 / T0 = 10 at ε < 100: {ratio:.3g}"


@claim("obj-from-4", "epsilon-sizes", "For ε ≥ 4 DPSC_obj is better than DPSC_out on all sizes.")
def obj_better_from_4(e: Evidence) -> tuple[Verdict, str]:
    """DPSC_obj is better at every epsilon from 4 on, on every size."""
    signs = [compare(e.at_epsilon("obj", s, v), e.at_epsilon("out", s, v)) for s in SIZES for v in EPSILONS if v >= 4]
    return all_of(signs), f"objective better: {tally(signs)}"


@claim("out-at-2-n-10", "epsilon-sizes", "At ε = 2 DPSC_out is slightly better on the sizes with n = 10.")
def out_slightly_better_at_2_for_n_10(e: Evidence) -> tuple[Verdict, str]:
    """The same for both sizes with n = 10."""
    return out_slightly_better_at_2(e, [s for s in SIZES if s[0] == 10])
