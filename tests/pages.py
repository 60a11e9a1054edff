"""Run a page of the documentation as a reader would: its commands and its Python, in order, in one empty folder.

Fenced blocks are what counts:

- ``console``: lines that begin with ``$`` are commands; the lines below one are what it prints. Each of them must be in
  the output, in this order, whatever is between them; ``...`` stands for anything.
- ``python``: run, all blocks of a page in one namespace. A ``text`` block right below is what it prints.
- ``r``: the same, all blocks of a page in one session of R.
- A block below a comment ``<!-- not run: reason -->`` is left alone, and so is every other language.

The folder holds what the pages tell the reader to get: ``practice.py`` and ``practice.dpsc.json``.

    python -m tests.pages        # writes the numbers into the pages anew, where the words around them are the same
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from dpsc.cli import app

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PRACTICE = ("practice.py", "practice.dpsc.json")
PAGES = [
    DOCS / "index.md",
    DOCS / "tutorials" / "get-started.md",
    DOCS / "reference" / "gallery.md",
    *sorted((DOCS / "guides").glob("*.md")),
]
NOT_RUN = ("pip install", "make ", "python -m venv", "source ", "dpsc demo", "dpsc console", "dpsc reproduce")
BLOCK = re.compile(r"(<!-- not run: [^\n]+ -->\n\n?)?^```(\w+)[^\n]*\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
_DONE = "end of the lines"
DRAWN = str.maketrans(dict.fromkeys("│┃━─╇┼╭╮╰╯●", " "))
NUMBER = re.compile(r"[-+]?\d[\d,.]*")


@dataclass(frozen=True)
class Step:
    """Something to run, and the lines that the page shows below it."""

    kind: str
    source: str
    shown: list[str]


def steps(page: str) -> Iterator[Step]:
    """Yield what a page runs."""
    blocks = [(match[2], match[3]) for match in BLOCK.finditer(page) if not match[1]]
    for (kind, source), (below, output) in pairwise([*blocks, ("", "")]):
        if kind in ("python", "r"):
            yield Step(kind, source, output.splitlines() if below == "text" else [])
        elif kind == "console":
            for part in re.split(r"^\$ ", source, flags=re.MULTILINE)[1:]:
                command, *shown = part.replace("\\\n", " ").splitlines()
                yield Step(kind, command.strip(), shown)


def run(page: Path) -> list[tuple[Step, str]]:
    """Run a page in the working folder; return its steps with what each printed."""
    for name in PRACTICE:
        shutil.copy(DOCS / name, name)
    space: dict[str, Any] = {"__name__": "page"}
    try:
        return [(step, output_of(step, space)) for step in steps(page.read_text("utf-8"))]
    finally:
        if "R" in space:
            space["R"].communicate()


def in_r(source: str, space: dict[str, Any]) -> str:
    """Run lines in the page's session of R, where ``dpsc`` and ``python`` are those that run the tests."""
    if "R" not in space:
        path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "200"}
        command = ["R", "--no-echo", "--no-save", "--no-restore"]
        space["R"] = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | path,
        )
    session: subprocess.Popen[str] = space["R"]
    assert session.stdin is not None
    assert session.stdout is not None
    session.stdin.write(f"{source}\ncat('{_DONE}', fill = TRUE)\n")
    session.stdin.flush()
    lines: list[str] = []
    while (line := session.stdout.readline()) != f"{_DONE}\n":
        lines.append(line)
        assert line, f"R stopped: {''.join(lines)}"
    return "".join(lines)


def prepare() -> None:
    """Put all practice files into the working folder."""
    shutil.copy(DOCS / "practice.dpsc.json", "practice.dpsc.json")
    for name, content in practice_files().items():
        Path(name).write_bytes(content)


@cache
def practice_files() -> dict[str, bytes]:
    """Return what ``python practice.py`` writes, which is always the same."""
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.chdir(folder):
            runpy.run_path(str(DOCS / "practice.py"), run_name="__main__")
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def output_of(step: Step, space: dict[str, Any]) -> str:
    """Run a step."""
    if step.kind == "r":
        return in_r(step.source, space)
    if step.kind == "python":
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(step.source, "page", "exec"), space)
        return printed.getvalue()
    words = shlex.split(step.source, comments=True)
    if words == ["python", "practice.py"]:
        for name, content in practice_files().items():
            Path(name).write_bytes(content)
        return ""
    if step.source.startswith(NOT_RUN):
        return "\n".join(step.shown)
    assert words[0] == "dpsc", step.source
    if words[1] == "plan" and "--runs" not in words:
        words += ["--runs", "1"]  # one made-up panel instead of hundreds: a second instead of a minute
    done = CliRunner().invoke(app, words[1:])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    refused = any("dpsc " + words[1] + ":" in line for line in step.shown)  # the page shows a refusal
    assert (done.exit_code != 0) is refused, (step.source, done.output)
    return done.output


def missing_line(shown: list[str], output: str) -> str | None:
    """Return the first line that a page shows and the output does not have at its place."""
    rest = plain(output)
    for line in shown:
        found = re.search(pattern(plain(line)), rest)
        if found is None:
            return line
        rest = rest[found.end() :]
    return None


def plain(text: str) -> str:
    """Return the words alone, so that it does not matter where lines are broken or drawn."""
    return " ".join(text.translate(DRAWN).split())


def pattern(words: str) -> str:
    """Return what finds these words; ``...`` stands for anything."""
    return ".*?".join(map(re.escape, words.split("...")))


def renewed(shown: list[str], output: str) -> list[str]:
    """Return the shown lines with the numbers of the output, where the words around them are the same."""
    rest, lines = plain(output), []
    for line in shown:
        found = re.search(f"({NUMBER.pattern})".join(map(pattern, NUMBER.split(plain(line)))), rest)
        if found is None:
            lines.append(line)
        else:
            lines.append("".join(chain(*zip_longest(NUMBER.split(line), found.groups(), fillvalue=""))))
            rest = rest[found.end() :]
    return lines


def main() -> None:
    """Write the pages anew."""
    for page in PAGES:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for step, output in run(page):
                if missing_line(step.shown, output) is not None:
                    old, new = "\n".join(step.shown), "\n".join(renewed(step.shown, output))
                    page.write_text(page.read_text("utf-8").replace(old, new, 1), "utf-8")
                    print(f"{page.relative_to(ROOT)}: {step.source.splitlines()[0]}")


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    main()
