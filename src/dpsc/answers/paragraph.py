"""An answer as one paragraph of methods and results for a paper or a report: nothing is left to fill in."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpsc.answers import words
from dpsc.answers.base import Answer
from dpsc.answers.effects import Effect
from dpsc.answers.joint_tests import StudyTrials
from dpsc.answers.placebos import OTHER_POOL, Trials
from dpsc.answers.pooled import Pooled
from dpsc.answers.words import sentence
from dpsc.periods.dates import period_name
from dpsc.privacy.guarantee import REPLACE_PERSON, Guarantee, mark_of, rests_on_its_publisher
from dpsc.version import __version__

_SYNTHETIC_CONTROL = (
    "Synthetic control: Abadie, Diamond and Hainmueller, Journal of the American Statistical Association 105 (2010), "
    "493-505"
)
_FECT = "Equivalence test: Liu, Wang and Xu, American Journal of Political Science 68 (2024), 160-176"
_PRIVATE = "differentially private synthetic control: Rho, Cummings and Misra, AISTATS 2023"


def of_result(result: Answer, trials: Trials, units: str | None = None) -> str:
    """Write what was asked, how it was answered, what protects the donors, what was found, and what was tried."""
    when = period_name(result.treatment_time)
    said = [
        f"We estimated what {words.outcome(result)} would have been without the intervention at {when}.",
        _donors(result, f", {result.T0} of them before the intervention"),
        *protection(result.guarantee, result.reason),
    ]
    verdict = [] if result.verdict is None else [sentence(result.verdict.reason)]
    first = result.verdict is not None and result.verdict.comes_first
    said += [*(verdict * first), *words.answer(result, units), *_chances(result.average, result)]
    said += [*words.developed(result, units), *words.worth(result, units)]
    if result.interval_kind == "effect" and (seen := words.could_be_seen(result.detectable(), units)):
        said.append(seen)
    said += [*(verdict * (not first)), *_tried(trials), *_asked_before(trials.others, [when]), *_notes(result)]
    return " ".join([*said, *_citation(result)])


def of_study(study: Pooled, trials: StudyTrials, units: str | None = None, others: Sequence[str] = ()) -> str:
    """Write the same of several units together."""
    results = list(study.results.values())
    first, count = results[0], len(results)
    dates = [period_name(result.treatment_time) for result in sorted(results, key=lambda result: result.T0)]
    start, end = dates[0], dates[-1]
    when = f"at {start}" if start == end else f"that reached each at its own time, from {start} to {end}"
    who = "one treated unit" if count == 1 else f"{count} treated units"
    said = [
        f"We estimated what {words.outcome(first)} would have been in {who} without the intervention {when}.",
        _donors(first),
        *protection(study.guarantee, study.reason),
        *words.study_answer(study, units),
        *_chances(study.average, first),
    ]
    said += [*words.developed(study, units), *words.worth(study, units)]
    verdict = words.study_verdict(study)
    if verdict is not None:
        said += [sentence(verdict.headline), sentence(verdict.reason)]
    if trials.pre_trend is not None:
        said += trials.pre_trend.sentences(units)
    said += [*_tried(trials), *([] if trials.groups is None else trials.groups.sentences(units))]
    said += [*_asked_before(others, dates), *_notes(study)]
    fect = [] if trials.pre_trend is None else [f"{_FECT}."]
    return " ".join([*said, *_citation(first), *fect])


def _donors(result: Answer, more: str = "") -> str:
    index, n = result.target.index, int(result.parameters.get("n", len(result.weights)))
    first, last = period_name(index[0]), period_name(index[-1])
    periods = f"{len(index)} periods, from {first} to {last}{more}"
    donors = f"{n:,} donors"
    if "pool" in result.parameters and result.parameters["pool_donors"] != n:
        about = f"{result.parameters['pool_donors']:,.0f}"
        donors = f"the donors of {result.parameters['pool']}, about {about} of {n:,},"
    return f"The comparison is a synthetic control from {donors} over {periods}."


def protection(guarantee: Guarantee | None, reason: str) -> list[str]:
    """Say what protects the records, or that nothing does."""
    if guarantee is None and rests_on_its_publisher(reason):
        return [f"The estimate uses a table that others protected, and dpsc adds no guarantee of its own: {reason}."]
    if guarantee is None:
        return [f"The estimate carries no privacy guarantee, it is {mark_of(reason)}: {reason}."]
    who, whose = ("person", "people's") if guarantee.adjacency == REPLACE_PERSON else ("donor", "the donors'")
    factor = words.factor(guarantee.epsilon)
    at_worst = f"telling everything with a probability of {guarantee.delta:g}, while this factor holds otherwise"
    fails = f"; delta is at worst as bad as {at_worst}" if guarantee.delta > 0 else ""
    return [
        f"The estimate uses {whose} records only through a release with differential privacy, epsilon = "
        f"{guarantee.epsilon:g} and delta = {guarantee.delta:g}.",
        f"If the whole record of one {who} were replaced by any other, the odds of any conclusion would change by a "
        f"factor of at most {factor}{fails}.",
    ]


def _chances(average: Effect, result: Answer) -> list[str]:
    """Say the p-value, and what the interval holds."""
    if not math.isfinite(average.p_value):
        return []
    p, noise = words.p_is(average.p_value), "privacy noise" if result.private else "noise"
    return [
        words.no_effect_chance(average),
        f"This p-value ({p}) and the interval account for how well donors follow a target and for the {noise}.",
    ]


def _tried(trials: Trials | StudyTrials) -> list[str]:
    """Say what placebos and other choices gave."""
    checks = [str(each) for each in (trials.in_time, trials.in_space) if each is not None and math.isfinite(each.share)]
    said = [sentence(f"in placebo tests, {' and '.join(checks)}")] if checks else []
    if trials.sensitivity is not None:
        table = trials.sensitivity.table
        pools = table[table["choice"].str.startswith(OTHER_POOL)].dropna(subset="effect")
        if len(pools):
            low, high = words.column([pools["effect"].min(), pools["effect"].max()], sign=True)
            many = "the other pool of donors" if len(pools) == 1 else f"the {len(pools)} other pools of donors"
            effect = f"is {low}" if len(pools) == 1 else f"is from {low} to {high}"
            helped = int((pools["donors_help"] == "yes").sum())
            said.append(
                f"From {many} that are large enough for the noise, the average effect {effect}; they track the target "
                f"in {helped} of {len(pools)}."
            )
        effects = table["effect"][table["choice"].str.startswith("dated")].dropna()
        if len(effects):
            low, high = words.column([effects.min(), effects.max()], sign=True)
            many = f"1 to {len(effects)} periods" if len(effects) > 1 else "1 period"
            said.append(f"Dating the intervention {many} earlier gives average effects from {low} to {high}.")
    if isinstance(trials, Trials) and trials.donors is not None:
        said.append(sentence(str(trials.donors)))
    return said


def _asked_before(tried: Sequence[str], settled: Sequence[str]) -> list[str]:
    others = [date for date in dict.fromkeys(tried) if date not in settled]
    return [f"We also asked about other dates before settling: {', '.join(others)}."] if others else []


def _notes(answer: Answer | Pooled) -> list[str]:
    verdicts = [answer.verdict] if isinstance(answer, Answer) else []
    return [sentence(note) for note in answer.notes if all(v is None or v.reason != note for v in verdicts)]


def _citation(result: Answer) -> list[str]:
    release = f"; release {result.parameters['release']}" if "release" in result.parameters else ""
    promise = f"; {result.guarantee}" if result.private else ""
    cited = (
        _SYNTHETIC_CONTROL if result.algorithm.startswith("synthetic control") else f"{_SYNTHETIC_CONTROL}; {_PRIVATE}"
    )
    return [f"Computed with dpsc {__version__} ({result.algorithm}{release}{promise}).", f"{cited}."]
