"""Where a fetch goes and where it does not, over real sockets on loopback."""

import asyncio
import ssl
import subprocess
from pathlib import Path

import pytest

from tests.unit.tools.fetch.fetching import HERE, OPEN, fetch, opened
from tests.unit.tools.fetch.pages import Names, Pages, answer, redirect
from zeroclaw.errors import ToolFailed


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
async def test_a_redirect_to_another_host_is_told_and_not_followed(elsewhere: str) -> None:
    """A call goes only where the gate decided about; the next one is decided about too."""
    names = Names(answers=HERE)
    async with Pages() as server, opened(server, names=names) as tool:
        server.pages["/"] = redirect(elsewhere)
        said = await fetch(tool, f"http://wiki.test:{server.port}/")
        assert f"sends on to {'http:' if elsewhere.startswith('//') else ''}{elsewhere}\n" in said
        assert (names.asked, len(server.heads)) == (["wiki.test"], 1)


@pytest.mark.parametrize(
    ("location", "said"),
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
async def test_no_redirect_leads_inside(location: str, said: str) -> None:
    """Each is judged like the URL that was asked for, where all are followed as well."""
    settings = OPEN.model_copy(update={"redirects": "anywhere", "allow": ("wiki.test",)})
    names = Names(answers=HERE | {"private.test": [("10.0.0.1",)]})
    async with Pages() as server, opened(server, settings, names) as tool:
        server.pages["/"] = redirect(location.format(port=server.port))
        with pytest.raises(ToolFailed, match=said):
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
    """One of several is enough, and the address itself is not told."""
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
    """The connection goes to the very address that was judged; nobody is asked twice (rebinding)."""
    names = Names(answers={"evil.test": [("127.0.0.1",), ("127.0.0.2",)]})
    async with (
        Pages() as judged,
        Pages(host="127.0.0.2") as other,
        opened(judged, OPEN.model_copy(update={"allow": ("127.0.0.1",)}), names) as tool,
    ):
        judged.pages["/"] = redirect("/again")
        with pytest.raises(ToolFailed, match=r"`evil\.test` leads to a loopback address"):
            await fetch(tool, f"http://evil.test:{judged.port}/")
        assert names.asked == ["evil.test", "evil.test"]
        assert (len(judged.heads), other.heads) == (1, [])


async def test_the_next_address_is_tried_where_one_takes_no_connection() -> None:
    """In the order in which they were given; none at all is told."""
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
    ("answers", "said"),
    [({}, r"`gone\.test` can't be found: name"), ({"gone.test": [()]}, r"`gone\.test` has no add")],
)
async def test_a_name_without_an_address_is_told(
    answers: dict[str, list[tuple[str, ...]]], said: str
) -> None:
    """In one sentence."""
    async with Pages() as server, opened(server, names=Names(answers=answers)) as tool:
        with pytest.raises(ToolFailed, match=said):
            await fetch(tool, f"http://gone.test:{server.port}/")


async def test_an_ipv6_address_can_be_fetched_from() -> None:
    """Written in brackets, in the Host header too."""
    settings = OPEN.model_copy(update={"allow": ("::1",)})
    names = Names(answers={})
    async with Pages(host="::1") as server, opened(server, settings, names) as tool:
        server.pages["/"] = answer("six")
        said = await fetch(tool, f"http://[0:0::1]:{server.port}/")
        assert said.startswith(f"http://[::1]:{server.port}/ answered 200 OK")
        assert f"host: [::1]:{server.port}\r\n" in server.heads[0].lower()
        assert names.asked == []


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
    """The server is told the host, and its certificate has to be for it."""
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
async def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Path) -> None:
    """Whatever name it is for."""
    async with (
        Pages(tls=await asyncio.to_thread(tls, certificate)) as server,
        opened(server) as tool,
    ):
        with pytest.raises(ToolFailed, match="can't be connected to"):
            await fetch(tool, f"https://wiki.test:{server.port}/")
        assert server.heads == []
