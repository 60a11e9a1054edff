"""Our numbers beside those of others: every comparison of docs/reference/validation.md.

    python benchmarks/validation.py                  # a few seconds

Writes results/validation.csv. tests/test_validation.py computes the same again and checks every row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from studies import Study, california, studies, texas_guns, texas_prisons

from dpsc import GramRelease, ObjectivePerturbation, OutputPerturbation, Panel, SyntheticControl
from dpsc.custodian.weights.classic import ridge_weights, simplex_weights
from dpsc.privacy import accounting, discrete
from dpsc.privacy.accounting import Loss
from dpsc.privacy.additive import StepBudget, discrete_scale, single
from dpsc.privacy.rounded_gaussian import KEPT
from dpsc.release.panel import budget, noise_of
from dpsc.release.table_rule import TableRule

FILE = Path(__file__).parent / "results" / "validation.csv"
RANK = 3  # of robust synthetic control
DELTA = 1e-6
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True)
class Comparison:
    """Our number and theirs, and how far ours may be above (``most``) or below (``least``) theirs."""

    name: str
    part: str
    what: str
    peer: str
    ours: float
    theirs: float
    least: float
    most: float
    weights: float = math.nan  # the largest difference of a weight, where there are weights

    @property
    def agrees(self) -> bool:
        """Whether the difference is within what is allowed."""
        return self.least <= self.ours - self.theirs <= self.most


# --- three studies, against pysyncon ---------------------------------------------------------------------------------


def prepared(study: Study) -> Any:
    """Return what most estimators of pysyncon take."""
    from pysyncon import Dataprep

    return Dataprep(
        foo=study.long, predictors=["value"], predictors_op="mean", dependent="value", unit_variable="unit",
        time_variable="time", treatment_identifier=study.treated, controls_identifier=list(study.donors.columns),
        time_predictors_prior=study.before, time_optimize_ssr=study.before,
    )  # fmt: skip


def penalty(study: Study) -> float:
    """Return a ridge penalty, in pysyncon's meaning: a hundredth of a donor's sum of squares before the intervention."""
    return 0.01 * float((study.donors.loc[study.before] ** 2).sum().mean())


def their_simplex(study: Study) -> Any:
    """Fit every period before the intervention, each with the same importance.

    pysyncon divides each period by its standard deviation over units; V multiplies it back.
    """
    from pysyncon import Synth

    before = study.wide.loc[study.before]
    donors, treated = before.drop(columns=study.treated), before[study.treated]
    peer = Synth()
    peer.fit(X0=donors, X1=treated, Z0=donors, Z1=treated, custom_V=before.std(axis=1).to_numpy() ** 2)
    return peer.W


def their_robust(study: Study, rank: int) -> Any:
    from pysyncon import RobustSynth

    peer = RobustSynth()
    peer.fit(prepared(study), lambda_=penalty(study), sv_count=rank)
    return peer.W


def their_augmented(study: Study) -> Any:
    from pysyncon import AugSynth

    peer = AugSynth()
    peer.fit(prepared(study), lambda_=penalty(study), use_covariates=False)
    return peer.W


def our_augmented(study: Study) -> Any:
    """Return simplex weights plus a ridge of what they leave, both on paths less the donors' mean."""
    before = study.wide.loc[study.before].sub(study.donors.loc[study.before].mean(axis=1), axis=0)
    X, y = before.drop(columns=study.treated).to_numpy().T, before[study.treated].to_numpy()
    f = simplex_weights(X, y)
    return f + ridge_weights(X, y - X.T @ f, 2 * penalty(study))


def study_rows(study: Study) -> Iterator[Comparison]:
    """Compare the average effect and every weight."""
    lambda_ = 2 * penalty(study)
    ours: dict[str, Any] = {
        "simplex": SyntheticControl(method="simplex"),
        "ridge": SyntheticControl(method="ridge", lambda_=lambda_),
        f"robust, rank {RANK}": SyntheticControl(method="robust", rank=RANK, lambda_=lambda_),
    }
    fitted = {name: np.asarray(method.fit(study.panel).weights) for name, method in ours.items()}
    fitted["augmented"] = our_augmented(study)
    theirs = {
        "simplex": ("Synth", their_simplex(study), 1e-3),
        "ridge": ("RobustSynth, all singular values", their_robust(study, min(study.donors.shape)), 1e-9),
        f"robust, rank {RANK}": (f"RobustSynth, {RANK} singular values", their_robust(study, RANK), 1e-9),
        "augmented": ("AugSynth", their_augmented(study), 1e-3),
    }
    for method, f in fitted.items():
        peer, weights, tolerance = theirs[method]
        yield Comparison(
            f"{study.name}: {method}", "studies", f"{study.name} | {method}", peer, effect(study, f),
            effect(study, weights), -tolerance, tolerance, float(np.abs(f - np.ravel(weights)).max()),
        )  # fmt: skip
    fits = fit(study, fitted["simplex"]), fit(study, theirs["simplex"][1])
    yield Comparison(f"{study.name}: fit", "fit", study.name, "Synth", *fits, -1e-4, 1e-9)


