"""What a fetch makes of answers, and where it goes, over real sockets on loopback."""

import asyncio
import gzip
import ssl
import subprocess
import threading
import zlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.plain_tool import tool_context
from tests.unit.tools.fetch.pages import (
    HERE,
    OPEN,
    Names,
    Pages,
    answer,
    fetch,
    opened,
    redirect,
    without_end,
)
from zeroclaw.config.model import FetchSettings
from zeroclaw.errors import ResourcesUnresolved, ToolArgumentsInvalid, ToolFailed
from zeroclaw.host.executors import FairShare, T
from zeroclaw.host.http import http_client
from zeroclaw.tools.fetch import tools
from zeroclaw.tools.fetch.body import ContentType, Decompressor, content_type, decode


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
            "user-agent": f"zeroclaw/{version('zeroclaw')}",
            "accept-encoding": "gzip",
            "connection": "close",
        }


async def test_a_page_is_read() -> None:
    """Its title and its text; its links when they are wanted."""
    async with Pages() as server, opened(server) as tool:
        html = (
            "<title>A page</title><h1>Hi</h1><p>see <a href='/x#y'>this</a>"
            "<a href=mailto:a@b>mail</a><a href='http://[bad'>bad</a><a href='#z'>up</a>"
        )
        server.pages["/"] = answer(html, "text/html")
        url = f"http://wiki.test:{server.port}/"
        plain, linked = await fetch(tool, url), await fetch(tool, url, links=True)
        assert plain.endswith("bytes\ntitle: A page\n\n# Hi\n\nsee thismailbadup")
        assert linked.endswith(f"# Hi\n\nsee this <{url}x>mailbadup")


async def test_a_page_is_read_in_its_conversations_turn_off_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hostile page costs its own conversation time, and no other (P9)."""
    turns: list[tuple[str, bool]] = []

    class Watched(FairShare):
        async def run(self, conversation: str, work: Callable[[], T]) -> T:
            def watched() -> T:
                turns.append((conversation, threading.current_thread() is threading.main_thread()))
                return work()

            return await super().run(conversation, watched)

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
async def test_readable_content_is_read(body: bytes | str, content_type: str, text: str) -> None:
    """By its type and its spelling."""
    async with Pages() as server, opened(server) as tool:
        server.pages["/"] = answer(body, content_type)
        output = await fetch(tool, f"http://wiki.test:{server.port}/")
        assert output.partition("\n\n")[2] == text


async def test_a_status_that_is_no_success_is_reported() -> None:
    """The server's page is the result."""
    async with Pages() as server, opened(server) as tool:
        server.pages["/"] = answer("no such page", status="404 Nope")
        server.pages["/odd"] = answer("odd", status="799 Odd")
        output = await fetch(tool, f"http://wiki.test:{server.port}/")
        unusual = await fetch(tool, f"http://wiki.test:{server.port}/odd")
        assert "answered 404 Not Found, text/plain, 12 bytes\n\nno such page" in output
        assert "answered 799, text/plain" in unusual


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        (answer(b"x" * 1234, "image/png"), "status 200 and `image/png`, 1,234 bytes: only text"),
        (
            answer(b"", "application/zip", headers={"Content-Length": ""}),
            "`application/zip`, of unknown size",
        ),
        (
            answer("x", headers={"Content-Encoding": "br"}),
            "packed as `br`, which was not requested",
        ),
        (answer("x", headers={"Content-Encoding": "gzip"}), "can't be unpacked"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "closed too early"),
        (b"nonsense\r\n\r\n", "could not be fetched"),
    ],
)
async def test_unreadable_content_is_reported_in_a_sentence(page: bytes, sentence: str) -> None:
    """With its type and its size, or with what went wrong."""
    async with Pages() as server, opened(server) as tool:
        server.pages["/"] = page
        with pytest.raises(ToolFailed, match=r"could not be fetched: .*closed too early"):
            await fetch(tool, f"http://wiki.test:{server.port}/nothing")
        with pytest.raises(ToolFailed, match=sentence):
            await fetch(tool, f"http://wiki.test:{server.port}/")


@pytest.mark.parametrize("kind", ["text/plain", "text/html"])
async def test_an_endless_body_is_cut(kind: str) -> None:
    """At the cap, and the result says so; the connection is closed at once."""
    async with Pages() as server, opened(server) as tool:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode()
        server.pages["/"] = without_end(head, b"again " * 100)
        output = await fetch(tool, f"http://wiki.test:{server.port}/")
        await server.closed.wait()
        assert "cut after 1,000 bytes: the rest was not read" in output
        assert len(output) < 1200


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
        while not server.requested.is_set():  # where the machine is slow the time ends before it is
            with pytest.raises(ToolFailed, match=r"within 0\.1 s|nothing came for 0\.1 s"):
                await fetch(tool, f"http://wiki.test:{server.port}/")
        await server.closed.wait()


