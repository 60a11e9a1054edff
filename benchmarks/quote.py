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


def groups(table: str, results: str) -> str:
    """Return a table of people in groups."""
    import groups as measured

    return str(getattr(measured, table)(pd.read_csv(RESULTS / results)))


def factors() -> str:
    """Return the factor models."""
    import gram_tables

    return "\n".join(gram_tables.factors(pd.read_csv(RESULTS / "gram-factors.csv")))


def two_step_short() -> str:
    """Return the two-step algorithms on the factor model with 1,000 donors."""
    results = pd.read_csv(RESULTS / "two_step.csv")
    part = results[(results["panel"] == "factor model") & (results["n"] == 1000)]
    lines = ["| method | ε = 1 | ε = 10 | ε = 100 |", "|---|---|---|---|"]
    for method in (
        "printed out",
        "printed obj (unproven)",
        "our out, pure",
        "our out, delta",
        "our obj, pure",
        "our obj, delta",
    ):
        values = part[part["method"] == method].set_index("epsilon")["0.5"]
        lines.append(f"| {method} | " + " | ".join(f"{values[e]:,.3g}" for e in (1.0, 10.0, 100.0)) + " |")
    free = part[part["epsilon"].isna()].set_index("method")["0.5"]
    for method in ("non-private ridge (best lambda)", "last value", "line", "donors' mean"):
        lines.append(f"| {method} | {free[method]:.3g} | {free[method]:.3g} | {free[method]:.3g} |")
    return "\n".join(lines)


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


def missing(heading: str) -> str:
    """Return the table of missing cells under a heading that starts so."""
    return (RESULTS / "missing.md").read_text(encoding="utf-8").split(f"## {heading}")[1].split("\n\n")[1]


def study() -> str:
    """Return the coverage of pooled intervals."""
    return (RESULTS / "study.md").read_text(encoding="utf-8").split("\n\n")[1]


def study_before() -> str:
    """Return how often intervals before the treatment hold, and tests reject."""
    import study as measured

    return str(measured.before_table(pd.read_csv(RESULTS / "study-before-report.csv")))


def printed() -> str:
    """Return how often every interval that is printed holds."""
    return (RESULTS / "printed.md").read_text(encoding="utf-8").split("\n\n")[1].strip()


def planning(part: int) -> str:
    """Return a table on plans: how right they are, or what a pilot does."""
    return (RESULTS / "planning.md").read_text(encoding="utf-8").split("\n\n")[2 * part + 1].strip()


def averages(part: int) -> str:
    """Return a table on targets that average many: what answers are like, the floor, or plans."""
    return (RESULTS / "averages-report-high.md").read_text(encoding="utf-8").split("\n\n")[2 * part + 1].strip()


def segments(part: int) -> str:
    """Return a table of segments: by their size, or by panel."""
    return (RESULTS / "segments.md").read_text(encoding="utf-8").split("\n\n")[2 * part + 1].strip()


def rolling() -> str:
    """Return what two releases of the same donors would bring together."""
    return (RESULTS / "rolling.md").read_text(encoding="utf-8").split("\n\n", 1)[1].strip()


def smoothness() -> str:
    """Return the three kinds of smoothness."""
    lines = ["| panel | high | mild | none |", "|---|---|---|---|"]
    for _, row in pd.read_csv(RESULTS / "smoothness.csv").iterrows():
        lines.append(f"| {row['panel']} | {row['high']:.2f} | {row['mild']:.2f} | {row['none']:.2f} |")
    return "\n".join(lines)


def page(table: str) -> str:
    """Return a table of the results page."""
    import results_page

    return str(getattr(results_page, table)())


def growth() -> str:
    """Return measured exponents in n."""
    import results_page

    rows = results_page.scale()
    lines = ["| cost | grows like |", "|---|---|"]
    for what, part in rows[rows["kind"] == "tables"].groupby("what", sort=False):
        if len(part) > 1:
            time, memory = (results_page.exponent(part, column, 0) for column in ("processor", "peak MB"))
            lines.append(f"| {what} | time n^{time:.2f}, memory n^{memory:.2f} |")
    for what in ("dpsc ridge", "dpsc robust", "scikit-learn Ridge", "primal n × n ridge"):
        part = rows[(rows["kind"] == "fit") & (rows["what"] == what)]
        lines.append(f"| {what} | time n^{results_page.exponent(part, 'seconds', 1000):.2f} |")
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


