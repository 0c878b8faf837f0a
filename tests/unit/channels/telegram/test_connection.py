"""What the connection to Telegram trusts, and how its faults and invalid answers are reported."""

import asyncio
import gc
import json
import logging
import ssl
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from channels.telegram import TelegramSettings
from channels.telegram.account import Account
from channels.telegram.errors import NoMethod
from channels.telegram.messages import Messages
from channels.telegram.styled import Styled
from tests.fakes.bare_context import no_log
from tests.fakes.tcp_server import heard, saying
from tests.fakes.two_addresses import two_addresses
from zeroclaw import (
    Address,
    ChannelRejected,
    ChannelUnauthorized,
    ChannelUnavailable,
    DeliveryUnknown,
    RateLimited,
    SecretReference,
    ZeroclawError,
)

# All open real sockets.
pytestmark = pytest.mark.slow
ADDRESS = Address(channel="telegram", account="123", chat="7", direct=True)
OK = b"HTTP/1.1 200 OK\r\n"
CUT = {
    "nothing": b"",
    "half a head": OK + b"Content-Le",
    "no HTTP": b"SSH-2.0-OpenSSH_9.9\r\n",
    "no body": OK + b"Content-Length: 5\r\n\r\n",
    "half a chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
}
NO_ANSWER = "no answer: (the connection was closed too early|connection reset by peer|it does not speak HTTP)$"


async def test_a_failed_connection_is_reported_in_the_words_of_the_system() -> None:
    """`doctor`, `/status` and the log show no class name (P10)."""
    message = "^`telegram`: Telegram can't be reached: connection refused$"
    with pytest.raises(ChannelUnavailable, match=message):
        await send_hello_to("http://127.0.0.1:1")


