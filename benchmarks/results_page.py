"""One page of everything measured: benchmarks/RESULTS.md, with tables and figures, from the files in results/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import study
import validation_tables
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from dpsc.answers.figures.sheet import BLACK, BLUE, GREEN, GREY, GRID, ORANGE, PURPLE, VERMILION

HERE = Path(__file__).parent
OUT = HERE / "results"
COLOURS = (BLUE, GREEN, VERMILION, ORANGE, PURPLE, BLACK)
MARKERS = "osD^vP"


def scale() -> pd.DataFrame:
    """Return the measurements of cost, without those that failed."""
    return pd.read_csv(OUT / "scale.csv").dropna(subset="seconds")


def not_measured() -> str:
    """Say in words which measurements of cost failed."""
    rows = pd.read_csv(OUT / "scale.csv")
    failed = [f"{row['what']} (n = {row['n']:,})" for _, row in rows[rows["seconds"].isna()].iterrows()]
    return f"\n\n**Could not be measured**: {', '.join(failed)}." if failed else ""


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


COMPARED = {"wide Parquet": "pyarrow reading it", "wide CSV": "pyarrow reading it", "DuckDB": "DuckDB grouping it"}
COMPARED |= {"long Parquet": "DuckDB grouping it", "long CSV": "DuckDB grouping it"}


def tables_table() -> str:
    rows = scale().query("kind == 'tables'")
    lines = ["| table of 50 periods | donors | seconds | processor seconds | over | in time | in processor time | peak MB |",
             "|---" * 8 + "|"]  # fmt: skip
    for what, part in rows.groupby("what", sort=False):
        for _, row in part.sort_values("n").iterrows():
            cells = [what, f"{row['n']:,.0f}", _seconds(row["seconds"]), _seconds(row["processor"])]
            cells += [COMPARED.get(str(what).partition(",")[0], "its driver reading it")]
            cells += [_ratio(row["seconds"], row["base seconds"]), _processor_ratio(row), f"{row['peak MB']:,.0f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def wide_floor() -> str:
    """Say why a wide Parquet file takes longer than the goal, by what reading it and a bare product take."""
    rows = scale().query("kind == 'tables'").sort_values("n").groupby("what").last()
    whole, bare = (_processor_ratio(rows.loc[what]) for what in ("wide Parquet", "wide Parquet, read and bare X'X"))
    return (
        "**Wide Parquet misses its goal**, 1.5 times of reading it. In processor time, ten million donors take "
        f"{whole} times. Reading and one float64 product of the same numbers, without privacy, already take {bare} "
        "times. Profiled at a million donors, the time of a release is about a quarter reading, a quarter whitening, "
        "rounding and completion, an eighth each for the product and for moving columns into blocks, a tenth looking for "
        "donors with several rows, the rest counting donors for the scale and starting. Smaller blocks are slower."
    )


def _processor_ratio(row: pd.Series[Any]) -> str:
    """Return the ratio of two processor times, which are counted in hundredths of a second."""
    return _ratio(row["processor"], row["base processor"]) if row["base processor"] > 0.1 else "–"


def order_table() -> str:
    rows = scale().query("kind == 'order'").sort_values("n", ascending=False, kind="stable")
    lines = ["| rows of a long table | way | seconds | processor seconds | peak MB |", "|---" * 5 + "|"]
    for _, row in rows.iterrows():
        cells = [
            f"{row['n']:,}",
            row["what"],
            f"{row['seconds']:.0f}",
            f"{row['processor']:.0f}",
            f"{row['peak MB']:,.0f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def periods_table() -> str:
    rows = scale().query("kind == 'periods'")
    lines = ["| processor seconds, n = 20,000 | " + " | ".join(f"T = {T:,}" for T in sorted(rows["n"].unique()))
             + " | grows like (T ≥ 200) |", "|---" * (rows["n"].nunique() + 2) + "|"]  # fmt: skip
    seconds = rows.pivot(index="what", columns="n", values="processor")
    for what, part in rows.groupby("what", sort=False):
        cells = [f"{value:.2g}" for value in seconds.loc[what]]
        lines.append(f"| {what} | " + " | ".join(cells) + f" | T^{exponent(part, 'processor', 200):.2f} |")
    ratios = seconds.loc["exact Gram, 1 thread"] / seconds.loc["bare X'X"]
    return "\n".join([*lines, "| exact / bare | " + " | ".join(f"{value:.1f}" for value in ratios) + " | |"])


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


def smoothness_table() -> str:
    lines = ["| panel | high | mild | none |", "|---|---|---|---|"]
    for _, row in pd.read_csv(HERE / "results" / "smoothness.csv").iterrows():
        lines.append(f"| {row['panel']} | {row['high']:.2f} | {row['mild']:.2f} | {row['none']:.2f} |")
    return "\n".join(lines)


def growth_table() -> str:
    """Return measured exponents in n."""
    rows = scale()
    lines = ["| cost | grows like |", "|---|---|"]
    for what, part in rows[rows["kind"] == "tables"].groupby("what", sort=False):
        if len(part) > 1:
            time, memory = (exponent(part, column, 0) for column in ("processor", "peak MB"))
            lines.append(f"| {what} | time n^{time:.2f}, memory n^{memory:.2f} |")
    return "\n".join(lines)


def which_method() -> dict[str, str]:
    """Return the tables of the decision help, by the names of the functions that make them."""
    import which_method_tables as measured

    rows = measured.read("report")
    names = ("errors", "expected", "periods", "rivals")
    return {name: getattr(measured, name)(rows) for name in names} | {
        "agreement": measured.agreement(rows, measured.read("design"))
    }


def start_table() -> str:
    s = scale().query("kind == 'start'").set_index("what")["seconds"]
    base = s["python -c pass"]
    lines = ["| start | seconds | beyond a bare interpreter |", "|---|---|---|"]
    return "\n".join(lines + [f"| `{what}` | {seconds:.3f} | {seconds - base:.3f} |" for what, seconds in s.items()])


def _seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


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

    rows = scale().query("kind == 'tables'")
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    grown = [(what, part.sort_values("n")) for what, part in rows.groupby("what", sort=False) if len(part) > 1]
    for k, (what, part) in enumerate(grown):
        how = {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)], "ms": 5}
        how["ls"] = "-" if k < len(COLOURS) else "--"
        left.plot(part["n"], part["processor"], label=f"{what}: n^{exponent(part, 'processor', 0):.2f}", **how)
        right.plot(part["n"], part["peak MB"], **how)
    left.set(ylabel="processor seconds, all passes of a release")
    right.set(ylabel="peak memory of the process, MB")

    right.axhline(600, color=GREY, lw=1, ls="--")
    right.text(1.3e6, 625, "goal for 10⁷: 600 MB", fontsize=8, color=GREY)
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlabel="donors of 50 periods")
        axes.yaxis.set_major_formatter("{x:,g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(color=GRID, lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    right.set_yticks([250, 500, 1000, 2000])
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(OUT / "scale-tables.png", dpi=130)


def read(name: str) -> str:
    """Return a file of results, its headings below those of the page."""
    return re.sub("^#{2,3} ", "#### ", (OUT / name).read_text(encoding="utf-8").strip(), flags=re.MULTILINE)


def text() -> str:
    """Return the page, from the files in results/."""
    method = which_method()
    return f"""# What was measured

