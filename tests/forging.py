"""Release files whose numbers or calendars are wrong, one for each seed, with checksums that fit. For test_forged.py.

Some are wrong in one place; others were made to agree with themselves (trace and n, periods and matrix), so that the
code behind the first checks is reached.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsc import GramRelease
from dpsc.analyst.private_panel import PrivatePanel
from dpsc.release import panel_file
from dpsc.release.file_format import checksum_of, dumps
from tests.making import make_bounded_panel, make_private_panel

Body = dict[str, Any]
HERE = Path(__file__).parent

RAW = [  # JSON, or nearly, that Python's writer does not write
    "1e400", "-1e400", "NaN", "Infinity", "-Infinity", "1E999999999", "1e-999999999", "9" * 4000, "9" * 5000,
    f"0.{'0' * 5000}1", f"{'[' * 500}{']' * 500}", "[" * 100_000, f"{'[' * 100_000}{']' * 100_000}",
    '{"a":' * 90_000 + "1" + "}" * 90_000, "01", "+1", "1.", "0x10", "1_000", '"\\ud800"', '"\\udfff\\ud800"',
    '"\\u0000"', '1, "n": 7', '1, "version": 1', "1, 1", "",
]  # fmt: skip
_RAW = [f"raw {k}" for k in range(len(RAW))]
NUMBERS: list[Any] = [
    0, -0.0, 1, -1, 2, 3, 0.5, -0.5, 1.0, True, False, None, "1", "", [], {}, [1], {"a": 1},
    2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**63, -(2**63), 10**19, 10**30, 10**400, -(10**400), 10**1000,
    5e-324, 1e-320, 1e-160, 1e-100, 1e-10, 1e10, 1e18, 1e19, 1e100, 1.0000001e100, 1e154, 1e160, 1.7e308,
    "NaN", "inf", "1e400", "٣", "１２", "\u202e1", "9" * 100_000, *_RAW,
]  # fmt: skip
YEARS = ["0000", "0001", "1499", "1500", "1969", "2199", "2200", "9998", "9999", "10000", "-001", "٢٠٢٠", "2e3", 2020]
DAYS: list[Any] = [
    "0000-00-00", "0000-01-01", "0001-01-01", "1677-09-20", "1677-09-21", "1752-09-14", "1899-12-31", "1900-02-29",
    "1970-01-01", "2000-02-29", "2001-02-29", "2020-13-01", "2020-00-10", "2020-12-32", "2262-04-11", "2262-04-12",
    "9999-12-30", "9999-12-31", "10000-01-01", "99999-01-01", "-2020-01-01", "+2020-01-01", "2020-1-1", "20200101",
    "2020-02-30", "2020-06-30T23:59:60", "2020-01-01T24:00:00", "2020-01-01T00:00:00+99:99", "2020-01-01T00:00:00Z",
    "2021-03-28T02:30:00", "2020-366", "2020-W53-7", "2021-W53", "9999-W52", "9999-W53", "0001-W01", "9999-Q4",
    "9999-Q5", "0001-Q1", "0000-Q1", "2020-Q0", "9999-12", "0001-01", "2020Q1", "2020M01", "NaT", "nat", "now", "today",
    "None", "", " ", "1", "1e5", *YEARS, *_RAW,
]  # fmt: skip
FREQUENCIES = [
    "D", "M", "Q-DEC", "Q-JAN", "Y-DEC", "Y-JUN", "W-SUN", "W-WED", "B", "h", "s", "ns", "us", "1000Y", "0D", "-1D",
    "D" * 1000, "ME", "QE", "2M", "9999999999D", "1e9D", "infer", "", None, 5, "\x00", "raw 0",
]  # fmt: skip
ZONES = [None, "UTC", "UTC+14:00", "UTC+19:59", "Europe/Berlin", "Africa/Monrovia", "dateutil//etc/passwd", "localtime",
         "../../etc/passwd", "", 1, "tzlocal()", "GMT0", "Factory"]  # fmt: skip
KINDS = ["calendar", "period", "datetime", "date", "integer", "number", "text", "nonsense", None, 1, ["text"]]
EVERY = ["year", "quarter", "month", "week", "day"]


@functools.cache
def originals() -> tuple[str, ...]:
    """Return good files: of each format that there is, and of each kind of release and of periods."""
    rng = np.random.default_rng(0)
    months, hours = pd.period_range("2019-01", periods=8, freq="M"), pd.date_range("2020-01-01", periods=6, freq="h")

    def made(times: Any, n: int = 40, **options: Any) -> str:
        make = GramRelease(epsilon=1.0, delta=1e-6, **({"scale": 1.0} | options))
        return dumps(make.release(pd.DataFrame(rng.normal(size=(n, len(times))), columns=times)))

    return (
        *(path.read_text("utf-8") for path in sorted((HERE / "gram").glob("*.dpsc.json"))),
        made(months), made(months, directions=3, reference=np.arange(8.0)), made(hours), made(hours.tz_localize("UTC")),
        made(range(5), seed=1), made([f"wave {k}" for k in range(5)], directions=2), made([0.5, 1.25, 2.5], n=3),
        made(range(2000, 2012), n=400, scale=None), made(pd.period_range("2020-01-06", periods=5, freq="W-SUN")),
    )  # fmt: skip


@functools.cache
def original_panels() -> tuple[str, ...]:
    """Return good files of panels: of each statistic and law, grown, of several sites, and somebody else's."""
    months = pd.period_range("2019-01", periods=6, freq="M")
    grown = [make_private_panel(times=months[k : k + 2], person_bound=8.0) for k in range(0, 6, 2)]
    sites = [make_private_panel([f"{site}{k}" for k in range(4)], months, delta=0.0) for site in "xy"]
    theirs = pd.DataFrame({2021: [10.0, 9, None], 2022: [11, 9, 9]}, index=["fr", "de", "it"])
    kinds = [make_private_panel(statistic=kind, bounds=None, cells_per_person=1) for kind in ("share", "count")]
    return tuple(
        panel_file.dumps(panel)
        for panel in (
            *kinds, make_bounded_panel(),
            make_private_panel(statistic="total", seed=1), make_private_panel(times=["a", "b"]),
            PrivatePanel.join(grown), PrivatePanel.join(sites, disjoint=True),
            PrivatePanel.from_noisy_table(theirs, noise=0.5, guarantee="a friend"),
        )
    )  # fmt: skip