async def test_addresses_that_fail_in_different_ways_are_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One address family has a broken network, the other refuses."""
    two_addresses(monkeypatch)
    with pytest.raises(ChannelUnavailable, match=r"reached: none of its addresses can be reached$"):
        await send_hello_to("http://two.invalid:1")


async def test_a_server_without_tls_is_reported_as_one() -> None:
    async with saying(b"HTTP/1.1 400 Bad Request\r\n\r\n") as url:
        with pytest.raises(ChannelUnavailable, match=r"reached: it does not speak TLS$"):
            await send_hello_to(url.replace("http:", "https:"))


async def test_a_refusing_gateway_is_reported_by_its_status() -> None:
    async with saying(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", after=b"\r\n\r\n") as url:
        http = account_at(url).http
        with pytest.raises(ChannelUnavailable, match=r"gateway can't be reached: it answered 403$"):
            await http.websocket(url.replace("http:", "ws:"), max_bytes=1_000)
        await http.aclose()


@pytest.mark.needs("openssl")
async def test_an_untrusted_certificate_is_reported_as_one(tmp_path: Path) -> None:
    """Not as "operation not permitted", although the error has that number."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    files = ["-subj", "/CN=localhost", "-keyout", "key", "-out", "certificate"]
    made_by = [*command.split(), *files]
    await asyncio.to_thread(subprocess.run, made_by, cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate", tmp_path / "key")

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        message = "reached: its certificate is not trusted: self-signed certificate$"
        with pytest.raises(ChannelUnavailable, match=message):
            await send_hello_to(f"https://localhost:{server.sockets[0].getsockname()[1]}")


async def test_a_refusing_proxy_is_reported_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks for a password, and later is not reachable."""
    ask_proxies(monkeypatch)
    refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
    async with saying(refusal, after=b"\r\n\r\n") as url:
        monkeypatch.setenv("HTTPS_PROXY", url)
        with pytest.raises(ChannelUnavailable, match=r"reached: the proxy answered 407$"):
            await send_hello_to("https://telegram.test")
    with pytest.raises(ChannelUnavailable, match=r"reached: the proxy: connection refused$"):
        await send_hello_to("https://telegram.test")


@pytest.mark.parametrize("resets", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("sent", CUT.values(), ids=CUT)
async def test_a_send_whose_answer_was_cut_may_have_arrived(sent: bytes, resets: bool) -> None:
    """So there is a lookup before it is sent again (P1)."""
    async with saying(sent, resets=resets, after=b"\r\n\r\n") as url:
        with pytest.raises(DeliveryUnknown, match=NO_ANSWER) as unknown:
            await send_hello_to(url)
        assert not unknown.value.late


async def test_a_send_that_was_reset_unread_may_have_arrived() -> None:
    """Only one without a connection surely did not arrive."""
    async with saying(b"", resets=True) as url:
        with pytest.raises(DeliveryUnknown):
            await send_hello_to(url)


async def test_a_closed_account_opens_no_connection() -> None:
    """A late call would open a connection that is never closed; it is not sent, and may be
    retried."""
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readline())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        account = account_at(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await account.http.aclose()
        with pytest.raises(ChannelUnavailable):
            await send_hello(account)
        await account.http.aclose()
    assert requests == []


async def test_a_send_that_is_never_answered_may_still_arrive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server may just be slow."""
    monkeypatch.setattr("channels._remote.http.READ_S", 0.05)
    silent = asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await silent.wait()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        with pytest.raises(DeliveryUnknown) as unknown:
            await send_hello_to(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        silent.set()
        assert unknown.value.late


async def test_a_message_without_a_connection_was_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused, of unknown name, without TLS, or behind a missing proxy."""
    async with saying(b"", after=b"\r\n\r\n") as url:
        port = url.rpartition(":")[2]
    async with saying(b"HTTP/1.1 400 Bad\r\n\r\n") as not_tls:
        for address in (url, f"http://nowhere.invalid:{port}", not_tls.replace("http:", "https:")):
            await (await account_after_a_try(address)).http.aclose()
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HTTP_PROXY", url)
        await (await account_after_a_try("http://telegram.test")).http.aclose()


async def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some networks allow no other way out."""
    ask_proxies(monkeypatch)
    body = b'{"ok": false, "error_code": 400, "description": "by the proxy"}'
    async with saying(OK.replace(b"200 OK", b"400 Bad") + b"\r\n" + body, after=b"\r\n\r\n") as url:
        monkeypatch.setenv("HTTP_PROXY", url)
        with pytest.raises(ChannelRejected, match="by the proxy"):
            await send_hello_to("http://telegram.test")


async def test_a_proxy_gets_its_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name and password are in the proxy's address, and go only to the proxy."""
    body = b'{"ok": false, "error_code": 400, "description": "by the proxy"}'
    ask_proxies(monkeypatch)
    async with heard(b"HTTP/1.1 400 Bad\r\nConnection: close\r\n\r\n" + body) as (url, heads):
        monkeypatch.setenv("HTTP_PROXY", url.replace("//", "//ann:s3cret@"))
        with pytest.raises(ChannelRejected, match="by the proxy"):
            await send_hello_to("http://telegram.test")
    assert b"Proxy-Authorization: Basic YW5uOnMzY3JldA==\r\n" in heads[0]
    assert b"s3cret" not in heads[0]


async def test_a_proxy_is_used_for_websockets_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events arrive by one; without it a bot would only send."""
    ask_proxies(monkeypatch)
    async with heard(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n") as (url, heads):
        monkeypatch.setenv("HTTPS_PROXY", url)
        account = account_at("https://telegram.test")
        with pytest.raises(ChannelUnavailable, match="can't be reached"):
            await account.http.websocket("wss://gateway.test/?v=10", max_bytes=1)
        await account.http.aclose()
    assert heads[0].startswith(b"CONNECT gateway.test:443 ")


def contexts() -> list[ssl.SSLContext]:
    gc.collect()
    return [value for value in gc.get_objects() if isinstance(value, ssl.SSLContext)]


SETTINGS = TelegramSettings(token=SecretReference(env="TOKEN"))


def account_at(url: str) -> Account:
    return Account("telegram", SETTINGS.model_copy(update={"api_base_url": url}), {"token": "1:a"})


async def send_hello(account: Account) -> None:
    await Messages(account, SETTINGS, no_log).post(ADDRESS, Styled(text="hi"))


async def send_hello_to(url: str) -> None:
    account = account_at(url)
    try:
        await send_hello(account)
    finally:
        await account.http.aclose()


def ask_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no address be exempt from the proxy of the environment."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


async def account_after_a_try(url: str) -> Account:
    """Make one that has tried to connect."""
    account = account_at(url)
    with pytest.raises(ChannelUnavailable):
        await send_hello(account)
    return account


async def test_certificates_are_read_once_for_all_starts_of_a_channel() -> None:
    """An outage restarts a channel repeatedly; each reading took two thirds of a MiB."""
    async with saying(b"", after=b"\r\n\r\n") as url:
        closed = url.replace("http:", "https:")
    accounts = [await account_after_a_try(closed)]
    before = contexts()
    accounts += [await account_after_a_try(closed) for _ in range(3)]
    assert [value for value in contexts() if value not in before] == []
    for account in accounts:
        await account.http.aclose()


async def test_without_certificates_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that the environment names may be missing; the message waits until it is back
    (P1)."""
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    await (await account_after_a_try("https://127.0.0.1:1")).http.aclose()
    account = account_at("https://127.0.0.1:1")
    with pytest.raises(ChannelUnavailable, match="`SSL_CERT_FILE` names certificates"):
        await account.http.websocket("wss://127.0.0.1:1", max_bytes=1)
    await account.http.aclose()


# --- broken servers -------------------------------------------------------------------------------

TOKEN = "123:ABC-not-to-be-told"


@asynccontextmanager
async def broken_server(
    *answers: tuple[int, bytes], hung_up: asyncio.Event | None = None
) -> AsyncGenerator[Account]:
    """Answer each request with the next of these, and then always with the last one.

    `hung_up` is set when the client does not read an answer to its end.
    """
    remaining = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            _, _, rest = head.partition(b"content-length: ")
            await reader.readexactly(int(rest.split(b"\r\n")[0]) if rest else 0)
            status, body = remaining.pop(0) if len(remaining) > 1 else remaining[0]
            writer.write(b"HTTP/1.1 %d Odd\r\nConnection: close\r\n\r\n" % status + body)
            try:
                await writer.drain()
            except ConnectionError:
                if hung_up is not None:
                    hung_up.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    settings = SETTINGS.model_copy(update={"api_base_url": f"http://127.0.0.1:{port}"})
    account = Account("telegram", settings, {"token": TOKEN})
    async with server:
        try:
            yield account
        finally:
            await account.http.aclose()


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"7", b"{}", b'{"ok": true}', b"\xff\xfe", b"[" * 100_000]
    + [b'{"result": []}', b'{"ok": "yes", "result": []}', b'{"ok": false, "result": []}']
    + [b'{"ok": true, "result": [%s' % (b"{}," * 100), b"7" * 5000]
    + [b'{"ok": true, "result": %s}' % result for result in (b"null", b"7", b'{"a": 1}')],
)
async def test_a_poll_with_an_invalid_answer_has_failed(body: bytes) -> None:
    """It is not read as "no updates", which would poll the server again without a pause."""
    async with broken_server((200, body)) as account:
        with pytest.raises(ChannelUnavailable):
            await account.updates(None)


