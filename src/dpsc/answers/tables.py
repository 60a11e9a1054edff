"""An answer's tables as columns of text: for pages and the terminal, in Markdown and in LaTeX.

Numbers that are read together have the same digits. Each table keeps the values that it was written from: workbooks
have a sheet for each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dpsc.answers.document import Document
from dpsc.answers.words import column, p_text

_PHONE = 50  # letters of a row that a phone shows
_BROKEN = 14  # letters of a longer text in one line
Rows = Sequence[Mapping[str, Any]]


class TextTable(NamedTuple):
    """A table with a header; the first ``labels`` columns are text, the others are numbers.

    ``values`` are the rows that it was written from, with every digit, by the names of ``result.json``.
    """

    header: list[str]
    rows: list[list[str]]
    labels: int = 1
    values: Rows = ()

    @property
    def least_widths(self) -> list[int]:
        """How many letters each column needs at the least: long texts and headers are broken into lines."""
        longest = [max(map(len, name.split()), default=0) for name in self.header]
        for k, cells in enumerate(zip(*self.rows, strict=True)):
            letters = max(map(len, cells))
            longest[k] = max(longest[k], min(letters, _BROKEN) if k < self.labels else letters)
        return longest

    @property
    def is_wide(self) -> bool:
        """Whether it is too wide for a phone."""
        return sum(self.least_widths) + len(self.header) > _PHONE

    def to_markdown(self) -> str:
        r"""Write it with pipes, numbers to the right.

        Examples
        --------
        >>> print(TextTable(["unit", "effect"], [["a|b", "-1.5"]]).to_markdown())
        | unit | effect |
        |:--|--:|
        | a\|b | -1.5 |
        """
        rule = "|" + "|".join(":--" if k < self.labels else "--:" for k in range(len(self.header))) + "|"
        rows = [f"| {' | '.join(map(in_markdown, cells))} |" for cells in (self.header, *self.rows)]
        return "\n".join([rows[0], rule, *rows[1:]])

    def to_latex(self) -> str:
        r"""Write it as a tabular with the lines of booktabs.

        Examples
        --------
        >>> print(TextTable(["unit", "share"], [["R&D", "-5.0%"]]).to_latex())
        \begin{tabular}{lr}
        \toprule
        unit & share \\
        \midrule
        R\&D & $-$5.0\% \\
        \bottomrule
        \end{tabular}
        """
        sides = "l" * self.labels + "r" * (len(self.header) - self.labels)
        rows = [" & ".join(map(in_latex, self.header))]
        for cells in self.rows:
            rows.append(" & ".join(_MINUS.sub("$-$", in_latex(cell)) for cell in cells))
        first, *others = (f"{row} \\\\" for row in rows)
        lines = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", first, r"\midrule", *others, r"\bottomrule"]
        return "\n".join([*lines, r"\end{tabular}"])


_MINUS = re.compile(r"(?<![\w.])-(?=\d)")
_LATEX = str.maketrans(
    {sign: "\\" + sign for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"[": "{[}", "<": "$<$", ">": "$>$", "|": "$|$", "–": "--", "●": r"$\bullet$", "◐": r"$\odot$", "○": r"$\circ$"}
    | {"ε": r"$\varepsilon$", "δ": r"$\delta$", "\n": " "}
)


def in_latex(text: str) -> str:
    """Write a text so that LaTeX shows it as it is."""
    return text.translate(_LATEX)


def in_markdown(text: str) -> str:
    """Write a text so that Markdown shows it as it is, in one line."""
    return re.sub(r"[\\`*_\[\]|]|<(?=[A-Za-z/!?])", r"\\\g<0>", " ".join(text.split()))


def of(document: Document) -> dict[str, TextTable]:
    """Return every table of an answer, by name; those without rows are left out."""
    in_time, in_space = (document["placebos"][kind] or {"placebos": []} for kind in ("in_time", "in_space"))
    if document["kind"] == "study":
        effects = effects_table(document["effects"], [row["of"] for row in document["effects"]])
        found = {
            "effects": effects,
            "after the treatment": contrasts_table(document["contrasts"]),
            "worth": worth_table(document["worth"]),
            "units": by_unit_table(document["by_unit"]),
            "event time": counted_table(document["by_event_time"], "periods_after", "periods since"),
            "calendar time": counted_table(document["by_calendar_time"], "time", "period"),
            "groups": groups_table((document["groups"] or {"effects": []})["effects"]),
            "before": before_table((document["pre_trend"] or {"periods": []})["periods"]),
            "placebos": placebos_table(in_time["placebos"], "periods_earlier", "periods earlier"),
            "placebos in space": placebos_table(in_space["placebos"], "units", "units"),
            "sensitivity": sensitivity_table(document["sensitivity"]),
        }
    else:
        found = {
            "effects": effects_table(document["effects"][:2], ["average", "total"], document["effects"]),
            "after the treatment": contrasts_table(document["contrasts"]),
            "worth": worth_table(document["worth"]),
            "periods": periods_table(document["periods"]),
            "without donors": baselines_table(document),
            "placebos": placebos_table(in_time["placebos"], "treatment_time", "pretended date"),
            "placebos in space": placebos_table(in_space["placebos"], "unit", "unit"),
            "donors": donors_table(document["donors"]),
            "sensitivity": sensitivity_table(document["sensitivity"]),
        }
    return {name: table for name, table in found.items() if table.rows}


def markdown(title: str, text: str, tables: Mapping[str, TextTable]) -> str:
    """Return a title, a text and tables as a file of Markdown."""
    parts = [f"# {in_markdown(title)}", in_markdown(text)]
    for name, each in tables.items():
        parts += [f"## {name.capitalize()}", each.to_markdown()]
    return "\n\n".join(parts) + "\n"


def latex(title: str, text: str, tables: Mapping[str, TextTable]) -> str:
    """Return a title, a text and tables as LaTeX to be read in by a document, whose preamble loads booktabs."""
    parts = [rf"\section*{{{in_latex(title)}}}", in_latex(text)]
    for name, each in tables.items():
        parts += [rf"\subsection*{{{name.capitalize()}}}", each.to_latex()]
    return "\n\n".join(parts) + "\n"


def effects_table(rows: Rows, names: Sequence[str], values: Rows = ()) -> TextTable:
    """Return effects with their intervals, in percent, and with p-values; ``values`` may have more of them."""
    effect, between = _row_by_row(rows, sign=True)
    part, least, most = (
        [_unit(text) for text in column([row[name] for row in rows], sign=True, decimals=1)]
        for name in ("percent", "percent_lower", "percent_upper")
    )
    columns = {"effect": effect, "interval": between, "in percent": part}
    columns |= {"interval ": _between(least, most), "p-value": [p_text(row["p_value"]) for row in rows]}
    return table({"": names} | _known(columns), values=values or rows)


def contrasts_table(found: Document) -> TextTable:
    """Return what was seen after a treatment that ended, and how the effect develops."""
    rows = found["rows"] if found["ended"] else []
    return table({"": [row["of"] for row in rows]} | _effect_columns(rows), values=rows) if rows else TextTable([], [])


def worth_table(found: Document | None) -> TextTable:
    """Return what the total effect is worth, each line with digits of its own."""
    if found is None:
        return TextTable([], [])
    money = f" ({found['currency']})" if found["currency"] else ""
    names = [row["of"] + (money if row["of"].startswith("value") else "") for row in found["rows"]]
    estimate, between = _row_by_row(found["rows"])
    return table(_known({"": names, "estimate": estimate, "interval": between}), values=found["rows"])


def _row_by_row(rows: Rows, sign: bool = False) -> tuple[list[str], list[str]]:
    """Return sizes and intervals, each row with digits of its own: an average and a total have no common scale."""
    cells = [column([row["effect"], row["lower"], row["upper"]], sign=sign) for row in rows]
    return [size for size, _, _ in cells], _between([low for _, low, _ in cells], [high for _, _, high in cells])


def periods_table(rows: Rows) -> TextTable:
    """Return what was, what would have been, and the difference, period by period."""
    paths = [row[name] for row in rows for name in ("observed", "counterfactual")]
    gaps = [row["gap"] for row in rows]
    columns = {
        "period": [str(row["time"]) for row in rows],
        "observed": column([row["observed"] for row in rows], like=paths),
        "counterfactual": column([row["counterfactual"] for row in rows], like=paths),
    }
    columns |= _interval(rows, "counterfactual", "its interval", paths, sign=False)
    columns["effect"] = column(gaps, sign=True)
    treatment = {"treatment": [row["treatment"] for row in rows]} if "treatment" in rows[0] else {}
    return table(columns | _interval(rows, "gap", "its interval ", gaps, sign=True) | treatment, values=rows)


def _interval(rows: Rows, name: str, header: str, like: Sequence[Any], *, sign: bool) -> dict[str, list[str]]:
    if f"{name}_lower" not in rows[0]:
        return {}
    low, high = (column([row[f"{name}_{end}"] for row in rows], sign=sign, like=like) for end in ("lower", "upper"))
    return {header: _between(low, high)}


def sensitivity_table(rows: Rows) -> TextTable:
    """Return the average effect under other choices."""
    if not rows:
        return TextTable([], [])
    labels = {"choice": [row["choice"] for row in rows]}
    if "treatment_time" in rows[0]:
        labels["first treated"] = [row["treatment_time"] for row in rows]
    if "donors_help" in rows[0]:
        labels["do donors help"] = [_LIGHTS[row["donors_help"]] for row in rows]
    before = {"periods before": [str(row["before"]) for row in rows]} if "before" in rows[0] else {}
    return table({**labels, **before, **_effect_columns(rows)}, labels=len(labels), values=rows)


def donors_table(rows: Rows) -> TextTable:
    """Return how much each donor counts, and the average effect without it."""
    if not rows:
        return TextTable([], [])
    weights = column([row["weight"] for row in rows], decimals=2)
    without = _effect_columns(rows) if "effect" in rows[0] else {}
    return table({"donor": [str(row["donor"]) for row in rows], "weight": weights, **without}, values=rows)


def placebos_table(rows: Rows, key: str, header: str) -> TextTable:
    """Return the average effects of earlier dates, or of other units; those that are made up have numbers."""
    if not rows:
        return TextTable([], [])
    names = [str(row.get(key, number)) for number, row in enumerate(rows, start=1)]
    known = {name: [row[name] for row in rows] for name in ("periods", "over_error") if name in rows[0]}
    counts = {"periods": list(map(str, known["periods"]))} if "periods" in known else {}
    over = {"effect over error": column(known["over_error"], sign=True)} if "over_error" in known else {}
    values = [
        {header: name} | {k: v for k, v in row.items() if k != key} for name, row in zip(names, rows, strict=True)
    ]
    return table({header: names, **counts, **_effect_columns(rows), **over}, values=values)


_LIGHTS = {"yes": "● yes", "unclear": "◐ unclear", "no": "○ no", None: "–"}


def by_unit_table(rows: Rows) -> TextTable:
    """Return the effect on each unit, and whether donors help."""
    weights = {"weight": column([row["weight"] for row in rows])} if len({row["weight"] for row in rows}) > 1 else {}
    when = {"first treated": [row["treatment_time"] for row in rows]}
    if any(row.get("treatment_end") for row in rows):
        spans = [(row["treatment_time"], row["treatment_end"]) for row in rows]
        when = {"treated": [f"{first} to {last}" if last else f"from {first} on" for first, last in spans]}
    return table(
        {
            "unit": [str(row["unit"]) for row in rows],
            **when,
            "do donors help": [_LIGHTS[row["donors_help"]] for row in rows],
            "periods": [str(row["periods"]) for row in rows],
            **weights,
            **_effect_columns(rows),
        },
        labels=3,
        values=rows,
    )


def counted_table(rows: Rows, key: str, header: str) -> TextTable:
    """Return effects, and how many units each rests on."""
    return table(
        {
            header: [str(row[key]) for row in rows],
            "units": [str(row["units"]) for row in rows],
            **_effect_columns(rows),
        },
        values=rows,
    )


def groups_table(rows: Rows) -> TextTable:
    """Return the effect on each group of units, and how it differs from that on all others."""
    if not rows:
        return TextTable([], [])
    values = [row[name] for row in rows for name in ("effect", "difference")]
    apart, low, high = (
        column([row[f"difference{end}"] for row in rows], sign=True, like=values) for end in ("", "_lower", "_upper")
    )
    adjusted = {"adjusted p": [p_text(row["adjusted_p"]) for row in rows]} if len(rows) > 2 else {}
    return table(
        {
            "group": [str(row["group"]) for row in rows],
            "units": [str(row["units"]) for row in rows],
            **_effect_columns(rows),
            "minus all others": apart,
            "interval ": _between(low, high),
            "p-value ": [p_text(row["difference_p"]) for row in rows],
            **adjusted,
        },
        values=rows,
    )


def before_table(rows: Rows) -> TextTable:
    """Return forecasts of periods before the treatment, and whether each is shown to be within the bound."""
    if not rows:
        return TextTable([], [])
    return table(
        {
            "periods since": [str(row["periods_after"]) for row in rows],
            **_effect_columns(rows),
            "equivalence p": [p_text(row["equivalence_p"]) for row in rows],
        },
        values=rows,
    )


def _effect_columns(rows: Rows) -> dict[str, list[str]]:
    """Return the effect, its interval and its p-value of each row, with the same digits down each column."""
    values = [row["effect"] for row in rows]
    effect, low, high = (
        column([row[name] for row in rows], sign=True, like=values) for name in ("effect", "lower", "upper")
    )
    p_values = [p_text(row["p_value"]) for row in rows]
    return _known({"effect": effect, "interval": _between(low, high), "p-value": p_values})


_WITHOUT_DONORS = {
    "last value": "the target's last value before the intervention, held constant",
    "line": "a straight line through the target before the intervention",
}


def baselines_table(document: Document) -> TextTable:
    """Return what forecasts without donors would have found, below the answer itself."""
    if not document["baselines"] or document["average_effect"] is None:
        return TextTable([], [])
    values = [document["average_effect"], *document["baselines"].values()]
    names = ["the answer, with donors", *(_WITHOUT_DONORS.get(n, n) for n in document["baselines"])]
    raw = [{"forecast": name, "effect": value} for name, value in zip(names, values, strict=True)]
    return table({"forecast": names, "average effect": column(values, sign=True)}, values=raw)


def table(columns: Mapping[str, Sequence[str]], labels: int = 1, values: Rows = ()) -> TextTable:
    """Return a table, given its columns; two may have the same header but for a space at its end."""
    return TextTable(
        [name.strip() for name in columns], [list(row) for row in zip(*columns.values(), strict=True)], labels, values
    )


def _known(columns: dict[str, list[str]]) -> dict[str, list[str]]:
    """Leave out columns without a single number."""
    return {name: cells for name, cells in columns.items() if any(cell != "–" for cell in cells)}


def _between(lows: Sequence[str], highs: Sequence[str]) -> list[str]:
    return ["–" if "–" in ends else " to ".join(ends) for ends in zip(lows, highs, strict=True)]


def _unit(text: str) -> str:
    return text if text == "–" else f"{text}%"
