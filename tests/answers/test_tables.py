"""Tables of an answer in Markdown and LaTeX: read back, they hold what the page holds, whatever labels contain."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import ParameterError, PrivatePanel, SyntheticControl
from dpsc.answers import tables
from dpsc.answers.tables import TextTable
from tests.answers.test_report import gram_result
from tests.making import make_panel

HOSTILE = ["a|b", r"50\% & $x$", "[1] #_{}~^", "<script>", "*x* `y`", "= 3\nlines", "2023-04"]
LATEX = {r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", "{[}": "[", "$-$": "-"}
LATEX |= {"$<$": "<", "$>$": ">", "$|$": "|"} | {f"\\{sign}": sign for sign in "&%$#_{}"}


def from_markdown(text: str) -> list[list[str]]:
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines()]
    return [[re.sub(r"\\(.)", r"\1", cell.strip()) for cell in row] for row in cells if set("".join(row)) - set(":-")]


def from_latex(text: str) -> list[list[str]]:
    lines = [line.removesuffix(r" \\") for line in text.splitlines() if line.endswith(r"\\")]
    signs = re.compile("|".join(map(re.escape, sorted(LATEX, key=len, reverse=True))))
    return [
        [signs.sub(lambda found: LATEX[found[0]], cell).strip() for cell in re.split(r"(?<!\\)&", line)]
        for line in lines
    ]


def test_labels_cannot_break_a_table() -> None:
    rows = [[label, f"-{k}.5 to +{k}", "< 0.001"] for k, label in enumerate(HOSTILE)]
    table = TextTable(["who|", "interval", "p-value"], rows)
    plain = [table.header, *([label.replace("\n", " "), *others] for label, *others in rows)]
    assert from_markdown(table.to_markdown()) == plain
    assert from_latex(table.to_latex()) == plain
    assert r"\<script>" in table.to_markdown()
    assert not re.search(r"(?m)^\[", table.to_latex())  # \\ and \midrule would take it for an option
    assert "2023-04" in table.to_latex()  # a date keeps its hyphen


def test_every_table_that_an_answer_has_is_written() -> None:
    result = gram_result(5.0)
    times = result.target.index
    study = result.repeats.release.study({"north": result.target, "so|uth": result.target}, times[15])
    rows = pd.DataFrame(np.cumsum(np.random.default_rng(0).normal(size=(9, 12)), axis=1), columns=range(2010, 2022))
    panel = PrivatePanel.from_noisy_table(
        rows.set_index("hospital " + rows.index.astype(str)), noise=0.1, guarantee="x"
    )
    of_panel = panel.estimate("hospital 3", treatment_time=2018)
    tried = ["effects", "periods", "without donors", "placebos", "placebos in space"]
    for answer, names in (
        (result, [*tried, "sensitivity"]),
        (of_panel, [*tried, "donors", "sensitivity"]),
        (study, ["effects", "units", "event time", "calendar time"]),
        (SyntheticControl().fit(make_panel()), ["effects", "periods", "donors"]),
    ):
        made: Any = tables.of(answer.files().content())
        with pytest.raises(ParameterError, match=f"it has {', '.join(names)}"):
            answer.to_markdown("weights")
        for name in names:
            written = from_markdown(answer.to_markdown(name))
            assert len(written) > 1
            assert written == [[*row] for row in from_latex(answer.to_latex(name).replace(r"$\bullet$", "●"))]
            assert name not in made or written == [made[name].header, *made[name].rows]
    assert from_markdown(of_panel.to_markdown("donors"))[1][0] == of_panel.leave_one_out().table.index[0]


def test_weights_of_the_classic_methods_are_a_table_the_largest_first() -> None:
    result = SyntheticControl(method="simplex").fit(make_panel())
    weights = replace(result, weights=pd.Series([0.25, 0.0, -0.5], ["b", "c", "a"]))
    assert from_markdown(weights.to_markdown("donors")) == [["donor", "weight"], ["a", "-0.50"], ["b", "0.25"]]
    assert weights.files().content()["donors"] == []  # files name no donor
