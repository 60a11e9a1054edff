"""Write the measured numbers into README and docs, so that no number there is typed by hand.

    python benchmarks/quote.py

Text between ``<!-- quote NAME -->`` and ``<!-- end quote -->`` is replaced.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from dpsc import datasets

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"


def gram_part(table: str) -> str:
    """Return a table of the Gram release's benchmark, on the panels kept for the report."""
    import gram_tables

    return "\n".join(getattr(gram_tables, table)(pd.read_csv(RESULTS / "gram-report.csv")))


def answers() -> str:
    """Return errors over the best donor-free forecast, and how often intervals of average effects hold, by kind of target."""
    import groups as measured
    from gram_tables import over_free

    real = pd.read_csv(RESULTS / "gram-report.csv").query("epsilon == 1")
    kinds: list[tuple[str, int, list[str], str]] = [
        ("dpsc", 0, [], "**dpsc**, all donors"),
        ("dpsc", 100, [], "**dpsc**, 100 donors"),
        ("dpsc", 0, ["single"], "single units, all donors"),
        ("dpsc", 100, ["single"], "single units, 100 donors"),
        ("dpsc", 0, ["average of 30"], "averages of 30, all donors"),
        ("difference in differences", 0, [], "difference in differences, all donors, not private"),
        ("ridge", 0, [], "ridge, all donors, not private"),
    ]
    lines = ["| | error: calm | shock | 95% interval holds: calm | shock |", "|---" * 5 + "|"]
    for name, n, targets, label in kinds:
        rows = real[(real["n"] == n) & (real["target"].isin(targets) | (not targets))]
        parts = [rows[rows["shock"] == shock] for shock in (0.0, 3.0)]
        held = [f"{part['average covered'].mean():.3f}" if name == "dpsc" else "–" for part in parts]
        lines.append("| " + " | ".join([label, *(f"{over_free(part, name):.2f}" for part in parts), *held]) + " |")
    small = pd.read_csv(RESULTS / "groups-report.csv").query("noise <= 1")
    small = small[~small["panel"].isin(list(measured.SEASONS))]
    for few, label in ((True, "8 units"), (False, "12 to 100 units")):
        found = (
            measured.geometric(small[(small["units"] == 8) == few], ["times"]).set_index("times").loc[["calm", "shock"]]
        )
        cells = [*(f"{error:.2f}" for error in found["dpsc"]), *(f"{held:.3f}" for held in found["average"])]
        lines.append(f"| **private panel**, {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def panels_covered() -> str:
    """Return how often intervals of answers from private panels hold, by setting and by panel."""
    import groups as measured

    real = pd.read_csv(RESULTS / "groups-report.csv")
    real = real[~real["panel"].isin(list(measured.SEASONS))]
    settings = measured.geometric(real, ["noise", "sizes", "times"])
    single = measured.geometric(real[real["noise"] <= 1], ["panel", "times"])
    said = []
    for column, what in (("points", "single periods"), ("average", "average effects")):
        found, inside = settings[column], settings[column].between(0.93, 0.97).sum()
        said.append(
            f"{found.min():.3f} to {found.max():.3f} of the time for {what} ({inside} of {len(found)} settings inside; single "
            f"panels {single[column].min():.2f} to {single[column].max():.2f})"
        )
    return f"**Private panels**: 95% intervals were to hold 0.93 to 0.97 of the time. They hold {said[0]}, {said[1]}."


def panel_short() -> str:
    """Return the errors of answers from private panels, and of others that read the same table, by budget."""
    return (RESULTS / "groups.md").read_text(encoding="utf-8").split("## Flights by destination")[1].split("\n\n")[1]


def study_short() -> str:
    """Return the coverage of pooled average effects on real panels, beside that of intervals of independent units."""
    import study as measured

    found = pd.read_csv(RESULTS / "study-report.csv")
    means = (
        found[~found["panel"].isin(list(measured.MADE))]
        .groupby(["units", "staggered", "shock"])
        .mean(numeric_only=True)
    )
    lines = ["| units | dates | pooled: calm | shock | as if independent: calm | shock |", "|---" * 6 + "|"]
    for (units, staggered), rows in means.groupby(level=[0, 1]):
        cells = [f"{held:.3f}" for column in ("average", "average as if independent") for held in rows[column]]
        lines.append(f"| {units} | {'staggered' if staggered else 'at once'} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def claims() -> str:
    """Return how many of the paper's findings hold under each recipe."""
    last = (RESULTS / "claims.md").read_text(encoding="utf-8").splitlines()[-1]
    found = [cell.strip() for cell in last.split("|")[2:-1]]
    return (
        "; ".join(f"`{recipe}`: {cell}" for recipe, cell in zip(("published", "printed", "ours"), found, strict=True))
        + "."
    )


def reproduction() -> str:
    """Return the errors at a total epsilon of 2 on the paper's data, for its four sizes."""
    rows = pd.read_csv(RESULTS / "reproduction.csv")
    rows = rows[rows["epsilon1"].isna() | (rows["epsilon1"] == 1)]
    sizes = [(10, 10), (10, 100), (100, 10), (100, 100)]
    lines = ["| RMSE | " + " | ".join(f"n = {n}, T0 = {T0}" for n, T0 in sizes) + " |", "|---" * 5 + "|"]
    for recipe, series, name in (
        ("printed", "out", "DPSC_out as printed"),
        ("printed", "obj", "DPSC_obj as printed (unproven)"),
        ("ours", "out", "our `OutputPerturbation`"),
        ("ours", "obj", "our `ObjectivePerturbation`"),
        ("ours", "gram", "**Gram release**"),
        ("ours", "ridge", "ridge at λ = T0, not private"),
        ("ours", "last value", "last value, without donors"),
        ("ours", "straight line", "straight line, without donors"),
    ):
        part = rows[(rows["recipe"] == recipe) & (rows["series"] == series)].set_index(["n", "T0"])["rmse"]
        lines.append(f"| {name} | " + " | ".join(_three_digits(part[size]) for size in sizes) + " |")
    return "\n".join(lines)


def _three_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def missing_short() -> str:
    """Return what missing cells do to the error, under both rules, in a sentence."""
    whole, part = missing("All donors"), "calm times: {}; with 30% of cells missing at random {} ({}); {}"
    rows = {row.split(" | ")[0].strip("| "): row.strip("| ").split(" | ") for row in whole.splitlines()}
    random, late = rows["30%, random cells"], rows["60%, late joining"]
    late_words = f"60%, because donors join late, {late[2]} ({late[4]})"
    return f"Error over the best forecast without donors, in {part.format(rows['nothing'][2], random[2], random[4], late_words)}."


def missing(heading: str) -> str:
    """Return the table of missing cells under a heading that starts so."""
    return (RESULTS / "missing.md").read_text(encoding="utf-8").split(f"## {heading}")[1].split("\n\n")[1]


def planning() -> str:
    """Return how often plans were right on the panels kept apart, and with a pilot."""
    import planning as measured

    rows = pd.read_csv(RESULTS / "planning.csv").query("half == 'report'")
    seen = rows["effect"] / rows["planned effect"]
    errors, effects = measured.within(rows["realised"] / rows["planned"], "error"), measured.within(seen, "detectable")
    few = sum(
        part.between(*measured.WITHIN["detectable"]).mean() < 0.7
        for _, part in seen[rows["epsilon"] == 1].groupby(rows["panel"])
    )
    left = seen * (rows["pilot"] / rows["planned for pilot"]) ** -measured.BELIEVED
    return (
        f"On {rows['panel'].nunique()} real panels that were kept apart from the design, {errors} of errors and {effects} "
        f"of smallest effects were in their range; after a pilot, {left.between(*measured.AFTER_PILOT).mean():.0%} of "
        f"smallest effects were in the narrower one. On {few} of the panels, fewer than 70% of smallest effects were in their range at ε = 1."
    )


def plans_for_averages() -> str:
    """Return how often smallest effects were in the range of plans for targets that average many."""
    from dpsc.analyst import plan

    rows = pd.read_csv(RESULTS / "averages-report-high.csv")
    inside = (rows["detectable"] / (rows["planned"] * plan._SAID)).between(*plan.WITHIN["detectable"])
    shares = inside.groupby(rows["m"]).mean()
    return (
        f"On made-up orders, visits and costs, {shares[1]:.0%} of smallest effects were in their range for single people, "
        f"{shares[30]:.0%} for averages of 30 and {shares[5000]:.0%} for averages of 5,000."
    )


def segments() -> str:
    """Return a short table of segments: small ones, and ones that are large enough."""
    import segments as measured

    rows = pd.read_csv(RESULTS / "segments.csv")
    small = measured.SIZES[:2]
    told = rows.assign(size=["below 2" if size in small else "2 and more" for size in rows["size"]])
    told = told.sort_values(["size", "target"], ascending=False, kind="stable")
    return measured.table(told, ["size", "target"], ["donors of the segment over its noise", "target"])


def smoothness() -> str:
    """Return the three kinds of smoothness, on all panels together."""
    *panels, (_, mean) = pd.read_csv(RESULTS / "smoothness.csv").iterrows()
    kinds = ", ".join(f"{mean[kind]:.2f} with `{kind}`" for kind in ("high", "mild", "none"))
    return f"Error over that of non-private ridge, geometric mean of {len(panels)} panels at ε = 1: {kinds}."


def scale() -> str:
    """Return what releases from large tables took."""
    import results_page

    rows = results_page.scale()
    lines = ["| release from | processor seconds | peak MB |", "|---|---|---|"]
    for kind, what, told in (
        ("tables", "wide Parquet", "{:,.0f} million donors of 50 periods, Parquet"),
        ("order", "a file for each month", "{:,.0f} million rows, a file for each month"),
    ):
        row = rows[(rows["kind"] == kind) & (rows["what"] == what)].sort_values("n").iloc[-1]
        lines.append(f"| {told.format(row['n'] / 1e6)} | {row['processor']:.0f} | {row['peak MB']:,.0f} |")
    return "\n".join(lines)


def on_paper() -> str:
    """Return the time for a billion donors at the measured rates."""
    import results_page

    rows = results_page.scale()
    dask = rows[rows["what"] == "wide Parquet, Dask on 2 workers"].sort_values("n").iloc[-1]
    rate = dask["n"] / dask["processor"]
    return (
        f"A core here reads and adds up {rate / 1e6:.2f} million donors per second of its own time, all passes and Dask's "
        f"own work included, a hundred of them {rate / 1e4:.0f} million: {1e9 / rate / 100:.0f} seconds, if the storage "
        f"delivers {400 / (1e9 / rate / 100):.0f} GB per second."
    )


def demo_line() -> str:
    """Return how far answers like the demo's, and others', are from the truth."""
    import demo

    found = pd.read_csv(RESULTS / "demo.csv")
    found = found[found["draw"] == 0]
    planes, groups = datasets.flights().donors["plane"].nunique(), found["group"].nunique()
    said = []
    for _, rows in found.groupby("time"):  # calm, shock
        said += [f"{rows[name].median():.1f}" for name in ("dpsc", demo.best_free(rows), "difference in differences")]
    return (
        "**How good.** With delays of {} planes as donors and ε = 1, the answer for {} others misses the true path by {} minutes, "
        "the best forecast without donors by {}, difference in differences without privacy by {}; when something new "
        "delays all planes, by {}, {} and {} (medians over {} random groups)."
    ).format(f"{planes:,}", datasets.CHANGED, *said, groups)


def demo_errors() -> str:
    """Return the errors on the groups of planes, and how sure the answer for the one that is shown is."""
    errors, _, shown = (RESULTS / "demo.md").read_text(encoding="utf-8").strip().split("\n\n")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in errors.splitlines()[2:]]
    names = {"**dpsc**, ε = 1": "dpsc", "last value, without donors": "last value", "line, without donors": "line"}
    names["difference in differences, not private"] = "difference in differences (not private)"
    said = [f"{names[name]} {calm} and {shock}" for name, calm, shock in rows if name in names]
    return f"Median errors in minutes, calm and in a shock: {'; '.join(said)}. {shown.split(' closer. ')[1]}"


def main_table() -> str:
    """Return how good dpsc is beside methods that are not private; without its own first version."""
    return "\n".join(line for line in gram_part("main_table").splitlines() if not line.startswith("| version"))


def validation(table: str) -> str:
    """Return a part of the comparison with others."""
    import validation_tables

    return str(getattr(validation_tables, table)())


def which_method(table: str) -> str:
    """Return a table of the decision help."""
    import which_method_tables

    return str(getattr(which_method_tables, table)(which_method_tables.read("report")))


QUOTES = {
    "how good short": main_table,
    "verdicts": lambda: gram_part("verdicts"),
    "answers": answers,
    "panels covered": panels_covered,
    "panel short": panel_short,
    "study short": study_short,
    "planning": planning,
    "plans for averages": plans_for_averages,
    "smoothness": smoothness,
    "segments": segments,
    "missing": missing_short,
    "demo line": demo_line,
    "demo": demo_errors,
    "demo panel": lambda: (RESULTS / "demo_panel.md").read_text(encoding="utf-8").strip().split("\n\n")[-1],
    "claims": claims,
    "reproduction": reproduction,
    "scale": scale,
    "scale paper": lambda: on_paper(),
    "validation": lambda: validation("groups"),
    "validation findings": lambda: validation("findings"),
    "which method never best": lambda: which_method("never_best"),
    "which method spread": lambda: which_method("spread"),
}


def filled(text: str) -> str:
    """Return a page with the measured numbers in it."""

    def fill(match: re.Match[str]) -> str:
        return f"<!-- quote {match[1]} -->\n{QUOTES[match[1]]()}\n<!-- end quote -->"

    return re.sub(r"<!-- quote ([\w ]+) -->.*?<!-- end quote -->", fill, text, flags=re.DOTALL)


def main() -> None:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
