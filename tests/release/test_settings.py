from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, ParameterError, Release, ReleaseError
from dpsc.release import settings
from dpsc.release.kernel import Kernel
from dpsc.release.rowmap import whitened_size
from dpsc.release.settings import Settings, scale_like

T = 12
MONTHS = pd.period_range("2023-01", periods=T, freq="M")
AGREED = Settings(
    scale=2.5,
    directions=8,
    smoothness="mild",
    periods=MONTHS,
    reference=np.linspace(0, 1, T),
    outcome="wages",
    grid_bits=16,
    missing="kernel",
    epsilon=1.0,
    delta=1e-6,
)


def donors(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(np.cumsum(rng.normal(size=(n, T)), axis=1), columns=MONTHS)


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    AGREED.save(tmp_path / "settings.json")
    read = settings.load(tmp_path / "settings.json")
    assert ([] if read.periods is None else list(read.periods)) == list(MONTHS)
    np.testing.assert_array_equal(read.reference, AGREED.reference)
    for name in ("scale", "directions", "smoothness", "outcome", "grid_bits", "missing", "epsilon", "delta"):
        assert getattr(read, name) == getattr(AGREED, name)
    small = Settings(scale=1.0, directions=3)
    assert settings.loads(small.dumps()).dumps() == small.dumps()


def test_releases_of_sites_of_different_size_add_up_if_made_from_the_same_settings(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    AGREED.save(path)
    small, large = GramRelease.from_settings(path), GramRelease.from_settings(path, epsilon=2.0, delta=1e-7)
    assert (small.epsilon, small.delta, large.epsilon, large.delta) == (1.0, 1e-6, 2.0, 1e-7)
    merged = Release.merge([small.release(donors(60, 0)), large.release(donors(900, 1))], disjoint=True)
    assert (merged.n, merged.row_map.directions, merged.scale.share) == (960, 8, 0.0)


def test_sites_of_any_size_and_budget_have_the_constant_that_all_donors_together_deserve() -> None:
    few, many = (settings.agreed(n, T, 1.0, 1e-6, sites=2, scale=2.5) for n in (500, 60_000))
    assert few.constant == 0.7 < many.constant < 2.5
    made = [
        GramRelease.from_settings(many, epsilon=epsilon).release(donors(n, k))
        for k, (epsilon, n) in enumerate([(1.0, 60), (8.0, 900)])
    ]
    assert len({each.row_map.constant for each in made}) == 1
    assert made[0].row_map.constant == pytest.approx(many.constant * made[0].scale.value, rel=1e-5)
    assert Release.merge(made, disjoint=True).n == 960


def test_settings_of_version_1_have_the_constant_of_their_time() -> None:
    body = {name: value for name, value in json.loads(AGREED.dumps()).items() if name != "constant"}
    old = settings.loads(json.dumps(body | {"version": 1}))
    assert old.constant == 0.7
    one = GramRelease.from_settings(old).release(donors(60, 0))
    by_hand = GramRelease(epsilon=1.0, delta=1e-6, scale=2.5, directions=8, smoothness="mild", grid_bits=16,
                          reference=AGREED.reference_path)  # fmt: skip
    assert one.row_map.same_as(by_hand.release(donors(70, 1)).row_map)  # as sites of 0.2.0 made theirs


@pytest.mark.parametrize(
    "change",
    [{"scale": 3.0}, {"directions": 7}, {"constant": 1.0}, {"smoothness": "high"}, {"grid_bits": 15}],
)
def test_releases_of_different_settings_are_refused_with_advice_to_agree(change: dict[str, Any]) -> None:
    agreed = Settings(scale=2.5, directions=8, smoothness="mild", grid_bits=16, epsilon=1.0, delta=1e-6)
    one, other = agreed, replace(agreed, **change)
    releases = [GramRelease.from_settings(each).release(donors(80, k)) for k, each in enumerate((one, other))]
    with pytest.raises(ReleaseError, match="settings"):
        Release.merge(releases, disjoint=True)


def test_the_reference_of_the_settings_is_for_their_periods() -> None:
    shifted = donors(50, 0).set_axis(MONTHS + 1, axis=1)
    with pytest.raises(ParameterError, match="reference"):
        GramRelease.from_settings(AGREED).release(shifted)


def test_a_budget_is_needed_and_a_given_one_comes_first() -> None:
    without = Settings(scale=1.0, directions=3)
    with pytest.raises(ParameterError, match="epsilon"):
        GramRelease.from_settings(without, delta=1e-6)
    with pytest.raises(ParameterError, match="delta"):
        GramRelease.from_settings(without, epsilon=1.0)
    with pytest.raises(ParameterError, match="epsilon"):
        GramRelease.from_settings(AGREED, epsilon=0)
    assert GramRelease.from_settings(AGREED, epsilon=0.5).epsilon == 0.5


@pytest.mark.parametrize("factor", [1e-9, 1.0, 1e9])
def test_the_scale_from_a_series_is_what_a_release_would_guess(factor: float) -> None:
    """A series that moves like the kernel, with a variance of 1, deviates by about 1; donors by about 2^0.6 of it."""
    kernel, rng = Kernel.named("high"), np.random.default_rng(0)
    found = [scale_like(factor * kernel.root(200) @ rng.normal(size=200), 200, "high") for _ in range(20)]
    unit = np.sqrt(199) / whitened_size(1.0, 200, kernel)
    assert np.median(found) == pytest.approx(2**0.6 * factor * unit, rel=0.05)


def test_a_series_that_does_not_move_gives_no_scale() -> None:
    with pytest.raises(ParameterError, match="scale"):
        scale_like(np.full(10, 3.0), 20, "high")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "dpsc-release"}, "not a dpsc settings file"),
        ({"version": 3}, "upgrade"),
        ({"version": None}, "no version"),
        ({"scael": 2.0}, "Did you mean 'scale'"),
        ({"scale": None}, "scale"),
        ({"scale": -1}, "scale"),
        ({"scale": 1e300}, "scale"),
        ({"scale": "2"}, "scale"),
        ({"scale": True}, "scale"),
        ({"directions": None}, "directions"),
        ({"constant": 0}, "constant"),
        ({"constant": "1"}, "constant"),
        ({"constant": 1e9}, "constant"),
        ({"directions": 12}, "directions"),
        ({"directions": 2.5}, "directions"),
        ({"grid_bits": 30}, "grid_bits"),
        ({"smoothness": "very"}, "smoothness"),
        ({"missing": "guess"}, "missing"),
        ({"missing": ["kernel"]}, "missing"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1.5}, "delta"),
        ({"outcome": "a\x1b[2J"}, "printable"),
        ({"outcome": 3}, "printable"),
        ({"reference": [1.0, 2.0]}, "reference"),
        ({"reference": ["1"] * T}, "reference"),
        ({"reference": [1e200] * T}, "reference"),
        ({"periods": {"kind": "integer", "name": None, "values": list(range(T, 0, -1))}}, "order"),
        ({"periods": {"kind": "integer", "name": None, "values": list(range(3000))}}, "periods"),
        ({"periods": [1, 2, 3]}, "schema"),
    ],
)
def test_a_file_that_is_not_settings_is_refused_with_a_reason(change: dict[str, Any], message: str) -> None:
    body = json.loads(AGREED.dumps()) | change
    with pytest.raises(ReleaseError, match=message):
        settings.loads(json.dumps(body))


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"format": "dpsc-settings", "version": 1, "scale": NaN}', "[" * 10_000]
)
def test_what_is_no_json_of_settings_is_refused(text: str) -> None:
    with pytest.raises(ReleaseError):
        settings.loads(text)


