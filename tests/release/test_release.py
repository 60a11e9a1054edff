from __future__ import annotations

import datetime
import json
import math
import os
import pickle
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import Donors, GramRelease, Guarantee, ParameterError, Release, ReleaseError
from dpsc.checks import is_printable
from dpsc.errors import DpscWarning
from dpsc.privacy.rounded_gaussian import discrete_gaussian_slack
from dpsc.release import file_format
from dpsc.release import file_format as period_labels
from dpsc.release.file_format import dumps
from dpsc.release.rowmap import whitened_size
from dpsc.release.scale import NO_SCALE
from tests.making import SECRET, make_panel, told

MAKE = GramRelease(
    epsilon=1.0, delta=1e-6, smoothness="mild", reference=np.linspace(0, 0.3, 11), scale=0.3, directions=10
)
SIMPLE = GramRelease(epsilon=1.0, delta=1e-6, scale=1.0)
COUNTING = GramRelease(epsilon=1.0, delta=1e-6)


def loads(text: str) -> Release:
    return file_format.loads(text, Release)


@pytest.fixture
def release() -> Release:
    return MAKE.release(make_panel(n=40), provenance="hospital A, 2026 – patients’ “wages”", dataset=None)


@pytest.fixture(scope="module")
def counted() -> Release:
    """A release that spent a share of its budget on the scale."""
    return COUNTING.release(np.random.default_rng(0).normal(size=(400, 11)).cumsum(axis=1), dataset=None)


def same(one: Release, other: Release) -> bool:
    plain = ("n", "outcome", "scale", "diagonal_scale", "off_diagonal_scale", "guarantee",
             "no_guarantee", "sites", "provenance", "periods_from", "identities", "datasets")  # fmt: skip
    return (
        all(getattr(one, name) == getattr(other, name) for name in plain)
        and np.array_equal(one.matrix, other.matrix)
        and one.row_map.same_as(other.row_map)
        and one.times.equals(other.times)
    )


def test_a_file_gives_back_the_same_release(release: Release, counted: Release, tmp_path: Path) -> None:
    path = tmp_path / "donors.dpsc.json"
    few = replace(MAKE, directions=3).release(make_panel(n=40), dataset=None)
    for made in (release, few, counted):
        made.save(path)
        assert same(Release.load(path), made)
        assert os.listdir(tmp_path) == ["donors.dpsc.json"]
        assert same(pickle.loads(pickle.dumps(made)), made)
    assert json.loads(dumps(few))["version"] == 2
    assert len(json.loads(dumps(few))["matrix"]) == 10
    assert counted.scale.source == "counted"


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
    release = SIMPLE.release(frame)
    restored = loads(dumps(release))
    assert restored.times.equals(release.times)
    assert type(restored.times) is type(release.times)


def test_a_release_holds_no_label_and_nothing_raw(tmp_path: Path) -> None:
    frame = pd.DataFrame(np.full((30, 4), SECRET), index=[f"patient {i}" for i in range(30)])
    text = dumps(SIMPLE.release(frame))
    assert "patient" not in text
    assert not told(text)
    assert set(json.loads(text)) == {
        "format", "version", "made_by", "outcome", "n", "sites", "periods", "kernel", "reference", "directions",
        "constant", "scale", "grid_bits", "noise", "guarantee", "no_guarantee", "provenance", "periods_from",
        "identities", "datasets", "made_on", "matrix", "checksum",
    }  # fmt: skip


@pytest.mark.parametrize("scale", [2e-60, 1e-10, 1e60])
@pytest.mark.parametrize("T", [2, 40])
def test_a_release_of_any_scale_that_may_be_given_loads_and_answers(scale: float, T: int) -> None:
    rows = scale * np.random.default_rng(0).normal(size=(200, T))
    made = loads(dumps(replace(SIMPLE, scale=scale).release(rows)))
    if T > 2:
        assert np.isfinite(made.estimate(rows[0], T - 3).interval()).all().all()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_file_is_refused(release: Release, tmp_path: Path, share: float) -> None:
    path = tmp_path / "cut.json"
    text = dumps(release)
    path.write_text(text[: int(len(text) * share)], encoding="utf-8")
    with pytest.raises(ReleaseError, match=r"cut\.json.*(truncated|not a dpsc release)"):
        Release.load(path)


def edited(release: Release, **changes: object) -> str:
    """The file with fields changed and a checksum that fits: what an editor who knows the format could write."""
    return edited_text(dumps(release), **changes)