async def test_a_cancelled_fetch_closes_its_connection() -> None:
    """The server sees it go."""
    async with Pages() as server, opened(server) as tool:
        server.pages["/"] = without_end(b"HTTP/1.1 200 OK\r\n")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(fetch(tool, f"http://wiki.test:{server.port}/"))
            await server.requested.wait()
            task.cancel()
        await server.closed.wait()
        assert task.cancelled()


# --- what the gate learns ------------------------------------------------------------------------


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
    """And finding them resolves no name: a name can carry a secret to its own server."""
    names = Names(answers={})
    settings = FetchSettings(
        ports=(80, 443, 8080), redirects="anywhere" if redirects == "anywhere" else "same_host"
    )
    [tool] = tools(settings, http=http_client(), resolve=names)
    assert await tool.resources(tool.check({"url": url}), tool_context(Path("/"))) == resources
    assert names.requested == []


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "[::1]", "169.254.169.254"])
async def test_an_address_inside_has_no_resource(host: str) -> None:
    """So the gate denies the call before any approval request."""
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


# --- connections ----------------------------------------------------------------------------------


async def test_redirects_on_the_same_host_are_followed() -> None:
    """Relative or whole; the result says where it ended, and no cookie goes along."""
    async with Pages() as server, opened(server) as tool:
        root = f"http://wiki.test:{server.port}"
        server.pages["/a"] = answer(
            status="301 Moved", headers={"Location": "/b", "Set-Cookie": "id=hunter2; Path=/"}
        )
        server.pages["/b"] = redirect(f"{root}/c", "308 Moved")
        server.pages["/c"] = answer("here")
        assert await fetch(tool, f"{root}/a") == (
            f"{root}/c answered 200 OK, text/plain, 4 bytes\nredirected from {root}/a\n\nhere"
        )
        await fetch(tool, f"{root}/c")
        assert "cookie" not in "".join(server.heads).lower()


async def test_too_many_redirects_end() -> None:
    """After as many as the settings say."""
    async with (
        Pages() as server,
        opened(server, OPEN.model_copy(update={"max_redirects": 2})) as tool,
    ):
        server.pages["/"] = redirect("/")
        with pytest.raises(ToolFailed, match="redirected more than 2 times"):
            await fetch(tool, f"http://wiki.test:{server.port}/")
        assert len(server.heads) == 3


@pytest.mark.parametrize("elsewhere", ["http://other.test/x", "http://127.0.0.1/", "//[::1]/"])
async def test_a_redirect_to_another_host_is_reported_and_not_followed(elsewhere: str) -> None:
    """A call goes only where the gate decided about; the next one is decided about too."""
    names = Names(answers=HERE)
    async with Pages() as server, opened(server, names=names) as tool:
        server.pages["/"] = redirect(elsewhere)
        output = await fetch(tool, f"http://wiki.test:{server.port}/")
        assert (
            f"redirects to {'http:' if elsewhere.startswith('//') else ''}{elsewhere}\n" in output
        )
        assert (names.requested, len(server.heads)) == (["wiki.test"], 1)


@pytest.mark.parametrize(
    ("location", "sentence"),
    [
        ("http://127.0.0.1:{port}/secret", "`127.0.0.1` is a loopback address"),
        ("http://[::1]:{port}/secret", "`::1` is a loopback address"),
        ("http://[::ffff:169.254.169.254]/", "is where a cloud hands out credentials"),
        ("http://private.test:{port}/secret", "`private.test` leads to a private address"),
        ("http://127.0.0.1:22/", "a URL must not name port 22"),
        ("http://2130706433:{port}/", "four decimal numbers"),
        ("http://me:pass@wiki.test:{port}/", "user name or a password"),
        ("file:///etc/passwd", "must begin with http"),
    ],
)
async def test_no_redirect_leads_inside(location: str, sentence: str) -> None:
    """Each is judged like the requested URL, where all are followed as well."""
    settings = OPEN.model_copy(update={"redirects": "anywhere", "allow": ("wiki.test",)})
    names = Names(answers=HERE | {"private.test": [("10.0.0.1",)]})
    async with Pages() as server, opened(server, settings, names) as tool:
        server.pages["/"] = redirect(location.format(port=server.port))
        with pytest.raises(ToolFailed, match=sentence):
            await fetch(tool, f"http://wiki.test:{server.port}/")
        assert len(server.heads) == 1


