"""Run everything: points, tables, figures, claims and the report; each file is written completely or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

import pandas as pd

from dpsc import files
from dpsc.answers import plot, web
from dpsc.paper import figures as drawing
from dpsc.paper import sweep, tidy
from dpsc.paper.claims import Judgement, judge
from dpsc.paper.points import TITLE, Point, Recipe
from dpsc.paper.summary import paragraphs
from dpsc.paper.tidy import SPECS, Name


def points_of(figures: Sequence[Name], recipes: Sequence[Recipe]) -> list[Point]:
    """Return the points that figures need, each once."""
    return list(dict.fromkeys(p for name in figures for recipe in recipes for p in SPECS[name].points(recipe)))


def reproduce(
    out: Path,
    figures: Sequence[Name],
    recipes: Sequence[Recipe],
    *,
    runs: int,
    seed: int,
    resume: bool = False,
    on_progress: Callable[[int], None] = lambda count: None,
) -> list[Judgement]:
    """Write PNG, SVG and CSV of every figure, ``claims.csv`` and ``report.html`` to a folder; return the findings."""
    out.mkdir(parents=True, exist_ok=True)
    store = sweep.KeptOutcomes(out / "points.jsonl", runs, seed, resume=resume)
    outcomes = sweep.run(points_of(figures, recipes), runs, seed, store, on_progress=on_progress)

    images = []
    for name in figures:
        table = tidy.table(name, recipes, outcomes, runs, seed)
        files.write(out / f"{name}.csv", table.to_csv(index=False, float_format="%.6g"))
        figure = drawing.draw(name, table)
        svg = plot.as_bytes(figure, "svg")
        files.write(out / f"{name}.svg", svg)
        files.write(out / f"{name}.png", plot.as_bytes(figure, "png"))
        spec = SPECS[name]
        images.append({"name": name, "label": spec.label, "caption": spec.caption, "image": web.inline_svg(svg)})

    findings = judge(recipes, figures, outcomes, seed)
    claims = claims_table(findings)
    files.write(out / "claims.csv", files.csv_text(claims.columns, claims.itertuples(index=False, name=None)))
    page = web.render(
        "reproduction.html",
        runs=runs, seed=seed, version=version("dpsc"), recipes=recipes, titles=TITLE, figures=images,
        summary=paragraphs(recipes, findings, outcomes, seed),
        findings=[(sentence, list(row)) for sentence, row in groupby(findings, key=lambda f: f.claim.sentence)],
        command=_command(figures, recipes, runs, seed),
    )  # fmt: skip
    files.write(out / "report.html", page)
    return findings


def claims_table(findings: Sequence[Judgement]) -> pd.DataFrame:
    """Return the findings as a table."""
    return pd.DataFrame(
        [
            {"claim": f.claim.name, "figure": f.claim.figure, "sentence": f.claim.sentence, "recipe": f.recipe,
             "protection": "NOT PRIVATE" if f.recipe == "published" else TITLE[f.recipe],
             "verdict": f.verdict, "evidence": f.evidence}
            for f in findings
        ],
        columns=["claim", "figure", "sentence", "recipe", "protection", "verdict", "evidence"],
    )  # fmt: skip


def _command(figures: Sequence[Name], recipes: Sequence[Recipe], runs: int, seed: int) -> str:
    chosen = "" if len(figures) == len(SPECS) else "".join(f" --figure {name}" for name in figures)
    chosen += "" if len(recipes) == len(TITLE) else "".join(f" --recipe {name}" for name in recipes)
    return f"dpsc reproduce{chosen} --runs {runs} --seed {seed}"
