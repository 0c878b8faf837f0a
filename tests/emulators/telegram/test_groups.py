"""Groups, their topics and their ids."""

import pytest
from telegram.error import BadRequest, ChatMigrated, Forbidden

from tests.emulators.telegram.bots import telegram_and_bot


async def test_private_chats_and_groups_share_one_counter_and_a_supergroup_has_its_own() -> None:
    """So an id above the last one is the newest of all chats, or of one supergroup."""
    async with telegram_and_bot() as (telegram, bot):
        ann, bob = telegram.person("Ann"), telegram.person("Bob")
        room, hall = telegram.group("Room", ann), telegram.supergroup("Hall", ann)
        ids = [(await bot.send_message(id_, "x")).message_id for id_ in (ann.id, bob.id, room.id)]
        ids.append(bob.says("hello").sent.id)
        assert ids == [1, 2, 3, 4]
        assert [(await bot.send_message(hall.id, "x")).message_id for _ in range(2)] == [1, 2]
        telegram.skip_ids(10)
        telegram.skip_ids(5, hall)
        assert (await bot.send_message(ann.id, "x")).message_id == 15
        assert (await bot.send_message(hall.id, "x")).message_id == 8
        assert telegram.message(hall, 8).text == "x"


async def test_a_message_of_one_chat_is_not_found_in_another() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann, bob = telegram.person("Ann"), telegram.person("Bob")
        sent = await bot.send_message(ann.id, "x")
        with pytest.raises(BadRequest, match="Message to edit not found"):
            await bot.edit_message_text("y", bob.id, sent.message_id)


async def test_a_group_becomes_a_supergroup() -> None:
    """Both chats get a service message, and a call with the old id is refused with the new one."""
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        room = telegram.group("Room", ann)
        await bot.send_message(room.id, "before")
        left, joined = ann.upgrades(room)
        new = joined.sent.chat
        first, second = await bot.get_updates(timeout=5)
        assert first.message is not None
        assert second.message is not None
        assert (first.message.chat.id, first.message.migrate_to_chat_id) == (room.id, new.id)
        assert (second.message.chat.id, second.message.migrate_from_chat_id) == (new.id, room.id)
        with pytest.raises(ChatMigrated) as raised:
            await bot.send_message(room.id, "after")
        assert raised.value.new_chat_id == new.id == room.upgraded_to
        assert (await bot.send_message(new.id, "after")).message_id == joined.sent.id + 1
        assert left.sent.chat is room


async def test_a_bot_that_was_removed_may_not_write() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        room, hall = telegram.group("Room", ann), telegram.supergroup("Hall", ann)
        ann.kicks_bot(room)
        ann.kicks_bot(hall)
        first, _ = await bot.get_updates(timeout=5)
        assert first.my_chat_member is not None
        assert first.my_chat_member.new_chat_member.status == "kicked"
        with pytest.raises(Forbidden, match="bot was kicked from the group chat"):
            await bot.send_message(room.id, "x")
        with pytest.raises(Forbidden, match="bot was kicked from the supergroup chat"):
            await bot.send_message(hall.id, "x")
        ann.says("are you there?", chat=room)
        assert len(await bot.get_updates(timeout=0)) == 2
        ann.adds_bot(room)
        await bot.send_message(room.id, "x")
        await bot.leave_chat(room.id)
        with pytest.raises(Forbidden, match="bot is not a member of the group chat"):
            await bot.send_message(room.id, "x")
        ann.lets_bot("restricted", hall)
        with pytest.raises(BadRequest, match="Not enough rights to send text messages"):
            await bot.send_message(hall.id, "x")
        with pytest.raises(BadRequest, match="can't be changed in private chats"):
            await bot.leave_chat(ann.id)
        with pytest.raises(BadRequest, match="no administrators in the private chat"):
            await bot.get_chat_administrators(ann.id)
        assert await bot.get_chat_member_count(ann.id) == 2


async def test_joining_and_leaving_members_are_service_messages() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann, bob = telegram.person("Ann"), telegram.person("Bob")
        room = telegram.group("Room", ann)
        bob.joins(room)
        bob.leaves(room)
        joined, left = await bot.get_updates(timeout=5)
        assert joined.message is not None
        assert left.message is not None
        assert [user.first_name for user in joined.message.new_chat_members or ()] == ["Bob"]
        assert left.message.left_chat_member is not None
        assert (await bot.get_chat_member(room.id, bob.id)).status == "left"


