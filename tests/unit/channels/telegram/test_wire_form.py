"""Each call means to a Bot API server what python-telegram-bot sends for the same."""

import json
import re
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path

import pytest
from telegram import (
    Bot,
    BotCommand,
    BotCommandScope,
    BotCommandScopeAllPrivateChats,
    BotCommandScopeChat,
    CopyTextButton,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    LinkPreviewOptions,
    MessageEntity,
    ReplyParameters,
)
from telegram.error import TelegramError

from channels import telegram as product
from channels.telegram.account import MAX_CONNECTIONS, MAX_UPDATES, POLL_S, Account
from channels.telegram.decode import ALLOWED_UPDATES
from channels.telegram.emulator import Emulator, TooMany
from channels.telegram.emulator.faults import Call
from channels.telegram.menus import offer
from channels.telegram.messages import Messages
from channels.telegram.styled import Entity, File, Styled
from tests.contract.telegram_harness import SETTINGS
from tests.emulators.telegram.bots import bot_of
from tests.fakes.bare_context import no_log
from tests.fakes.manual_clock import ManualClock
from zeroclaw import Address, Menu, MenuEntry, MessageRef, ZeroclawError, replace

# All open real sockets.
pytestmark = pytest.mark.slow

METHOD = r'"((?:get|set|send|edit|delete|answer)[A-Z]\w+)["{]'
ANN, TOPIC = 77, 4
TEXT, RICH, LINK = "é “b” 7", "<p>é</p>", "https://example.org/?a=b&c"
FILE = File(name="a “b”.csv", content=b"1,2\r\n--\r\n")
SHOWN = Styled(
    text=TEXT,
    entities=(
        Entity(type="bold", offset=0, length=1),
        Entity(type="text_link", offset=2, length=3, url=LINK),
        Entity(type="pre", offset=6, length=1, language="python"),
    ),
    rows=(
        ({"text": "✓", "callback_data": "o:1"}, {"text": "copy", "copy_text": {"text": "zc-1"}}),
    ),
)
ENTITIES = [
    MessageEntity("bold", 0, 1),
    MessageEntity("text_link", 2, 3, url=LINK),
    MessageEntity("pre", 6, 1, language="python"),
]
ROW = [
    InlineKeyboardButton("✓", callback_data="o:1"),
    InlineKeyboardButton("copy", copy_text=CopyTextButton("zc-1")),
]
BUTTONS = InlineKeyboardMarkup([ROW])
HIDDEN, SEEN = LinkPreviewOptions(is_disabled=True), LinkPreviewOptions(is_disabled=False)
BELOW = ReplyParameters(3, allow_sending_without_reply=True)
MENU = Menu(
    everyone=(MenuEntry(name="stop", does={"en": "Stop", "de": "Halt"}),),
    operators=(MenuEntry(name="halt", does={"en": "Stop all", "de": "Alles anhalten"}),),
    operator_senders=(str(ANN),),
)


def ours(account: Account) -> list[Awaitable[object]]:
    address = Address(channel="telegram", account="1", chat=str(ANN), direct=True)
    topic, ref = replace(address, thread=str(TOPIC)), MessageRef(address=address, message="5")
    messages = Messages(account, SETTINGS.model_copy(update={"link_previews": True}), no_log)
    plain_text, rich = Styled(text=TEXT), replace(SHOWN, rich=RICH)
    return [
        account.user(),
        account.webhook(),
        account.updates(None),
        account.updates(1),
        account.set_webhook(LINK, secret="s"),
        account.forget_webhook(),
        account.download("f1", max_bytes=1),
        offer(account, MENU, no_log),
        messages.post(address, plain_text),
        messages.post(topic, SHOWN, reply_to="3"),
        messages.post(address, replace(plain_text, asks=True)),
        messages.post(topic, replace(SHOWN, file=FILE), reply_to="3"),
        messages.post(address, Styled(text="", file=FILE)),
        messages.post(topic, rich, reply_to="3"),
        messages.edit(ref, plain_text),
        messages.edit(ref, SHOWN),
        messages.edit(ref, SHOWN, is_caption=True),
        messages.delete(ref),
        messages.preview(address, plain_text, draft=6),
        messages.preview(topic, SHOWN, draft=6),
        messages.preview(topic, rich, draft=6),
        messages.toast("q1", TEXT),
        messages.toast("q1", ""),
        messages.typing(address),
        messages.typing(topic),
    ]


