"""``dpsc demo``: every step on three real panels, through the real commands, and what came of them in few words."""

from __future__ import annotations

import contextlib
import io
import math
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.padding import Padding
from rich.text import Text

from dpsc import about
from dpsc.checks import small
from dpsc.cli import terminal
from dpsc.cli.options import Force, command, option
from dpsc.errors import DpscError

if TYPE_CHECKING:
    import pandas as pd

    from dpsc.answers.result import PrivateResult, UnprovenResult

EPSILON, DELTA = 1.0, 1e-6
_CUT = (-20.0, 100.0)  # minutes between which a flight's delay counts
_LATER = ("destination/report.html", "destinations.dpsc.html", "wages.png")
SPENT = f"epsilon {EPSILON:g}, delta {small(DELTA)}"


@command("demo", "dpsc demo --out demo-output")
def demo(
    ctx: typer.Context,
    out: Path = option(
        "The folder for everything it makes.", "--out", "-o", metavar="FOLDER", default=Path("demo-output")
    ),
    force: Force = False,
) -> None:
    """Show every step on a real panel: plan, check, release, estimate, report; and how close it came to the truth."""
    with terminal.output_folder(out, force) as output:
        Story(ctx, output.place, out).tell()


class Story:
    """What the demo shows, in order; everything is made in ``folder``, which is moved to ``out`` at the end."""

    def __init__(self, ctx: typer.Context, folder: Path, out: Path) -> None:
        self._main, self._folder, self._out = ctx.find_root().command.main, folder, out
        self._screen = terminal.console()

    def tell(self) -> None:
        """Tell it."""
        for holder in ("custodian", "analyst"):
            (self._folder / holder).mkdir()
        self._flights()
        self._destinations()
        self._wages()
        self._ending()

    def _flights(self) -> None:
        import pandas as pd

        from dpsc import datasets
        from dpsc.analyst.plan import in_range
        from dpsc.analyst.release import Release
        from dpsc.answers import words
        from dpsc.privacy.guarantee import best_guess

        donors, target = datasets.flights()
        donors.to_csv(self._folder / "custodian" / "donors.csv", index=False)
        target.to_csv(self._folder / "analyst" / "target.csv", index=False)
        n = donors["plane"].nunique()

        crew = f"{datasets.CHANGED} planes have a new ground crew since {datasets.CHANGED_ON}."
        self._screen.print(" ".join((about.WHAT, *about.STORY)))
        self._head("The question.", f"{crew} Are they later?")
        self._screen.print(
            f"The delays are real: {n + datasets.CHANGED:,} planes that fly from New York, every fortnight of 2013. "
            f"The crew is not: we added {datasets.MINUTES_ADDED:g} minutes to the average of the {datasets.CHANGED}, "
            f"so that the answer is known. Protected are the other {n:,} planes, each with its whole year. These "
            "public delays stand in for records such as patients' visits."
        )
        self._screen.print("  custodian/donors.csv   private: one row per plane and fortnight")
        self._screen.print(f"  analyst/target.csv     public: the average of the {datasets.CHANGED}")
        self._screen.print(f"  Commands run in the folder {self._out}.", soft_wrap=True)

        self._head("1. Plan", "(analyst; no donor is touched, nothing is spent)")
        self._run(f"""plan --n 300 --n {n} --averages {datasets.CHANGED} \\
      --target analyst/target.csv --treatment-time {datasets.CHANGED_ON} \\
      --smoothness none --epsilon 0.5 --epsilon 1 --epsilon 2 --runs 6 \\
      -o analyst/plan""")
        table = pd.read_csv(self._folder / "analyst" / "plan" / "plan.csv")
        plan = table[(table["n"] == n) & (table["epsilon"] == EPSILON)].iloc[0]
        self._found(
            f"With {n:,} donors and ε = {EPSILON:g}, expect an error of {in_range('error', plan['error'])} minutes; "
            f"{plan['without_privacy']:.1f} without privacy, {plan['last_value']:.1f} without donors. The "
            f"smallest effect that would be seen: {in_range('detectable', plan['detectable'])} minutes."
        )

        self._head("2. Check", "(custodian; private, nothing is spent)")
        self._run(f"""check custodian/donors.csv --periods analyst/target.csv \\
      --target analyst/target.csv --treatment-time {datasets.CHANGED_ON} \\
      --smoothness none -o custodian/check.html""")
        self._found("READY: nothing needs to be corrected.")

        self._head("3. Release", f"(custodian; spends {SPENT}, once)")
        self._run(f"""release custodian/donors.csv --unit plane --time fortnight \\
      --outcome delay --periods analyst/target.csv --smoothness none \\
      --target analyst/target.csv --treatment-time {datasets.CHANGED_ON} \\
      --epsilon {EPSILON:g} --delta {small(DELTA)} --no-ledger -o analyst/donors.dpsc.json""")
        file = self._folder / "analyst" / "donors.dpsc.json"
        self._found(
            f"{Release.load(file).n:,} planes became one file of {file.stat().st_size / 1000:.0f} kB, safe to share: "
            "someone who knows all other planes and guesses which of two records a plane has is right at most "
            f"{best_guess(EPSILON, DELTA):.0%} of the time; 50% is blind."
        )
        self._found(
            "The demo keeps no ledger (--no-ledger). Enter real releases in one, so that costs add up: begin with "
            "dpsc ledger init."
        )

        self._head("4. Estimate", "(analyst; spends nothing more, for this question or any other)")
        self._run(f"""estimate analyst/donors.dpsc.json analyst/target.csv \\
      --treatment-time {datasets.CHANGED_ON} --units minutes \\
      --title 'Delay of thirty planes, had their ground crew stayed' \\
      -o analyst/answer""")
        found = Release.load(file).estimate(_series(target), datasets.CHANGED_ON)
        self._found(" ".join(words.answer(found, "minutes")))
        self._found(_verdict(found))

        self._head("Was it right?", _against(found, datasets.MINUTES_ADDED, "minutes"))
        self._screen.print("How far each forecast of the path without the new crew is from the true one:")
        for name, minutes in _missed(found, datasets.MINUTES_ADDED).items():
            self._screen.print(f"  {name:<24}{minutes:5.1f} minutes")
        self._screen.print("These planes are typical: the median of 200 random groups.")

    def _destinations(self) -> None:
        from dpsc import datasets
        from dpsc.analyst.private_panel import PrivatePanel
        from dpsc.answers import words

        records, units, _ = datasets.destinations()
        low, high = _CUT
        self._head("5. Protect each flight", "(41 destinations, each made of many flights)")
        self._screen.print(
            f"{len(records):,} flights, each of which stands for a person who comes once. At {datasets.TREATED} "
            f"something began on {datasets.CHANGED_ON}: we added {datasets.MINUTES_ADDED:g} minutes to each flight. "
            f"Protected are the flights, those to {datasets.TREATED} too."
        )
        records.to_parquet(self._folder / "custodian" / "flights.parquet", index=False)
        (self._folder / "custodian" / "units.csv").write_text("\n".join(["destination", *units, ""]), "utf-8")
        self._run(f"""release custodian/flights.parquet --person flight --unit destination \\
      --time fortnight --outcome delay --units custodian/units.csv \\
      --periods analyst/target.csv --bounds {low:g} {high:g} --cells-per-person 1 \\
      --epsilon {EPSILON:g} --delta {small(DELTA)} --no-ledger -o analyst/destinations.dpsc.json""")
        self._run(f"""estimate analyst/destinations.dpsc.json {datasets.TREATED} --units minutes \\
      --treatment-time {datasets.CHANGED_ON} -o analyst/destination""")
        panel = PrivatePanel.load(self._folder / "analyst" / "destinations.dpsc.json")
        found = panel.estimate(datasets.TREATED, datasets.CHANGED_ON)
        self._found(" ".join(words.answer(found, "minutes")))
        self._found(f"{_verdict(found)} In space, {found.placebos('space')}.")
        cut = records.assign(delay=records["delay"].clip(low, high))
        means = cut.pivot_table(index="destination", columns="fortnight", values="delay", aggfunc="mean")
        exact = PrivatePanel.from_noisy_table(means, noise=0.0, guarantee="the exact table, for comparison")
        known = exact.estimate(datasets.TREATED, datasets.CHANGED_ON)
        before = datasets.destinations(treated="none").records["delay"].clip(low, high)
        here = (records["destination"] == datasets.TREATED) & (records["fortnight"] >= datasets.CHANGED_ON)
        fortnight = records["fortnight"][here]
        truth = float((cut["delay"] - before)[here].groupby(fortnight).mean().mean())
        self._found(_against(found, truth, "minutes"))
        self._found(f"From the exact table, which nobody may publish, it would have been {known.att:+.2f}.")

    def _wages(self) -> None:
        from dpsc import datasets
        from dpsc.analyst.release import Release

        self._head("6. An answer not to rely on", "(wages: 5 years, then a training)")
        try:
            donors, target, reference = datasets.wages()
        except DpscError as problem:
            self._found(f"Left out here: {problem}")
            return
        donors.to_csv(self._folder / "custodian" / "wages.csv", index=False)
        target.to_csv(self._folder / "analyst" / "trained.csv", index=False)
        reference.to_csv(self._folder / "analyst" / "us-earnings.csv", index=False)
        self._run(f"""release custodian/wages.csv --unit man --time year --outcome 'log wage' \\
      --periods 1980..1987 --reference analyst/us-earnings.csv \\
      --epsilon {EPSILON:g} --delta {small(DELTA)} --no-ledger -o analyst/wages.dpsc.json""")
        self._run("""estimate analyst/wages.dpsc.json analyst/trained.csv \\
      --treatment-time 1985 -o analyst/wages.png""")
        found = Release.load(self._folder / "analyst" / "wages.dpsc.json").estimate(_series(target), 1985)
        self._found(_verdict(found))
        self._found(_against(found, math.log(1 + datasets.RISE), "(logarithm)"))
        if found.verdict is not None and found.verdict.grade != "yes":
            self._found(
                "Nothing before 1985 shows that these donors can tell what would have happened. Do not decide on "
                "this answer alone."
            )

    def _ending(self) -> None:
        from dpsc import datasets

        men = " and the men" if (self._folder / "analyst" / "wages.dpsc.json").exists() else ""
        self._head("Spent:", f"{SPENT} for the planes, the same for the flights{men}. More questions are free.")
        self._head("Open", "")
        for name in ("answer/report.html", "answer/path.png", "plan/plan.png", "donors.dpsc.html", *_LATER):
            if (self._folder / "analyst" / name).exists():
                self._screen.print(f"  {self._out / 'analyst' / name}", soft_wrap=True)
        self._head("Try next", "")
        release, target = self._out / "analyst" / "donors.dpsc.json", self._out / "analyst" / "target.csv"
        for lines in (
            [["inspect", release]],
            [["estimate", release], [target, "--treatment-time", datasets.CHANGED_ON]],
            [["check", self._out / "custodian" / "donors.csv"], ["--periods", target]],
        ):
            typed = " \\\n      ".join(shlex.join(map(str, line)) for line in lines)
            self._screen.print(f"  {started_as()} {typed}", soft_wrap=True)

    def _head(self, title: str, text: str) -> None:
        self._screen.print()
        self._screen.print(Text.assemble((title, "bold"), f" {text}"))

    def _found(self, text: str) -> None:
        self._screen.print(Padding(Text(text), (0, 0, 0, 2)))

    def _run(self, arguments: str) -> None:
        """Show a command and run it in the folder as if it had been typed there, with its screen kept back."""
        self._screen.print(f"$ dpsc {arguments}", style="dim", soft_wrap=True)
        typed = shlex.split(arguments.replace("\\\n", " "))
        with contextlib.chdir(self._folder), contextlib.redirect_stdout(io.StringIO()):
            code: int | None = self._main(typed, prog_name="dpsc", standalone_mode=False)
        if code:
            raise DpscError(f"the command {typed[0]} failed.")


