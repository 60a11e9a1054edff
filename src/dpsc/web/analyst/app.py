"""The analyst's program: opens releases, answers questions, and shows what each part of the page holds, as HTML.

It shows the same as a command and as a script too. Never imports what reads donors; a test sees to it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pandas as pd
from shiny import Inputs, Outputs, Session, reactive, ui
from starlette.types import ASGIApp

from dpsc import checks
from dpsc.analyst.ask import NOTHING_MORE, Wishes
from dpsc.analyst.release import Release
from dpsc.answers import document, report, reporting, tables, words
from dpsc.answers import figures as plot
from dpsc.answers.figures import choices as other_figures
from dpsc.answers.figures.sheet import BLACK, LINE, NARROW, WIDE, PeriodAxis, Sheet
from dpsc.answers.placebos import Trials
from dpsc.answers.report import ReportFiles
from dpsc.periods.dates import period_name
from dpsc.privacy.guarantee import mark_of
from dpsc.release import describe
from dpsc.types import Times
from dpsc.web.analyst.desk import FEWEST_BEFORE, PARTS, SAID, AnalystDesk, Columns
from dpsc.web.desk import File, Reader
from dpsc.web.server import Page, application, render

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Made = TypeVar("Made")
WWW = Path(__file__).parent.parent / "www"
TREATMENT = ("treatment_end", "gap", "value_per_unit", "cost", "currency")  # fields of the page
COLUMNS = [field.name for field in fields(Columns)]


class Chart(NamedTuple):
    """A figure inside the page; ``at`` are the places of the periods, as shares of its width."""

    source: str
    at: list[float]
    top: float
    bottom: float


def drawn(draw: Callable[..., Axes], width: float, index: Times | None = None) -> Chart:
    """Draw a figure so many inches wide."""
    axes = draw(sheet=Sheet(title="", figsize=(width, None)))
    figure = plot.figure_of(axes)
    source = report.inline(plot.as_bytes(figure, "svg"))
    if index is None:
        return Chart(source, [], 0.0, 1.0)
    box = axes.get_position()
    places = axes.convert_xunits(PeriodAxis(index).values)  # type: ignore[no-untyped-call]
    at = [float(axes.transData.transform((x, 0.0))[0] / figure.bbox.width) for x in places]
    return Chart(source, [round(share, 5) for share in at], 1 - box.y1, 1 - box.y0)


def target_alone(series: pd.Series[float], units: str | None, sheet: Sheet) -> Axes:
    """Draw the target before any date is chosen."""
    axes = sheet.axes(3.1)
    times = PeriodAxis(series.index)
    axes.plot(times.values, series, color=BLACK, lw=LINE, marker="o" if len(series) <= 60 else "", ms=3.2)
    times.write(axes)
    return sheet.finish(axes, "", "", measured=words.in_units(str(series.name), units))


TARGET = "target.csv"
REPORT, BRIEF, STUDY, COMPARISON = "report.html", "brief.html", "study.html", "comparison.html"


class Asked(NamedTuple):
    """What was asked: about a unit of a panel, or else about the target that the page exports."""

    release: str
    date: str
    units: str = ""
    averages: int | None = None
    unit: str = ""
    outcome: str = ""
    pool: str = ""
    wishes: Wishes = NOTHING_MORE


def asked_of(desk: AnalystDesk) -> Asked:
    """Return what is asked on the desk."""
    release = "" if desk.release_file is None else desk.release_file.name
    return Asked(release, desk.date, desk.units, desk.averages, desk.unit, desk.outcome, desk.pool, desk.wishes)


def command(asked: Asked, out: str = REPORT) -> str:
    """Return the command that gives the same answer.

    Examples
    --------
    >>> command(Asked("wages.dpsc.json", "1985"))
    'dpsc estimate wages.dpsc.json target.csv --treatment-time 1985 -o report.html'
    """
    said = [] if asked.averages is None or asked.unit else ["--averages", str(asked.averages)]
    said += ["--pool", asked.pool] if asked.pool else []
    said += ["--outcome", asked.outcome] if asked.outcome else []
    said += ["--units", asked.units] if asked.units else []
    said += checks.options(asked.wishes.said)
    what = asked.unit or TARGET
    return shlex.join(["dpsc", "estimate", asked.release, what, "--treatment-time", asked.date, *said, "-o", out])


def study_command(release: str, table: str, said: Mapping[str, Any]) -> str:
    """Return the command for several units; ``said`` are parameters and their values.

    Examples
    --------
    >>> study_command("wages.dpsc.json", "towns.csv", {"unit": "town"})
    'dpsc estimate wages.dpsc.json towns.csv --unit town -o study.html'
    """
    return shlex.join(["dpsc", "estimate", release, table, *checks.options(said), "-o", STUDY])


def comparison_commands(asked: Asked, other: str, outcome: str = "") -> list[str]:
    """Return the commands that ask two releases the same, and compare the answers; ``outcome`` is that of the other."""
    answers = ("first.json", "second.json")
    both = command(asked, answers[0]), command(asked._replace(release=other, outcome=outcome), answers[1])
    return [*both, shlex.join(["dpsc", "compare", *answers, "-o", COMPARISON])]


def script(asked: Asked, tried: Sequence[str]) -> str:
    """Return the script that gives the same answer."""
    others = [other for other in tried if other != asked.date]
    said = [f"units={asked.units!r}"] if asked.units else []
    said += [f"dates_tried={others!r}"] if others else []
    many = "" if asked.averages is None or asked.unit else f", averages={asked.averages}"
    many += f", pool=release.segments.typed({asked.pool!r})" if asked.pool else ""
    many += "".join(f", {name}={value!r}" for name, value in asked.wishes.said.items())
    given = repr(asked.unit) if asked.unit else f"pd.read_csv({TARGET!r}, dtype={{'period': str}})"
    return f"""\
{"" if asked.unit else "import pandas as pd" + chr(10) * 2}import dpsc

