"""The HTTP client against real sockets on loopback, and the resolver."""

import asyncio
import gc
import gzip
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import aclosing, contextmanager, nullcontext, suppress
from pathlib import Path

import pytest

from tests.emulators.model_server import ModelServer
from tests.fakes.loop_steps import calls_made
from tests.fakes.tcp_server import heard, saying, serving
from tests.fakes.two_addresses import two_addresses
from zeroclaw.host.http import (
    HttpClient,
    HttpConnectFailed,
    HttpCut,
    HttpFailed,
    HttpLimits,
    HttpPoolExhausted,
    HttpRequest,
    HttpTimedOut,
    authorities_by_directory,
    http_client,
)
from zeroclaw.host.resolver import NameUnknown, resolve, run

BODY = b"{}"


def post(server: ModelServer, text: str = "hi") -> HttpRequest:
    body = f'{{"messages":[{{"role":"user","content":"{text}"}}]}}'.encode()
    return HttpRequest(url=f"{server.url}/chat/completions", headers={"X-A": "b"}, body=body)


async def fetch(client: HttpClient, request: HttpRequest) -> tuple[int, list[bytes]]:
    async with client.open(request) as answer:
        return answer.status, [chunk async for chunk in answer.chunks]


async def test_an_answer_has_the_status_headers_and_bytes_of_the_server() -> None:
    async with ModelServer() as server, aclosing(http_client()) as client:
        server.raw(b"a", b"\xff", b"bc", status=418, headers={"X-Tea": "Yes"})
        async with client.open(post(server)) as answer:
            assert answer.status == 418
            assert answer.headers["x-tea"] == "Yes"
            assert b"".join([chunk async for chunk in answer.chunks]) == b"a\xffbc"
        assert server.requests[0].headers["x-a"] == "b"


async def test_a_connection_is_reused_once_its_answer_was_read() -> None:
    client = http_client()
    async with ModelServer() as server:
        for _ in range(3):
            await fetch(client, post(server))
        assert server.open_connections == 1
        await client.aclose()
        await client.aclose()
        await server.until(lambda server: server.open_connections == 0)


async def test_leaving_an_answer_early_closes_its_connection() -> None:
    async with ModelServer() as server, aclosing(http_client()) as client:
        gate = server.gate()
        server.raw(b"a", gate)
        async with client.open(post(server)) as answer:
            assert await anext(answer.chunks) == b"a"
        await server.until(lambda server: server.disconnects == 1)


@contextmanager
def without_collecting() -> Generator[None]:
    """Turn off the collection of reference cycles."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def count_alive(*kinds: str) -> int:
    return sum(type(value).__name__ in kinds for value in gc.get_objects())


async def test_a_request_is_freed_once_its_answer_was_read() -> None:
    """A body may be a long conversation; it is freed without the garbage collector."""
    async with ModelServer() as server, aclosing(http_client()) as client:
        await fetch(client, post(server))  # the library is loaded
        with without_collecting():
            before = count_alive("Request", "ClientRequest")
            for _ in range(3):
                await fetch(client, post(server))
            assert count_alive("Request", "ClientRequest") <= before


async def test_certificates_are_read_once_for_all_clients() -> None:
    """Each reading takes two thirds of a MiB, and a stuck pool is replaced."""
    async with ModelServer() as server:
        clients = [http_client(), http_client()]
        await fetch(clients[0], post(server))
        with without_collecting():
            before = count_alive("SSLContext")
            for client in clients:
                await client.aclose()
                await fetch(client, post(server))
            assert count_alive("SSLContext") <= before
        for client in clients:
            await client.aclose()


async def test_a_closed_client_can_be_used_again() -> None:
    client = http_client()
    async with ModelServer() as server:
        await fetch(client, post(server))
        await client.aclose()
        assert (await fetch(client, post(server)))[0] == 200
        await client.aclose()


async def run_the_loop() -> None:
    """Let the peers read the written bytes."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_data_that_arrives_while_an_answer_is_unread_is_one_chunk_also_before_a_cut() -> None:
    go, written = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n")
        await go.wait()
        for piece in (b"1\r\nb\r\n", b"1\r\nc\r\n"):
            writer.write(piece)
            await run_the_loop()
        writer.close()
        await run_the_loop()
        written.set()

    async with (
        serving(serve) as port,
        aclosing(http_client()) as client,
        client.open(HttpRequest(url=f"http://127.0.0.1:{port}/", body=BODY)) as answer,
    ):
        assert await anext(answer.chunks) == b"a"
        assert not answer.is_received()
        with answer.unread():
            go.set()
            await written.wait()
        assert await anext(answer.chunks) == b"bc"
        with pytest.raises(HttpCut):
            await anext(answer.chunks)
        with answer.unread():  # no data and no connection remain
            pass