def forged(seed: int) -> str:
    """Return the text of one file; its faults follow from the seed, its noise does not."""
    return _forged(seed, originals(), WAYS)


def forged_panel(seed: int) -> str:
    """Return the text of a file of a panel; its faults follow from the seed, its noise does not."""
    return _forged(seed, original_panels(), PANEL_WAYS)


def _forged(seed: int, good: tuple[str, ...], ways: tuple[Way, ...]) -> str:
    rng = random.Random(seed)
    body: Body = json.loads(rng.choice(good))
    del body["checksum"]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice(ways)(rng, body)
    text = json.dumps(body)
    for k, raw in enumerate(RAW):
        text = text.replace(f'"raw {k}"', raw)
    try:
        checksum = checksum_of(json.loads(text))
    except (ValueError, RecursionError, AttributeError):
        checksum = "0" * 64
    return f'{text[:-1]}, "checksum": "{checksum}"}}'


def _anywhere(rng: random.Random, body: Body) -> None:
    """Put a number into any place, at any depth."""
    place: Any = body
    key = rng.choice(list(place))
    while isinstance(place[key], dict | list) and place[key] and rng.random() < 0.8:
        place = place[key]
        key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
    if rng.random() < 0.1 and isinstance(place, dict):
        del place[key]
    else:
        place[key] = rng.choice(NUMBERS)


def _number(rng: random.Random, body: Body) -> None:
    """Put a number where a number is expected."""
    _put(rng, body, (
        "n", "sites", "grid_bits", "constant", "directions", "version", "noise.diagonal", "noise.off_diagonal",
        "kernel.phi", "kernel.nu", "scale.value", "scale.share", "scale.source", "guarantee.epsilon", "guarantee.delta",
        "guarantee.loss.mu_squared", "guarantee.loss.rho", "guarantee.loss.pure", "guarantee.loss.rest_epsilon",
        "guarantee.loss.rest_delta", "made_on", "periods.length", "periods.step", "periods.first",
    ))  # fmt: skip


