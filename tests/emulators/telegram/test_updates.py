"""Updates reach the bot by long polls, until they are confirmed."""

import asyncio
from datetime import timedelta

import pytest
from telegram import Update
from telegram.error import Conflict, InvalidToken, NetworkError

from channels.telegram.emulator import Emulator
from tests.emulators.telegram.bots import bot_of, call, telegram_and_bot
from tests.fakes.manual_clock import ManualClock


def texts(updates: tuple[Update, ...]) -> list[str | None]:
    return [update.effective_message.text for update in updates if update.effective_message]


async def test_an_update_comes_again_until_it_is_confirmed() -> None:
    """Only a higher offset confirms; asking again without one brings the same. S2-02."""
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        first, second = ann.says("one"), ann.says("two")
        assert texts(await bot.get_updates(timeout=5)) == ["one", "two"]
        assert texts(await bot.get_updates(timeout=5)) == ["one", "two"]
        assert texts(await bot.get_updates(offset=second.update.id, timeout=5)) == ["two"]
        assert (first.update.confirmed, second.update.confirmed) == (True, False)
        assert (first.update.deliveries, second.update.deliveries) == (2, 3)


async def test_a_negative_offset_forgets_all_but_the_last() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        actions = [ann.says(text) for text in ("one", "two", "three")]
        assert texts(await bot.get_updates(offset=-2, timeout=5)) == ["two", "three"]
        assert [action.update.confirmed for action in actions] == [True, False, False]
        assert texts(await bot.get_updates(offset=-9, timeout=5)) == ["two", "three"]


async def test_a_limit_brings_the_oldest() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        ann.pastes("word " * 1700)
        assert len(await bot.get_updates(limit=2, timeout=5)) == 2


async def test_a_poll_waits_for_an_update() -> None:
    """A long poll waits until a person writes, without time passing."""
    async with telegram_and_bot() as (telegram, bot), asyncio.TaskGroup() as group:
        ann = telegram.person("Ann")
        polling = group.create_task(bot.get_updates(timeout=30))
        await telegram.until(lambda: telegram.is_polled)
        ann.says("hello")
        assert texts(await polling) == ["hello"]


async def test_a_poll_ends_empty_when_its_time_is_over() -> None:
    clock = ManualClock()
    async with telegram_and_bot(clock=clock) as (telegram, bot), asyncio.TaskGroup() as group:
        polling = group.create_task(bot.get_updates(timeout=30))
        await telegram.until(lambda: telegram.is_polled)
        await clock.advance(30)
        assert await polling == ()


async def test_a_second_poller_ends_the_first() -> None:
    """The older poll gets the conflict, as on Telegram; the newer one goes on."""
    async with (
        telegram_and_bot() as (telegram, bot),
        bot_of(telegram) as other,
        asyncio.TaskGroup() as group,
    ):
        older = group.create_task(_conflict_of(bot))
        await telegram.until(lambda: telegram.is_polled)
        newer = group.create_task(other.get_updates(timeout=30))
        assert "terminated by other getUpdates request" in await older
        telegram.person("Ann").says("hello")
        assert texts(await newer) == ["hello"]


async def _conflict_of(bot: object) -> str:
    with pytest.raises(Conflict) as raised:
        await bot.get_updates(timeout=30)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  # any bot
    return str(raised.value)


async def test_a_disconnected_poll_takes_no_updates() -> None:
    """Updates after the disconnect wait for the next poll."""
    async with telegram_and_bot() as (telegram, bot), asyncio.TaskGroup() as group:
        polling = group.create_task(bot.get_updates(timeout=30))
        await telegram.until(lambda: telegram.is_polled)
        polling.cancel()
        await telegram.until(lambda: not telegram.is_polled)
        action = telegram.person("Ann").says("hello")
        assert action.update.deliveries == 0
        assert texts(await bot.get_updates(timeout=5)) == ["hello"]


