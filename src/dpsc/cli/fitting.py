"""What ``dpsc fit`` does: one analysis, one algorithm; its guarantee is booked, then the same object runs."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import typer

from dpsc import files
from dpsc.analyst.release import Release
from dpsc.answers.result import Result
from dpsc.cli import render, terminal
from dpsc.cli.analysis import Algorithm, Analysis
from dpsc.cli.options import Answer
from dpsc.cli.payer import Account
from dpsc.custodian.custody.options import require_small_delta
from dpsc.custodian.donors.panel import Panel
from dpsc.custodian.gram.algorithm import CustodianSum, GramRelease
from dpsc.custodian.weights.classic import SyntheticControl
from dpsc.custodian.weights.output import OutputPerturbation
from dpsc.release.matrix import require_public_labels
from dpsc.tables.formats import in_file


def run(
    analysis: Analysis,
    account: Account,
    out: Path | None,
    kept: Path | None,
    *,
    command: str,
    i_know: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Read the panel, book the guarantee, fit, write, and only then show: the noise is paid for if a screen fails."""
    algorithm, units = analysis.algorithm(), analysis.measured_in
    private = not isinstance(algorithm, SyntheticControl)
    with ExitStack() as places:
        beside = None if kept is None else places.enter_context(terminal.output_file(kept, force and out is not None))
        output = None if out is None else places.enter_context(render.place(out, force))
        panel = _read(analysis, algorithm, i_know)
        summed = algorithm.custodian_sum(panel) if isinstance(algorithm, GramRelease) else None  # private, still
        about = {"outcome": panel.outcome, "periods": panel.T}  # the number of donors depends on who is the target
        place = kept if kept is not None else out if out is None or render.is_file(out) else out / "result.json"
        with account.booking(algorithm, output=place, description=about):  # before there is an answer
            result, release = _fit(algorithm, panel, summed, analysis, account.payer)
            if kept is not None and beside is not None:  # what is paid for comes first
                if release is None:
                    files.write(beside.place, result.files(units).json())
                else:
                    release.save(beside.place)
                beside.finish()
                typer.echo(
                    f"dpsc fit: saved to {kept}" + ("; -o DIR makes a report." if out is None else "."), err=True
                )
            if out is not None and output is not None:
                _write(result, release, output, out, kept, command=command, units=units)
    render.show(result, Answer(out=out, units=units, json=as_json))
    if private:
        account.tell()


def kept_beside(analysis: Analysis, out: Path | None) -> Path | None:
    """Return where to save what is paid for: the release, or else the numbers; None if they are in the output anyway.

    A folder has both. A page, a table or a picture has neither, so that a file with them is written beside it.
    """
    gram = analysis.method == "gram"
    if analysis.method == "nonprivate":
        return None
    if out is None:
        return Path(f"dpsc-fit-{secrets.token_hex(4)}.{'dpsc.json' if gram else 'json'}")
    if not render.is_file(out) or (out.suffix.lower() == ".json" and not gram):
        return None
    return out.with_suffix(".dpsc.json" if gram else ".json")


def _write(
    result: Result,
    release: Release | None,
    output: terminal.Output,
    out: Path,
    kept: Path | None,
    *,
    command: str,
    units: str | None,
) -> None:
    """Write the files of an answer; if the figures cannot be made, keep the numbers, which may be paid for."""
    try:
        render.write(result, output.place, command=command, units=units, release=release)
    except Exception:
        if kept is None:
            output.finish()
        typer.echo(f"dpsc fit: the figures could not be made; what was computed is in {kept or out}.", err=True)
        raise
    output.finish()


def _read(analysis: Analysis, algorithm: Algorithm, i_know: bool) -> Panel:
    with terminal.working(f"reading {analysis.data}"):
        panel = analysis.panel()
    if isinstance(algorithm, GramRelease):  # checked here, before anything is booked
        with in_file(analysis.reference or analysis.data):
            algorithm.reference_for(panel.times)
            require_public_labels(panel.outcome, panel.times)
    require_small_delta(analysis.delta, panel.n, i_know)
    return panel


def _fit(
    algorithm: Algorithm, panel: Panel, summed: CustodianSum | None, analysis: Analysis, payer: str | None
) -> tuple[Result, Release | None]:
    """Return the answer and, from a Gram release, the release, which answers further questions at no cost."""
    level, title = analysis.level, analysis.title or ""
    if isinstance(algorithm, SyntheticControl):
        with terminal.working("fitting"):
            return replace(algorithm.fit(panel), title=title), None
    if isinstance(algorithm, GramRelease):
        with terminal.working("releasing"):
            release = algorithm.release(summed, dataset=payer)
            return release.estimate(panel.target, panel.treatment_time, level=level, title=title), release
    draws = panel.n * (1 if isinstance(algorithm, OutputPerturbation) else 2)
    with terminal.progress("drawing noise", draws) as advance:
        return replace(algorithm.fit(panel, on_progress=advance), level=level, title=title), None
