"""The tables of docs/reference/validation.md and of RESULTS.md, from the files that validation.py wrote."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd

RESULTS = Path(__file__).parent / "results"


def groups() -> str:
    """Return a row for each group of comparisons: ours and theirs of the one nearest to a limit."""
    lines = ["| what (comparisons) | theirs is from | ours | theirs | difference | allowed |", "|---" * 6 + "|"]
    for name, rows in _compared().groupby("group", sort=False):
        row = rows.loc[((rows["ours"] - rows["theirs"] - _middle(rows)).abs() / _half(rows)).idxmax()]
        what = f"{name} ({len(rows)})" if len(rows) > 1 else name
        cells = [what, row["peer"], number(row["ours"]), number(row["theirs"]), small(row["ours"] - row["theirs"])]
        lines.append("| " + " | ".join([*cells, allowed(row)]) + " |")
    return "\n".join(lines)


def table() -> str:
    """Return every comparison: what, our number, theirs, the difference, what is allowed, and the test."""
    lines = [
        "| what | compared with | ours | theirs | difference | of a weight, at most | allowed | test |",
        "|---" * 8 + "|",
    ]
    for _, row in _compared().iterrows():
        cells = [
            row["what"],
            row["peer"],
            number(row["ours"]),
            number(row["theirs"]),
            small(row["ours"] - row["theirs"]),
        ]
        lines.append("| " + " | ".join([*cells, small(row["weights"]), allowed(row), f"`{row['name']}`"]) + " |")
    return "\n".join(lines)


def findings() -> str:
    """Return how many findings of the paper hold, with the noise of the authors' code."""
    verdicts = pd.read_csv(RESULTS / "validation-findings.csv")["verdict"].value_counts()
    counted = [f"{verdicts[verdict]} {word}" for verdict, word in _WORDS.items()]
    return f"Of {verdicts.sum()} findings, {', '.join(counted)}."


_WORDS = {"holds": "hold", "does not hold": "do not", "undecided": "are within the noise of 500 runs"}


def _compared() -> pd.DataFrame:
    return pd.read_csv(RESULTS / "validation.csv")


def _middle(rows: pd.DataFrame) -> Any:
    return (rows["most"] + rows["least"]) / 2


def _half(rows: pd.DataFrame) -> Any:
    return (rows["most"] - rows["least"]) / 2


def number(value: float) -> str:
    """Return four digits behind the point, or five significant ones if that shows more."""
    return f"{value:.4f}" if abs(value) > 0.099 else f"{value:.5g}"


def small(value: float) -> str:
    """Return two digits of a difference; below 1e-9 only that."""
    if math.isnan(value):
        return ""
    return "below 1e-9" if abs(value) < 1e-9 else f"{value:.1e}" if abs(value) < 0.01 else f"{value:.2f}"


def allowed(row: Any) -> str:
    """Return what the test allows ours to be above and below theirs."""
    unit = 100 / row["theirs"] if row["relative"] else 1.0
    least, most = (f"{value * unit:.2g}" for value in (row["least"], row["most"]))
    sign = "%" if row["relative"] else ""
    return f"± {most}{sign}" if row["least"] == -row["most"] else f"{least} to {most}{sign}"
