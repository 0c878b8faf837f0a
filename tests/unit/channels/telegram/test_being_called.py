"""What the adapter receives when Telegram calls it: all of it, in order, once stored."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from pydantic import ValidationError

from channels.telegram import TelegramSettings, is_public
from channels.telegram.adapter import TelegramChannel
from channels.telegram.emulator import Emulator, Refuse
from channels.telegram.emulator.account import Toast
from channels.telegram.webhook import check
from tests.contract.channel_suite import Desk, receiving
from tests.contract.channel_words import CARD
from tests.contract.telegram_harness import SETTINGS, telegram_context
from tests.contract.telegram_webhook_harness import called_context, public_listener
from tests.fakes.manual_clock import ManualClock
from zeroclaw import (
    Address,
    Admission,
    Answered,
    Channel,
    ChannelUnavailable,
    Envelope,
    Said,
    SecretReference,
)
from zeroclaw.host.public_listener import PublicListener

TOKEN = SecretReference(env="TOKEN")
URL = "https://bot.example.org/telegram"


@dataclass(frozen=True, kw_only=True)
class Stage:
    telegram: Emulator
    clock: ManualClock
    listener: PublicListener
    channel: Channel


@asynccontextmanager
async def stage() -> AsyncGenerator[Stage]:
    clock = ManualClock()
    async with public_listener() as listener, Emulator(clock=clock) as telegram:
        channel = TelegramChannel(called_context(listener, telegram, clock))
        try:
            yield Stage(telegram=telegram, clock=clock, listener=listener, channel=channel)
        finally:
            await channel.aclose()


# --- inward --------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_what_arrived_while_it_was_away_comes_in_order() -> None:
    """Nothing is dropped at a start. S2-01, S2-02."""
    desk = Desk()
    async with stage() as on:
        ann, bob = on.telegram.person("Ann"), on.telegram.person("Bob")
        deeds = [ann.says("one"), bob.says("two"), ann.says("three")]
        async with receiving(on.channel, desk.admit):
            await on.telegram.confirmed(*deeds)
    by_ann = [one.body for one in desk.stored if one.sender.display == "Ann"]
    assert by_ann == [Said(text="one"), Said(text="three")]
    assert len(desk.stored) == 3


@pytest.mark.slow
async def test_only_what_was_stored_is_confirmed() -> None:
    """Telegram is told of a failure, and to call again; the chat's later ones wait (P1, P2)."""
    desk = Desk()
    async with stage() as on:
        ann = on.telegram.person("Ann")
        is_away = asyncio.Event()

        async def admit(envelope: Envelope) -> Admission:
            if not is_away.is_set():
                is_away.set()
                message = "the store is away"
                raise ChannelUnavailable(message)
            return await desk.admit(envelope)

        async with receiving(on.channel, admit):
            deeds = [ann.says("one"), ann.says("two")]
            await on.telegram.until(lambda: on.telegram.account.webhook_error)
            assert not deeds[0].update.confirmed
            await on.clock.advance(1.0)
            await on.telegram.confirmed(*deeds)
    assert [one.body for one in desk.stored] == [Said(text="one"), Said(text="two")]


@pytest.mark.slow
async def test_whoever_presses_is_told_what_came_of_it() -> None:
    """As when updates are fetched: what follows an update is the same."""
    async with stage() as on:
        ann = on.telegram.person("Ann")

        async def admit(_envelope: Envelope) -> Admission:
            return Answered(text="only an operator may answer this")

        async with receiving(on.channel, admit):
            account = str(on.telegram.account.me.id)
            here = Address(channel="telegram", account=account, chat=str(ann.id), direct=True)
            ref = await on.channel.ask(here, CARD)
            card = on.telegram.message(ann.chat, int(ref.message))
            pressed = ann.presses(card, "1 ✓ once")
            toast = await on.telegram.until(lambda: ann.toast(pressed))
            assert toast == Toast(text="only an operator may answer this")


@pytest.mark.slow
async def test_an_address_that_telegram_refuses_is_told_and_tried_again() -> None:
    """One line: what is wrong, where, and what Telegram said; a name may be known later (P10)."""
    async with stage() as on:
        bad = "Bad Request: bad webhook: Failed to resolve host: Name or service not known"
        on.telegram.will("setWebhook", Refuse(code=400, description=bad))
        with pytest.raises(ExceptionGroup) as caught:
            await on.channel.receive(Desk().admit, lambda: None)
    (error,) = caught.value.exceptions
    assert isinstance(error, ChannelUnavailable)
    assert "Telegram does not call `webhook_url`, `http://127.0.0.1" in str(error)
    assert "failed to resolve host" in str(error)


@pytest.mark.slow
async def test_from_fetching_to_being_called_and_back_nothing_is_lost() -> None:
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
    said = [one.body.text for one in desk.stored if isinstance(one.body, Said)]
    assert said == ["away 0", "here 0", "away 1", "here 1", "away 2", "here 2"]


@pytest.mark.slow
async def test_a_check_tells_where_telegram_calls() -> None:
    async with Emulator(clock=ManualClock()) as telegram:
        own = {"api_base_url": telegram.url, "receive": "webhook", "webhook_url": URL}
        line = await check(SETTINGS.model_copy(update=own), {"token": telegram.token})
    assert line.endswith(f"; Telegram calls {URL}, once the daemon starts")


# --- settings ------------------------------------------------------------------------------------


def called_at(url: str, **more: str) -> TelegramSettings:
    given = {"token": TOKEN, "receive": "webhook", "webhook_url": url, **more}
    return TelegramSettings.model_validate(given)


@pytest.mark.parametrize(
    "url",
    [
        URL,
        "https://bot.example.org:8443/a/b-c_d.e~f",
        "https://8.8.8.8:443/telegram",
        "https://bot.example.org:88/t",
    ],
)
def test_an_address_that_telegram_can_call_is_taken(url: str) -> None:
    settings = called_at(url)
    assert settings.webhook_url == url
    assert is_public(settings)


@pytest.mark.parametrize(
    ("url", "why"),
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
def test_an_address_that_telegram_can_not_call_is_a_fault(url: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        called_at(url)


def test_a_server_of_ones_own_may_call_in_ones_own_network() -> None:
    """Any port, and plain HTTP where nobody else reads it (P8)."""
    own = {"api_base_url": "http://127.0.0.1:8081"}
    assert called_at("http://127.0.0.1:8420/a", **own).webhook_url
    assert called_at("https://bot.lan:8420/a", **own).webhook_url
    with pytest.raises(ValidationError, match="needs https"):
        called_at("http://bot.example.org/a", **own)


def test_who_fetches_needs_no_public_listener() -> None:
    assert not is_public(SETTINGS)
    kept = TelegramSettings(token=TOKEN, receive="polling", webhook_url=URL)
    assert not is_public(kept)


def test_an_address_that_nothing_would_use_is_a_fault() -> None:
    """Whoever forgets `receive` would wait for calls that nobody asked Telegram for (P10)."""
    with pytest.raises(ValidationError, match='is used with receive = "webhook" only'):
        TelegramSettings(token=TOKEN, webhook_url=URL)
