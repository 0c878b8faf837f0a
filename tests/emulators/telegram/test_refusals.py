"""The emulator refuses what Telegram refuses, in Telegram's words."""

import pytest
from telegram import ForceReply, InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity
from telegram.constants import ParseMode
from telegram.error import BadRequest, Forbidden, NetworkError, TelegramError

from channels.telegram.emulator import Emulator
from channels.telegram.emulator.wire import Json, is_object, text_of
from tests.emulators.telegram.bots import call, telegram_and_bot
from tests.fakes.manual_clock import ManualClock


async def test_a_text_has_4096_units_after_its_markup_is_read() -> None:
    """UTF-16 units count, as in apps; markup does not."""
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        fits = "😀" * 2048
        await bot.send_message(ann.id, f"<b>{fits}</b>", parse_mode=ParseMode.HTML)
        with pytest.raises(BadRequest, match="Message is too long"):
            await bot.send_message(ann.id, fits + "x")
        with pytest.raises(BadRequest, match="Message is too long"):
            await bot.edit_message_text(fits + "x", ann.id, 1)
        await bot.edit_message_text("  fits  " + "\n" * 5000, ann.id, 1)
        assert ann.chat.texts == ["fits"]


async def test_a_caption_has_1024_units() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        sent = await bot.send_document(ann.id, b"x", caption="x" * 1024)
        with pytest.raises(BadRequest, match="Message caption is too long"):
            await bot.send_document(ann.id, b"x", caption="x" * 1025)
        with pytest.raises(BadRequest, match="Message caption is too long"):
            await bot.edit_message_caption(ann.id, sent.message_id, caption="x" * 1025)
        await bot.edit_message_caption(ann.id, sent.message_id, caption="y")
        assert ann.chat.texts == ["y"]


@pytest.mark.parametrize("text", ["", " \n ", "<b></b>"])
async def test_an_empty_text_is_refused(text: str) -> None:
    async with telegram_and_bot() as (telegram, bot):
        with pytest.raises(BadRequest, match="Message text is empty"):
            await bot.send_message(telegram.person("Ann").id, text, parse_mode="HTML")


async def test_wrong_markup_is_refused_with_its_place() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        with pytest.raises(BadRequest, match=r"(?i)can't parse entities: can't find end of bold"):
            await bot.send_message(ann.id, "*bold", parse_mode=ParseMode.MARKDOWN_V2)
        with pytest.raises(BadRequest, match=r"(?i)can't parse entities: unsupported start tag"):
            await bot.send_message(ann.id, "<h1>big</h1>", parse_mode=ParseMode.HTML)
        mark = MessageEntity(type="bold", offset=0, length=9)
        with pytest.raises(BadRequest, match="ends after the end of the text"):
            await bot.send_message(ann.id, "short", entities=[mark])
        with pytest.raises(BadRequest, match="Unsupported parse_mode"):
            await bot.send_message(ann.id, "text", parse_mode="rtf")


async def test_an_edit_that_changes_nothing_is_refused() -> None:
    """The same text, the same marks and the same keyboard; another keyboard is a change."""
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("a", callback_data="a")]])
        await bot.send_message(ann.id, "<b>x</b>", parse_mode=ParseMode.HTML)
        with pytest.raises(BadRequest, match="Message is not modified"):
            await bot.edit_message_text("*x*", ann.id, 1, parse_mode=ParseMode.MARKDOWN_V2)
        await bot.edit_message_text(
            "*x*", ann.id, 1, parse_mode="MarkdownV2", reply_markup=keyboard
        )
        with pytest.raises(BadRequest, match="Message is not modified"):
            await bot.edit_message_reply_markup(ann.id, 1, reply_markup=keyboard)
        assert len(ann.chat.messages[0].versions) == 2


async def test_only_a_current_message_of_the_bot_can_be_edited() -> None:
    """Not a missing or deleted one, a person's, one with another keyboard, or a forwarded one."""
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        message = ann.says("mine").sent
        question = await bot.send_message(ann.id, "why?", reply_markup=ForceReply())
        forwarded = await bot.forward_message(ann.id, ann.id, message.id)
        for id_ in (message.id, question.message_id, forwarded.message_id):
            with pytest.raises(BadRequest, match="Message can't be edited"):
                await bot.edit_message_text("x", ann.id, id_)
        with pytest.raises(BadRequest, match="Message to edit not found"):
            await bot.edit_message_text("x", ann.id, 99)
        await bot.delete_message(ann.id, question.message_id)
        with pytest.raises(BadRequest, match="Message to edit not found"):
            await bot.edit_message_text("x", ann.id, question.message_id)