def gaps(study: Study, weights: Any) -> Any:
    """Return the target less its synthetic control, in every period."""
    return study.wide[study.treated] - study.donors @ np.ravel(weights)


def effect(study: Study, weights: Any) -> float:
    """Return the average gap from the intervention on."""
    return float(gaps(study, weights).loc[study.first :].mean())


def fit(study: Study, weights: Any) -> float:
    """Return the root mean squared gap before the intervention."""
    return float(np.sqrt((gaps(study, weights).loc[study.before] ** 2).mean()))


def published_rows() -> Iterator[Comparison]:
    """Compare with what a study's abstract says: "about 26 packs lower" by the year 2000."""
    in_2000 = float(SyntheticControl(method="simplex").fit(california().panel).gaps.iloc[-1])
    yield Comparison(
        "California: published", "published", "California, simplex: effect in the year 2000",
        "abstract of the study", in_2000, -26.0, -1.0, 1.0,
    )  # fmt: skip


def difference_rows() -> Iterator[Comparison]:
    """Show where the two differ by definition, or because an optimiser stops: what the rows above avoid."""
    guns = texas_guns()
    as_counted = replace(guns, wide=100 * guns.wide)
    ours = np.asarray(SyntheticControl(method="simplex").fit(as_counted.panel).weights)
    yield Comparison(
        "differs: units", "differs", "Texas, guns, in crimes instead of hundreds: fit before the law, simplex",
        "Synth: stops at equal weights", fit(as_counted, ours), fit(as_counted, their_simplex(as_counted)), -30.0, -20.0,
    )  # fmt: skip
    prisons = texas_prisons(with_zeros=True)
    ridge = SyntheticControl(method="ridge", lambda_=2 * penalty(prisons)).fit(prisons.panel)
    theirs = their_robust(prisons, min(prisons.donors.shape))
    yield Comparison(
        "differs: zeros", "differs", "Texas, prisons, with states that report zero: average effect, ridge",
        "RobustSynth: zeros count as missing", float(ridge.att), effect(prisons, theirs), -0.5, -0.2,
    )  # fmt: skip


# --- accounting, against dp_accounting and OpenDP --------------------------------------------------------------------


def close(ours: float, theirs: float, relative: float) -> dict[str, float]:
    """Return two numbers that should be equal up to a relative difference."""
    return {"ours": ours, "theirs": theirs, "least": -relative * theirs, "most": relative * theirs}


def noise_rows() -> Iterator[Comparison]:
    """Compare the standard deviation of Gaussian noise for sensitivity 1."""
    from dp_accounting import get_sigma_gaussian

    for delta, epsilons in ((DELTA, EPSILONS), (1e-9, (0.1, 1.0, 8.0))):
        for epsilon in epsilons:
            numbers = close(1 / accounting.gaussian_mu(epsilon, delta), get_sigma_gaussian(epsilon, delta), 1e-6)
            what = f"Gaussian noise, ε = {epsilon:g}, δ = {delta:.0e}"
            yield Comparison(f"noise: {epsilon:g}, {delta:.0e}", "noise", what, "`get_sigma_gaussian`", **numbers)


def release_rows() -> Iterator[Comparison]:
    """Compare the noise of an actual release, whose sensitivity is sqrt(2), less what it keeps for slacks."""
    from dp_accounting import get_sigma_gaussian

    donors = np.random.default_rng(0).normal(size=(50, 6)).cumsum(axis=1)
    for epsilon in (0.5, 1.0, 4.0):
        release = GramRelease(epsilon=epsilon, delta=DELTA, scale=1.0).release(donors)
        numbers = close(
            release.noise_scale, math.sqrt(2) * get_sigma_gaussian(epsilon * KEPT[0], DELTA * KEPT[1]), 1e-6
        )
        what = f"Gram release, ε = {epsilon:g}, δ = {DELTA:.0e}"
        yield Comparison(f"release: {epsilon:g}", "noise", what, "`get_sigma_gaussian` times √2", **numbers)


