"""The local listener over real sockets: nobody gets in but by the link, and nothing leaks out."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from tests.fakes.counting_ids import CountingIds
from tests.fakes.manual_clock import ManualClock
from tests.fakes.web_page import visiting
from zeroclaw.errors import PortInUse
from zeroclaw.host.guard import HEADERS
from zeroclaw.host.listener import (
    MAX_BODY_BYTES,
    Listener,
    Message,
    Receive,
    Scope,
    Send,
    open_listener,
)
from zeroclaw.host.login import SESSION_KEPT

# Each opens and closes real sockets, and uvicorn sleeps a tenth of a second at its end.
pytestmark = pytest.mark.slow


def no_log(event: str, /, **fields: object) -> None:
    pass


async def opened(
    directory: Path, *, port: int = 0, clock: ManualClock | None = None, start: int = 0
) -> Listener:
    return await open_listener(
        host="127.0.0.1",
        port=port,
        sessions_at=directory / "sessions",
        clock=clock or ManualClock(),
        ids=CountingIds(start),
        log=no_log,
    )


@asynccontextmanager
async def serving(listener: Listener) -> AsyncGenerator[Listener]:
    async with asyncio.TaskGroup() as group:
        group.create_task(listener.serve())
        try:
            yield listener
        finally:
            await listener.aclose()


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that says what it was asked, under headers that are not its to set."""
    body = f"{scope['method']} {scope['root_path']} {scope['path']}".encode()
    headers = [
        (b"content-type", b"text/plain"),
        (b"Content-Security-Policy", b"default-src *"),
        (b"x-own", b"kept"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def test_without_a_login_a_page_says_how_to_get_one_and_nothing_else(tmp_path: Path) -> None:
    async with serving(await opened(tmp_path)) as listener:
        listener.web("/chat", echo)
        async with visiting(listener, logged_in=False) as client:
            for path in ("/", "/chat/", "/chat", "/nothing"):
                answer = await client.get(path)
                assert (answer.status_code, "zeroclaw status" in answer.text) == (401, True)
            assert (await client.post("/chat/")).status_code == 401
            assert (await client.get("/chat/?login=guess")).status_code == 401


async def test_health_needs_no_login(tmp_path: Path) -> None:
    async with (
        serving(await opened(tmp_path)) as listener,
        visiting(listener, logged_in=False) as client,
    ):
        answer = await client.get("/health")
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_a_link_logs_one_browser_in_once(tmp_path: Path) -> None:
    async with serving(await opened(tmp_path)) as listener:
        link = listener.web("/chat", echo)
        assert link.startswith(f"{listener.url}/chat/?login=")
        async with visiting(listener, logged_in=False) as client:
            first = await client.get(link)
            handed = first.headers["set-cookie"]
            assert first.status_code == 200
            assert 'content="0;url=/chat/"' in first.text
            assert "HttpOnly; SameSite=Strict" in handed
            assert (await client.get("/chat/")).text == "GET /chat /chat/"
            again = await client.get(link)
            assert (again.status_code, again.headers["location"]) == (303, "/chat/")
        async with visiting(listener, logged_in=False) as other:
            assert (await other.get(link)).status_code == 401


async def test_every_answer_carries_our_headers(tmp_path: Path) -> None:
    async with serving(await opened(tmp_path)) as listener:
        listener.web("/chat", echo)
        async with visiting(listener) as client:
            for path in ("/", "/chat/", "/health", "/nothing"):
                headers = (await client.get(path)).headers
                assert [headers.get_list(name.decode()) for name, _ in HEADERS] == [
                    [value.decode()] for _, value in HEADERS
                ]
            assert (await client.get("/chat/")).headers["x-own"] == "kept"


async def test_what_the_guard_refuses_reaches_no_application(tmp_path: Path) -> None:
    async with serving(await opened(tmp_path)) as listener:
        listener.web("/chat", echo)
        async with visiting(listener) as client:
            evil = await client.get("/chat/", headers={"host": f"evil.example:{listener.port}"})
            forged = await client.post("/chat/", headers={"sec-fetch-site": "cross-site"})
            large = await client.post("/chat/", content=b"x" * (MAX_BODY_BYTES + 1))
            own = await client.post("/chat/", content=b"x")
    answers = [evil.status_code, forged.status_code, large.status_code, own.status_code]
    assert answers == [421, 403, 413, 200]


async def test_what_is_mounted_is_found_below_its_prefix(tmp_path: Path) -> None:
    async with serving(await opened(tmp_path)) as listener, visiting(listener) as client:
        assert (await client.get("/")).status_code == 404
        listener.web("/chat", echo)
        listener.web("/other", echo)
        assert (await client.get("/")).headers["location"] == "/chat/"
        assert (await client.get("/other")).headers["location"] == "/other/"
        assert (await client.get("/other/a/b")).text == "GET /other /other/a/b"
        assert (await client.get("/nothing/")).status_code == 404
    assert listener.mounted == ("/chat", "/other")


@pytest.mark.parametrize(
    ("prefix", "application"), [("chat", echo), ("/", echo), ("/a/b", echo), ("/chat", "no")]
)
async def test_a_mount_is_one_name_and_an_application(
    prefix: str, application: object, tmp_path: Path
) -> None:
    listener = await opened(tmp_path)
    with pytest.raises(ValueError, match="ASGI application"):
        listener.web(prefix, application)
    await listener.aclose()


async def test_a_session_survives_a_restart_and_ends_by_itself(tmp_path: Path) -> None:
    clock = ManualClock()
    async with serving(await opened(tmp_path, clock=clock)) as listener:
        port = listener.port
        async with visiting(listener) as client:
            cookies = client.cookies
    assert (tmp_path / "sessions").stat().st_mode & 0o777 == 0o600
    again = await opened(tmp_path, port=port, clock=clock, start=100)
    async with serving(again), visiting(again, logged_in=False) as client:
        client.cookies = cookies
        assert (await client.get("/")).status_code == 404
        await clock.advance((SESSION_KEPT + timedelta(seconds=1)).total_seconds())
        assert (await client.get("/")).status_code == 401


@pytest.mark.parametrize("broken", ["a file of something else", "a directory"])
async def test_sessions_that_cannot_be_kept_hold_until_the_end(broken: str, tmp_path: Path) -> None:
    """A login works although its file can't be read, or written."""
    if broken == "a directory":
        (tmp_path / "sessions.new").mkdir()
    else:
        (tmp_path / "sessions").write_text("{", encoding="utf-8")
    async with serving(await opened(tmp_path)) as listener, visiting(listener) as client:
        assert (await client.get("/")).status_code == 404


async def test_a_taken_port_is_told_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port: int = other.getsockname()[1]
        with pytest.raises(PortInUse) as raised:
            await opened(tmp_path, port=port)
    assert str(raised.value) == (
        f"port {port} on 127.0.0.1 is in use by another program; "
        "set `listener.port` to a free one, or stop that"
    )


async def test_a_second_daemon_cannot_bind_before_the_first_serves(tmp_path: Path) -> None:
    listener = await opened(tmp_path)
    with pytest.raises(PortInUse):
        await opened(tmp_path, port=listener.port)
    await listener.aclose()


async def test_closing_frees_the_port_and_is_safe_twice(tmp_path: Path) -> None:
    listener = await opened(tmp_path)
    async with serving(listener), visiting(listener, logged_in=False) as client:
        assert (await client.get("/health")).status_code == 200
    await listener.aclose()
    again = await opened(tmp_path, port=listener.port)
    await again.aclose()


async def test_a_cancelled_listener_frees_its_port(tmp_path: Path) -> None:
    listener = await opened(tmp_path)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(listener.serve())
        async with visiting(listener, logged_in=False) as client:
            assert (await client.get("/health")).status_code == 200
        task.cancel()
    assert task.cancelled()
    again = await opened(tmp_path, port=listener.port)
    await again.aclose()


async def test_a_request_that_never_ends_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """An answer that still streams when the listener closes is cut after the grace."""
    began = asyncio.Event()
    ended = asyncio.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        start: Message = {"type": "http.response.start", "status": 200, "headers": []}
        await send(start)
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with serving(await opened(tmp_path)) as listener:
        listener.web("/chat", endless)
        async with visiting(listener) as client, client.stream("GET", "/chat/"):
            await began.wait()
            await listener.aclose()
    assert ended.is_set()


async def test_the_bare_address_never_leads_to_what_stands_beside(tmp_path: Path) -> None:
    """Whichever was mounted first."""
    async with serving(await opened(tmp_path)) as listener:
        listener.beside("/console", echo)
        listener.web("/chat", echo)
        async with visiting(listener) as client:
            assert (await client.get("/")).headers["location"] == "/chat/"
            assert (await client.get("/console/")).text == "GET /console /console/"
