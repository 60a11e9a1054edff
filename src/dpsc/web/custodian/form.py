"""The fields of the custodian's page, what was written into them, and long work, in a thread that pages follow."""

from __future__ import annotations

import math
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dpsc.errors import DpscError, Parameter, ParameterError, mentioned
from dpsc.tables.spec import MIDPOINT
from dpsc.web.custodian.kind import Kind
from dpsc.web.desk import Desk, File, Reader, trouble_of
from dpsc.web.server import render


@dataclass(frozen=True)
class Field:
    """A field of the page.

    Attributes
    ----------
    label : str
    hint : str
        What may stand in it.
    default : str
    choices : mapping
        Values and how they are shown, if there is a list to choose from.
    """

    label: str
    hint: str = ""
    default: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)


_AS_SEEN = {"": "as the file shows"}
_NOT_SAID = {"": "–"}
_SHAPES = _AS_SEEN | {"long": "long: one row per unit and period", "wide": "wide: one row per unit"}
_SEPARATORS = _AS_SEEN | {"comma": "comma", "semicolon": "semicolon", "tab": "tab", "pipe": "pipe |"}
_ENCODINGS = _AS_SEEN | {
    "utf-8": "UTF-8",
    "utf-16": "UTF-16",
    "windows-1252": "Windows-1252",
    "latin-1": "Latin-1",
}
_DECIMALS = _NOT_SAID | {"point": "point", "comma": "comma"}
_THOUSANDS = _NOT_SAID | {name: name for name in ("none", "comma", "point", "space", "apostrophe")}
_MISSING = {
    "": "as the public kernel expects (usual)",
    "interpolate": "straight lines between the donor's numbers",
    "midpoint": "the middle of the bounds",
    "error": "refuse the file",
}
_REPEATED = _NOT_SAID | {
    "missing": "missing (usual)",
    "sum": "the sum, as of bills",
    "mean": "the mean, as of readings",
    "last": "the last, as of corrections",
}

_PROTECTED = {"donor": "each donor", "person": "each person inside the donors"}
_STATISTICS = {
    "mean": "the mean over its people",
    "total": "the total over its people",
    "share": "the share of its people whose number is not zero",
    "count": "how many people it has",
}

FIELDS = {
    "protected": Field("Who is protected?", default="donor", choices=_PROTECTED),
    "path": Field("Or type where it is on this machine", "/data/donors.csv"),
    "shape": Field("Shape", choices=_SHAPES),
    "person": Field("Column of people"),
    "unit": Field("Column of units"),
    "time": Field("Column of periods"),
    "outcome": Field("Column of numbers"),
    "units": Field("Units", "north, south, west, or a file"),
    "sep": Field("Between columns", choices=_SEPARATORS),
    "encoding": Field("Encoding", choices=_ENCODINGS),
    "sheet": Field("Sheet of a workbook"),
    "periods": Field("Periods", "2021-01..2023-12, or 2024-01-01..2024-12-30 by week, or a file"),
    "time_format": Field("How dates are written", "%d/%m/%Y"),
    "decimal": Field("Mark before decimals", choices=_DECIMALS),
    "thousands": Field("Mark between thousands", choices=_THOUSANDS),
    "missing": Field("Missing cells", choices=_MISSING),
    "repeated": Field("Cells that several rows give", choices=_REPEATED),
    "low": Field("Lowest possible number", "none"),
    "high": Field("Highest possible number", "none"),
    "statistic": Field("What is published of a cell", default="mean", choices=_STATISTICS),
    "person_bound": Field("Bound on all values together", "as the numbers above allow"),
    "person_bound_quantile": Field("Or share of people whom a bound found privately leaves unchanged", "0.5"),
    "cells_per_period": Field("Units per person in one period", "1"),
    "cells_per_person": Field("Cells per person in all", "all"),
    "exclude": Field("Units to leave out", "A17, A23"),
    "by": Field("Column of segments", "none"),
    "labels": Field("Segments", "basic, plus, pro"),
    "like_before": Field("First treated period of that series", "2023-04"),
    "scale": Field("How much a donor moves", "from public knowledge, or empty"),
    "dataset": Field("Data set in the ledger"),
    "new_name": Field("Name of the data set", "patients"),
    "new_epsilon": Field("Epsilon in total", default="2"),
    "new_delta": Field("Delta in total", default="1e-6"),
    "n": Field("Number of donors", "as counted"),
    "people": Field("People in a usual cell", "800"),
    "change": Field("Usual change from period to period", "if you know it"),
    "averages": Field("People that the target averages", "1", default="1"),
    "epsilon": Field("Epsilon of this release", default="1"),
    "delta": Field("Delta of this release", default="1e-6"),
    "recipient": Field("Who receives it", "the team of Dr Ruiz"),
    "purpose": Field("What it is for", "effect of the new treatment on costs"),
    "file_name": Field("Name of the release", "as the file"),
    "typed_name": Field("Type the name of the data set to spend"),
}
DIALECT = ("sep", "decimal", "thousands", "encoding", "sheet")
_BOUNDS = ("low", "high", "person_bound", "person_bound_quantile")
_NUMBERS = ("epsilon", "delta", "new_epsilon", "new_delta", "scale", *_BOUNDS, "change")

