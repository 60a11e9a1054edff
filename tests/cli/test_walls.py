"""What a command could lose, destroy or show around the mechanisms, and no longer can."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from dpsc import GramRelease, Ledger, Release
from tests.cli.conftest import dpsc, quick
from tests.ledger.servers import Server, a_server

COLUMNS = ("--unit", "who", "--time", "month", "--outcome", "cost")
BUDGET = ("--epsilon", 1, "--delta", 1e-6)
FIT = (*COLUMNS, "--treated-unit", "clinic", "--treatment-time", "2021-03-01")
SECRET = "s3cret-word"


@pytest.fixture
def book(files: Path) -> Path:
    Ledger(files / "book.sqlite", create=True).add_dataset("patients", epsilon=5, delta=1e-5, other=(1, 1e-6))
    return files / "book.sqlite"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    yield from a_server()


# Passwords


@pytest.mark.parametrize("way", ["option", "option with =", "environment"])
def test_no_password_is_in_a_report_or_on_a_screen(
    way: str, files: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`dpsc fit --ledger postgresql+psycopg://u:PASSWORD@...` put the password into report.html."""
    url = server.url(f"report_{way.split()[-1].replace('=', 'is')}").replace("dpsc@", f"dpsc:{SECRET}@")
    Ledger(url, create=True).add_dataset("patients", epsilon=5, delta=1e-5, other=(1, 1e-6))
    options: tuple[object, ...] = ("--ledger", url) if way == "option" else (f"--ledger={url}",)
    if way == "environment":
        monkeypatch.setenv("DPSC_LEDGER", url)
        options = ()
    name = "" if way == "option" else "report.html"  # a folder of everything once, then the page, with fewer figures
    if way != "option":
        options = (*options, "--method", "output", "--bounds", -10, 60)
    code, out, err = quick("fit", files / "panel.csv", *FIT, *BUDGET, *options, "-o", files / "answer" / name)
    assert code == 0, err
    assert SECRET not in out + err
    for file in (files / "answer").iterdir():
        assert SECRET.encode() not in file.read_bytes(), file.name
    page = (files / "answer" / "report.html").read_text("utf-8")
    assert ("dpsc:***@" in page) is (way != "environment")
    assert [entry.state for entry in Ledger(url).entries()] == ["confirmed"]


URL = f"postgresql+psycopg://ann:{SECRET}@127.0.0.1:1/book"