def test_settings_say_each_name_once_and_few_of_them() -> None:
    text = AGREED.dumps()
    with pytest.raises(ReleaseError, match="the settings say 'scale' twice"):
        settings.loads(text.replace('"scale"', '"scale": 3.0, "scale"', 1))
    with pytest.raises(ReleaseError, match="the settings say 'kind' twice"):
        settings.loads(text.replace('"kind"', '"kind": "text", "kind"', 1))
    many = json.dumps(json.loads(text) | {f"k{k}": 1 for k in range(50_000)})
    with pytest.raises(ReleaseError, match="more than 100 names"):
        settings.loads(many)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="nowhere"):
        settings.load(tmp_path / "nowhere.json")
    (tmp_path / "large.json").write_text(" " * (2**20 + 1))
    with pytest.raises(ReleaseError, match="too large"):
        settings.load(tmp_path / "large.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReleaseError, match="not text"):
        settings.load(tmp_path / "bytes.json")


def test_more_sites_fill_fewer_directions_and_the_scale_is_given_or_like_a_series() -> None:
    one, many = (settings.agreed(100, 40, 1.0, 1e-6, sites=s, scale=3.0) for s in (1, 9))
    assert one.directions == 13
    assert many.directions == round(13 / 3)
    assert settings.agreed(100, T, 1.0, 1e-6, like=np.arange(T)).scale == scale_like(np.arange(T), T, "high")
    with pytest.raises(ParameterError, match="scale or like"):
        settings.agreed(100, T, 1.0, 1e-6)
    with pytest.raises(ParameterError, match="scale or like"):
        settings.agreed(100, T, 1.0, 1e-6, scale=1.0, like=np.arange(T))
