"""Rich messages, driven by python-telegram-bot, which does not know these methods yet."""

import pytest
from telegram import Message
from telegram.error import BadRequest, EndPointNotFound

from tests.emulators.telegram.bots import call, telegram_and_bot

TABLE = "<table><tr><th>a</th></tr><tr><td>1</td></tr></table>"


def rich(chat_id: int, html: str = TABLE, **more: object) -> dict[str, object]:
    return {"chat_id": chat_id, "rich_message": {"html": html}, **more}


async def test_a_rich_message_is_drafted_sent_edited_and_returned_as_blocks() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        await bot.do_api_request("sendRichMessageDraft", rich(ann.id, "<p>a</p>", draft_id=1))
        assert telegram.draft(ann.chat) == "a"
        await bot.do_api_request("sendRichMessageDraft", rich(ann.id, draft_id=1))
        assert telegram.draft(ann.chat) == "a\n1"
        sent = await bot.do_api_request("sendRichMessage", rich(ann.id), return_type=Message)
        assert isinstance(sent, Message)
        assert sent.text is None
        assert telegram.draft(ann.chat) is None
        edited = rich(ann.id, "<h1>T</h1>", message_id=sent.message_id)
        again = await call(telegram, "editMessageText", **edited)
        assert again.body["ok"] is True
        (message,) = ann.chat.messages
        assert message.texts == ["a\n1", "T"]
        shapes = [version.rich for version in message.versions]
        assert shapes[1] == {"blocks": [{"type": "heading", "text": "T", "size": 1}]}
        returned = sent.api_kwargs["rich_message"]
        assert returned == shapes[0]


async def test_an_unchanged_edit_is_refused_and_a_text_is_a_change() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        await bot.send_message(ann.id, "T")
        edited = rich(ann.id, "<p>T</p>", message_id=1)
        assert (await call(telegram, "editMessageText", **edited)).status == 200
        assert "not modified" in str((await call(telegram, "editMessageText", **edited)).body)
        await bot.edit_message_text("T", ann.id, 1)
        versions = ann.chat.messages[0].versions
        assert [version.rich is None for version in versions] == [True, False, True]


async def test_markdown_is_kept_as_it_was_written() -> None:
    """The emulator does not parse Markdown as Telegram does."""
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        request = {"chat_id": ann.id, "rich_message": {"markdown": "# T"}}
        await bot.do_api_request("sendRichMessage", request)
        assert ann.chat.texts == ["# T"]


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ("<script>a</script>", "Can't parse entities: unsupported start tag"),
        ("<b>a", "Can't parse entities"),
        ("<p> </p>", "Rich message must be non-empty"),
        ("<p>a</p>" * 501, "Rich message has too many blocks"),
    ],
)
async def test_unreadable_html_is_refused_without_effect(html: str, reason: str) -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        with pytest.raises(BadRequest, match=f"(?i){reason}"):
            await bot.do_api_request("sendRichMessage", rich(ann.id, html))
        with pytest.raises(BadRequest, match=f"(?i){reason}"):
            await bot.do_api_request("sendRichMessageDraft", rich(ann.id, html, draft_id=1))
        assert ann.chat.messages == []
        assert telegram.draft(ann.chat) is None


async def test_a_draft_needs_a_private_chat() -> None:
    async with telegram_and_bot() as (telegram, bot):
        room = telegram.group("Room")
        with pytest.raises(BadRequest, match="Textdraft_peer_invalid"):
            await bot.do_api_request("sendRichMessageDraft", rich(room.id, draft_id=7))


async def test_an_older_server_knows_no_method_and_ignores_the_parameter() -> None:
    async with telegram_and_bot() as (telegram, bot):
        telegram.without("sendRichMessage", "sendRichMessageDraft")
        ann = telegram.person("Ann")
        await bot.send_message(ann.id, "T")
        for method in ("sendRichMessage", "sendRichMessageDraft"):
            with pytest.raises(EndPointNotFound):
                await bot.do_api_request(method, rich(ann.id, draft_id=1))
        answer = await call(telegram, "editMessageText", **rich(ann.id, message_id=1))
        assert answer.body["description"] == "Bad Request: message text is empty"


async def test_a_rich_message_stays_rich_when_forwarded_or_quoted() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.person("Ann")
        await bot.do_api_request("sendRichMessage", rich(ann.id))
        await bot.forward_message(ann.id, ann.id, 1)
        assert ann.chat.messages[1].versions[0].rich == ann.chat.messages[0].versions[0].rich
        ann.says("what?", reply_to=ann.chat.messages[0])
        (update,) = await bot.get_updates()
        assert update.message is not None
        assert update.message.reply_to_message is not None
        assert "rich_message" in update.message.reply_to_message.api_kwargs