release = dpsc.load({asked.release!r}){f"[{asked.outcome!r}]" if asked.outcome else ""}
target = {given}
result = release.estimate(target, treatment_time={asked.date!r}{many})
print(result.summary())
result.report({", ".join([repr(REPORT), *said])})
"""


def release(desk: AnalystDesk, width: float) -> str:
    """Show what is in the release."""
    about = {"release": desk.release, "file": desk.release_file, "periods": desk.periods, "units": desk.panel_units}
    cost = words.sentence(desk.release.part_of) if isinstance(desk.release, Release) and desk.outcome else ""
    divided = describe.segments(desk.release) if isinstance(desk.release, Release) else ""
    problem = desk.problems.get("release") or desk.problems.get("pool")
    mark = "" if desk.release is None else mark_of(desk.release.no_guarantee)
    more = {"cost": cost, "divided": divided, "mark": mark, "small": checks.small}
    return render("release.html", problem=problem, **more, **about)


def target(desk: AnalystDesk, width: float) -> str:
    """Show what was understood of the target, or what is wrong with it."""
    seen = None if desk.target is None else desk.target.dropna()
    first, last = ("", "") if seen is None or seen.empty else map(period_name, seen.index[[0, -1]])
    return render("target.html", target=seen, desk=desk, problem=desk.problems.get("target"), first=first, last=last)


def averages_help(desk: AnalystDesk, width: float) -> str:
    """Show what is wrong with how many people the target is the average of, and what it is good for."""
    return render("averages.html", problem=desk.problems.get("averages"))


def treatment_help(desk: AnalystDesk, width: float) -> str:
    """Show what is wrong with what was said of the treatment's end and worth."""
    problem = desk.problems.get("treatment")
    return f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""


def answer(desk: AnalystDesk, width: float) -> str:
    """Show the sentence, the light and the chart on which the date is chosen; first, what must be checked."""
    result, shown, units = desk.result, desk.shown, desk.units or None
    if shown is None:
        return render("begin.html", desk=desk)
    if result is None:
        chart, sentences = drawn(partial(target_alone, shown, units), width, shown.index), []
    else:
        draw = partial(plot.draw, result, "path", units=units)
        chart, sentences = drawn(draw, width, result.target.index), words.answer(result, units)
    together = None if desk.outcomes_together is None else desk.outcomes_together.side_by_side()
    about = {"result": result, "chart": chart, "sentences": sentences, "together": together}
    return render("answer.html", desk=desk, fewest=FEWEST_BEFORE, **about)


def effects(desk: AnalystDesk, width: float) -> str:
    """Show the effects of each period and added up."""
    result, units = desk.result, desk.units or None
    if result is None:
        return _nothing(desk)
    found = document.of_result(result, Trials(), units)
    kinds = ("gaps", "cumulative") if result.observed.notna().any() else ()
    figures = {kind: drawn(partial(plot.draw, result, kind, units=units), width).source for kind in kinds}
    shown = {"found": found, "tables": tables.of(found), "figures": figures}
    return render("effects.html", level=words.percent(result.level), **shown)


def placebos(desk: AnalystDesk, width: float) -> str:
    """Show effects where there is none."""
    result, units = desk.result, desk.units or None
    if result is None:
        return _nothing(desk)
    trials = result.trials()
    kinds = {"time": trials.in_time, "space": trials.in_space}
    figures = {
        name: drawn(partial(other_figures.placebos, result, found, units=units), width).source
        for name, found in kinds.items()
        if found is not None
    }
    found = document.of_result(result, trials, units)["placebos"]
    return render("placebos.html", figures=figures, found=found)


