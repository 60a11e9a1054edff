"""People in groups: how good answers from a noisy table of few units are, and how often their intervals hold.

    python benchmarks/groups.py [--half report|design] [--runs 20] [--workers 2] [--only ranks|spending|ranges]

Three measurements. Panels: units drawn at random from a real panel, or made with seasons, one of them the target, the
others its donors; the table gets noise of 0 to 4 one-period changes (the median change of a unit from one period to the
next), the same for every unit or differing twentyfold. Nobody is treated, so every effect is zero. Flights: records of
41 destinations are released with a budget, as a custodian does. Spending: made customers of 40 shops, a few of whom
spend most, with several ways to bound what one of them adds. Errors are divided by that of the best forecast without
donors from exact data (last value, line, mean), and for spending by the level.

Most constants of the estimator were chosen elsewhere, on 18 panels of 17 to 100 units that may be some of these; that a
target is one unit, and that variances count 1.3 times as elsewhere, on the design half. Nothing is chosen on the report
half, on flights or on panels with seasons. Writes results/groups-HALF.csv and, for the report half, groups-flights.csv,
groups-ranks.csv, groups-no-effect.csv, groups-spending.csv and groups.md.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import panels
import problems
from panels import Array, Problem

from dpsc import PanelRelease, People, PrivatePanel, datasets
from dpsc.analyst.plan_panel import CAME, WITHIN, expected
from dpsc.custodian.weights.classic import simplex_weights

OUT = Path(__file__).parent / "results"
UNITS = (8, 12, 20, 40, 100)
DIFFERENT = (1.0,)  # where noise is twentyfold for some
NOISE = (0.0, 0.5, 1.0, 2.0, 4.0)
TWENTYFOLD = 20.0
SEASONS = {"made: seasons": 0.3, "made: seasons, units apart": 1.0}
EPSILONS = (0.5, 1.0, 2.0, 4.0)
RANKED = (12, 20)
EFFECTS = (0.0, 1.0, 2.0, 3.0)  # one-period changes
NO_EFFECT = (0.0,)
SHOPS, MONTHS, CUSTOMERS = 40, 24, 8000
EXACT = "exact table, no bounds"
WAYS = (
    "bounds on a month alone",
    "median of another year",
    "median, found privately",
    "0.9 quantile of another year",
    "0.9 quantile, found privately",
)
Setting = tuple[str, int, float, bool, float]  # panel, units, noise, unequal, shock


def names(half: str) -> list[str]:
    """Return the panels of a half whose units are made of people or flights, and those with seasons."""
    alone = ("man", "person")
    found = [name for name, source in panels.SOURCES.items() if panels.half(name) == half and source.unit not in alone]
    return found + list(SEASONS)


def rows_of(name: str, units: int, shock: float, run: int, half: str) -> tuple[Array, int, float]:
    """Return exact rows, the target first, with the date and the median one-period change."""
    rng = problems.generator("groups", name, units, run, half)
    if name in SEASONS:
        everything, T0 = seasonal(SEASONS[name], units, rng), 36
    else:
        everything = panels.load(name)
        T0 = int(rng.choice(panels.treatment_times(everything.shape[1])))
    rows = everything[rng.permutation(len(everything))[:units]]
    change = float(np.median(np.abs(np.diff(rows, axis=1))))
    return (rows - problems.losses(rows, T0, shock, rng))[:, : T0 + problems.LONGEST], T0, change


def seasonal(own: float, units: int, rng: np.random.Generator) -> Array:
    """Return 42 months of units that share a season and a slow walk, each more or less, with noise of their own."""
    season = panels.factors("season", 1, 42, rng)
    walk = np.cumsum(rng.normal(size=(1, 42)), axis=1) / 3
    loadings = rng.uniform(0.5, 1.5, (units, 2))
    return np.asarray(loadings @ np.vstack([season, walk]) + own * rng.normal(size=(units, 42)))


def with_noise(rows: Array, size: float, unequal: bool, run: int) -> tuple[Array, Array]:
    """Return the noisy table and the standard deviation of each row's noise."""
    rng = problems.generator("noise", size, unequal, run)
    spread = np.full(len(rows), size)
    if unequal:
        spread = spread * TWENTYFOLD ** rng.uniform(-0.5, 0.5, len(rows))
    return rows + spread[:, np.newaxis] * rng.normal(size=rows.shape), spread


