"""A release that the page asked for: made as the command makes it, and written with its page and its record."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsc import checks, files
from dpsc import files as folders
from dpsc.analyst.release import Release
from dpsc.custodian.custody import run
from dpsc.custodian.custody.options import Choices
from dpsc.custodian.custody.payer import Account
from dpsc.errors import ParameterError
from dpsc.release import describe
from dpsc.release.describe import record
from dpsc.release.file_format import sha256
from dpsc.web.work import Work


@dataclass(frozen=True)
class Made:
    """A release that was made and paid for; all of it is public."""

    release: Release
    file: Path
    page: Path | None
    record: Path | None
    told: tuple[str, ...]
    recipient: str
    command: str


@dataclass(frozen=True, repr=False)
class Request:
    """Everything that a release needs, taken from the desk at the moment of spending."""

    ledger: str
    chosen: Choices
    source: Any
    reference: Path | None
    dataset: str
    purpose: str
    recipient: str
    use: str
    out: Path
    n_is_public: bool
    command: str


class _Payer(Account):
    """An account that is looked at a last time before it pays."""

    def __init__(self, place: str, dataset: str, purpose: str, last_look: Callable[[], None]) -> None:
        super().__init__(place, dataset, purpose=purpose)
        self._look = last_look

    def _last_look(self) -> None:
        self._look()


def make(request: Request, work: Work) -> Made:
    """Add up the donors, book, release, write. Until it is booked it can be stopped; then nothing stops it."""
    chosen, out = request.chosen, request.out
    account = _Payer(request.ledger, request.dataset, request.purpose, work.last_look)
    work.expected = run.opened(request.source, chosen, request.reference)
    summed = run.added_up(request.source, chosen, work.on_rows, i_know=False)
    require_free(out, out.parent)
    with folders.beside(out) as part:
        place = part / out.name
        made = run.booked(
            summed, chosen, account, out, place, lambda: os.replace(place, out), n_is_public=request.n_is_public
        )
    page = _written(beside(out)[1], lambda: describe.page(made, out.name, sha256(out)))
    about = _written(beside(out)[2], lambda: _registered(made, request))
    return Made(made, out, page, about, tuple(account.told()), request.recipient, request.command)


def beside(out: Path) -> tuple[Path, Path, Path]:
    """Return where a release, its page and its record go."""
    name = out.name.removesuffix(".json")
    return out, out.with_name(f"{name}.html"), out.with_name(f"{name.removesuffix('.dpsc')}.record.json")


def require_free(out: Path, folder: Path) -> None:
    """Refuse a name that is none, that is in another folder, or that is taken."""
    name = out.name.removesuffix(".dpsc.json")
    if not name or out.parent != folder or name.startswith(".") or not checks.is_printable(name):
        raise ParameterError("--file-name must be a name, without a folder.")
    for place in beside(out):
        if os.path.lexists(place):
            raise ParameterError(f"--file-name: {place} is there already; choose another name.")


def _written(place: Path, content: Callable[[], str]) -> Path | None:
    """Write what goes out with a release. The release is whole and paid for, whatever becomes of this."""
    try:
        files.write(place, content())
    except Exception:
        return None
    return place


def _registered(made: Release, request: Request) -> str:
    content = record(made, sha256(request.out), intended_use=request.use)
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
