"""An analysis as a small document, YAML or JSON, to be reviewed before it runs and run again later."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dpsc import files
from dpsc.cli.analysis import Analysis
from dpsc.errors import DpscError, TableError

FORMAT = "dpsc-analysis"
VERSION = 1


def load(path: Path) -> Analysis:
    """Read a spec file, YAML or JSON; paths in it are relative to the file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise TableError(f"there is no file {path}.") from None
    except (OSError, UnicodeError):
        raise TableError(f"{path} cannot be read as text.") from None
    try:
        return _analysis(_parse(text, path), path)
    except TableError as problem:
        raise TableError(str(problem) if str(path) in str(problem) else f"{path}: {problem}") from None


def to_document(analysis: Analysis) -> dict[str, Any]:
    """Return what a spec file says: the method, and what differs from the defaults."""
    defaults = {field.name: field.default for field in fields(analysis)}
    body = {name: value for name, value in asdict(analysis).items() if value != defaults[name]}
    if "lambda_" in body:
        body["lambda"] = body.pop("lambda_")
    if analysis.bounds is not None:
        body["bounds"] = list(analysis.bounds)
    return {FORMAT: VERSION, "method": analysis.method, **body}


def save(analysis: Analysis, path: Path, *, relative_to: Path | None = None) -> None:
    """Write a spec file, in the format that its name says; paths in it are relative to where it will be."""
    here = (relative_to or path).resolve().parent
    document = to_document(analysis)
    for name in ("data", "reference"):
        if name in document:
            document[name] = _relative(Path(document[name]), here)
    if path.suffix.lower() == ".json":
        files.write(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        return
    import yaml

    files.write(path, yaml.safe_dump(document, sort_keys=False, allow_unicode=True))


def _relative(value: Path, here: Path) -> str:
    absolute = value.resolve()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(absolute)


def _parse(text: str, path: Path) -> Mapping[str, Any]:
    try:
        if path.suffix.lower() == ".json":
            document = json.loads(text, object_pairs_hook=_pairs)
        else:
            import yaml

            try:
                document = yaml.load(text, Loader=_unique_keys())
            except yaml.YAMLError as problem:
                mark = getattr(problem, "problem_mark", None)
                where = f" near line {mark.line + 1}" if mark is not None else ""
                raise TableError(f"{path} is not valid YAML{where}.") from None
    except json.JSONDecodeError as problem:
        raise TableError(f"{path} is not valid JSON near line {problem.lineno}.") from None
    except (ValueError, RecursionError):
        raise TableError(f"{path} cannot be parsed.") from None
    if not isinstance(document, dict):
        raise TableError(f"{path} is not a spec: it should be a list of names and values, as --write-spec writes it.")
    return document


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that is given twice, for which of the two was reviewed."""
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise TableError(f"the spec says {str(name)[:40]!r} twice.")
    return dict(pairs)


def _unique_keys() -> Any:
    """Return a YAML loader, safe, that refuses a name given twice."""
    import yaml

    class Loader(yaml.SafeLoader):
        pass

    def mapping(loader: Any, node: Any) -> dict[Any, Any]:
        pairs = [
            (loader.construct_object(key, deep=True), loader.construct_object(value, deep=True))
            for key, value in node.value
        ]
        try:
            return _pairs(pairs)
        except TypeError:  # a key that is a list or a mapping
            raise TableError("a name in the spec is not text.") from None

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    return Loader


def _analysis(document: Mapping[Any, Any], path: Path) -> Analysis:
    body = dict(document)
    version = body.pop(FORMAT, None)
    if version is None:
        raise TableError(f"{path} has no line '{FORMAT}: {VERSION}', so it is not a spec; --write-spec writes one.")
    if version != VERSION:
        raise TableError(f"{path} is a spec of version {version!r}; this dpsc reads version {VERSION}. Upgrade dpsc.")
    if "lambda" in body:
        body["lambda_"] = body.pop("lambda")
    known = {field.name: field for field in fields(Analysis)}
    for name, value in body.items():
        if name not in known:
            near = get_close_matches(str(name), [n.rstrip("_") for n in known], 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise TableError(f"{path}: {str(name)[:40]!r} is not something a spec can say.{hint}")
        body[name] = _value(name, value, str(known[name].type), path)
    for name in ("data", "unit", "treated_unit", "treatment_time"):
        if name not in body:
            raise TableError(f"{path} does not say {name!r}.")
    for name in ("data", "reference"):
        if body.get(name) is not None:
            body[name] = str(path.resolve().parent / body[name])
    try:
        return Analysis(**body)
    except DpscError as problem:
        raise TableError(f"{path}: {problem}") from None


def _value(name: str, value: Any, kind: str, path: Path) -> Any:
    """Check one value of a spec against the type it is for."""
    if value is None and "None" in kind:
        return None
    if name == "bounds":
        if isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)):
            return float(value[0]), float(value[1])
        raise TableError(f"{path}: bounds must be two numbers, [lo, hi].")
    if "float" in kind:
        if isinstance(value, str):  # YAML reads 1e-6 as text
            try:
                value = float(value)
            except ValueError:
                value = None
        if _is_number(value):
            return float(value)
        raise TableError(f"{path}: {name.rstrip('_')} must be a number.")
    if kind == "bool":
        if isinstance(value, bool):
            return value
        raise TableError(f"{path}: {name} must be true or false.")
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    if hasattr(value, "isoformat"):  # YAML reads 2020-01-31 as a date
        return value.isoformat()
    raise TableError(f"{path}: {name} must be text.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