def _put(rng: random.Random, place: Any, paths: tuple[str, ...]) -> None:
    path = rng.choice(paths).split(".")
    for key in path[:-1]:
        if not isinstance(place.get(key), dict):
            place[key] = {}
        place = place[key]
    place[path[-1]] = rng.choice(NUMBERS)


def _other_n(rng: random.Random, body: Body) -> None:
    """Another number of donors, with the trace that belongs to it: as far as integers go."""
    n, bits = rng.choice((1, 2, 3, 10**6, 10**9, 10**12, 2**26, 2**40)), rng.choice((1, 2, 4, 8, 13, 18, 26))
    size = _size(body)
    matrix = rng.choice((np.eye(size), np.ones((size, size)), np.diag([1.0] + [0.0] * (size - 1)), -np.eye(size)))
    share = n * 4.0**bits / np.trace(matrix)
    scale = 4.0**bits * rng.choice((1e-6, 1.0, 1e6))
    body |= {"n": n, "grid_bits": bits, "guarantee": None, "no_guarantee": "forged", "matrix": _upper(matrix * share)}
    body["noise"] = {"diagonal": scale, "off_diagonal": scale / 2**0.5}


def _other_matrix(rng: random.Random, body: Body) -> None:
    """Another matrix of the same trace: singular, indefinite, huge, of other lengths."""
    if not isinstance(body.get("matrix"), list):
        return
    size, upper = _size(body), body["matrix"]
    diagonal: Any = np.cumsum([0, *range(size, 1, -1)])
    way = rng.randrange(5)
    if way == 0:
        body["matrix"] = [v if k in diagonal else 0 for k, v in enumerate(upper)]
    elif way == 1:
        body["matrix"] = [v if k in diagonal else rng.choice((2**62, -(2**62), 2**63 - 1)) for k, v in enumerate(upper)]
    elif way == 2:
        body["matrix"] = upper[: rng.randrange(len(upper) + 1)] * rng.choice((1, 2, 1000))
    elif way == 3 and size > 1 and len(upper) > size and type(upper[0]) is int:
        body["matrix"] = [*upper[:-1], upper[-1]] if rng.random() < 0.1 else [upper[0] * 3, *upper[1:]]
    else:
        body["matrix"] = [rng.choice(NUMBERS) if rng.random() < 0.2 else v for v in upper]


def _huge_noise(rng: random.Random, body: Body) -> None:
    """Noise so large, or so small, that what is estimated from it overflows or vanishes; nothing is claimed."""
    scale = rng.choice((1e-300, 1e-100, 1e-12, 1e-9 * 4.0**18, 2e-9 * 4.0**18, 1e12, 1e15, 4e18, 9e18))
    body["noise"] = {"diagonal": scale, "off_diagonal": scale * rng.choice((2**-0.5, 1e-10, 1e10, 1.0, 1.0))}
    body |= {"guarantee": None, "no_guarantee": "forged"}


def _reference(rng: random.Random, body: Body) -> None:
    T = rng.choice((0, 1, 5, 7, 8, 12, 2000, 10**5))
    value = rng.choice((0, 1.0, 1e100, -1e100, 1e99, 5e-324, "raw 0", "raw 2", None, True, 10**400))
    body["reference"] = rng.choice(([value] * T, [1e100 * (-1) ** k for k in range(T)], value, {"0": value}))


def _constant(rng: random.Random, body: Body) -> None:
    value = rng.choice((1e-300, 1e-100, 1e-60, 1e-10, 1e10, 1e60, 1e100, 1e110))
    body["constant"], body["scale"] = value, {"value": value, "source": rng.choice(("given", "counted")), "share": 0.0}


