"""Run everything: points on all cores, tables, figures, claims and the report, with the findings in words."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

import pandas as pd

from dpsc import files
from dpsc.answers import figures as plot
from dpsc.answers import report
from dpsc.errors import DpscError
from dpsc.evidence.paper import figures as drawing
from dpsc.evidence.paper import points
from dpsc.evidence.paper import recipes as noise
from dpsc.evidence.paper.claims import Judgement, judge
from dpsc.evidence.paper.figures import SPECS, Name
from dpsc.evidence.paper.points import DATA, DELTA, EPSILONS, TITLE, Outcome, Point, Recipe, dataset, generator_for
from dpsc.types import one_thread

Outcomes = dict[Point, Outcome]
_FEW_GRAM_RUNS = 200  # take about as long as starting processes


def run_batch(batch: Sequence[Point], runs: int, seed: int) -> list[Outcome]:
    """Run points that share a recipe and a size. The outcome of a point does not depend on the other points."""
    first = batch[0]
    data = dataset(DATA[first.recipe], first.n, first.T0, seed)
    rngs = [generator_for(seed, point.key) for point in batch]
    with one_thread():
        if first.recipe == "ours":
            times = min(runs, noise.MOST_GRAM_RUNS) if first.method == "gram" else runs
            errors = [noise.simulate_ours(data, point, times, rng) for point, rng in zip(batch, rngs, strict=True)]
        else:
            errors = list(noise.simulate(data, batch, runs, rngs))
    return [Outcome.of(error) for error in errors]


def batches(points: Iterable[Point]) -> list[list[Point]]:
    """Group points that run together, the slowest groups first."""
    groups: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        alone = point if point.recipe == "ours" else None
        groups.setdefault((point.recipe, point.n, point.T0, alone), []).append(point)
    return sorted(groups.values(), key=lambda batch: (batch[0].method != "gram", -batch[0].n * batch[0].T0))


def run(
    points: Sequence[Point],
    runs: int,
    seed: int,
    store: KeptOutcomes,
    *,
    workers: int | None = None,
    on_progress: Callable[[int], None] = lambda count: None,
) -> Outcomes:
    """Return the outcome of every point, saved or new; ``on_progress`` receives how many more are finished."""
    missing = [point for point in dict.fromkeys(points) if point not in store.outcomes]
    on_progress(len(set(points)) - len(missing))
    work = batches(missing)
    for batch, outcomes in _results(work, runs, seed, workers or _processes(work, runs)):
        store.add(batch, outcomes)
        on_progress(len(batch))
    return {point: store.outcomes[point] for point in points}


def _processes(work: list[list[Point]], runs: int) -> int:
    """Return how many processes are worth starting: all cores for Gram releases, which take a while."""
    gram_runs = runs * sum(batch[0].method == "gram" for batch in work)
    return len(os.sched_getaffinity(0)) if gram_runs > _FEW_GRAM_RUNS else 1


def _results(
    work: list[list[Point]], runs: int, seed: int, workers: int
) -> Iterator[tuple[list[Point], list[Outcome]]]:
    """Yield batches as they finish."""
    if workers == 1:
        for batch in work:
            yield batch, run_batch(batch, runs, seed)
        return
    with _pool(workers) as pool:
        futures = {pool.submit(run_batch, batch, runs, seed): batch for batch in work}
        for future in as_completed(futures):
            yield futures[future], future.result()


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Open a pool of processes that ends when the command is interrupted."""
    context = multiprocessing.get_context("spawn")
    with files.no_imports_from_here():  # the pool itself starts a process, which looks after its locks
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_leave_interrupts_to_the_parent)
    try:
        with files.no_imports_from_here():
            yield pool
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        raise


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class KeptOutcomes:
    """Finished points in a file, one JSON line each, so that an interrupted run can continue where it stopped."""

    def __init__(self, path: Path, runs: int, seed: int, *, resume: bool) -> None:
        self.path = path
        self.outcomes: Outcomes = {}
        self._header = json.dumps({"dpsc reproduce": 1, "runs": runs, "seed": seed})
        if resume and path.exists():
            self._read()
        else:
            path.write_text(self._header + "\n", encoding="utf-8")

    def add(self, batch: Sequence[Point], outcomes: Sequence[Outcome]) -> None:
        """Save finished points."""
        with self.path.open("a", encoding="utf-8") as file:
            for point, outcome in zip(batch, outcomes, strict=True):
                file.write(json.dumps({"point": asdict(point), "outcome": asdict(outcome)}) + "\n")
                self.outcomes[point] = outcome

    def _read(self) -> None:
        """Read the finished points; drop a last line that an interruption left incomplete."""
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        if not lines or lines[0] != self._header:
            raise DpscError(
                f"{self.path} was made with another seed or number of runs: give the same --seed and --runs to "
                "resume it, or leave --resume out to start over."
            )
        for line in lines[1:]:
            try:
                entry = json.loads(line)
                point, outcome = Point(**entry["point"]), Outcome(**entry["outcome"])
                if all(isinstance(value, int | float) for value in asdict(outcome).values()):
                    self.outcomes[point] = outcome
            except (ValueError, KeyError, TypeError, RecursionError):
                continue
        kept = [
            json.dumps({"point": asdict(point), "outcome": asdict(outcome)}) for point, outcome in self.outcomes.items()
        ]
        self.path.write_text("\n".join([self._header, *kept]) + "\n", encoding="utf-8")


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
        "Published code (NOT PRIVATE): the recipe that made the paper's figures.",
        _count("published", findings),
        "So the figures are what the code computes, but the code protects nobody.",
        WHY_NOT_PRIVATE,
    ]


