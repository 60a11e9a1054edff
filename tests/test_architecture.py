"""ARCHITECTURE.md lists every module once, and the walls between the rooms stand."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "dpsc"


def modules() -> set[str]:
    paths = (path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
    return {path.as_posix() for path in paths if path.name not in ("__init__.py", "__main__.py")}


def test_the_list_of_modules_is_the_tree() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([\w/]+\.py)` \|", text, flags=re.MULTILINE)
    assert sorted(listed) == sorted(modules())


def imported(code: str) -> set[str]:
    """Return the top-level packages that a fresh interpreter has loaded after running the code."""
    script = f"{code}\nimport sys; print(' '.join(sorted({{m.split('.')[0] for m in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_only_what_is_installed_with_the_library_is_imported() -> None:
    """What the tests bring along, or another package happens to bring, is not there on a user's machine."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {re.split(r"[<>=\[]", need)[0].lower() for need in project["dependencies"]} | {"dpsc", "yaml"}
    extras = {"dask": "engines/", "distributed": "engines/", "psycopg": "ledger/"}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            for package in {name.split(".")[0] for name in names} - declared - set(sys.stdlib_module_names):
                assert package in extras, f"{path} imports {package}"
                assert path.relative_to(PACKAGE).as_posix().startswith(extras[package])


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
    assert not imported(code) & {"matplotlib", "opendp", "dask", "scipy", "numpy", "pydantic", "sqlalchemy"}


def test_mechanisms_know_no_data_and_panels_know_no_noise() -> None:
    def imports(folder: str) -> str:
        files = sorted(PACKAGE.glob(folder))
        return "\n".join(line for f in files for line in f.read_text("utf-8").splitlines() if "import" in line)

    assert not re.search(r"panel|result|frames", imports("mechanisms/*.py"))
    for room in ("panel.py", "frames.py", "bounds.py", "times.py", "synthetic.py", "kernel.py", "engines/*.py"):
        assert not re.search(r"mechanisms|guarantee|algorithms", imports(room))
    for room in ("sensitivity.py", "accounting.py", "guarantee.py", "exact.py"):
        assert not re.search(r"panel|result|mechanisms|frames", imports(room))
    for room in ("release.py", "release_file.py", "denoise.py", "estimate.py", "uncertainty.py", "planning.py"):
        assert not re.search(r"import .*[Pp]anel|mechanisms|engines|algorithms", imports(room))
    assert not re.search(r"panel|mechanisms|engines|algorithms|numpy|pandas|frames", imports("ledger/*.py"))
    for room in ("ledger/budget.py", "ledger/records.py", "ledger/chain.py"):
        assert "sqlalchemy" not in imports(room)
