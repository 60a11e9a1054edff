"""Before any budget is spent: the error to expect from public numbers alone, and what it takes to see an effect.

Donors are simulated, released and read as real ones are; no real donor is touched.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.analyst.intervals import MixtureUncertainty
from dpsc.analyst.simulate import PENALTIES, Rehearsal, Units, likely, simulated
from dpsc.answers import figures as plot
from dpsc.answers import report, words
from dpsc.answers.effects import detectable_effect
from dpsc.answers.figures.plan import plan_curves
from dpsc.answers.figures.sheet import Sheet
from dpsc.answers.words import number
from dpsc.errors import Parameter, ParameterError
from dpsc.privacy.guarantee import best_guess
from dpsc.release.kernel import Kernel, Smoothness
from dpsc.release.matrix import LARGEST_NUMBER, LARGEST_T
from dpsc.types import Array, TargetLike, one_thread, to_floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpsc.analyst.release import Release


_ERRORS = ("error", "without_privacy", "last_value")
_IN_SHOCK = tuple(f"{name}_in_shock" for name in _ERRORS)
_NO_LIMIT = 1e5  # a budget with hardly any noise
MOST_AVERAGED = 10_000  # units that are simulated for one target
_TINY = 1e-300  # no error is smaller, so that it has a logarithm
Factors = Mapping[str, tuple[float, float]]
# What answers say over what simulated ones do, and ranges for 80% of what comes (docs/guides/choosing-epsilon.md):
_SAID = 1.2
BELIEVED = 0.75  # how much of what a pilot says over what was planned for it, as a power
AFTER_PILOT = (0.6, 1.8)
WITHIN: Factors = {"error": (1 / 3, 3.0), "error_in_shock": (1 / 3, 3.0), "detectable": (0.5, 2.5)}


@dataclass(frozen=True, eq=False)
class Plan:
    """Expected errors of a Gram release over budgets and numbers of donors.

    Attributes
    ----------
    table : DataFrame
        One row per n and epsilon. ``error``: typical root mean squared error of the counterfactual (geometric mean
        over simulated panels), in the target's units if it was given, else as a share of its standard deviation before
        the intervention. ``without_privacy``: the same without noise, by the better of this estimator and ridge on the
        raw donors at its best lambda, its weights drawn towards equal ones. ``last_value``: the same for the target's
        last value. ``error_in_shock``, ``without_privacy_in_shock``, ``last_value_in_shock``:
        the same if something new hits target and donors after the intervention, by about three times what the target
        usually changes from one period to the next. ``detectable``: the smallest average effect that would be seen,
        with a p-value below 0.05 in 80% of cases, in the same units. Each of ``error``, ``error_in_shock`` and
        ``detectable`` is what is likely; ``error_low`` and ``error_high``, and so on, are the ends of a range that
        holds what comes in about 80% of cases. ``guess``: how often someone who knows all other donors would guess
        right which of two equally likely records a donor has.
    unit : str
        The unit of errors, in words.
    """

    table: pd.DataFrame
    unit: str = ""

    def epsilon_for(self, error: float | None = None, n: int | None = None, *, detect: float | None = None) -> float:
        """Return the epsilon at which the likely error falls to ``error``, or an effect of ``detect`` is likely seen.

        Infinity if no planned one is enough. Between planned budgets, logarithms are interpolated.
        """
        column, wished = _wished(error, detect)
        sizes = self.table["n"].unique()
        if n is None and len(sizes) > 1:
            raise ParameterError(f"the plan is for several n ({', '.join(map(str, sizes))}); say which.")
        rows = self.table[self.table["n"] == (sizes[0] if n is None else n)].sort_values("epsilon")
        if rows.empty:
            raise ParameterError(f"the plan has no n = {n}.")
        reached, epsilons = rows[column].to_numpy(), rows["epsilon"].to_numpy()
        if wished < reached[-1]:
            return math.inf
        enough = int(np.argmax(reached <= wished))
        if enough == 0:
            return float(epsilons[0])
        near = slice(enough - 1, enough + 1)
        return float(np.exp(np.interp(-math.log(wished), -np.log(reached[near]), np.log(epsilons[near]))))

    def plot(
        self, ax: Axes | None = None, title: str | None = None, figsize: tuple[float, float] | None = None
    ) -> Axes:
        """Draw the error over epsilon, one curve per number of donors, and return the Axes; a notebook shows it."""
        return plan_curves(self.table, self.unit, Sheet(ax, title, figsize, shown=True))

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what to expect, in words, and the curves."""
        figure = plot.figure_of(plan_curves(self.table, self.unit, Sheet()))
        return report.card("The error to expect from a release", self._words(), figure, "", "")

    def _words(self) -> list[str]:
        """Say what to expect with the smallest and the largest budget, for each number of donors."""
        lines = []
        for n, rows in self.table.sort_values("epsilon").groupby("n"):
            each = {row["epsilon"]: f"{_span(row, 'error')} with ε = {row['epsilon']:g}" for _, row in rows.iterrows()}
            few = dict.fromkeys((each[min(each)], each[max(each)]))
            without = number(rows["without_privacy"].iloc[0])
            lines.append(f"{n:,} donors: an error of {'; '.join(few)}; {without} without privacy.")
        unit = f" Errors are in: {self.unit}." if self.unit else ""
        last = number(float(self.table["last_value"].median()))
        return [*lines, f"About eight of ten errors are in these ranges. The target's last value alone: {last}.{unit}"]

    def __repr__(self) -> str:
        heads = {"detectable": "smallest effect seen", "error": "error", "error_in_shock": "error in a shock"}
        shown = self.table[["n", "epsilon"]].assign(
            **{head: [_span(row, name) for _, row in self.table.iterrows()] for name, head in heads.items()},
            **{name.replace("_", " "): self.table[name] for name in ("without_privacy", "last_value", "guess")},
        )
        return shown.to_string(index=False, float_format=lambda v: f"{v:.3g}")


