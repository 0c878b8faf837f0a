"""The everyday calls of a bot work with the emulator, driven by python-telegram-bot."""

import pytest
from telegram import (
    BotCommand,
    BotCommandScopeAllPrivateChats,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaPhoto,
    LinkPreviewOptions,
    Message,
    MessageOriginUser,
    ReplyParameters,
)
from telegram.constants import ChatAction, MessageEntityType, ParseMode
from telegram.error import BadRequest

from tests.emulators.telegram.bots import telegram_and_bot


async def test_a_bot_says_who_it_is() -> None:
    async with telegram_and_bot() as (telegram, bot):
        assert (bot.id, bot.username, bot.first_name) == (
            telegram.account.bot.id,
            "zero_bot",
            "Zero",
        )
        assert bot.bot.is_bot


async def test_a_message_comes_and_is_answered() -> None:
    """As with most messages: an update, an answer, and a confirmation of the update."""
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann", username="ann")
        action = ann.says("hello")
        (update,) = await bot.get_updates(timeout=5)
        assert update.message is not None
        assert (update.message.text, update.message.chat.type) == ("hello", "private")
        sent = await bot.send_message(ann.id, "hi")
        assert (sent.text, sent.message_id) == ("hi", update.message.message_id + 1)
        assert await bot.get_updates(offset=update.update_id + 1, timeout=0) == ()
        assert action.update.confirmed
        assert ann.chat.texts == ["hi"]


async def test_a_message_grows_by_edits_and_keeps_its_history() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        sent = await bot.send_message(ann.id, "one")
        edited = await bot.edit_message_text("one two", ann.id, sent.message_id)
        assert isinstance(edited, Message)
        assert edited.edit_date is not None
        assert ann.chat.messages[0].texts == ["one", "one two"]


async def test_buttons_are_pressed_and_a_press_gets_its_toast() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        rows = [
            [
                InlineKeyboardButton("Yes", callback_data="yes"),
                InlineKeyboardButton("Page", url="https://example.com"),
            ]
        ]
        sent = await bot.send_message(ann.id, "well?", reply_markup=InlineKeyboardMarkup(rows))
        press = ann.presses(ann.chat.messages[0], "Yes")
        (update,) = await bot.get_updates(timeout=5)
        query = update.callback_query
        assert query is not None
        assert query.message is not None
        assert (query.data, query.message.message_id) == ("yes", sent.message_id)
        await query.answer("noted", show_alert=True)
        assert ann.toast(press) is not None
        await bot.edit_message_reply_markup(ann.id, sent.message_id)
        assert ann.chat.messages[0].buttons == []


async def test_an_edit_without_a_keyboard_takes_the_keyboard_away() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="yes")]])
        sent = await bot.send_message(ann.id, "well?", reply_markup=keyboard)
        await bot.edit_message_text("well!", ann.id, sent.message_id)
        assert ann.chat.messages[0].buttons == []


async def test_a_forced_reply_is_answered_by_a_reply() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        question = await bot.send_message(ann.id, "why?", reply_markup=ForceReply(selective=True))
        assert ann.chat.messages[0].asks_for_reply
        ann.says("because", reply_to=ann.chat.messages[0], quote="wh")
        (update,) = await bot.get_updates(timeout=5)
        assert update.message is not None
        assert update.message.reply_to_message is not None
        assert update.message.reply_to_message.message_id == question.message_id
        assert update.message.quote is not None
        assert update.message.quote.text == "wh"


