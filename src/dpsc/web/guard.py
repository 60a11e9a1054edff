"""Who may speak to the server, what its pages may do, and how large a file may be that is dropped on them.

Everybody on a machine can connect to a port of 127.0.0.1, and every page in a browser can send requests there. So each
request must carry a secret: the token of the address that was printed, once, and from then on a cookie. A request whose
``Host`` is not this server's own name comes from a page that made its name point here (DNS rebinding); one whose
``Origin`` is another page's was made by that page. Both are refused, before the application sees anything of them.
"""

from __future__ import annotations

import hmac
import secrets
from urllib.parse import parse_qs

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
            await _answer(send, 413, TOO_LARGE, "text/plain; charset=utf-8", {"connection": "close"})
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


ADDRESS = "127.0.0.1"
REFUSED = (
    "403. This page belongs to the person who started dpsc console. Open the address that was printed when it started, "
    "with its token.\n"
)
POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",  # figures are inside the page
    "connect-src 'self'",
    "font-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)
_HEADERS = {
    "content-security-policy": "; ".join(POLICY),
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-dns-prefetch-control": "off",
}
# The browser comes from elsewhere when it brings the token, and would not send a strict cookie to where it is sent on
# from there. A page of ours that goes on by itself is not elsewhere.
_GO_ON = (
    '<!doctype html><title>dpsc</title><link rel="icon" href="data:,">'
    '<meta http-equiv="refresh" content="0;url=/"><a href="/">Go on</a>'
)


class Guarded:
    """An application that answers only those who know the token.

    Parameters
    ----------
    app : ASGI application
    port : int
        Of this server; only requests to 127.0.0.1 or localhost at this port are answered.
    token : str
        The secret of the address.

    Notes
    -----
    The cookie holds another secret than the address, so that who sees the one does not have the other.
    """

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self._app, self._token = app, token
        self._hosts = {f"{name}:{port}" for name in (ADDRESS, "localhost")}
        self._cookie_name, self._cookie = f"dpsc-console-{port}", secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, let in, or pass on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if not self._from_here(scope):
            await _refuse(scope, send)
        elif scope["type"] == "http" and scope["path"] == "/" and self._brings_the_token(scope):
            cookie = f"{self._cookie_name}={self._cookie}; HttpOnly; SameSite=Strict; Path=/"
            await _answer(send, 200, _GO_ON, "text/html; charset=utf-8", {"set-cookie": cookie})
        elif self._brings_the_cookie(scope):
            await self._app(scope, receive, _with_headers(send))
        else:
            await _refuse(scope, send)

    def _from_here(self, scope: Scope) -> bool:
        """Tell whether a request was meant for this server, and made by no page of another."""
        hosts, origins = _header(scope, b"host"), _header(scope, b"origin")
        if len(hosts) != 1 or hosts[0] not in self._hosts or len(origins) > 1:
            return False
        changes = scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD")
        return origins == [f"http://{hosts[0]}"] if origins or changes else True

    def _brings_the_token(self, scope: Scope) -> bool:
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        return len(given) == 1 and _same(given[0], self._token)

    def _brings_the_cookie(self, scope: Scope) -> bool:
        """Find our cookie among those of other programs, which ports share and which may hold anything."""
        pairs = [pair.strip().partition("=") for text in _header(scope, b"cookie") for pair in text.split(";")]
        return any(name == self._cookie_name and _same(value, self._cookie) for name, _, value in pairs)


def _same(one: str, other: str) -> bool:
    """Compare in a time that does not tell where they differ."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8"))


def _header(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


async def _refuse(scope: Scope, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})  # before it is accepted: 403
    else:
        await _answer(send, 403, REFUSED, "text/plain; charset=utf-8", {})


async def _answer(send: Send, status: int, text: str, kind: str, more: dict[str, str]) -> None:
    body = text.encode("utf-8")
    headers = _HEADERS | {"content-type": kind, "content-length": str(len(body))} | more
    await send({"type": "http.response.start", "status": status, "headers": _encoded(headers)})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [(key, value) for key, value in message.get("headers", []) if key.decode("latin-1") not in _HEADERS]
            message = {**message, "headers": [*kept, *_encoded(_HEADERS)]}
        await send(message)

    return sent


def _encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(key.encode("latin-1"), value.encode("latin-1")) for key, value in headers.items()]
