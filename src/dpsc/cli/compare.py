"""``dpsc compare``: answers side by side."""

from __future__ import annotations

import json as js
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsc import files
from dpsc.cli import terminal
from dpsc.cli.options import Force, Json, Title, command
from dpsc.errors import ParameterError, ReleaseError

if TYPE_CHECKING:
    from dpsc.answers.document import Document

LARGEST = 50 * 2**20  # bytes of an answer


@command("compare")
def compare(
    ctx: typer.Context,
    answers: Annotated[
        list[Path], typer.Argument(help="Answers of dpsc estimate or fit: result.json files, or folders with one.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Where to write, by its ending: the figure (.png, .svg), a page (.html), the table (.csv, .xlsx), the "
            "numbers (.json), or a folder with page, figure and table.",
        ),
    ] = None,
    title: Title = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Show answers side by side: two releases, two budgets, two targets, two dates; one table, one figure."""
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
