"""``dpsc demo``: panel -> non-private -> DPSC_out as printed -> figures and a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from dpsc import OutputPerturbation, Panel, SyntheticControl
from dpsc.result import NonPrivateResult, PrivateResult, UnprovenResult

EPSILONS = (1.0, 100.0)
BOUNDS = (-1.0, 1.0)


def run(out: Path) -> None:
    """Tell the story and leave a table and the figures in ``out``."""
    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    panel = generated_panel()
    console.print(f"[bold]1. A panel.[/] {panel} (generated; donors move with three common factors)")
    console.print(f"   The bounds {BOUNDS} are public. The true effect is +0.2 in every period after treatment.")

    results: list[NonPrivateResult | PrivateResult | UnprovenResult] = [SyntheticControl(lambda_=1.0).fit(panel)]
    console.print("[bold]2. Without privacy[/]: ridge, Algorithm 1 of the paper.")
    for epsilon in EPSILONS:
        algorithm = OutputPerturbation.as_printed(epsilon1=epsilon / 2, epsilon2=epsilon / 2, lambda_=float(panel.T0))
        results.append(algorithm.fit(panel))
    console.print("[bold]3. DPSC_out as printed[/], Algorithm 2, with the noise its proof needs.\n")

    console.print(_table(results))
    console.print(
        "\nAs printed, the noise drowns the answer, at epsilon 100 too: the guarantee is real, the estimate useless.\n"
    )
    _save(results, out, console)


def generated_panel(n: int = 200, T0: int = 30, h: int = 10, effect: float = 0.2) -> Panel:
    """Return donors and a target that follow three random-walk factors; the target is treated in the last h periods."""
    rng = np.random.default_rng(20)
    factors = np.cumsum(rng.normal(size=(3, T0 + h)), axis=1)
    loadings = rng.uniform(-1, 1, size=(n + 1, 3))
    paths = loadings @ factors + 0.1 * rng.normal(size=(n + 1, T0 + h))
    paths *= 0.7 / np.abs(paths).max()
    target = paths[0]
    target[T0:] += effect
    times = pd.period_range("2015Q1", periods=T0 + h, freq="Q")
    return Panel.from_arrays(
        paths[1:], target, treatment_time=times[T0], times=list(times), bounds=BOUNDS, outcome="index"
    )


def _table(results: list[NonPrivateResult | PrivateResult | UnprovenResult]) -> Table:
    table = Table(title="Average effect after treatment (truth: +0.2)")
    for column in ("method", "epsilon", "average effect", "guarantee"):
        table.add_column(column, justify="right" if column in ("epsilon", "average effect") else "left")
    for result in results:
        guarantee = getattr(result, "guarantee", None)
        table.add_row(
            result._headline(),
            f"{guarantee.epsilon:g}" if guarantee else "-",
            f"{result.att:+,.3g}" if abs(result.att) < 100 else f"{result.att:+,.0f}",
            f"({guarantee.epsilon:g}, {guarantee.delta:g}), {guarantee.arithmetic}" if guarantee else "none",
        )
    return table


def _save(results: list[NonPrivateResult | PrivateResult | UnprovenResult], out: Path, console: Console) -> None:
    names = ["non-private", *(f"dpsc-out-epsilon-{epsilon:g}" for epsilon in EPSILONS)]
    frames = {}
    console.print("Open:")
    for name, result in zip(names, results, strict=True):
        result.plot().savefig(out / f"{name}.png", dpi=120)
        frames[name] = result.to_frame()
        console.print(f"  {out / name}.png", highlight=False)
    pd.concat(frames, names=["method"]).to_csv(out / "counterfactuals.csv")
    console.print(f"  {out / 'counterfactuals.csv'}", highlight=False)
