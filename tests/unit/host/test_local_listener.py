"""The local listener over real sockets: only the link gives access, and nothing leaks."""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from tests.fakes.bare_context import no_log
from tests.fakes.counting_ids import CountingIds
from tests.fakes.house_parts import Facts
from tests.fakes.manual_clock import ManualClock
from tests.fakes.web_page import visiting
from zeroclaw.channel import Log
from zeroclaw.config.model import ListenerSettings
from zeroclaw.errors import PortInUse, Refused
from zeroclaw.host.connections import Bounds, accept_each, bind, close_stream
from zeroclaw.host.guard import HEADERS
from zeroclaw.host.local_listener import (
    BOUNDS,
    MAX_BODY_BYTES,
    MAX_STREAMS,
    NOTHING,
    Listener,
    Message,
    Receive,
    Scope,
    Send,
    log_out_stored,
)
from zeroclaw.host.login import SESSION_LIFETIME
from zeroclaw.host.web_server import web_server
from zeroclaw.value import replace

# Each opens and closes real sockets.
pytestmark = pytest.mark.slow


AT_ONCE = replace(BOUNDS, mount_s=0.0)


async def opened(
    directory: Path,
    *,
    port: int = 0,
    clock: ManualClock | None = None,
    start: int = 0,
    bounds: Bounds = AT_ONCE,
    log: Log = no_log,
) -> Listener:
    return await asyncio.to_thread(
        Listener,
        ListenerSettings(port=port),
        sessions_at=directory / "sessions",
        clock=clock or ManualClock(),
        ids=CountingIds(start),
        log=log,
        bounds=bounds,
    )


@asynccontextmanager
async def serving(listener: Listener) -> AsyncGenerator[Listener]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(listener.serve())
        try:
            yield listener
        finally:
            task.cancel()


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that echoes the request, and sets headers that the listener owns."""
    body = f"{scope['method']} {scope['root_path']} {scope['path']}".encode()
    headers = [
        (b"content-type", b"text/plain"),
        (b"Content-Security-Policy", b"default-src *"),
        (b"x-own", b"kept"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def test_a_request_waits_for_a_page_that_is_not_mounted_yet(tmp_path: Path) -> None:
    """A browser that returns while the daemon restarts gets no 404."""
    async with serving(await opened(tmp_path, bounds=BOUNDS)) as listener:
        async with visiting(listener) as client, asyncio.TaskGroup() as group:
            early = group.create_task(client.get("/chat/"))
            for _ in range(5):
                await client.get(f"http://127.0.0.1:{listener.port}/health")
            listener.web("/other", echo)
            listener.web("/chat", echo)
        assert early.result().status_code == 200


async def test_a_stream_ends_although_its_client_has_begun_the_next_request() -> None:
    """Otherwise its connection would be held for ever (P9)."""
    is_ended = asyncio.Event()

    async def stream(_scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

        async def write() -> None:
            while True:
                await send({"type": "http.response.body", "body": b".", "more_body": True})
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            writing = group.create_task(write())
            while (await receive())["type"] != "http.disconnect":
                pass
            writing.cancel()
        is_ended.set()

    bound = bind("127.0.0.1", 0, key="port")
    server = web_server(bound, stream, bounds=BOUNDS, log=no_log)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server.serve())
        reader, writer = await asyncio.open_connection(*bound.getsockname())
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b".")
        writer.write(b"GET / HT")
        for _ in range(20):
            await reader.readuntil(b".")
        writer.transport.abort()
        await is_ended.wait()
        serving.cancel()


async def test_a_small_write_does_not_wait_for_the_one_before_it() -> None:
    """Otherwise a streaming page is up to 40 ms late, until its reader sends an ACK."""
    done = asyncio.Event()
    delays: list[int] = []

    async def serve(accepted: socket.socket) -> None:
        _, writer = await asyncio.open_connection(sock=accepted)
        delays.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        await close_stream(writer)
        done.set()

    with closing(bind("127.0.0.1", 0, key="port")) as bound:
        async with asyncio.TaskGroup() as group:
            accepting = group.create_task(accept_each(bound, serve, log=no_log))
            _, writer = await asyncio.open_connection(*bound.getsockname())
            await done.wait()
            await close_stream(writer)
            accepting.cancel()
    assert delays == [1]


async def test_a_stop_while_a_connection_closes_removes_it_from_the_loop() -> None:
    """Otherwise the next socket with its descriptor, such as a platform's, fails (P9)."""
    closing_it = asyncio.Event()

    async def serve(accepted: socket.socket) -> None:
        _, writer = await asyncio.open_connection(sock=accepted)
        writer.write(bytes(2**25))  # more than the system takes
        closing_it.set()
        await close_stream(writer)

    with closing(bind("127.0.0.1", 0, key="port")) as bound, socket.socket() as peer:
        peer.settimeout(0)
        async with asyncio.TaskGroup() as group:
            accepting = group.create_task(accept_each(bound, serve, log=no_log))
            await asyncio.get_running_loop().sock_connect(peer, bound.getsockname())
            await closing_it.wait()
            await asyncio.sleep(0)
            accepting.cancel()
        with closing(bind("127.0.0.1", 0, key="port")) as again:
            async with asyncio.TaskGroup() as group:
                waiting = group.create_task(accept_each(again, serve, log=no_log))
                await asyncio.sleep(0)
                waiting.cancel()