async def test_pieces_that_arrived_together_are_read_without_resuming_the_task() -> None:
    """A fast model's answer has many pieces in one read."""
    pieces = 40

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        writer.write(b"1\r\na\r\n" * pieces + b"0\r\n\r\n")
        await writer.drain()

    async with (
        serving(serve) as port,
        aclosing(http_client()) as client,
        client.open(HttpRequest(url=f"http://127.0.0.1:{port}/", body=BODY)) as answer,
    ):
        await run_the_loop()

        def take() -> None:
            with suppress(StopIteration):
                anext(answer.chunks).__await__().send(None)

        assert answer.is_received()
        assert calls_made(take) < 8 * pieces


@pytest.mark.parametrize("is_compressed", [False, True])
async def test_an_answer_read_more_slowly_than_it_arrives_is_complete(
    *, is_compressed: bool
) -> None:
    body = bytes(4 * 2**20)
    sent = gzip.compress(body) if is_compressed else body

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n" % len(sent)
        writer.write(head + b"content-encoding: gzip\r\n" * is_compressed + b"\r\n" + sent)
        await writer.drain()

    async with (
        serving(serve) as port,
        aclosing(http_client()) as client,
        client.open(HttpRequest(url=f"http://127.0.0.1:{port}/", body=BODY)) as answer,
    ):
        await run_the_loop()
        assert b"".join([chunk async for chunk in answer.chunks]) == body


async def test_an_answer_that_is_left_early_leaves_nothing_for_the_loop_to_close() -> None:
    """The loop closes a forgotten generator in a task without an owner."""
    forgotten: list[object] = []
    async with ModelServer() as server, aclosing(http_client()) as client:
        server.raw(b"a", b"b", status=418)
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(hooks.firstiter, forgotten.append)
        async with client.open(post(server)) as answer:
            assert await anext(answer.chunks) in {b"a", b"ab"}
        del answer
        sys.set_asyncgen_hooks(*hooks)
        assert forgotten == []


