"""Answers and releases on the terminal, as JSON, and as what the ending of -o says."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from dpsc import files
from dpsc.analyst.private_panel import PrivatePanel
from dpsc.analyst.release import Release
from dpsc.analyst.releases import Releases
from dpsc.answers import document, excel, tables
from dpsc.answers.base import Verdict
from dpsc.answers.compare import Comparison
from dpsc.answers.document import guarantee_json
from dpsc.answers.outcomes import PAGE as SIDE_BY_SIDE
from dpsc.answers.outcomes import Outcomes
from dpsc.answers.report import PAGE, ReportFiles
from dpsc.answers.result import Result
from dpsc.answers.study import Study
from dpsc.answers.tables import TextTable
from dpsc.answers.words import (
    answer,
    column,
    developed,
    donors_help,
    no_effect_chance,
    number,
    p_is,
    p_text,
    percent,
    sentence,
    signed,
    study_answer,
    study_verdict,
    worth,
)
from dpsc.cli import terminal
from dpsc.cli.options import AnswerOptions
from dpsc.errors import ParameterError
from dpsc.periods.calendar import holes
from dpsc.periods.dates import period_name
from dpsc.release import describe as release_words
from dpsc.release import describe_panel as panel_words
from dpsc.release.matrix import ReleasedMatrix
from dpsc.types import JsonObject

Found = Result | Study | Outcomes

_ENDINGS = (".html", ".htm", ".xlsx", ".json", ".csv", ".png", ".svg", ".md", ".tex")
_NOT_WRITTEN = ["pdf", "xls", "ods", "doc", "docx", "txt", "tsv", "parquet", "feather", "jpg", "jpeg", "zip"]


def show_result(result: Result, units: str | None = None) -> None:
    """Print the effect of each period with its interval, effects as people state them, and the answer in words."""
    frame = result.to_frame().drop(columns=result.baselines.columns)
    paths = [*frame["observed"], *frame["counterfactual"]]
    columns = {
        str(result.target.index.name or "time"): [period_name(time) for time in frame.index],
        "observed": column(frame["observed"], like=paths),
        "counterfactual": column(frame["counterfactual"], like=paths),
        "gap": column(frame["gap"], sign=True),
    }
    for name, end in (("from", "gap_lower"), ("to", "gap_upper")):
        if end in frame:
            columns[name] = column(frame[end], sign=True, like=list(frame["gap"]))
    if result.phases:
        columns["treatment"] = list(result.phases)
    facts = {"average effect": _with_interval(result)} if math.isfinite(result.att) else {}
    if result.interval_kind == "effect":
        facts |= _effects(result)
    table = _table(tables.table(columns), title=result.headline)
    sentences = [*answer(result, units), *developed(result, units), *worth(result, units)]
    said = _answer(sentences, result.verdict)
    terminal.blocks(terminal.console(), table, _question(result), _facts(result, facts), *said)


def show_study(study: Study, units: str | None = None) -> None:
    """Print the effect on each unit, by time since the intervention, pooled, and the answer in words."""
    tests = study.trials(placebos=False)
    made, facts = tables.of(document.of_study(study, tests, units)), {}
    for name, row in study.effects().iloc[:2].iterrows():
        effect, low, high = column([row["effect"], row["lower"], row["upper"]], sign=True)
        facts[str(name)] = f"{effect}   {percent(study.level)} interval {low} to {high}   {p_is(row['p_value'])}"
    if study.never_treated:
        names = ", ".join(map(str, study.never_treated))
        facts["never treated"] = f"{names}: shown for comparison only, in no number"
    if tests.pre_trend is not None:
        test = tests.pre_trend
        facts["pre-trend test"] = f"{p_is(test.p_value)}   that all differences before the treatment are zero"
        facts["equivalence test"] = (
            f"{p_is(test.equivalence_p)}   that they are within {number(test.bound)}; within "
            f"{number(test.smallest_bound)} is shown at 5%"
        )
    if tests.groups is not None:
        facts["groups"] = f"{p_is(tests.groups.p_value)}   that all have the same effect"
    terminal.blocks(
        terminal.console(),
        _table(made["units"], title=f"{len(study.results)} treated units"),
        _table(made["groups"], title="by group") if "groups" in made else None,
        _table(made["event time"], title="by time since the treatment, 0 is the first"),
        _question(study),
        _facts(study, facts),
        *_answer([*study_answer(study, units), *developed(study, units), *worth(study, units)], study_verdict(study)),
    )


def show_comparison(compared: Comparison) -> None:
    """Print answers side by side, and what differs between them."""
    differing = compared.differing()
    differ = _table(differing) if differing.rows else None
    terminal.blocks(terminal.console(), _table(compared.table()), Text(compared.sentence()), differ)


def _table(content: TextTable, title: str | None = None) -> Table:
    """Return a table for the terminal; where it is too wide, headers and texts are broken, and no number."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)
    cells = [[row[k] for row in content.rows] for k in range(len(content.header))]
    widths = [max(map(len, [name, *of])) for name, of in zip(content.header, cells, strict=True)]
    if sum(widths) + len(widths) > terminal.console().width:
        widths = content.least_widths
    for k, name in enumerate(content.header):
        side: Literal["left", "right"] = "left" if k < content.labels else "right"
        table.add_column(Text(name), justify=side, width=widths[k], overflow="fold")
    for row in content.rows:
        table.add_row(*map(Text, row))
    return table


