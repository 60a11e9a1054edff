"""The analyst's page in a real browser, from the first file to the report."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.conftest import CHROMIUM
from tests.web.conftest import Console, watched

if CHROMIUM is None and os.environ.get("DPSC_NEED_BROWSER") != "1":
    pytest.skip("no Chromium found: the console was not tested in a browser", allow_module_level=True)

WAGES = "1.4176\n1.5574\n1.6014\n1.6009\n1.642\n2.163\n2.2307\n2.1859"
RELEASE = Path(__file__).parent / "wages.dpsc.json"


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


def open_tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()


def test_from_a_file_to_the_report(page: Page, tmp_path: Path) -> None:
    asked(page)
    expect(page.locator(".verdict .light")).to_be_visible()
    expect(page.locator("#panel-answer")).to_contain_text("Do the donors help?")
    before = page.locator("#sentence").inner_text()

    chart = page.locator(".chart")
    box, at = chart.bounding_box(), [float(x) for x in (chart.get_attribute("data-at") or "").split()]
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * at[2], box["y"] + 80)  # drag from one period to another
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * at[6] + 5, box["y"] + 80)
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
    for name in ("Report", "Figure", "Workbook", "Script", "Target", "Release"):
        with page.expect_download() as download:
            page.get_by_role("link", name=name).click()
        taken[name] = tmp_path / download.value.suggested_filename
        download.value.save_as(taken[name])
    report = taken["Report"].read_text("utf-8")
    assert before in report.replace("&#39;", "'")
    assert "before settling on it" in report
    assert taken["Figure"].read_bytes().startswith(b"\x89PNG")
    assert taken["Workbook"].read_bytes().startswith(b"PK")
    assert "dates_tried=['1986']" in taken["Script"].read_text()
    assert taken["Release"].name == "wages.dpsc.json"
    assert json.loads(taken["Release"].read_text())["n"] == 515


def test_several_units_and_a_comparison(page: Page, tmp_path: Path) -> None:
    asked(page)
    open_tab(page, "Several units")
    rows = [f"{u},{s},{1980 + k},{1.4 + k / 10 + shift}" for u, s, shift in (("north", 1985, 0), ("south", 1986, 0.1))
            for k in range(8)]  # fmt: skip
    table = tmp_path / "regions.csv"
    table.write_text("region,start,year,wage\n" + "\n".join(rows))
    page.set_input_files("#several_file", table)
    expect(page.locator("#several .problem")).to_contain_text("no column 'unit'")
    page.fill("#unit_column", "region")
    expect(page.locator("#several table").last).to_contain_text("south")
    expect(page.locator("#several img")).to_have_count(2)
    open_tab(page, "Compare")
    page.set_input_files("#other_file", RELEASE)
    expect(page.locator("#comparison")).to_contain_text("wages.dpsc.json (second)")
    expect(page.locator("#comparison img")).to_have_count(1)


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
    page.keyboard.press("Home")
    page.keyboard.type("2013-08-13")
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
    for tab in ("Effects", "Several units", "Export", "Answer"):
        open_tab(page, tab)
        expect(page.locator(".recalculating:visible")).to_have_count(0)
        for violation in Axe().run(page).response["violations"]:
            if violation["impact"] in ("serious", "critical"):
                found.append((tab, violation["id"], [node["html"][:120] for node in violation["nodes"]]))
    assert found == []
    page.set_viewport_size({"width": 420, "height": 800})
    for tab in ("Effects", "Several units", "Export", "Answer"):
        open_tab(page, tab)
        page.wait_for_timeout(100)
        expect(page.locator(".recalculating:visible")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= 420, tab
    image = page.locator(".chart img").bounding_box()
    assert image is not None
    assert image["width"] > 330


def test_another_window_without_the_address_gets_nothing(browser: Browser, console: Console) -> None:
    stranger = browser.new_page()
    answer = stranger.goto(console.home)
    assert answer is not None
    assert answer.status == 403
    stranger.close()