def choices(desk: AnalystDesk, width: float) -> str:
    """Show the answer under other choices, and every date that was tried."""
    result, units = desk.result, desk.units or None
    if result is None:
        return _nothing(desk)
    trials, figure = result.trials(), None
    if trials.sensitivity is not None:
        figure = drawn(partial(other_figures.sensitivity, result, trials.sensitivity, units=units), width).source
    table = tables.sensitivity_table(document.of_result(result, trials, units)["sensitivity"])
    return render("choices.html", figure=figure, table=table, desk=desk, pool=result.parameters.get("pool"))


def several(desk: AnalystDesk, width: float) -> str:
    """Show the units of a study and their pooled effect."""
    study, units = desk.study, desk.units or None
    if study is None or desk.release_file is None or desk.long_file is None:
        return render("several.html", study=None, desk=desk, problem=desk.problems.get("several"))
    found = document.of_study(study, study.trials(placebos=False), units)
    figures = {kind: drawn(partial(plot.draw, study, kind, units=units), width).source for kind in ("event", "units")}
    shown = {"tables": tables.of(found), "verdict": words.study_verdict(study)}
    return render("several.html", study=study, desk=desk, problem=None, found=found, figures=figures, **shown)


def comparison(desk: AnalystDesk, width: float) -> str:
    """Show the same question asked of two releases."""
    compared, shown = desk.comparison, dict[str, object]()
    if compared is not None and desk.release_file is not None and desk.other_file is not None:
        shown = {
            "figure": drawn(partial(other_figures.compared, compared.answers), width).source,
            "table": compared.table(),
            "commands": comparison_commands(asked_of(desk), desk.other_file.name, desk.other_outcome),
            "differences": compared.differing(),
        }
    return render("comparison.html", compared=compared, desk=desk, problem=desk.problems.get("other"), **shown)


def export(desk: AnalystDesk, width: float) -> str:
    """Show what can be taken away of an answer and of a study, and the commands and the script that do the same."""
    if desk.release_file is None or (desk.result is None and desk.study is None):
        return _nothing(desk)
    units, one, several = desk.units or None, {}, {}
    if desk.result is not None:
        one = {"command": command(asked_of(desk)), "script": script(asked_of(desk), desk.tried)}
        one["paragraph"] = desk.result.paragraph(units, desk.tried)
    if desk.study is not None and desk.long_file is not None:
        how = desk.how_several_are_read
        several = {"command": study_command(desk.release_file.name, desk.long_file.name, how)}
        several["paragraph"] = desk.study.paragraph(units, desk.all_tried)
    return render("export.html", desk=desk, one=one, several=several)


def _nothing(desk: AnalystDesk) -> str:
    return render("nothing.html", asked="target" in desk.questions)


PANELS: Mapping[str, Callable[[AnalystDesk, float], str]] = {
    "release_card": release,
    "target_card": target,
    "averages_help": averages_help,
    "treatment_help": treatment_help,
    "answer": answer,
    "effects": effects,
    "placebos": placebos,
    "choices": choices,
    "several": several,
    "comparison": comparison,
    "export": export,
}


def program(folder: Path) -> ASGIApp:
    """Return the application; what is dropped on the page is kept in the folder."""
    desk = AnalystDesk(folder / "desk", Reader())
    (folder / "desk").mkdir()
    page = (WWW / "analyst.html").read_text("utf-8")
    return application(page, lambda input, output, session: _serve(desk, input, output, session))


def _serve(desk: AnalystDesk, input: Inputs, output: Outputs, session: Session) -> None:
    """Connect one page with the desk."""
    page, lists = Page(desk, input, output, session), _Lists()
    _restore(desk)

    @reactive.effect
    def _() -> None:
        page.changes()
        lists.show(desk)

    page.pressed(lambda: _open_demo(desk), "demo")
    page.dropped(desk.open_release, "release_file")
    page.dropped(desk.drop_target, "target_file")
    page.dropped(desk.open_other, "other_file")
    page.dropped(desk.drop_several, "several_file")
    page.when(desk.choose_unit, "panel_unit")
    page.when(desk.choose_outcome, "release_outcome")
    page.when(desk.paste_target, "pasted")
    page.when(desk.paste_several, "several_pasted")
    page.when(lambda *how: desk.say(dict(zip(SAID, how, strict=False)), how[-1]), *SAID, "units")
    page.when(lambda said: desk.name_column(*said), "column", ignore_init=False)  # as below
    page.when(desk.say_averages, "averages")
    page.when(desk.say_pool, "pool")
    page.when(desk.say_treatment, *TREATMENT)
    for part in PARTS:
        page.pressed(partial(desk.numbers_are, True, part), f"{part}_right")
        page.pressed(partial(desk.numbers_are, False, part), f"{part}_wrong")
    page.when(lambda position: desk.choose(int(position)), "chosen", ignore_init=False)  # not there before a click
    page.pressed(lambda: desk.choose(_next(desk, -1)), "earlier")
    page.pressed(lambda: desk.choose(_next(desk, +1)), "later")

    def shown(panel: Callable[[AnalystDesk, float], str]) -> str:
        return panel(desk, NARROW if input.narrow() else WIDE)

    for name, panel in PANELS.items():
        page.show(name, partial(shown, panel))
    for name, (file, content) in _downloads(desk).items():
        page.offer(name, file, content)


