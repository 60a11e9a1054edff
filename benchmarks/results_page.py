"""One page of everything measured: benchmarks/RESULTS.md, with tables and figures, from the files in results/."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from dpsc.answers.figures.sheet import BLACK, BLUE, GREEN, GREY, GRID, ORANGE, PURPLE, VERMILION

HERE = Path(__file__).parent
OUT = HERE / "results"
COLOURS = (BLUE, GREEN, VERMILION, ORANGE, PURPLE, BLACK)
MARKERS = "osD^vP"


def scale() -> pd.DataFrame:
    return pd.read_csv(OUT / "scale.csv")


def exponent(rows: pd.DataFrame, column: str, smallest: int) -> float:
    """Return the slope of log cost over log n, from ``smallest`` on."""
    rows = rows[(rows["n"] >= smallest) & rows[column].notna()]
    if len(rows) < 2:
        return float("nan")
    return float(np.polyfit(np.log(rows["n"]), np.log(rows[column]), 1)[0])


def fit_table() -> str:
    rows = scale().query("kind == 'fit'")
    sizes = sorted(rows["n"].unique())
    lines = [
        "| seconds (peak MB) | " + " | ".join(f"n = {n:,}" for n in sizes) + " | grows like (n ≥ 1,000) |",
        "|---" * (len(sizes) + 2) + "|",
    ]
    for what, part in rows.groupby("what", sort=False):
        part = part.set_index("n")
        cells = [
            f"{part.loc[n, 'seconds']:.3g} ({part.loc[n, 'peak MB']:,.0f})" if n in part.index else "–" for n in sizes
        ]
        power = exponent(part.reset_index(), "seconds", 1000)
        lines.append(f"| {what} | " + " | ".join(cells) + f" | n^{power:.2f} |")
    return "\n".join(lines)


def gram_table() -> str:
    rows = scale().query("kind == 'gram'")
    lines = ["| n × 50 | bare `X.T @ X` | exact, 1 thread | exact, 2 threads | Parquet read alone | stream engine | exact 1 thread / bare | exact 2 threads / bare | stream / reading | the same, file not cached | peak MB, stream |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for n, part in rows.groupby("n"):
        s = part.set_index("what")["seconds"]
        get = s.to_dict().get
        bare, single, double = get("bare X'X"), get("exact Gram, 1 thread"), get("exact Gram, 2 threads")
        read, stream = get("reading with pyarrow alone"), get("stream engine")
        peak = part.set_index("what").loc["stream engine", "peak MB"]
        cells = [_seconds(v) for v in (bare, single, double, read, stream)]
        cells += [_ratio(single, bare), _ratio(double, bare), _ratio(stream, read)]
        cells += [_ratio(get("stream engine, from disk"), get("reading with pyarrow alone, from disk")), f"{peak:,.0f}"]
        lines.append(f"| {n:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def periods_table() -> str:
    rows = scale().query("kind == 'periods'")
    lines = ["| n = 200,000 | " + " | ".join(f"T = {T}" for T in sorted(rows["n"].unique())) + " | grows like (T ≥ 50) |",
             "|---" * (rows["n"].nunique() + 2) + "|"]  # fmt: skip
    seconds = rows.pivot(index="what", columns="n", values="seconds")
    for what, part in rows.groupby("what", sort=False):
        cells = [f"{value:.3g}" for value in seconds.loc[what]]
        lines.append(f"| {what} | " + " | ".join(cells) + f" | T^{exponent(part, 'seconds', 50):.2f} |")
    for what in ("exact Gram, 1 thread", "exact Gram, 2 threads"):
        cells = [f"{value:.2f}" for value in seconds.loc[what] / seconds.loc["bare X'X"]]
        lines.append(f"| {what} / bare | " + " | ".join(cells) + " | |")
    return "\n".join(lines)


def dask_table() -> str:
    rows = scale().query("kind == 'dask'").set_index("what")
    n, s = int(rows["n"].iloc[0]), rows["seconds"]
    return "\n".join([
        f"| {n:,} × 50 | seconds | ratio |", "|---|---|---|",
        f"| stream engine, 1 thread (but reading on both cores) | {s['stream, 1 thread']:.2f} | – |",
        f"| Dask, 1 worker | {s['dask 1 worker']:.2f} | {s['dask 1 worker'] / s['stream, 1 thread']:.2f} × stream |",
        f"| Dask, 2 workers | {s['dask 2 workers']:.2f} | {s['dask 1 worker'] / s['dask 2 workers']:.2f} times faster than 1 worker |",
        f"| the same pieces in 1 process, without Dask | {s['1 without Dask']:.2f} | – |",
        f"| in 2 processes | {s['2 without Dask']:.2f} | {s['1 without Dask'] / s['2 without Dask']:.2f} times faster than 1: what this machine can do |",
    ])  # fmt: skip


def two_step_table() -> str:
    rows = scale().query("kind == 'two-step'")
    lines = ["| n = 1,000,000, T0 = 100 | seconds | peak MB | peak / input (786 MB) |", "|---|---|---|---|"]
    for _, row in rows.iterrows():
        lines.append(f"| {row['what']} | {row['seconds']:.0f} | {row['peak MB']:,.0f} | {row['peak MB'] / 785.8:.2f} |")
    return "\n".join(lines)


def people_table() -> str:
    rows = scale().query("kind == 'people'").set_index("what")
    base, n = rows["seconds"].iloc[-1], rows["n"].iloc[0]
    title = f"{n / 1e6:.0f} million records of {n / 25e6:.0f} million people, 36 months × 60 units, Parquet"
    lines = [f"| {title} | seconds | over DuckDB's | peak MB |", "|---|---|---|---|"]
    for what, row in rows.iterrows():
        lines.append(f"| {what} | {row['seconds']:.0f} | {row['seconds'] / base:.2f} | {row['peak MB']:,.0f} |")
    return "\n".join(lines)


def start_table() -> str:
    s = scale().query("kind == 'start'").set_index("what")["seconds"]
    base = s["python -c pass"]
    lines = ["| start | seconds | beyond a bare interpreter |", "|---|---|---|"]
    return "\n".join(lines + [f"| `{what}` | {seconds:.3f} | {seconds - base:.3f} |" for what, seconds in s.items()])


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _ratio(a: float | None, b: float | None) -> str:
    return "–" if a is None or b is None else f"{a / b:.2f}"


def figures() -> None:
    rows = scale().query("kind == 'fit'")
    figure = Figure(figsize=(9, 4), layout="constrained")
    for axes, column, label in zip(
        figure.subplots(1, 2),
        ("seconds", "peak MB"),
        ("seconds per fit", "peak memory of the process, MB"),
        strict=True,
    ):
        for (what, part), colour, marker in zip(rows.groupby("what", sort=False), COLOURS, MARKERS, strict=True):
            axes.plot(part["n"], part[column], color=colour, marker=marker, ms=5, label=what)
        axes.set(xscale="log", yscale="log", xlabel="donors", ylabel=label)
        axes.grid(color=GRID, lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(OUT / "scale-fit.png", dpi=130)

    rows = scale().query("kind == 'gram'")
    figure = Figure(figsize=(9, 4), layout="constrained")
    for axes, column, label in zip(
        figure.subplots(1, 2), ("seconds", "peak MB"), ("seconds", "peak memory of the process, MB"), strict=True
    ):
        warm = rows[~rows["what"].str.endswith("from disk")]
        for (what, part), colour, marker in zip(warm.groupby("what", sort=False), COLOURS, MARKERS, strict=False):
            if column == "peak MB" and what not in ("stream engine", "reading with pyarrow alone"):
                continue
            axes.plot(part["n"], part[column], color=colour, marker=marker, ms=5, label=what)
        axes.set(
            xscale="log", yscale="log" if column == "seconds" else "linear", xlabel="donors × 50 periods", ylabel=label
        )
        axes.grid(color=GRID, lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        if column == "seconds":
            handles = axes.get_legend_handles_labels()
        else:
            axes.set_ylim(0, 600)
            axes.axhline(500, color=GREY, lw=1, ls="--")
            axes.text(1.1e4, 510, "goal: 500 MB", fontsize=8, color=GREY)
    figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(OUT / "scale-gram.png", dpi=130)


def text() -> str:
    """Return the page, from the files in results/."""
    read = lambda name: (OUT / name).read_text(encoding="utf-8").strip()  # noqa: E731
    return f"""# What was measured