@pytest.mark.parametrize(("heads", "is_cut"), [(3, False), (20_000, True)])
async def test_a_few_heads_may_precede_an_answer(*, heads: int, is_cut: bool) -> None:
    """A stranger's server that sends nothing else would hold up all other connections."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * heads)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        with suppress(ConnectionError):
            await writer.drain()

    async with serving(serve) as port, aclosing(http_client()) as client:
        request = HttpRequest(url=f"http://127.0.0.1:{port}/", body=BODY)
        with pytest.raises(HttpCut) if is_cut else nullcontext():
            assert await fetch(client, request) == (200, [b"ok"])


async def test_silence_times_out() -> None:
    client = http_client(HttpLimits(read_s=0.02))
    async with ModelServer() as server:
        server.hang(server.gate())
        with pytest.raises(HttpTimedOut, match=r"nothing came for 0\.02 s"):
            await fetch(client, post(server))
        server.hang(server.gate(), headers_first=True)
        with pytest.raises(HttpTimedOut):
            await fetch(client, post(server))
        await client.aclose()


async def test_a_head_that_never_ends_times_out() -> None:
    """Each byte of it restarts the time between two reads."""

    async def promise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"HTTP/1.1 102 Processing\r\n\r\n")
            await writer.drain()
            await asyncio.sleep(0)  # many in one read would be refused

    client = http_client(HttpLimits(read_s=0.1))
    async with aclosing(client), serving(promise) as port:
        with pytest.raises(HttpTimedOut):
            await fetch(client, HttpRequest(url=f"http://127.0.0.1:{port}/"))


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_a_peer_that_reads_nothing_times_out() -> None:
    """The time between two reads begins once a request was sent."""
    done = asyncio.Event()

    async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await done.wait()
        writer.transport.abort()

    client = http_client(HttpLimits(read_s=0.1))
    async with aclosing(client), serving(ignore) as port:
        request = HttpRequest(url=f"http://127.0.0.1:{port}/", body=bytes(20_000_000))
        with pytest.raises(HttpTimedOut):
            await fetch(client, request)
        done.set()


async def test_a_closed_port_is_reported_in_the_systems_words() -> None:
    async with ModelServer() as server:
        request = post(server)
    async with aclosing(http_client()) as client:
        with pytest.raises(HttpConnectFailed, match="connect"):
            await fetch(client, request)


@pytest.mark.parametrize("url", ["http://\x00", "nothing", "ftp://127.0.0.1/"])
async def test_an_invalid_address_raises_our_error(url: str) -> None:
    async with aclosing(http_client()) as client:
        with pytest.raises(HttpFailed):
            await fetch(client, HttpRequest(url=url))


async def test_connections_are_bounded_and_a_full_pool_says_so() -> None:
    client = http_client(HttpLimits(connections=1, pool_s=0.2))
    async with ModelServer() as server:
        gate = server.gate()
        server.raw(b"a", gate, b"b")
        async with client.open(post(server)) as answer:
            assert await anext(answer.chunks) == b"a"
            with pytest.raises(HttpPoolExhausted, match="all 1 connections are in use"):
                await fetch(client, post(server))
            gate.open()
            assert await anext(answer.chunks) == b"b"
        assert (await fetch(client, post(server)))[0] == 200
        await client.aclose()


@pytest.mark.parametrize("ticks", range(6))
async def test_cancelling_twice_loses_no_connection(ticks: int) -> None:
    client = http_client(HttpLimits(connections=1, pool_s=50))
    async with ModelServer() as server:
        gate = server.gate()
        server.raw(b"a", gate)

        async with asyncio.TaskGroup() as group:
            asking = group.create_task(fetch(client, post(server)))
            await gate.reached()
            for _ in range(20):  # until the client waits for more
                await asyncio.sleep(0)
            asking.cancel()
            for _ in range(ticks):
                await asyncio.sleep(0)
            asking.cancel()
        await server.until(lambda server: server.disconnects == 1)
        assert (await fetch(client, post(server)))[0] == 200
        await client.aclose()


def test_no_library_is_loaded_before_it_is_used() -> None:
    """Loading one takes up to a tenth of a second of the start."""
    program = (
        "import sys, zeroclaw.host.http as http; http.http_client();"
        "sys.exit(bool({'aiohttp', 'httpx', 'certifi'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == 0


def paths(directory: Path) -> ssl.DefaultVerifyPaths:
    return ssl.DefaultVerifyPaths("", "", "FILE", "/system.pem", "DIRECTORY", str(directory))


def test_certificates_are_looked_up_in_the_directory_if_it_holds_them_all(tmp_path: Path) -> None:
    """Both find certificates in a directory of hashes, without the file that holds them all."""
    (tmp_path / "ca-certificates.crt").touch()
    environment = {"PATH": "/bin"}
    with authorities_by_directory(environment, paths(tmp_path)):
        assert environment == {"PATH": "/bin"}
    (tmp_path / "002c0b4f.0").touch()
    with authorities_by_directory(environment, paths(tmp_path)):
        assert environment == {"PATH": "/bin", "FILE": "/dev/null"}
    assert environment == {"PATH": "/bin"}


@pytest.mark.parametrize("variables", [{"FILE": "/mine.pem"}, {"DIRECTORY": "/mine"}])
def test_certificate_variables_of_the_environment_stay(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    (tmp_path / "002c0b4f.0").touch()
    environment = dict(variables)
    with authorities_by_directory(environment, paths(tmp_path)):
        assert environment == variables
    assert environment == variables


def test_without_a_directory_nothing_changes(tmp_path: Path) -> None:
    environment: dict[str, str] = {}
    with authorities_by_directory(environment, paths(tmp_path / "none")):
        assert environment == {}


async def test_a_given_address_is_connected_to_and_the_rest_is_sent_as_written() -> None:
    """No resolver is asked: an unknown name is reached all the same.

    The fetched URL is exactly the one on the card: not unquoted, quoted or shortened.
    """
    client = http_client(HttpLimits(keep_alive_s=0))
    shown = "/a%2Fb/../%7Eé?q=%41%20+'[]&&=%zz"
    async with heard(HEAD + b"Content-Length: 2\r\n\r\nok") as (url, requests):
        expected_url = url.replace("127.0.0.1", "nowhere.invalid") + shown.replace("é", "%C3%A9")
        assert await fetch(client, HttpRequest(url=expected_url, address="127.0.0.1")) == (
            200,
            [b"ok"],
        )
        [request] = requests
        assert request.startswith(f"POST {shown.replace('é', '%C3%A9')} HTTP/1.1\r\n".encode())
        assert f"\r\nHost: nowhere.invalid:{url.rpartition(':')[2]}\r\n".encode() in request
    await client.aclose()


async def test_a_client_without_keepalive_closes_after_each_answer() -> None:
    client = http_client(HttpLimits(keep_alive_s=0))
    async with ModelServer() as server:
        for _ in range(2):
            await fetch(client, post(server))
        assert server.taken_connections == 2
        await server.until(lambda server: server.open_connections == 0)
    await client.aclose()


async def test_long_and_repeated_headers_are_read() -> None:
    """Web pages send policies longer than aiohttp's default limit."""
    client = http_client()
    long = b"X-Policy: " + b"a" * 40_000 + b"\r\n"
    twice = b"X-Two: 1\r\nX-Odd: \xe9\r\nX-Two: 2\r\nContent-Length: 0\r\n\r\n"
    async with (
        saying(HEAD + long + twice, after=BODY) as url,
        client.open(HttpRequest(url=url, body=BODY)) as answer,
    ):
        assert len(answer.headers["x-policy"]) == 40_000
        assert (answer.headers["x-two"], answer.headers["x-odd"]) == ("1, 2", "é")
    await client.aclose()


