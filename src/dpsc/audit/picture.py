"""The figure of an audit: what was demonstrated as a share of what is claimed, one row per mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpsc.answers.palette import BLACK, BLUE, GREY, ORANGE, VERMILION
from dpsc.audit.case import Finding
from dpsc.audit.run import strongest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE = {"holds": (BLUE, "o"), "BROKEN": (VERMILION, "X"), "not claimed": (ORANGE, "D")}
_FAR = 20.0  # shares of what we ship beyond this are drawn at the edge
_FARTHEST = 1000.0  # the same for what is known to be broken
_WIDTH, _ROW, _LEFT, _RIGHT, _TOP, _BETWEEN, _BOTTOM = 9.0, 0.3, 2.75, 1.8, 0.6, 1.0, 0.55  # inches

Groups = Sequence[Sequence[Finding]]


def draw(groups: Groups, known_broken: Groups = ()) -> Figure:
    """Draw all attacks on each mechanism, the strongest one large; the claim is the line at one.

    What is known to be broken has a panel of its own below, on a logarithmic axis.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    below = _ROW * len(known_broken) + _BETWEEN if known_broken else 0.0
    height = _TOP + _ROW * len(groups) + below + _BOTTOM
    figure = Figure(figsize=(_WIDTH, height))

    def panel(bottom: float, rows: int) -> Axes:
        """Return axes for so many rows, at so many inches above the lower edge."""
        inside = (_WIDTH - _LEFT - _RIGHT) / _WIDTH
        return figure.add_axes((_LEFT / _WIDTH, bottom / height, inside, _ROW * rows / height))

    _fill(panel(_BOTTOM + below, len(groups)), groups)
    if known_broken:
        axes = panel(_BOTTOM, len(known_broken))
        _fill(axes, known_broken, logarithmic=True)
        axes.set_title("Known to be broken: NOT PRIVATE, and must be caught", loc="left", fontsize=9.5)
    best = [strongest(group) for group in (*groups, *known_broken)]
    present = [verdict for verdict in STYLE if any(finding.verdict == verdict for finding in best)]
    handles = [Line2D([], [], color=STYLE[v][0], marker=STYLE[v][1], ls="", label=v) for v in present]
    handles.append(Line2D([], [], mec=GREY, marker="o", ms=4, mfc="white", ls="", label="weaker attacks"))
    handles.append(Line2D([], [], color=BLACK, lw=1.2, label="the claim"))
    figure.legend(handles=handles, loc="upper left", ncols=5, fontsize=8.5, frameon=False)
    return figure


def _fill(axes: Axes, groups: Groups, *, logarithmic: bool = False) -> None:
    rows = [(strongest(group), group) for group in reversed(groups)]
    if logarithmic:
        nearest, furthest = 0.5, _FARTHEST
        axes.set_xscale("log")
        axes.set_xticks([1, 10, 100, _FARTHEST], ["1", "10", "100", "1,000 or ∞"])
        axes.set_xlabel("the same, on a logarithmic axis", fontsize=9)
    else:
        nearest, furthest = 0.0, max([1.15, *(1.1 * best.share for best, _ in rows if best.share < _FAR)])
        axes.set_xlabel("demonstrated loss as a share of the claim; beyond 1 a claim is broken", fontsize=9)
    axes.axvline(1.0, color=BLACK, lw=1.2)
    for place, (best, group) in enumerate(rows):
        colour, mark = STYLE[best.verdict]
        at = min(max(best.share, nearest), furthest)
        axes.hlines(place, nearest, at, color=colour, lw=1.4, alpha=0.6)
        others = [min(finding.share, furthest) for finding in group if finding is not best and finding.share >= nearest]
        axes.plot(others, [place] * len(others), marker="o", ms=4, mfc="white", mec=colour, ls="", clip_on=False)
        axes.plot([at], [place], color=colour, marker=mark, ms=6.5, ls="", clip_on=False)
        shown = "∞" if math.isinf(best.shown) else f"{best.shown:.4g}"
        axes.text(
            1.02, place, f"{shown}  of  {best.claim}", transform=axes.get_yaxis_transform(), va="center", fontsize=8
        )
    axes.set_yticks(range(len(rows)), [best.title.removeprefix("NOT PRIVATE: ") for best, _ in rows], fontsize=8.5)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlim(nearest, furthest)
    axes.tick_params(axis="x", labelsize=8.5)
    axes.text(1.02, len(rows) - 0.2, "shown of claimed", transform=axes.get_yaxis_transform(), fontsize=8, color=GREY)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
