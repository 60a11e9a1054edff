"""The analyst's program: opens releases and answers questions. Never imports what reads donors; a test sees to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from shiny import Inputs, Outputs, Session, reactive, ui
from starlette.types import ASGIApp

from dpsc.answers.report import Files
from dpsc.web.analyst import panels
from dpsc.web.analyst.desk import FEWEST_BEFORE, PARTS, SAID, AnalystDesk, Columns
from dpsc.web.server import Page, application
from dpsc.web.work import File, Reader

Made = TypeVar("Made")
WWW = Path(__file__).parent.parent / "www"
COLUMNS = ("unit_column", "start_column", "weight_column", "averages_column")


def program(folder: Path) -> ASGIApp:
    """Return the application; what is dropped on the page is kept in the folder."""
    desk = AnalystDesk(folder / "desk", Reader())
    (folder / "desk").mkdir()
    page = (WWW / "analyst.html").read_text("utf-8")
    return application(page, lambda input, output, session: _serve(desk, input, output, session))


def _serve(desk: AnalystDesk, input: Inputs, output: Outputs, session: Session) -> None:
    """Connect one page with the desk."""
    page, dates = Page(desk, input, output, session), _Dates()
    _restore(desk)

    @reactive.effect
    def _() -> None:
        page.changes()
        dates.show(desk)

    page.pressed(lambda: _open_demo(desk), "demo")
    page.dropped(desk.open_release, "release_file")
    page.dropped(desk.drop_target, "target_file")
    page.dropped(desk.open_other, "other_file")
    page.dropped(desk.drop_several, "several_file")
    page.when(lambda text: desk.paste_target(text) if text.strip() else None, "pasted")
    page.when(lambda text: desk.paste_several(text) if text.strip() else None, "several_pasted")
    page.when(lambda *how: desk.say(dict(zip(SAID, how, strict=False)), how[-1]), *SAID, "units")
    page.when(lambda *names: desk.name_columns(Columns(*names)), *COLUMNS)
    page.when(desk.say_averages, "averages")
    for part in PARTS:
        page.pressed(partial(desk.numbers_are, True, part), f"{part}_right")
        page.pressed(partial(desk.numbers_are, False, part), f"{part}_wrong")
    page.when(lambda position: desk.choose(int(position)), "chosen", ignore_init=False)  # not there before a click
    page.pressed(lambda: desk.choose(_next(desk, -1)), "earlier")
    page.pressed(lambda: desk.choose(_next(desk, +1)), "later")

    def shown(panel: Callable[[AnalystDesk, float], str]) -> str:
        return panel(desk, panels.NARROW if input.narrow() else panels.WIDE)

    for name, panel in panels.PANELS.items():
        page.show(name, partial(shown, panel))
    for name, (file, content) in _downloads(desk).items():
        page.offer(name, file, content)


class _Dates:
    """The list of dates on the page."""

    def __init__(self) -> None:
        self._shown: tuple[list[str], int | None] | None = None

    def show(self, desk: AnalystDesk) -> None:
        """Offer the dates that are possible, and show the one on the desk."""
        if self._shown == (desk.periods, desk.position):
            return
        self._shown = (desk.periods, desk.position)
        dates = {"": "–"} | {str(k): name for k, name in enumerate(desk.periods) if k >= FEWEST_BEFORE}
        ui.update_select("date", choices=dates, selected="" if desk.position is None else str(desk.position))


def _restore(desk: AnalystDesk) -> None:
    """Fill the fields of a page that was loaded again."""
    ui.update_text_area("pasted", value=desk.pasted)
    said, columns = desk.said, desk.columns
    texts = {name: said.get(name, "") for name in ("time", "outcome", "time_format")} | {"units": desk.units}
    names = zip(COLUMNS, (columns.unit, columns.start, columns.weight, columns.averages), strict=True)
    for name, value in (texts | {"averages": desk.averages_written} | dict(names)).items():
        ui.update_text(name, value=value)
    ui.update_select("decimal", selected=said.get("decimal", ""))


def _open_demo(desk: AnalystDesk) -> None:
    desk.open_demo()
    ui.update_text_area("pasted", value="")
    ui.update_text("averages", value="")


def _next(desk: AnalystDesk, step: int) -> int:
    """Return the period before or after the chosen one; without one, the first or the last that is possible."""
    if desk.position is None:
        return FEWEST_BEFORE if step > 0 else len(desk.periods) - 1
    return desk.position + step


def _downloads(desk: AnalystDesk) -> dict[str, tuple[str | Callable[[], str], Callable[[], bytes]]]:
    """Return the files that the page offers, by the id of their links."""

    def name(file: File | None) -> str:
        return "" if file is None else file.name

    def content(file: File | None) -> bytes:
        assert file is not None
        return file.path.read_bytes()

    def made(what: Made | None) -> Made:
        assert what is not None
        return what

    def files() -> Files:
        return made(desk.result).files(desk.units or None, desk.tried)

    def study() -> Files:
        return made(desk.study).files(desk.units or None, desk.all_tried)

    def asked() -> tuple[str, str, str, int | None]:
        return name(desk.release_file), desk.date, desk.units, desk.averages

    return {
        "report": (panels.REPORT, lambda: files().html(panels.command(*asked()))),
        "figure": ("figure.png", lambda: files().picture("png")),
        "workbook": ("answer.xlsx", lambda: files().xlsx()),
        "script": ("answer.py", lambda: panels.script(*asked(), desk.tried).encode("utf-8")),
        "target_table": (panels.TARGET, desk.target_table),
        "release_again": (lambda: name(desk.release_file), lambda: content(desk.release_file)),
        "study_report": (panels.STUDY, lambda: study().html()),
        "study_table": (lambda: name(desk.long_file), lambda: content(desk.long_file)),
        "study_workbook": ("study.xlsx", lambda: study().xlsx()),
        "comparison_report": (panels.COMPARISON, lambda: made(desk.comparison).html()),
    }
