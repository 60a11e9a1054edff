"""Run an audit, every attack on every case at one false-alarm rate, and draw what was demonstrated."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpsc.answers.figures.sheet import BLACK, BLUE, GREY, ORANGE, VERMILION
from dpsc.errors import DpscWarning
from dpsc.evidence.audit.case import AuditFinding, Case, Effort, judge
from dpsc.types import JsonObject

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FALSE_ALARM = 1e-3  # of the whole run, however many attacks it makes
CALLS = 20  # runs in bulk for every real call


@dataclass(frozen=True)
class Audit:
    """The findings of an audit, and how it was run."""

    groups: tuple[tuple[AuditFinding, ...], ...]  # one group per case
    runs: int
    calls: int
    seed: int | None
    false_alarm: float

    @property
    def findings(self) -> tuple[AuditFinding, ...]:
        """The findings of all attacks."""
        return tuple(finding for group in self.groups for finding in group)

    @property
    def broken(self) -> list[AuditFinding]:
        """The attacks that showed more than was claimed."""
        return [finding for finding in self.findings if finding.verdict == "BROKEN"]

    def strongest(self) -> list[AuditFinding]:
        """Return for each case the attack that broke the claim or, if none did, came closest to it."""
        return [strongest(group) for group in self.groups]

    def to_json(self, known_broken: Audit | None = None) -> str:
        """Return everything as JSON; an infinite loss is null. What is known to be broken is listed apart."""
        content: JsonObject = {"runs": self.runs, "calls": self.calls, "seed": self.seed}
        content |= {"false_alarm": self.false_alarm, "broken": len(self.broken)}
        content["findings"] = [_row(finding) for finding in self.findings]
        if known_broken is not None:
            content["known_to_be_broken"] = [_row(finding) for finding in known_broken.findings]
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def strongest(findings: Sequence[AuditFinding]) -> AuditFinding:
    """Return the attack that broke the claim or, if none did, came closest to it."""
    return max(findings, key=lambda finding: (finding.verdict == "BROKEN", finding.share))


def audit(
    cases: Sequence[Case],
    *,
    runs: int,
    calls: int | None = None,
    seed: int | None = None,
    false_alarm: float = FALSE_ALARM,
    on_attack: Callable[[str], None] = lambda name: None,
) -> Audit:
    """Attack every case.

    Each statistical attack tests one event, on runs that did not choose it, at ``false_alarm`` divided by the number of
    statistical attacks; by the union bound the whole run raises a false alarm with probability at most ``false_alarm``.
    ``runs`` are drawn in bulk on each neighbour, ``calls`` are real calls of an algorithm (a twentieth by default).
    """
    effort = Effort(runs, max(200, runs // CALLS) if calls is None else calls, seed)
    error = false_alarm / max(1, count(cases))
    groups = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpscWarning)  # that noise from seeds is not private: here it is meant
        for case in cases:
            findings = []
            for attack in case.attacks:
                on_attack(f"{case.title}: {attack.name}")
                findings.append(judge(case, attack, attack.run(effort, error)))
            groups.append(tuple(findings))
    return Audit(tuple(groups), runs, effort.calls, seed, false_alarm)


def count(cases: Iterable[Case]) -> int:
    """Return how many attacks may be wrong by chance."""
    return sum(attack.statistical for case in cases for attack in case.attacks)


def _row(f: AuditFinding) -> JsonObject:
    attacked = {"mechanism": f.mechanism, "title": f.title, "attack": f.attack}
    claim = {"claim": f.claim.epsilon, "delta": f.claim.delta, "unit": f.claim.unit or "epsilon"}
    shown = {"shown": _finite(f.shown), "share": _finite(f.share), "verdict": f.verdict, "how": f.how, "note": f.note}
    return {**attacked, **claim, **shown}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


STYLE = {"holds": (BLUE, "o"), "BROKEN": (VERMILION, "X"), "not claimed": (ORANGE, "D")}
_FAR = 20.0  # shares of what we ship beyond this are drawn at the edge
_FARTHEST = 1000.0  # the same for what is known to be broken
_WIDTH, _ROW, _LEFT, _RIGHT, _TOP, _BETWEEN, _BOTTOM = 9.0, 0.3, 2.75, 1.8, 0.6, 1.0, 0.55  # inches

Groups = Sequence[Sequence[AuditFinding]]


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
