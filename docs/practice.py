"""Write the files that the guides work on: made-up patients, so that you can try every command.

    python practice.py

It writes to the folder that you are in:

- ``patients.csv``: monthly costs of 600 patients, 2021 to 2023, as a spreadsheet writes them (semicolons, decimal
  commas). A third of them joined late. This is the private table.
- ``patients-raw.csv``: the same table as it came out of the spreadsheet, with three mistakes in it.
- ``clinic.csv``: average monthly costs of a clinic with 40 patients. From April 2023 on we took 30 off, so that the
  truth is known.
- ``regions.csv``: three regions that began at different dates, where we took 20 off, and one that never began.
- ``north.csv`` and ``south.csv``: the same patients, at two hospitals.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

N, T, AVERAGED = 600, 36, 40
MONTHS = [f"{day:%d.%m.%Y}" for day in pd.date_range("2021-01-31", periods=T, freq="ME")]
CLINIC_STARTS, CLINIC_EFFECT = 27, -30.0  # April 2023
REGIONS = {"Alder": 20, "Birch": 24, "Cedar": 27, "Dogwood": None}  # September 2022, January and April 2023, never
REGIONS_EFFECT = -20.0


def paths(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return what moves everybody, and costs that follow it: 600 patients, and 40 more in the clinic."""
    factors = np.cumsum(rng.normal(size=(2, T)), axis=1)
    costs = 300 + 10 * rng.normal(size=(N + AVERAGED, 2)) @ factors + 8 * rng.normal(size=(N + AVERAGED, T))
    return factors, costs + 5 * factors[0]


def patients_and_clinic(rng: np.random.Generator, costs: np.ndarray) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the private table, in which a third of the patients join late, and the clinic's public averages."""
    clinic = costs[N:].mean(axis=0)
    clinic[CLINIC_STARTS:] += CLINIC_EFFECT
    joined = np.where(rng.random(N) < 1 / 3, rng.integers(1, 20, N), 0)
    rows = [
        (f"Patient {i}", month, costs[i, t].round(2))
        for i in range(N)
        for t, month in enumerate(MONTHS)
        if t >= joined[i]
    ]
    return (
        pd.DataFrame(rows, columns=["patient", "month", "cost"]),
        pd.DataFrame({"month": MONTHS, "cost": clinic.round(2)}),
    )


def regions(rng: np.random.Generator, factors: np.ndarray) -> pd.DataFrame:
    """Return four regions, each an average of forty people of the same kind, with the month in which it began."""
    tables = []
    for region, start in REGIONS.items():
        people = (
            300 + 10 * rng.normal(size=(AVERAGED, 2)) @ factors + 8 * rng.normal(size=(AVERAGED, T)) + 5 * factors[0]
        )
        cost = people.mean(axis=0)
        if start is not None:
            cost[start:] += REGIONS_EFFECT
        begins = "" if start is None else MONTHS[start]
        tables.append(pd.DataFrame({"region": region, "month": MONTHS, "cost": cost.round(2), "start": begins}))
    return pd.concat(tables)


def with_mistakes(patients: pd.DataFrame) -> pd.DataFrame:
    """Return the private table with a text for a number, a name written in two ways, and a row that is there twice."""
    raw = patients.assign(cost=[str(cost).replace(".", ",") for cost in patients["cost"]])
    raw.loc[40, "cost"] = "see file"
    raw.loc[80, "patient"] = str(raw.loc[80, "patient"]).upper()
    return pd.concat([raw, raw.iloc[[3]]])


def tables() -> dict[str, pd.DataFrame]:
    """Return all tables by the names of their files."""
    rng = np.random.default_rng(8)
    factors, costs = paths(rng)
    patients, clinic = patients_and_clinic(rng, costs)
    north = patients["patient"].str.removeprefix("Patient ").astype(int) < 350
    return {
        "patients": patients,
        "patients-raw": with_mistakes(patients),
        "clinic": clinic,
        "regions": regions(rng, factors),
        "north": patients[north],
        "south": patients[~north],
    }


def spreadsheet(table: pd.DataFrame, path: Path) -> None:
    """Write a table as many spreadsheets do: semicolons, decimal commas."""
    table.to_csv(path, index=False, sep=";", decimal=",")


if __name__ == "__main__":
    for name, table in tables().items():
        spreadsheet(table, Path(f"{name}.csv"))
