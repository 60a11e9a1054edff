from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, ParameterError, Release, ReleaseError
from dpsc.release.file_format import dumps, loads
from dpsc.types import Array, TargetLike

T0, T = 14, 20


@pytest.fixture(scope="module")
def paths() -> Array:
    rng = np.random.default_rng(3)
    return np.asarray(50 + np.cumsum(rng.normal(size=(400, T)) + rng.normal(size=T), axis=1))


@pytest.fixture(scope="module")
def release(paths: Array) -> Release:
    months = pd.period_range("2022-01", periods=T, freq="M")
    donors = pd.DataFrame(paths[1:], columns=months)
    return GramRelease(epsilon=1.0, delta=1e-6, scale=4.0, seed=0).release(donors)


def test_every_form_of_a_target_gives_the_same_answer(paths: Array, release: Release) -> None:
    y, months = paths[0], pd.period_range("2022-01", periods=T, freq="M")
    names = months.strftime("%Y-%m")
    forms: dict[str, TargetLike] = {
        "a Series by month": pd.Series(y, index=months),
        "text": pd.Series(y, index=names),
        "month ends": pd.Series(y, index=months.to_timestamp(how="end").normalize()),
        "a dictionary": dict(zip(names, y, strict=True)),
        "numbers": list(y),
        "two columns": pd.DataFrame({"month": names, "cost": y}),
        "two columns, the other way round": pd.DataFrame({"cost": y, "month": names}),
        "one column": pd.DataFrame({"cost": y}, index=names),
        "a wide row": pd.DataFrame([y], columns=names),
        "a wide row with a name": pd.DataFrame([["Kent", *y]], columns=["county", *names]),
        "a long table of one unit": pd.DataFrame({"county": "Kent", "month": names, "cost": y}),
        "out of order": pd.Series(y, index=months).iloc[::-1],
    }
    expected = release.estimate(y, "2023-03")
    assert expected.T0 == T0
    for form, target in forms.items():
        found = release.estimate(target, "2023-03")
        assert found.gaps.to_numpy() == pytest.approx(expected.gaps.to_numpy()), form
        assert found.notes == (), form


def test_the_time_before_the_intervention_is_enough(paths: Array, release: Release) -> None:
    whole, before = release.estimate(paths[0], "2023-03"), release.estimate(paths[0][:T0], "2023-03")
    assert before.counterfactual.equals(whole.counterfactual)
    assert np.isnan(before.att)
    assert before.detectable() == whole.detectable() > 0


def test_a_target_beyond_the_release_is_cut_with_a_note(paths: Array, release: Release) -> None:
    months = pd.period_range("2021-11", periods=T + 4, freq="M")
    longer = pd.Series(np.r_[1.0, 2.0, paths[0], 3.0, 4.0], index=months)
    found = release.estimate(longer, "2023-03")
    assert found.gaps.to_numpy() == pytest.approx(release.estimate(paths[0], "2023-03").gaps.to_numpy())
    assert any("2021-11" in note or "left out" in note for note in found.notes), found.notes


def test_holes_before_the_intervention_are_named(paths: Array, release: Release) -> None:
    series = pd.Series(paths[0], index=pd.period_range("2022-01", periods=T, freq="M")).drop(["2022-03", "2022-07"])
    with pytest.raises(ReleaseError, match=r"2022-03.*2022-07"):
        release.estimate(series, "2023-03")


def test_several_units_in_one_table_are_sent_to_a_study(paths: Array, release: Release) -> None:
    names = pd.period_range("2022-01", periods=T, freq="M").strftime("%Y-%m")
    table = pd.DataFrame({"county": ["Kent"] * T + ["Sussex"] * T, "month": [*names] * 2, "cost": paths[:2].ravel()})
    with pytest.raises(ReleaseError, match=r"'county'.*study"):
        release.estimate(table, "2023-03")


