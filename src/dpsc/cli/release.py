"""``dpsc release``: the custodian turns donors into one private file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsc import files
from dpsc.checks import printable
from dpsc.cli import terminal
from dpsc.cli.options import (
    A_DELTA,
    A_UNIT,
    COLUMNS,
    DONORS_ARE,
    DonorTableOptions,
    Force,
    Groups,
    IKnow,
    Json,
    Knowledge,
    Payer,
    RowsOptions,
    SegmentOptions,
    command,
    option,
    require_for_people,
)
from dpsc.errors import Parameter, ParameterError

if TYPE_CHECKING:
    from dpsc.analyst.private_panel import PrivatePanel
    from dpsc.analyst.release import Release
    from dpsc.analyst.releases import Releases
    from dpsc.custodian.custody.panels import PanelChoices
    from dpsc.custodian.custody.steps import Choices, SeveralChoices
    from dpsc.custodian.gram.algorithm import CustodianSum
    from dpsc.custodian.gram.dask import DaskDonors
    from dpsc.custodian.gram.sources import FileDonors
    from dpsc.custodian.groups.people_files import FilePeople
    from dpsc.privacy.guarantee import Guarantee
    from dpsc.tables.spec import TableSpec
    from dpsc.types import JsonObject, Times


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The file to write, and what it may cost."""

    out: Path = option("The release file to write.", "--out", "-o", default=MISSING)
    epsilon: float | None = option("The budget; 1 is usual. Needed.")
    delta: float | None = option(f"{A_DELTA} Needed.")
    settings: Path | None = option(
        "What several sites agreed on, so that their releases add up: a file from dpsc plan --settings. It may suggest "
        "--epsilon, --delta and --missing."
    )
    append: Path | None = option(
        "For people in groups: an earlier panel. The declared periods follow its last one, are added to it and have "
        "their own cost. -o may name the same file, with --force."
    )

    share: list[float] | None = option(
        "How several outcomes share the budget, once for each: 2 and 1 give two thirds to the first (of mu "
        "squared, which adds up). Equal by default."
    )

    def require_one_outcome(self, specs: Sequence[TableSpec], table: DonorTableOptions) -> None:
        """Refuse what goes with one outcome only if there are several, and the other way round."""
        if len(specs) == 1:
            if self.share is not None:
                raise ParameterError(f"{Parameter('share')} belongs to several outcomes.")
            return
        from dpsc.release.outcomes import require_outcomes

        require_outcomes(table.outcome or [])
        if table.wide:
            raise ParameterError(
                "a wide table holds one outcome; give a long one, with a column for each, or in Python the donors of "
                "each by its name."
            )
        for name, value in (("settings", self.settings), ("bounds", table.bounds)):
            if value is not None:
                raise ParameterError(
                    f"{Parameter(name)} is for one outcome; release each with its own, and a share of the budget."
                )

    def page(self, without: bool) -> Path | None:
        """Return where the page of a release goes: beside it, ending in .html instead of .json."""
        if without:
            return None
        if self.out.suffix.lower() in (".html", ".htm"):
            raise ParameterError(f"-o {self.out}: name the release {self.out.stem}.dpsc.json; its page goes beside it.")
        return self.out.with_name(self.out.name.removesuffix(".json") + ".html")


@dataclass(frozen=True, kw_only=True)
class How:
    """How the release is made, and what else is written and said."""

    exclude: list[str] | None = option("A unit to leave out, such as the treated one. May be repeated.")
    provenance: str = option("A text for whoever reads the release; published as it is.", default="")
    engine: str = option("auto, memory, stream (larger than memory) or dask.", default="auto")
    scheduler: str | None = option("The address of a Dask scheduler.")
    workers: int | None = option("Workers of a local Dask cluster; all cores by default.", min=1)
    grid_bits: int | None = option("Bits of the whole numbers: 18; fewer above 60 million donors.")
    custodian_notes: bool = option("Print private notes: units whose names look alike.", default=False)
    no_page: bool = option("Write no page for whoever receives the release.", default=False)
    dry_run: bool = option("Say what would happen: no noise, no booking, no file.", default=False)
    i_know: IKnow = False
    force: Force = False
    json: Json = False


