from __future__ import annotations

import dataclasses

import pytest

from dpsc import GramRelease, Guarantee, ParameterError


def test_composition_adds_both_parameters_and_keeps_the_bases() -> None:
    total = Guarantee(0.5, 1e-6, basis="first") + Guarantee(1.5, basis="second")
    assert (total.epsilon, total.delta, total.basis) == (2.0, 1e-6, "first, second")


def test_composition_is_exact_only_if_both_parts_are() -> None:
    exact, floating = Guarantee(1, arithmetic="exact"), Guarantee(1, arithmetic="float")
    assert (exact + exact).arithmetic == "exact"
    assert (exact + floating).arithmetic == "float"


def test_sum_adds_guarantees_up() -> None:
    assert sum([Guarantee(0.5), Guarantee(0.25)]) == Guarantee(0.5) + Guarantee(0.25)


def test_prints_as_one_line() -> None:
    text = str(Guarantee(1, 1e-6, basis="Theorem 1"))
    assert text == "(1, 1e-06)-differential privacy, replace one donor, float arithmetic; Theorem 1"


def test_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Guarantee(1).epsilon = 0.1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": float("inf")}, "epsilon"),
        ({"epsilon": 1, "delta": 1}, "delta"),
        ({"epsilon": 1, "delta": -1e-9}, "delta"),
        ({"epsilon": 1, "arithmetic": "real"}, "arithmetic"),
    ],
)
def test_senseless_guarantees_are_refused_by_name(arguments: dict[str, object], name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        Guarantee(**arguments)  # type: ignore[arg-type]


def test_guarantees_for_different_neighbours_do_not_compose() -> None:
    with pytest.raises(ParameterError, match="neighbours"):
        Guarantee(1) + Guarantee(1, adjacency="add or remove one donor")


@pytest.mark.parametrize("epsilon", [1e10, 1e200, 1e308])
def test_a_budget_whose_square_overflows_is_refused_in_words(epsilon: float) -> None:
    with pytest.raises(ParameterError, match="must be at most 1e"):
        Guarantee(epsilon)
    with pytest.raises(ParameterError, match="must be at most 1e"):
        GramRelease(epsilon=epsilon, delta=1e-6)


def test_a_guarantee_of_an_older_file_is_shown_in_the_words_of_today() -> None:
    old = "discrete Gaussian on unit vectors' Gram matrix, and on counts of donors by how much they move"
    new = "discrete Gaussian noise on the Gram matrix of the donors' unit vectors, and on counts of donors by how much"
    assert new in str(Guarantee(1.0, 1e-6, basis=old))
