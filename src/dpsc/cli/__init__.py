"""The ``dpsc`` command: thin files, each of which imports what it needs when it runs."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dpsc import about
from dpsc.cli import console, ledger
from dpsc.cli.check import check
from dpsc.cli.demo import demo
from dpsc.cli.estimate import compare, estimate
from dpsc.cli.evidence import audit, reproduce
from dpsc.cli.fit import fit
from dpsc.cli.inspect import inspect, merge
from dpsc.cli.options import add_to
from dpsc.cli.plan import plan
from dpsc.cli.release import release
from dpsc.errors import without_passwords


class Commands(TyperGroup):
    """All commands; their context keeps the arguments as typed, which reports quote."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Start a command line."""
        with _passwords_hidden():
            return super().make_context(info_name, args, parent, obj=tuple(args), **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        with _passwords_hidden():
            return super().invoke(ctx)


@contextmanager
def _passwords_hidden() -> Iterator[None]:
    """Keep what a mistaken command line is quoted with from showing a password."""
    try:
        yield
    except Exception as problem:
        message = getattr(problem, "message", None)  # a usage error; typer brings its own copy of click's
        if hasattr(problem, "format_message") and isinstance(message, str):
            problem.message = without_passwords(message)  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    name="dpsc",
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
add_to(app, demo, check, plan, release, inspect, merge, estimate, compare, fit, audit, reproduce)
app.add_typer(ledger.app)
app.add_typer(console.app)


@app.callback(invoke_without_command=True, help="\n\n".join((about.WHAT, *about.STORY)))
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    """Run what is common to all commands."""
    for stream in (sys.stdout, sys.stderr):  # a terminal or file that cannot write ε shows a question mark
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if version:
        from dpsc.version import __version__

        typer.echo(f"dpsc {__version__}")
        raise typer.Exit


def run() -> None:
    """Run the command; an interruption before a command has begun ends it as quietly as one later."""
    try:
        app(prog_name="dpsc")
    except KeyboardInterrupt:
        sys.exit(2)
