"""An answer in plain words: what was found, what its guarantee means for the donors, what each parameter is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from dpsc.answers.base import Answer, Verdict
from dpsc.answers.effects import AFTER, ON_MINUS_AFTER, Effect
from dpsc.answers.pooled import Pooled
from dpsc.periods.dates import period_name
from dpsc.periods.match import listed
from dpsc.periods.treatment import OFF, ON
from dpsc.privacy.guarantee import REPLACE_PERSON, Guarantee, best_guess
from dpsc.types import Times

_CLEAR = 3.0  # a log Bayes factor beyond which the time before the intervention speaks for or against the donors
_FAR = 7.0  # one beyond which it speaks strongly, by a factor of 1,000


def number(value: float) -> str:
    """Write a number with four significant digits and commas between thousands.

    Examples
    --------
    >>> number(1234567.0), number(0.012346), number(-3.0)
    ('1,235,000', '0.01235', '-3')
    """
    if not math.isfinite(value):
        return "–"
    if value == 0 or abs(value) < 1e-4 or abs(value) >= 1e9:
        return f"{value:.4g}"
    rounded = float(f"{value:.4g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 1000 else f"{rounded:.10g}"


def likely(low: float, value: float, high: float) -> str:
    """Write a range and what is likely in it, with two digits.

    Examples
    --------
    >>> likely(4.12, 6.03, 9.4)
    '4.1 to 9.4, likely 6'
    """
    least, about, most = (number(float(f"{each:.2g}")) for each in (low, value, high))
    return f"{least} to {most}, likely {about}"


def signed(value: float) -> str:
    """Write a difference with its sign."""
    return ("+" if value > 0 else "") + number(value)


def after(units: str | None) -> str:
    """Return what follows a number: its units.

    Examples
    --------
    >>> after("EUR"), after("1000 EUR"), after(None)
    (' EUR', ' × 1000 EUR', '')
    """
    return f"{' ×' if units[0].isdigit() else ''} {units}" if units else ""


def column(
    values: Iterable[float | None],
    *,
    sign: bool = False,
    like: Sequence[float | None] = (),
    decimals: int | None = None,
) -> list[str]:
    """Write numbers that stand below each other with the same number of decimals; what is missing becomes a dash.

    The largest keeps four digits, so that the others line up with it. Numbers in ``like`` count too: columns that are
    read together, such as an effect and its interval, have as many decimals as each other. Or say how many.

    Examples
    --------
    >>> column([1.25, 10.0, None, -0.333333])
    ['1.25', '10.00', '–', '-0.33']
    >>> column([1234.5, 2.0], sign=True)
    ['+1,234', '+2']
    >>> column([3.0, 1.0]), column([3.0, 45.0], decimals=2)
    (['3', '1'], ['3.00', '45.00'])
    """
    numbers = [math.nan if value is None else float(value) for value in values]
    known = [abs(v) for v in (*numbers, *(math.nan if v is None else float(v) for v in like)) if math.isfinite(v)]
    largest = max(known, default=0.0)
    if largest >= 1e9 or 0 < largest < 1e-4:
        return [f"{v:{'+' if sign else ''}.3e}" if math.isfinite(v) else "–" for v in numbers]
    if decimals is None:
        decimals = decimals_of(largest)
        while decimals and all(round(v, 6) == round(v, decimals - 1) for v in numbers if math.isfinite(v)):
            decimals -= 1  # nobody needs the zeros of whole numbers
    return [_fixed(value, decimals, sign) for value in numbers]


def decimals_of(value: float) -> int:
    """Return how many decimals leave a number four digits.

    Examples
    --------
    >>> decimals_of(1234.5), decimals_of(12.345), decimals_of(0.0)
    (0, 2, 0)
    """
    return min(6, max(0, 3 - math.floor(math.log10(abs(value))))) if value else 0


def _fixed(value: float, decimals: int, sign: bool) -> str:
    if not math.isfinite(value):
        return "–"
    text = f"{value:+,.{decimals}f}" if sign else f"{value:,.{decimals}f}"
    return text if text.strip("+-0.,") else text.lstrip("+-")


def p_text(p: float | None) -> str:
    """Write a p-value with two digits, and a small one as below a thousandth.

    Examples
    --------
    >>> p_text(0.0304), p_text(0.25), p_text(1e-7), p_text(None)
    ('0.030', '0.25', '< 0.001', '–')
    """
    if p is None or not math.isfinite(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def p_is(p: float) -> str:
    """Write a p-value inside a sentence.

    Examples
    --------
    >>> p_is(0.25), p_is(1e-7)
    ('p = 0.25', 'p < 0.001')
    """
    text = p_text(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def chance(p: float) -> str:
    """Say how often something happens, in words.

    Examples
    --------
    >>> chance(0.0304), chance(1e-9), chance(0.9)
    ('about 3 times in 100', 'less than once in 1,000 times', 'about 90 times in 100')
    """
    if p < 0.001:
        return "less than once in 1,000 times"
    if p < 0.01:
        return f"about {_times(round(1000 * p))} in 1,000"
    return f"about {_times(round(100 * p))} in 100"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def share(part: float, of: int) -> str:
    """Say how many of so many.

    Examples
    --------
    >>> share(0.0, 12), share(0.25, 12), share(1.0, 12)
    ('none of 12', '3 of 12', 'all 12')
    """
    count = round(part * of)
    return f"none of {of}" if count == 0 else f"all {of}" if count == of > 1 else f"{count} of {of}"


def no_effect_chance(effect: Effect) -> str:
    """Say what a p-value means; empty if there is none."""
    if not math.isfinite(effect.p_value):
        return ""
    return f"If there were no effect, one at least this far from zero would be seen {chance(effect.p_value)}."


def could_be_seen(detectable: float | None, units: str | None = None) -> str:
    """Say which effect would have been seen; empty if it is not known."""
    if detectable is None or not math.isfinite(detectable):
        return ""
    size = f"{number(detectable)}{after(units)}"
    return (
        f"An average effect of {size} or more, up or down, would have had a p-value below 0.05 four times out of five."
    )


def outcome(result: Answer) -> str:
    """Name the outcome, as a part of a sentence."""
    return "the outcome" if result.target.name in (None, "outcome") else str(result.target.name)


def in_units(what: str, units: str | None) -> str:
    """Name what is measured and its units, once.

    Examples
    --------
    >>> in_units("costs", "€"), in_units("Kosten (€)", "€"), in_units("effect on orders", "orders")
    ('costs (€)', 'Kosten (€)', 'effect on orders')
    """
    said = not units or f" {what.strip().casefold()}".endswith(
        tuple(form.format(units.casefold()) for form in ("({})", "[{}]", " {}"))
    )
    return what if said else f"{what} ({units})"


def question(result: Answer) -> str:
    """Ask the usual question."""
    begun = period_name(result.treatment_time)
    when = "" if begun in span(result) else f" at {begun}"
    return f"What would {outcome(result)} have been {span(result)} without the intervention{when}?"


def parameter_text(value: Any) -> str:
    """Write a parameter: a float with :func:`number`, anything else as it is."""
    return number(value) if isinstance(value, float) else str(value)


def answer(result: Answer, units: str | None = None) -> list[str]:
    """Answer the question in two sentences; the verdict says whether the donors help."""
    seen = result.counted > 0
    what, unit = outcome(result), after(units)
    if not seen.any():
        path = f"an average of {number(float(result.counterfactual[result.is_on > 0].mean()))}{unit}"
        return [
            *treatment(result),
            f"Without the intervention we would expect {path} of {what} {span(result)}.",
            "The target was not observed in that time, so there is no effect to report.",
        ]
    actual, without = result.observed[seen].mean(), result.counterfactual[seen].mean()
    first = (
        f"Without the intervention, {what} would have averaged about {number(float(without))}{unit} {span(result)}; "
        f"it was {number(float(actual))}."
    )
    return [*treatment(result), first, _second(result, unit)]


def _second(result: Answer, unit: str) -> str:
    part = result.average.percent if result.interval_kind == "effect" else math.nan
    share_of = _in_percent(part)
    low, high = result.att_interval()
    middle, written_low, written_high = column([result.att, low, high], sign=True)
    effect = f"The difference is {middle}{unit}{share_of}"
    if result.interval_kind == "none":
        return f"{effect}, NOT PRIVATE and without an interval."
    level = percent(result.level)
    if result.interval_kind == "projection noise":
        return (
            f"{effect}. The noise of the last step alone moves it by up to {number((high - low) / 2)}{unit} ({level}); "
            "how well the noisy weights fit is not known, so this is not an interval for the effect."
        )
    where = f"with a {level} interval from {written_low} to {written_high}{unit}"
    return f"{effect}, {where}{_seen(low, high, result.level)}."


def _seen(low: float, high: float, level: float) -> str:
    """Say what an interval for an effect shows; those of a low level show little."""
    if low <= 0 <= high:
        return ": the data are also compatible with no effect at all"
    if level < 0.9:
        return ""
    return f": {'an increase' if low > 0 else 'a decrease'} that chance and privacy noise alone would rarely produce"


def _in_percent(part: float) -> str:
    return f" ({_fixed(part, 1 if abs(part) < 100 else 0, True)}%)" if math.isfinite(part) else ""


def verdict(log_bayes_factor: float, doubt: str = "") -> Verdict:
    """Say whether the donors explain the target's past better than its own past does; a doubt comes first."""
    if doubt:
        return Verdict("unclear", "check the units before you read on", doubt, check_first=True)
    how = "far" if abs(log_bayes_factor) > _FAR else "clearly"
    if log_bayes_factor > _CLEAR:
        return Verdict(
            "yes",
            "the donors track this target",
            f"before the intervention, the donors explain the target's path {how} better than its own past does. "
            "How sure the effect is, its interval says.",
        )
    if log_bayes_factor < -_CLEAR:
        return Verdict(
            "no",
            "the donors do not track this target",
            f"before the intervention, the target's own past explains its path {how} better than the donors do. If "
            "nothing new hit everybody after the intervention, a forecast from the target's own past (its last value, "
            "a line) is as good; if something did, the target's own past cannot show it, and the donors may.",
        )
    return Verdict(
        "unclear",
        "the time before the intervention cannot tell",
        "before the intervention, the donors explain the target's path about as well as its own past does.",
    )