async def test_updates_that_are_too_long_together_are_fetched_one_by_one() -> None:
    """Otherwise a stranger who forwards long rich messages could silence the bot for a day (P4,
    P9)."""
    flood = b'{"ok": true, "result": [{"update_id": 7, "message": {"text": "aaaa'  # is cut off
    update = b'{"ok": true, "result": [{"update_id": 7}]}'
    async with broken_server((200, flood), (200, flood), (200, update)) as account:
        assert await account.updates(None) == [{"update_id": 7}]
    async with broken_server((200, flood)) as account:
        with pytest.raises(ChannelUnavailable):
            await account.updates(None)


@pytest.mark.parametrize("result", [b"true", b"7", b"[]", b"{}", b'{"message_id": "7"}'])
async def test_a_message_without_a_number_may_have_arrived(result: bytes) -> None:
    """It could not be edited without one, so there is a lookup (P1)."""
    async with broken_server((200, b'{"ok": true, "result": %s}' % result)) as account:
        with pytest.raises(DeliveryUnknown):
            await Messages(account, SETTINGS, no_log).post(ADDRESS, Styled(text="a"))


@pytest.mark.parametrize("body", [b"true", b"7", b"[]", b'{"id": 7}', b'{"id": "123"}'])
async def test_an_invalid_or_other_bot_is_not_accepted(body: bytes) -> None:
    async with broken_server((200, b'{"ok": true, "result": %s}' % body)) as account:
        with pytest.raises(ChannelUnavailable):
            await account.user()


