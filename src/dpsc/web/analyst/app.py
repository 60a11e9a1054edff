"""The analyst's program: opens releases and answers questions. Never imports what reads donors; a test sees to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shiny import Inputs, Outputs, Session, reactive, render, ui
from starlette.types import ASGIApp

from dpsc.answers.report import Files
from dpsc.web import work
from dpsc.web.analyst import panels
from dpsc.web.analyst import panels as charts
from dpsc.web.analyst import panels as recipes
from dpsc.web.analyst.desk import FEWEST_BEFORE, Columns, Desk, Said
from dpsc.web.page_files import File, Reader, offer, uploaded
from dpsc.web.server import application
from dpsc.web.work import followed

WWW = Path(__file__).parent.parent / "www"


def program(folder: Path) -> ASGIApp:
    """Return the application; what is dropped on the page is kept in the folder."""
    desk = Desk(folder / "desk", Reader())
    (folder / "desk").mkdir()
    page = (WWW / "analyst.html").read_text("utf-8")
    return application(page, lambda input, output, session: _serve(desk, input, output, session))


def _serve(desk: Desk, input: Inputs, output: Outputs, session: Session) -> None:
    """Connect one page with the desk."""
    changes, dates = followed(session, lambda: desk.version), _Dates()

    def when(event: Callable[[], Any], step: Callable[[], None], ignore_init: bool = True) -> None:
        @reactive.effect
        @reactive.event(event, ignore_init=ignore_init)
        async def _() -> None:
            said = await asyncio.to_thread(work.said, step)  # the server answers while a file is read
            if said:
                ui.notification_show(said, type="error", duration=None)
            desk.version += 1
            changes.set(desk.version)

    _restore(desk)

    @reactive.effect
    def _() -> None:
        changes()
        dates.show(desk)

    when(input.demo, lambda: _open_demo(desk))
    for name, step in {"release_file": desk.open_release, "target_file": desk.drop_target,
                       "other_file": desk.open_other, "several_file": desk.drop_several}.items():  # fmt: skip
        when(input[name], lambda name=name, step=step: _with_file(input[name](), step))  # type: ignore[misc]
    when(input.pasted, lambda: desk.paste_target(input.pasted()) if _given(input.pasted()) else None)
    when(input.several_pasted, lambda: desk.paste_several(input.several_pasted()) if _given(input.several_pasted())
         else None)  # fmt: skip
    when(
        lambda: (input.time(), input.outcome(), input.time_format(), input.decimal(), input.units()),
        lambda: desk.say(Said(input.time(), input.outcome(), input.time_format(), input.decimal()), input.units()),
    )
    when(
        lambda: (input.unit_column(), input.start_column(), input.weight_column()),
        lambda: desk.name_columns(Columns(input.unit_column(), input.start_column(), input.weight_column())),
    )
    when(input.chosen, lambda: desk.choose(int(input.chosen())), ignore_init=False)  # not there before a click
    when(input.earlier, lambda: desk.choose(_next(desk, -1)))
    when(input.later, lambda: desk.choose(_next(desk, +1)))

    def shown(name: str, panel: Callable[[Desk, float], str]) -> None:
        @output(id=name)
        @render.ui
        def _() -> ui.HTML:
            changes()
            return ui.HTML(work.shown(lambda: panel(desk, charts.NARROW if input.narrow() else charts.WIDE)))

    for name, panel in panels.PANELS.items():
        shown(name, panel)
    for name, (file, content) in _downloads(desk).items():
        offer(output, name, file, content)


class _Dates:
    """The list of dates on the page."""

    def __init__(self) -> None:
        self._shown: tuple[list[str], int | None] | None = None

    def show(self, desk: Desk) -> None:
        """Offer the dates that are possible, and show the one on the desk."""
        if self._shown == (desk.periods, desk.position):
            return
        self._shown = (desk.periods, desk.position)
        dates = {"": "–"} | {str(k): name for k, name in enumerate(desk.periods) if k >= FEWEST_BEFORE}
        ui.update_select("date", choices=dates, selected="" if desk.position is None else str(desk.position))


def _restore(desk: Desk) -> None:
    """Fill the fields of a page that was loaded again."""
    ui.update_text_area("pasted", value=desk.pasted)
    for name, value in (("time", desk.said.time), ("outcome", desk.said.outcome), ("units", desk.units),
                        ("time_format", desk.said.time_format), ("unit_column", desk.columns.unit),
                        ("start_column", desk.columns.start), ("weight_column", desk.columns.weight)):  # fmt: skip
        ui.update_text(name, value=value)
    ui.update_select("decimal", selected=desk.said.decimal)


def _open_demo(desk: Desk) -> None:
    desk.open_demo()
    ui.update_text_area("pasted", value="")


def _given(text: str) -> bool:
    return bool(text.strip())


def _with_file(value: Any, step: Callable[[File], None]) -> None:
    file = uploaded(value)
    if file is not None:
        step(file)


def _next(desk: Desk, step: int) -> int:
    """Return the period before or after the chosen one; without one, the first or the last that is possible."""
    if desk.position is None:
        return FEWEST_BEFORE if step > 0 else len(desk.periods) - 1
    return desk.position + step


def _downloads(desk: Desk) -> dict[str, tuple[str | Callable[[], str], Callable[[], bytes]]]:
    """Return the files that the page offers, by the id of their links."""

    def files() -> Files:
        assert desk.result is not None
        return desk.result.files(desk.units or None, desk.tried)

    def study() -> Files:
        assert desk.study is not None
        return desk.study.files(desk.units or None, desk.all_tried)

    def name() -> str:
        return "" if desk.release_file is None else desk.release_file.name

    def comparison() -> bytes:
        assert desk.comparison is not None
        return desk.comparison.html()

    def table() -> bytes:
        assert desk.long_file is not None
        return desk.long_file.path.read_bytes()

    def release() -> bytes:
        assert desk.release_file is not None
        return desk.release_file.path.read_bytes()

    return {
        "report": (recipes.REPORT, lambda: files().html(recipes.command(name(), desk.date, desk.units))),
        "figure": ("figure.png", lambda: files().picture("png")),
        "workbook": ("answer.xlsx", lambda: files().xlsx()),
        "script": ("answer.py", lambda: recipes.script(name(), desk.date, desk.units, desk.tried).encode("utf-8")),
        "target_table": (recipes.TARGET, desk.target_table),
        "release_again": (name, release),
        "study_report": (recipes.STUDY, lambda: study().html()),
        "study_table": (lambda: "" if desk.long_file is None else desk.long_file.name, table),
        "study_workbook": ("study.xlsx", lambda: study().xlsx()),
        "comparison_report": (recipes.COMPARISON, comparison),
    }