def main_table() -> str:
    """Return how good dpsc is beside methods that are not private; without its own first version."""
    return "\n".join(line for line in gram_part("main_table").splitlines() if not line.startswith("| version"))


def validation(part: str) -> str:
    """Return a part of the comparison with others."""
    import validation_tables

    return validation_tables.findings() if part == "findings" else validation_tables.table(part)


def which_method(table: str) -> str:
    """Return a table of the decision help."""
    import which_method_tables

    return str(getattr(which_method_tables, table)(which_method_tables.read("report")))


def which_method_agreement() -> str:
    """Return how alike the map is on the other half of the panels."""
    import which_method_tables

    return which_method_tables.agreement(which_method_tables.read("report"), which_method_tables.read("design"))


QUOTES = {
    "how good": lambda: gram_part("main_table"),
    "how good short": main_table,
    "verdicts": lambda: gram_part("verdicts"),
    "intervals": lambda: gram_part("intervals"),
    "misses": lambda: gram_part("misses"),
    "by panel": lambda: gram_part("by_panel"),
    "by epsilon": lambda: gram_part("by_epsilon"),
    "goals": lambda: gram_part("goals"),
    "factors": factors,
    "ablation": lambda: (RESULTS / "ablation.md").read_text(encoding="utf-8").strip(),
    "two step short": two_step_short,
    "study": study,
    "study before": study_before,
    "printed": printed,
    "planning": lambda: planning(0),
    "planning pilot": lambda: planning(3),
    "averages": lambda: averages(0),
    "averages floor": lambda: averages(1),
    "averages plans": lambda: averages(2),
    "smoothness": smoothness,
    "rolling": rolling,
    "segments by size": lambda: segments(0),
    "segments by panel": lambda: segments(1),
    "missing": lambda: missing("All donors"),
    "missing common": lambda: missing("What is left"),
    "demo line": demo_line,
    "demo": lambda: (RESULTS / "demo.md").read_text(encoding="utf-8").strip(),
    "demo panel": lambda: (RESULTS / "demo_panel.md").read_text(encoding="utf-8").strip(),
    "claims": lambda: (RESULTS / "claims.md").read_text(encoding="utf-8").strip(),
    "reproduction": reproduction,
    "sweep": lambda: (RESULTS / "sweep.md").read_text(encoding="utf-8").strip(),
    "scale tables": lambda: page("tables_table"),
    "scale order": lambda: page("order_table"),
    "scale periods": lambda: page("periods_table"),
    "scale people": lambda: page("people_table"),
    "scale two step": lambda: page("two_step_table"),
    "scale growth": lambda: growth(),
    "scale paper": lambda: on_paper(),
    "validation studies": lambda: validation("studies"),
    "validation fit": lambda: validation("fit"),
    "validation published": lambda: validation("published"),
    "validation differs": lambda: validation("differs"),
    "validation noise": lambda: validation("noise"),
    "validation opendp": lambda: validation("opendp"),
    "validation together": lambda: validation("together"),
    "validation paper": lambda: validation("paper"),
    "validation findings": lambda: validation("findings"),
    "which method": lambda: which_method("errors"),
    "which method expected": lambda: which_method("expected"),
    "which method never best": lambda: which_method("never_best"),
    "which method spread": lambda: which_method("spread"),
    "which method agreement": which_method_agreement,
    "which method rivals": lambda: which_method("rivals"),
    "which method periods": lambda: which_method("periods"),
    "groups no effect": lambda: groups("no_effect_rows", "groups-no-effect.csv"),
    "groups spending": lambda: groups("by_bound", "groups-spending.csv"),
    "groups flights": lambda: groups("by_epsilon", "groups-flights.csv"),
    "groups noise": lambda: groups("by_noise", "groups-report.csv"),
    "gram": lambda: (RESULTS / "gram.md").read_text(encoding="utf-8").strip(),
    "speed": lambda: (RESULTS / "speed.md").read_text(encoding="utf-8").strip(),
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
