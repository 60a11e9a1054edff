"""Records of people, read: whose each one is, in which cell of the table, and its value. Everything is private.

A record without an identifier, or outside the declared units and periods, is left out and never refused. An identifier
is read as text, by itself, and becomes a hash of 64 bits that is the same wherever the record is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dpsc.custodian.donors.cells import as_units
from dpsc.custodian.donors.frames import Frame, column_of, pandas_frame, places_of_rows, text_of
from dpsc.custodian.donors.people import Keys, mixed
from dpsc.periods.calendar import frequency, places
from dpsc.tables.arrow import Rows, coded, each, floats, is_text
from dpsc.tables.formats import in_file
from dpsc.types import Array, Column, Positions, Times, to_floats

_WORD = 8  # bytes of an identifier that are hashed at once
_LONGEST = 256  # bytes of one that is hashed so
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], dtype=np.uint64)
_MOMENT = r"^\d{4}-\d{2}-\d{2}[ T]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?$"
_MOST_LABELS = 1_000_000  # of periods whose places are remembered


class Records(NamedTuple):
    """Some records: the hash of each one's person, its cell, and its value; zeros where no outcome is read."""

    keys: Keys
    cells: Positions
    values: Array


def keys_of(texts: Any) -> Keys:
    """Return a hash for each text of an Arrow array.

    Examples
    --------
    >>> keys = keys_of(pa.array(["7", "007", "7"]))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    if not len(texts):
        return np.empty(0, dtype=np.uint64)
    texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    used = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
    content = np.concatenate([used, np.zeros(_WORD, dtype=np.uint8)])
    words: Keys = np.ndarray(len(used) + 1, "<u8", content, strides=(1,))
    starts, left = ends[:-1] - ends[0], np.diff(ends)
    keys = mixed(left.astype(np.uint64))
    rows = np.flatnonzero(left > _LONGEST)
    for row in rows.tolist():
        text = content[starts[row] : starts[row] + left[row]].tobytes()
        keys[row] = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
    left[rows] = 0
    rows = np.flatnonzero(left > 0)
    while len(rows):
        read = words[starts[rows]] & _MASKS[np.minimum(left[rows], _WORD)]
        keys[rows] = mixed(keys[rows] ^ read)
        starts += _WORD
        left -= _WORD
        rows = rows[left[rows] > 0]
    return keys


@dataclass(frozen=True, eq=False)
class Grid:
    """The declared units and periods of a table.

    Attributes
    ----------
    units : tuple of str
    times : Index
    time_format : str, optional
        How dates are written in the table.
    """

    units: tuple[str, ...]
    times: Times
    time_format: str | None = None
    _known: dict[tuple[str, Hashable], int] = field(default_factory=dict, repr=False)

    def of_frame(
        self, frame: Frame, person: Hashable, unit: Hashable, time: Hashable, outcome: Hashable | None
    ) -> Records:
        """Return the records of a frame."""
        named = (person, unit, time) if outcome is None else (person, unit, time, outcome)
        frame = pandas_frame(frame, named)
        columns = [column_of(frame, name) for name in named]
        values = np.zeros(len(frame)) if outcome is None else to_floats(columns[3], f"column {outcome!r}")
        return self._records(
            _texts(columns[0]), self._units(_texts(columns[1])), places_of_rows(columns[2], self.times), values
        )

    def of_rows(self, rows: Rows) -> Records:
        """Return the records of some rows of a file: person, unit, period, and the outcome if there is one."""
        person, unit, time, *outcome = rows.batch.columns
        with in_file(rows.path):
            values = floats(outcome[0], rows.batch.schema.names[3], rows) if outcome else np.zeros(len(person))
            return self._records(as_units(person), self._units(unit), self.places_of(time), values)

    def _records(self, people: Any, units: Positions, times: Positions, values: Array) -> Records:
        inside = (units >= 0) & (times >= 0) & people.is_valid().to_numpy(zero_copy_only=False)
        cells = times * len(self.units) + units
        if not inside.all():
            people, cells, values = people.filter(pa.array(inside)), cells[inside], values[inside]
        return Records(keys_of(people), cells, values)

    def _units(self, labels: Any) -> Positions:
        """Return the declared unit of each label, -1 for none."""
        found = coded(labels)
        known = pc.index_in(as_units(found.dictionary), value_set=pa.array(self.units, pa.large_string()))
        return np.asarray(pc.fill_null(known, -1).to_numpy()[found.indices.to_numpy()], np.intp)

    def places_of(self, labels: Any) -> Positions:
        """Return the declared period of each label, -1 for none; each different label is read once."""
        found = coded(labels)
        different, codes = found.dictionary, found.indices.to_numpy()
        if frequency(self.times) not in (None, "number"):
            days = coded(_days(different, self.time_format))
            different, codes = days.dictionary, days.indices.to_numpy()[codes]
        written = [(str(different.type), label) for label in each(different)]
        known = {label: self._known[label] for label in written if label in self._known}
        new = [label for label in written if label not in known]
        read = places([label for _, label in new], self.times, self.time_format)
        known |= dict(zip(new, read.tolist(), strict=True))
        if len(self._known) < _MOST_LABELS:
            self._known.update(known)
        where: Positions = np.array([known[label] for label in written], np.intp)
        return np.asarray(where[codes])


def _days(labels: Any, time_format: str | None) -> Any:
    """Return labels with moments cut to their day, of which there are few; no period is shorter."""
    if pa.types.is_timestamp(labels.type) and labels.type.tz is None:
        return labels.cast(pa.date32(), safe=False)
    if time_format is not None or not is_text(labels.type):
        return labels
    moments = pc.fill_null(pc.match_substring_regex(labels, _MOMENT), False)
    return pc.if_else(moments, pc.utf8_slice_codeunits(labels, 0, 10), labels)


def _texts(labels: Column) -> Any:
    """Return the labels of a column as an Arrow array of texts, each read by itself; null stands for none.

    Arrow alone would read bytes as text, but only where nothing else in the column keeps it from reading the column.
    """
    kind = labels.dtype
    if isinstance(kind, pd.CategoricalDtype) and pd.api.types.infer_dtype(kind.categories) != "string":
        labels = labels.astype(object)
    if labels.dtype == object:
        labels = labels.where(labels.notna(), None)
    try:
        if labels.dtype == object and pd.api.types.infer_dtype(labels) not in ("string", "empty"):
            raise TypeError
        array = pa.array(labels, pa.large_string() if labels.dtype == object else None, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        texts = [text_of(label) for label in labels]  # half a character of UTF-16, which is no text, is written out
        written = [text and text.encode("utf-8", "backslashreplace").decode() for text in texts]
        array = pa.array(written, pa.large_string())
    return as_units(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array)
