"""The public listener over real sockets: webhooks are served, and all else is cheap."""

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
    """A full answer that closes the connection."""
    phrase = HTTPStatus(status).phrase.lower()
    return f"http/1.1 {status} {phrase}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()


def post(body: bytes = b"{}", path: str = "/hook", **headers: object) -> bytes:
    fields = {"host": "x", "content_length": len(body), **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([f"POST {path} HTTP/1.1", *lines, "", ""]).encode() + body


class Platform:
    """A hook that records its requests, and answers as the test sets it up."""

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
        """Refuse a request by its head."""
        self.heads.append(request)
        return HookAnswer(status=401)


class Peer:
    """The client's end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def sends(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def hears(self, expected: bytes) -> None:
        assert (await self.reader.readexactly(len(expected))).lower() == expected

    async def hears_all(self) -> bytes:
        """Return the bytes received until the listener closes the connection."""
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


# --- accepted requests ----------------------------------------------------------------------------


async def test_a_webhook_is_answered_and_the_connection_serves_the_next() -> None:
    """The answer is only a status: no body, server name or date. S2-01."""
    async with public() as rig, calling(rig.listener) as peer:
        await peer.sends(post(b"one", x_secret="s"))
        await peer.hears(OK)
        await peer.sends(post(b"two"))
        await peer.hears(OK)
    assert rig.platform.bodies == [b"one", b"two"]
    assert rig.platform.heads[0].headers["x-secret"] == "s"
    assert rig.listener.refused == {}


async def test_a_chunked_body_is_accepted_as_from_proxies() -> None:
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


async def test_a_webhook_over_tls_is_answered_too() -> None:
    cert, key = str(CERTIFICATE / "cert.pem"), str(CERTIFICATE / "key.pem")
    async with public(cert_file=cert, key_file=key) as rig:
        async with calling(rig.listener, tls=True) as peer:
            await peer.sends(post(b"one"))
            await peer.hears(OK)
        assert await rig.asks(post(b"two")) == b""
    assert rig.platform.bodies == [b"one"]


# --- refused requests -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw_request",
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
async def test_every_other_request_is_a_404(raw_request: bytes) -> None:
    """A scanner learns nothing: a 404 without a body, for pages and other methods alike (P4)."""
    async with public() as rig:
        assert await rig.asks(raw_request) == ended(404)
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
        # A proxy in front may find another end of the body (RFC 9112, 6.1).
        b"POST /hook HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n"
        b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /hook HTTP/1.1\r\nx: " + b"x" * 20_000,
    ],
)
async def test_bytes_that_are_no_http_get_no_answer(sent: bytes) -> None:
    async with public() as rig:
        assert await rig.asks(sent) == b""
    assert rig.platform.heads == []
    assert rig.listener.refused == {"garbled or slow": 1}


async def test_a_connection_without_a_request_is_not_logged() -> None:
    async with public() as rig, calling(rig.listener) as peer:
        peer.writer.write_eof()
        assert await peer.hears_all() == b""
        assert rig.listener.refused == {}


async def test_a_body_declared_too_large_is_not_read() -> None:
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


async def test_the_body_of_a_request_refused_by_its_head_is_not_read() -> None:
    """The answer is sent before the body, of which only a little is ever read."""
    async with public() as rig:
        with rig.listener.mount("/secret", rig.platform.refuse):
            async with calling(rig.listener) as peer:
                await peer.sends(post(b"", path="/secret", content_length=1_000_000))
                await peer.hears(ended(401))
                await peer.sends(b"x" * DEFAULT_BOUNDS.linger_bytes)
                assert await peer.hears_all() == b""
    assert rig.platform.bodies == []


async def test_slow_connections_are_cut() -> None:
    """A head that does not end, a body that does not arrive, an idle connection."""
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


async def test_a_truncated_body_reaches_no_hook() -> None:
    async with public() as rig, calling(rig.listener) as peer:
        await peer.sends(post(b"", content_length=2))
        peer.writer.write_eof()
        assert await peer.hears_all() == b""
    assert rig.platform.bodies == []
    assert rig.listener.refused == {"cut": 1}


async def test_held_connections_do_not_keep_a_platform_out() -> None:
    """When all are taken, the oldest without a request is closed."""
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


async def test_a_connection_without_a_tls_handshake_counts_too() -> None:
    """They count towards the same limit; the oldest is closed for the next."""
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


async def test_while_all_connections_are_busy_no_other_is_accepted() -> None:
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
    """Connections that wait meanwhile are then served, and the log is not filled (P9)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with public(Bounds(full_s=0.0)) as rig:
        # The kernel alone accepts it; it is opened before, since it needs a descriptor itself.
        with socket.socket() as caller, socket.socket() as highest:
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest.fileno() + 1, hard))
            try:
                caller.connect(("127.0.0.1", rig.listener.port))
                while rig.log.events().count("connection_not_accepted") < 4:  # noqa: ASYNC110  the log has no event to wait for
                    await asyncio.sleep(0)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            caller.setblocking(False)
            reader, writer = await asyncio.open_connection(sock=caller.dup())
            await Peer(reader, writer).sends(post(b"one"))
            await Peer(reader, writer).hears(OK)
            writer.close()
    assert rig.platform.bodies == [b"one"]
    seen = [fields for event, fields in rig.log.seen if event == "connection_not_accepted"]
    assert [fields["count"] for fields in seen[:4]] == [1, 2, 4, 8]


