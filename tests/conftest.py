from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from scipy import stats

from dpsc import Panel
from dpsc.answers import report, result, study
from dpsc.types import Array
from tests.making import local_cluster, make_panel
from tests.soak import quick_or_long

# The same examples in every quick run: a failure in CI is one that can be repeated. Long runs look for new ones.
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("soak", deadline=None, print_blob=True, max_examples=2000)
settings.load_profile(quick_or_long("quick", "soak"))


MADE_UP, MOST_GROUPS = result.MADE_UP, study.MOST_GROUPS
DRAWN = report.image

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)


class NoNoise:
    """A source whose noise is zero, to look at what is computed before noise is added."""

    private = False

    def normals(self, shape: tuple[int, ...]) -> Array:
        return np.zeros(shape)

    def gammas(self, shape_parameter: float, shape: tuple[int, ...]) -> Array:
        return np.zeros(shape)


def scale_pvalue(standardised: Array, law: str) -> float:
    """Test the scale of noise alone: the sum of sizes (Laplace) or of squares (Gaussian) has a known law."""
    n = standardised.size
    if law == "laplace":
        total, shape = float(np.abs(standardised).sum()), float(n)
    else:
        total, shape = float(np.sum(standardised**2)) / 2, n / 2
    return 2 * float(min(stats.gamma.cdf(total, shape), stats.gamma.sf(total, shape)))


@pytest.fixture(autouse=True, scope="session")
def less_to_do() -> Iterator[None]:
    """Reports made in this process ask about a few made-up units, and a release's page has no picture.

    One test in test_report.py asks about all of them, and what is about the page has its picture: ``drawn``.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result, "MADE_UP", quick_or_long(6, MADE_UP))
        patch.setattr(study, "MOST_GROUPS", quick_or_long(4, MOST_GROUPS))
        patch.setattr("dpsc.release.describe.image", quick_or_long(lambda _: report.Picture("", ""), DRAWN))
        yield


@pytest.fixture
def every_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports of studies ask about all groups of other units."""
    monkeypatch.setattr(study, "MOST_GROUPS", MOST_GROUPS)


@pytest.fixture(scope="module")
def drawn() -> Iterator[None]:
    """The page of a release has its picture."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpsc.release.describe.image", DRAWN)
        yield


@pytest.fixture
def panel() -> Panel:
    return make_panel()


@pytest.fixture(scope="module")  # not for the session: idle workers take a tenth of a core
def cluster() -> Iterator[Any]:
    """Two Dask workers that nothing happens to; a test that kills one makes its own with `local_cluster`."""
    with local_cluster() as running:
        yield running


def printed_objective(f: Array, X: Array, y: Array, lambda_: float, b: Array | float = 0.0) -> float:
    """The paper's J: 1/T0 ||y - X'f||^2 + lambda/(2 T0) ||f||^2 + 1/T0 b'f, to be minimised by brute force."""
    T0 = X.shape[1]
    noise = np.broadcast_to(np.asarray(b, dtype=np.float64), f.shape)
    return float(np.sum((y - X.T @ f) ** 2) / T0 + lambda_ / (2 * T0) * np.sum(f**2) + noise @ f / T0)


def pytest_collection_finish() -> None:
    """Leave what is imported by now out of every later search for garbage: it stays until the end."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest file, or a core waits for it in the end."""
    items.sort(key=lambda item: item.path.name != "test_browser.py")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say loudly that the console was not tested in a browser."""
    if CHROMIUM is None:
        terminalreporter.section("NOT TESTED IN A BROWSER", sep="!", red=True, bold=True)
        terminalreporter.line("No Chromium was found, so no page of the console was opened: apt-get install chromium")
