"""What the connection to Telegram trusts, and what its faults on the wire mean."""

import asyncio
import gc
import ssl
import subprocess
from pathlib import Path

import pytest

from channels.telegram import TelegramSettings
from channels.telegram.account import Account
from channels.telegram.messages import Messages
from channels.telegram.styled import Styled
from tests.contract.loopback_harness import no_log
from tests.fakes.hang_up import heard, saying
from zeroclaw import Address, ChannelRejected, ChannelUnavailable, DeliveryUnknown, SecretReference

# All open real sockets.
pytestmark = pytest.mark.slow

HERE = Address(channel="telegram", account="123", chat="7", direct=True)
OK = b"HTTP/1.1 200 OK\r\n"
CUT = {
    "nothing": b"",
    "half a head": OK + b"Content-Le",
    "no HTTP": b"SSH-2.0-OpenSSH_9.9\r\n",
    "no body": OK + b"Content-Length: 5\r\n\r\n",
    "half a chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
}
WHY = "no answer: (the connection was closed too early|connection reset by peer|it does not speak HTTP)$"


async def test_why_nothing_could_be_sent_is_told_in_the_words_of_the_system() -> None:
    """`doctor`, `/status` and the log name no class (P10)."""
    account = made("http://127.0.0.1:1")
    says = "^`telegram`: Telegram can't be reached: connection refused$"
    with pytest.raises(ChannelUnavailable, match=says):
        await tell(account)
    await account.http.aclose()


async def test_a_server_without_tls_is_told_as_one() -> None:
    async with saying(b"HTTP/1.1 400 Bad Request\r\n\r\n") as url:
        account = made(url.replace("http:", "https:"))
        with pytest.raises(ChannelUnavailable, match=r"reached: it does not speak TLS$"):
            await tell(account)
        await account.http.aclose()