def published(rows: Array, spread: Array) -> PrivatePanel:
    table = pd.DataFrame(rows, index=[f"unit {k}" for k in range(len(rows))], columns=range(rows.shape[1]))
    noise = pd.DataFrame(np.broadcast_to(spread[:, np.newaxis], rows.shape), index=table.index, columns=table.columns)
    return PrivatePanel.from_noisy_table(table, noise=noise, guarantee="a measurement")


def simplex(problem: Problem) -> Array:
    T0 = problem.T0
    return np.asarray(problem.donors[:, T0:].T @ simplex_weights(problem.donors[:, :T0], problem.target[:T0]))


def forward_ridge(problem: Problem) -> Array:
    """Forecast with ridge at the penalty, with or without own levels, that was best for the last periods before T0."""
    first = max(2, problem.T0 - max(1, problem.T0 // 4))
    earlier = Problem(
        problem.donors[:, : problem.T0], problem.target, first, problems.NO_BOUNDS, problem.target[first : problem.T0]
    )
    errors, forecasts = [], []
    for own in (False, True):
        errors += [panels.rmse(path, earlier.truth) for path in problems.ridge(earlier, own_levels=own)]
        forecasts += problems.ridge(problem, own_levels=own)
    return forecasts[int(np.argmin(errors))]


OTHERS = {"simplex": simplex, "ridge": forward_ridge, "difference in differences": problems.difference_in_differences}


def one_run(setting: Setting, run: int, half: str) -> dict[str, float]:
    name, units, noise, unequal, shock = setting
    rows, T0, change = rows_of(name, units, shock, run, half)
    table, spread = with_noise(rows, noise * change, unequal, run)
    truth = rows[0, T0:]
    exact = Problem(rows[1:], rows[0], T0, problems.NO_BOUNDS, truth)
    noisy = replace(exact, donors=table[1:], target=table[0])
    result = published(table, spread).estimate("unit 0", T0)
    band, (low, high) = result.interval(), result.att_interval()
    found = {"dpsc": panels.rmse(result.counterfactual, truth)}
    found |= {free: panels.rmse(forecast(exact), truth) for free, forecast in problems.FREE.items()}
    found |= {other: panels.rmse(forecast(noisy), truth) for other, forecast in OTHERS.items()}
    return found | {
        "points": float(((band["lower"] <= result.observed) & (result.observed <= band["upper"])).mean()),
        "average": float(low <= 0 <= high),
        "width": (high - low) / change,
        "p below 0.05": float(result.p_value < 0.05),
        "planned": planned(table[0, :T0], spread, truth.size) / result.detectable(),
    }


def planned(before: Array, spread: Array, after: int) -> float:
    """Return the formula for the effect that would be seen, from the target's own noisy past."""
    return formulas(before, spread, after)[1]


def formulas(before: Array, spread: Array, after: int) -> tuple[float, float]:
    """Return the formulas for the error and the smallest effect, from the target's own noisy past."""
    squared = float(np.mean(np.diff(before) ** 2))
    change = np.sqrt(max(squared - 2 * spread[0] ** 2, 0.1 * squared))
    return expected(change, spread[0], float(np.median(spread[1:])), len(spread), len(before), after)


def ranges(half: str, runs: int) -> pd.DataFrame:
    """Return what plan_panel's formulas say, and the error and the smallest effect of the answer, one row per target."""
    rows = []
    for setting in settings(half):
        name, units, noise, unequal, shock = setting
        for run in range(runs):
            exact, T0, change = rows_of(name, units, shock, run, half)
            table, spread = with_noise(exact, noise * change, unequal, run)
            truth = exact[0, T0:]
            result = published(table, spread).estimate("unit 0", T0)
            error, seen = formulas(table[0, :T0], spread, truth.size)
            rows.append(
                (half, name, units, noise, unequal, shock, run, error, panels.rmse(result.counterfactual, truth), seen,
                 result.detectable())
            )  # fmt: skip
    columns = ["half", "panel", "units", "noise", "unequal", "shock", "run"]
    return pd.DataFrame(rows, columns=[*columns, "planned", "realised", "planned_effect", "effect"])


def one_setting(setting: Setting, runs: int, half: str) -> dict[str, Any]:
    rows = pd.DataFrame([one_run(setting, run, half) for run in range(runs)])
    kept = ["points", "average", "p below 0.05"]
    errors = rows.drop(columns=kept).median()
    free = errors[list(problems.FREE)].min()
    said = dict(zip(("panel", "units", "noise", "unequal", "shock"), setting, strict=True))
    over = {name: errors[name] / free for name in ("dpsc", *OTHERS)}
    return said | {"runs": runs} | over | errors[["width", "planned"]].to_dict() | rows[kept].mean().to_dict()


def settings(half: str) -> list[Setting]:
    return [
        (name, units, noise, unequal, shock)
        for name in names(half)
        for units in UNITS
        if name in SEASONS or len(panels.load(name)) >= units
        for noise in NOISE
        for unequal in (False, True)
        if noise in DIFFERENT or not unequal
        for shock in problems.SHOCKS
    ]


def ranks(setting: Setting, run: int, half: str, effects: tuple[float, ...] = EFFECTS) -> list[dict[str, Any]]:
    """Return the rank of effects of several sizes, 0 first, among real units, and their p-values."""
    name, units, noise, unequal, shock = setting
    rows, T0, change = rows_of(name, units, shock, run, half)
    table, spread = with_noise(rows, noise * change, unequal, run)
    found = []
    for effect in effects:
        treated = table.copy()
        treated[0, T0:] += effect * change
        result = published(treated, spread).estimate("unit 0", T0)
        if effect == 0:
            others = result.placebos("space").table["over_error"].abs()
        rank = 1 + int((others >= abs(result.att / result.standard_error)).sum())
        row = {"panel": name, "units": units, "noise": noise, "unequal": unequal, "shock": shock, "effect": effect}
        found.append(
            row | {"rank": rank <= 0.1 * units, "expected": int(0.1 * units) / units, "p": result.p_value <= 0.1}
        )
    return found


@cache
def flights() -> tuple[Any, Array]:
    """Return the sum over flights, one cell each, that a release adds noise to; and the exact table."""
    records, units, periods = datasets.destinations(treated="")
    people = People.from_long(
        records, person="flight", unit="destination", time="fortnight", outcome="delay", units=units, periods=periods
    )
    summed = releasing(1.0, 0).custodian_sum(people)
    exact = records.assign(delay=records["delay"].clip(-20, 100)).pivot_table(
        index="destination", columns="fortnight", values="delay"
    )
    return summed, exact.to_numpy()


def releasing(epsilon: float, seed: int) -> PanelRelease:
    return PanelRelease(epsilon=epsilon, delta=1e-6, bounds=(-20, 100), cells_per_person=1, seed=seed)


def one_flight(epsilon: float, run: int) -> dict[str, float]:
    """Return errors for one destination and date; nothing is private with an epsilon of zero."""
    summed, exact = flights()
    rng = problems.generator("flights", run)
    T0, row = int(rng.choice([16, 18, 20])), int(rng.integers(len(exact)))
    later = slice(T0, T0 + problems.LONGEST)
    if epsilon:
        panel = releasing(epsilon, run).release(summed)
        table = panel.table.values
    else:
        table, panel = exact, published(exact, np.zeros(len(exact)))
    result = panel.estimate(panel.units[row], panel.times[T0])
    end = later.stop
    donors = np.delete(table, row, 0)[:, :end]
    target = pd.Series(table[row, :end]).interpolate(limit_direction="both").to_numpy()  # the others need every cell
    donors = donors[np.isfinite(donors).all(axis=1)]
    seen = Problem(donors, target, T0, problems.NO_BOUNDS, exact[row, later])
    known = replace(seen, target=exact[row, :end])
    band, (low, high) = result.interval(), result.att_interval()
    found = {"dpsc": panels.rmse(result.counterfactual.iloc[: problems.LONGEST], seen.truth)}
    found |= {free: panels.rmse(forecast(known), seen.truth) for free, forecast in problems.FREE.items()}
    found |= {other: panels.rmse(forecast(seen), seen.truth) for other, forecast in OTHERS.items()}
    return found | {
        "epsilon": epsilon,
        "points": float(((band["lower"] <= result.observed) & (result.observed <= band["upper"])).mean()),
        "average": float(low <= 0 <= high),
    }


def flights_table(runs: int) -> pd.DataFrame:
    """Return errors over the best forecast without donors, by epsilon."""
    rows = pd.DataFrame([one_flight(epsilon, run) for epsilon in (0.0, *EPSILONS) for run in range(runs)])
    errors = rows.groupby("epsilon").median()
    free = errors.loc[0.0, list(problems.FREE)].min()
    found = errors[["dpsc", *OTHERS]] / free
    return found.join(rows.groupby("epsilon")[["points", "average"]].mean()).reset_index()


def lengths_and_records(run: int) -> tuple[Array, pd.DataFrame]:
    """Return how long people's spending is, and its records: 8,000 customers of 40 shops over 24 months.

    What a customer spends a month is log-normal between people (the dearest tenth spends five times the median) and
    within; two in five buy something in a month; all spending follows a shared path, and each shop has a path of its own.
    """
    rng = problems.generator("spending", run)
    shop, rate = rng.integers(0, SHOPS, CUSTOMERS), 40 * rng.lognormal(0, 1.25, CUSTOMERS)
    who, month = np.nonzero(rng.random((CUSTOMERS, MONTHS)) < 0.4)
    shared = np.cumsum(rng.normal(0, 0.04, MONTHS)) * rng.uniform(0.5, 1.5, (SHOPS, 1))
    path = np.exp(shared + np.cumsum(rng.normal(0, 0.01, (SHOPS, MONTHS)), axis=1))
    spent = rate[who] * path[shop[who], month] * rng.lognormal(0, 0.5, len(who))
    records = pd.DataFrame({"who": who.astype(str), "shop": shop[who].astype(str), "month": month, "spent": spent})
    return np.sqrt(np.bincount(who, spent**2, CUSTOMERS)), records


def one_spending(run: int) -> list[dict[str, Any]]:
    """Return noise and error, over the level of what a bound leaves, for several ways to bound a customer."""
    last_year, records = lengths_and_records(run + 1000)[0], lengths_and_records(run)[1]
    units, row, T0 = [str(k) for k in range(SHOPS)], run % SHOPS, 18
    people = People.from_long(
        records, person="who", unit="shop", time="month", outcome="spent", units=units, periods=list(range(MONTHS))
    )
    usual, most = (float(np.quantile(last_year, share)) for share in (0.5, 0.9))
    exact = records.groupby(["shop", "month"])["spent"].sum().unstack().loc[units].to_numpy()
    found = [{"way": EXACT, "kept": 1.0} | _answered(published(exact, np.zeros(SHOPS)), exact, row, T0)]
    for way, options in zip(
        WAYS,
        (
            {},
            {"person_bound": usual},
            {"person_bound_quantile": 0.5},
            {"person_bound": most},
            {"person_bound_quantile": 0.9},
        ),
        strict=True,
    ):
        make = PanelRelease(epsilon=1.0, delta=1e-6, statistic="total", bounds=(0, 5000), seed=run, **options)
        summed = make.custodian_sum(people)
        panel, left = make.release(summed), summed.total[0] * summed.rule.part
        found.append({"way": way, "kept": left.sum() / exact.sum()} | _answered(panel, left, row, T0))
    return found


def _answered(panel: PrivatePanel, exact: Array, row: int, T0: int) -> dict[str, float]:
    """Return the usual noise of a cell and the error of a forecast, both over the level of the target."""
    result, level = panel.estimate(panel.units[row], panel.times[T0]), float(exact[row, :T0].mean())
    return {
        "noise": float(np.nanmedian(panel.table.noise[row])) / level,
        "error": panels.rmse(result.counterfactual, exact[row, T0:]) / level,
    }


def geometric(frame: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return geometric means over panels of errors, means of shares."""
    frame = frame.assign(times=np.where(frame["shock"] > 0, "shock", "calm"),
                         sizes=np.where(frame["unequal"], "unequal", "equal"))  # fmt: skip
    errors = ["dpsc", *OTHERS, "width", "planned"]
    found = frame.assign(**np.log(frame[errors])).groupby(by)[[*errors, "points", "average"]].mean()
    found[errors] = np.exp(found[errors])
    return found.reset_index()


def by_epsilon(flown: pd.DataFrame) -> str:
    """Return the errors on flights: a row for each method, a column for each budget."""
    rows = flown.set_index("epsilon")
    heads = ["exact table", *(f"ε = {e:g}" for e in reversed(EPSILONS))]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for name, label in (("dpsc", "**dpsc**"), ("simplex", "synthetic control (simplex weights)"), ("ridge", "ridge"),
                        ("difference in differences", "difference in differences")):  # fmt: skip
        cells = (f"{rows.loc[e, name]:.2f}" for e in (0.0, *reversed(EPSILONS)))
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def markdown(frame: pd.DataFrame, digits: int = 2) -> str:
    head = "| " + " | ".join(map(str, frame.columns)) + " |\n|" + "---|" * len(frame.columns)
    cells = [[f"{v:.{3 if c in ('points', 'average', 'rank', 'p', 'expected') else digits}f}" if isinstance(v, float)
              and c not in ("noise", "effect", "epsilon") else f"{v:g}" if isinstance(v, float) else str(v)
              for c, v in zip(frame.columns, row, strict=True)] for row in frame.itertuples(index=False)]  # fmt: skip
    return "\n".join([head, *("| " + " | ".join(row) + " |" for row in cells)])


def page(frame: pd.DataFrame, flown: pd.DataFrame, ranked: pd.DataFrame, unmoved: pd.DataFrame,
         spent: pd.DataFrame) -> str:  # fmt: skip
    real = frame[~frame["panel"].isin(list(SEASONS))]
    made = frame[frame["panel"].isin(list(SEASONS))]
    count = real["panel"].nunique()
    parts = [
        f"`python benchmarks/groups.py`: {count} real panels of the report half, {frame['runs'].max()} runs for each setting; errors over "
        "the best forecast without donors from exact data (geometric means over panels of medians over runs). The others "
        "read the same noisy table; at noise 0 it is exact. Simplex is Abadie's synthetic control (pysyncon's), ridge has "
        "its penalty chosen by the last quarter before the intervention. `points` and `average`: how often 95% intervals "
        "of single periods and of the average effect hold what was released; `width` of the latter in one-period changes; "
        "`planned`: the formula for the smallest effect seen, of which `plan_panel` says 0.7 times, over what the answer says. "
        "Most constants were chosen on 18 panels of 17 to 100 units, some of which may be among these, and how wide "
        "intervals are on the design half.",
        "#### Flights by destination: 41 units, a budget for the flights",
        by_epsilon(flown),
        "How often 95% intervals hold:",
        markdown(flown[["epsilon", "points", "average"]].assign(epsilon=["none", *(f"{e:g}" for e in EPSILONS)])),
        "#### By noise of a cell, in one-period changes",
        markdown(geometric(real, ["noise", "sizes", "times"])),
        "#### By number of units, noise up to 1",
        markdown(geometric(real[real["noise"] <= 1], ["units", "times"])),
        "#### By panel, noise up to 1",
        markdown(geometric(real[real["noise"] <= 1], ["panel", "times"])),
        "#### Made panels with seasons",
        markdown(geometric(made, ["panel", "noise", "times"])),
        "#### A bound on a person, found privately",
        f"Made customers of {SHOPS} shops over {MONTHS} months, {CUSTOMERS:,} in all, whose spending is log-normal; the total "
        "of a shop and month at epsilon 1, bounds of 0 to 5,000 on what a customer spends there in a month. Noise and error "
        f"over the level of the target ({spent.groupby('way').size().max()} runs, medians).",
        by_bound(spent),
        "#### Placebos in space",
        "How often an effect, in one-period changes, has a rank in the first tenth, how often that is expected without an "
        "effect, and how often the model's p-value is at most 0.1.",
        markdown(ranked.groupby(["units", "effect"])[["rank", "expected", "p"]].mean().reset_index()),
        "Two draws of a panel's units for each row of a setting are few, and the same in several settings. No effect, with "
        "more draws: in calm times with equal noise, and in calm times and shocks with noise that differs twentyfold:",
        markdown(no_effect(unmoved)),
    ]
    return "\n\n".join(parts) + "\n"


def by_bound(spent: pd.DataFrame) -> str:
    """Return what each way to bound a customer leaves, and the noise and the error that come with it."""
    lines = ["| bound on a customer | spending kept | noise of a cell | error |", "|---|---|---|---|"]
    rows = spent.groupby("way")[["kept", "noise", "error"]].median()
    for way in (EXACT, *WAYS):
        lines.append(f"| {way} | " + " | ".join(f"{rows.loc[way, name]:.0%}" for name in rows.columns) + " |")
    return "\n".join(lines)


def ranking(pool: ProcessPoolExecutor, half: str, runs: int, effects: tuple[float, ...] = EFFECTS) -> pd.DataFrame:
    """Return how often effects of several sizes have a rank in the first tenth, setting by setting.

    No effect alone is asked about in calm times with equal noise, and with unequal noise: the rest is much the same.
    """
    chosen = [s for s in settings(half) if s[1] in RANKED and s[2] in (0.0, 1.0)]
    if effects == NO_EFFECT:
        chosen = [s for s in chosen if s[3] or s[4] == 0]
    tasks = [(s, run) for s in chosen for run in range(runs)]
    all_of = [half] * len(tasks), [effects] * len(tasks)
    found = pool.map(ranks, [s for s, _ in tasks], [run for _, run in tasks], *all_of)
    return by_setting(pd.DataFrame([row for rows in found for row in rows]))


def by_setting(ranked: pd.DataFrame) -> pd.DataFrame:
    """Return shares of first ranks and of small p-values for each setting, and from how many draws."""
    groups = ranked.groupby(["panel", "units", "noise", "unequal", "shock", "effect"])[["rank", "expected", "p"]]
    return groups.mean().assign(draws=groups.size()).reset_index()


def no_effect(unmoved: pd.DataFrame) -> pd.DataFrame:
    """Return how often no effect at all ranks first, and from how many different draws of units."""
    named = unmoved.assign(sizes=np.where(unmoved["unequal"], "unequal", "equal"))
    shares = named.groupby(["units", "sizes"])[["rank", "expected", "p"]].mean()
    draws = named.groupby(["units", "sizes", "noise", "shock"])["draws"].sum().groupby(["units", "sizes"]).max()
    return shares.assign(draws=draws).reset_index()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", choices=["report", "design"], default="report")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--only",
        choices=["ranks", "spending", "ranges"],
        help="measure this alone (ranks: those of no effect; ranges: of plan_panel, printed), and keep the rest",
    )
    said = parser.parse_args()

    if said.only == "ranges":
        frame = ranges(said.half, said.runs)
        for name, (came, formula) in {
            "error": ("realised", "planned"),
            "detectable": ("effect", "planned_effect"),
        }.items():
            ratio = frame[came] / frame[formula] / CAME
            print(f"{name}: median {ratio.median():.2f}, in range {ratio.between(*WITHIN[name]).mean():.0%}")
        return

    def written(name: str, frame: pd.DataFrame) -> None:
        frame.to_csv(OUT / f"groups-{name}.csv", index=False, float_format="%.4g")

    with ProcessPoolExecutor(said.workers) as pool:
        if said.only is None:
            todo = settings(said.half)
            rows = list(pool.map(one_setting, todo, [said.runs] * len(todo), [said.half] * len(todo)))
            written(said.half, pd.DataFrame(rows))
            if said.half == "design":
                return
            written("flights", flights_table(20 * said.runs))
            written("ranks", ranking(pool, said.half, max(2, said.runs // 5)))
        if said.only in (None, "ranks"):
            written("no-effect", ranking(pool, said.half, said.runs, NO_EFFECT))
        if said.only in (None, "spending"):
            spent = [row for rows in pool.map(one_spending, range(said.runs)) for row in rows]
            written("spending", pd.DataFrame(spent))
    results = (
        pd.read_csv(OUT / f"groups-{name}.csv") for name in ("report", "flights", "ranks", "no-effect", "spending")
    )
    (OUT / "groups.md").write_text(page(*results), "utf-8")


if __name__ == "__main__":
    main()
