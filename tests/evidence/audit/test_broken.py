"""What is known to be broken is caught, each by an attack that runs in about a second."""

from __future__ import annotations

import pytest

from dpsc.evidence.audit import broken
from dpsc.evidence.audit.broken import BROKEN, EXHIBITS
from dpsc.evidence.audit.run import audit

pytestmark = pytest.mark.statistical


@pytest.mark.parametrize("name", [name for name in BROKEN if name not in EXHIBITS])  # those are in test_exhibits.py
def test_what_is_broken_is_caught(name: str) -> None:
    case, calls = BROKEN[name](), 2000 if name == "noise-halved" else 300  # as many as it takes
    result = audit([case], runs=20_000, calls=calls, seed=0, false_alarm=1e-5)
    # DPSC_obj at epsilon = 10 loses more than any sample of this size can show; its exact losses show it.
    expected = [a.name for a in case.attacks if not (name == "printed-objective" and a.name == "runs in bulk")]
    assert [f.attack for f in result.broken] == expected


def test_what_is_broken_says_so_in_every_name() -> None:
    for make in BROKEN.values():
        case = make()
        assert case.name.startswith("NOT-PRIVATE-")
        assert case.title.startswith("NOT PRIVATE: ")
    assert (broken.__doc__ or "").startswith("NOT PRIVATE")


def test_the_published_radius_loses_many_times_what_it_claims() -> None:
    """A measured lower bound of 8.97 at ten dimensions is known; what can be shown grows with the runs."""
    few, many = (audit([BROKEN["laplace-radius"]()], runs=n, seed=1).findings[0].shown for n in (10_000, 300_000))
    assert 4 < few < many
    assert many > 8
