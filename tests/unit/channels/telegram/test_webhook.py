"""Telegram's posts: authentication, order and answers; and the webhook's address."""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from channels._remote.fields import Json
from channels._remote.settings import is_public
from channels.telegram import TelegramSettings
from channels.telegram.account import Account
from channels.telegram.adapter import TelegramChannel
from channels.telegram.emulator import Emulator, Refuse
from channels.telegram.lookup import MessageIds
from channels.telegram.updates import Intake
from channels.telegram.webhook import (
    CHECK_INTERVAL_S,
    FIRST_CHECK_S,
    Webhook,
    check,
    deliveries,
    secret,
)
from tests.contract.channel_suite import Desk, receiving
from tests.contract.telegram_harness import SETTINGS, telegram_context
from tests.contract.telegram_webhook_harness import called_context, public_listener
from tests.fakes.bare_context import NoMount
from tests.fakes.house_parts import Facts
from tests.fakes.manual_clock import ManualClock
from tests.unit.channels.telegram.updates import BOB, GROUP, ME, message, new
from zeroclaw import ChannelUnavailable, Hook, HookAnswer, Said, SecretReference

URL = "https://bot.example.org/telegram"
TOKEN = "42:token"
HEADER = "x-telegram-bot-api-secret-token"
AGAIN = HookAnswer(status=503, retry_after_s=1)