@dataclass(frozen=True)
class Task:
    """One release on its way: what is read and was asked, who pays, and where its page goes."""

    rows: Path
    asked: Asked
    how: How
    account: terminal.Account
    page: Path | None

    def keep_apart(self, *inputs: Path | None) -> None:
        """Refuse to write over what is read."""
        for place in (self.asked.out, self.page):
            terminal.keep_apart(place, self.rows, *inputs, *self.account.files)

    def require_free(self) -> None:
        """Refuse places that are taken."""
        for place in (self.asked.out, self.page):
            if place is not None:
                terminal.require_free(place, self.how.force)

    def done(self, made: Release | Releases | PrivatePanel, what: str, read_with: str | None) -> None:
        """Write the page beside a release, and say what was made of which rows and what it cost."""
        from dpsc.cli import render
        from dpsc.release.file_format import sha256

        out = self.asked.out
        digest = sha256(out)
        page = _page(made, out, self.page, digest)
        told = "" if page is None else f", and {page}, which tells whoever receives it what it is"
        safe = f"Written to {out}{told}. It is safe to share; the {what} stay with you."
        render.show_release(made, out, digest, self.how.json, safe, page=None if page is None else str(page))
        if read_with is not None:
            typer.echo(f"\n{self.rows} was read with {read_with}.", err=True)
        self.account.tell()

    def rehearsed(self, told: JsonObject, promise: Guarantee | None) -> None:
        """Say what a release would be, what it would cost, and where it would be written."""
        booking, out, page = self.account.would_cost(promise), self.asked.out, self.page
        if self.how.json:
            terminal.print_json(told | {"booking": booking, "file": str(out), "page": page and str(page)})
            return
        donors = "donors" in told
        rows, what = ("donor", f"{told['donors']:,} donors") if donors else ("record", f"{told['units']} units")
        screen = terminal.console()
        head = f"DRY RUN: every {rows} was read; no noise was drawn, nothing was booked or written."
        screen.print(head, style="bold")
        and_page = "" if page is None else f", with {page} for whoever receives it"
        for line in (
            f"{what}, {told['periods']} periods from {told['first_period']} to {told['last_period']}",
            *([] if told["read_with"] is None else [f"read with {told['read_with']}"]),
            f"would promise: {told['guarantee']}",
            *_noise(told),
            *booking,
            f"would be written to {out}{and_page}",
        ):
            screen.print(f"  {line}", soft_wrap=True)


@command(
    "release",
    "dpsc release patients.csv --unit patient --time month --outcome cost --periods 2021-01..2023-12 "
    "--target clinic.csv --treatment-time 2023-04 --epsilon 1 --delta 1e-6 -o patients.dpsc.json",
    "dpsc release visits.csv --person patient --unit hospital --time month --outcome cost --bounds 0 300 "
    "--units North,South,East,West --periods 2022-01..2022-12 --epsilon 1 --delta 1e-6 -o panel.dpsc.json",
)
def release(
    where: Annotated[str, typer.Argument(metavar="DONORS", help=DONORS_ARE)],
    asked: Asked,
    unit: Annotated[str, typer.Option(help=A_UNIT, metavar="COLUMN", rich_help_panel=COLUMNS)],
    table: DonorTableOptions,
    rows: RowsOptions,
    segments: SegmentOptions,
    knowledge: Knowledge,
    groups: Groups,
    how: How,
    payer: Payer,
) -> None:
    """Turn donors, or records of people in groups, into one small private file; spends budget."""
    from dpsc.custodian.custody import steps
    from dpsc.custodian.gram.sources import donors_in

    steps.require_reasonable(asked.epsilon, how.i_know)
    printable("provenance", how.provenance)
    terminal.require_no_password("--provenance", how.provenance)
    donors = rows.place(where)
    if groups.person is not None:
        require_for_people(asdict(segments))
        _of_people(donors, asked, unit, table, knowledge, groups, how, payer)
        return
    if asked.append is not None:
        raise ParameterError(f"{Parameter('append')} belongs to {Parameter('person')}, the column that names people.")
    task = Task(donors, asked, how, payer.account(), asked.page(how.no_page))
    task.keep_apart(knowledge.reference, knowledge.like, asked.settings)
    specs = [segments.spec(groups.spec(spec)) for spec in table.specs(unit)]
    asked.require_one_outcome(specs, table)
    each, sources = {}, {}
    for said, known in zip(specs, knowledge.each(len(specs)), strict=True):
        each[said.name] = chosen = steps.of_options(
            said,
            epsilon=asked.epsilon,
            delta=asked.delta,
            settings=asked.settings,
            grid_bits=how.grid_bits,
            **known,
        )
        steps.require_reasonable(chosen.algorithm.epsilon, how.i_know)  # which settings may have suggested
        sources[said.name] = donors_in(
            donors,
            replace(said, missing=chosen.missing, by=None if chosen.segments is None else chosen.segments.by),
            chosen.periods,
            labels=None if chosen.segments is None else chosen.segments.labels,
            bounds=table.bounds,
            exclude=how.exclude or (),
            engine=how.engine,  # type: ignore[arg-type]
            scheduler=how.scheduler,
            workers=how.workers,
        )
    source, several = next(iter(sources.values())), None
    if len(each) > 1:
        several = steps.SeveralChoices.of(each, asked.share)
    task.require_free()
    if how.dry_run:
        parts = each if several is None else several.parts
        rehearsed = [_dry_run(sources[name], part, how.i_know) for name, part in parts.items()]
        terminal.tell_the_custodian(f"the table was {source.files.how}")
        promise = chosen.algorithm.guarantee if several is None else several.promise
        tried = rehearsed[0] | {"guarantee": str(promise)}
        if several is not None:
            own = [{name: one[name] for name in ("guarantee", "noise_share")} for one in rehearsed]
            tried |= {"outcomes": dict(zip(parts, own, strict=True))}
        task.rehearsed(tried, promise)
        return
    task.account.require_ledger()
    made = _made(sources, several or chosen, task, knowledge.reference or asked.settings)
    task.done(made, "donors", source.files.table.as_understood)
    if how.custodian_notes:
        _tell_the_custodian(source.files.custodian_units_alike())


