"""Modules of benchmarks/, which is no package."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = str(ROOT / "benchmarks")


def benchmark(name: str) -> Any:
    """Import a module of benchmarks/; they import each other by their plain names."""
    if FOLDER not in sys.path:
        sys.path.append(FOLDER)
    return importlib.import_module(name)