One command, `make bench`, one BLAS thread (`OPENBLAS_NUM_THREADS=1`), two cores. Ratios are of times taken in the same run; every row of "fit",
"tables", "rows in any order" and "two steps" is a process of its own, so that its memory is its own.

The machine had some other work at the same time: compare times only within a row, where both were taken in turn, and
processor times, which other work changes less.{not_measured()}

**Of which version.** All of 0.3.0. The panels kept apart were measured on 19 and 20 November 2026, and nothing was
changed after that.

## Fit: from arrays in memory to a counterfactual

T0 = 40, h = 10. The Gram row is release and estimate; from n = 10 to 10,000 its time is that of drawing 1,275 noisy
numbers exactly. The primal route is what other private implementations solve; at n = 100,000 its matrix would take 80 GB. pysyncon is left out at 100,000,
where preparing its data alone takes minutes.

{fit_table()}

![time and memory of a fit](results/scale-fit.png)

## Releases from tables

{tables_table()}

![time and memory of releases from tables](results/scale-tables.png)

{wide_floor()}

How cost grows with the number of donors n:

{growth_table()}

## Rows in any order

{order_table()}

## The exact integer Gram matrix, whitening included

{periods_table()}

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

13 panels that were kept apart, 30 runs a setting. The 24 panels had been split by a
coin before anything was measured on them; four of the 13 (wages and hours of men, wages in Spanish firms, cigarettes)
had been used in earlier work. The half kept apart was looked at four times for 0.2.0, on 16 November 2026. At 14:53 the
rows for all donors read 0.71 and 0.61, those for 100 donors 0.80 and 0.75, the worst panel 1.40. At 15:05 and 15:23 one
change of the estimator each was measured that had been found on the design half: a walk in the mean's prior, a more
robust scale. At 16:28 the intervals were new, because average effects had been covered 88 to 94% of the time in a shock;
their constants were chosen on the design half.

