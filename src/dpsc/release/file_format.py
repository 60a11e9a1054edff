"""A release as a JSON file: small, self-describing, versioned, checked when read.

Files of earlier versions list dates one by one. They are recognised as the calendars that they are.

A file may come from anybody: what is read is plain text, known names and finite numbers of a sensible size, or refused.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import re
import warnings
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np
import pandas as pd

from dpsc import files
from dpsc.checks import LONGEST_NAME, is_printable, shown, visible
from dpsc.errors import DpscError, DpscWarning, ReleaseError
from dpsc.periods import calendar, dates
from dpsc.periods.dates import Every, period_name
from dpsc.privacy import discrete, exact
from dpsc.privacy.accounting import Loss
from dpsc.privacy.guarantee import Guarantee
from dpsc.release.kernel import Kernel, Smoothness
from dpsc.release.matrix import LARGEST_NUMBER, LARGEST_T, MOST_COORDINATES, ReleasedMatrix
from dpsc.release.rowmap import RowMap
from dpsc.release.scale import LARGEST_SCALE, LARGEST_SHARE, NO_SCALE, Scale, ScaleFrom
from dpsc.release.segments import Segments
from dpsc.types import Integers, JsonObject, Times

_UNPAID = (
    "this release does not say which data set of a ledger pays for it, so perhaps nobody adds up what is released "
    'about these people. If it is booked, say release(..., dataset="patients"); if no ledger is kept, release(..., '
    'dataset=None). To book it: with ledger.spending("patients", **ledger.terms(algorithm), output=path).'
)
_EVERY = ("year", "quarter", "month", "week", "day")
_LONGEST_STEP = 10_000
_FIXED_OFFSET = re.compile(r"UTC([+-][01][0-9]:[0-5][0-9])?")


def periods_to_json(times: Times) -> JsonObject:
    """Return what a file says about periods: a calendar, or their kind and labels; always their name."""
    name = None if times.name is None else str(times.name)
    every = calendar.frequency(times)
    if every in _EVERY:
        return {"kind": "calendar", "name": name, "every": every, **_course(times)}
    if isinstance(times, pd.PeriodIndex):
        return {"kind": "period", "name": name, "freq": times.freqstr, "values": [str(t) for t in times]}
    if isinstance(times, pd.DatetimeIndex):
        zone = None if times.tz is None else str(times.tz)
        if zone is not None and not _known_zone(zone):
            raise ReleaseError(
                f"the time zone {zone} has no name that others know; use one such as Europe/Berlin or UTC."
            )
        return {"kind": "datetime", "name": name, "tz": zone, "values": [t.isoformat() for t in times]}
    if pd.api.types.is_integer_dtype(times):
        return {"kind": "integer", "name": name, "values": [int(t) for t in times]}
    if pd.api.types.is_float_dtype(times):
        return {"kind": "number", "name": name, "values": [float(t) for t in times]}
    if all(isinstance(t, str) for t in times):
        return {"kind": "text", "name": name, "values": [str(t) for t in times]}
    if all(type(t) is datetime.date for t in times):
        return {"kind": "date", "name": name, "values": [t.isoformat() for t in times]}
    raise ReleaseError(f"periods of kind {times.dtype} cannot be stored; use numbers, text, dates or pandas periods.")


def _course(times: Times) -> JsonObject:
    """Return the first period, the number of periods and the step between them; all periods if it is not regular."""
    step = 1 if len(times) == 1 else calendar.step(times)
    if step is None or (np.diff(calendar.ordinals(times)) != step).any():
        return {"values": [period_name(time) for time in times]}
    return {"first": period_name(times[0]), "step": step, "length": len(times)}


def periods_from_json(periods: JsonObject) -> Times:
    """Read them back, or refuse what is not a list of sensible labels."""
    kind, name = periods["kind"], periods["name"]
    require(name is None or isinstance(name, str), "the name of the periods is not text")
    if kind == "calendar":
        return _calendar(periods).rename(name)
    values = periods["values"]
    require(isinstance(values, list) and 1 <= len(values) <= LARGEST_T, f"there are not 1 to {LARGEST_T} periods")
    kinds: dict[object, type] = {"integer": int, "number": float}
    wanted = kinds.get(kind, str)
    require(all(type(v) is wanted and _sensible(v) for v in values), "the periods are of an unknown kind")
    times = _index(kind, values, periods)
    require(not times.hasnans, "a period is missing")
    text = kind == "text"  # whose order is kept even if it is not that of time
    found = times if text and not _in_order(times) else calendar.calendar(times)
    return (found if found.is_unique else times).rename(name)


def _in_order(times: Times) -> bool:
    try:
        return calendar.calendar(times).is_monotonic_increasing
    except (DpscError, TypeError):
        return False


def _calendar(periods: JsonObject) -> Times:
    """Read a calendar: a regular one, or one whose periods are listed."""
    every = periods["every"]
    require(every in _EVERY, "the periods are of an unknown kind")
    if "values" in periods:
        values = periods["values"]
        require(isinstance(values, list) and 1 <= len(values) <= LARGEST_T, f"there are not 1 to {LARGEST_T} periods")
        return calendar.periods_of(every, [_first_day(value, every) for value in values])
    step, length = periods["step"], periods["length"]
    require(type(step) is int and 1 <= step <= _LONGEST_STEP, "the step between periods is wrong")
    require(type(length) is int and 1 <= length <= LARGEST_T, f"there are not 1 to {LARGEST_T} periods")
    first = calendar.periods_of(every, [_first_day(periods["first"], every)])
    times = [first[0] + step * k for k in range(length)]
    last = times[-1] if every == "year" else times[-1].year
    require(last <= 9999, "the periods end in no sensible year")
    return pd.Index(times) if every == "year" else pd.PeriodIndex(times)


def _first_day(value: Any, every: Every) -> datetime.date:
    """Return the first day of a period as we write it."""
    if every == "year":
        require(type(value) is str and re.fullmatch(r"[0-9]{4}", value) is not None, "a year is wrong")
        return datetime.date(int(value), 1, 1)
    written = dates.read(value) if type(value) is str and _sensible(value) else None
    require(written is not None and written.every == every, "a period of the calendar is wrong")
    assert written is not None
    return written.first


def _index(kind: str, values: list[Any], periods: JsonObject) -> Times:
    if kind == "period":
        require(_sensible(periods["freq"]), "the frequency is wrong")
        return pd.PeriodIndex(values, freq=periods["freq"])
    if kind == "datetime":
        zone = periods["tz"]
        require(zone is None or (isinstance(zone, str) and _known_zone(zone)), "the time zone is not known")
        index = pd.DatetimeIndex(pd.to_datetime(values, utc=zone is not None, format="ISO8601"))
        return index if zone is None else index.tz_convert(zone)
    if kind == "date":
        return pd.Index([datetime.date.fromisoformat(v) for v in values], dtype=object)
    require(kind in ("integer", "number", "text"), "the periods are of an unknown kind")
    plain: Times = pd.Index(values)
    return plain


def _sensible(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_NAME and is_printable(value)
    return bool(-(2**63) <= value < 2**63)  # False for NaN


def _known_zone(name: str) -> bool:
    """Tell names of time zones from paths of files, which pandas would open."""
    return _FIXED_OFFSET.fullmatch(name) is not None or name in zoneinfo.available_timezones()


R = TypeVar("R", bound=ReleasedMatrix)
Opened = TypeVar("Opened")
FORMAT, VERSION = "dpsc-release", 3
LARGEST_FILE = 2**27  # bytes; the matrix of 2,000 periods takes a third of it
_LARGEST_MOVEMENT = 1e10 * LARGEST_SCALE  # more than any series of that scale moves; its inverse is the smallest
_LEAST_NOISE = 1e-9  # for vectors of length one: an epsilon of about 1e18; with less, what is estimated overflows
_WIDEST_TRACE = 16  # noise beyond so many scales has a probability below 1e-50
_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})?")
_IDENTITY = re.compile(r"[0-9a-f]{32}")


def write(path: Path, text: str, *, unpaid: bool = False) -> None:
    """Write to a temporary file beside ``path`` and move it there; warn of a release that no data set pays for."""
    if unpaid:
        warnings.warn(_UNPAID, DpscWarning, stacklevel=3)
    try:
        files.write(path, text)
    except OSError as problem:
        raise ReleaseError(f"cannot write {path}: {problem.strerror or problem}.") from None


def opened(path: Path, loads: Callable[[str], Opened]) -> tuple[Opened, str]:
    """Return what ``loads`` makes of the text of a file, and the hash of the file."""
    text, digest = read(path)
    try:
        return loads(text), digest
    except ReleaseError as problem:
        raise ReleaseError(f"{path}: {problem}") from None


def read(path: Path) -> tuple[str, str]:
    """Return the text of a file and the hash of the very bytes, or say that it is not text of a sensible size."""
    content = files.read(path, "dpsc release", LARGEST_FILE)
    return files.as_text(content, path, "dpsc release"), hashlib.sha256(content).hexdigest()


def sha256(path: Path) -> str:
    """Return the hash of a file, as ``sha256sum`` prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def dumps(release: ReleasedMatrix) -> str:
    """Return the JSON text. A matrix, one for each segment, is stored as its upper triangle, row by row."""
    body = _body(release)
    if release.segments is None and len(release.identities) <= release.sites:  # as version 0.2.0 reads it
        del body["segments"]
        body |= {"version": 2, "matrix": body.pop("matrices")[0]}
    return sealed(body)


