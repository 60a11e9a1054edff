"""A release as a JSON file: small, self-describing, versioned, checked when read."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from dpsc import files
from dpsc.errors import DpscError, ReleaseError
from dpsc.gram.contents import ReleasedMatrix
from dpsc.gram.kernel import Kernel
from dpsc.privacy.accounting import Loss
from dpsc.privacy.guarantee import Guarantee
from dpsc.version import __version__

R = TypeVar("R", bound=ReleasedMatrix)
FORMAT, VERSION = "dpsc-release", 1


def save(release: ReleasedMatrix, path: Path) -> None:
    """Write to a temporary file beside ``path`` and move it there."""
    try:
        files.write(path, dumps(release))
    except OSError as problem:
        raise ReleaseError(f"cannot write {path}: {problem.strerror or problem}.") from None


def load(path: Path, kind: type[R]) -> R:
    """Read and check a file, and return a release of the given class."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise ReleaseError(f"cannot read {path}: {problem.strerror or problem}.") from None
    except UnicodeDecodeError:
        raise ReleaseError(f"{path} is not a dpsc release: it is not text.") from None
    try:
        return loads(text, kind)
    except ReleaseError as problem:
        raise ReleaseError(f"{path}: {problem}") from None


def dumps(release: ReleasedMatrix) -> str:
    """Return the JSON text. The matrix is stored as its upper triangle, row by row."""
    body = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": f"dpsc {__version__}",
        "outcome": release.outcome,
        "n": release.n,
        "sites": release.sites,
        "periods": _periods_to_json(release.times),
        "kernel": asdict(release.kernel),
        "reference": None if release.reference is None else [float(v) for v in release.reference],
        "grid_bits": release.grid_bits,
        "noise": {"diagonal": release.diagonal_scale, "off_diagonal": release.off_diagonal_scale},
        "guarantee": None if release.guarantee is None else asdict(release.guarantee),
        "no_guarantee": release.no_guarantee,
        "provenance": release.provenance,
        "periods_from": release.periods_from,
        "matrix": [int(v) for v in release.matrix[np.triu_indices(release.T)]],
    }
    return json.dumps(body | {"checksum": _checksum(body)}, indent=1, ensure_ascii=False) + "\n"


def loads(text: str, kind: type[R]) -> R:
    """Read the JSON text, or say what is wrong with it."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        raise ReleaseError("this is not valid JSON; the file is truncated or not a release.") from None
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise ReleaseError("this is not a dpsc release.")
    version = body.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ReleaseError("the release has no version number.")
    if version > VERSION:
        raise ReleaseError(
            f"the release has version {version}, and this dpsc reads up to {VERSION}; upgrade dpsc to read it."
        )
    if body.pop("checksum", None) != _checksum(body):
        raise ReleaseError("the checksum does not match: the file was edited or damaged.")
    try:
        return _build(body, kind)
    except ReleaseError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, IndexError, DpscError) as problem:
        raise ReleaseError(f"the release does not follow its schema ({type(problem).__name__}: {problem}).") from None


def _build(body: dict[str, Any], kind: type[R]) -> R:
    times = _periods_from_json(body["periods"])
    T = len(times)
    upper = body["matrix"]
    _require(T >= 1 and times.is_unique, "the periods are empty or repeat")
    _require(isinstance(upper, list) and len(upper) == T * (T + 1) // 2, "the matrix does not fit the periods")
    _require(all(type(v) is int and abs(v) < 2**63 for v in upper), "the matrix holds something else than integers")
    matrix = np.zeros((T, T), dtype=np.int64)
    matrix[np.triu_indices(T)] = upper
    matrix = matrix + np.triu(matrix, 1).T

    n, bits, sites = body["n"], body["grid_bits"], body["sites"]
    _require(all(type(v) is int and v >= 1 for v in (n, bits, sites)) and bits <= 26, "n, sites or grid_bits is wrong")
    scales = [float(body["noise"][name]) for name in ("diagonal", "off_diagonal")]
    _require(all(math.isfinite(s) and s > 0 for s in scales), "the noise scales are not positive numbers")
    kernel = Kernel(float(body["kernel"]["phi"]), float(body["kernel"]["nu"]))
    _require(0 <= kernel.phi < 1 and 0 < kernel.nu <= 1, "the kernel is not a covariance")
    reference = None if body["reference"] is None else np.array(body["reference"], dtype=np.float64)
    if reference is not None:
        _require(reference.shape == (T,) and bool(np.isfinite(reference).all()), "the reference path is wrong")
    body.setdefault("periods_from", "")  # which 0.1.0 did not write
    texts = [body[name] for name in ("outcome", "no_guarantee", "provenance", "periods_from")]
    _require(all(isinstance(v, str) for v in texts), "a text field is not text")
    guarantee = body["guarantee"]
    if guarantee is not None:
        guarantee = Guarantee(**{**guarantee, "loss": Loss(**guarantee["loss"])})
    return kind(
        matrix=matrix,
        n=n,
        times=times,
        outcome=texts[0],
        kernel=kernel,
        reference=reference,
        grid_bits=bits,
        diagonal_scale=scales[0],
        off_diagonal_scale=scales[1],
        guarantee=guarantee,
        no_guarantee=texts[1],
        sites=sites,
        provenance=texts[2],
        periods_from=texts[3],
    )


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ReleaseError(f"{problem}; the file is not a valid release.")


def _checksum(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _periods_to_json(times: pd.Index[Any]) -> dict[str, Any]:
    name = None if times.name is None else str(times.name)
    if isinstance(times, pd.PeriodIndex):
        return {"kind": "period", "name": name, "freq": times.freqstr, "values": [str(t) for t in times]}
    if isinstance(times, pd.DatetimeIndex):
        zone = None if times.tz is None else str(times.tz)
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


def _periods_from_json(periods: dict[str, Any]) -> pd.Index[Any]:
    kind, values, name = periods["kind"], periods["values"], periods["name"]
    _require(isinstance(values, list), "the periods are not a list")
    if kind == "period":
        return pd.PeriodIndex(values, freq=periods["freq"], name=name)
    if kind == "datetime":
        index = pd.DatetimeIndex(pd.to_datetime(values, utc=periods["tz"] is not None), name=name)
        return index.tz_convert(periods["tz"]) if periods["tz"] is not None else index
    if kind == "date":
        return pd.Index([datetime.date.fromisoformat(v) for v in values], name=name, dtype=object)
    kinds: dict[str, type] = {"integer": int, "number": float, "text": str}
    _require(kind in kinds and all(type(v) is kinds[kind] for v in values), "the periods are of an unknown kind")
    plain: pd.Index[Any] = pd.Index(values, name=name)
    return plain
