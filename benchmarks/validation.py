"""Our numbers beside those of others: every comparison of docs/reference/validation.md.

    python benchmarks/validation.py                  # a few seconds

Writes results/validation.csv. tests/test_validation.py computes the same again and checks every row. What OpenDP's
Context draws comes from opendp_context.py, which needs an environment of its own.
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
from opendp_context import EPSILON, HIGHEST, PERIODS, RHO, UNITS, records
from opendp_context import FILE as CONTEXT
from studies import PUBLISHED, Study, basque, california, castle, germany, simulated, studies, texas_guns, texas_prisons

from dpsc import (
    GramRelease,
    ObjectivePerturbation,
    OutputPerturbation,
    Panel,
    PanelRelease,
    People,
    PrivatePanel,
    SyntheticControl,
)
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
SIGMA = "dp_accounting, `get_sigma_gaussian`"
ZCDP = "OpenDP, `make_zCDP_to_approxDP`"


@dataclass(frozen=True)
class Comparison:
    """Our number and theirs, and how far ours may be above (``most``) or below (``least``) theirs.

    ``group`` is the row of the page that it belongs to; ``relative`` says that the page shows a share of their number.
    """

    name: str
    group: str
    what: str
    peer: str
    ours: float
    theirs: float
    least: float
    most: float
    weights: float = math.nan  # the largest difference of a weight, where there are weights
    relative: bool = False

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


def our_simplex(study: Study) -> Any:
    return np.asarray(SyntheticControl(method="simplex").fit(study.panel).weights)


def scaled_simplex(study: Study) -> Any:
    """Return simplex weights for periods divided by their standard deviation over units."""
    return our_simplex(replace(study, wide=study.wide.div(study.wide.std(axis=1), axis=0)))


def our_augmented(study: Study, lambda_: float, f: Any = None) -> Any:
    """Return simplex weights (or ``f``) plus a ridge of what they leave, both on paths less the donors' mean."""
    before = study.wide.loc[study.before].sub(study.donors.loc[study.before].mean(axis=1), axis=0)
    X, y = before.drop(columns=study.treated).to_numpy().T, before[study.treated].to_numpy()
    f = simplex_weights(X, y) if f is None else f
    return f + ridge_weights(X, y - X.T @ f, 2 * lambda_)


def study_rows(study: Study) -> Iterator[Comparison]:
    """Compare the average effect and every weight."""
    lambda_ = 2 * penalty(study)
    ours: dict[str, Any] = {
        "simplex": SyntheticControl(method="simplex"),
        "ridge": SyntheticControl(method="ridge", lambda_=lambda_),
        f"robust, rank {RANK}": SyntheticControl(method="robust", rank=RANK, lambda_=lambda_),
    }
    fitted = {name: np.asarray(method.fit(study.panel).weights) for name, method in ours.items()}
    fitted["augmented"] = our_augmented(study, penalty(study))
    theirs = {
        "simplex": ("Synth", their_simplex(study), 1e-3),
        "ridge": ("RobustSynth, full rank", their_robust(study, min(study.donors.shape)), 1e-9),
        f"robust, rank {RANK}": (f"RobustSynth, rank {RANK}", their_robust(study, RANK), 1e-9),
        "augmented": ("AugSynth", their_augmented(study), 1e-3),
    }
    for method, f in fitted.items():
        peer, weights, tolerance = theirs[method]
        yield Comparison(
            f"{study.name}: {method}", f"{method}: average effect", f"{study.name}, {method}", peer, effect(study, f),
            effect(study, weights), -tolerance, tolerance, float(np.abs(f - np.ravel(weights)).max()),
        )  # fmt: skip
    fits = fit(study, fitted["simplex"]), fit(study, theirs["simplex"][1])
    yield Comparison(f"{study.name}: fit", "simplex: fit before", f"{study.name}, fit", "Synth", *fits, -1e-4, 1e-9)


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
    """Compare with what is published on California.

    The abstract of the study says "about 26 packs lower" by the year 2000; its authors match covariates, too. The
    average effect of synthetic control is in table 1 of Arkhangelsky, Athey, Hirshberg, Imbens and Wager, "Synthetic
    Difference-in-Differences" (American Economic Review, 2021), with outcomes only; the Stata command sdid by Clarke,
    Pailañir, Athey and Imbens prints -19.61966. Their optimiser adds a very small ridge penalty and stops earlier.
    """
    found = SyntheticControl(method="simplex").fit(california().panel)
    yield Comparison(
        "California: published", "California, year 2000", "California, simplex: effect in the year 2000",
        "Abadie et al. (2010)", float(found.gaps.iloc[-1]), -26.0, -1.0, 1.0,
    )  # fmt: skip
    yield Comparison(
        "California: published average", "California, average", "California, simplex: average effect",
        "Arkhangelsky et al. (2021)", float(found.att), -19.61966, -0.2, 0.2,
    )  # fmt: skip


