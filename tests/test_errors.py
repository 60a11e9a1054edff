"""Messages name parameters; each surface writes them in its own way, and nobody else's text is taken for one."""

from __future__ import annotations

import math
import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpsc.errors import DpscError, Parameter, TableError, mentioned, rendered
from dpsc.tables.dialect import Dialect
from dpsc.tables.spec import TableSpec, find

VALUES = st.one_of(st.none(), st.text(max_size=9), st.integers(), st.floats(allow_nan=False), st.booleans())


@given(st.from_regex(r"[a-z_]{1,9}", fullmatch=True), VALUES, st.text(max_size=9))
@example("scale", math.inf, "")
@example("scale", -math.inf, "")
def test_a_parameter_comes_out_of_a_text_as_it_went_in(
    name: str, value: str | float | bool | None, around: str
) -> None:
    it = Parameter(name, value)
    assert it in mentioned(f"{around}{it}{around}")
    problem = pickle.loads(pickle.dumps(DpscError(f"give {it}.")))
    assert str(problem) == f"give {it.python}."
    assert problem.text(lambda parameter: parameter.option) == f"give {it.option}."


def test_a_name_is_never_taken_for_a_parameter() -> None:
    for name in ("{unit}", "{it}", "--unit", str(Parameter("unit")), f"x{Parameter('time')}"):
        with pytest.raises(TableError) as problem:
            find(["a", "b"], name, Parameter("unit", ""))
        assert mentioned(problem.value.message) == [Parameter("unit", "")]
        assert str(problem.value) == f"there is no column {name!r} (unit=). The columns are 'a', 'b'."
    assert rendered("a column {unit} or unit= or --unit") == "a column {unit} or unit= or --unit"


@given(
    st.builds(
        TableSpec,
        unit=st.text(max_size=9),
        time=st.text(min_size=1).map("t".__add__),
        outcome=st.text(min_size=1).map("o".__add__),
        periods=st.none() | st.text(min_size=1),
        repeated=st.sampled_from([None, "missing", "sum"]),
        missing=st.sampled_from([None, "kernel", "error"]),
        dialect=st.builds(
            Dialect,
            sep=st.sampled_from([None, ",", ";", "tab", "|"]),
            decimal=st.sampled_from([None, "comma"]),
            thousands=st.sampled_from([None, "", ".", "space", "'"]),
            encoding=st.sampled_from([None, "cp1252", "latin-1", "UTF8"]),
        ),
    ).filter(lambda spec: spec.unit[:1] not in ("t", "o"))
)
@example(TableSpec("", "month", "cost", periods="-"))
def test_what_a_table_is_can_be_written_and_read_again(spec: TableSpec) -> None:
    assert TableSpec.of(spec.parts()) == spec
    rest = spec.options()
    while rest:
        option = rest.pop(0)
        assert option.startswith("--")
        if "=" not in option:
            assert not rest.pop(0).startswith("-")
