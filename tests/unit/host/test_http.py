"""How HTTP is spoken, against real sockets on loopback."""

import asyncio
import gc
import gzip
import ssl
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import httpx
import pytest

from tests.emulators.model_server import ModelServer
from zeroclaw.host.http import (
    HttpConnectFailed,
    HttpCut,
    HttpFailed,
    HttpLimits,
    HttpPoolExhausted,
    HttpRequest,
    HttpTimedOut,
    HttpxClient,
)
from zeroclaw.value import replace


def post(server: ModelServer, said: str = "hi") -> HttpRequest:
    body = f'{{"messages":[{{"role":"user","content":"{said}"}}]}}'.encode()
    return HttpRequest(url=f"{server.url}/chat/completions", headers={"X-A": "b"}, body=body)


async def fetch(client: HttpxClient, request: HttpRequest) -> tuple[int, list[bytes]]:
    async with client.open(request) as answer:
        return answer.status, [chunk async for chunk in answer.chunks]


async def test_an_answer_is_its_status_headers_and_bytes_as_they_came() -> None:
    client = HttpxClient()
    async with ModelServer() as server:
        server.raw(b"a", b"\xff", b"bc", status=418, headers={"X-Tea": "Yes"})
        async with client.open(post(server)) as answer:
            assert answer.status == 418
            assert answer.headers["x-tea"] == "Yes"
            assert b"".join([chunk async for chunk in answer.chunks]) == b"a\xffbc"
        assert server.requests[0].headers["x-a"] == "b"
        await client.aclose()


async def test_a_connection_is_used_again_when_its_answer_was_read() -> None:
    client = HttpxClient()
    async with ModelServer() as server:
        for _ in range(3):
            await fetch(client, post(server))
        assert server.open_connections == 1
        await client.aclose()
        await client.aclose()
        await server.until(lambda server: server.open_connections == 0)


async def test_leaving_an_answer_early_closes_its_connection() -> None:
    client = HttpxClient()
    async with ModelServer() as server:
        gate = server.gate()
        server.raw(b"a", gate)
        async with client.open(post(server)) as answer:
            assert await anext(answer.chunks) == b"a"
        await server.until(lambda server: server.disconnects == 1)
        await client.aclose()


@contextmanager
def without_collecting() -> Generator[None]:
    """Leave circles of references where they are."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def living(kind: type) -> int:
    return sum(isinstance(one, kind) for one in gc.get_objects())


async def test_nothing_of_a_request_stays_when_its_answer_was_read() -> None:
    """A body may be a long conversation; it does not wait for the garbage collector."""
    client = HttpxClient()
    async with ModelServer() as server:
        await fetch(client, post(server))  # the library is loaded
        with without_collecting():
            before = living(httpx.Request)
            for _ in range(3):
                await fetch(client, post(server))
            assert living(httpx.Request) <= before
        await client.aclose()


async def test_certificates_are_read_once_for_all_clients() -> None:
    """Each reading takes two thirds of a MiB, and a pool that is stuck is made anew."""
    async with ModelServer() as server:
        clients = [HttpxClient(), HttpxClient()]
        await fetch(clients[0], post(server))
        with without_collecting():
            before = living(ssl.SSLContext)
            for client in clients:
                await client.aclose()
                await fetch(client, post(server))
            assert living(ssl.SSLContext) <= before
        for client in clients:
            await client.aclose()


async def test_a_closed_client_can_be_used_again() -> None:
    client = HttpxClient()
    async with ModelServer() as server:
        await fetch(client, post(server))
        await client.aclose()
        assert (await fetch(client, post(server)))[0] == 200
        await client.aclose()


async def test_a_cut_before_and_in_an_answer_are_told_apart() -> None:
    client = HttpxClient()
    async with ModelServer() as server:
        server.disconnect()
        with pytest.raises(HttpCut) as before:
            await fetch(client, post(server))
        server.raw(b"a", cut=True)
        with pytest.raises(HttpCut) as within:
            await fetch(client, post(server))
        assert (before.value.before_answer, within.value.before_answer) == (True, False)
        await client.aclose()


async def test_silence_times_out() -> None:
    client = HttpxClient(limits=HttpLimits(read_s=0.02))
    async with ModelServer() as server:
        server.hang(server.gate())
        with pytest.raises(HttpTimedOut, match=r"nothing came for 0\.02 s"):
            await fetch(client, post(server))
        server.hang(server.gate(), headers_first=True)
        with pytest.raises(HttpTimedOut):
            await fetch(client, post(server))
        await client.aclose()


async def test_a_port_that_nobody_listens_on_is_told_in_the_systems_words() -> None:
    async with ModelServer() as server:
        nobody = post(server)
    client = HttpxClient()
    with pytest.raises(HttpConnectFailed, match="connect"):
        await fetch(client, nobody)
    await client.aclose()


@pytest.mark.parametrize("url", ["http://\x00", "nothing", "ftp://127.0.0.1/"])
async def test_an_address_that_is_none_fails_as_ours(url: str) -> None:
    client = HttpxClient()
    with pytest.raises(HttpFailed):
        await fetch(client, HttpRequest(url=url))
    await client.aclose()


async def test_connections_are_bounded_and_a_full_pool_says_so() -> None:
    client = HttpxClient(limits=HttpLimits(connections=1, pool_s=0.02))
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
    """httpx loses a place of its pool for good when it is cancelled while it closes."""
    client = HttpxClient(limits=HttpLimits(connections=1, pool_s=0.5))
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


def test_the_library_is_not_loaded_before_it_is_used() -> None:
    """Loading it costs a start a tenth of a second."""
    program = (
        "import sys, zeroclaw.host.http as http; http.HttpxClient();"
        "sys.exit('httpx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == 0


async def test_a_given_address_is_connected_to_and_the_host_stays() -> None:
    """Nobody is asked for the name: one that exists nowhere is reached all the same."""
    client = HttpxClient(limits=HttpLimits(kept_alive=0))
    async with ModelServer() as server:
        asked = replace(post(server), address="127.0.0.1")
        asked = replace(asked, url=asked.url.replace("127.0.0.1", "nowhere.invalid"))
        assert (await fetch(client, asked))[0] == 200
        assert server.requests[0].headers["host"].startswith("nowhere.invalid:")
        await client.aclose()


async def test_no_cookie_is_kept() -> None:
    """What one answer sets comes back with no request."""
    client = HttpxClient()
    async with ModelServer() as server:
        server.raw(b"a", headers={"Set-Cookie": "id=hunter2; Path=/"})
        await fetch(client, post(server))
        await fetch(client, post(server))
        assert [one.headers.get("cookie") for one in server.requests] == [None, None]
        await client.aclose()


@pytest.mark.parametrize("is_raw", [True, False])
async def test_a_packed_body_comes_as_it_was_sent_where_that_is_wanted(is_raw: bool) -> None:
    client = HttpxClient()
    packed = gzip.compress(b"packed")
    async with ModelServer() as server:
        server.raw(packed, headers={"Content-Encoding": "gzip"})
        _, chunks = await fetch(client, replace(post(server), is_raw=is_raw))
        assert b"".join(chunks) == (packed if is_raw else b"packed")
        await client.aclose()
