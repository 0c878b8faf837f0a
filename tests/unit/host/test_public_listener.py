"""The public listener over real sockets: webhooks get in, and nothing else costs anything."""

import asyncio
import resource
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

import pytest

from tests.fakes.house_parts import Facts
from zeroclaw.config.model import PublicSettings
from zeroclaw.errors import ChannelUnavailable, ConfigError, PortInUse
from zeroclaw.host.connections import Bounds
from zeroclaw.host.public_listener import DEFAULT_BOUNDS, PublicListener
from zeroclaw.mount import HookAnswer, HookRequest

# All open real sockets.
pytestmark = pytest.mark.slow

CERTIFICATE = Path(__file__).with_name("certificate")
"""Made for these tests alone, for 127.0.0.1."""
OK = b"http/1.1 200 ok\r\ncontent-length: 0\r\n\r\n"


def ended(status: int) -> bytes:
    """The whole answer that ends a connection."""
    phrase = HTTPStatus(status).phrase.lower()
    return f"http/1.1 {status} {phrase}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()


def post(body: bytes = b"{}", path: str = "/hook", **headers: object) -> bytes:
    fields = {"host": "x", "content_length": len(body), **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([f"POST {path} HTTP/1.1", *lines, "", ""]).encode() + body


class Platform:
    """A hook that takes what it is sent, and answers as it is told."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.heads: list[HookRequest] = []
        self.answer = HookAnswer()
        self.fault: Exception | None = None
        self.came = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def take(self, request: HookRequest) -> HookAnswer:
        self.heads.append(request)
        self.bodies.append(await request.body())
        self.came.set()
        await self.may_go_on.wait()
        if self.fault is not None:
            raise self.fault
        return self.answer

    async def refuse(self, request: HookRequest) -> HookAnswer:
        """Know by the head that it is nobody."""
        self.heads.append(request)
        return HookAnswer(status=401)


class Peer:
    """Somebody at the other end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def sends(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def hears(self, expected: bytes) -> None:
        assert (await self.reader.readexactly(len(expected))).lower() == expected

    async def hears_all(self) -> bytes:
        """Return what comes until the other side ends the connection."""
        try:
            return (await self.reader.read()).lower()
        except ConnectionError:
            return b""

    async def asks(self, data: bytes) -> bytes:
        await self.sends(data)
        return await self.hears_all()


@asynccontextmanager
async def calling(listener: PublicListener, *, tls: bool = False) -> AsyncGenerator[Peer]:
    context = None
    if tls:
        context = ssl.create_default_context(cafile=str(CERTIFICATE / "cert.pem"))
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=context)
    try:
        yield Peer(reader, writer)
    finally:
        writer.close()


class Rig:
    def __init__(self, listener: PublicListener, log: Facts) -> None:
        self.listener = listener
        self.log = log
        self.platform = Platform()

    async def asks(self, data: bytes) -> bytes:
        async with calling(self.listener) as peer:
            return await peer.asks(data)


@asynccontextmanager
async def public(
    bounds: Bounds = DEFAULT_BOUNDS, *, cert_file: str = "", key_file: str = ""
) -> AsyncGenerator[Rig]:
    log = Facts()
    listener = await asyncio.to_thread(
        PublicListener,
        PublicSettings(port=0, cert_file=cert_file, key_file=key_file),
        log=log,
        bounds=bounds,
    )
    rig = Rig(listener, log)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(listener.serve())
        try:
            with listener.mount("/hook", rig.platform.take):
                yield rig
        finally:
            serving.cancel()


# --- what gets in --------------------------------------------------------------------------------


async def test_a_webhook_is_answered_and_the_connection_serves_the_next() -> None:
    """The whole answer is a status: no body, no name of a server, no date. S2-01."""
    async with public() as rig, calling(rig.listener) as peer:
        await peer.sends(post(b"one", x_secret="s"))
        await peer.hears(OK)
        await peer.sends(post(b"two"))
        await peer.hears(OK)
    assert rig.platform.bodies == [b"one", b"two"]
    assert rig.platform.heads[0].headers["x-secret"] == "s"
    assert rig.listener.refused == {}


async def test_a_body_in_pieces_is_taken_as_by_proxies() -> None:
    async with public() as rig, calling(rig.listener) as peer:
        head = "POST /hook?a=b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n"
        await peer.sends(f"{head}expect: 100-continue\r\n\r\n".encode())
        await peer.hears(b"http/1.1 100 \r\n\r\n")
        await peer.sends(b"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n")
        await peer.hears(OK)
    assert rig.platform.bodies == [b"abcdef"]


async def test_an_old_proxy_that_closes_after_each_request_is_served() -> None:
    async with public() as rig:
        answer = await rig.asks(b"POST /hook HTTP/1.0\r\ncontent-length: 2\r\n\r\n{}")
    assert answer == ended(200)


async def test_over_tls_it_is_the_same() -> None:
    cert, key = str(CERTIFICATE / "cert.pem"), str(CERTIFICATE / "key.pem")
    async with public(cert_file=cert, key_file=key) as rig:
        async with calling(rig.listener, tls=True) as peer:
            await peer.sends(post(b"one"))
            await peer.hears(OK)
        assert await rig.asks(post(b"two")) == b""
    assert rig.platform.bodies == [b"one"]


# --- what does not -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked",
    [
        b"GET /hook HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n",
        post(path="/"),
        post(path="/hook/"),
        post(path="/hook/more"),
        post(path="/HOOK"),
        post(path="//hook"),
        post(path="/%68ook"),
        post(path="/x/../hook"),
        post(path="http://x/hook"),
    ],
)
async def test_everything_else_is_nowhere(asked: bytes) -> None:
    """Whoever scans learns nothing: a 404 without a body, for pages as for other methods (P4)."""
    async with public() as rig:
        assert await rig.asks(asked) == ended(404)
    assert rig.platform.heads == []
    assert rig.listener.refused == {"elsewhere": 1}


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"POST /hook HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /hook HTTP/1.1\r\nhost: x\r\ncontent-length: " + b"9" * 5000 + b"\r\n\r\n",
        b"POST /hook HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"POST /hook HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n",
        # Where the body ends, a proxy in front may read otherwise (RFC 9112, 6.1).
        b"POST /hook HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n"
        b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /hook HTTP/1.1\r\nx: " + b"x" * 20_000,
    ],
)
async def test_what_is_no_http_gets_no_answer(sent: bytes) -> None:
    async with public() as rig:
        assert await rig.asks(sent) == b""
    assert rig.platform.heads == []
    assert rig.listener.refused == {"garbled or slow": 1}


