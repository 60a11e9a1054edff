"""Checks of public parameters, so that every refusal reads the same."""

from __future__ import annotations

import math
import re
import shlex
import unicodedata
import warnings
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from dpsc.errors import Parameter, ParameterError, as_people_write, typed

SMALLEST_EPSILON = 1e-10
LARGEST_EPSILON = 1e9
SMALLEST_DELTA = 1e-100
MOST_NAMES = 100
LONGEST_NAME, LONGEST_TEXT = 200, 2000  # characters of what stands on figures, and of other texts


def finite_number(name: str, value: Any, *, above: float | None = None, at_least: float | None = None) -> float:
    """Return ``value`` as a float, or refuse it by name.

    Examples
    --------
    >>> finite_number("epsilon", 0, above=0)
    Traceback (most recent call last):
        ...
    dpsc.errors.ParameterError: epsilon must be a finite number above 0, not 0.
    """
    if above is not None:
        wanted = f"a finite number above {above:g}"
    elif at_least is not None:
        wanted = f"a finite number of at least {at_least:g}"
    else:
        wanted = "a finite number"
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise _refused(name, f"must be {wanted}, not {shown(value)}.") from None
    too_small = (above is not None and number <= above) or (at_least is not None and number < at_least)
    if isinstance(value, bool | str | bytes) or not math.isfinite(number) or too_small:
        raise _refused(name, f"must be {wanted}, not {shown(value)}.")
    return number


def epsilon(name: str, value: object) -> float:
    """Return a privacy budget: above zero, and not so large that its square overflows."""
    number = finite_number(name, value, above=0)
    if number > LARGEST_EPSILON:
        raise _refused(name, f"must be at most {LARGEST_EPSILON:g}, not {shown(value)}; it would protect nobody.")
    if number < SMALLEST_EPSILON:
        raise _refused(name, f"must be at least {SMALLEST_EPSILON:g}, not {shown(value)}.")
    return number


def delta(name: str, value: object) -> float:
    """Return a failure probability: at least zero and below one."""
    number = finite_number(name, value, at_least=0)
    if number >= 1:
        raise _refused(name, f"must be below 1, not {value!r}.")
    if 0 < number < SMALLEST_DELTA:
        raise _refused(name, f"must be 0 or at least {SMALLEST_DELTA:g}, not {value!r}.")
    return number


def share(name: str, value: object) -> float:
    """Return a share strictly between zero and one."""
    number = finite_number(name, value, above=0)
    if number >= 1:
        raise _refused(name, f"must be below 1, not {value!r}.")
    return number


def whole_number(name: str, value: Any, *, at_least: int) -> int:
    """Return a whole number that is not too small."""
    try:
        whole = not isinstance(value, bool | str) and int(value) == value and value >= at_least
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole:
        raise _refused(name, f"must be a whole number of at least {at_least}, not {shown(value)}.")
    return int(value)


def one_of(name: str, value: object, allowed: Sequence[str]) -> None:
    """Refuse a word that is none of those allowed."""
    if not isinstance(value, str) or value not in allowed:
        raise _refused(name, f"{shown(value)} is not one of {', '.join(allowed)}.")


def is_printable(text: str) -> bool:
    r"""Tell whether a text can be shown: no control character that moves a cursor, colours, hides or reverses text.

    Letters, marks, digits, signs and spaces of all languages pass, and the two joiners that some of them need.

    Examples
    --------
    >>> is_printable("wages – Löhne, 賃金"), is_printable("wages\x1b[2J"), is_printable("two\nlines")
    (True, False, False)
    """
    return all(c.isprintable() or unicodedata.category(c) == "Zs" or c in "\u200c\u200d" for c in text)


def printable(name: str, value: object, longest: int = LONGEST_TEXT) -> str:
    """Return a text that can be shown, or refuse it by name."""
    if not isinstance(value, str) or len(value) > longest or not is_printable(value):
        raise _refused(
            name, f"must be printable text on one line, at most {longest} characters, without control characters."
        )
    return value


def about_a_release(provenance: object, outcome: object, dataset: object) -> None:
    """Refuse texts that are published with a release and cannot be shown."""
    for name, text in (("provenance", provenance), ("outcome", outcome), ("dataset", dataset)):
        printable(name, "" if text is None else str(text), LONGEST_NAME if name == "outcome" else LONGEST_TEXT)


def written_out(text: str) -> str:
    r"""Return somebody else's text with what cannot be shown written out.

    Examples
    --------
    >>> print(written_out("cost\x1b[2J"))
    cost\x1b[2J
    """
    return "".join(c if is_printable(c) else c.encode("unicode_escape").decode("ascii") for c in text)


def visible(text: str) -> str:
    """Return somebody else's text with what cannot be shown written out, and cut if it is long."""
    seen = written_out(text[:201])
    return seen if len(seen) <= 200 else f"{seen[:200]}…"


def _refused(name: str, why: str) -> ParameterError:
    return ParameterError(f"{Parameter(name)} {why}")