def _printed(findings: Sequence[Judgement], outcomes: Mapping[Point, Outcome], seed: int) -> list[str]:
    sentences = ["As printed: the same algorithms with the noise that the paper's text and proofs ask for."]
    sentences.append(_count("printed", findings))
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
    sentences = [
        "Ours: the same two ideas with exact sensitivities and the answer projected instead of the data, and the Gram "
        "release, all at the same total ε and with a guarantee that holds.",
        _count("ours", findings),
        "The claims are about the two-step algorithms; objective perturbation, once it is private, is no longer the "
        "better one.",
    ]
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
    store = KeptOutcomes(out / "points.jsonl", runs, seed, resume=resume)
    outcomes = run(points_of(figures, recipes), runs, seed, store, on_progress=on_progress)

    images = []
    for name in figures:
        table = drawing.table(name, recipes, outcomes, seed)
        files.write(out / f"{name}.csv", table.to_csv(index=False, float_format="%.6g"))
        figure = drawing.draw(name, table)
        svg = plot.as_bytes(figure, "svg")
        files.write(out / f"{name}.svg", svg)
        files.write(out / f"{name}.png", plot.as_bytes(figure, "png"))
        spec = SPECS[name]
        images.append({"name": name, "label": spec.label, "caption": spec.caption, "image": report.inline(svg)})

    findings = judge(recipes, figures, outcomes, seed)
    claims = claims_table(findings)
    files.write(out / "claims.csv", files.csv_text(claims.columns, claims.itertuples(index=False, name=None)))
    page = report.render(
        "reproduction.html",
        runs=runs,
        seed=seed,
        version=version("dpsc"),
        recipes=recipes,
        titles=TITLE,
        figures=images,
        summary=paragraphs(recipes, findings, outcomes, seed),
        findings=[(sentence, list(row)) for sentence, row in groupby(findings, key=lambda f: f.claim.sentence)],
        command=_command(figures, recipes, runs, seed),
    )
    files.write(out / "report.html", page)
    return findings


def claims_table(findings: Sequence[Judgement]) -> pd.DataFrame:
    """Return the findings as a table."""
    columns = ["claim", "figure", "sentence", "recipe", "protection", "verdict", "evidence"]
    rows = []
    for f in findings:
        protection = "NOT PRIVATE" if f.recipe == "published" else TITLE[f.recipe]
        claim = (f.claim.name, f.claim.figures[0], f.claim.sentence)
        rows.append((*claim, f.recipe, protection, f.verdict, f.evidence))
    return pd.DataFrame(rows, columns=columns)


def _command(figures: Sequence[Name], recipes: Sequence[Recipe], runs: int, seed: int) -> str:
    chosen = "" if len(figures) == len(SPECS) else "".join(f" --figure {name}" for name in figures)
    chosen += "" if len(recipes) == len(TITLE) else "".join(f" --recipe {name}" for name in recipes)
    return f"dpsc reproduce{chosen} --runs {runs} --seed {seed}"
