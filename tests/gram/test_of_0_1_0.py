"""What 0.1.0 made: its releases still open and say the same, and the same donors add up to the same integers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from dpsc import GramRelease, Release

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "expected-0.1.0.json").read_text("utf-8"))


def donors() -> np.ndarray:
    rng = np.random.default_rng(20261116)
    factors = rng.normal(size=(60, 3)) @ np.cumsum(rng.normal(size=(3, 7)), axis=1)
    return np.round(factors + 0.1 * rng.normal(size=(60, 7)), 6)


def test_the_same_donors_add_up_to_the_same_integers() -> None:
    quarters = pd.period_range("2019Q1", periods=7, freq="Q")
    make = GramRelease(epsilon=2.0, delta=1e-6, reference=np.linspace(0, 1, 7))
    summed = make.custodian_sum(pd.DataFrame(donors(), columns=quarters))
    assert summed.total[np.triu_indices(7)].tolist() == EXPECTED["total"]


def test_a_release_of_0_1_0_opens_and_answers_as_it_did() -> None:
    release = Release.load(HERE / "release-0.1.0.dpsc.json")
    assert (release.n, release.T, release.provenance, release.periods_from) == (60, 7, "made by 0.1.0", "")
    assert release.guarantee is not None
    assert (release.guarantee.epsilon, release.guarantee.delta) == (2.0, 1e-6)
    answer = release.estimate(donors()[0], treatment_time="2020Q1")
    np.testing.assert_allclose(answer.counterfactual, EXPECTED["counterfactual"], rtol=1e-9)