async def test_an_answer_names_what_it_answers_and_quotes_it() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        message = ann.says("hello there").sent
        sent = await bot.send_message(
            ann.id, "yes", reply_parameters=ReplyParameters(message.id, quote="there")
        )
        assert sent.reply_to_message is not None
        assert sent.quote is not None
        assert (sent.reply_to_message.text, sent.quote.position) == ("hello there", 6)
        with pytest.raises(BadRequest, match="Message to be replied not found"):
            await bot.send_message(ann.id, "yes", reply_parameters=ReplyParameters(99))
        lenient = ReplyParameters(99, allow_sending_without_reply=True)
        assert (await bot.send_message(ann.id, "yes", reply_parameters=lenient)).text == "yes"
        with pytest.raises(BadRequest, match="Quote_text_invalid"):
            await bot.send_message(
                ann.id, "yes", reply_parameters=ReplyParameters(message.id, quote="elsewhere")
            )


async def test_marks_come_back_as_entities() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        sent = await bot.send_message(
            ann.id,
            "*bold* 😀 `code` [page](https://example.com)",
            parse_mode=ParseMode.MARKDOWN_V2,
            link_preview_options=LinkPreviewOptions(is_disabled=True),
        )
        assert sent.text == "bold 😀 code page"
        assert [(entity.type, entity.offset, entity.length) for entity in sent.entities] == [
            (MessageEntityType.BOLD, 0, 4),
            (MessageEntityType.CODE, 8, 4),
            (MessageEntityType.TEXT_LINK, 13, 4),
        ]
        assert sent.link_preview_options is not None
        assert sent.link_preview_options.is_disabled


async def test_files_go_both_ways() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        content = bytes(range(256)) * 300 + b"\r\n--\r\n"
        sent = await bot.send_document(ann.id, content, filename='a "b".bin', caption="look")
        assert sent.document is not None
        assert (sent.document.file_name, sent.caption) == ('a "b".bin', "look")
        assert bytes(await (await sent.document.get_file()).download_as_bytearray()) == content
        ann.sends("photo", b"picture", caption="me")
        (update,) = await bot.get_updates(timeout=5)
        assert update.message is not None
        photo = update.message.photo[-1]
        assert bytes(await (await photo.get_file()).download_as_bytearray()) == b"picture"
        again = await bot.send_photo(ann.id, photo.file_id)
        assert again.photo[-1].file_unique_id == photo.file_unique_id


async def test_every_kind_of_file_is_sent_and_received() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        await bot.send_voice(ann.id, b"voice")
        await bot.send_audio(ann.id, b"audio")
        await bot.send_video(ann.id, b"video")
        await bot.send_animation(ann.id, b"animation")
        await bot.send_video_note(ann.id, b"note")
        await bot.send_sticker(ann.id, b"sticker")
        sent_kinds = [next(iter(message.media)) for message in ann.chat.messages]
        assert sent_kinds == ["voice", "audio", "video", "animation", "video_note", "sticker"]
        for kind in sent_kinds:
            ann.sends(kind, b"x")
        updates = await bot.get_updates(timeout=5)
        kinds = [update.message.effective_attachment for update in updates if update.message]
        assert len(kinds) == len(sent_kinds)
        assert None not in kinds


async def test_an_album_goes_both_ways() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        ann.sends_album({"a.jpg": b"a", "b.jpg": b"b"}.items(), caption="two")
        first, second = await bot.get_updates(timeout=5)
        assert first.message is not None
        assert second.message is not None
        assert first.message.media_group_id == second.message.media_group_id
        assert (first.message.caption, second.message.caption) == ("two", None)
        sent = await bot.send_media_group(
            ann.id, [InputMediaPhoto(b"c", caption="c"), InputMediaPhoto(b"d")]
        )
        assert [message.caption for message in sent] == ["c", None]
        assert sent[0].media_group_id == sent[1].media_group_id != first.message.media_group_id


async def test_a_forwarded_message_says_where_it_comes_from() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann, bob = telegram.person("Ann"), telegram.person("Bob")
        ann.forwards(bob.says("news").sent)
        _, update = await bot.get_updates(timeout=5)
        assert update.message is not None
        assert isinstance(update.message.forward_origin, MessageOriginUser)
        assert update.message.forward_origin.sender_user.first_name == "Bob"
        forwarded = await bot.forward_message(ann.id, bob.id, bob.chat.messages[0].id)
        assert isinstance(forwarded.forward_origin, MessageOriginUser)
        copied = await bot.copy_message(ann.id, bob.id, bob.chat.messages[0].id)
        assert ann.chat.by_id[copied.message_id].text == "news"


