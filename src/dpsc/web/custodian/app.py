"""The custodian's program and its desk: donors, what was said about them, the budget, and the release that was made.

It runs on the machine that holds the donors. Everything here but the release is private. Long work is done in a
thread; a release begins only from a desk that is ready, and once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from shiny import Inputs, Outputs, Session, reactive, ui
from starlette.types import ASGIApp

from dpsc.answers.words import sentence
from dpsc.web import guard
from dpsc.web.custodian.book import BookPage
from dpsc.web.custodian.budget import BudgetPage
from dpsc.web.custodian.confirm import ConfirmPage
from dpsc.web.custodian.data import DataPage
from dpsc.web.custodian.each_donor import EachDonor
from dpsc.web.custodian.each_person import EachPerson
from dpsc.web.custodian.form import FIELDS, Form
from dpsc.web.desk import Reader
from dpsc.web.server import Page, application, render

_JUDGED = ("dataset", "n", "averages", "people", "change", "epsilon", "delta", "scale", "like_before")


class CustodianDesk(Form):
    """What lies on the custodian's desk: one object for each page, over the same fields.

    Parameters
    ----------
    private : Path
        A private folder for what is dropped on the page.
    folder : Path
        Where releases are written.
    ledger : str or None
        The option ``--ledger``.
    reader : Reader, optional
        Reads files in a process that can be ended; without it they are read here.
    """

    def __init__(self, private: Path, folder: Path, ledger: str | None, reader: Reader | None = None) -> None:
        super().__init__(private, reader)
        self.data, self.book = DataPage(self), BookPage(self, ledger)
        self.each_donor, self.each_person = EachDonor(self, self.data), EachPerson(self, self.data)
        self.kinds = {"donor": self.each_donor, "person": self.each_person}
        self.budget = BudgetPage(self, self.book)
        self.confirm = ConfirmPage(self, self.data, self.budget, self.book, folder)
        self.book.look()

    def fill(self, name: str, value: str) -> None:
        """Take what was written into a field."""
        if self.fields[name] != value:
            with self.changing():
                self.fields[name] = value
                self.problems.pop(name, None)
                if name == "protected":
                    self.problems.clear()  # of what is hidden now
                if name in ("protected", *_JUDGED, *self.kind.fields):
                    self.judge()

    def judge(self) -> None:
        """Look again at everything that was said: each public file and the ledger are read once at most."""
        self.data.judge()
        self.budget.judge()

    def stop(self) -> None:
        """Stop what is under way, if it is not too late."""
        with self.changing():
            if self.work.stop() and self.reader is not None:
                self.reader.end()

    def end(self) -> None:
        """Stop what can be stopped, and finish what is booked."""
        self.work.stop()
        self.work.wait()

    def under_way(self) -> str:
        """Show how far the work is."""
        return render("custodian/under_way.html", work=self.work, note=self.note, phase=self.phase)

    @property
    def panels(self) -> dict[str, Callable[[], str]]:
        """What each part of the page shows, as HTML. Nothing is read to show it."""
        return {
            "under_way": self.under_way,
            "understood": self.data.understood,
            "public_files": self.each_donor.public_files,
            "check_command": self.data.command,
            "to_do_check": partial(self.confirm.to_do_list, "Check"),
            "findings": self.data.findings,
            "check_command_again": self.data.command,
            "gauge": self.budget.gauge,
            "numbers": self.budget.numbers,
            "to_do_budget": partial(self.confirm.to_do_list, "Budget"),
            "budget_commands": self.budget.commands,
            "cost": self.confirm.cost,
            "to_do": partial(self.confirm.to_do_list, "Confirm"),
            "release_command": self.confirm.commands,
            "handover": self.confirm.handover,
            "book": self.book.shown,
            "book_commands": self.book.commands,
        }

    @property
    def steps(self) -> dict[str, Callable[[], None]]:
        """What each button of the page does."""
        return {
            "use_path": self.data.use_path,
            "check": self.data.check,
            "check_again": self.data.check,
            "without_public_files": self.each_donor.without_public_files,
            "enter_dataset": self.budget.enter_dataset,
            "to_confirm": self.budget.agree,
            "spend": self.confirm.spend,
            "begin_anew": self.confirm.begin_anew,
            "look_into_book": self.book.look,
            "verify": self.book.verify,
            "stop": self.stop,
        }


class Program:
    """The program: makes the application, and finishes at the end what is booked.

    Parameters
    ----------
    folder : Path
        Where releases are written.
    ledger : str or None
        The option ``--ledger``.
    """

    def __init__(self, folder: Path, ledger: str | None) -> None:
        self._folder, self._ledger = folder, ledger
        self._desk: CustodianDesk | None = None

    def __call__(self, private: Path) -> ASGIApp:
        """Return the application; what is dropped on the page is kept in the private folder."""
        (private / "desk").mkdir()
        desk = self._desk = CustodianDesk(private / "desk", self._folder, self._ledger, Reader())
        return application(page(), lambda input, output, session: _serve(desk, input, output, session))

    def end(self) -> None:
        """Stop what can be stopped, and wait for what is booked."""
        if self._desk is not None:
            self._desk.end()


def page() -> str:
    """Return the page as it is before anything happened."""
    size = {"largest": guard.LARGEST, "megabytes": guard.LARGEST // 2**20, "too_large": sentence(guard.TOO_LARGE)}
    return render("custodian/page.html", fields=FIELDS, **size)


def _serve(desk: CustodianDesk, input: Inputs, output: Outputs, session: Session) -> None:
    """Connect one page with the desk."""
    page, changed = Page(desk, input, output, session), _ChangedByTheDesk(desk)
    _restore(desk)
    for name in FIELDS:
        page.when(lambda value, name=name: desk.fill(name, str(value or "")), name)
    for name, step in desk.steps.items():
        page.pressed(step, name)
    page.dropped(desk.data.use_file, "donors_file")
    page.dropped(desk.each_donor.use_like, "like_file")
    page.dropped(desk.each_donor.use_reference, "reference_file")

    @reactive.effect
    async def _() -> None:
        page.changes()
        changed.show()
        await session.send_custom_message("desk", _state(desk))

    for name, panel in desk.panels.items():
        page.show(name, panel)
    for which in ("file", "page", "record", "dossier"):
        name = "release" if which == "file" else f"release_{which}"
        page.offer(name, partial(_name_of, desk, which), partial(_content_of, desk, which))
    for kind in ("csv", "json"):
        page.offer(f"book_{kind}", f"book.{kind}", partial(desk.book.export, kind))


def _name_of(desk: CustodianDesk, which: str) -> str:
    return which if desk.confirm.made is None else str(getattr(desk.confirm.made, which).name)


def _content_of(desk: CustodianDesk, which: str) -> bytes:
    return bytes(getattr(desk.confirm.made, which).read_bytes())


class _ChangedByTheDesk:
    """What this page shows of fields that the desk changes by itself."""

    def __init__(self, desk: CustodianDesk) -> None:
        self._desk, self._emptied = desk, desk.confirm.emptied
        self._datasets: tuple[str, ...] = ()
        self._dataset = ""

    def show(self) -> None:
        """Bring these fields up to date."""
        desk, seen = self._desk, self._desk.book.seen
        if (seen.datasets, seen.dataset) != (self._datasets, self._dataset):
            self._datasets, self._dataset = seen.datasets, seen.dataset
            none = {} if len(seen.datasets) == 1 else {"": "choose one"}
            known = none | {name: name for name in seen.datasets}
            ui.update_select("dataset", choices=known, selected=seen.dataset)
            ui.update_text("new_name", value=desk.fields["new_name"])
        if desk.confirm.emptied != self._emptied:
            self._emptied = desk.confirm.emptied
            ui.update_text("typed_name", value="")


def _state(desk: CustodianDesk) -> dict[str, object]:
    """Return what the page's script must know."""
    idle, confirm, made = not desk.work.what, desk.confirm, desk.phase == "done"
    done = confirm.done
    return {
        "problems": dict(desk.problems),
        "idle": idle,
        "done": [f"tab-{page.lower()}" for page in done],
        "enabled": {
            "check": idle and not made,
            "check_again": idle and not made and desk.data.donors is not None,
            "to_budget": "Check" in done,
            "to_confirm": not confirm.to_do_until("Budget"),
            "spend": idle and desk.phase == "open" and not confirm.to_do,
        },
        "shown": {
            "stop": desk.work.can_be_stopped,
            "choose_dataset": bool(desk.book.seen.datasets),
            "to_pay": not made,
            "paid": made,
            "begin_anew": made,
        },
        "opened": {"new_dataset": not desk.book.seen.datasets},
        "grid": {"epsilon_slider": desk.book.seen.grid},
    }


def _restore(desk: CustodianDesk) -> None:
    """Fill the fields of a page that was loaded again."""
    for name, field in FIELDS.items():
        value = desk.fields[name]
        if value != field.default and name != "dataset":  # which has a list of its own
            if name == "protected":
                ui.update_radio_buttons(name, selected=value)
            elif field.choices:
                ui.update_select(name, selected=value)
            else:
                ui.update_text(name, value=value)
