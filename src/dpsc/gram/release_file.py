"""A release as a JSON file: small, self-describing, versioned, checked when read.

A file may come from anybody: what is read is plain text, known names and finite numbers of a sensible size, or refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np

from dpsc import files
from dpsc.checks import shown, visible
from dpsc.errors import DpscError, ReleaseError
from dpsc.gram.contents import LARGEST_NUMBER, ReleasedMatrix
from dpsc.gram.kernel import Kernel, Smoothness
from dpsc.gram.labels import periods_from_json, periods_to_json
from dpsc.gram.mapping import RowMap
from dpsc.gram.scale import LARGEST_SCALE, LARGEST_SHARE, NO_SCALE, Scale, ScaleFrom
from dpsc.privacy import discrete, exact
from dpsc.privacy.accounting import Loss
from dpsc.privacy.guarantee import Guarantee

R = TypeVar("R", bound=ReleasedMatrix)
FORMAT, VERSION = "dpsc-release", 2
_LARGEST_FILE = 2**27  # bytes; the matrix of 2,000 periods takes a third of it
_LARGEST_MOVEMENT = 1e10 * LARGEST_SCALE  # more than any series of that scale moves; its inverse is the smallest
_LEAST_NOISE = 1e-9  # for vectors of length one: an epsilon of about 1e18; with less, what is estimated overflows
_WIDEST_TRACE = 16  # noise beyond so many scales has a probability below 1e-50
_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})?")
_IDENTITY = re.compile(r"[0-9a-f]{32}")


def save(release: ReleasedMatrix, path: Path) -> None:
    """Write to a temporary file beside ``path`` and move it there."""
    try:
        files.write(path, dumps(release))
    except OSError as problem:
        raise ReleaseError(f"cannot write {path}: {problem.strerror or problem}.") from None


def load(path: Path, kind: type[R]) -> R:
    """Read and check a file, and return a release of the given class."""
    text = read(path)
    try:
        return loads(text, kind)
    except ReleaseError as problem:
        raise ReleaseError(f"{path}: {problem}") from None


def read(path: Path) -> str:
    """Return the text of a file, or say that it is not text of a sensible size."""
    return files.read_text(path, "dpsc release", _LARGEST_FILE)


def sha256(path: Path) -> str:
    """Return the hash of a file, as ``sha256sum`` prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def dumps(release: ReleasedMatrix) -> str:
    """Return the JSON text. The matrix is stored as its upper triangle, row by row."""
    body = {
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
        "matrix": [int(v) for v in release.matrix[np.triu_indices(len(release.matrix))]],
    }
    return json.dumps(body | {"checksum": _checksum(body)}, indent=1, ensure_ascii=False) + "\n"


def loads(text: str, kind: type[R]) -> R:
    """Read the JSON text, or say what is wrong with it."""
    try:
        body = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ReleaseError("this is not valid JSON; the file is truncated or not a release.") from None
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise ReleaseError("this is not a dpsc release.")
    version = body.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ReleaseError("the release has no version number.")
    if version > VERSION:
        raise ReleaseError(
            f"the release has version {shown(version)}, and this dpsc reads up to {VERSION}; upgrade dpsc to read it."
        )
    checksum = body.pop("checksum", None)
    if checksum != _checksum(body):
        raise ReleaseError("the checksum does not match: the file was edited or damaged.")
    body.setdefault("identities", [checksum[:32]])  # version 0.1.0 wrote none: the same file is still recognised
    try:
        return _build(body, kind)
    except ReleaseError:
        raise
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, IndexError, DpscError) as problem:
        what = visible(f"{type(problem).__name__}: {problem}")
        raise ReleaseError(f"the release does not follow its schema ({what}).") from None


