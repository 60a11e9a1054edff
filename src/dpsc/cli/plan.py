"""``dpsc plan``: the error to expect, before any budget is spent and without touching a donor."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from dpsc.cli import terminal


def plan(
    n: Annotated[list[int], typer.Option("--n", help="How many donors, at all sites together; may be repeated.")],
    before: Annotated[int, typer.Option(help="Periods before the intervention (T0).")],
    after: Annotated[int, typer.Option(help="Periods from the intervention on (h).")],
    epsilon: Annotated[
        list[float] | None, typer.Option(help="A budget; may be repeated. 0.5, 1, 2, 4 by default.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Well below one over the number of donors.")] = 1e-6,
    target: Annotated[
        Path | None,
        typer.Option("--target", "--like", help="The target before the intervention; errors are then in its units."),
    ] = None,
    averages: Annotated[int, typer.Option(min=1, help="How many units the target is the average of.")] = 1,
    time: terminal.Time = None,
    outcome: terminal.Outcome = None,
    time_format: terminal.TimeFormat = None,
    sep: terminal.Sep = None,
    decimal: terminal.Decimal = None,
    thousands: terminal.Thousands = None,
    encoding: terminal.Encoding = None,
    sheet: terminal.Sheet = None,
    error: Annotated[float | None, typer.Option(help="The error that may be made: say what it takes.")] = None,
    detect: Annotated[
        str | None,
        typer.Option(
            help="The average effect that must be seen, as a number or, like 5%, as a share of the target's "
            "mean before the intervention: what it takes."
        ),
    ] = None,
    releases: Annotated[
        int | None,
        typer.Option(min=2, max=1000, help="How many releases share each budget, for example one a quarter."),
    ] = None,
    smoothness: terminal.Smoothness = None,
    rank: Annotated[int, typer.Option(help="Assumed: how many factors the donors share.")] = 3,
    signal_to_noise: Annotated[
        float | None,
        typer.Option(
            help="Assumed: size of what donors share over size of what is each one's own; by default what the "
            "target's history makes likely."
        ),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, help="How many panels to simulate; by default as many as take some seconds.")
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option(help="Also write the public choices that sites must share: a file for dpsc release --settings."),
    ] = None,
    sites: Annotated[int, typer.Option(min=1, help="How many sites the donors are at; releases are merged.")] = 1,
    scale: Annotated[
        float | None,
        typer.Option(
            help="For --settings: how much a donor's series moves, as a standard deviation; or give --target."
        ),
    ] = None,
    periods: terminal.Periods = None,
    reference: terminal.Reference = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The folder for the curves and the table.")] = None,
    force: terminal.Force = False,
    json: terminal.Json = False,
) -> None:
    """Say what a release would show, from public numbers alone: the effect, the error, and what it takes."""
    with terminal.errors("plan"):
        from dpsc import files
        from dpsc.analyst.plan import default_runs, what_it_takes
        from dpsc.analyst.plan import plan as expected
        from dpsc.answers import plot, words
        from dpsc.cli import planning
        from dpsc.tables import reader
        from dpsc.tables.dialect import Dialect
        from dpsc.tables.spec import TableSpec

        for path in (out, settings):
            terminal.keep_apart(path, target, reference)
        dialect = Dialect(sep, decimal, thousands, encoding, sheet)
        said = TableSpec(time=time, outcome=outcome, time_format=time_format, dialect=dialect)
        series = None if target is None else reader.series(target, said)
        history = None if series is None else series.iloc[:before]
        budgets, kind = epsilon or [0.5, 1.0, 2.0, 4.0], smoothness or "high"
        wished = None
        if detect is not None:
            wished = planning.share_of(detect, None if history is None else float(history.mean()))
        planning.require_one_question(error, detect, releases, n, epsilon)
        options: dict[str, Any] = {
            "averages": averages, "sites": sites, "smoothness": kind, "rank": rank, "signal_to_noise": signal_to_noise,
            "target": history, "runs": runs,
        }  # fmt: skip
        writing = nullcontext() if settings is None else terminal.output_file(settings, force, "--settings")
        each = runs or default_runs(before + after)
        with writing as file, terminal.progress("simulating panels", each) as advance:
            if file is not None:
                planning.settings_of(
                    n, before + after, epsilon or [], delta, sites=sites, scale=scale, like=history, smoothness=kind,  # type: ignore[arg-type]
                    periods=periods, reference=reference, outcome=outcome, time_format=time_format,
                    dialect=dialect,
                ).save(file.place)  # fmt: skip
            taking = rows = None
            if error is not None or wished is not None:
                taking = what_it_takes(
                    n[0], before, after, error=error, detect=wished, delta=delta, on_progress=advance, **options
                )
                result = taking.expected
            elif releases is not None:
                result, rows = planning.shared(
                    releases,
                    budgets[0],
                    delta,
                    lambda e: expected(n, before, after, e, delta, on_progress=advance, **options),
                )
            else:
                result = expected(n, before, after, budgets, delta, on_progress=advance, **options)
        unit = "share of the target's deviation from its mean before" if series is None else str(series.name)
        if out is not None:
            with terminal.output_folder(out, force) as output, terminal.working("drawing"):
                figure = plot.plan_curves(result.table, unit)
                table = files.csv_text(result.table.columns, result.table.itertuples(index=False, name=None))
                files.write(output.place / "plan.csv", table)
                files.write(output.place / "plan.png", plot.as_bytes(figure, "png"))
                files.write(output.place / "plan.svg", plot.as_bytes(figure, "svg"))
        if json:
            more: dict[str, Any] = {} if taking is None else {"ways": [asdict(way) for way in taking.ways]}
            more |= {} if rows is None else {"releases": rows}
            more |= {} if settings is None else {"settings": str(settings)}
            typer.echo(planning.as_json(result.table, unit, more))
            return
        if taking is not None:
            what = f"An error of {words.number(error)}" if error is not None else planning.wish(detect, wished)
            planning.show_ways(taking, what)
            terminal.console().print()
        if rows is None:
            planning.show(result.table, unit)
        else:
            planning.show_releases(rows, (budgets[0], delta), unit)
        if settings is not None:
            terminal.console().print(f"\nSettings for all sites are in {settings}", soft_wrap=True)
        if out is not None:
            terminal.console().print(f"\nOpen {out / 'plan.png'}", soft_wrap=True)