async def test_whoever_only_looks_in_is_no_event() -> None:
    async with public() as rig, calling(rig.listener) as peer:
        peer.writer.write_eof()
        assert await peer.hears_all() == b""
        assert rig.listener.refused == {}


async def test_a_body_that_is_said_to_be_too_large_is_not_read() -> None:
    async with public(Bounds(body_bytes=10)) as rig:
        assert await rig.asks(post(b"12345678901")) == ended(413)
        assert await rig.asks(post(b"", content_length="9" * 20)) == ended(413)
        assert await rig.asks(post(b"1234567890", connection="close")) == ended(200)
    assert rig.platform.bodies == [b"1234567890"]
    assert rig.listener.refused == {"too large": 2}


async def test_a_body_without_a_size_is_read_up_to_the_bound() -> None:
    async with public(Bounds(body_bytes=10)) as rig, calling(rig.listener) as peer:
        head = b"POST /hook HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        assert await peer.asks(head + b"b\r\n12345678901\r\n") == ended(413)
    assert rig.platform.bodies == []


async def test_a_stranger_who_is_known_by_the_head_sends_a_body_to_nobody() -> None:
    """The answer comes before the body, of which no more than a little is ever taken."""
    async with public() as rig:
        with rig.listener.mount("/secret", rig.platform.refuse):
            async with calling(rig.listener) as peer:
                await peer.sends(post(b"", path="/secret", content_length=1_000_000))
                await peer.hears(ended(401))
                await peer.sends(b"x" * DEFAULT_BOUNDS.linger_bytes)
                assert await peer.hears_all() == b""
    assert rig.platform.bodies == []


