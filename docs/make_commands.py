"""Write docs/reference/commands, a page for each command, from the commands themselves.

python docs/make_commands.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from dpsc.cli import app
from dpsc.cli.options import FILE_FORMAT

HERE = "index.md#how-the-file-is-written-if-not-recognised"
FOLDER = Path(__file__).parent / "reference" / "commands"
BEGINNING = """# Commands

A page for each command, with every option. `dpsc COMMAND --help` prints the same. These pages are written by
`docs/make_commands.py`.

| command | does |
|---|---|
"""
END = """
## Exit codes

A command ends with exit code 0 if it worked, and with 2 and one message on stderr if it refused or was interrupted.
`check`, `audit` and `ledger verify` end with 1 if they found something wrong.
"""
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
READ = {  # the pages that use a command, below docs/
    "demo": {"Get started": "tutorials/get-started.md", "The demo's data": "reference/demo-data.md"},
    "check": {"Make a release": "guides/custodian.md", "From a CSV to a report": "tutorials/from-csv-to-report.md"},
    "plan": {"Choosing epsilon": "guides/choosing-epsilon.md", "Several sites": "guides/several-sites.md"},
    "release": {
        "Make a release": "guides/custodian.md",
        "People inside regions or hospitals": "guides/panels.md",
        "Segments": "guides/segments.md",
        "More records than memory": "guides/cluster.md",
    },
    "inspect": {"What an officer signs": "guides/handover.md"},
    "merge": {"Several sites": "guides/several-sites.md", "People inside regions or hospitals": "guides/panels.md"},
    "estimate": {
        "Reading an answer": "guides/reading-an-answer.md",
        "Several regions": "guides/several-regions.md",
        "Writing it up": "guides/writing-it-up.md",
    },
    "compare": {"Reading an answer": "guides/reading-an-answer.md"},
    "fit": {"Which method": "guides/which-method.md"},
    "audit": {"The audit": "reference/audit.md", "For reviewers": "guides/reviewers.md"},
    "reproduce": {"The paper and dpsc": "explanation/paper.md"},
    "ledger": {"Keeping a ledger": "guides/keeping-a-ledger.md", "The ledger": "reference/ledger.md"},
    "console": {"The console": "guides/console.md"},
}


def pages() -> dict[str, str]:
    """Return each page by the name of its file."""
    rows = [f"| [`{name}`]({place(name)}) | {cell(paragraphs(each)[0])} |" for name, each in named()]
    file_format = [option for option in COMMANDS["fit"].params if option.rich_help_panel == FILE_FORMAT]
    shared = f"\n## {FILE_FORMAT}\n\n{listed(file_format)}"
    made = {"index.md": BEGINNING + "\n".join(rows) + "\n" + END + shared}
    for word, found in COMMANDS.items():
        below = [(name, each) for name, each in named() if name.split()[1] == word]
        single = below[0][1] is found
        about = "\n\n".join(paragraphs(found))
        parts = [f"# dpsc {word}\n", f"{about}\n", f"Used in {links(word)}.\n"]
        for name, each in below:
            parts += [] if single else [f"## {name}\n", "\n\n".join(paragraphs(each)) + "\n"]
            parts += section(name, each, level=1 if single else 2)
        made[f"{word}.md"] = "\n".join(parts)
    return made


def named() -> Iterator[tuple[str, Any]]:
    """Yield all commands with their full names."""
    for word, found in COMMANDS.items():
        for below in getattr(found, "commands", {"": found}):
            yield f"dpsc {word} {below}".strip(), found.commands[below] if below else found


def place(name: str) -> str:
    """Return where a command is described."""
    _, word, *below = name.split()
    return f"{word}.md#{name.replace(' ', '-')}" if below else f"{word}.md"


def links(word: str) -> str:
    """Return links to the pages that use a command."""
    return ", ".join(f"[{title}](../../{place})" for title, place in READ[word].items())


def section(name: str, command: Any, level: int) -> Iterator[str]:
    """Yield a command's call, examples, arguments, and its options in the groups of its help."""
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    call = " ".join([name, *(argument_call(argument) for argument in arguments), "[OPTIONS]"])
    yield f"```text\n{call}\n```\n"
    if found := examples(command):
        yield "```console\n" + "\n".join(f"$ {broken(line)}" for line in found) + "\n```\n"
    for argument in arguments:
        yield f"`{called(argument)}`: {marked(argument.help)}\n"
    groups: dict[str, list[Any]] = {}
    for option in options:
        if not getattr(option, "hidden", False):
            groups.setdefault(option.rich_help_panel or "", []).append(option)
    for group in sorted(groups, key=bool):  # those without a name first
        if group or level == 1:
            yield f"{'#' * (level + 1)} {group or 'Options'}\n"
        if group == FILE_FORMAT:
            names = ", ".join(f"`{option.opts[0]}`" for option in groups[group])
            yield f"{names}: [the same for all commands]({HERE}).\n"
        else:
            yield listed(groups[group])


def listed(options: Sequence[Any]) -> str:
    """Return a list of options."""
    return "".join(f"- {flags(option)}: {explained(option)}\n" for option in options)


def examples(command: Any) -> list[str]:
    """Return the examples below a command's help."""
    return (command.epilog or "").split("\n\n")[1:]


def broken(line: str, width: int = 92) -> str:
    """Return a command line on several lines, each of which begins with an option and fits on a page."""
    lines = [""]
    for part in re.split(r" (?=-)", line):
        if len(lines[-1]) + len(part) > width:
            lines.append("   ")
        lines[-1] += f" {part}" if lines[-1] else part
    return " \\\n".join(lines)


def argument_call(argument: Any) -> str:
    """Return an argument as it stands in a call."""
    word = called(argument) + ("..." if argument.nargs == -1 else "")
    return word if argument.required else f"[{word}]"


def called(argument: Any) -> str:
    """Return the name of an argument."""
    return str(argument.metavar or argument.name.upper())


def flags(option: Any) -> str:
    """Return the ways to write an option, with what it takes."""
    return f"`{', '.join(option.opts)}{'' if option.is_flag else f' {option.metavar}'}`"


def explained(option: Any) -> str:
    """Return an option's help, and what it is if it is not given."""
    words = marked(option.help)
    if option.required:
        words += " **Required.**"
    elif option.show_default and not option.is_flag and option.default not in (None, "", (), []):
        words += f" By default `{option.default}`."
    return words


def marked(words: str) -> str:
    """Return a help text whose options are set as code."""
    return re.sub(r"(?<![\w`])--[a-z][a-z-]+", r"`\g<0>`", " ".join(words.split()))


def paragraphs(command: Any) -> list[str]:
    """Return what a command says about itself."""
    return [" ".join(part.split()) for part in (command.help or "").split("\n\n")]


def cell(words: str | None) -> str:
    """Return a text that fits into a table."""
    return " ".join((words or "").split()).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
