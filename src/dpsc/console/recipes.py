"""What the page has just done, as a command to type and as a script to run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

TARGET = "target.csv"
REPORT, STUDY, COMPARISON = "report.html", "study.html", "comparison.html"


def command(release: str, date: str, units: str, out: str = REPORT) -> str:
    """Return the command that gives the same answer; the target is the file that the page exports.

    Examples
    --------
    >>> command("wages.dpsc.json", "1985", "")
    'dpsc estimate wages.dpsc.json target.csv --treatment-time 1985 -o report.html'
    """
    said = ["--units", units] if units else []
    return shlex.join(["dpsc", "estimate", release, TARGET, "--treatment-time", date, *said, "-o", out])


def study_command(release: str, table: str, said: Mapping[str, str]) -> str:
    """Return the command for several units; ``said`` are options and their values, empty where nothing was said.

    Examples
    --------
    >>> study_command("wages.dpsc.json", "towns.csv", {"unit": "town", "weight-column": ""})
    'dpsc estimate wages.dpsc.json towns.csv --unit town -o study.html'
    """
    options = [part for name, value in said.items() if value for part in (f"--{name}", value)]
    return shlex.join(["dpsc", "estimate", release, table, *options, "-o", STUDY])


def comparison_commands(releases: tuple[str, str], date: str, units: str) -> list[str]:
    """Return the commands that ask two releases the same, and compare the answers."""
    answers = ("first.json", "second.json")
    asked = [command(release, date, units, out) for release, out in zip(releases, answers, strict=True)]
    return [*asked, shlex.join(["dpsc", "compare", *answers, "-o", COMPARISON])]


def script(release: str, date: str, units: str, tried: Sequence[str]) -> str:
    """Return the script that gives the same answer."""
    others = [other for other in tried if other != date]
    said = [f"units={units!r}"] if units else []
    said += [f"dates_tried={others!r}"] if others else []
    return "\n".join([
        "import pandas as pd",
        "",
        "import dpsc",
        "",
        f"release = dpsc.Release.load({release!r})",
        f"target = pd.read_csv({TARGET!r}, dtype={{'period': str}})",
        f"result = release.estimate(target, treatment_time={date!r})",
        "print(result.summary())",
        f"dpsc.report({', '.join(['result', repr(REPORT), *said])})",
        "",
    ])  # fmt: skip
