"""An answer as a workbook of a spreadsheet: one sheet per question that a reader has. Needs openpyxl, an extra."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from dpsc import files
from dpsc.answers import words
from dpsc.answers import words as parameters
from dpsc.answers.document import Document
from dpsc.errors import ParameterError
from dpsc.privacy.guarantee import Guarantee

Rows = Sequence[Mapping[str, Any]]
_NOT_PRINTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # a workbook cannot hold them


def require_openpyxl() -> None:
    """Refuse to write a workbook where the library that writes it is missing."""
    if find_spec("openpyxl") is None:
        raise ParameterError("an .xlsx file needs openpyxl: pip install 'dpsc[xlsx]'. Or write .csv, .json or .html.")


def workbook(document: Document, guarantee: Guarantee | None) -> bytes:
    """Return the content of an .xlsx file: answer, effects, periods, units, placebos, sensitivity, parameters."""
    return book({title: rows for title, rows in _sheets(document, guarantee).items() if rows})


def book(content: Mapping[str, Rows]) -> bytes:
    """Return the content of an .xlsx file with these sheets."""
    require_openpyxl()
    from openpyxl import Workbook

    made = Workbook()
    made.remove(made.worksheets[0])
    for title, rows in content.items():
        _fill(made.create_sheet(title), rows)
    buffer = io.BytesIO()
    made.save(buffer)
    return buffer.getvalue()


def _sheets(document: Document, guarantee: Guarantee | None) -> dict[str, Rows]:
    """Return the rows of every sheet, by its title; a sheet without rows is left out."""
    placebos = document.get("placebos") or {}
    in_time, in_space = placebos.get("in_time"), placebos.get("in_space")
    return {
        "answer": _answer(document),
        "effects": document["effects"],
        "after the treatment": _after(document),
        "worth": (document.get("worth") or {}).get("rows", []),
        "periods": document["periods"],
        "before": document.get("before", []),
        "units": document.get("by_unit", []),
        "event time": document.get("by_event_time", []),
        "calendar time": document.get("by_calendar_time", []),
        "placebos": [{"placebo": "earlier date", **row} for row in (in_time["placebos"] if in_time else [])]
        + [
            {
                "placebo": "made-up unit" if (in_space or {}).get("rank") is None else "other unit",
                "treatment_time": document["treatment_time"],
                **row,
            }
            for row in (in_space["placebos"] if in_space else [])
        ],
        "donors": document.get("donors", []),
        "sensitivity": document.get("sensitivity", []),
        "dates tried": [
            {"treatment_time": row["treatment_time"], "for": ", ".join(row["for"])} for row in document["dates_tried"]
        ],
        "parameters": [
            {"parameter": label, "value": value}
            for (label, _), value in zip(
                parameters.in_words(document["parameters"]), document["parameters"].values(), strict=True
            )
        ],
        "guarantee": _guarantee(document, guarantee),
    }


def _after(document: Document) -> Rows:
    """Return what was seen after a treatment that ended."""
    found = document.get("contrasts") or {}
    return found["rows"] if found.get("ended") else []


def _answer(document: Document) -> Rows:
    interval = document["average_effect_interval"] or [None, None]
    percent = document["percent"] or {}
    said = {
        "question": document["title"],
        "answer": " ".join(document["answer"]),
        "outcome": document["outcome"],
        "measured in": document["units"],
        "first treated period": document["treatment_time"] if document["kind"] == "result" else None,
        "treated units": len(document["by_unit"]) if document["kind"] == "study" else None,
        "never treated, for the reader only": ", ".join(document.get("never_treated", [])) or None,
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
        return [{"": "guarantee", "value": f"none, NOT PRIVATE: {document['no_guarantee']}"}]
    numbers = [{"": name, "value": value} for name, value in (document["guarantee"] or {}).items()]
    return numbers + [{"": "what it means", "value": sentence} for sentence in words.meaning(guarantee)]


def _fill(sheet: Any, rows: Rows) -> None:
    """Write a header and rows; a text is a text, whatever it begins with."""
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter

    names = list(dict.fromkeys(name for row in rows for name in row))
    sheet.append([_cell(name.replace("_", " ")) for name in names])
    for row in rows:
        sheet.append([_cell(row.get(name)) for name in names])
    for k, name in enumerate(names, start=1):
        texts = [str(row.get(name) or "") for row in rows]
        numeric = any(isinstance(row.get(name), float) for row in rows)
        wide = 14 if numeric else min(100, max(map(len, [name, *texts])) + 2)
        sheet.column_dimensions[get_column_letter(k)].width = max(10, wide)
        for cell in next(sheet.iter_cols(k, k, 2)):
            if isinstance(cell.value, float):
                cell.number_format = _format(name, rows[cell.row - 2], rows)
            elif isinstance(cell.value, str) and len(cell.value) > 90:
                cell.alignment = Alignment(wrap_text=True, vertical="top")
    for cell in sheet[1]:
        cell.font = Font(bold=True)
    sheet.freeze_panes = "A2"


_TOGETHER = ("effect", "lower", "upper")  # numbers of one row that are read together


def _format(name: str, row: Mapping[str, Any], rows: Rows) -> str:
    """Return how a number is shown; the cell holds every digit. An effect and its interval have as many decimals."""
    if "percent" in name or "percent" in str(row.get("", "")):
        return "0.0"
    if name == "p_value" or row.get("") == "p-value":
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


def _cell(value: Any) -> Any:
    return files.harmless(_NOT_PRINTED.sub("", value)) if isinstance(value, str) else value
