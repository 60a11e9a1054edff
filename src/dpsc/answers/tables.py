"""An answer's tables as columns of text, for pages; numbers that are read together have the same digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dpsc.answers import words
from dpsc.answers.document import Document
from dpsc.answers.words import column, p_text

Rows = Sequence[Mapping[str, Any]]


class Table(NamedTuple):
    """A table with a header; the first ``labels`` columns are text, the others are numbers."""

    header: list[str]
    rows: list[list[str]]
    labels: int = 1


def effects_table(rows: Rows, names: Sequence[str]) -> Table:
    """Return effects with their intervals, in percent, and with p-values."""
    effect, low, high = _alike(rows, ("effect", "lower", "upper"))
    part, least, most = (
        column([row[name] for row in rows], sign=True, decimals=1)
        for name in ("percent", "percent_lower", "percent_upper")
    )
    return _without_empty(Table(
        ["", "effect", "interval", "in percent", "interval", "p-value"],
        [
            [name, effect[k], _between(low[k], high[k]), _unit(part[k]), _between(_unit(least[k]), _unit(most[k])),
             p_text(rows[k]["p_value"])]
            for k, name in enumerate(names)
        ],
    ))  # fmt: skip


def _alike(rows: Rows, names: Sequence[str]) -> list[list[str]]:
    """Return columns with one number of decimals: an average keeps its digits above a total."""
    decimals = max((words.decimals_of(row[names[0]]) for row in rows if row[names[0]]), default=0)
    return [column([row[name] for row in rows], sign=True, decimals=decimals) for name in names]


def periods_table(rows: Rows) -> Table:
    """Return what was, what would have been, and the difference, period by period."""
    of_path = [row[name] for row in rows for name in ("observed", "counterfactual")]
    observed, path = (column([row[name] for row in rows], like=of_path) for name in ("observed", "counterfactual"))
    gap = column([row["gap"] for row in rows], sign=True)
    columns: dict[str, list[str]] = {"period": [str(row["time"]) for row in rows], "observed": observed,
                                     "counterfactual": path}  # fmt: skip
    columns |= _interval(rows, "counterfactual", of_path, sign=False)
    columns["effect"] = gap
    columns |= _interval(rows, "gap", [row["gap"] for row in rows], sign=True)
    return table(columns)


def _interval(rows: Rows, name: str, like: Sequence[Any], *, sign: bool) -> dict[str, list[str]]:
    if f"{name}_lower" not in rows[0]:
        return {}
    low, high = (column([row[f"{name}_{end}"] for row in rows], sign=sign, like=like) for end in ("lower", "upper"))
    what = "its interval" if name == "counterfactual" else "its interval "
    return {what: [_between(*ends) for ends in zip(low, high, strict=True)]}


def sensitivity_table(rows: Rows) -> Table:
    """Return the average effect under other choices."""
    if not rows:
        return Table([], [])
    return table({
        "choice": [row["choice"] for row in rows],
        "first treated": [row["treatment_time"] for row in rows],
        "periods before": [str(row["before"]) for row in rows],
        **_effect_columns(rows),
    }, labels=2)  # fmt: skip


def by_unit_table(rows: Rows) -> Table:
    """Return the effect on each unit, and whether donors help."""
    lights = {"yes": "● yes", "unclear": "◐ unclear", "no": "○ no", None: "–"}
    weights = {"weight": column([row["weight"] for row in rows])} if len({row["weight"] for row in rows}) > 1 else {}
    return table({
        "unit": [str(row["unit"]) for row in rows],
        "first treated": [row["treatment_time"] for row in rows],
        "do donors help": [lights[row["donors_help"]] for row in rows],
        "periods": [str(row["periods"]) for row in rows],
        **weights,
        **_effect_columns(rows),
    }, labels=3)  # fmt: skip


def counted_table(rows: Rows, key: str, header: str) -> Table:
    """Return effects, and how many units each rests on."""
    return table({
        header: [str(row[key]) for row in rows],
        "units": [str(row["units"]) for row in rows],
        **_effect_columns(rows),
    })  # fmt: skip


def _effect_columns(rows: Rows) -> dict[str, list[str]]:
    """Return the effect, its interval and its p-value of each row, with the same digits down each column."""
    values = [row["effect"] for row in rows]
    effect, low, high = (
        column([row[name] for row in rows], sign=True, like=values) for name in ("effect", "lower", "upper")
    )
    columns = {"effect": effect, "interval": [_between(*ends) for ends in zip(low, high, strict=True)],
               "p-value": [p_text(row["p_value"]) for row in rows]}  # fmt: skip
    return {name: cells for name, cells in columns.items() if any(cell != "–" for cell in cells)}


_WITHOUT_DONORS = {
    "last value": "the target's last value before the intervention, held constant",
    "line": "a straight line through the target before the intervention",
}


def baselines_table(document: Document) -> Table:
    """Return what forecasts without donors would have found, below the answer."""
    if not document["baselines"] or document["average_effect"] is None:
        return Table([], [])
    values = [document["average_effect"], *document["baselines"].values()]
    names = ["the answer above, with donors", *(_WITHOUT_DONORS.get(n, n) for n in document["baselines"])]
    return table({"forecast": names, "average effect": column(values, sign=True)})


def table(columns: Mapping[str, Sequence[str]], labels: int = 1) -> Table:
    """Return a table, given its columns."""
    return Table([name.strip() for name in columns], [list(row) for row in zip(*columns.values(), strict=True)], labels)


def _without_empty(table: Table) -> Table:
    """Leave out columns without a single number."""
    kept = [k for k in range(len(table.header)) if any(row[k] != "–" for row in table.rows)]
    return Table([table.header[k] for k in kept], [[row[k] for k in kept] for row in table.rows], table.labels)


def _between(low: str, high: str) -> str:
    return "–" if "–" in (low, high) else f"{low} to {high}"


def _unit(text: str) -> str:
    return text if text == "–" else f"{text}%"
