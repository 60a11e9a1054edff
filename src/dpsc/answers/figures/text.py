"""How long a text is on a figure, and where it must be broken to fit."""

from __future__ import annotations

from functools import lru_cache

_SAFETY = 0.96  # small letters are drawn a little wider than they are


@lru_cache(maxsize=2**14)  # the same words stand on many figures
def width(text: str, size: float, weight: str = "normal") -> float:
    """Return the width of a line in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]) / 72


def wrapped(text: str, inches: float, size: float, weight: str = "normal") -> str:
    """Break a text into lines that fit; a word that is too long is broken, too."""
    inches *= _SAFETY
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split():
            longer = f"{line} {word}".strip()
            if width(longer, size, weight) <= inches:
                line = longer
                continue
            lines += [line] if line else []
            *full, line = _pieces(word, inches, size, weight)
            lines += full
        lines.append(line)
    return "\n".join(lines)


def _pieces(word: str, inches: float, size: float, weight: str) -> list[str]:
    """Break a word that is too long, letter by letter, in a time that grows with its length."""
    if width(word, size, weight) <= inches:
        return [word]
    pieces, used = [""], 0.0
    for letter in word:
        wide = width(letter, size, weight)
        if pieces[-1] and used + wide > inches:
            pieces.append("")
            used = 0.0
        pieces[-1] += letter
        used += wide
    return pieces