def opendp_rows() -> Iterator[Comparison]:
    """Compare what we promise for noise that we draw with what OpenDP says that it costs, alone and composed."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    for epsilon in (0.1, 1.0, 8.0):
        pure = single(epsilon, 0.0)
        drawn: Any = discrete.measurement("laplace", discrete_scale((1000.0, 1000.0), pure))
        yield Comparison(
            f"laplace: {epsilon:g}", "opendp", f"discrete Laplace noise, ε = {epsilon:g}", "`make_laplace`",
            **close(pure.loss.epsilon(0.0), drawn.map(1000), 1e-9),
        )  # fmt: skip
    for statistic, bounds in (("mean", (-1.0, 1.0)), ("total", (0.0, 1.0))):
        rule = TableRule(statistic, bounds, 3.0, 1, None, units=40, periods=36)
        for delta, reach in ((0.0, rule.l1_sensitivity), (DELTA, math.sqrt(rule.squared_sensitivity))):
            loss = budget(rule, 1.0, delta)
            drawn = discrete.measurement(*noise_of(rule, loss))
            law, unit, stated = ("Gaussian", "ρ", loss.mu_squared / 2) if delta else ("Laplace", "ε", loss.pure)
            yield Comparison(
                f"panel: {statistic}, {law}", "opendp", f"{unit} of a panel, {statistic}s, person bound 3, {law} noise",
                f"`make_{law.lower()}`", **close(stated, drawn.map(reach), 1e-9),
            )  # fmt: skip
    for times in (1, 10, 100):
        for epsilon in (0.5, 1.0, 4.0):
            loss = single(epsilon, DELTA).loss
            step = StepBudget("rho", loss.rho / times)
            one = discrete.measurement("gaussian", discrete_scale((1000.0, 1000.0), step))
            together: Any = dp.c.make_zCDP_to_approxDP(dp.c.make_composition([one] * times))
            yield Comparison(
                f"zcdp: {epsilon:g}, {times}", "opendp",
                f"discrete Gaussian noise, {times} release{'s' * (times > 1)} of ρ = {step.amount:.3g}",
                "`make_zCDP_to_approxDP`",
                **close(total(step.loss, times).epsilon(DELTA), together.map(1000.0).epsilon(DELTA), 1e-6),
            )  # fmt: skip


def composition_rows() -> Iterator[Comparison]:
    """Compare with privacy loss distributions, rounded so that they are below the truth: ours may never be below."""
    from dp_accounting import pld

    make = pld.privacy_loss_distribution
    grid = {"value_discretization_interval": 1e-4, "pessimistic_estimate": False, "use_connect_dots": False}
    for epsilon in (0.5, 1.0, 4.0):
        for times in (2, 10, 100):
            mu = accounting.gaussian_mu(epsilon, DELTA) / math.sqrt(times)
            truth = make.from_gaussian_mechanism(1 / mu, **grid).self_compose(times)
            what = f"{times} Gaussian releases, μ = {mu:.3g} each"
            yield bound(f"gaussian {epsilon:g}, {times}", what, total(Loss.from_mu(mu), times), truth, 0.012)
        for times in (10, 100):
            each = epsilon / times
            truth = make.from_laplace_mechanism(1 / each, **grid).self_compose(times)
            what = f"{times} Laplace releases, ε = {each:.3g} each"
            yield bound(f"laplace {epsilon:g}, {times}", what, total(Loss.from_pure(each), times), truth, 0.12)
    small = make.from_laplace_mechanism(1 / 0.05, **grid).self_compose(10)
    truth = make.from_gaussian_mechanism(1 / 0.2, **grid).compose(small)
    loss = total(Loss.from_pure(0.05), 10) + Loss.from_mu(0.2)
    yield bound("mixed", "one Gaussian release, μ = 0.2, and 10 Laplace releases, ε = 0.05 each", loss, truth, 0.12)


def total(one: Loss, times: int) -> Loss:
    return sum([one] * (times - 1), one)


def bound(name: str, what: str, loss: Loss, truth: Any, looser: float) -> Comparison:
    theirs = float(truth.get_epsilon_for_delta(DELTA))
    peer = "dp_accounting, privacy loss distribution"
    return Comparison(
        f"together: {name}", "together", what, peer, loss.epsilon(DELTA), theirs, least=0.0, most=looser * theirs
    )


# --- the paper -------------------------------------------------------------------------------------------------------


def paper_rows() -> Iterator[Comparison]:
    """Compare the numbers that our printed algorithms used with the paper's formulas, typed again from its text."""
    n, T0, h, lambda_, epsilon1, epsilon2 = 10, 10, 3, 10.0, 1.0, 1.0
    panel = Panel.from_arrays(np.full((n, T0 + h), 0.5), np.full(T0 + h, 0.5), treatment_time=T0, bounds=(-1, 1))
    budget = {"epsilon1": epsilon1, "epsilon2": epsilon2, "lambda_": lambda_}
    out = OutputPerturbation.as_printed(**budget).fit(panel).parameters
    obj = ObjectivePerturbation.as_printed(**budget).fit(panel, unproven=True).parameters
    gauss = ObjectivePerturbation.as_printed(**budget, delta=DELTA).fit(panel, unproven=True).parameters

    c = (1 + math.sqrt(16 * n - 15)) * T0
    assert epsilon1 <= math.log(1 + 2 * c / lambda_ + c**2 / lambda_**2)  # so that Delta > 0
    epsilon0 = epsilon1 / 2
    formulas = [
        ("a", "Algorithm 2, a = 4 T0 √(8+n) / (λ ε₁)", out["a"], 4 * T0 * math.sqrt(8 + n) / (lambda_ * epsilon1)),
        ("b", "Algorithm 2, b = 2 √(T-T0) / ε₂", out["b"], 2 * math.sqrt(h) / epsilon2),
        ("c", "Appendix on choosing c, c = (1 + √(16n-15)) T0", obj["c"], c),
        ("Delta", "Algorithm 3, Δ = c / (exp(ε₁/4) - 1) - λ", obj["Delta"], c / (math.exp(epsilon1 / 4) - 1) - lambda_),
        ("beta", "Algorithm 3, β for δ = 0", obj["beta"],
         min(4 * T0 * math.sqrt(8 + n), c * math.sqrt(n) + 4 * T0) / epsilon0),
        ("beta with delta", "Algorithm 3, β for δ = 1e-06", gauss["beta"],
         4 * T0 * math.sqrt(8 + n) * math.sqrt(2 * math.log(2 / DELTA) + epsilon0) / epsilon0),
    ]  # fmt: skip
    for name, what, ours, theirs in formulas:
        yield Comparison(f"paper: {name}", "paper", what, "the paper's text", **close(float(ours), theirs, 1e-9))


