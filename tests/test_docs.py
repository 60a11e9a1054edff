"""What README and docs quote is there, and what they link to exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert link.startswith("http") or (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_quoted_results_are_filled_in(page: Path) -> None:
    quotes = re.findall(r"<!-- quote ([\w ]+) -->\n(.*?)<!-- end quote -->", page.read_text("utf-8"), flags=re.DOTALL)
    assert all(text.strip() for _, text in quotes), [name for name, _ in quotes]
    if page.name in ("README.md", "gram-release.md"):
        assert len(quotes) >= 2
