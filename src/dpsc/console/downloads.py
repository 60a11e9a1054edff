"""Files that a page offers. If one cannot be made, the page says so; nothing of the error is printed."""

from __future__ import annotations

from collections.abc import Callable

from shiny import Outputs, render, ui

from dpsc.console import unexpected


def offer(output: Outputs, name: str, file: str | Callable[[], str], content: Callable[[], bytes]) -> None:
    """Offer what ``content`` makes, under the name of a file, on the link with the id ``name``."""

    @output(id=name)
    @render.download_button(filename=file)
    def _() -> list[bytes]:
        made: list[bytes] = []
        said = unexpected.said(lambda: made.append(content()))
        if said:
            ui.notification_show(said, type="error", duration=None)
            raise _NotMadeError
        return made


class _NotMadeError(Exception):
    """A file could not be made; why was said on the page."""
