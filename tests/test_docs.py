"""What README and docs quote is there, what they link to exists, and what they tell the reader to type works."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import runpy
import shlex
import shutil
from pathlib import Path

import pandas as pd
import pytest

import dpsc
from dpsc import Release, Study, about
from dpsc.answers import result
from dpsc.cli.plan import _FROM
from tests import pages
from tests.benchmarking import benchmark
from tests.conftest import MADE_UP

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
PAGES += sorted(DOCS.rglob("*.md"))


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert link.startswith("http") or (page.parent / link).exists(), link


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "the docstring"])
def test_the_first_pages_tell_what_help_and_consoles_tell(page: str) -> None:
    text = dpsc.__doc__ if page == "the docstring" else (ROOT / page).read_text("utf-8")
    words = " ".join(re.sub(r"^- \*\*.*?\*\* |\*\*", "", text or "", flags=re.MULTILINE).split())
    for sentence in (about.WHAT, *about.STORY):
        assert sentence in words


def test_the_pages_are_short() -> None:
    made = (DOCS / "reference" / "commands", DOCS / "reference" / "api")
    written = [ROOT / "README.md", *(page for page in DOCS.rglob("*.md") if page.parent not in made)]
    words = {named(page): len(page.read_text("utf-8").split()) for page in written}
    assert len(words) > 30
    assert sum(words.values()) <= 30_000, sorted(words.items(), key=lambda item: -item[1])


def test_the_measurements_behind_the_pages_can_be_made_again() -> None:
    """A name that moved in the library would break what nobody runs between two releases."""
    for name in re.findall(r"benchmarks/(\w+)\.py", (ROOT / "Makefile").read_text("utf-8")):
        assert benchmark(name)
    changes = benchmark("ablation")  # they reach into the library by name
    found = changes.one_setting(next(iter(benchmark("problems").real_settings("design"))), 1)
    assert set(changes.CHANGES) < set(found)
    assert all(map(math.isfinite, found.values()))


def test_every_picture_is_shown() -> None:
    shown = {
        (page.parent / place).resolve()
        for page in PAGES
        for place in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text("utf-8"))
    }
    kept = {path for kind in ("png", "svg") for path in DOCS.rglob(f"*.{kind}") if path.parent.name != "assets"}
    assert kept <= shown, kept - shown


QUOTING = [page for page in PAGES if "<!-- quote" in page.read_text("utf-8")]


@pytest.mark.parametrize("page", QUOTING, ids=named)
def test_quoted_numbers_are_those_that_were_measured(page: Path) -> None:
    text = page.read_text("utf-8")
    assert benchmark("quote").filled(text) == text, "python benchmarks/quote.py"


def test_the_numbers_of_the_first_page_and_of_the_guides_are_quoted() -> None:
    assert len(QUOTING) > 10
    assert ROOT / "README.md" in QUOTING


def test_the_page_of_all_measurements_shows_what_was_measured() -> None:
    page = ROOT / "benchmarks" / "RESULTS.md"
    assert benchmark("results_page").text() == page.read_text("utf-8"), "python benchmarks/results_page.py"
    assert not re.search(r"\bnan\b", page.read_text("utf-8"))


def test_a_measurement_that_failed_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = benchmark("results_page")
    rows = pd.read_csv(made.OUT / "scale.csv")
    failed = (rows["what"] == "PostgreSQL") & (rows["n"] == 100_000)
    assert failed.sum() == 1
    rows.loc[failed, "seconds":] = float("nan")
    rows.to_csv(tmp_path / "scale.csv", index=False)
    assert made.not_measured() == ""
    monkeypatch.setattr(made, "OUT", tmp_path)
    assert made.not_measured().strip() == "**Could not be measured**: PostgreSQL (n = 100,000)."
    assert "nan" not in made.tables_table() + made.growth_table()


@pytest.mark.parametrize("page", [page for page in pages.PAGES if any(pages.steps(page.read_text("utf-8")))], ids=named)
def test_a_page_does_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every_group: None
) -> None:
    if "```r\n" in page.read_text("utf-8") and shutil.which("Rscript") is None:
        if os.environ.get("DPSC_NEED_R") == "1":
            pytest.fail("no Rscript found: apt-get install r-base-core r-cran-jsonlite r-cran-reticulate")
        pytest.skip("no Rscript found: the lines of R were not run")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSC_LEDGER", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(result, "MADE_UP", MADE_UP)  # the pages say how many
    for step, output in pages.run(page):
        line = pages.missing_line(step.shown, output)
        assert line is None, f"{step.source}\nprints\n{output}\nand not\n{line}\nPerhaps: python -m tests.pages"


def test_the_runner_of_pages_sees_what_is_wrong() -> None:
    text = "```console\n$ dpsc plan --n 9 \\\n      --before 5\nerror 3\n```\n\n<!-- not run: slow -->\n\n"
    text += "```python\n1 / 0\n```\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n"
    plan, printed = pages.steps(text)
    assert (plan.source.split(), plan.shown) == (["dpsc", "plan", "--n", "9", "--before", "5"], ["error 3"])
    assert (printed.source, printed.shown) == ("print(1)\n", ["1"])
    output = "a table │ of 12 │ cells\nand two lines\n"
    assert pages.missing_line(["a table of 12 cells", "and ... lines"], output) is None
    assert pages.missing_line(["a table of 13 cells"], output) == "a table of 13 cells"
    assert pages.missing_line(["and two lines", "a table of 12 cells"], output) == "a table of 12 cells"
    assert pages.renewed(["a  table of 13 cells", "and 3 lines"], output) == ["a  table of 12 cells", "and 3 lines"]


def test_an_error_in_r_stops_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("Rscript") is None:
        pytest.skip("no Rscript found")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.md").write_text("```r\nprint(1 + 1)\n```\n\n```r\nprint(no_such_thing)\n```\n")
    with pytest.raises(AssertionError, match="no_such_thing"):
        pages.run(tmp_path / "page.md")
    (tmp_path / "page.md").write_text("```r\nx <- 2\n```\n\n```r\nprint(x + 1)\n```\n\n```text\n[1] 3\n```\n")
    (_, (step, output)) = pages.run(tmp_path / "page.md")
    assert pages.missing_line(step.shown, output) is None
    assert pages.missing_line(["[1] 4"], output) == "[1] 4"


def test_the_reference_of_commands_is_what_the_commands_say() -> None:
    written = {page.name: page.read_text("utf-8") for page in (DOCS / "reference" / "commands").iterdir()}
    assert written == runpy.run_path(str(DOCS / "make_commands.py"))["pages"](), "python docs/make_commands.py"


def test_the_examples_of_commands_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = runpy.run_path(str(DOCS / "make_commands.py"))
    found = {name: made["examples"](command) for name, command in made["named"]()}
    assert {name for name, lines in found.items() if not lines} == {"dpsc ledger entries"}
    for name, command in made["named"]():
        for line in found[name]:
            assert line.startswith(f"{name}")
            words = shlex.split(line)[len(name.split()) :]
            command.make_context(name, words)  # every option is known, all that is needed is there
            with pytest.raises(Exception, match="--no-such-option"):
                command.make_context(name, [*words, "--no-such-option"])


def test_every_public_name_is_in_the_reference() -> None:
    listed = re.findall(
        r"^::: dpsc\.(\w+)",
        "\n".join(page.read_text("utf-8") for page in (DOCS / "reference" / "api").glob("*.md")),
        flags=re.M,
    )
    assert set(listed) == set(dpsc.__all__) - {"__version__"}


PROOFS = [page for page in sorted((DOCS / "proofs").glob("*.md")) if page.name != "index.md"]
PARTS = ["Precondition", "Pseudocode", "Postcondition", "Proof", "The test that attacks it"]


@pytest.mark.parametrize("page", [DOCS / "guides" / "reviewers.md", *PROOFS], ids=named)
def test_every_test_that_reviewers_are_told_of_exists(page: Path) -> None:
    told = set(re.findall(r"`(test_\w+)`", page.read_text("utf-8")))
    files = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    known = {name for text in files for name in re.findall(r"^def (test_\w+)\(", text, flags=re.MULTILINE)}
    assert len(told) > (30 if page.name == "reviewers.md" else 2)
    assert told <= known, told - known


@pytest.mark.parametrize("page", PROOFS, ids=named)
def test_every_theorem_has_its_five_parts_and_is_about_code_that_exists(page: Path) -> None:
    source = {path.relative_to(ROOT / "src" / "dpsc").as_posix(): path for path in (ROOT / "src").rglob("*.py")}
    code = "\n".join(path.read_text("utf-8") for path in source.values())
    theorems = []
    for section in page.read_text("utf-8").split("\n## ")[1:]:
        heading, *found = re.split(r"^\*\*([A-Z][\w ]+)\.\*\* ", section, flags=re.MULTILINE)
        if not found:
            assert "∎" not in section, heading
            continue
        theorems.append(re.sub(r"[^\w -]", "", heading.splitlines()[0]).lower().replace(" ", "-"))
        assert found[::2] == PARTS, theorems[-1]
        parts = dict(zip(PARTS, found[1::2], strict=True))
        assert "```text\n" in parts["Pseudocode"]
        assert "∎" in parts["Proof"]
        assert "`test_" in parts["The test that attacks it"]
        for name in re.findall(r"`([\w./]+)`", parts["Pseudocode"].split("```")[0]):
            last = name.split(".")[-1]
            exists = name.endswith(".py") and any(place.endswith(name) for place in source)
            assert exists or re.search(rf"\b(def|class) {last}\b", code), name
    listed = (DOCS / "proofs" / "index.md").read_text("utf-8")
    assert theorems == sorted(set(re.findall(rf"\({page.name}#([\w-]+)\)", listed)), key=theorems.index)


def test_the_gallery_shows_every_kind_of_figure() -> None:
    gallery = (DOCS / "reference" / "gallery.md").read_text("utf-8")
    shown = set(re.findall(r'\.plot\("([\w ]+)"\)', gallery))
    release = Release.load(DOCS / "practice.dpsc.json")
    result = release.estimate([*range(36)], treatment_time="2023-04")
    study = release.study({"a": [*range(36)]}, "2023-04")
    assert isinstance(study, Study)
    assert shown == (set(result.figures) | set(study.figures)) - {"path", "calendar"}  # a half of one, and like another
    files = set(re.findall(r"\((gallery/[\w-]+\.png)\)", gallery))
    assert files == {f"gallery/{path.name}" for path in (DOCS / "reference" / "gallery").iterdir()}


def test_the_statement_of_data_names_the_release_of_the_pages() -> None:
    writing, file = (
        (DOCS / "guides" / "writing-it-up.md").read_text("utf-8"),
        (DOCS / "practice.dpsc.json").read_bytes(),
    )
    assert f"SHA-256 [{hashlib.sha256(file).hexdigest()[:8]}…]" in writing
    assert f"identity [{json.loads(file)['identities'][0][:8]}…]" in writing


def test_an_attacker_guesses_right_as_often_as_the_pages_say() -> None:
    page = (DOCS / "guides" / "choosing-epsilon.md").read_text("utf-8")
    table = re.findall(r"^\| (?:ε \||guess).*$", page, flags=re.MULTILINE)
    budgets, guesses = (re.findall(r"\d[\d.]*", row) for row in table)
    for epsilon, guess in zip(map(float, budgets), guesses, strict=True):
        digits = len(guess.split(".")[1])
        assert round(100 / (1 + math.exp(-epsilon)), digits) == float(guess)
    for page_that_quotes in ("guides/custodian.md", "reference/glossary.md"):
        assert "73.1%" in (DOCS / page_that_quotes).read_text("utf-8")


def test_what_a_page_would_load_from_the_network_is_found() -> None:
    loaded = runpy.run_path(str(DOCS / "site_check.py"))["loaded"]
    bad = [
        '<script src="https://cdn.example/x.js"></script>',
        "<script src=//cdn.example/x.js></script>",
        '<link rel="stylesheet" href="https://fonts.example/css">',
        '<img alt="" src="http://example.org/a.png">',
        "<style>@import 'https://example.org/a.css';</style>",
        '<p style="background: url(https://example.org/a.png)">',
    ]
    assert [len(list(loaded(text))) for text in bad] == [1] * len(bad)
    assert list(loaded("a { background: url('https://example.org/a.png') }", style=True)) == [
        "https://example.org/a.png"
    ]
    good = [
        '<a href="https://example.org">',
        '<img src="a.png">',
        '<script src="assets/x.js">',
        "<code>src=https://x.org</code>",
    ]
    assert [text for text in good if list(loaded(text))] == []


def test_plans_say_what_was_measured_of_their_ranges() -> None:
    page = (DOCS / "guides" / "choosing-epsilon.md").read_text("utf-8")
    at_once, after_pilot = page.split("<!-- quote planning -->")[1].split("<!-- end quote -->")[0].split(";")[:2]
    for text, measured in ((_FROM[False], at_once), (_FROM[True], after_pilot)):
        assert re.findall(r"\d+%", text) == re.findall(r"\d+%", measured.split(". ")[0])