def printed_rows() -> Iterator[Comparison]:
    """Compare with what the documents of three packages print, outcomes only.

    The vignette of R's augsynth (github.com/ebenmichael/augsynth, vignettes/augsynth-vignette.md at 219d169) prints the
    effect in each year and the length of what is left before. It called R's Synth with equal importance, which divides
    each period by its standard deviation over all units; its ridge, lambda = 8, does not. Without that, our simplex is
    up to 0.04 away.

    Mendez (carlos-mendez.org/post/python_scpi, 2026) prints weights and effects of scpi, without a constant.

    CausalPy's notebook synthetic-control-sklearn.ipynb prints weights and the average effect of WeightedProportion,
    whose optimiser stops a little earlier. Older versions print 0.385, 0.172 and 0.443 for a, b and c, which is what it
    finds if numpy subtracts a row from a column.
    """
    printed = pd.read_csv(PUBLISHED / "printed.csv").set_index(["study", "year"])["effect"]
    fits = []

    study, peer = basque(), "augsynth"
    simplex = scaled_simplex(study)
    for method, f, length in (("simplex", simplex, 0.377), ("augmented", our_augmented(study, 8.0, simplex), 0.373)):
        yield from yearly(study, method, f, printed.loc[f"Basque {method}"], peer, 2e-6)
        fits.append((f"{study.name}, {method}: length before", peer, fit(study, f) * len(study.before) ** 0.5, length))

    study, peer = germany(), "scpi"
    f = our_simplex(study)
    shown = {
        "Austria": 0.2911, "USA": 0.2728, "Italy": 0.1914, "Netherlands": 0.1330, "Switzerland": 0.0814, "France": 0.0303,
    }  # fmt: skip
    away = float(np.abs(f - [shown.get(name, 0.0) for name in study.donors]).max())
    yield from yearly(study, "simplex", f, printed.loc["Germany simplex"], peer, 5e-4, away)
    fits.append((f"{study.name}, simplex: fit", peer, fit(study, f), 0.072))

    for what, peer, ours, theirs in fits:
        yield Comparison(f"printed: {what}", "Basque, Germany: fit", what, peer, ours, theirs, -5e-4, 5e-4)

    study = simulated()
    f = our_simplex(study)
    away = float(np.abs(f - [0.319, 0.0597, 0.294, 0.0605, 0.000762, 0.234, 0.0321]).max())
    yield Comparison(
        "printed: simulated", "simulated series", "simulated series, simplex: average effect", "CausalPy",
        effect(study, f), -1.757497, -2e-5, 2e-5, away,
    )  # fmt: skip


def yearly(
    study: Study, method: str, weights: Any, theirs: Any, peer: str, margin: float, away: float = math.nan
) -> Iterator[Comparison]:
    """Compare the average effect, and the effect in the year that is farthest from theirs."""
    ours = gaps(study, weights).loc[study.first :]
    far = (ours - theirs).abs().idxmax()
    name, group = f"{study.name}, {method}", f"{study.name}: effects"
    yield Comparison(
        f"printed: {name}", group, f"{name}: average effect", peer, float(ours.mean()), float(theirs.mean()),
        -margin, margin, away,
    )  # fmt: skip
    yield Comparison(
        f"printed: {name}, a year", group, f"{name}: effect in the year farthest from theirs", peer,
        float(ours.loc[far]), float(theirs.loc[far]), -margin, margin,
    )  # fmt: skip


