"""Segments: one matrix for each, every donor in exactly one by its own rows, at the cost of one matrix."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import chdtr, chdtrc

from dpsc import Donors, GramRelease, ParameterError, Release, ReleaseError, load, scan
from dpsc.custodian.gram import dask as engine
from dpsc.custodian.gram.exact_sum import Products
from dpsc.custodian.gram.sources import source_of, sum_of_rows
from dpsc.errors import TableError
from dpsc.privacy.rounded_gaussian import discrete_gaussian_slack
from dpsc.release import file_format, verify
from dpsc.release import settings as site_settings
from dpsc.release.matrix import MOST_COORDINATES, require_room
from dpsc.release.segments import Segments
from dpsc.types import Array, Integers
from tests.making import long, row_map, save, told, wide
from tests.soak import quick_or_long

N, T = 237, 9
LABELS = ["basic", "plus"]
PLANS = Segments("plan", ("basic", "plus", "other"))
MAKE = GramRelease(epsilon=1.0, delta=1e-6, scale=3.0)


@pytest.fixture(scope="module")
def rows() -> Array:
    return np.round(np.random.default_rng(0).normal(size=(N, T)).cumsum(axis=1), 6)


@pytest.fixture(scope="module")
def plans() -> Array:
    """Declared labels, one with a blank, others that nobody declared, and none."""
    return np.random.default_rng(1).choice(np.array(["basic", " plus", "7", "gold", None], dtype=object), N)


def exact(rows: Array, plans: Array) -> Integers:
    """What each segment's donors add up to, by the code without segments."""
    place = {"basic": 0, " plus": 1}
    codes = np.array([place.get(plan, 2) for plan in plans])
    made = MAKE.custodian_sum(rows).row_map
    return np.array([sum_of_rows(rows[codes == k], Products(made)) for k in range(3)])


def both_layouts(rows: Array, plans: Array) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The donors as a wide and as a long table; in the long one a donor's label is in some of its rows only."""
    as_wide, as_long = wide(rows).assign(plan=plans), long(rows)
    label = as_long["who"].map(dict(zip(as_wide["who"], plans, strict=True)))
    kept = np.random.default_rng(2).random(len(as_long)) < 0.6
    kept |= ~as_long["who"].duplicated().to_numpy()
    return as_wide, as_long.assign(plan=label.where(kept, None))


