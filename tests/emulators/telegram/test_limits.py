"""The emulator lets a bot call as often as Telegram does, and native drafts are as short-lived."""

import pytest
from telegram import InputMediaPhoto
from telegram.error import BadRequest, EndPointNotFound, RetryAfter

from channels.telegram.emulator import Limits, Rate
from tests.emulators.telegram.bots import telegram_and_bot
from tests.fakes.manual_clock import ManualClock

ONE_A_SECOND = Limits(chat=Rate(per_s=1, burst=1))


async def test_a_chat_takes_one_message_a_second_and_says_how_long_to_wait() -> None:
    """A call before `retry_after` has passed is refused again; after it one passes."""
    clock = ManualClock()
    async with telegram_and_bot(limits=ONE_A_SECOND, clock=clock) as (telegram, bot):
        ann, bob = telegram.person("Ann"), telegram.person("Bob")
        await bot.send_message(ann.id, "one")
        with pytest.raises(RetryAfter) as raised:
            await bot.send_message(ann.id, "two")
        assert str(raised.value).endswith("Retry in 1 seconds")
        await bot.send_message(bob.id, "one")
        await clock.advance(0.5)
        with pytest.raises(RetryAfter):
            await bot.send_message(ann.id, "two")
        await clock.advance(0.5)
        await bot.send_message(ann.id, "two")
        assert ann.chat.texts == ["one", "two"]
        assert telegram.exceeded == 2


async def test_edits_count_like_messages_unless_switched_off() -> None:
    async with telegram_and_bot(limits=ONE_A_SECOND) as (telegram, bot):
        ann = telegram.person("Ann")
        await bot.send_message(ann.id, "one")
        with pytest.raises(RetryAfter):
            await bot.edit_message_text("two", ann.id, 1)
    sends_only = Limits(chat=Rate(per_s=1, burst=1), edits=False)
    async with telegram_and_bot(limits=sends_only) as (telegram, bot):
        ann = telegram.person("Ann")
        await bot.send_message(ann.id, "one")
        await bot.edit_message_text("two", ann.id, 1)


async def test_a_group_takes_20_messages_a_minute() -> None:
    """In addition to the limit of each chat."""
    clock = ManualClock()
    limits = Limits(chat=Rate(per_s=100, burst=100), account=Rate(per_s=100, burst=100))
    async with telegram_and_bot(limits=limits, clock=clock) as (telegram, bot):
        room, ann = telegram.group("Room"), telegram.person("Ann")
        for number in range(20):
            await bot.send_message(room.id, str(number))
        with pytest.raises(RetryAfter):
            await bot.send_message(room.id, "20")
        for number in range(21):
            await bot.send_message(ann.id, str(number))
        await clock.advance(3)
        await bot.send_message(room.id, "20")


async def test_the_account_takes_30_messages_a_second() -> None:
    async with telegram_and_bot(limits=Limits()) as (telegram, bot):
        people = [telegram.person(f"P{number}") for number in range(31)]
        for person in people[:30]:
            await bot.send_message(person.id, "x")
        with pytest.raises(RetryAfter):
            await bot.send_message(people[30].id, "x")


async def test_an_album_counts_its_pictures() -> None:
    limits = Limits(chat=Rate(per_s=1, burst=3))
    async with telegram_and_bot(limits=limits) as (telegram, bot):
        ann = telegram.person("Ann")
        await bot.send_media_group(ann.id, [InputMediaPhoto(b"a"), InputMediaPhoto(b"b")])
        with pytest.raises(RetryAfter):
            await bot.send_media_group(ann.id, [InputMediaPhoto(b"c"), InputMediaPhoto(b"d")])


# --- native drafts -------------------------------------------------------------------------------


async def test_a_native_draft_is_seen_for_30_seconds_or_until_a_message_comes() -> None:
    """It has no message id, and takes none."""
    clock = ManualClock()
    async with telegram_and_bot(clock=clock) as (telegram, bot):
        ann = telegram.person("Ann")
        for text in ("one", "one two"):
            await bot.send_message_draft(ann.id, 7, text)
        assert telegram.draft(ann.chat) == "one two"
        assert ann.chat.drafts[0].texts == ("one", "one two")
        await clock.advance(30)
        assert telegram.draft(ann.chat) is None
        await bot.send_message_draft(ann.id, 7, "again")
        await bot.send_message_draft(ann.id, 8, "another")
        assert (await bot.send_message(ann.id, "done")).message_id == 1
        assert telegram.draft(ann.chat) is None
        assert ann.chat.ever == "done\none\none two\nagain\nanother"


async def test_a_native_draft_needs_a_private_chat_and_an_id() -> None:
    async with telegram_and_bot() as (telegram, bot):
        room = telegram.group("Room")
        with pytest.raises(BadRequest, match="Textdraft_peer_invalid"):
            await bot.send_message_draft(room.id, 7, "x")
        with pytest.raises(BadRequest, match="Draft identifier must be non-zero"):
            await bot.send_message_draft(telegram.person("Ann").id, 0, "x")


async def test_a_native_draft_may_be_empty_and_may_count() -> None:
    limits = Limits(chat=Rate(per_s=1, burst=1), drafts=True)
    async with telegram_and_bot(limits=limits) as (telegram, bot):
        ann = telegram.person("Ann")
        await bot.do_api_request("sendRichMessageDraft", _rich(ann.id, draft_id=1))
        with pytest.raises(RetryAfter):
            await bot.send_message_draft(ann.id, 7, "")
    async with telegram_and_bot(limits=ONE_A_SECOND) as (telegram, bot):
        ann = telegram.person("Ann")
        for _ in range(3):
            await bot.send_message_draft(ann.id, 7, "")
        assert telegram.draft(ann.chat) == ""


def _rich(chat_id: int, **more: object) -> dict[str, object]:
    return {"chat_id": chat_id, "rich_message": {"markdown": "# Title"}, **more}


async def test_a_server_may_be_older_than_drafts() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        telegram.without("sendRichMessage", "sendMessageDraft")
        with pytest.raises(EndPointNotFound):
            await bot.do_api_request("sendRichMessage", _rich(ann.id))
        with pytest.raises(EndPointNotFound):
            await bot.do_api_request("sendRichMessageDraft2", _rich(ann.id))
