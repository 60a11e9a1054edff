"""Ways in which software can break a guarantee: how dpsc meets each, what shows it, and which it does not meet."""

from __future__ import annotations

from typing import Literal, NamedTuple

from dpsc.release.about import About


class Hazard(NamedTuple):
    """A hazard, whether it is met, how, and the tests and pages that show it."""

    name: str
    status: Literal["met", "met in part", "not met"]
    how: str
    shown: tuple[str, ...]


def hazards(about: About) -> tuple[Hazard, ...]:
    """Return what is known of each hazard; nothing of a table that other software made."""
    if not about.is_ours:
        return ()
    one, many, of_people = about.one, about.many, about.one == "person"
    label = "identifier" if of_people else "label"
    exact = about.guarantee is None or about.guarantee.arithmetic == "exact"
    proof = "docs/proofs/people-in-groups.md" if of_people else "docs/proofs/gram.md"
    attacked = "tests/custodian/groups/test_bounding.py" if of_people else "tests/custodian/gram/test_sensitivity.py"
    one_by_one = "tests/custodian/groups/test_sources.py" if of_people else "tests/custodian/gram/test_one_donor.py"
    claimed = "tests/release/test_panel.py" if of_people else "tests/release/test_file_check.py"
    declared = (
        "What is computed from people to find a bound is paid from the budget; units and periods are declared."
        if of_people
        else "What is computed from donors to find a scale is paid from the budget; periods that nobody declared are "
        "read from the table."
    )
    return (
        Hazard(
            "floating-point noise",
            "met" if exact else "not met",
            "Whole numbers are published, and their noise is drawn as whole numbers by OpenDP's exact samplers."
            if exact
            else "The guarantee is about real numbers: the last digits of floating-point noise may leak more.",
            (
                "docs/proofs/exact-arithmetic.md",
                "tests/privacy/test_discrete.py",
                "tests/evidence/audit/test_lowbits.py",
            ),
        ),
        Hazard(
            "noise of another law than stated",
            "met",
            "An OpenDP before 0.14.2, whose noise of small scales has another law, is refused. Tests compare the "
            "samplers with their law and reject a scale that is 10% too small.",
            ("tests/privacy/test_discrete.py",),
        ),
        Hazard(
            "randomness that can be predicted",
            "met in part",
            "Noise is drawn from the operating system's entropy, which is trusted. What a seed makes has no guarantee, "
            "and its file says so.",
            ("tests/privacy/test_discrete.py", "tests/custodian/groups/test_algorithm.py", "SECURITY.md"),
        ),
        Hazard(
            "a sensitivity that is too small",
            "met",
            f"The page named here proves it. Tests search for {many} who move the sums further than the noise pays "
            "for, and dpsc audit attacks the mechanism.",
            (proof, attacked, "tests/evidence/audit/test_shipped.py"),
        ),
        Hazard(
            "overflow",
            "met",
            "Noise that might not fit into 64 bits is refused from public numbers, before it is drawn.",
            ("tests/privacy/test_discrete.py", "tests/privacy/test_exact.py"),
        ),
        Hazard(
            "settings taken from the data",
            "met in part",
            f"{declared} That nobody looked at {many} to choose a setting, no file shows.",
            (proof, "SECURITY.md"),
        ),
        Hazard(
            "errors and refusals",
            "met in part",
            f"Messages of a release quote no value of a {one}. That a release is refused can depend on rows; the "
            "custodian alone is told.",
            (one_by_one, "SECURITY.md"),
        ),
        Hazard(
            f"several releases of the same {many}",
            "met in part",
            "A ledger books a release before it is published, and refuses what the budget does not pay. It adds up "
            f"what is entered in it, and nothing else. {about.booked}",
            (
                "docs/proofs/ledger.md",
                "tests/ledger/test_budget.py",
                "tests/ledger/test_race.py",
                "tests/ledger/test_crash.py",
            ),
        ),
        Hazard(
            f"one human being under several {label}s",
            "not met",
            f"A {one} is what has one {label} in the table. Who has several is protected less.",
            ("SECURITY.md",),
        ),
        Hazard(
            "a file that was changed",
            "met in part",
            "A file is refused when it is read if its checksum is wrong or its noise is too small for its claim. Who "
            "edits a file can make a new checksum: compare the SHA-256 with the custodian's.",
            (claimed, "tests/test_forged.py"),
        ),
        Hazard(
            "timing",
            "not met",
            "How long a release takes can depend on the records. Publish the file, and not how long it took.",
            ("SECURITY.md",),
        ),
        Hazard(
            "memory, swap, core dumps, temporary files",
            "not met",
            "Records are in memory, may be swapped, and are not erased.",
            ("SECURITY.md",),
        ),
        Hazard("operating system, Python, numpy, OpenDP", "not met", "They are trusted.", ("SECURITY.md",)),
    )
