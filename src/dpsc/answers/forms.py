"""Forms that a person completes: headings, sentences, tables, and places that are marked until somebody fills them.

A form is plain values. It is written as Markdown that becomes a document of a word processor (pandoc), or as a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpsc.answers.tables import in_markdown

MARK = "TO ADD"
_ALSO = re.compile(r"[$^~@#]|-(?=-)|(?<=\.)\.")  # signs that pandoc reads, besides those of every Markdown
_LINE = 100  # dashes below a header: their shares are the widths of the columns


class ToAdd(str):
    """What a person must add, shown as a mark that can be searched for."""

    __slots__ = ()


class Code(str):
    """What is typed, or the name of a file."""

    __slots__ = ()


Cell = tuple[str, ...]  # parts in their order: a plain text, a mark, or code; a space between them


@dataclass(frozen=True)
class Table:
    """A table of cells; columns have these shares of the width."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    widths: tuple[int, ...]

    def to_markdown(self) -> str:
        r"""Write it with pipes.

        Examples
        --------
        >>> print(Table(("what", "who"), ((("a|b",), (ToAdd("a name"), "of $5")),), (1, 3)).to_markdown())
        | what | who |
        |:------------------------|:--------------------------------------------------------------------------|
        | a\|b | **[TO ADD: a name]** of \$5 |
        """
        dashes = ("-" * max(3, _LINE * width // sum(self.widths) - 1) for width in self.widths)
        header = "| " + " | ".join(map(plain, self.header)) + " |"
        rows = ["| " + " | ".join(map(written, row)) + " |" for row in self.rows]
        return "\n".join([header, "|:" + "|:".join(dashes) + "|", *rows])


@dataclass(frozen=True)
class Section:
    """A heading, sentences below it, and perhaps a table; a part of the form has level 2, what is in it level 3."""

    title: str
    text: tuple[Cell, ...] = ()
    table: Table | None = None
    level: int = 2

    def cells(self) -> Iterator[Cell]:
        """Return everything that it says."""
        yield from self.text
        for row in () if self.table is None else self.table.rows:
            yield from row


@dataclass(frozen=True)
class Form:
    """A form: its title, sentences that come first, its sections, and a warning that stands before all of them."""

    title: str
    head: tuple[Cell, ...]
    sections: tuple[Section, ...]
    warning: str = ""

    @property
    def to_add(self) -> list[ToAdd]:
        """What a person must add, place by place."""
        cells = (cell for section in self.sections for cell in section.cells())
        return [part for cell in cells for part in cell if isinstance(part, ToAdd)]

    @property
    def counted(self) -> str:
        """Say how many places there are, and how to find them."""
        count = len(self.to_add)
        if not count:
            return "No place is left for a person to fill."
        places = "1 place is" if count == 1 else f"{count} places are"
        return f"{places} for a person to fill. Search for “{MARK}:”."

    def to_markdown(self) -> str:
        """Write it as Markdown."""
        warning = [f"**{plain(self.warning)}**"] if self.warning else []
        parts = [f"# {plain(self.title)}", *warning, *map(written, self.head), f"**{plain(self.counted)}**"]
        for section in self.sections:
            parts.append(f"{'#' * section.level} {plain(section.title)}")
            parts += map(written, section.text)
            parts += [] if section.table is None else [section.table.to_markdown()]
        return "\n\n".join(parts) + "\n"


def plain(text: str) -> str:
    r"""Write a text so that it is shown as it is, by pandoc too, which reads more signs than others.

    Examples
    --------
    >>> print(plain("from $5 to $6, --yes"))
    from \$5 to \$6, \--yes
    """
    return _ALSO.sub(r"\\\g<0>", in_markdown(text))


def written(cell: Sequence[str]) -> str:
    """Write a cell as Markdown."""
    return " ".join(map(_part, cell))


def kind_of(part: str) -> str:
    """Say what a part is: "mark", "code" or "text"."""
    return "mark" if isinstance(part, ToAdd) else "code" if isinstance(part, Code) else "text"


def _part(part: str) -> str:
    if isinstance(part, ToAdd):
        return f"**[{MARK}: {plain(part)}]**"
    if isinstance(part, Code) and not set("`|\n") & set(part):
        return f"`{part}`"
    return plain(part)