def edited_text(text: str, **changes: object) -> str:
    from dpsc.release.file_format import checksum_of

    body = json.loads(text) | changes
    del body["checksum"]
    return json.dumps(body | {"checksum": checksum_of(body)})


def test_an_edited_file_is_refused(release: Release) -> None:
    body = json.loads(dumps(release))
    for name, value in (("n", 41), ("provenance", "other"), ("matrix", [0] * 66), ("guarantee", None)):
        with pytest.raises(ReleaseError, match="checksum"):
            loads(json.dumps(body | {name: value}))


def test_a_newer_version_is_refused_with_advice(release: Release) -> None:
    with pytest.raises(ReleaseError, match="upgrade"):
        loads(edited(release, version=4))


@pytest.mark.parametrize(
    "changes",
    [
        {"n": 0}, {"n": "40"}, {"n": True}, {"sites": 0}, {"grid_bits": 99}, {"matrix": [1, 2]}, {"matrix": [0.5] * 66},
        {"matrix": [2**70] * 66}, {"matrix": None}, {"noise": {}}, {"noise": {"diagonal": -1, "off_diagonal": 1}},
        {"noise": {"diagonal": 1e999, "off_diagonal": 1}}, {"kernel": {"phi": 2, "nu": 0.1}}, {"kernel": 3},
        {"reference": [1.0]}, {"reference": [None] * 11}, {"periods": {}}, {"outcome": 3}, {"periods": None},
        {"periods": {"kind": "integer", "name": None, "values": [1] * 11}}, {"guarantee": {"epsilon": -1}},
        {"guarantee": {"epsilon": 0.01, "delta": 0.0}}, {"version": "1"}, {"format": "other"}, {"provenance": None},
        {"n": 2**63}, {"n": 2**26}, {"sites": 41}, {"noise": {"diagonal": 1e308, "off_diagonal": 1e308}},
        {"noise": {"diagonal": "1", "off_diagonal": "1"}}, {"noise": {"diagonal": math.nan, "off_diagonal": 1}},
        {"kernel": {"phi": 0.999999, "nu": 1e-300}}, {"kernel": {"phi": 0.5, "nu": 0.5}}, {"reference": [1e101] * 11},
        {"reference": ["1"] * 11}, {"reference": [True] * 11}, {"reference": 1.0}, {"no_guarantee": "but a guarantee"},
        {"guarantee": None}, {"guarantee": None, "no_guarantee": ""}, {"identities": []}, {"identities": ["abc"]},
        {"identities": ["0" * 32] * 2}, {"identities": ["0" * 32, "1" * 32]}, {"identities": "0" * 32},
        {"datasets": ["a", "b"]}, {"datasets": [3]}, {"datasets": ["\x1b[2J"]}, {"directions": 9}, {"directions": 11},
        {"directions": 0}, {"directions": -10}, {"directions": True}, {"directions": 10.0}, {"directions": "10"},
        {"directions": None}, {"directions": None, "constant": 0.0}, {"directions": 9, "matrix": [0] * 66},
        {"directions": None, "constant": 0.0, "scale": asdict(NO_SCALE), "matrix": [0] * 55},
        {"constant": 0.0}, {"constant": 0}, {"constant": -1.0}, {"constant": None}, {"constant": "1"},
        {"constant": 1e101}, {"constant": math.nan}, {"scale": None}, {"scale": 1.0}, {"scale": {}},
        {"scale": {"value": 1.0, "source": "none", "share": 0.0}},
        {"scale": {"value": 1.0, "source": "guessed", "share": 0.0}},
        {"scale": {"value": 1.0, "source": ["given"], "share": 0.0}},
        {"scale": {"value": 1.0, "source": "given", "share": 0.1}},
        {"scale": {"value": 1.0, "source": "counted", "share": 0.0}},
        {"scale": {"value": 1.0, "source": "counted", "share": -0.1}},
        {"scale": {"value": 1.0, "source": "like and counted", "share": 0.0}},
        {"scale": {"value": 1.0, "source": "given", "share": math.nan}},
        {"scale": {"value": 1e71, "source": "given", "share": 0.0}}, {"constant": 1e71}, {"constant": 1e-71},
        {"scale": {"value": 0.0, "source": "given", "share": 0.0}}, {"constant": 5e-324}, {"matrix": [-(2**62)] * 66},
        {"scale": {"value": -1.0, "source": "given", "share": 0.0}},
        {"scale": {"value": None, "source": "given", "share": 0.0}},
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


def test_a_release_that_does_not_say_who_pays_for_it_warns_when_it_is_saved(tmp_path: Path) -> None:
    path, panel = tmp_path / "donors.dpsc.json", make_panel(n=40)
    unsaid = MAKE.release(panel)
    each = {name: {"scale": 5.0} for name in ("x", "y")}
    both = GramRelease(epsilon=1.0, delta=1e-6).release({"x": panel.donors, "y": panel.donors}, each=each)
    for made in (unsaid, Release.merge([unsaid, MAKE.release(panel)], disjoint=True), both):
        with pytest.warns(DpscWarning, match=r'dataset="patients".*dataset=None.*ledger.spending'):
            made.save(path)
    for dataset in ("patients", None):  # warnings are errors here
        MAKE.release(panel, dataset=dataset).save(path)
        Release.load(path).save(path)


def test_files_that_cannot_be_read_or_written_are_named(release: Release, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="nowhere"):
        Release.load(tmp_path / "nowhere.json")
    with pytest.raises(ReleaseError, match="missing"):
        release.save(tmp_path / "missing" / "r.json")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReleaseError, match="not text"):
        Release.load(tmp_path / "binary")


def test_a_noisy_matrix_need_not_be_positive_definite() -> None:
    release = replace(SIMPLE, epsilon=0.01).release(make_panel(n=20))
    assert np.linalg.eigvalsh(release.noisy_moments).min() < 0
    restored = loads(dumps(release))
    assert np.isfinite(restored.estimate(np.ones(11), 8).counterfactual).all()


def test_sites_add_up(release: Release) -> None:
    other = MAKE.release(make_panel(n=60, seed=1), provenance="hospital B")
    merged = Release.merge([release, other], disjoint=True)
    np.testing.assert_array_equal(merged.matrix, release.matrix + other.matrix)
    assert (merged.n, merged.sites) == (100, 2)
    assert merged.diagonal_scale == pytest.approx(np.sqrt(2) * release.diagonal_scale)
    assert merged.provenance.endswith("hospital B")
    assert merged.guarantee is not None
    assert release.guarantee is not None
    assert (merged.guarantee.epsilon, merged.guarantee.delta) == (release.guarantee.epsilon, release.guarantee.delta)
    assert "per donor" in merged.guarantee.basis
    assert same(loads(dumps(merged)), merged)
    assert Release.merge([merged, MAKE.release(make_panel(n=5))], disjoint=True).sites == 3


def test_a_merged_guarantee_is_the_weakest_of_the_sites() -> None:
    panel = make_panel(n=40)
    strong, weak = (replace(MAKE, epsilon=e, delta=d).release(panel) for e, d in ((0.5, 1e-9), (2.0, 1e-6)))
    merged = Release.merge([strong, weak], disjoint=True).guarantee
    assert merged is not None
    assert merged.epsilon == pytest.approx(2.0)
    assert merged.delta == 1e-6
    assert weak.guarantee is not None
    assert merged.loss == weak.guarantee.loss


def test_one_seeded_site_takes_the_guarantee_from_the_sum(release: Release) -> None:
    seeded = replace(MAKE, seed=1)
    merged = Release.merge([release, seeded.release(make_panel(n=40))], disjoint=True)
    assert merged.guarantee is None
    assert "not private" in merged.no_guarantee


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"smoothness": "high"}, "kernel"),
        ({"grid_bits": 12}, "grid_bits"),
        ({"reference": None}, "reference"),
        ({"directions": 9}, "directions"),
        ({"scale": 0.31}, "constant"),
        ({"scale": None, "like": np.arange(11.0)}, "constant"),
    ],
)
def test_releases_made_differently_do_not_merge(release: Release, changes: dict[str, object], name: str) -> None:
    other = replace(MAKE, **changes).release(make_panel(n=40))  # type: ignore[arg-type]
    with pytest.raises(ReleaseError, match=f"differ in (the )?{name}"):
        Release.merge([release, other], disjoint=True)


