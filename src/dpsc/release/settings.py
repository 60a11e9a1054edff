"""What sites agree on before each makes its release, so that the releases add up: a small JSON file of public choices.

Nothing in it comes from a donor. A file may come from anybody: what is read is checked, or refused.
"""

from __future__ import annotations

import json
import math
from dataclasses import KW_ONLY, asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsc import checks, files
from dpsc.errors import DpscError, Parameter, ParameterError, ReleaseError
from dpsc.periods.calendar import calendar
from dpsc.release.file_format import object_in, periods_from_json, periods_to_json
from dpsc.release.kernel import Kernel, Smoothness
from dpsc.release.matrix import GRID_BITS, LARGEST_NUMBER, LARGEST_T, budget_mu, require_public_labels
from dpsc.release.rowmap import SMALL_CONSTANT, constant_over_scale, directions_for, require_constant, whitened_size
from dpsc.release.scale import MOST_COUNTS, estimated, guess_from, require_scale
from dpsc.release.segments import Segments
from dpsc.tables.spec import Missing, rule_for
from dpsc.types import Array, JsonObject, TargetLike, Times
from dpsc.version import __version__

FORMAT, VERSION = "dpsc-settings", 2
_LARGEST_FILE = 2**20  # bytes
_ABOUT_THE_FILE = ("format", "version", "made_by")


@dataclass(frozen=True, eq=False)
class Settings:
    """The public choices that releases must share to be merged, and a budget that was suggested for each.

    Attributes
    ----------
    scale : float
        How much a donor's series moves over the whole time, in the outcome's units, as in :class:`dpsc.GramRelease`.
    directions : int
        How many of the smoothest directions to keep: as many as the donors of all sites together can fill.
    constant : float
        The constant of the releases, as a share of the scale: from how many donors all sites have together, so that
        sites of any size, with any budget, have the same. In settings of version 1 it was 0.7.
    smoothness : {"high", "mild", "none"}
    periods : Index, optional
        The periods of all releases; they are not agreed on if they are not given.
    reference : array, optional
        The public path that is subtracted from every donor, one number per period.
    outcome : str, optional
    grid_bits : int
    missing : {"error", "interpolate", "midpoint", "kernel"}, optional
        A suggestion for missing cells: releases that differ in it add up, but their donors were read differently.
    epsilon, delta : float, optional
        A suggestion; each site decides on its own budget.
    segments : Segments, optional
        The column of segments and their labels, the same at all sites.

    Examples
    --------
    >>> agreed = Settings(scale=12.0, directions=20)
    >>> agreed.smoothness, agreed.grid_bits
    ('high', 18)
    """

    _: KW_ONLY
    scale: float
    directions: int
    constant: float = SMALL_CONSTANT
    smoothness: Smoothness = "high"
    periods: Times | None = None
    reference: Array | None = None
    outcome: str | None = None
    grid_bits: int = GRID_BITS
    missing: Missing | None = None
    epsilon: float | None = None
    delta: float | None = None
    segments: Segments | None = None

    def __post_init__(self) -> None:
        require_scale(self.scale)
        require_constant(self.constant)
        Kernel.named(self.smoothness)
        rule_for(self.missing, declared=False)
        if self.periods is not None:
            object.__setattr__(self, "periods", calendar(self.periods).rename(self.periods.name))
        T = LARGEST_T if self.periods is None else len(self.periods)
        if not 2 <= T <= LARGEST_T:
            raise ParameterError(f"{Parameter('periods')} must be 2 to {LARGEST_T} periods, not {T}.")
        if checks.whole_number("directions", self.directions, at_least=1) >= T:
            raise ParameterError(f"{Parameter('directions')} must be below the {T} periods.")
        if not 4 <= checks.whole_number("grid_bits", self.grid_bits, at_least=1) <= 26:
            raise ParameterError(f"{Parameter('grid_bits')} must be between 4 and 26.")
        if self.reference is not None:
            fits = self.periods is None or self.reference.shape == (T,)
            if self.reference.ndim != 1 or not fits or not (np.abs(self.reference) <= LARGEST_NUMBER).all():
                raise ParameterError(f"{Parameter('reference')} must be one number of sensible size per period.")
        if self.epsilon is not None:
            checks.epsilon("epsilon", self.epsilon)
        if self.delta is not None:
            checks.delta("delta", self.delta)
        require_public_labels(
            "" if self.outcome is None else self.outcome, pd.Index([]) if self.periods is None else self.periods
        )

    def save(self, path: str | Path) -> None:
        """Write a JSON file, completely or not at all."""
        try:
            files.write(Path(path), self.dumps())
        except OSError as problem:
            raise ReleaseError(f"cannot write {path}: {problem.strerror or problem}.") from None

    def dumps(self) -> str:
        """Return the JSON text."""
        body = {
            "format": FORMAT,
            "version": VERSION,
            "made_by": f"dpsc {__version__}",
            "outcome": self.outcome,
            "smoothness": self.smoothness,
            "scale": float(self.scale),
            "directions": int(self.directions),
            "constant": float(self.constant),
            "grid_bits": int(self.grid_bits),
            "missing": self.missing,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "periods": None if self.periods is None else periods_to_json(self.periods),
            "reference": None if self.reference is None else [float(v) for v in self.reference],
        }
        if self.segments is not None:
            body["segments"] = asdict(self.segments)  # an earlier version, which knows none, then refuses the file
        return json.dumps(body, indent=1, ensure_ascii=False) + "\n"

    @property
    def reference_path(self) -> pd.Series[float] | Array | None:
        """The reference by period, if both are there, so that it cannot be taken for that of others."""
        if self.reference is None or self.periods is None:
            return self.reference
        return pd.Series(self.reference, index=self.periods)