async def test_whoever_is_slow_is_cut_off() -> None:
    """A head that does not end, a body that does not come, a connection that stands still."""
    async with public(Bounds(head_s=0.02)) as rig:
        assert await rig.asks(b"POST /hook HTTP/1.1\r\nhost:") == b""
    assert rig.listener.refused == {"garbled or slow": 1}
    async with public(Bounds(body_s=0.02)) as rig:
        assert await rig.asks(post(b"", content_length=2)) == ended(408)
    assert rig.listener.refused == {"slow": 1}
    async with public(Bounds(keep_s=0.02)) as rig, calling(rig.listener) as peer:
        await peer.sends(post())
        await peer.hears(OK)
        assert await peer.hears_all() == b""
    assert (rig.platform.bodies, rig.listener.refused) == ([b"{}"], {})


async def test_a_body_that_is_cut_off_is_nobodys() -> None:
    async with public() as rig, calling(rig.listener) as peer:
        await peer.sends(post(b"", content_length=2))
        peer.writer.write_eof()
        assert await peer.hears_all() == b""
    assert rig.platform.bodies == []
    assert rig.listener.refused == {"cut": 1}


async def test_connections_that_are_held_open_keep_no_platform_out() -> None:
    """When all are taken, the oldest that has brought nothing makes room."""
    async with public(Bounds(connections=2)) as rig, calling(rig.listener) as proven:
        await proven.sends(post(b"one"))
        await proven.hears(OK)
        async with calling(rig.listener) as idle, calling(rig.listener) as peer:
            await peer.sends(post(b"two"))
            await peer.hears(OK)
            assert await idle.hears_all() == b""
        await proven.sends(post(b"three"))
        await proven.hears(OK)
    assert rig.platform.bodies == [b"one", b"two", b"three"]
    assert rig.listener.refused == {"crowded": 1}


async def test_whoever_shakes_no_hand_counts_as_a_connection() -> None:
    """Nothing is spent on more of them than on others; the oldest makes room for the next."""
    cert, key = str(CERTIFICATE / "cert.pem"), str(CERTIFICATE / "key.pem")
    async with (
        public(Bounds(connections=2), cert_file=cert, key_file=key) as rig,
        calling(rig.listener) as oldest,
        calling(rig.listener),
        calling(rig.listener, tls=True) as peer,
    ):
        assert await oldest.hears_all() == b""
        await peer.sends(post(b"one"))
        await peer.hears(OK)
    assert rig.platform.bodies == [b"one"]
    assert rig.listener.refused == {"crowded": 1}


async def test_while_all_are_at_work_nobody_more_is_let_in() -> None:
    async with public(Bounds(connections=1)) as rig:
        rig.platform.may_go_on.clear()
        async with calling(rig.listener) as peer:
            await peer.sends(post())
            await rig.platform.came.wait()
            assert await rig.asks(post()) == b""
            rig.platform.may_go_on.set()
            await peer.hears(OK)
    assert rig.listener.refused == {"crowded": 1}