def _of_people(
    records: Path,
    asked: Asked,
    unit: str,
    table: DonorTableOptions,
    knowledge: Knowledge,
    groups: Groups,
    how: How,
    payer: Payer,
) -> None:
    """Turn records of people into a private table of units and periods."""
    from dpsc.analyst.private_panel import PrivatePanel
    from dpsc.custodian.custody import panels as steps
    from dpsc.custodian.groups.sources import people_in

    require_for_people(asdict(knowledge) | {"settings": asked.settings, "share": asked.share, "exclude": how.exclude})
    if len(table.outcome or ()) > 1:
        raise ParameterError(
            "a panel of people has one outcome: release each in a file of its own, with its share of the budget."
        )
    require_for_people({"grid_bits": how.grid_bits, "custodian_notes": how.custodian_notes})
    task = Task(records, asked, how, payer.account(), asked.page(how.no_page))
    task.keep_apart()
    terminal.keep_apart(task.page, asked.append)
    grown = None if asked.append is None else PrivatePanel.load(asked.append)
    said = groups.spec(table.spec(unit))
    chosen = steps.of_options(
        said,
        epsilon=asked.epsilon,
        delta=asked.delta,
        bounds=table.bounds,
        grown=grown,
        i_know=how.i_know,
        **groups.said(),
    )
    people = people_in(
        records,
        said,
        chosen.units,
        chosen.periods,
        engine=how.engine,  # type: ignore[arg-type]
        scheduler=how.scheduler,
        workers=how.workers,
    )
    task.require_free()
    steps.opened(people, chosen, task.account.payer)
    if how.dry_run:
        task.rehearsed(*_dry_run_of_people(people, chosen, task.account.payer))
        return
    task.account.require_ledger()
    with terminal.output_file(asked.out, how.force) as output:
        with terminal.passes() as tell:
            summed = chosen.algorithm.custodian_sum(people, on_progress=tell)
        where = asked.out, output.place, output.finish
        made = steps.booked(summed, chosen, task.account, where, provenance=how.provenance)
    task.done(made, "records", people.table.as_understood)


def _made(
    donors: Mapping[str, FileDonors | DaskDonors],
    chosen: Choices | SeveralChoices,
    task: Task,
    reference: Path | None,
) -> Release | Releases:
    """Add up the donors, book what the release costs, make it and write it."""
    from dpsc.custodian.custody import steps

    out, how = task.asked.out, task.how

    def add_up(name: str, source: FileDonors | DaskDonors, part: Choices) -> CustodianSum:
        of_several = f" ({name})" if len(donors) > 1 else ""
        with terminal.passes() as shown:

            def tell(doing: str, rows: int, of: int | None) -> None:
                shown(doing + of_several, rows, of)

            steps.opened(source, part, reference, tell)
            return steps.added_up(source, part, tell, i_know=how.i_know)

    with terminal.output_file(out, how.force) as output:
        where = task.account, (out, output.place, output.finish)
        said: JsonObject = {"n_is_public": not how.exclude, "provenance": how.provenance}
        if isinstance(chosen, steps.SeveralChoices):
            return chosen.booked(steps.each_added_up(donors, chosen, add_up), *where, **said)
        ((name, source),) = donors.items()
        return chosen.booked(add_up(name, source, chosen), *where, **said)


