"""What a booked file holds, read from the file itself when its booking is confirmed: all of it is public.

It is kept in the ledger, so that later releases from the same donors can be told what was released before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from dpsc.errors import DpscError
from dpsc.ledger.records import Contents, Entry, guarantee_from_json, guarantee_to_json, text
from dpsc.periods import calendar, dates
from dpsc.types import JsonObject

_WRONG = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, DpscError)


def release_in(content: bytes) -> JsonObject | None:
    """Return what the file of a release says of the newest release in it; None if it is another file."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or body.get("format") not in ("dpsc-release", "dpsc-panel"):
        return None
    try:
        blocks = body["blocks"] if body["format"] == "dpsc-panel" else None
        return body if blocks is None else {**blocks[-1], "parts": len(blocks)}
    except (LookupError, TypeError):
        return {}


def promises_something_else(release: JsonObject | None, promise: Mapping[str, object]) -> bool:
    """Return whether the guarantee of a release is not the promised one, or makes no sense; False for other files."""
    if release is None:
        return False
    try:
        return guarantee_to_json(guarantee_from_json(release["guarantee"])) != promise
    except _WRONG:
        return True


def contents_of(release: JsonObject | None) -> JsonObject | None:
    """Return what a release holds as plain values; None for other files, and if it does not say so in our words."""
    if release is None:
        return None
    try:
        outcomes = ", ".join(each["outcome"] for each in release.get("outcomes", [release]))
        first, last, periods = _course(release["periods"])
        n = None if "parts" in release else int(release["n"])
        for written in (outcomes, first, last):
            text("contents", written)
        return asdict(Contents(outcomes, first, last, periods, n, int(release.get("parts", 1))))
    except _WRONG:
        return None


def _course(stored: JsonObject) -> tuple[str, str, int]:
    """Return the first and the last period of a file, by name, and how many there are."""
    if "values" in stored:
        values = stored["values"]
        return _name(values[0]), _name(values[-1]), len(values)
    every, length = stored["every"], int(stored["length"])
    written = dates.read(stored["first"] if every != "year" else f"{stored['first']}-01")
    assert written is not None
    first = calendar.periods_of(every, [written.first])[0]
    return dates.period_name(first), dates.period_name(first + int(stored["step"]) * (length - 1)), length


def _name(value: object) -> str:
    return dates.period_name(value).removesuffix("T00:00:00")


def to_use(entries: Sequence[Entry]) -> list[Entry]:
    """Return the releases that analysts should use: those of which no other has all periods and as little noise.

    Of releases that are alike it is the newest one. Only what is confirmed and known is judged.
    """
    known = [entry for entry in entries if entry.contents is not None and entry.state == "confirmed"]
    return [entry for entry in known if not any(_replaces(other, entry) for other in known if other is not entry)]


def _replaces(new: Entry, old: Entry) -> bool:
    assert new.contents is not None
    assert old.contents is not None
    if new.partition != old.partition or not new.contents.has_all_of(old.contents):
        return False
    one, other = _exactness(new), _exactness(old)
    alike = old.contents.has_all_of(new.contents) and one == other
    return new.number > old.number if alike else one >= other or new.contents.parts > old.contents.parts


def _exactness(entry: Entry) -> float:
    """Return the square of mu: releases with more have less noise."""
    loss = entry.guarantee.loss
    return loss.mu_squared + 2 * loss.rho
