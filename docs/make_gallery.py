"""Write the figures of docs/reference/gallery.md: run it, save what each block draws as the picture below it.

python docs/make_gallery.py        # from the project's folder
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from PIL import Image

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests import pages  # noqa: E402  after the path is set

DRAWN = re.compile(r"```python\n((?:(?!```).)*?)```\n\n(?:!\[[^\]]*\]\((gallery/[\w-]+\.png)\))?", flags=re.DOTALL)


def main() -> None:
    """Run the page and save its figures, small enough for a page."""
    mpl.use("Agg")
    (HERE / "reference" / "gallery").mkdir(exist_ok=True)
    space: dict[str, Any] = {"__name__": "page"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        pages.prepare()
        for source, picture in DRAWN.findall((HERE / "reference" / "gallery.md").read_text("utf-8")):
            exec(compile(source, "gallery", "exec"), space)
            if picture:
                save(space["axes"].figure, HERE / "reference" / picture)
                print(picture)


def save(figure: Figure, path: Path) -> None:
    """Save a figure with few colours, in a third of the bytes."""
    with io.BytesIO() as whole:
        figure.savefig(whole, dpi=110)
        Image.open(whole).convert("RGB").quantize(64).save(path, optimize=True)


if __name__ == "__main__":
    main()