def _question(found: Result | Study) -> Text | None:
    return Text(found.title, "bold") if found.title else None


def _facts(found: Result | Study, known: Mapping[str, str]) -> Table:
    """Return what is known, the guarantee, and notes."""
    facts = Table.grid(padding=(0, 2))
    for name, value in known.items():
        facts.add_row(name, Text(value))
    if found.guarantee:
        facts.add_row("guarantee", Text(found.guarantee.brief))
    else:
        facts.add_row("guarantee", Text(f"none, {found.mark}: {found.reason}"), style="bold red")
    for note in found.notes:
        facts.add_row("note", Text(note), style="yellow")
    return facts


def _effects(result: Result) -> dict[str, str]:
    """Return the total, the percentage or why there is none, and the p-value, where they are known."""
    average, total, level, facts = result.average, result.total, percent(result.level), {}
    if math.isfinite(total.effect):
        effect, low, high = column([total.effect, total.lower, total.upper], sign=True)
        facts["total effect"] = f"{effect}   {level} interval {low} to {high}"
    if math.isfinite(average.percent):
        part, low, high = column([average.percent, average.percent_lower, average.percent_upper], sign=True, decimals=1)
        facts["in percent"] = f"{part}%   {level} interval {low}% to {high}%"
    elif result.no_percent:
        facts["in percent"] = result.no_percent
    if math.isfinite(average.p_value):
        facts["p-value"] = f"{p_text(average.p_value)}   {no_effect_chance(average)}"
    return facts | {"seen 4 times in 5": f"an average effect of {number(result.detectable())} or more, up or down"}


_LIGHTS = {"yes": ("●", "bold green"), "unclear": ("◐", "bold yellow"), "no": ("○", "bold red")}


def _answer(sentences: list[str], verdict: Verdict | None) -> list[Text | Table]:
    """Return the answer and whether the donors help; what the reader must know first comes first."""
    said: list[Text | Table] = [Text(" ".join(sentences))]
    if verdict is not None:
        said.insert(0 if verdict.comes_first else 1, _light(verdict))
    return said


def _light(verdict: Verdict) -> Table:
    """Return whether the donors help: a light whose form says as much as its colour, and the words beside it."""
    light = Table.grid(padding=(0, 1))
    light.add_row(Text(*_LIGHTS[verdict.grade]), Text(donors_help(verdict), "bold"))
    light.add_row("", Text(sentence(verdict.reason)))
    return light


def _with_interval(result: Result) -> str:
    if result.interval_kind == "none":
        return signed(result.att)
    of_what = " of projection noise only" if result.interval_kind == "projection noise" else ""
    effect, low, high = column([result.att, *result.att_interval()], sign=True)
    return f"{effect}   {percent(result.level)} interval{of_what} {low} to {high}"