async def test_no_cookie_is_kept() -> None:
    """A cookie set by one answer is not sent with later requests."""
    async with ModelServer() as server, aclosing(http_client()) as client:
        server.raw(b"a", headers={"Set-Cookie": "id=hunter2; Path=/"})
        await fetch(client, post(server))
        await fetch(client, post(server))
        assert [request.headers.get("cookie") for request in server.requests] == [None, None]


@pytest.mark.parametrize("is_raw", [True, False])
async def test_a_raw_answer_is_not_decompressed(is_raw: bool) -> None:
    client = http_client()
    packed = gzip.compress(b"packed")
    async with ModelServer() as server:
        server.raw(packed, headers={"Content-Encoding": "gzip"})
        request = HttpRequest(url=post(server).url, body=BODY, is_raw=is_raw)
        _, chunks = await fetch(client, request)
        assert b"".join(chunks) == (packed if is_raw else b"packed")
        await client.aclose()


async def test_a_compressed_answer_is_decompressed() -> None:
    """Some servers send one without being asked."""
    async with ModelServer() as server, aclosing(http_client()) as client:
        server.raw(gzip.compress(b"packed"), headers={"Content-Encoding": "gzip"})
        _, chunks = await fetch(client, post(server))
        assert b"".join(chunks) == b"packed"


