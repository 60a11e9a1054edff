from __future__ import annotations

import datetime
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, Guarantee, Release, ReleaseError
from dpsc.gram import release_file
from dpsc.gram.release_file import dumps
from tests.making import SECRET, make_panel, told

MAKE = GramRelease(epsilon=1.0, delta=1e-6, smoothness="mild", reference=np.linspace(0, 0.3, 11))


def loads(text: str) -> Release:
    return release_file.loads(text, Release)


@pytest.fixture
def release() -> Release:
    return MAKE.release(make_panel(n=40), provenance="hospital A, 2026 – patients’ “wages”")


def same(one: Release, other: Release) -> bool:
    plain = ("n", "outcome", "kernel", "grid_bits", "diagonal_scale", "off_diagonal_scale", "guarantee",
             "no_guarantee", "sites", "provenance", "periods_from")  # fmt: skip
    assert one.reference is not None
    assert other.reference is not None
    return (
        all(getattr(one, name) == getattr(other, name) for name in plain)
        and np.array_equal(one.matrix, other.matrix)
        and np.array_equal(one.reference, other.reference)
        and one.times.equals(other.times)
    )


def test_a_file_gives_back_the_same_release(release: Release, tmp_path: Path) -> None:
    path = tmp_path / "donors.dpsc.json"
    release.save(path)
    assert same(Release.load(path), release)
    assert os.listdir(tmp_path) == ["donors.dpsc.json"]
    assert same(pickle.loads(pickle.dumps(release)), release)


@pytest.mark.parametrize(
    "times",
    [
        [5, 7, 9],
        [0.5, 1.0, 1.5],
        ["t1", "t2", "t10"],
        [datetime.date(2020, 1, d) for d in (1, 8, 15)],
        list(pd.date_range("2020-01-31", periods=3, freq="ME")),
        list(pd.date_range("2020-01-01", periods=3, freq="h", tz="Europe/Berlin")),
        list(pd.period_range("2020Q1", periods=3, freq="Q")),
    ],
)
def test_periods_of_every_kind_survive(times: list[object]) -> None:
    frame = pd.DataFrame(np.ones((4, 3)), columns=pd.Index(times))
    release = GramRelease(epsilon=1.0, delta=1e-6).release(frame)
    restored = loads(dumps(release))
    assert restored.times.equals(release.times)
    assert type(restored.times) is type(release.times)


def test_a_release_holds_no_label_and_nothing_raw(tmp_path: Path) -> None:
    frame = pd.DataFrame(np.full((30, 4), SECRET), index=[f"patient {i}" for i in range(30)])
    text = dumps(GramRelease(epsilon=1.0, delta=1e-6).release(frame))
    assert "patient" not in text
    assert not told(text)
    assert set(json.loads(text)) == {
        "format", "version", "made_by", "outcome", "n", "sites", "periods", "kernel", "reference", "grid_bits", "noise",
        "guarantee", "no_guarantee", "provenance", "periods_from", "matrix", "checksum",
    }  # fmt: skip


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_file_is_refused(release: Release, tmp_path: Path, share: float) -> None:
    path = tmp_path / "cut.json"
    text = dumps(release)
    path.write_text(text[: int(len(text) * share)], encoding="utf-8")
    with pytest.raises(ReleaseError, match=r"cut\.json.*(truncated|not a dpsc release)"):
        Release.load(path)


def edited(release: Release, **changes: object) -> str:
    """The file with fields changed and a checksum that fits: what an editor who knows the format could write."""
    from dpsc.gram.release_file import _checksum

    body = json.loads(dumps(release)) | changes
    del body["checksum"]
    return json.dumps(body | {"checksum": _checksum(body)})


def test_an_edited_file_is_refused(release: Release) -> None:
    body = json.loads(dumps(release))
    for name, value in (("n", 41), ("provenance", "other"), ("matrix", [0] * 66), ("guarantee", None)):
        with pytest.raises(ReleaseError, match="checksum"):
            loads(json.dumps(body | {name: value}))


def test_a_newer_version_is_refused_with_advice(release: Release) -> None:
    with pytest.raises(ReleaseError, match="upgrade"):
        loads(edited(release, version=2))


@pytest.mark.parametrize(
    "changes",
    [
        {"n": 0}, {"n": "40"}, {"n": True}, {"sites": 0}, {"grid_bits": 99}, {"matrix": [1, 2]}, {"matrix": [0.5] * 66},
        {"matrix": [2**70] * 66}, {"matrix": None}, {"noise": {}}, {"noise": {"diagonal": -1, "off_diagonal": 1}},
        {"noise": {"diagonal": 1e999, "off_diagonal": 1}}, {"kernel": {"phi": 2, "nu": 0.1}}, {"kernel": 3},
        {"reference": [1.0]}, {"reference": [None] * 11}, {"periods": {}}, {"outcome": 3}, {"periods": None},
        {"periods": {"kind": "integer", "name": None, "values": [1] * 11}}, {"guarantee": {"epsilon": -1}},
        {"guarantee": {"epsilon": 0.01, "delta": 0.0}}, {"version": "1"}, {"format": "other"}, {"provenance": None},
    ],
)  # fmt: skip
def test_what_breaks_the_schema_is_refused_even_with_a_fitting_checksum(
    release: Release, changes: dict[str, object]
) -> None:
    with pytest.raises(ReleaseError):
        loads(edited(release, **changes))


