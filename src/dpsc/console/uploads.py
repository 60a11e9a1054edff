"""A limit on the size of what is dropped on a page: larger files stay where they are, and their place is typed."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST = 256 * 2**20  # bytes
TOO_LARGE = f"this file is larger than {LARGEST // 2**20} MB; type where it is on this machine instead."


class Capped:
    """An application that takes no request above a size, whatever its headers say.

    Parameters
    ----------
    app : ASGI application
    largest : int
        Bytes.
    """

    def __init__(self, app: ASGIApp, largest: int = LARGEST) -> None:
        self._app, self._largest = app, largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse what is too large, or pass on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _announced(scope) > self._largest:
            await _refuse(send)
            return
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._largest:  # a length that was not announced, or was wrong
                return {"type": "http.disconnect"}
            return message

        await self._app(scope, counted, send)


def _announced(scope: Scope) -> int:
    lengths = [value for key, value in scope["headers"] if key.lower() == b"content-length"]
    return max((int(length) for length in lengths if length.isdigit()), default=0)


async def _refuse(send: Send) -> None:
    body = TOO_LARGE.encode("utf-8")
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 413, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})