async def test_updates_wait_while_no_bot_is_there_and_while_telegram_is_down() -> None:
    """They are delivered later, in order."""
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        ann.says("one")
        await telegram.down()
        ann.says("two")
        with pytest.raises(NetworkError):
            await bot.get_updates(timeout=0)
        await telegram.up()
        assert texts(await bot.get_updates(timeout=5)) == ["one", "two"]


async def test_updates_are_kept_for_a_day() -> None:
    clock = ManualClock()
    async with telegram_and_bot(clock=clock) as (telegram, bot):
        ann = telegram.person("Ann")
        ann.says("old")
        await clock.advance(12 * 3600)
        ann.says("new")
        await clock.advance(12 * 3600)
        assert texts(await bot.get_updates(timeout=0)) == ["new"]


async def test_held_updates_are_not_delivered() -> None:
    async with telegram_and_bot() as (telegram, bot), asyncio.TaskGroup() as group:
        ann = telegram.person("Ann")
        telegram.hold()
        ann.says("one")
        polling = group.create_task(bot.get_updates(timeout=30))
        await telegram.until(lambda: telegram.is_polled)
        ann.says("two")
        telegram.release()
        assert texts(await polling) == ["one", "two"]


async def test_an_update_is_delivered_again_as_itself_and_under_a_new_id() -> None:
    """A repeat that the bot confirmed before, and the same message as another update. S2-02."""
    async with telegram_and_bot() as (telegram, bot):
        action = telegram.person("Ann").says("hello")
        (first,) = await bot.get_updates(timeout=5)
        assert await bot.get_updates(offset=first.update_id + 1, timeout=0) == ()
        telegram.redeliver(action)
        telegram.redeliver(action)
        telegram.redeliver(action, as_new=True)
        same, other = await bot.get_updates(timeout=5)
        assert (same.update_id, other.update_id) == (first.update_id, first.update_id + 1)
        assert same.message == other.message
        await bot.get_updates(offset=other.update_id + 1, timeout=0)
        await telegram.confirmed(action)


async def test_an_edit_comes_as_an_edited_message() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        message = ann.says("helo").sent
        ann.edits(message, "hello")
        ann.deletes(message)
        _, update = await bot.get_updates(timeout=5)
        assert update.edited_message is not None
        assert (update.edited_message.text, update.edited_message.message_id) == (
            "hello",
            message.id,
        )
        assert update.edited_message.edit_date is not None
        assert message.deleted


async def test_a_long_paste_comes_in_pieces() -> None:
    """Apps split at 4096 UTF-16 units, between words if possible."""
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        ann.pastes("😀" * 3000)
        ann.pastes("word " * 1000)
        ann.pastes("x" * 3900 + "\n\n" + "y. " * 300)
        updates = await bot.get_updates(timeout=5)
        lengths = [len(update.message.text or "") for update in updates if update.message]
        assert lengths == [2048, 952, 4094, 904, 3900, 899]


async def test_backdated_messages_have_the_time_of_writing() -> None:
    async with telegram_and_bot() as (telegram, bot):
        telegram.ago = timedelta(hours=2)
        telegram.person("Ann").says("early")
        [update] = await bot.get_updates(timeout=5)
        assert update.message is not None
        assert telegram.now().wall - update.message.date >= timedelta(hours=2)


async def test_a_wrong_token_is_unauthorized() -> None:
    """401, also for a token that was valid until now."""
    async with telegram_and_bot() as (telegram, bot):
        telegram.revoke_token()
        with pytest.raises(InvalidToken):
            await bot.get_updates(timeout=0)
        with pytest.raises(InvalidToken):
            await bot.send_message(1, "hello")


async def test_a_list_of_kinds_must_be_one() -> None:
    async with Emulator(clock=ManualClock()) as telegram:
        answer = await call(telegram, "getUpdates", allowed_updates="message")
        assert (answer.code, "allowed updates" in answer.description) == (400, True)


async def test_an_emulator_that_is_not_open_can_be_left() -> None:
    """Leaving twice, or while it is down, does nothing."""
    async with Emulator(clock=ManualClock()) as telegram:
        await telegram.down()
        await telegram.down()