def staggered_rows() -> Iterator[Comparison]:
    """Compare a study of 21 states with their own dates: log homicides and laws on self-defence.

    Cheng and Hoekstra (Journal of Human Resources, 2013) say in their abstract: "a statistically significant 8 percent
    net increase" of homicides. The vignette of the R package bacondecomp prints 0.0818 for the two-way regression with
    these dates, and 0.08796 for states with a law against those without. Ours is another estimator: each state's
    forecast from the states without a law, read from their table, which is public and has no noise. So it may be
    farther away than an optimiser's error, but not farther than its own standard error.
    """
    wide, dates = castle()
    table = PrivatePanel.from_noisy_table(wide.T, noise=0.0, guarantee="the FBI's reports, public")
    found = table.study(dates)
    away = found.standard_error
    for name, theirs, peer in (
        ("regression", 0.0818, "R's bacondecomp"),
        ("never treated", 0.08796, "R's bacondecomp, law against none"),
    ):
        yield Comparison(
            f"castle: {name}", "21 states, own dates: effect", "21 states, average over unit-periods", peer,
            float(found.att), theirs, -away, away,
        )  # fmt: skip
    never = wide.drop(columns=list(dates))
    ours, theirs = [], []
    for state, first in dates.items():
        study = Study(state, "", "", "", never.join(wide[state]), state, first)
        ours.append(gaps(study, our_simplex(study)).loc[first:])
        theirs.append(gaps(study, their_simplex(study)).loc[first:])
    yield Comparison(
        "castle: simplex", "21 states, simplex each", "21 states, simplex each: average over unit-periods", "Synth",
        float(pd.concat(ours).mean()), float(pd.concat(theirs).mean()), -1e-3, 1e-3,
    )  # fmt: skip


def difference_rows() -> Iterator[Comparison]:
    """Show where the two differ by definition, or because an optimiser stops: what the rows above avoid."""
    guns = texas_guns()
    as_counted = replace(guns, wide=100 * guns.wide)
    ours = our_simplex(as_counted)
    yield Comparison(
        "differs: units", "large outcomes: fit", "Texas, guns, in crimes instead of hundreds: fit before the law, simplex",
        "Synth", fit(as_counted, ours), fit(as_counted, their_simplex(as_counted)), -30.0, -20.0,
    )  # fmt: skip
    prisons = texas_prisons(with_zeros=True)
    ridge = SyntheticControl(method="ridge", lambda_=2 * penalty(prisons)).fit(prisons.panel)
    theirs = their_robust(prisons, min(prisons.donors.shape))
    yield Comparison(
        "differs: zeros", "zeros: average effect", "Texas, prisons, with states that report zero: average effect, ridge",
        "RobustSynth", float(ridge.att), effect(prisons, theirs), -0.5, -0.2,
    )  # fmt: skip


# --- accounting, against dp_accounting and OpenDP --------------------------------------------------------------------


def close(ours: float, theirs: float, relative: float) -> dict[str, Any]:
    """Return two numbers that should be equal up to a relative difference."""
    limits = {"least": -relative * theirs, "most": relative * theirs}
    return {"ours": ours, "theirs": theirs, **limits, "relative": True}


def noise_rows() -> Iterator[Comparison]:
    """Compare the standard deviation of Gaussian noise for sensitivity 1."""
    from dp_accounting import get_sigma_gaussian

    for delta, epsilons in ((DELTA, EPSILONS), (1e-9, (0.1, 1.0, 8.0))):
        for epsilon in epsilons:
            numbers = close(1 / accounting.gaussian_mu(epsilon, delta), get_sigma_gaussian(epsilon, delta), 1e-6)
            what = f"Gaussian noise, ε = {epsilon:g}, δ = {delta:.0e}"
            yield Comparison(f"noise: {epsilon:g}, {delta:.0e}", "Gaussian noise", what, SIGMA, **numbers)


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
        yield Comparison(f"release: {epsilon:g}", "Gram release's noise", what, f"{SIGMA} times √2", **numbers)