def show_release(
    release: Release | Releases | PrivatePanel,
    path: Path,
    digest: str,
    as_json: bool = False,
    then: str = "",
    **more: str | None,
) -> None:
    """Print what is in the release in a file, what it guarantees, how noisy it is, and the file's hash."""
    if as_json:
        terminal.print_json(release_json(release, path, digest) | more)
        return
    for title, told in _panel(release, path) if isinstance(release, PrivatePanel) else _parts(release, path):
        table = Table(title=title, title_justify="left", show_header=False, show_edge=False)
        for name, value in told.items():
            table.add_row(Text(name, "dim"), Text(value))
        terminal.console().print(table)
    terminal.console().print(f" SHA-256: {digest}", soft_wrap=True)
    if then:
        terminal.console().print(f"\n{then}", soft_wrap=True)


def _panel(panel: PrivatePanel, path: Path) -> list[tuple[str, dict[str, str]]]:
    told = {
        "outcome": panel.outcome,
        "value": panel_words.statistic(panel),
        "units": panel_words.units(panel),
        "periods": panel_words.periods(panel),
        "guarantee": panel_words.promise(panel),
        "noise": panel_words.noise(panel),
        "missing": panel_words.too_few(panel),
        "bounding": panel_words.bounding(panel),
        "provenance": "; ".join(dict.fromkeys(b.provenance for b in panel.blocks if b.provenance)) or "–",
        "made": f"by {panel_words.made(panel)}",
        "identity": ", ".join(panel.identities) or "–",
    }
    return [(str(path), told)]


def _parts(release: Release | Releases, path: Path) -> list[tuple[str, dict[str, str]]]:
    """Return what is said of a release; of several outcomes, first of all and then of each."""
    parts = release_words.parts_of(release)
    first = parts[0]
    promise = f"none: {first.no_guarantee}" if release.guarantee is None else str(release.guarantee)
    about = {"donors": release_words.donors(first), "periods": release_words.periods(first), "guarantee": promise}
    made = {
        "provenance": first.provenance or "–",
        "made": f"by {first.made_by}" + (f" on {first.made_on}" if first.made_on else ""),
        "identity": ", ".join(first.identities),
    }
    if len(parts) == 1:
        return [(str(path), {"outcome": first.outcome} | about | _own(first) | made)]
    shown = [(str(path), {"outcomes": release_words.outcomes(release)} | about | made)]
    return shown + [(part.outcome, _alone(part) | _own(part)) for part in parts]


def _own(release: ReleasedMatrix) -> dict[str, str]:
    """Return what is said of one outcome."""
    divided = release.segments is not None
    return {
        "noise": release_words.noise(release),
        **({"segments": release_words.segments(release)} if divided else {}),
        **({"may be asked": release_words.readable(release)} if divided else {}),
        "to be seen": release_words.seen(release),
        "directions": release_words.directions(release),
        "scale": release_words.scale(release),
        "smoothness": release_words.kernel(release),
        "reference path": release_words.reference(release),
    }


def _alone(release: ReleasedMatrix) -> dict[str, str]:
    promise = release.guarantee
    return {} if promise is None else {"alone": f"epsilon {promise.epsilon:.3g}, delta {promise.delta:g}"}


def release_json(release: Release | Releases | PrivatePanel, path: Path, digest: str) -> JsonObject:
    """Return what is public about the release in a file, for programs."""
    file = {"file": str(path), "sha256": digest}
    if isinstance(release, PrivatePanel):
        return file | panel_words.to_json(release)
    if isinstance(release, Releases):
        together = {"guarantee": guarantee_json(release.guarantee), "donors": release.parts[0].n}
        return file | together | {"outcomes": [_outcome_json(part) for part in release.parts]}
    return file | _outcome_json(release)


