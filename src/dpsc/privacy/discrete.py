"""Discrete Laplace and discrete Gaussian noise on 64-bit integers, from OpenDP's exact samplers.

OpenDP draws from the operating system's entropy in exact rational arithmetic and saturates at the ends of int64, which
is post-processing. Its library is imported when noise is drawn, not before, and refused if its noise is biased.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from dpsc.checks import finite_number
from dpsc.errors import DpscError
from dpsc.privacy.exact import as_integers, require_no_overflow
from dpsc.privacy.source import Source
from dpsc.types import Array, Integers

Kind = Literal["laplace", "gaussian"]
_BLOCK = 2**15
_FIRST_UNBIASED = 0, 14, 2  # before, noise of small scales had another law: OpenDP's issue 2638
WIDEST = 64  # noise beyond so many scales has probability below e^-64 and saturates


def add(
    values: Integers,
    kind: Kind,
    scale: float,
    source: Source,
    *,
    largest: float,
    on_progress: Callable[[int], None] = lambda drawn: None,
) -> Integers:
    """Return ``values``, of size at most the public number ``largest``, plus independent discrete noise.

    ``"laplace"``: P(k) proportional to exp(-|k| / scale). Integers with l1 sensitivity D under replace-one become
    (D / scale, 0)-differentially private. ``"gaussian"``: P(k) proportional to exp(-k^2 / (2 scale^2)). Integers with
    l2 sensitivity D become D^2 / (2 scale^2)-zCDP (Canonne, Kamath and Steinke 2020, Theorem 4). Both statements are
    about exactly the numbers that are returned. They would break for 32-bit integers (OpenDP's ``int``), which saturate
    early enough to matter, and for a scale computed from the donors. ``on_progress`` receives how many were drawn,
    block by block; a million take a while.
    """
    scale = finite_number("scale", scale, above=0)
    require_room(scale, largest)
    if not source.private:
        return values + as_integers(np.rint(_continuous(kind, scale, source, values.shape)))
    noisy = np.empty(values.size, dtype=np.int64)
    draw, flat = measurement(kind, scale), values.ravel()
    for start in range(0, values.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        noisy[part] = np.maximum(as_integers(draw(flat[part].tolist())), -(2**63 - 1))
        on_progress(len(noisy[part]))
    return noisy.reshape(values.shape)


def deviation(kind: Kind, scale: float) -> float:
    """Return the standard deviation of noise, for Laplace's ``sqrt(2 q) / (1 - q)`` with q = exp(-1 / scale)."""
    if kind == "gaussian":
        return scale
    return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)


def require_room(scale: float, largest: float) -> None:
    """Refuse noise that, added to integers of this size, might not fit into 64 bits."""
    require_no_overflow(WIDEST * scale + largest, "the noise")


def require_unbiased() -> None:
    """Refuse an OpenDP whose noise has another law than it states, and one that is no release of theirs."""
    from importlib.metadata import version

    found, needed = version("opendp"), ".".join(map(str, _FIRST_UNBIASED))
    numbers = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)(\.post\d+)?", found)
    if numbers is None or tuple(map(int, numbers.groups()[:3])) < _FIRST_UNBIASED:
        raise DpscError(
            f"OpenDP {found} is installed, whose noise may be biased, so none was drawn; install a released version "
            f"from {needed} on: pip install 'opendp>={needed}'."
        )


@lru_cache(maxsize=64)
def measurement(kind: Kind, scale: float) -> Any:
    """Return OpenDP's measurement on vectors of i64, whose ``map`` states the same privacy loss."""
    require_unbiased()
    from opendp.domains import atom_domain, vector_domain  # not from its prelude, which loads scikit-learn: a second
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"))
    if kind == "laplace":
        return make_laplace(domain, l1_distance(T="i64"), scale)
    return make_gaussian(domain, l2_distance(T="f64"), scale)


def _continuous(kind: Kind, scale: float, source: Source, shape: tuple[int, ...]) -> Array:
    """Draw for experiments: rounded continuous noise, which only a seeded source may use."""
    if kind == "gaussian":
        return scale * source.normals(shape)
    return scale * (source.gammas(1, shape) - source.gammas(1, shape))
