"""The ledger is on by default: what is released from donors whose ledger is at hand is booked in it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from dpsc import GramRelease, Ledger
from dpsc.cli.fit import Analysis
from dpsc.cli.terminal import Account
from dpsc.errors import ParameterError
from dpsc.ledger.budget import Cost
from dpsc.ledger.words import cost_of, room_for, spent_of
from tests.cli.conftest import quick

COLUMNS = ("--unit", "who", "--time", "month", "--outcome", "cost")
BUDGET = ("--epsilon", 1, "--delta", 1e-6)
HERE = Path("dpsc-ledger.sqlite")


@pytest.fixture(autouse=True)
def in_folder(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in the folder of the donors, where a ledger may be."""
    monkeypatch.chdir(files)


def release(out: str, *more: object) -> tuple[int, str, str]:
    return quick("release", "donors.csv", *COLUMNS, *BUDGET, "-o", out, *more)


def fit(*more: object) -> tuple[int, str, str]:
    return quick("fit", "panel.csv", *COLUMNS, "--treated-unit", "clinic", "--treatment-time", "2021-03-01", *more)


def init(name: str = "patients", *more: object, epsilon: float = 2) -> None:
    code, _, err = quick("ledger", "init", name, "--epsilon", epsilon, "--delta", 1e-6, *more)
    assert code == 0, err


def test_a_ledger_in_the_folder_is_used_without_being_asked_for() -> None:
    """Eight releases of epsilon 1 were made from the same patients, with a ledger in the folder."""
    init()
    codes = [release(f"{number}.json")[0] for number in range(8)]
    assert codes.count(0) < 8
    assert len(Ledger(HERE).entries()) == codes.count(0) >= 2
    assert Ledger(HERE).balance("patients").spent <= 2
    assert sorted(path.name for path in Path().glob("?.json")) == [f"{n}.json" for n in range(codes.count(0))]


