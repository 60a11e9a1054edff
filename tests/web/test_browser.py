"""Both consoles in a real browser: the analyst's from the first file to the report, the custodian's to the release.

A release is booked once, whatever happens to the page, and nothing of a donor is anywhere else. One file, so that one
Chromium is started.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from dpsc import Ledger, PrivatePanel, Release
from dpsc.web import server
from tests.conftest import CHROMIUM
from tests.web.conftest import UNITS, Console, held, opened, started, watched

if CHROMIUM is None and os.environ.get("DPSC_NEED_BROWSER") != "1":
    pytest.skip("no Chromium found: the console was not tested in a browser", allow_module_level=True)


def open_tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()


def serious_barriers(page: Page, where: str) -> list[tuple[str, str, list[str]]]:
    return [
        (where, violation["id"], [node["html"][:120] for node in violation["nodes"]])
        for violation in Axe().run(page).response["violations"]
        if violation["impact"] in ("serious", "critical")
    ]


# The analyst's console ------------------------------------------------------------------------------------------------

WAGES = "1.4176\n1.5574\n1.6014\n1.6009\n1.642\n2.163\n2.2307\n2.1859"
RELEASE = Path(__file__).parent / "wages.dpsc.json"
DEMO = Path(server.__file__).parent / "demo" / "flights.dpsc.json"


@pytest.fixture
def page(context: BrowserContext, console: Console) -> Iterator[Page]:
    with watched(context, console) as made:
        expect(made.locator("#demo.shiny-bound-input")).to_be_attached()
        expect(made.locator("#answer")).not_to_be_empty()
        yield made


def asked(page: Page, date: str = "1985") -> None:
    """Open the release, paste the target and choose a date."""
    page.set_input_files("#release_file", RELEASE)
    expect(page.locator("#release_card")).to_contain_text("515 donors, 8 periods (1980 to 1987)")
    page.fill("#pasted", WAGES)
    expect(page.locator("#target_card")).to_contain_text("8 numbers, 1980 to 1987")
    page.select_option("#date", label=date)
    expect(page.locator("#sentence")).to_contain_text(f"from {date} to 1987")


def test_from_a_file_to_the_report(page: Page, tmp_path: Path) -> None:
    asked(page)
    expect(page.locator(".verdict .light")).to_be_visible()
    expect(page.locator("#panel-answer")).to_contain_text("Do the donors help?")
    before = page.locator("#sentence").inner_text()

    chart = page.locator(".chart")
    at = [float(x) for x in (chart.get_attribute("data-at") or "").split()]

    def point(period: int, beside: int) -> None:
        expect(page.locator("html.shiny-busy")).to_have_count(0)  # a chart that is drawn anew is none for a moment
        expect(chart).to_be_visible()
        width = chart.evaluate("chart => chart.getBoundingClientRect().width")
        chart.hover(position={"x": width * at[period] + beside, "y": 80})  # waits until it stands still

    point(2, 0)  # drag from one period to another
    page.mouse.down()
    for beside in range(5):  # a chart that was drawn anew has not seen the mouse
        point(6, beside)
        if "begins 1986" in (page.locator(".guide").text_content() or ""):
            break
    expect(page.locator(".guide")).to_contain_text("begins 1986")
    page.mouse.up()
    expect(page.locator("#sentence")).to_contain_text("from 1986 to 1987")
    assert page.locator("#sentence").inner_text() != before
    assert page.locator("#date").input_value() == "6"
    page.get_by_role("button", name="One period earlier").click()
    expect(page.locator("#sentence")).to_contain_text("from 1985 to 1987")
    expect(page.locator(".tried")).to_contain_text("Dates tried: 1985, 1986.")

    open_tab(page, "Effects")
    expect(page.locator("#effects img")).to_have_count(2)
    expect(page.locator("#effects table").first).to_contain_text("average")
    open_tab(page, "Placebos")
    expect(page.locator("#placebos img")).to_have_count(2)
    open_tab(page, "Other choices")
    expect(page.locator("#choices table")).to_contain_text("dated 1 earlier")

    open_tab(page, "Export")
    expect(page.locator("#export pre").first).to_have_text(
        "dpsc estimate wages.dpsc.json target.csv --treatment-time 1985 -o report.html"
    )
    taken = {}
    for name in ("Report", "Figure", "Workbook", "Checklist", "Script", "Target", "Release"):
        with page.expect_download() as download:
            page.get_by_role("link", name=name).click()
        taken[name] = tmp_path / download.value.suggested_filename
        download.value.save_as(taken[name])
    report = taken["Report"].read_text("utf-8")
    assert before in report.replace("&#39;", "'")
    assert "before settling on it" in report
    assert taken["Figure"].read_bytes().startswith(b"\x89PNG")
    assert taken["Workbook"].read_bytes().startswith(b"PK")
    assert "a person to fill" in taken["Checklist"].read_text("utf-8")
    assert "dates_tried=['1986']" in taken["Script"].read_text()
    assert taken["Release"].name == "wages.dpsc.json"
    assert json.loads(taken["Release"].read_text())["n"] == 515


def test_several_units_and_a_comparison(page: Page, tmp_path: Path) -> None:
    asked(page)
    open_tab(page, "Several units")
    rows = [
        f"{u},{s},{1980 + k},{1.4 + k / 10 + shift}"
        for u, s, shift in (("north", 1985, 0), ("south", 1986, 0.1))
        for k in range(8)
    ]
    table = tmp_path / "regions.csv"
    table.write_text("region,start,year,wage\n" + "\n".join(rows))
    page.set_input_files("#several_file", table)
    expect(page.locator("#column_unit")).to_have_value("region")
    expect(page.locator("#column_start option")).to_have_text(["–", "region", "start", "year", "wage"])
    expect(page.locator("#several table").last).to_contain_text("south")
    page.select_option("#column_unit", "year")
    expect(page.locator("#several .problem")).to_be_visible()
    page.select_option("#column_unit", "region")
    expect(page.locator("#several .problem")).to_have_count(0)
    expect(page.locator("#several .verdict .light")).to_be_visible()
    black = page.locator("#several").evaluate("each => getComputedStyle(each).color")
    for light in (".verdict .light", ".grade >> nth=0"):
        assert page.locator(f"#several {light}").evaluate("each => getComputedStyle(each).color") != black
    expect(page.locator("#several img")).to_have_count(2)
    open_tab(page, "Compare")
    page.set_input_files("#other_file", RELEASE)
    expect(page.locator("#comparison")).to_contain_text("wages.dpsc.json (second)")
    expect(page.locator("#comparison img")).to_have_count(1)
    open_tab(page, "Export")
    with page.expect_download() as download:
        page.get_by_role("link", name="One page of the study").click()
    assert download.value.suggested_filename == "brief.html"
    page.reload()
    open_tab(page, "Several units")
    expect(page.locator("#column_unit")).to_have_value("region")
    assert serious_barriers(page, "several") == []
    page.set_input_files("#release_file", DEMO)  # of another outcome and other periods
    expect(page.locator("#several .problem")).to_be_visible()
    page.fill("#several_pasted", "region,start\nnorth,early\nsouth,late")
    expect(page.locator("#several .problem")).to_contain_text("Which column holds the first treated periods?")
    page.fill("#several_pasted", "")
    expect(page.locator("#several .problem")).to_have_count(0)
    expect(page.locator("#column_unit")).to_be_hidden()


def test_a_bad_file_is_explained_and_changes_nothing_and_a_reload_keeps_everything(page: Page, tmp_path: Path) -> None:
    asked(page, "1984")
    bad = tmp_path / "letter.json"
    bad.write_text("Dear analyst")
    page.set_input_files("#release_file", bad)
    expect(page.get_by_role("alert")).to_have_text(
        "letter.json: this is not valid JSON; the file is truncated or not a release."
    )
    expect(page.locator("#sentence")).to_contain_text("from 1984 to 1987")
    page.fill("#pasted", "1\n2\nthree\n4")
    expect(page.locator("#target_card .problem")).to_be_visible()
    expect(page.locator("#target_card .problem")).not_to_contain_text("/")
    page.set_input_files("#release_file", RELEASE)
    page.fill("#pasted", WAGES)
    expect(page.locator(".problem")).to_have_count(0)

    page.fill("#units", "log dollars")
    expect(page.locator("#sentence")).to_contain_text("log dollars")
    sentence = page.locator("#sentence").inner_text()
    page.reload()
    expect(page.locator("#sentence")).to_have_text(sentence)
    expect(page.locator("#pasted")).to_have_value(WAGES)
    expect(page.locator("#date")).to_have_value("4")
    expect(page.locator("#units")).to_have_value("log dollars")
    page.fill("#units", "")
    expect(page.locator("#sentence")).not_to_contain_text("log dollars")


def test_units_are_asked_about_before_the_answer_and_averages_are_kept(page: Page) -> None:
    page.set_input_files("#release_file", RELEASE)
    page.fill("#pasted", "\n".join(str(100 * float(wage)) for wage in WAGES.split()))
    expect(page.locator("#target_card")).to_contain_text("8 numbers, 1980 to 1987, from 141.8")
    page.fill("#averages", "2.5")
    expect(page.locator("#averages_help .problem")).to_contain_text("must be a whole number of at least 1, not '2.5'")
    page.fill("#averages", "")
    page.select_option("#date", label="1985")
    expect(page.locator(".question")).to_contain_text("about 100 times what the donors' outcome suggests")
    expect(page.locator("#sentence")).to_have_count(0)
    page.get_by_role("button", name="Yes, it is: I will correct the target").click()
    expect(page.locator(".question [role=status]")).to_contain_text("Correct the target")
    expect(page.locator("#sentence")).to_have_count(0)
    open_tab(page, "Export")
    expect(page.locator("#export")).to_contain_text("Answer the question under “Answer” first")
    open_tab(page, "Answer")
    page.set_viewport_size({"width": 420, "height": 800})
    expect(page.locator(".recalculating:visible")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    assert serious_barriers(page, "question") == []
    page.set_viewport_size({"width": 1200, "height": 900})
    page.get_by_role("button", name="No, the numbers are right: show the answer").click()
    expect(page.locator("#sentence")).to_be_visible()
    expect(page.locator(".verdict")).to_contain_text(
        "check the units before you read on. The target is about 100 times"
    )
    expect(page.locator(".verdict.unclear")).to_be_visible()
    page.fill("#pasted", WAGES)  # corrected
    expect(page.locator(".verdict")).not_to_contain_text("check the units")
    page.fill("#averages", "5,000")
    expect(page.locator("#panel-answer")).to_contain_text("counts as the average of 5,000 people")
    page.reload()
    expect(page.locator("#averages")).to_have_value("5,000")
    open_tab(page, "Export")
    expect(page.locator("#export pre").last).to_contain_text("treatment_time='1985', averages=5000)")
    page.fill("#averages", "")
    expect(page.locator("#export pre").last).not_to_contain_text("averages")


def test_the_keyboard_alone_is_enough(page: Page) -> None:
    def reach(name: str) -> None:
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id") == name:
                return
        pytest.fail(f"no Tab leads to {name}")

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reach("release_file")
    reach("demo")
    page.keyboard.press("Enter")
    expect(page.locator("#target_card")).to_contain_text("delays-of-thirty-planes.csv")
    reach("date")
    for _ in range(3):
        page.keyboard.press("Home")
        page.keyboard.type("2013-08-13")
        if page.locator("#date option:checked").inner_text() == "2013-08-13":
            break
        page.wait_for_timeout(1500)  # letters that came more slowly than one a second were taken for new words
    expect(page.locator("#sentence")).to_contain_text("from 2013-08-13 to 2013-12-17")
    reach("later")
    page.keyboard.press("Enter")
    expect(page.locator("#sentence")).to_contain_text("from 2013-08-27 to 2013-12-17")
    expect(page.locator("#later")).to_be_focused()
    reach("tab-answer")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#effects table").first).to_be_visible()
    page.keyboard.press("End")
    expect(page.locator("#export pre").first).to_contain_text("--treatment-time 2013-08-27")
    expect(page.locator("#export .disabled")).to_have_count(0)
    reach("script")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename == "answer.py"


def test_it_fits_a_phone_and_has_no_serious_barriers(page: Page) -> None:
    found = []
    asked(page)
    there = {
        "Effects": "#effects img",
        "Several units": "#several_file",
        "Export": "#export pre",
        "Answer": ".chart img",
    }
    for tab, part in there.items():
        open_tab(page, tab)
        expect(page.locator(part).first).to_be_visible()
        expect(page.locator(".recalculating:visible")).to_have_count(0)
        found += serious_barriers(page, tab)
    assert found == []
    wide = {part: page.locator(part).first.get_attribute("src") for part in there.values() if part.endswith("img")}
    page.set_viewport_size({"width": 420, "height": 800})
    for tab, part in there.items():
        open_tab(page, tab)
        expect(page.locator(part).first).to_be_visible()
        if part in wide:  # drawn again for a phone
            expect(page.locator(part).first).not_to_have_attribute("src", wide[part] or "")
        expect(page.locator(".recalculating:visible")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= 420, tab
    image = page.locator(".chart img").bounding_box()
    assert image is not None
    assert image["width"] > 330


def test_a_brief_page_prints_on_one_side_of_paper(browser: Browser) -> None:
    release = Release.load(RELEASE)
    wages = [float(wage) for wage in WAGES.split()]
    result = release.estimate(wages, 1985, title="What would wages have been without the reform of 1985? " * 2)
    study = release.study(dict.fromkeys("abcdefg", 100 * np.array(wages)), 1985)
    warned = replace(result, notes=("something that the reader of this page should know, in a long sentence",) * 5)
    for answer in (warned, study):
        with closing(browser.new_page()) as page:
            page.set_content(answer.files("log dollars").html(brief=True).decode("utf-8"))
            assert page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n") == 1
            page.set_content(answer.files("log dollars").html().decode("utf-8"))
            assert page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n") > 1


def test_reports_fit_a_desk_and_a_phone_and_all_their_parts_are_as_wide(browser: Browser) -> None:
    release = Release.load(RELEASE)
    wages = [float(wage) for wage in WAGES.split()]
    study = release.study(dict.fromkeys("abcdefg", np.array(wages)), 1985)
    for answer in (release.estimate(wages, 1985), study):
        html = answer.files("log dollars").html().decode("utf-8")
        for width in (420, 1200):
            with closing(browser.new_page(viewport={"width": width, "height": 900})) as page:
                page.set_content(html)
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                cut = "tables => tables.filter(table => table.scrollWidth > table.clientWidth + 1).length"
                assert page.locator(".wide").evaluate_all(cut) == 0
                measured = "parts => [...new Set(parts.map(part => Math.round(part.getBoundingClientRect().width)))]"
                assert len(page.locator("main > h2, main > p, figure img, .wide").evaluate_all(measured)) == 1
                natural = page.locator("figure img").first.evaluate("image => image.currentSrc.length")
                narrow = page.locator("figure source").first.evaluate("source => source.srcset.length")
                assert (natural == narrow) is (width == 420)


def test_another_window_without_the_address_gets_nothing(browser: Browser, console: Console) -> None:
    stranger = browser.new_page()
    answer = stranger.goto(console.home)
    assert answer is not None
    assert answer.status == 403
    stranger.close()


# The custodian's console ----------------------------------------------------------------------------------------------

TABS = ("Data", "Check", "Budget", "Confirm", "Hand over", "Ledger")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, donors_text: str) -> Path:
    made = tmp_path_factory.mktemp("custodian")
    (made / "patients.csv").write_text(donors_text)
    (made / "releases").mkdir()
    return made


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Console]:
    with started(tmp_path_factory.mktemp("scratch"), "custodian", "--folder", "releases", folder=folder) as running:
        yield running


@pytest.fixture
def private(context: BrowserContext, desk: Console) -> Iterator[Page]:
    with watched(context, desk) as made:
        yield connected(made)


def connected(page: Page) -> Page:
    expect(page.locator("#check.shiny-bound-input")).to_be_attached()
    expect(page.locator("#check_command pre")).to_be_attached()
    return page


def booked(folder: Path) -> list[str]:
    path = folder / "dpsc-ledger.sqlite"
    return [entry.state for entry in Ledger(path).entries()] if path.exists() else []


def settled(page: Page, tab: str) -> None:
    """Wait until nothing is worked out any more; say what still is."""
    working = page.locator(".recalculating:visible")
    try:
        expect(working).to_have_count(0)
    except AssertionError:
        pytest.fail(
            f"{tab}: still at work: {working.evaluate_all('found => found.map(each => each.outerHTML.slice(0, 600))')}"
        )


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


def test_from_a_spreadsheet_to_the_release(private: Page, folder: Path, tmp_path: Path) -> None:
    private.set_input_files("#donors_file", folder / "patients.csv")
    expect(private.locator("#about-periods")).to_contain_text("from what you know of the data")
    expect(private.locator("#periods")).to_have_attribute("aria-invalid", "true")
    expect(private.locator("#understood")).to_contain_text("separator semicolon, encoding utf-8, decimal comma")
    expect(private.locator("#understood .private")).to_have_text("Private, stays on this machine")
    expect(private.locator("#understood tbody tr")).to_have_count(5)
    private.fill("#periods", "2021-01..2022-12")
    private.select_option("#decimal", "comma")
    expect(private.locator(".problem[data-about]")).to_have_count(0)
    expect(private.locator("[role=tab].done")).to_have_count(0)
    private.click("#check")  # each page leads to the next
    expect(private.locator("#panel-check")).to_be_focused()
    expect(private.locator("#understood .good")).to_contain_text("READY")
    expect(private.locator(".never")).to_contain_text("Choose them from public knowledge")
    expect(private.locator(".strip tr")).to_have_count(2)
    expect(private.locator("[role=tab].done")).to_have_text(["✓ Data (done)", "✓ Check (done)"])

    private.click("#to_budget")
    expect(private.locator("#dataset")).to_be_hidden()  # there is none to choose
    expect(private.locator("#to_confirm")).to_be_disabled()
    expect(private.locator("#to_do_budget")).to_have_text("Enter a data set with its budget.")
    private.fill("#new_name", "patients")
    private.fill("#new_epsilon", "5")
    private.click("#enter_dataset")
    expect(private.locator("#gauge")).to_contain_text("epsilon 0 of 5")
    slider = private.locator("#epsilon_slider")
    slider.focus()
    private.keyboard.press("Home")
    expect(private.locator("#epsilon")).to_have_value("0.1")
    expect(private.locator("#numbers")).to_contain_text("52.5%")
    private.fill("#epsilon", "0.5")
    expect(private.locator("#numbers")).to_contain_text("62.2%")
    expect(slider).to_have_attribute("aria-valuetext", "epsilon 0.5")
    expect(private.locator(".ends")).to_contain_text("protects more")

    private.click("#to_confirm")
    expect(private.locator("[role=tab].done")).to_have_count(3)
    expect(private.locator("#cost")).to_contain_text("epsilon 0.5 at delta 1e-6")
    private.fill("#recipient", "Dr Ruiz")
    private.fill("#purpose", "yearly report")
    private.fill("#typed_name", "patient")
    expect(private.locator("#to_do")).to_have_text("Type patients to spend.")
    expect(private.locator("#spend")).to_be_disabled()
    private.fill("#typed_name", "patients")
    private.click("#spend")
    expect(private.locator("#made")).to_be_visible()
    expect(private.locator("[role=tab].done")).to_have_count(4)
    expect(private.locator("#handover .commands")).to_contain_text("dpsc release patients.csv --unit patient")
    ends = {"the release": ".dpsc.json", "its page": ".dpsc.html", "its record": ".record.json"}
    for name, ending in (ends | {"its dossier": ".dossier.zip"}).items():
        with private.expect_download() as download:
            private.get_by_role("link", name=f"Download {name}").click()
        taken = tmp_path / download.value.suggested_filename
        download.value.save_as(taken)
        assert taken.read_bytes() == (folder / "releases" / f"patients{ending}").read_bytes()
    assert Release.load(tmp_path / "patients.dpsc.json").n == 400
    assert booked(folder) == ["confirmed"]
    open_tab(private, "Confirm")  # nothing there asks for a second payment, also after a reload
    for _ in range(2):
        expect(private.locator("#paid")).to_contain_text("Nothing else is waiting to be paid.")
        expect(private.locator("#to_pay")).to_be_hidden()
        private.reload()
        connected(private)
    for tab, button in (("Data", "#check"), ("Check", "#check_again")):  # what is done is not offered again
        open_tab(private, tab)
        expect(private.locator(button)).to_be_disabled()
    open_tab(private, "Budget")
    expect(private.locator("#epsilon_slider")).to_have_attribute("aria-valuetext", "epsilon 0.5")
    expect(private.locator("#epsilon_slider")).not_to_have_value("0")
    open_tab(private, "Confirm")
    private.get_by_role("button", name="Next: hand over").click()
    expect(private.locator("#made")).to_be_visible()
    open_tab(private, "Ledger")
    private.click("#verify")
    expect(private.locator("#book .good")).to_contain_text("the chain is whole")
    with private.expect_download() as download:
        private.get_by_role("link", name="Export (CSV)").click()
    assert "for Dr Ruiz: yearly report" in Path(download.value.path()).read_text()


def test_a_double_click_a_reload_and_a_killed_browser_book_once(browser: Browser, desk: Console, folder: Path) -> None:
    before = booked(folder)
    with opened(browser) as context, watched(context, desk) as page:
        ready(connected(page), folder)
        with held(folder / "dpsc-ledger.sqlite"):  # the release must wait
            page.dblclick("#spend")
            expect(page.locator("#under_way")).to_contain_text("Making the release")
            page.reload()
            expect(connected(page).locator("#under_way")).to_contain_text("Making the release")
            expect(page.locator("#spend")).to_be_disabled()
            context.close()  # the browser is gone, in the middle
            with opened(browser) as again, watched(again, desk) as other:
                expect(connected(other).locator("#under_way")).to_contain_text("Making the release")
    with opened(browser) as again, watched(again, desk) as other:
        open_tab(connected(other), "Hand over")
        expect(other.locator("#made")).to_be_visible()
    assert booked(folder) == [*before, "confirmed"]


def test_stopped_in_time_nothing_is_booked_and_nothing_written(private: Page, folder: Path) -> None:
    ready(private, folder)
    before, files = booked(folder), sorted((folder / "releases").iterdir())
    with held(folder / "dpsc-ledger.sqlite"):
        private.click("#spend")
        private.click("#stop")
        expect(private.locator("#under_way")).to_contain_text("Stopping")
    expect(private.locator("#under_way")).to_have_text("Stopped. Nothing was booked and nothing was written.")
    expect(private.locator("#typed_name")).to_have_value("")
    assert booked(folder) == before
    assert sorted((folder / "releases").iterdir()) == files


def test_a_bad_file_and_an_overspent_budget_are_explained(private: Page, folder: Path, tmp_path: Path) -> None:
    ready(private, folder)
    open_tab(private, "Budget")
    private.fill("#epsilon", "9")
    expect(private.locator("#about-epsilon")).to_contain_text("Over budget")
    expect(private.locator("#gauge")).to_contain_text("more than there is")
    expect(private.locator("#spend")).to_be_disabled()
    private.fill("#epsilon", "0.5")
    expect(private.locator("#about-epsilon")).to_have_count(0)
    open_tab(private, "Data")
    bad = tmp_path / "letter.csv"
    bad.write_text("Dear custodian")
    private.set_input_files("#donors_file", bad)
    expect(private.locator("#about-donors_file")).to_contain_text("letter.csv: ")
    expect(private.locator("#about-donors_file")).not_to_contain_text("/")
    expect(private.locator("#spend")).to_be_disabled()
    private.evaluate("document.getElementById('donors_file').dataset.largest = 1000")
    private.set_input_files("#donors_file", folder / "patients.csv")
    expect(private.locator("#about-donors_file")).to_contain_text("larger than 256 MB; type where it is")
    private.evaluate("Shiny.setInputValue('periods', '2021-01..2022-11')")  # the program tells its own problems again
    expect(private.locator("#check_command")).to_contain_text("--periods 2021-01..2022-11")
    expect(private.locator("#about-donors_file")).to_contain_text("larger than 256 MB; type where it is")


def test_the_keyboard_alone_is_enough_to_spend(private: Page, folder: Path) -> None:
    if not (folder / "dpsc-ledger.sqlite").exists():  # this test alone
        Ledger(folder / "dpsc-ledger.sqlite", create=True).add_dataset("patients", epsilon=5, delta=1e-6)
    private.locator("#begin_anew").evaluate("button => button.hidden || button.click()")

    def reach(name: str) -> None:
        for _ in range(60):
            if private.evaluate("document.activeElement.id") == name:
                return
            private.keyboard.press("Tab")
        pytest.fail(f"no Tab leads to {name}")

    def write(name: str, text: str) -> None:
        reach(name)
        private.keyboard.press("Control+a")
        private.keyboard.type(text)

    def press(name: str, then: str) -> None:
        reach(name)
        expect(private.locator(f"#{name}")).to_be_enabled()
        private.keyboard.press("Enter")
        expect(private.locator(f"#panel-{then}")).to_be_focused()

    private.locator("body").press("Tab")
    write("path", str(folder / "patients.csv"))
    reach("use_path")
    private.keyboard.press("Enter")
    expect(private.locator("#understood")).to_contain_text(str(folder / "patients.csv"))
    write("periods", "2021-01..2022-12")
    reach("decimal")
    private.keyboard.press("c")  # no more letters: after a second, the list takes them for a new word
    expect(private.locator("#decimal")).to_have_value("comma")
    press("check", "check")  # reached also while the first look at the file goes on
    expect(private.locator("#understood .good")).to_contain_text("READY")
    press("to_budget", "budget")
    write("epsilon", "0.7")
    press("to_confirm", "confirm")
    expect(private.locator("#cost")).to_contain_text("epsilon 0.7")
    write("recipient", "Dr Ruiz")
    write("purpose", "by keyboard")
    before = booked(folder)
    write("typed_name", "patient")
    reach("spend")  # a button that waits is reached all the same, and does nothing
    expect(private.locator("#spend")).to_be_disabled()
    private.keyboard.press("Enter")
    private.keyboard.press("Shift+Tab")
    write("typed_name", "patients")
    reach("spend")
    expect(private.locator("#spend")).to_be_enabled()
    assert booked(folder) == before
    press("spend", "handover")
    assert booked(folder) == [*before, "confirmed"]


def test_the_custodians_page_fits_a_phone_and_has_no_serious_barriers(private: Page, folder: Path) -> None:
    checked(private, folder)
    found = []
    for width in (1200, 420):
        private.set_viewport_size({"width": width, "height": 800})
        for tab in TABS:
            open_tab(private, tab)
            settled(private, tab)
            assert private.evaluate("document.documentElement.scrollWidth") <= width, (tab, width)
            if width == 1200:
                found += serious_barriers(private, tab)
    assert found == []


PEOPLE = {
    "Data": {
        "person": "patient",
        "unit": "hospital",
        "time": "month",
        "outcome": "cost",
        "units": ",".join(UNITS),
        "periods": "2021-01..2021-12",
        "low": "0",
        "high": "300",
        "cells_per_person": "4",
    },
    "Budget": {"epsilon": "0.5", "people": "200", "change": "10"},
    "Confirm": {"recipient": "Dr Ruiz", "purpose": "hospitals", "typed_name": "visitors"},
}


def test_people_in_groups_from_their_records_to_the_panel(browser: Browser, tmp_path: Path, visits_text: str) -> None:
    """With the keyboard where it matters, on a desk and a phone, and after a reload."""
    scratch, found = tmp_path / "scratch", []
    scratch.mkdir()
    (tmp_path / "visits.csv").write_text(visits_text)
    Ledger(tmp_path / "dpsc-ledger.sqlite", create=True).add_dataset("visitors", epsilon=2, delta=1e-6)
    with (
        started(scratch, "custodian", folder=tmp_path) as console,
        opened(browser) as context,
        watched(context, console) as page,
    ):
        connected(page)
        group = page.get_by_role("group", name="Who is protected?")
        expect(group.get_by_role("radio")).to_have_count(2)
        expect(page.locator("#missing, #person")).to_have_count(2)
        expect(page.locator("#person")).to_be_hidden()
        group.get_by_role("radio", name="each donor").focus()
        page.keyboard.press("ArrowRight")
        expect(group.get_by_role("radio", name="each person inside the donors")).to_be_checked()
        expect(page.locator("#person")).to_be_visible()
        for name in ("shape", "like_file", "n", "averages"):
            expect(page.locator(f"#{name}")).to_be_hidden()
        page.set_input_files("#donors_file", tmp_path / "visits.csv")
        expect(page.locator("#about-person")).to_contain_text("the first rows show which columns there are")
        expect(page.locator("#understood th")).to_have_text(["patient", "hospital", "month", "cost"])
        for tab, fields in PEOPLE.items():
            open_tab(page, tab)
            for name, value in fields.items():
                page.fill(f"#{name}", value)
            if tab == "Data":
                for said in ("--person patient --unit hospital", "--outcome cost --units North", "--periods 2021-01"):
                    expect(page.locator("#check_command")).to_contain_text(said)
                for said in ("--cells-per-person 4", "--bounds 0 300"):
                    expect(page.locator("#check_command")).to_contain_text(said)
                page.click("#check")
                expect(page.locator("#panel-check")).to_be_focused()
                expect(page.locator("#understood .good")).to_contain_text("READY")
                open_tab(page, tab)
                page.select_option("#statistic", "share")
                expect(page.locator("#low")).to_be_hidden()
                page.select_option("#statistic", "mean")
                expect(page.locator("#low")).to_be_visible()
            if tab == "Budget":  # smaller than the one that was checked
                expect(page.locator("#to_do_budget")).to_contain_text("Check again, under “Check”")
                open_tab(page, "Check")
                page.click("#check_again")
                expect(page.locator("#to_budget")).to_be_enabled()
        expect(page.locator("#spend")).to_be_enabled()
        page.reload()
        connected(page)
        expect(page.locator("#panel-confirm")).to_be_visible()
        expect(page.locator("#spend")).to_be_enabled()
        open_tab(page, "Budget")
        expect(page.locator("#numbers")).to_contain_text("The noise of a usual cell")
        expect(page.locator("#numbers")).to_contain_text("62.2%")
        for width in (1200, 420):
            page.set_viewport_size({"width": width, "height": 800})
            for tab in TABS:
                open_tab(page, tab)
                expect(page.locator(".recalculating:visible")).to_have_count(0)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (tab, width)
                found += serious_barriers(page, f"{tab} {width}")
        open_tab(page, "Check")
        expect(page.locator("#findings .private").first).to_contain_text("PRIVATE")
        expect(page.locator("#findings")).to_contain_text("What the bounds would cut")
        open_tab(page, "Confirm")
        page.click("#spend")
        expect(page.locator("#made")).to_contain_text("the records stay with you")
        expect(page.locator("#handover .commands")).to_contain_text("dpsc release visits.csv --person patient")
        found += serious_barriers(page, "made")
        with page.expect_download() as download:
            page.get_by_role("link", name="Download the release").click()
        taken = tmp_path / "taken.dpsc.json"
        download.value.save_as(taken)
    assert found == []
    assert PrivatePanel.load(taken).units == tuple(UNITS)
    assert booked(tmp_path) == ["confirmed"]


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
    clean = tmp_path / "clean.csv"
    clean.write_text("\n".join([f"{MARK} unit;month;{MARK} cost", *rows]))
    with started(scratch, "custodian", folder=folder) as console, opened(browser) as context:
        page = context.new_page()
        page.goto(console.address)
        connected(page)
        page.set_input_files("#donors_file", donors)
        expect(page.locator("#understood")).to_contain_text(f"{MARK} cost")
        page.fill("#unit", f"{MARK} nothing")
        page.click("#check")
        expect(page.locator("#about-unit")).to_be_visible()
        page.get_by_text("Public choices").click()
        page.set_input_files("#like_file", donors)
        expect(page.locator("#about-like_file")).to_be_visible()
        page.set_input_files("#donors_file", latin)
        expect(page.locator("#understood")).to_contain_text("latin.csv")
        page.get_by_role("radio", name="each person inside").check()
        said = {"person": f"{MARK} unit", "unit": "month", "time": f"{MARK} cost", "units": f"{MARK},b,c"}
        for name, value in (said | {"periods": "2021-01..2021-12"}).items():
            page.fill(f"#{name}", value)
        page.select_option("#statistic", "count")
        for option in (f"--units {MARK},b,c", "--periods 2021-01..2021-12", "--statistic count"):
            expect(page.locator("#check_command")).to_contain_text(option)
        expect(page.locator("#check")).to_be_enabled()
        for file, field in ((donors, "donors_file"), (latin, "encoding")):
            page.set_input_files("#donors_file", file)
            expect(page.locator(f"#about-{field}")).to_be_visible()
            expect(page.locator("#check")).to_be_enabled()
        page.set_input_files("#donors_file", clean)
        expect(page.locator("#understood")).to_contain_text("NOT READY: one thing to correct")
        open_tab(page, "Check")
        expect(page.locator("#findings")).to_contain_text("No record of a person has a declared unit and period")
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
