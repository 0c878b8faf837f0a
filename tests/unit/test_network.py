"""By which proxy servers are reached, and whose certificates are trusted."""

import errno
import os
from asyncio import to_thread
from collections.abc import Callable, Generator
from pathlib import Path
from ssl import SSLContext

import certifi
import pytest

from zeroclaw import Network, NoWayOut
from zeroclaw.network import trust

PROXY, SECURE = "http://one.proxy:3128", "http://ann:s3cret@two.proxy:3128"
NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment with a proxy for each scheme."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HTTP_PROXY", PROXY)
    monkeypatch.setenv("HTTPS_PROXY", SECURE)
    monkeypatch.setenv("NO_PROXY", "model.lan,.example.org,two.lan:8080,fd00::1")


@pytest.fixture
def read_anew() -> Generator[None]:
    """The certificates read by other tests are dropped, and so are those read here."""
    trust.cache_clear()
    yield
    trust.cache_clear()


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("https://api.test/v1", SECURE),
        ("wss://gateway.test/?v=10", SECURE),
        ("http://api.test/v1", PROXY),
        ("ws://gateway.test", PROXY),
        ("https://model.lan/v1", None),
        ("https://a.example.org/v1", None),
        ("http://ann:s3cret@two.lan:8080/v1", None),
        ("http://two.lan:9/v1", PROXY),
        ("http://[fd00::1]:8080/v1", None),
        # A request to a model on this machine must not leave it, in any environment.
        ("http://127.0.0.1:8080/v1", None),
        ("http://127.9.9.9/v1", None),
        ("http://[::1]:8080/v1", None),
        ("http://localhost:11434/v1", None),
        ("http://LOCALHOST.:11434/v1", None),
        ("http://model.localhost/v1", None),
        ("http://0.0.0.0:8080/v1", None),
        ("http://[::]:8080/v1", None),
        ("http://[::ffff:127.0.0.1]:8080/v1", None),
        ("http://localhost.example/v1", PROXY),
    ],
)
def test_a_server_is_reached_as_the_environment_says(url: str, proxy: str | None) -> None:
    assert Network({}, to_thread).proxy_for(url) == proxy


@pytest.mark.usefixtures("two")
def test_a_proxy_is_spoken_to_by_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that stands without a scheme too, as most programs take it."""
    monkeypatch.setenv("HTTPS_PROXY", "two.proxy:3128")
    assert Network({}, to_thread).proxy_for("https://api.test") == "http://two.proxy:3128"


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    "named",
    [
        "socks5://ann:s3cret@two.proxy:1080",
        "http://ann:s3cret@two.proxy:port",
        "http://ann:s3cret@:3128",
        "ann:s3cret://two.proxy:3128",
    ],
)
def test_a_proxy_that_is_none_is_a_line_that_says_so(
    named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not repeated, for it may hold a password."""
    monkeypatch.setenv("HTTPS_PROXY", named)
    with pytest.raises(NoWayOut, match="`HTTPS_PROXY` names no proxy that speaks HTTP") as refused:
        Network({}, to_thread).proxy_for("wss://api.test")
    assert "s3cret" not in str(refused.value)


def test_without_a_proxy_every_server_is_reached_straight(
    two: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    del two
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name)
    assert Network({}, to_thread).proxy_for("https://api.test") is None


@pytest.mark.usefixtures("read_anew")
async def test_mozillas_list_is_trusted_and_read_once() -> None:
    """Each reading took two thirds of a MiB."""
    first = await Network({}, to_thread).trusted_for("https://api.test")
    assert first is await Network({}, to_thread).trusted_for("wss://gateway.test")
    assert not isinstance(first, bool)
    assert len(first.get_ca_certs()) > 1


async def test_certificates_are_read_where_nothing_waits_for_them() -> None:
    """It takes up to 34 ms, in which the loop would answer no chat (P9)."""
    aside: list[SSLContext] = []

    async def run(read: Callable[[], SSLContext]) -> SSLContext:
        aside.append(read())
        return aside[-1]

    network = Network({}, run)
    assert await network.trusted_for("http://127.0.0.1:8080/v1") is True
    assert aside == []
    first = await network.trusted_for("https://api.test")
    assert await network.trusted_for("https://api.test") is first
    assert aside == [first]


@pytest.mark.usefixtures("read_anew")
@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
async def test_an_operator_says_whom_to_trust(name: str, tmp_path: Path) -> None:
    """A proxy that opens TLS has certificates of its own, and so has a model of one's company."""
    bundle = tmp_path / "one.pem"
    bundle.write_text(first_of(certifi.contents()), encoding="ascii")
    environment = {name: str(bundle if name == "SSL_CERT_FILE" else tmp_path)}
    trusted = await Network(environment, to_thread).trusted_for("https://api.test")
    # Those of a directory are looked for when one is needed.
    assert not isinstance(trusted, bool)
    assert len(trusted.get_ca_certs()) == (1 if name == "SSL_CERT_FILE" else 0)
    empty = tmp_path / "empty.pem"
    empty.touch()
    for useless in ("/nowhere.pem", str(empty)):
        with pytest.raises(NoWayOut, match="`SSL_CERT_FILE` names certificates that can't be read"):
            await Network({"SSL_CERT_FILE": useless}, to_thread).trusted_for("https://api.test")


@pytest.mark.usefixtures("read_anew")
async def test_directories_that_do_not_exist_are_reported(tmp_path: Path) -> None:
    """P10: OpenSSL skips them, and would then trust no certificate. One of several may be missing."""
    several = f"/nowhere:{tmp_path}"
    assert await Network({"SSL_CERT_DIR": several}, to_thread).trusted_for("https://api.test")
    message = r"`SSL_CERT_DIR` names certificates that can't be read \(no such directory\)"
    for missing in ("/nowhere", "/nowhere:/neither"):
        with pytest.raises(NoWayOut, match=message):
            await Network({"SSL_CERT_DIR": missing}, to_thread).trusted_for("https://api.test")


@pytest.mark.usefixtures("read_anew")
async def test_no_variable_that_is_not_set_is_blamed() -> None:
    """Out of descriptors, Mozilla's own list can't be read."""

    async def refuse(_work: object) -> SSLContext:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    message = r"^`certifi` names certificates that can't be read \(Too many open files\)"
    with pytest.raises(NoWayOut, match=message):
        await Network({}, refuse).trusted_for("https://api.test")


async def test_who_sends_nothing_by_tls_reads_no_certificates() -> None:
    """They take 15 ms of a start; a proxy that speaks TLS itself needs them all the same."""
    environment = {"SSL_CERT_FILE": "/nowhere.pem"}
    assert await Network(environment, to_thread).trusted_for("http://127.0.0.1:8080/v1") is True
    with pytest.raises(NoWayOut):
        await Network(environment, to_thread).trusted_for("http://api.test", "https://one.proxy")


def first_of(bundle: str) -> str:
    end = "-----END CERTIFICATE-----\n"
    return bundle[bundle.index("-----BEGIN") : bundle.index(end) + len(end)]