async def test_anywhere_follows_to_other_hosts() -> None:
    """Where the operator wants it."""
    async with (
        Pages() as server,
        opened(server, OPEN.model_copy(update={"redirects": "anywhere"})) as tool,
    ):
        server.pages["/"] = redirect(f"http://other.test:{server.port}/there")
        server.pages["/there"] = answer("there")
        assert (await fetch(tool, f"http://wiki.test:{server.port}/")).endswith("\n\nthere")


@pytest.mark.parametrize(
    "addresses",
    [("127.0.0.1",), ("93.184.216.34", "10.0.0.1"), ("::ffff:127.0.0.1",), ("64:ff9b::7f00:1",), ("junk",)],
)  # fmt: skip
async def test_a_name_with_an_address_inside_is_refused(addresses: tuple[str, ...]) -> None:
    """One of several is enough, and the address itself is not shown."""
    names = Names(answers={"evil.test": [addresses]})
    async with (
        Pages() as server,
        opened(server, OPEN.model_copy(update={"allow": ()}), names) as tool,
    ):
        with pytest.raises(ToolFailed, match=r"`evil\.test` leads to") as raised:
            await fetch(tool, f"http://evil.test:{server.port}/")
        assert server.heads == []
        assert addresses[-1] not in str(raised.value)


async def test_a_name_that_changes_its_answer_changes_nothing() -> None:
    """The connection goes to the address that was judged, without a second lookup (rebinding)."""
    names = Names(answers={"evil.test": [("127.0.0.1",), ("127.0.0.2",)]})
    async with (
        Pages() as judged,
        Pages(host="127.0.0.2") as other,
        opened(judged, OPEN.model_copy(update={"allow": ("127.0.0.1",)}), names) as tool,
    ):
        judged.pages["/"] = redirect("/again")
        with pytest.raises(ToolFailed, match=r"`evil\.test` leads to a loopback address"):
            await fetch(tool, f"http://evil.test:{judged.port}/")
        assert names.requested == ["evil.test", "evil.test"]
        assert (len(judged.heads), other.heads) == (1, [])


async def test_the_next_address_is_tried_where_one_takes_no_connection() -> None:
    """In the order in which they were given; if none answers, the result says so."""
    names = Names(
        answers={"wiki.test": [("127.0.0.9", "127.0.0.1")], "dead.test": [("127.0.0.9",)]}
    )
    settings = OPEN.model_copy(update={"allow": ("127.0.0.0/8",)})
    async with Pages() as server, opened(server, settings, names) as tool:
        server.pages["/"] = answer("here")
        assert (await fetch(tool, f"http://wiki.test:{server.port}/")).endswith("here")
        with pytest.raises(ToolFailed, match=r"`dead\.test:\d+` can't be connected to: .*connect"):
            await fetch(tool, f"http://dead.test:{server.port}/")


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [({}, r"`gone\.test` can't be found: name"), ({"gone.test": [()]}, r"`gone\.test` has no add")],
)
async def test_a_name_without_an_address_is_reported(
    answers: dict[str, list[tuple[str, ...]]], sentence: str
) -> None:
    """In one sentence."""
    async with Pages() as server, opened(server, names=Names(answers=answers)) as tool:
        with pytest.raises(ToolFailed, match=sentence):
            await fetch(tool, f"http://gone.test:{server.port}/")


@pytest.mark.needs("ipv6")
async def test_an_ipv6_address_can_be_fetched_from() -> None:
    """Written in brackets, in the Host header too."""
    settings = OPEN.model_copy(update={"allow": ("::1",)})
    names = Names(answers={})
    async with Pages(host="::1") as server, opened(server, settings, names) as tool:
        server.pages["/"] = answer("six")
        output = await fetch(tool, f"http://[0:0::1]:{server.port}/")
        assert output.startswith(f"http://[::1]:{server.port}/ answered 200 OK")
        assert f"host: [::1]:{server.port}\r\n" in server.heads[0].lower()
        assert names.requested == []


# --- tls -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for `wiki.test` that is its own authority, and its key beside it."""
    place = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    names = ["-subj", "/CN=wiki.test", "-addext", "subjectAltName=DNS:wiki.test"]
    files = ["-keyout", str(place / "key"), "-out", str(place / "cert")]
    subprocess.run([*command.split(), *names, *files], check=True, capture_output=True)
    return place / "cert"