async def test_a_flood_does_not_fill_the_log() -> None:
    async with public() as rig:
        for _ in range(9):
            assert await rig.asks(post(b"secret", path="/nowhere")) == ended(404)
    counts = [fields["count"] for event, fields in rig.log.seen if event == "public_refused"]
    assert counts == [1, 2, 4, 8]
    assert "secret" not in repr(rig.log.seen)


# --- hooks ---------------------------------------------------------------------------------------


async def test_a_hook_can_set_retry_after() -> None:
    async with public() as rig:
        rig.platform.answer = HookAnswer(status=503, retry_after_s=2)
        answer = await rig.asks(post())
    assert answer.splitlines()[2] == b"retry-after: 2"


async def test_a_hook_can_return_a_text() -> None:
    """As plain text in every case."""
    async with public() as rig:
        rig.platform.answer = HookAnswer(body="<b>é</b>")
        head, _, body = (await rig.asks(post(connection="close"))).partition(b"\r\n\r\n")
    assert body == "<b>é</b>".encode()
    assert b"content-length: 9" in head
    assert b"content-type: text/plain; charset=utf-8\r\nx-content-type-options: nosniff" in head


async def test_a_failing_hook_answers_500_and_serves_the_next() -> None:
    """So the platform sends it again; the log has the error, and not the body (P1)."""
    async with public() as rig:
        rig.platform.fault = ChannelUnavailable("the store is away")
        assert await rig.asks(post(b"secret")) == ended(503)
        rig.platform.fault = RuntimeError("secret")
        assert await rig.asks(post(b"secret")) == ended(500)
        rig.platform.fault = None
        assert await rig.asks(post(connection="close")) == ended(200)
    assert rig.log.events() == ["hook_failed"]
    assert "secret" not in repr(rig.log.seen)


async def test_a_hanging_hook_is_given_up_before_the_platforms_timeout() -> None:
    async with public(Bounds(answer_s=0.02)) as rig:
        rig.platform.may_go_on.clear()
        assert await rig.asks(post()) == ended(503)
    assert rig.log.events() == ["hook_took_too_long"]


async def test_a_path_belongs_to_one_channel_while_it_receives() -> None:
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


async def test_a_taken_port_is_reported_in_one_line_with_its_key() -> None:
    """P10: what is wrong, where, and what to do."""
    listener = await bound()
    with pytest.raises(PortInUse, match=r"set `public\.port` to a free one, or stop that"):
        await bound(listener.port)
    listener.close()


async def test_an_unusable_certificate_is_reported_in_one_line(tmp_path: Path) -> None:
    cert, key = str(CERTIFICATE / "cert.pem"), str(CERTIFICATE / "key.pem")
    with pytest.raises(ConfigError, match=r"public\.key_file: `.*` can't be read: no such file"):
        await bound(cert_file=cert, key_file=str(tmp_path / "gone.pem"))
    with pytest.raises(ConfigError, match="`~nobody-here/a` can't be read"):
        await bound(cert_file="~nobody-here/a", key_file=key)
    with pytest.raises(ConfigError, match=r"public\.cert_file: .* are no certificate and its key"):
        await bound(cert_file=key, key_file=cert)


async def test_a_listener_that_never_served_frees_its_port() -> None:
    listener = await bound()
    listener.close()
    (await bound(listener.port)).close()


@pytest.mark.parametrize("path", ["", "/", "hook", "/a//b", "/a/", "/ä", "/a?b", "/a%20b"])
async def test_an_invalid_path_is_refused(path: str) -> None:
    async def take(_request: HookRequest) -> HookAnswer:
        return HookAnswer()

    listener = await bound()
    with pytest.raises(ConfigError, match="can't be the path"), listener.mount(path, take):
        pass
    listener.close()