def _build(body: dict[str, Any], kind: type[R]) -> R:
    if body["version"] == 1:  # of version 0.1.0: rows with their level, no mean, no scale
        body |= {"directions": None, "constant": 0.0, "scale": asdict(NO_SCALE)}
    times = periods_from_json(body["periods"])
    T, directions = len(times), body["directions"]
    _require(directions is None or (type(directions) is int and 1 <= directions <= T - 1), "the directions are wrong")
    size = T if directions is None else directions + 1
    upper = body["matrix"]
    _require(isinstance(upper, list) and len(upper) == size * (size + 1) // 2, "the matrix does not fit the periods")
    _require(all(type(v) is int and abs(v) < 2**63 for v in upper), "the matrix holds something else than integers")
    matrix = np.zeros((size, size), dtype=np.int64)
    matrix[np.triu_indices(size)] = upper
    matrix = matrix + np.triu(matrix, 1).T

    n, bits, sites = body["n"], body["grid_bits"], body["sites"]
    _require(all(type(v) is int and v >= 1 for v in (n, bits, sites)) and bits <= 26, "n, sites or grid_bits is wrong")
    _require(sites <= n and n < 2**62 and exact.fits(n * 4.0**bits), "there are more donors or sites than can be")
    scales = [_number(body["noise"][name]) for name in ("diagonal", "off_diagonal")]
    fine = all(_LEAST_NOISE * 4.0**bits <= s and exact.fits(s) for s in scales)
    _require(fine, "the noise scales are not positive numbers of sensible size")
    largest = n * 4.0**bits + discrete.WIDEST * scales[0]
    _require(
        float(np.abs(matrix).max()) <= largest, "the matrix holds numbers that so many donors and noise cannot make"
    )
    # Every vector has length 2^bits, less what truncation takes off; noise on the trace has scale s sqrt(size).
    room = 2 * math.sqrt(size) * n * 2.0**bits + _WIDEST_TRACE * scales[0] * math.sqrt(size)
    _require(
        abs(float(np.trace(matrix)) - n * 4.0**bits) <= room, "the trace of the matrix does not fit n and the noise"
    )
    kernel = Kernel(_number(body["kernel"]["phi"]), _number(body["kernel"]["nu"]))
    _require(kernel in [Kernel.named(name) for name in get_args(Smoothness)], "the kernel is not one of ours")
    reference = None if body["reference"] is None else np.array([_number(v) for v in body["reference"]])
    _require(reference is None or reference.shape == (T,), "the reference path does not fit the periods")
    constant, scale = _number(body["constant"]), _scale(body["scale"])
    _require((scale.source == "none") == (directions is None), "the scale does not fit the directions")
    _require(
        constant == 0 if directions is None else _is_movement(constant), "the constant does not fit the directions"
    )
    body |= {name: body.get(name, "") for name in ("periods_from", "made_on")}  # which 0.1.0 did not write
    texts = [body[name] for name in ("outcome", "no_guarantee", "provenance", "periods_from", "made_by", "made_on")]
    _require(all(isinstance(v, str) for v in texts), "a text field is not text")
    _require(_DAY.fullmatch(texts[5]) is not None, "the day on which it was made is not a day")
    identities, datasets = (_texts(body.get(name, [])) for name in ("identities", "datasets"))
    _require(1 <= len(identities) <= sites and all(map(_IDENTITY.fullmatch, identities)), "the identity is wrong")
    _require(len(datasets) <= sites, "there are more data sets than sites")
    return kind(
        matrix=matrix,
        n=n,
        times=times,
        outcome=texts[0],
        row_map=RowMap(T, kernel, reference, directions, constant, bits),
        scale=scale,
        diagonal_scale=scales[0],
        off_diagonal_scale=scales[1],
        guarantee=None if body["guarantee"] is None else _guarantee(body["guarantee"]),
        no_guarantee=texts[1],
        sites=sites,
        provenance=texts[2],
        periods_from=texts[3],
        identities=identities,
        datasets=datasets,
        made_by=texts[4],
        made_on=texts[5],
    )


def _scale(stored: dict[str, Any]) -> Scale:
    value, source, share = _number(stored["value"]), stored["source"], _number(stored["share"])
    _require(source in get_args(ScaleFrom), "it is not known where the scale is from")
    _require(
        (share > 0) == ("counted" in source) and share <= LARGEST_SHARE, "the scale's share of the budget is wrong"
    )
    _require(value == 0 if source == "none" else _is_movement(value), "the scale is not of a sensible size")
    return Scale(value, source, share)


def _is_movement(value: float) -> bool:
    return 1 / _LARGEST_MOVEMENT <= value <= _LARGEST_MOVEMENT


def _guarantee(stored: dict[str, Any]) -> Guarantee:
    loss = Loss(**{name: _number(value) for name, value in stored["loss"].items()})
    return Guarantee(
        **{**stored, "epsilon": _number(stored["epsilon"]), "delta": _number(stored["delta"]), "loss": loss}
    )


def _number(value: Any) -> float:
    fine = type(value) in (int, float) and abs(value) <= LARGEST_NUMBER  # False for NaN
    _require(fine, "something else stands where a number of sensible size should be")
    return float(value)


def _no_number(word: str) -> float:
    raise ValueError(word)


def _texts(values: Any) -> tuple[str, ...]:
    """Return a list of different texts as a tuple; whether they can be shown is checked where they are kept."""
    fine = isinstance(values, list) and all(isinstance(v, str) for v in values) and len(set(values)) == len(values)
    _require(fine, "the identities or data sets are not a list of different texts")
    return tuple(values)


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ReleaseError(f"{problem}; the file is not a valid release.")


def _checksum(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()