def _wished(error: float | None, detect: float | None) -> tuple[str, float]:
    """Return the column of a plan that something is wished of, and what; refuse both, and none."""
    if (error is None) == (detect is None):
        raise ParameterError("say either error or detect.")
    if detect is None:
        return "error", checks.finite_number("error", error, above=0)
    return "detectable", checks.finite_number("detect", detect, above=0)


def _span(row: Mapping[Hashable, Any] | pd.Series[Any], name: str) -> str:
    return words.likely(row[f"{name}_low"], row[name], row[f"{name}_high"])


def in_range(name: str, value: float) -> str:
    """Write what is likely with its range.

    Examples
    --------
    >>> in_range("detectable", 4.0)
    '2 to 10, likely 4'
    """
    low, high = WITHIN[name]
    return words.likely(low * value, value, high * value)


def with_ranges(table: pd.DataFrame, within: Factors) -> pd.DataFrame:
    """Return a table with the low and the high end of each of its ranges beside what is likely."""
    found = {}
    for name in table:
        found[str(name)] = table[name]
        if name in within:
            ends = zip(("low", "high"), within[str(name)], strict=True)
            found |= {f"{name}_{end}": table[name] * factor for end, factor in ends}
    return pd.DataFrame(found)


def plan(
    n: int | Sequence[int],
    T0: int,
    h: int,
    epsilon: float | Sequence[float] = (0.5, 1.0, 2.0, 4.0),
    delta: float = 1e-6,
    *,
    averages: int = 1,
    sites: int = 1,
    smoothness: Smoothness = "high",
    rank: int = 3,
    signal_to_noise: float | None = None,
    target: TargetLike | None = None,
    pilot: Release | None = None,
    runs: int | None = None,
    seed: int = 0,
    on_progress: Callable[[], None] | None = None,
) -> Plan:
    """Return the errors to expect from ``GramRelease(epsilon, delta, smoothness, like=target)``.

    Parameters
    ----------
    n, epsilon : number or several
        How many donors, and which budgets: every combination is planned.
    T0, h : int
        How many periods are before the intervention, and from it on.
    averages : int
        How many units the target is the average of.
    sites : int
        How many sites the n donors are at; each makes a release of its own, from common settings, and these are merged.
    rank, signal_to_noise
        Assumptions about the donors: the number of common factors, and their size relative to each donor's own
        variation (standard deviations). By default the latter is drawn from what is likely after the target's history,
        or in general if there is none. Four of five errors on real panels were then within the planned range
        (docs/guides/choosing-epsilon.md).
    target : Series or array, optional
        The target before the intervention, public. Simulated targets change from one period to the next as much as
        this one, and share with donors what its history makes likely.
    pilot : Release, optional
        A release of the same donors with a small part of the budget, which costs nothing to read: it tells how closely
        donors follow this target, so that ``detectable`` is nearer and its range narrower. The target then has all T0
        periods. Budgets add up: the ledger says what is left after a pilot.
    runs, seed : int
        Of the simulation; by default :func:`default_runs`, which takes some seconds.
    on_progress : callable, optional
        Called after each simulated panel.

    Notes
    -----
    The same panels, shocks and noise serve all n and all epsilons: fewer donors are some of the more. An error that
    still rises with n or epsilon is chance; neighbours are then drawn together (:func:`never_rising`). No privacy
    counts as the largest budget, so no error is planned below the one without privacy.

    Examples
    --------
    >>> expected = plan(n=[300, 3000], T0=20, h=5, epsilon=1.0, runs=5)
    >>> expected.table["n"].tolist()
    [300, 3000]
    """
    sizes = sorted({checks.whole_number("n", v, at_least=1) for v in np.atleast_1d(n).tolist()})
    epsilons = sorted({checks.epsilon("epsilon", v) for v in np.atleast_1d(epsilon).tolist()})
    setting = _Setting(sizes[0], T0, h, delta, averages, sites, smoothness, rank, signal_to_noise, target, runs, seed)
    releases = [setting.release(e) for e in epsilons]
    releases.append(Rehearsal(_NO_LIMIT, delta, smoothness))

    in_calm, in_shock, effects = [], [], []
    with one_thread(), np.errstate(all="ignore"):
        for run, calm, unit in setting.panels(sizes[-1]):
            found = _forecasts(calm, sizes, releases, [seed, run, 2])
            in_calm.append(_errors(calm, sizes, found) / unit)
            effects.append([[detectable_effect(one, np.full(h, 1 / h)) / unit for one in each[:-1]] for each in found])
            shock = calm.in_shock()
            in_shock.append(_errors(shock, sizes, _forecasts(shock, sizes, releases, [seed, run, 2])) / unit)
            if on_progress is not None:
                on_progress()
    calm_errors, shock_errors = _expected(in_calm), _expected(in_shock)
    seen = _SAID * never_rising(_typical(effects))
    rows = [
        (size, e, *calm_errors[i, [j, -2, -1]], *shock_errors[i, [j, -2, -1]], seen[i, j], best_guess(e, delta))
        for i, size in enumerate(sizes)
        for j, e in enumerate(epsilons)
    ]
    table = pd.DataFrame(rows, columns=["n", "epsilon", *_ERRORS, *_IN_SHOCK, "detectable", "guess"])
    if pilot is None:
        return Plan(with_ranges(table, WITHIN), _unit(target))
    table["detectable"] *= _said_by(pilot, setting, target)
    return Plan(with_ranges(table, {**WITHIN, "detectable": AFTER_PILOT}), _unit(target))