def dumps_outcomes(parts: Sequence[ReleasedMatrix], together: Guarantee | None) -> str:
    """Return the JSON text of several outcomes: what they share, what all promise together, and each one's own."""
    bodies = [_body(part) for part in parts]
    shared = {name: value for name, value in bodies[0].items() if name not in _OF_AN_OUTCOME}
    each = [{name: body[name] for name in _OF_AN_OUTCOME} for body in bodies]
    return sealed(shared | {"guarantee": None if together is None else asdict(together), "outcomes": each})


_OF_AN_OUTCOME = ("outcome", "kernel", "reference", "directions", "constant", "scale", "noise", "guarantee", "matrices")


def _body(release: ReleasedMatrix) -> JsonObject:
    uppers = [[int(v) for v in block[np.triu_indices(len(block))]] for block in release.blocks]
    return {
        "format": FORMAT,
        "version": VERSION,
        "made_by": release.made_by,
        "made_on": release.made_on,
        "outcome": release.outcome,
        "n": release.n,
        "sites": release.sites,
        "periods": periods_to_json(release.times),
        "kernel": asdict(release.kernel),
        "reference": None if release.reference is None else [float(v) for v in release.reference],
        "directions": release.row_map.directions,
        "constant": release.row_map.constant,
        "scale": asdict(release.scale),
        "grid_bits": release.grid_bits,
        "noise": {"diagonal": release.diagonal_scale, "off_diagonal": release.off_diagonal_scale},
        "guarantee": None if release.guarantee is None else asdict(release.guarantee),
        "no_guarantee": release.no_guarantee,
        "provenance": release.provenance,
        "periods_from": release.periods_from,
        "identities": list(release.identities),
        "datasets": list(release.datasets),
        "segments": None if release.segments is None else asdict(release.segments),
        "matrices": uppers,
    }