_ALSO = {
    "bounds": "lowest and highest possible number",
    "like": "a public series that moves like a donor",
    "target": "a public series that moves like a donor",
    "before": "first treated period of that series",
    "reference": "a public path to subtract",
    "wide": "shape",
    "name": "name of the data set",
    "like_file": "similar series",
    "reference_file": "a public path to subtract",
}
LABELS = _ALSO | {name: each.label[:1].lower() + each.label[1:] for name, each in FIELDS.items()}
_FIELD_OF = {"bounds": "low", "wide": "shape"}


class Stopped(Exception):  # noqa: N818 - no error: somebody wished it
    """Somebody asked to stop, in time."""


class Work:
    """One piece of long work at a time. It goes on without a page, and the program does not end before it.

    Attributes
    ----------
    what : str
        In words; empty if nothing is under way.
    doing : str
        Which part of it, if it has parts.
    rows : int
        How many were read so far.
    expected : int or None
        How many there are, if that is known.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._asked, self._final = False, False
        self.what, self.doing, self.rows = "", "", 0
        self.expected: int | None = None

    @property
    def can_be_stopped(self) -> bool:
        """Whether asking now would stop it."""
        return bool(self.what) and not self._final and not self._asked

    @property
    def stopping(self) -> bool:
        """Whether it was asked to stop, in time, and has not ended yet."""
        return bool(self.what) and self._asked

    @property
    def final(self) -> bool:
        """Whether it is past the point of no return."""
        return bool(self.what) and self._final

    def start(self, what: str, step: Callable[[], None]) -> bool:
        """Begin, unless something is under way; ``step`` runs in a thread and must not raise."""
        with self._lock:
            if self.what:
                return False
            self.what, self.doing, self.rows, self.expected = what, "", 0, None
            self._asked, self._final = False, False
            self._thread = threading.Thread(target=self._run, args=(step,), name=what)
            self._thread.start()
        return True

    def stop(self) -> bool:
        """Ask to stop; return False if it is too late."""
        with self._lock:
            self._asked = self._asked or not self._final
            return self._asked

    def on_rows(self, rows: int) -> None:
        """Count rows, and stop if that was asked for."""
        if self._asked:
            raise Stopped
        self.rows += rows

    def on_progress(self, doing: str, rows: int, of: int | None) -> None:
        """Count rows anew for each part of the work, and stop if that was asked for."""
        if doing != self.doing:
            self.doing, self.rows, self.expected = doing, 0, of
        self.on_rows(rows)

    def last_look(self) -> None:
        """Stop if that was asked for; from here on nothing can stop it."""
        with self._lock:
            if self._asked:
                raise Stopped
            self._final = True

    def wait(self, seconds: float | None = None) -> None:
        """Wait until nothing is under way."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _run(self, step: Callable[[], None]) -> None:
        try:
            step()
        finally:
            with self._lock:
                self.what = ""