def _said_by(pilot: Release, setting: _Setting, target: TargetLike | None) -> float:
    """Return the smallest effects after a pilot over those planned without it. Pure post-processing."""
    if pilot.guarantee is None or target is None:
        raise ParameterError(f"{Parameter('pilot')} needs {Parameter('target')}, and a release with a guarantee.")
    history = to_floats(target, "target")
    if len(history) != setting.T0 or len(pilot.times) != setting.T0 + setting.h:
        raise ParameterError(
            f"{Parameter('pilot')} has {len(pilot.times)} periods, and the target {len(history)} before the "
            f"intervention; the plan has {setting.T0 + setting.h} and {setting.T0}."
        )
    said = pilot.estimate(history, pilot.times[setting.T0]).detectable()
    same = replace(setting, delta=pilot.guarantee.delta)
    return float((said / same.reached(pilot.n, pilot.guarantee.epsilon, "detectable", None)) ** BELIEVED)


@dataclass(frozen=True, eq=False)
class _Setting:
    """What is simulated, whatever the number of donors and the budget.

    Parameters are those of :func:`plan`; ``fewest`` donors are planned for.
    """

    fewest: int
    T0: int
    h: int
    delta: float = 1e-6
    averages: int = 1
    sites: int = 1
    smoothness: Smoothness = "high"
    rank: int = 3
    signal_to_noise: float | None = None
    target: TargetLike | None = None
    runs: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if checks.delta("delta", self.delta) == 0:
            raise ParameterError("delta must be above 0 for a Gram release.")
        checks.whole_number("T0", self.T0, at_least=2)
        checks.whole_number("h", self.h, at_least=1)
        T = self.T0 + self.h
        if T > LARGEST_T:
            raise ParameterError(f"T0 + h must be at most {LARGEST_T:,}, not {T:,}.")
        most = {"rank": 100, "runs": 100_000, "averages": MOST_AVERAGED, "sites": self.fewest}
        for name, limit in most.items():
            value = getattr(self, name)
            if value is not None and checks.whole_number(name, value, at_least=1) > limit:
                raise ParameterError(f"{Parameter(name)} must be at most {limit:,}, not {value:,}.")
        ratio = self.signal_to_noise
        if ratio is not None and not 1e-6 <= checks.finite_number("signal_to_noise", ratio, above=0) <= 1e6:
            raise ParameterError(f"{Parameter('signal_to_noise')} must be between 0.000001 and 1,000,000.")
        checks.whole_number("seed", self.seed, at_least=0)
        Kernel.named(self.smoothness)
        _ = self._history  # refused before anything is simulated

    @cached_property
    def _history(self) -> Array | None:
        return None if self.target is None else history_of(self.target)

    def release(self, epsilon: float) -> Rehearsal:
        """Return what releases with a budget."""
        return Rehearsal(epsilon, self.delta, self.smoothness, self.sites)

    def panels(self, n: int) -> Iterator[tuple[int, Units, float]]:
        """Yield the number of each simulated panel, the panel, and what its numbers are divided by."""
        T, history = self.T0 + self.h, self._history
        size = None if history is None else usual_change(history)
        runs = default_runs(T) if self.runs is None else self.runs
        for run, likeness in enumerate(likely(history, T, self.averages, runs, self.signal_to_noise)):
            units = simulated(n, self.T0, self.h, self.averages, self.rank, likeness, [self.seed, run])
            yield run, units, float(np.std(units.target[: self.T0])) if size is None else 1 / size

    def reached(self, n: int, epsilon: float, column: str, on_progress: Callable[[], None] | None) -> float:
        """Return the typical error, or the smallest effect seen, of one number of donors and budget in calm times."""
        release, found = self.release(epsilon), []
        with one_thread(), np.errstate(all="ignore"):
            for run, units, unit in self.panels(n):
                ((one,),) = _forecasts(units, [n], [release], [self.seed, run, 2])
                is_error = column == "error"
                value = units.error(one.forecast) if is_error else detectable_effect(one, np.full(self.h, 1 / self.h))
                found.append(value / unit)
                if on_progress is not None:
                    on_progress()
        return float(_typical(found)) * (1.0 if column == "error" else _SAID)