def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key"))
    return context


@pytest.mark.needs("openssl")
async def test_tls_is_spoken_with_the_name_and_not_the_address(certificate: Path) -> None:
    """The server gets the host, and its certificate has to be for it."""
    async with (
        Pages(tls=await asyncio.to_thread(tls, certificate)) as server,
        opened(server, authorities=str(certificate)) as tool,
    ):
        server.pages["/"] = answer("safe")
        assert (await fetch(tool, f"https://wiki.test:{server.port}/")).endswith("\n\nsafe")
        with pytest.raises(ToolFailed, match="can't be connected to"):
            await fetch(tool, f"https://other.test:{server.port}/")
        assert (server.names, len(server.heads)) == (["wiki.test", "other.test"], 1)
        assert f"host: wiki.test:{server.port}\r\n" in server.heads[0].lower()


@pytest.mark.needs("openssl")
async def test_an_untrusted_certificate_is_refused(certificate: Path) -> None:
    """Whatever name it is for."""
    async with (
        Pages(tls=await asyncio.to_thread(tls, certificate)) as server,
        opened(server) as tool,
    ):
        with pytest.raises(ToolFailed, match="can't be connected to"):
            await fetch(tool, f"https://wiki.test:{server.port}/")
        assert server.heads == []


# --- what bytes are taken for ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "name", "charset", "kind"),
    [
        ("", "", "", "text"),
        ("text/html; charset=utf-8", "text/html", "utf-8", "html"),
        ("Text/HTML;charset='latin1'", "text/html", "latin1", "html"),
        ("application/xhtml+xml", "application/xhtml+xml", "", "html"),
        ('text/plain; a=b; CharSet="UTF-8"', "text/plain", "UTF-8", "text"),
        ("application/json", "application/json", "", "text"),
        ("application/ld+json", "application/ld+json", "", "text"),
        ("application/atom+xml", "application/atom+xml", "", "text"),
        ("text/csv", "text/csv", "", "text"),
        ("image/png", "image/png", "", None),
        ("image/svg+xml", "image/svg+xml", "", "text"),
        ("application/octet-stream; charset=utf-8", "application/octet-stream", "utf-8", None),
        ("nonsense", "nonsense", "", None),
    ],
)
def test_a_content_type_says_how_a_body_is_read(
    header: str, name: str, charset: str, kind: str | None
) -> None:
    """Pages, other text, or not at all."""
    found = content_type(header)
    assert (found.name, found.charset, found.kind) == (name, charset, kind)


PLAIN = ContentType(name="text/plain", charset="", kind="text")
PAGE = ContentType(name="text/html", charset="", kind="html")


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("grün".encode(), "", "grün"),
        ("grün".encode("latin-1"), "", "grün"),
        ("grün".encode("latin-1"), "ISO-8859-1", "grün"),
        (b"\x80 5", "us-ascii", "€ 5"),
        ("grün".encode(), "iso-8859-1", "grÃ¼n"),
        ("привет".encode("cp1251"), "windows-1251", "привет"),
        ("привет".encode("koi8-r"), "KOI8-R", "привет"),
        ("你好".encode("gb18030"), "gb2312", "你好"),
        ("こんにちは".encode("shift_jis"), "Shift_JIS", "こんにちは"),
        ("안녕".encode("euc_kr"), "euc-kr", "안녕"),
        ("\ufeffgrün".encode(), "iso-8859-1", "grün"),
        ("\ufeffgrün".encode("utf-16-le"), "", "grün"),
        ("\ufeffgrün".encode("utf-16-be"), "", "grün"),
        ("grün".encode("utf-16-le"), "utf-16", "grün"),
        (b"gr\xfcn", "utf-8", "gr\ufffdn"),
        ("grün".encode(), "rot13", "grün"),
        ("grün".encode(), "zlib_codec", "grün"),
        ("grün".encode(), "utf-7", "grün"),
        ("grün".encode(), "no such thing \ud800", "grün"),
        ("größe grü".encode()[:-1], "", "größe gr"),
        (b"", "", ""),
    ],
)
def test_a_text_is_spelled_as_it_says(data: bytes, charset: str, text: str) -> None:
    """The mark first, then the header, then UTF-8 where it fits, at last Windows-1252."""
    assert decode(data, ContentType(name="text/plain", charset=charset, kind="text")) == text