def test_swapped_arguments_are_recognised(paths: Array, release: Release) -> None:
    with pytest.raises(ReleaseError, match="other way round"):
        release.estimate("2023-03", paths[0])  # type: ignore[arg-type]
    for targets in ({"a": paths[0], "b": paths[1]}, pd.DataFrame(paths[:2].T, columns=["a", "b"])):
        with pytest.raises(ReleaseError, match="other way round"):
            release.study({"a": "2023-03", "b": "2023-04"}, targets)  # type: ignore[dict-item, arg-type]


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (1000.0, "about 1,000 times what the donors' outcome suggests: is it in other units, such as single units"),
        (100.0, "about 100 times what the donors' outcome suggests: is it in other units, such as cents instead of"),
        (
            0.01,
            "about 1/100 of what the donors' outcome suggests: is it in other units, such as euros instead of cents?",
        ),
        (1e-6, "about 1/1,000,000 of what"),
    ],
)
def test_other_units_are_asked_about_by_their_factor(paths: Array, release: Release, factor: float, said: str) -> None:
    result = release.estimate(factor * paths[0], "2023-03")
    assert result.verdict is not None
    assert (result.verdict.grade, result.verdict.check_first) == ("unclear", True)
    assert result.notes == (result.verdict.reason,)
    assert said in result.verdict.reason
    assert result.verdict.comes_first
    assert result.verdict.reason.startswith("the target is about")
    reference = pd.Series(50.0, index=pd.period_range("2022-01", periods=T, freq="M"))
    make = GramRelease(epsilon=1.0, delta=1e-6, scale=4.0, seed=0, reference=reference)
    beside = make.release(pd.DataFrame(paths[1:], columns=reference.index))
    (note,) = beside.estimate(factor * paths[0], "2023-03").notes
    assert said in note
    assert beside.estimate(paths[0], "2023-03").notes == ()


def test_a_typical_level_is_a_second_witness_of_units_and_never_an_excuse(paths: Array) -> None:
    donors = pd.DataFrame(paths[1:])
    make = GramRelease(epsilon=1.0, delta=1e-6, seed=0)
    seen = replace(make, like=paths[0]).release(donors)
    assert seen.scale.level == pytest.approx(np.abs(paths[0]).mean(), rel=0.05)
    blind = replace(seen, scale=replace(seen.scale, level=0.0))
    wrong = replace(seen, scale=replace(seen.scale, level=100 * seen.scale.level))  # like, too, was in cents
    for release in (seen, blind, wrong):
        assert release.estimate(100 * paths[0], 10).notes
        assert loads(dumps(release), Release).scale == release.scale
    assert replace(make, scale=4.0).release(donors).scale.level == 0
    short = [release.estimate(paths[0][:6] / 100, 3).verdict for release in (blind, seen)]
    assert [each.check_first for each in short if each is not None] == [False, True]


def test_the_evidence_does_not_depend_on_the_unit_of_measurement_of_both(paths: Array) -> None:
    found = []
    for unit in (1.0, 100.0):
        release = GramRelease(epsilon=1.0, delta=1e-6, scale=4.0 * unit, seed=0).release(unit * paths[1:])
        found.append(float(release.estimate(unit * paths[0], 12).parameters["log_bayes_factor"]))
    assert found[0] == pytest.approx(found[1], rel=1e-2)


def test_a_target_known_to_average_many_has_shorter_intervals(paths: Array, release: Release) -> None:
    y = paths[:200].mean(axis=0)
    without, known = release.estimate(y, "2023-03"), release.estimate(y, "2023-03", averages=200)
    assert known.detectable() < without.detectable() * 1.1
    assert release.estimate(y, "2023-03", averages=1).detectable() > known.detectable()
    study = release.study({"a": y, "b": paths[0]}, "2023-03", averages={"a": 200})
    assert study.results["a"].detectable() == known.detectable()
    assert study.results["b"].detectable() == release.estimate(paths[0], "2023-03").detectable()
    all_of_them = release.study({"a": y}, "2023-03", averages=200)
    assert all_of_them.results["a"].detectable() == known.detectable()
    with pytest.raises(ParameterError, match="averages"):
        release.estimate(y, "2023-03", averages=0)
    with pytest.raises(ReleaseError, match="'c', which is not a target"):
        release.study({"a": y}, "2023-03", averages={"c": 2})
