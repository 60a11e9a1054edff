"""Refuse a site that would load something from the network, or shows the markup of docstrings instead of links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OUTSIDE = r"(?:https?:)?//"
TAG = re.compile(r"<(?:script|img|iframe|source|video|audio|embed|object|input|link|image|use)\b[^>]*>", re.IGNORECASE)
ADDRESS = re.compile(rf"\b(?:src|srcset|data|href|poster)=[\"']?\s*({OUTSIDE}[^\"'\s>]+)", re.IGNORECASE)
ROLE = re.compile(r":(?:meth|class|func|attr|mod|exc):")
IN_STYLE = re.compile(rf"(?:url\(|@import)\s*[\"']?\s*({OUTSIDE}[^\"')\s;]+)", re.IGNORECASE)


def loaded(text: str, *, style: bool = False) -> Iterator[str]:
    """Yield what a page, or a style sheet, would load from elsewhere. Links that a reader may follow do not count."""
    if not style:
        for tag in TAG.findall(text):
            yield from ADDRESS.findall(tag)
    for part in [text] if style else re.findall(r"<style[^>]*>(.*?)</style>|style=\"([^\"]*)\"", text, flags=re.DOTALL):
        yield from IN_STYLE.findall(part if style else "".join(part))


def on_post_build(config: Any) -> None:
    """Check every page and style sheet that was built."""
    site = Path(config["site_dir"])
    found = {
        f"{path.relative_to(site)}: {address}"
        for path in sorted(site.rglob("*"))
        if path.suffix in (".html", ".css")
        for address in loaded(path.read_text(encoding="utf-8"), style=path.suffix == ".css")
    }
    if found:
        raise SystemExit("The site would load from the network:\n  " + "\n  ".join(sorted(found)))
    raw = [path.name for path in (site / "reference" / "api").glob("*.html") if ROLE.search(path.read_text("utf-8"))]
    if raw:
        raise SystemExit(f"docs/site_docstrings.py did not turn all roles into links: {', '.join(raw)}")
