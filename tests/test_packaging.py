"""What is released agrees with itself: the lock with constraints.txt and pyproject.toml, versions with each other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import dpsc

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
FOR_US = {"dev", "docs", "release"}  # all other extras are for users


def pins(name: str) -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / name).read_text("utf-8"), flags=re.MULTILINE)
    pinned: dict[str, str] = {canonicalize_name(package): version for package, version in found}
    assert len(pinned) == len(found) > 80
    return pinned


def needed() -> list[Requirement]:
    extras = [lines for name, lines in PROJECT["optional-dependencies"].items() if name not in FOR_US]
    return [Requirement(line) for lines in (PROJECT["dependencies"], *extras) for line in lines]


def test_the_lock_has_what_users_need_in_the_versions_that_are_tested() -> None:
    """``make lock`` writes it; somebody who changes a pin or a requirement and forgets this is told."""
    locked, tested = pins("requirements.lock"), pins("constraints.txt")
    assert {name: version for name, version in locked.items() if tested.get(name) != version} == {}
    wanted = [need for need in needed() if not need.specifier.contains(locked.get(canonicalize_name(need.name), "0"))]
    assert wanted == []


def test_every_package_of_the_lock_has_hashes_and_comes_from_nowhere_else() -> None:
    text = (ROOT / "requirements.lock").read_text("utf-8")
    entries = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).strip())
    assert len(entries) == len(pins("requirements.lock"))
    hashed = r"[\w.-]+==[\w.]+( ; [^\\\n]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+"
    assert [entry for entry in entries if not re.fullmatch(hashed, entry)] == []


def test_the_lock_is_made_with_every_extra_of_users() -> None:
    line = re.search(r"^EXTRAS := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert line
    assert set(line[1].split()) == set(PROJECT["optional-dependencies"]) - FOR_US


def test_the_citation_the_changelog_and_the_program_have_one_version() -> None:
    cited = (ROOT / "CITATION.cff").read_text("utf-8")
    version, date = (re.search(rf"^{name}: (\S+)$", cited, re.MULTILINE) for name in ("version", "date-released"))
    newest = re.search(r"^## (\S+) \((.+)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert version
    assert date
    assert newest
    assert (version[1], date[1]) == (newest[1], newest[2])
    assert version[1] == dpsc.__version__
