"""The ``dpsc`` command: one file a command, thin; each imports what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="dpsc",
    help="Differentially private synthetic control.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    """Differentially private synthetic control."""
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"dpsc {installed('dpsc')}")
        raise typer.Exit


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder for the figures and the table.")] = Path("demo-output"),
) -> None:
    """Show the whole story on a generated panel."""
    from dpsc.cli.demo import run

    try:
        run(out)
    except OSError as problem:
        typer.echo(f"dpsc demo: cannot write to {out}: {problem.strerror or problem}. Choose another --out.", err=True)
        raise typer.Exit(2) from None