One command, `make bench`, one BLAS thread (`OPENBLAS_NUM_THREADS=1`), two cores. Ratios are of times taken in the same run; every row of "fit",
"Gram", "Dask" and "two steps" is a process of its own, so that its memory is its own.

The tables from here to "Two steps with a million donors", and "Start-up", were measured with version 0.1.0; [scaling](../docs/scaling.md)
says what to expect of this version.

## Fit: from arrays in memory to a counterfactual

T0 = 40, h = 10. The Gram row is release and estimate; from n = 10 to 10,000 its time is that of drawing 1,275 noisy
numbers exactly. The primal route is what other private implementations solve; at n = 100,000 its matrix would take 80 GB. pysyncon is left out at 100,000,
where preparing its data alone takes minutes.

{fit_table()}

![time and memory of a fit](results/scale-fit.png)

## The exact integer Gram matrix, whitening included

{gram_table()}

![time and memory of the Gram matrix](results/scale-gram.png)

The same in the number of periods:

{periods_table()}

## Dask

{dask_table()}

## People in groups

{people_table()}

## Two steps with a million donors

{two_step_table()}

## Sweep: the paper's λ figure

{read("sweep.md")}

## Start-up

{start_table()}

## Accuracy

### The Gram release

{read("gram.md")}

![error over epsilon](results/gram.png)

### The demo: planes, 200 groups of thirty

{read("demo.md")}

{read("demo_panel.md")}

![how many times closer](results/demo.png)

### People in groups

{read("groups.md")}

### The two-step algorithms

{read("two_step.md")}

### Other speeds

{read("speed.md")}
"""


def main() -> None:
    figures()
    (HERE / "RESULTS.md").write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