def test_releases_of_other_periods_do_not_merge(release: Release) -> None:
    times = range(100, 111)
    panel = make_panel(n=40)
    frame = pd.DataFrame(panel.donors, columns=times)
    with pytest.raises(ReleaseError, match="periods"):
        Release.merge([release, MAKE.release(frame)], disjoint=True)
    for nonsense in ([], [release], release, [release, None], ["a.json", "b.json"], 3):  # release.merge([other])
        with pytest.raises(ReleaseError, match="list of all releases"):
            Release.merge(nonsense, disjoint=True)  # type: ignore[arg-type]


def test_the_same_release_is_not_counted_twice_at_any_depth(release: Release) -> None:
    other, third = (MAKE.release(make_panel(n=40)) for _ in range(2))
    merged = Release.merge([release, other], disjoint=True)
    assert merged.identities == (*release.identities, *other.identities)
    deeper = Release.merge([merged, third], disjoint=True)
    for twice in (
        [release, other, loads(dumps(release))],
        [release, merged],
        [loads(dumps(other)), loads(dumps(deeper))],
    ):
        with pytest.raises(ReleaseError, match="given twice"):
            Release.merge(twice, disjoint=True)


def test_two_releases_of_one_data_set_do_not_merge_at_any_depth() -> None:
    first, second = (MAKE.release(make_panel(n=40), dataset="wages") for _ in range(2))
    other = MAKE.release(make_panel(n=40), dataset="wages of others")
    merged = loads(dumps(Release.merge([second, other], disjoint=True)))
    assert merged.datasets == ("wages", "wages of others")
    for again in ([first, second], [first, merged]):
        with pytest.raises(ReleaseError, match="the data set 'wages'"):
            Release.merge(again, disjoint=True)


