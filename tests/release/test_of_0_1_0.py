"""What 0.1.0 made still opens, is saved again, merges with its like, and answers nearly as it did."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, Release, ReleaseError
from dpsc.release.file_format import dumps, loads
from dpsc.release.scale import NO_SCALE
from tests.release.test_release import edited_text

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
        old.guarantee,
        old.identities,
        old.scale,
        old.sites,
    )
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


def at_another_site(**changes: object) -> Release:
    """A release like that of 0.1.0, of other donors: another matrix, and what is changed."""
    body = json.loads((HERE / FILES[0]).read_text("utf-8"))
    text = edited_text(json.dumps(body), matrix=[body["matrix"][0] + 5, *body["matrix"][1:]], **changes)
    return loads(text, Release)


QUARTERS = {"kind": "calendar", "name": "time", "every": "quarter", "step": 1, "length": 7}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"kernel": {"phi": 0.9, "nu": 0.5}}, "kernel"),
        ({"reference": None}, "reference path"),
        ({"reference": [0.0] * 7}, "reference path"),
        ({"grid_bits": 17}, "grid_bits"),
        ({"outcome": "another"}, "outcome"),
        ({"periods": QUARTERS | {"first": "2019-Q2"}}, "periods"),
        ({"periods": {"kind": "integer", "name": "time", "values": list(range(7))}}, "periods"),
    ],
)
def test_one_that_was_made_in_another_way_is_refused(changes: dict[str, object], what: str) -> None:
    old = Release.load(HERE / FILES[0])
    with pytest.raises(ReleaseError, match=f"differ in.*{what}"):
        Release.merge([old, at_another_site(**changes)], disjoint=True)


def test_one_of_another_format_that_was_made_in_the_same_way_adds_up() -> None:
    """Version 2 of the file says the same in other words: a calendar, and no directions, constant or scale."""
    none = {"value": 0.0, "source": "none", "share": 0.0}
    first = {"periods": QUARTERS | {"first": "2019-Q1"}}
    old, new = (
        Release.load(HERE / FILES[0]),
        at_another_site(version=2, directions=None, constant=0, scale=none, **first),
    )
    merged = Release.merge([old, new], disjoint=True)
    np.testing.assert_array_equal(merged.matrix, old.matrix + new.matrix)
    assert (merged.n, merged.sites, merged.guarantee.loss) == (120, 2, old.guarantee.loss)  # type: ignore[union-attr]
    assert merged.diagonal_scale == pytest.approx(np.hypot(old.diagonal_scale, new.diagonal_scale))
    seeded = at_another_site(guarantee=None, no_guarantee="its noise came from a seed")
    assert Release.merge([old, seeded], disjoint=True).guarantee is None
