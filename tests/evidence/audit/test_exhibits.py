"""Other packages' mechanisms: what is wrong with them is shown, and not found in the same mechanism without it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpsc.evidence.audit import broken
from dpsc.evidence.audit.broken import BROKEN, EXHIBITS
from dpsc.evidence.audit.case import Case, Effort
from dpsc.evidence.audit.run import Audit, audit, draw
from dpsc.evidence.audit.shipped import cases
from dpsc.privacy.source import seeded

pytestmark = pytest.mark.statistical


def attacked(*cases: Case) -> Audit:
    return audit(cases, runs=10_000, calls=200, seed=1, false_alarm=1e-5)


@pytest.mark.parametrize("name", EXHIBITS)
def test_the_mistake_is_shown_and_the_same_attack_does_not_accuse_the_repaired_mechanism(name: str) -> None:
    as_published = attacked(EXHIBITS[name]())
    repaired = attacked(EXHIBITS[name](repaired=True))
    assert len(as_published.broken) == len(as_published.findings) >= 1
    assert repaired.broken == []
    assert [f.attack for f in repaired.findings] == [f.attack for f in as_published.findings]


def test_every_exhibit_says_where_it_is_described_and_is_shown_by_the_command() -> None:
    for name, make in EXHIBITS.items():
        assert BROKEN[name] is make
        assert make().note.startswith("https://github.com/")


def test_what_is_known_to_be_broken_is_drawn_and_listed_apart_and_never_counted() -> None:
    shipped = attacked(*cases(["gram-mu"]))
    known = attacked(EXHIBITS["mlsynth-answer"](), EXHIBITS["mlsynth-clipping"]())
    content = json.loads(shipped.to_json(known))
    assert content["broken"] == 0
    assert {f["mechanism"] for f in content["findings"]} == {"gram-mu"}
    assert [(f["verdict"], f["shown"] is None) for f in content["known_to_be_broken"]] == [
        ("BROKEN", True),
        ("BROKEN", False),
    ]
    assert "known_to_be_broken" not in json.loads(shipped.to_json())
    panels = draw(shipped.groups, known.groups).axes
    assert len(draw(shipped.groups).axes) == 1
    assert [len(panel.get_yticklabels()) for panel in panels] == [1, 2]
    assert any(text.get_text() == "∞  of  ε = 2" for text in panels[1].texts)


def test_in_38_dimensions_the_median_loss_of_mlsynths_noise_is_21_where_1_is_claimed() -> None:
    """A shift by the sensitivity, so by one scale at epsilon = 1; with a Gamma radius no loss exceeds 1."""
    shift = np.eye(38)[0]
    losses = broken.noise_losses(shift, Effort(40_000, 1, seed=0))
    assert np.median(losses) == pytest.approx(21.3, abs=0.6)
    page = " ".join((Path(__file__).parents[3] / "docs" / "reference" / "audit.md").read_text("utf-8").split())
    assert "privacy loss in 38 dimensions, the donors of its example, is 21 where 1 is claimed" in page
    assert broken.noise_losses(shift, Effort(20_000, 1, seed=0), repaired=True).max() <= 1


def test_the_paths_of_mlsynths_release_have_the_law_of_a_whole_noise_matrix() -> None:
    """The exhibit draws W'f directly; here W is drawn in all its n T dimensions, for one f per run."""
    n, T, runs = broken.N, broken.T, 3000
    source, donors = seeded(3), broken._opposite_after()[0]
    outputs = broken._release(donors, runs, source, False)
    f = outputs[:, :n]
    W = 2 * math.sqrt(T) * broken._noise(n * T, runs, source, False).reshape(runs, n, T)
    paths = outputs[:, n:] - f @ donors, np.einsum("rnt,rn->rt", W, f)
    drawn, whole = (np.linalg.norm(path, axis=1) / np.linalg.norm(f, axis=1) for path in paths)
    assert stats.ks_2samp(drawn, whole).pvalue > 1e-4
    assert stats.ks_2samp(1.3 * drawn, whole).pvalue < 1e-4