@pytest.mark.parametrize(
    ("data", "declared", "text"),
    [
        ('<meta charset="windows-1251">п'.encode("cp1251"), PAGE, "п"),
        ("<META http-equiv=x content='text/html; charset=koi8-r'>п".encode("koi8-r"), PAGE, "п"),
        ("<meta charset=utf-16>п".encode(), PAGE, "п"),
        ("<meta charset=utf-32>п".encode(), PAGE, "п"),
        ('<?xml version="1.0" encoding="koi8-r"?>п'.encode("koi8-r"), PLAIN, "п"),
        ('<meta charset="koi8-r">п'.encode(), PLAIN, "п"),
        (b" " * 1100 + '<meta charset="koi8-r">п'.encode(), PAGE, "п"),
    ],
)
def test_a_text_may_say_itself_how_it_is_spelled(
    data: bytes, declared: ContentType, text: str
) -> None:
    """A page and an XML text do, near their beginning."""
    assert decode(data, declared)[-1] == text


@given(st.binary(), st.text(max_size=20), st.sampled_from(["html", "text"]))
def test_every_body_is_some_text(data: bytes, charset: str, kind: str) -> None:
    """Whatever it is and says."""
    declared = ContentType(name="", charset=charset, kind="html" if kind == "html" else "text")
    assert decode(data, declared).encode("utf-8", "replace") is not None


def fed(encoding: str, max_bytes: int, *chunks: bytes) -> Decompressor:
    body = Decompressor(encoding, max_bytes)
    for chunk in chunks:
        body.feed(chunk)
    body.end()
    return body


def test_a_body_is_kept_up_to_the_cap() -> None:
    """One byte more than fits sets the flag, and is not kept."""
    fits, more = fed("", 4, b"ab", b"cd"), fed("identity", 4, b"ab", b"cde")
    packed = fed("gzip", 400, gzip.compress(b"a" * 401))  # ends in the read that fills it
    assert (fits.data, fits.is_full, fits.done) == (b"abcd", False, False)
    assert (more.data, more.is_full, more.done) == (b"abcd", True, True)
    assert (packed.data, packed.is_full, packed.is_broken) == (b"a" * 400, True, False)


@given(st.binary(max_size=300), st.integers(1, 50), st.integers(100, 400))
def test_unpacking_gives_the_packed_bytes(data: bytes, step: int, cap: int) -> None:
    """In any chunks, with any number of members; never more than the cap."""
    packed = gzip.compress(data) + gzip.compress(b"tail")
    whole = data + b"tail"
    body = fed("gzip", cap, *(packed[at : at + step] for at in range(0, len(packed), step)))
    assert body.data == whole[:cap]
    assert body.is_full or len(whole) <= cap
    assert not body.is_broken


def test_a_bomb_is_unpacked_to_the_cap_only() -> None:
    """A hundred megabytes in a hundred kilobytes cost what the cap says (decoded size counts)."""
    squeeze = zlib.compressobj(9, wbits=31)
    bomb = b"".join(squeeze.compress(bytes(1_000_000)) for _ in range(100)) + squeeze.flush()
    body = fed("gzip", 200_000, bomb)
    assert (len(body.data), body.is_full) == (200_000, True)


def test_what_unpacks_to_nothing_ends_too() -> None:
    """Empty members for ever are held to what arrived."""
    body = fed("x-gzip", 100, *[gzip.compress(b"")] * 11)
    assert (body.data, body.is_full) == (b"", True)


@pytest.mark.parametrize(
    "chunks", [(b"not gzip", b"more"), (gzip.compress(b"ab")[:-1],), (gzip.compress(b"ab"), b"x")]
)
def test_a_body_of_another_encoding_is_broken(chunks: tuple[bytes, ...]) -> None:
    """No gzip, or one that ends too early."""
    body = fed("gzip", 100, *chunks)
    assert (body.is_broken, body.done) == (True, True)


def test_nothing_is_packed_as_nothing() -> None:
    """Answers without a body say gzip as well."""
    body = fed("gzip", 100)
    assert (body.data, body.is_broken) == (b"", False)


def test_an_answer_of_countless_files_ends() -> None:
    """Nobody is held up by a chunk that begins anew some thousand times (P9)."""
    body = fed("gzip", 1_000_000, gzip.compress(b"") * 3_000 + gzip.compress(b"tail"))
    assert (body.data, body.is_full, body.is_broken) == (b"", True, False)


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd"])
def test_packing_that_was_not_asked_for_is_refused(encoding: str) -> None:
    """Only gzip is unpacked within a bound."""
    with pytest.raises(ValueError, match=encoding):
        Decompressor(encoding, 100)