def sealed(body: JsonObject) -> str:
    """Return the text of a file with its checksum."""
    return json.dumps(body | {"checksum": checksum_of(body)}, indent=1, ensure_ascii=False) + "\n"


def loads(text: str, kind: type[R]) -> R:
    """Read the JSON text of one outcome, or say what is wrong with it."""
    parts, _ = loads_outcomes(text, kind)
    if len(parts) > 1:
        names = [part.outcome for part in parts]
        raise ReleaseError(
            f"the file holds several outcomes, {', '.join(names)}: open it with dpsc.load and take one, for example "
            f"dpsc.load(...)[{names[0]!r}]."
        )
    return parts[0]


def loads_outcomes(text: str, kind: type[R]) -> tuple[tuple[R, ...], Guarantee | None]:
    """Read the JSON text: one release, or those of several outcomes and what these promise together."""
    body, checksum = unsealed(text, FORMAT, VERSION, "release")
    body.setdefault("identities", [checksum[:32]])  # version 0.1.0 wrote none: the same file is still recognised
    with following_its_schema("release"):
        if body["version"] < 3 or "outcomes" not in body:
            return (_build(body, kind),), None
        each, together = body.pop("outcomes"), body["guarantee"]
        fine = isinstance(each, list) and all(isinstance(own, dict) and set(own) == set(_OF_AN_OUTCOME) for own in each)
        require(fine and len(each) > 1, "the outcomes are not a list of several")
        return tuple(_build(body | own, kind) for own in each), None if together is None else guarantee_from(together)