def _series(table: pd.DataFrame) -> pd.Series[float]:
    """Return a table of periods and numbers as a series."""
    return table.set_index(table.columns[0])[table.columns[1]]


def _verdict(found: PrivateResult | UnprovenResult) -> str:
    assert found.verdict is not None
    return f"Do the donors help? {found.verdict.grade.capitalize()}: {found.verdict.headline}."


def _against(found: PrivateResult | UnprovenResult, truth: float, units: str) -> str:
    """Say how an answer compares with the truth."""
    low, high = found.att_interval()
    holds = "holds" if low <= truth <= high else "does not hold"
    return (
        f"The truth is {truth:+.2f} {units}. The answer is {found.att:+.2f}, and its 95% interval from {low:+.2f} to "
        f"{high:+.2f} {holds} it."
    )


def _missed(found: PrivateResult | UnprovenResult, effect: float) -> dict[str, float]:
    """Return the root mean squared errors of the answer and of forecasts without donors."""
    import numpy as np

    truth = found.observed.to_numpy(dtype=np.float64) - effect
    forecasts = {
        "from the release": found.counterfactual.to_numpy(dtype=np.float64),
        "last value, no donors": found.baselines["last value"].to_numpy(dtype=np.float64),
        "mean before, no donors": np.full(len(truth), found.target.iloc[: found.T0].mean()),
        "straight line, no donors": found.baselines["line"].to_numpy(dtype=np.float64),
    }
    return {name: float(np.sqrt(np.mean((forecast - truth) ** 2))) for name, forecast in forecasts.items()}


def started_as() -> str:
    """Return what to type to start this program again from here: its name alone only if that finds it."""
    called, as_module = sys.argv[0], Path(sys.argv[0]).name == "__main__.py"
    if not as_module and Path(called).stem != "dpsc":
        return "dpsc"
    name, path, rest = ("python", sys.executable, " -m dpsc") if as_module else ("dpsc", called, "")
    found = shutil.which(name)
    is_it = found is not None and os.path.abspath(found) == os.path.abspath(path)
    return (name if is_it else shlex.quote(path)) + rest