With 0.3.0 it was looked at twice, on 18 November 2026, 10 runs a setting. With variances times 1.4 and the noise counted
once, which had held on the design half, average effects were covered 0.956 (calm) and 0.922 (shock) of the time. With 1.3
and 1.5, between that and 0.2.0 and no worse on the design half, 0.964 and 0.940 (100 donors 0.974 and 0.937): these are
the constants in use. Errors were those of 0.2.0 within 2.5%, intervals 5% (100 donors: 12%) shorter. The tables
above are the third look, on 19 November, at the version that ships; nothing followed from it.

### What each part of the estimator does

Each part was taken away or changed, on the design half (`python benchmarks/ablation.py`); the change of the error:

{read("ablation.md")}

### Intervals

`python benchmarks/printed.py`: the panels kept apart, epsilon 1, all donors, nobody treated. Widths are in usual changes of
the target from one period to the next (per period, for totals).

{read("printed.md")}

### Several units together

`python benchmarks/study.py`: the panels kept apart, 20 runs for each, and 100 for each factor model; epsilon 1, units drawn at
random, nobody treated; the shock hits everybody after the first date.

{read("study.md")}

Before the treatment, in calm times: how often 95% intervals hold, and how often tests reject.

{study.before_table(pd.read_csv(OUT / "study-before-report.csv"))}

### Smaller measurements of intervals

- **Differences between periods** (738 targets of the panels kept apart, calm and shocked, epsilon 1, a "treatment" that ends
  half way and does nothing): 95% intervals hold 94.6% of the time for the average after it, 95.1% for the average during
  minus after, 95.9% and 95.5% for the second half minus the first (of half and of all periods). If errors that cancel
  were counted as usual, it would be 90 to 93%.
- **Few periods, heavy tails** (single units with 4 to 6 periods before, 15 targets in each of 8 draws, design half): crime
  in counties and wages of young men are covered 0.96 to 0.98 of the time, employment in British firms (138 firms, 4
  periods) 0.90 in calm times and 0.86 in a shock, research of firms (181; 4 and 6 periods) 0.91 to 0.93. One draw of 15
  firms may have 67% to 100%. What is missed is units that begin to move: 97% of targets are covered if they move at most
  three times as much after the intervention as before, and 77% of the others (15 to 20% of the targets).
- **Pooled effects of 30 units are covered too often** (seven design panels, 4 runs each, calm and in a shock: all intervals
  held). The average was typically half as far from zero as its interval suggests. Two thirds of its variance are what
  the 30 units have for themselves, less than 1% the error of the donors' mean (a third in panels of a hundred units), the
  rest what units may share beyond what the donors explain. Degrees of freedom by Welch and Satterthwaite's formula change
  widths by less than 1%: the tails are not the cause, the variances of single units are, whose intervals hold about right.
- **Ranges of `plan_panel`** (`groups.py --only ranges`) were chosen on the design half (1,100 targets, noise of 0, 1, 2 and 4
  changes), where they hold 83% of errors and 85% of smallest effects; of 1,160 targets kept apart 83% and 89%.