async def test_text_and_caption_are_edited_by_their_own_methods() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        text = await bot.send_message(ann.id, "text")
        file = await bot.send_document(ann.id, b"x")
        with pytest.raises(BadRequest, match="There is no text in the message"):
            await bot.edit_message_text("x", ann.id, file.message_id)
        with pytest.raises(BadRequest, match="There is no caption in the message"):
            await bot.edit_message_caption(ann.id, text.message_id, caption="x")


async def test_which_messages_can_be_deleted() -> None:
    """Its own, a person's in private, anybody's as an administrator, and for 48 hours."""
    clock = ManualClock()
    async with telegram_and_bot(clock=clock) as (telegram, bot):
        ann = telegram.person("Ann")
        room = telegram.group("Room", ann)
        assert await bot.delete_message(ann.id, ann.says("private").sent.id)
        message = ann.says("in a group", chat=room).sent
        with pytest.raises(BadRequest, match="Message can't be deleted"):
            await bot.delete_message(room.id, message.id)
        ann.lets_bot("administrator", room)
        assert await bot.delete_message(room.id, message.id)
        old = await bot.send_message(ann.id, "old")
        await clock.advance(48 * 3600 + 1)
        with pytest.raises(BadRequest, match="Message can't be deleted for everyone"):
            await bot.delete_message(ann.id, old.message_id)
        assert await bot.delete_messages(ann.id, [old.message_id])
        assert ann.chat.texts == ["old"]


async def test_people_can_refuse_a_bot() -> None:
    """403 for a person who blocked it, never started it, or has no account any more."""
    async with telegram_and_bot() as (telegram, bot):
        ann, bob = telegram.person("Ann"), telegram.person("Bob", started=False)
        with pytest.raises(LookupError, match="no message came of `my_chat_member`"):
            assert ann.blocks().sent
        (update,) = await bot.get_updates(timeout=5)
        assert update.my_chat_member is not None
        assert update.my_chat_member.new_chat_member.status == "kicked"
        with pytest.raises(Forbidden, match="bot was blocked by the user"):
            await bot.send_message(ann.id, "hello")
        ann.unblocks()
        await bot.send_message(ann.id, "hello")
        with pytest.raises(Forbidden, match="bot can't initiate conversation with a user"):
            await bot.send_message(bob.id, "hello")
        bob.starts()
        await bot.send_message(bob.id, "hello")
        bob.blocks()
        bob.says("again")
        await bot.send_message(bob.id, "hello")
        bob.person.deactivated = True
        with pytest.raises(Forbidden, match="user is deactivated"):
            await bot.send_message(bob.id, "hello")


async def test_a_chat_must_be_known() -> None:
    async with telegram_and_bot() as (telegram, bot):
        with pytest.raises(BadRequest, match="Chat not found"):
            await bot.send_message(5, "hello")
        with pytest.raises(BadRequest, match="Chat not found"):
            await bot.send_message("@nobody", "hello")
        assert (await call(telegram, "sendMessage")).description == "Bad Request: chat_id is empty"


@pytest.mark.parametrize(
    ("data", "fits"), [("x" * 64, True), ("x" * 65, False), ("ü" * 33, False), ("", False)]
)
async def test_button_data_has_1_to_64_bytes(data: str, fits: bool) -> None:
    async with Emulator(clock=ManualClock()) as telegram:
        keyboard = {"inline_keyboard": [[{"text": "press", "callback_data": data}]]}
        chat_id = telegram.person("Ann").id
        answer = await call(
            telegram, "sendMessage", chat_id=chat_id, text="x", reply_markup=keyboard
        )
        refusal = answer.body.get("description")
        assert refusal == (None if fits else "Bad Request: BUTTON_DATA_INVALID")