async def test_redirects_are_not_followed() -> None:
    async with ModelServer() as server, aclosing(http_client()) as client:
        server.raw(b"", status=302, headers={"Location": server.url})
        assert (await fetch(client, post(server)))[0] == 302
        assert len(server.requests) == 1


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Names a proxy in the environment."""

    def named(url: str) -> None:
        for name in ("HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, url)

    for name in ("NO_PROXY", "no_proxy", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    return named


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_of_the_environment_is_used(
    scheme: str, proxied: Callable[[str], None]
) -> None:
    """Some networks allow no other way out; channels use it too."""
    async with heard(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n") as (url, heads):
        proxied(url)
        client = http_client()
        request = HttpRequest(url=f"{scheme}://model.test/v1", body=BODY)
        if scheme == "http":
            assert (await fetch(client, request))[0] == 403
        else:
            with pytest.raises(HttpConnectFailed, match="the proxy answered 403"):
                await fetch(client, request)
        await client.aclose()
    line = {"http": b"POST http://model.test/v1 ", "https": b"CONNECT model.test:443 "}[scheme]
    assert heads[0].startswith(line)


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5://127.0.0.1:9"])
async def test_no_proxy_is_used_for_this_machine_or_for_an_address(
    proxy: str, proxied: Callable[[str], None]
) -> None:
    """A request to a model here must not leave it; fetched URLs were checked by their address.

    So an invalid proxy does not matter to either.
    """
    proxied(proxy)
    client, guarded = http_client(), http_client(HttpLimits(keep_alive_s=0))
    async with ModelServer() as server:
        assert (await fetch(client, post(server)))[0] == 200
        elsewhere = post(server).url.replace("127.0.0.1", "model.test")
        request = HttpRequest(url=elsewhere, body=post(server).body, address="127.0.0.1")
        assert (await fetch(guarded, request))[0] == 200
    for direct_client in (client, guarded):
        await direct_client.aclose()


async def test_without_certificates_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that the environment names may be gone."""
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    client = http_client()
    async with saying(b"") as url:
        with pytest.raises(HttpConnectFailed, match="`SSL_CERT_FILE` names certificates"):
            await fetch(client, HttpRequest(url=url.replace("http:", "https:"), body=BODY))
    await client.aclose()


# --- faults on the wire ------------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\n"
CUT: dict[str, bytes] = {
    "nothing": b"",
    "half a status line": b"HTTP/1.1 2",
    "half a head": HEAD + b"Content-Le",
    "no HTTP": b"SSH-2.0-OpenSSH_9.9\r\n",
    "no number": b"HTTP/1.1 abc OK\r\n\r\n",
    "no body": HEAD + b"Content-Length: 5\r\n\r\n",
    "half a body": HEAD + b"Content-Length: 5\r\n\r\nab",
    "half a chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
    "no last chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
}


