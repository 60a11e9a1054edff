"""What the commands share: how errors end, where output goes, what is shown meanwhile. Imports nothing heavy."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from dpsc import checks, files
from dpsc.custodian.custody import payer
from dpsc.errors import DpscError, DpscWarning, Parameter, ParameterError, UnwiseError, rendered, without_passwords

if TYPE_CHECKING:
    from dpsc.ledger import Ledger
    from dpsc.types import OnProgress

Choice = TypeVar("Choice", bound=str)

_OPTION_OF = {"data": "PANEL", "donors": "--exclude", "T0": "--before", "h": "--after"}


def as_option(parameter: Parameter) -> str:
    """Write a parameter of the library as the option that sets it."""
    return _OPTION_OF.get(parameter.name, parameter.option)


_asked_to_stop = threading.Event()
_FAR = 46  # characters
_EVERY = 10.0  # seconds between lines about progress, where there is no terminal


class Interrupted(KeyboardInterrupt):
    """A request to stop. After a plain KeyboardInterrupt inside an import, Python ends with its own exit code."""


def require_not_interrupted() -> None:
    """Stop if that was asked for: Python drops an interruption that comes while it collects garbage."""
    if _asked_to_stop.is_set():
        raise Interrupted


@contextmanager
def errors(command: str) -> Iterator[None]:
    """Turn what went wrong into one message on stderr and exit code 2."""

    def show(message: Warning | str, category: type[Warning], *_: object) -> None:
        if issubclass(category, DpscWarning):  # other warnings are about internal arithmetic
            typer.echo(f"dpsc {command}: {without_passwords(rendered(str(message), as_option))}", err=True)

    def stop(*_: object) -> None:
        _asked_to_stop.set()
        raise Interrupted

    try:
        _asked_to_stop.clear()
        signal.signal(signal.SIGTERM, stop)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, stop)
        with warnings.catch_warnings():
            warnings.showwarning = show  # type: ignore[assignment]
            yield
    except DpscError as problem:
        message = problem.text(as_option)
        if isinstance(problem, UnwiseError):
            message += " To go on anyway, add --i-know."
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename else ""
        message = without_passwords(f"{where}{problem.strerror or problem}.")
    except KeyboardInterrupt:
        message = "interrupted; no half-written file was left. What a ledger has booked counts as spent."
    except typer.Exit:
        raise
    except Exception as problem:
        if os.environ.get("DPSC_TRACEBACK"):
            raise
        typer.echo(
            f"dpsc {command}: an unexpected error ({type(problem).__name__}). Its message and traceback are not shown, "
            "because they might quote a donor; the custodian can see them with DPSC_TRACEBACK=1.",
            err=True,
        )
        raise typer.Exit(1) from None
    else:
        return
    typer.echo(f"dpsc {command}: {message}", err=True)
    raise typer.Exit(2)


def choose(option: str, given: Sequence[str], known: Sequence[Choice]) -> list[Choice]:
    """Check names and return them in the order of ``known``; all of those if none was given."""
    for name in given:
        if name not in known:
            raise ParameterError(
                f"--{option} {name} is not one of {', '.join(known)}.{checks.did_you_mean(name, known)}"
            )
    return [name for name in known if name in given or not given]


def keep_apart(out: Path | None, *inputs: Path | None) -> None:
    """Refuse to write over what is being read, the ledger included, whatever --force says.

    Files are compared, not names: links and files inside a folder that is read count too.
    """
    if out is None:
        return
    read = [file for path in inputs if path is not None for file in [path, *(path.rglob("*") if path.is_dir() else ())]]
    if files.same_file(out, read) is not None:
        raise DpscError(f"{out} is read by this command; write to another place.")
    inside = os.path.realpath(out) + os.sep
    if out.is_dir() and any(os.path.realpath(file).startswith(inside) for file in read if file.exists()):
        raise DpscError(f"{out} holds files that are read by this command; write to another place.")


def require_no_password(option: str, value: str) -> None:
    """Refuse a text with a password in it, which would be printed or published."""
    if without_passwords(value) != value:
        raise ParameterError(f"{option} holds a password; leave it out, because what you write there is shown.")


class Output:
    """Where a command writes: a temporary place, and a way to put it where it belongs."""

    def __init__(self, place: Path, move: Callable[[], None]) -> None:
        self.place, self._move, self._done = place, move, False

    def finish(self) -> None:
        """Move what was written to where it belongs, once."""
        if not self._done:
            require_not_interrupted()
            self._move()
            self._done = True


@contextmanager
def output_folder(path: Path, force: bool, option: str = "-o") -> Iterator[Output]:
    """Give a temporary folder to write into, and move its files to ``path`` at the end; on failure leave nothing.

    Whether ``path`` may be written is checked first, before any budget is spent.
    """
    require_no_password(option, str(path))
    if path.exists() and not path.is_dir():
        raise DpscError(f"{path} is a file; name a folder with {option}.")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise DpscError(
            f"{path} already has files in it; choose another folder with {option}, or add --force to replace them."
        )
    if path.is_dir() and not os.access(path, os.W_OK):
        raise DpscError(f"cannot write to {path}: permission denied. Choose another place with {option}.")

    def move(folder: Path) -> None:
        for made in sorted(folder.iterdir()):
            if (path / made.name).is_dir():
                shutil.rmtree(path / made.name)
            os.replace(made, path / made.name)

    with files.beside(path) as folder:
        output = Output(folder, lambda: move(folder))
        try:
            path.mkdir(exist_ok=True)
            yield output
            output.finish()
        finally:
            with suppress(OSError):  # if nothing was put into it
                path.rmdir()


def require_free(path: Path, force: bool, option: str = "-o") -> None:
    """Refuse a place that no file may be written to."""
    require_no_password(option, str(path))
    if path.is_dir():
        raise DpscError(f"{path} is a folder; name a file with {option}.")
    if path.exists() and not force:
        raise DpscError(f"{path} already exists; choose another name with {option}, or add --force to replace it.")
    if path.is_file():
        with path.open("rb") as file:
            is_database = file.read(16) == b"SQLite format 3\0"
        if is_database:
            raise DpscError(f"{path} is a database, perhaps a ledger; choose another name with {option}.")


@contextmanager
def output_file(path: Path, force: bool, option: str = "-o") -> Iterator[Output]:
    """Give a temporary name to write to, and move it to ``path`` at the end; on failure leave nothing."""
    require_free(path, force, option)
    with files.beside(path) as folder:
        output = Output(folder / path.name, lambda: os.replace(folder / path.name, path))
        yield output
        output.finish()


def console(*, stderr: bool = False) -> Console:
    """Return a console to which everything is text: names and labels are never markup, numbers are not coloured."""
    return Console(stderr=stderr, highlight=False, soft_wrap=False, markup=False, emoji=False)


def blocks(screen: Console, *parts: RenderableType | None) -> None:
    """Print what there is of these, with an empty line between."""
    for k, part in enumerate(part for part in parts if part is not None):
        if k:
            screen.print()
        screen.print(part)


def tell_the_custodian(note: str | None) -> None:
    """Print what is private, if there is anything: on stderr, in red on a terminal, and with whom it is for."""
    if note is not None:
        said = f"PRIVATE, for the custodian only: {rendered(note, as_option)}."
        typer.secho(said, fg=typer.colors.RED, err=True)


@contextmanager
def working(description: str) -> Iterator[None]:
    """Show on a terminal, on stderr, that something is going on."""
    if not sys.stderr.isatty():
        yield
        return
    with console(stderr=True).status(Text(description)):
        yield


def print_json(value: object, indent: int | None = None) -> None:
    """Print a value for a program to read, on one line unless it is indented for people too."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=indent))


