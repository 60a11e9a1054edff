"""A panel as a JSON file: its blocks, or somebody else's table with its noise, checked when read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, TypeVar, get_args

import numpy as np

from dpsc.privacy import discrete, exact
from dpsc.release import file_format
from dpsc.release.file_format import number, periods_from_json, periods_to_json, require
from dpsc.release.lengths import BINS, NoisyLengths, require_quantile
from dpsc.release.panel import FEWEST_UNITS, MOST_UNITS, Block, NoisyTable, ReleasedPanel, require_size
from dpsc.release.table_rule import TableRule
from dpsc.types import Array, Integers, JsonObject

FORMAT, VERSION = "dpsc-panel", 1
_MOST_BLOCKS = 2_000
P = TypeVar("P", bound=ReleasedPanel)


def is_panel(text: str) -> bool:
    """Return whether a file says that it is a panel; whether it is a sound one, :func:`loads` finds out."""
    return f'"format": "{FORMAT}"' in text[:100]


def dumps(panel: ReleasedPanel) -> str:
    """Return the JSON text."""
    body: JsonObject = {"format": FORMAT, "version": VERSION, "blocks": [_block_to_json(b) for b in panel.blocks]}
    if panel.published is not None:
        table = panel.published
        body |= {
            "publisher": panel.publisher,
            "published": {
                "outcome": table.outcome,
                "units": list(table.units),
                "periods": periods_to_json(table.times),
                "values": _with_holes(table.values),
                "noise": _with_holes(table.noise),
                "people": None if table.people is None else _with_holes(table.people),
            },
        }
    return file_format.sealed(body)


def loads(text: str, kind: type[P]) -> P:
    """Read the JSON text, or say what is wrong with it."""
    body, _ = file_format.unsealed(text, FORMAT, VERSION, "panel")
    with file_format.following_its_schema("panel"), np.errstate(all="ignore"):
        require(isinstance(body["blocks"], list) and len(body["blocks"]) <= _MOST_BLOCKS, "there are too many blocks")
        blocks = tuple(_block_from_json(stored) for stored in body["blocks"])
        return kind(blocks, _published(body["published"]) if "published" in body else None, body.get("publisher", ""))


def _block_to_json(block: Block) -> JsonObject:
    rule = asdict(block.rule)
    return {
        "made_by": block.made_by,
        "made_on": block.made_on,
        "outcome": block.outcome,
        "units": list(block.units),
        "periods": periods_to_json(block.times),
        "rule": {name: value for name, value in rule.items() if name not in ("units", "periods")},
        "parts": block.rule.finer,  # of a step: sums, people and the noise are in them
        "noise": {"law": block.law, "scale": block.scale},
        "guarantee": None if block.guarantee is None else asdict(block.guarantee),
        "no_guarantee": block.no_guarantee,
        "provenance": block.provenance,
        "identity": block.identity,
        "dataset": block.dataset,
        "sums": block.sums.ravel().tolist(),
        "people": None if block.people is None else block.people.ravel().tolist(),
    } | ({} if block.lengths is None else {"lengths": _lengths_to_json(block.lengths)})


def _lengths_to_json(lengths: NoisyLengths) -> JsonObject:
    return {"quantile": lengths.quantile, "scale": lengths.scale, "counts": lengths.counts.tolist()}


def _block_from_json(stored: JsonObject) -> Block:
    units, times = _units(stored["units"]), periods_from_json(stored["periods"])
    shape = len(units), len(times)
    require_size(*shape)
    said = stored["rule"]
    counts = [said["cells_per_period"], 1 if said["cells_per_person"] is None else said["cells_per_person"]]
    require(all(type(count) is int for count in counts), "the rule is wrong")
    bounds = None if said["bounds"] is None else tuple(number(bound) for bound in said["bounds"])
    bound = None if said["person_bound"] is None else number(said["person_bound"])
    rule = TableRule(**{**said, "bounds": bounds, "person_bound": bound, "units": shape[0], "periods": shape[1]})
    require(stored.get("parts", 1) == rule.finer, "the numbers are in other parts of a step than the rule's")
    law = stored["noise"]["law"]
    require(law in get_args(discrete.Kind), "the noise is of unknown kind")
    texts = [stored[name] for name in ("outcome", "no_guarantee", "provenance", "dataset", "made_by", "made_on")]
    require(all(isinstance(text, str) for text in texts), "a text field is not text")
    file_format.require_day(texts[5])
    require(isinstance(stored["identity"], str), "the identity is wrong")
    file_format.require_identities([stored["identity"]])
    return Block(
        rule=rule,
        units=units,
        times=times,
        outcome=texts[0],
        sums=_integers(stored["sums"], shape),
        people=None if stored["people"] is None else _integers(stored["people"], shape),
        law=law,
        scale=_scale(stored["noise"]["scale"]),
        guarantee=None if stored["guarantee"] is None else file_format.guarantee_from(stored["guarantee"]),
        no_guarantee=texts[1],
        lengths=_lengths(stored["lengths"], law) if "lengths" in stored else None,
        provenance=texts[2],
        identity=stored["identity"],
        dataset=texts[3],
        made_by=texts[4],
        made_on=texts[5],
    )


def _scale(stored: Any) -> float:
    scale = number(stored)
    require(scale > 0 and exact.fits(discrete.WIDEST * scale), "the noise is of unknown kind")
    return scale


def _lengths(stored: JsonObject, law: discrete.Kind) -> NoisyLengths:
    counts = _integers(stored["counts"], (1, BINS))[0]
    return NoisyLengths(require_quantile(number(stored["quantile"])), counts, law, _scale(stored["scale"]))


def _published(stored: JsonObject) -> NoisyTable:
    units, times = _units(stored["units"]), periods_from_json(stored["periods"])
    shape = len(units), len(times)
    require_size(*shape)
    values, noise = (_with_nan(stored[name], shape) for name in ("values", "noise"))
    require(not (noise < 0).any(), "the noise is below zero")
    people = None if stored["people"] is None else _with_nan(stored["people"], shape)
    return NoisyTable(units, times, stored["outcome"], values, noise, people)


def _units(stored: Any) -> tuple[str, ...]:
    require(
        isinstance(stored, list)
        and FEWEST_UNITS <= len(stored) <= MOST_UNITS
        and all(isinstance(unit, str) for unit in stored),
        "the units are not a list of names",
    )
    return tuple(stored)


def _integers(stored: Any, shape: tuple[int, int]) -> Integers:
    fine = isinstance(stored, list) and len(stored) == shape[0] * shape[1]
    require(fine and all(type(v) is int and abs(v) < 2**63 for v in stored), "the table holds something else")
    return np.array(stored, dtype=np.int64).reshape(shape)


def _with_holes(values: Array) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values.ravel()]


def _with_nan(stored: Any, shape: tuple[int, int]) -> Array:
    require(isinstance(stored, list) and len(stored) == shape[0] * shape[1], "the table holds something else")
    return np.array([np.nan if value is None else number(value) for value in stored]).reshape(shape)
