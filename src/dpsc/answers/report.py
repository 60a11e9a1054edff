"""A result as files: the table, the numbers, the figures and one page to hand on. It knows no mechanism, no donor."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dpsc.answers import plot, web
from dpsc.answers import words as wording
from dpsc.answers.result import NonPrivateResult, PrivateResult, UnprovenResult
from dpsc.answers.words import Result, number, period, signed
from dpsc.errors import ParameterError


def result_files(result: Result, *, command: str, units: str | None = None) -> dict[str, bytes]:
    """Return the content of every file that an answer is handed over in, by name."""
    figures = {"path": plot.path(result, units), "gaps": plot.gaps(result, units)}
    images = {name: plot.as_bytes(figure, "svg") for name, figure in figures.items()}
    contents = {
        "result.json": json.dumps(to_json(result, units), indent=2, ensure_ascii=False, allow_nan=False) + "\n",
        "counterfactual.csv": result.to_frame().to_csv(index_label=str(result.target.index.name or "time")),
        "report.html": page(result, images, command=command, units=units),
    }
    return (
        {name: text.encode("utf-8") for name, text in contents.items()}
        | {f"{name}.svg": image for name, image in images.items()}
        | {f"{name}.png": plot.as_bytes(figure, "png") for name, figure in figures.items()}
    )


def to_json(result: Result, units: str | None = None) -> dict[str, Any]:
    """Return a result as plain values, for programs."""
    frame = result.to_frame()
    return {
        "method": result.headline,
        "private": isinstance(result, PrivateResult),
        "guarantee": _guarantee(result),
        "outcome": str(result.target.name),
        "units": units,
        "treatment_time": period(result.treatment_time),
        "periods_before": result.T0,
        "average_effect": _plain(result.att),
        "average_effect_interval": _att_interval(result),
        "level": getattr(result, "level", None),
        "interval_is_for_the_effect": getattr(result, "baselines", None) is not None,
        "periods": [
            {"time": period(time), **{str(name): _plain(value) for name, value in row.items()}}
            for time, row in zip(frame.index, frame.to_dict("records"), strict=True)
        ],
        "notes": list(getattr(result, "notes", ())),
        "placebo_in_time": _placebo(result),
        "parameters": {name: _plain(value) for name, value in getattr(result, "parameters", {}).items()},
        "made_by": f"dpsc {_version()}",
    }


def page(result: Result, images: Mapping[str, bytes], *, command: str, units: str | None) -> str:
    """Return the page for people: question, answer, figures, what was protected and how."""
    guarantee = result.guarantee if isinstance(result, PrivateResult) else None
    frame = result.to_frame()
    return web.render(
        "result.html",
        outcome=str(result.target.name),
        units=units,
        question=(
            f"What would {result.target.name} have been {wording.span(result)} without the intervention at "
            f"{period(result.treatment_time)}?"
        ),
        answer=wording.answer(result, units),
        notes=list(getattr(result, "notes", ())),
        images={name: web.inline_svg(image) for name, image in images.items()},
        columns=list(frame.columns),
        rows=[
            [period(time), *(number(float(v)) for v in row)]
            for time, row in zip(frame.index, frame.to_numpy(), strict=True)
        ],
        effect=signed(result.att),
        interval=_att_interval(result),
        level=wording.percent(getattr(result, "level", 0.95)),
        observed=bool(result.observed.notna().any()),
        private=guarantee is not None,
        reason=_why_not(result),
        guarantee=str(guarantee) if guarantee else "none",
        meaning=wording.meaning(guarantee) if guarantee else [],
        two_step=isinstance(result, PrivateResult | UnprovenResult) and result.baselines is None,
        baselines=_baselines(result),
        placebo=_placebo(result),
        parameters={
            name: number(v) if isinstance(v, float) else v for name, v in getattr(result, "parameters", {}).items()
        },
        method=result.headline,
        command=command,
        version=_version(),
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        year=datetime.now(UTC).year,
        number=number,
        signed=signed,
    )


def _why_not(result: Result) -> str:
    if isinstance(result, NonPrivateResult):
        return "it was computed from the raw donors"
    return result.reason if isinstance(result, UnprovenResult) else ""


def _guarantee(result: Result) -> dict[str, Any] | None:
    if not isinstance(result, PrivateResult):
        return None
    g = result.guarantee
    return {
        "epsilon": g.epsilon, "delta": g.delta, "adjacency": g.adjacency, "arithmetic": g.arithmetic, "basis": g.basis,
    }  # fmt: skip


def _att_interval(result: Result) -> list[float] | None:
    if isinstance(result, NonPrivateResult) or not math.isfinite(result.att):
        return None
    interval = [float(v) for v in result.att_interval()]
    return interval if all(map(math.isfinite, interval)) else None


def _baselines(result: Result) -> dict[str, float]:
    """Return the average effect that forecasts without donors would have found."""
    if isinstance(result, NonPrivateResult) or result.baselines is None:
        return {}
    if not result.observed.notna().any():
        return {}
    gaps = result.baselines.rsub(result.observed, axis=0)
    return {str(name): float(gaps[name].mean()) for name in gaps}


def _placebo(result: Result) -> dict[str, Any] | None:
    """Pretend that the intervention came earlier, where that is free and there are periods enough."""
    if isinstance(result, NonPrivateResult) or result.backdate is None:
        return None
    try:
        placebo = result.placebo_in_time()
    except ParameterError:
        return None
    low, high = placebo.att_interval()
    if not all(map(math.isfinite, (placebo.att, low, high))):
        return None
    return {
        "treatment_time": period(placebo.treatment_time), "periods": len(placebo.counterfactual),
        "average_effect": float(placebo.att), "average_effect_interval": [float(low), float(high)],
    }  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool) or value is None else str(value)


def _version() -> str:
    from dpsc.version import __version__

    return __version__
