"""A test can make any call fail like a network or Telegram."""

import asyncio
import socket
from contextlib import suppress

import pytest
from telegram.error import BadRequest, NetworkError, RetryAfter, TelegramError

from channels._remote.emulator.http import Request, Response, Server
from channels.telegram.emulator import BadGateway, BadMarkup, Hang, Lose, Refuse, TooMany
from tests.emulators.telegram.bots import telegram_and_bot
from tests.fakes.manual_clock import ManualClock


@pytest.mark.parametrize("carried_out", [False, True])
async def test_a_call_is_cut_before_or_after_its_effect(carried_out: bool) -> None:
    """The bot sees the same error; only Telegram knows whether it was done."""
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        telegram.will("sendMessage", Lose(carried_out=carried_out))
        with pytest.raises(NetworkError):
            await bot.send_message(ann.id, "hello")
        assert (ann.chat.texts == ["hello"]) is carried_out
        assert telegram.calls[-1].is_done is carried_out
        await bot.send_message(ann.id, "again")
        assert ann.chat.texts[-1] == "again"


@pytest.mark.parametrize("carried_out", [False, True])
async def test_a_bad_gateway_answers_with_a_page(carried_out: bool) -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        telegram.will("sendMessage", BadGateway(carried_out=carried_out))
        with pytest.raises(NetworkError, match=r"Bad Gateway|Invalid server response"):
            await bot.send_message(ann.id, "hello")
        assert (ann.chat.texts == ["hello"]) is carried_out


@pytest.mark.parametrize("carried_out", [False, True])
async def test_a_call_hangs_until_it_is_released(carried_out: bool) -> None:
    async with telegram_and_bot() as (telegram, bot), asyncio.TaskGroup() as group:
        ann = telegram.person("Ann")
        hang = Hang(carried_out=carried_out)
        telegram.will("sendMessage", hang)
        sending = group.create_task(bot.send_message(ann.id, "hello"))
        await hang.reached()
        assert (ann.chat.texts == ["hello"]) is carried_out
        hang.release()
        assert (await sending).text == "hello"
        assert ann.chat.texts == ["hello"]


async def test_a_call_is_refused_as_planned() -> None:
    """In order, one after another, and only for the chosen calls."""
    async with telegram_and_bot() as (telegram, bot):
        ann, bob = telegram.person("Ann"), telegram.person("Bob")
        telegram.will("sendMessage", TooMany(retry_after_s=3), None, BadMarkup(), chat=ann.chat)
        telegram.will("", Refuse(code=500, description="Internal Server Error"), when=is_typing)
        await bot.send_message(bob.id, "not meant")
        with pytest.raises(RetryAfter, match="Retry in 3 seconds"):
            await bot.send_message(ann.id, "one")
        await bot.send_message(ann.id, "two")
        with pytest.raises(BadRequest, match="Can't parse entities"):
            await bot.send_message(ann.id, "three")
        with pytest.raises(TelegramError, match="Internal Server Error"):
            await bot.send_chat_action(ann.id, "typing")
        await bot.send_chat_action(ann.id, "typing")
        assert ann.chat.texts == ["two"]
        assert [call.refusal for call in telegram.called("sendMessage", chat=ann.chat)] == [
            "Too Many Requests: retry after 3",
            "",
            "Bad Request: can't parse entities: refused by a test",
        ]


def is_typing(call: object) -> bool:
    return "sendChatAction" in repr(call)


async def test_a_fault_may_be_permanent() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        telegram.will("sendMessage", Refuse(), times=None)
        for _ in range(3):
            with pytest.raises(BadRequest, match="Refused by a test"):
                await bot.send_message(ann.id, "hello")


async def test_updates_whose_answer_is_lost_come_again() -> None:
    """A batch that was sent, but never arrived, is not confirmed. S2-02."""
    async with telegram_and_bot() as (telegram, bot):
        action = telegram.person("Ann").says("hello")
        telegram.will("getUpdates", Lose(carried_out=True))
        with pytest.raises(NetworkError):
            await bot.get_updates(timeout=5)
        (update,) = await bot.get_updates(timeout=5)
        assert (update.update_id, action.update.deliveries) == (action.update.id, 2)


async def test_every_connection_can_be_cut_at_once() -> None:
    async with telegram_and_bot() as (telegram, bot), asyncio.TaskGroup() as group:
        polling = group.create_task(_cut(bot.get_updates(timeout=30)))
        await telegram.until(lambda: telegram.is_polled)
        telegram.cut()
        await polling
        assert (await bot.get_me()).id == bot.id


async def _cut(polling: object) -> None:
    with pytest.raises(NetworkError):
        await polling  # pyright: ignore[reportGeneralTypeIssues]  # any call


async def test_every_answer_can_be_late() -> None:
    clock = ManualClock()
    async with telegram_and_bot(clock=clock) as (telegram, bot), asyncio.TaskGroup() as group:
        ann = telegram.person("Ann")
        telegram.latency_s = 2.0
        sending = group.create_task(bot.send_message(ann.id, "hello"))
        await telegram.until(clock.sleeping)
        assert (ann.chat.texts, sending.done()) == (["hello"], False)
        await clock.advance(2)
        assert (await sending).text == "hello"


async def test_a_wait_in_vain_reports_the_chats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("channels.telegram.emulator.emulator.PATIENCE_S", 0.0)
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        await bot.send_message(ann.id, "hello")
        with pytest.raises(AssertionError, match="private 1000001 'Ann'\n1 Zero: 'hello'"):
            await telegram.until(lambda: ann.chat.texts == ["bye"])


# Earlier the library itself has no transport yet, and drops the connection.
@pytest.mark.parametrize("rounds", range(3, 8))
async def test_a_connection_accepted_just_before_the_server_goes_down_is_cut(rounds: int) -> None:
    """At any stage of the connection; else the server would wait for it without end."""

    async def answer(_: Request) -> Response:
        return Response(status=200, body=b"")

    server = Server(answer)
    await server.up()
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.setblocking(False)
        for _ in range(rounds):
            await asyncio.sleep(0)
        async with asyncio.timeout(50):
            await server.down()
            loop = asyncio.get_running_loop()
            with suppress(ConnectionResetError):
                assert await loop.sock_recv(client, 1) == b""