async def test_a_press_is_answered_once_and_soon() -> None:
    """An answer that comes too late, twice or for no press is refused; the bot still has it."""
    clock = ManualClock()
    async with telegram_and_bot(clock=clock) as (telegram, bot):
        ann = telegram.person("Ann")
        keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="yes")]])
        await bot.send_message(ann.id, "well?", reply_markup=keyboard)
        in_time = ann.presses(ann.chat.messages[0], "Yes")
        late = ann.presses(ann.chat.messages[0], "Yes")
        first, second = await bot.get_updates(timeout=5)
        assert first.callback_query is not None
        assert second.callback_query is not None
        await first.callback_query.answer("yes")
        with pytest.raises(BadRequest, match="Query is too old"):
            await first.callback_query.answer("yes")
        await clock.advance(31)
        with pytest.raises(BadRequest, match="response timeout expired"):
            await second.callback_query.answer("late")
        with pytest.raises(BadRequest, match="Query is too old"):
            await bot.answer_callback_query("none")
        with pytest.raises(BadRequest, match="Message_too_long"):
            await bot.answer_callback_query(first.callback_query.id, "x" * 201)
        assert (ann.toast(in_time) is not None, ann.toast(late)) == (True, None)


async def test_an_old_button_can_still_be_pressed() -> None:
    """An app may lag behind: the bot gets the press, even on a deleted card."""
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="yes")]])
        await bot.send_message(ann.id, "well?", reply_markup=keyboard)
        card = ann.chat.messages[0]
        await bot.edit_message_text("done", ann.id, card.id)
        ann.presses(card, "Yes")
        await bot.delete_message(ann.id, card.id)
        ann.presses(card, data="yes")
        first, second = await bot.get_updates(timeout=5)
        assert first.callback_query is not None
        assert second.callback_query is not None
        assert second.callback_query.message is not None
        assert (first.callback_query.data, second.callback_query.data) == ("yes", "yes")
        assert not second.callback_query.message.is_accessible
        with pytest.raises(LookupError, match="no button `No`"):
            ann.presses(card, "No")


@pytest.mark.slow
async def test_files_have_their_limits() -> None:
    """Down 20 MB, up 50 MB, pictures 10 MB; an empty file and an unknown id are refused."""
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        megabyte = 1024 * 1024
        fits = ann.sends("document", b"x", claimed_bytes=20 * megabyte).sent
        large = ann.sends("document", b"x", claimed_bytes=20 * megabyte + 1).sent
        assert (await bot.get_file(_file_id(fits.media))).file_size == 20 * megabyte
        with pytest.raises(BadRequest, match="File is too big"):
            await bot.get_file(_file_id(large.media))
        with pytest.raises(BadRequest, match="Invalid file_id"):
            await bot.get_file("none")
        with pytest.raises(NetworkError, match="Request Entity Too Large"):
            await bot.send_document(ann.id, bytes(50 * megabyte + 1))
        with pytest.raises(BadRequest, match="File is too big"):
            await bot.send_photo(ann.id, bytes(10 * megabyte + 1))
        with pytest.raises(BadRequest, match="File must be non-empty"):
            await bot.send_document(ann.id, b"")
        with pytest.raises(BadRequest, match="Failed to get http url content"):
            await bot.send_document(ann.id, "http://127.0.0.1/file")
        with pytest.raises(BadRequest, match="There is no document in the request"):
            await bot.send_document(ann.id, "none")


def _file_id(media: Json) -> str:
    document = media["document"]
    assert is_object(document)
    return text_of(document, "file_id")


async def test_a_missing_file_is_not_found() -> None:
    async with telegram_and_bot() as (telegram, bot):
        large = telegram.person("Ann").sends("document", b"x", claimed_bytes=1 << 30).sent
        path = telegram.account.files.by_id[_file_id(large.media)].path
        for name in (path, "nothing"):
            with pytest.raises(TelegramError, match="Not Found"):
                await bot.request.retrieve(f"{telegram.base_file_url}{telegram.token}/{name}")


async def test_an_unknown_method_is_not_found() -> None:
    """404, as for methods that a server is too old for; names are read in any case."""
    async with Emulator(clock=ManualClock()) as telegram:
        assert (await call(telegram, "sendGreetings")).code == 404
        assert (await call(telegram, "GETME")).status == 200
        telegram.without("getMe")
        answer = await call(telegram, "getMe")
        assert (answer.code, answer.description) == (404, "Not Found")