def never_rising(errors: Array) -> Array:
    """Return positive errors that never rise from row to row or from column to column, close to those given.

    More donors and larger budgets do not harm, so an error that rises is chance. Geometric mean of the largest such
    errors that are nowhere above the given ones and the smallest that are nowhere below them.
    """
    below = np.minimum.accumulate(np.minimum.accumulate(errors, axis=0), axis=1)
    above = np.maximum.accumulate(np.maximum.accumulate(errors[::-1, ::-1], axis=0), axis=1)[::-1, ::-1]
    return np.asarray(np.sqrt(below) * np.sqrt(above))


def _forecasts(
    units: Units, sizes: list[int], releases: list[Rehearsal], seed: list[int]
) -> list[list[MixtureUncertainty]]:
    """Return for each n what each release forecasts."""
    y = units.target[: units.T0]
    return [[r.estimate(units.first(n).donors, n, y, np.random.default_rng(seed)) for r in releases] for n in sizes]


def _errors(units: Units, sizes: list[int], found: list[list[MixtureUncertainty]]) -> Array:
    """Return one row per n: the error of each release, of ridge at each penalty, and of the last value."""
    free, rows = units.error(units.target[units.T0 - 1]), []
    for n, each in zip(sizes, found, strict=True):
        rows.append([*(units.error(one.forecast) for one in each), *units.first(n).ridge_errors(), free])
    return np.array(rows)


def _typical(each: list[Any]) -> Array:
    """Return geometric means over runs."""
    return np.asarray(np.exp(np.mean(np.log(np.maximum(each, _TINY)), axis=0)))


def _expected(each: list[Array]) -> Array:
    """Return one row per n: the error of each release, without privacy, and of the last value.

    Without privacy is the largest budget of all: the better of a release without limit and of ridge, with one penalty
    for all runs.
    """
    typical = _typical(each)
    budgets = typical.shape[1] - len(PENALTIES) - 2
    without_privacy = typical[:, budgets:-1].min(axis=1)
    return np.column_stack([never_rising(np.column_stack([typical[:, :budgets], without_privacy])), typical[:, -1]])


def _unit(target: TargetLike | None) -> str:
    """Name the unit of errors: the target's own, or a share of how much it moves."""
    if target is None:
        return "standard deviations of the target before the intervention"
    name = target.name if isinstance(target, pd.Series) else None
    return "units of the target" if name is None else str(name)


