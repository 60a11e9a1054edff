"""What 0.2.0 wrote still opens, and means the same: releases, settings, the ledger, answers.

The files of ``files_of_0_2_0`` are those of its last commit (bd1a0db), made by its commands ``ledger init``,
``plan --settings``, ``release`` (with ``--like``, and at two sites with ``--partition`` and those settings), ``merge``,
``estimate`` (one target, and a study of two) and ``fit --method output``, from 400 made-up donors.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import BudgetError, DpscWarning, GramRelease, Ledger, OutputPerturbation, Release
from dpsc.ledger import schema
from dpsc.release import settings
from dpsc.release.file_format import dumps, loads
from tests.cli.conftest import quick

HERE = Path(__file__).parent / "files_of_0_2_0"
HEAD = "e7fcbece78c21e594bde21094068feb37687a78c305c39f20783cf71f1b83f1d"  # what 0.2.0 said, to be noted elsewhere
FIRST_OF_COSTS = 4  # the entry of release.dpsc.json


@pytest.mark.parametrize("name", ["release", "north", "merged"])
def test_its_releases_open_and_are_saved_as_they_are(name: str) -> None:
    path = HERE / f"{name}.dpsc.json"
    old, body = Release.load(path), json.loads(path.read_text("utf-8"))
    assert (old.made_by, body["version"]) == ("dpsc 0.2.0", 2)
    again = loads(dumps(old), Release)
    np.testing.assert_array_equal(again.matrix, old.matrix)
    assert again.row_map.same_as(old.row_map)
    for field in ("guarantee", "identities", "datasets", "scale", "n", "sites", "made_by", "made_on", "outcome"):
        assert getattr(again, field) == getattr(old, field), field
    assert old.guarantee is not None
    assert (old.guarantee.epsilon, old.guarantee.delta) == (1.0, 1e-6)
    code, shown, _ = quick("audit", path)
    assert code == 0
    assert "none is broken" in " ".join(shown.split())


def test_its_release_answers_the_same_question_about_as_it_did() -> None:
    """The estimator is another since; the difference is small beside the interval that 0.2.0 gave."""
    before = json.loads((HERE / "answer.json").read_text("utf-8"))
    times = [*(row["time"] for row in before["before"]), *(row["time"] for row in before["periods"])]
    seen = [row["observed"] for row in (*before["before"], *before["periods"])]
    target = pd.Series(seen, index=pd.PeriodIndex(times, freq="M"))
    answer = Release.load(HERE / "release.dpsc.json").estimate(target, before["treatment_time"])
    lower, upper = before["average_effect_interval"]
    assert abs(answer.average.effect - before["average_effect"]) < (upper - lower) / 8


def test_a_site_with_this_version_joins_one_of_0_2_0_by_its_settings() -> None:
    agreed = settings.load(HERE / "settings.json")
    old = Release.load(HERE / "north.dpsc.json")
    donors = pd.DataFrame(np.random.default_rng(0).normal(50, 9, (150, old.T)), columns=old.times)
    new = GramRelease.from_settings(HERE / "settings.json").release(donors, outcome="cost", dataset=None)
    merged = Release.merge([old, new], disjoint=True)
    assert (agreed.scale, merged.n, merged.sites) == (20.0, old.n + 150, 2)
    np.testing.assert_array_equal(merged.matrix, old.matrix + new.matrix)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    shutil.copy(HERE / "ledger.sqlite", tmp_path)
    return tmp_path / "ledger.sqlite"


def test_its_ledger_is_brought_up_to_date_says_why_once_and_keeps_what_was_spent(place: Path) -> None:
    with closing(sqlite3.connect(place)) as connection:
        assert connection.execute("SELECT version FROM dpsc_ledger").fetchone() == (3,)
    with pytest.warns(DpscWarning, match="could be overspent.*pockets of each budget are fixed.*This is said once"):
        ledger = Ledger(place)
    assert ledger.verify(HEAD) == []
    assert [row.event for row in ledger.rows()[-2:]] == ["confirmed", "pockets"]
    assert ledger.rows()[-2].hash == HEAD
    again = Ledger(place)  # a warning would be an error here
    assert again.head == ledger.head
    with closing(sqlite3.connect(place)) as connection:
        assert connection.execute("SELECT version FROM dpsc_ledger").fetchone() == (schema.VERSION,)
    assert again.balance("costs").spent == pytest.approx(1.5, rel=1e-5)  # as 0.2.0 said
    assert again.balance("hospitals").partitions == pytest.approx({"north": 1.0, "south": 1.0}, rel=1e-5)
    assert again.remaining("firms", delta=0) == 1.0


@pytest.mark.filterwarnings("ignore:the ledger at .* was kept by an earlier version")
def test_budgets_of_its_ledger_can_be_spent_to_the_end_and_not_further(place: Path) -> None:
    """What 0.2.0 said was left for a Gram release of costs, after a pure one of 0.5, is what can still be booked."""
    ledger = Ledger(place)
    assert ledger.remaining("costs") == 3.2974
    about = dict(ledger.dataset("costs").description)
    with pytest.raises(BudgetError, match="for pure releases"):
        ledger.book("costs", **ledger.terms(OutputPerturbation(epsilon=0.01)), description=about)
    for epsilon, fits in ((3.2976, False), (3.2974, True), (0.1, False)):
        terms = ledger.terms(GramRelease(epsilon=epsilon, delta=1e-6, scale=1.0))
        if fits:
            ledger.book("costs", **terms, description=about)
        else:
            with pytest.raises(BudgetError):
                ledger.book("costs", **terms, description=about)
    assert ledger.entries()[0].number == FIRST_OF_COSTS


def test_its_answers_are_compared_with_each_other(tmp_path: Path) -> None:
    code, out, err = quick("compare", *(HERE / f"{name}.json" for name in ("answer", "study", "fit")), "--json")
    assert code == 0, err
    effects = [json.loads((HERE / f"{name}.json").read_text("utf-8"))["average_effect"] for name in ("answer", "study")]
    assert [row["average effect"] for row in json.loads(out)["answers"]][:2] == effects