def _outcome_json(release: ReleasedMatrix) -> JsonObject:
    return {
        "outcome": release.outcome,
        "donors": release.n,
        "sites": release.sites,
        "periods": [period_name(time) for time in release.times],
        "guarantee": guarantee_json(release.guarantee),
        "no_guarantee": release.no_guarantee or None,
        "noise_scale": release.noise_scale,
        "noise_in_donors": release.noise_in_donors,
        "by": None if release.segments is None else release.segments.by,
        "segments": release_words.segment_rows(release),
        "stand_out": release.population.directions,
        "directions": release.row_map.directions,
        "scale": {
            "deviation": release_words.deviation(release),
            "source": release.scale.source,
            "share": release.scale.share,
        },
        "kernel": asdict(release.kernel),
        "reference": None if release.reference is None else [float(v) for v in release.reference],
        "provenance": release.provenance,
        "periods_from": release.periods_from or None,
        "holes": holes(release.times),
        "made_by": release.made_by,
        "made_on": release.made_on or None,
        "identities": list(release.identities),
        "datasets": list(release.datasets),
    }


def is_file(out: Path) -> bool:
    """Tell whether -o names a file, by its ending, or a folder; refuse a kind of file that is not written."""
    ending = out.suffix.lower()
    if ending.removeprefix(".") in _NOT_WRITTEN and not out.is_dir():
        more = " An .html page prints to PDF from any browser." if ending == ".pdf" else ""
        raise ParameterError(
            f"-o {out}: a {ending} file is not written. Name a file that ends in {', '.join(_ENDINGS)}, or a folder."
            + more
        )
    if ending == ".xlsx":
        excel.require_writer()
    return ending in _ENDINGS


def place(out: Path, force: bool) -> AbstractContextManager[terminal.Output]:
    """Give the temporary place of a file or a folder; whether it can be written is checked first."""
    return terminal.output_file(out, force) if is_file(out) else terminal.output_folder(out, force)


def as_file(made: ReportFiles | Comparison, ending: str, command: str, brief: bool = False) -> bytes:
    """Return an answer, or answers side by side, as a file with that ending."""
    if brief and isinstance(made, ReportFiles):
        return made.html(brief=True)
    if ending in (".png", ".svg"):
        return made.picture("png" if ending == ".png" else "svg")
    if ending in (".html", ".htm"):
        return made.html(command)
    plain = {".xlsx": made.xlsx, ".json": made.json, ".csv": made.csv, ".md": made.markdown, ".tex": made.latex}
    return plain[ending]()


def _told(found: Found, said: AnswerOptions) -> ReportFiles | Comparison:
    """Return an answer with its units, ready to be written; of several outcomes all side by side."""
    return found.side_by_side(said.units_of(found)) if isinstance(found, Outcomes) else found.files(said.units)


def write(found: Found, where: Path, *, command: str, said: AnswerOptions, release: Release | None = None) -> None:
    """Write an answer to a file or into a folder; a release answers further questions for free."""
    if is_file(where):
        with terminal.working("drawing"):
            files.write(where, as_file(_told(found, said), where.suffix.lower(), command, said.brief))
        return
    if release is not None:
        release.save(where / "release.dpsc.json")
    with terminal.working("drawing"):
        if isinstance(found, Outcomes):
            made = found.folder(said.units_of(found), command)
        else:
            made = found.files(said.units).folder(command)
        for name, content in made:
            (where / name).parent.mkdir(exist_ok=True)
            files.write(where / name, content)


def show(found: Found, answer: AnswerOptions) -> None:
    """Print the answer, as a table or as JSON, and say where the files are."""
    if answer.json:
        typer.echo(json.dumps(_told(found, answer).content(), ensure_ascii=False, allow_nan=False))
        return
    if isinstance(found, Outcomes):
        show_comparison(found.side_by_side(answer.units_of(found)))
    elif isinstance(found, Study):
        show_study(found, answer.units)
    else:
        show_result(found, answer.units)
    if answer.out is not None:
        page = SIDE_BY_SIDE if isinstance(found, Outcomes) else PAGE
        opened = answer.out if is_file(answer.out) else answer.out / page
        terminal.console().print(f"\nOpen {opened}", soft_wrap=True)
