"""Make the pictures of the consoles in docs/guides: each is used as its guide says, on the practice files.

python docs/make_pictures.py        # from the project's folder; needs Chromium
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests import pages  # noqa: E402  after the path is set
from tests.conftest import CHROMIUM  # noqa: E402
from tests.web.conftest import started  # noqa: E402


def main() -> None:
    """Make all of them."""
    with tempfile.TemporaryDirectory(prefix="clinic-") as name, sync_playwright() as playwright:
        folder = Path(name)
        (folder / "patients.dpsc.json").write_bytes((HERE / "practice.dpsc.json").read_bytes())
        for file, content in pages.practice_files().items():
            (folder / file).write_bytes(content)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--disable-gpu"])
        for program in (analyst, custodian):
            scratch = folder / program.__name__
            scratch.mkdir()
            with started(scratch, program.__name__, folder=folder) as console:
                page = opened(browser, console.address)
                program(page, folder)
                page.close()
        browser.close()


def opened(browser: Browser, address: str) -> Page:
    """Return the page of a console, once it can be used."""
    page = browser.new_page(viewport={"width": 1100, "height": 900}, reduced_motion="reduce")
    page.goto(address)
    expect(page.locator(".shiny-bound-input").first).to_be_attached()
    expect(page.locator("#answer, #check_command pre").first).not_to_be_empty()
    return page


def analyst(page: Page, folder: Path) -> None:
    """Open a release, give the target, choose the date."""
    page.set_input_files("#release_file", folder / "patients.dpsc.json")
    expect(page.locator("#release_card")).to_contain_text("600 donors")
    page.set_input_files("#target_file", folder / "clinic.csv")
    expect(page.locator("#target_card")).to_contain_text("36 numbers")
    page.fill("#averages", "40")
    page.select_option("#date", label="2023-04")
    expect(page.locator(".verdict .light")).to_be_visible()
    picture(page, "console.png")


def custodian(page: Page, folder: Path) -> None:
    """Check the donors, give them a budget, release."""
    said = {"unit": "patient", "time": "month", "outcome": "cost", "periods": "2021-01..2023-12"}
    for name, value in said.items():
        page.fill(f"#{name}", value)
    page.select_option("#decimal", "comma")
    for option in [*(f"--{name} {value}" for name, value in said.items()), "--decimal comma"]:
        expect(page.locator("#check_command")).to_contain_text(option)  # it knows
    page.set_input_files("#donors_file", folder / "patients.csv")
    expect(page.locator("#understood .good")).to_contain_text("READY")
    page.click("#check")
    expect(page.locator(".strip")).to_be_visible()
    expect(page.locator("#stop")).to_be_hidden()
    picture(page, "console-check.png")
    page.click("#to_budget")
    page.fill("#new_name", "patients")
    page.fill("#new_epsilon", "2")
    page.click("#enter_dataset")
    expect(page.locator("#dataset")).to_have_value("patients")
    page.fill("#epsilon", "1")
    expect(page.locator("#numbers")).to_contain_text("73.1%")
    page.click("#to_confirm")
    page.fill("#recipient", "Dr Ruiz")
    page.fill("#purpose", "yearly report")
    page.fill("#file_name", "release.dpsc.json")
    page.fill("#typed_name", "patients")
    page.click("#spend")
    expect(page.locator("#made")).to_be_visible()
    picture(page, "console-handover.png")


def picture(page: Page, name: str) -> None:
    """Save what the window shows from its top, with few colours."""
    expect(page.locator("html.shiny-busy")).to_have_count(0)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.mouse.move(0, 0)
    whole = Image.open(io.BytesIO(page.screenshot()))
    whole.convert("RGB").quantize(128).save(HERE / "guides" / name, optimize=True)
    print(name)


if __name__ == "__main__":
    main()
