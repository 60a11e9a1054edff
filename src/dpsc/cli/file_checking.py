"""What ``dpsc audit RELEASE`` does: check one file, and say what a file cannot show."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from rich.table import Table
from rich.text import Text

from dpsc.analyst.release import Release
from dpsc.cli import terminal
from dpsc.errors import ReleaseError
from dpsc.release import file_format, verify
from dpsc.release.verify import Check

_STYLES = {"holds": "green", "FAILS": "bold red", "not shown": "yellow"}


def run(path: Path, expected: str | None, *, as_json: bool) -> bool:
    """Check a file, print what was found, and return whether nothing failed."""
    text, found = file_format.read(path)
    checks = [_hash(found, expected)]
    try:
        release = file_format.loads(text, Release)
    except ReleaseError as problem:
        checks.append(Check("file", "FAILS", str(problem)))
    else:
        made = f"by {release.made_by}" + (f" on {release.made_on}" if release.made_on else "")
        checks.append(Check("file", "holds", f"a complete release, made {made}; its checksum matches"))
        checks.append(Check("identity", "holds", ", ".join(release.identities)))
        checks += verify.checks(release)
    fine = all(check.verdict != "FAILS" for check in checks)
    if as_json:
        terminal.print_json({
            "file": str(path), "sha256": found, "holds": fine, "checks": [asdict(check) for check in checks],
            "not_shown": list(verify.NOT_SHOWN),
        })  # fmt: skip
    else:
        _show(path, found, checks)
    return fine


def _hash(found: str, expected: str | None) -> Check:
    if expected is None:
        return Check("SHA-256", "not shown", "compare it with the one that the custodian tells you, or give --sha256")
    same = found == expected.strip().lower()
    return Check("SHA-256", "holds" if same else "FAILS", "as expected" if same else "this is another file")


def _show(path: Path, sha256: str, checks: list[Check]) -> None:
    table = Table(title=str(path), title_justify="left", show_header=False, show_edge=False)
    for check in checks:
        table.add_row(Text(check.what, "dim"), Text(check.verdict, _STYLES[check.verdict]), Text(check.why))
    screen = terminal.console()
    screen.print(table)
    screen.print(f" SHA-256: {sha256}", soft_wrap=True)
    screen.print("\nWhat a file cannot show:")
    for line in verify.NOT_SHOWN:
        screen.print(Text(f"  - {line}"))
    screen.print("\nThis checked a file. Plain dpsc audit attacks the software that makes such files.")
