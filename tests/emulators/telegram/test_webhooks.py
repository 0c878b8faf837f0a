"""Updates are posted to a webhook, with its secret, until it accepts them."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from telegram.error import BadRequest, Conflict

from channels._remote.emulator.http import Answer, Request, Response, Server
from tests.emulators.telegram.bots import telegram_and_bot
from tests.fakes.manual_clock import ManualClock


@dataclass(kw_only=True)
class Receiver:
    """A bot's public address, which answers with the given statuses."""

    statuses: list[int] = field(default_factory=list[int])
    retry_after_s: int = 0
    posted: list[Request] = field(default_factory=list[Request])
    url: str = ""

    async def take(self, request: Request) -> Answer:
        self.posted.append(request)
        wait = (("retry-after", str(self.retry_after_s)),) if self.retry_after_s else ()
        return Response(status=self.statuses.pop(0) if self.statuses else 200, headers=wait)

    @property
    def texts(self) -> list[str]:
        return [json.loads(request.body)["message"]["text"] for request in self.posted]


@asynccontextmanager
async def receiver(*statuses: int) -> AsyncGenerator[Receiver]:
    hook = Receiver(statuses=[*statuses])
    server = Server(hook.take)
    await server.up()
    hook.url = f"http://127.0.0.1:{server.port}/telegram?hook=1"
    try:
        yield hook
    finally:
        await server.down()


async def test_updates_are_posted_in_order_with_the_secret() -> None:
    async with receiver() as hook, telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        early = ann.says("one")
        await bot.set_webhook(hook.url, secret_token="s3cret", max_connections=1)
        late = ann.says("two")
        await telegram.confirmed(early, late)
        assert hook.texts == ["one", "two"]
        first = hook.posted[0]
        assert (first.method, first.path, first.query) == ("POST", "/telegram", "hook=1")
        assert first.headers["x-telegram-bot-api-secret-token"] == "s3cret"
        assert first.headers["content-type"] == "application/json"


async def test_a_refused_update_is_posted_again_later() -> None:
    """Anything but a 2xx is a failure, and so is a failed connection; the wait grows."""
    clock = ManualClock()
    async with receiver(500, 503) as hook, telegram_and_bot(clock=clock) as (telegram, bot):
        ann = telegram.person("Ann")
        await bot.set_webhook(hook.url, allowed_updates=["message"])
        action = ann.says("hello")
        await telegram.until(lambda: clock.sleeping() == (1.0,))
        info = await bot.get_webhook_info()
        assert info.last_error_message == "Wrong response from the webhook: 500"
        assert (info.pending_update_count, info.allowed_updates) == (1, ("message",))
        assert (info.url, info.max_connections) == (hook.url, 40)
        await clock.advance(1)
        await telegram.until(lambda: clock.sleeping() == (2.0,))
        await clock.advance(2)
        await telegram.confirmed(action)
        assert (hook.texts, action.update.deliveries) == (["hello"] * 3, 3)


async def test_the_retry_after_of_the_bot_is_obeyed() -> None:
    clock = ManualClock()
    async with receiver(503) as hook, telegram_and_bot(clock=clock) as (telegram, bot):
        hook.retry_after_s = 7
        await bot.set_webhook(hook.url)
        action = telegram.person("Ann").says("hello")
        await telegram.until(lambda: clock.sleeping() == (7.0,))
        await clock.advance(7)
        await telegram.confirmed(action)


async def test_a_chat_waits_for_its_first_update_and_others_do_not() -> None:
    clock = ManualClock()
    async with receiver(500) as hook, telegram_and_bot(clock=clock) as (telegram, bot):
        ann, bob = telegram.person("Ann"), telegram.person("Bob")
        await bot.set_webhook(hook.url)
        first = ann.says("one")
        await telegram.until(clock.sleeping)
        second = ann.says("two")
        await telegram.confirmed(bob.says("three"))
        assert hook.texts == ["one", "three"]
        await clock.advance(1)
        await telegram.confirmed(first, second)
        assert hook.texts == ["one", "three", "one", "two"]


async def test_a_webhook_that_is_set_anew_is_tried_at_once() -> None:
    async with receiver(500) as hook, telegram_and_bot(clock=ManualClock()) as (telegram, bot):
        await bot.set_webhook(hook.url)
        action = telegram.person("Ann").says("one")
        await telegram.until(lambda: telegram.account.webhook_error)
        await bot.set_webhook(hook.url, secret_token="another")
        await telegram.confirmed(action)
        assert hook.texts == ["one", "one"]


async def test_a_failed_connection_to_the_webhook_is_reported() -> None:
    clock = ManualClock()
    async with telegram_and_bot(clock=clock) as (telegram, bot):
        async with receiver() as hook:
            pass
        await bot.set_webhook(hook.url)
        action = telegram.person("Ann").says("hello")
        await telegram.until(lambda: action.update.deliveries == 1 and clock.sleeping())
        info = await bot.get_webhook_info()
        assert (info.last_error_message or "").startswith("Connection failed: ")
        await bot.delete_webhook()
        await clock.advance(1)
        (update,) = await bot.get_updates(timeout=5)
        assert update.update_id == action.update.id


async def test_polling_and_a_webhook_exclude_each_other() -> None:
    async with receiver() as hook, telegram_and_bot() as (telegram, bot):
        async with asyncio.TaskGroup() as group:
            polling = group.create_task(_conflict(bot.get_updates(timeout=30)))
            await telegram.until(lambda: telegram.is_polled)
            await bot.set_webhook(hook.url)
            assert "terminated by setWebhook request" in await polling
        conflict = await _conflict(bot.get_updates(timeout=30))
        assert "can't use getUpdates method while webhook is active" in conflict
        await bot.set_webhook("")
        assert await bot.get_updates(timeout=0) == ()
        assert (await bot.get_webhook_info()).url == ""


async def _conflict(polling: object) -> str:
    with pytest.raises(Conflict) as raised:
        await polling  # pyright: ignore[reportGeneralTypeIssues]  # any call
    return str(raised.value)


async def test_pending_updates_can_be_dropped() -> None:
    async with telegram_and_bot() as (telegram, bot):
        action = telegram.person("Ann").says("hello")
        await bot.delete_webhook(drop_pending_updates=True)
        assert action.update.confirmed
        assert await bot.get_updates(timeout=0) == ()


@pytest.mark.parametrize("url", ["ftp://example.com/hook", "http:///hook", "hook"])
async def test_a_webhook_needs_an_address(url: str) -> None:
    async with telegram_and_bot() as (_, bot):
        with pytest.raises(BadRequest, match="Bad webhook"):
            await bot.set_webhook(url)


async def test_a_secret_has_few_characters() -> None:
    async with telegram_and_bot() as (_, bot):
        with pytest.raises(BadRequest, match="unallowed characters"):
            await bot.set_webhook("http://127.0.0.1/hook", secret_token="sécret")