async def test_a_gateway_that_refuses_is_told_by_its_status() -> None:
    async with saying(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", after=b"\r\n\r\n") as url:
        http = made(url).http
        with pytest.raises(ChannelUnavailable, match=r"gateway can't be reached: it answered 403$"):
            await http.websocket(url.replace("http:", "ws:"), most=1_000)
        await http.aclose()


@pytest.mark.needs("openssl")
async def test_a_certificate_of_nobody_is_told_as_one(tmp_path: Path) -> None:
    """Not as an operation that is not permitted, whose number its error has."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    files = ["-subj", "/CN=localhost", "-keyout", "key", "-out", "certificate"]
    made_by = [*command.split(), *files]
    await asyncio.to_thread(subprocess.run, made_by, cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate", tmp_path / "key")

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        account = made(f"https://localhost:{server.sockets[0].getsockname()[1]}")
        says = "reached: its certificate is not trusted: self-signed certificate$"
        with pytest.raises(ChannelUnavailable, match=says):
            await tell(account)
        await account.http.aclose()


async def test_a_proxy_that_lets_nobody_through_is_told_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Which asks for a password, and then is not there at all."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
    async with saying(refusal, after=b"\r\n\r\n") as url:
        monkeypatch.setenv("HTTPS_PROXY", url)
        account = made("https://telegram.test")
        with pytest.raises(ChannelUnavailable, match=r"reached: the proxy answered 407$"):
            await tell(account)
        await account.http.aclose()
    account = made("https://telegram.test")
    with pytest.raises(ChannelUnavailable, match=r"reached: the proxy: connection refused$"):
        await tell(account)
    await account.http.aclose()


@pytest.mark.parametrize("resets", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("said", CUT.values(), ids=CUT)
async def test_a_send_whose_answer_was_cut_may_have_arrived(said: bytes, resets: bool) -> None:
    """So it is looked for before it is sent again (P1)."""
    async with saying(said, resets=resets, after=b"\r\n\r\n") as url:
        account = made(url)
        with pytest.raises(DeliveryUnknown, match=WHY) as unknown:
            await tell(account)
        assert not unknown.value.late
        await account.http.aclose()


async def test_a_send_that_was_reset_unread_may_have_arrived() -> None:
    """Only one that was never connected surely has not."""
    async with saying(b"", resets=True) as url:
        account = made(url)
        with pytest.raises(DeliveryUnknown):
            await tell(account)
        await account.http.aclose()


async def test_an_account_that_is_closed_opens_no_connection_any_more() -> None:
    """A call that comes late would open one that nobody closes; it was not sent, and may be made again."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        account = made(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await account.http.aclose()
        with pytest.raises(ChannelUnavailable):
            await tell(account)
        await account.http.aclose()
    assert asked == []


async def test_a_send_that_is_never_answered_may_arrive_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server may only be slow."""
    monkeypatch.setattr("channels._remote.http.READ_S", 0.05)
    silent = asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await silent.wait()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        account = made(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(DeliveryUnknown) as unknown:
            await tell(account)
        silent.set()
        assert unknown.value.late
        await account.http.aclose()


async def test_what_never_connected_was_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused, unknown by name, without TLS, or behind a proxy that is not there."""
    async with saying(b"", after=b"\r\n\r\n") as url:
        port = url.rpartition(":")[2]
    async with saying(b"HTTP/1.1 400 Bad\r\n\r\n") as plain:
        for address in (url, f"http://nowhere.invalid:{port}", plain.replace("http:", "https:")):
            await (await tried(address)).http.aclose()
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HTTP_PROXY", url)
        await (await tried("http://telegram.test")).http.aclose()


async def test_a_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some networks let nothing else out."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    body = b'{"ok": false, "error_code": 400, "description": "by the proxy"}'
    async with saying(OK.replace(b"200 OK", b"400 Bad") + b"\r\n" + body, after=b"\r\n\r\n") as url:
        monkeypatch.setenv("HTTP_PROXY", url)
        account = made("http://telegram.test")
        with pytest.raises(ChannelRejected, match="by the proxy"):
            await tell(account)
        await account.http.aclose()


async def test_a_proxy_that_asks_who_it_is_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name and password stand in the address, and go to nobody else."""
    body = b'{"ok": false, "error_code": 400, "description": "by the proxy"}'
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with heard(b"HTTP/1.1 400 Bad\r\nConnection: close\r\n\r\n" + body) as (url, heads):
        monkeypatch.setenv("HTTP_PROXY", url.replace("//", "//ann:s3cret@"))
        account = made("http://telegram.test")
        with pytest.raises(ChannelRejected, match="by the proxy"):
            await tell(account)
        await account.http.aclose()
    assert b"Proxy-Authorization: Basic YW5uOnMzY3JldA==\r\n" in heads[0]
    assert b"s3cret" not in heads[0]


async def test_a_proxy_is_asked_for_a_websocket_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events come by one, and a bot that only sends hears nobody."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with heard(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n") as (url, heads):
        monkeypatch.setenv("HTTPS_PROXY", url)
        account = made("https://telegram.test")
        with pytest.raises(ChannelUnavailable, match="can't be reached"):
            await account.http.websocket("wss://gateway.test/?v=10", most=1)
        await account.http.aclose()
    assert heads[0].startswith(b"CONNECT gateway.test:443 ")


def contexts() -> int:
    return sum(isinstance(one, ssl.SSLContext) for one in gc.get_objects())


SETTINGS = TelegramSettings(token=SecretReference(env="TOKEN"))


def made(url: str) -> Account:
    return Account("telegram", SETTINGS.model_copy(update={"api_base_url": url}), {"token": "1:a"})


async def tell(account: Account) -> None:
    await Messages(account, SETTINGS, no_log).post(HERE, Styled(text="hi"))


async def tried(url: str) -> Account:
    """Make one that has tried to connect."""
    account = made(url)
    with pytest.raises(ChannelUnavailable):
        await tell(account)
    return account


async def test_certificates_are_read_once_for_all_starts_of_a_channel() -> None:
    """An outage starts a channel again and again; each reading took two thirds of a MiB."""
    async with saying(b"", after=b"\r\n\r\n") as url:
        nobody = url.replace("http:", "https:")
    all_ = [await tried(nobody)]
    before = contexts()
    all_ += [await tried(nobody) for _ in range(3)]
    assert contexts() == before
    for one in all_:
        await one.http.aclose()


async def test_without_certificates_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment names may be gone; the message waits until it is there again (P1)."""
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    await (await tried("https://127.0.0.1:1")).http.aclose()
    account = made("https://127.0.0.1:1")
    with pytest.raises(ChannelUnavailable, match="`SSL_CERT_FILE` names certificates"):
        await account.http.websocket("wss://127.0.0.1:1", most=1)
    await account.http.aclose()
