"""Run everything: points, tables, figures, claims and the report, with the findings in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

import pandas as pd

from dpsc import files
from dpsc.answers import plot, report
from dpsc.evidence.paper import figures as drawing
from dpsc.evidence.paper import points, sweep, tidy
from dpsc.evidence.paper.claims import Judgement, judge
from dpsc.evidence.paper.points import DATA, DELTA, EPSILONS, TITLE, Outcome, Point, Recipe
from dpsc.evidence.paper.sweep import dataset
from dpsc.evidence.paper.tidy import SPECS, Name

WHY_NOT_PRIVATE = (
    "Its noise vectors have a radius of mean a where the theory needs n times that, so their density has a spike at "
    "zero and no finite epsilon holds; its Gaussian noise has variance β instead of β²; it adds the privacy δ where "
    "the algorithm adds curvature; and it scales the data by their own extremes."
)


def paragraphs(
    recipes: Sequence[Recipe], findings: Sequence[Judgement], outcomes: Mapping[Point, Outcome], seed: int
) -> list[str]:
    """Return one paragraph per recipe."""
    texts = {"published": _published, "printed": _printed, "ours": _ours}
    return [" ".join(filter(None, texts[recipe](findings, outcomes, seed))) for recipe in recipes]


def _count(recipe: Recipe, findings: Sequence[Judgement]) -> str:
    counts = Counter(finding.verdict for finding in findings if finding.recipe == recipe)
    if not counts:
        return ""
    total = sum(counts.values())
    return (
        f"Of {total} claims {counts['holds']} hold, {counts['does not hold']} do not hold and "
        f"{counts['undecided']} are within the noise of the runs."
    )


def _published(findings: Sequence[Judgement], outcomes: Mapping[Point, Outcome], seed: int) -> list[str]:
    return [
        "Published code (NOT PRIVATE): the recipe that made the paper's figures.", _count("published", findings),
        "So the figures are what the code computes, but the code protects nobody.", WHY_NOT_PRIVATE,
    ]  # fmt: skip


def _printed(findings: Sequence[Judgement], outcomes: Mapping[Point, Outcome], seed: int) -> list[str]:
    sentences = ["As printed: the same algorithms with the noise that the paper's text and proofs ask for.",
                 _count("printed", findings)]  # fmt: skip
    point = Point("printed", "out", 100, 10, 10.0, 50.0, 50.0)
    other = Point("published", "out", 100, 10, 10.0, 50.0, 50.0)
    if point in outcomes:
        against = f", where the published code shows {outcomes[other].mean:.2g}" if other in outcomes else ""
        sentences.append(
            f"On data between -1 and 1 the error of DPSC_out at n = 100, T0 = 10 and a total ε of 100 is "
            f"{outcomes[point].mean:.3g}{against}."
        )
    best = _best("printed", outcomes)
    if best is not None:
        point, outcome = best
        last = points.donor_free(dataset(DATA["printed"], point.n, point.T0, seed))["last value"]
        sentences.append(
            f"The smallest error over all ε up to {EPSILONS[-1]:g} at λ = T0 is {outcome.mean:.2g} "
            f"(DPSC_{point.method}, n = {point.n}, T0 = {point.T0}), {outcome.mean / last:.2g} times that of the "
            "target's last value. "
            "Besides, DPSC_obj is not proved private: its proof assumes weights that its minimisation does not ensure."
        )
    return sentences


def _best(recipe: Recipe, outcomes: Mapping[Point, Outcome]) -> tuple[Point, Outcome] | None:
    mine = {p: o for p, o in outcomes.items() if p.recipe == recipe and p.lambda_ == p.T0 and p.method != "gram"}
    return min(mine.items(), key=lambda item: item[1].mean) if mine else None


def _ours(findings: Sequence[Judgement], outcomes: Mapping[Point, Outcome], seed: int) -> list[str]:
    sentences = ["Ours: the same two ideas with exact sensitivities and the answer projected instead of the data, and "
                 "the Gram release, all at the same total ε and with a guarantee that holds.", _count("ours", findings),
                 "The claims are about the two-step algorithms; objective perturbation, once it is private, is no "
                 "longer the better one."]  # fmt: skip
    for n, T0 in ((100, 10), (10, 10)):
        epsilon = EPSILONS[0]
        point = Point("ours", "gram", n, T0, 0.0, epsilon / 2, epsilon / 2, DELTA)
        two_step = Point("ours", "out", n, T0, float(T0), epsilon / 2, epsilon / 2)
        if point in outcomes and two_step in outcomes:
            ridge = points.ridge(dataset(DATA["ours"], n, T0, seed), float(T0))
            sentences.append(
                f"With n = {n}, T0 = {T0} and ε = {epsilon:g} the error of the Gram release is "
                f"{outcomes[point].mean:.2g}, of our output perturbation {outcomes[two_step].mean:.2g} and of "
                f"non-private ridge at λ = T0 {ridge:.2g}."
            )
    line = points.donor_free(dataset(DATA["ours"], 10, 10, seed))["straight line"]
    sentences.append(
        f"On these data the error of a straight line through the target, without any donor, is {line:.2g} "
        "(n = T0 = 10). So they cannot show that donors help; the project's benchmarks use factor models and real "
        "panels for that."
    )
    return sentences


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
        images.append({"name": name, "label": spec.label, "caption": spec.caption, "image": report.inline_svg(svg)})

    findings = judge(recipes, figures, outcomes, seed)
    claims = claims_table(findings)
    files.write(out / "claims.csv", files.csv_text(claims.columns, claims.itertuples(index=False, name=None)))
    page = report.render(
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
