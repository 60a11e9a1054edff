"""The audit is silent on everything we ship, comes close to the claims, and sees what is done to the library."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpsc.analyst.release import Release
from dpsc.custodian.donors.missing import Bounds
from dpsc.custodian.gram.integer_rows import IntegerRows
from dpsc.evidence.audit.case import Case, Effort, Exact
from dpsc.evidence.audit.run import Audit, audit
from dpsc.evidence.audit.shipped import NAMES, cases, discrete_noise, joint_laplace, output
from dpsc.privacy import additive, discrete, sensitivity
from dpsc.types import Array
from tests.soak import quick_or_long

pytestmark = pytest.mark.statistical


@pytest.fixture(scope="module")
def quick() -> Audit:
    """Everything we ship, from the operating system's entropy; a false alarm has probability one in a million."""
    runs, calls = quick_or_long((9_000, 30), (200_000, 3000))
    return audit(cases(), runs=runs, calls=calls, false_alarm=1e-6)


def test_the_audit_is_silent_on_everything_we_ship(quick: Audit) -> None:
    assert quick.broken == []
    assert {f.mechanism for f in quick.findings} == set(NAMES)


# What the strongest attack shows: an audit that saw nothing anywhere would be silent too.
AT_LEAST = {
    "discrete-laplace": 0.99,
    "discrete-gaussian": 0.92,
    "output-pure": 0.99,
    "output-gaussian": 0.99,
    "gram": 0.999,
    "gram-counts": 0.999,
    "panel": 0.999,
    "panel-pure": 0.999,
    "panel-sensitivity": 0.999,
    "panel-joins": 0.999,
    "objective-pure": 0.9,
    "objective-gaussian": 0.3,
    "printed-output": 0.5,
    "gram-mu": 0.999,
    "gram-segments": 0.999,
    "gram-outcomes": 0.999,
    "composition": 0.999,
    "ridge-sensitivity": 0.99,
    "printed-ridge-sensitivity": 0.3,
    "answer-sensitivity": 0.99,
    "gradient-sensitivity": 0.99,
    "jacobian": 0.99,
    "post-period-sensitivity": 0.99,
    "gram-rows": 0.999,
}


@pytest.mark.parametrize("name", AT_LEAST)
def test_the_strongest_attack_comes_close_to_the_claim(quick: Audit, name: str) -> None:
    (finding,) = (f for f in quick.strongest() if f.mechanism == name)
    assert AT_LEAST[name] <= finding.share <= 1 + 1e-9


def test_sampling_alone_shows_most_of_a_pure_claim() -> None:
    """Seeded, with the command's own number of runs: the same every time."""
    sampled = audit(cases(["discrete-laplace", "output-pure", "joint-laplace"]), runs=40_000, calls=20, seed=1)
    shares = {(f.mechanism, f.attack): f.share for f in sampled.findings}
    assert shares["discrete-laplace", "runs in bulk"] > 0.7
    assert shares["output-pure", "runs in bulk"] > 0.6
    assert shares["joint-laplace", "runs in bulk, 1 dim."] > 0.85  # nothing else attacks this one


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_many_runs_show_nine_tenths_of_the_claim(epsilon: float) -> None:
    """One-dimensional Laplace noise and the worst case of output perturbation; seeded, for speed."""
    effort = Effort(quick_or_long(400_000, 1_000_000), 1, seed=1)
    worst, laplace = (
        next(a for a in case.attacks if a.name.startswith("runs in bulk"))
        for case in (output(epsilon, 0.0), joint_laplace(epsilon))
    )
    for attack in (worst, laplace):
        assert 0.9 * epsilon <= attack.run(effort, 1e-3 / 40).epsilon <= epsilon


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_the_exact_loss_shows_99_percent_of_the_gaussian_claim(epsilon: float) -> None:
    (exact,) = (a for a in output(epsilon, 1e-6).attacks if isinstance(a, Exact))
    assert 0.99 * epsilon <= exact.run(Effort(1, 1, 0), 1.0).epsilon <= epsilon


def broken(case: Case) -> bool:
    """Whether the attacks that need no sampling break the claim."""
    exact = Case(case.name, case.title, tuple(a for a in case.attacks if isinstance(a, Exact)))
    return bool(audit([exact], runs=1000, seed=0).broken)


SCALED: dict[str, Callable[[], Case]] = {
    "discrete-laplace": lambda: discrete_noise(1.0, 0.0),
    "output-pure": lambda: output(1.0, 0.0),
    "output-gaussian": lambda: output(1.0, 1e-6),
}


