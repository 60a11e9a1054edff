"""Any bytes in: an answer, or an error of ours with exit code 2. Never a traceback, a hang or a partial file.

A command is one line of ``COMMANDS``: fixed arguments that keep it short, options to try with any value, and a file
that it reads, if it reads one.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import math
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsc import DpscError, GramRelease, Panel, Release, load
from dpsc.checks import is_printable
from dpsc.evidence.paper.points import Outcome, Point
from dpsc.evidence.paper.reproduce import KeptOutcomes
from dpsc.release import panel_file
from dpsc.release.file_format import checksum_of, dumps, sealed
from tests.cli.conftest import invoked
from tests.custodian.donors.test_panel import anything
from tests.making import make_private_panel
from tests.soak import quick_or_long

MAKE = GramRelease(epsilon=1.0, delta=1e-6, seed=0, scale=1.0)


def a_release(make: GramRelease = MAKE, n: int = 30) -> str:
    return dumps(make.release(np.random.default_rng(0).normal(size=(n, 5))))


FORGED = [
    a_release(),
    a_release(GramRelease(epsilon=1.0, delta=1e-6, reference=np.ones(5), scale=1.0, directions=2)),
    a_release(GramRelease(epsilon=1.0, delta=1e-6), n=400),
    (Path(__file__).parent / "release" / "version-0.1.0.dpsc.json").read_text("utf-8"),
]


def damaged(content: bytes) -> st.SearchStrategy[bytes]:
    """Any bytes, or a good file that was cut, spliced or had bytes changed."""

    def splice(parts: tuple[int, int, bytes]) -> bytes:
        start, length, new = parts
        return content[: start % len(content)] + new + content[start % len(content) + length :]

    spliced = st.tuples(st.integers(0, len(content)), st.integers(0, 200), st.binary(max_size=30)).map(splice)
    return st.one_of(st.binary(max_size=300), spliced, st.integers(0, len(content)).map(lambda k: content[:k]))


def load_and_use(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.json"
        path.write_bytes(content)
        try:
            release = Release.load(path)
            assert is_printable(repr(release))
            if release.guarantee is not None:  # what it claims, its noise pays for
                s = min(release.diagonal_scale, math.sqrt(2) * release.off_diagonal_scale) / 4.0**release.grid_bits
                claimed = release.guarantee.loss.mu_squared + 2 * release.guarantee.loss.rho
                assert claimed * (1 - release.scale.share) * s**2 >= 2 * release.sites
                assert release.guarantee.loss.epsilon(release.guarantee.delta) <= release.guarantee.epsilon * (1 + 1e-8)
            assert dumps(release)
            target = np.linspace(0, 1, release.T)
            if release.T >= 3:
                summary = release.estimate(target, release.times[release.T - 1]).summary()
                assert is_printable(summary.replace("\n", ""))
        except DpscError as problem:
            said = str(problem)
        else:
            return
    assert is_printable(said)


@settings(max_examples=quick_or_long(60, 5000))
@given(damaged(a_release().encode()))
def test_any_bytes_load_as_a_release_or_are_refused(content: bytes) -> None:
    load_and_use(content)


@settings(max_examples=quick_or_long(60, 5000))
@given(damaged(panel_file.dumps(make_private_panel()).encode()), st.booleans())
def test_any_bytes_load_as_a_panel_or_are_refused(content: bytes, sealed_again: bool) -> None:
    if sealed_again:
        with contextlib.suppress(ValueError, TypeError, AttributeError, RecursionError):
            body = json.loads(content)
            body.pop("checksum", None)
            content = sealed(body).encode("utf-8", "surrogatepass")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "panel.json"
        path.write_bytes(content)
        try:
            panel = load(path)
        except DpscError as problem:
            said = str(problem)
        else:
            said = repr(panel)
    assert is_printable(said)


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(
            [
                0,
                1,
                2,
                2**62,
                2**63,
                10**400,
                1e-320,
                1e-100,
                1e100,
                1e154,
                1e308,
                math.nan,
                math.inf,
                "NaT",
                "\x1b[2J",
                "UTC",
                "dateutil//etc/passwd",
                "Europe/Berlin",
                "period",
                "datetime",
                "date",
                "integer",
                "number",
                "text",
                "D",
                "1000Y",
            ]
        ),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)


@settings(max_examples=quick_or_long(80, 5000))
@given(st.data())
def test_a_forged_release_with_a_fitting_checksum_loads_or_is_refused(data: st.DataObject) -> None:
    """Replace any part, at any depth, by any JSON value: what loads can be used, or refuses in our words."""
    body = json.loads(data.draw(st.sampled_from(FORGED)))
    del body["checksum"]
    place: Any = body
    key = data.draw(st.sampled_from(sorted(place)))
    while isinstance(place[key], dict | list) and len(place[key]) and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
    place[key] = data.draw(json_values)
    try:
        body["checksum"] = checksum_of(body)
        text = json.dumps(body)
    except (ValueError, DpscError):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load_and_use(text.encode("utf-8", "surrogatepass"))


cells = st.one_of(st.sampled_from(["", "1", "-2.5", "1e309", "nan", "a", "0x1", "1,5", "2020-01-01", '"', "∞", "True"]))
tables = st.lists(st.lists(cells, min_size=4, max_size=6), min_size=1, max_size=8).map(
    lambda rows: "\n".join(";".join(row) for row in rows).encode()
)


@settings(max_examples=quick_or_long(60, 5000), suppress_health_check=[HealthCheck.filter_too_much])
@given(st.one_of(tables, st.binary(max_size=120)), st.booleans(), anything)
def test_any_csv_that_pandas_reads_is_a_panel_or_refused(content: bytes, long: bool, treatment_time: Any) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame = pd.read_csv(io.BytesIO(content), sep=";", header=None, engine="python", quoting=3)
    except (ValueError, pd.errors.ParserError):
        return
    try:
        if long:
            columns = [*frame.columns, 0, 0, 0][:3]
            panel = Panel.from_long(
                frame, unit=columns[0], time=columns[1], outcome=columns[2], treatment_time=treatment_time,
                target=[0.0, 1.0, 2.0],
            )  # fmt: skip
        else:
            target = np.zeros(frame.shape[1])
            panel = Panel.from_wide(frame, treatment_time=treatment_time, target=target, missing="interpolate")
    except DpscError:
        return
    seen = np.isfinite(panel.donors)
    assert (seen.all(axis=1) | np.isnan(panel.donors).all(axis=1)).all()


@settings(max_examples=quick_or_long(60, 5000))
@given(
    st.one_of(anything, st.lists(anything, max_size=4), st.lists(st.lists(anything, max_size=4), max_size=4)),
    st.one_of(anything, st.lists(anything, max_size=4)),
    st.one_of(anything, st.tuples(anything, anything)),
)
def test_any_arrays_are_a_panel_or_refused(donors: Any, target: Any, bounds: Any) -> None:
    for given_donors in (donors, np.zeros((3, 4))):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                panel = Panel.from_arrays(given_donors, target, treatment_time=2, bounds=bounds)
        except DpscError:
            continue
        assert np.isfinite(panel.donors).all()


PANEL = "who,t,x\n" + "".join(f"p{i},{t},{i + t * 0.5}\n" for i in range(12) for t in range(2000, 2006))
TARGET = "t,x\n" + "".join(f"{t},{t * 0.5 - 1000}\n" for t in range(2000, 2006))
COLUMNS = ("--unit", "who", "--time", "t", "--outcome", "x")
BUDGET = ("--epsilon", "1", "--delta", "1e-6", "--no-ledger")
FIT = (*COLUMNS, "--treated-unit", "p3", "--treatment-time", "2004")


@functools.cache
def good_files() -> dict[str, bytes]:
    """Files that every command finds in its folder."""
    donors = GramRelease(epsilon=1.0, delta=1e-6, seed=0, scale=1.0).release(
        pd.DataFrame(np.random.default_rng(0).normal(size=(30, 6)), columns=range(2000, 2006))
    )
    texts = {"panel.csv": PANEL, "target.csv": TARGET, "r.json": dumps(donors)}
    return {name: text.encode() for name, text in texts.items()}


@dataclass(frozen=True)
class Command:
    """What to try on one command; ``reads`` is the file, of those in its folder, that is damaged."""

    name: str
    fixed: tuple[str, ...]
    options: tuple[str, ...] = ()
    reads: str = ""
    out: str = "--out"  # the option for its output, if it has one

    def __str__(self) -> str:
        return " ".join([self.name, self.reads or "arguments", *self.fixed[-1:]])


COMMANDS = [
    Command("audit", ("--mechanism", "post-period-sensitivity"), ("--mechanism", "--runs", "--seed", "--no-such")),
    Command("reproduce", ("--figure", "data", "--runs", "2"), ("--figure", "--recipe", "--seed", "--no-such")),
    Command("plan", ("--n", "20", "--before", "3", "--after", "1", "--epsilon", "1", "--runs", "1"),
            ("--before", "--epsilon", "--delta", "--error", "--smoothness", "--rank", "--signal-to-noise", "--time")),
    Command("plan", ("--n", "9", "--before", "3", "--after", "1", "--runs", "1", "--epsilon", "1", "--target",
                     "target.csv"), (), "target.csv"),
    Command("release", ("panel.csv", *COLUMNS, *BUDGET),
            ("--epsilon", "--delta", "--unit", "--time", "--outcome", "--time-format", "--missing", "--smoothness",
             "--exclude", "--engine", "--provenance", "--reference")),
    Command("release", ("panel.csv", *COLUMNS, *BUDGET), (), "panel.csv"),
    Command("release", ("panel.csv", *COLUMNS, *BUDGET, "--engine", "stream"), (), "panel.csv"),
    Command("release", ("panel.csv", "--wide", "--unit", "who", *BUDGET, "--missing", "interpolate"), (), "panel.csv"),
    Command("release", ("panel.csv", *COLUMNS, *BUDGET, "--reference", "target.csv"), (), "target.csv"),
    Command("inspect", ("r.json",), (), "r.json", out=""),
    Command("estimate", ("r.json", "target.csv", "--treatment-time", "2004", *quick_or_long((), ("--json",))),
            ("--treatment-time", "--time", "--outcome", "--time-format", "--level", "--units"), out=""),
    Command("estimate", ("r.json", "target.csv", "--treatment-time", "2004"), (), "target.csv", out=""),
    Command("estimate", ("r.json", "target.csv", "--treatment-time", "2004"), (), "r.json", out=""),
    Command("fit", ("panel.csv", *FIT, *BUDGET, "--json"),
            ("--treated-unit", "--treatment-time", "--method", "--epsilon", "--delta", "--split", "--lambda", "--level",
             "--repeated"), out=""),
    Command("fit", ("panel.csv", *FIT, "--method", "output", "--epsilon", "1", "--bounds", "-10", "5000",
                    "--no-ledger"), (), "panel.csv", out=""),
    Command("ledger", ("show", "--ledger", "panel.csv"), (), "panel.csv", out=""),
]  # fmt: skip

odd = st.sampled_from(["", "-", "--", "0", "\x00", "1e300", "1e-300", "r.json", "panel.csv"])
words = st.one_of(st.text(max_size=8), st.integers(-3, 2**70).map(str), st.floats().map(str), odd)


def run(command: Command, arguments: Sequence[str], content: bytes | None) -> None:
    """Run in a folder of its own, with one of its files damaged."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, good in good_files().items():
            Path(name).write_bytes(content if content is not None and name == command.reads else good)
        before = set(Path(folder).rglob("*"))
        out = [command.out, "out"] if command.out else []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = invoked(command.name, *command.fixed, *out, *arguments)
        assert done.exit_code in (0, 2), (done.exit_code, done.output, done.exception)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert "Traceback" not in done.output
        made = set(Path(folder).rglob("*")) - before
        assert not [path for path in made if path.name.endswith(".part")]
        if done.exit_code == 2:
            assert done.output.strip()
            assert not [path for path in made if path.is_file() and command.name in ("release", "estimate", "fit")]


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.options], ids=str)
def test_any_arguments_are_answered_or_refused(command: Command) -> None:
    @settings(max_examples=quick_or_long(9, 1000), suppress_health_check=list(HealthCheck))
    @given(st.lists(st.tuples(st.sampled_from(command.options), words), min_size=1, max_size=2))
    def check(pairs: list[tuple[str, str]]) -> None:
        run(command, [word for pair in pairs for word in pair], None)

    check()


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.reads], ids=str)
def test_any_file_is_read_or_refused(command: Command) -> None:
    @settings(max_examples=quick_or_long(10, 1000), suppress_health_check=list(HealthCheck))
    @given(damaged(good_files()[command.reads]))
    def check(content: bytes) -> None:
        run(command, [], content)

    check()


@settings(max_examples=quick_or_long(60, 5000))
@given(st.data())
def test_any_file_of_finished_points_is_resumed_from_or_refused(data: st.DataObject) -> None:
    point = Point("ours", "gram", 10, 10, 10.0, 0.5, 0.5, 1e-6)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.jsonl"
        KeptOutcomes(path, 2, 0, resume=False).add([point], [Outcome(1.0, 0.1, 0.9, 2)])
        path.write_bytes(data.draw(damaged(path.read_bytes())))
        try:
            resumed = KeptOutcomes(path, 2, 0, resume=True)
        except DpscError:
            return
        for outcome in resumed.outcomes.values():
            assert outcome.band[0] <= outcome.band[1] or not math.isfinite(outcome.band[1])
