"""Eight processes race for the last slice of a budget, round after round. Run by test_race.py in a process of its own.

    python race.py URL ROUNDS

prints, a round, the budget, how many were booked beforehand and what each process was told.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier

from dpsc import BudgetError, GramRelease, Ledger
from dpsc.errors import DpscError

PROCESSES = 8
SIZE = GramRelease(epsilon=0.25, delta=1e-6, scale=1.0)


def budget_of(round_: int) -> float:
    return 0.3 + 0.05 * (round_ % 11)


def booked_before(round_: int) -> int:
    return (round_ + round_ // 11) % 2


def worker(url: str, rounds: int, barrier: Barrier, results: Connection) -> None:
    ledger = Ledger(url, patience=60)
    for round_ in range(rounds):
        barrier.wait(120)
        try:
            entry = ledger.book(f"round {round_}", **ledger.terms(SIZE))
            if round_ % 10 == 0:
                ledger.confirm(entry)
            results.send("booked")
        except BudgetError:
            results.send("refused")
        except DpscError as problem:
            results.send(f"error: {problem}")
        barrier.wait(120)


def main(url: str, rounds: int) -> None:
    ledger = Ledger(url, create=True)
    fork = multiprocessing.get_context("fork")  # everything is imported already, and there is one thread
    barrier = fork.Barrier(PROCESSES + 1)
    pipes = [fork.Pipe(duplex=False) for _ in range(PROCESSES)]
    workers = [fork.Process(target=worker, args=(url, rounds, barrier, sender)) for _, sender in pipes]
    for process in workers:
        process.start()
    told = []
    for round_ in range(rounds):
        name = f"round {round_}"
        ledger.add_dataset(name, epsilon=budget_of(round_), delta=1e-6)
        for _ in range(booked_before(round_)):
            try:
                ledger.book(name, **ledger.terms(SIZE))
            except BudgetError:
                break
        before = len(ledger.entries(name))
        barrier.wait(120)
        barrier.wait(120)
        told.append({"budget": budget_of(round_), "before": before, "told": [r.recv() for r, _ in pipes]})
    for process in workers:
        process.join()
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
