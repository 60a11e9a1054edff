"""A result as files: the table, the numbers, the figures and a page to share. Knows no mechanism and no donor."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from dpsc import files
from dpsc.answers import plot, web, words
from dpsc.answers.result import Result
from dpsc.answers.words import number, signed
from dpsc.data.dates import period_name
from dpsc.privacy.guarantee import Guarantee
from dpsc.version import __version__


def report(result: Result, folder: str | Path, *, units: str | None = None, command: str = "") -> Path:
    """Write an answer as files: a page for people, the figures, the table, and the numbers for programs.

    Parameters
    ----------
    result : PrivateResult, UnprovenResult or NonPrivateResult
    folder : path
        Created if it does not exist. Files of an earlier report are replaced, each completely or not at all.
    units : str, optional
        The outcome's units.
    command : str, optional
        The command that gives this answer again; the page shows it.

    Returns
    -------
    Path
        The page, ``report.html``. Beside it: ``path`` and ``gaps`` (``.svg``, ``.png``), ``counterfactual.csv``,
        ``result.json``.

    Examples
    --------
    >>> import tempfile, numpy as np, dpsc
    >>> donors = np.cumsum(np.random.default_rng(0).normal(size=(500, 12)), axis=1)
    >>> result = dpsc.GramRelease(epsilon=1.0, delta=1e-6).release(donors[1:]).estimate(donors[0], treatment_time=9)
    >>> dpsc.report(result, tempfile.mkdtemp(), units="euros").name
    'report.html'
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in result_files(result, command=command, units=units).items():
        files.write(folder / name, content)
    return folder / "report.html"


def result_files(result: Result, *, command: str = "", units: str | None = None) -> dict[str, bytes]:
    """Return the content of every file of a report, by name."""
    figures = {kind: plot.figure_of(plot.draw(result, kind, units=units)) for kind in ("path", "gaps")}
    images = {name: plot.as_bytes(figure, "svg") for name, figure in figures.items()}
    document = to_json(result, units)
    contents = {
        "result.json": json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n",
        "counterfactual.csv": _csv(result),
        "report.html": _page(result, document, images, command),
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
        "private": result.private,
        "guarantee": guarantee_json(result.guarantee),
        "outcome": str(result.target.name),
        "units": units,
        "treatment_time": period_name(result.treatment_time),
        "periods_before": result.T0,
        "average_effect": _plain(result.att),
        "average_effect_interval": _att_interval(result),
        "level": None if result.interval_kind == "none" else result.level,
        "interval_is_for_the_effect": result.interval_kind == "effect",
        "periods": [
            {"time": period_name(time), **{str(name): _plain(value) for name, value in row.items()}}
            for time, row in zip(frame.index, frame.to_dict("records"), strict=True)
        ],
        "verdict": None if result.verdict is None else asdict(result.verdict),
        "notes": list(result.notes),
        "placebo_in_time": _placebo(result),
        "parameters": {name: _plain(value) for name, value in result.parameters.items()},
        "made_by": f"dpsc {__version__}",
    }


def guarantee_json(guarantee: Guarantee | None) -> dict[str, Any] | None:
    """Return a guarantee as plain values, without the loss, which is needed only to add it to others."""
    return None if guarantee is None else {k: v for k, v in asdict(guarantee).items() if k != "loss"}


def _csv(result: Result) -> str:
    """Return the table; its periods may be labels from somebody else's release."""
    frame = result.to_frame()
    if not pd.api.types.is_numeric_dtype(frame.index):
        frame.index = pd.Index([files.harmless(period_name(label)) for label in frame.index])
    return frame.to_csv(index_label=files.harmless(str(result.target.index.name or "time")))


def _page(result: Result, document: Mapping[str, Any], images: Mapping[str, bytes], command: str) -> str:
    """Return the page for people: question, answer, figures, what was protected and how."""
    frame, units = result.to_frame(), document["units"]
    today = datetime.now(UTC)
    return web.render(
        "result.html",
        result=result,
        outcome=document["outcome"],
        units=units,
        question=(
            f"What would {result.target.name} have been {words.span(result)} without the intervention at "
            f"{period_name(result.treatment_time)}?"
        ),
        answer=words.answer(result, units),
        words=words,
        images={name: web.inline_svg(image) for name, image in images.items()},
        columns=list(frame.columns),
        rows=[
            [period_name(time), *(number(float(v)) for v in row)]
            for time, row in zip(frame.index, frame.to_numpy(), strict=True)
        ],
        effect=signed(result.att),
        interval=document["average_effect_interval"],
        level=words.percent(result.level),
        observed=bool(result.observed.notna().any()),
        baselines=_baselines(result),
        placebo=document["placebo_in_time"],
        command=command,
        version=__version__,
        date=today.strftime("%Y-%m-%d"),
        year=today.year,
    )


def _att_interval(result: Result) -> list[float] | None:
    interval = [float(v) for v in result.att_interval()]
    return interval if all(map(math.isfinite, interval)) else None


def _baselines(result: Result) -> dict[str, float]:
    """Return the average effect that forecasts without donors would have found."""
    effects = {str(name): float((result.observed - path).mean()) for name, path in result.baselines.items()}
    return {name: effect for name, effect in effects.items() if math.isfinite(effect)}


def _placebo(result: Result) -> dict[str, Any] | None:
    """Return a placebo in time, if it is free and there are enough periods."""
    if not result.repeats.available:
        return None
    placebo = result.placebo_in_time()
    interval = _att_interval(placebo)
    if interval is None:
        return None
    return {
        "treatment_time": period_name(placebo.treatment_time), "periods": len(placebo.counterfactual),
        "average_effect": placebo.att, "average_effect_interval": interval,
    }  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool) or value is None else str(value)
