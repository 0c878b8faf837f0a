"""The adapter receives everything from our own Bot API server, in order, once it is stored."""

import asyncio

import pytest

from channels._remote.cards import button_data
from channels.telegram.adapter import TelegramChannel
from channels.telegram.emulator import Refuse, TooMany
from channels.telegram.emulator.account import Toast
from tests.contract.channel_suite import Desk, receiving
from tests.contract.channel_words import CARD, FIRST
from tests.contract.telegram_harness import telegram_context
from tests.unit.channels.telegram.stage import Stage, stage
from zeroclaw import (
    Admission,
    Answered,
    ChannelUnauthorized,
    ChannelUnavailable,
    Envelope,
    Pressed,
    Said,
    ZeroclawError,
)
from zeroclaw.value import replace

# All open real sockets.
pytestmark = pytest.mark.slow


async def error_of_receiving(on: Stage, desk: Desk) -> ZeroclawError:
    """Receive until it ends by itself; return its error."""
    with pytest.raises(ExceptionGroup) as caught:
        await on.channel.receive(desk.admit, lambda: None)
    (error,) = caught.value.exceptions
    assert isinstance(error, ZeroclawError)
    return error


# --- inward --------------------------------------------------------------------------------------


async def test_messages_sent_while_the_bot_was_away_arrive_in_order() -> None:
    """A start drops no message, and chats do not wait for each other. S2-02."""
    desk = Desk()
    async with stage() as on:
        bob = on.telegram.person("Bob")
        actions = [on.ann.says("one"), bob.says("two"), on.ann.says("three")]
        async with receiving(on.channel, desk.admit):
            await on.telegram.confirmed(*actions)
    by_ann = [envelope.body for envelope in desk.stored if envelope.sender.display == "Ann"]
    assert by_ann == [Said(text="one"), Said(text="three")]
    assert len(desk.stored) == 3


async def test_only_stored_updates_are_confirmed() -> None:
    """If a message can't be stored, later ones of its chat wait, and other chats' are stored
    (P1)."""
    desk = Desk()
    async with stage() as on:
        bob = on.telegram.person("Bob")
        actions = [bob.says("zero"), on.ann.says("one"), on.ann.says("two"), bob.says("three")]
        is_away = asyncio.Event()

        async def admit(envelope: Envelope) -> Admission:
            if envelope.body == Said(text="one") and not is_away.is_set():
                is_away.set()
                raise ChannelUnavailable("the store is away")
            return await desk.admit(envelope)

        async with receiving(on.channel, admit):
            await is_away.wait()
            await on.clock.advance(1.0)
            await on.telegram.confirmed(*actions)
    bodies = [envelope.body for envelope in desk.stored]
    assert sorted(bodies, key=str) == sorted(
        (Said(text=t) for t in ("zero", "one", "two", "three")), key=str
    )
    assert bodies.index(Said(text="one")) < bodies.index(Said(text="two"))


async def test_unsupported_updates_are_confirmed_and_skipped() -> None:
    desk = Desk()
    async with stage() as on:
        reaction = on.telegram.happen("message_reaction", {"odd": [1]})
        async with receiving(on.channel, desk.admit):
            await on.telegram.confirmed(on.ann.says("hello"))
        assert (
            reaction.update.confirmed or reaction.update not in on.telegram.account.updates.waiting
        )
    assert [envelope.body for envelope in desk.stored] == [Said(text="hello")]


async def test_a_second_poller_is_reported() -> None:
    async with stage() as on:
        conflict = "Conflict: terminated by other getUpdates request"
        on.telegram.will("getUpdates", Refuse(code=409, description=conflict))
        error = await error_of_receiving(on, Desk())
    assert isinstance(error, ChannelUnavailable)
    assert "another program receives with the same token" in str(error)


async def test_a_refused_token_needs_the_operator_and_is_not_shown() -> None:
    async with stage() as on:
        on.telegram.revoke_token()
        with pytest.raises(ChannelUnauthorized) as caught:
            await on.channel.receive(Desk().admit, lambda: None)
        assert on.telegram.token not in str(caught.value)


@pytest.mark.parametrize("token", ["", "abc", "abc:def", "123"])
async def test_an_invalid_token_is_reported_before_any_call(token: str) -> None:
    async with stage() as on:
        context = replace(telegram_context(on.telegram, on.clock), secrets={"token": token})
        with pytest.raises(ChannelUnauthorized, match="BotFather"):
            TelegramChannel(context)