def test_all_engines_divide_donors_in_the_same_way(
    rows: Array, plans: Array, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PIECE_CELLS", 50 * T)  # several pieces
    expected, (as_wide, as_long) = exact(rows, plans), both_layouts(rows, plans)
    how: dict[str, Any] = {"by": "plan", "labels": LABELS}
    columns: dict[str, Any] = {"unit": "who", "time": "week", "outcome": "cost"}
    frames = Donors.from_wide(as_wide, unit="who", **how), Donors.from_long(as_long, **columns, **how)
    for donors in (*frames, Donors.from_arrays(rows, by=plans.tolist(), labels=LABELS)):
        np.testing.assert_array_equal(MAKE.custodian_sum(donors).total, expected)
    np.testing.assert_array_equal(MAKE.custodian_sum(as_wide.set_index("who"), **how).total, expected)
    shuffled = as_long.sample(frac=1, random_state=0)
    for name, frame in (("wide", as_wide), ("long", as_long), ("shuffled", shuffled)):
        said: dict[str, Any] = {"unit": "who", "wide": True} if name == "wide" else columns
        for kind, way in ((kind, way) for kind in ("csv", "parquet") for way in ("memory", "stream", "dask")):
            where: dict[str, Any] = {"scheduler": cluster.scheduler_address} if way == "dask" else {"engine": way}
            found = scan(save(frame, tmp_path / f"{name}.{kind}"), **said, **how, **where)
            summed = MAKE.custodian_sum(found)
            np.testing.assert_array_equal(summed.total, expected, err_msg=f"{name} {kind} {way}")
            assert summed.segments == PLANS


def test_a_row_outside_the_declared_periods_may_say_the_label(rows: Array, plans: Array, tmp_path: Path) -> None:
    table = long(rows)
    table["plan"] = pd.Series(np.repeat(plans, T)).where(table["week"] == "w1", None)
    how: dict[str, Any] = {"by": "plan", "labels": LABELS, "periods": [f"w{t}" for t in range(2, T + 1)]}
    columns: dict[str, Any] = {"unit": "who", "time": "week", "outcome": "cost"}
    expected = exact(rows[:, 1:], plans)
    np.testing.assert_array_equal(MAKE.custodian_sum(Donors.from_long(table, **columns, **how)).total, expected)
    for frame in (table, table.sample(frac=1, random_state=0)):
        path = save(frame, tmp_path / "long.parquet")
        for way in ("memory", "stream"):
            np.testing.assert_array_equal(
                MAKE.custodian_sum(scan(path, engine=way, **columns, **how)).total,
                expected,
            )


def test_a_donor_with_several_rows_in_a_wide_table_is_in_one_segment(rows: Array, cluster: Any, tmp_path: Path) -> None:
    """The rows of p00003 name one plan and nothing, those of p00004 two plans."""
    frame = wide(rows).assign(plan=["basic", "plus", "gold"] * (N // 3))
    frame.loc[[3, 4, 230], "plan"] = [None, "plus", "basic"]
    frame.loc[[200, 230], "who"] = ["p00003", "p00004"]
    frame.loc[200, "plan"] = "basic"
    path = save(frame, tmp_path / "twice.csv")
    how: dict[str, Any] = {"unit": "who", "wide": True, "repeated": "mean", "by": "plan", "labels": LABELS}
    ways: list[dict[str, Any]] = [{"engine": "memory"}, {"engine": "stream"}, {"scheduler": cluster.scheduler_address}]
    sums = [MAKE.custodian_sum(scan(path, **how, **way)) for way in ways]
    held = scan(path, engine="memory", **how).files.matrix()
    assert held.codes is not None
    assert [int(held.codes[k]) for k in (3, 4)] == [0, 2]
    assert len(held.codes) == N - 2
    for summed in sums[1:]:
        np.testing.assert_array_equal(summed.total, sums[0].total)


def cost(one: Integers, other: Integers) -> float:
    """The squared Frobenius norm of the change of all matrices together, in units of 16^bits."""
    return float((((one - other) / 4.0**18) ** 2).sum())


def test_a_donor_replaced_moves_all_matrices_together_by_no_more_than_one_matrix(rows: Array) -> None:
    """Its label alone, its values alone, both: each reaches the bound, and a bound 10% smaller is broken."""
    made = row_map(T, constant=1.0)
    far = 1e9 * made.back.T  # rows whose vectors are orthogonal to each other
    donors = {"label": (far[0], 0, far[0], 1), "values": (far[0], 0, far[1], 0), "both": (far[0], 0, far[1], 2)}
    for row, code, other, label in donors.values():
        one, two = (
            sum_of_rows(np.vstack([rows, end]), Products(made, 3), codes=np.append(np.arange(N) % 3, where))
            for end, where in ((row, code), (other, label))
        )
        assert 0.99**2 * 2 <= cost(one, two) <= 2
        assert cost(one, two) > 0.9**2 * 2


@settings(max_examples=quick_or_long(60, 5_000), deadline=None)
@given(st.data())
def test_no_rows_and_labels_of_one_donor_move_them_further(data: st.DataObject) -> None:
    """One person's rows in a long table may be any number, name any labels, in any periods: the rest is untouched."""
    made, week = row_map(4, constant=1.0), st.integers(0, 5)
    number = st.floats(allow_nan=True, allow_infinity=False)
    labels = st.sampled_from(["basic", "plus", "other", "", "gold", "plus ", None])
    theirs = st.lists(st.tuples(week, number, labels), min_size=1, max_size=8)
    crowd = [("x", t, float(t), "plus") for t in range(4)] + [("y", t, 1e9 * (-1.0) ** t, "basic") for t in range(4)]
    sums = []
    for _ in range(2):
        mine = [("me", *row) for row in data.draw(theirs)]
        frame = pd.DataFrame(data.draw(st.permutations(crowd + mine)), columns=["who", "week", "cost", "plan"])
        how: dict[str, Any] = {"periods": range(4), "repeated": "last", "by": "plan", "labels": LABELS}
        source = source_of(Donors.from_long(frame, unit="who", time="week", outcome="cost", **how))
        total, n = source.add_up(Products(made, 3), lambda rows: None)
        assert n == 3
        sums.append(total)
    assert cost(*sums) <= 2
    untouched = [k for k in range(3) if (sums[0][k] == sums[1][k]).all()]
    assert len(untouched) >= 1  # of three segments a person is in one, before and after


def test_each_matrix_has_noise_of_its_own_of_the_stated_scale(rows: Array, plans: Array) -> None:
    """Noise 10% too small is rejected by the same test, and no two matrices share it."""
    summed = MAKE.custodian_sum(rows, by=plans, labels=LABELS)
    entries = []
    for _ in range(40):
        release = MAKE.release(summed)
        noise = release.matrix - summed.total
        scaled = [noise[:, range(9), range(9)] / release.diagonal_scale]
        scaled += [noise[:, k, k + 1 :] / release.off_diagonal_scale for k in range(8)]
        entries.append(np.concatenate(scaled, axis=1))
    drawn = np.concatenate(entries, axis=1)  # 3 segments × 1,800
    squares, count = float((drawn**2).sum()), drawn.size
    for factor, expected in ((1.0, True), (0.9, False)):
        p = min(float(chdtr(count, factor**2 * squares)), float(chdtrc(count, factor**2 * squares)))
        assert (p > 1e-7) == expected
    together = np.asarray(np.corrcoef(drawn))[np.triu_indices(3, 1)] * math.sqrt(drawn.shape[1])
    assert np.abs(together).max() < 6
    assert release.diagonal_scale == MAKE.release(rows).diagonal_scale  # three segments cost what one matrix costs


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        ([1.0, 2.0, 3.0, np.nan], "1,2"),
        ([1.0, 2.0, 3.0, np.nan], [1, 2.0]),
        (["1", " 1.0", "01", "2.00"], "1,2"),
        ([True, False, True, True], [True]),
        (["NA", "EU", "None", " "], "NA,EU"),
        (pd.Categorical(["a", "b", None, "c"]), "a,b"),
        (pd.array(["a", None, "\u00a0b", "  "], dtype="string"), "a,b"),
    ],
)
def test_a_label_is_the_same_in_frames_and_files_of_all_kinds(
    rows: Array, column: Any, labels: Any, tmp_path: Path
) -> None:
    """Numbers with and without decimals, truth values, categories, and what is no label; a file may write them so."""
    frame = wide(rows[:40]).assign(plan=pd.Series(column).take(np.arange(40) % 4).to_numpy())
    long_frame = long(rows[:40]).assign(plan=np.repeat(frame["plan"].to_numpy(), T))
    how: dict[str, Any] = {"by": "plan", "labels": labels, "periods": [f"w{t}" for t in range(1, T + 1)]}
    columns: dict[str, Any] = {"unit": "who", "time": "week", "outcome": "cost"}
    expected = MAKE.custodian_sum(Donors.from_long(long_frame, **columns, **how)).total
    assert all(len(np.flatnonzero(block)) for block in expected[:-1])  # each declared one was found
    for shape, said, kind in (("wide", frame, "csv"), ("long", long_frame, "csv"), ("long", long_frame, "parquet")):
        path = save(said, tmp_path / f"{shape}.{kind}")
        where: dict[str, Any] = {"unit": "who", "wide": True} if shape == "wide" else columns
        for engine_of in ("memory", "stream"):
            found = MAKE.custodian_sum(scan(path, engine=engine_of, **where, **how)).total
            np.testing.assert_array_equal(found, expected, err_msg=f"{shape} {kind} {engine_of}")


@pytest.mark.parametrize("periods", [None, [f"w{t}" for t in range(1, T + 1)]])
def test_a_file_of_a_folder_without_the_column_is_refused_by_name(rows: Array, periods: Any, tmp_path: Path) -> None:
    frame = wide(rows).assign(plan="basic")
    save(frame[:100], tmp_path / "1.csv")
    save(frame[100:].drop(columns="plan"), tmp_path / "2.csv")
    with pytest.raises(TableError, match=r"2\.csv: there is no column 'plan', which other files"):
        MAKE.release(scan(tmp_path, unit="who", wide=True, by="plan", labels=LABELS, periods=periods))


@pytest.fixture(scope="module")
def release(rows: Array, plans: Array) -> Release:
    return MAKE.release(rows, by=pd.Series(plans, name="plan"), labels=LABELS, dataset=None)


def test_pools_add_up_blocks_and_their_noise(release: Release) -> None:
    blocks, one = release.matrix / 4.0**18, release.diagonal_scale / 4.0**18
    assert release.noise_scale == pytest.approx(one * math.sqrt(3))
    np.testing.assert_allclose(release.noisy_moments, blocks.sum(axis=0))
    plus = release.of("plus")
    np.testing.assert_array_equal(plus.noisy_moments, blocks[1])
    assert plus.noise_scale == one
    assert plus.donors == release.sizes[1]
    two = release.of(["basic", "plus"])
    assert two.noise_scale == pytest.approx(one * math.sqrt(2))
    assert two.donors == pytest.approx(release.sizes[:2].sum())
    mixed = release.of({"basic": 1, "plus": 3})
    counted = mixed.weights * release.sizes
    np.testing.assert_allclose(counted / counted.sum(), [0.25, 0.75, 0])
    assert mixed.donors == pytest.approx(two.donors)
    assert release.of("plus").guarantee == release.guarantee


def test_sizes_are_read_off_the_noisy_matrices_and_add_up_to_n(rows: Array, plans: Array) -> None:
    summed = MAKE.custodian_sum(rows, by=plans, labels=LABELS)
    true = np.array([(plans == "basic").sum(), (plans == " plus").sum(), 0])
    true[2] = N - true.sum()
    errors = []
    for _ in range(60):
        release = MAKE.release(summed)
        errors.append((release.sizes - true) / release.sizes_error)
        if release.sizes.min() > 1:  # fewer are shown as one: noise may say that there are none
            assert release.sizes.sum() == pytest.approx(N, rel=1e-4)
    assert 0.75 < float(np.std(errors)) < 1.3


def test_a_file_keeps_segments_and_one_without_stays_readable_for_earlier_versions(
    release: Release, rows: Array, tmp_path: Path
) -> None:
    path = tmp_path / "plans.dpsc.json"
    release.of("plus").save(path)  # a file always holds all
    back = load(path)
    assert isinstance(back, Release)
    np.testing.assert_array_equal(back.matrix, release.matrix)
    assert (back.segments, back.pool) == (PLANS, ())
    assert json.loads(path.read_text())["version"] == 3
    MAKE.release(rows, dataset=None).save(path)
    assert json.loads(path.read_text())["version"] == 2
    other = MAKE.release(rows + 1, by=["plus"] * N, labels=LABELS)
    agreed = replace(other, row_map=release.row_map, segments=PLANS)
    merged = Release.merge([release, agreed], disjoint=True)
    assert merged.segments == PLANS
    assert merged.n == 2 * N


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda body: body["matrices"].pop(), "one matrix for each"),
        (lambda body: body.update(segments=None), "one matrix for each"),
        (lambda body: body["segments"]["labels"].__setitem__(0, "plus"), "different texts"),
        (lambda body: body["segments"]["labels"].__setitem__(2, "rest"), "schema"),
        (lambda body: body["segments"].update(by="a\x1bb"), "schema"),
        (
            lambda body: body["noise"].update({k: v / 2 for k, v in body["noise"].items()}),
            "too small for the guarantee",
        ),
        (lambda body: body["guarantee"]["loss"].update(rest_delta=0.0), "too small for the guarantee"),
    ],
)
def test_a_forged_file_is_refused(release: Release, change: Any, match: str) -> None:
    body = json.loads(file_format.dumps(release))
    body.pop("checksum")
    change(body)
    with pytest.raises(ReleaseError, match=match):
        file_format.loads(file_format.sealed(body), Release)


