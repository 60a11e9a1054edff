"""``dpsc fit``: from a panel to an answer in one step, by someone who holds the donors."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from dpsc.cli import common
from dpsc.cli.ledger import DatasetOption, LedgerOption, booking


def fit(
    panel: Annotated[Path | None, typer.Argument(help="The panel: CSV, TSV, Parquet or Feather, .gz allowed.")] = None,
    treated_unit: Annotated[str | None, typer.Option(help="The unit that was treated.")] = None,
    treatment_time: Annotated[str | None, typer.Option(help="The first treated period.")] = None,
    method: Annotated[str | None, typer.Option(help="gram (default), output, objective or nonprivate.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="The privacy budget; 1 is usual.")] = None,
    delta: Annotated[float | None, typer.Option(help="Well below one over the number of donors, e.g. 1e-6.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder for figures, tables and the report.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="The column that names the units.", rich_help_panel="Columns")
    ] = None,
    time: common.Time = None,
    outcome: common.Outcome = None,
    wide: common.Wide = False,
    time_format: common.TimeFormat = None,
    bounds: common.Bounds = None,
    missing: Annotated[
        str | None, typer.Option(help="Missing donor cells: error (default), interpolate or midpoint.")
    ] = None,
    smoothness: common.Smoothness = None,
    reference: common.Reference = None,
    split: Annotated[
        float | None, typer.Option(help="The share of the budget for the weights (output, objective).")
    ] = None,
    lambda_: Annotated[
        float | None, typer.Option("--lambda", help="The paper's ridge penalty, on data in [-1, 1].")
    ] = None,
    units: Annotated[str | None, typer.Option(help="The outcome's units, for the report.")] = None,
    level: Annotated[float | None, typer.Option(help="The level of the intervals; 0.95 by default.")] = None,
    spec: Annotated[Path | None, typer.Option(help="Read the analysis from a YAML or JSON file.")] = None,
    write_spec: Annotated[Path | None, typer.Option(help="Write the analysis to a YAML or JSON file and stop.")] = None,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    i_know: common.IKnow = False,
    force: common.Force = False,
    json: common.Json = False,
) -> None:
    """Fit and answer in one step, for whoever holds the donors and may see the answer."""
    with common.errors("fit"):
        from dpsc.cli import answers
        from dpsc.cli.analysis import require_reasonable

        given = {
            "data": panel, "treated_unit": treated_unit, "treatment_time": treatment_time, "method": method,
            "epsilon": epsilon, "delta": delta, "unit": unit, "time": time, "outcome": outcome, "wide": wide or None,
            "time_format": time_format, "bounds": bounds, "missing": missing, "smoothness": smoothness,
            "reference": reference, "split": split, "lambda_": lambda_, "units": units, "level": level,
        }  # fmt: skip
        analysis = _analysis({name: value for name, value in given.items() if value is not None}, spec)
        require_reasonable(analysis.epsilon, i_know)
        common.keep_apart(write_spec, Path(analysis.data), spec)
        if write_spec is not None:
            _write_spec(analysis, write_spec, force)
            return
        book = partial(booking, ledger, dataset, analysis.algorithm())
        if out is None:
            panel_ = _read(analysis, i_know)
            with book(output=None, description=_about(panel_)):
                result, _ = _run(analysis, panel_)
        else:
            with common.output_folder(out, force) as output:
                panel_ = _read(analysis, i_know)
                with book(output=out / "result.json", description=_about(panel_)):  # before noise is drawn
                    result, release = _run(analysis, panel_)
                    answers.write(result, output.place, units=analysis.units, release=release)
                    output.finish()
        answers.show(result, out, units=analysis.units, as_json=json)


def _analysis(given: dict[str, Any], spec: Path | None) -> Any:
    """Build the analysis from options, or from a spec with options put over it."""
    from dataclasses import replace

    from dpsc.cli import spec as spec_file
    from dpsc.cli.analysis import Analysis
    from dpsc.errors import ParameterError

    given |= {name: str(given[name]) for name in ("data", "reference") if name in given}
    if spec is not None:
        reviewed = spec_file.load(spec)
        changed = [name for name, value in given.items() if value != getattr(reviewed, name)]
        for name in changed:
            typer.echo(f"dpsc fit: --{name.rstrip('_').replace('_', '-')} overrides {spec}.", err=True)
        return replace(reviewed, **given)
    options = {
        "data": "PANEL, the table,",
        "unit": "--unit",
        "treated_unit": "--treated-unit",
        "treatment_time": "--treatment-time",
    }
    for name, option in options.items():
        if name not in given:
            raise ParameterError(f"{option} is needed (or a --spec file that says it).")
    return Analysis(**given)


def _read(analysis: Any, i_know: bool) -> Any:
    from dpsc.cli.analysis import require_small_delta

    with common.working(f"reading {analysis.data}"):
        panel = analysis.panel()
    require_small_delta(analysis.delta, panel.n, i_know)
    return panel


def _about(panel: Any) -> dict[str, Any]:
    """Say what is public about a panel; the number of donors depends on who is the target."""
    return {"outcome": panel.outcome, "periods": panel.T}


def _run(analysis: Any, panel: Any) -> Any:
    from dpsc.cli import screens

    if analysis.method in ("output", "objective"):
        draws = panel.n * (1 if analysis.method == "output" else 2)
        with screens.progress("drawing noise", draws) as advance:
            return analysis.run(panel, on_progress=advance)
    with common.working(f"fitting ({analysis.method})"):
        return analysis.run(panel)


def _write_spec(analysis: Any, path: Path, force: bool) -> None:
    from dpsc.cli import spec as spec_file
    from dpsc.errors import TableError

    if not Path(analysis.data).exists():
        raise TableError(f"there is no file {analysis.data}.")
    with common.output_file(path, force, "--write-spec") as output:
        spec_file.save(analysis, output.place, relative_to=path)
    typer.echo(f"Written to {path}; nothing was run. Review it, then: dpsc fit --spec {path} -o DIR")