def load(path: str | Path) -> Settings:
    """Read and check a file."""
    text = files.read_text(Path(path), "dpsc settings file", _LARGEST_FILE)
    try:
        return loads(text)
    except ReleaseError as problem:
        raise ReleaseError(f"{path}: {problem}") from None


def loads(text: str) -> Settings:
    """Read the JSON text, or say what is wrong with it."""
    once, made_by = partial(checks.names_once, "the settings say"), "; dpsc plan --settings writes one"
    body = object_in(text, FORMAT, VERSION, "settings file", made_by=made_by, pairs=once)
    known = [*_ABOUT_THE_FILE, *(name for name in Settings.__dataclass_fields__ if name != "_")]
    unknown = next((str(name) for name in body if name not in known), None)
    if unknown is not None:
        hint = checks.did_you_mean(unknown[:40], known)
        raise ReleaseError(f"the settings say {checks.visible(unknown[:40])!r}, which dpsc does not know.{hint}")
    try:
        return _build({name: value for name, value in body.items() if name not in _ABOUT_THE_FILE})
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, IndexError, DpscError) as problem:
        what = str(problem) if isinstance(problem, DpscError) else f"{type(problem).__name__}: {problem}"
        raise ReleaseError(f"the settings do not follow their schema: {checks.visible(what)}") from None


def _build(said: JsonObject) -> Settings:
    for name in ("scale", "directions"):
        if said.get(name) is None:
            raise ReleaseError(f"they do not say {name!r}, without which releases do not add up.")
    given = {name: value for name, value in said.items() if value is not None}
    for name in ("scale", "directions", "constant", "grid_bits", "epsilon", "delta"):
        if name in given and type(given[name]) not in (int, float):
            raise ReleaseError(f"{name!r} is not a number.")
    if "periods" in given:
        given["periods"] = periods_from_json(given["periods"])
    if "reference" in given:
        if not isinstance(given["reference"], list) or any(type(v) not in (int, float) for v in given["reference"]):
            raise ReleaseError("the reference path is not a list of numbers.")
        given["reference"] = np.array(given["reference"], dtype=np.float64)
    if "segments" in given:
        given["segments"] = Segments.of(given["segments"])
    return Settings(**given)


def agreed(
    n: int,
    T: int,
    epsilon: float,
    delta: float,
    *,
    sites: int = 1,
    scale: float | None = None,
    like: TargetLike | None = None,
    smoothness: Smoothness = "high",
    grid_bits: int = GRID_BITS,
    **labels: Any,
) -> Settings:
    """Return settings for sites that have n donors together over T periods, each with its own release.

    Parameters
    ----------
    n, T, sites : int
        From them follow how many directions the merged release can fill, and its constant.
    epsilon, delta : float
        The budget of each site.
    scale, like
        As in :class:`dpsc.GramRelease`; one of them is needed, because sites cannot count donors together.
    **labels
        ``periods``, ``reference``, ``outcome``, ``missing`` and ``segments``.
    """
    if (scale is None) == (like is None):
        raise ParameterError(
            f"settings for several sites need {Parameter('scale')} or {Parameter('like')}, not both: what each "
            "finds in its own donors differs."
        )
    if like is not None:
        scale = scale_like(like, T, smoothness)
    assert scale is not None
    noise = math.sqrt(2 * sites) / budget_mu(epsilon, delta, grid_bits)
    return Settings(
        scale=scale,
        directions=directions_for(n, T, noise, Kernel.named(smoothness)),
        constant=constant_over_scale(n, noise),
        smoothness=smoothness,
        grid_bits=grid_bits,
        epsilon=epsilon,
        delta=delta,
        **labels,
    )


def scale_like(path: TargetLike, T: int, smoothness: Smoothness) -> float:
    """Return the scale to agree on from a public series that moves about like a donor, such as the target's past.

    It is what a release would take for its scale with ``like=`` and no donor counted, to three digits.
    """
    kernel = Kernel.named(smoothness)
    guess = guess_from(path, T, kernel)
    if guess is None:
        raise ParameterError(f"the series does not move, so it says nothing about donors; give {Parameter('scale')}.")
    expected = estimated(np.zeros(MOST_COUNTS), 0, 1.0, guess)
    return float(f"{expected / whitened_size(1.0, T, kernel):.3g}")
