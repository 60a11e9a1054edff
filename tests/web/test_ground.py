"""Only the person who started a console gets anything from it."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys

import pytest

from dpsc.web import guard
from tests.web.conftest import Console

UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def ask(console: Console, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Send a request; ``Host`` is the server's own unless another is given."""
    connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=60)
    given = {"Host": f"127.0.0.1:{console.port}"} | {name.replace("_", "-"): text for name, text in headers.items()}
    connection.putrequest(method, path, skip_host=True)
    for name, text in given.items():
        connection.putheader(name, text)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read() if answer.status != 101 else b""
    connection.close()
    return answer.status, {name.lower(): text for name, text in answer.getheaders()}, body


@pytest.fixture(scope="module")
def cookie(console: Console) -> str:
    status, headers, _ = ask(console, f"/?token={console.token}")
    assert status == 200
    return headers["set-cookie"].split(";")[0]


def test_the_address_that_was_printed_opens_the_page(console: Console, cookie: str) -> None:
    _, headers, _ = ask(console, f"/?token={console.token}")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(headers["set-cookie"].split("; "))
    assert console.token not in cookie
    status, _, body = ask(console, "/", Cookie=cookie)
    assert status == 200
    assert b"the analyst's console" in body


@pytest.mark.parametrize("path", ["/", "/console/console.js", "/session/x/upload/y", "/lib/nothing", "/nothing"])
def test_nothing_without_the_token(console: Console, path: str) -> None:
    for headers in ({}, {"Cookie": f"dpsc-console-{console.port}=guess"}, {"Cookie": "=;;\x7f"}):
        assert ask(console, path, **headers)[0] == 403
    assert ask(console, f"{path}?token=guess")[0] == 403
    assert ask(console, f"{path}?token=")[0] == 403
    for near in (console.token[:-1], console.token + "x", console.token.swapcase()):
        assert ask(console, f"{path}?token={near}")[0] == 403
    assert ask(console, f"{path}?token={console.token}&token=guess")[0] == 403
    assert ask(console, path)[2].decode() == guard.REFUSED


def test_the_token_is_for_the_first_page_alone(console: Console) -> None:
    assert ask(console, f"/console/console.js?token={console.token}")[0] == 403


@pytest.mark.parametrize(
    "other",
    [
        'prefs={"a":1}',
        'x="never closed',
        "a=1;;",
        "=",
        "no-name",
        "k\xe9y=\xfc\xdf",
        "a b=c d",
        "$Version=1",
        "expires=[1,2]",
        "dpsc-console-{port}=of-last-time",
        "dpsc-console-{port}=",
    ],
)
def test_cookies_of_other_programs_on_this_machine_lock_nobody_out(console: Console, cookie: str, other: str) -> None:
    """Browsers send the cookies of every port of 127.0.0.1."""
    other = other.format(port=console.port) if "{port}" in other else other
    for both in (f"{other}; {cookie}", f"{cookie}; {other}", f"{other};{cookie};{other}"):
        assert ask(console, "/", Cookie=both)[0] == 200
    assert ask(console, "/", Cookie=other)[0] == 403


def test_a_cookie_is_ours_by_its_whole_name_and_its_whole_value(console: Console, cookie: str) -> None:
    name, _, value = cookie.partition("=")
    for wrong in (
        f"{name}x={value}",
        f"x{name}={value}",
        f"other={value}",
        f"{name}={value[:-1]}",
        f"{name}={value}x",
        f"{name}=",
        value,
        f"x={name}={value}",
        f'{name}="{value}"',
        f"{name.upper()}={value}",
    ):
        assert ask(console, "/", Cookie=wrong)[0] == 403


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1.evil:{port}",
        "127.0.0.1:{port}0",
        "127.0.0.1:{port}.evil.example",
        "localhost:{port}@evil.example",
        "localhost:{port}.evil.example",
        "127.0.0.1:{port}@evil.example",
        "evil.example/127.0.0.1:{port}",
    ],
)
def test_another_host_is_refused_with_all_secrets(console: Console, cookie: str, host: str) -> None:
    """A page whose name was made to point here (DNS rebinding) sends its own name."""
    host = host.format(port=console.port)
    assert ask(console, "/", Host=host, Cookie=cookie)[0] == 403
    assert ask(console, f"/?token={console.token}", Host=host)[0] == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"])
