"""Numbers as people write them: 1234.5, 1,234.5, 1.234,5, 1 234,5, 1'234.5. Each is read by itself.

What one donor writes never changes how another donor's number is read: see docs/proofs/sensitivity.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

THOUSANDS = ",. '"
_CLASSES = {",": ",", ".": r"\.", " ": r"[ \x{00A0}\x{2007}\x{2009}\x{202F}]", "'": r"['\x{2019}]"}


class Read(NamedTuple):
    """Texts as numbers with decimal points; the first that is no number, and the first with two readings."""

    texts: Any
    wrong: int | None
    ambiguous: int | None


@dataclass(frozen=True)
class Numbers:
    """How numbers may be written.

    Attributes
    ----------
    decimals : str
        The marks that may stand before decimals: point, comma or both.
    thousands : str
        The marks that may stand between groups of three digits. A space is any kind of space, an apostrophe any kind
        of apostrophe.
    """

    decimals: str = "."
    thousands: str = ""

    @property
    def plain(self) -> bool:
        """Whether numbers are written as programs write them: a decimal point and nothing else."""
        return self == PLAIN

    def read(self, texts: Any) -> Read:
        """Read an Arrow array of trimmed texts, each by itself; nulls stay nulls.

        A text has two readings if both marks are allowed before decimals, and it is a number in both cases, and not
        the same: 1.234 and 12,345 are such texts; 1.5, 0,123, 1234.567, 1.234,5 and 1.234.567 are not.

        Examples
        --------
        >>> import pyarrow as pa
        >>> Numbers(".,", THOUSANDS).read(pa.array(["1.234,5", "0,123", "1 234"])).texts.to_pylist()
        ['1234.5', '0.123', '1234']
        >>> Numbers(".,", THOUSANDS).read(pa.array(["1,5", "1,234"])).ambiguous
        1
        """
        import pyarrow.compute as pc

        found, known, ambiguous = texts, None, None
        for mark, pattern in self._patterns.items():
            fits = pc.match_substring_regex(texts, pattern)
            text = _with_point(texts, mark, self.thousands)
            if known is None:
                found, known = pc.if_else(fits, text, None), fits
                continue
            two = pc.and_(pc.and_(fits, known), pc.not_equal(text, found))
            ambiguous = _first(two)
            found, known = pc.coalesce(found, pc.if_else(fits, text, None)), pc.or_(fits, known)
        return Read(found, _first(pc.invert(known)), ambiguous)

    @cached_property
    def _patterns(self) -> dict[str, str]:
        """For each mark of decimals, what a number looks like: groups have three digits and do not begin with zero."""
        patterns = {}
        for mark in self.decimals:
            point = _CLASSES[mark]
            whole = [r"\d+", *(rf"[1-9]\d{{0,2}}(?:{_CLASSES[t]}\d{{3}})+" for t in self.thousands if t != mark)]
            patterns[mark] = (
                rf"^[+-]?(?:(?:{'|'.join(whole)})(?:{point}\d*)?|{point}\d+)$"
                rf"|^[+-]?(?:\d+(?:{point}\d*)?|{point}\d+)[eE][+-]?\d+$"
            )
        return patterns


PLAIN = Numbers()


def _with_point(texts: Any, mark: str, thousands: str) -> Any:
    import pyarrow.compute as pc

    others = [_CLASSES[t] for t in thousands if t != mark]
    if others and pc.any(pc.match_substring_regex(texts, "|".join(others))).as_py():
        texts = pc.replace_substring_regex(texts, "|".join(others), "")
    return texts if mark == "." else pc.replace_substring(texts, mark, ".")


def _first(mask: Any) -> int | None:
    import pyarrow.compute as pc

    position = pc.index(mask, True).as_py()
    return None if position < 0 else int(position)