def test_merging_needs_the_callers_word_that_donors_are_disjoint(release: Release) -> None:
    other = MAKE.release(make_panel(n=40))
    for word in ({}, {"disjoint": False}, {"disjoint": "yes"}):
        with pytest.raises(ReleaseError, match="disjoint=True"):
            Release.merge([release, other], **word)


def test_identities_are_random_and_from_the_operating_system(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    assert release.identities != MAKE.release(make_panel(n=40)).identities
    assert [len(bytes.fromhex(identity)) for identity in release.identities] == [16]
    monkeypatch.setattr("secrets.token_hex", lambda length: "ab" * length)
    assert MAKE.release(make_panel(n=40)).identities == ("ab" * 16,)


@pytest.mark.parametrize(("guarantee", "reason"), [(True, "a reason"), (False, "")])
def test_a_release_has_either_a_guarantee_or_a_reason_why_not(release: Release, guarantee: bool, reason: str) -> None:
    """With neither, merging it with a private one would carry a full guarantee."""
    with pytest.raises(ReleaseError, match="either a guarantee or the reason"):
        replace(release, guarantee=release.guarantee if guarantee else None, no_guarantee=reason)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("bits", [4, 18, 20])
def test_what_is_made_pays_for_its_claim_and_loads(epsilon: float, bits: int) -> None:
    make = GramRelease(epsilon=epsilon, delta=1e-7, grid_bits=bits, scale=1.0, constant=0.7)
    made = [make.release(np.ones((n, 2))) for n in (3, 4, 5)]  # with this little noise, equal ones would be equal
    assert loads(dumps(made[0])).guarantee == made[0].guarantee
    assert loads(dumps(Release.merge(made, disjoint=True))).sites == 3


def test_hundreds_of_sites_merged_one_after_another_still_pay_for_the_claim() -> None:
    total = SIMPLE.release(np.ones((2, 2)))
    for _ in range(300):
        total = Release.merge([total, SIMPLE.release(np.ones((2, 2)))], disjoint=True)
    assert total.sites == 301


def test_noise_that_does_not_pay_for_the_claim_is_refused(release: Release, counted: Release) -> None:
    merged = Release.merge([release, MAKE.release(make_panel(n=40))], disjoint=True)
    for made, share in (
        (release, 0.999),
        (release, 1e-9),
        (merged, 0.999),
        (merged, math.sqrt(0.5)),
        (counted, 0.9999),
    ):
        noise = {"diagonal": made.diagonal_scale * share, "off_diagonal": made.off_diagonal_scale * share}
        with pytest.raises(ReleaseError, match=r"too small for the guarantee|fit n and the noise"):
            loads(edited(made, noise=noise))
    for diagonal, above in ((1.0, 0.9), (1.0, 1.1), (1.1, 1.0)):
        noise = {"diagonal": diagonal * release.diagonal_scale, "off_diagonal": above * release.off_diagonal_scale}
        with pytest.raises(ReleaseError, match="belong together"):
            loads(edited(release, noise=noise))
    with pytest.raises(ReleaseError, match="too small for the guarantee"):
        loads(edited(release, sites=2))
    assert release.guarantee is not None
    other_kind = Guarantee(1.0, 1e-6, arithmetic="exact", basis="none of which noise pays for")
    for claim in (other_kind, replace(release.guarantee, adjacency="add or remove one donor")):
        with pytest.raises(ReleaseError, match=r"too small for the guarantee|the file claims something else"):
            loads(edited(release, guarantee=asdict(claim)))


def test_a_share_that_the_matrix_did_not_leave_is_refused(release: Release, counted: Release) -> None:
    """A file that says less than was spent on counts cannot be told; one whose noise does not leave the share can."""
    for made, share in ((release, 0.01), (counted, 1.01 * counted.scale.share), (counted, 0.15), (counted, 0.151)):
        scale = {"value": 1.0, "source": "counted", "share": share}
        with pytest.raises(ReleaseError, match=r"too small for the guarantee|share of the budget is wrong"):
            loads(edited(made, scale=scale))
    assert loads(edited(counted)).scale == counted.scale
    scale = {"value": 1.0, "source": "counted", "share": 0.151}
    with pytest.raises(ReleaseError, match="share of the budget is wrong"):  # without a claim to pay for, too
        loads(edited(counted, scale=scale, guarantee=None, no_guarantee="a reason"))


@pytest.mark.parametrize("forgotten", ["rest_epsilon", "rest_delta"])
def test_a_gaussian_claim_without_its_slack_is_refused(release: Release, counted: Release, forgotten: str) -> None:
    for made in (release, counted):
        assert made.guarantee is not None
        claim = asdict(replace(made.guarantee, loss=replace(made.guarantee.loss, **{forgotten: 0.0})))
        with pytest.raises(ReleaseError, match="too small for the guarantee"):
            loads(edited(made, guarantee=claim))


def test_the_slack_of_the_matrix_alone_does_not_cover_the_counts(release: Release, counted: Release) -> None:
    for made in (release, counted):
        assert made.guarantee is not None
        loss, size = made.guarantee.loss, made.row_map.size
        slack = discrete_gaussian_slack(math.sqrt(loss.mu_squared), size * (size + 1) // 2, 4.0**made.grid_bits)
        claim = replace(made.guarantee, loss=replace(loss, rest_epsilon=slack[0], rest_delta=slack[1]))
        if made is release:
            assert loads(edited(made, guarantee=asdict(claim))).guarantee == claim
            continue
        with pytest.raises(ReleaseError, match="too small for the guarantee"):
            loads(edited(made, guarantee=asdict(claim)))


def test_the_slack_of_a_coarse_grid_is_not_that_of_a_fine_one(release: Release) -> None:
    """Claims of 18 bits cannot be carried to 8, although the noise is as large beside the integers."""
    unit = 4**10
    noise = {"diagonal": release.diagonal_scale / unit, "off_diagonal": release.off_diagonal_scale / unit}
    coarse = [int(v) for v in release.matrix[np.triu_indices(11)] // unit]
    with pytest.raises(ReleaseError, match="too small for the guarantee"):
        loads(edited(release, noise=noise, grid_bits=8, matrix=coarse))


def test_a_merge_that_could_overflow_is_refused(release: Release) -> None:
    large = replace(release, matrix=np.full((11, 11), 2**62), identities=("0" * 32,))
    larger = replace(release, matrix=np.full((11, 11), 2**62 + 1), identities=("1" * 32,))
    with pytest.raises(ParameterError, match="64-bit"):
        Release.merge([large, larger], disjoint=True)


BAD = ["\x1b[31mred", "two\nlines", "bell\x07", "\x9b2J", "\u202egnihton", "nul\x00", "carriage\rreturn", "\u2028"]


@pytest.mark.parametrize("text", BAD)
def test_no_control_character_gets_through_a_release(release: Release, text: str) -> None:
    assert release.guarantee is not None
    guarantee = asdict(release.guarantee)
    labels = {"kind": "text", "name": None, "values": [text, *map(str, range(10))]}
    numbers = {"kind": "integer", "name": text, "values": list(range(11))}
    forged: list[dict[str, object]] = [{name: text} for name in ("outcome", "provenance")]
    forged += [{"guarantee": None, "no_guarantee": text}, {"guarantee": guarantee | {"basis": text}}]
    forged += [{"guarantee": guarantee | {"adjacency": text}}, {"periods": labels}, {"periods": numbers}]
    forged += [{"guarantee": guarantee | {"arithmetic": text}}, {"datasets": [text]}, {text: 1, "guarantee": {text: 2}}]
    forged += [{"periods": {"kind": "datetime", "name": None, "tz": None, "values": [text] * 11}}]
    forged += [{"periods": {"kind": "period", "name": None, "freq": text, "values": ["2020"] * 11}}]
    for changes in forged:
        with pytest.raises(ReleaseError) as problem:
            loads(edited(release, **changes))
        assert text not in str(problem.value)
        assert is_printable(str(problem.value))
    for option in ("outcome", "provenance", "dataset"):
        with pytest.raises(ParameterError, match=option):
            MAKE.release(make_panel(n=40), **{option: text})  # type: ignore[call-overload]
    for frame in (
        pd.DataFrame(np.ones((3, 2)), columns=["p1", f"p2{text}"]),
        Donors.from_long(
            pd.DataFrame({"u": [1, 1, 2, 2], "t": [1, 2, 1, 2], text: 1.0}), unit="u", time="t", outcome=text
        ),
    ):
        with pytest.raises(ReleaseError, match="control characters"):
            SIMPLE.custodian_sum(frame)


LONG = {"outcome": 200, "no_guarantee": 2000, "made_by": 2000, "periods_from": 2000, "provenance": 100_000}


@pytest.mark.parametrize("field", LONG)
def test_a_text_of_a_file_that_no_page_could_show_is_refused(release: Release, field: str) -> None:
    changes: dict[str, object] = {"guarantee": None, "no_guarantee": "noise from a seed"}
    assert getattr(loads(edited(release, **changes | {field: "x" * LONG[field]})), field) == "x" * LONG[field]
    with pytest.raises(ReleaseError, match=f"longer than {LONG[field]:,} characters"):
        loads(edited(release, **changes | {field: "x" * (LONG[field] + 1)}))


@pytest.mark.parametrize("kind", ["text", "calendar", "date", "period"])
def test_labels_of_periods_that_no_page_could_show_are_refused(release: Release, kind: str) -> None:
    labels = [f"{k:02d}" + "-" * 199 for k in range(release.T)]
    periods = {"kind": kind, "name": None, "every": "month", "freq": "M", "values": labels}
    with pytest.raises(ReleaseError, match=r"unknown kind|calendar is wrong"):
        loads(edited(release, periods=periods))
    periods = {"kind": "text", "name": "x" * 201, "values": [label[:200] for label in labels]}
    with pytest.raises(ReleaseError, match="longer than 200 characters"):
        loads(edited(release, periods=periods))
    assert loads(edited(release, periods={**periods, "name": "x" * 200})).times.name == "x" * 200


@pytest.mark.parametrize(("field", "longest"), [("outcome", 200), ("provenance", 2000), ("dataset", 2000)])
def test_a_text_that_no_page_could_show_is_refused_before_anything_is_read(field: str, longest: int) -> None:
    algorithm = GramRelease(epsilon=1.0, delta=1e-6, scale=1.0)
    with pytest.raises(ParameterError, match=f"^{field} must be printable text on one line, at most {longest} "):
        algorithm.release(object(), **{field: "x" * (longest + 1)})  # type: ignore[call-overload]


def test_a_column_whose_name_no_page_could_show_is_refused_before_anything_is_booked() -> None:
    rows = pd.DataFrame({"who": [1, 1, 2, 2], "year": [1, 2, 1, 2], "x" * 201: [1.0, 2.0, 3.0, 4.0]})
    donors = Donors.from_long(rows, unit="who", time="year", outcome="x" * 201)
    with pytest.raises(ReleaseError, match="longer than 200 characters"):
        GramRelease(epsilon=1.0, delta=1e-6, scale=1.0).custodian_sum(donors)


def test_text_of_all_languages_gets_through(release: Release) -> None:
    for text in ("Löhne – “wages” ¥€", "賃金", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "a\u00a0b", "🙂"):
        assert loads(edited(release, outcome=text, provenance=text)).outcome == text


@pytest.mark.parametrize(
    "zone", ["dateutil/", "dateutil//etc/passwd", "/etc/passwd", "../passwd", "local", "", 3, "UTC+99:00"]
)
def test_a_time_zone_that_is_not_known_is_refused_and_no_file_is_opened(
    release: Release, zone: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = [f"2020-01-{day:02d}T00:00:00+00:00" for day in range(1, 12)]
    monkeypatch.setattr(pd.DatetimeIndex, "tz_convert", lambda *arguments: pytest.fail("pandas was asked for it"))
    with pytest.raises(ReleaseError, match="time zone"):
        loads(edited(release, periods={"kind": "datetime", "name": None, "tz": zone, "values": days}))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "UTC+02:00", "UTC-09:30", "America/Argentina/Buenos_Aires"])
def test_known_time_zones_and_fixed_offsets_survive(zone: str) -> None:
    times = pd.date_range("2020-01-01", periods=3, freq="h", tz=zone)
    release = SIMPLE.release(pd.DataFrame(np.ones((4, 3)), columns=times))
    restored = loads(dumps(release)).times
    assert restored.equals(release.times)
    assert isinstance(restored, pd.DatetimeIndex)
    assert str(restored.tz) == zone


def test_a_zone_without_a_name_is_refused_when_saved() -> None:
    times = pd.date_range("2020-01-01", periods=3, freq="h", tz="dateutil/Europe/Berlin")
    release = SIMPLE.release(pd.DataFrame(np.ones((4, 3)), columns=times))
    with pytest.raises(ReleaseError, match="time zone"):
        dumps(release)


@pytest.mark.parametrize(
    "periods",
    [
        {"kind": "integer", "name": None, "values": [2, 1, *range(3, 12)]},
        {"kind": "integer", "name": None, "values": [*range(10), 2**63]},
        {"kind": "integer", "name": ["a"], "values": list(range(11))},
        {"kind": "number", "name": None, "values": [*map(float, range(10)), math.inf]},
        {"kind": "date", "name": None, "values": [f"2020-01-{day:02d}" for day in range(11, 0, -1)]},
        {"kind": "datetime", "name": None, "tz": None, "values": [None] * 11},
        {"kind": "datetime", "name": None, "tz": None, "values": [f"2020-01-{day:02d}" for day in range(11, 0, -1)]},
        {"kind": "period", "name": None, "freq": "Y", "values": [str(year) for year in range(2011, 2000, -1)]},
        {"kind": "period", "name": None, "freq": "Y", "values": ["NaT", *map(str, range(2000, 2010))]},
        {"kind": "other", "name": None, "values": list("abcdefghijk")},
        {"kind": [], "name": None, "values": list("abcdefghijk")},
        {"kind": "text", "name": None, "values": ["a"] * 11},
    ],
)
def test_periods_that_repeat_are_missing_or_out_of_order_are_refused(release: Release, periods: object) -> None:
    with pytest.raises(ReleaseError):
        loads(edited(release, periods=periods))


def test_too_many_periods_are_refused_before_they_are_parsed(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(period_labels, "_index", lambda *arguments: pytest.fail("parsed"))
    values = {"kind": "integer", "name": None, "values": list(range(2001))}
    with pytest.raises(ReleaseError, match="2000 periods"):
        loads(edited(release, periods=values))


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_know_are_refused(release: Release, word: str) -> None:
    with pytest.raises(ReleaseError, match="not valid JSON"):
        loads(dumps(release).replace('"sites": 1', f'"sites": {word}'))


def test_a_file_without_end_is_not_read_to_its_end(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_format, "LARGEST_FILE", 1000)
    release.save(tmp_path / "large.json")
    for path in (tmp_path / "large.json", Path("/dev/zero")):
        with pytest.raises(ReleaseError, match="too large"):
            Release.load(path)


def test_a_stored_guarantee_cannot_promise_less_than_it_costs(release: Release) -> None:
    assert release.guarantee is not None
    body = json.loads(dumps(release))["guarantee"] | {"epsilon": 0.1}
    with pytest.raises(ReleaseError, match="promise too much"):
        loads(edited(release, guarantee=body))
    assert isinstance(loads(edited(release)).guarantee, Guarantee)


def test_a_site_whose_scale_was_counted_merges_with_one_that_took_it_over(tmp_path: Path) -> None:
    rows = np.cumsum(np.random.default_rng(0).normal(size=(800, 12)), axis=1)
    first = GramRelease(epsilon=1.0, delta=1e-6, directions=5).release(rows[:400], dataset=None)
    scale = first.scale.value / whitened_size(1.0, 12, first.kernel)
    for epsilon in (1.0, 0.8):
        second = GramRelease(epsilon=epsilon, delta=1e-6, directions=5, scale=scale).release(rows[400:], dataset=None)
        for number, sites in enumerate(([first, second], [second, first])):
            merged = Release.merge(sites, disjoint=True)
            assert merged.scale.share == 0
            merged.save(tmp_path / f"{epsilon}-{number}.json")
            assert Release.load(tmp_path / f"{epsilon}-{number}.json").n == 800


def test_a_matrix_whose_trace_cannot_be_that_of_n_donors_is_refused(release: Release) -> None:
    size = len(release.matrix)
    forged = release.matrix + int(30 * release.diagonal_scale) * np.eye(size, dtype=np.int64)
    upper = [int(v) for v in forged[np.triu_indices(size)]]
    with pytest.raises(ReleaseError, match="does not fit n"):
        file_format.loads(edited(release, matrix=upper), Release)


# Releases of the same donors.


def of_same_donors(*epsilons: float, directions: int = 9, scale: float = 1.0) -> list[Release]:
    panel = make_panel(n=60)
    make = [GramRelease(epsilon=e, delta=1e-6, scale=scale, directions=directions) for e in epsilons]
    return [each.release(panel) for each in make]


def test_the_mean_of_two_releases_of_the_same_donors_has_the_noise_of_both_budgets() -> None:
    one, other = of_same_donors(1.0, 2.0)
    mean = loads(dumps(Release.merge([one, other], same_donors=True)))
    assert mean.guarantee is not None
    assert one.guarantee is not None
    assert other.guarantee is not None
    assert mean.guarantee.loss == one.guarantee.loss + other.guarantee.loss
    assert mean.guarantee.delta == 1e-6
    at_once = of_same_donors(mean.guarantee.epsilon)[0]
    assert mean.diagonal_scale == pytest.approx(at_once.diagonal_scale, rel=0.01)
    share = other.diagonal_scale**-2 / (one.diagonal_scale**-2 + other.diagonal_scale**-2)
    assert 0.7 < share < 0.9  # the release with less noise counts for more
    np.testing.assert_allclose(mean.matrix, (1 - share) * one.matrix + share * other.matrix, rtol=1e-9, atol=0.51)
    assert (mean.n, mean.sites, set(mean.identities)) == (60, 1, {*one.identities, *other.identities})
    with pytest.raises(ReleaseError, match="given twice"):
        Release.merge([mean, other], same_donors=True)


def test_releases_of_the_same_donors_that_weigh_them_differently_are_not_combined() -> None:
    (one,) = of_same_donors(1.0)
    fewer = GramRelease(epsilon=1.0, delta=1e-6, scale=1.0, directions=9).release(make_panel(n=60).donors[:, :10])
    for other in (fewer, *of_same_donors(1.0, scale=2.0), *of_same_donors(1.0, directions=8)):
        with pytest.raises(ReleaseError, match="each donor counts in each file with another weight"):
            Release.merge([one, other], same_donors=True)


def test_disjoint_or_the_same_donors_is_said_by_one_word() -> None:
    made = of_same_donors(1.0, 1.0)
    for words in ({}, {"disjoint": True, "same_donors": True}):
        with pytest.raises(ReleaseError, match="say which donors"):
            Release.merge(made, **words)
    apart = [replace(release, datasets=(name,)) for release, name in zip(made, ("north", "south"), strict=True)]
    with pytest.raises(ReleaseError, match="'north', 'south', which are different donors"):
        Release.merge(apart, same_donors=True)


def test_a_mean_of_which_one_release_is_not_paid_for_says_so_when_it_is_saved(tmp_path: Path) -> None:
    paid, unpaid = (replace(release, unpaid=k == 1) for k, release in enumerate(of_same_donors(1.0, 1.0)))
    for order in ([paid, unpaid], [unpaid, paid]):
        with pytest.warns(DpscWarning, match="which data set of a ledger pays"):
            Release.merge(order, same_donors=True).save(tmp_path / "mean.json")
    Release.merge([paid, replace(unpaid, unpaid=False)], same_donors=True).save(tmp_path / "mean.json")


def test_a_release_on_a_coarse_grid_is_combined_with_one_whose_noise_counts_as_gaussian() -> None:
    """To add epsilons is the tightest for the two; what their noise pays for is the sum of their losses."""
    panel = make_panel(n=60)
    make = [GramRelease(epsilon=e, delta=d, scale=1.0, grid_bits=10) for e, d in ((8.0, 1e-5), (0.05, 1e-12))]
    one, other = (replace(each, directions=9).release(panel) for each in make)
    assert one.guarantee is not None
    assert other.guarantee is not None
    assert (one.guarantee.loss.rho, other.guarantee.loss.mu_squared) == (0.0, 0.0)
    mean = loads(dumps(Release.merge([one, other], same_donors=True)))
    assert mean.guarantee is not None
    assert mean.guarantee.loss == one.guarantee.loss + other.guarantee.loss
    assert mean.guarantee.epsilon > one.guarantee.epsilon
