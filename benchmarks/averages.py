"""Targets that average 1, 30 or 5,000 people, of populations that are sparse, binary or very skewed.

    python benchmarks/averages.py [--half report|design] [--runs 8] [--most 200000] [--said] [--smoothness none]

Populations are made, so that they can be as large as those of companies: orders (counts with very unequal rates),
visits (yes or no) and costs (rarely, then with heavy tails). Those to design on and those to report on differ in rates,
sparsity, seasons and in the laws themselves. Everybody follows a common path, some more than others. In a shock, which
nothing before T0 announces, everybody's rate falls after T0. Nobody is treated, so every effect is zero.

The yardstick is what an analyst would do who has the raw rows: a regression of the target on the donors' mean before
T0, with its usual interval. ("regression" and its errors see the raw donors; they are never private.)

The floor is the width that nobody can go below who reads the mean from the release: the noise in it, the chance of the
n donors and of the m people, all of known size, and nothing else unknown. A plan gets what a custodian can know (n, the
periods, the target before T0, m); "planned" is the smallest effect that it says would be seen.

Writes results/averages-HALF-SMOOTHNESS.csv (one row per target) and tables beside it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import panels
import problems
from panels import Array
from scipy.special import expit
from scipy.stats import norm as normal
from scipy.stats import t as student

from dpsc import GramRelease, Release, plan
from dpsc.analyst.models import Gaussian

OUT = Path(__file__).parent / "results"
AVERAGES = (1, 30, 5000)
DONORS = (2_000, 20_000, 200_000)
DELTA = 1e-6
OTHER_UNITS = (0.01, 100.0)
BLOCK = 20_000
NORMAL = float(normal.ppf(0.975))
Draw = Callable[[Array, np.random.Generator], Array]


@dataclass(frozen=True)
class Family:
    """A population: each unit has a level and loadings, which give its log rate; ``draw`` makes outcomes of rates.

    Attributes
    ----------
    periods : int
    T0 : int
    level, spread : float
        Of log rates, or of log odds for what is yes or no: their mean and standard deviation.
    season : int
        Its length in periods; 0 for none.
    moves : float
        The standard deviation of the common path of log rates.
    draw : callable
    """

    periods: int
    T0: int
    level: float
    spread: float
    season: int
    moves: float
    draw: Draw


def orders(log_rates: Array, rng: np.random.Generator) -> Array:
    return rng.poisson(np.exp(log_rates)).astype(float)


def clustered_orders(log_rates: Array, rng: np.random.Generator) -> Array:
    """Negative binomial: people order several times in a good month."""
    return rng.poisson(np.exp(log_rates) * rng.gamma(0.7, 1 / 0.7, log_rates.shape)).astype(float)


def visits(log_odds: Array, rng: np.random.Generator) -> Array:
    return np.asarray(rng.random(log_odds.shape) < expit(log_odds), dtype=float)


def costs(log_odds: Array, rng: np.random.Generator) -> Array:
    """Return a lognormal amount now and then; who pays often does not pay more."""
    often = rng.random(log_odds.shape) < expit(log_odds)
    return np.asarray(often * 100 * np.exp(rng.normal(0, 0.6, (len(log_odds), 1)) + rng.normal(0, 1.2, log_odds.shape)))


def gamma_costs(log_odds: Array, rng: np.random.Generator) -> Array:
    """Amounts of gamma distribution around a unit's own typical amount, which is very unequal."""
    often = rng.random(log_odds.shape) < expit(log_odds)
    own = np.exp(rng.normal(0, 1.0, (len(log_odds), 1)))
    return np.asarray(often * 40 * own * rng.gamma(0.5, 2.0, log_odds.shape))


FAMILIES = {
    "design": {
        "orders": Family(52, 40, -0.5, 1.0, 0, 0.15, orders),
        "orders, very unequal": Family(52, 40, -1.0, 1.7, 0, 0.15, orders),
        "visits": Family(52, 40, -2.0, 1.0, 0, 0.20, visits),
        "costs": Family(52, 40, -1.5, 1.0, 0, 0.15, costs),
    },
    "report": {
        "orders, sparse and clustered": Family(60, 48, -1.6, 1.4, 12, 0.12, clustered_orders),
        "visits, seasonal": Family(48, 36, -1.0, 1.5, 12, 0.25, visits),
        "costs, very unequal": Family(30, 22, -2.2, 0.7, 0, 0.20, gamma_costs),
    },
}