def test_another_origin_is_refused_with_the_cookie(console: Console, cookie: str, origin: str) -> None:
    origin = origin.format(port=console.port)
    assert ask(console, "/", Origin=origin, Cookie=cookie)[0] == 403
    assert ask(console, "/session/x/upload/y", "POST", Origin=origin, Cookie=cookie)[0] == 403
    assert ask(console, "/websocket/", **UPGRADE, Origin=origin, Cookie=cookie)[0] == 403


def test_a_change_needs_an_origin(console: Console, cookie: str) -> None:
    assert ask(console, "/session/x/upload/y", "POST", Cookie=cookie)[0] == 403
    assert ask(console, "/session/x/upload/y", "POST", Cookie=cookie, Origin=console.home)[0] == 404


def test_a_websocket_needs_cookie_and_origin(console: Console, cookie: str) -> None:
    assert ask(console, "/websocket/", **UPGRADE, Origin=console.home)[0] == 403
    assert ask(console, f"/websocket/?token={console.token}", **UPGRADE, Origin=console.home)[0] == 403
    assert ask(console, "/websocket/", **UPGRADE, Cookie=cookie)[0] == 403
    assert ask(console, "/websocket/", **UPGRADE, Origin=console.home, Cookie=cookie)[0] == 101


def test_every_answer_is_strict_and_says_nothing_of_the_server(console: Console, cookie: str) -> None:
    for path, given in (
        ("/", {}),
        ("/", {"Cookie": cookie}),
        ("/console/console.css", {"Cookie": cookie}),
        (f"/?token={console.token}", {}),
        ("/nothing", {"Cookie": cookie}),
    ):
        _, headers, _ = ask(console, path, **given)
        assert "server" not in headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-frame-options"] == "DENY"
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self';")


STRANGER = """
import http.client, os, sys
"".encode("idna")  # loaded as long as it can be
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
port, process, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
connection.request("GET", "/")
print(connection.getresponse().status)
print(open(f"/proc/{process}/cmdline").read().replace("\\0", " "))
for what in (f"/proc/{process}/environ", folder):
    try:
        print(os.listdir(what) if os.path.isdir(what) else open(what).read())
    except PermissionError:
        print("closed")
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_second_user_of_the_machine_gets_nothing(console: Console) -> None:
    folder = next(console.scratch.glob("dpsc-console-*"))
    for path in (console.scratch, *console.scratch.parents[:2]):
        path.chmod(0o755)  # pytest's own folders are closed; ours must be
    done = subprocess.run(
        [sys.executable, "-c", STRANGER, str(console.port), str(console.process.pid), str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    status, command, environment, listed = done.stdout.splitlines()
    assert (status, environment, listed) == ("403", "closed", "closed")
    assert "console analyst" in command
    assert console.token not in done.stdout


def test_it_listens_on_this_machine_alone(console: Console) -> None:
    import psutil

    listening = [c.laddr for c in psutil.Process(console.process.pid).net_connections() if c.status == "LISTEN"]
    assert [(address.ip, address.port) for address in listening] == [("127.0.0.1", console.port)]


def test_what_it_kept_is_gone_when_it_ends_and_it_ends_quietly(console: Console) -> None:
    """The last test of this file, because it ends the console of the others."""
    assert list(console.scratch.glob("dpsc-console-*"))
    assert ask(console, "/")[0] == 403
    console.process.terminate()
    assert console.process.wait(timeout=60) == 0
    assert not list(console.scratch.glob("dpsc-console-*"))
    assert (console.scratch / "log").read_text() == ""
