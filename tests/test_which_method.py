"""What docs/guides/which-method.md advises is what was measured."""

from __future__ import annotations

import pytest

from tests.benchmarking import benchmark

HALVES = ("report", "design")


ONE, MANY = "one unit", "average of 30"


def advice(half: str, family: str, n: int, epsilon: float) -> dict[str, str]:
    """Return the colour of a cell of the map for each kind of target."""
    tables = benchmark("which_method_tables")
    return {
        target: tables.advice(*tables.both(rows[(rows["n"] == n) & (rows["epsilon"] == epsilon)]))
        for name, target, rows in tables.maps(tables.read(half))
        if name == family
    }


@pytest.mark.parametrize("half", HALVES)
def test_where_the_page_says_release_it_is_clearly_better_on_both_halves(half: str) -> None:
    enough = {
        ("real", 300): {ONE: 1.0, MANY: 0.5},
        ("real", 100): {ONE: 1.0, MANY: 1.0},
        ("real", 30): {ONE: 4.0},
        ("made", 100): {ONE: 1.0, MANY: 1.0},
        ("made", 1000): {ONE: 0.25, MANY: 0.25},
        ("made", 10_000): {ONE: 0.25, MANY: 0.25},
    }
    for (family, n), least in enough.items():
        for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0):
            found = advice(half, family, n, epsilon)
            assert all(found[target] == "release" for target in least if epsilon >= least[target]), (family, n, epsilon)


@pytest.mark.parametrize("half", HALVES)
def test_where_the_page_says_do_not_release_it_is_clearly_worse_on_both_halves(half: str) -> None:
    for n, epsilon in ((100, 0.25), (30, 0.25), (30, 0.5)):
        assert set(advice(half, "real", n, epsilon).values()) == {"no release"}, (n, epsilon)


def test_averages_gain_more_than_single_units_and_more_in_a_shock() -> None:
    tables = benchmark("which_method_tables")
    errors = {
        target: tables.both(rows[(rows["n"] == 300) & (rows["epsilon"] == 1)])
        for family, target, rows in tables.maps(tables.read("report"))
        if family == "real"
    }
    (calm_one, shock_one), (calm_many, shock_many) = errors["one unit"], errors["average of 30"]
    assert calm_many < calm_one
    assert shock_many < shock_one
    assert shock_one < calm_one
    assert shock_many < calm_many


def test_ten_times_the_donors_do_as_well_with_an_eighth_of_epsilon() -> None:
    tables = benchmark("which_method_tables")
    corners = {"real": ((30, 2.0), (300, 0.25)), "made": ((100, 2.0), (1000, 0.25))}
    for family, target, rows in tables.maps(tables.read("report")):
        few, many = (
            tables.both(rows[(rows["n"] == n) & (rows["epsilon"] == epsilon)]) for n, epsilon in corners[family]
        )
        for of_few, of_many in zip(few, many, strict=True):
            assert of_many / of_few < (1.1 if target == "one unit" else 0.95)


def test_one_problem_measured_again_gives_all_methods() -> None:
    """A small run of the benchmark: the release beats the last value, the two-step algorithms are far off."""
    which = benchmark("which_method")
    model = which.MODELS[1]
    (row,) = which.measure([which.made(model, "average of 30", 500, 3.0, run, T0=10) for run in range(2)], (2.0,))
    assert row["gram"] < 0.5 * row["free"]
    assert min(row["output"], row["objective"]) > 5 * row["free"]