def donors_help(verdict: Verdict) -> str:
    """Answer whether the donors help, in one line.

    Examples
    --------
    >>> donors_help(Verdict("yes", "the donors track this target", "because."))
    'Do the donors help? Yes: the donors track this target.'
    """
    return f"Do the donors help? {verdict.grade.capitalize()}: {verdict.headline}."


def three_numbers(
    average: Effect, total: Mapping[str, Any], units: str | None, level: float | None
) -> list[tuple[str, str, str]]:
    """Return what a board reads, as label, number and what stands below it; what is not known is left out."""
    unit, found = after(units), []
    for label, one in (("average effect per period", average._asdict()), ("total effect", total)):
        values = [math.nan if one[name] is None else one[name] for name in ("effect", "lower", "upper")]
        if not math.isfinite(values[0]):
            continue
        middle, low, high = column(values, sign=True)
        share = average.percent if one is not total else math.nan
        below = [f"{_fixed(share, 1, True)}%"] if math.isfinite(share) else []
        if level is not None and math.isfinite(values[1]):
            below.append(f"{percent(level)} interval {low} to {high}")
        found.append((label, f"{middle}{unit}", "; ".join(below)))
    if math.isfinite(average.p_value):
        found.append(("p-value", p_text(average.p_value), no_effect_chance(average)))
    return found


