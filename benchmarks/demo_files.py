"""Make the files that show the demo elsewhere: the README's picture, and what the analyst's console opens to be tried.

    python benchmarks/demo_files.py             # everything anew
    python benchmarks/demo_files.py picture     # the picture alone, of the release that is there

One release with fresh noise, as ``dpsc demo`` makes it; the first one is kept, whatever it shows. Writes docs/demo.png,
and src/dpsc/web/demo/ (the release, and the target).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsc import Donors, GramRelease, Release, datasets
from dpsc.answers import figures as plot
from dpsc.answers.figures.sheet import BLACK

ROOT = Path(__file__).resolve().parent.parent
CONSOLE = ROOT / "src" / "dpsc" / "web" / "demo"


def picture(result: Any) -> bytes:
    """Return the path of an answer, with the truth, which is known here, as a thin line."""
    title = "Did a new ground crew delay thirty planes? Asked of 1,161 others"
    axes = plot.draw(result, "path", plot.Sheet(title=title, figsize=(7.4, None)), "minutes")
    at, y = next((line.get_xdata(), line.get_ydata()) for line in axes.lines if len(line.get_xdata()) == 26)
    after = np.array([name >= datasets.CHANGED_ON for name in datasets.flights().target["fortnight"]])
    truth = np.asarray(y)[after] - datasets.MINUTES_ADDED
    axes.plot(np.asarray(at)[after], truth, color=BLACK, lw=1.7, ls=":")
    axes.annotate("the truth, known here", (np.asarray(at)[after][5], truth[5]), (0, -28), textcoords="offset points",
                  ha="center", fontsize=10, arrowprops={"arrowstyle": "-", "lw": 0.8})  # fmt: skip
    return plot.as_bytes(plot.figure_of(axes), "png", dpi=150)


def release(target: pd.Series[float]) -> Release:
    """Return a release as the demo makes it."""
    frame, _ = datasets.flights()
    donors = Donors.from_long(frame, unit="plane", time="fortnight", outcome="delay", periods=list(target.index))
    like = target[target.index < datasets.CHANGED_ON]
    return GramRelease(epsilon=1.0, delta=1e-6, smoothness="none", like=like).release(donors, provenance="demo")


def main() -> None:
    _, table = datasets.flights()
    target = table.set_index("fortnight")["delay"]
    if sys.argv[1:] != ["picture"]:
        CONSOLE.mkdir(exist_ok=True)
        release(target).save(CONSOLE / "flights.dpsc.json")
        table.to_csv(CONSOLE / "delays-of-thirty-planes.csv", index=False)
    result = Release.load(CONSOLE / "flights.dpsc.json").estimate(target, datasets.CHANGED_ON)
    (ROOT / "docs" / "demo.png").write_bytes(picture(result))


if __name__ == "__main__":
    main()