@pytest.mark.parametrize("text", ["", "null", "[]", "3", '"x"', "{}", '{"format": "dpsc-release"}', "[" * 10**5])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ReleaseError):
        loads(text)


def test_files_that_cannot_be_read_or_written_are_named(release: Release, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="nowhere"):
        Release.load(tmp_path / "nowhere.json")
    with pytest.raises(ReleaseError, match="missing"):
        release.save(tmp_path / "missing" / "r.json")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReleaseError, match="not text"):
        Release.load(tmp_path / "binary")


def test_a_noisy_matrix_need_not_be_positive_definite() -> None:
    release = GramRelease(epsilon=0.01, delta=1e-6).release(make_panel(n=20))
    assert np.linalg.eigvalsh(release.noisy_moments).min() < 0
    restored = loads(dumps(release))
    assert np.isfinite(restored.estimate(np.ones(11), 8).counterfactual).all()


def test_sites_add_up(release: Release) -> None:
    other = MAKE.release(make_panel(n=60, seed=1), provenance="hospital B")
    merged = Release.merge([release, other])
    np.testing.assert_array_equal(merged.matrix, release.matrix + other.matrix)
    assert (merged.n, merged.sites) == (100, 2)
    assert merged.diagonal_scale == pytest.approx(np.sqrt(2) * release.diagonal_scale)
    assert merged.provenance.endswith("hospital B")
    assert merged.guarantee is not None
    assert release.guarantee is not None
    assert (merged.guarantee.epsilon, merged.guarantee.delta) == (release.guarantee.epsilon, release.guarantee.delta)
    assert "per donor" in merged.guarantee.basis
    assert same(loads(dumps(merged)), merged)
    assert Release.merge([merged, MAKE.release(make_panel(n=5))]).sites == 3


def test_a_merged_guarantee_is_the_weakest_of_the_sites() -> None:
    panel = make_panel(n=40)
    strong, weak = (GramRelease(epsilon=e, delta=d).release(panel) for e, d in ((0.5, 1e-9), (2.0, 1e-6)))
    merged = Release.merge([strong, weak]).guarantee
    assert merged is not None
    assert merged.epsilon == pytest.approx(2.0)
    assert merged.delta == 1e-6
    assert weak.guarantee is not None
    assert merged.loss == weak.guarantee.loss


def test_one_seeded_site_takes_the_guarantee_from_the_sum(release: Release) -> None:
    seeded = GramRelease(epsilon=1.0, delta=1e-6, smoothness="mild", reference=MAKE.reference, seed=1)
    merged = Release.merge([release, seeded.release(make_panel(n=40))])
    assert merged.guarantee is None
    assert "not private" in merged.no_guarantee


@pytest.mark.parametrize(
    ("changes", "name"),
    [({"smoothness": "high"}, "kernel"), ({"grid_bits": 12}, "grid_bits"), ({"reference": None}, "reference")],
)
def test_releases_made_differently_do_not_merge(release: Release, changes: dict[str, object], name: str) -> None:
    options = {"epsilon": 1.0, "delta": 1e-6, "smoothness": "mild", "reference": MAKE.reference} | changes
    other = GramRelease(**options).release(make_panel(n=40))  # type: ignore[arg-type]
    with pytest.raises(ReleaseError, match=name):
        Release.merge([release, other])


def test_releases_of_other_periods_do_not_merge(release: Release) -> None:
    times = range(100, 111)
    panel = make_panel(n=40)
    frame = pd.DataFrame(panel.donors, columns=times)
    with pytest.raises(ReleaseError, match="periods"):
        Release.merge([release, MAKE.release(frame)])
    for nonsense in ([], [release, None], ["a.json", "b.json"], 3):
        with pytest.raises(ReleaseError, match="list of at least one Release"):
            Release.merge(nonsense)  # type: ignore[arg-type]


def test_the_same_release_is_not_counted_twice(release: Release) -> None:
    other = MAKE.release(make_panel(n=40))
    with pytest.raises(ReleaseError, match="twice"):
        Release.merge([release, other, loads(dumps(release))])


def test_a_stored_guarantee_cannot_promise_less_than_it_costs(release: Release) -> None:
    assert release.guarantee is not None
    body = json.loads(dumps(release))["guarantee"] | {"epsilon": 0.1}
    with pytest.raises(ReleaseError, match="promise too much"):
        loads(edited(release, guarantee=body))
    assert isinstance(loads(edited(release)).guarantee, Guarantee)