async def test_the_token_follows_no_redirect() -> None:
    """A redirecting server must not get the token sent elsewhere (P8)."""
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readline())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as elsewhere:
        port = elsewhere.sockets[0].getsockname()[1]
        head = b"HTTP/1.1 307 Go\r\nContent-Length: 0\r\nLocation: http://127.0.0.1:%d/a\r\n\r\n"
        async with saying(head % port, after=b"\r\n\r\n") as url:
            settings = SETTINGS.model_copy(update={"api_base_url": url})
            account = Account("telegram", settings, {"token": TOKEN})
            with pytest.raises(ChannelUnavailable) as caught:
                await account.user()
            await account.http.aclose()
    assert requests == []
    assert TOKEN not in str(caught.value)


async def test_a_websocket_follows_no_redirect() -> None:
    """Discord's token is sent over it, to whoever is at its other end (P8)."""
    async with heard(b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n") as (elsewhere, asked):
        head = f"HTTP/1.1 302 Go\r\nContent-Length: 0\r\nLocation: {elsewhere}/a\r\n\r\n".encode()
        async with saying(head, after=b"\r\n\r\n") as url:
            http = account_at(url).http
            with pytest.raises(ChannelUnavailable, match=r"reached: it answered 302$"):
                await http.websocket(url.replace("http:", "ws:"), max_bytes=1_000)
            await http.aclose()
    assert asked == []


async def test_a_wait_that_a_proxy_asks_for_is_obeyed() -> None:
    """It knows nothing of the Bot API's JSON."""
    head = b"HTTP/1.1 429 No\r\nContent-Length: 0\r\nRetry-After: 30\r\n\r\n"
    async with saying(head, after=b"\r\n\r\n") as url:
        with pytest.raises(RateLimited) as caught:
            await send_hello_to(url)
    assert caught.value.retry_after_s == 30


async def test_a_wait_that_a_file_server_asks_for_is_obeyed() -> None:
    """Otherwise all tries are over before it gives the file."""
    head = b"HTTP/1.1 429 No\r\nContent-Length: 0\r\nRetry-After: 60\r\n\r\n"
    async with saying(head, after=b"\r\n\r\n") as url:
        http = account_at(url).http
        with pytest.raises(RateLimited, match="can't be read now") as caught:
            await http.download(f"{url}/file", max_bytes=9)
        await http.aclose()
    assert caught.value.retry_after_s == 60


@pytest.mark.parametrize("parameters", [b"[]", b"7", b'{"migrate_to_chat_id": "x"}'])
async def test_invalid_parameters_of_a_refusal_are_ignored(parameters: bytes) -> None:
    body = b'{"ok": false, "description": "Bad Request: no", "parameters": %s}' % parameters
    async with broken_server((400, body)) as account:
        with pytest.raises(ChannelRejected, match="`telegram`: no"):
            await Messages(account, SETTINGS, no_log).typing(ADDRESS)


@pytest.mark.parametrize("status", [200, 502])
async def test_no_part_of_an_unreadable_answer_is_logged_or_shown(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A cut answer holds people's messages; the log has no bodies (P10)."""
    caplog.set_level(logging.WARNING)
    async with broken_server((status, b'{"ok": true, "result": [{"text": "hunter2')) as account:
        with pytest.raises(ZeroclawError) as unreadable:
            await account.updates(None)
        with pytest.raises(DeliveryUnknown) as unknown:
            await Messages(account, SETTINGS, no_log).typing(ADDRESS)
    for text in (caplog.text, str(unreadable.value), str(unknown.value)):
        assert "hunter2" not in text
        assert TOKEN not in text
    assert ("Telegram failed (502)" in str(unknown.value)) is (status == 502)


def _file(path: str) -> bytes:
    result = {"file_id": "a", "file_unique_id": "a", "file_path": path}
    return json.dumps({"ok": True, "result": result}).encode()


async def test_only_the_start_of_a_too_large_file_is_read() -> None:
    """The server gives no size; memory is bounded all the same (P9)."""
    hung_up = asyncio.Event()
    file = (200, b"x" * 50_000_000)
    async with broken_server((200, _file("documents/a")), file, hung_up=hung_up) as account:
        with pytest.raises(ChannelRejected, match="larger than 100 bytes"):
            await account.download("a", max_bytes=100)
        await hung_up.wait()


@pytest.mark.parametrize("path", ["", "/var/lib/telegram-bot-api/a"])
async def test_a_file_that_stays_on_the_server_says_so(path: str) -> None:
    async with broken_server((200, _file(path))) as account:
        with pytest.raises(ChannelRejected, match="start it without --local"):
            await account.download("a", max_bytes=100)


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        ((404, b"not here"), ChannelRejected, "no longer there"),
        ((500, b"<html>oh</html>"), ChannelUnavailable, "can't be read now"),
    ],
)
async def test_an_unavailable_file_does_not_blame_the_token(
    answer: tuple[int, bytes], kind: type[ZeroclawError], message: str
) -> None:
    async with broken_server((200, _file("documents/a")), answer) as account:
        with pytest.raises(kind, match=message) as caught:
            await account.download("a", max_bytes=100)
    assert type(caught.value) is kind
    assert TOKEN not in str(caught.value)