- **What the model of the donors misses** (factor models of 10,000 donors around a mean, in a shock, 30 runs of each of four
  kinds, other seeds than the table's): counting it covers average effects 0.95 instead of 0.84 of the time, single
  periods 0.96 instead of 0.85. The rule was chosen among thirteen on the first 8 runs of these models (nothing counted 0.78;
  1.5 standard deviations of the noise 0.91; two 0.88).
- **Averages of real units in 0.3.0** (design half, 8 runs of 11 panels): averages of 10 are covered 0.989 (calm) and 0.955
  (shock) of the time, with 100 donors 0.979 and 0.979; averages of 30 0.946 and 0.946, with 100 donors 0.958 and 0.979.

### The demo: planes, 200 groups of thirty

{read("demo.md")}

{read("demo_panel.md")}

![how many times closer](results/demo.png)

### People in groups

{read("groups.md")}

Measured with 4 runs a setting on 19 November, and with 20 at the version that ships on 20 November, the ninth look at
panels kept apart; nothing followed from it. With 4 runs, 8 units had errors of 1.23 and 1.17.

### What plans say, and what came

`python benchmarks/planning.py`: targets of 24 real panels and 8 factor models, planned for, released and estimated;
what came over what was likely by the plan, and how often it was in the planned range. The width of ranges, and how much
of a pilot is believed, were chosen after both halves had been seen. Ranges chosen on the design half to contain just 80%
there (0.43 to 2.6 for errors) contained 70% of errors and 75% of effects on the panels kept apart.

{read("planning.md")}

### Smoothness

`python benchmarks/smoothness.py`: error divided by that of non-private ridge, averages of ten units, ε = 1.

{smoothness_table()}

### Missing cells

{read("missing.md")}

### Two releases of the same donors over other periods

{read("rolling.md").removeprefix("# Two releases of the same donors").strip()}

### Targets that average many

`python benchmarks/averages.py`: made populations of sparse orders, visits and costs, very unequal, kept for the report; 20 to 24
a setting, 5 or 6 with 200,000 donors; epsilon 1, geometric means. The regression is on the raw donors' mean, which is not
private. "Asked" is how often the answer asks about units, also for the same targets a hundredth and a hundred times as
large. The floor is the width that is left if nothing is unknown but what chance decides: the noise of the mean as it is
released, which donors and which units of the target were drawn. "By hand" is a regression of the target on the mean in
the release.

{read("averages-report-high.md")}

### Which method

`python benchmarks/which_method.py`: error of a method over that of the best forecast without donors (last value, line or
mean, whichever turned out best for the panel), calm times / a shock of three usual changes that hits every unit;
geometric means over panels, delta 1e-6. Real panels: those with at least 330 units that were kept for reports (wages and
hours of men, wages of heads of households, wages in Spanish firms, sales of firms, mathematics in school districts,
delays of planes), 7 to 23 periods, 12 random targets for each cell and panel. Factor models: three factors, random walks
or autoregressive, 40 periods before and 10 after, 8 runs each. The two-step algorithms got bounds that fit the data
exactly, which no custodian could know, the better of delta 0 and 1e-6, and the floating-point noise of version 0.2; the
exact noise of today on the weights is up to 1.4 times larger.

**Bold**: closer than the forecast by at least 10%, both times together. *Slanted*: further off by at least 10%.

{method["errors"]}

{method["agreement"]}

Error at epsilon 1 over the target's usual change from one period to the next (the median before the intervention):

{method["expected"]}

By the number of periods, factor models with 1,000 donors at epsilon 1:

{method["periods"]}

All methods at epsilon 1:

{method["rivals"]}

### Segments

`python benchmarks/segments.py`: twelve panels with known labels, two of them made up, the target from one segment; 50
runs each. Error over that of an undivided release of the same donors at the same cost.

{read("segments.md")}

### The two-step algorithms

{read("two_step.md")}

### The paper's findings

`python benchmarks/claims.py`: each finding of the paper's experiments under three recipes for the noise (500 runs per point). The verdict and the numbers are of the first data set; the brackets say in how many of ten data sets a finding holds. [The paper](../docs/explanation/paper.md) explains the recipes.

{read("claims.md")}

### Other speeds

{read("speed.md")}

## Checked against others

`python benchmarks/validation.py`: each row is a test of `tests/test_validation.py`; [the page](../docs/reference/validation.md) explains them.

{validation_tables.table()}
"""


def main() -> None:
    figures()
    (HERE / "RESULTS.md").write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
