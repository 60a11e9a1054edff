"""The dossier: true of files of every kind, no claim without a guarantee, every heading, every mark counted."""

from __future__ import annotations

import html
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, PrivatePanel, Release
from dpsc.analyst.private_panel import parsed
from dpsc.answers import reporting
from dpsc.privacy.guarantee import best_guess
from dpsc.release import describe, describe_panel, dossier
from dpsc.release.about import about
from dpsc.release.hazards import hazards
from dpsc.release.verify import NOT_SHOWN, PANEL_NOT_SHOWN
from tests.making import make_bounded_panel, make_private_panel

ROOT = Path(__file__).resolve().parents[2]
STORED = [
    path for folder in ("release", "files_of_0_2_0") for path in sorted((ROOT / "tests" / folder).glob("*.dpsc.json"))
]
MONTHS = pd.period_range("2024-01", periods=12, freq="M")
HASH = "c0ffee" * 10 + "cafe"

# Headings of ISO/IEC 27559:2022 and components of the pyramid of NIST SP 800-226, as the standards name them.
ISO = (
    "Overview", "Context assessment", "Threat modelling: security and privacy practices",
    "Threat modelling: motives and capacity to re-identify",
    "Transparency and impact assessment: transparency of actions and stakeholder engagement",
    "Transparency and impact assessment: privacy-related harms", "Data assessment", "Data features: data principals",
    "Data features: data type", "Data features: attribute types", "Data features: dataset properties",
    "Attack modelling: maximum or average risk", "Attack modelling: population or sample-based attack",
    "Attack modelling: data privacy models", "Identifiability assessment and mitigation",
    "Assessing identifiability: quantifying identifiability", "Assessing identifiability: adversarial testing",
    "Mitigation: reconfiguring the environment", "Mitigation: transforming the data", "Mitigation: re-evaluation",
    "De-identification governance", "Before data are made available: assigning roles and responsibilities",
    "Before data are made available: establishing principles, policies and procedures",
    "Before data are made available: identifying and managing a data disclosure",
    "Before data are made available: communicating with stakeholders",
    "After data are made available: monitoring the data environment", "Mitigation in case of incident",
)  # fmt: skip
NIST = (
    "top: privacy parameters", "top: unit of privacy", "middle: algorithms and correctness", "middle: utility",
    "middle: bias", "bottom: query model and trust model", "bottom: side channels",
    "bottom: security and access control", "bottom: data collection exposure",
)  # fmt: skip
GDPR = ("1.1", "1.3", "1.4", "1.5"), ("letter (a)", "letter (b)", "letter (c)", "letter (d)")


def rows(seed: int = 0) -> Any:
    return np.cumsum(np.random.default_rng(seed).normal(size=(300, 12)), axis=1)


def gram(**options: Any) -> GramRelease:
    return GramRelease(**({"epsilon": 1.0, "delta": 1e-6, "scale": 3.0} | options))


def plain(**options: Any) -> Any:
    return gram().release(rows(), dataset=None, **options)


def table_of_others(noise: float) -> PrivatePanel:
    frame = pd.DataFrame(rows()[:5], index=list("abcde"), columns=MONTHS)
    return PrivatePanel.from_noisy_table(frame, noise=noise, guarantee="published by an office")


def seeded() -> Any:
    with pytest.warns(match="NOT PRIVATE"):
        return gram(seed=1).release(rows(), dataset=None)


def outcomes() -> Any:
    each = {"cost": {"scale": 3.0}, "visits": {"scale": 2.0}}
    both = {"cost": rows(), "visits": rows(1)}
    return GramRelease(epsilon=1.0, delta=1e-6).release(both, each=each, dataset=None)


def months() -> list[PrivatePanel]:
    return [make_private_panel(times=MONTHS[k : k + 1]) for k in range(2)]


KINDS = {
    "donors": plain,
    "booked": lambda: gram().release(rows(), dataset="patients"),
    "counted": lambda: gram(scale=None).release(rows(), dataset=None),
    "segments": lambda: plain(by=["north", "south"] * 150, labels=["north", "south"]),
    "outcomes": outcomes,
    "merged": lambda: Release.merge([plain(), plain()], disjoint=True),
    "mean": lambda: Release.merge([plain(), plain()], same_donors=True),
    "mean at a site": lambda: Release.merge(
        [plain(), Release.merge([plain(), plain()], same_donors=True)], disjoint=True
    ),
    "people": make_private_panel,
    "people, no delta": lambda: make_private_panel(delta=0.0),
    "bound found": make_bounded_panel,
    "months": lambda: PrivatePanel.join(months()),
    "sites": lambda: PrivatePanel.join(
        [make_private_panel(), make_private_panel(units=("d", "e", "f"))], disjoint=True
    ),
    "seeded": seeded,
    "published": lambda: table_of_others(0.5),
    "without noise": lambda: table_of_others(0.0),
} | {path.name: lambda path=path: parsed(path.read_text("utf-8")) for path in STORED}
WITHOUT = "seeded", "published", "without noise"


