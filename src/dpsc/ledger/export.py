"""The ledger for other programs: CSV for spreadsheets, JSON with everything that is needed to verify it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from dpsc import files
from dpsc.ledger import schema
from dpsc.ledger.book import Ledger
from dpsc.ledger.chain import START
from dpsc.ledger.contents import to_use
from dpsc.ledger.history import Balance
from dpsc.ledger.records import Entry
from dpsc.types import JsonObject

_ASKED = ("number", "time", "dataset", "partition", "who", "algorithm", "epsilon", "delta")
_HELD = ("outcome", "first", "last", "periods", "n", "parts")  # of the file, as it is known; then, if it is to be used
COLUMNS = (*_ASKED, "state", "output", *_HELD, "use", "purpose", "sha256", "parameters", "basis", "hash")


def as_csv(ledger: Ledger, dataset: str | None = None) -> str:
    """Return the bookings, one line each."""
    rows, entries = [], ledger.entries(dataset)
    use = _to_use(entries)
    for entry in entries:
        row = entry_to_json(entry)
        row |= dict.fromkeys(_HELD) | (row.pop("contents") or {})
        row["use"] = None if entry.contents is None else "yes" if entry.number in use else "no"
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
        "datasets": [balance_to_json(history.balance(name), history.entries(name)) for name in names],
        "entries": [entry_to_json(entry) for entry in history.entries(dataset)],
        "chain": [vars(row) for row in rows],
    }
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def entry_to_json(entry: Entry) -> JsonObject:
    """Return a booking as plain values."""
    plain = dict(vars(entry))
    plain["contents"] = None if entry.contents is None else asdict(entry.contents)
    return plain | {"guarantee": plain.pop("promise")}


def _to_use(entries: Sequence[Entry]) -> set[int]:
    names = {entry.dataset for entry in entries}
    return {each.number for name in names for each in to_use([entry for entry in entries if entry.dataset == name])}


def balance_to_json(balance: Balance, entries: Sequence[Entry]) -> JsonObject:
    """Return a balance, and the releases of the data set whose files are known, as plain values."""
    known, use = balance.dataset, _to_use(entries)
    return {
        **{name: value for name, value in vars(known).items() if name != "budget"},
        "pure": known.budget.pure,
        "other": list(known.budget.other),
        "fingerprint": known.fingerprint,
        "spent": balance.spent,
        "share": balance.share,
        "remaining": balance.remaining,
        "states": dict(balance.states),
        "partitions": dict(balance.partitions),
        "releases": [
            {"number": entry.number, "time": entry.time, "output": entry.output, "sha256": entry.sha256}
            | {"epsilon": entry.promise["epsilon"], "delta": entry.promise["delta"]}
            | asdict(entry.contents)
            | {"use": entry.number in use}
            for entry in entries
            if entry.contents is not None
        ],
    }