BY_A_SERVER = [
    (401, b'{"ok": false, "error_code": 401, "description": "Unauthorized"}'),
    (404, b'{"ok": false, "error_code": 404, "description": "Not Found"}'),
]
BY_A_PROXY = [(401, b"<html>who are you?</html>"), (404, b"<html>nothing here</html>")]


@pytest.mark.parametrize("answer", BY_A_SERVER)
async def test_a_method_that_every_server_knows_shows_whether_the_token_is_valid(
    answer: tuple[int, bytes],
) -> None:
    async with broken_server(answer) as account:
        with pytest.raises(ChannelUnauthorized):
            await account.user()
        with pytest.raises(ChannelUnauthorized):
            await account.updates(None)


@pytest.mark.parametrize("answer", [*BY_A_SERVER, *BY_A_PROXY])
async def test_no_other_answer_takes_the_channel_down(answer: tuple[int, bytes]) -> None:
    """The next poll shows whether the token is valid; messages wait until then (P10)."""
    async with broken_server(answer) as account:
        for call in (
            account.webhook,
            account.forget_webhook,
            lambda: Messages(account, SETTINGS, no_log).typing(ADDRESS),
            lambda: Messages(account, SETTINGS, no_log).post(ADDRESS, Styled(text="a")),
        ):
            with pytest.raises(ChannelUnavailable):
                await call()


@pytest.mark.parametrize("answer", BY_A_PROXY)
async def test_a_misdirected_proxy_does_not_blame_the_token(answer: tuple[int, bytes]) -> None:
    async with broken_server(answer) as account:
        with pytest.raises(ChannelUnavailable, match="in its place"):
            await account.user()


async def test_an_unknown_method_is_reported_as_one() -> None:
    """So the caller need not try again, and can do without it."""
    async with broken_server(BY_A_SERVER[1]) as account:
        with pytest.raises(NoMethod):
            await Messages(account, SETTINGS, no_log).typing(ADDRESS)
        messages = Messages(account, SETTINGS, no_log)
        with pytest.raises(NoMethod):
            await messages.post(ADDRESS, Styled(text="a", rich="<p>a</p>"))
        assert not messages.is_rich


@pytest.mark.parametrize("answer", [BY_A_SERVER[0], *BY_A_PROXY])
async def test_refusals_about_the_token_or_by_a_proxy_do_not_disable_rich_messages(
    answer: tuple[int, bytes],
) -> None:
    """Rich messages are used again when the server is back."""
    async with broken_server(answer) as account:
        messages = Messages(account, SETTINGS, no_log)
        with pytest.raises(ChannelUnavailable):
            await messages.post(ADDRESS, Styled(text="a", rich="<p>a</p>"))
        assert messages.is_rich
