"""``dpsc console``: the same without typing commands, on a page in the browser."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli.options import LedgerUrl, add_to, command
from dpsc.errors import DpscError, ParameterError

app = typer.Typer(
    name="console",
    help="Open a page in the browser instead of typing commands: one for analysts, one for custodians.",
    no_args_is_help=True,
)

Port = Annotated[
    int | None, typer.Option(help="The port of the page; a free one by default.", metavar="N", min=1, max=65535)
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Only print the address.")]
Host = Annotated[str | None, typer.Option(hidden=True)]


@command("console analyst", "dpsc console analyst")
def analyst(port: Port = None, no_browser: NoBrowser = False, host: Host = None) -> None:
    """Open releases, ask them about targets, export answers; costs no budget."""
    if host is not None:
        raise ParameterError(
            "--host is refused: the page answers on this machine alone, because it is not encrypted. To use it "
            "from another machine, forward its port: ssh -L PORT:127.0.0.1:PORT this-machine."
        )
    _require_shiny()
    from dpsc.web import server
    from dpsc.web.analyst import app as analyst

    server.serve(analyst.program, port=port, browser=not no_browser, say=typer.echo)


@command("console custodian", "dpsc console custodian --folder releases")
def custodian(
    port: Port = None,
    no_browser: NoBrowser = False,
    host: Host = None,
    ledger: LedgerUrl = None,
    folder: Annotated[
        Path, typer.Option(help="Where releases are written; by default here.", metavar="FOLDER", show_default=False)
    ] = Path(),
) -> None:
    """Check donors, choose the budget, and make releases that are booked. PRIVATE: custodian only."""
    if host is not None:
        raise ParameterError(
            "--host is refused: the custodian's page never answers from elsewhere, because how long it takes to "
            "answer can tell something about donors (SECURITY.md: time). Run it on the machine that holds them."
        )
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ParameterError(f"--folder {folder} is not a folder that can be written to.")
    _require_shiny()
    from dpsc.web import server
    from dpsc.web.custodian import app as custodian

    program = custodian.Program(folder.absolute(), ledger)
    server.serve(program, port=port, browser=not no_browser, say=typer.echo, at_end=program.end)


def _require_shiny() -> None:
    if find_spec("shiny") is None:
        raise DpscError("the console needs Shiny: pip install 'dpsc[console]'.")


add_to(app, analyst, custodian)