@pytest.mark.parametrize(
    "arguments",
    [
        ("ledger", "show", URL, "--ledger", "book.sqlite"),
        ("ledger", "show", "sales", URL),
        ("ledger", URL),
        (URL,),
        ("ledger", "init", URL, "--epsilon", "x", "--delta", 1e-6),
        ("ledger", "init", "sales", "--epsilon", URL, "--delta", 1e-6),
        ("ledger", "init", "sales", "--epsilon", 1, "--delta", 1e-6, "--about", URL),
        ("ledger", "init", "sales", "--epsilon", 1, "--delta", 1e-6, "--about", f"source={URL}"),
        ("ledger", "init", URL, "--epsilon", 1, "--delta", 1e-6),
        ("ledger", "entries", URL, "--ledger", "book.sqlite"),
        ("ledger", "export", "--out", URL),
        ("release", URL, *COLUMNS, *BUDGET, "-o", "r.json"),
        ("release", "donors.csv", *COLUMNS, *BUDGET, "-o", URL, "--no-ledger"),
        ("release", "donors.csv", *COLUMNS, *BUDGET, "-o", "r.json", "--provenance", URL, "--no-ledger"),
        ("release", "donors.csv", *COLUMNS, *BUDGET, "-o", "r.json", "--ledger", "book.sqlite", "--purpose", URL),
        ("release", "donors.csv", *COLUMNS, *BUDGET, "-o", "r.json", "--ledger", "book.sqlite", "--dataset", URL),
        ("release", "donors.csv", *COLUMNS, *BUDGET, "-o", "r.json", "--ledger", f"host=h password={SECRET}"),
        ("fit", "panel.csv", *FIT, *BUDGET, "-o", URL, "--no-ledger"),
        ("fit", URL, *FIT, *BUDGET),
        ("estimate", URL, "target.csv", "--treatment-time", "2021-03-01"),
        ("inspect", URL),
    ],
)
def test_a_password_in_the_wrong_place_is_not_repeated(
    arguments: tuple[object, ...], files: Path, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A URL given as a name, a number, a path or a text was quoted with its password in what the command said."""
    monkeypatch.chdir(files)
    monkeypatch.setenv("COLUMNS", "400")
    code, out, err = quick(*arguments)
    assert code == 2
    assert "s3cret" not in out + err
    assert Ledger(book).entries() == []
    assert not (files / "r.json").exists()


# What --force may not replace


def names_of(path: Path) -> dict[str, Path]:
    """A file under its own name, a link and a hard link, all in its folder."""
    link, hard = path.with_name(f"link-{path.name}"), path.with_name(f"hard-{path.name}")
    link.symlink_to(path.name)
    os.link(path, hard)
    relative = path.parent / ".." / path.parent.name / path.name
    return {"own": path, "link": link, "hard": hard, "relative": relative}


@pytest.mark.parametrize("name", ["own", "link", "hard", "relative"])
@pytest.mark.parametrize("how", ["option", "environment", "found"])
def test_force_does_not_replace_the_ledger(
    name: str, how: str, files: Path, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-o L.sqlite --force --ledger L.sqlite` wrote the release over the ledger, after booking in it."""
    monkeypatch.chdir(files)
    if how == "found":
        book = book.rename("dpsc-ledger.sqlite").absolute()
    if how == "environment":
        monkeypatch.setenv("DPSC_LEDGER", str(book))
    options = ("--ledger", book) if how == "option" else ()
    out, before = names_of(book)[name], book.read_bytes()
    for command in (
        ("release", "donors.csv", *COLUMNS, *BUDGET, *options, "-o", out, "--force"),
        ("fit", "panel.csv", *FIT, *BUDGET, *options, "-o", files, "--force"),
        ("release", "donors.csv", *COLUMNS, *BUDGET, "--no-ledger", "-o", out, "--force"),
        ("ledger", "export", "--ledger", book, "--format", "csv", "--out", out),
    ):
        code, _, err = quick(*command)
        assert code == 2, command
        assert "read by this command" in err or "is a database" in err
        assert book.read_bytes() == before
    journal = Path(f"{book}-journal")
    code, _, _ = quick("release", "donors.csv", *COLUMNS, *BUDGET, "--ledger", book, "-o", journal)
    assert code == 2
    assert not journal.exists()


@pytest.mark.parametrize("name", ["own", "link", "hard", "relative"])
def test_force_does_not_replace_a_donor_file_in_a_folder_that_is_read(name: str, files: Path) -> None:
    """`dpsc release folder -o folder/a.csv --force` read a.csv and then replaced it with the release."""
    (files / "folder" / "2020").mkdir(parents=True)
    donors = pd.read_csv(files / "donors.csv")
    first = files / "folder" / "2020" / "a.csv"
    donors.to_csv(first, index=False)
    before = first.read_bytes()
    elsewhere = files / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "link").symlink_to(first)
    os.link(first, elsewhere / "hard")
    (files / "other").symlink_to(files / "folder")
    out = {"own": first, "link": elsewhere / "link", "hard": elsewhere / "hard",
           "relative": files / "other" / "2020" / "a.csv"}[name]  # fmt: skip
    code, _, err = quick("release", files / "folder", *COLUMNS, *BUDGET, "-o", out, "--force", "--no-ledger")
    assert code == 2
    assert "is read by this command" in err
    assert first.read_bytes() == before


def test_force_does_not_replace_a_reference_a_target_or_a_panel(files: Path) -> None:
    """Only the data were compared, and only by name; a folder with them in it was written into."""
    target, panel, release = (files / name for name in ("target.csv", "panel.csv", "r.json"))
    assert quick("release", files / "donors.csv", *COLUMNS, *BUDGET, "-o", release, "--no-ledger")[0] == 0
    (files / "counterfactual.csv").write_bytes(target.read_bytes())  # a name that a report has, too
    before = {file: file.read_bytes() for file in files.iterdir()}
    link = files / "link"
    link.symlink_to(files)
    released = ("release", files / "donors.csv", *COLUMNS, *BUDGET, "--no-ledger", "--force")
    fitted = ("fit", panel, *FIT, *BUDGET, "--no-ledger", "--force")
    estimated = ("estimate", release, files / "counterfactual.csv", "--treatment-time", "2021-03-01", "--force")
    for command in (
        (*released, "--reference", target, "-o", link / "target.csv"),
        (*fitted, "--reference", target, "-o", link / "target.csv"),
        (*fitted, "-o", files),
        (*fitted, "-o", link),
        (*estimated, "-o", files),
        (*estimated, "-o", link),
        ("plan", "--n", 100, "--before", 14, "--after", 4, "--target", target, "-o", files, "--force"),
    ):
        code, _, err = quick(*command)
        assert code == 2, command
        assert "read by this command" in err, command
    assert {file: file.read_bytes() for file in before} == before