async def test_a_process_without_descriptors_accepts_again_when_it_has_some() -> None:
    """Whoever waits meanwhile is served then, and the log says why they waited (P9)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with public(Bounds(full_s=0.0)) as rig:
        # Connected by the system alone; opened before, for it needs a descriptor itself.
        with socket.socket() as caller, socket.socket() as highest:
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest.fileno() + 1, hard))
            try:
                caller.connect(("127.0.0.1", rig.listener.port))
                while "connection_not_accepted" not in rig.log.events():  # noqa: ASYNC110  a log wakes nobody
                    await asyncio.sleep(0)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            caller.setblocking(False)
            reader, writer = await asyncio.open_connection(sock=caller.dup())
            await Peer(reader, writer).sends(post(b"one"))
            await Peer(reader, writer).hears(OK)
            writer.close()
    assert rig.platform.bodies == [b"one"]


async def test_a_flood_fills_no_log() -> None:
    async with public() as rig:
        for _ in range(9):
            assert await rig.asks(post(b"secret", path="/nowhere")) == ended(404)
    told = [fields["count"] for event, fields in rig.log.seen if event == "public_refused"]
    assert told == [1, 2, 4, 8]
    assert "secret" not in repr(rig.log.seen)


# --- hooks ---------------------------------------------------------------------------------------


async def test_a_hook_says_when_to_come_again() -> None:
    async with public() as rig:
        rig.platform.answer = HookAnswer(status=503, retry_after_s=2)
        answer = await rig.asks(post())
    assert answer.splitlines()[2] == b"retry-after: 2"


async def test_a_hook_gives_a_platform_its_words_back() -> None:
    """As plain text, whatever they are."""
    async with public() as rig:
        rig.platform.answer = HookAnswer(body="<b>é</b>")
        head, _, body = (await rig.asks(post(connection="close"))).partition(b"\r\n\r\n")
    assert body == "<b>é</b>".encode()
    assert b"content-length: 9" in head
    assert b"content-type: text/plain; charset=utf-8\r\nx-content-type-options: nosniff" in head


async def test_a_hook_that_fails_is_told_as_a_failure_and_serves_the_next() -> None:
    """So that the platform sends it again; what failed is in the log, what was sent is not (P1)."""
    async with public() as rig:
        rig.platform.fault = ChannelUnavailable("the store is away")
        assert await rig.asks(post(b"secret")) == ended(503)
        rig.platform.fault = RuntimeError("secret")
        assert await rig.asks(post(b"secret")) == ended(500)
        rig.platform.fault = None
        assert await rig.asks(post(connection="close")) == ended(200)
    assert rig.log.events() == ["hook_failed"]
    assert "secret" not in repr(rig.log.seen)


async def test_a_hook_that_hangs_is_given_up_in_time_for_the_platform_to_hear() -> None:
    async with public(Bounds(answer_s=0.02)) as rig:
        rig.platform.may_go_on.clear()
        assert await rig.asks(post()) == ended(503)
    assert rig.log.events() == ["hook_took_too_long"]


async def test_a_path_is_one_channels_for_as_long_as_it_receives() -> None:
    async with public() as rig:
        with (
            pytest.raises(ConfigError, match="two channels"),
            rig.listener.mount("/hook", rig.platform.take),
        ):
            pass
        with rig.listener.mount("/other", rig.platform.refuse):
            assert await rig.asks(post(path="/other")) == ended(401)
        assert await rig.asks(post(path="/other")) == ended(404)


# --- opening: a port, a certificate and paths that can be used, or one line ---


async def bound(port: int = 0, cert_file: str = "", key_file: str = "") -> PublicListener:
    return await asyncio.to_thread(
        PublicListener,
        PublicSettings(port=port, cert_file=cert_file, key_file=key_file),
        log=Facts(),
    )


async def test_a_taken_port_is_told_in_a_line_with_its_key() -> None:
    """P10: what is wrong, where, and what to do."""
    listener = await bound()
    with pytest.raises(PortInUse, match=r"set `public\.port` to a free one, or stop that"):
        await bound(listener.port)
    listener.close()


async def test_a_certificate_that_can_not_be_used_is_told_in_a_line(tmp_path: Path) -> None:
    cert, key = str(CERTIFICATE / "cert.pem"), str(CERTIFICATE / "key.pem")
    with pytest.raises(ConfigError, match=r"public\.key_file: `.*` can't be read: no such file"):
        await bound(cert_file=cert, key_file=str(tmp_path / "gone.pem"))
    with pytest.raises(ConfigError, match="`~nobody-here/a` can't be read"):
        await bound(cert_file="~nobody-here/a", key_file=key)
    with pytest.raises(ConfigError, match=r"public\.cert_file: .* are no certificate and its key"):
        await bound(cert_file=key, key_file=cert)


async def test_what_was_opened_and_never_served_frees_its_port() -> None:
    listener = await bound()
    listener.close()
    (await bound(listener.port)).close()


@pytest.mark.parametrize("path", ["", "/", "hook", "/a//b", "/a/", "/ä", "/a?b", "/a%20b"])
async def test_an_odd_path_is_refused(path: str) -> None:
    async def take(_request: HookRequest) -> HookAnswer:
        return HookAnswer()

    listener = await bound()
    with pytest.raises(ConfigError, match="can't be the path"), listener.mount(path, take):
        pass
    listener.close()