def sentence(text: str) -> str:
    """Write a text with a capital letter at its beginning and a full stop at its end."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?")) else ".")


def span(result: Answer) -> str:
    """Name the treated periods that count, and how many of them were observed if not all were."""
    index, is_on, counted = result.counterfactual.index, result.is_on > 0, result.counted > 0
    last = np.flatnonzero(counted if counted.any() else is_on)[-1]  # what comes after is in no number
    on, seen = int(is_on[: last + 1].sum()), int(counted.sum())
    gaps = "" if seen in (0, on) else f" ({seen} of {on} periods observed)"
    return _from_to(index[np.flatnonzero(is_on)[0] : last + 1]) + gaps


def _from_to(index: Times) -> str:
    first, last = period_name(index[0]), period_name(index[-1])
    return f"in {first}" if len(index) == 1 else f"from {first} to {last}"


def treatment(result: Answer) -> list[str]:
    """Say when the treatment was on, if it ended, and which periods are left out."""
    said = []
    if result.ended:
        index, on = result.counterfactual.index, np.array([phase != OFF for phase in result.phases])
        turns = [0, *np.flatnonzero(np.diff(on)) + 1, len(index)]
        spells = [_from_to(index[a:b]) for a, b in pairwise(turns) if on[a]]
        when = f"The last treated period is {period_name(index[on][-1])}."
        said.append(when if len(spells) == 1 else f"The treatment was on {listed(spells)}.")
    if len(left := result.left_out):
        names, are = listed([period_name(time) for time in left]), "is" if len(left) == 1 else "are"
        said.append(f"{names} {are} left out: neither fitted nor in the effect.")
    return said


def developed(found: Answer | Pooled, units: str | None = None) -> list[str]:
    """Say what was seen after a treatment that ended, whether this differs, and whether the effect fades."""
    if not found.ended:
        return []
    rows, whole = found.contrasts(), found.average
    unit, level, kind = after(units), percent(found.level), found.interval_kind
    parts = list(found.results.values()) if isinstance(found, Pooled) else [found]
    of_whom = "" if all(part.ended for part in parts) else "in the units whose treatment ended, "
    again = any(ON in part.phases[part.phases.index(OFF) :] for part in parts if part.ended)
    where, said = "in the periods without treatment" if again else "after the treatment", []
    for name, row in rows.iterrows():
        size, low, high = column([row["effect"], row["lower"], row["upper"]], sign=True)
        size += unit + (f" ({level} interval from {low} to {high})" if kind == "effect" else "")
        clear = kind == "effect" and not row["lower"] <= 0 <= row["upper"]
        if name == AFTER:
            verdict = ": an effect remains" if clear else ": the data are also compatible with no effect"
            verdict = verdict if kind == "effect" else ""
            said.append(sentence(f"{where} the difference is {size}{verdict}"))
        elif name == ON_MINUS_AFTER:
            smaller = "smaller" if not clear or abs(rows["effect"][AFTER]) < abs(whole.effect) else "larger"
            begin = f"the effect is {smaller} {where}"
            begin = begin if clear else f"it cannot be said whether {begin}"
            said.append(sentence(f"{begin}: {of_whom}the effect while treated minus that {where} is {size}"))
        else:
            early = whole.effect - row["effect"] / 2
            begin = f"while treated the effect {'fades' if abs(early + row['effect']) < abs(early) else 'grows'}"
            begin = begin if clear else "it cannot be said whether the effect fades while treated"
            halves = "the effect in the second half of the treated periods minus that in the first"
            said.append(sentence(f"{begin}: {halves} is {size}"))
    return said


def worth(found: Answer | Pooled, units: str | None = None) -> list[str]:
    """Say what the total effect is worth and how this was computed; nothing if no value was stated."""
    if found.prices is None:
        return []
    prices, level = found.prices, percent(found.level)
    rows = {str(name): tuple(map(float, row)) for name, *row in found.worth().itertuples()}
    money = f" {prices.currency}" if prices.currency else ""
    if not math.isfinite(rows["value"][0]):
        return ["There is no effect, so that its value is not known."]

    def said(name: str, unit: str) -> str:
        size, low, high = column(rows[name])
        interval = f" ({level} interval from {low} to {high})" if found.interval_kind == "effect" else ""
        return f"{size}{unit}{interval}"

    parts = found.results.values() if isinstance(found, Pooled) else [found]
    many = {part.stands_for for part in parts}
    times = "" if many == {1} else " times how many units the target averages"
    times = f" times the {many.pop():,} units that the target averages" if len(many) == 1 and many != {1} else times
    if times == "" and isinstance(found, Pooled) and found.weights.nunique() > 1:
        times = " of each unit once, whatever its weight"
    total = said("total effect", after(units))
    sentences = [
        f"The total effect, the sum over the treated periods{times}, is {total}. "
        f"At {number(prices.value_per_unit)}{money} for each unit of the outcome it is worth {said('value', money)}."
    ]
    if "return" in rows:
        _, low, high = rows["return"]
        paid = "more than it cost" if low > 1 else "less than it cost"
        verdict = f"It was worth {paid}" if not low <= 1 <= high else "It cannot be said whether it was worth its cost"
        verdict = f" {verdict}." if found.interval_kind == "effect" else ""
        each, cost = prices.currency or "unit of money", number(prices.cost or 0.0)
        sentences.append(
            f"The intervention cost {cost}{money}: {said('value minus cost', money)} are left after the cost, and each "
            f"{each} spent brought {said('return', money)}.{verdict}"
        )
    return sentences


def percent(level: float) -> str:
    """Write a level in percent, without rounding it up to 100%.

    Examples
    --------
    >>> percent(0.95), percent(0.9999)
    ('95%', '99.99%')
    """
    return f"{100 * level:.10g}%"


def factor(epsilon: float) -> str:
    """Write by how much an epsilon lets odds change.

    Examples
    --------
    >>> factor(1.0), factor(5000.0)
    ('2.718', 'e^5000')
    """
    return number(math.exp(epsilon)) if epsilon <= 700 else f"e^{epsilon:g}"


def meaning(guarantee: Guarantee) -> list[str]:
    """Say what a guarantee means for whoever it protects: a donor, or a person inside the donors."""
    who, them = ("person", "people") if guarantee.adjacency == REPLACE_PERSON else ("donor", "donors")
    guess = best_guess(guarantee.epsilon, guarantee.delta)
    sentences = [
        f"Epsilon is {guarantee.epsilon:g}. Take any {who} and anything that someone might want to learn about them. "
        f"If the {who}'s whole record is replaced by any other, the odds of any conclusion drawn from what was "
        f"published change by a factor of at most {factor(guarantee.epsilon)}.",
        f"In other words: suppose that someone knows everything about all other {them} and must guess which of two "
        f"equally likely records a {who} has. This guess is right at most {guess:.1%} of the time; a blind guess is "
        "right 50% of the time.",
    ]
    if guarantee.delta > 0:
        sentences.append(
            f"Delta is at worst as bad as telling everything with a probability of {guarantee.delta:g}, while the "
            "factor holds otherwise."
        )
    sentences.append(
        "The guarantee holds whatever else is known or will become known. It covers only this publication: if "
        f"there are others from the same {them}, their losses add up."
    )
    if guarantee.arithmetic == "float":
        sentences.append("It was computed in floating point, whose last digits may leak more than the proof says.")
    return sentences


def study_question(study: Pooled) -> str:
    """Ask the usual question about several units."""
    first = next(iter(study.results.values()))
    dates, count = {result.T0 for result in study.results.values()}, len(study.results)
    when = f"at {period_name(first.treatment_time)}" if len(dates) == 1 else "that reached each at its own time"
    who = "the treated unit" if count == 1 else f"{count} treated units"
    return f"What would {outcome(first)} have been in {who} without the intervention {when}?"


def study_answer(study: Pooled, units: str | None = None) -> list[str]:
    """Answer the question about several units: the pooled effect, its interval, its chance."""
    unit, average, level = after(units), study.average, percent(study.level)
    results = list(study.results.values())
    ends, left = sum(result.ended for result in results), sum(len(result.left_out) for result in results)
    sentences = []
    if ends:
        who = f"all {len(results)}" if ends == len(results) else f"{ends} of {len(results)}"
        sentences.append(f"The treatment ended in {who} units; the effect is that of the treated periods.")
    if left:
        one = "unit-period is" if left == 1 else "unit-periods are"
        sentences.append(f"{left} treated {one} left out: neither fitted nor in the effect.")
    if not math.isfinite(average.effect):
        return [*sentences, "No unit was observed after its intervention, so there is no effect to report."]
    share_of = _in_percent(average.percent)
    low, high = average.lower, average.upper
    middle, written_low, written_high = column([average.effect, low, high], sign=True)
    return [
        *sentences,
        f"On average over the treated units and periods, {outcome(results[0])} differs by {middle}{unit}{share_of} "
        f"from what it would have been without the intervention, with a {level} interval from {written_low} to "
        f"{written_high}{unit}{_seen(low, high, study.level)}.",
    ]


def study_verdict(study: Pooled) -> Verdict | None:
    """Say for how many units the donors help, and for which they do not; None if it is not known."""
    found = {str(name): result.verdict for name, result in study.results.items() if result.verdict is not None}
    if not found:
        return None
    of_grade = {
        grade: [name for name, each in found.items() if each.grade == grade and not each.check_first]
        for grade in ("yes", "unclear", "no")
    }
    to_check = [name for name, each in found.items() if each.check_first]
    count, many = len(found), {grade: len(names) for grade, names in of_grade.items()}
    reasons = [f"Check the units of measurement first: {_listed(to_check)}."] if to_check else []
    if many["yes"] or many["no"]:
        of_all = f"all {count}" if many["yes"] == count else f"{many['yes'] or 'none'} of {count}"
        units = "the treated unit" if count == 1 else f"{of_all} treated units"
        headline = f"the donors {'do not track' if count == many['no'] == 1 else 'track'} {units}"
        if of_grade["unclear"]:
            reasons.append(f"The time before the intervention cannot tell: {_listed(of_grade['unclear'])}.")
    else:
        headline = "check the units before you read on" if to_check else "the time before the intervention cannot tell"
        if of_grade["unclear"]:
            paths = f"Donors explain it about as well as the unit's own past: {_listed(of_grade['unclear'])}."
            reasons.append(paths)
    if of_grade["no"]:
        reasons.append(f"Compare with forecasts from their own past: {_listed(of_grade['no'])}.")
    return Verdict(
        "yes" if many["yes"] * 2 > count else "no" if many["no"] * 2 > count else "unclear",
        headline,
        " ".join(reasons) or "they explain the time before the intervention better than the units' own past does.",
        check_first=bool(to_check),
    )


def _listed(names: Sequence[str], most: int = 6) -> str:
    """Name units, or count them if they are many."""
    return ", ".join(names) if len(names) <= most else f"{len(names)} units"


_WORDS = {
    "n": "number of donors",
    "pool": "segments of donors that answer",
    "pool_donors": "about how many donors these segments have",
    "T0": "periods before the intervention",
    "h": "periods from the intervention on",
    "typical_noise": "standard deviation of the noise on a donor's usual cell",
    "own_noise": "standard deviation of the noise on the target's cells, on average",
    "until": "last period of the panel",
    "averages": "how many units the target is the average of, as said by whoever asked",
    "sites": "releases that were added up",
    "release": "name of the release, a random number",
    "noise_scale": "standard deviation of the noise on a sum of squares over donors, to which each adds at most 1",
    "phi": "how much of a period's deviation is expected to last to the next (1: all of it)",
    "nu": "share of a donor's movement that is expected to last one period only",
    "common_directions": "patterns that many donors share and that are larger than the noise",
    "log_bayes_factor": "evidence that the donors track the target (logarithm of the Bayes factor; above 3 is clear)",
    "lambda_": "ridge penalty of the weights, on data in [-1, 1]",
    "row_norm": "largest length that a donor's row may have",
    "epsilon": "privacy budget (epsilon)",
    "epsilon1": "privacy budget of the weights (epsilon 1)",
    "epsilon2": "privacy budget of the answer (epsilon 2)",
    "delta": "probability that epsilon leaves uncovered (delta)",
    "split": "share of the budget spent on the weights",
    "weights_ball": "the weights are kept within",
    "noise": "law of the noise",
    "weight_scale": "size of the noise on each weight",
    "answer_scale": "size of the noise on each period of the answer",
    "a": "size of the noise on the weights (the paper's a)",
    "b": "size of the noise on the answer (the paper's b)",
    "c": "how curved the objective can be (the paper's c)",
    "epsilon0": "privacy budget left for the noise in the objective (the paper's epsilon 0)",
    "Delta": "quadratic term that was added to the objective (the paper's Delta)",
    "beta": "rate of the noise in the objective (the paper's beta)",
    "solver_scale": "size of the noise that covers the solver's error",
}
_OF_AN_OBJECTIVE = {"nu": "quadratic term that was added to the objective"}


def in_words(parameters: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what each parameter means, and its value as text.

    Examples
    --------
    >>> in_words({"n": 1200, "common_directions": 2, "new_one": 0.123456})
    [('number of donors', '1,200'), ('patterns that many donors share and that are larger than the noise', '2'),
     ('new one', '0.1235')]
    """
    words = _WORDS | (_OF_AN_OBJECTIVE if "beta" in parameters else {})
    return [(words.get(name, name.strip("_").replace("_", " ")), _text(value)) for name, value in parameters.items()]


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {None: "–", True: "yes", False: "no"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return number(value) if isinstance(value, float) else str(value)