def test_a_ledger_in_the_environment_is_used_first(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init()
    other = files / "other.sqlite"
    Ledger(other, create=True).add_dataset("clinic", epsilon=2, delta=1e-6)
    monkeypatch.setenv("DPSC_LEDGER", str(other))
    assert release("a.json")[0] == 0
    assert (len(Ledger(HERE).entries()), len(Ledger(other).entries())) == (0, 1)
    assert release("b.json", "--ledger", HERE)[0] == 0
    assert (len(Ledger(HERE).entries()), len(Ledger(other).entries())) == (1, 1)


def test_fit_finds_the_ledger_too() -> None:
    init()
    code, _, err = fit(*BUDGET, "-o", "answer.csv")
    assert code == 0, err
    assert [entry.state for entry in Ledger(HERE).entries()] == ["confirmed"]
    assert "spent  epsilon 1 of 2" in err


def test_without_a_ledger_a_release_is_refused_before_donors_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """That nothing was booked used to be said afterwards."""
    with monkeypatch.context() as reading:
        reading.setattr(GramRelease, "custodian_sum", lambda *_, **__: pytest.fail("donors were read"))
        reading.setattr(Analysis, "panel", lambda *_: pytest.fail("donors were read"))
        for code, out, err in (release("a.json"), fit(*BUDGET, "-o", "answer.csv")):
            assert (code, out) == (2, "")
            assert "there is no ledger" in err
            assert "dpsc ledger init NAME" in err
            assert "--no-ledger" in err
    code, out, _ = release("a.json", "--dry-run")
    assert (code, Path("a.json").exists()) == (0, False)
    assert "there is no ledger: make one with dpsc ledger init, or add --no-ledger" in " ".join(out.split())
    two_step = ("--method", "output", "--bounds", -10, 60)  # whose numbers are all there is to keep
    for code, _, err in (release("c.json", "--no-ledger"), fit(*BUDGET, *two_step, "--no-ledger", "-o", "d.json")):
        assert (code, err) == (0, "")


@pytest.mark.parametrize("goes_on", [True, False])
def test_without_a_ledger_a_user_at_a_terminal_is_asked(goes_on: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("dpsc.cli.terminal._is_terminal", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda question, **_: asked.append(question) or goes_on)  # type: ignore[func-returns-value]
    code, _, err = release("a.json", "--no-page")
    assert (code, Path("a.json").exists()) == ((0, True) if goes_on else (2, False))
    assert len(asked) == 1
    assert asked[0].endswith("Release without one?")
    assert ("nothing was read and nothing was spent" in err) is not goes_on


def test_no_ledger_books_nothing_whatever_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    init()
    monkeypatch.setenv("DPSC_LEDGER", str(HERE))
    code, _, err = release("a.json", "--no-ledger")
    assert (code, err) == (0, "")
    assert Ledger(HERE).entries() == []
    for option in ("--ledger", "--dataset", "--partition", "--purpose"):
        code, _, err = release("b.json", "--no-ledger", option, "patients")
        assert code == 2
        assert f"{option} and --no-ledger contradict" in err


def test_a_file_that_is_no_ledger_is_not_passed_over(files: Path) -> None:
    HERE.write_text("something else, of some length\n" * 40)
    code, _, err = release("a.json")
    assert code == 2
    assert "The file is not a ledger" in err
    HERE.unlink()
    HERE.symlink_to(files / "gone.sqlite")
    code, _, err = release("a.json")
    assert code == 2
    assert "there is no ledger" in err
    assert not Path("a.json").exists()


def test_of_several_data_sets_one_is_named() -> None:
    init()
    init("visitors")
    code, _, err = release("a.json")
    assert code == 2
    assert "several data sets: 'patients', 'visitors'" in err
    assert "--dataset" in err
    assert Ledger(HERE).entries() == []
    code, _, err = release("a.json", "--dataset", "visitors")
    assert code == 0, err
    assert [entry.dataset for entry in Ledger(HERE).entries()] == ["visitors"]


def test_on_a_terminal_the_user_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    init()
    init("visitors")
    asked: list[str] = []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("typer.prompt", lambda question, **_: asked.append(question) or "visitors")  # type: ignore[func-returns-value]
    account = Account(None, None)
    with account.booking(GramRelease(epsilon=1, delta=1e-6), output=None, description={}):
        pass
    assert len(asked) == 1
    assert "'patients', 'visitors'" in asked[0]
    assert [entry.dataset for entry in Ledger(HERE).entries()] == ["visitors"]


def test_a_ledger_without_data_sets_says_what_to_do() -> None:
    Ledger(HERE, create=True)
    with pytest.raises(ParameterError, match=r"no data set yet.*dpsc ledger init.*no_ledger=True"):
        Account(None, None)


def test_after_a_booking_its_cost_and_what_is_spent_and_left_are_said() -> None:
    """1 + 1 = 1.43 stood there without a word."""
    init()
    code, _, err = release("a.json")
    assert code == 0, err
    lines = err.split("\n")
    assert f"Booked as entry 2 of 'patients' in {HERE.absolute()}." in lines
    assert "  cost   epsilon 1 at delta 1e-6" in lines
    assert "  spent  epsilon 1 of 2 at delta 1e-6" in lines
    left = Ledger(HERE).remaining("patients")
    assert f"  left   a Gram release of up to epsilon {left:g} at delta 1e-6" in lines
    together = f"A release at epsilon 1 and one at {left:g} protect together like one at 2 at delta 1e-6"
    independent = "their noise is independent, so that their worst cases hardly ever come together."
    assert f"{together}: {independent}" in lines
    code, _, err = release("b.json")
    spent = Ledger(HERE).balance("patients").spent
    told = f"Two releases at epsilon 1 each protect like one at {spent:.4g} at delta 1e-6: {independent}"
    assert told in err.split("\n")
    assert told in " ".join(quick("ledger", "show")[1].split())


def test_a_partition_and_a_purpose_reach_the_ledger() -> None:
    init(epsilon=1)
    for part in ("north", "south"):
        code, _, err = release(f"{part}.json", "--partition", part, "--purpose", f"[b]the {part}")
        assert code == 0, err
        assert f"of 'patients', partition '{part}'" in err
    assert release("again.json", "--partition", "North")[0] == 2
    code, _, err = release("again.json", "--partition", "north")
    assert code == 2
    assert "over budget: 'patients', partition 'north'" in err
    entries = Ledger(HERE).entries()
    assert [(entry.partition, entry.purpose) for entry in entries] == [
        ("north", "[b]the north"),
        ("south", "[b]the south"),
    ]
    shown = quick("ledger", "entries")[1]
    for entry in entries:
        assert f"output   {entry.output}" in shown
        assert f"purpose  {entry.purpose}" in shown
    assert "the north" in quick("ledger", "export")[1]
    code, _, err = fit(*BUDGET, "--partition", "west", "--purpose", "a look", "-o", "answer.csv")
    assert code == 0, err
    assert (Ledger(HERE).entries()[-1].partition, Ledger(HERE).entries()[-1].purpose) == ("west", "a look")


def test_what_has_no_price_is_refused_with_a_way_out() -> None:
    init()
    code, _, err = fit("--method", "nonprivate", "--bounds", -10, 60)
    assert code == 2
    assert "cannot be booked" in err
    assert "--no-ledger" in err
    code, _, err = fit("--method", "nonprivate", "--bounds", -10, 60, "--no-ledger")
    assert code == 0, err


def test_init_says_that_a_data_set_is_known() -> None:
    """The second time it said 'Entered' again, as if there were a new budget."""
    code, out, _ = quick("ledger", "init", "patients", "--epsilon", 2, "--delta", 1e-6, "--who", "ann")
    assert code == 0
    assert "Entered in" in out
    code, out, _ = quick("ledger", "init", "patients", "--epsilon", 2, "--delta", 1e-6, "--who", "bob")
    assert code == 0
    assert "Known already: entered by ann on 20" in out
    assert "Entered" not in out
    code, _, err = quick("ledger", "init", "Patients ", "--epsilon", 2, "--delta", 1e-6)
    assert code == 2
    assert "the data set 'patients', and 'Patients' differs from it only in case" in err
    assert len(Ledger(HERE).rows()) == 1


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (("--epsilon", 1000, "--delta", 1e-6), "--epsilon 1000 is above 20"),
        (("--epsilon", 1, "--delta", 0.5), "--delta 0.5 is too large"),
        (("--epsilon", 1, "--delta", 0.005, "--about", "n=400"), "--delta 0.005 is not below one over"),
    ],
)
def test_a_silly_budget_is_not_entered_either(budget: tuple[object, ...], said: str) -> None:
    """`release` refused an epsilon of 1000, and `ledger init` made it a budget."""
    code, _, err = quick("ledger", "init", "patients", *budget)
    assert code == 2
    assert said in err
    assert not HERE.exists()
    code, _, err = quick("ledger", "init", "patients", *budget, "--i-know")
    assert code == 0, err


