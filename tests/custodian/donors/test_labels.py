"""Labels of units are read as written, wherever in a column they stand: a person read as two is not protected."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from dpsc import Donors
from dpsc.custodian.donors.cells import as_units
from dpsc.custodian.donors.records import keys_of

WRITTEN = [None if i % 11 == 0 else "" if i % 7 == 0 else f"{i % 90}" * (1 + i % 3) for i in range(5000)]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("cut", [slice(0, 5000), slice(1, 50), slice(3001, 5000), slice(4000, 4900)], ids=str)
def test_a_part_of_a_column_has_the_labels_that_stand_there(kind: Any, cut: slice) -> None:
    """Before Arrow 24 a usual way to blank cells gave texts of other rows here."""
    part = pa.array(WRITTEN, kind).slice(cut.start, cut.stop - cut.start)
    labels = as_units(part)
    labels.validate(full=True)
    expected = [text or None for text in WRITTEN[cut]]
    assert labels.to_pylist() == expected
    known = labels.is_valid()
    whole = pa.array([text for text in expected if text], pa.large_string())
    assert keys_of(labels.filter(known)).tolist() == keys_of(whole).tolist()


@pytest.mark.parametrize("other", ["x", 5, None, 1.5])
def test_bytes_are_the_text_that_they_write_whatever_another_row_holds(other: Any) -> None:
    frame = pd.DataFrame({"who": ["Ann", b"Ann", b"B\xf6", b"", other], "t": [1, 2, 1, 2, 1], "x": 1.0})
    donors = Donors.from_long(frame, unit="who", time="t", outcome="x", periods=[1, 2], missing="kernel")
    assert len(donors.values) == 2 + (other is not None)
    assert not pd.isna(donors.values[0]).any()