def test_a_claim_whose_slack_is_for_one_of_several_matrices_is_refused(release: Release) -> None:
    assert release.guarantee is not None
    size = release.row_map.size
    loss, entries = release.guarantee.loss, size * (size + 1) // 2
    for matrices in (3, 2):
        epsilon, delta = discrete_gaussian_slack(math.sqrt(loss.mu_squared), matrices * entries, 4.0**18)
        claim = replace(release.guarantee, loss=replace(loss, rest_epsilon=epsilon, rest_delta=delta))
        if matrices == 3:
            assert replace(release, guarantee=claim).guarantee == claim
            continue
        with pytest.raises(ReleaseError, match="too small for the guarantee"):
            replace(release, guarantee=claim)


def test_more_segments_than_the_slack_is_charged_for_are_refused_before_donors_are_read() -> None:
    """All numbers that get noise are at most as many as the budget's slack allows for."""
    many = Segments("day", (*map(str, range(29)), "other"))
    require_room(many, 360)
    assert 30 * 360 * 361 // 2 < MOST_COORDINATES < 30 * 366 * 367 // 2
    with pytest.raises(ParameterError, match="room for 29"):
        MAKE.release(np.zeros((2, 366)), by=["1", "2"], labels=map(str, range(29)))


@pytest.mark.parametrize(
    ("how", "error", "match"),
    [
        ({"by": "plan"}, ParameterError, "declare labels"),
        ({"labels": LABELS}, ParameterError, "belong to by="),
        ({"by": "plan", "labels": "basic,basic"}, ParameterError, "different segments"),
        ({"by": "plan", "labels": ["basic", "basic"]}, ParameterError, "different segments"),
        ({"by": "plan", "labels": []}, ParameterError, "1 to 63"),
        ({"by": "plan", "labels": ["a\x07"]}, ParameterError, "printable"),
        ({"by": "who", "labels": LABELS}, TableError, "different columns"),
        ({"by": "tariff", "labels": LABELS}, TableError, "no column 'tariff'"),
        (
            {"by": "plan", "labels": LABELS, "person": "who", "unit": "plan"},
            ParameterError,
            "for donors, not for people",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    rows: Array, plans: Array, tmp_path: Path, how: dict[str, Any], error: type[Exception], match: str
) -> None:
    path = save(wide(rows).assign(plan=plans), tmp_path / "donors.csv")
    given: dict[str, Any] = {"unit": "who", "wide": "person" not in how} | how
    with pytest.raises(error, match=match) as problem:
        MAKE.release(scan(path, **given))
    assert not told(str(problem.value))


def test_a_label_for_each_row_is_for_arrays(rows: Array, plans: Array) -> None:
    with pytest.raises(ParameterError, match="the name of a column"):
        GramRelease(epsilon=1.0, delta=1e-6).release(pd.DataFrame(rows), by=pd.Series(plans), labels=["a"])


def test_a_pool_that_is_none_is_refused(release: Release, rows: Array) -> None:
    with pytest.raises(ParameterError, match="no segment 'pro' of 'plan'"):
        release.of("pro")
    with pytest.raises(ParameterError, match="names no segment"):
        release.of([])
    with pytest.raises(ParameterError, match="above 0"):
        release.of({"basic": 0.0})
    with pytest.raises(ParameterError, match="not divided into segments"):
        MAKE.release(rows).of("plus")


def test_a_pool_as_it_is_typed_is_the_pool_that_is_given(release: Release) -> None:
    assert PLANS.typed("basic , plus") == ["basic", "plus"]
    assert PLANS.typed("basic=1, plus=3") == {"basic": 1.0, "plus": 3.0}
    assert Segments("size", ("<=9,5", "a=b", "other")).typed("<=9,5") == ["<=9,5"]
    assert Segments("size", ("a=b", "c", "other")).typed("a=b,c") == ["a=b", "c"]
    for text, match in (("basic=1,plus", "every segment"), ("basic=x", "above 0"), ("basic=1,basic=2", "twice")):
        with pytest.raises(ParameterError, match=match):
            PLANS.typed(text)
    assert release.of("plus").asked == "plan plus"
    assert release.of({"basic": 1, "plus": 3}).asked == "plan basic (25%) and plus (75%)"
    assert release.of(["other", "plus", "basic"]).asked == release.asked == "all segments of plan"
    assert release.of(list(PLANS.labels)).donors == N  # which is public


def test_sites_agree_on_segments_before_they_spend(rows: Array, tmp_path: Path) -> None:
    agreed = site_settings.agreed(N, T, 1.0, 1e-6, sites=2, scale=3.0, segments=PLANS)
    agreed.save(tmp_path / "settings.json")
    assert site_settings.load(tmp_path / "settings.json").segments == PLANS
    assert "segments" not in replace(agreed, segments=None).dumps()  # earlier versions read it
    body = json.loads(agreed.dumps())
    body["segments"]["labels"] = ["basic", 7]
    with pytest.raises(ReleaseError, match="schema"):
        site_settings.loads(json.dumps(body))
    make = GramRelease.from_settings(agreed)
    plans = [pd.Series(["plus", "basic", "x"] * 39 + ["plus"] * (2 - k), name="plan") for k in (0, 1)]
    sites = [make.release(rows[k::2], by=plans[k], labels=LABELS) for k in (0, 1)]
    assert Release.merge(sites, disjoint=True).segments == PLANS
    other = make.release(rows[::2], by=plans[0], labels=["plus", "basic"])
    with pytest.raises(ReleaseError, match=r"differ in segments \(plan: plus, basic, other and"):
        Release.merge([other, sites[1]], disjoint=True)


def test_noise_that_is_missing_in_one_segment_is_seen_in_the_file(rows: Array) -> None:
    """The sum of all matrices would hide it."""
    summed = GramRelease(epsilon=0.3, delta=1e-6, scale=3.0).custodian_sum(
        np.tile(rows, (1, 3)), by=["basic"] * N, labels=[f"s{k}" for k in range(8)]
    )
    made = GramRelease(epsilon=0.3, delta=1e-6, scale=3.0).release(summed)
    verdicts = {check.what: check.verdict for check in verify.checks(made)}
    assert "broken" not in verdicts.values()
    quiet = made.matrix.copy()
    quiet[3] = summed.total[3]
    checked = {check.what: check.verdict for check in verify.checks(replace(made, matrix=quiet))}
    assert checked["noise"] == "broken"