def test_every_place_shows_the_same_numbers_of_a_budget(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The console said that 4.27 of 4 were left, the command another number: one function, one delta, all digits."""
    from dpsc.web.custodian.app import CustodianDesk

    monkeypatch.chdir(files)
    book = Ledger(HERE, create=True)
    book.add_dataset("patients", epsilon=4.0, delta=4e-6)
    desk = CustodianDesk(files, files, None)
    for k in range(3):
        promise = GramRelease(epsilon=1.0, delta=1e-6).guarantee
        assert promise is not None
        now, then = book.balance("patients"), book.balance("patients", after=promise)
        assert now.remaining == book.remaining("patients") <= 4
        assert json.loads(quick("ledger", "show", "--json")[1])["datasets"][0]["remaining"] == now.remaining
        assert f"left     {room_for(now)}\n" in quick("ledger", "show")[1]
        _, out, _ = release(f"{k}.json", "--dry-run")
        cost = cost_of(promise, now.dataset)
        assert (
            cost
            == f"epsilon 1 at delta 1e-6 (epsilon {now.dataset.budget.spent([Cost.of(promise)]):.4g} at delta 4e-6)"
        )
        assert f"  cost: {cost} of the budget of 'patients'; " in out
        assert f"there is room for it\n  left before: {room_for(now)}\n  left after: {room_for(then)}\n" in out
        assert (f"  together with this release: {spent_of(then)}\n" in out) == (k > 0)
        desk.judge()
        gauge = re.sub('<span class="whole">([^<]*)</span>', r"\1", desk.budget.gauge())
        assert f"<dt>this release</dt><dd>{cost}</dd>" in gauge
        assert f"</span> left now</dt><dd>{room_for(now)}</dd>" in gauge
        assert f"<dt>left afterwards</dt><dd>{room_for(then)}</dd>" in gauge
        _, _, err = release(f"{k}.json")
        assert f"  left   {room_for(then)}\n" in err
        assert f"  spent  {spent_of(then)}\n" in err
        assert f"  cost   {cost}\n" in err
        assert book.balance("patients").remaining == then.remaining