class Form(Desk):
    """The custodian's desk as its pages know it: the fields, and one piece of long work at a time."""

    labels = LABELS
    kinds: Mapping[str, Kind]
    phase = "open"  # of the release: then "working", then "done" until another is begun

    def __init__(self, folder: Path, reader: Reader | None) -> None:
        super().__init__(folder, reader)
        self.fields = {name: each.default for name, each in FIELDS.items()}
        self.work = Work()
        self.note = ""

    @property
    def kind(self) -> Kind:
        """What differs with who is protected."""
        return self.kinds[self.fields["protected"]]

    def kept(self, file: File) -> File:
        """Move a dropped file to the desk: the browser's upload goes when the page is loaded again."""
        kept = Path(tempfile.mkdtemp(dir=self.folder)) / f"dropped{file.path.suffix}"
        os.replace(file.path, kept)
        return File(kept, file.name)

    def judge(self) -> None:
        """Look again at everything that was said; the desk knows which pages there are."""
        raise NotImplementedError

    @property
    def version(self) -> tuple[object, ...]:
        """Something that differs as soon as a page must show something else."""
        work = self.work
        share = work.rows if not work.expected else 100 * work.rows // work.expected
        return *super().version, work.what, work.stopping, work.final, share

    def __getitem__(self, name: str) -> str:
        """Return what was written into a field; numbers with a decimal point, which may be a comma there."""
        value = self.fields[name].strip()
        return value.replace(",", ".") if name in _NUMBERS else value

    def number(self, name: str) -> float:
        """Return the number in a field."""
        try:
            value = float(self[name])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise ParameterError(f"{Parameter(name)} must be a number.")
        return value

    def bounds(self) -> tuple[float, float] | None:
        """Return the lowest and the highest possible number, if they were said."""
        if self["low"] or self["high"]:
            return self.number("low"), self.number("high")
        if self["missing"] == "midpoint":
            raise ParameterError(f"{MIDPOINT} needs {Parameter('bounds')}.")
        return None

    def said(self, *names: str) -> dict[str, object]:
        """Return what was written into fields, by the names of the command's parameters."""
        special = ("shape", "low", "high")
        given: dict[str, object] = {name: self[name] for name in names if self[name] and name not in special}
        if "shape" in names and self["shape"] == "wide":
            given["wide"] = True
        if "low" in names and self["low"] and self["high"]:
            given["bounds"] = (self["low"], self["high"])
        return given

    def explained(self, problem: DpscError, field: str) -> tuple[str, str]:
        """Find the field by the parameter that the library names first."""
        fields = (_FIELD_OF.get(parameter.name, parameter.name) for parameter in mentioned(problem.message))
        at = next((name for name in fields if name in FIELDS), field)
        if (
            field in ("like_file", "reference_file") and at in self.kind.fields
        ):  # they are about how the donors are written
            at = field
        return at, problem.text(self.named)

    def begin(
        self, what: str, field: str, files: list[File], step: Callable[[], None], end: Callable[[], None]
    ) -> bool:
        """Begin long work in a thread, unless something is under way; what is wrong is kept beside a field.

        ``end`` is done last, whatever became of ``step``, and is one change of the desk.
        """

        def guarded() -> None:
            try:
                with self.about(field, *files):
                    step()
            except Stopped:
                self.note = "Stopped. Nothing was booked and nothing was written."

        def thread() -> None:
            try:
                trouble = trouble_of(guarded)  # no content is told of what was not expected
                if trouble:
                    self.problems[field] = trouble
            finally:
                with self.changing():
                    end()

        self.note = ""
        return self.work.start(what, thread)


def commands(*lines: str) -> str:
    """Show the commands that do the same as a page."""
    return render("custodian/commands.html", commands=lines)
