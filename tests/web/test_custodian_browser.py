"""The custodian's page in a real browser: booked once, whatever happens to it, and nothing of a donor elsewhere."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from dpsc import Ledger, Release
from dpsc.web import server
from tests.conftest import CHROMIUM
from tests.web.conftest import Console, held, opened, started, watched

if CHROMIUM is None and os.environ.get("DPSC_NEED_BROWSER") != "1":
    pytest.skip("no Chromium found: the console was not tested in a browser", allow_module_level=True)

TABS = ("Data", "Check", "Budget", "Confirm", "Hand over", "Book")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, donors_text: str) -> Path:
    made = tmp_path_factory.mktemp("custodian")
    (made / "patients.csv").write_text(donors_text)
    (made / "releases").mkdir()
    return made


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Console]:
    with started(tmp_path_factory.mktemp("scratch"), "custodian", "--folder", "releases", folder=folder) as running:
        yield running


@pytest.fixture
def page(context: BrowserContext, console: Console) -> Iterator[Page]:
    with watched(context, console) as made:
        yield connected(made)


def connected(page: Page) -> Page:
    expect(page.locator("#check.shiny-bound-input")).to_be_attached()
    expect(page.locator("#check_command pre")).to_be_attached()
    return page


def open_tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()


def booked(folder: Path) -> list[str]:
    path = folder / "dpsc-ledger.sqlite"
    return [entry.state for entry in Ledger(path).entries()] if path.exists() else []


def checked(page: Page, folder: Path) -> None:
    """Drop the donors and say what must be said."""
    open_tab(page, "Data")
    page.fill("#periods", "2021-01..2022-12")
    page.select_option("#decimal", "comma")
    expect(page.locator("#check_command")).to_contain_text("--periods 2021-01..2022-12 --decimal comma")  # it knows
    page.set_input_files("#donors_file", folder / "patients.csv")
    expect(page.locator("#understood .good")).to_contain_text("READY")


def ready(page: Page, folder: Path) -> None:
    """Bring the page to where only Spend must be pressed."""
    page.locator("#begin_anew").evaluate("button => button.hidden || button.click()")
    checked(page, folder)
    open_tab(page, "Budget")
    expect(page.locator("#gauge")).not_to_be_empty()
    if not booked(folder) and not page.locator("#dataset option[value=patients]").count():
        page.fill("#new_name", "patients")
        page.fill("#new_epsilon", "5")
        page.click("#enter_dataset")
    expect(page.locator("#dataset")).to_have_value("patients")
    page.fill("#epsilon", "0.5")
    expect(page.locator("#numbers")).to_contain_text("62.2%")
    open_tab(page, "Confirm")
    page.fill("#recipient", "Dr Ruiz")
    page.fill("#purpose", "yearly report")
    expect(page.locator("#spend")).to_be_disabled()
    page.fill("#typed_name", "patients")
    expect(page.locator("#spend")).to_be_enabled()


def test_from_a_spreadsheet_to_the_release(page: Page, folder: Path, tmp_path: Path) -> None:
    page.set_input_files("#donors_file", folder / "patients.csv")
    expect(page.locator("#about-periods")).to_contain_text("from what you know of the data")
    expect(page.locator("#periods")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#understood")).to_contain_text("separator semicolon, encoding utf-8, decimal comma")
    expect(page.locator("#understood .private")).to_have_text("Private, stays on this machine")
    expect(page.locator("#understood tbody tr")).to_have_count(5)
    page.fill("#periods", "2021-01..2022-12")
    page.select_option("#decimal", "comma")
    expect(page.locator(".problem[data-about]")).to_have_count(0)
    page.click("#check")
    expect(page.locator("#understood .good")).to_contain_text("READY")
    open_tab(page, "Check")
    expect(page.locator(".never")).to_contain_text("Choose them from public knowledge")
    expect(page.locator(".strip tr")).to_have_count(2)

    open_tab(page, "Budget")
    page.fill("#new_name", "patients")
    page.fill("#new_epsilon", "5")
    page.click("#enter_dataset")
    expect(page.locator("#gauge")).to_contain_text("epsilon 0 of 5")
    slider = page.locator("#epsilon_slider")
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator("#epsilon")).to_have_value("0.1")
    expect(page.locator("#numbers")).to_contain_text("52.5%")
    page.fill("#epsilon", "0.5")
    expect(page.locator("#numbers")).to_contain_text("62.2%")
    expect(slider).to_have_attribute("aria-valuetext", "epsilon 0.5")
    expect(page.locator(".ends")).to_contain_text("protects more")

    open_tab(page, "Confirm")
    expect(page.locator("#cost")).to_contain_text("epsilon 0.5 at delta 1e-6")
    page.fill("#recipient", "Dr Ruiz")
    page.fill("#purpose", "yearly report")
    page.fill("#typed_name", "patient")
    expect(page.locator("#to_do")).to_have_text("Type patients to spend.")
    expect(page.locator("#spend")).to_be_disabled()
    page.fill("#typed_name", "patients")
    page.click("#spend")
    open_tab(page, "Hand over")
    expect(page.locator("#made")).to_be_visible()
    expect(page.locator("#handover .commands")).to_contain_text("dpsc release patients.csv --unit patient")
    for name, ending in (("Release", ".dpsc.json"), ("Its page", ".dpsc.html"), ("Its record", ".record.json")):
        with page.expect_download() as download:
            page.get_by_role("link", name=name).click()
        taken = tmp_path / download.value.suggested_filename
        download.value.save_as(taken)
        assert taken.read_bytes() == (folder / "releases" / f"patients{ending}").read_bytes()
    assert Release.load(tmp_path / "patients.dpsc.json").n == 400
    assert booked(folder) == ["confirmed"]
    open_tab(page, "Book")
    page.click("#verify")
    expect(page.locator("#book .good")).to_contain_text("the chain is whole")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export (CSV)").click()
    assert "for Dr Ruiz: yearly report" in Path(download.value.path()).read_text()


def test_a_double_click_a_reload_and_a_killed_browser_book_once(
    browser: Browser, console: Console, folder: Path
) -> None:
    before = booked(folder)
    with opened(browser) as context, watched(context, console) as page:
        ready(connected(page), folder)
        with held(folder / "dpsc-ledger.sqlite"):  # the release must wait
            page.dblclick("#spend")
            expect(page.locator("#under_way")).to_contain_text("Making the release")
            page.reload()
            expect(connected(page).locator("#under_way")).to_contain_text("Making the release")
            expect(page.locator("#spend")).to_be_disabled()
            context.close()  # the browser is gone, in the middle
            with opened(browser) as again, watched(again, console) as other:
                expect(connected(other).locator("#under_way")).to_contain_text("Making the release")
    with opened(browser) as again, watched(again, console) as other:
        open_tab(connected(other), "Hand over")
        expect(other.locator("#made")).to_be_visible()
    assert booked(folder) == [*before, "confirmed"]


def test_stopped_in_time_nothing_is_booked_and_nothing_written(page: Page, folder: Path) -> None:
    ready(page, folder)
    before, files = booked(folder), sorted((folder / "releases").iterdir())
    with held(folder / "dpsc-ledger.sqlite"):
        page.click("#spend")
        page.click("#stop")
        expect(page.locator("#under_way")).to_contain_text("Stopping")
    expect(page.locator("#under_way")).to_have_text("Stopped. Nothing was booked and nothing was written.")
    expect(page.locator("#typed_name")).to_have_value("")
    assert booked(folder) == before
    assert sorted((folder / "releases").iterdir()) == files


def test_a_bad_file_and_an_overspent_budget_are_explained(page: Page, folder: Path, tmp_path: Path) -> None:
    ready(page, folder)
    open_tab(page, "Budget")
    page.fill("#epsilon", "9")
    expect(page.locator("#about-epsilon")).to_contain_text("Over budget")
    expect(page.locator("#gauge")).to_contain_text("more than there is")
    expect(page.locator("#spend")).to_be_disabled()
    page.fill("#epsilon", "0.5")
    expect(page.locator("#about-epsilon")).to_have_count(0)
    open_tab(page, "Data")
    bad = tmp_path / "letter.csv"
    bad.write_text("Dear custodian")
    page.set_input_files("#donors_file", bad)
    expect(page.locator("#about-donors_file")).to_contain_text("letter.csv: ")
    expect(page.locator("#about-donors_file")).not_to_contain_text("/")
    expect(page.locator("#spend")).to_be_disabled()
    page.evaluate("document.getElementById('donors_file').dataset.largest = 1000")
    page.set_input_files("#donors_file", folder / "patients.csv")
    expect(page.locator("#about-donors_file")).to_contain_text("larger than 256 MB; type where it is")
    page.evaluate("Shiny.setInputValue('periods', '2021-01..2022-11')")  # the program tells its own problems again
    expect(page.locator("#check_command")).to_contain_text("--periods 2021-01..2022-11")
    expect(page.locator("#about-donors_file")).to_contain_text("larger than 256 MB; type where it is")


def test_the_keyboard_alone_is_enough(page: Page, folder: Path) -> None:
    page.locator("#begin_anew").evaluate("button => button.hidden || button.click()")

    def reach(name: str) -> None:
        for _ in range(60):
            if page.evaluate("document.activeElement.id") == name:
                return
            page.keyboard.press("Tab")
        pytest.fail(f"no Tab leads to {name}")

    def write(name: str, text: str) -> None:
        reach(name)
        page.keyboard.press("Control+a")
        page.keyboard.type(text)

    def next_tab(name: str) -> None:
        page.keyboard.press("Shift+Tab")
        while page.evaluate("document.activeElement.getAttribute('role')") != "tab":
            page.keyboard.press("Shift+Tab")
        page.keyboard.press("ArrowRight")
        expect(page.locator(f"#{name}")).to_be_visible()

    page.locator("body").press("Tab")
    write("path", str(folder / "patients.csv"))
    reach("use_path")
    page.keyboard.press("Enter")
    expect(page.locator("#understood")).to_contain_text(str(folder / "patients.csv"))
    write("periods", "2021-01..2022-12")
    reach("decimal")
    page.keyboard.type("comma")
    reach("check")
    expect(page.locator("#check")).to_be_enabled()
    page.keyboard.press("Enter")
    expect(page.locator("#understood .good")).to_contain_text("READY")
    next_tab("findings")
    page.keyboard.press("ArrowRight")
    write("epsilon", "0.7")
    next_tab("cost")
    expect(page.locator("#cost")).to_contain_text("epsilon 0.7")
    write("recipient", "Dr Ruiz")
    write("purpose", "by keyboard")
    write("typed_name", "patients")
    expect(page.locator("#spend")).to_be_enabled()
    reach("spend")
    before = booked(folder)
    page.keyboard.press("Enter")
    next_tab("made")
    assert booked(folder) == [*before, "confirmed"]


def test_it_fits_a_phone_and_has_no_serious_barriers(page: Page, folder: Path) -> None:
    checked(page, folder)
    found = []
    for width in (1200, 420):
        page.set_viewport_size({"width": width, "height": 800})
        for tab in TABS:
            open_tab(page, tab)
            expect(page.locator(".recalculating:visible")).to_have_count(0)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (tab, width)
            if width == 1200:
                for violation in Axe().run(page).response["violations"]:
                    if violation["impact"] in ("serious", "critical"):
                        found.append((tab, violation["id"], [node["html"][:120] for node in violation["nodes"]]))
    assert found == []


MARK = "QX7SECRET"


def test_nothing_of_a_donor_is_anywhere_else(browser: Browser, tmp_path: Path) -> None:
    """Errors are provoked everywhere; a mark in cells, labels and columns is found in the private folder alone."""
    scratch, folder = tmp_path / "scratch", tmp_path / "folder"
    scratch.mkdir()
    folder.mkdir()
    donors = tmp_path / f"{MARK}.csv"
    rows = [f"{MARK}{i};2021-{m:02d};{i + m},5" for i in range(30) for m in range(1, 13)]
    donors.write_text("\n".join([f"{MARK} unit;month;{MARK} cost", *rows, f"{MARK};2021-13;{MARK}", "x;y"]))
    latin = tmp_path / "latin.csv"
    latin.write_bytes(donors.read_bytes() + f"{MARK}é;2021-01;1\n".encode("latin-1"))
    with started(scratch, "custodian", folder=folder) as console, opened(browser) as context:
        page = context.new_page()
        page.goto(console.address)
        connected(page)
        page.set_input_files("#donors_file", donors)
        expect(page.locator("#understood")).to_contain_text(f"{MARK} cost")
        page.get_by_text("If the columns or the file").click()
        page.fill("#unit", f"{MARK} nothing")
        page.click("#check")
        expect(page.locator("#about-unit")).to_be_visible()
        page.get_by_text("Public choices").click()
        page.set_input_files("#like_file", donors)
        expect(page.locator("#about-like_file")).to_be_visible()
        page.set_input_files("#donors_file", latin)
        expect(page.locator("#understood")).to_contain_text("latin.csv")
        page.evaluate("Shiny.setInputValue('donors_file', [{datapath: 5, name: {QX7SECRET: 1}}])")  # not a file
        page.evaluate("Shiny.setInputValue('periods', {QX7SECRET: [1]})")
        for message in (f"{MARK} is no message", f'{{"method": "{MARK}"}}'):  # Shiny itself fails, and hangs up
            page.evaluate("message => Shiny.shinyapp.$socket.send(message)", message)
            expect(page.locator(".gone")).to_be_visible()
            page.reload()
            connected(page)
        kept = [path for path in scratch.rglob("*") if path.is_file() and MARK.encode() in path.read_bytes()]
        assert kept
        assert all(next(iter(path.relative_to(scratch).parts)).startswith("dpsc-console-") for path in kept)
        console.process.send_signal(signal.SIGKILL)
        console.process.wait()
        assert console.process.stdout is not None
        assert MARK not in console.process.stdout.read()
    assert all(path.exists() for path in kept)  # a kill leaves them, and the next start removes them
    with started(scratch, "custodian", folder=folder) as console:
        with pytest.raises(HTTPError, match="403"):  # it runs
            urlopen(console.home)
        assert not any(path.exists() for path in kept)
        assert len(list(scratch.glob("dpsc-console-*"))) == 1
    assert not list(scratch.glob("dpsc-console-*"))
    log = (scratch / "log").read_text()
    assert server.HIDDEN in log
    assert MARK not in log
    assert not [path for path in folder.rglob("*") if MARK.encode() in path.read_bytes()]
