"""``dpsc estimate`` and ``dpsc compare``: the analyst turns a release and public targets into answers, side by side."""

from __future__ import annotations

import json as js
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsc import checks, files
from dpsc.cli import terminal
from dpsc.cli.options import (
    A_UNIT,
    AnswerOptions,
    Force,
    Json,
    TableOptions,
    Title,
    TreatmentOptions,
    command,
    option,
)
from dpsc.errors import ParameterError, ReleaseError

if TYPE_CHECKING:
    from dpsc.analyst.ask import Wishes
    from dpsc.analyst.private_panel import PrivatePanel
    from dpsc.analyst.release import Release
    from dpsc.analyst.releases import Releases
    from dpsc.answers.document import Document
    from dpsc.answers.outcomes import Outcomes
    from dpsc.answers.result import Result
    from dpsc.answers.study import Study
    from dpsc.tables.spec import TableSpec

LARGEST = 50 * 2**20  # bytes of an answer
_several = partial(option, panel="Several treated units")
_column = partial(_several, metavar="COLUMN")


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked: one target, or the units of a long table, with one date or a date for each."""

    treatment_time: str | None = option("The first treated period, of the target or of all units.", metavar="PERIOD")
    unit: str | None = _column(A_UNIT)
    treatment_time_column: str | None = _column(
        "The column of each unit's first treated period, the same in all its rows. Empty for a unit that was never "
        "treated: it is shown and used for no number."
    )
    treatment_end_column: str | None = _column(
        "The column of each unit's last treated period; empty where the treatment goes on."
    )
    treated_column: str | None = option(
        "Instead of dates: the column that is 1 in treated periods and 0 in others, also if the treatment comes and "
        "goes.",
        panel="When it was on",
        metavar="COLUMN",
    )
    weight_column: str | None = _column(
        "The column of each unit's weight in pooled effects, such as its population; equal by default."
    )
    weight_by_size: bool = _several(
        "Weigh units by how many they average (--averages-column), or by their people (private panels).",
        default=False,
    )
    group_column: str | None = _column(
        "The column of each unit's group, such as its region: the effect on each, and a test of difference."
    )
    averages: int | None = option(
        "How many units the target is the average of. Intervals are then shorter, and other units of measurement are "
        "noticed more often.",
        min=1,
    )
    averages_column: str | None = _column(
        "The column of how many units each target is the average of; empty where it is not known."
    )
    pool: str | None = option(
        "The segments that answer: plus,pro; or with their shares in the target: basic=0.3,plus=0.7. All by default."
    )
    exclude: list[str] | None = option(
        "A unit of a private panel that is no donor, because the treatment reached it too. May be repeated."
    )

    def __post_init__(self) -> None:
        if self.treatment_time is not None and self.treatment_time_column is not None:
            raise ParameterError(
                "--treatment-time is one date, for one target or for all units of a table; --treatment-time-column "
                "holds a date for each unit. Give one of them."
            )
        dates = (self.treatment_time, self.treatment_time_column)
        if self.treated_column is not None and any(date is not None for date in (*dates, self.treatment_end_column)):
            raise ParameterError(
                "--treated-column says itself when the treatment is on: leave out --treatment-time, "
                "--treatment-time-column and --treatment-end-column."
            )
        if self.treated_column is None and dates == (None, None):
            raise ParameterError(
                "say when the intervention came: --treatment-time 2021-03, or for a table of several units with dates "
                "of their own --unit COLUMN --treatment-time-column COLUMN."
            )
        if self.averages is not None and self.averages_column is not None:
            raise ParameterError("give --averages for all units or --averages-column for each, not both.")
        if self.weight_by_size and self.weight_column is not None:
            raise ParameterError("give --weight-column or --weight-by-size, not both.")
        for_units = ("treatment_time_column", "treatment_end_column", "weight_column", "weight_by_size", "group_column")
        for name in (*for_units, "averages_column"):
            if self.unit is None and getattr(self, name):
                option = "--" + name.replace("_", "-")
                raise ParameterError(
                    f"{option} is for several targets; it needs --unit, the column that names the units."
                )


@command(
    "estimate",
    "dpsc estimate patients.dpsc.json clinic.csv --treatment-time 2023-04 --averages 40 -o answer",
    "dpsc estimate patients.dpsc.json regions.csv --unit region --treatment-time-column start -o regions.html",
)
def estimate(
    ctx: typer.Context,
    release: Annotated[Path, typer.Argument(help="The custodian's release file.")],
    target: Annotated[
        Path,
        typer.Argument(
            help="A table of periods and numbers; with --unit, a long one of units. Several outcomes: a column for "
            "each; --outcome chooses. Private panel: the name of a unit; with --unit, a table of units and their first "
            "treated periods."
        ),
    ],
    question: Question,
    treatment: TreatmentOptions,
    table: TableOptions,
    answer: AnswerOptions,
) -> None:
    """Answer what a target would have been without the intervention; costs no budget."""
    from dpsc.analyst.ask import Wishes
    from dpsc.analyst.private_panel import PrivatePanel, load
    from dpsc.analyst.releases import Releases
    from dpsc.cli import render
    from dpsc.release.file_format import FORMAT

    terminal.keep_apart(answer.out, release, target)
    if answer.out is not None:
        render.is_file(answer.out)
    if release.suffix != ".json":
        with suppress(OSError), target.open("rb") as file:
            if FORMAT.encode() in file.read(400):
                raise ParameterError("the release comes first, then the target; they are the other way round.")
    if treatment.treatment_end is not None and (question.treatment_end_column or question.treated_column):
        raise ParameterError("--until is one date for all; leave it out where a column says when the treatment is on.")
    wishes = Wishes(level=answer.level, title=answer.title or "", **treatment.said())
    loaded = load(release)
    if isinstance(loaded, PrivatePanel):
        found: Result | Study | Outcomes = _of_panel(loaded, target, question, table.spec(question.unit), wishes)
    elif question.exclude:
        raise ParameterError("--exclude is for private panels; here the custodian has left out the treated donors.")
    elif isinstance(loaded, Releases):
        found = _of_outcomes(loaded, target, question, table, answer, wishes)
    else:
        found = _of_donors(loaded, target, question, table.spec(question.unit), wishes)
    if answer.out is not None:
        with render.place(answer.out, answer.force) as output:
            render.write(found, output.place, command=terminal.typed(ctx), said=answer)
    render.show(found, answer)


def _of_donors(release: Release, target: Path, question: Question, spec: TableSpec, wishes: Wishes) -> Result | Study:
    """Ask a release of one outcome about one target, or about the units of a table."""
    from dpsc.analyst import ask
    from dpsc.periods import match
    from dpsc.tables import reader, target_table
    from dpsc.tables.formats import in_file
    from dpsc.tables.spec import UNIT

    release, date = ask.pooled(release, question.pool), question.treatment_time
    if question.unit is None:
        several = f" If it is a table of several units, say which column names them: {UNIT}."
        series, on = reader.series_beside(target, spec, question.treated_column, advice=several)
        with in_file(target):
            first = None if date is None else match.typed_period(date, release.times, spec.time_format)
            said = wishes.for_one(release.times, spec.time_format)
            return release.estimate(series, first, treated=on, averages=question.averages, **said)
    found = target_table.read(
        target,
        spec,
        start=question.treatment_time_column,
        end=question.treatment_end_column,
        treated=question.treated_column,
        weight=question.weight_column,
        averages=question.averages_column,
        group=question.group_column,
        start_of_all=date,
    )
    with in_file(target):
        if question.averages is not None:
            found = replace(found, averages=dict.fromkeys(found.series, question.averages))
        return ask.of_targets(release, found, spec.time_format, wishes, by_size=question.weight_by_size)


def _of_outcomes(
    releases: Releases, target: Path, question: Question, table: TableOptions, answer: AnswerOptions, wishes: Wishes
) -> Result | Study | Outcomes:
    """Ask about each outcome, or about those that are named, of which a table has a column each."""
    from dpsc.analyst import ask
    from dpsc.answers.outcomes import Outcomes

    names = table.outcome or list(releases)
    if len(names) > 1:
        answer.units_of(names)  # refused before anything is computed
        if answer.brief:
            raise ParameterError("--brief is for one outcome; choose it with --outcome.")
    chosen = {name: releases[name] for name in names}
    spec = replace(table, outcome=None).spec(question.unit)
    if len(names) > 1 and wishes.value_per_unit is not None:
        raise ParameterError("--value-per-unit is that of one outcome; choose it with --outcome.")
    others = [question.unit, question.treatment_time_column, question.treatment_end_column, question.treated_column]
    others += [question.weight_column, question.group_column, question.averages_column]
    found = {
        name: _of_donors(
            release,
            target,
            question,
            ask.column_of(name, releases, target, spec, others, alone=len(chosen) == 1),
            wishes,
        )
        for name, release in chosen.items()
    }
    return (
        found[names[0]] if len(found) == 1 else Outcomes(found, len(releases), releases.guarantee, answer.title or "")
    )


def _of_panel(panel: PrivatePanel, target: Path, question: Question, spec: TableSpec, wishes: Wishes) -> Result | Study:
    """Ask a panel about a unit, or about all units that a table names."""
    from dpsc.analyst import ask
    from dpsc.periods import match
    from dpsc.tables import reader
    from dpsc.tables.formats import in_file
    from dpsc.tables.target_table import treated_units

    if question.averages is not None or question.averages_column is not None:
        raise ParameterError(
            "--averages and --averages-column are for targets of a Gram release; a private panel says itself how many "
            "people are in its units."
        )
    if question.treated_column is not None:
        raise ParameterError("--treated-column is for targets of a Gram release; of a private panel say --until.")
    if question.pool is not None:
        raise ParameterError("--pool is for a release of donors with segments; a private panel has none.")
    others = question.exclude or ()
    if question.unit is None:
        date, name = str(question.treatment_time), str(target)
        said = wishes.for_one(panel.times, spec.time_format)
        if name not in panel.units and not target.exists():
            near = checks.did_you_mean(name, panel.units)
            raise ReleaseError(f"{name!r} is no unit of the panel, and there is no such file.{near}")
        with nullcontext() if name in panel.units else in_file(target):
            asked = name if name in panel.units else reader.series(target, spec)
            first = match.typed_period(date, panel.times, spec.time_format)
            return panel.estimate(asked, first, exclude=others, **said)
    if question.treatment_time_column is None:
        raise ParameterError(
            "of a private panel, --unit needs --treatment-time-column: when each unit was treated first."
        )
    with in_file(target):
        found = treated_units(
            target,
            spec,
            question.treatment_time_column,
            end=question.treatment_end_column,
            weight=question.weight_column,
            group=question.group_column,
        )
        by_size = question.weight_by_size
        return ask.of_targets(panel, found, spec.time_format, wishes, by_size=by_size, exclude=others)


@command("compare", "dpsc compare answer-1 answer-2 -o comparison.html")
def compare(
    ctx: typer.Context,
    answers: Annotated[list[Path], typer.Argument(help="Answers: result.json files, or folders with one.")],
    out: Path | None = option(
        "By its ending a figure (.png, .svg), a page (.html), the table (.csv, .xlsx, .md, .tex), numbers (.json); "
        "without one, a folder with page, figure and table.",
        "--out",
        "-o",
    ),
    title: Title = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Show answers side by side, in one table and one figure: other releases, budgets, targets or dates."""
    from dpsc.answers.compare import of
    from dpsc.cli import render

    paths = [path / "result.json" if path.is_dir() else path for path in answers]
    terminal.keep_apart(out, *paths)
    if len(paths) < 2:
        raise ParameterError("name at least two answers to compare: result.json files, or folders with one.")
    names = _names(answers)
    compared = of([(name, _read(path)) for name, path in zip(names, paths, strict=True)], title or "")
    if out is not None:
        with render.place(out, force) as output, terminal.working("drawing"):
            endings = [out.suffix.lower()] if render.is_file(out) else [".html", ".png", ".svg", ".csv", ".json"]
            for ending in endings:
                place = output.place if render.is_file(out) else output.place / f"comparison{ending}"
                files.write(place, render.as_file(compared, ending, terminal.typed(ctx)))
    if json:
        terminal.print_json(compared.content())
        return
    render.show_comparison(compared)
    if out is not None:
        terminal.console().print(f"\nOpen {out if render.is_file(out) else out / 'comparison.html'}", soft_wrap=True)


def _names(answers: list[Path]) -> list[str]:
    """Return short names that differ: of the file, with as many folders in front as it takes."""
    full = [path.with_suffix("").parts if path.suffix == ".json" else path.parts for path in answers]
    plain = [parts[:-1] if parts[-1] == "result" and len(parts) > 1 else parts for parts in full]
    for length in range(1, max(map(len, plain)) + 1):
        names = ["/".join(parts[-length:]) for parts in plain]
        if len(set(names)) == len(names):
            return names
    raise ParameterError("the same answer is named twice.")


def _read(path: Path) -> Document:
    from dpsc.answers.compare import checked

    text = files.read_text(path, "result.json of dpsc", LARGEST)
    try:
        return checked(js.loads(text), str(path))
    except (ValueError, RecursionError):
        raise ReleaseError(f"{path} is not valid JSON; name the result.json of dpsc estimate or dpsc fit.") from None