async def test_in_privacy_mode_a_bot_gets_messages_meant_for_it() -> None:
    """Commands, replies to it, its name, service messages; as an administrator everything."""
    async with telegram_and_bot(privacy=True) as (telegram, bot):
        ann = telegram.person("Ann")
        room = telegram.group("Room", ann)
        mine = await bot.send_message(room.id, "hello")
        unrelated = ann.says("to everybody", chat=room)
        assert unrelated.update.id == 0
        ann.says("no reply to a bot", chat=room, reply_to=unrelated.sent)
        ann.says("@ZERO_bot hello", chat=room)
        ann.says("/help", chat=room)
        ann.says("yes", chat=room, reply_to=room.by_id[mine.message_id])
        ann.joins(room)
        ann.lets_bot("administrator", room)
        ann.says("everything", chat=room)
        updates = await bot.get_updates(timeout=5)
        texts = [update.message.text for update in updates if update.message]
        assert texts == ["@ZERO_bot hello", "/help", "yes", None, "everything"]
        assert not (await bot.get_me()).can_read_all_group_messages


async def test_a_forum_has_topics() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        hall = telegram.supergroup("Hall", ann, is_forum=True)
        topic = telegram.topic(hall, "news")
        ann.says("in the topic", chat=hall, thread=topic.id)
        (update,) = await bot.get_updates(timeout=5)
        assert update.message is not None
        assert (update.message.message_thread_id, update.message.is_topic_message) == (
            topic.id,
            True,
        )
        sent = await bot.send_message(hall.id, "x", message_thread_id=topic.id)
        assert sent.message_thread_id == topic.id
        await bot.send_chat_action(hall.id, "typing", message_thread_id=topic.id)
        with pytest.raises(BadRequest, match="Message thread not found"):
            await bot.send_message(hall.id, "x", message_thread_id=99)


async def test_topics_are_opened_closed_and_deleted_by_the_bot() -> None:
    async with telegram_and_bot() as (telegram, bot):
        hall = telegram.supergroup("Hall", is_forum=True)
        topic = await bot.create_forum_topic(hall.id, "news")
        await bot.close_forum_topic(hall.id, topic.message_thread_id)
        with pytest.raises(BadRequest, match="Topic_closed"):
            await bot.send_message(hall.id, "x", message_thread_id=topic.message_thread_id)
        await bot.reopen_forum_topic(hall.id, topic.message_thread_id)
        await bot.send_message(hall.id, "x", message_thread_id=topic.message_thread_id)
        await bot.delete_forum_topic(hall.id, topic.message_thread_id)
        assert hall.texts == []
        with pytest.raises(BadRequest, match="Message thread not found"):
            await bot.close_forum_topic(hall.id, topic.message_thread_id)
        with pytest.raises(BadRequest, match="Topic_title_empty"):
            await bot.create_forum_topic(hall.id, "")
        with pytest.raises(BadRequest, match="The chat is not a forum"):
            await bot.create_forum_topic(telegram.group("Room").id, "news")


async def test_outside_a_forum_a_thread_is_that_of_a_message() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        hall = telegram.supergroup("Hall", ann)
        message = ann.says("hello", chat=hall).sent
        sent = await bot.send_message(hall.id, "x", message_thread_id=message.id)
        assert sent.message_thread_id == message.id
        with pytest.raises(BadRequest, match="Message thread not found"):
            await bot.send_message(ann.id, "x", message_thread_id=message.id)


async def test_pins_and_reactions_need_a_message() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        message = ann.says("hello").sent
        assert await bot.pin_chat_message(ann.id, message.id)
        assert await bot.set_message_reaction(ann.id, message.id, "👍")
        with pytest.raises(BadRequest, match="Message to pin not found"):
            await bot.pin_chat_message(ann.id, 99)
        with pytest.raises(BadRequest, match="Message to react not found"):
            await bot.set_message_reaction(ann.id, 99, "👍")
