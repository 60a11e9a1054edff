"""Which engine for which donors: memory where they fit, a stream where they do not, Dask where it is asked for."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

from dpsc import tabular
from dpsc.data.frames import Missing
from dpsc.errors import ParameterError
from dpsc.gram.memory import ArrayDonors
from dpsc.gram.summing import Donors
from dpsc.tabular import Layout

Engine = Literal["auto", "memory", "stream", "dask"]
ENGINES: tuple[Engine, ...] = ("auto", "memory", "stream", "dask")
LARGE = 100 * 2**20  # bytes of a file above which it is streamed


def donors_in(
    path: Path,
    layout: Layout,
    *,
    engine: Engine = "auto",
    scheduler: str | None = None,
    workers: int | None = None,
    bounds: tuple[float, float] | None = None,
    missing: Missing = "error",
    exclude: tuple[str, ...] = (),
) -> Donors:
    """Return the donors of a file or folder; the integers that they add up to are the same from every engine."""
    if engine not in ENGINES:
        raise ParameterError(f"--engine {engine!r} is not one of {', '.join(ENGINES)}.")
    if scheduler is not None and engine not in ("auto", "dask"):
        raise ParameterError(f"--scheduler belongs to --engine dask, not to {engine}.")
    if workers is not None and (scheduler is not None or engine != "dask"):
        raise ParameterError("--workers belongs to --engine dask without --scheduler.")
    if missing not in get_args(Missing):
        raise ParameterError(f"--missing must be {', '.join(get_args(Missing))}, not {missing!r}.")
    if missing == "midpoint" and bounds is None:
        raise ParameterError("--missing midpoint fills with the middle of the bounds; give --bounds LO HI.")
    if engine == "auto":
        engine = "dask" if scheduler is not None else _fitting(path)
    if engine == "memory":
        table = tabular.donors(path, layout, bounds=bounds, missing=missing, exclude=exclude)
        return ArrayDonors(table.to_numpy(), table.columns, layout.name)
    from dpsc.data.arrow import Files

    # The workers of a cluster may stand in another folder.
    files = Files(path.absolute() if engine == "dask" else path, layout, missing, bounds, exclude)
    if engine == "stream":
        from dpsc.gram.stream import StreamedDonors

        return StreamedDonors(files)
    if find_spec("distributed") is None or find_spec("dask") is None:
        raise ParameterError("--engine dask needs Dask: pip install 'dpsc[dask]'.")
    from dpsc.gram.dask import DaskDonors

    return DaskDonors(files, scheduler, workers)


def rows_expected(donors: Donors) -> int | None:
    """Return how many donors a progress bar should expect, if that is known."""
    if isinstance(donors, ArrayDonors):
        return len(donors.values)
    files = getattr(donors, "files", None)
    return None if files is None else files.rows_expected()


def _fitting(path: Path) -> Engine:
    if path.is_dir():
        return "stream"
    return "stream" if path.exists() and path.stat().st_size > LARGE else "memory"
