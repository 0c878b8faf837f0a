"""What a fetch makes of answers, over real sockets on loopback."""

import asyncio
import gzip
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.tool_calls import tool_context
from tests.unit.tools.fetch.fetching import OPEN, fetch, opened
from tests.unit.tools.fetch.pages import Names, Pages, answer, without_end
from zeroclaw.config.model import FetchSettings
from zeroclaw.errors import ResourcesUnresolved, ToolArgumentsInvalid, ToolFailed
from zeroclaw.host.executors import Done, FairShare
from zeroclaw.host.http import http_client
from zeroclaw.tools.fetch import tools


async def test_a_text_comes_with_where_it_came_from() -> None:
    """The request names us and what we read, and brings no cookie and no credential."""
    async with Pages() as server, opened(server) as tool:
        server.pages["/a?b=c"] = answer("héllo\n", "text/plain; charset=utf-8")
        url = f"http://wiki.test:{server.port}/a?b=c"
        assert await fetch(tool, url + "#part") == (
            f"{url} answered 200 OK, text/plain, 7 bytes\n\nhéllo"
        )
        head, *lines = server.heads[0].strip().split("\r\n")
        assert head == "GET /a?b=c HTTP/1.1"
        sent = dict(line.lower().split(": ", 1) for line in lines)
        assert sent.pop("accept").startswith("text/html")
        assert sent == {
            "host": f"wiki.test:{server.port}",
            "user-agent": "zeroclaw",
            "accept-encoding": "gzip",
            "connection": "close",
        }


async def test_a_page_is_read() -> None:
    """Its title and its text; its links when they are wanted."""
    async with Pages() as server, opened(server) as tool:
        html = (
            "<title>A page</title><h1>Hi</h1><p>see <a href='/x#y'>this</a>"
            "<a href=mailto:a@b>mail</a><a href='http://[bad'>bad</a>"
        )
        server.pages["/"] = answer(html, "text/html")
        url = f"http://wiki.test:{server.port}/"
        plain, linked = await fetch(tool, url), await fetch(tool, url, links=True)
        assert plain.endswith("bytes\ntitle: A page\n\n# Hi\n\nsee thismailbad")
        assert linked.endswith(f"# Hi\n\nsee this <{url}x>mailbad")


