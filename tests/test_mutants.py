"""The mutants of ``make mutants`` still fit the code: each breaks a line that is there once."""

from __future__ import annotations

import pytest

from tests.mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_its_line_is_there_once(mutant: Mutant) -> None:
    text = (ROOT / "src" / "dpsc" / mutant.file).read_text("utf-8")
    assert text.count(mutant.old) == 1
    assert mutant.new != mutant.old
    assert not mutant.test or (ROOT / mutant.test).exists()
