"""What ``dpsc compare`` does: read answers, show them side by side, and write what the ending of -o says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from dpsc import files
from dpsc.answers import compare
from dpsc.answers.compare import Comparison
from dpsc.cli import render, terminal
from dpsc.cli.delivery import is_file
from dpsc.errors import ParameterError, ReleaseError

LARGEST = 50 * 2**20  # bytes of an answer


def run(answers: list[Path], out: Path | None, *, command: str, title: str, force: bool, as_json: bool) -> None:
    """Compare answers; write before showing."""
    paths = [path / "result.json" if path.is_dir() else path for path in answers]
    terminal.keep_apart(out, *paths)
    if len(paths) < 2:
        raise ParameterError("name at least two answers to compare: result.json files, or folders with one.")
    names = _names(answers)
    compared = compare.of([(name, _read(path)) for name, path in zip(names, paths, strict=True)], title)
    if out is not None:
        place = terminal.output_file if is_file(out) else terminal.output_folder
        with place(out, force) as output, terminal.working("drawing"):
            _write(compared, output.place, command)
    if as_json:
        terminal.print_json(compared.content())
        return
    render.show_comparison(compared)
    if out is not None:
        terminal.console().print(f"\nOpen {out if is_file(out) else out / 'comparison.html'}", soft_wrap=True)


def _names(answers: list[Path]) -> list[str]:
    """Return short names that differ: of the file, with as many folders in front as it takes."""
    full = [path.with_suffix("").parts if path.suffix == ".json" else path.parts for path in answers]
    plain = [parts[:-1] if parts[-1] == "result" and len(parts) > 1 else parts for parts in full]
    for length in range(1, max(map(len, plain)) + 1):
        names = ["/".join(parts[-length:]) for parts in plain]
        if len(set(names)) == len(names):
            return names
    raise ParameterError("the same answer is named twice.")


def _read(path: Path) -> compare.Document:
    text = files.read_text(path, "result.json of dpsc", LARGEST)
    try:
        return compare.checked(json.loads(text), str(path))
    except (ValueError, RecursionError):
        raise ReleaseError(f"{path} is not valid JSON; name the result.json of dpsc estimate or dpsc fit.") from None


def _write(compared: Comparison, where: Path, command: str) -> None:
    endings: dict[str, Callable[[], bytes]] = {
        ".png": lambda: compared.picture("png"), ".svg": lambda: compared.picture("svg"),
        ".html": lambda: compared.html(command), ".htm": lambda: compared.html(command), ".csv": compared.csv,
        ".json": compared.json, ".xlsx": compared.xlsx,
    }  # fmt: skip
    if is_file(where):
        files.write(where, endings[where.suffix.lower()]())
        return
    for ending in (".html", ".png", ".svg", ".csv", ".json"):
        files.write(where / f"comparison{ending}", endings[ending]())
