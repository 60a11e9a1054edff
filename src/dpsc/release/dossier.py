"""What a privacy officer files about a release: an impact assessment, and tables along two standards.

Everything is read from the release's file, or is true of the software whatever the file; what neither shows is marked
for a person to add. Headings are those of the sources named at the end; sentences are ours.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence

from dpsc.answers import report, reporting, words
from dpsc.answers.forms import MARK, Cell, Code, Form, Section, Table, ToAdd, kind_of
from dpsc.release import describe, describe_panel, verify
from dpsc.release.about import About, Made, about
from dpsc.release.hazards import Hazard, hazards
from dpsc.release.panel import ReleasedPanel
from dpsc.types import JsonObject
from dpsc.version import __version__

NAMES = "dossier.html", "dossier.md", "record.json"
GDPR = "Regulation (EU) 2016/679 (General Data Protection Regulation), Article 35, paragraph 7, letters (a) to (d)."
NIST = "NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees, 2025, doi 10.6028/NIST.SP.800-226."
ISO = "ISO/IEC 27559:2022, Privacy enhancing data de-identification framework, clauses 5 to 9."
REGISTRY = (
    "Differential Privacy Deployments Registry: opendp/deployments-registry-data, schemas/deployments-schema.yaml at "
    "commit 057e5d8."
)


def files(
    release: Made, name: str, sha256: str, *, custodian: str | None = None, intended_use: str | None = None
) -> dict[str, str]:
    """Return the files of a dossier by name: the page, Markdown, and the record if there is a guarantee."""
    record = None
    if isinstance(release, ReleasedPanel):
        if release.guarantee is not None:
            record = describe_panel.record(release, sha256, custodian=custodian, intended_use=intended_use)
    elif release.guarantee is not None:
        record = describe.record(release, sha256, custodian=custodian, intended_use=intended_use)
    made = form(release, name, sha256, record, custodian, intended_use)
    page = report.render("form.html", form=made, mark=MARK, kind_of=kind_of)
    found = {NAMES[0]: page, NAMES[1]: made.to_markdown()}
    return found if record is None else found | {NAMES[2]: json.dumps(record, indent=1, ensure_ascii=False) + "\n"}


def form(
    release: Made, name: str, sha256: str, record: JsonObject | None, custodian: str | None, intended_use: str | None
) -> Form:
    """Return the dossier as plain values."""
    said = about(release)
    known = hazards(said)
    typed = ""
    if custodian or intended_use:
        typed = " Who publishes it, or what for, was typed by whoever asked for this."
    head: tuple[Cell, ...] = (
        (
            f"dpsc {__version__} wrote this from the file {name} alone. It read no records and no ledger.{typed} It is "
            "a draft for the person who signs it, and no legal advice.",
        ),
        (f"SHA-256 of the file: {sha256}. Identity: {', '.join(said.identities) or 'none'}.",),
    )
    sections = (
        *_impact(said, known, custodian, intended_use),
        *_pyramid(said, known),
        _de_identification(said, name),
        *_shown_by_itself(release, said, name),
        _for_the_analyst(said),
        _registry(said, record),
        Section("Sources", ((GDPR,), (NIST,), (ISO,), (reporting.SOURCE,), (REGISTRY,))),
    )
    return Form(f"Privacy dossier of {name}", head, sections, said.warning)


def _impact(
    said: About, known: Sequence[Hazard], custodian: str | None, intended_use: str | None
) -> tuple[Section, ...]:
    many = said.many
    quoted = tuple(f"The file says: {words.sentence(text)}" for text in said.provenance)
    purposes = _rows(
        ("who publishes the file", (custodian or ToAdd("the custodian"),)),
        ("controller", (ToAdd("the controller, and the data protection officer"),)),
        ("purpose", (intended_use or ToAdd("what the file is to be used for"),)),
        ("legal basis", (ToAdd("the legal basis, and the legitimate interest if it is that"),)),
        ("operation", (f"One file is made. It holds {said.what}. Answers are computed from it and read no records.",)),
        ("outcome", (said.outcome,)),
        ("periods", (f"{said.periods}.",)),
        ("recipients", (ToAdd("who gets the file, and how"),)),
        ("made by", (f"{said.made}.", ToAdd("by whom, on which machine"))),
    )
    data = _rows(
        ("data subjects", (said.subjects, ToAdd("who they are, and what they were told"))),
        ("source of the records", (*quoted, ToAdd("who collected them, and what for"))),
        ("in the file", (said.kept,)),
        ("not in the file", (said.not_kept,)),
        ("records at the custodian", (ToAdd("where they are kept, and until when"),)),
    )
    promise = said.guarantee
    epsilon: Cell = (said.none,)
    if promise is not None:
        epsilon = (f"Epsilon {promise.epsilon:g}, delta {promise.delta:g}.", ToAdd("why no smaller epsilon would do"))
    necessity = _rows(
        ("what leaves the custodian", (f"Of the records, the file holds {said.what}.",)),
        ("how exact it is", (said.noise,)),
        ("budget", epsilon),
        ("alternatives", (ToAdd("what else was considered, such as coarser tables, or no release"),)),
        ("rights of data subjects", (ToAdd("how access, objection and erasure are handled"),)),
    )
    shown: list[tuple[str, Cell]] = [("guarantee", (f"None of dpsc: {said.reason}.",))]
    if promise is not None:
        accounting = describe.accounting_of(promise) or "epsilon and delta"
        shown = [
            ("guarantee", (f"{promise.brief}; neighbours: {promise.adjacency}.",)),
            ("protected", (words.sentence(said.protected),)),
            ("mechanism", (said.mechanism,)),
            ("accounting", (words.sentence(accounting),)),
            ("composition", (said.composition,)),
        ]
    measures = _rows(
        *shown,
        ("settings", (said.settings, ToAdd(f"who chose them, and that nobody looked at {many} to do so"))),
        ("book of releases", (said.booked, ToAdd("who keeps the ledger, and where its head is noted"))),
        ("machine", (ToAdd("access to the machine that held the records; encryption, swap, core dumps"),)),
    )
    still = [hazard.name for hazard in known if hazard.status != "met"]
    left: Cell = (said.none,) if promise is None else (said.guess, said.membership)
    residual = _rows(
        ("what can still be learned", left),
        ("public, not protected", ("Everything in the file." if promise is None else words.sentence(said.public),)),
        ("hazards not met, or in part", (f"Part 2.1: {'; '.join(still)}." if still else "Part 2.1.",)),
        ("judgement", (ToAdd("whether this is acceptable, and whether the authority is asked first (Art. 36)"),)),
        ("advice and views", (ToAdd("advice of the officer (Art. 35(2)), views of data subjects (Art. 35(9))"),)),
        ("review", (ToAdd("when this is looked at again (Art. 35(11))"),)),
        ("signed", (ToAdd("name and date"),)),
    )
    return (
        Section("Part 1. Data protection impact assessment", ((f"Structure: {GDPR}",),)),
        Section("1.1 Processing and purposes, letter (a)", table=purposes, level=3),
        Section("1.2 The data", table=data, level=3),
        Section("1.3 Necessity and proportionality, letter (b)", table=necessity, level=3),
        Section("1.4 Risks to rights and freedoms, letter (c)", table=_risks(said), level=3),
        Section("1.5 Measures, letter (d)", table=measures, level=3),
        Section("1.6 Residual risk", table=residual, level=3),
    )


def _risks(said: About) -> Table:
    one, many, promise = said.one, said.many, said.guarantee
    rows: list[tuple[str, Cell]] = [
        (f"somebody learns what the record of a {one} says", (said.guess,)),
        (f"somebody learns who is among the {many}", (said.none if promise is None else said.membership,)),
    ]
    if promise is not None and promise.delta > 0:
        at_worst = f"At worst as bad as telling everything with a probability of delta, {promise.delta:g}."
        rows.append(("more is learned than epsilon allows", (at_worst,)))
    in_general = "" if promise is None else " It would be known without this person's record, too."
    rows += [
        (
            f"other publications about the same {many} are added to this one",
            ("What else was published, this file cannot show.", said.booked)
            if promise is None
            else ("Losses add up. What else was published, this file cannot show.", said.booked),
        ),
        (
            f"what is true of {many} in general is used against a person like them",
            (f"Not covered.{in_general}",),
        ),
        ("a wrong conclusion is drawn from the noise", (f"Part 1.3, how exact it is. {_IN_ANSWERS}",)),
        ("harm", (ToAdd("for each row how likely it is, how severe, and for whom; other risks of your case"),)),
    ]
    return _table(("risk", "what the file shows"), rows)


_IN_ANSWERS = "Answers of dpsc have intervals that include the noise, and say whether the donors help."


def _pyramid(said: About, known: Sequence[Hazard]) -> tuple[Section, ...]:
    promise, none = said.guarantee, said.none
    levels = _rows(
        ("top: privacy parameters", (none,) if promise is None else (" ".join(words.meaning(promise)),)),
        (
            "top: unit of privacy",
            (none,)
            if promise is None
            else (f"A {said.one}: {said.protected}. Neighbours: {promise.adjacency}. Public: {said.public}.",),
        ),
        (
            "middle: algorithms and correctness",
            (said.mechanism, f"Composition: {said.composition}", "Hazards: part 2.1."),
        ),
        ("middle: utility", (said.noise,)),
        ("middle: bias", (said.bias, ToAdd("which groups a less exact answer could harm"))),
        (
            "bottom: query model and trust model",
            (none,)
            if promise is None
            else (
                "Not interactive: one file, and answers that are computed from it. "
                f"Central: {said.many} trust the custodian, who holds their records and draws the noise. Nobody who "
                "receives the file needs to be trusted, whatever else they know.",
            ),
        ),
        ("bottom: side channels", ("Part 2.1.",)),
        (
            "bottom: security and access control",
            ("The file shows nothing of it.", ToAdd("who can reach the records, and how this is checked")),
        ),
        (
            "bottom: data collection exposure",
            (
                "The file shows nothing of it, and protects no record before it was made.",
                ToAdd("how records reached the custodian, and who else has them"),
            ),
        ),
    )
    title = "2.1 Implementation hazards"
    if said.is_ours:
        version = f"About dpsc {__version__}, which wrote this. The file says that it was made by {said.made}."
        if not said.same_version:
            version += " Whether all that made it met these hazards in the same way, the file does not show."
        if promise is None:
            version += " None of this gives the file a guarantee."
        rows = tuple(
            ((each.name,), (words.sentence(f"{each.status}. {each.how}"),), tuple(map(Code, each.shown)))
            for each in known
        )
        header = "hazard", "whether and how it is met", "shown by (in the source of dpsc)"
        below = Section(title, ((version,),), Table(header, rows, (3, 7, 5)), 3)
    else:
        asked = ToAdd("how its publisher met floating-point noise, predictable randomness, composition and timing")
        below = Section(title, (("Other software made this table; the file shows nothing of it.", asked),), level=3)
    return Section(
        "Part 2. Along NIST SP 800-226", ((f"Components of the pyramid (figure 1) in {NIST}",),), levels
    ), below


def _de_identification(said: About, name: str) -> Section:
    many, promise, none = said.many, said.guarantee, said.none

    def proved(text: str) -> str:
        return none if promise is None else text

    model = "" if promise is None else f"epsilon {promise.epsilon:g}, delta {promise.delta:g}, {promise.adjacency}"
    before, features = "Before data are made available: ", "Data features: "
    threats, attacks = "Threat modelling: ", "Attack modelling: "
    impact, assessed = "Transparency and impact assessment: ", "Assessing identifiability: "
    audited: Cell = (
        (
            Code("dpsc audit"),
            "attacks the software.",
            ToAdd("its result on your installation"),
            "Part 4 checks the file.",
        )
        if said.is_ours
        else ("Part 4.",)
    )
    rows: list[tuple[str, str, Cell]] = [
        ("5", "Overview", (f"One file, {name}: {said.what}.",)),
        ("6", "Context assessment", ("6.2 and 6.3.",)),
        (
            "6.2",
            f"{threats}security and privacy practices",
            (
                proved("The guarantee does not rest on the practices of whoever receives the file."),
                ToAdd("practices of whoever receives it that you rely on, if any"),
            ),
        ),
        (
            "6.2",
            f"{threats}motives and capacity to re-identify",
            (proved(f"Assumed is somebody who wants to, and knows everything about all other {many}."),),
        ),
        (
            "6.3",
            f"{impact}transparency of actions and stakeholder engagement",
            (
                "A page for whoever receives the file can be made from it:",
                Code("dpsc inspect RELEASE --page FILE.html"),
                ToAdd("whom you told, and whom you asked"),
            ),
        ),
        ("6.3", f"{impact}privacy-related harms", ("Part 1.4.",)),
        ("7", "Data assessment", ("7.2 and 7.3.",)),
        ("7.2", f"{features}data principals", (said.subjects,)),
        ("7.2", f"{features}data type", (f"Numbers by period: {said.outcome}.",)),
        (
            "7.2",
            f"{features}attribute types",
            (said.not_kept, ToAdd("which attributes of the records identify somebody or are sensitive")),
        ),
        ("7.2", f"{features}dataset properties", (f"Periods: {said.periods}.", said.kept)),
        ("7.3", f"{attacks}maximum or average risk", (proved(f"Maximum: what is stated holds for each {said.one}."),)),
        (
            "7.3",
            f"{attacks}population or sample-based attack",
            (proved(f"Both: the attacker may know the population, and all other {many} of the file."),),
        ),
        ("7.3", f"{attacks}data privacy models", (proved(f"Differential privacy: {model}."),)),
        ("8", "Identifiability assessment and mitigation", ("8.2 and 8.3.",)),
        ("8.2", f"{assessed}quantifying identifiability", (said.guess,)),
        ("8.2", f"{assessed}adversarial testing", audited),
        ("8.3", "Mitigation: reconfiguring the environment", (ToAdd("conditions of use, if any"),)),
        ("8.3", "Mitigation: transforming the data", (said.mechanism, "Settings: part 1.5.")),
        ("8.3", "Mitigation: re-evaluation", ("Part 1.6, review.",)),
        ("9", "De-identification governance", ("9.2 to 9.4.",)),
        (
            "9.2",
            f"{before}assigning roles and responsibilities",
            (ToAdd("who decides, who makes the file, who signs"),),
        ),
        (
            "9.2",
            f"{before}establishing principles, policies and procedures",
            (ToAdd("the policies that apply"),),
        ),
        ("9.2", f"{before}identifying and managing a data disclosure", (said.booked,)),
        ("9.2", f"{before}communicating with stakeholders", ("6.3.",)),
        (
            "9.3",
            "After data are made available: monitoring the data environment",
            (ToAdd(f"who watches for other publications about the same {many}"),),
        ),
        (
            "9.4",
            "Mitigation in case of incident",
            (ToAdd("whom to tell and what to do if records, or what was computed from them, get out"),),
        ),
    ]
    table = Table(("clause", "heading", "here"), tuple(((a,), (b,), c) for a, b, c in rows), (1, 4, 7))
    return Section("Part 3. Along ISO/IEC 27559", ((f"Headings of {ISO}",),), table)


def _shown_by_itself(release: Made, said: About, name: str) -> tuple[Section, ...]:
    made = verify.panel_checks(release) if isinstance(release, ReleasedPanel) else verify.checks(release)
    rows = tuple(((check.what,), (check.verdict,), (check.why,)) for check in made)
    text: tuple[Cell, ...] = (
        (verify.summary(name, made),),
        ("Anybody can check it again, with the hash:", Code(f"dpsc audit {shlex.quote(name)} --sha256 HASH")),
    )
    missing = Table(("not shown",), tuple(((text,),) for text in said.not_shown), (1,))
    return (
        Section("Part 4. What the file shows of itself", text, Table(("check", "outcome", "why"), rows, (2, 2, 8))),
        Section("4.1 What no file can show", table=missing, level=3),
    )


def _for_the_analyst(said: About) -> Section:
    """Return the items that whoever publishes an answer reports, with what the file knows of them."""
    known = {
        "5": f"{said.subjects} Periods: {said.periods}.",
        "7a": f"The {said.many} of this file.",
        "7e": f"Outcome: {said.outcome}.",
        "7h": said.none
        if said.guarantee is None
        else f"For this file, records were used only with {said.guarantee.brief}.",
        "19": f"Identity of the release: {', '.join(said.identities) or 'none'}.",
    }
    rows = tuple(
        ((item.number,), (item.topic,), (reporting.filled_by(item),), (known.get(item.number, "–"),))
        for item in reporting.ITEMS
    )
    text: tuple[Cell, ...] = (
        (
            "For whoever publishes an answer that was computed from this file:",
            Code("dpsc estimate ... -o answer"),
            "writes all items to",
            Code(f"answer/{reporting.NAME}"),
            "with what the answer knows of them.",
        ),
        (reporting.SCOPE,),
    )
    header = "item", "topic", "filled in by", "from this file"
    return Section("Part 5. Reporting items of the TARGET statement", text, Table(header, rows, (1, 4, 3, 6)))


def _registry(said: About, record: JsonObject | None) -> Section:
    title = "Part 6. Record for the registry of deployments"
    if record is None:
        return Section(title, ((f"There is no record: {said.reason}.",),))
    empty = list(_empty(record))
    unknown = f"is the record. Of its fields {len(empty)} are null, because no file tells them: {', '.join(empty)}."
    return Section(title, ((Code(NAMES[2]), unknown),))


def _empty(value: object, name: str = "") -> Iterator[str]:
    """Yield the names of the fields that are null."""
    if value is None:
        yield name
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _empty(each, str(key))
    elif isinstance(value, list):
        for each in value:
            yield from _empty(each, name)


def _rows(*rows: tuple[str, Cell]) -> Table:
    return _table(("about", "here"), rows)


def _table(header: tuple[str, str], rows: Sequence[tuple[str, Cell]]) -> Table:
    return Table(header, tuple(((name,), cell) for name, cell in rows), (1, 3))