def _page(made: Release | Releases | PrivatePanel, out: Path, page: Path | None, digest: str) -> Path | None:
    """Write the page that goes out with a release. The release is whole and paid for, whatever becomes of its page."""
    if page is None:
        return None
    try:
        from dpsc.analyst.private_panel import PrivatePanel
        from dpsc.release import describe, describe_panel

        say = describe_panel if isinstance(made, PrivatePanel) else describe
        files.write(page, say.page(made, out.name, digest))
    except (Exception, KeyboardInterrupt):  # whoever stops it here would think that there is no release
        typer.echo(f"The page could not be written. The release is whole: dpsc inspect {out} --page {page}", err=True)
        return None
    return page


def _dry_run(donors: FileDonors | DaskDonors, chosen: Choices, i_know: bool) -> JsonObject:
    """Do everything that a release does except draw noise, book and write; return what it would be, public numbers.

    The scale, for which a release may count donors with noise, is left out.
    """
    from dpsc.custodian.custody.steps import require_small_delta, require_worth_having

    algorithm = chosen.algorithm
    with terminal.passes() as tell, donors.files.watched(tell):
        algorithm.reference_for(donors.times)
        summed = replace(algorithm, scale=algorithm.scale or 1.0, like=None).custodian_sum(donors, on_progress=tell)
    n, T = summed.n, len(summed.times)
    require_small_delta(algorithm.delta, n, i_know)
    require_worth_having(algorithm, n, T, i_know)
    with terminal.working("looking at the periods"):
        misfit = donors.custodian_misfit()
        terminal.tell_the_custodian(misfit and misfit.note)
    return {
        "dry_run": True,
        "donors": n,
        **_span(summed.times),
        "guarantee": str(algorithm.guarantee),
        "noise_share": algorithm.noise_share(n, T, algorithm.scale_share(n, summed.times)),
        "read_with": donors.files.table.as_understood,
    }


def _dry_run_of_people(
    people: FilePeople, chosen: PanelChoices, payer: str | None
) -> tuple[JsonObject, Guarantee | None]:
    """Do the same with people, but for noise; return public numbers, and what the release would promise."""
    from dpsc.custodian.custody import panels
    from dpsc.release.describe_panel import enough_people

    algorithm, (block,) = chosen.algorithm, panels.rehearsed(people, chosen, payer).blocks
    with terminal.passes() as tell:
        summed = replace(algorithm, person_bound_quantile=None).custodian_sum(people, on_progress=tell)
    misfit = panels.custodian_misfit_of(summed)
    terminal.tell_the_custodian(misfit and misfit.note)
    terminal.tell_the_custodian(f"the table was {people.how}")
    promise = algorithm.guarantee_for(block.rule)
    return {
        "dry_run": True,
        "statistic": block.rule.statistic,
        "units": len(block.units),
        **_span(block.times),
        "guarantee": str(promise),
        "noise_of_a_sum": block.deviation * block.rule.part,
        "noise_may_be_less": block.lengths is not None,
        "enough_people": enough_people(block) if block.rule.counts_people else None,
        "read_with": people.table.as_understood,
    }, promise


def _span(times: Times) -> JsonObject:
    from dpsc.periods.dates import period_name

    return {"periods": len(times), "first_period": period_name(times[0]), "last_period": period_name(times[-1])}


def _noise(told: JsonObject) -> list[str]:
    """Say how large the noise would be, of each outcome or in each cell."""
    from dpsc.answers.words import number
    from dpsc.release.describe import noise_of

    if "donors" in told:
        n, lines = told["donors"], []
        for name, own in told.get("outcomes", {}).items():
            lines += [f"{name} alone: {own['guarantee']}", f"{name}, noise: {noise_of(own['noise_share'], n)}"]
        return lines or [f"noise: {noise_of(told['noise_share'], n)}"]
    noise = number(float(f"{told['noise_of_a_sum']:.2g}"))
    said = f"{'at most ' if told['noise_may_be_less'] else ''}a standard deviation of {noise} in "
    if told["enough_people"] is None:
        return [f"noise: {said}every cell"]
    return [
        f"noise: {said}a cell's sum, divided by its people for the {told['statistic']}; cells with fewer than about "
        f"{told['enough_people']:,} people would be missing"
    ]


def _tell_the_custodian(units_alike: int) -> None:
    """Print what is private: it goes to stderr, only if it was asked for, and says whom it is for."""
    note = (
        f"{units_alike} units have labels that differ only in case, spaces or Unicode form. If two of them are one "
        "person, the guarantee does not hold for that person: correct the labels and start from the beginning"
        if units_alike
        else "no two units have labels that differ only in case, spaces or Unicode form"
    )
    terminal.tell_the_custodian(note)
