"""Segments of a release: declared labels with a matrix for each, and the pools of them that an analyst may ask."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dpsc.checks import LONGEST_NAME, did_you_mean, is_printable
from dpsc.errors import Parameter, ParameterError, ReleaseError
from dpsc.types import Positions

OTHER = "other"
_DECIMALS_OF_WHOLE = re.compile(r"([+-]?\d+)\.0+")
MOST_SEGMENTS = 64
READABLE = 2.0  # a pool must have so many times as many donors as the largest direction of its noise stands for
BY, LABELS = Parameter("by", ""), Parameter("labels")
PoolLike: TypeAlias = "str | Iterable[str] | Mapping[str, float]"


@dataclass(frozen=True)
class Segments:
    """By what donors are divided, and into which segments.

    Attributes
    ----------
    by : str
        What labels are of, or the column that holds them.
    labels : tuple of str
        The declared ones, public, and "other" at the end: for any other label, for several, and for none.
    """

    by: str
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self.labels) <= MOST_SEGMENTS:
            raise ParameterError(f"{LABELS} must name 1 to {MOST_SEGMENTS - 1} segments; {OTHER!r} is added to them.")
        if self.labels[-1] != OTHER or len(set(self.labels)) < len(self.labels):
            raise ParameterError(f"{LABELS} must name different segments.")
        if not all(text and len(text) <= LONGEST_NAME and is_printable(text) for text in (self.by, *self.labels)):
            raise ParameterError(f"{LABELS} and {BY} must be printable names of at most {LONGEST_NAME} characters.")

    def __str__(self) -> str:
        return f"{self.by}: {', '.join(self.labels)}"

    @classmethod
    def declared(cls, by: Hashable | None, labels: str | Iterable[str] | None) -> Segments | None:
        """Return the segments that were declared, with commas or as a list, None if none were.

        Labels that nobody declared are refused.
        """
        if by is None:
            if labels is not None:
                raise ParameterError(f"{LABELS} belong to {BY}, the column of segments.")
            return None
        if not isinstance(by, str | tuple) and hasattr(by, "__len__"):
            raise ParameterError(f"{BY} is the name of a column; only of an array it is a label for each row.")
        if labels is None:
            raise ParameterError(
                f"declare {Parameter('labels', 'A,B,C')}, a list of the segments of {str(by)!r}: those of single "
                f"donors would otherwise be published. Donors with another label are in {OTHER!r}."
            )
        names = [plain_label(label) for label in (labels.split(",") if isinstance(labels, str) else labels)]
        return cls(str(by), (*(name for name in names if name != OTHER), OTHER))

    @classmethod
    def of(cls, stored: Any) -> Segments:
        """Read them from the plain values of a file, or refuse what they cannot be."""
        by, labels = stored["by"], stored["labels"]
        texts = isinstance(labels, list) and all(isinstance(text, str) for text in (by, *labels))
        if not texts or len(set(labels)) < len(labels):
            raise ReleaseError("the segments are not a list of different texts; the file is not valid.")
        return cls(by, tuple(labels))

    @property
    def other(self) -> int:
        """The position of "other"."""
        return len(self.labels) - 1

    def place(self, text: str | None) -> int:
        """Return the segment of a row, by its label alone; -1 for no label."""
        label = "" if text is None else plain_label(text)
        return -1 if not label else self.labels.index(label) if label in self.labels else self.other

    def agreed(self, donors: Positions, codes: Positions, count: int) -> Positions:
        """Return the segment of each of so many donors: that of all its rows that name one, or "other".

        It is a function of a donor's own rows, in any order. One whose rows name several is in "other".
        """
        least, most = np.full(count, len(self.labels)), np.full(count, -1)
        said = codes >= 0
        np.minimum.at(least, donors[said], codes[said])
        np.maximum.at(most, donors[said], codes[said])
        return np.where(least == most, most, self.other)

    def position(self, label: str) -> int:
        """Return where a segment is, or say that there is none of that name."""
        if label not in self.labels:
            hint = did_you_mean(str(label), self.labels) or f" They are {', '.join(self.labels)}."
            raise ParameterError(f"the release has no segment {label!r} of {self.by!r}.{hint}")
        return self.labels.index(label)

    def shares(self, pool: PoolLike) -> dict[int, float | None]:
        """Return the positions of the segments of a pool, and the share of each if shares are stated.

        Examples
        --------
        >>> plans = Segments("plan", ("basic", "plus", "other"))
        >>> plans.shares("plus"), plans.shares(["basic", "plus"]), plans.shares({"basic": 3, "plus": 1})
        ({1: None}, {0: None, 1: None}, {0: 0.75, 1: 0.25})
        """
        if isinstance(pool, Mapping):
            stated = {self.position(label): float(share) for label, share in pool.items()}
            total = sum(stated.values())
            if not stated or not all(share > 0 for share in stated.values()) or not math.isfinite(total):
                raise ParameterError(f"the shares of {Parameter('pool')} must be numbers above 0.")
            return {place: share / total for place, share in stated.items()}
        names = [pool] if isinstance(pool, str) else list(pool)
        if not names:
            raise ParameterError(f"{Parameter('pool')} names no segment.")
        return {self.position(name): None for name in names}

    def typed(self, text: str) -> PoolLike:
        """Understand a pool as it is typed: segments with commas, each perhaps with its share.

        Examples
        --------
        >>> plans = Segments("plan", ("basic", "plus", "other"))
        >>> plans.typed("plus"), plans.typed("basic, plus"), plans.typed("basic=0.3,plus=0.7")
        (['plus'], ['basic', 'plus'], {'basic': 0.3, 'plus': 0.7})
        """
        parts = [text] if text in self.labels else [part.strip() for part in text.split(",")]
        if all(part in self.labels for part in parts):
            return parts
        pairs = [part.rpartition("=") for part in parts]
        if not all(sign for _, sign, _ in pairs):
            if any(sign for _, sign, _ in pairs):
                raise ParameterError(f"{Parameter('pool')} must give every segment a share, or none.")
            return parts
        names = [name.strip() for name, _, _ in pairs]
        if len(set(names)) < len(names):
            raise ParameterError(f"{Parameter('pool')} names a segment twice.")
        try:
            return {name: float(share) for name, (_, _, share) in zip(names, pairs, strict=True)}
        except ValueError:
            raise ParameterError(f"the shares of {Parameter('pool')} must be numbers above 0.") from None

    def named(self, weights: Sequence[float], sizes: Sequence[float]) -> str:
        """Say which segments count so much in a pool: by name, with their shares if these were stated."""
        those = [k for k, weight in enumerate(weights) if weight > 0]
        if len(those) == len(self.labels) and len(set(weights)) == 1:
            return f"all segments of {self.by}"
        if all(weights[k] == 1 for k in those):
            return f"{self.by} {_listed([self.labels[k] for k in those])}"
        total = sum(weights[k] * sizes[k] for k in those)
        shares = [f"{self.labels[k]} ({weights[k] * sizes[k] / total:.0%})" for k in those]
        return f"{self.by} {_listed(shares)}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def plain_label(label: object) -> str:
    """Return a label without blanks around it, a whole number without decimals: files write 1 and 1.0 for the same."""
    text = str(label).strip()
    whole = _DECIMALS_OF_WHOLE.fullmatch(text)
    return text if whole is None else whole[1]