async def test_a_request_being_answered_is_not_cut_for_others() -> None:
    """It is complete, so a flood of half requests cuts those instead (P9); its body is read
    once."""
    arrived, may_answer = asyncio.Event(), asyncio.Event()
    bodies: list[Message] = []

    async def slow(_scope: Scope, receive: Receive, send: Send) -> None:
        arrived.set()
        await may_answer.wait()
        bodies.append(await receive())
        headers = [(b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    bound = bind("127.0.0.1", 0, key="port")
    server = web_server(bound, slow, bounds=replace(BOUNDS, connections=1), log=no_log)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server.serve())
        reader, writer = await asyncio.open_connection(*bound.getsockname())
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await arrived.wait()
        flood, flooding = await asyncio.open_connection(*bound.getsockname())
        flooding.write(HALF)
        assert await flood.read() == b""
        may_answer.set()
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        writer.close()
        flooding.close()
        serving.cancel()
    assert bodies == [{"type": "http.request", "body": b"", "more_body": False}]


async def test_the_listener_answers_for_a_silent_application(tmp_path: Path) -> None:
    async def silent(_scope: Scope, _receive: Receive, _send: Send) -> None:
        pass

    async with serving(await opened(tmp_path)) as listener:
        listener.web("/chat", silent)
        async with visiting(listener) as client:
            assert (await client.get("/chat/")).status_code == 500


async def test_without_a_login_a_page_says_how_to_get_one_and_nothing_else(tmp_path: Path) -> None:
    async with serving(await opened(tmp_path)) as listener:
        listener.web("/chat", echo)
        async with visiting(listener, logged_in=False) as client:
            for path in ("/", "/chat/", "/chat", "/nothing"):
                answer = await client.get(path)
                assert (answer.status_code, "zeroclaw status" in answer.text) == (401, True)
                assert "<main>" in answer.text  # where a screen reader jumps to
            assert (await client.post("/chat/")).status_code == 401
            assert (await client.get("/chat/?login=guess")).status_code == 401


async def test_every_path_outside_the_secret_one_has_the_same_answer(tmp_path: Path) -> None:
    """No path, method, host, origin, size or login reveals what runs here."""
    async with serving(await opened(tmp_path)) as listener:
        listener.web("/chat", echo)
        link = listener.new_login_url("/chat/").rpartition("?")[2]
        bare = f"http://127.0.0.1:{listener.port}"
        async with visiting(listener) as client:
            answers = [
                await client.get(f"{bare}/"),
                await client.get(f"{bare}/chat/"),
                await client.get(f"{bare}/console/"),
                await client.get(f"{bare}/favicon.ico"),
                await client.get(f"{bare}/health/"),
                await client.get(f"{bare}/?{link}"),
                await client.get(f"{listener.url[:-1]}/chat/"),
                await client.get(f"{listener.url}x/chat/"),
                await client.get(f"{bare}/", headers={"host": "evil.example"}),
                await client.get(f"{bare}/health", headers={"host": "evil.example"}),
                await client.post(f"{bare}/logout", headers={"origin": "http://evil.example"}),
                await client.post(f"{bare}/chat/", content=b"x" * (MAX_BODY_BYTES + 1)),
            ]
            assert (await client.get(f"/chat/?{link}")).status_code == 200
    distinct = {(answer.status_code, answer.content, str(answer.headers)) for answer in answers}
    assert {(status, body) for status, body, _ in distinct} == {(404, NOTHING)}
    assert len(distinct) == 1


async def test_the_cookie_is_for_the_secret_path_alone(tmp_path: Path) -> None:
    """The path is made once and stored privately; browsers share cookies between ports."""
    async with serving(await opened(tmp_path)) as listener:
        root = listener.root
        assert len(root) == len("/") + 22
        assert listener.url.endswith(f":{listener.port}{root}")
        async with visiting(listener, logged_in=False) as client:
            handed = (await client.get(listener.new_login_url())).headers["set-cookie"]
            assert f"; Path={root}/; " in handed
            over_tls = await client.get(
                listener.new_login_url(), headers={"x-forwarded-proto": "https"}
            )
            assert over_tls.headers["set-cookie"].startswith("__Secure-zeroclaw_")
            assert over_tls.headers["set-cookie"].endswith("; Secure")
    assert (tmp_path / "sessions").stat().st_mode & 0o777 == 0o600
    again = await opened(tmp_path, start=100)
    assert again.root == root
    again.close()


async def test_a_login_replaces_the_browsers_session(tmp_path: Path) -> None:
    """A session from before the login ends."""
    async with serving(await opened(tmp_path)) as listener, visiting(listener) as client:
        before = dict(client.cookies)
        assert (await client.get(listener.new_login_url())).status_code == 200
        assert dict(client.cookies) != before
        assert (await client.get("/")).status_code == 404
        async with visiting(listener, logged_in=False) as old:
            old.cookies.update(before)
            assert (await old.get("/")).status_code == 401


async def test_a_logout_ends_only_the_sessions_of_its_browser(tmp_path: Path) -> None:
    async with serving(await opened(tmp_path)) as listener:
        listener.web("/chat", echo)
        async with visiting(listener) as first, visiting(listener) as other:
            forged = await first.post("/logout", headers={"sec-fetch-site": "same-site"})
            assert (forged.status_code, (await first.get("/logout")).status_code) == (403, 404)
            assert (await first.get("/chat/")).status_code == 200
            out = await first.post("/logout")
            assert (out.status_code, "logged out" in out.text) == (200, True)
            assert "Max-Age=0" in out.headers["set-cookie"]
            assert (await first.get("/chat/")).status_code == 401
            assert (await other.get("/chat/")).status_code == 200


@pytest.mark.parametrize("how", ["logged out", "run out"])
async def test_a_stream_ends_with_its_session(how: str, tmp_path: Path) -> None:
    """After a logout the stream sends no more; it ends properly, and the application's end is awaited
    ."""
    may_send, is_ended = asyncio.Event(), asyncio.Event()

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            for text in (b"first", b"second"):
                await send({"type": "http.response.body", "body": text, "more_body": True})
                await may_send.wait()
        finally:
            is_ended.set()

    clock = ManualClock()
    async with serving(await opened(tmp_path, clock=clock)) as listener:
        listener.web("/chat", stream)
        link = listener.new_login_url()
        async with visiting(listener) as client, client.stream("GET", "/chat/") as answer:
            chunks = answer.aiter_bytes()
            assert await anext(chunks) == b"first"
            if how == "logged out":
                assert await listener.log_out() == 1
            else:
                await clock.advance((SESSION_LIFETIME + timedelta(seconds=1)).total_seconds())
                may_send.set()
            assert [chunk async for chunk in chunks] == []
            assert is_ended.is_set()
            assert (await client.get("/chat/")).status_code == 401
            assert (await client.get(link)).status_code == 401


async def test_a_logout_while_streams_end_succeeds(tmp_path: Path) -> None:
    """A stream that is just ending is not ended again, since that would fail."""
    counts: list[int] = []

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        try:
            await asyncio.Event().wait()
        finally:
            counts.append(await listener.log_out())
            await send({"type": "http.response.body", "body": b"second", "more_body": True})

    async with serving(await opened(tmp_path)) as listener:
        listener.web("/chat", stream)
        async with visiting(listener) as client, client.stream("GET", "/chat/") as answer:
            chunks = answer.aiter_bytes()
            assert await anext(chunks) == b"first"
            assert await listener.log_out() == 1
            assert [chunk async for chunk in chunks] == []
    assert counts == [0]


async def test_a_logout_after_a_page_was_closed_succeeds(tmp_path: Path) -> None:
    """Nothing is left of its stream, which could not be ended."""
    is_ended = asyncio.Event()

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        is_ended.set()

    async with serving(await opened(tmp_path)) as listener:
        listener.web("/chat", stream)
        async with visiting(listener) as client, client.stream("GET", "/chat/") as answer:
            assert await anext(answer.aiter_bytes()) == b"first"
        await is_ended.wait()
        assert await listener.log_out() == 1


async def test_a_browser_with_many_pages_open_can_still_send(tmp_path: Path) -> None:
    """It has six connections; its oldest stream ends properly, and no other browser's does (P9).

    A browser shares the cookies of all programs on this machine, which set theirs at any time.
    """

    go_on = asyncio.Event()

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        await go_on.wait()
        await send({"type": "http.response.body", "body": b"second", "more_body": True})
        await asyncio.Event().wait()

    async with serving(await opened(tmp_path)) as listener, AsyncExitStack() as stack:
        listener.web("/chat", stream)
        first = await stack.enter_async_context(visiting(listener))
        other = await stack.enter_async_context(visiting(listener))

        async def page(client: httpx.AsyncClient, number: int) -> AsyncIterator[bytes]:
            client.cookies.set("of_another_program", str(number))
            return (await stack.enter_async_context(client.stream("GET", "/chat/"))).aiter_bytes()

        clients = (first, other, *[first] * MAX_STREAMS)
        pages = [await page(client, number) for number, client in enumerate(clients)]
        assert [await anext(page) for page in pages] == [b"first"] * len(pages)
        assert [chunk async for chunk in pages[0]] == []
        go_on.set()
        assert [await anext(page) for page in pages[1:]] == [b"second"] * (MAX_STREAMS + 1)
        assert await listener.log_out() == 2
        assert [[chunk async for chunk in page] for page in pages[1:]] == [[]] * (MAX_STREAMS + 1)


async def test_sessions_end_while_no_daemon_runs(tmp_path: Path) -> None:
    """The path stays, so bookmarks stay valid."""
    async with serving(await opened(tmp_path)) as listener:
        port = listener.port
        async with visiting(listener) as client:
            cookies = client.cookies
    assert await asyncio.to_thread(log_out_stored, tmp_path / "sessions") == 1
    again = await opened(tmp_path, port=port, start=100)
    assert again.root == listener.root
    async with serving(again), visiting(again, logged_in=False) as client:
        client.cookies = cookies
        assert (await client.get("/")).status_code == 401


def test_sessions_that_can_not_be_read_are_not_called_ended(tmp_path: Path) -> None:
    """The next daemon may be able to read them; those that none can read are ended already."""
    (tmp_path / "damaged").write_bytes(b"{")
    (tmp_path / "directory").mkdir()
    assert log_out_stored(tmp_path / "none") == log_out_stored(tmp_path / "damaged") == 0
    with pytest.raises(IsADirectoryError):
        log_out_stored(tmp_path / "directory")


async def test_the_path_is_kept_from_the_first_start_on(tmp_path: Path) -> None:
    """Also if nobody has logged in yet."""
    listeners = [await opened(tmp_path, start=start) for start in (0, 50)]
    for listener in listeners:
        listener.close()
    assert listeners[0].root == listeners[1].root


async def test_a_new_path_in_place_of_a_damaged_one_is_logged(tmp_path: Path) -> None:
    """Bookmarks lead nowhere from then on, and every browser has to log in again."""
    log = Facts()
    (await opened(tmp_path, log=log)).close()
    assert log.events() == []
    (tmp_path / "sessions").write_bytes(b"{")
    (await opened(tmp_path, log=log)).close()
    assert log.events() == ["sessions_not_read"]


async def test_a_logout_that_would_not_outlive_the_daemon_says_so(tmp_path: Path) -> None:
    async with serving(await opened(tmp_path)) as listener, visiting(listener) as client:
        (tmp_path / "sessions.new").mkdir()
        with pytest.raises(Refused, match="until the daemon starts again"):
            await listener.log_out()
        assert (await client.get("/")).status_code == 401


async def test_a_browser_learns_that_its_logout_would_not_outlive_the_daemon(
    tmp_path: Path,
) -> None:
    """A copy of its cookie would open the page again; `zeroclaw logout` tries again."""
    async with serving(await opened(tmp_path)) as listener, visiting(listener) as client:
        (tmp_path / "sessions.new").mkdir()
        page = (await client.post("/logout")).text
        assert "<h1>You are logged out until the daemon starts again: " in page
        assert (await client.get("/")).status_code == 401


async def half_sent(
    listener: Listener, sent: bytes
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(sent)
    await writer.drain()
    return reader, writer


@pytest.mark.parametrize("length", ["-1", "1e1", "9" * 5000])
async def test_a_length_that_is_no_number_gets_no_answer(length: str, tmp_path: Path) -> None:
    """So the guard can read every length that reaches it."""
    async with serving(await opened(tmp_path)) as listener:
        head = f"POST / HTTP/1.1\r\nhost: 127.0.0.1:{listener.port}\r\ncontent-length: {length}"
        reader, writer = await half_sent(listener, f"{head}\r\n\r\n".encode())
        assert await reader.read() == b""
        writer.close()


HALF = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: "


async def test_held_connections_do_not_keep_a_browser_out(tmp_path: Path) -> None:
    """The oldest connection without a request is closed; logged-in ones stay."""
    bounds = replace(AT_ONCE, connections=4)
    async with serving(await opened(tmp_path, bounds=bounds)) as listener:
        listener.web("/chat", echo)
        async with visiting(listener) as client:
            assert (await client.get("/chat/")).status_code == 200
            connections = [await half_sent(listener, HALF) for _ in range(40)]
            assert (await client.get("/chat/")).status_code == 200
            async with visiting(listener) as visitor:
                assert (await visitor.get("/chat/")).status_code == 200
            assert [await reader.read() for reader, _ in connections[:30]] == [b""] * 30
        for _, writer in connections:
            writer.close()


HOLDING = {
    "idle": "GET {path} HTTP/1.1\r\n{head}\r\n",
    "half a next head": "GET {path} HTTP/1.1\r\n{head}\r\nGET / HTTP/1.1\r\nx:",
    "half a body": "POST {path} HTTP/1.1\r\n{head}content-length: 9\r\n\r\nx",
    "waits to be asked for its body": (
        "POST {path} HTTP/1.1\r\n{head}content-length: 9\r\nexpect: 100-continue\r\n\r\n"
    ),
    "reads no answer": "GET {path}large HTTP/1.1\r\n{head}\r\n",
}


@pytest.mark.parametrize("held", HOLDING.values(), ids=HOLDING)
async def test_logged_in_connections_do_not_keep_a_browser_out_either(
    held: str, tmp_path: Path
) -> None:
    """With all connections in use; those being answered stay (P9)."""
    arrived: asyncio.Queue[str] = asyncio.Queue(99)
    may_answer = asyncio.Event()

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        name = str(scope["path"]).rpartition("/")[2]
        arrived.put_nowait(name)
        if name == "slow":
            await may_answer.wait()
        while scope["method"] == "POST" and (await receive()).get("more_body"):
            pass
        length = 16_000_000 if name == "large" else 2
        headers = [(b"content-length", str(length).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"x" * length})

    bounds = replace(AT_ONCE, connections=8)
    async with (
        serving(await opened(tmp_path, bounds=bounds)) as listener,
        asyncio.TaskGroup() as group,
    ):
        listener.web("/chat", page)
        async with visiting(listener) as client:
            cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
            slow = group.create_task(client.get("/chat/slow"))
            assert await arrived.get() == "slow"
            head = f"host: 127.0.0.1:{listener.port}\r\nsec-fetch-site: same-origin\r\ncookie: {cookie}\r\n"
            sent = held.format(path=f"{listener.root}/chat/", head=head).encode()
            open_ones = [await half_sent(listener, sent) for _ in range(7)]
            for _ in open_ones:
                await arrived.get()
            for _ in range(3):
                async with visiting(listener) as visitor:
                    assert (await visitor.get("/chat/")).text == "xx"
            may_answer.set()
            assert (await slow).text == "xx"
        for _, writer in open_ones:
            writer.transport.abort()


BODY = "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nsec-fetch-site: same-origin\r\n{more}content-length: 9999999\r\n\r\nx"


@pytest.mark.parametrize("stage", ["head", "refused body", "next head"])
async def test_each_stage_of_a_connection_has_its_time(stage: str, tmp_path: Path) -> None:
    """Bytes that do not finish the stage do not extend its time."""
    bounds = Bounds(head_s=0.25, body_s=0.25, keep_s=0.25)
    async with serving(await opened(tmp_path, bounds=bounds)) as listener:
        sent = {
            "head": "GET / HTTP/1.1\r\nx: ",
            "refused body": BODY.format(path="/", port=listener.port, more=""),
            "next head": "GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\nGET / HTTP/1.1\r\nx: ",
        }[stage]
        _, writer = await half_sent(listener, sent.encode())
        while not writer.is_closing():
            writer.write(b"x")
            await asyncio.sleep(0)


async def test_a_body_may_be_slow_but_not_stall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A photo through a slow tunnel takes minutes; a body that hangs is cut."""
    loop = asyncio.get_running_loop()
    real, ahead_s = loop.time, 0.0
    arrived = asyncio.Queue[object]()

    async def read(scope: Scope, receive: Receive, send: Send) -> None:
        while (message := await receive())["type"] != "http.disconnect":
            arrived.put_nowait(message["body"])
        arrived.put_nowait("cut")

    async with serving(await opened(tmp_path)) as listener:
        listener.web("/read", read)
        async with visiting(listener) as client:
            cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        extra, path = f"cookie: {cookie}\r\n", f"{listener.root}/read/"
        sent = BODY.format(path=path, port=listener.port, more=extra)
        monkeypatch.setattr(loop, "time", lambda: real() + ahead_s)
        _, writer = await half_sent(listener, sent.encode())
        assert await arrived.get() == b"x"
        for piece in (b"y", b"z"):
            ahead_s += 100.0
            writer.write(piece)
            assert await arrived.get() == piece
        ahead_s += 121.0
        await asyncio.sleep(0)
        assert await arrived.get() == "cut"
        writer.close()


async def test_an_idle_connection_is_cut(tmp_path: Path) -> None:
    async with serving(await opened(tmp_path, bounds=Bounds(head_s=0.05))) as listener:
        reader, writer = await half_sent(listener, b"")
        assert await reader.read() == b""
        writer.close()


async def test_health_needs_no_login(tmp_path: Path) -> None:
    async with (
        serving(await opened(tmp_path)) as listener,
        visiting(listener, logged_in=False) as client,
    ):
        answer = await client.get(f"http://127.0.0.1:{listener.port}/health")
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_a_link_logs_one_browser_in_once(tmp_path: Path) -> None:
    async with serving(await opened(tmp_path)) as listener:
        link = listener.web("/chat", echo)
        assert link.startswith(f"{listener.url}/chat/?login=")
        async with visiting(listener, logged_in=False) as client:
            first = await client.get(link)
            handed = first.headers["set-cookie"]
            assert first.status_code == 200
            assert f'content="0;url={listener.root}/chat/"' in first.text
            assert "HttpOnly; SameSite=Strict" in handed
            root = listener.root
            assert (await client.get("/chat/")).text == f"GET {root}/chat {root}/chat/"
            again = await client.get(link)
            assert (again.status_code, again.headers["location"]) == (303, f"{root}/chat/")
        async with visiting(listener, logged_in=False) as other:
            assert (await other.get(link)).status_code == 401


async def test_every_answer_carries_our_headers(tmp_path: Path) -> None:
    async with serving(await opened(tmp_path)) as listener:
        listener.web("/chat", echo)
        async with visiting(listener) as client:
            for path in ("/", "/chat/", f"http://127.0.0.1:{listener.port}/health", "/nothing"):
                headers = (await client.get(path)).headers
                assert [headers.get_list(name.decode()) for name, _ in HEADERS] == [
                    [value.decode()] for _, value in HEADERS
                ]
            assert (await client.get("/chat/")).headers["x-own"] == "kept"


async def test_refused_requests_reach_no_application(tmp_path: Path) -> None:
    async with serving(await opened(tmp_path)) as listener:
        listener.web("/chat", echo)
        async with visiting(listener) as client:
            evil = await client.get("/chat/", headers={"host": f"evil.example:{listener.port}"})
            forged = await client.post("/chat/", headers={"sec-fetch-site": "cross-site"})
            large = await client.post("/chat/", content=b"x" * (MAX_BODY_BYTES + 1))
            answer = await client.post("/chat/", content=b"x")
    answers = [evil.status_code, forged.status_code, large.status_code, answer.status_code]
    assert answers == [421, 403, 413, 200]


async def test_a_mounted_application_is_found_below_its_prefix(tmp_path: Path) -> None:
    async with serving(await opened(tmp_path)) as listener, visiting(listener) as client:
        assert (await client.get("/")).status_code == 404
        listener.web("/chat", echo)
        listener.web("/other", echo)
        root = listener.root
        assert (await client.get("/")).headers["location"] == f"{root}/chat/"
        assert (await client.get("/other")).headers["location"] == f"{root}/other/"
        assert (await client.get("/other/a/b")).text == f"GET {root}/other {root}/other/a/b"
        assert (await client.get("/nothing/")).status_code == 404


@pytest.mark.parametrize(
    ("prefix", "application"), [("chat", echo), ("/", echo), ("/a/b", echo), ("/chat", "no")]
)
async def test_a_mount_is_one_name_and_an_application(
    prefix: str, application: object, tmp_path: Path
) -> None:
    listener = await opened(tmp_path)
    with pytest.raises(ValueError, match="ASGI application"):
        listener.web(prefix, application)
    listener.close()


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
        await clock.advance((SESSION_LIFETIME + timedelta(seconds=1)).total_seconds())
        assert (await client.get("/")).status_code == 401


@pytest.mark.parametrize("broken", ["a file of something else", "a directory"])
async def test_sessions_that_cannot_be_stored_last_until_the_end(
    broken: str, tmp_path: Path
) -> None:
    """A login works although its file can't be read or written."""
    if broken == "a directory":
        (tmp_path / "sessions.new").mkdir()
    else:
        (tmp_path / "sessions").write_text("{", encoding="utf-8")
    async with serving(await opened(tmp_path)) as listener, visiting(listener) as client:
        assert (await client.get("/")).status_code == 404


async def test_a_taken_port_is_reported_before_the_start(tmp_path: Path) -> None:
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
    listener.close()


async def test_a_cancelled_listener_frees_its_port(tmp_path: Path) -> None:
    listener = await opened(tmp_path)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(listener.serve())
        async with visiting(listener, logged_in=False) as client:
            assert (await client.get("/")).status_code == 401
        task.cancel()
    assert task.cancelled()
    listener.close()  # safe twice
    again = await opened(tmp_path, port=listener.port)
    again.close()


async def test_an_endless_request_does_not_delay_the_end(tmp_path: Path) -> None:
    """An answer that is still streaming when the listener closes is cut."""
    began = asyncio.Event()
    is_ended = asyncio.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        start: Message = {"type": "http.response.start", "status": 200, "headers": []}
        await send(start)
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            is_ended.set()

    listener = await opened(tmp_path)
    listener.web("/chat", endless)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(listener.serve())
        async with visiting(listener) as client, client.stream("GET", "/chat/"):
            await began.wait()
            task.cancel()
            await is_ended.wait()


async def test_the_bare_address_never_leads_to_a_neighbouring_mount(tmp_path: Path) -> None:
    """In any order of mounts."""
    async with serving(await opened(tmp_path)) as listener:
        listener.mount_beside("/console", echo)
        listener.web("/chat", echo)
        async with visiting(listener) as client:
            root = listener.root
            assert (await client.get("/")).headers["location"] == f"{root}/chat/"
            assert (await client.get("/console/")).text == f"GET {root}/console {root}/console/"