async def test_a_bot_shows_that_it_is_at_work() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        await bot.send_chat_action(ann.id, ChatAction.TYPING)
        assert ann.chat.actions == ["typing"]
        with pytest.raises(BadRequest, match="Wrong parameter action"):
            await bot.send_chat_action(ann.id, "dancing")


async def test_a_bot_has_a_menu_and_a_profile() -> None:
    async with telegram_and_bot() as (telegram, bot):
        scope = BotCommandScopeAllPrivateChats()
        await bot.set_my_commands([BotCommand("help", "says what it can")])
        await bot.set_my_commands([("stop", "stops")], scope=scope)
        assert [command.command for command in await bot.get_my_commands()] == ["help"]
        assert [command.command for command in await bot.get_my_commands(scope=scope)] == ["stop"]
        await bot.delete_my_commands()
        assert await bot.get_my_commands() == ()
        await bot.set_my_description("a bot")
        assert telegram.account.profile == {"description": "a bot"}
        with pytest.raises(BadRequest, match="Bot_command_invalid"):
            await bot.set_my_commands([("No!", "no")])
        with pytest.raises(BadRequest, match="Bot_command_description_invalid"):
            await bot.set_my_commands([("no", "")])
        with pytest.raises(BadRequest, match="Bot_commands_too_much"):
            await bot.set_my_commands([("a", "b")] * 101)


async def test_messages_are_deleted() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        ids = [(await bot.send_message(ann.id, text)).message_id for text in ("a", "b", "c")]
        assert await bot.delete_message(ann.id, ids[0])
        assert await bot.delete_messages(ann.id, [*ids, 99])
        assert ann.chat.from_bot == []
        with pytest.raises(BadRequest, match="Message to delete not found"):
            await bot.delete_message(ann.id, ids[0])


async def test_chats_and_members_can_be_looked_up() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann, bob = telegram.person("Ann", username="ann"), telegram.person("Bob")
        room = telegram.supergroup("Room", ann, is_forum=True)
        chat = await bot.get_chat(room.id)
        assert (chat.title, chat.is_forum, chat.type) == ("Room", True, "supergroup")
        assert (await bot.get_chat(ann.id)).username == "ann"
        assert (await bot.get_chat_member(room.id, ann.id)).status == "member"
        assert (await bot.get_chat_member(room.id, bob.id)).status == "left"
        assert (await bot.get_chat_member(room.id, bot.id)).status == "member"
        assert await bot.get_chat_member_count(room.id) == 2
        room.members[ann.id] = "administrator"
        assert [member.user.id for member in await bot.get_chat_administrators(room.id)] == [ann.id]
        with pytest.raises(BadRequest, match="User not found"):
            await bot.get_chat_member(room.id, 5)


async def test_other_kinds_of_updates_come_when_they_are_asked_for() -> None:
    """Kinds that a bot did not ask for never come, not even later."""
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        body = {
            "chat": {"id": ann.id, "type": "private"},
            "user": {"id": ann.id, "is_bot": False, "first_name": "Ann"},
            "message_id": 1,
            "date": 0,
            "old_reaction": [],
            "new_reaction": [{"type": "emoji", "emoji": "👍"}],
        }
        assert telegram.happen("message_reaction", body).update.id == 0
        await bot.get_updates(timeout=0, allowed_updates=["message", "message_reaction"])
        telegram.happen("message_reaction", body)
        telegram.happen("channel_post", {})
        (update,) = await bot.get_updates(timeout=5)
        assert update.message_reaction is not None
        assert telegram.account.updates.dropped == 2