@pytest.mark.parametrize("name", SCALED)
def test_a_scale_10_percent_too_small_in_the_library_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not broken(SCALED[name]())
    original = additive.discrete_scale
    monkeypatch.setattr(additive, "discrete_scale", lambda *a, **k: 0.9 * original(*a, **k))
    assert broken(SCALED[name]())


def test_clipping_forgotten_in_the_library_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpsc.custodian.donors.panel import Panel, ScaledPanel

    original = Panel.scaled

    def unclipped(self: Panel, algorithm: str) -> ScaledPanel:
        assert self.bounds is not None
        return replace(original(self, algorithm), Z=self.bounds.scale(self.donors[:, self.post], self.post))

    def blocks(self: ScaledPanel) -> Iterator[Array]:
        yield self.bounds.scale(self.donors[:, : self.T0], slice(None, self.T0))

    monkeypatch.setattr(Bounds, "clip", lambda self, values, out=None: values)
    monkeypatch.setattr(Panel, "scaled", unclipped)
    monkeypatch.setattr(ScaledPanel, "X_blocks", blocks)
    assert broken(output(1.0, 0.0))


@pytest.mark.parametrize("which", ["weights", "answer"])
def test_a_sensitivity_too_small_in_the_library_is_seen(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if which == "weights":
        monkeypatch.setattr(sensitivity, "exact_ridge", lambda y, R, lambda_: 0.9 * y / math.sqrt(8))
    else:
        original = sensitivity.answer
        monkeypatch.setattr(sensitivity, "answer", lambda *a: tuple(0.9 * v for v in original(*a)))
    assert broken(output(1.0, 0.0))


@pytest.mark.parametrize("how", ["rounded", "not normalised"])
def test_gram_vectors_that_are_too_long_are_seen(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_long(self: IntegerRows, write: Any) -> Any:
        columns, _ = self._movements(write)
        columns[0] = self.map.constant
        columns = np.nan_to_num(np.clip(columns[: self.map.size], -100, 100))
        if how == "rounded":
            columns /= np.linalg.norm(columns, axis=0)
        return np.rint(columns * 2.0**self.map.grid_bits)

    assert not broken(cases(["gram-rows"])[0])
    monkeypatch.setattr(IntegerRows, "__call__", too_long)
    with np.errstate(all="ignore"):
        assert broken(cases(["gram-rows"])[0])


@pytest.mark.parametrize("name", ["gram", "gram-mu", "gram-counts"])
def test_gram_noise_10_percent_too_small_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpsc.custodian.gram import algorithm

    assert not broken(cases([name])[0])
    if name == "gram-counts":
        original = discrete.add
        monkeypatch.setattr(discrete, "add", lambda v, kind, s, *rest, **k: original(v, kind, 0.9 * s, *rest, **k))
    else:
        scales = algorithm.GramRelease._scales
        monkeypatch.setattr(
            algorithm.GramRelease, "_scales", lambda self, share: tuple(0.9 * s for s in scales(self, share))
        )
        monkeypatch.setattr(Release, "_require_paid", lambda self, guarantee: None)  # which would refuse it first
    assert broken(cases([name])[0])


FORGOTTEN: dict[str, Callable[..., Any]] = {
    "_kept": lambda self, person, keys, cells: np.arange(len(cells)),
    "_steps": lambda self, sums: sums - self.rule.middle_steps,
    "_shortened": lambda self, person, steps: steps,
}


@pytest.mark.parametrize("what", FORGOTTEN)
def test_people_who_are_not_bounded_are_seen(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpsc.custodian.groups.bounding import Bounding

    assert not broken(cases(["panel-sensitivity"])[0])
    monkeypatch.setattr(Bounding, what, FORGOTTEN[what])
    assert broken(cases(["panel-sensitivity"])[0])


@pytest.mark.parametrize("name", ["panel", "panel-pure"])
def test_noise_of_a_panel_10_percent_too_small_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpsc.custodian.groups import algorithm
    from dpsc.release.panel import Block, noise_of

    assert not broken(cases([name])[0])
    monkeypatch.setattr(algorithm, "noise_of", lambda *a: (noise_of(*a)[0], 0.9 * noise_of(*a)[1]))
    monkeypatch.setattr(Block, "_require_paid", lambda self, guarantee: None)  # which would refuse it first
    assert broken(cases([name])[0])


def test_building_the_cases_warns_of_no_seed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cases()