# Labels, and results that have been paid for


@pytest.fixture
def waves(files: Path) -> Path:
    """The panel with periods that rich reads as markup, matplotlib as formulas, and a terminal as colours."""
    panel = pd.read_csv(files / "panel.csv")
    months = sorted(panel["month"].unique())
    labels = {month: f"wave {i:02d} [/b] :smile: $x_{{$ \\" for i, month in enumerate(months)}
    panel.assign(month=panel["month"].map(labels)).to_csv(files / "waves.csv", index=False)
    return files / "waves.csv"


@pytest.mark.parametrize("method", ["gram", "output", "objective"])
@pytest.mark.parametrize("report", [True, False])
def test_labels_are_text_and_a_fit_is_shown(
    method: str, report: bool, waves: Path, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A period named `wave 1 [/b]` was read as markup, and `dpsc fit` died after it had booked."""
    monkeypatch.setenv("COLUMNS", "200")
    label = "wave 14 [/b] :smile: $x_{$ \\"
    options = ("--bounds", -10, 60, "--ledger", book, *(("-o", "answer.html") if report else ()))
    code, out, err = quick(
        "fit", waves, *COLUMNS, "--treated-unit", "clinic", "--treatment-time", label, "--method", method, *BUDGET,
        *options,
    )  # fmt: skip
    assert code == 0, err
    assert label in out
    assert [entry.state for entry in Ledger(book).entries()] == ["confirmed"]


def test_labels_of_a_release_are_text(waves: Path, book: Path, files: Path) -> None:
    out = files / "[red]r[bold].json"
    code, shown, err = quick("release", waves, *COLUMNS, *BUDGET, "--exclude", "clinic", "--ledger", book, "-o", out)
    assert code == 0, err
    assert "wave 17 [/b] :smile:" in " ".join(shown.split())
    assert str(out) in "".join(shown.split("\n")).replace("  ", "") or "[red]r[bold].json" in shown
    assert quick("inspect", out)[0] == 0


@pytest.mark.parametrize("method", ["gram", "output", "objective"])
@pytest.mark.parametrize("how", ["shown", "as json", "the screen fails"])
def test_a_fit_without_a_folder_is_saved_before_it_is_shown(
    method: str, how: str, files: Path, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without -o the answer was on the screen only; if that failed, the budget was spent for nothing."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a screen that fails")

    if how == "the screen fails":
        monkeypatch.setattr("dpsc.cli.render.show_result", fail)
    options = ("--method", method, *BUDGET, "--bounds", -10, 60, "--ledger", book)
    code, _, err = quick("fit", files / "panel.csv", *FIT, *options, *(["--json"] if how == "as json" else []))
    assert code == (1 if how == "the screen fails" else 0), err
    (entry,) = Ledger(book).entries()
    assert entry.state == "confirmed"
    (saved,) = Path().glob("dpsc-fit-*")
    assert entry.output == str(saved.absolute())
    assert f"saved to {saved}" in err
    if method == "gram":
        assert Release.load(saved).guarantee == entry.guarantee


def test_what_is_not_private_is_not_saved_without_being_asked(files: Path) -> None:
    code, _, err = quick("fit", files / "panel.csv", *FIT, "--method", "nonprivate", "--bounds", -10, 60)
    assert code == 0, err
    assert list(Path().iterdir()) == []
    assert "booked" not in err


def test_numbers_that_are_paid_for_are_kept_when_figures_cannot_be_made(
    files: Path, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything was thrown away, release and all, when a figure could not be drawn."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a font that is missing")

    monkeypatch.setattr("dpsc.answers.figures.draw", fail)
    code, _, err = quick("fit", files / "panel.csv", *FIT, *BUDGET, "--ledger", book, "-o", files / "answer")
    assert code == 1
    assert f"what was computed is in {files / 'answer'}" in err
    kept = {"result.json", "counterfactual.csv", "reporting.md", "release.dpsc.json"}  # all that is not drawn
    assert {file.name for file in (files / "answer").iterdir()} == kept
    assert (
        Release.load(files / "answer" / "release.dpsc.json").guarantee == GramRelease(epsilon=1, delta=1e-6).guarantee
    )


@pytest.mark.end_to_end
def test_a_folder_that_cannot_be_written_stops_a_fit_before_it_books(files: Path, book: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root can write everywhere")
    here = files / "locked"
    here.mkdir(mode=0o500)
    done = dpsc("fit", files / "panel.csv", *FIT, *BUDGET, "--ledger", book, cwd=here)
    assert done.returncode == 2
    assert "cannot write" in done.stderr
    assert Ledger(book).entries() == []
    shutil.rmtree(here)
