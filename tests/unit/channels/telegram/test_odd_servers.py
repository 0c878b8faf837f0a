"""Whatever a server answers, the adapter says it in this house's words, and logs no body."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing

import pytest

from channels.telegram import TelegramSettings
from channels.telegram.account import Account
from channels.telegram.errors import MethodUnknown
from channels.telegram.messages import Messages
from channels.telegram.styled import Styled
from tests.contract.loopback_harness import no_log
from tests.fakes.hang_up import saying
from zeroclaw import (
    Address,
    ChannelRejected,
    ChannelUnauthorized,
    ChannelUnavailable,
    DeliveryUnknown,
    SecretReference,
    ZeroclawError,
)

# All open real sockets.
pytestmark = pytest.mark.slow

TOKEN = "123:ABC-not-to-be-told"
SETTINGS = TelegramSettings(token=SecretReference(env="TOKEN"))
HERE = Address(channel="telegram", account="123", chat="7", direct=True)


@asynccontextmanager
async def odd_server(
    *answers: tuple[int, bytes], hung_up: asyncio.Event | None = None
) -> AsyncGenerator[Account]:
    """Answer each request with the next of these, and with the last one ever after.

    `hung_up` is set when whoever asks does not read an answer to its end.
    """
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            _, _, rest = head.partition(b"content-length: ")
            await reader.readexactly(int(rest.split(b"\r\n")[0]) if rest else 0)
            status, body = left.pop(0) if len(left) > 1 else left[0]
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
    + [b'{"ok": true, "result": %s}' % odd for odd in (b"null", b"7", b'{"a": 1}')],
)
async def test_a_poll_that_is_answered_with_nonsense_has_failed(body: bytes) -> None:
    """It is not read as "nothing new", by which the server would be asked again without a pause."""
    async with odd_server((200, body)) as account:
        with pytest.raises(ChannelUnavailable):
            await account.updates(None)


@pytest.mark.parametrize("result", [b"true", b"7", b"[]", b"{}", b'{"message_id": "7"}'])
async def test_a_message_without_a_number_may_have_arrived(result: bytes) -> None:
    """There is nothing by which it could be edited, so it is looked for (P1)."""
    async with odd_server((200, b'{"ok": true, "result": %s}' % result)) as account:
        with pytest.raises(DeliveryUnknown):
            await Messages(account, SETTINGS, no_log).post(HERE, Styled(text="a"))


@pytest.mark.parametrize("body", [b"true", b"7", b"[]", b'{"id": 7}', b'{"id": "123"}'])
async def test_a_bot_that_is_another_or_none_is_not_met(body: bytes) -> None:
    async with odd_server((200, b'{"ok": true, "result": %s}' % body)) as account:
        with pytest.raises(ChannelUnavailable):
            await account.me()


async def test_the_token_follows_no_redirect() -> None:
    """Whoever may answer for the server must not have the token sent on (P8)."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as elsewhere:
        port = elsewhere.sockets[0].getsockname()[1]
        head = b"HTTP/1.1 307 Go\r\nContent-Length: 0\r\nLocation: http://127.0.0.1:%d/a\r\n\r\n"
        async with saying(head % port, after=b"\r\n\r\n") as url:
            settings = SETTINGS.model_copy(update={"api_base_url": url})
            account = Account("telegram", settings, {"token": TOKEN})
            with pytest.raises(ChannelUnavailable) as caught:
                await account.me()
            await account.http.aclose()
    assert asked == []
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("parameters", [b"[]", b"7", b'{"migrate_to_chat_id": "x"}'])
async def test_odd_parameters_of_a_refusal_are_passed_over(parameters: bytes) -> None:
    body = b'{"ok": false, "description": "Bad Request: no", "parameters": %s}' % parameters
    async with odd_server((400, body)) as account:
        with pytest.raises(ChannelRejected, match="`telegram`: no"):
            await Messages(account, SETTINGS, no_log).typing(HERE)


