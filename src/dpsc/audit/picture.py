"""The figure of an audit: what was demonstrated as a share of what is claimed, one row per mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpsc.answers.palette import BLACK, BLUE, GREY, ORANGE, VERMILION
from dpsc.audit.case import Finding
from dpsc.audit.run import strongest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = {"holds": (BLUE, "o"), "BROKEN": (VERMILION, "X"), "not claimed": (ORANGE, "D")}
_FAR = 20.0  # shares beyond this are drawn at the edge


def draw(groups: Sequence[Sequence[Finding]]) -> Figure:
    """Draw all attacks on each mechanism, the strongest one large; the claim is the line at one."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    rows = [(strongest(group), group) for group in reversed(groups)]
    figure = Figure(figsize=(9, 1.3 + 0.3 * len(rows)), layout="constrained")
    axes = figure.subplots()
    furthest = max([1.15, *(1.1 * best.share for best, _ in rows if best.share < _FAR)])
    axes.axvline(1.0, color=BLACK, lw=1.2)
    for place, (best, group) in enumerate(rows):
        colour, mark = STYLE[best.verdict]
        at = min(best.share, furthest)
        axes.hlines(place, 0, at, color=colour, lw=1.4, alpha=0.6)
        others = [min(finding.share, furthest) for finding in group if finding is not best]
        axes.plot(others, [place] * len(others), marker="o", ms=4, mfc="white", mec=colour, ls="", clip_on=False)
        axes.plot([at], [place], color=colour, marker=mark, ms=6.5, ls="", clip_on=False)
        axes.text(
            1.02, place, f"{best.shown:.4g}  of  {best.claim}", transform=axes.get_yaxis_transform(),
            va="center", fontsize=8,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), [best.title for best, _ in rows], fontsize=8.5)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlim(0, furthest)
    axes.set_xlabel("demonstrated loss as a share of the claim; beyond 1 a claim is broken")
    axes.text(1.02, len(rows) - 0.2, "shown of claimed", transform=axes.get_yaxis_transform(), fontsize=8, color=GREY)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    present = [verdict for verdict in STYLE if any(best.verdict == verdict for best, _ in rows)]
    handles = [Line2D([], [], color=STYLE[v][0], marker=STYLE[v][1], ls="", label=v) for v in present]
    handles.append(Line2D([], [], mec=GREY, marker="o", ms=4, mfc="white", ls="", label="weaker attacks"))
    handles.append(Line2D([], [], color=BLACK, lw=1.2, label="the claim"))
    figure.legend(handles=handles, loc="outside upper left", ncols=5, fontsize=8.5, frameon=False)
    return figure