def _calendar(rng: random.Random, body: Body) -> None:
    """Another calendar, of the right length more often than not."""
    T = rng.choice((_length(body), _length(body), 1, 2, 3, 2001, 10**6))
    kind, every = rng.choice(KINDS), rng.choice(EVERY)
    first, step = rng.choice(DAYS), rng.choice((1, 1, 2, 7, 9_999, 10_000, 10_001, 0, -1, True, 1.0, 2**63))
    values: Any
    if kind in ("integer", "number"):
        start, by = (
            rng.choice((0, 1, -(2**63), 2**63 - 5, 10**30, 1e308, 2**53)),
            rng.choice((1, 0, 10**15, 1e300, 0.1)),
        )
        values = [start + by * k for k in range(min(T, 5000))]
    else:
        values = [rng.choice(DAYS) for _ in range(min(T, 50))] if rng.random() < 0.5 else [first] * min(T, 50)
        if rng.random() < 0.3:
            values = [f"{2000 + k}" for k in range(min(T, 5000))] if every == "year" else sorted(map(str, values))
    body["periods"] = {
        "kind": kind, "name": rng.choice(("time", None, 1, "")), "every": every, "first": first, "step": step,
        "length": rng.choice((T, T, T, *NUMBERS[:30])), "values": values, "freq": rng.choice(FREQUENCIES),
        "tz": rng.choice(ZONES),
    }  # fmt: skip
    if rng.random() < 0.6:
        body["periods"].pop(rng.choice(("values", "values", "values", "first", "every", "tz", "freq")))


def _few_directions(rng: random.Random, body: Body) -> None:
    """Many periods in a small file: two directions of them."""
    T, every = rng.choice((3, 4, 50, 400)), rng.choice(EVERY)
    first = {"year": "1900", "quarter": "1999-Q1", "month": "1999-01", "week": "1999-W01", "day": "1999-01-01"}[every]
    body["periods"] = {"kind": "calendar", "name": None, "every": every, "first": first, "step": 1, "length": T}
    n, bits = rng.choice((1, 3, 1000, 10**7)), 18
    matrix = np.diag([n * f * 4.0**bits for f in rng.choice(((1, 0, 0), (0, 1, 0), (0.5, 0.3, 0.2), (0, 0, 1)))])
    body |= {
        "version": 2, "n": n, "grid_bits": bits, "directions": 2, "constant": 1.0, "reference": None,
        "guarantee": None, "no_guarantee": "forged", "matrix": _upper(matrix),
        "scale": {"value": 1.0, "source": "given", "share": 0.0}, "identities": ["f" * 32], "sites": 1, "datasets": [],
        "noise": {"diagonal": 4.0**bits * rng.choice((1e-9, 1.0, 1e5)),
                  "off_diagonal": 4.0**bits * rng.choice((1e-9, 0.7))},
    }  # fmt: skip


def _label(rng: random.Random, body: Body) -> None:
    """One wrong label among right ones, or the ends of the calendar."""
    periods = body["periods"]
    if not isinstance(periods, dict):
        return
    if isinstance(periods.get("values"), list) and periods["values"]:
        periods["values"][rng.randrange(len(periods["values"]))] = rng.choice((*DAYS, *NUMBERS))
    else:
        periods["first"], periods["every"] = rng.choice(DAYS), rng.choice(EVERY)
    if "freq" in periods and rng.random() < 0.3:
        periods["freq"] = rng.choice(FREQUENCIES)
    if "tz" in periods and rng.random() < 0.3:
        periods["tz"] = rng.choice(ZONES)