def common_paths(family: Family, rng: np.random.Generator) -> Array:
    """Return two paths, of standard deviation ``moves``: half persistent, half a walk; a season if there is one."""
    T = family.periods
    paths = panels.factors("ar", 2, T, rng) + panels.factors("walk", 2, T, rng) / np.sqrt(T / 3)
    if family.season:
        phase = rng.uniform(0, 2 * np.pi, (2, 1))
        paths = paths + 1.5 * np.sin(2 * np.pi * np.arange(T) / family.season + phase)
    paths -= paths.mean(axis=1, keepdims=True)
    return np.asarray(family.moves * paths / paths.std(axis=1, keepdims=True))


def people(family: Family, count: int, shock: float, rng: np.random.Generator) -> Array:
    """Return the outcomes of ``count`` units; the same units and luck with and without a shock, as far as can be.

    A shock takes ``shock`` of the log rate from T0 on, over two periods, times a loading in [.5, 1.5].
    """
    paths = common_paths(family, rng)
    steps = shock * np.clip((np.arange(family.periods) - family.T0 + 1) / 2, 0, 1)
    seeds = rng.integers(2**62, size=-(-count // BLOCK))
    blocks = []
    for number, seed in enumerate(seeds):
        each = np.random.default_rng(seed)
        size = min(BLOCK, count - number * BLOCK)
        level = family.level + family.spread * each.normal(size=(size, 1))
        loadings = np.array([1.0, 0.0]) + 0.5 * each.normal(size=(size, 2))
        loss = each.uniform(0.5, 1.5, (size, 1)) * steps
        blocks.append(family.draw(level + loadings @ paths - loss, each))
    return np.concatenate(blocks)


def regression(mean: Array, y: Array, T0: int, level: float = 0.95) -> tuple[Array, float]:
    """Regress y on the donors' mean before T0; return the forecast and the interval's half-width for the average."""
    x, h = mean - mean[:T0].mean(), len(y) - T0
    squares = float(x[:T0] @ x[:T0])
    slope = float(x[:T0] @ y[:T0]) / squares
    fit = y[:T0].mean() + slope * x
    variance = float(((y - fit)[:T0] ** 2).sum()) / (T0 - 2)
    variance *= 1 / h + 1 / T0 + float(x[T0:].mean()) ** 2 / squares
    return fit[T0:], float(student.ppf((1 + level) / 2, T0 - 2)) * np.sqrt(variance)


def floor(release: Release, donors: Array, m: int, T0: int) -> tuple[float, float]:
    """Return the least standard error of an average effect from the release's mean, and that without any noise.

    The noise of the mean as it is released, and how far n donors and m people are from everybody; the level is free.
    """
    matrix = release.row_map
    assert matrix.directions is not None
    counted = release.noisy_moments[0, 0] + (release.n - np.trace(release.noisy_moments)) / len(release.noisy_moments)
    noise = (matrix.constant * release.noise_scale / counted) ** 2 / 2 * matrix.back @ matrix.back.T
    chance = np.cov(donors, rowvar=False) * (1 / len(donors) + 1 / m)
    variances = []
    for covariance in (noise + chance, chance):
        known = Gaussian(np.zeros(len(chance)), covariance, free_level=True).observed(np.zeros(T0))
        variances.append(float(known.forecast_covariance.mean()))
    return float(np.sqrt(variances[0])), float(np.sqrt(variances[1]))


def problems_of(family: Family, n: int, shock: float, key: tuple[object, ...]) -> Iterator[tuple[int, Array, Array]]:
    """Yield the number averaged, the donors and the target, of one population."""
    units = people(family, n + sum(AVERAGES), shock, problems.generator("averages", *key))
    ends = np.cumsum(AVERAGES)
    for m, end in zip(AVERAGES, ends, strict=True):
        yield m, units[ends[-1] :], units[end - m : end].mean(axis=0)


def one_run(
    family: Family, n: int, shock: float, key: tuple[object, ...], seed: int, how: dict[str, Any]
) -> Iterator[Any]:
    """Yield one row for each number of units averaged."""
    T0 = family.T0
    for m, donors, y in problems_of(family, n, shock, key):
        if np.ptp(y[:T0]) == 0:
            continue
        algorithm = GramRelease(epsilon=1.0, delta=DELTA, like=y[:T0], smoothness=how["smoothness"], seed=seed)
        release = algorithm.release(donors)
        options = {"averages": m} if how["said"] else {}
        result = release.estimate(y, T0, **options)
        forecast, half_width = regression(donors.mean(axis=0), y, T0)
        by_hand, half_by_hand = regression(release.population.mean, y, T0)
        least, without_noise = floor(release, donors, m, T0)
        public = {"averages": m, "target": y[:T0], "smoothness": how["smoothness"]}
        planned = plan(len(donors), T0, len(y) - T0, 1.0, DELTA, **public).table.iloc[0]
        low, high = result.att_interval()
        missed = float((y[T0:] - forecast).mean())
        row = {
            "m": m, "dpsc": panels.rmse(result.counterfactual, y[T0:]), "regression": panels.rmse(forecast, y[T0:]),
            "missed": abs(float(result.att)), "missed by regression": abs(missed),
            "width": high - low, "width of regression": 2 * half_width,
            "covered": float(low <= 0 <= high), "covered by regression": float(abs(missed) <= half_width),
            "by hand": panels.rmse(by_hand, y[T0:]), "width by hand": 2 * half_by_hand,
            "covered by hand": float(abs((y[T0:] - by_hand).mean()) <= half_by_hand),
            "floor": 2 * NORMAL * least, "floor without noise": 2 * NORMAL * without_noise,
            "planned": planned["detectable"], "planned error": planned["error"],
            "seen": np.mean([low + planned["detectable"] > 0, high - planned["detectable"] < 0]),
            "points": result_points(result, y[T0:]), "detectable": result.detectable(),
            "verdict": result.verdict.grade, "question": float(result.verdict.check_first),
            "log_bayes_factor": result.parameters["log_bayes_factor"],
        }  # fmt: skip
        for factor in OTHER_UNITS:
            other = release.estimate(factor * y, T0, **options).verdict
            row |= {
                f"question x{factor:g}": float(other.check_first),
                f"green x{factor:g}": float(other.grade == "yes"),
            }
        yield row


def result_points(result: Any, observed: Array) -> float:
    band = result.interval()
    return float(np.mean((band["lower"] <= observed) & (observed <= band["upper"])))


def measure(half: str, runs: int, most: int, **how: Any) -> pd.DataFrame:
    """Return one row per family, n, m and shock: medians over runs, shares for what is yes or no."""
    found = []
    for name, family in FAMILIES[half].items():
        for n in DONORS:
            if n > most:
                continue
            for shock in (0.0, 0.3):
                count = max(2, runs // 4) if n == DONORS[-1] else runs
                rows = [
                    {"family": name, "n": n, "shock": shock, "run": run, **row}
                    for run in range(count)
                    for row in one_run(family, n, shock, (half, name, n, run), run, how)
                ]
                found += rows
                print(summary(pd.DataFrame(rows)).to_string(index=False), flush=True)
    return pd.DataFrame(found)


def tables(rows: pd.DataFrame) -> dict[str, str]:
    """Return the tables of the results, by title."""
    return {
        "Targets that average many": quality(rows),
        "How much of a width must be there": floors(rows),
        "The smallest effect: what a plan promised and what answers said": plans(rows),
    }


def quality(rows: pd.DataFrame) -> str:
    """Return errors and widths over the regression's, and how often there was a question about units."""
    names = {"error": "error / regression's", "wide": "width / regression's", "covered": "covered",
             "covered by regression": "covered by regression", "question": "asked in right units",
             "question x0.01": "asked x0.01", "question x100": "asked x100"}  # fmt: skip
    return by_setting(summary(rows), names, ("error", "wide"))


def floors(rows: pd.DataFrame) -> str:
    """Return the floor over the regression's width, the answer's width over the floor, and a regression by hand."""
    names = {"floor / regression's": ("floor", "width of regression"),
             "without noise": ("floor without noise", "width of regression"), "width / floor": ("width", "floor"),
             "by hand: error / ours": ("by hand", "dpsc"),
             "width / regression's": ("width by hand", "width of regression")}  # fmt: skip
    keys = ["family", "n", "m", "shock"]
    parts = rows.groupby(keys)[sorted({name for both in names.values() for name in both})].median()
    ratios = pd.DataFrame({name: parts[one] / parts[other] for name, (one, other) in names.items()})
    covered = rows.groupby(keys)["covered by hand"].mean().rename("covered")
    both = pd.concat([ratios, covered], axis=1)
    return by_setting(both.reset_index(), {name: name for name in both}, tuple(names))


def plans(rows: pd.DataFrame) -> str:
    """Return the planned smallest effect over that of the answers, and how often it would have been seen."""
    rows = rows[rows["detectable"] > 0]
    ratio = rows["planned"] / rows["detectable"]
    rows = rows.assign(ratio=ratio, close=ratio.between(0.7, 1.4), near=ratio.between(0.5, 2.0),
                       error=rows["planned error"] / rows["dpsc"])  # fmt: skip
    medians = rows.groupby(["family", "n", "m", "shock"])[["ratio", "error"]].median()
    shares = rows.groupby(["family", "n", "m", "shock"])[["close", "near", "seen"]].mean()
    names = {"ratio": "planned / said", "close": "within 0.7 to 1.4", "near": "within a factor of 2",
             "seen": "planned effect seen", "error": "error: planned / made"}  # fmt: skip
    return by_setting(medians.join(shares).reset_index(), names, ("ratio", "error"))


def by_setting(rows: pd.DataFrame, names: dict[str, str], ratios: tuple[str, ...]) -> str:
    """Return one row per number of units averaged, n and time: means over families, geometric ones of ratios."""
    logs = rows.assign(**{name: np.log(rows[name]) for name in ratios})
    means = logs.groupby(["m", "n", "shock"])[list(names)].mean()
    means[list(ratios)] = np.exp(means[list(ratios)])
    lines = ["| averages | donors |  | " + " | ".join(names.values()) + " |", "|---" * (len(names) + 3) + "|"]
    for (m, n, shock), row in means.iterrows():
        cells = " | ".join(f"{value:.2f}" for value in row)
        lines.append(f"| {m:,} | {n:,} | {'shock' if shock else 'calm'} | {cells} |")
    return "\n".join(lines)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per setting."""
    keys = ["family", "n", "m", "shock"]
    groups = rows.groupby(keys)
    yes = [
        "covered",
        "covered by regression",
        "points",
        "question",
        "question x0.01",
        "question x100",
        "green x0.01",
        "green x100",
    ]
    table = groups[
        ["dpsc", "regression", "missed", "missed by regression", "width", "width of regression", "detectable"]
    ].median()
    out = groups[yes].mean()
    out.insert(0, "runs", groups.size())
    out.insert(1, "error", table["dpsc"] / table["regression"])
    out.insert(2, "error of average", table["missed"] / table["missed by regression"])
    out.insert(3, "wide", table["width"] / table["width of regression"])
    out["green"] = groups["verdict"].agg(lambda grades: (grades == "yes").mean())
    return out.round(3).reset_index()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("report", "design"), default="report")
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--most", type=int, default=DONORS[-1])
    parser.add_argument("--smoothness", choices=("high", "mild", "none"), default="high")
    parser.add_argument("--said", action="store_true", help="say averages=m")
    arguments = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    how = {"said": arguments.said, "smoothness": arguments.smoothness}
    frame = measure(arguments.half, arguments.runs, arguments.most, **how)
    words = "-".join(["averages", arguments.half, *["said"] * arguments.said, arguments.smoothness])
    frame.round(6).to_csv(OUT / f"{words}.csv", index=False)
    text = "\n\n".join(f"## {title}\n\n{rows}" for title, rows in tables(frame).items())
    (OUT / f"{words}.md").write_text(text + "\n", encoding="utf-8")
    print(text)
