"""A release file that was tampered with is caught where it can be, and an honest one is not accused."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, PanelRelease, People, PrivatePanel, Release
from dpsc.custodian.gram.algorithm import CustodianSum
from dpsc.errors import ReleaseError
from dpsc.privacy.guarantee import PUBLISHERS_WORD, mark_of
from dpsc.release import verify
from dpsc.types import Array


def donors(n: int, T: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, 3)) @ np.cumsum(rng.normal(size=(3, T)), axis=1)
    return np.asarray(common + np.cumsum(rng.normal(size=(n, T)), axis=1) / 2)


@lru_cache(maxsize=4)
def made(n: int = 300, T: int = 60) -> tuple[CustodianSum, Release]:
    algorithm = GramRelease(epsilon=1.0, delta=1e-6, scale=5.0)
    summed = algorithm.custodian_sum(donors(n, T))
    return summed, algorithm.release(summed, dataset=None)


def with_noise(factor: float, n: int = 300, T: int = 60) -> Release:
    """The release with its noise made smaller, and every claim as it was."""
    summed, release = made(n, T)
    noise = release.matrix - summed.total
    return replace(release, matrix=summed.total + np.rint(factor * noise).astype(np.int64))


TESTS = Path(__file__).parents[1]
STORED = [*sorted((TESTS / "release").glob("*.dpsc.json")), TESTS / "web/wages.dpsc.json"]


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.name)
def test_files_of_earlier_versions_are_genuine(path: Path) -> None:
    assert "broken" not in {check.verdict for check in verify.checks(Release.load(path))}


def test_only_a_table_of_others_rests_on_the_word_of_its_publisher() -> None:
    """Who edits the file of a release cannot give it the milder mark, nor can a table without noise have it."""
    _, release = made()
    for reason in (PUBLISHERS_WORD, f"published by a friend ({PUBLISHERS_WORD})"):
        with pytest.raises(ReleaseError, match="word of another publisher"):
            replace(release, guarantee=None, no_guarantee=reason)
    table = pd.DataFrame({"unit": list("ABC") * 2, "year": [1] * 3 + [2] * 3, "value": 1.0})
    forged = PrivatePanel.from_noisy_table(
        table, noise=0.0, guarantee=f"a friend ({PUBLISHERS_WORD})", unit="unit", time="year", outcome="value"
    )
    assert mark_of(forged.no_guarantee) == "NOT PRIVATE"


def test_each_outcome_of_several_is_checked_and_a_forged_one_is_broken() -> None:
    scales = {"a": {"scale": 5.0}, "b": {"scale": 5.0}}
    both = {"a": donors(300, 30), "b": donors(300, 30, 1)}
    made = GramRelease(epsilon=1.0, delta=1e-6).release(both, each=scales, dataset=None)
    first, second = made.parts
    forged = replace(made, parts=(first, replace(second, matrix=-second.matrix)))
    assert {check.what for check in verify.checks(forged) if check.verdict == "broken"} >= {"b: matrix"}


def test_of_a_panel_the_noise_cannot_be_told() -> None:
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"who": np.repeat(np.arange(400), 3).astype(str), "town": np.repeat(["A", "B", "C"], 400)})
    people["year"], people["cost"] = np.tile([2020, 2021, 2022], 400), rng.uniform(0, 10, 1200)
    records = People.from_long(
        people, person="who", unit="town", time="year", outcome="cost", units=["A", "B", "C"], periods="2020..2022"
    )
    panel = PanelRelease(epsilon=1.0, delta=1e-6, bounds=(0, 10)).release(records, dataset=None)
    assert [check.verdict for check in verify.panel_checks(panel)] == ["holds", "cannot be told"]


def verdicts(release: Release) -> dict[str, str]:
    return {check.what: check.verdict for check in verify.checks(release)}


@pytest.mark.parametrize(("n", "T"), [(300, 60), (400, 18), (60, 8), (20_000, 24)])
def test_an_honest_file_is_not_accused(n: int, T: int) -> None:
    assert "broken" not in verdicts(made(n, T)[1]).values()


@pytest.mark.parametrize("factor", [0.0, 0.25, 0.5])
def test_missing_noise_is_caught_where_donors_are_few(factor: float) -> None:
    assert verdicts(with_noise(factor))["noise"] == "broken"


def test_that_noise_is_there_is_shown_only_where_it_is() -> None:
    assert verdicts(with_noise(1.0))["noise"] == "holds"
    assert verdicts(with_noise(0.0, 20_000, 24))["noise"] == "cannot be told"  # many donors hide it: never "holds"


def test_donors_that_are_not_there_are_caught_where_the_noise_is_small_beside_them() -> None:
    release = made(20_000, 24)[1]
    assert verdicts(replace(release, n=20_400))["number of donors"] == "broken"
    assert verdicts(replace(release, n=19_600))["number of donors"] == "broken"


def test_a_matrix_that_no_donors_make_is_caught() -> None:
    release = made()[1]
    assert verdicts(replace(release, matrix=-release.matrix))["matrix"] == "broken"


def test_noise_alone_is_rarely_taken_for_too_quiet_and_a_tenth_of_it_is_never_missed() -> None:
    """The chance is an upper bound: among 400 matrices of noise alone about 5% may be below 0.05, and not many more."""
    _, release = made(60, 8)
    rng = np.random.default_rng(1)
    size, chances = release.row_map.size, []
    for _ in range(400):
        raw = rng.normal(size=(size, size)) * release.diagonal_scale
        chances.append(verify._too_quiet(replace(release, matrix=np.rint((raw + raw.T) / 2).astype(np.int64)))[0])
    assert 0.005 < np.mean(np.array(chances) < 0.05) < 0.09
    quiet = np.rint((raw + raw.T) / 20).astype(np.int64)
    assert verify._too_quiet(replace(release, matrix=quiet))[0] < verify.FALSE_ALARM


def test_the_proved_noise_is_a_lower_bound() -> None:
    """Whatever the donors: noise of the claimed scale is never proved to be more than it is."""
    for n, T in ((300, 60), (400, 18), (60, 8), (20_000, 24)):
        for factor in (1.0, 0.5):
            assert verify._at_least(with_noise(factor, n, T)) < factor
    assert verify._at_least(with_noise(1.0)) > 0.5


def test_a_release_without_a_guarantee_fails() -> None:
    seeded = GramRelease(epsilon=1.0, delta=1e-6, scale=5.0, seed=1).release(donors(60, 8))
    assert verdicts(seeded)["claim"] == "broken"
