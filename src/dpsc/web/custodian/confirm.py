"""The pages Confirm and Hand over: a release is made as the command makes it, from a desk that is ready, and once."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path

from dpsc import checks, files
from dpsc.analyst.private_panel import PrivatePanel, load_with_hash
from dpsc.checks import command, options
from dpsc.custodian.custody.payer import Account
from dpsc.errors import Parameter, ParameterError
from dpsc.release import describe, describe_panel, dossier
from dpsc.web.custodian.book import BookPage
from dpsc.web.custodian.budget import BudgetPage
from dpsc.web.custodian.data import DataPage
from dpsc.web.custodian.form import FIELDS, LABELS, Form, Work, commands
from dpsc.web.custodian.kind import Kind, Order
from dpsc.web.server import render

_PAID_BY = {
    "Budget": ("epsilon", "delta", "n", "people", "change"),
    "Data": ("scale", "like_before", "like_file", "reference_file"),
    "Confirm": ("file_name", "recipient", "purpose"),
}
FILE_NAME = Parameter("file_name")
_TRIED = 100  # names of a release


@dataclass(frozen=True)
class Made:
    """A release that was made and paid for; all of it is public."""

    file: Path
    page: Path | None
    record: Path | None
    dossier: Path | None
    told: tuple[str, ...]
    recipient: str
    rows: str
    one: str
    command: str


@dataclass(frozen=True, repr=False)
class Request:
    """Everything that a release needs, taken from the desk at the moment of spending."""

    ledger: str
    order: Order
    dataset: str
    purpose: str
    recipient: str
    use: str
    out: Path
    kind: Kind
    command: str


class ConfirmPage:
    """What the release costs and whom it is for, and the release that was made.

    Attributes
    ----------
    made : Made or None
    emptied : int
        How often the typed name was taken away.
    """

    def __init__(self, form: Form, data: DataPage, budget: BudgetPage, book: BookPage, folder: Path) -> None:
        self._form, self._data, self._budget, self._book = form, data, budget, book
        self.folder = folder
        self.made: Made | None = None
        self.emptied = 0

    def spend(self) -> None:
        """Make the release: only from a desk that is ready, and once."""
        form = self._form
        with form.changing():
            if form.phase != "open" or form.work.what or self.to_do:
                return
            with form.about("spend", *self._data.files):
                request = self.request()
                form.phase = "working"
                step, end = partial(self._release, request), partial(self._released, request)
                if not form.begin("Making the release", "spend", self._data.files, step, end):
                    form.phase = "open"

    def begin_anew(self) -> None:
        """Make room for another release; the last one stays where it was written."""
        form = self._form
        with form.changing():
            if form.phase == "done":
                form.phase, form.note, self.made, self._budget.agreed = "open", "", None, False
                self._take_name_away()
                form.judge()

    @property
    def to_do(self) -> list[str]:
        """What must be done before the release can be paid for; empty if it can."""
        return self.to_do_until("Confirm")

    def to_do_until(self, page: str) -> list[str]:
        """Return what must be done on a page and those before it."""
        found = []
        for name, missing in self._missing.items():
            found += missing
            if name == page:
                break
        return found

    @property
    def done(self) -> list[str]:
        """The pages that are done: a page is done only if those before it are."""
        form, missing = self._form, self._missing
        if form.phase == "done":
            return list(missing)
        asked = any(name in form.problems for name in form.kind.fields)
        still = {"Data": asked, "Budget": not self._budget.agreed, "Confirm": True}
        return list(takewhile(lambda page: not missing[page] and not still.get(page), missing))

    @property
    def _missing(self) -> dict[str, list[str]]:
        """What must still be done, by page and in their order."""
        form, checked, seen = self._form, self._data.checked, self._book.seen
        found: dict[str, list[str]] = {page: [] for page in ("Data", "Check", "Budget", "Confirm")}
        if self._data.donors is None:
            found["Data"].append(f"Drop the {form.kind.rows}, under “Data”.")
        elif checked is None:
            found["Data"].append(f"Check the {form.kind.rows}, under “Data”.")
        elif not self._data.current:
            found["Data"].append("Check again, under “Check”: something was changed since.")
        elif not checked.seen.ready:
            found["Check"].append("Correct what the check found, under “Check”.")
        if not seen.dataset:
            missing = "Choose the data set in the ledger" if seen.datasets else "Enter a data set with its budget"
            found["Budget"].append(f"{missing}, under “Budget”.")
        for page, names in _PAID_BY.items():
            found[page] += [f"Correct “{LABELS[name]}”, under “{page}”." for name in names if name in form.problems]
        unsaid = [FIELDS[name].label.lower() for name in ("recipient", "purpose") if not form[name]]
        found["Confirm"] += [f"Say {label}." for label in unsaid]
        if seen.dataset and form["typed_name"] != seen.dataset:
            found["Confirm"].append(f"Type {seen.dataset} to spend.")
        return found

    def out(self) -> Path:
        """Return the file that the release would be written to."""
        typed = self._form["file_name"]
        if typed:
            return self.folder / f"{typed.removesuffix('.json').removesuffix('.dpsc')}.dpsc.json"
        stem = Path(self._data.name).name.split(".")[0].lstrip("-") or self._form.kind.rows
        names = [stem, *(f"{stem}-{number}" for number in range(2, _TRIED))]
        places = [self.folder / f"{name}.dpsc.json" for name in names]
        return next((place for place in places if not any(map(os.path.lexists, beside(place)))), places[-1])

    # What is shown -----------------------------------------------------------------------------------------------

    def cost(self) -> str:
        """Show what the release costs and what remains."""
        about = {"what": self._form.kind.rows, "donors": self._data.donors}
        where = {"place": self._book.place, "out": self.out()}
        return render("custodian/cost.html", **about, **where, **self._budget.costs())

    def to_do_list(self, page: str) -> str:
        """Show what must be done before somebody can go on from a page."""
        ready = f"Everything is ready. One click spends epsilon {self._form['epsilon']}." if page == "Confirm" else ""
        to_do = [what.replace(f", under “{page}”", "") for what in self.to_do_until(page)]
        return render("custodian/to_do.html", to_do=to_do, phase=self._form.phase, ready=ready)

    def handover(self) -> str:
        """Show the files of the release, and what to say about them."""
        return render("custodian/handover.html", made=self.made, book=self._book.place)

    def commands(self) -> str:
        """Show the command of the release."""
        return commands(self.command(self.out()))

    def command(self, out: Path) -> str:
        """Return the command that makes the release."""
        form, data, checked = self._form, self._data, self._data.checked
        table = [] if checked is None else checked.seen.spec.options()
        paid = {"purpose": self._purpose} if form["recipient"] and form["purpose"] else {}
        paid |= {"dataset": self._book.seen.dataset} if self._book.seen.dataset else {}
        end = options(paid | self._book.option)
        return command(["dpsc", "release", data.name], [*table, *form.kind.release_options(), *end, "-o", str(out)])

    # -------------------------------------------------------------------------------------------------------------

    @property
    def _purpose(self) -> str:
        return f"for {self._form['recipient']}: {self._form['purpose']}"

    def request(self) -> Request:
        """Return the release as it was said, and refuse what makes no sense."""
        form, donors, checked = self._form, self._data.donors, self._data.checked
        assert donors is not None
        assert checked is not None
        order = form.kind.order(donors, checked.seen.spec)
        for name in ("recipient", "purpose"):
            checks.printable(name, form[name])
        out = self.out()
        require_free(out, self.folder)
        return Request(
            ledger=self._book.url,
            order=order,
            dataset=self._book.seen.dataset,
            purpose=self._purpose,
            recipient=form["recipient"],
            use=form["purpose"],
            out=out,
            kind=form.kind,
            command=self.command(out),
        )

    def _release(self, request: Request) -> None:
        """Run in the thread of a release."""
        made = make(request, self._form.work)
        with self._form.changing():
            self.made, self._form.phase = made, "done"

    def _released(self, request: Request) -> None:
        failed = self._form.phase == "working"
        if failed:
            self._form.phase = "open"
        self._take_name_away()
        self._form.judge()
        if failed and str(request.out) in [entry.output for entry in self._book.seen.entries]:
            self._form.note = "The release was booked but could not be made: see “Ledger”."

    def _take_name_away(self) -> None:
        """Let the name be typed again before anything else is spent."""
        self._form.fields["typed_name"] = ""
        self.emptied += 1


def make(request: Request, work: Work) -> Made:
    """Add up, book, release, write. Until it is booked it can be stopped; then nothing stops it."""
    order, out = request.order, request.out
    account = Account(request.ledger, request.dataset, purpose=request.purpose, last_look=work.last_look)
    order.opened(account, work.on_progress)
    summed = order.added_up(work.on_progress)
    require_free(out, out.parent)
    with files.beside(out) as part:
        place = part / out.name
        order.booked(summed, account, (out, place, lambda: os.replace(place, out)))
    page, record, papers = _about(out, request.use)
    told, kind = tuple(account.told()), request.kind
    return Made(out, page, record, papers, told, request.recipient, kind.rows, kind.one, request.command)


def beside(out: Path) -> tuple[Path, Path, Path, Path]:
    """Return where a release, its page, its record and its dossier go."""
    name = out.name.removesuffix(".json")
    short = name.removesuffix(".dpsc")
    ends = f"{short}.record.json", f"{short}.dossier.zip"
    return out, out.with_name(f"{name}.html"), out.with_name(ends[0]), out.with_name(ends[1])


def require_free(out: Path, folder: Path) -> None:
    """Refuse a name that is none, that is in another folder, or that is taken."""
    name = out.name.removesuffix(".dpsc.json")
    if not name or out.parent != folder or name.startswith(".") or not checks.is_printable(name):
        raise ParameterError(f"{FILE_NAME} must be a name, without a folder.")
    for place in beside(out):
        if os.path.lexists(place):
            raise ParameterError(f"{FILE_NAME}: {place} is there already; choose another name.")


def _about(out: Path, use: str) -> list[Path | None]:
    """Write what goes with a file, from it alone. The release is whole and paid for, whatever becomes of them."""
    _, page, record, papers = beside(out)
    with suppress(Exception):
        release, digest = load_with_hash(out)
        say = describe_panel if isinstance(release, PrivatePanel) else describe
        with suppress(Exception):
            files.write(page, say.page(release, out.name, digest))
        with suppress(Exception):
            content = say.record(release, digest, intended_use=use)
            files.write(record, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        files.write(papers, files.zipped(dossier.files(release, out.name, digest, intended_use=use)))
    return [place if place.exists() else None for place in (page, record, papers)]
