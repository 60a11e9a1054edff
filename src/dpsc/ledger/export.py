"""The ledger for other programs: CSV for spreadsheets, JSON with everything that is needed to verify it."""

from __future__ import annotations

import json

from dpsc import files
from dpsc.ledger import schema
from dpsc.ledger.book import Ledger
from dpsc.ledger.budget import Budget
from dpsc.ledger.chain import START
from dpsc.ledger.history import Balance
from dpsc.ledger.records import DataSet, Entry
from dpsc.types import JsonObject

_ASKED = ("number", "time", "dataset", "partition", "who", "algorithm", "epsilon", "delta")
COLUMNS = (*_ASKED, "state", "output", "purpose", "sha256", "parameters", "basis", "hash")


def as_csv(ledger: Ledger, dataset: str | None = None) -> str:
    """Return the bookings, one line each."""
    rows = []
    for entry in ledger.entries(dataset):
        row = entry_to_json(entry)
        promise = row.pop("guarantee")
        row |= {"epsilon": promise["epsilon"], "delta": promise["delta"], "basis": promise["basis"]}
        row["parameters"] = json.dumps(row["parameters"], sort_keys=True)
        rows.append([row[name] for name in COLUMNS])
    return files.csv_text(COLUMNS, rows)


def as_json(ledger: Ledger, dataset: str | None = None) -> str:
    """Return balances, bookings, and the chain as it is stored; the chain is always that of the whole ledger."""
    history = ledger.history()
    names = [each.name for each in history.datasets.values() if dataset in (None, each.name)]
    rows = history.rows
    book = {
        "format": "dpsc-ledger",
        "version": schema.VERSION,
        "head": {"length": len(rows), "hash": rows[-1].hash if rows else START},
        "datasets": [balance_to_json(history.balance(name)) for name in names],
        "entries": [entry_to_json(entry) for entry in history.entries(dataset)],
        "chain": [vars(row) for row in rows],
    }
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def entry_to_json(entry: Entry) -> JsonObject:
    """Return a booking as plain values."""
    plain = dict(vars(entry))
    return plain | {"guarantee": plain.pop("promise")}


def dataset_to_json(dataset: DataSet) -> JsonObject:
    """Return a data set as plain values."""
    plain = dict(vars(dataset))
    budget: Budget = plain.pop("budget")
    return {**plain, "pure": budget.pure, "other": list(budget.other), "fingerprint": dataset.fingerprint}


def balance_to_json(balance: Balance) -> JsonObject:
    """Return a balance as plain values."""
    return {
        **dataset_to_json(balance.dataset),
        "spent": balance.spent,
        "share": balance.share,
        "remaining": balance.remaining,
        "states": dict(balance.states),
        "partitions": dict(balance.partitions),
    }
