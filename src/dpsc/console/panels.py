"""What each part of the analyst's page shows, as HTML, given what lies on the desk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from dpsc.answers import document, pages, plot, words
from dpsc.answers.trials import Trials
from dpsc.console import charts, recipes
from dpsc.console.desk import FEWEST_BEFORE, Desk
from dpsc.console.screens import render
from dpsc.data.dates import period_name


def release(desk: Desk, width: float) -> str:
    """Show what is in the release."""
    return render("release.html", release=desk.release, file=desk.release_file, periods=desk.periods,
                  problem=desk.problems.get("release"))  # fmt: skip


def target(desk: Desk, width: float) -> str:
    """Show what was understood of the target, or what is wrong with it."""
    target = desk.target
    seen = None if target is None else target.dropna()
    return render("target.html", target=seen, desk=desk, problem=desk.problems.get("target"),
                  first="" if seen is None or seen.empty else period_name(seen.index[0]),
                  last="" if seen is None or seen.empty else period_name(seen.index[-1]))  # fmt: skip


def answer(desk: Desk, width: float) -> str:
    """Show the sentence, the light and the chart on which the date is chosen."""
    result, shown, units = desk.result, desk.shown, desk.units or None
    if shown is None:
        return render("begin.html", desk=desk)
    if result is None:
        chart = charts.drawn(partial(charts.target_alone, shown, units), width, shown.index)
        return render("answer.html", desk=desk, result=None, chart=chart, sentences=[], fewest=FEWEST_BEFORE)
    chart = charts.drawn(partial(plot.draw, result, "path", title="", units=units), width, result.target.index)
    return render("answer.html", desk=desk, result=result, chart=chart, sentences=words.answer(result, units),
                  fewest=FEWEST_BEFORE)  # fmt: skip


def effects(desk: Desk, width: float) -> str:
    """Show the effects of each period and added up."""
    result, units = desk.result, desk.units or None
    if result is None:
        return _nothing()
    found = document.of_result(result, Trials(), units)
    figures = {
        kind: charts.drawn(partial(plot.draw, result, kind, title="", units=units), width).source
        for kind in ("gaps", "cumulative")
        if result.observed.notna().any()
    }
    return render(
        "effects.html", found=found, figures=figures, level=words.percent(result.level),
        effects=pages.effects_table(found["effects"][:2], ["average", "total"]),
        periods=pages.periods_table(found["periods"]),
    )  # fmt: skip


def placebos(desk: Desk, width: float) -> str:
    """Show effects where there is none."""
    result = desk.result
    if result is None:
        return _nothing()
    trials, units = result.trials, desk.units or None
    drawings = {
        name: charts.drawn(partial(plot.placebos, result, found, units=units, title=""), width).source
        for name, found in (("time", trials.in_time), ("space", trials.in_space))
        if found is not None
    }
    return render("placebos.html", figures=drawings, found=document.of_result(result, trials, units)["placebos"])


def choices(desk: Desk, width: float) -> str:
    """Show the answer under other choices, and every date that was tried."""
    result = desk.result
    if result is None:
        return _nothing()
    trials, units = result.trials, desk.units or None
    figure = (
        None
        if trials.sensitivity is None
        else charts.drawn(partial(plot.sensitivity, result, trials.sensitivity, units=units, title=""), width).source
    )
    found = document.of_result(result, trials, units)["sensitivity"]
    return render("choices.html", figure=figure, table=pages.sensitivity_table(found), desk=desk)


def several(desk: Desk, width: float) -> str:
    """Show the units of a study and their pooled effect."""
    study, units = desk.study, desk.units or None
    if study is None:
        return render("several.html", study=None, problem=desk.problems.get("several"))
    found = document.of_study(study, units)
    assert desk.release_file is not None
    assert desk.long_file is not None
    command = recipes.study_command(desk.release_file.name, desk.long_file.name, desk.how_several_are_read)
    figures = {
        kind: charts.drawn(partial(plot.draw, study, kind, title="", units=units), width).source
        for kind in ("event", "units")
    }
    return render(
        "several.html", study=study, problem=None, command=command, found=found, figures=figures,
        effects=pages.effects_table(found["effects"], [row["of"] for row in found["effects"]]),
        by_unit=pages.by_unit_table(found["by_unit"]),
    )  # fmt: skip


def comparison(desk: Desk, width: float) -> str:
    """Show the same question asked of two releases."""
    compared = desk.comparison
    values: dict[str, Any] = {}
    if compared is not None:
        assert desk.release_file is not None
        assert desk.other_file is not None
        names = (desk.release_file.name, desk.other_file.name)
        figure = charts.drawn(partial(plot.compare, list(compared.answers), title=""), width).source
        differing = compared.differences()
        values = {
            "figure": figure, "table": pages.table(compared.columns()),
            "commands": recipes.comparison_commands(names, desk.date, desk.units),
            "differences": pages.table({"answer": compared.names} | differing, labels=1 + len(differing)),
        }  # fmt: skip
    return render("comparison.html", compared=compared, desk=desk, problem=desk.problems.get("other"), **values)


def export(desk: Desk, width: float) -> str:
    """Show what can be taken away, and the command and the script that do the same."""
    if desk.result is None or desk.release_file is None:
        return _nothing()
    name = desk.release_file.name
    return render("export.html", desk=desk, command=recipes.command(name, desk.date, desk.units),
                  script=recipes.script(name, desk.date, desk.units, desk.tried))  # fmt: skip


def _nothing() -> str:
    return render("nothing.html")


PANELS: Mapping[str, Callable[[Desk, float], str]] = {
    "release_card": release, "target_card": target, "answer": answer, "effects": effects, "placebos": placebos,
    "choices": choices, "several": several, "comparison": comparison, "export": export,
}  # fmt: skip
