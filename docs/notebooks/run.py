"""Run the notebooks of this folder and write what they show back into them.

    python docs/notebooks/run.py [NAME ...]

The notebooks are their own and only source. Every release draws new noise, so numbers that depend on it change with
every run; nothing else in the files does. `tests/test_notebooks.py` runs the same cells and checks what they say.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def run(path: Path) -> None:
    """Run one notebook in an empty folder and write its outputs into it."""
    notebook: Any = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as empty:
        client = NotebookClient(
            notebook,
            timeout=120,
            kernel_name="python3",
            resources={"metadata": {"path": empty}},
            coalesce_streams=True,  # a command's screen is one output, in however many pieces it came
        )
        client.execute()
    tidy(notebook)
    nbformat.write(notebook, path)


def tidy(notebook: Any) -> None:
    """Keep what a reader sees and drop what differs from run to run and machine to machine."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells, start=1):
        cell.id = f"cell-{number}"
        cell.metadata = nbformat.from_dict({})
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                raise SystemExit(f"cell {number} complains: {output.text}")
            if "text" in output:
                output.text = "".join(f"{line.rstrip()}\n" for line in output.text.splitlines())


if __name__ == "__main__":
    # The command `dpsc` is that of this environment, and writes plain text as wide as a page.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    os.environ.update(TTY_COMPATIBLE="0", COLUMNS="92", OPENBLAS_NUM_THREADS="1")
    os.environ.pop("DPSC_LEDGER", None)
    for name in sys.argv[1:] or sorted(file.stem for file in FOLDER.glob("*.ipynb")):
        run(FOLDER / f"{name}.ipynb")
        print(f"{name}.ipynb")
