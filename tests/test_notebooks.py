"""The notebooks say what is true: their cells are run as they stand, and what the text claims is checked.

Noise is drawn anew every time. What is checked of it is at least four and a half standard deviations away from failing,
measured over 40 to 60 releases (ratios in logarithms).
"""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import nbformat
import pytest

import dpsc
from dpsc import Release
from dpsc.custodian.check.examine import custodian_examine
from dpsc.tables.spec import TableSpec
from tests.cli.conftest import quick

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(path: Path, kind: str) -> list[Any]:
    library: Any = nbformat  # has no types
    return [cell for cell in library.read(path, as_version=4).cells if cell.cell_type == kind]


def command(line: str, names: dict[str, Any]) -> None:
    """Run what a notebook has after an exclamation mark, as a notebook does: {name} stands for a value."""
    program, *words = shlex.split(line.format(**names))
    assert program == "dpsc"
    into = words.index(">") if ">" in words else len(words)
    _, shown, problems = quick(*words[:into])
    if into < len(words):
        Path(words[into + 1]).write_text(shown, encoding="utf-8")
    else:
        print(shown)
    print(problems)


def run(name: str) -> dict[str, Any]:
    """Run all cells of a notebook in this folder; return its names, and what it printed under `printed`."""
    names: dict[str, Any] = {"command": lambda line: command(line, names)}
    printed = io.StringIO()
    with redirect_stdout(printed):
        for cell in cells(FOLDER / f"{name}.ipynb", "code"):
            source = re.sub(r"\\\n\s*", " ", cell.source)
            exec(re.sub(r"^!(.*)$", lambda found: f"command({found[1]!r})", source, flags=re.MULTILINE), names)
    return names | {"printed": printed.getvalue()}


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder: notebooks write files, and a ledger that is found would be used."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSC_LEDGER", raising=False)


def test_the_first_answer_is_right() -> None:
    names = run("first-answer")
    low, high = names["result"].att_interval()
    assert low < 15 < high
    assert names["result"].verdict.grade == "yes"
    assert names["errors"]["dpsc"] < min(names["errors"]["last value"], names["errors"]["line"])
    assert names["result"].guarantee.epsilon == 1
    assert "minutes" in Path("answer.html").read_text(encoding="utf-8")


def test_dpsc_says_when_not_to_believe_it() -> None:
    names = run("when-not-to-believe-it")
    assert names["trained"].verdict.grade == "unclear"
    assert "60 donors are too few to find out privately" in " ".join(names["printed"].split())
    assert names["how"].noise_share(40, 26) > 1 > names["how"].noise_share(60, 26)
    few, everyone = (effect.upper - effect.lower for effect in names["effects"])
    assert few > everyone
    low, high = names["unlike"].att_interval()
    assert names["unlike"].verdict.grade != "yes"
    assert low < 0 < high
    assert high - low > everyone
    assert names["in_cents"].verdict.check_first
    assert names["in_hours"].verdict.check_first
    low, high = names["in_strike"].att_interval()
    assert low < 0 < high
    assert (names["without_donors"] > 20).all()


def test_a_table_of_people_shows_the_effect_and_grows() -> None:
    names = run("people-in-groups")
    assert names["answer"].att == pytest.approx(15, abs=12)
    assert names["answer"].placebos("space").rank <= 20
    assert names["found"]["private table"] == pytest.approx(names["found"]["exact table"], abs=12)
    halves = names["grown"].guarantee
    assert 0.7 < halves.epsilon < 1.4
    assert halves.delta == pytest.approx(1e-6)
    assert len(dpsc.PrivatePanel.load("destinations.dpsc.json").units) == 41


@pytest.mark.usefixtures("drawn")
def test_the_custodian_finds_all_problems_keeps_the_book_and_hands_over_what_others_can_check() -> None:
    names = run("custodian")
    said = names["printed"]
    for problem in (
        "3 cells are no number",
        "20 cells are given by several rows",
        "2 units have names that differ only",
    ):
        assert problem in said
    assert custodian_examine(Path("north-corrected.csv"), TableSpec(periods=names["periods"])).ready
    assert not custodian_examine(Path("north.csv"), TableSpec(periods=names["periods"])).ready
    assert f"{names['expected'].epsilon_for(detect=15):.1g}" == "1"
    assert "over budget: 'planes, north'" in said
    assert [entry.state for entry in names["ledger"].entries()] == ["confirmed"]
    assert names["ledger"].remaining("planes, north") > 0.2
    assert not Path("again.dpsc.json").exists()
    assert (Release.load("planes.dpsc.json").n, Release.load("planes.dpsc.json").sites) == (1161, 2)
    assert Path("planes.dpsc.html").stat().st_size > 10_000
    assert names["record"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-6}
    assert quick("audit", "planes.dpsc.json", "--sha256", names["digest"])[0] == 0
    assert quick("audit", "changed.dpsc.json")[0] == 1


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_small_and_were_run_from_top_to_bottom(path: Path) -> None:
    assert path.stat().st_size < 350_000
    code = cells(path, "code")
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert not any(output.output_type == "error" or "\x1b" in output.get("text", "") for output in outputs)
    words = "\n".join(cell.source for cell in cells(path, "markdown"))
    assert all((path.parent / link).exists() for link in re.findall(r"\]\(([^)#]+)\)", words))
