"""Files that claim to be releases, with wrong numbers and calendars: an error sentence, or a reading that is right."""

from __future__ import annotations

import json
import math
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pandas.testing import assert_frame_equal

from dpsc import DpscError, Release
from dpsc.analyst.private_panel import PrivatePanel
from dpsc.checks import is_printable
from dpsc.cli import render
from dpsc.cli.evidence import check
from dpsc.release import describe_panel, panel_file, verify
from dpsc.release.describe import record
from dpsc.release.file_format import checksum_of, dumps, loads, sha256
from dpsc.release.panel import joined
from tests.forging import forged, forged_panel
from tests.release.test_of_0_1_0 import FILES
from tests.soak import SOAK, quick_or_long

pytestmark = pytest.mark.usefixtures("drawn")

LONGEST = quick_or_long(20.0, 2.0)  # seconds of computing; the limit is 2, a hang takes minutes


def read_in_every_way(path: Path, *, page: bool) -> str:
    """Do with a file what dpsc does with files, and return what became of it."""
    loaded: list[Release] = []
    if refused(lambda: loaded.append(Release.load(path))):
        return "refused"
    release, said = loaded[0], json.loads(path.read_text("utf-8"))
    for name in ("n", "sites", "grid_bits"):
        assert type(said[name]) is int
        assert getattr(release, name) == said[name]
    again = loads(dumps(release), Release)
    assert np.array_equal(again.matrix, release.matrix)
    assert again.times.equals(release.times)
    json.dumps(render.release_json(release, path, sha256(path)), allow_nan=False)
    if release.guarantee is not None:
        json.dumps(record(release, sha256(path)), allow_nan=False)
    assert all(is_printable(check.why) for check in verify.checks(release))
    uses: list[Callable[[], Any]] = [
        lambda: check(path, None, as_json=True),
        lambda: render.show_release(release, path, sha256(path)),
        lambda: Release.merge([release, other(release)], disjoint=True),
        lambda: Release.page_of(path) if page else None,
        lambda: asked(release) if release.T >= 3 else None,
    ]
    return "read, and refused later" if sum(map(refused, uses)) else "read"


def refused(use: Callable[[], Any]) -> bool:
    """Tell whether something is refused, in a short sentence of ours."""
    said = None
    try:
        use()
    except DpscError as problem:
        said = str(problem)
    assert said is None or (is_printable(said) and len(said) < 1000)
    return said is not None


def asked(release: Release) -> None:
    answer = release.estimate(np.linspace(0, 1, release.T), release.times[release.T - 1])
    assert np.isfinite(answer.counterfactual).all()
    assert is_printable(answer.summary().replace("\n", ""))


def other(release: Release) -> Release:
    """Return the release of another site."""
    fields = vars(release) | {"identities": ("0" * 32,), "datasets": ("elsewhere",)}
    matrix = release.matrix.copy()
    matrix[-1, -1] += 1
    return Release(**{name: fields[name] for name in Release.__dataclass_fields__} | {"matrix": matrix})


def test_a_forged_file_is_refused_in_a_sentence_or_read_rightly_and_soon(tmp_path: Path) -> None:
    """The file that fails stays in the folder of the test."""
    found: Counter[str] = Counter()
    slowest = 0.0
    for seed in range(quick_or_long(150, 10_000)):
        path = tmp_path / f"{seed}.dpsc.json"
        path.write_text(forged(seed), "utf-8", errors="surrogatepass")
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of pandas, about business days
            warnings.filterwarnings("ignore", "Glyph .* missing from font")  # of matplotlib, about rare letters
            found[read_in_every_way(path, page=SOAK or seed % 25 == 0)] += 1
        slowest = max(slowest, time.process_time() - started)
        path.unlink()
    assert found["refused"] > 0 < found["read"]
    assert slowest < LONGEST


def panel_read_in_every_way(path: Path) -> str:
    """Do with a file what can be done with a panel, and return what became of it."""
    loaded: list[PrivatePanel] = []
    if refused(lambda: loaded.append(PrivatePanel.load(path))):
        return "refused"
    panel = loaded[0]
    again = panel_file.loads(panel_file.dumps(panel), PrivatePanel)
    assert_frame_equal(again.to_frame(), panel.to_frame())
    assert panel.to_frame().shape[0] == len(panel.units) * len(panel.times)
    assert is_printable(repr(panel))
    assert not np.isinf(panel.table.values).any()
    for block in panel.blocks:
        if block.guarantee is not None:  # what it claims, its noise pays for
            loss, rule = block.guarantee.loss, block.rule
            assert loss.epsilon(block.guarantee.delta) <= block.guarantee.epsilon * (1 + 1e-8)
            if block.law == "laplace":
                assert math.sqrt(2 * loss.pure_as_rho) * block.scale >= rule.l1_sensitivity
            else:
                assert (loss.mu_squared + 2 * loss.rho) * block.scale**2 >= rule.squared_sensitivity
    json.dumps(describe_panel.to_json(panel), allow_nan=False)
    assert is_printable(" ".join(describe_panel.page(panel, path.name, sha256(path)).split()))
    if panel.guarantee is not None:
        json.dumps(describe_panel.record(panel, sha256(path)), allow_nan=False)
    assert refused(lambda: PrivatePanel.join([panel, panel]))
    assert refused(lambda: joined([panel], disjoint=True)) == bool(panel.publisher)
    return "read"


def test_a_forged_panel_is_refused_in_a_sentence_or_read_rightly_and_soon(tmp_path: Path) -> None:
    """The file that fails stays in the folder of the test."""
    found: Counter[str] = Counter()
    slowest = 0.0
    for seed in range(quick_or_long(300, 20_000)):
        path = tmp_path / f"{seed}.dpsc.json"
        path.write_text(forged_panel(seed), "utf-8", errors="surrogatepass")
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of pandas, about business days
            found[panel_read_in_every_way(path)] += 1
        slowest = max(slowest, time.process_time() - started)
        path.unlink()
    assert found["refused"] > 0 < found["read"]
    assert slowest < LONGEST


def edited(**changes: Any) -> str:
    body = json.loads((Path(__file__).parent / "release" / FILES[0]).read_text("utf-8")) | changes
    del body["checksum"]
    return json.dumps(body | {"checksum": checksum_of(body)})


def test_a_version_of_thousands_of_digits_is_not_repeated() -> None:
    with pytest.raises(DpscError, match="has version a long int, and"):
        loads(edited(version=10**3000), Release)


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1.0])
def test_noise_that_no_budget_has_is_refused(scale: float) -> None:
    """With it, moments overflowed, and the estimate ended in an IndexError."""
    noise = {"diagonal": scale, "off_diagonal": scale / math.sqrt(2)}
    with pytest.raises(DpscError, match="noise scales are not positive numbers of sensible size"):
        loads(edited(noise=noise, guarantee=None, no_guarantee="forged"), Release)


def test_a_reference_next_to_nothing_is_no_infinite_factor() -> None:
    release = loads(edited(reference=[5e-324] * 7), Release)
    notes = release.estimate(np.linspace(1, 2, 7), release.times[5]).notes
    assert any("1,000,000,000 times what the donors' outcome suggests" in note for note in notes)
