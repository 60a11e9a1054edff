"""An answer as a workbook of a spreadsheet: a sheet for each of its tables, with a chart that is drawn from the cells.

Needs XlsxWriter, an extra.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from dpsc import files
from dpsc.answers import tables, words
from dpsc.answers.document import Document
from dpsc.answers.figures.sheet import BLACK, BLUE, GREY, GRID, VERMILION
from dpsc.errors import ParameterError
from dpsc.privacy.guarantee import Guarantee, mark_of

Rows = Sequence[Mapping[str, Any]]
_NOT_PRINTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # a workbook cannot hold them
_BARS = 20  # donors in a chart
_WIDEST = 90  # letters in a cell before its text is broken into lines
_NOT_IN_A_TITLE, _LONGEST_TITLE = r"[\[\]:*?/\\'\x00-\x1f]", 31  # of a sheet
CHARTS = "charts"  # the sheet that has them
_ROWS, _COLUMNS = 20, 10  # cells of a sheet that a chart takes


class Chart(NamedTuple):
    """What is drawn from the cells of a sheet.

    Attributes
    ----------
    kind : {"paths", "ranges", "bars"}
        Observed and counterfactual over time; an effect and its interval at each place; a bar at each place.
    label : str
        The column of places.
    effect : str
        The column that is drawn; of ranges, ``lower`` and ``upper`` are those of its interval.
    title : str
    highlighted : bool
        Whether the first row has a colour of its own: the answer itself, among others.
    measured : str
        What the numbers are, with their units.
    """

    kind: Literal["paths", "ranges", "bars"]
    label: str
    effect: str
    title: str
    lower: str = "lower"
    upper: str = "upper"
    highlighted: bool = False
    measured: str = ""


NO_CHARTS: Mapping[str, Chart] = MappingProxyType({})


def require_writer() -> None:
    """Refuse to write a workbook where the library that writes it is missing."""
    if find_spec("xlsxwriter") is None:
        raise ParameterError("an .xlsx file needs XlsxWriter: pip install 'dpsc[xlsx]'. Or write .csv, .json or .html.")


def workbook(document: Document, guarantee: Guarantee | None) -> bytes:
    """Return the content of an .xlsx file: the answer, its paths, every table, dates tried, parameters, guarantee."""
    return book(_sheets(document, guarantee), _charts(document))


def side_by_side(rows: Rows, documents: Mapping[str, Document], *, alike: bool) -> bytes:
    """Return a workbook of several answers: a table of all with its chart, and the tables and paths of each."""
    columns = ("average effect", "from", "to") if alike else ("percent", "percent from", "percent to")
    title = "Average effects" + ("" if alike else " in percent")
    content: dict[str, Rows] = {"comparison": rows, CHARTS: []}
    charts = {"comparison": Chart("ranges", "answer", columns[0], title, *columns[1:])}
    for number, document in enumerate(documents.values(), start=1):
        own = {"path": _paths(document)} | {what: each.values for what, each in tables.of(document).items()}
        room = _LONGEST_TITLE - 1 - max(map(len, own))
        name = f"{number} {re.sub(_NOT_IN_A_TITLE, ' ', document['outcome'])}"[:room].strip()
        content |= {f"{name} {what}": each for what, each in own.items()}
        drawn = {what: chart for what, chart in _charts(document).items() if what in ("path", "event time")}
        charts |= {f"{name} {what}": chart for what, chart in drawn.items()}
    return book(content, charts)


def book(content: Mapping[str, Rows], charts: Mapping[str, Chart] = NO_CHARTS) -> bytes:
    """Return the content of an .xlsx file with these sheets; those without rows are left out.

    Each chart is drawn from the cells of the sheet that it is named after; all of them are on a sheet of their own.
    """
    require_writer()
    from xlsxwriter import Workbook

    buffer = io.BytesIO()
    with Workbook(buffer, {"in_memory": True}) as made:
        sheets = {title: made.add_worksheet(title) for title, rows in content.items() if rows or title == CHARTS}
        for title, sheet in sheets.items():
            _fill(made, sheet, content[title])
        if CHARTS in sheets:
            sheets[CHARTS].set_portrait()
        found = (_drawn(made, title, content[title], chart) for title, chart in charts.items() if title in sheets)
        for k, drawn in enumerate(each for each in found if each is not None):
            sheets[CHARTS].insert_chart(k // 2 * _ROWS, k % 2 * _COLUMNS, drawn, {"x_offset": 8, "y_offset": 8})
    return buffer.getvalue()


def _sheets(document: Document, guarantee: Guarantee | None) -> dict[str, Rows]:
    """Return the rows of every sheet, by its title."""
    found = {
        name: each.values or [dict(zip(each.header, row, strict=True)) for row in each.rows]
        for name, each in tables.of(document).items()
    }
    real = {name: document["effects"][0].get(name) for name in ("effect", "lower", "upper", "p_value")}
    for name in ("placebos", "placebos in space"):
        if name in found:
            label = next(iter(found[name][0]))
            date = f": {document['treatment_time']}" if document["kind"] == "result" else ""
            found[name] = [{label: f"the answer{date}"} | real, *found[name]]
    return {
        "answer": _answer(document),
        CHARTS: [],
        "path": _paths(document),
        **found,
        "units and periods": document["periods"] if document["kind"] == "study" else [],
        "dates tried": [
            {"treatment_time": row["treatment_time"], "for": ", ".join(row["for"])} for row in document["dates_tried"]
        ],
        "parameters": [
            {"parameter": label, "value": value}
            for (label, _), value in zip(
                words.in_words(document["parameters"]), document["parameters"].values(), strict=True
            )
        ],
        "guarantee": _guarantee(document, guarantee),
    }


def _paths(document: Document) -> Rows:
    """Return what was and what would have been, before the intervention and after it; nothing of a study."""
    if document["kind"] == "study":
        return []
    before, after = (
        [
            {"time": row["time"], "observed": row["observed"], name: row[path]}
            | {end: row.get(f"{path}_{end}") for end in ("lower", "upper")}
            for row in rows
        ]
        for rows, path, name in (
            (document["before"], "fit", "predicted"),
            (document["periods"], "counterfactual", "counterfactual"),
        )
    )
    return [
        {"time": row["time"], "observed": row["observed"], "predicted": None, "counterfactual": None} | row
        for row in (*before, *after)
    ]


def _charts(document: Document) -> dict[str, Chart]:
    """Return the chart of each sheet that has one."""
    what = document["outcome"]
    effects, measured = f"Effect on {what}", words.in_units(what, document["units"])
    charts = {
        "path": Chart("paths", "time", "counterfactual", document["title"]),
        "periods": Chart("ranges", "time", "gap", f"{effects} in each period", "gap_lower", "gap_upper"),
        "placebos": Chart(
            "bars", "pretended date", "effect", "The answer, and dates when nothing happened", highlighted=True
        ),
        "placebos in space": Chart(
            "bars", "unit", "effect", "The answer, and units without the intervention", highlighted=True
        ),
        "donors": Chart("bars", "donor", "weight", "Weights of the donors that count most"),
        "sensitivity": Chart("ranges", "choice", "effect", f"{effects} under other choices"),
        "units": Chart("ranges", "unit", "effect", f"{effects} in each unit"),
        "event time": Chart("ranges", "periods_after", "effect", f"{effects} by periods since the treatment"),
        "calendar time": Chart("ranges", "time", "effect", f"{effects} by period"),
    }
    return {name: chart._replace(measured=measured) for name, chart in charts.items()}


def _answer(document: Document) -> Rows:
    interval = document["average_effect_interval"] or [None, None]
    percent, pre_trend = document["percent"] or {}, document.get("pre_trend") or {}
    said = {
        "question": document["title"],
        "answer": " ".join(document["answer"]),
        "outcome": document["outcome"],
        "measured in": document["units"],
        "first treated period": document["treatment_time"] if document["kind"] == "result" else None,
        "treated units": len(document["by_unit"]) if document["kind"] == "study" else None,
        "never treated, for comparison only": ", ".join(document.get("never_treated", [])) or None,
        "average effect": document["average_effect"],
        "its interval from": interval[0],
        "its interval to": interval[1],
        "level of the interval": document["level"],
        "average effect in percent": percent.get("effect"),
        "percent from": percent.get("lower"),
        "percent to": percent.get("upper"),
        "p-value": document["p_value"],
        "rank among units": _rank(document),
        "total effect": document["total"]["effect"],
        "p-value of the pre-trend test": pre_trend.get("p_value"),
        "bound of the equivalence test": pre_trend.get("bound"),
        "p-value of the equivalence test": pre_trend.get("equivalence_p"),
        "smallest bound with equivalence at 5%": pre_trend.get("smallest_bound"),
        "p-value of a difference between groups": (document.get("groups") or {}).get("p_value"),
        "what it is worth": " ".join((document.get("worth") or {}).get("words", [])) or None,
        "smallest effect seen 4 times in 5": document.get("detectable"),
        "do the donors help": (document.get("verdict") or {}).get("headline"),
        "method": document["method"],
        "made by": document["made_by"],
    }
    notes = [{"": "note", "value": note} for note in document["notes"]]
    return [{"": name, "value": value} for name, value in said.items() if value is not None] + notes


def _rank(document: Document) -> str | None:
    """Return the place of the effect among the units of a private panel, by effect over standard error."""
    in_space = (document.get("placebos") or {}).get("in_space") or {}
    return f"{in_space['rank']} of {in_space['units']}" if in_space.get("rank") else None


def _guarantee(document: Document, guarantee: Guarantee | None) -> Rows:
    if guarantee is None:
        return [{"": "guarantee", "value": f"none, {mark_of(document['no_guarantee'])}: {document['no_guarantee']}"}]
    numbers = [{"": name, "value": value} for name, value in (document["guarantee"] or {}).items()]
    return numbers + [{"": "what it means", "value": sentence} for sentence in words.meaning(guarantee)]


def _fill(made: Any, sheet: Any, rows: Rows) -> None:
    """Write a header and rows; a text is a text, whatever it begins with."""
    bold, top = made.add_format({"bold": True}), made.add_format({"valign": "top"})
    long = made.add_format({"text_wrap": True, "valign": "top"})
    formats: dict[tuple[str, bool], Any] = {}
    for k, name in enumerate(dict.fromkeys(name for row in rows for name in row)):
        texts = [name, *(value for row in rows if isinstance(value := row.get(name), str))]
        width = max(14, min(_WIDEST, max(map(len, texts)) + 2))
        sheet.set_column(k, k, width)
        sheet.write_string(0, k, _text(name.replace("_", " ")), bold)
        for at, row in enumerate(rows, start=1):
            value = row.get(name)
            if isinstance(value, str):
                sheet.write_string(at, k, _text(value), long if len(value) > _WIDEST else top)
                if len(value) > _WIDEST:
                    sheet.set_row(at, 15 * math.ceil(1.1 * len(value) / _WIDEST))
            elif value is not None:
                shown = _format(name, row, rows) if isinstance(value, float) else "General", width > 24
                if shown not in formats:  # among long texts, a number stands where they begin
                    side = {"align": "left"} if shown[1] else {}
                    formats[shown] = made.add_format({"num_format": shown[0], "valign": "top", **side})
                sheet.write(at, k, value, formats[shown])
    sheet.freeze_panes(1, 0)
    sheet.set_landscape()
    sheet.set_paper(9)  # A4
    sheet.fit_to_pages(1, 0)


def _drawn(made: Any, title: str, rows: Rows, chart: Chart) -> Any:
    """Return a chart that a spreadsheet draws from the cells; None if these have nothing to draw."""
    names = list(dict.fromkeys(name for row in rows for name in row))

    def cells(name: str, least: int = 1) -> list[Any] | None:
        """Return where a column's numbers are, if there are enough of them."""
        if name not in names or sum(row.get(name) is not None for row in rows) < least:
            return None
        shown = rows[:_BARS] if chart.effect == "weight" else rows
        return [title, 1, names.index(name), len(shown), names.index(name)]

    label, effect, lower, upper = (cells(name) for name in (chart.label, chart.effect, chart.lower, chart.upper))
    if label is None or effect is None:
        return None

    def series(values: list[Any] | None, name: str, **look: Any) -> None:
        if values is not None:
            drawn.add_series({"name": name, "categories": label, "values": values, **look})

    none, dash = {"none": True}, {"type": "long_dash", "size": 6, "border": {"color": GREY}, "fill": {"color": GREY}}
    dot = {"type": "circle", "size": 7, "border": {"color": BLUE}, "fill": {"color": BLUE}}
    if chart.kind == "paths":
        drawn = made.add_chart({"type": "line"})
        series(cells("observed"), "observed", line={"color": BLACK, "width": 2.25})
        series(
            cells("predicted"),
            "predicted before the intervention",
            line={"color": VERMILION, "width": 1.5, "dash_type": "dash"},
        )
        series(effect, "without the intervention", line={"color": VERMILION, "width": 2.5})
        for ends in (lower, upper):
            series(ends, "interval", line={"color": VERMILION, "width": 0.75, "dash_type": "round_dot"})
    elif chart.kind == "ranges" and lower is not None and upper is not None:
        drawn = made.add_chart({"type": "stock"})
        drawn.set_high_low_lines({"line": {"color": GREY, "width": 1.75}})
        series(upper, "interval", line=none, marker=dash)
        series(lower, "interval", line=none, marker=dash)
        series(effect, "effect", line=none, marker=dot)
    else:
        drawn = made.add_chart({"type": "column"})
        first = {"points": [{"fill": {"color": VERMILION}}]} if chart.highlighted else {}
        series(effect, chart.effect, fill={"color": BLUE}, gap=40, **first)
    drawn.set_title({"name": _text(chart.title), "name_font": {"size": 12}, "overlay": False})
    below = {"label_position": "low", "num_font": {"rotation": -45} if len(rows) > 8 else {}, "text_axis": True}
    drawn.set_x_axis(below | {"num_format": "General"})
    side: dict[str, Any] = {
        "name": chart.effect if chart.effect == "weight" else _text(chart.measured),
        "name_font": {"bold": False},
    }
    if chart.kind == "paths":
        side |= _ends([row[name] for row in rows for name in names[1:] if row.get(name) is not None])
    drawn.set_y_axis(side | {"major_gridlines": {"visible": True, "line": {"color": GRID}}})
    twice = [0] if chart.kind == "ranges" else [4]  # the other end of the interval has a name
    drawn.set_legend({"none": True} if chart.kind == "bars" else {"position": "bottom", "delete_series": twice})
    drawn.set_size({"width": 64 * _COLUMNS - 16, "height": 20 * _ROWS - 16})
    return drawn