@pytest.mark.parametrize("status", [200, 502])
async def test_nothing_of_an_answer_that_can_not_be_read_is_logged_or_told(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A cut answer holds what people wrote; the log has no bodies (P10)."""
    caplog.set_level(logging.WARNING)
    async with odd_server((status, b'{"ok": true, "result": [{"text": "hunter2')) as account:
        with pytest.raises(ZeroclawError) as told:
            await account.updates(None)
        with pytest.raises(DeliveryUnknown) as unknown:
            await Messages(account, SETTINGS, no_log).typing(HERE)
    for said in (caplog.text, str(told.value), str(unknown.value)):
        assert "hunter2" not in said
        assert TOKEN not in said
    assert ("Telegram failed (502)" in str(unknown.value)) is (status == 502)


def _file(path: str) -> bytes:
    result = {"file_id": "a", "file_unique_id": "a", "file_path": path}
    return json.dumps({"ok": True, "result": result}).encode()


async def test_of_a_file_that_is_larger_than_it_says_only_the_start_is_read() -> None:
    """The server says no size, and memory stays bounded all the same (P9)."""
    hung_up = asyncio.Event()
    file = (200, b"x" * 50_000_000)
    async with odd_server((200, _file("documents/a")), file, hung_up=hung_up) as account:
        with pytest.raises(ChannelRejected, match="larger than 100 bytes"):
            await account.download("a", max_bytes=100)
        await hung_up.wait()


@pytest.mark.parametrize("path", ["", "/var/lib/telegram-bot-api/a"])
async def test_a_file_that_stays_with_the_server_is_said_to(path: str) -> None:
    async with odd_server((200, _file(path))) as account:
        with pytest.raises(ChannelRejected, match="start it without --local"):
            await account.download("a", max_bytes=100)


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        ((404, b"not here"), ChannelRejected, "no longer there"),
        ((500, b"<html>oh</html>"), ChannelUnavailable, "can't be read now"),
    ],
)
async def test_a_file_that_can_not_be_had_is_no_fault_of_the_token(
    answer: tuple[int, bytes], kind: type[ZeroclawError], says: str
) -> None:
    async with odd_server((200, _file("documents/a")), answer) as account:
        with pytest.raises(kind, match=says) as caught:
            await account.download("a", max_bytes=100)
    assert type(caught.value) is kind
    assert TOKEN not in str(caught.value)


BY_A_SERVER = [
    (401, b'{"ok": false, "error_code": 401, "description": "Unauthorized"}'),
    (404, b'{"ok": false, "error_code": 404, "description": "Not Found"}'),
]
BY_A_PROXY = [(401, b"<html>who are you?</html>"), (404, b"<html>nothing here</html>")]


@pytest.mark.parametrize("answer", BY_A_SERVER)
async def test_what_every_server_knows_says_whether_the_token_is_good(
    answer: tuple[int, bytes],
) -> None:
    async with odd_server(answer) as account:
        with pytest.raises(ChannelUnauthorized):
            await account.me()
        with pytest.raises(ChannelUnauthorized):
            await account.updates(None)


@pytest.mark.parametrize("answer", [*BY_A_SERVER, *BY_A_PROXY])
async def test_nothing_else_takes_the_channel_down(answer: tuple[int, bytes]) -> None:
    """What the token is worth the next poll says; what was to be said waits until then (P10)."""
    async with odd_server(answer) as account:
        for call in (
            account.webhook,
            account.forget_webhook,
            lambda: Messages(account, SETTINGS, no_log).typing(HERE),
        ):
            with pytest.raises((ChannelUnavailable, ChannelRejected)):
                await call()


@pytest.mark.parametrize("answer", BY_A_PROXY)
async def test_a_proxy_that_lost_its_way_says_nothing_of_the_token(
    answer: tuple[int, bytes],
) -> None:
    async with odd_server(answer) as account:
        with pytest.raises(ChannelUnavailable, match="in its place"):
            await account.me()


async def test_a_method_that_a_server_does_not_know_is_told_as_that() -> None:
    """So that whoever asked need not ask again, and may do without."""
    async with odd_server(BY_A_SERVER[1]) as account:
        with pytest.raises(MethodUnknown):
            await Messages(account, SETTINGS, no_log).typing(HERE)
        messages = Messages(account, SETTINGS, no_log)
        with pytest.raises(MethodUnknown):
            await messages.post(HERE, Styled(text="a", rich="<p>a</p>"))
        assert not messages.is_rich


@pytest.mark.parametrize("answer", [BY_A_SERVER[0], *BY_A_PROXY])
async def test_what_is_said_of_the_token_or_by_a_proxy_is_not_said_of_rich_messages(
    answer: tuple[int, bytes],
) -> None:
    """They are shown again when the server is back."""
    async with odd_server(answer) as account:
        messages = Messages(account, SETTINGS, no_log)
        with pytest.raises(ChannelUnavailable):
            await messages.post(HERE, Styled(text="a", rich="<p>a</p>"))
        assert messages.is_rich
