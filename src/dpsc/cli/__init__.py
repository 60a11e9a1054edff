"""The ``dpsc`` command: one file a command, thin; each imports what it needs when it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def _errors(command: str) -> Iterator[None]:
    """Turn what went wrong into one line on stderr and an exit code: 2 for a mistake, 130 for an interruption."""
    from dpsc.errors import DpscError

    try:
        yield
    except DpscError as problem:
        typer.echo(f"dpsc {command}: {problem}", err=True)
        raise typer.Exit(2) from None
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename else ""
        typer.echo(f"dpsc {command}: {where}{problem.strerror or problem}.", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo(f"dpsc {command}: interrupted.", err=True)
        raise typer.Exit(130) from None


@app.command()
def reproduce(
    figure: Annotated[list[str] | None, typer.Option(help="A figure to draw; may be repeated. All by default.")] = None,
    recipe: Annotated[list[str] | None, typer.Option(help="published, printed or ours; may be repeated.")] = None,
    runs: Annotated[int, typer.Option(min=2, help="Runs a point.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")] = 0,
    out: Annotated[Path, typer.Option(help="The folder for figures, tables and the report.")] = Path("reproduction"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an interrupted run stopped.")] = False,
) -> None:
    """Run the paper's experiments again, under three recipes for the noise."""
    from dpsc.cli.reproduce import run

    with _errors("reproduce"):
        run(figure or [], recipe or [], runs, seed, out, resume)


@app.command()
def audit(
    mechanism: Annotated[list[str] | None, typer.Option(help="What to attack; may be repeated. All if none.")] = None,
    runs: Annotated[int | None, typer.Option(min=1000, help="Runs in bulk on each neighbour.")] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Repeat an audit; it then attacks the seeded twins of the samplers."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the figure and the JSON.")] = Path(
        "audit-output"
    ),
    thorough: Annotated[bool, typer.Option("--thorough", help="A million runs, four budgets; takes long.")] = False,
    show_broken: Annotated[
        bool, typer.Option("--show-broken", help="Also attack mechanisms known to be broken, which must be caught.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Attack every mechanism, and print the loss shown next to the one claimed."""
    from dpsc.cli.audit import run

    with _errors("audit"):
        if not run(mechanism or [], runs, seed, out, thorough=thorough, show_broken=show_broken, as_json=json):
            raise typer.Exit(1)


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