def default_runs(T: int) -> int:
    """Return how many panels to simulate by default: fewer if they are long."""
    return max(5, min(24, 1600 // T))


def history_of(target: TargetLike) -> Array:
    """Return the known values of a target that changes."""
    values = to_floats(target, "target")
    values = values[np.isfinite(values)]
    if values.ndim != 1 or len(values) < 3:
        raise ParameterError("target needs at least 3 finite values.")
    if np.abs(values).max() > LARGEST_NUMBER:
        raise ParameterError(f"target has a number beyond {LARGEST_NUMBER:g}.")
    if np.ptp(values) == 0:
        raise ParameterError("target does not change before the intervention, so it says nothing about errors.")
    return values


def usual_change(history: Array) -> float:
    """Return the root mean square of changes from one period to the next."""
    changes = np.abs(np.diff(history))
    return float(changes.max() * math.sqrt(float(np.mean((changes / changes.max()) ** 2))))


EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # between these the budget is sought
_SHOWN = (0.5, 1.0, 2.0, 4.0)
_MORE_DONORS = (2, 5, 10)
_LONGER = 2
_TURNS = 4  # two are usual
_USUAL = 4.0  # a larger budget is said to be large


@dataclass(frozen=True)
class Way:
    """One way to reach it.

    Attributes
    ----------
    change : {"budget", "donors", "periods"}
        What is different from what was planned.
    epsilon : float
    n, T0, averages : int
    """

    change: str
    epsilon: float
    n: int
    T0: int
    averages: int


@dataclass(frozen=True)
class Taking:
    """The plan for the donors that are there, and the ways to reach what is wished; no way, if none was found."""

    expected: Plan
    ways: list[Way]


def what_it_takes(
    n: int,
    T0: int,
    h: int,
    *,
    error: float | None = None,
    detect: float | None = None,
    on_progress: Callable[[], None] | None = None,
    **options: Any,
) -> Taking:
    """Return the smallest budget that reaches an error, or shows an effect; and if none does, what to change.

    Parameters
    ----------
    n, T0, h
        As in :func:`dpsc.plan`.
    error, detect : float
        One of them: the typical error wished, or the average effect that must be seen (p below 0.05 in 80% of cases).
    options
        Of :func:`dpsc.plan`.
    """
    column, wished = _wished(error, detect)
    averages = options.get("averages", 1)

    def enough(n: int, T0: int, most: float) -> float:
        setting = _Setting(n, T0, h, **options)
        return smallest(lambda epsilon: setting.reached(n, epsilon, column, on_progress) / wished, most)

    here = enough(n, T0, EPSILONS[-1])
    ways = [] if here == math.inf else [Way("budget", here, n, T0, averages)]
    if here > _USUAL:
        more = (Way("donors", enough(k * n, T0, _USUAL), k * n, T0, averages) for k in _MORE_DONORS)
        ways += itertools.islice((way for way in more if way.epsilon < math.inf), 1)
        longer = enough(n, _LONGER * T0, _USUAL)
        ways += [] if longer == math.inf else [Way("periods", longer, n, _LONGER * T0, averages)]
    shown = sorted({*_SHOWN, *(way.epsilon for way in ways[:1])})
    return Taking(plan(n, T0, h, shown, on_progress=on_progress, **options), ways)


def smallest(over: Callable[[float], float], most: float) -> float:
    """Return the smallest budget, to two digits, at which ``over`` is at most 1; infinity if it is above 1 at ``most``.

    The budgets of the ladder are halved until two neighbours are found; between them logarithms are interpolated until
    the digits are settled.
    """
    known = {most: over(most)}
    if known[most] > 1:
        return math.inf
    low, high = -1, EPSILONS.index(most)
    while high - low > 1:
        middle = (low + high) // 2
        known[EPSILONS[middle]] = over(EPSILONS[middle])
        low, high = (low, middle) if known[EPSILONS[middle]] <= 1 else (middle, high)
    if low < 0:
        return EPSILONS[0]
    below, enough = EPSILONS[low], EPSILONS[high]
    for _ in range(_TURNS):
        logs = np.log([known[enough], known[below]]), np.log([enough, below])
        between = _two_digits_up(math.exp(float(np.interp(0.0, *logs))))
        if not below < between < enough:
            break
        known[between] = over(between)
        below, enough = (below, between) if known[between] <= 1 else (between, enough)
    return enough


def _two_digits_up(value: float) -> float:
    """Round up to two digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / step - 1e-9) * step:.2g}")
