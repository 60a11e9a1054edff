"""The answer on a terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from dpsc import GramRelease, SyntheticControl
from dpsc.answers.base import Verdict
from dpsc.cli import render
from tests.making import make_panel


@pytest.mark.parametrize(("grade", "light"), [("yes", "●"), ("unclear", "◐"), ("no", "○")])
@pytest.mark.parametrize("coloured", [False, True])
def test_whether_the_donors_help_is_seen_with_and_without_colour(
    grade: Literal["yes", "unclear", "no"], light: str, coloured: bool,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("FORCE_COLOR" if coloured else "NO_COLOR", "1")
    panel = make_panel()
    result = GramRelease(epsilon=1.0, delta=1e-6).release(panel).estimate(panel.target, panel.treatment_time)
    render.show_result(replace(result, verdict=Verdict(grade, "in few words", "for a reason")))
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    (at,) = (k for k, line in enumerate(lines) if "Do the donors help?" in line)
    assert (at < len(lines) - 2) is (grade == "no")  # what must be known first comes first
    assert ("\x1b[1;3" in lines[at]) is coloured
    if not coloured:
        said = [f"{light} Do the donors help? {grade.capitalize()}: in few words.", "  For a reason."]
        assert lines[at : at + 2] == said


def test_without_a_verdict_the_answer_ends_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    render.show_result(SyntheticControl().fit(make_panel()))
    shown = capsys.readouterr().out
    assert "Do the donors help?" not in shown
    assert " ".join(shown.split()).endswith("NOT PRIVATE and without an interval.")
