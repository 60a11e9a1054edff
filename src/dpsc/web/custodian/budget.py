"""The page Budget: what is left, and what this release would cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from dpsc.checks import command, options, small
from dpsc.custodian.custody.steps import require_reasonable
from dpsc.errors import DpscError, Parameter
from dpsc.ledger.words import explained, released_before, room_for, spent_of
from dpsc.privacy.guarantee import Guarantee
from dpsc.web.custodian.book import BookPage
from dpsc.web.custodian.form import Form, commands
from dpsc.web.server import render


class BudgetPage:
    """What the release at hand costs.

    Attributes
    ----------
    agreed : bool
        Whether somebody went on from this page.
    """

    def __init__(self, form: Form, book: BookPage) -> None:
        self._form, self._book = form, book
        self.agreed = False

    def agree(self) -> None:
        """Go on with this budget."""
        with self._form.changing():
            self.agreed = True

    def enter_dataset(self) -> None:
        """Give a data set its budget in the ledger, as ``dpsc ledger init`` does."""
        form = self._form
        with form.changing(), form.about("new_name"):
            epsilon, delta = form.number("new_epsilon"), form.number("new_delta")
            with _in_place_of("epsilon", "new_epsilon"):
                require_reasonable(epsilon, False)
            with _in_place_of("delta", "new_delta"):
                form.kind.require_delta(delta)
            form.fields["dataset"] = self._book.enter(form["new_name"], epsilon, delta)
            form.judge()

    def judge(self) -> None:
        """Look into the ledger, once, and say what is wrong with the budget, next to its fields."""
        form, promise = self._form, None
        for name in ("epsilon", "delta", "dataset", "book"):
            form.problems.pop(name, None)
        form.kind.forget()
        with form.about("epsilon"):
            epsilon, delta = form.number("epsilon"), form.number("delta")
            require_reasonable(epsilon, False)
            form.kind.require_delta(delta)
            promise = form.kind.promise(epsilon, delta)
        if form.phase == "done":
            promise = None  # what was made is booked: no other release is at hand yet
        with form.about("dataset"):
            self._book.read(form.fields["dataset"], promise)
            form.fields["dataset"] = self._book.seen.dataset
        if promise is not None:
            self._judge_amount(promise)

    # What is shown -----------------------------------------------------------------------------------------------

    def gauge(self) -> str:
        """Show what is spent, what this release would add, and what is left."""
        book, seen = self._book, self._book.seen
        about = {"what": self._form.kind.rows, "datasets": seen.datasets, "exists": book.exists, "place": book.place}
        if seen.balance is None:
            return render("custodian/gauge.html", balance=None, **about)
        then = seen.balance if seen.after is None else seen.after
        budget = seen.balance.dataset.epsilon
        spent, after = (min(100.0, round(100 * each.spent / budget, 2)) for each in (seen.balance, then))
        told = f"{spent:.0f}% of the budget is spent, {after:.0f}% with this release"
        width = {"spent": spent, "then": after, "told": told, "why": explained(then)}
        return render("custodian/gauge.html", **about, **width, **self.costs())

    def costs(self) -> dict[str, object]:
        """Return what is spent, and what would be after this release."""
        seen = self._book.seen
        room = partial(room_for, people=self._form.kind.one == "person")
        before = released_before([entry for entry in seen.entries if entry.dataset == seen.dataset])
        said = {"room": room, "spent_of": spent_of, "before": before, "cost": seen.cost}
        return {"balance": seen.balance, "after": seen.after, "over": seen.over, **said}

    def numbers(self) -> str:
        """Show how well an attacker guesses and what would be seen, from public numbers only."""
        return self._form.kind.numbers()

    def commands(self) -> str:
        """Show the commands of the budget."""
        form, book, known = self._form, self._book, self._book.seen.datasets
        lines = [book.command("show"), command(["dpsc", "plan"], options(form.kind.plan_options()))]
        if not known or form["new_name"] not in ("", *known):
            new = {"epsilon": form["new_epsilon"], "delta": form["new_delta"]}
            lines.insert(0, book.command("init", form["new_name"] or "NAME", **new))
        return commands(*lines)

    # -------------------------------------------------------------------------------------------------------------

    def _judge_amount(self, promise: Guarantee) -> None:
        """Say what is wrong with an epsilon that is one."""
        form, seen = self._form, self._book.seen
        if seen.dataset and seen.over:
            form.problems["epsilon"] = (
                f"Over budget: {seen.dataset!r} has epsilon {seen.left:g} left at delta {small(promise.delta)}; this "
                f"release takes {promise.epsilon - seen.left:.3g} more."
            )
        else:
            form.kind.judge_amount()


@contextmanager
def _in_place_of(option: str, field: str) -> Iterator[None]:
    """Let a sentence about an option be about another field."""
    try:
        yield
    except DpscError as problem:
        problem.message = problem.message.replace(str(Parameter(option)), str(Parameter(field)))
        raise
