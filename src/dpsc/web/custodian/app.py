"""The custodian's program: from donors to a release that is booked. It runs on the machine that holds the donors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shiny import Inputs, Outputs, Session, reactive, render, ui
from starlette.types import ASGIApp

from dpsc.web import work
from dpsc.web.custodian import panels
from dpsc.web.custodian.desk import CustodianDesk
from dpsc.web.custodian.fields import FIELDS
from dpsc.web.page_files import File, Reader, offer, uploaded
from dpsc.web.server import application
from dpsc.web.work import followed

_STEPS: dict[str, Callable[[CustodianDesk], None]] = {
    "use_path": CustodianDesk.use_path, "check": CustodianDesk.check, "check_again": CustodianDesk.check,
    "enter_dataset": CustodianDesk.enter_dataset, "spend": CustodianDesk.spend, "stop": CustodianDesk.stop,
    "begin_anew": CustodianDesk.begin_anew, "look_into_book": CustodianDesk.look_into_book,
    "verify": CustodianDesk.verify, "without_public_files": CustodianDesk.without_public_files,
}  # fmt: skip


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
        page = panels.page()
        return application(page, lambda input, output, session: _serve(desk, input, output, session))

    def end(self) -> None:
        """Stop what can be stopped, and wait for what is booked."""
        if self._desk is not None:
            self._desk.end()


def _serve(desk: CustodianDesk, input: Inputs, output: Outputs, session: Session) -> None:
    """Connect one page with the desk."""
    changes = followed(session, lambda: desk.version)

    def when(name: str, step: Callable[[], None]) -> None:
        @reactive.effect
        @reactive.event(input[name], ignore_init=True)
        async def _() -> None:
            said = await asyncio.to_thread(work.said, step)  # the server answers while a file is read
            if said:
                ui.notification_show(said, type="error", duration=None)

    _restore(desk)
    for name in FIELDS:
        when(name, lambda name=name: desk.fill(name, str(input[name]() or "")))  # type: ignore[misc]
    for name, step in _STEPS.items():
        when(name, lambda step=step: step(desk))  # type: ignore[misc]
    for name, take in {"donors_file": desk.use_file, "like_file": desk.use_like,
                       "reference_file": desk.use_reference}.items():  # fmt: skip
        when(name, lambda name=name, take=take: _with_file(input[name](), take))  # type: ignore[misc]

    shown = _Shown(desk)

    @reactive.effect
    async def _() -> None:
        changes()
        shown.update()
        await session.send_custom_message("desk", _state(desk))

    def show(name: str, panel: Callable[[CustodianDesk], str]) -> None:
        @output(id=name)
        @render.ui
        async def _() -> ui.HTML:
            changes()
            return ui.HTML(await asyncio.to_thread(work.shown, lambda: panel(desk)))

    for name, panel in panels.PANELS.items():
        show(name, panel)
    for name, (file, content) in _downloads(desk).items():
        offer(output, name, file, content)


class _Shown:
    """What this page shows of fields that the desk changes by itself."""

    def __init__(self, desk: CustodianDesk) -> None:
        self._desk, self._emptied = desk, desk.emptied
        self._datasets: tuple[str, ...] = ()
        self._dataset = ""

    def update(self) -> None:
        """Bring these fields up to date."""
        desk = self._desk
        if (desk.book.datasets, desk.dataset) != (self._datasets, self._dataset):
            self._datasets, self._dataset = desk.book.datasets, desk.dataset
            none = {} if len(desk.book.datasets) == 1 else {"": "–"}
            known = none | {name: name for name in desk.book.datasets}
            ui.update_select("dataset", choices=known, selected=desk.dataset)
            ui.update_text("new_name", value=desk.fields["new_name"])
        if desk.emptied != self._emptied:
            self._emptied = desk.emptied
            ui.update_text("typed_name", value="")


def _state(desk: CustodianDesk) -> dict[str, Any]:
    """Return what the page's script must know."""
    return {
        "problems": dict(desk.problems),
        "enabled": {"spend": desk.phase == "open" and not desk.work.what and not desk.to_do,
                    "check": not desk.work.what, "check_again": not desk.work.what and desk.donors is not None},
        "shown": {"stop": desk.work.can_be_stopped, "begin_anew": desk.phase == "done"},
        "opened": {"new_dataset": not desk.book.datasets},
        "grid": {"epsilon_slider": desk.book.grid},
    }  # fmt: skip


def _restore(desk: CustodianDesk) -> None:
    """Fill the fields of a page that was loaded again."""
    for name, field in FIELDS.items():
        value = desk.fields[name]
        if value != field.default and name != "dataset":  # which has a list of its own
            (ui.update_select(name, selected=value) if field.choices else ui.update_text(name, value=value))


def _with_file(value: Any, take: Callable[[File], None]) -> None:
    file = uploaded(value)
    if file is not None:
        take(file)


def _downloads(desk: CustodianDesk) -> dict[str, tuple[str | Callable[[], str], Callable[[], bytes]]]:
    """Return the files that the page offers, by the id of their links."""

    def name(which: str) -> Callable[[], str]:
        return lambda: getattr(desk.made, which).name if desk.made is not None else which

    def content(which: str) -> Callable[[], bytes]:
        return lambda: bytes(getattr(desk.made, which).read_bytes())

    return {
        "release": (name("file"), content("file")),
        "release_page": (name("page"), content("page")),
        "release_record": (name("record"), content("record")),
        "book_csv": ("book.csv", lambda: desk.shelf.export("csv")),
        "book_json": ("book.json", lambda: desk.shelf.export("json")),
    }
