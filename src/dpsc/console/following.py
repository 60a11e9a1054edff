"""Pages follow the desk: another page, or a thread, may have changed what lies on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from shiny import Session, reactive

_EVERY = 0.1  # seconds between two looks at the desk


def followed(session: Session, version: Callable[[], Any]) -> reactive.Value[Any]:
    """Return what the desk's version is; it changes with it, and nothing is sent as long as it does not."""
    seen = reactive.value(version())

    async def follow() -> None:
        last = version()
        while True:
            await asyncio.sleep(_EVERY)
            if version() != last:
                last = version()
                async with reactive.lock():
                    seen.set(last)
                    await reactive.flush()

    following = asyncio.create_task(follow())

    @session.on_ended
    def _() -> None:
        following.cancel()

    return seen
