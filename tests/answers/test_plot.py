from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dpsc
from dpsc import GramRelease, Panel, ParameterError, Release, SyntheticControl
from dpsc.answers import figures as plot
from dpsc.answers.figures import choices, sheet
from dpsc.answers.figures.plan import plan_curves
from dpsc.answers.figures.sheet import PeriodAxis, Sheet
from dpsc.answers.result import Result
from dpsc.answers.study import Study
from tests.making import make_panel

T0, T = 30, 42
TIMES = pd.period_range("2020-01", periods=T, freq="M")
OUTCOME = "admissions to hospitals per 10,000 inhabitants of the region"


def world() -> tuple[Release, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    factors = np.cumsum(rng.normal(size=(2, T)), axis=1)
    donors = 50 + rng.uniform(-1, 1, (2000, 2)) @ factors + 0.3 * rng.normal(size=(2000, T))
    panel = Panel.from_arrays(donors, donors[0], treatment_time=TIMES[T0], times=list(TIMES), outcome=OUTCOME)
    targets = 50 + rng.uniform(-1, 1, (6, 2)) @ factors + 0.1 * rng.normal(size=(6, T))
    return GramRelease(epsilon=1.0, delta=1e-6, scale=2.0).release(panel), targets


@pytest.fixture(scope="module")
def release() -> Release:
    return world()[0]


@pytest.fixture(scope="module")
def result(release: Release) -> Result:
    target = pd.Series(world()[1][0], index=TIMES)
    target.iloc[T0:] += 3
    return release.estimate(target, TIMES[T0])


@pytest.fixture(scope="module")
def study(release: Release) -> Study:
    names = ["north", "south", "east", "west", "the islands", "nowhere"]
    targets = {name: pd.Series(path, index=TIMES) for name, path in zip(names, world()[1], strict=True)}
    return release.study(targets, {"north": TIMES[20], "south": TIMES[30], "east": TIMES[30], "west": TIMES[38]})


def lines(axes: Axes) -> dict[str, np.ndarray[Any, Any]]:
    return {str(line.get_label()): np.asarray(line.get_ydata(), dtype=float) for line in axes.lines}


def band(axes: Axes, label: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the lower and the upper edge of a shaded band, from the polygon that is drawn."""
    (found,) = [shape for shape in axes.collections if shape.get_label() == label]
    ys: dict[float, list[float]] = {}
    for x, y in np.asarray(found.get_paths()[0].vertices):
        ys.setdefault(float(x), []).append(float(y))
    edges = np.array([(min(v), max(v)) for _, v in sorted(ys.items())])
    return edges[:, 0], edges[:, 1]


def segments(axes: Axes, which: int = 0) -> np.ndarray[Any, Any]:
    """Return the ends of the intervals that are drawn as bars."""
    bars: Any = axes.collections[which]
    return np.array([np.asarray(bar)[:, 1] for bar in bars.get_segments()])


def legend(axes: Axes) -> list[str]:
    (found,) = axes.figure.legends
    return [entry.get_text().replace("\n", " ") for entry in found.get_texts()]


def said(axes: Axes, what: str) -> str:
    """Return a text around the axes: "title", "measured" or "small print"."""
    (found,) = [text for text in axes.figure.texts if text.get_gid() == what]
    return found.get_text().replace("\n", " ")


def title(axes: Axes) -> str:
    return axes.get_title(loc="left") if not axes.figure.texts else said(axes, "title")


PRIVACY = "privacy noise alone"


def test_the_counterfactual_is_drawn_over_the_whole_axis(result: Result) -> None:
    axes = result.plot("path")
    drawn = lines(axes)
    np.testing.assert_array_equal(drawn["observed"], result.target)
    whole = drawn["without the intervention"]
    np.testing.assert_array_equal(whole, np.concatenate([result.fitted, result.counterfactual]))
    assert len(whole) == T
    before, after, noise = result.interval_before(), result.interval(), result.interval(part="privacy")
    for edge, name in zip(band(axes, "95% interval"), ("lower", "upper"), strict=True):
        np.testing.assert_allclose(edge, np.concatenate([before[name], after[name]]))
    for edge, name in zip(band(axes, PRIVACY), ("lower", "upper"), strict=True):
        np.testing.assert_allclose(edge, noise[name])


def test_gaps_before_the_intervention_show_what_no_effect_looks_like(result: Result) -> None:
    axes = result.plot("gaps")
    gap = lines(axes)["_difference"]
    np.testing.assert_allclose(gap[:T0], result.target.iloc[:T0] - result.fitted)
    np.testing.assert_allclose(gap[T0:], result.gaps)
    lower, upper = band(axes, "95% interval")
    np.testing.assert_allclose(lower[:T0], result.target.iloc[:T0] - result.interval_before()["upper"])
    np.testing.assert_allclose(upper[T0:], result.observed - result.interval()["lower"])
    assert ((lower < 0) & (upper > 0))[:T0].mean() > 0.8
    assert (lower[T0:] > 0).all()


def test_the_legend_names_each_thing_once(result: Result) -> None:
    expected = ["observed", "without the intervention", "95% interval", PRIVACY]
    assert legend(result.plot()) == legend(result.plot("path")) == expected
    assert legend(replace(result, level=0.8).plot())[2] == "80% interval"


def test_titles_say_what_is_shown_and_small_print_tells_how(result: Result) -> None:
    assert title(result.plot()) == f"What would {OUTCOME} have been without the intervention?"
    assert "differential" not in title(result.plot()).lower()
    assert "Differentially private: ε = 1, δ = 1e-06." in said(result.plot(), "small print")
    own = replace(result, title="Admissions, had the clinics stayed closed")
    assert title(own.plot("path")) == title(own.plot()) == "Admissions, had the clinics stayed closed"
    assert title(own.plot("gaps")) == title(result.plot("gaps"))
    assert title(own.plot(title="Another")) == "Another"


def test_no_two_figures_have_one_title(result: Result, study: Study) -> None:
    kinds = ("path", "gaps", "cumulative", "placebos", "placebos in space", "sensitivity")
    titles = [*(title(result.plot(kind)) for kind in kinds), *(title(study.plot(kind)) for kind in study.figures)]
    assert len(set(titles)) == len(titles)


def test_a_page_around_a_figure_says_its_title_and_small_print(result: Result) -> None:
    axes = result.plot("gaps", title="")
    assert said(axes, "title") == said(axes, "small print") == ""
    assert said(axes, "measured").startswith("observed minus counterfactual")


@pytest.mark.parametrize(
    ("name", "units", "written"), [("cost", "€", "cost (€)"), ("Kosten (€)", "€", "Kosten (€)"), ("cost", None, "cost")]
)
def test_units_are_said_once(result: Result, name: str, units: str | None, written: str) -> None:
    named = replace(result, target=result.target.rename(name))
    for kind in ("path", "gaps", "cumulative", "sensitivity"):
        text = said(plot.draw(named, kind, units=units), "measured")
        assert written in text
        assert text.count("€") == written.count("€")


def test_figures_have_one_width_and_letters_of_the_same_size(result: Result, study: Study) -> None:
    for answer, kinds in ((result, ("path", "placebos", "sensitivity")), (study, ("event", "units"))):
        for kind in kinds:
            axes = plot.draw(answer, kind)
            assert plot.figure_of(axes).get_figwidth() == sheet.WIDE
            assert {tick.get_fontsize() for tick in (*axes.get_xticklabels(), *axes.get_yticklabels())} <= {
                sheet.LABEL,
                sheet.SMALL,
            }


def test_the_plot_is_most_of_a_figure(result: Result, study: Study) -> None:
    """Title, key and small print together take less than the axes do."""
    for axes in (result.plot("path"), result.plot("gaps"), result.plot("placebos"), study.plot()):
        assert axes.get_position().height > 0.58


def test_counts_have_whole_numbers_on_their_axis(result: Result) -> None:
    axes = choices.placebos(result, result.placebos("space", units=12), Sheet())
    assert all(float(place).is_integer() for place in axes.get_yticks())


@pytest.mark.parametrize("size", [1e-300, 1e-14, 1e-11, 1e-3, 1e9, 1e14, 1e59, 1e300])
@pytest.mark.parametrize("level", [0.0, 0.5, 1e7])  # in these sizes; what is told apart may be far from zero
def test_numbers_of_any_size_fit_beside_an_axis(size: float, level: float) -> None:
    narrow = Sheet(figsize=(sheet.NARROW, None))
    axes = narrow.axes(2.0)
    axes.plot([0, 1], [(level - 1) * size, (level + 1) * size])
    narrow.finish(axes, "wide", "", measured="size")
    written = [tick.get_text() for tick in axes.get_yticklabels()]
    assert len(set(written)) == len(written) > 2
    assert max(map(len, written)) <= 25


def test_the_axes_of_a_plan_fit_its_errors() -> None:
    errors = {"error": [0.5, 0.4], "error_low": [0.2, 0.15], "error_high": [0.55, 0.5], "without_privacy": 0.3}
    far = pd.DataFrame({"n": 9, "epsilon": [0.5, 1.0], **errors, "last_value": 40.0})
    axes = plan_curves(far, "kg", Sheet())
    assert 0.55 < axes.get_ylim()[1] < 0.6
    assert "no donors, above the figure: the last value, 40" in legend(axes)
    near = plan_curves(far.assign(last_value=0.6), "kg", Sheet())
    assert 0.6 < near.get_ylim()[1] < 0.7


def test_the_intervention_is_named_at_its_line(result: Result) -> None:
    for kind in ("overview", "path", "gaps"):
        axes = result.plot(kind)
        (line,) = [line for line in axes.lines if line.get_gid() == "intervention"]
        (name,) = [t for t in axes.texts if t.get_text() == "intervention, 2022-07"]
        at = np.asarray(line.get_xdata())[0]
        assert name.get_position()[0] == at
        assert TIMES[T0 - 1].to_timestamp() < pd.Timestamp(at) < TIMES[T0].to_timestamp()


def test_what_is_not_private_says_so_whatever_its_title() -> None:
    found = SyntheticControl().fit(make_panel())
    for axes in (found.plot(), found.plot("path", title="Mine"), found.plot("gaps", ax=Figure().subplots())):
        assert title(axes).endswith("NOT PRIVATE")
    assert "NOT PRIVATE: it was computed from the raw donors." in said(found.plot(), "small print")
    assert "NOT PRIVATE" in found._repr_html_()
    assert len(legend(found.plot())) == 2  # nothing is known about intervals


def test_the_sum_of_effects_is_drawn_with_its_band(result: Result) -> None:
    axes, found = result.plot("cumulative"), result.cumulative()
    np.testing.assert_allclose(lines(axes)["_sum of the effects"], found["effect"])
    lower, upper = band(axes, "95% interval")
    np.testing.assert_allclose(np.array([lower, upper]).T, found[["lower", "upper"]])


def test_placebos_in_time_stand_beside_the_real_effect(result: Result) -> None:
    axes, found = result.plot("placebos"), result.placebos()
    drawn = lines(axes)
    others = next(values for name, values in drawn.items() if name.startswith("an earlier date"))
    real = next(values for name, values in drawn.items() if name.startswith("the intervention:"))
    np.testing.assert_allclose(others, found.table["effect"])
    np.testing.assert_allclose(segments(axes), found.table[["lower", "upper"]])
    assert real == pytest.approx([result.att])
    np.testing.assert_allclose(segments(axes, 1), [result.att_interval()])
    assert legend(axes)[1] == f"the intervention: none of {len(found.table)} earlier dates look as large"
    assert found.share == 0


def test_without_an_observed_effect_no_placebo_is_compared(result: Result) -> None:
    unseen = result.target.copy()
    unseen.iloc[T0:] = np.nan
    axes = choices.placebos(replace(result, target=unseen), replace(result, target=unseen).placebos(), Sheet())
    assert legend(axes)[1] == "the intervention: no effect was observed"


def test_a_long_interval_does_not_make_the_others_small(result: Result) -> None:
    found = result.placebos()
    found.table.loc[found.table.index[0], ["lower", "upper"]] = [-1e4, 1e4]
    axes = choices.placebos(result, found, Sheet())
    assert axes.get_ylim()[1] < 100
    assert "the longest leave the figure" in said(axes, "measured")


def test_placebos_in_space_are_counted_in_words(result: Result) -> None:
    found = result.placebos("space", units=40)
    axes = choices.placebos(result, found, Sheet(), units="cases")
    counted: Any = axes.patches
    assert sum(bar.get_height() for bar in counted) == 40
    assert lines(axes)["the real effect: none of 40 made-up units show one as large"].tolist() == [0, 1]
    smaller = replace(found, real=found.real._replace(effect=float(found.table["effect"].abs().median())))
    assert "20 of 40" in legend(choices.placebos(result, smaller, Sheet()))[1]
    assert axes.get_xlabel().replace("\n", " ").endswith("(cases)")


def test_every_choice_has_its_dot_and_its_interval(result: Result) -> None:
    axes, table = result.plot("sensitivity"), result.sensitivity().table
    dots = [np.asarray(line.get_xdata(), dtype=float) for line in axes.lines if line.get_marker() in ("o", "D")]
    np.testing.assert_allclose(np.concatenate(dots), table["effect"])
    bars: Any = axes.collections[0]
    drawn = np.array([np.asarray(bar)[:, 0] for bar in bars.get_segments()])
    np.testing.assert_allclose(drawn, table[["lower", "upper"]])
    names = [label.get_text().replace("\n", " ") for label in axes.get_yticklabels()]
    assert names[:3] == ["as it is: 2022-07", "dated 1 earlier: 2022-06", "dated 2 earlier: 2022-05"]


def test_an_event_study_says_how_many_units_each_effect_rests_on(study: Study) -> None:
    axes, table = study.plot(), study.by_event_time()
    before, after = table[table.index < 0], table[table.index >= 0]
    np.testing.assert_allclose(lines(axes)["average effect"], after["effect"])
    np.testing.assert_allclose(lines(axes)["before: the forecast's error"], before["effect"])
    np.testing.assert_allclose(np.concatenate([segments(axes), segments(axes, 1)]), table[["lower", "upper"]])
    written = {label.get_text() for label in axes.get_xticklabels()}
    assert {"0\n4", "20\n1"} <= written
    assert any((values == 0).all() for values in lines(axes).values())


def test_calendar_time_is_written_as_people_do(study: Study) -> None:
    axes, table = study.plot("calendar"), study.by_calendar_time()
    np.testing.assert_allclose(lines(axes)["average effect"], table["effect"])
    assert {label.get_text() for label in axes.get_xticklabels()} == {
        "2021-10\n1",
        "2022-01\n1",
        "2022-04\n1",
        "2022-07\n3",
        "2022-10\n3",
        "2023-01\n3",
        "2023-04\n4",
    }


def test_every_unit_has_a_panel_and_those_never_treated_are_for_the_reader(study: Study) -> None:
    first = study.plot("units")
    panels = first.figure.axes
    assert panels[0] is first
    assert [panel.get_title(loc="left").replace("\n", " ") for panel in panels] == [
        "north, from 2021-09",
        "south, from 2022-07",
        "east, from 2022-07",
        "west, from 2023-03",
        "the islands, never treated",
        "nowhere, never treated",
    ]
    for panel, result in zip(panels, study.results.values(), strict=False):
        np.testing.assert_array_equal(lines(panel)["observed"], result.target)
        assert [line.get_gid() for line in panel.lines].count("intervention") == 1
    assert list(lines(panels[-1])) == ["never treated: for comparison only"]
    assert "never treated: for comparison only" in legend(first)
    assert len(legend(first)) == 4
    with pytest.raises(ParameterError, match="leave out ax"):
        study.plot("units", ax=Figure().subplots())


def test_answers_are_compared_side_by_side(result: Result) -> None:
    mine = result.files("cases").content()
    other = mine | {"average_effect": -1.0, "average_effect_interval": None, "private": False}
    axes = choices.compared([("A", mine), ("B", other)], Sheet())
    assert [label.get_text() for label in axes.get_yticklabels()] == ["A", "B, NOT PRIVATE"]
    bars: Any = axes.collections[0]
    np.testing.assert_allclose(np.asarray(bars.get_segments()[0])[:, 0], result.att_interval())
    assert "B has no interval for the effect." in said(axes, "small print")
    differing = choices.compared([("A", mine), ("B", other | {"outcome": "costs", "level": 0.8})], Sheet())
    assert "The outcomes differ" in said(differing, "small print")
    assert "80%, 95%" in said(differing, "small print")


def test_unknown_kinds_are_refused_and_the_known_ones_named(result: Result, study: Study) -> None:
    with pytest.raises(ParameterError, match=r"'overview', 'path'.*Did you mean 'gaps'\?"):
        result.plot("gap")
    with pytest.raises(ParameterError, match="'event', 'calendar', 'units', not 'path'"):
        study.plot("path")


def test_figures_can_be_drawn_on_given_axes_and_restyled(result: Result) -> None:
    figure = Figure(figsize=(9, 4))
    left, right = figure.subplots(1, 2)
    for kind, ax in (("overview", left), ("gaps", right)):
        assert result.plot(kind, ax=ax) is ax
        assert ax.get_legend() is not None
    assert figure.legends == []
    assert figure.texts == []
    assert figure.axes == [left, right]
    left.set_title("Mine", loc="left")
    left.lines[0].set_color("red")
    left.axvline(pd.Timestamp("2021-01-01"))
    left.set_ylim(0, 100)
    figure.draw_without_rendering()
    assert title(left) == "Mine"
    sized = plot.figure_of(result.plot("path", figsize=(4, 3)))
    assert tuple(sized.get_size_inches()) == (4, 3)


def test_nothing_is_left_in_pyplot(result: Result, study: Study) -> None:
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    for axes in (result.plot(), study.plot("units")):
        assert isinstance(axes.figure, Figure)
        plot.as_bytes(axes.figure, "png")
    assert pyplot.get_fignums() == before


@pytest.mark.parametrize("figsize", [None, (4.2, 5.0), (12.0, 6.0)])
def test_no_text_leaves_the_figure_or_covers_another(
    result: Result, study: Study, figsize: tuple[float, float] | None
) -> None:
    """Long titles and names are broken, and many periods do not run into each other."""
    long = replace(result, title="A question that goes on and on " * 4)
    for axes in (long.plot(figsize=figsize), long.plot("sensitivity", figsize=figsize), study.plot(figsize=figsize)):
        figure: Any = axes.figure
        figure.draw_without_rendering()
        for words in (*figure.texts, *figure.legends, *figure.axes[0].texts):
            box = words.get_window_extent()
            assert box.x0 >= -1
            assert box.x1 <= figure.bbox.x1 + 1
            assert box.y1 <= figure.bbox.y1 + 1
        labels = [tick.get_window_extent() for tick in figure.axes[-1].get_xticklabels() if tick.get_text()]
        assert len(labels) >= 2
        assert all(one.x1 < other.x0 for one, other in itertools.pairwise(labels))
        (legend_box,) = [found.get_window_extent() for found in figure.legends]
        assert legend_box.y0 >= figure.axes[0].get_tightbbox().y1 - 1
        rows = {text.get_gid(): text.get_window_extent() for text in figure.texts}
        assert rows["title"].y0 >= rows["measured"].y1 - 1
        assert rows["measured"].y0 >= legend_box.y1 - 1
        assert 0 <= rows["small print"].y0 < rows["small print"].y1 <= figure.axes[-1].get_tightbbox().y0 + 1


@pytest.mark.parametrize(
    ("index", "written"),
    [
        (pd.period_range("2019-11", periods=40, freq="M"), ["2020-01", "2021-01", "2022-01", "2023-01"]),
        (pd.Index(range(1983, 2021)), [str(year) for year in range(1985, 2021, 5)]),
        (pd.period_range("2019Q2", periods=9, freq="Q"), ["2019Q3", "2020Q1", "2020Q3", "2021Q1"]),
        (pd.Index([f"wave {k}" for k in range(30)]), ["wave 0", "wave 5", "wave 10", "wave 15", "wave 20", "wave 25"]),
    ],
)
def test_periods_are_written_at_the_beginning_of_years_or_at_round_numbers(
    index: pd.Index[Any], written: list[str]
) -> None:
    axes = Figure(figsize=(6, 3) if "wave" not in written[0] else (7, 3)).subplots()
    axis = PeriodAxis(index)
    axes.plot(axis.values, np.arange(len(index)))
    axis.write(axes)
    assert [label.get_text() for label in axes.get_xticklabels()] == written


def test_long_words_are_broken_and_dollars_are_no_formulas() -> None:
    broken = sheet.wrapped("cost_$_$ " + 60 * "x", 2.0, 10)
    assert broken.replace("\n", "").replace(" ", "") == "cost_$_$" + 60 * "x"
    assert max(sheet.width(line, 10) for line in broken.splitlines()) <= 2.0
    assert len(broken.splitlines()) >= 3


@pytest.mark.parametrize("words", [["x" * 4000], ["xx"] * 1500, ["x" * 100] * 40])
def test_breaking_a_text_takes_a_time_that_grows_with_its_length(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measured in letters whose width is asked for, for a line of 50."""
    asked = 0

    def width(written: str, size: float, weight: str) -> float:
        nonlocal asked
        asked += len(written)
        return 0.1 * len(written)

    monkeypatch.setattr(sheet, "width", width)
    given = " ".join(words)
    broken = sheet.wrapped(given, 5.0 / sheet._SAFETY + 1e-9, 10)
    assert broken.replace("\n", "").replace(" ", "") == given.replace(" ", "")
    assert max(map(len, broken.split("\n"))) == 50
    assert asked < 60 * len(given)


def test_notebooks_show_numbers_in_words_and_the_figure(result: Result, study: Study, release: Release) -> None:
    expected = dpsc.plan([200, 400], T0=10, h=3, epsilon=[1.0, 2.0], runs=2)
    assert {str(label) for label in lines(expected.plot())} >= {"200 donors", "400 donors"}
    texts: dict[Any, list[str]] = {
        result: ["The difference is +", "Do the donors help?"],
        study: ["of 4 units, the average effect is", "the islands, nowhere"],
        release: ["2,000 donors, 42 periods from 2020-01 to 2023-06", "ε = 1"],
        expected: ["400 donors: an error of", "without privacy"],
    }
    for shown, said in texts.items():
        page = shown._repr_html_()
        assert '<img src="data:image/png;base64,' in page
        assert all(words in page for words in said)
    wild = replace(result, title="<script>alert(1)</script>")
    assert "<script" not in wild._repr_html_()


@pytest.mark.parametrize("kind", ["overview", "units"])
def test_a_notebook_cuts_off_neither_legend_nor_caption(result: Result, study: Study, kind: str) -> None:
    figure = plot.figure_of(plot.draw(study if kind == "units" else result, kind))
    figure.draw_without_rendering()
    shown = figure.get_tightbbox()  # what a notebook shows of a figure, in inches
    inches = figure.dpi_scale_trans.inverted()
    for below in (*figure.legends, *figure.texts):
        box = below.get_window_extent().transformed(inches)
        assert shown.y0 <= box.y0 + 1e-6, below
        assert box.y1 <= shown.y1 + 1e-6, below


def test_a_notebook_shows_each_figure_once_without_being_asked_to() -> None:
    import nbformat
    from nbclient import NotebookClient

    cells = [
        "import numpy as np, dpsc\n"
        "rows = np.cumsum(np.random.default_rng(0).normal(size=(303, 10)), axis=1)\n"
        "release = dpsc.GramRelease(epsilon=1.0, delta=1e-6, scale=3.0).release(rows[3:])\n"
        "result = release.estimate(rows[0], 7)\n"
        "study = release.study({'a': rows[0], 'b': rows[1], 'c': rows[2]}, {'a': 6, 'b': 8})\n"
        "plan = dpsc.plan(100, T0=6, h=2, epsilon=1.0, runs=1)",
        "result.plot()",
        "study.plot('units')",
        "plan.plot()",
        *("result", "study", "release", "plan"),
        "from dpsc.answers import figures as plot\nimage = plot.as_bytes(plot.draw(result, 'path').figure, 'svg')",
    ]
    make: Any = nbformat.v4
    notebook = make.new_notebook(cells=[make.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    kinds = [[set(output.get("data", {})) for output in cell.outputs] for cell in notebook.cells]
    for shown in kinds[1:4]:
        assert sum("image/png" in kind for kind in shown) == 1
    for shown in kinds[4:8]:
        assert [("text/html" in kind, "image/png" in kind) for kind in shown] == [(True, False)]
    assert kinds[0] == kinds[8] == []