def _ends(values: Sequence[float]) -> dict[str, float]:
    """Return where an axis of paths begins and ends: spreadsheets would often begin it at zero."""
    low, high = min(values), max(values)
    if not high > low:
        return {}
    step = 10.0 ** math.floor(math.log10(high - low)) / 2
    return {"min": step * math.floor(low / step), "max": step * math.ceil(high / step)}


_TOGETHER = ("effect", "lower", "upper")  # numbers of one row that are read together


def _format(name: str, row: Mapping[str, Any], rows: Rows) -> str:
    """Return how a number is shown; the cell holds every digit. An effect and its interval have as many decimals."""
    if "percent" in name or "percent" in str(row.get("", "")):
        return "0.0"
    if name.endswith(("p_value", "_p")) or str(row.get("", "")).startswith("p-value"):
        return "0.000"
    if name in _TOGETHER:
        values = [row.get(other) for other in _TOGETHER]
    elif name == "value":  # below that are numbers of many kinds
        values = [row.get(name)]
    else:
        values = [other.get(name) for other in rows]
    shown = words.column([value for value in values if isinstance(value, float)])
    decimals = max((len(text.partition(".")[2]) for text in shown if "e" not in text), default=0)
    return "0.000E+00" if any("e" in text for text in shown) else "#,##0" + (f".{'0' * decimals}" if decimals else "")


def _text(value: str) -> str:
    return str(files.harmless(_NOT_PRINTED.sub("", value)))