async def test_a_set_webhook_is_removed_and_waiting_updates_are_kept() -> None:
    """The configuration says that updates are fetched; a set webhook would make every poll fail."""
    desk = Desk()
    async with stage() as on:
        on.telegram.hold()
        action = on.telegram.person("Ann").says("hello")
        await _set_webhook(on)
        async with receiving(on.channel, desk.admit):
            on.telegram.release()
            await on.telegram.confirmed(action)
    assert [envelope.body for envelope in desk.stored] == [Said(text="hello")]


async def _set_webhook(on: Stage) -> None:
    from telegram import Bot

    bot = Bot(on.telegram.token, base_url=on.telegram.base_url)
    async with bot:
        await bot.set_webhook("https://example.org/hook")


async def test_a_poll_that_is_too_early_is_repeated_after_its_wait() -> None:
    desk = Desk()
    async with stage() as on:
        on.telegram.will("getUpdates", TooMany(retry_after_s=7))
        action = on.ann.says("hello")
        async with receiving(on.channel, desk.admit):
            await on.telegram.until(lambda: on.telegram.called("getUpdates"))
            await on.clock.advance(6.9)
            assert desk.stored == []
            await on.clock.advance(0.2)
            await on.telegram.confirmed(action)
    assert len(desk.stored) == 1


async def test_a_server_that_goes_away_ends_receiving() -> None:
    """The supervisor restarts it; a dead poller never looks like a waiting one."""
    async with stage() as on, asyncio.TaskGroup() as group:
        task = group.create_task(error_of_receiving(on, Desk()))
        await on.telegram.until(lambda: on.telegram.is_polled)
        await on.telegram.down()
        assert isinstance(await task, ChannelUnavailable)


# --- presses -------------------------------------------------------------------------------------


async def test_the_person_who_presses_gets_the_outcome() -> None:
    """A toast for that person alone; a stranger's press is answered without a text (P4)."""
    async with stage() as on:
        answers: list[Admission] = [Answered(text="only an operator may answer this")]

        async def admit(_envelope: Envelope) -> Admission:
            return answers[0]

        async with receiving(on.channel, admit):
            ref = await on.channel.ask(on.to_ann, CARD)
            card = on.telegram.message(on.ann.chat, int(ref.message))
            pressed = on.ann.presses(card, "1 ✓ once")
            toast = await on.telegram.until(lambda: on.ann.toast(pressed))
            assert toast == Toast(text="only an operator may answer this")
            foreign = on.ann.presses(card, data="buy")
            toast = await on.telegram.until(lambda: on.ann.toast(foreign))
            assert toast == Toast()
    assert len(on.ann.chat.from_bot) == 1


async def test_a_reason_is_asked_for_and_its_outcome_shown() -> None:
    """The question is a forced reply to the card; the reply carries call and card (P5)."""
    desk: list[Pressed] = []
    async with stage() as on:

        async def admit(envelope: Envelope) -> Admission:
            assert isinstance(envelope.body, Pressed)
            desk.append(envelope.body)
            if envelope.body.reason:
                return Answered(text="denied: `shell`")
            return Answered(text="why is `shell` denied?", reply_wanted=True)

        async with receiving(on.channel, admit):
            ref = await on.channel.ask(on.to_ann, CARD)
            card = on.telegram.message(on.ann.chat, int(ref.message))
            on.ann.presses(card, data=button_data(FIRST, "deny_with_reason"))
            question = await on.telegram.until(
                lambda: [message for message in on.ann.chat.from_bot if message.asks_for_reply]
            )
            assert question[0].text == "why is shell denied?"
            on.ann.says("too early", reply_to=question[0])
            await on.telegram.until(lambda: "denied: shell" in on.ann.chat.texts)
    assert desk[-1] == Pressed(approval=FIRST, choice="deny", reason="too early", card=ref)


async def test_in_a_group_the_person_who_pressed_is_asked_for_the_reason() -> None:
    """Telegram opens a reply for no one else, and only for people who are mentioned."""
    bodies: list[object] = []
    async with stage() as on:
        olga = on.telegram.person("Olga")
        team = on.telegram.supergroup("Team", on.ann, olga)

        async def admit(envelope: Envelope) -> Admission:
            bodies.append(envelope.body)
            return Answered(text="why is `shell` denied?", reply_wanted=True)

        async with receiving(on.channel, admit):
            ref = await on.channel.ask(on.address(team.id), CARD)
            card = on.telegram.message(team, int(ref.message))
            olga.presses(card, data=button_data(FIRST, "deny_with_reason"))
            question = await on.telegram.until(
                lambda: [message for message in team.from_bot if message.asks_for_reply]
            )
            assert question[0].text == "Olga: why is shell denied?"
            await on.telegram.confirmed(olga.says("too early", chat=team, reply_to=question[0]))
    assert bodies[-1] == Pressed(approval=FIRST, choice="deny", reason="too early", card=ref)