def unsealed(text: str, form: str, latest: int, what: str) -> tuple[JsonObject, str]:
    """Return the object of a file whose checksum fits, without it, and the checksum."""
    body = object_in(text, form, latest, what)
    checksum = body.pop("checksum", None)
    if checksum != checksum_of(body):
        raise ReleaseError("the checksum does not match: the file was edited or damaged.")
    return body, checksum


@contextmanager
def following_its_schema(what: str) -> Iterator[None]:
    """Refuse whatever else goes wrong in reading a file that anybody may have written."""
    try:
        yield
    except ReleaseError:
        raise
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, IndexError, DpscError) as problem:
        wrong = visible(f"{type(problem).__name__}: {problem}")
        raise ReleaseError(f"the {what} does not follow its schema ({wrong}).") from None


def object_in(
    text: str,
    form: str,
    latest: int,
    what: str,
    *,
    made_by: str = "",
    pairs: Callable[[list[tuple[str, object]]], JsonObject] = dict,
) -> JsonObject:
    """Return the object of a JSON file of ours, or say that it is something else, or of a later version.

    ``made_by`` ends the refusal of what is something else; ``pairs`` makes an object of names and values.
    """
    try:
        body = json.loads(text, parse_constant=_no_number, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        raise ReleaseError(f"this is not valid JSON; the file is truncated or not a {what}.") from None
    except DpscError as problem:
        raise ReleaseError(visible(str(problem))) from None
    if not isinstance(body, dict) or body.get("format") != form:
        raise ReleaseError(f"this is not a dpsc {what}{made_by}.")
    version = body.get("version")
    if type(version) is not int or version < 1:
        raise ReleaseError(f"the {what} has no version number.")
    if version > latest:
        raise ReleaseError(
            f"the {what} has version {shown(version)}, and this dpsc reads up to {latest}; upgrade dpsc to read it."
        )
    return body


def _build(body: JsonObject, kind: type[R]) -> R:
    if body["version"] == 1:  # of version 0.1.0: rows with their level, no mean, no scale
        body |= {"directions": None, "constant": 0.0, "scale": asdict(NO_SCALE)}
    if body["version"] < 3:  # without segments
        body |= {"segments": None, "matrices": [body["matrix"]]}
    times = periods_from_json(body["periods"])
    T, directions = len(times), body["directions"]
    require(directions is None or (type(directions) is int and 1 <= directions <= T - 1), "the directions are wrong")
    size = T if directions is None else directions + 1
    segments = None if body["segments"] is None else Segments.of(body["segments"])
    uppers = body["matrices"]
    several = 1 if segments is None else len(segments.labels)
    require(isinstance(uppers, list) and len(uppers) == several, "there is not one matrix for each segment")
    matrix = np.array([_whole(upper, size) for upper in uppers])

    n, bits, sites = body["n"], body["grid_bits"], body["sites"]
    require(all(type(v) is int and v >= 1 for v in (n, bits, sites)) and bits <= 26, "n, sites or grid_bits is wrong")
    require(sites <= n and n < 2**62 and exact.fits(n * 4.0**bits), "there are more donors or sites than can be")
    scales = [number(body["noise"][name]) for name in ("diagonal", "off_diagonal")]
    fine = all(_LEAST_NOISE * 4.0**bits <= s and exact.fits(s) for s in scales)
    require(fine, "the noise scales are not positive numbers of sensible size")
    require(several == 1 or several * size * (size + 1) // 2 <= MOST_COORDINATES, "there are too many segments")
    largest = n * 4.0**bits + discrete.WIDEST * scales[0]
    require(
        float(np.abs(matrix).max()) <= largest, "the matrix holds numbers that so many donors and noise cannot make"
    )
    # Every vector has length 2^bits, less what truncation takes off; noise on the trace has scale s sqrt(size).
    room = 2 * math.sqrt(size) * n * 2.0**bits + _WIDEST_TRACE * scales[0] * math.sqrt(several * size)
    trace = float(np.trace(matrix, axis1=1, axis2=2).astype(np.float64).sum())
    require(abs(trace - n * 4.0**bits) <= room, "the trace of the matrix does not fit n and the noise")
    kernel = Kernel(number(body["kernel"]["phi"]), number(body["kernel"]["nu"]))
    require(kernel in [Kernel.named(name) for name in get_args(Smoothness)], "the kernel is not one of ours")
    reference = None if body["reference"] is None else np.array([number(v) for v in body["reference"]])
    require(reference is None or reference.shape == (T,), "the reference path does not fit the periods")
    constant, scale = number(body["constant"]), _scale(body["scale"])
    require((scale.source == "none") == (directions is None), "the scale does not fit the directions")
    require(constant == 0 if directions is None else _is_movement(constant), "the constant does not fit the directions")
    body |= {name: body.get(name, "") for name in ("periods_from", "made_on")}  # which 0.1.0 did not write
    texts = [body[name] for name in ("outcome", "no_guarantee", "provenance", "periods_from", "made_by", "made_on")]
    require(all(isinstance(v, str) for v in texts), "a text field is not text")
    require_day(texts[5])
    identities, datasets = (texts_from(body.get(name, [])) for name in ("identities", "datasets"))
    require(1 <= len(identities) <= (sites if body["version"] < 3 else n), "the identity is wrong")
    require_identities(identities)
    require(len(datasets) <= sites, "there are more data sets than sites")
    return kind(
        matrix=matrix[0] if segments is None else matrix,
        n=n,
        times=times,
        outcome=texts[0],
        row_map=RowMap(T, kernel, reference, directions, constant, bits),
        scale=scale,
        diagonal_scale=scales[0],
        off_diagonal_scale=scales[1],
        guarantee=None if body["guarantee"] is None else guarantee_from(body["guarantee"]),
        no_guarantee=texts[1],
        sites=sites,
        provenance=texts[2],
        periods_from=texts[3],
        identities=identities,
        datasets=datasets,
        segments=segments,
        made_by=texts[4],
        made_on=texts[5],
    )


def _whole(upper: Any, size: int) -> Integers:
    """Return a matrix from its upper triangle."""
    require(isinstance(upper, list) and len(upper) == size * (size + 1) // 2, "the matrix does not fit the periods")
    require(all(type(v) is int and abs(v) < 2**63 for v in upper), "the matrix holds something else than integers")
    matrix = np.zeros((size, size), dtype=np.int64)
    matrix[np.triu_indices(size)] = upper
    return matrix + np.triu(matrix, 1).T


def _scale(stored: JsonObject) -> Scale:
    value, source, share = number(stored["value"]), stored["source"], number(stored["share"])
    require(source in get_args(ScaleFrom), "it is not known where the scale is from")
    require((share > 0) == ("counted" in source) and share <= LARGEST_SHARE, "the scale's share of the budget is wrong")
    require(value == 0 if source == "none" else _is_movement(value), "the scale is not of a sensible size")
    level = number(stored.get("level", 0.0))  # which 0.2.0 did not write
    require(level == 0 or (_is_movement(level) and source == "like and counted"), "the level is not of a sensible size")
    return Scale(value, source, share, level)


def require_day(text: str) -> None:
    """Refuse a day of making that is none; it may be empty."""
    require(_DAY.fullmatch(text) is not None, "the day on which it was made is not a day")


def require_identities(texts: Iterable[str]) -> None:
    """Refuse names of releases that are no random numbers of ours."""
    require(all(map(_IDENTITY.fullmatch, texts)), "the identity is wrong")


def _is_movement(value: float) -> bool:
    return 1 / _LARGEST_MOVEMENT <= value <= _LARGEST_MOVEMENT


def guarantee_from(stored: JsonObject) -> Guarantee:
    """Read a guarantee back."""
    loss = Loss(**{name: number(value) for name, value in stored["loss"].items()})
    return Guarantee(**{**stored, "epsilon": number(stored["epsilon"]), "delta": number(stored["delta"]), "loss": loss})


def number(value: Any) -> float:
    """Return a number of sensible size as a float."""
    fine = type(value) in (int, float) and abs(value) <= LARGEST_NUMBER  # False for NaN
    require(fine, "something else stands where a number of sensible size should be")
    return float(value)


def _no_number(word: str) -> float:
    raise ValueError(word)


def texts_from(values: Any) -> tuple[str, ...]:
    """Return a list of different texts as a tuple; whether they can be shown is checked where they are kept."""
    fine = isinstance(values, list) and all(isinstance(v, str) for v in values) and len(set(values)) == len(values)
    require(fine, "the identities or data sets are not a list of different texts")
    return tuple(values)


def require(condition: bool, problem: str) -> None:
    """Refuse a file that is not valid."""
    if not condition:
        raise ReleaseError(f"{problem}; the file is not valid.")


def checksum_of(body: JsonObject) -> str:
    """Return the SHA-256 of a file's canonical JSON, less the checksum itself."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()
