"""Write docs/reference/commands.md, the reference of all commands, from the commands themselves.

python docs/make_commands.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from dpsc.cli import app

PAGE = Path(__file__).parent / "reference" / "commands.md"
BEGINNING = """# Commands

Every option of every command. `dpsc COMMAND --help` prints the same. This page is written by `docs/make_commands.py`.

| command | does |
|---|---|
"""


def text() -> str:
    """Return the page."""
    commands = list(named(typer.main.get_command(app), "dpsc"))
    rows = [f"| [`{name}`](#{name.replace(' ', '-')}) | {first_line(command)} |" for name, command in commands]
    return BEGINNING + "\n".join(rows) + "\n\n" + "\n".join(section(name, command) for name, command in commands)


def named(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the commands below this one, with their full names."""
    for word, below in command.commands.items():
        if hasattr(below, "commands"):
            yield from named(below, f"{name} {word}")
        else:
            yield f"{name} {word}", below


def section(name: str, command: Any) -> str:
    """Return the part of one command: what it does, its arguments, and its options in the groups of its help."""
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    call = " ".join([name, *(argument_call(argument) for argument in arguments), "[OPTIONS]"])
    lines = [f"## {name}", "", "\n\n".join(paragraphs(command)), "", f"    {call}", ""]
    if arguments:
        lines += ["| argument | what it is |", "|---|---|"]
        lines += [f"| `{argument.name.upper()}` | {cell(argument.help)} |" for argument in arguments]
        lines.append("")
    groups: dict[str, list[Any]] = {"": []}
    for option in options:
        groups.setdefault(option.rich_help_panel or "", []).append(option)
    for group, members in groups.items():
        if members:
            lines += [f"**{group}**", ""] if group else []
            lines += ["| option | what it does |", "|---|---|"]
            lines += [f"| {flags(option)} | {explained(option)} |" for option in members]
            lines.append("")
    return "\n".join(lines)


def argument_call(argument: Any) -> str:
    """Return an argument as it stands in a call."""
    word = argument.name.upper() + ("..." if argument.nargs == -1 else "")
    return word if argument.required else f"[{word}]"


def flags(option: Any) -> str:
    """Return the ways to write an option, with what it takes."""
    taken = "" if option.is_flag else " " + (option.metavar or option.name.upper().replace("_", "-"))
    return ", ".join(f"`{flag}{taken}`" for flag in option.opts)


def explained(option: Any) -> str:
    """Return an option's help, and what it is if it is not given."""
    words = cell(option.help)
    if option.required:
        words += " **Required.**"
    elif option.show_default and not option.is_flag and option.default not in (None, "", (), []):
        words += f" By default `{option.default}`."
    return words


def paragraphs(command: Any) -> list[str]:
    """Return what a command says about itself."""
    return [" ".join(part.split()) for part in (command.help or "").split("\n\n")]


def first_line(command: Any) -> str:
    """Return the first sentence of it."""
    return cell(paragraphs(command)[0])


def cell(words: str | None) -> str:
    """Return a text that fits into a table."""
    return " ".join((words or "").split()).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
