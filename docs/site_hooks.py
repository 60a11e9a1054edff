"""What MkDocs does besides: notebooks become pages, and the files beside ``docs`` become part of the site.

Drawings are put into their pages, where they follow the colours of the site, and the theme shows its navigation beside
the text on narrower screens than it does by itself.

The Markdown is written for readers of the repository, who see ``docs/`` among its other files. On the site these files
are in ``project/``, and links to them are turned there.
"""

from __future__ import annotations

import base64
import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md", "benchmarks/RESULTS.md")
FIGURES = "benchmarks/results/*.png"
CODE = re.compile(r"<code>([^<>\n]+)</code>")
DRAWING = re.compile(r'<img\b[^>]*\bsrc="([^"]+\.svg)"[^>]*>')
NARROW = {"76.25em": "60em", "76.234375em": "59.984375em"}  # the theme's drawer, and where it ends here
LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)\s#]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the project's own pages and figures, and a page for every notebook."""
    for path in [ROOT / name for name in PROJECT] + sorted(ROOT.glob(FIGURES)):
        place = f"project/{path.relative_to(ROOT).as_posix()}"
        files.append(File.generated(config, place, abs_src_path=str(path)))
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        for page in notebook_files(notebook, config):
            files.append(page)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links that leave ``docs/`` to ``project/``, and give tables inside quotes the empty lines they need."""
    markdown = re.sub(r"(<!-- quote [\w ]+ -->\n)(?=\|)", r"\1\n", markdown)
    here = page.file.src_uri
    home = here.removeprefix("project/") if here.startswith("project/") else f"docs/{here}"

    def turn(match: re.Match[str]) -> str:
        there = posixpath.normpath(posixpath.join(posixpath.dirname(home), match[1]))
        place = there.removeprefix("docs/") if there.startswith("docs/") else f"project/{there}"
        if place.endswith(".ipynb") and place.removesuffix(".ipynb") != here.removesuffix(".md"):
            place = place.removesuffix(".ipynb") + ".md"  # another notebook's page; its own link leads to the file
        return posixpath.relpath(place, posixpath.dirname(here) or ".") if files.get_file_from_path(place) else match[1]

    return LINK.sub(turn, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put drawings into the page, and keep words of code whole."""

    def drawing(match: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), match[1]))
        return (ROOT / "docs" / place).read_text("utf-8")

    html = CODE.sub(lambda match: f"<code>{' '.join(map(whole, match[1].split(' ')))}</code>", html)
    return DRAWING.sub(drawing, html)


def whole(word: str) -> str:
    """Return a word of code that is broken nowhere, or at its joints if it is too long for a phone."""
    if len(word) > 36:
        return re.sub(r"([_./])", r"\1<wbr>", word)
    return word if word.isalnum() else f"<span>{word}</span>"


def on_post_build(config: MkDocsConfig) -> None:
    """Keep the navigation beside the text from 60em on: below 76.25em the theme hides it in a drawer."""
    assets = Path(config["site_dir"]) / "assets"
    for pattern in ("stylesheets/main.*.css", "stylesheets/palette.*.css", "javascripts/bundle.*.js"):
        (path,) = assets.glob(pattern)
        text = path.read_text("utf-8")
        if "76.25em" not in text:
            raise SystemExit(f"{path.name} no longer names the width below which the theme hides its navigation")
        for theirs, ours in NARROW.items():
            text = text.replace(theirs, ours)
        path.write_text(text, "utf-8")


def notebook_files(notebook: File, config: MkDocsConfig) -> list[File]:
    """Return the page of a notebook and its figures."""
    cells = json.loads(notebook.content_string)["cells"]
    stem = notebook.src_uri.removesuffix(".ipynb")
    parts: list[str] = []
    made: list[File] = []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code":
            parts.append(f"```python\n{source}\n```")
            for output in cell["outputs"]:
                text, figure = output_parts(output)
                if figure is not None:
                    place = f"{stem}-{len(made) + 1}.png"
                    made.append(File.generated(config, place, content=figure))
                    text = f"![]({posixpath.basename(place)})"
                parts.append(text)
    parts.append(f"[This page as a notebook]({posixpath.basename(notebook.src_uri)})")
    return [*made, File.generated(config, f"{stem}.md", content="\n\n".join(parts))]


def output_parts(output: dict[str, Any]) -> tuple[str, bytes | None]:
    """Return what a cell printed as Markdown, and its figure if it is one."""
    data = output.get("data", {})
    if "image/png" in data:
        return "", base64.b64decode("".join(data["image/png"]))
    if "text/html" in data:
        return f'<div class="notebook-output">{"".join(data["text/html"])}</div>', None
    if output["output_type"] == "error":
        return f"```text\n{output['ename']}: {output['evalue']}\n```", None
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f"```text\n{text.rstrip()}\n```", None
