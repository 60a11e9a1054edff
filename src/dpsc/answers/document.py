"""An answer as plain values, for programs: what ``result.json`` holds, and what pages and sheets are made from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from dpsc.answers import paragraph, words
from dpsc.answers.base import Answer
from dpsc.answers.effects import NO_PERCENT, Effect
from dpsc.answers.joint_tests import PreTrend, StudyTrials
from dpsc.answers.placebos import ALSO_ASKED, Placebos, Trials
from dpsc.answers.pooled import Pooled
from dpsc.periods.dates import period_name
from dpsc.privacy.guarantee import Guarantee
from dpsc.version import __version__

Document = dict[str, Any]


def of_result(result: Answer, trials: Trials, units: str | None = None) -> Document:
    """Return one answer, with everything that was tried beside it."""
    return {
        "kind": "result",
        "title": result.title or words.question(result),
        "question": words.question(result),
        "answer": words.answer(result, units),
        "paragraph": paragraph.of_result(result, trials, units),
        "method": result.headline,
        "private": result.private,
        "guarantee": guarantee_json(result.guarantee),
        "no_guarantee": result.reason or None,
        "outcome": str(result.target.name),
        "units": units,
        "treatment_time": period_name(result.treatment_time),
        "periods_before": result.T0,
        "treatment": {
            period_name(time): phase for time, phase in zip(result.observed.index, result.phases, strict=False)
        }
        or None,
        **_stated(result.average),
        "total": _effect(result.total),
        "no_percent": result.no_percent or None,
        "detectable": _plain(result.detectable()),
        **_developed(result, units),
        "level": None if result.interval_kind == "none" else result.level,
        "interval_is_for_the_effect": result.interval_kind == "effect",
        "effects": _rows(result.effects(), "of"),
        "periods": _rows(result.to_frame(), "time"),
        "before": _rows(result.before_frame(), "time"),
        "verdict": None if result.verdict is None else asdict(result.verdict),
        "notes": list(result.notes),
        "baselines": _baselines(result),
        "placebos": {"in_time": _placebos(trials.in_time), "in_space": _placebos(trials.in_space)},
        "donors": [] if trials.donors is None else _rows(trials.donors.table, "donor"),
        "sensitivity": [] if trials.sensitivity is None else _rows(trials.sensitivity.table),
        "dates_tried": _dates(trials.dates(result.treatment_time)),
        "parameters": {name: _plain(value) for name, value in result.parameters.items()},
        "made_by": f"dpsc {__version__}",
    }


def of_study(study: Pooled, trials: StudyTrials, units: str | None = None, others: Sequence[str] = ()) -> Document:
    """Return the answers of several units and their pooled effects."""
    first = next(iter(study.results.values()))
    tried: dict[str, list[str]] = {}
    for name, result in sorted(study.results.items(), key=lambda item: item[1].T0):
        tried.setdefault(period_name(result.treatment_time), []).append(str(name))
    dates = list(tried)
    for date in others:
        if ALSO_ASKED not in tried.setdefault(date, []):
            tried[date].append(ALSO_ASKED)
    effects, verdict = study.effects(), words.study_verdict(study)
    return {
        "kind": "study",
        "title": study.title or words.study_question(study),
        "question": words.study_question(study),
        "answer": words.study_answer(study, units),
        "paragraph": paragraph.of_study(study, trials, units, others),
        "method": first.headline,
        "private": study.private,
        "guarantee": guarantee_json(study.guarantee),
        "no_guarantee": study.reason or None,
        "outcome": str(first.target.name),
        "units": units,
        "treatment_time": dates,
        **_stated(study.average),
        "total": {name: _plain(value) for name, value in effects.loc[["total"]].to_dict("records")[0].items()},
        "no_percent": None if math.isfinite(study.average.percent) else NO_PERCENT,
        **_developed(study, units),
        "level": study.level,
        "interval_is_for_the_effect": first.interval_kind == "effect",
        "verdict": None if verdict is None else asdict(verdict),
        "effects": _rows(effects, "of"),
        "by_unit": _rows(study.by_unit(), "unit"),
        "by_event_time": _rows(study.by_event_time(), "periods_after"),
        "by_calendar_time": _rows(study.by_calendar_time(), "time"),
        "pre_trend": _pre_trend(trials.pre_trend, units),
        "placebos": {"in_time": _placebos(trials.in_time), "in_space": _placebos(trials.in_space)},
        "sensitivity": [] if trials.sensitivity is None else _rows(trials.sensitivity.table),
        "groups": None
        if trials.groups is None
        else {
            "said": trials.groups.sentences(units),
            "p_value": _plain(trials.groups.p_value),
            "effects": _rows(trials.groups.table, "group"),
        },
        "periods": _rows(study.to_frame()),
        "never_treated": [str(name) for name in study.never_treated],
        "notes": list(study.notes),
        "dates_tried": _dates(tried),
        "parameters": {name: _plain(value) for name, value in first.parameters.items() if name in _OF_THE_RELEASE},
        "made_by": f"dpsc {__version__}",
    }


_OF_THE_RELEASE = ("n", "pool", "pool_donors", "sites", "noise_scale", "typical_noise", "until", "phi", "nu", "release")


def guarantee_json(guarantee: Guarantee | None) -> Document | None:
    """Return a guarantee as plain values, without the loss, which is needed only to add it to others."""
    return None if guarantee is None else {k: v for k, v in asdict(guarantee).items() if k != "loss"}


def _stated(average: Effect) -> Document:
    """Return the average effect as people state it."""
    interval = [_plain(average.lower), _plain(average.upper)]
    ends = average.percent_lower, average.percent_upper
    part = dict(zip(("effect", "lower", "upper"), map(_plain, (average.percent, *ends)), strict=True))
    return {
        "average_effect": _plain(average.effect),
        "average_effect_interval": None if None in interval else interval,
        "percent": None if part["effect"] is None else part,
        "p_value": _plain(average.p_value),
    }


def _developed(found: Answer | Pooled, units: str | None) -> Document:
    """Return what was seen after the treatment, whether the effect fades, and what it is worth."""
    prices = found.prices
    worth = (
        None
        if prices is None
        else asdict(prices) | {"words": words.worth(found, units), "rows": _rows(found.worth(), "of")}
    )
    contrasts = {"ended": found.ended, "words": words.developed(found, units), "rows": _rows(found.contrasts(), "of")}
    return {"contrasts": contrasts, "worth": worth}


def _effect(effect: Effect) -> Document:
    return {name: _plain(value) for name, value in effect._asdict().items()}


def _rows(frame: pd.DataFrame, index: str = "") -> list[Document]:
    """Return the rows of a table as plain values; the index, if it has a name here, comes first."""
    return [
        ({index: _plain(label)} if index else {}) | {str(name): _plain(value) for name, value in row.items()}
        for label, row in zip(frame.index, frame.to_dict("records"), strict=True)
    ]


def _baselines(result: Answer) -> dict[str, float]:
    """Return the average effect that forecasts without donors would have found."""
    seen = result.counted > 0
    effects = {str(name): float((result.observed - path)[seen].mean()) for name, path in result.baselines.items()}
    return {name: effect for name, effect in effects.items() if math.isfinite(effect)}


def _pre_trend(test: PreTrend | None, units: str | None) -> Document | None:
    """Return both tests of the periods before the treatment."""
    if test is None:
        return None
    return {
        "said": test.sentences(units),
        "p_value": _plain(test.p_value),
        "average": _effect(test.average),
        "equivalence_p": _plain(test.equivalence_p),
        "bound": _plain(test.bound),
        "smallest_bound": _plain(test.smallest_bound),
        "periods": _rows(test.table, "periods_after"),
    }


def _placebos(placebos: Placebos | None) -> Document | None:
    """Return placebos, and which share of them is at least as large as the real effect."""
    if placebos is None:
        return None
    index = placebos.table.index.name
    named = index is not None or placebos.kind == "time"
    rows = _rows(placebos.table, str(index or "treatment_time").replace(" ", "_") if named else "")
    found = {"count": len(rows), "share_as_large": _plain(placebos.share), "placebos": rows}
    return found | {"rank": placebos.rank, "units": len(rows) + 1} if placebos.of_real_units else found


def _dates(tried: Mapping[str, list[str]]) -> list[Document]:
    return [{"treatment_time": date, "for": reasons} for date, reasons in tried.items()]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, bool | str) or value is None:
        return value
    return int(value) if isinstance(value, int) or hasattr(value, "__index__") else period_name(value)
