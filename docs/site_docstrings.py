"""What griffe does besides, so that docstrings read well on the site.

Names in roles, as in ``:meth:`estimate```, become links. Parameters that share one line of a docstring share one row of
the table, with the types and defaults that they have in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import griffe

ROLE = re.compile(r":\w+:`~?([\w.]+)`")


class Readable(griffe.Extension):
    """Change the docstrings of what the package exports."""

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        """Change them once everything is loaded."""
        exported = {
            name: each for name, each in pkg.members.items() if each.is_alias and each.target_path[:5] == "dpsc."
        }
        for name, public in (exported | {"datasets": pkg["datasets"]}).items():
            for each in (public, *public.all_members.values()):
                found = each.final_target if each.is_alias and each.target_path[:5] == "dpsc." else each
                if found.is_alias:
                    continue
                if found.docstring is not None:
                    change(found, name, public)
                if found.name == "__init__":
                    found.parameters = griffe.Parameters(*(it for it in found.parameters if it.name[0] != "_"))


def change(found: Any, owner: str, public: Any) -> None:
    """Turn roles into links and put parameters together."""

    def link(role: re.Match[str]) -> str:
        name = role[1].removeprefix("dpsc.")
        there = name if name != role[1] else f"{owner}.{name}" if name in public.all_members else None
        code = f"<code>{name}</code>"
        return code if there is None else f'<autoref optional identifier="dpsc.{there}">{code}</autoref>'

    found.docstring.value = ROLE.sub(link, found.docstring.value)
    for section in found.docstring.parsed:
        if section.kind.value in ("parameters", "attributes"):
            section.value = list(together(section.value, found))


def together(parameters: Any, found: Any) -> Iterator[Any]:
    """Yield parameters with their true defaults, those with one description as one."""
    signature = {each.name: each for each in getattr(found, "parameters", ())}
    for _, alike in groupby(parameters, key=lambda parameter: parameter.description):
        first, *others = each_with_default(alike, signature)
        if others:
            own = signature.get(first.name)
            if own is not None and str(own.annotation) == str(first.annotation):
                first.annotation = None  # that of the first alone: the docstring names none for all
            values = dict.fromkeys(each.value for each in (first, *others))
            first.value = None if None in values else ", ".join(values)
            first.name = ", ".join(each.name for each in (first, *others))
        yield first


def each_with_default(parameters: Any, signature: dict[str, Any]) -> Iterator[Any]:
    """Yield parameters with the defaults of the signature; griffe takes the first of several choices for one."""
    for each in parameters:
        if each.name in signature:
            default = signature[each.name].default
            each.value = None if default is None else str(default)
        yield each
