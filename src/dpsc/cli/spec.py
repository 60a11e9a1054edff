"""An analysis as a small document, YAML or JSON, to be reviewed before it runs and run again later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from dpsc import checks, files
from dpsc.cli.analysis import Analysis
from dpsc.errors import DpscError, TableError

FORMAT = "dpsc-analysis"
VERSION = 1
PATHS = ("data", "reference", "like")
_LARGEST_FILE = 2**16  # bytes


def load(path: Path) -> Analysis:
    """Read a spec file, YAML or JSON; paths in it are relative to the file."""
    body = dict(_parsed(path))
    version = body.pop(FORMAT, None)
    if version is None:
        raise TableError(f"{path} has no line '{FORMAT}: {VERSION}', so it is not a spec; --write-spec writes one.")
    if version != VERSION:
        raise TableError(f"{path} is a spec of version {version!r}; this dpsc reads version {VERSION}. Upgrade dpsc.")
    try:
        analysis = Analysis.checked(body)
    except DpscError as problem:
        raise TableError(f"{path}: {problem}") from None
    here = path.resolve().parent
    paths = {name: getattr(analysis, name) for name in PATHS}
    found: dict[str, object] = {name: here / file for name, file in paths.items() if file is not None}
    if analysis.periods is not None and (here / analysis.periods).is_file():
        found["periods"] = str(here / analysis.periods)
    return analysis.model_copy(update=found)


def to_document(analysis: Analysis) -> dict[str, Any]:
    """Return what a spec file says: the method, and what differs from the defaults."""
    body = analysis.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return {FORMAT: VERSION, "method": analysis.method, **body}


def save(analysis: Analysis, path: Path, *, relative_to: Path | None = None) -> None:
    """Write a spec file, in the format that its name says; paths in it are relative to where it will be."""
    here = (relative_to or path).resolve().parent
    document = to_document(analysis)
    for name in PATHS:
        if name in document:
            document[name] = _relative(Path(document[name]), here)
    if path.suffix.lower() == ".json":
        files.write(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    else:
        files.write(path, yaml.safe_dump(document, sort_keys=False, allow_unicode=True))


def _relative(value: Path, here: Path) -> str:
    absolute = value.resolve()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(absolute)


def _parsed(path: Path) -> Mapping[Any, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        raise TableError(f"there is no file {path}.") from None
    except (OSError, UnicodeError):
        raise TableError(f"{path} cannot be read as text.") from None
    if len(content) > _LARGEST_FILE:
        raise TableError(f"{path} is larger than {_LARGEST_FILE // 2**10} kB, so it is not a spec.")
    try:
        if path.suffix.lower() == ".json":
            document = json.loads(text, object_pairs_hook=_names_once)
        else:
            document = yaml.load(text, Loader=_Loader)
    except json.JSONDecodeError as problem:
        raise TableError(f"{path} is not valid JSON near line {problem.lineno}.") from None
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        where = f" near line {mark.line + 1}" if mark is not None else ""
        raise TableError(f"{path} is not valid YAML{where}.") from None
    except DpscError as problem:
        raise TableError(f"{path}: {problem}") from None
    except (ValueError, RecursionError):
        raise TableError(f"{path} cannot be parsed.") from None
    if not isinstance(document, dict):
        raise TableError(f"{path} is not a spec: it should be a list of names and values, as --write-spec writes it.")
    return document


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses a name given twice, and references, of which a small file can make a huge document."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Read a node."""
        if self.check_event(yaml.AliasEvent):
            raise TableError("the spec refers to itself (*); write the value again instead.")
        return super().compose_node(parent, index)

    def names_once(self, node: yaml.MappingNode) -> dict[Any, Any]:
        """Read a mapping."""
        pairs = [tuple(self.construct_object(part, deep=True) for part in pair) for pair in node.value]
        return _names_once(pairs)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _Loader.names_once)


def _names_once(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    try:
        return checks.names_once("the spec says", pairs)
    except TypeError:  # a name that is a list or a mapping
        raise TableError("a name in the spec is not text.") from None
