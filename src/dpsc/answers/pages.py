"""Self-contained HTML pages from templates: nothing is fetched, everything is escaped. The page of one answer."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from dpsc.answers import plot, words
from dpsc.answers import words as parameters
from dpsc.answers.base import Answer, Several
from dpsc.answers.document import Document
from dpsc.answers.placebos import Trials
from dpsc.answers.words import column, p_text
from dpsc.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Environment
    from matplotlib.figure import Figure


def render(template: str, **values: Any) -> str:
    """Fill a template of ``dpsc/answers/templates``."""
    return _environment().get_template(template).render(**values)


def inline_svg(svg: bytes) -> str:
    """Return an SVG file as the address of an image that is part of the page."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")


def inline_png(png: bytes) -> str:
    """Return a PNG file as the address of an image that is part of the page."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def card(heading: str, lines: Sequence[str], figure: Figure, private: bool, reason: str) -> str:
    """Return what a notebook shows of an object: a heading, a few sentences, and a figure."""
    image = inline_png(plot.as_bytes(figure, "png", dpi=144))
    return render("card.html", heading=heading, lines=lines, image=image, warning="" if private else reason)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("dpsc.answers"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )


RESULT_FIGURES = {"path": "path", "gaps": "gaps"}
STUDY_FIGURES = {"event": "event", "units": "units"}
MANY_PANELS = 6.0
ON_A_PAGE = 4.8  # inches: letters of 9 points are 10 pixels high on a phone and 16 on a desk


class Table(NamedTuple):
    """A table with a header; the first ``labels`` columns are text, the others are numbers."""

    header: list[str]
    rows: list[list[str]]
    labels: int = 1


def of_result(result: Answer, trials: Trials, document: Document, command: str) -> str:
    """Return the page of one answer."""
    seen = bool(result.observed.notna().any())
    for_effect = result.interval_kind == "effect"
    units = document["units"]
    kinds = ["path", *(["gaps"] if seen else []), *(["cumulative"] if seen and for_effect else [])]
    images = {kind: image(_drawing(result, kind, units, _TITLES[kind])) for kind in kinds}
    for name, placebos in (("in_time", trials.in_time), ("in_space", trials.in_space)):
        if placebos is not None and seen:
            images[name] = image(partial(plot.placebos, result, placebos, units=units))
    if trials.sensitivity is not None and seen:
        images["sensitivity"] = image(partial(plot.sensitivity, result, trials.sensitivity, units=units))
    return render(
        "result.html",
        result=result,
        seen=seen,
        for_effect=for_effect,
        average=result.average,
        effects=effects_table(document["effects"][:2], ["average", "total"]),
        periods=periods_table(document["periods"]),
        baselines=_baselines(document),
        sensitivity=sensitivity_table(document["sensitivity"]),
        images=images,
        **_shared(document, result.guarantee, command),
    )


def of_study(study: Several, document: Document, command: str) -> str:
    """Return the page of a study."""
    grades = [row["donors_help"] for row in document["by_unit"]]
    names = [row["of"] for row in document["effects"]]
    return render(
        "study.html",
        study=study,
        average=study.average,
        effects=effects_table(document["effects"], names),
        by_unit=by_unit_table(document["by_unit"]),
        by_event_time=_counted(document["by_event_time"], "periods_after", "periods after"),
        by_calendar_time=_counted(document["by_calendar_time"], "time", "period"),
        grades={grade: grades.count(grade) for grade in ("yes", "unclear", "no")},
        weighted=study.weights.nunique() > 1,
        images={
            kind: image(_drawing(study, kind, document["units"], _TITLES[kind]), width)
            for kind, width in (("event", ON_A_PAGE), ("units", MANY_PANELS))
        },
        **_shared(document, study.guarantee, command),
    )


def _shared(document: Document, guarantee: Any, command: str) -> dict[str, Any]:
    today = datetime.now(UTC)
    return {
        "document": document,
        "guarantee": guarantee,
        "meaning": [] if guarantee is None else words.meaning(guarantee),
        "parameters": parameters.in_words(document["parameters"]),
        "level": words.percent(document["level"]) if document["level"] is not None else "",
        "words": words,
        "command": command,
        "version": __version__,
        "date": today.strftime("%Y-%m-%d"),
        "year": today.year,
    }


_TITLES = {"path": "", "gaps": "The effect in each period", "cumulative": "The effect added up", "event": "",
           "units": "Unit by unit"}  # fmt: skip


def _drawing(answer: Any, kind: str, units: str | None, title: str) -> Callable[..., Any]:
    """Return how to draw a figure of a result or a study, both of which have figures; the page asks the question."""
    return partial(plot.draw, answer, kind, units=units, title=title)


def image(draw: Callable[..., Any], width: float = ON_A_PAGE) -> str:
    """Draw a figure for a page, so narrow that its letters can still be read on a phone."""
    return inline_svg(plot.as_bytes(plot.figure_of(draw(figsize=(width, None))), "svg"))


Rows = Sequence[Mapping[str, Any]]
Write = Callable[[Any], str]


def effects_table(rows: Rows, names: Sequence[str]) -> Table:
    """Return effects with their intervals, in percent, and with p-values."""
    effect, low, high = _alike(rows, ("effect", "lower", "upper"))
    part, least, most = (
        column([row[name] for row in rows], sign=True, decimals=1)
        for name in ("percent", "percent_lower", "percent_upper")
    )
    return _without_empty(Table(
        ["", "effect", "interval", "in percent", "interval", "p-value"],
        [
            [name, effect[k], _between(low[k], high[k]), _unit(part[k]), _between(_unit(least[k]), _unit(most[k])),
             p_text(rows[k]["p_value"])]
            for k, name in enumerate(names)
        ],
    ))  # fmt: skip


def _alike(rows: Rows, names: Sequence[str]) -> list[list[str]]:
    """Return columns with one number of decimals: an average keeps its digits above a total."""
    decimals = max((words.decimals_of(row[names[0]]) for row in rows if row[names[0]]), default=0)
    return [column([row[name] for row in rows], sign=True, decimals=decimals) for name in names]


def periods_table(rows: Rows) -> Table:
    """Return what was, what would have been, and the difference, period by period."""
    of_path = [row[name] for row in rows for name in ("observed", "counterfactual")]
    observed, path = (column([row[name] for row in rows], like=of_path) for name in ("observed", "counterfactual"))
    gap = column([row["gap"] for row in rows], sign=True)
    columns: dict[str, list[str]] = {"period": [str(row["time"]) for row in rows], "observed": observed,
                                     "counterfactual": path}  # fmt: skip
    columns |= _interval(rows, "counterfactual", of_path, sign=False)
    columns["effect"] = gap
    columns |= _interval(rows, "gap", [row["gap"] for row in rows], sign=True)
    return table(columns)


def _interval(rows: Rows, name: str, like: Sequence[Any], *, sign: bool) -> dict[str, list[str]]:
    if f"{name}_lower" not in rows[0]:
        return {}
    low, high = (column([row[f"{name}_{end}"] for row in rows], sign=sign, like=like) for end in ("lower", "upper"))
    what = "its interval" if name == "counterfactual" else "its interval "
    return {what: [_between(*ends) for ends in zip(low, high, strict=True)]}


def sensitivity_table(rows: Rows) -> Table:
    """Return the average effect under other choices."""
    if not rows:
        return Table([], [])
    return table({
        "choice": [row["choice"] for row in rows],
        "first treated": [row["treatment_time"] for row in rows],
        "periods before": [str(row["before"]) for row in rows],
        **_effect_columns(rows),
    }, labels=2)  # fmt: skip


def by_unit_table(rows: Rows) -> Table:
    """Return the effect on each unit, and whether donors help."""
    lights = {"yes": "● yes", "unclear": "◐ unclear", "no": "○ no", None: "–"}
    weights = {"weight": column([row["weight"] for row in rows])} if len({row["weight"] for row in rows}) > 1 else {}
    return table({
        "unit": [str(row["unit"]) for row in rows],
        "first treated": [row["treatment_time"] for row in rows],
        "do donors help": [lights[row["donors_help"]] for row in rows],
        "periods": [str(row["periods"]) for row in rows],
        **weights,
        **_effect_columns(rows),
    }, labels=3)  # fmt: skip


def _counted(rows: Rows, key: str, header: str) -> Table:
    return table({
        header: [str(row[key]) for row in rows],
        "units": [str(row["units"]) for row in rows],
        **_effect_columns(rows),
    })  # fmt: skip


def _effect_columns(rows: Rows) -> dict[str, list[str]]:
    """Return the effect, its interval and its p-value of each row, with the same digits down each column."""
    values = [row["effect"] for row in rows]
    effect, low, high = (
        column([row[name] for row in rows], sign=True, like=values) for name in ("effect", "lower", "upper")
    )
    columns = {"effect": effect, "interval": [_between(*ends) for ends in zip(low, high, strict=True)],
               "p-value": [p_text(row["p_value"]) for row in rows]}  # fmt: skip
    return {name: cells for name, cells in columns.items() if any(cell != "–" for cell in cells)}


_WITHOUT_DONORS = {
    "last value": "the target's last value before the intervention, held constant",
    "line": "a straight line through the target before the intervention",
}


def _baselines(document: Document) -> Table:
    """Return what forecasts without donors would have found, below the answer."""
    if not document["baselines"] or document["average_effect"] is None:
        return Table([], [])
    values = [document["average_effect"], *document["baselines"].values()]
    names = ["the answer above, with donors", *(_WITHOUT_DONORS.get(n, n) for n in document["baselines"])]
    return table({"forecast": names, "average effect": column(values, sign=True)})


def table(columns: Mapping[str, Sequence[str]], labels: int = 1) -> Table:
    """Return a table, given its columns."""
    return Table([name.strip() for name in columns], [list(row) for row in zip(*columns.values(), strict=True)], labels)


def _without_empty(table: Table) -> Table:
    """Leave out columns without a single number."""
    kept = [k for k in range(len(table.header)) if any(row[k] != "–" for row in table.rows)]
    return Table([table.header[k] for k in kept], [[row[k] for k in kept] for row in table.rows], table.labels)


def _between(low: str, high: str) -> str:
    return "–" if "–" in (low, high) else f"{low} to {high}"


def _unit(text: str) -> str:
    return text if text == "–" else f"{text}%"
