from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpsc.cli.evidence import _report
from dpsc.evidence.audit.broken import EXHIBITS
from dpsc.evidence.audit.run import audit
from dpsc.evidence.audit.shipped import cases
from dpsc.privacy import additive
from tests.cli.conftest import but_progress, dpsc, quick

pytestmark = pytest.mark.end_to_end


FAST = ["--mechanism", "discrete-laplace", "--mechanism", "gram-mu", "--runs", "4000", "--seed", "0"]


def test_a_table_a_figure_and_json(tmp_path: Path) -> None:
    done = dpsc("audit", *FAST, "-o", str(tmp_path / "new" / "folder"))
    assert done.returncode == 0, done.stderr
    assert but_progress(done.stderr) == ""
    for word in ("mechanism", "claim", "shown", "share", "verdict", "discrete Laplace noise", "holds", "false alarm"):
        assert word in done.stdout
    assert "Seeded" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines() if "/" not in line) <= 80
    folder = tmp_path / "new" / "folder"
    assert (folder / "audit.png").read_bytes().startswith(b"\x89PNG")
    content = json.loads((folder / "audit.json").read_text("utf-8"))
    assert content["false_alarm"] == 1e-3
    assert content["broken"] == 0
    assert {f["mechanism"] for f in content["findings"]} == {"discrete-laplace", "gram-mu"}
    assert not list(folder.glob(".*"))

    code, out, _ = quick("audit", *FAST, "--json", "-o", tmp_path)
    assert code == 0
    assert json.loads(out) == content  # the same seed shows the same


def test_what_is_known_to_be_broken_has_a_table_of_its_own_and_says_where_it_is_described(
    capsys: pytest.CaptureFixture[str],
) -> None:
    known = [EXHIBITS["mlsynth-answer"](), EXHIBITS["mlsynth-clipping"]()]
    result, caught = (audit(attacked, runs=1000, seed=0) for attacked in (cases(["gram-mu"]), known))
    _report(result, caught, [], Path("folder"), 1.0)
    shown = capsys.readouterr().out
    assert shown.index("Known to be broken: NOT PRIVATE") < shown.index("mlsynth DPSC: raw answer beside it")
    assert shown.count("https://github.com/jgreathouse9/mlsynth/pull/219") == 1
    assert max(len(line) for line in shown.splitlines()) <= 80


def test_a_broken_claim_exits_with_one_and_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = additive.discrete_scale
    monkeypatch.setattr(additive, "discrete_scale", lambda *a: original(*a) / 2)
    code, out, _ = quick("audit", *FAST, "-o", tmp_path)
    assert code == 1
    assert "BROKEN discrete Laplace noise" in out
    assert json.loads((tmp_path / "audit.json").read_text("utf-8"))["broken"] >= 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mechanism", "discrete-laplce"], "Did you mean 'discrete-laplace'?"),
        (["--mechanism", "gram", "--runs", "3"], "--runs"),
        (["--mechanism", "gram-mu", "-o", "/proc/nowhere"], "/proc/nowhere"),
    ],
)
def test_mistakes_are_named(arguments: list[str], message: str) -> None:
    code, _, err = quick("audit", *arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