def _block(rng: random.Random, body: Body) -> Body:
    """Return a block of a panel, or what is published by somebody else."""
    blocks = body.get("blocks")
    places = [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    published = body.get("published")
    return rng.choice(places) if places else published if isinstance(published, dict) else {}


def _number_of_a_block(rng: random.Random, body: Body) -> None:
    """Put a number where a number of a block is expected."""
    _put(rng, _block(rng, body), (
        "rule.bounds", "rule.person_bound", "rule.cells_per_period", "rule.cells_per_person", "rule.statistic",
        "noise.scale", "guarantee.epsilon", "guarantee.delta", "guarantee.loss.mu_squared", "guarantee.loss.rho",
        "guarantee.loss.pure", "guarantee.loss.pure_as_rho", "guarantee.loss.rest_epsilon", "guarantee.adjacency",
        "guarantee.loss.rest_delta", "lengths.quantile", "lengths.scale", "lengths.counts",
        "made_on", "periods.length", "periods.step", "periods.first", "outcome",
    ))  # fmt: skip


def _other_rule(rng: random.Random, body: Body) -> None:
    """Another rule; nothing is claimed."""
    end = rng.choice((1e-320, 1e-100, 1e-99, 1.0, 1e6, 1e99, 1e100))
    block = _block(rng, body)
    block |= {"guarantee": None, "no_guarantee": "forged"}
    block["rule"] = {
        "statistic": rng.choice(("mean", "total", "share", "count", "median", None)),
        "bounds": rng.choice(([0, end], [-end, end], [end, 2 * end], [end, end], [end], [], None, {"0": 1})),
        "person_bound": rng.choice((None, end, end / 3, 1e-300)),
        "cells_per_period": rng.choice((1, 2, 3, 2**14, 2**40)),
        "cells_per_person": rng.choice((None, 1, 2**14, 2**63)),
    }  # fmt: skip
    block["noise"] = {"law": rng.choice(("gaussian", "laplace")), "scale": rng.choice((1e-300, 0.1, 1e9, 1e16, 1e17))}


def _other_numbers(rng: random.Random, body: Body) -> None:
    """Other sums and numbers of people, or other values and noise of a published table."""
    block = _block(rng, body)
    name = rng.choice(
        [name for name in ("sums", "people", "values", "noise") if isinstance(block.get(name), list)] or ["sums"]
    )
    held = block.get(name)
    value = rng.choice((0, -1, 2**62, 2**63 - 1, -(2**63), 1e308, 1e100, -1e100, 5e-324, None, "raw 2"))
    if isinstance(held, list):
        block[name] = [value if rng.random() < 0.5 else kept for kept in held] * rng.choice((1, 1, 1, 2, 0))


def _calendar_of_a_block(rng: random.Random, body: Body) -> None:
    block = _block(rng, body)
    if isinstance(block.get("periods"), dict):
        rng.choice((_calendar, _label))(rng, block)


def _units(rng: random.Random, body: Body) -> None:
    """Other units: too few, too many, the same twice, unprintable, of another site."""
    few = ["a", "b", "c"]
    _block(rng, body)["units"] = rng.choice((
        few[:2], few, [*few, "A"], [*few, " b"], [*few, ""], [*few, "\x1b[2J"], [*few, 1], ["x" * 201, *few],
        [str(k) for k in range(10_001)], ["x0", "x1", "y2", "y3"], "abc", {"a": 1, "b": 2, "c": 3}, None,
    ))  # fmt: skip


def _many_blocks(rng: random.Random, body: Body) -> None:
    """The same block again and again: other sites, other months, or the same."""
    block = _block(rng, body)
    if not isinstance(block.get("units"), list) or not isinstance(block.get("identity"), str):
        return
    way, count = rng.randrange(4), rng.choice((2, 40, 600, 2001))
    body["blocks"] = [
        block
        | ({"identity": f"{k:032x}"} if way else {})
        | ({"units": [f"{k}/{unit}" for unit in block["units"]]} if way == 2 else {})
        | ({"dataset": "people"} if way == 3 else {})
        for k in range(count)
    ]


Way = Callable[[random.Random, Body], None]
PANEL_WAYS: tuple[Way, ...] = (
    _anywhere, _anywhere, _number_of_a_block, _number_of_a_block, _other_rule, _other_rule, _other_numbers,
    _other_numbers, _calendar_of_a_block, _units, _many_blocks,
)  # fmt: skip
WAYS: tuple[Way, ...] = (
    _anywhere, _number, _number, _other_n, _other_matrix, _other_n, _huge_noise, _huge_noise, _reference, _constant,
    _calendar, _calendar, _few_directions, _label, _label,
)  # fmt: skip


def _upper(matrix: Any) -> list[int]:
    return [int(v) for v in matrix[np.triu_indices(len(matrix))]]


def _length(body: Body) -> int:
    periods = body.get("periods")
    found = (periods.get("length") or len(periods.get("values") or [])) if isinstance(periods, dict) else 5
    return found if type(found) is int and 1 <= found <= 100 else 5


def _size(body: Body) -> int:
    directions = body.get("directions")
    return directions + 1 if type(directions) is int and 1 <= directions <= 100 else _length(body)
