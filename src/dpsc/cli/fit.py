"""``dpsc fit``: from a panel to an answer in one step, by someone who holds the donors.

One analysis, one algorithm: its guarantee is booked, then the same object runs.
"""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsc import files
from dpsc.cli import terminal
from dpsc.cli.options import (
    A_DELTA,
    A_UNIT,
    COLUMNS,
    AnswerOptions,
    DonorTableOptions,
    IKnow,
    Knowledge,
    Payer,
    TreatmentOptions,
    command,
    moves,
    option,
)
from dpsc.errors import Parameter, ParameterError
from dpsc.tables.spec import KERNEL, TableSpec

if TYPE_CHECKING:
    from dpsc.analyst.release import Release
    from dpsc.answers.result import Result
    from dpsc.custodian.donors.panel import Panel
    from dpsc.custodian.gram.algorithm import CustodianSum, GramRelease
    from dpsc.custodian.weights.classic import SyntheticControl
    from dpsc.custodian.weights.objective import ObjectivePerturbation
    from dpsc.custodian.weights.output import OutputPerturbation

    Algorithm = SyntheticControl | OutputPerturbation | ObjectivePerturbation | GramRelease

_METHODS = ("gram", "output", "objective", "nonprivate")
_SMOOTHNESS = ("high", "mild", "none")
_ONLY_FOR = {
    **dict.fromkeys(("epsilon", "delta"), ("gram", "output", "objective")),
    **dict.fromkeys(("smoothness", "reference", "scale", "like", "like_before"), ("gram",)),
    "split": ("output", "objective"),
    "lambda_": ("output", "objective", "nonprivate"),
}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The panel, who was treated when, and the method with its budget."""

    panel: Annotated[Path | None, typer.Argument(help="The panel: CSV, TSV, Excel, Parquet or Feather.")] = None
    treated_unit: str | None = option("The unit that was treated.")
    treatment_time: str | None = option("The first treated period.", metavar="PERIOD")
    method: str = option("gram, output, objective or nonprivate.", default="gram")
    epsilon: float | None = option("The budget; 1 is usual.")
    delta: float | None = option(A_DELTA)
    split: float | None = option("The share of the budget for the weights (output, objective).")
    lambda_: float | None = option("The paper's ridge penalty, on data in [-1, 1].", "--lambda")


@dataclass(frozen=True, kw_only=True)
class Moves(Knowledge):
    """The same as for a release; but here the target is in the panel, and moves about as much as a donor, too."""

    like: Path | None = moves(
        "Instead of the treated unit before the intervention: another public series that moves about as much as a "
        "donor."
    )
    like_before: str | None = moves(
        "The first treated period of --like; only what is before it counts.", metavar="PERIOD"
    )


@command(
    "fit",
    "dpsc fit wages.csv --unit id --time year --outcome wage --treated-unit 17 --treatment-time 2020 "
    "--epsilon 1 --delta 1e-6 -o answer",
    "dpsc fit states.csv --unit state --time year --outcome sales --treated-unit California --treatment-time 1989 "
    "--method nonprivate",
)
def fit(
    ctx: typer.Context,
    asked: Asked,
    unit: Annotated[str | None, typer.Option(help=A_UNIT, metavar="COLUMN", rich_help_panel=COLUMNS)] = None,
    *,
    table: DonorTableOptions,
    knowledge: Moves,
    payer: Payer,
    i_know: IKnow = False,
    treatment: TreatmentOptions,
    answer: AnswerOptions,
) -> None:
    """Go from a panel to an answer in one step, for someone who holds the donors."""
    from dpsc.analyst.ask import Wishes
    from dpsc.answers.effects import Prices
    from dpsc.cli import render
    from dpsc.custodian.custody.steps import require_reasonable
    from dpsc.custodian.gram.algorithm import GramRelease
    from dpsc.periods.treatment import Treatment

    prices = Prices.of(treatment.value_per_unit, treatment.cost, treatment.currency or "")
    analysis, out, command = Analysis(asked, table.spec(unit), table.bounds, knowledge), answer.out, terminal.typed(ctx)
    require_reasonable(asked.epsilon, i_know)
    kept = _kept_beside(asked.method, out)
    account = payer.account()
    for place in (out, kept):
        terminal.keep_apart(place, asked.panel, knowledge.reference, knowledge.like, *account.files)
    algorithm = analysis.algorithm()
    if asked.method != "nonprivate":
        account.require_ledger()
    with ExitStack() as places:
        replaced = answer.force and out is not None
        beside = None if kept is None else places.enter_context(terminal.output_file(kept, replaced))
        output = None if out is None else places.enter_context(render.place(out, answer.force))
        panel = analysis.panel(algorithm, i_know)
        said = Wishes(**treatment.said()).for_one(panel.times, analysis.spec.time_format)
        Treatment(said["treatment_end"], treatment.gap).phases(panel.times, panel.T0)  # refused before it is paid for
        summed = algorithm.custodian_sum(panel) if isinstance(algorithm, GramRelease) else None  # private, still
        about = {"outcome": panel.outcome, "periods": panel.T}  # the number of donors depends on who is the target
        place = kept if kept is not None else out if out is None or render.is_file(out) else out / "result.json"
        with account.booking(algorithm, output=place, description=about):  # before there is an answer
            result, release = _fit(algorithm, panel, summed, answer, account.payer)
            result = replace(result.during(said["treatment_end"], gap=treatment.gap), prices=prices)
            if kept is not None and beside is not None:  # what is paid for comes first
                if release is None:
                    files.write(beside.place, result.files(answer.units).json())
                else:
                    release.save(beside.place)
                beside.finish()
                more = "; -o DIR makes a report." if out is None else "."
                typer.echo(f"dpsc fit: saved to {kept}{more}", err=True)
            if output is not None:
                try:
                    render.write(result, output.place, command=command, said=answer, release=release)
                except Exception:  # the numbers may be paid for
                    if kept is None:
                        output.finish()
                    typer.echo(
                        f"dpsc fit: the figures could not be made; what was computed is in {kept or out}.", err=True
                    )
                    raise
                output.finish()
    render.show(result, answer)
    if asked.method != "nonprivate":
        account.tell()


def _kept_beside(method: str, out: Path | None) -> Path | None:
    """Return where to save what is paid for: the release, or else the numbers; None if they are in the output anyway.

    A folder has both. A page, a table or a picture has neither, so that a file with them is written beside it.
    """
    from dpsc.cli import render

    gram = method == "gram"
    if method == "nonprivate":
        return None
    if out is None:
        return Path(f"dpsc-fit-{secrets.token_hex(4)}.{'dpsc.json' if gram else 'json'}")
    if not render.is_file(out) or (out.suffix.lower() == ".json" and not gram):
        return None
    return out.with_suffix(".dpsc.json" if gram else ".json")


def _fit(
    algorithm: Algorithm, panel: Panel, summed: CustodianSum | None, answer: AnswerOptions, payer: str | None
) -> tuple[Result, Release | None]:
    """Return the answer and, from a Gram release, the release, which answers further questions at no cost."""
    from dpsc.custodian.gram.algorithm import GramRelease
    from dpsc.custodian.weights.classic import SyntheticControl
    from dpsc.custodian.weights.output import OutputPerturbation

    level, title = answer.level, answer.title or ""
    if isinstance(algorithm, SyntheticControl):
        with terminal.working("fitting"):
            return replace(algorithm.fit(panel), title=title), None
    if isinstance(algorithm, GramRelease):
        with terminal.working("releasing"):
            release = algorithm.release(summed, dataset=payer)
            return release.estimate(panel.target, panel.treatment_time, level=level, title=title), release
    draws = panel.n * (1 if isinstance(algorithm, OutputPerturbation) else 2)
    with terminal.progress("drawing noise", draws) as advance:
        return replace(algorithm.fit(panel, on_progress=advance), level=level, title=title), None


@dataclass(frozen=True)
class Analysis:
    """One analysis: everything that determines an answer, all of it public, with our own error messages."""

    asked: Asked
    spec: TableSpec
    bounds: tuple[float, float] | None = None
    knowledge: Knowledge = Moves()

    def __post_init__(self) -> None:
        asked, method = self.asked, self.asked.method
        needed = {"data": asked.panel, "unit": self.spec.unit, "treated_unit": asked.treated_unit}
        for name, value in (needed | {"treatment_time": asked.treatment_time}).items():
            if value in (None, ""):
                raise ParameterError(f"{Parameter(name)} is needed.")
        for name, value, allowed in (
            ("method", method, _METHODS),
            ("smoothness", self.knowledge.smoothness, _SMOOTHNESS),
        ):
            if value is not None and value not in allowed:
                raise ParameterError(f"{Parameter(name)} {value[:40]!r} is not one of {', '.join(allowed)}.")
        given = asdict(asked) | asdict(self.knowledge)
        for name, methods in _ONLY_FOR.items():
            if given[name] is not None and method not in methods:
                raise ParameterError(f"{Parameter(name)} belongs to --method {' or '.join(methods)}, not to {method}.")
        if self.spec.missing == "kernel" and method != "gram":
            raise ParameterError(f"{KERNEL} belongs to --method gram, not to {method}.")
        if method in ("output", "objective") and self.bounds is None:
            raise ParameterError(
                f"--method {method} needs --bounds LO HI, public bounds of the outcome: its noise is calibrated to "
                "them. Take them from what is known of such outcomes, never from the data; --method gram needs none."
            )
        if method != "nonprivate" and asked.epsilon is None:
            raise ParameterError(f"--method {method} needs --epsilon, the privacy budget; start with --epsilon 1.")
        if method == "gram" and asked.delta is None:
            raise ParameterError("--method gram needs --delta, well below one over the number of donors: --delta 1e-6.")

    def panel(self, algorithm: Algorithm, i_know: bool) -> Panel:
        """Read the panel; what an algorithm would refuse of it is refused before anything is booked."""
        from dpsc.custodian.custody.steps import require_small_delta
        from dpsc.custodian.gram.algorithm import GramRelease
        from dpsc.release.matrix import require_public_labels
        from dpsc.tables.formats import in_file

        with terminal.working(f"reading {self.asked.panel}"):
            panel = self.read()
        if isinstance(algorithm, GramRelease):
            with in_file(self.knowledge.reference or str(self.asked.panel)):
                algorithm.reference_for(panel.times)
                require_public_labels(panel.outcome, panel.times)
        require_small_delta(self.asked.delta, panel.n, i_know)
        return panel

    def read(self) -> Panel:
        """Read the panel."""
        from dpsc.custodian.donors.donor_files import Files
        from dpsc.custodian.donors.frames import label_of
        from dpsc.custodian.donors.panel import Panel
        from dpsc.periods import match
        from dpsc.tables import reader, series
        from dpsc.tables.formats import in_file

        asked, spec, path = self.asked, self.spec.complete(), Path(str(self.asked.panel))
        index = None
        if spec.periods is not None:
            path_to_subtract = series.reference(self.knowledge.reference, self.spec)
            index = reader.typed_periods(spec.periods, path_to_subtract, spec.time_format)
        donors = Files(path, spec, periods=index, held=True)
        missing = spec.missing
        if missing is None and index is not None and asked.method != "gram":
            missing = "interpolate"
        with in_file(path):
            matrix = donors.matrix()
            return Panel.of(
                matrix,
                treated_unit=label_of(matrix.units, str(asked.treated_unit), Parameter("treated_unit", "")),
                treatment_time=match.typed_period(str(asked.treatment_time), donors.times, spec.time_format),
                bounds=self.bounds,
                missing=missing,
                outcome=donors.outcome,
            )

    def algorithm(self) -> Algorithm:
        """Return the algorithm with its parameters, which knows what it will promise before it sees data."""
        from dpsc.custodian.gram.algorithm import GramRelease
        from dpsc.custodian.weights.classic import SyntheticControl
        from dpsc.custodian.weights.objective import ObjectivePerturbation
        from dpsc.custodian.weights.output import OutputPerturbation
        from dpsc.tables import series

        names = ("epsilon", "delta", "split", "lambda_")
        options: dict[str, Any] = {name: value for name in names if (value := getattr(self.asked, name)) is not None}
        if self.asked.method == "nonprivate":
            return SyntheticControl(**options)
        if self.asked.method == "output":
            return OutputPerturbation(**options)
        if self.asked.method == "objective":
            return ObjectivePerturbation(**options)
        known = self.knowledge
        return GramRelease(
            **options,
            smoothness=known.smoothness or "high",  # type: ignore[arg-type]
            reference=series.reference(known.reference, self.spec),
            scale=known.each(1)[0]["scale"],
            like=series.like(known.like, known.like_before, self.spec),
        )
