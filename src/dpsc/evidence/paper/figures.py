"""The seven figures of the experiment section: the points each needs, its tidy table, and its drawing in one style."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from dpsc.answers.figures.sheet import BLACK, BLUE, GREEN, GREY, GRID, ORANGE, PURPLE, VERMILION
from dpsc.custodian.weights.classic import ridge_weights
from dpsc.evidence.paper import points as yardsticks
from dpsc.evidence.paper import theory
from dpsc.evidence.paper.points import (
    DATA,
    DELTA,
    EPSILONS,
    LAMBDAS,
    METHODS,
    RECIPES,
    SIZES,
    TITLE,
    AlgorithmName,
    Dataset,
    H,
    Outcome,
    Point,
    Recipe,
    dataset,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Name = Literal["data", "lambda", "theory", "epsilon", "delta", "lambda-sizes", "epsilon-sizes"]
SMALL = (10, 10)
EACH = 50.0  # epsilon1 = epsilon2 where lambda varies
COLUMNS = ["recipe", "protection", "series", "n", "T0", "h", "lambda", "epsilon1", "epsilon2", "delta"]
COLUMNS += ["rmse", "lower", "upper", "median", "runs", "seed"]
Size = tuple[int, int]


@dataclass(frozen=True)
class Spec:
    """One figure of the paper."""

    label: str  # the paper's label
    caption: str
    curves: Callable[[Recipe, Sequence[Size]], list[Point]]
    sizes: Sequence[Size] = (SMALL,)

    def points(self, recipe: Recipe) -> list[Point]:
        """Return the points that it shows of a recipe."""
        return self.curves(recipe, self.sizes)


def over_lambda(recipe: Recipe, sizes: Sequence[Size]) -> list[Point]:
    """Both algorithms over lambda; the Gram release has no lambda to choose and is one point."""
    points = [Point(recipe, m, n, T0, lambda_, EACH, EACH) for m in METHODS for n, T0 in sizes for lambda_ in LAMBDAS]
    return points + [_gram(recipe, n, T0, 2 * EACH) for n, T0 in sizes if recipe == "ours"]


def over_epsilon(recipe: Recipe, sizes: Sequence[Size]) -> list[Point]:
    """Every algorithm over the total epsilon, at lambda = T0."""
    points = [_at(recipe, m, n, T0, epsilon, 0.0) for m in METHODS for n, T0 in sizes for epsilon in EPSILONS]
    return points + [_gram(recipe, n, T0, epsilon) for n, T0 in sizes for epsilon in EPSILONS if recipe == "ours"]


def both_noises(recipe: Recipe, sizes: Sequence[Size]) -> list[Point]:
    """Objective perturbation with Laplace and with Gaussian noise."""
    return [_at(recipe, "obj", n, T0, epsilon, d) for d in (0.0, DELTA) for n, T0 in sizes for epsilon in EPSILONS]


def _at(recipe: Recipe, method: AlgorithmName, n: int, T0: int, epsilon: float, delta: float) -> Point:
    return Point(recipe, method, n, T0, float(T0), epsilon / 2, epsilon / 2, delta)


def _gram(recipe: Recipe, n: int, T0: int, epsilon: float) -> Point:
    return Point(recipe, "gram", n, T0, 0.0, epsilon / 2, epsilon / 2, DELTA)


def no_points(recipe: Recipe, sizes: Sequence[Size]) -> list[Point]:
    """Return no points: the figure shows the data alone."""
    return []


SPECS: dict[Name, Spec] = {
    "data": Spec("fig.exp.data", "An example data set: n = 10 donors, T0 = 10, three periods to predict.", no_points),
    "lambda": Spec("fig.exp.lambda.1", "RMSE over λ at ε₁ = ε₂ = 50, n = T0 = 10.", over_lambda),
    "theory": Spec("fig.exp.lambda.2", "Theory against practice at ε₁ = ε₂ = 50, n = T0 = 10.", over_lambda),
    "epsilon": Spec("fig.exp.eps.1", "RMSE over the total ε, n = T0 = 10, λ = T0.", over_epsilon),
    "delta": Spec(
        "fig.exp.delta",
        "Objective perturbation with Laplace and Gaussian noise (δ = 1e-6), λ = T0.",
        both_noises,
        SIZES,
    ),
    "lambda-sizes": Spec("fig.exp.data.1", "RMSE over λ on four sizes, ε₁ = ε₂ = 50.", over_lambda, SIZES),
    "epsilon-sizes": Spec("fig.exp.data.2", "RMSE over the total ε on four sizes, λ = T0.", over_epsilon, SIZES),
}


def table(name: Name, recipes: Sequence[Recipe], outcomes: Mapping[Point, Outcome], seed: int) -> pd.DataFrame:
    """Return everything a figure shows, one row per number."""
    if name == "data":
        return _examples(recipes, seed)
    rows = []
    for recipe in recipes:
        points = SPECS[name].points(recipe)
        rows += [_row(point, outcomes[point]) for point in points]
        rows += _yardsticks(recipe, points, seed)
        if name == "theory":
            rows += _bounds(recipe, seed)
    frame = pd.DataFrame(rows).reindex(columns=COLUMNS)
    return frame.assign(h=H, seed=seed)


def _row(point: Point, outcome: Outcome) -> dict[str, Any]:
    lower, upper = outcome.band
    row = asdict(point) | {"protection": point.protection, "series": point.method, "lambda": point.lambda_ or np.nan}
    return row | asdict(outcome) | {"rmse": outcome.mean, "lower": lower, "upper": upper}


def _yardsticks(recipe: Recipe, points: Sequence[Point], seed: int) -> list[dict[str, Any]]:
    """Return non-private ridge at every lambda in use and the donor-free forecasts, for every size."""
    rows: list[dict[str, Any]] = []
    lambdas = {(p.n, p.T0): sorted({q.lambda_ for q in points if (q.n, q.T0) == (p.n, p.T0)} - {0.0}) for p in points}
    for (n, T0), values in lambdas.items():
        data = dataset(DATA[recipe], n, T0, seed)
        common = {"recipe": recipe, "protection": "NOT PRIVATE", "n": n, "T0": T0}
        rows += [{**common, "series": "ridge", "lambda": v, "rmse": yardsticks.ridge(data, v)} for v in values]
        for series, rmse in yardsticks.donor_free(data).items():
            protection = "NOT PRIVATE" if "donors" in series else "uses no donors"
            rows.append({**common, "series": series, "protection": protection, "rmse": rmse})
    return rows


def _bounds(recipe: Recipe, seed: int) -> list[dict[str, Any]]:
    """Return the bounds of both accuracy theorems, as printed and corrected, on the data of a recipe."""
    rows = []
    for lambda_ in LAMBDAS:
        setting = setting_of(dataset(DATA[recipe], *SMALL, seed), lambda_)
        common = asdict(setting) | {"recipe": recipe, "protection": "a bound", "lambda": lambda_}
        for method, form in itertools.product(METHODS, theory.FORMS):
            series = f"{method} bound {form.replace('_', ' ')}"
            rows.append(common | {"series": series, "rmse": theory.bound(method, setting, form)})
    return rows


def setting_of(data: Dataset, lambda_: float) -> theory.Setting:
    """Return what the accuracy theorems ask about a data set whose signal is known, at epsilon1 = epsilon2 = 50."""
    n, T0 = data.X.shape
    f_reg = ridge_weights(data.X, data.y, lambda_)
    f = np.linalg.lstsq(data.donor_signal.T, data.signal, rcond=None)[0]  # the smallest true weights
    return theory.Setting(
        n=n,
        T0=T0,
        h=H,
        lambda_=lambda_,
        epsilon1=EACH,
        epsilon2=EACH,
        signal_norm=float(np.linalg.norm(data.donor_signal[:, T0:], 2)),
        weight_error=float(np.linalg.norm(f_reg - f)),
        sigma=data.sigma,
        psi=float(np.abs(f_reg).max()),
    )


def _examples(recipes: Sequence[Recipe], seed: int) -> pd.DataFrame:
    frames = []
    for generator in dict.fromkeys(DATA[recipe] for recipe in recipes):
        data = dataset(generator, *SMALL, seed)
        paths = {"target": data.target} | {f"donor {i + 1}": row for i, row in enumerate(data.donors)}
        for unit, path in paths.items():
            times = np.arange(1, len(path) + 1)
            frames.append(pd.DataFrame({"data": generator, "unit": unit, "period": times, "value": path}))
    return pd.concat(frames, ignore_index=True).assign(T0=SMALL[1], seed=seed)


# The paper's own colours for its two algorithms and the non-private method.
SERIES: dict[str, tuple[str, dict[str, Any]]] = {
    "out": ("output perturbation", {"color": GREEN, "marker": "s", "ms": 4}),
    "obj": ("objective perturbation", {"color": ORANGE, "marker": "o", "ms": 4}),
    "gram": ("Gram release (δ = 1e-6)", {"color": VERMILION, "marker": "D", "ms": 4}),
    "ridge": ("ridge, not private", {"color": BLUE, "marker": "", "lw": 2}),
    "last value": ("last value of the target", {"color": GREY, "ls": "--", "lw": 1}),
    "straight line": ("line through the target", {"color": GREY, "ls": ":", "lw": 1.4}),
    "donors' mean": ("donors' mean, not private", {"color": GREY, "ls": "-.", "lw": 1}),
}
DONOR_FREE = ("last value", "straight line", "donors' mean")
SIZE_STYLE: dict[tuple[int, int], dict[str, Any]] = {  # curves of equal n may overlap: one has large open markers
    (10, 10): {"color": ORANGE, "marker": "o", "ms": 8, "mfc": "none"},
    (10, 100): {"color": GREEN, "marker": "s", "ms": 3.5},
    (100, 10): {"color": BLUE, "marker": "^", "ms": 8, "mfc": "none"},
    (100, 100): {"color": VERMILION, "marker": "D", "ms": 3.5},
}
YARDSTICK_MARKS = {"ridge": "*", "last value": "_", "straight line": "x", "donors' mean": "+"}
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw(name: Name, table: pd.DataFrame) -> Figure:
    """Return the figure of a table made by :func:`table`."""
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        figure = _draw(name, table)
        engine = figure.get_layout_engine()
        assert engine is not None
        engine.execute(figure)
        figure.set_layout_engine("none")  # laid out once, not again at every save
    return figure


def _draw(name: Name, table: pd.DataFrame) -> Figure:
    if name == "data":
        return _data(table)
    recipes = [recipe for recipe in RECIPES if recipe in set(table["recipe"])]
    if name in ("lambda", "epsilon"):
        return _one_size(table, recipes, name)
    if name == "theory":
        return _theory(table, recipes)
    if name == "delta":
        panels = [("obj", 0.0, "Laplace noise, δ = 0"), ("obj", DELTA, "Gaussian noise, δ = 1e-6")]
        return _four_sizes(table, recipes, "epsilon", panels)
    panels = [("out", 0.0, "output perturbation"), ("obj", 0.0, "objective perturbation")]
    if "ours" in recipes and name == "epsilon-sizes":
        panels.append(("gram", DELTA, "Gram release, δ = 1e-6"))
    return _four_sizes(table, recipes, "lambda" if name == "lambda-sizes" else "epsilon", panels)


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _data(table: pd.DataFrame) -> Figure:
    generators = list(dict.fromkeys(table["data"]))
    figure = _figure(4.2 * len(generators), 3.2)
    titles = {"printed": "as the text says", "published": "as the published code draws them"}
    for axes, generator in zip(figure.subplots(1, len(generators), squeeze=False)[0], generators, strict=True):
        part = table[table["data"] == generator]
        for unit, path in part.groupby("unit", sort=False):
            style = {"color": VERMILION, "lw": 2} if unit == "target" else {"color": GREY, "lw": 0.9, "alpha": 0.6}
            axes.plot(path["period"], path["value"], zorder=3 if unit == "target" else 2, **style)
        T0 = int(part["T0"].iloc[0])
        axes.axvline(T0 + 0.5, color=BLACK, lw=0.8, ls=":")
        axes.text(T0 + 0.4, axes.get_ylim()[0], "intervention ", ha="right", va="bottom", fontsize=8)
        axes.set(title=titles[generator], xlabel="period", ylabel="value, scaled")
    _legend(figure, [_handle("target", color=VERMILION, lw=2), _handle("donors", color=GREY)], ncols=2)
    return figure


def _one_size(table: pd.DataFrame, recipes: Sequence[Recipe], x: str) -> Figure:
    """One panel per recipe, on a common scale of errors."""
    figure = _figure(max(3.5 * len(recipes), 5), 4.0)
    grid = figure.subplots(1, len(recipes), squeeze=False, sharey=True)[0]
    for axes, recipe in zip(grid, recipes, strict=True):
        part = _with_epsilon(table[table["recipe"] == recipe])
        for series in ("out", "obj", "gram"):
            _curve(axes, part[part["series"] == series], x, SERIES[series][1])
        _ridge_and_baselines(axes, part, x)
        _finish(axes, x, TITLE[recipe])
    grid[0].set_ylabel("RMSE after the intervention")
    shown = [series for series in SERIES if series in set(table["series"])]
    handles = [_handle(SERIES[series][0], **SERIES[series][1]) for series in shown]
    _legend(figure, handles, ncols=4 if len(recipes) > 1 else 2)
    return figure


def _theory(table: pd.DataFrame, recipes: Sequence[Recipe]) -> Figure:
    figure = _figure(7.6, 2.6 * len(recipes) + 0.8)
    grid = figure.subplots(len(recipes), 2, squeeze=False, sharey="row")
    bounds = {"bound as printed": {"color": BLACK, "ls": "--"}, "bound corrected": {"color": PURPLE, "ls": "-"}}
    for row, recipe in zip(grid, recipes, strict=True):
        part = table[table["recipe"] == recipe]
        for axes, method in zip(row, ("out", "obj"), strict=True):
            _curve(axes, part[part["series"] == method], "lambda", SERIES[method][1])
            for form, style in bounds.items():
                _curve(axes, part[part["series"] == f"{method} {form}"], "lambda", {**style, "lw": 1.8})
            _ridge_and_baselines(axes, part, "lambda")
            _finish(axes, "lambda", f"{TITLE[recipe]}\n{SERIES[method][0]}{_doubt(recipe, method)}")
        row[0].set_ylabel("RMSE after the intervention")
    names = ["out", "obj", "ridge", *DONOR_FREE]
    handles = [_handle(SERIES[s][0], **SERIES[s][1]) for s in names]
    handles[2:2] = [_handle(f"the theorem's {form}", **style) for form, style in bounds.items()]
    _legend(figure, handles, ncols=3)
    return figure


def _four_sizes(
    table: pd.DataFrame, recipes: Sequence[Recipe], x: str, panels: Sequence[tuple[str, float, str]]
) -> Figure:
    """One row per recipe, one panel per algorithm, one curve per size; yardsticks are marks at the right edge."""
    figure = _figure(3.9 * len(panels), 2.8 * len(recipes) + 0.9)
    widths = [5, 0.9] * len(panels)
    vacant: list[Axes] = []
    grid = figure.subplots(len(recipes), 2 * len(panels), squeeze=False, sharey="row", width_ratios=widths)
    for row, recipe in zip(grid, recipes, strict=True):
        part = _with_epsilon(table[table["recipe"] == recipe])
        for i, (method, delta, title) in enumerate(panels):
            axes, strip = row[2 * i], row[2 * i + 1]
            chosen = part[(part["series"] == method) & (part["delta"] == delta)]
            if chosen.empty:
                vacant.append(axes)
                axes.axis("off")
                strip.axis("off")
                continue
            for size, style in SIZE_STYLE.items():
                _curve(axes, _sized(chosen, size), x, style)
                _mark_yardsticks(strip, _sized(part, size), size, x)
                if x == "lambda":
                    dotted = {"color": style["color"], "ls": ":", "lw": 1.1}
                    _curve(axes, _sized(part[part["series"] == "ridge"], size), x, dotted)
            _finish(axes, x, f"{TITLE[recipe]}\n{title}{_doubt(recipe, method)}")
            _clear(strip)
        row[0].set_ylabel("RMSE after the intervention")
    handles = [_handle(f"n = {n}, T0 = {T0}", **style) for (n, T0), style in SIZE_STYLE.items()]
    if x == "lambda":
        handles.append(_handle("ridge, not private", color=BLACK, ls=":"))
    marks = [mark for mark in YARDSTICK_MARKS if mark != "ridge" or x != "lambda"]
    handles += [_handle(SERIES[m][0], color=BLACK, ls="", marker=YARDSTICK_MARKS[m], ms=7) for m in marks]
    if vacant:
        vacant[0].legend(handles=handles, loc="center", frameon=False)
    else:
        _legend(figure, handles, ncols=4)
    return figure


def _doubt(recipe: Recipe, method: str) -> str:
    """Return a mark for an algorithm that has no proof of privacy."""
    return " (unproven)" if recipe == "printed" and method == "obj" else ""


def _sized(table: pd.DataFrame, size: tuple[int, int]) -> pd.DataFrame:
    return table[(table["n"] == size[0]) & (table["T0"] == size[1])]


def _with_epsilon(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(epsilon=table["epsilon1"] + table["epsilon2"])


def _curve(axes: Axes, part: pd.DataFrame, x: str, style: dict[str, Any]) -> None:
    """Draw a curve with its band; a single number without an x becomes a horizontal line."""
    if part.empty:
        return
    if part[x].isna().all():
        line = {key: value for key, value in style.items() if key not in ("marker", "ms", "mfc")}
        axes.axhline(float(part["rmse"].iloc[0]), **line)
        return
    part = part.sort_values(x)
    axes.plot(part[x], part["rmse"], **style)
    if part["lower"].notna().any():
        axes.fill_between(part[x], part["lower"], part["upper"], color=style["color"], alpha=0.25, lw=0)


def _ridge_and_baselines(axes: Axes, part: pd.DataFrame, x: str) -> None:
    ridge = part[part["series"] == "ridge"]
    _curve(axes, ridge if x == "lambda" else ridge.assign(**{x: float("nan")}), x, SERIES["ridge"][1])
    for series in DONOR_FREE:
        _curve(axes, part[part["series"] == series], x, SERIES[series][1])


def _mark_yardsticks(strip: Axes, part: pd.DataFrame, size: tuple[int, int], x: str) -> None:
    for series, mark in YARDSTICK_MARKS.items():
        if series == "ridge" and x == "lambda":
            continue
        rmse = part.loc[part["series"] == series, "rmse"]
        if len(rmse):
            place, colour = SIZES.index(size), SIZE_STYLE[size]["color"]
            strip.plot([place], [float(rmse.iloc[0])], ls="", marker=mark, ms=6, color=colour)


def _finish(axes: Axes, x: str, title: str) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

    axes.set(xscale="log", yscale="log", title=title, xlabel="λ" if x == "lambda" else "total ε")
    axes.tick_params(labelleft=True)
    axes.grid(axis="y", color=GRID, lw=0.6)
    axes.set_axisbelow(True)
    axes.yaxis.set_minor_locator(NullLocator())
    if x == "epsilon":
        axes.xaxis.set_major_locator(FixedLocator([2, 4, 10, 20, 40, 100, 200]))
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_locator(NullLocator())


def _clear(strip: Axes) -> None:
    strip.set(xlim=(-0.7, len(SIZES) - 0.3), xticks=[])
    strip.spines[["left", "bottom"]].set_visible(False)
    strip.tick_params(left=False, which="both", labelleft=False)
    strip.grid(axis="y", color=GRID, lw=0.6)


def _legend(figure: Figure, handles: list[Line2D], *, ncols: int) -> None:
    figure.legend(handles=handles, loc="outside lower center", ncols=ncols, frameon=False)


def _handle(label: str, **style: Any) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **style)
