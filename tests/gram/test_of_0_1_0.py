"""What 0.1.0 made still opens, is saved again, merges with its like, and answers nearly as it did."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, Release, ReleaseError
from dpsc.gram.release_file import dumps, loads
from dpsc.gram.scale import NO_SCALE
from tests.gram.test_release import edited_text

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "expected-0.1.0.json").read_text("utf-8"))
FILES = ("release-0.1.0.dpsc.json", "version-0.1.0.dpsc.json", "version-0.1.0-merged.dpsc.json")


def donors() -> np.ndarray:
    rng = np.random.default_rng(20261116)
    factors = rng.normal(size=(60, 3)) @ np.cumsum(rng.normal(size=(3, 7)), axis=1)
    return np.round(factors + 0.1 * rng.normal(size=(60, 7)), 6)


def test_its_matrix_is_the_donors_sum_with_the_noise_that_it_states() -> None:
    """The sum is as 0.1.0 made it, of rows with their level and without a constant."""
    release = Release.load(HERE / FILES[0])
    rows = donors() - np.linspace(0, 1, 7)
    vectors = release.row_map.whitening @ rows.T
    vectors /= np.linalg.norm(vectors, axis=0)
    total = np.zeros((7, 7))
    total[np.triu_indices(7)] = EXPECTED["total"]
    np.testing.assert_allclose(total / 4.0**18, np.triu(vectors @ vectors.T), atol=1e-3)
    noise = (np.triu(release.matrix) - total) / release.off_diagonal_scale
    assert 0.5 < noise[np.triu_indices(7, 1)].std() < 2
    assert 0.5 < np.diag(noise).std() / np.sqrt(2) < 2


def test_a_release_of_0_1_0_opens_and_answers_as_it_did() -> None:
    """The estimator is another since, but with three common directions and little noise they must agree."""
    release = Release.load(HERE / FILES[0])
    assert (release.n, release.T, release.provenance, release.periods_from) == (60, 7, "made by 0.1.0", "")
    assert release.guarantee is not None
    assert (release.guarantee.epsilon, release.guarantee.delta) == (2.0, 1e-6)
    answer = release.estimate(donors()[0], treatment_time="2020Q1")
    np.testing.assert_allclose(answer.counterfactual, EXPECTED["counterfactual"], rtol=0.05)


@pytest.mark.parametrize("name", FILES)
def test_it_is_the_special_case_without_mean_level_and_scale_and_survives_being_saved(name: str) -> None:
    old = Release.load(HERE / name)
    assert (old.row_map.directions, old.row_map.constant, old.scale) == (None, 0.0, NO_SCALE)
    assert old.matrix.shape == (old.T, old.T)
    assert old.population.has_level
    assert not old.population.mean.any()
    again = loads(dumps(old), Release)
    assert json.loads(dumps(old))["version"] == 2
    assert again.row_map.same_as(old.row_map)
    np.testing.assert_array_equal(again.matrix, old.matrix)
    assert (again.guarantee, again.identities, again.scale, again.sites) == (
        old.guarantee, old.identities, old.scale, old.sites,
    )  # fmt: skip
    target = np.linspace(1, 2, old.T)
    for options in ({}, {"lambda_": 1.0}, {"rank": 1}, {"threshold": 1.0}):
        answers = [release.estimate(target, old.times[3], **options) for release in (old, again)]
        assert np.isfinite(answers[0].counterfactual).all()
        assert answers[0].counterfactual.equals(answers[1].counterfactual)


def test_files_of_0_1_0_are_recognised_and_merge_with_their_like_only() -> None:
    old, again, merged = (Release.load(HERE / FILES[k]) for k in (1, 1, 2))
    assert old.identities == again.identities
    assert old.datasets == ()
    assert merged.sites == 2
    with pytest.raises(ReleaseError, match="given twice"):
        Release.merge([old, again], disjoint=True)
    assert Release.merge([old, merged], disjoint=True).sites == 3
    make = GramRelease(epsilon=1.0, delta=1e-6, reference=old.reference, scale=1.0)
    new = make.release(pd.DataFrame(np.ones((9, old.T)), columns=old.times))
    with pytest.raises(ReleaseError, match="differ in directions"):
        Release.merge([old, new], disjoint=True)


def test_a_file_of_version_1_cannot_claim_what_version_2_has() -> None:
    """Directions or a scale in such a file are no part of it; its matrix is T × T."""
    scale = {"value": 1.0, "source": "counted", "share": 0.1}
    text = edited_text((HERE / FILES[1]).read_text("utf-8"), directions=2, constant=3.0, scale=scale)
    odd = loads(text, Release)
    assert (odd.row_map.directions, odd.row_map.constant, odd.scale) == (None, 0.0, NO_SCALE)