async def test_a_page_is_read_in_its_conversations_turn_off_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hostile page costs its own conversation time, and no other (P9)."""
    turns: list[tuple[str, bool]] = []

    class Watched(FairShare):
        async def run(self, whose: str, work: Callable[[], Done]) -> Done:
            def watched() -> Done:
                turns.append((whose, threading.current_thread() is threading.main_thread()))
                return work()

            return await super().run(whose, watched)

    monkeypatch.setattr("zeroclaw.tools.fetch.FairShare", Watched)
    async with Pages() as server, opened(server) as tool:
        server.pages["/"] = answer("<p>" * 300, "text/html")
        await fetch(tool, f"http://wiki.test:{server.port}/")
    assert turns == [(tool_context(Path("/nowhere")).conversation, False)]


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ('{"a": 1}', "application/json", '{"a": 1}'),
        ("<a>b</a>", "application/xml", "<a>b</a>"),
        ("привет".encode("koi8-r"), "text/plain; charset=koi8-r", "привет"),
        ('<meta charset="windows-1251"><p>привет'.encode("cp1251"), "text/html", "привет"),
        (b"", "text/plain", "(no text)"),
        ("no type", "", "no type"),
        ("a\x1b[31mb\x07", "text/plain", "ab"),
        (b"\x89PNG\0\0", "text/plain", "[6 bytes of data, not text: 89 50 4e 47 00 00]"),
    ],
)
async def test_what_can_be_read_is_read(body: bytes | str, content_type: str, text: str) -> None:
    """By its type and its spelling."""
    async with Pages() as server, opened(server) as tool:
        server.pages["/"] = answer(body, content_type)
        said = await fetch(tool, f"http://wiki.test:{server.port}/")
        assert said.partition("\n\n")[2] == text


async def test_a_status_that_is_no_success_is_told() -> None:
    """What the server has to say about it is the result."""
    async with Pages() as server, opened(server) as tool:
        server.pages["/"] = answer("no such page", status="404 Nope")
        server.pages["/odd"] = answer("odd", status="799 Odd")
        said = await fetch(tool, f"http://wiki.test:{server.port}/")
        odd = await fetch(tool, f"http://wiki.test:{server.port}/odd")
        assert "answered 404 Not Found, text/plain, 12 bytes\n\nno such page" in said
        assert "answered 799, text/plain" in odd


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (answer(b"x" * 1234, "image/png"), "status 200 and `image/png`, 1,234 bytes: only text"),
        (
            answer(b"", "application/zip", headers={"Content-Length": ""}),
            "`application/zip`, of unknown size",
        ),
        (answer("x", headers={"Content-Encoding": "br"}), "packed as `br`, which was not asked"),
        (answer("x", headers={"Content-Encoding": "gzip"}), "can't be unpacked"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "closed too early"),
        (b"nonsense\r\n\r\n", "could not be fetched"),
    ],
)
async def test_what_can_not_be_read_is_told_in_a_sentence(page: bytes, said: str) -> None:
    """With its type and its size, or with what went wrong."""
    async with Pages() as server, opened(server) as tool:
        server.pages["/"] = page
        with pytest.raises(ToolFailed, match=r"could not be fetched: .*closed too early"):
            await fetch(tool, f"http://wiki.test:{server.port}/nothing")
        with pytest.raises(ToolFailed, match=said):
            await fetch(tool, f"http://wiki.test:{server.port}/")


@pytest.mark.parametrize("kind", ["text/plain", "text/html"])
async def test_an_endless_body_is_cut(kind: str) -> None:
    """At the cap, and it is said; the connection is closed at once."""
    async with Pages() as server, opened(server) as tool:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode()
        server.pages["/"] = without_end(head, b"again " * 100)
        said = await fetch(tool, f"http://wiki.test:{server.port}/")
        await server.gone.wait()
        assert "cut after 1,000 bytes: the rest was not read" in said
        assert len(said) < 1200


async def test_packed_text_is_unpacked_up_to_the_cap() -> None:
    """The size that counts is the unpacked one."""
    async with Pages() as server, opened(server) as tool:
        packed = {"Content-Encoding": "gzip"}
        server.pages["/small"] = answer(gzip.compress(b"small"), headers=packed)
        server.pages["/bomb"] = answer(gzip.compress(b"b" * 10_000_000), headers=packed)
        small = await fetch(tool, f"http://wiki.test:{server.port}/small")
        bomb = await fetch(tool, f"http://wiki.test:{server.port}/bomb")
        assert small.endswith("5 bytes\n\nsmall")
        assert "1,000 bytes\ncut after 1,000 bytes" in bomb
        assert len(bomb) < 1200


@pytest.mark.parametrize(
    "start", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nslow"]
)
async def test_a_slow_answer_ends_with_the_time_for_all_of_it(start: bytes) -> None:
    """Whatever it is slow with; nothing stays open."""
    async with (
        Pages() as server,
        opened(server, OPEN.model_copy(update={"timeout_s": 0.1})) as tool,
    ):
        server.pages["/"] = without_end(start)
        while not server.asked.is_set():  # where the machine is slow the time ends before it is
            with pytest.raises(ToolFailed, match=r"within 0\.1 s|nothing came for 0\.1 s"):
                await fetch(tool, f"http://wiki.test:{server.port}/")
        await server.gone.wait()


async def test_a_cancelled_fetch_closes_its_connection() -> None:
    """The server sees it go."""
    async with Pages() as server, opened(server) as tool:
        server.pages["/"] = without_end(b"HTTP/1.1 200 OK\r\n")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(fetch(tool, f"http://wiki.test:{server.port}/"))
            await server.asked.wait()
            task.cancel()
        await server.gone.wait()
        assert task.cancelled()


# --- what the gate is told -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "redirects", "resources"),
    [
        ("https://Example.org/a", "same_host", ("host:example.org:443",)),
        ("http://example.org/", "same_host", ("host:example.org:80", "host:example.org:443")),
        ("http://example.org:8080/", "same_host", ("host:example.org:8080",)),
        ("https://example.org/", "anywhere", ("host:example.org:443", "host:*")),
        ("https://8.8.8.8/", "same_host", ("host:8.8.8.8:443",)),
        ("https://[2606:4700::1111]/", "same_host", ("host:2606:4700::1111:443",)),
    ],
)
async def test_resources_name_all_hosts_that_a_call_may_connect_to(
    url: str, redirects: str, resources: tuple[str, ...]
) -> None:
    """And finding them asks nobody: a name can carry a secret to whoever answers for it."""
    names = Names(answers={})
    settings = FetchSettings(
        ports=(80, 443, 8080), redirects="anywhere" if redirects == "anywhere" else "same_host"
    )
    [tool] = tools(settings, http=http_client(), resolve=names)
    assert await tool.resources(tool.check({"url": url}), tool_context(Path("/"))) == resources
    assert names.asked == []


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "[::1]", "169.254.169.254"])
async def test_an_address_inside_has_no_resource(host: str) -> None:
    """So the gate denies the call before anybody is asked about it."""
    [tool] = tools(FetchSettings(), http=http_client())
    with pytest.raises(ResourcesUnresolved, match=r"tools\.fetch\.allow"):
        await tool.resources(tool.check({"url": f"http://{host}/"}), tool_context(Path("/")))


def test_a_bad_url_is_a_fault_of_the_arguments() -> None:
    """Told without repeating it; a good one is brought into its one form (S1-12)."""
    [tool] = tools(FetchSettings(), http=http_client())
    with pytest.raises(ToolArgumentsInvalid) as raised:
        tool.check({"url": "http://user:hunter2@example.org/"})
    assert raised.value.faults == ("url: must not hold a user name or a password",)
    assert tool.check({"url": "HTTP://EXAMPLE.org"}) == {
        "url": "http://example.org/",
        "links": False,
    }