@cache
def made(kind: str) -> tuple[Any, dict[str, str]]:
    release = KINDS[kind]()
    return release, dossier.files(release, "a|b.dpsc.json", HASH)


def text_of(kind: str) -> str:
    """What the page shows, without its tags."""
    page = made(kind)[1]["dossier.html"].split("</style>")[-1]
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", page)).split())


def words_of(kind: str) -> str:
    """What the Markdown says, without its escapes."""
    return re.sub(r"\\(?=[^\w\s])", "", made(kind)[1]["dossier.md"])


@pytest.mark.parametrize("kind", KINDS)
def test_every_heading_is_there_and_says_something(kind: str) -> None:
    release, files = made(kind)
    assert set(files) == (set(dossier.NAMES) if release.guarantee is not None else set(dossier.NAMES[:2]))
    cells = {row[-2][0]: row[-1] for section in form_of(kind).sections for row in cells_of(section)}
    for heading in (*ISO, *NIST):
        assert " ".join(cells[heading]).strip(), heading
    for heading in (*ISO, *NIST, *GDPR[0], *GDPR[1], *(f"| {item.number} |" for item in reporting.ITEMS)):
        assert heading in words_of(kind), heading
        assert heading.strip("| ") in text_of(kind), heading


def form_of(kind: str) -> Any:
    return dossier.form(made(kind)[0], "a|b.dpsc.json", HASH, None, None, None)


def cells_of(section: Any) -> list[Any]:
    return [row for row in ([] if section.table is None else section.table.rows) if len(row) in (2, 3)]


@pytest.mark.parametrize("kind", KINDS)
def test_marks_are_counted_rightly_and_shown_in_both(kind: str) -> None:
    count = len(form_of(kind).to_add)
    page, text = made(kind)[1]["dossier.html"], made(kind)[1]["dossier.md"]
    assert count > 20
    assert f"{count} places are for a person to fill." in text
    assert f"{count} places are for a person to fill." in page
    assert text.count("[TO ADD: ") == page.count("<mark>[TO ADD: ") == count


def test_what_is_said_needs_no_mark() -> None:
    release = made("donors")[0]
    told = dossier.files(release, "r.json", HASH, custodian="Clinics of <North>", intended_use="a study")
    before, after = made("donors")[1]["dossier.md"].count("[TO ADD: "), told["dossier.md"].count("[TO ADD: ")
    assert before - after == 2
    assert "| purpose | a study |" in told["dossier.md"]
    assert "Clinics of &lt;North&gt;" in told["dossier.html"]
    assert json.loads(told["record.json"])["deployment"]["basic"]["intended_use"] == "a study"
    assert "was typed by whoever asked" in told["dossier.md"]
    assert "was typed by whoever asked" not in made("donors")[1]["dossier.md"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in WITHOUT])
def test_the_numbers_are_those_of_the_file(kind: str) -> None:
    release, _ = made(kind)
    text, promise = words_of(kind), release.guarantee
    assert f"Epsilon {promise.epsilon:g}, delta {promise.delta:g}." in text
    assert f"at most {best_guess(promise.epsilon, promise.delta):.1%} of the time" in text
    assert ("more is learned than epsilon allows" in text) == (promise.delta > 0)
    assert HASH in text
    if isinstance(release, PrivatePanel):
        expected = [describe_panel.noise(release), describe_panel.bounding(release), *release.identities]
    else:
        parts = describe.parts_of(release)
        expected = [describe.noise(part) for part in parts] + [describe.scale(part) for part in parts]
        expected += [f"{parts[0].n:,} donors", *parts[0].identities]
    for said in expected:
        assert said in text, said


@pytest.mark.parametrize("kind", WITHOUT)
def test_nothing_is_promised_without_a_guarantee(kind: str) -> None:
    release, files = made(kind)
    mark = "PROTECTED BY THE PUBLISHER'S WORD" if kind == "published" else "NOT PRIVATE"
    for text in (words_of(kind), text_of(kind)):
        below = text.replace(about(release).reason, "")
        assert mark in text
        assert text.index(mark) < text.index("Part 1.")
        assert "differentially private" not in below.lower()
        for source in (dossier.NIST, dossier.REGISTRY):  # the titles of the sources are all that has these words
            below = below.replace(source, "")
        assert "differential privacy" not in below.lower()
        assert not re.search(r"\d% of the time|Maximum:|Central:|Epsilon \d|epsilon \d", below)
        assert "There is no record" in text
    assert "record.json" not in files


