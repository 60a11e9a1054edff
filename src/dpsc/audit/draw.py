"""The figure of an audit: what was demonstrated as a share of what is claimed, one row a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpsc.audit.case import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours; marks differ in shape as well.
STYLE = {"holds": ("#0072B2", "o"), "BROKEN": ("#D55E00", "X"), "not claimed": ("#E69F00", "D")}
GREY = "#777777"


def draw(findings: Sequence[Finding]) -> Figure:
    """Draw the strongest attack on each mechanism; the claim is the line at one."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    rows = list(reversed(findings))
    figure = Figure(figsize=(9, 1.3 + 0.3 * len(rows)), layout="constrained")
    axes = figure.subplots()
    furthest = max([1.15, *(1.1 * f.share for f in rows if f.share < 20)])
    axes.axvline(1.0, color="#000000", lw=1.2)
    for place, finding in enumerate(rows):
        colour, mark = STYLE[finding.verdict]
        at = min(finding.share, furthest)
        axes.hlines(place, 0, at, color=colour, lw=1.4, alpha=0.6)
        axes.plot([at], [place], color=colour, marker=mark, ms=6.5, ls="")
        axes.text(
            1.02, place, f"{finding.shown:.4g}  of  {finding.claim}", transform=axes.get_yaxis_transform(),
            va="center", fontsize=8,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), [f.title for f in rows], fontsize=8.5)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlim(0, furthest)
    axes.set_xlabel("demonstrated loss as a share of the claim; beyond 1 a claim is broken")
    axes.text(1.02, len(rows) - 0.2, "shown of claimed", transform=axes.get_yaxis_transform(), fontsize=8, color=GREY)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    present = [verdict for verdict in STYLE if any(f.verdict == verdict for f in rows)]
    handles = [Line2D([], [], color=STYLE[v][0], marker=STYLE[v][1], ls="", label=v) for v in present]
    handles.append(Line2D([], [], color="#000000", lw=1.2, label="the claim"))
    figure.legend(handles=handles, loc="outside upper left", ncols=4, fontsize=8.5, frameon=False)
    return figure