@pytest.mark.parametrize("resets", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("sent", CUT.values(), ids=CUT)
async def test_a_connection_that_ends_before_the_answer_does_may_have_carried_the_request(
    sent: bytes, resets: bool
) -> None:
    """It is no `HttpConnectFailed`: the request may have been carried out."""
    async with saying(sent, resets=resets, after=BODY) as url, aclosing(http_client()) as client:
        with pytest.raises(HttpCut):
            await fetch(client, HttpRequest(url=url, body=BODY))


async def test_a_connection_that_ends_unread_may_have_carried_the_request() -> None:
    """Only a request without a connection was surely not sent."""
    async with saying(b"", resets=True) as url, aclosing(http_client()) as client:
        with pytest.raises(HttpCut):
            await fetch(client, HttpRequest(url=url, body=BODY))


async def test_a_request_on_a_closed_kept_connection_is_not_reported_as_unsent() -> None:
    """It is retried on another one, or fails as cut before its answer."""
    client = http_client()
    outcomes = set[str]()
    async with saying(HEAD + b"Content-Length: 2\r\n\r\nok", after=BODY) as url:
        for _ in range(3):
            try:
                await fetch(client, HttpRequest(url=url, body=BODY))
            except HttpFailed as error:
                outcomes.add(type(error).__name__)
            else:
                outcomes.add("answered")
    assert "answered" in outcomes
    assert outcomes <= {"answered", "HttpCut"}
    await client.aclose()


async def test_a_request_to_an_unknown_name_was_not_sent() -> None:
    async with aclosing(http_client()) as client:
        with pytest.raises(HttpConnectFailed):
            await fetch(client, HttpRequest(url="http://nowhere.invalid/", body=BODY))


async def test_addresses_that_fail_in_different_ways_are_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    two_addresses(monkeypatch)
    async with aclosing(http_client()) as client:
        with pytest.raises(HttpConnectFailed, match=r"^none of its addresses can be reached$"):
            await fetch(client, HttpRequest(url="http://two.invalid:1/", body=BODY))


async def test_a_server_without_tls_is_reported_as_one() -> None:
    async with (
        saying(b"HTTP/1.1 400 Bad Request\r\n\r\n") as url,
        aclosing(http_client()) as client,
    ):
        with pytest.raises(HttpConnectFailed, match="does not speak TLS"):
            await fetch(client, HttpRequest(url=url.replace("http:", "https:"), body=BODY))


@pytest.mark.needs("openssl")
async def test_an_unknown_certificate_is_not_trusted(tmp_path: Path) -> None:
    """No request is sent to such a server."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    files = ["-subj", "/CN=localhost", "-keyout", "key", "-out", "certificate"]
    arguments = [*command.split(), *files]
    await asyncio.to_thread(
        subprocess.run, arguments, cwd=tmp_path, check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate", tmp_path / "key")
    client = http_client()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        url = f"https://localhost:{server.sockets[0].getsockname()[1]}/"
        with pytest.raises(HttpConnectFailed, match="its certificate is not trusted: self"):
            await fetch(client, HttpRequest(url=url, body=BODY))
    await client.aclose()


# --- this machine's resolver ----------------------------------------------------------------------


async def test_the_hosts_file_counts() -> None:
    """Each address is returned once."""
    addresses = await resolve("localhost")
    assert len(set(addresses)) == len(addresses)
    assert set(addresses) <= {"127.0.0.1", "::1"}
    assert addresses != ()


@pytest.mark.parametrize(
    ("name", "address"), [("127.0.0.1", "127.0.0.1"), ("127.1", "127.0.0.1"), ("::1", "::1")]
)
async def test_an_address_comes_back_as_itself(name: str, address: str) -> None:
    """In its canonical form, so the caller can judge it."""
    assert await resolve(name) == (address,)


@pytest.mark.parametrize("name", ["", "a..b", f"{'a' * 70}.invalid", "ex\udc80mple"])
async def test_a_name_without_an_address_is_an_error(name: str) -> None:
    """The error has the resolver's message; an empty name is not this machine."""
    with pytest.raises(NameUnknown):
        await resolve(name)


async def test_slow_lookups_do_not_take_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many slow lookups, other work still gets a thread at once (P9)."""
    answered = threading.Event()

    def ask(*_: object, **__: object) -> list[object]:
        answered.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", ask)
    async with asyncio.TaskGroup() as group:
        lookups = [group.create_task(resolve(f"n{number}.invalid")) for number in range(64)]
        other = group.create_task(asyncio.to_thread(lambda: "served"))
        assert await other == "served"
        answered.set()
    assert {lookup.result() for lookup in lookups} == {()}


def test_the_end_of_a_loop_waits_for_no_look_up() -> None:
    """No thread can be stopped while the system looks up a name in it (P10)."""
    answered = threading.Event()

    async def give_up() -> str:
        asyncio.get_running_loop().run_in_executor(None, answered.wait)
        return "given up"

    assert (run(give_up()), answered.is_set()) == ("given up", False)
    answered.set()