def theirs(bot: Bot) -> list[Awaitable[object]]:
    rich = {"chat_id": ANN, "message_thread_id": TOPIC, "rich_message": {"html": RICH}}
    below, ask = {**rich, "reply_markup": BUTTONS, "reply_parameters": BELOW}, ForceReply(True)
    document, allowed = InputFile(FILE.content, filename=FILE.name), list(ALLOWED_UPDATES)
    return [
        bot.get_me(),
        bot.get_webhook_info(),
        bot.get_updates(limit=MAX_UPDATES, timeout=POLL_S, allowed_updates=allowed),
        bot.get_updates(1, limit=MAX_UPDATES, timeout=POLL_S, allowed_updates=allowed),
        bot.set_webhook(
            LINK,
            secret_token="s",
            allowed_updates=allowed,
            max_connections=MAX_CONNECTIONS,
            drop_pending_updates=False,
        ),
        bot.delete_webhook(drop_pending_updates=False),
        bot.get_file("f1"),
        *menu(bot, BotCommandScopeAllPrivateChats(), None, "stop", "Stop"),
        *menu(bot, BotCommandScopeAllPrivateChats(), "de", "stop", "Halt"),
        *menu(bot, BotCommandScopeChat(ANN), None, "halt", "Stop all"),
        *menu(bot, BotCommandScopeChat(ANN), "de", "halt", "Alles anhalten"),
        bot.send_message(ANN, TEXT, link_preview_options=SEEN),
        bot.send_message(
            ANN,
            TEXT,
            message_thread_id=TOPIC,
            entities=ENTITIES,
            reply_markup=BUTTONS,
            reply_parameters=BELOW,
            link_preview_options=SEEN,
        ),
        bot.send_message(ANN, TEXT, reply_markup=ask, link_preview_options=HIDDEN),
        bot.send_document(
            ANN,
            document,
            TEXT,
            message_thread_id=TOPIC,
            caption_entities=ENTITIES,
            reply_markup=BUTTONS,
            reply_parameters=BELOW,
            disable_content_type_detection=True,
        ),
        bot.send_document(ANN, document, disable_content_type_detection=True),
        bot.do_api_request("sendRichMessage", below),
        bot.edit_message_text(TEXT, ANN, 5, link_preview_options=SEEN),
        bot.edit_message_text(
            TEXT, ANN, 5, entities=ENTITIES, reply_markup=BUTTONS, link_preview_options=SEEN
        ),
        bot.edit_message_caption(
            ANN, 5, caption=TEXT, caption_entities=ENTITIES, reply_markup=BUTTONS
        ),
        bot.delete_message(ANN, 5),
        bot.send_message_draft(ANN, 6, TEXT),
        bot.send_message_draft(ANN, 6, TEXT, message_thread_id=TOPIC, entities=ENTITIES),
        bot.do_api_request("sendRichMessageDraft", {**rich, "draft_id": 6}),
        bot.answer_callback_query("q1", TEXT),
        bot.answer_callback_query("q1"),
        bot.send_chat_action(ANN, "typing"),
        bot.send_chat_action(ANN, "typing", message_thread_id=TOPIC),
    ]


def menu(
    bot: Bot, scope: BotCommandScope, language: str | None, name: str, does: str
) -> tuple[Awaitable[object], Awaitable[object]]:
    commands = [BotCommand(name, does)]
    return (
        bot.get_my_commands(scope, language_code=language),
        bot.set_my_commands(commands, scope, language_code=language),
    )


async def received_calls(
    telegram: Emulator, calls: list[Awaitable[object]]
) -> list[tuple[object, ...]]:
    """Make calls, many of which are refused, and return the received ones."""
    before = len(telegram.calls)
    for made_call in calls:
        with suppress(ZeroclawError, TelegramError):
            await made_call
    return [fields_read(call) for call in telegram.calls[before:]]


def fields_read(call: Call) -> tuple[object, ...]:
    """The parts that a server reads; it ignores a file's content type."""
    values = {name: decode(value) for name, value in call.parameters.values.items()}
    files = {name: (file.name, file.content) for name, file in call.parameters.files.items()}
    return call.method, values, files


def decode(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


async def test_each_call_equals_the_librarys() -> None:
    """Every call of ours is among these."""
    async with Emulator(clock=ManualClock()) as telegram, bot_of(telegram) as bot:
        # So no webhook is called, and no message is retried in another form.
        posts = ("sendMessage", "sendDocument", "sendRichMessage", "sendRichMessageDraft")
        for method in ("setWebhook", *posts):
            telegram.will(method, TooMany(retry_after_s=1), times=None)
        telegram.person("Ann", id_=ANN).says("hi")
        settings = SETTINGS.model_copy(update={"api_base_url": telegram.url})
        account = Account("telegram", settings, {"token": telegram.token})
        ours_sent = await received_calls(telegram, ours(account))
        await account.http.aclose()
        assert ours_sent == await received_calls(telegram, theirs(bot))
    source = "".join(path.read_text() for path in Path(product.__file__).parent.glob("*.py"))
    assert {method for method, *_ in ours_sent} == set(re.findall(METHOD, source))