def typed(ctx: typer.Context) -> str:
    """Return the command line as it can be typed again, but for passwords; the context keeps the arguments."""
    return shlex.join(["dpsc", *map(without_passwords, ctx.obj)])


@contextmanager
def progress(description: str, total: int | None) -> Iterator[Callable[..., None]]:
    """Show how far one thing is, and give a function that moves it, by one or by more."""
    with passes(private=False) as tell:
        tell(description, 0, total)
        yield lambda steps=1: tell(description, steps, total)


@contextmanager
def passes(*, private: bool = True) -> Iterator[OnProgress]:
    """Show on stderr how far each of several things is: a bar on a terminal, else a line every ten seconds."""
    from rich.progress import BarColumn, Progress, Task, TaskID, TextColumn
    from rich.table import Column

    class Far(TextColumn):
        def render(self, task: Task) -> Text:
            return Text(how_far(task.completed, task.total, task.speed))

    screen = console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(None),
        Far("", table_column=Column(min_width=_FAR, no_wrap=True)),
    )
    bars: dict[str, TaskID] = {}
    told = time.monotonic()
    with Progress(*columns, console=screen, disable=not screen.is_terminal, transient=True, expand=True) as shown:

        def tell(doing: str, rows: int, of: int | None) -> None:
            nonlocal told
            if doing not in bars:
                for before in bars.values():
                    shown.update(before, visible=False)
                bars[doing] = shown.add_task(doing, total=of)
            shown.advance(bars[doing], rows)
            task = next(task for task in shown.tasks if task.id == bars[doing])
            if task.total is not None and task.completed > task.total:  # it was only about so many
                task.total = None  # rich's update takes None for no change
            if not screen.is_terminal and time.monotonic() - told >= _EVERY:
                told = time.monotonic()
                line = f"{doing}: {how_far(task.completed, task.total, task.speed)}"
                typer.echo(f"For the custodian only: {line}" if private else line, err=True)

        yield tell


