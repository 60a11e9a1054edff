"""The two programs: what the analyst's may not know, and what the command refuses."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from dpsc.cli import app
from tests.test_architecture import graph

READS_DONORS = ("dpsc.custodian", "dpsc.datasets", "dpsc.ledger", "dpsc.evidence", "dpsc.web.custodian")

WHOLE_PROGRAM = """
import sys, tempfile
from pathlib import Path
from dpsc.answers import figures as plot
from dpsc.web import server
from dpsc.web.analyst import app
from dpsc.web.analyst.desk import AnalystDesk
plot.as_bytes = lambda figure, format, dpi=200: b"<svg/>"  # Matplotlib imports nothing of ours
folder = Path(tempfile.mkdtemp())
app.program(folder)
desk = AnalystDesk(folder)
desk.open_demo()
desk.choose(17)
days = desk.periods
rows = [f"{u};{days[s]};{day};{10 + k % 3}" for u, s in (("a", 17), ("b", 18)) for k, day in enumerate(days)]
desk.paste_several("\\n".join(["unit;start;fortnight;delay", *rows]))
desk.open_other(desk.release_file)
made = [panel(desk, 4.8) for name, panel in app.PANELS.items() if name != "treatment_help"]  # nothing to help with
made += [content() for name, (_, content) in app._downloads(desk).items() if "report" not in name]
assert not desk.problems and all(made), desk.problems
print(" ".join(sorted(name for name in sys.modules if name.startswith("dpsc"))))
"""


def test_the_analysts_program_never_imports_what_reads_donors() -> None:
    """Everything that it can do is done in a fresh interpreter, and then its modules are looked at."""
    done = subprocess.run([sys.executable, "-c", WHOLE_PROGRAM], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert {"dpsc.web.analyst.app", "dpsc.analyst.release"} <= loaded
    assert not [name for name in loaded if name.startswith(READS_DONORS)]


def test_the_custodians_program_is_another_one() -> None:
    reached, waiting = set(), ["dpsc.web.custodian.app"]
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += graph()[module]
    assert "dpsc.custodian.custody.steps" in reached
    assert not reached & {"dpsc.web.analyst.app", "dpsc.web.analyst.desk"}


def test_the_list_of_what_reads_donors_names_modules_that_exist() -> None:
    from importlib.util import find_spec

    assert all(find_spec(name) is not None for name in READS_DONORS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["analyst", "--host", "0.0.0.0"], "forward its port"),
        (["custodian", "--host", "0.0.0.0"], "SECURITY.md: time"),
        (["custodian", "--folder", "/nowhere/at/all"], "not a folder that can be written to"),
        (["custodian", "--no-browser", "--ledger", "mysql://host/book"], "ledger"),
    ],
)
def test_what_is_refused_is_refused_with_the_reason(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["console", *arguments])
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_port_in_use_is_said() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = CliRunner().invoke(app, ["console", "analyst", "--no-browser", "--port", port])
    assert done.exit_code == 2
    assert f"port {port} cannot be used" in done.stderr
