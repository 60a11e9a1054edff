"""The last step of every command that finds an answer: on the terminal, as JSON, and as what the ending of -o says."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import typer

from dpsc import files
from dpsc.analyst.release import Release
from dpsc.answers import excel
from dpsc.answers.report import PAGE, Files
from dpsc.answers.result import Result
from dpsc.answers.study import Study
from dpsc.cli import render, terminal
from dpsc.errors import ParameterError

Finding = Result | Study

_ENDINGS: dict[str, Callable[[Files, str], bytes]] = {
    ".html": lambda made, command: made.html(command),
    ".htm": lambda made, command: made.html(command),
    ".xlsx": lambda made, _: made.xlsx(),
    ".json": lambda made, _: made.json(),
    ".csv": lambda made, _: made.csv(),
    ".png": lambda made, _: made.picture("png"),
    ".svg": lambda made, _: made.picture("svg"),
}
_NOT_WRITTEN = {".pdf", ".xls", ".ods", ".doc", ".docx", ".txt", ".md", ".tsv", ".parquet", ".feather", ".jpg",
                ".jpeg", ".zip"}  # fmt: skip


def is_file(out: Path) -> bool:
    """Tell whether -o names a file, by its ending, or a folder; refuse a kind of file that is not written."""
    ending = out.suffix.lower()
    if ending in _NOT_WRITTEN and not out.is_dir():
        more = " An .html page prints to PDF from any browser." if ending == ".pdf" else ""
        raise ParameterError(
            f"-o {out}: a {ending} file is not written. Name a file that ends in {', '.join(_ENDINGS)}, or a folder."
            + more
        )
    if ending == ".xlsx":
        excel.require_openpyxl()
    return ending in _ENDINGS


def place(out: Path, force: bool) -> AbstractContextManager[terminal.Output]:
    """Give the temporary place of a file or a folder; whether it can be written is checked first."""
    return terminal.output_file(out, force) if is_file(out) else terminal.output_folder(out, force)


def write(found: Finding, where: Path, *, command: str, units: str | None, release: Release | None = None) -> None:
    """Write an answer to a file or into a folder; a release answers further questions for free."""
    made = found.files(units)
    if is_file(where):
        with terminal.working("drawing"):
            files.write(where, _ENDINGS[where.suffix.lower()](made, command))
        return
    if release is not None:
        release.save(where / "release.dpsc.json")
    with terminal.working("drawing"):
        for name, content in made.folder(command):
            files.write(where / name, content)


def save(found: Finding, release: Release | None, path: Path, *, units: str | None) -> None:
    """Write an answer to one file: the release from which it can be had again, or else its numbers."""
    if release is not None:
        release.save(path)
    else:
        files.write(path, found.files(units).json())


def show(found: Finding, out: Path | None, *, units: str | None, as_json: bool) -> None:
    """Print the answer, as a table or as JSON, and say where the files are."""
    if as_json:
        typer.echo(json.dumps(found.files(units).content(), ensure_ascii=False, allow_nan=False))
        return
    if isinstance(found, Study):
        render.show_study(found, units)
    else:
        render.show_result(found, units)
    if out is not None:
        terminal.console().print(f"\nOpen {out if is_file(out) else out / PAGE}", soft_wrap=True)


def hand_over(found: Finding, out: Path | None, *, command: str, units: str | None, force: bool, as_json: bool) -> None:
    """Write and show an answer that has already been found."""
    if out is not None:
        with place(out, force) as output:
            write(found, output.place, command=command, units=units)
    show(found, out, units=units, as_json=as_json)
