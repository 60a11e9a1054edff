"""The tables of docs/reference/validation.md, from the files that validation.py wrote."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd

RESULTS = Path(__file__).parent / "results"
HEADS = {"studies": "study | method", "fit": "study"}
RELATIVE = ("noise", "opendp", "together", "paper")  # parts whose tolerance is a share of their number


def table(part: str) -> str:
    """Return one part: what, our number, theirs, the difference, what is allowed, and the test."""
    rows = pd.read_csv(RESULTS / "validation.csv")
    rows = rows[rows["part"] == part]
    with_weights = bool(rows["weights"].notna().any())
    head = [HEADS.get(part, "what"), "compared with", "ours", "theirs", "difference"]
    head += ["of a weight, at most"] * with_weights + ["allowed", "test"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * (len(head) + head[0].count("|"))]
    for row in rows.itertuples():
        cells = [row.what, row.peer, number(row.ours), number(row.theirs), small(row.ours - row.theirs)]
        cells += [small(row.weights)] * with_weights + [allowed(row, part), f"`{row.name}`"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def findings() -> str:
    """Return what the paper says it found, and what we find with the noise of the authors' code."""
    lines = ["| the paper says | we find | our numbers | test |", "|---|---|---|---|"]
    for row in pd.read_csv(RESULTS / "validation-findings.csv").itertuples():
        lines.append(f"| {row.what} | {row.verdict} | {row.evidence} | `{row.name}` |")
    return "\n".join(lines)


def number(value: float) -> str:
    """Return four digits behind the point, or five significant ones if that shows more."""
    return f"{value:.4f}" if abs(value) > 0.099 else f"{value:.5g}"


def small(value: float) -> str:
    """Return two digits of a difference; below 1e-9 only that."""
    if math.isnan(value):
        return ""
    return "below 1e-9" if abs(value) < 1e-9 else f"{value:.1e}" if abs(value) < 0.01 else f"{value:.2f}"


def allowed(row: Any, part: str) -> str:
    """Return what the test allows ours to be above and below theirs."""
    unit = 100 / row.theirs if part in RELATIVE else 1.0
    least, most = (f"{value * unit:.2g}" for value in (row.least, row.most))
    sign = "%" if part in RELATIVE else ""
    return f"± {most}{sign}" if row.least == -row.most else f"{least} to {most}{sign}"
