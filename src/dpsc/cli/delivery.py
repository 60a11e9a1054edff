"""The last step of every command that finds an answer: on the terminal, as JSON, and as files in a folder."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from dpsc import files
from dpsc.answers.report import report, to_json
from dpsc.answers.result import Result
from dpsc.cli import common, screens
from dpsc.gram.release import Release


def write(result: Result, folder: Path, *, command: str, units: str | None, release: Release | None = None) -> None:
    """Write every file of an answer, the numbers first; a release answers further questions at no cost."""
    save(result, None, folder / "result.json", units=units)
    if release is not None:
        release.save(folder / "release.dpsc.json")
    with common.working("drawing"):
        report(result, folder, units=units, command=command)


def save(result: Result, release: Release | None, path: Path, *, units: str | None) -> None:
    """Write an answer to one file: the release from which it can be had again, or else its numbers."""
    if release is not None:
        release.save(path)
    else:
        files.write(path, json.dumps(to_json(result, units), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def show(result: Result, out: Path | None, *, units: str | None, as_json: bool) -> None:
    """Print the answer, as a table or as JSON, and say where the files are."""
    if as_json:
        typer.echo(json.dumps(to_json(result, units), ensure_ascii=False, allow_nan=False))
        return
    screens.show_result(result, units)
    if out is not None:
        common.console().print(f"\nOpen {out / 'report.html'}", soft_wrap=True)


def hand_over(result: Result, out: Path | None, *, command: str, units: str | None, force: bool, as_json: bool) -> None:
    """Write and show an answer that has already been found."""
    if out is not None:
        with common.output_folder(out, force) as output:
            write(result, output.place, command=command, units=units)
    show(result, out, units=units, as_json=as_json)