def how_far(done: float, of: float | None, each_second: float | None) -> str:
    """Say how much is done, how fast it goes and how long it will take.

    Examples
    --------
    >>> how_far(1_200_000, 5_000_000, 400_000.0)
    '1,200,000 of 5,000,000, 400,000/s, 10 s left'
    >>> how_far(1_200_000, None, None)
    '1,200,000'
    """
    parts = [f"{done:,.0f}" if of is None else f"{done:,.0f} of {of:,.0f}"]
    if each_second:
        parts.append(f"{each_second:,.0f}/s" if each_second >= 1 else f"{60 * each_second:,.1f}/min")
        if of is not None:
            minutes, seconds = divmod(round((of - done) / each_second), 60)
            parts.append(f"{minutes} min {seconds:02} s left" if minutes else f"{seconds} s left")
    return ", ".join(parts)


_INIT = "dpsc ledger init NAME --epsilon 2 --delta 1e-6"


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


class Account(payer.Account):
    """A data set in a ledger; a user at a terminal is asked which, if it has several, and whether to go on without."""

    def require_ledger(self) -> None:
        """Refuse to release without a ledger, unless that was said or a user at a terminal says it now."""
        if self.ledger is not None or self._silent:
            return
        why = "there is no ledger, so nobody adds up what is released about these donors"
        if not _is_terminal():
            raise ParameterError(f"{why}: make one with {_INIT}, or add {payer.NO_LEDGER} to book nothing.")
        if not typer.confirm(f"{why[0].upper()}{why[1:]}. Release without one?", err=True):
            raise ParameterError(f"nothing was read and nothing was spent. To make a ledger: {_INIT}.")

    def tell(self) -> None:
        """Say on stderr what the release cost and what is spent and left."""
        if self.entry is not None:
            typer.echo("\n" + "\n".join(self.told()), err=True)

    def _one_of(self, ledger: Ledger, names: Sequence[str]) -> str:
        if not _is_terminal():
            return super()._one_of(ledger, names)
        listed = ", ".join(map(repr, names))
        return ledger.dataset(typer.prompt(f"Whose budget is used? The ledger has {listed}", err=True)).name