class _Lists:
    """The lists of dates, units and columns on the page, and its fields for what may be pasted."""

    def __init__(self) -> None:
        self._dates: tuple[list[str], int | None] | None = None
        self._units: tuple[tuple[str, ...], str] = ((), "")
        self._outcomes: tuple[tuple[str, ...], str] = ((), "")
        self._columns: tuple[tuple[str, ...], Columns] = ((), Columns())
        self._pasted = {"pasted": "", "several_pasted": ""}

    def show(self, desk: AnalystDesk) -> None:
        """Offer the dates and units that are possible, and show those on the desk."""
        if self._dates != (desk.periods, desk.position):
            self._dates = (desk.periods, desk.position)
            dates = {"": "–"} | {str(k): name for k, name in enumerate(desk.periods) if k >= FEWEST_BEFORE}
            ui.update_select("date", choices=dates, selected="" if desk.position is None else str(desk.position))
            ends = {"": "it goes on"} | {name: name for name in desk.periods[(desk.position or 0) :]}
            ui.update_select("treatment_end", choices=ends, selected=desk.wishes.treatment_end or "")
        if self._units != (desk.panel_units, desk.unit):
            self._units = (desk.panel_units, desk.unit)
            units = {"": "–"} | {name: name for name in desk.panel_units}
            ui.update_select("panel_unit", choices=units, selected=desk.unit)
        if self._outcomes != (desk.outcomes, desk.outcome):
            self._outcomes = (desk.outcomes, desk.outcome)
            ui.update_select("release_outcome", choices=list(desk.outcomes) or {"": "–"}, selected=desk.outcome)
        if self._columns != (desk.columns_there, desk.columns):
            self._columns = (desk.columns_there, desk.columns)
            there = {"": "–"} | {name: name for name in desk.columns_there}
            for name in COLUMNS:
                ui.update_select(f"column_{name}", choices=there, selected=getattr(desk.columns, name))
        for name, before in self._pasted.items():
            self._pasted[name] = getattr(desk, name)
            if before and not self._pasted[name]:  # something else has taken its place
                ui.update_text_area(name, value="")


def _restore(desk: AnalystDesk) -> None:
    """Fill the fields of a page that was loaded again."""
    for name in ("pasted", "several_pasted"):
        ui.update_text_area(name, value=getattr(desk, name))
    said = desk.said
    texts = {name: said.get(name, "") for name in ("time", "outcome", "time_format")} | {"units": desk.units}
    said_of_it = {name: f"{desk.wishes.said.get(name, '')}" for name in TREATMENT[1:]}
    for name, value in (texts | said_of_it | {"averages": desk.averages_written, "pool": desk.pool}).items():
        ui.update_text(name, value=value)
    ui.update_select("decimal", selected=said.get("decimal", ""))


def _open_demo(desk: AnalystDesk) -> None:
    desk.open_demo()
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

    def files() -> ReportFiles:
        return made(desk.result).files(desk.units or None, desk.tried)

    def study() -> ReportFiles:
        return made(desk.study).files(desk.units or None, desk.all_tried)

    return {
        "brief": (BRIEF, lambda: files().html(brief=True)),
        "study_brief": (BRIEF, lambda: study().html(brief=True)),
        "report": (REPORT, lambda: files().html(command(asked_of(desk)))),
        "figure": ("figure.png", lambda: files().picture("png")),
        "workbook": ("answer.xlsx", lambda: files().xlsx()),
        "checklist": (reporting.NAME, lambda: files().reporting()),
        "study_checklist": (reporting.NAME, lambda: study().reporting()),
        "script": ("answer.py", lambda: script(asked_of(desk), desk.tried).encode("utf-8")),
        "target_table": (TARGET, desk.target_table),
        "release_again": (lambda: name(desk.release_file), lambda: content(desk.release_file)),
        "study_report": (STUDY, lambda: study().html()),
        "study_table": (lambda: name(desk.long_file), lambda: content(desk.long_file)),
        "study_workbook": ("study.xlsx", lambda: study().xlsx()),
        "outcomes_report": (COMPARISON, lambda: made(desk.outcomes_together).side_by_side().html()),
        "comparison_report": (COMPARISON, lambda: made(desk.comparison).html()),
    }