def test_of_other_peoples_tables_nothing_is_said_about_software() -> None:
    assert hazards(about(made("published")[0])) == ()
    assert "Other software made this table; the file shows nothing of it." in words_of("published")
    assert "tests/" not in words_of("published")
    assert "Not known." in words_of("published")


@pytest.mark.parametrize("kind", KINDS)
def test_pages_and_tests_that_are_named_exist(kind: str) -> None:
    for hazard in hazards(about(made(kind)[0])):
        assert hazard.shown
        for path in hazard.shown:
            assert (ROOT / path).is_file(), path


def test_what_is_not_met_is_said() -> None:
    for kind, label in (("donors", "label"), ("people", "identifier")):
        known = {hazard.name: hazard.status for hazard in hazards(about(made(kind)[0]))}
        assert known["timing"] == known[f"one human being under several {label}s"] == "not met"
        assert "timing" in words_of(kind).split("hazards not met, or in part")[1].split("\n")[0]
    for kind, never in (("donors", NOT_SHOWN), ("people", PANEL_NOT_SHOWN)):
        for said in never:
            assert said in words_of(kind)


def test_it_says_which_ledger_paid_and_reads_none() -> None:
    assert "the data set of a ledger that paid for it: patients." in words_of("booked")
    assert "names no data set of a ledger" in words_of("donors")


def test_files_of_other_versions_and_merged_ones_say_so() -> None:
    doubt = "Whether all that made it met these hazards in the same way, the file does not show."
    for kind in KINDS:
        ours = about(made(kind)[0]).is_ours
        assert (doubt in words_of(kind)) == (
            ours and kind in (*(p.name for p in STORED), "merged", "mean", "mean at a site")
        ), kind
    assert "Somebody gave their word" in words_of("merged")
    assert "Somebody gave their word" in words_of("sites")
    assert "Somebody gave their word" not in words_of("months")
    for kind in KINDS:  # in the assessment, and in the record
        told = [text.count("Losses of several releases of the same donors") for text in made(kind)[1].values()]
        assert (sum(map(bool, told)) == 3) == any(told) == (kind == "mean at a site"), kind


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in WITHOUT])
def test_a_record_knows_of_a_ledger_and_of_other_sites_what_the_file_says(kind: str) -> None:
    release, files = made(kind)
    record = json.loads(files["record.json"])["deployment"]
    assert ("ledger" in str(record)) == bool(about(release).datasets)
    said = record["implementation"]["composition"]
    assert ("sites" in said) <= ("by the word of whoever" in said)


def test_what_was_found_from_noisy_counts_is_said() -> None:
    counted = {kind for kind in KINDS if "found from noisy counts of donors" in words_of(kind)}
    assert counted == {"counted", "release.dpsc.json"}  # of 0.2.0
    assert "and noisy counts of people by length" in words_of("bound found")
    assert "counts of people by length" not in words_of("people")


def test_membership_is_covered_for_people_and_not_for_donors() -> None:
    assert "That somebody is one of the donors is not covered" in words_of("donors")
    assert "Whether somebody is among the people is covered" in words_of("people")


def test_texts_of_a_file_are_text() -> None:
    hostile = gram().release(rows(), dataset=None, provenance="<b>x</b> | $a$ [TO ADD: nothing] `--` *y*")
    files = dossier.files(hostile, "r.json", HASH)
    assert "<b>" not in files["dossier.html"]
    assert r"\<b>x\</b> \| \$a\$ \[TO ADD: nothing\]" in files["dossier.md"]
    assert files["dossier.md"].count("**[TO ADD: ") == made("donors")[1]["dossier.md"].count("**[TO ADD: ")
    rows_of_table = [line for line in files["dossier.md"].split("\n") if line.startswith("| source of the records")]
    assert len(re.findall(r"(?<!\\)\|", rows_of_table[0])) == 3


def test_who_fills_in_an_item_is_who_the_report_says() -> None:
    knows = {row[0][0]: row[2][0] for section in form_of("donors").sections for row in items_of(section)}
    assert knows == {item.number: reporting.filled_by(item) for item in reporting.ITEMS}


def items_of(section: Any) -> list[Any]:
    return [row for row in ([] if section.table is None else section.table.rows) if len(row) == 4]