@cache
def findings() -> pd.DataFrame:
    """Return what the paper says it found, and whether the noise of the authors' code gives it: 500 runs, seed 0."""
    from dpsc.evidence.paper import reproduce
    from dpsc.evidence.paper.claims import judge
    from dpsc.evidence.paper.figures import SPECS
    from dpsc.evidence.paper.reproduce import points_of

    outcomes = {}
    for batch in reproduce.batches(points_of(list(SPECS), ["published"])):
        outcomes |= dict(zip(batch, reproduce.run_batch(batch, 500, 0), strict=True))
    return pd.DataFrame(
        [
            {"name": f.claim.name, "what": f.claim.sentence, "verdict": f.verdict, "evidence": f.evidence}
            for f in judge(["published"], list(SPECS), outcomes, 0)
        ]
    )


@cache
def comparisons() -> tuple[Comparison, ...]:
    """Compute everything."""
    parts: list[Iterable[Comparison]] = [study_rows(study) for study in studies()]
    parts += [
        published_rows(),
        difference_rows(),
        noise_rows(),
        release_rows(),
        opendp_rows(),
        composition_rows(),
        paper_rows(),
    ]
    return tuple(row for part in parts for row in part)


def main() -> None:
    table = pd.DataFrame([asdict(row) for row in comparisons()])
    table.to_csv(FILE, index=False, float_format="%.12g")
    findings().to_csv(FILE.with_name("validation-findings.csv"), index=False)
    for row in comparisons():
        if not row.agrees:
            print("DIFFERS:", row)


if __name__ == "__main__":
    main()