def opendp_rows() -> Iterator[Comparison]:
    """Compare what we promise for noise that we draw with what OpenDP says that it costs, alone and composed."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    for epsilon in (0.1, 1.0, 8.0):
        pure = single(epsilon, 0.0)
        drawn: Any = discrete.measurement("laplace", discrete_scale((1000.0, 1000.0), pure))
        yield Comparison(
            f"laplace: {epsilon:g}", "Laplace noise: ε", f"Laplace noise, ε = {epsilon:g}", "OpenDP, `make_laplace`",
            **close(pure.loss.epsilon(0.0), drawn.map(1000), 1e-9),
        )  # fmt: skip
    for statistic, bounds in (("mean", (-1.0, 1.0)), ("total", (0.0, 1.0))):
        rule = TableRule(statistic, bounds, 3.0, 1, None, units=40, periods=36)
        for delta, reach in ((0.0, rule.l1_sensitivity), (DELTA, math.sqrt(rule.squared_sensitivity))):
            loss = budget(rule, 1.0, delta)
            drawn = discrete.measurement(*noise_of(rule, loss))
            law, unit, stated = ("Gaussian", "ρ", loss.mu_squared / 2) if delta else ("Laplace", "ε", loss.pure)
            yield Comparison(
                f"panel: {statistic}, {law}", "panel: ε or ρ", f"{unit} of a panel, {statistic}s, person bound 3, {law} noise",
                f"OpenDP, `make_{law.lower()}`", **close(stated, drawn.map(reach), 1e-9),
            )  # fmt: skip
    for times in (1, 10, 100):
        for epsilon in (0.5, 1.0, 4.0):
            loss = single(epsilon, DELTA).loss
            step = StepBudget("rho", loss.rho / times)
            one = discrete.measurement("gaussian", discrete_scale((1000.0, 1000.0), step))
            together: Any = dp.c.make_zCDP_to_approxDP(dp.c.make_composition([one] * times))
            curve, ours = together.map(1000.0), total(step.loss, times)
            what = f"{times} release{'s' * (times > 1)} of ρ = {step.amount:.3g}"
            yield Comparison(
                f"zcdp: {epsilon:g}, {times}", "zCDP releases: ε or δ", f"{what}: ε", ZCDP,
                **close(ours.epsilon(DELTA), curve.epsilon(DELTA), 1e-6),
            )  # fmt: skip
            if times == 10:
                yield Comparison(
                    f"zcdp: delta, {epsilon:g}", "zCDP releases: ε or δ", f"{what}: δ at ε = {epsilon:g}", ZCDP,
                    **close(accounting.zcdp_delta(ours.rho, epsilon), curve.delta(epsilon), 1e-6),
                )  # fmt: skip


def context_rows() -> Iterator[Comparison]:
    """Compare releases of a table of people with what OpenDP's Context draws for the same table and budget.

    In the Context the unit of privacy is a person, and each counts once in a cell and in all cells of a person that a
    panel counts. Its neighbours add or remove a person, ours replace one, which is up to twice as far: the factor is
    exact, by the theorems of docs/proofs/people-in-groups.md. For zCDP it is divided by the roots of both budgets.
    """
    peers = pd.read_csv(CONTEXT).set_index(["asked", "column"])
    frame = pd.DataFrame(records(), columns=["person", "unit", "period", "value"])
    wide = (0.0, float(HIGHEST))
    root, short = math.sqrt(2), 0.5 * math.sqrt(len(PERIODS)) * HIGHEST
    asked: list[tuple[str, str, str, dict[str, Any], float]] = [
        ("count", "len", "√2", {"statistic": "count"}, root),
        ("count, Laplace", "len", "2", {"statistic": "count", "delta": 0.0}, 2.0),
        ("total", "value", "√2", {"statistic": "total", "bounds": wide}, root),
        ("total of both signs", "value", "2", {"statistic": "total", "bounds": (-wide[1], wide[1])}, 2.0),
        ("mean", "len", "√2", {"statistic": "mean", "bounds": wide}, root),
        ("mean", "centred", "√2", {"statistic": "mean", "bounds": wide}, root),
        ("total", "value", "√2/2, people half as long", {"statistic": "total", "bounds": wide, "person_bound": short},
         root / 2),
        ("total, two people", "value", "1/2", {"statistic": "total", "bounds": wide}, 0.5),
    ]  # fmt: skip
    for question, column, word, options, factor in asked:
        law, scale = peers.loc[(question, column), ["law", "scale"]]
        people = People.from_long(
            frame, person="person", unit="unit", time="period", units=UNITS, periods=PERIODS,
            outcome=None if options["statistic"] == "count" else "value",
        )  # fmt: skip
        (block,) = PanelRelease(**{"epsilon": EPSILON, "delta": DELTA} | options).release(people, dataset=None).blocks
        assert law == f"Integer {block.law.title()}"  # the same law of noise, on whole numbers
        assert block.guarantee is not None
        loss = block.guarantee.loss
        spent = 1.0 if block.law == "laplace" else math.sqrt(RHO / (loss.mu_squared / 2 + loss.rho))
        in_units = 1 / block.rule.one_person if column == "len" and block.rule.counts_people else block.rule.part
        what = f"panel, {question}{', people' if question == 'mean' and column == 'len' else ''}: scale of {law} noise"
        yield Comparison(
            f"context: {question}, {column}, {word}", f"panel's scale, {question.split(',')[0].split()[0]}", what,
            f"OpenDP's Context times {word}", **close(block.scale * in_units, factor * spent * float(scale), 1e-6),
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


def renyi_rows() -> Iterator[Comparison]:
    """Compare with the accountant of Rényi losses: zCDP is equal, and the Gaussian curve is less, as it should be."""
    from dp_accounting import GaussianDpEvent
    from dp_accounting.rdp import RdpAccountant

    for epsilon in (0.5, 1.0, 4.0):
        rho, mu = accounting.zcdp_rho(epsilon, DELTA) / 10, accounting.gaussian_mu(epsilon, DELTA) / math.sqrt(10)
        for law, each, amount, loss, limits in (
            ("ρ", 1 / math.sqrt(2 * rho), rho, Loss.from_rho(rho), (-1e-4, 0.0)),
            ("μ", 1 / mu, mu, Loss.from_mu(mu), (-0.1, 0.0)),
        ):
            accountant = RdpAccountant()
            accountant.compose(GaussianDpEvent(each), 10)
            theirs = float(accountant.get_epsilon(DELTA))
            yield Comparison(
                f"renyi: {law}, {epsilon:g}", f"10 releases in {law}: ε", f"10 Gaussian releases, {law} = {amount:.3g} each",
                "dp_accounting, Rényi", total(loss, 10).epsilon(DELTA), theirs, limits[0] * theirs, limits[1],
                relative=True,
            )  # fmt: skip


def total(one: Loss, times: int) -> Loss:
    return sum([one] * (times - 1), one)


def bound(name: str, what: str, loss: Loss, truth: Any, looser: float) -> Comparison:
    theirs = float(truth.get_epsilon_for_delta(DELTA))
    group = "Gaussian releases: ε" if name.startswith("gaussian") else "with Laplace releases: ε"
    return Comparison(
        f"together: {name}", group, what, "dp_accounting, loss distribution", loss.epsilon(DELTA), theirs,
        least=0.0, most=looser * theirs, relative=True,
    )  # fmt: skip


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
        yield Comparison(
            f"paper: {name}", "formulas as printed", what, "the paper's text", **close(float(ours), theirs, 1e-9)
        )


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
        printed_rows(),
        staggered_rows(),
        difference_rows(),
        noise_rows(),
        release_rows(),
        opendp_rows(),
        context_rows(),
        composition_rows(),
        renyi_rows(),
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