def shown(value: object) -> str:
    """Show a short scalar as it is and anything else by its type: it may be a frame of donors."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value) if len(repr(value)) <= 40 else f"a long {type(value).__name__}"
    return f"a {type(value).__name__}"


def read_as(label: object) -> str:
    """Return a label without what people do not notice: case, spaces, Unicode form.

    Examples
    --------
    >>> read_as("  Ann LEE") == read_as("annlee")
    True
    """
    folded = unicodedata.normalize("NFKC", str(label)).casefold()
    return "".join(unicodedata.normalize("NFKC", folded).split())


def did_you_mean(name: str, known: Iterable[object]) -> str:
    """Return a question with the nearest known name, to add to a refusal; an empty text if none is near.

    Examples
    --------
    >>> did_you_mean("costs", ["who", "month", "cost"])
    " Did you mean 'cost'?"
    """
    names = {str(other): other for other in known}
    near = get_close_matches(name, names, 1) or [other for other in names if other.lower() == name.lower()]
    return f" Did you mean {names[near[0]]!r}?" if near else ""


def names_once(said: str, pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Return what an object of a JSON file holds, if it has few names, and no name twice.

    A reviewer may have seen only one of two values. ``said`` begins the sentence of a refusal.

    Examples
    --------
    >>> names_once("the settings say", [("unit", "who"), ("unit", "where")])
    Traceback (most recent call last):
        ...
    dpsc.errors.ParameterError: the settings say 'unit' twice.
    """
    if len(pairs) > MOST_NAMES:
        raise ParameterError(f"{said} more than {MOST_NAMES} names, which is too many.")
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise ParameterError(f"{said} {str(name)[:40]!r} twice.")
        found[name] = value
    return found


def budget(epsilon_value: Any, delta_value: Any, split: Any, arithmetic: Any) -> None:
    """Check the parameters that every two-step algorithm has; scripts for version 0.2 may give ``arithmetic``."""
    epsilon("epsilon", epsilon_value)
    delta("delta", delta_value)
    share("split", split)
    if arithmetic == "exact":
        warnings.warn("arithmetic is always exact now; leave arithmetic= out.", DeprecationWarning, stacklevel=4)
    elif arithmetic is not None:
        raise _refused("arithmetic", "is always exact now, because floating-point noise leaks; leave arithmetic= out.")


def is_number(name: str) -> bool:
    """Tell whether the name of a column, or a label, is a number."""
    try:
        float(name)
    except ValueError:
        return False
    return True


def is_decimal(name: str) -> bool:
    """Tell whether it is a number with decimals."""
    return is_number(name) and bool(re.search(r"[.eE]", name))


def options(said: Mapping[str, Any]) -> list[str]:
    """Return parameters as options of a command; a value that looks like an option stays a value.

    Examples
    --------
    >>> options({"unit": "--wide", "wide": True, "epsilon": 1.0, "delta": 1e-6, "bounds": (-5, 10.5)})
    ['--unit=--wide', '--wide', '--epsilon', '1', '--delta', '1e-6', '--bounds', '-5', '10.5']
    """
    parts: list[str] = []
    for name, value in said.items():
        option = f"--{name.replace('_', '-')}"
        values = [] if value is True else [typed(each) for each in (value if isinstance(value, tuple) else (value,))]
        if len(values) == 1 and values[0].startswith("-"):
            parts.append(f"{option}={values[0]}")
        else:
            parts += [option, *values]
    return parts


def small(number: float) -> str:
    """Write a number as people read it: 1e-6, not 1e-06."""
    return as_people_write(f"{number:g}")


def command(parts: Sequence[str], options: Sequence[str]) -> str:
    """Return a command for a shell, each option with its value, on lines that do not wrap.

    A file whose name begins with a dash is named with its folder. Control characters in the name of a column or file
    are written out: pasted into a terminal, they would be keys.

    Examples
    --------
    >>> print(command(["dpsc", "release", "my donors.csv"], ["--unit", "who", "--wide", "-o", "r.json"]))
    dpsc release 'my donors.csv' --unit who --wide -o r.json
    """
    pieces: list[str] = []
    for option in map(written_out, options):
        if option.startswith("-") or not pieces:
            pieces.append(shlex.quote(option))
        else:
            pieces[-1] += f" {shlex.quote(option)}"
    lines = [shlex.join(written_out(f"./{part}" if part.startswith("-") else part) for part in parts)]
    for piece in pieces:
        if len(lines[-1]) + len(piece) > 74:
            lines.append(f"    {piece}")
        else:
            lines[-1] += f" {piece}"
    return " \\\n".join(lines)


def deprecated(old: str, new: str) -> None:
    """Warn whoever calls our caller that ``old`` goes after one version, and say what to write instead."""
    warnings.warn(
        f"{old} is deprecated and will be removed in dpsc 0.4: write {new}.", DeprecationWarning, stacklevel=3
    )
