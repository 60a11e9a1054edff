"""The items of the TARGET statement, filled with what an answer knows; what a person must write is marked.

TARGET is a checklist for observational studies that emulate a target trial: Cashin, Hansford, Hernán and others, JAMA
334 (2025), 1084-1093, doi 10.1001/jama.2025.13350, and BMJ 390 (2025), e087179. Numbers and topics are those of its
checklist, as two published copies give them that agree; what stands beside them are our sentences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dpsc.answers.document import Document
from dpsc.answers.forms import Cell, Form, Section, Table, ToAdd
from dpsc.answers.placebos import ALSO_ASKED
from dpsc.answers.words import after, column, could_be_seen, p_is, percent, sentence, signed
from dpsc.periods.treatment import ON
from dpsc.version import __version__

SOURCE = (
    "TARGET: Cashin AG, Hansford HJ, Hernán MA and others, Transparent Reporting of Observational Studies Emulating a "
    "Target Trial, JAMA 334 (2025), 1084-1093, doi 10.1001/jama.2025.13350; BMJ 390 (2025), e087179, doi "
    "10.1136/bmj-2025-087179."
)
SCOPE = (
    "TARGET is for studies of individuals that emulate a trial with parallel groups and random assignment, with "
    "adjustment for what differs at baseline. A synthetic control compares one unit, or a few, with donors. Use its "
    "items where they fit your study, and say where they do not. Numbers and topics are those of its checklist; the "
    "sentences are ours. For a journal, fill in the checklist itself."
)
NAME = "reporting.md"
_PARTS = "abcdefgh"
_OF_A_TRIAL = (
    "eligibility criteria",
    "treatment strategies",
    "assignment procedures",
    "follow-up",
    "outcomes",
    "causal contrasts",
    "identifying assumptions",
    "data analysis plan",
)


class Item(NamedTuple):
    """One item: its number, its topic, and the section of the paper that it belongs to."""

    number: str
    topic: str
    section: str


def _items() -> tuple[Item, ...]:
    trial = [
        Item(f"{which}{letter}", f"{topic}, {side}", "Methods")
        for letter, topic in zip(_PARTS, _OF_A_TRIAL, strict=True)
        for which, side in ((6, "in the target trial"), (7, "in its emulation"))
    ]
    rest = {
        "Results": (
            "participant selection",
            "baseline data",
            "follow-up",
            "missing data",
            "outcomes",
            "effect estimates",
            "additional analyses",
        ),
        "Discussion": ("interpretation", "limitations"),
        "Other information": ("ethics", "registration", "data sharing", "funding", "conflicts of interest"),
    }
    topics = [(section, topic) for section, each in rest.items() for topic in each]
    return (
        Item("1", "abstract", "Abstract"),
        *(Item(str(k), topic, "Introduction") for k, topic in ((2, "background"), (3, "causal question"))),
        Item("4", "rationale", "Introduction"),
        Item("5", "data sources", "Methods"),
        *trial,
        *(Item(str(k), topic, section) for k, (section, topic) in enumerate(topics, start=8)),
    )


ITEMS = _items()
_A_PERSON: Mapping[str, str] = {
    "1": "that the study emulates a target trial with observational data, if it does, and what trial",
    "2": "the background, and what is not known yet",
    "4": "why no trial, and which trials informed the design",
    "5": "who collected the records and the target, for what, where and when; how they were linked",
    "6a": "who or what could take part in the trial",
    "7a": "how this was applied to the target and to the donors, before the release",
    "6b": "the strategies that the trial would compare",
    "7b": "what exactly the target got, and that no donor got it",
    "6c": "that the trial would assign at random, and whether people would know their group",
    "6d": "when follow-up would start and end in the trial",
    "7d": "why follow-up ends there",
    "6e": "the outcomes of the trial",
    "7e": "how the outcome was measured, in the target and in the donors",
    "6f": "the contrast that the trial would estimate",
    "6g": "what the trial would have to assume",
    "7g": "what else changed for the target or for donors at that time; whether donors could be affected, too",
    "6h": "how the trial would be analysed",
    "8": "how many units were considered, and why these",
    "9": "characteristics of target and donors before the intervention that may be published",
    "10": "why periods or units ended early, if any did",
    "11": "missing data of the target; what the custodian may say of the donors'",
    "15": "what this means",
    "16": "how the emulation differs from the trial, and how plausible the assumptions are",
    "17": "the ethics committee and its number, or why none was needed",
    "18": "whether, when and where the protocol was registered",
    "19": "where release, target and code can be had",
    "20": "who paid, and what their role was",
    "21": "conflicts of interest of all authors",
}

_A_PERSON_ALONE = ("2", "4", "11", "17", "20", "21")  # and all of what the target trial would be, 6a to 6h


def form(document: Document) -> Form:
    """Return the items, filled with what an answer knows."""
    known = _of_study(document) if document["kind"] == "study" else _of_result(document)
    head: tuple[Cell, ...] = (
        ("Reporting items of the TARGET statement, filled with what dpsc knows of this answer.",),
        (SCOPE,),
        (f"Written by dpsc {__version__}. Effects, periods and placebos are in the report of the answer.",),
    )
    return Form(f"What to report: {document['title']}", head, (*_sections(known), Section("Source", ((SOURCE,),))))


def _sections(known: Mapping[str, str]) -> tuple[Section, ...]:
    """Return a table for each section of a paper: what is known of each item, then what a person must add."""
    found = []
    for name in dict.fromkeys(item.section for item in ITEMS):
        rows = [
            ((item.number,), (item.topic,), _cell(known.get(item.number), _A_PERSON.get(item.number)))
            for item in ITEMS
            if item.section == name
        ]
        found.append(Section(name, table=Table(("item", "topic", "what to report"), tuple(rows), (1, 4, 12))))
    return tuple(found)


def _cell(known: str | None, to_add: str | None) -> Cell:
    return (*((known,) if known else ()), *((ToAdd(to_add),) if to_add else ()))


def filled_by(item: Item) -> str:
    """Say who fills in an item: the answer, the analyst, or one after the other."""
    answered = item.number not in _A_PERSON_ALONE and not item.number.startswith("6")
    who = {"answer": answered, "analyst": item.number in _A_PERSON}
    return " and ".join(name for name, fills in who.items() if fills)


def _of_result(document: Document) -> dict[str, str]:
    """Return what the answer of one unit knows, by item."""
    periods, before = document["periods"], document["before"]
    when, end = document["treatment_time"], periods[-1]["time"]
    seen = sum(row["observed"] is not None for row in periods)
    first = before[0]["time"] if before else when
    tried = document["sensitivity"]
    return _shared(document) | {
        "5": f"{_donors(document)} Periods: {first} to {end}.",
        "7b": f"The target is treated {_treated(document)}; the donors are taken as not treated.",
        "7c": f"Nothing was assigned at random. The target was treated at {when}, and the donors are compared by how "
        f"they moved in the {document['periods_before']} periods before.",
        "7d": f"Follow-up starts at {when}, the first treated period, and ends at {end}.",
        "8": f"1 target. {_donors(document)}",
        "9": f"The target and its fit in the {len(before)} periods from {first} on are in the report.",
        "10": f"{seen} of {len(periods)} periods from {when} to {end} were observed in the target.",
        "14": _more_analyses(document, tried),
        "18": _asked(document),
    }


def _treated(document: Document) -> str:
    """Say in which periods the target is treated: from the first on, or in those of a treatment that ended."""
    on = [time for time, phase in (document["treatment"] or {}).items() if phase == ON]
    if not on:
        return f"from {document['treatment_time']} on"
    return f"in {len(on)} periods from {on[0]} to {on[-1]}" if len(on) > 1 else f"in {on[0]}"


def _of_study(document: Document) -> dict[str, str]:
    """Return what the answer of several units knows, by item."""
    units = document["by_unit"]
    dates = document["treatment_time"]
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return _shared(document) | {
        "5": _donors(document),
        "7b": f"{len(units)} treated units, treated from {span} on; the donors are taken as not treated.",
        "7c": "Nothing was assigned at random. Each unit has its own date, and donors are compared by how they moved "
        "before it.",
        "7d": "Follow-up of each unit starts at its first treated period.",
        "8": f"{len(units)} treated units. {_donors(document)}",
        "14": _more_analyses(document, document["sensitivity"]),
        "18": _asked(document),
    }


def _shared(document: Document) -> dict[str, str]:
    average, ends = document["average_effect"], document["average_effect_interval"]
    unit = after(document["units"])
    measured = f", in {document['units']}" if document["units"] else ""
    known = {
        "1": "The paragraph of the report states question, donors, guarantee, findings and tests.",
        "3": document["question"],
        "7a": "The donors are those of the release, or of the table, that was used.",
        "7e": f"{document['outcome']}{measured}, in each period.",
        "7f": "The average over the treated periods of what was observed less what would have been without the "
        "intervention, also in percent, and the total: an effect on those that were treated.",
        "7g": "Assumed is that target and donors would have gone on together as before; that the intervention did not "
        "change the donors; that nothing else happened to the target alone at that time. Data cannot show this. "
        + _verdict(document),
        "7h": f"{document['method']}. {_intervals(document)} {_protected(document)}",
        "12": " ".join(document["answer"][:1]),
        "15": _verdict(document),
        "16": " ".join(map(sentence, document["notes"])),
        "19": f"Made with {document['made_by']}. " + _again(document),
    }
    if average is not None:
        part = document["percent"]
        share = "" if part is None else f" ({signed(float(format(part['effect'], '.3g')))}%)"
        middle, *limits = column([average, *(ends or ())], sign=True)
        span = "" if not limits else f", with a {percent(document['level'])} interval from {limits[0]} to {limits[1]}"
        p = document["p_value"]
        chance = "" if p is None or not math.isfinite(p) else f"; {p_is(p)}"
        known["13"] = f"The average effect is {middle}{unit}{share}{span}{chance}."
    return known


def _donors(document: Document) -> str:
    about = document["parameters"]
    count = "" if "n" not in about else f"{about['n']:,} donors"
    named = f", from the release {about['release']}" if "release" in about else ""
    return f"{count or 'The donors'}{named}."


def _protected(document: Document) -> str:
    promise = document["guarantee"]
    if promise is None:
        return f"No guarantee of privacy: {document['no_guarantee']}."
    one = "person" if promise["adjacency"].endswith("person") else "donor"
    return (
        f"For this answer, records were used only with differential privacy for each {one}, epsilon "
        f"{promise['epsilon']:g} and "
        f"delta {promise['delta']:g}."
    )


def _intervals(document: Document) -> str:
    if document["level"] is None:
        return "There are no intervals."
    if not document["interval_is_for_the_effect"]:
        return f"Its {percent(document['level'])} intervals are for the noise alone."
    noise = "privacy noise" if document["private"] else "noise"
    return f"Intervals ({percent(document['level'])}) account for how well donors follow a target and for the {noise}."


def _verdict(document: Document) -> str:
    found = document["verdict"]
    return "" if found is None else f"Do the donors help? {str(found['grade']).capitalize()}: {found['headline']}."


def _more_analyses(document: Document, tried: Sequence[Mapping[str, Any]]) -> str:
    said = []
    for kind in ("in_time", "in_space"):
        found = document["placebos"][kind]
        if found is not None and found["share_as_large"] is not None:
            name = "earlier dates" if kind == "in_time" else "other units" if "rank" in found else "made-up units"
            share = f"{found['share_as_large']:.0%}"
            said.append(f"Of {found['count']} {name}, {share} show an effect at least as large.")
    effects = [row["effect"] for row in tried if row.get("effect") is not None]
    if len(effects) > 1:
        low, high = column([min(effects), max(effects)], sign=True)
        said.append(f"{len(effects)} choices, the one that was made among them, give {low} to {high}.")
    said += filter(None, [could_be_seen(document.get("detectable"), document["units"])])
    return " ".join(said) or "No placebos or other choices were computed."


def _asked(document: Document) -> str:
    dates = [str(row["treatment_time"]) for row in document["dates_tried"] if ALSO_ASKED in row["for"]]
    return f"Other dates that were asked about: {', '.join(dates)}." if dates else ""


def _again(document: Document) -> str:
    if "release" in document["parameters"]:
        return "The same release and target give this answer again, at no further cost."
    return ""
