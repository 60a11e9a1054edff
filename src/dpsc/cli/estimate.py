"""``dpsc estimate``: the analyst turns a release and public targets into answers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import terminal
from dpsc.cli.options import Answer, Table, command, option
from dpsc.errors import ParameterError

_several = partial(option, panel="Several treated units")


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked: one target, or the units of a long table, with one date or a date for each."""

    treatment_time: str | None = option("The first treated period, of the target or of all units.")
    unit: str | None = _several("The column that names the units.")
    treatment_time_column: str | None = _several(
        "The column with each unit's own first treated period, the same in all its rows; empty for a unit "
        "that was never treated: it is shown and not used for any number."
    )
    weight_column: str | None = _several("The column with each unit's weight in pooled effects; equal without.")

    def __post_init__(self) -> None:
        if self.treatment_time is not None and self.treatment_time_column is not None:
            raise ParameterError(
                "--treatment-time is one date, for one target or for all units of a table; --treatment-time-column "
                "holds a date for each unit. Give one of them."
            )
        if self.treatment_time is None and self.treatment_time_column is None:
            raise ParameterError(
                "say when the intervention came: --treatment-time 2021-03, or for a table of several units with dates "
                "of their own --unit COLUMN --treatment-time-column COLUMN."
            )
        for name in ("treatment_time_column", "weight_column"):
            if self.unit is None and getattr(self, name) is not None:
                option = "--" + name.replace("_", "-")
                raise ParameterError(
                    f"{option} is for several targets; it needs --unit, the column that names the units."
                )


@command("estimate")
def estimate(
    ctx: typer.Context,
    release: Annotated[Path, typer.Argument(help="The custodian's release file.")],
    target: Annotated[
        Path,
        typer.Argument(
            help="The target: a table with a column of periods and one of numbers. With --unit a long table of several "
            "targets, one row per unit and period."
        ),
    ],
    question: Question,
    table: Table,
    answer: Answer,
) -> None:
    """Answer what targets would have been without the intervention; costs no budget."""
    from dpsc.analyst import ask
    from dpsc.analyst.release import Release
    from dpsc.answers.result import Result
    from dpsc.answers.study import Study
    from dpsc.cli import render
    from dpsc.release.file_format import FORMAT

    terminal.keep_apart(answer.out, release, target)
    if answer.out is not None:
        render.is_file(answer.out)
    if release.suffix != ".json":
        with suppress(OSError), target.open("rb") as file:
            if FORMAT.encode() in file.read(400):
                raise ParameterError("the release comes first, then the target; they are the other way round.")
    loaded = Release.load(release)
    spec, title = table.spec(question.unit), answer.title or ""
    if question.unit is None:
        found: Result | Study = ask.one(
            loaded, target, str(question.treatment_time), spec, level=answer.level, title=title
        )
    else:
        found = ask.several(
            loaded,
            target,
            question.treatment_time,
            spec,
            start=question.treatment_time_column,
            weight=question.weight_column,
            level=answer.level,
            title=title,
        )
    render.hand_over(found, answer, terminal.typed(ctx))
