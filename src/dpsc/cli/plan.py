"""``dpsc plan``: the error to expect, before any budget is spent and without touching a donor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import common


def plan(
    n: Annotated[list[int], typer.Option("--n", help="How many donors; may be repeated.")],
    before: Annotated[int, typer.Option(help="Periods before the intervention (T0).")],
    after: Annotated[int, typer.Option(help="Periods from the intervention on (h).")],
    epsilon: Annotated[
        list[float] | None, typer.Option(help="A budget; may be repeated. 0.5, 1, 2, 4 by default.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Well below one over the number of donors.")] = 1e-6,
    target: Annotated[
        Path | None, typer.Option(help="The target before the intervention; errors are then in its units.")
    ] = None,
    time: common.Time = None,
    outcome: common.Outcome = None,
    time_format: common.TimeFormat = None,
    error: Annotated[float | None, typer.Option(help="Also say which epsilon brings the error down to this.")] = None,
    smoothness: common.Smoothness = None,
    rank: Annotated[int, typer.Option(help="Assumed: how many factors the donors share.")] = 3,
    signal_to_noise: Annotated[
        float, typer.Option(help="Assumed: size of what donors share over size of what is each one's own.")
    ] = 5.0,
    runs: Annotated[int, typer.Option(min=1, help="How many panels to simulate.")] = 100,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The folder for the curves and the table.")] = None,
    force: common.Force = False,
    json: common.Json = False,
) -> None:
    """Say what error to expect from a release, from public numbers alone."""
    with common.errors("plan"):
        from dpsc import files
        from dpsc.answers import plot
        from dpsc.cli import screens
        from dpsc.data import tables
        from dpsc.gram.planning import plan as expected

        common.keep_apart(out, target)
        series = None if target is None else tables.series(target, time, outcome, time_format)
        history = None if series is None else series.iloc[:before]
        with screens.progress("simulating panels", total=len(n) * runs) as advance:
            result = expected(
                n, before, after, epsilon or (0.5, 1.0, 2.0, 4.0), delta, smoothness=smoothness or "high",  # type: ignore[arg-type]
                rank=rank, signal_to_noise=signal_to_noise, target=history, runs=runs, on_progress=advance,
            )  # fmt: skip
        needed = {} if error is None else {size: result.epsilon_for(error, size) for size in n}
        unit = "share of the target's size" if series is None else str(series.name)
        if out is not None:
            with common.output_folder(out, force) as output, common.working("drawing"):
                figure = plot.plan_curves(result.table, unit)
                files.write(output.place / "plan.csv", result.table.to_csv(index=False))
                files.write(output.place / "plan.png", plot.as_bytes(figure, "png"))
                files.write(output.place / "plan.svg", plot.as_bytes(figure, "svg"))
        if json:
            typer.echo(screens.plan_json(result.table, unit, needed))
            return
        screens.show_plan(result.table, unit, needed, error)
        if out is not None:
            common.console().print(f"\nOpen {out / 'plan.png'}", soft_wrap=True)
