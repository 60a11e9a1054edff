"""What OpenDP's Context API draws for the table of people that validation.py releases: results/opendp-context.csv.

OpenDP 0.16 takes one version of polars, 1.36.1, which is not the newest, so this runs in an environment of its own:

    python -m venv context && context/bin/pip install 'opendp[polars]==0.16.0'
    context/bin/python benchmarks/opendp_context.py              # a second
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "results" / "opendp-context.csv"
UNITS, PERIODS, PEOPLE = [f"u{k}" for k in range(8)], list(range(12)), 400
HIGHEST = 10  # a value is a whole number from 0 to this
RHO, EPSILON = 0.02, 1.0  # what theirs are asked for; ours are asked for as much

# name: what is asked, how many people the unit of privacy is, and the budget
ASKED = {
    "count": ("count", 1, "rho"),
    "count, Laplace": ("count", 1, "epsilon"),
    "total": ("total", 1, "rho"),
    "total of both signs": ("both signs", 1, "rho"),
    "mean": ("mean", 1, "rho"),
    "total, two people": ("total", 2, "rho"),
}


def records() -> list[tuple[str, str, int, int]]:
    """Return a record for each person and period: person, unit, period, value. Nobody is in two units at once."""
    return [
        (f"p{i}", UNITS[(i + t // 5) % len(UNITS)], t, (7 * i + 3 * t) % (HIGHEST + 1))
        for i in range(PEOPLE)
        for t in PERIODS
    ]


def drawn() -> list[list[Any]]:
    """Return what a Context says that it draws: question, column, law and scale."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    data = pl.LazyFrame(records(), schema=["person", "unit", "period", "value"], orient="row")
    data = data.with_columns(centred=pl.col("value") - HIGHEST // 2)
    cells = ["unit", "period"]
    keys = pl.LazyFrame([(u, t) for u in UNITS for t in PERIODS], schema=cells, orient="row")
    value, centred = pl.col("value").fill_null(0), pl.col("centred").fill_null(0)
    asked = {
        "count": [dp.len(signed=True)],
        "total": [value.dp.sum((0, HIGHEST))],
        "both signs": [value.dp.sum((-HIGHEST, HIGHEST))],
        "mean": [dp.len(signed=True), centred.dp.sum((-HIGHEST // 2, HIGHEST // 2))],
    }
    rows = []
    for name, (what, people, budget) in ASKED.items():
        context = dp.Context.compositor(
            data=data,
            privacy_unit=dp.unit_of(contributions=people, identifier=pl.col("person")),
            privacy_loss=dp.loss_of(rho=RHO) if budget == "rho" else dp.loss_of(epsilon=EPSILON),
            split_evenly_over=1,
            margins=[dp.polars.Margin(by=cells, max_length=PEOPLE), dp.polars.Margin(max_length=PEOPLE * len(PERIODS))],
        )
        once = context.query().truncate_per_group(1, by=cells).truncate_num_groups(len(PERIODS), by=cells)
        table = once.group_by(*cells).agg(asked[what]).with_keys(keys).summarize()
        rows += [[name, row["column"], row["distribution"], row["scale"]] for row in table.iter_rows(named=True)]
    return rows


def main() -> None:
    with FILE.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([["asked", "column", "law", "scale"], *drawn()])


if __name__ == "__main__":
    main()