class Post:
    """One request; `is_read` is true once its body was read."""

    def __init__(self, body: bytes, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self._body = body
        self.is_read = False

    async def body(self, max_bytes: int = 0) -> bytes:
        self.is_read = True
        return self._body


def info(url: str, waiting: int = 0, failed: tuple[datetime, str] | None = None) -> Json:
    """A WebhookInfo."""
    webhook_info: dict[str, object] = {"url": url, "pending_update_count": waiting}
    if failed is not None:
        webhook_info |= {
            "last_error_date": int(failed[0].timestamp()),
            "last_error_message": failed[1],
        }
    return webhook_info


class Telegram(Account):
    """Reports scripted webhook states, and records the calls."""

    def __init__(self) -> None:
        super().__init__("telegram", SETTINGS, {"token": TOKEN})
        self.url = ""
        self.waiting = 0
        self.failed: tuple[datetime, str] | None = None
        self.set: list[tuple[str, str]] = []
        self.faults = 0
        self.looks = 0

    async def webhook(self) -> Json:
        self.looks += 1
        if self.faults:
            self.faults -= 1
            raise ChannelUnavailable("Telegram can't be reached")
        return info(self.url, self.waiting, self.failed)

    async def set_webhook(self, url: str, *, secret: str) -> None:
        self.url = url
        self.set.append((url, secret))


class Rig(NoMount):
    """Everything that a webhook needs."""

    def __init__(self) -> None:
        self.desk = Desk()
        self.clock = ManualClock()
        self.log = Facts()
        self.telegram = Telegram()
        self.mounted: dict[str, Hook] = {}
        self.ready = asyncio.Event()
        self.intake = Intake(
            admit=self.desk.admit,
            respond=lambda event, admission: None,
            bot=ME,
            ids=MessageIds({}),
            log=self.log,
        )
        self.webhook = Webhook(
            self.telegram, URL, take=self.intake.take, clock=self.clock, log=self.log
        )
        self.secret = secret(TOKEN, URL, self.clock.now())

    def public(self, path: str, hook: Hook) -> AbstractContextManager[None]:
        assert self.telegram.set == [], "somebody is there before Telegram is told"
        self.mounted[path] = hook
        return nullcontext()

    def post(self, update: object = None, *, body: bytes = b"", shown: str | None = None) -> Post:
        sent_secret = self.secret if shown is None else shown
        headers = {HEADER: sent_secret} if sent_secret else {}
        return Post(body or json.dumps(update).encode(), headers)

    async def posts(self, update: object) -> HookAnswer:
        return await self.webhook.answer(self.post(update))

    async def run(self) -> None:
        await self.webhook.run(self, self.ready.set)


@pytest.fixture
def rig() -> Rig:
    return Rig()


def numbered(number: int, **fields: object) -> dict[str, object]:
    return {**new(message_id=number, **fields), "update_id": number}


# --- inward --------------------------------------------------------------------------------------


async def test_an_update_is_confirmed_once_it_is_stored(rig: Rig) -> None:
    """200 means that it is stored; until then there is no answer (P1, S2-01)."""
    rig.desk.hold()
    async with asyncio.TaskGroup() as group:
        answer = group.create_task(rig.posts(numbered(5, text="a")))
        await rig.desk.came.wait()
        await rig.clock.settle()
        assert not answer.done()
        rig.desk.release()
    assert answer.result() == HookAnswer()
    assert [envelope.body for envelope in rig.desk.stored] == [Said(text="a")]


async def test_a_repeated_update_gets_the_same_answer_and_is_stored_once(rig: Rig) -> None:
    for _ in range(2):
        assert await rig.posts(numbered(5, text="a")) == HookAnswer()
    assert len(rig.desk.stored) == 1


async def test_an_update_that_could_not_be_stored_is_retried_soon(rig: Rig) -> None:
    """Telegram obeys the given wait; by itself it would wait ever longer (P1)."""
    rig.desk.fault = ChannelUnavailable("the store is away")
    assert await rig.posts(numbered(5, text="a")) == AGAIN
    rig.desk.fault = None
    assert await rig.posts(numbered(5, text="a")) == HookAnswer()
    assert len(rig.desk.stored) == 1


async def test_updates_of_a_chat_keep_their_order_after_a_failure(rig: Rig) -> None:
    """Even if they arrive at once; other chats go on meanwhile (P2)."""
    rig.desk.hold()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(rig.posts(numbered(5, text="a")))
        second = group.create_task(rig.posts(numbered(6, text="b")))
        other = group.create_task(rig.posts(numbered(7, text="c", chat=GROUP, **{"from": BOB})))
        await rig.clock.settle()
        assert len(rig.desk.arrived) <= 2
        rig.desk.fault = ChannelUnavailable("the store is away")
        rig.desk.release()
    assert (first.result(), second.result()) == (AGAIN, AGAIN)
    assert Said(text="b") not in [envelope.body for envelope in rig.desk.arrived]
    assert other.result() in {AGAIN, HookAnswer()}
    rig.desk.fault = None
    for number, text in ((5, "a"), (6, "b")):
        assert await rig.posts(numbered(number, text=text)) == HookAnswer()
    assert [envelope.body for envelope in rig.desk.stored][-2:] == [Said(text="a"), Said(text="b")]


async def test_no_update_passes_one_that_was_given_up(rig: Rig) -> None:
    """The listener ends a hook that takes too long; updates behind it are posted again, too
    (P2)."""
    rig.desk.hold()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(rig.posts(numbered(5, text="a")))
        await rig.desk.came.wait()
        second = group.create_task(rig.posts(numbered(6, text="b")))
        await rig.clock.settle()
        first.cancel()
        await rig.clock.settle()
        rig.desk.release()
    assert second.result() == AGAIN
    assert Said(text="b") not in [envelope.body for envelope in rig.desk.arrived]


@pytest.mark.parametrize("body", [b"", b"no json", b"[" * 100_000, b"[]", b'"x"', b"\xff"])
async def test_an_invalid_update_is_skipped_as_when_polling(body: bytes, rig: Rig) -> None:
    """A refused update would be posted again for a day, and block its chat."""
    assert await rig.webhook.answer(rig.post(body=body or b" ")) == HookAnswer()
    assert rig.log.events().count("update_skipped") == 1


@pytest.mark.parametrize("shown", ["", "guess", "ümlaut", "x" * 10_000])
async def test_a_post_without_the_secret_is_refused(shown: str, rig: Rig) -> None:
    """The body is not even read; only a counter remains (P4)."""
    post = rig.post(numbered(5, text="secret words"), shown=shown)
    assert await rig.webhook.answer(post) == HookAnswer(status=401)
    assert not post.is_read
    assert sum(rig.webhook.refused.values()) == 1
    assert rig.desk.arrived == []
    assert "words" not in repr(rig.log.seen)


async def test_a_flood_of_strangers_does_not_fill_the_log(rig: Rig) -> None:
    for _ in range(9):
        await rig.webhook.answer(rig.post({}, shown="guess"))
    assert [fields["count"] for _, fields in rig.log.seen] == [1, 2, 4, 8]
    assert "guess" not in repr(rig.log.seen)


def test_the_secret_differs_for_each_bot_address_and_start() -> None:
    """Telegram uses a newly set webhook at once; the secret reveals nothing of the token (P8)."""
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    secrets = {secret(token, url, at) for token in "ab" for url in "cd" for at in (early, late)}
    assert len(secrets) == 8
    assert {len(value) for value in secrets} == {64}
    assert all(value.isalnum() for value in secrets)


# --- the watch -----------------------------------------------------------------------------------


async def watching(rig: Rig, before_check: Callable[[int], None], checks: int) -> None:
    """Run `checks` checks after the start; `before_check` is called before each."""
    async with asyncio.TaskGroup() as group:
        running = group.create_task(rig.run())
        await rig.ready.wait()
        for number in range(checks):
            before_check(number)
            await rig.clock.advance(CHECK_INTERVAL_S if number else FIRST_CHECK_S)
        running.cancel()


async def test_the_webhook_is_set_and_checked_regularly(rig: Rig) -> None:
    await watching(rig, lambda _: None, checks=2)
    assert list(rig.mounted) == ["/telegram"]
    assert rig.telegram.set == [(URL, rig.secret)]
    assert rig.telegram.looks == 3
    assert rig.log.seen == []


async def test_a_moved_webhook_is_set_again_and_logged(rig: Rig) -> None:
    """Its path may be another bot's secret, so only the host is logged."""

    def before_check(number: int) -> None:
        if number == 0:
            rig.telegram.url = "https://elsewhere.example.org/secret"
        if number == 2:
            rig.telegram.url = ""

    await watching(rig, before_check, checks=4)
    assert rig.telegram.set == [(URL, rig.secret)] * 3
    hosts = [fields["it_went"] for event, fields in rig.log.seen if event == "webhook_set_again"]
    assert hosts == ["elsewhere.example.org", "nowhere"]


async def test_a_webhook_that_is_moved_repeatedly_is_reported(rig: Rig) -> None:
    """Like a second poller: the channel is not up, and the text says what to do (P10)."""

    def before_check(_: int) -> None:
        rig.telegram.url = "https://elsewhere.example.org/"

    with pytest.raises(ExceptionGroup) as caught:
        await watching(rig, before_check, checks=2)
    (error,) = caught.value.exceptions
    assert isinstance(error, ChannelUnavailable)
    assert "another program sets or removes the webhook of the same token" in str(error)


async def test_failed_calls_are_logged_once_each_and_repaired_if_possible(rig: Rig) -> None:

    def before_check(number: int) -> None:
        if number == 0:
            rig.telegram.failed = (datetime(2026, 1, 1, tzinfo=UTC), "Connection refused")
            rig.telegram.waiting = 3
        if number == 2:
            rig.telegram.failed = (datetime(2026, 1, 2, tzinfo=UTC), "502 Bad Gateway")
            rig.telegram.waiting = 0

    await watching(rig, before_check, checks=4)
    assert rig.log.seen == [
        ("webhook_not_delivered", {"reason": "Connection refused", "waiting": 3, "level": "error"}),
        ("webhook_not_delivered", {"reason": "502 Bad Gateway", "waiting": 0, "level": "info"}),
    ]
    assert len(rig.telegram.set) == 2


async def test_failures_from_before_the_start_are_not_logged(rig: Rig) -> None:
    rig.telegram.failed = (datetime(2026, 1, 1, tzinfo=UTC), "Connection refused")
    await watching(rig, lambda _: None, checks=2)
    assert rig.log.seen == []


async def test_three_failed_checks_in_a_row_end_receiving(rig: Rig) -> None:
    """Updates can arrive while the checks fail."""

    def before_check(number: int) -> None:
        rig.telegram.faults = {0: 2, 3: 3}.get(number, rig.telegram.faults)

    with pytest.raises(ExceptionGroup) as caught:
        await watching(rig, before_check, checks=6)
    assert caught.group_contains(ChannelUnavailable, match="can't be reached")
    assert rig.log.events() == ["webhook_check_failed"] * 4


# --- for `zeroclaw doctor` -----------------------------------------------------------------------


def test_a_check_shows_the_webhook_and_its_failures() -> None:
    called = SETTINGS.model_copy(update={"receive": "webhook", "webhook_url": URL})
    at = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    failing = info(URL, 2, (at, "timed out"))
    assert deliveries(called, failing) == [
        f"Telegram calls {URL}",
        "its last call that failed, at 2026-01-02 03:04 UTC: timed out",
        "updates waiting: 2",
    ]
    assert deliveries(called, info("")) == [f"Telegram calls {URL}, once the daemon starts"]
    assert deliveries(SETTINGS, info(URL)) == [
        "a webhook is set, and is removed when the daemon starts"
    ]
    assert deliveries(SETTINGS, info("")) == []


# --- from Telegram to the adapter -----------------------------------------------------------------

REFERENCE = SecretReference(env="TOKEN")


@pytest.mark.slow
async def test_an_address_that_telegram_refuses_is_reported_and_retried() -> None:
    """One line: the fault, its place, and Telegram's message; a name may resolve later (P10)."""
    bad = "Bad Request: bad webhook: Failed to resolve host: Name or service not known"
    async with public_listener() as listener, Emulator(clock=ManualClock()) as telegram:
        telegram.will("setWebhook", Refuse(code=400, description=bad))
        channel = TelegramChannel(called_context(listener, telegram, ManualClock()))
        with pytest.raises(ExceptionGroup) as caught:
            await channel.receive(Desk().admit, lambda: None)
        await channel.aclose()
    (error,) = caught.value.exceptions
    assert isinstance(error, ChannelUnavailable)
    assert "Telegram does not call `webhook_url`, `http://127.0.0.1" in str(error)
    assert "failed to resolve host" in str(error)


@pytest.mark.slow
async def test_from_polling_to_webhook_and_back_no_update_is_lost() -> None:
    desk = Desk()
    async with public_listener() as listener, Emulator(clock=ManualClock()) as telegram:
        ann, clock = telegram.person("Ann"), ManualClock()
        contexts = (
            telegram_context(telegram, clock),
            called_context(listener, telegram, clock),
            telegram_context(telegram, clock),
        )
        for number, context in enumerate(contexts):
            telegram.hold()
            away = ann.says(f"away {number}")
            async with receiving(TelegramChannel(context), desk.admit):
                telegram.release()
                await telegram.confirmed(away, ann.says(f"here {number}"))
    texts = [envelope.body.text for envelope in desk.stored if isinstance(envelope.body, Said)]
    assert texts == ["away 0", "here 0", "away 1", "here 1", "away 2", "here 2"]


@pytest.mark.slow
async def test_the_largest_update_is_stored() -> None:
    """Anybody in a group can reply to such a message, and Telegram would wait for a day (P4, P9)."""
    desk = Desk()
    styled = [{"type": kind, "text": "ж"} for kind in ("bold", "italic")] * (32_768 // 2)
    rich: Json = {"blocks": [{"type": "paragraph", "text": styled}]}
    async with public_listener() as listener, Emulator(clock=ManualClock()) as telegram:
        ann, context = telegram.person("Ann"), called_context(listener, telegram, ManualClock())
        async with receiving(TelegramChannel(context), desk.admit):
            answered = message(message_id=8, rich_message=rich)
            long = message(message_id=9, rich_message=rich, reply_to_message=answered)
            large = telegram.happen("message", long)
            await telegram.confirmed(large, ann.says("after"))
    assert [type(envelope.body) for envelope in desk.stored] == [Said, Said]


@pytest.mark.slow
async def test_a_check_names_the_webhooks_address() -> None:
    async with Emulator(clock=ManualClock()) as telegram:
        changes = {"api_base_url": telegram.url, "receive": "webhook", "webhook_url": URL}
        line = await check(SETTINGS.model_copy(update=changes), {"token": telegram.token})
    assert line.endswith(f"; Telegram calls {URL}, once the daemon starts")


# --- settings ------------------------------------------------------------------------------------


def called_at(url: str, **extra: str) -> TelegramSettings:
    settings = {"token": REFERENCE, "receive": "webhook", "webhook_url": url, **extra}
    return TelegramSettings.model_validate(settings)


@pytest.mark.parametrize(
    "url",
    [
        URL,
        "https://bot.example.org:8443/a/b-c_d.e~f",
        "https://8.8.8.8:443/telegram",
        "https://bot.example.org:88/t",
    ],
)
def test_an_address_that_telegram_can_call_is_accepted(url: str) -> None:
    settings = called_at(url)
    assert settings.webhook_url == url
    assert is_public(settings)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "needs the key `webhook_url`"),
        ("bot.example.org", "an address with a path"),
        ("https://bot.example.org", "an address with a path"),
        ("https://bot.example.org/", "an address with a path"),
        ("https://bot.example.org/a?b=c", "an address with a path"),
        ("https://me:secret@bot.example.org/a", "an address with a path"),
        ("https://bot.example.org/ä", "an address with a path"),
        ("http://bot.example.org/a", "needs https"),
        ("ftp://bot.example.org/a", "needs https"),
        ("http://127.0.0.1/a", "needs https"),
        ("https://192.168.1.5/a", "can't reach `192.168.1.5`"),
        ("https://bot.lan/a", "can't reach `bot.lan`"),
        ("https://bot.example.org:8420/a", "443, 80, 88 and 8443, not 8420"),
    ],
)
def test_an_address_that_telegram_can_not_call_is_a_fault(url: str, reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        called_at(url)


def test_an_own_server_may_call_in_a_private_network() -> None:
    """Any port, and plain HTTP in a private network (P8)."""
    own_server = {"api_base_url": "http://127.0.0.1:8081"}
    assert called_at("http://127.0.0.1:8420/a", **own_server).webhook_url
    assert called_at("https://bot.lan:8420/a", **own_server).webhook_url
    with pytest.raises(ValidationError, match="needs https"):
        called_at("http://bot.example.org/a", **own_server)


def test_polling_needs_no_public_listener() -> None:
    assert not is_public(SETTINGS)
    settings = TelegramSettings(token=REFERENCE, receive="polling", webhook_url=URL)
    assert not is_public(settings)


def test_an_unused_address_is_a_fault() -> None:
    """An operator who forgets `receive` would wait for calls that Telegram does not make (P10)."""
    with pytest.raises(ValidationError, match='is used with receive = "webhook" only'):
        TelegramSettings(token=REFERENCE, webhook_url=URL)
