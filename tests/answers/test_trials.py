from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kstest

import dpsc
from dpsc import GramRelease, ParameterError, Release, SyntheticControl
from dpsc.types import Array
from tests.making import make_panel
from tests.soak import quick_or_long

T0, T = 20, 26


def units(count: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    return np.asarray(100 + 2 * np.cumsum(rng.normal(size=T)) + np.cumsum(rng.normal(size=(count, T)), axis=1))


def released(donors: Array, seed: int = 0) -> Release:
    return GramRelease(epsilon=1.0, delta=1e-6, scale=4.0, seed=seed).release(donors)


@pytest.fixture(scope="module")
def paths() -> Array:
    return units(301, 5)


@pytest.fixture(scope="module")
def release(paths: Array) -> Release:
    return released(paths[1:])


def test_effects_are_what_people_state(paths: Array, release: Release) -> None:
    result = release.estimate(paths[0] + 10 * (np.arange(T) >= T0), T0)
    frame, gaps = result.effects(), result.gaps
    assert list(frame.index) == ["average", "total", *(str(t) for t in range(T0, T))]
    assert frame["effect"]["average"] == pytest.approx(gaps.mean()) == pytest.approx(result.att)
    assert frame["effect"]["total"] == pytest.approx(gaps.sum())
    assert (frame["lower"]["average"], frame["upper"]["average"]) == pytest.approx(result.att_interval())
    assert frame["lower"]["total"] == pytest.approx((T - T0) * frame["lower"]["average"])
    assert frame["percent"]["average"] == pytest.approx(100 * gaps.mean() / result.counterfactual.mean())
    assert result.cumulative()["effect"].iloc[-1] == pytest.approx(frame["effect"]["total"])
    assert result.cumulative()["lower"].iloc[-1] == pytest.approx(frame["lower"]["total"])
    table = result.to_frame()
    assert table["gap_lower"].iloc[0] == pytest.approx(frame["lower"].iloc[2])
    assert table["counterfactual_upper"].iloc[0] == pytest.approx(
        table["observed"].iloc[0] - table["gap_lower"].iloc[0]
    )


def test_the_time_before_is_a_table_too(paths: Array, release: Release) -> None:
    result = release.estimate(paths[0], T0)
    table = result.before_frame()
    assert list(table.index) == list(range(T0))
    np.testing.assert_allclose(table["observed"] - table["fit"], table["gap"])
    inside = (table["fit_lower"] <= table["observed"]) & (table["observed"] <= table["fit_upper"])
    assert inside.mean() > 0.8
    assert SyntheticControl().fit(make_panel(T0=8, h=3)).before_frame().columns.tolist() == ["observed", "fit", "gap"]


def test_the_p_value_is_where_the_interval_ends(paths: Array, release: Release) -> None:
    """An interval of level 1 - p just holds zero."""
    result = release.estimate(paths[0] + 4 * (np.arange(T) >= T0), T0)
    p = result.p_value
    assert 0 < p < 1
    low, high = result.att_interval(1 - p)
    assert min(abs(low), abs(high)) == pytest.approx(0, abs=1e-6)


def test_a_percentage_follows_the_ends_of_the_counterfactual(paths: Array, release: Release) -> None:
    result = release.estimate(paths[0], T0)
    first = result.effects().iloc[2]
    band = result.interval().iloc[0]
    assert first["percent_lower"] == pytest.approx(100 * (paths[0][T0] / band["upper"] - 1))
    assert first["percent_upper"] == pytest.approx(100 * (paths[0][T0] / band["lower"] - 1))


def test_percentages_are_refused_where_the_counterfactual_may_be_zero(paths: Array, release: Release) -> None:
    result = release.estimate(paths[0] - paths[0].mean(), T0)
    assert np.isnan(result.average.percent)
    assert "may be zero" in result.no_percent
    assert release.estimate(paths[0], T0).no_percent == ""


def test_p_values_are_uniform_if_there_is_no_effect() -> None:
    """Targets, donors and noise are drawn from the law that the estimator believes in: walks around a common one."""
    p = []
    for seed in range(quick_or_long(60, 400)):
        drawn = units(1001, 1000 + seed)
        p.append(
            GramRelease(epsilon=8.0, delta=1e-6, scale=4.0, seed=seed).release(drawn[1:]).estimate(drawn[0], T0).p_value
        )
    values = np.array(p)
    assert (values < 0.05).mean() <= 0.12
    assert kstest(values, "uniform").pvalue > 0.01
    for wrong in (np.clip(values - 0.25, 0, 1), np.clip(values + 0.25, 0, 1)):  # a test that could fail
        assert kstest(wrong, "uniform").pvalue < 0.01


def test_an_effect_of_the_detectable_size_is_seen_as_often_as_promised() -> None:
    seen = []
    for seed in range(quick_or_long(60, 400)):
        drawn = units(401, 2000 + seed)
        release = released(drawn[1:], seed)
        size = release.estimate(drawn[0][:T0], T0).detectable(level=0.05, power=0.8)
        seen.append(release.estimate(drawn[0] + size * (np.arange(T) >= T0), T0).p_value < 0.05)
    assert 0.65 < np.mean(seen) <= 1.0
    result = release.estimate(drawn[0], T0)
    assert result.detectable(power=0.5) < result.detectable(power=0.8) < result.detectable(level=0.01)


def test_placebos_in_time_try_every_date(paths: Array, release: Release) -> None:
    result = release.estimate(paths[0] + 30 * (np.arange(T) >= T0), T0)
    placebos = result.placebos()
    assert list(placebos.table.index) == [str(t) for t in range(2, T0)]
    assert placebos.table["periods"].tolist() == [min(T - T0, T0 - t) for t in range(2, T0)]
    alone = result.repeats.placebo(18)
    assert placebos.table.loc["18", "effect"] == pytest.approx(alone.att)
    assert placebos.share == 0  # a large effect
    assert release.estimate(paths[0] + 0.1 * (np.arange(T) >= T0), T0).placebos().share > 0.1


def test_placebos_in_space_are_drawn_from_the_release_alone(paths: Array, release: Release) -> None:
    result = release.estimate(paths[0] + 30 * (np.arange(T) >= T0), T0)
    placebos = result.placebos("space", units=40)
    assert len(placebos.table) == 40
    assert placebos.share == 0
    assert placebos.table.equals(result.placebos("space", units=40).table)
    assert not placebos.table.equals(result.placebos("space", units=40, seed=1).table)
    inside = (placebos.table["lower"] <= 0) & (placebos.table["upper"] >= 0)
    assert inside.mean() > 0.8


def test_other_choices_are_one_table(paths: Array, release: Release) -> None:
    result = release.estimate(paths[0] + 10 * (np.arange(T) >= T0), T0)
    table = result.sensitivity().table.set_index("choice")
    assert table.loc["as it is", "effect"] == pytest.approx(result.att)
    dated, earlier = table.loc["dated 2 earlier"], release.estimate(result.target, T0 - 2)
    assert (dated["treatment_time"], dated["before"]) == (str(T0 - 2), T0 - 2)
    assert dated["effect"] == pytest.approx(earlier.gaps.iloc[2:].mean())
    assert dated["ahead"] == pytest.approx(earlier.gaps.iloc[:2].mean())
    assert dated["effect"] == pytest.approx(release.estimate(result.target, T0).repeats.again(left_out=2).att)
    later = table.loc["from 10 on"]
    assert later["before"] == T0 - 10
    assert later["effect"] != result.att
    assert result.sensitivity().dates == [str(t) for t in (20, 19, 18, 17, 16)]


def test_only_a_release_is_asked_again_for_free() -> None:
    result = SyntheticControl().fit(make_panel(T0=8, h=3))
    for ask in (lambda: result.placebos("space"), result.sensitivity):
        with pytest.raises(ParameterError, match="free only from a Gram release"):
            ask()
    assert np.isnan(result.p_value)
    assert np.isnan(result.detectable())


def test_names_of_0_2_0_stay_for_a_version_and_name_what_replaces_them(
    paths: Array, release: Release, tmp_path: Path
) -> None:
    result = release.estimate(paths[0], T0)
    with pytest.warns(DeprecationWarning, match=r"write result\.placebos\(\), which tries every date\.$") as warned:
        assert result.placebo_in_time(18).att == result.repeats.placebo(18).att
    assert warned[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=r'write result\.placebos\("space", units=units\)'):
        assert result.placebos_in_space(5).table.equals(result.placebos("space", units=5).table)
    with pytest.warns(DeprecationWarning, match=r"write release\.study\(targets, date\)\.results"):
        assert release.estimate_many({"one": paths[0]}, T0)["one"].att == result.att
    panel = make_panel(T0=8, h=3)
    with pytest.warns(DeprecationWarning, match=r"write answer\.report\(path\)"):
        assert dpsc.report(SyntheticControl().fit(panel), tmp_path / "page.html").is_file()
    with pytest.raises(ParameterError, match="kind must be 'time' or 'space', not 'both'"):
        result.placebos("both")  # type: ignore[arg-type]
