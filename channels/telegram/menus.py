"""Set the menu of commands that Telegram shows in private chats, where it shows another one.

In groups it shows none: there a command needs the bot's name behind it, and most are for oneself.
"""

from collections.abc import Sequence
from functools import partial
from urllib.parse import urlencode

from telegram import (
    BotCommand,
    BotCommandScope,
    BotCommandScopeAllPrivateChats,
    BotCommandScopeChat,
)

from channels._remote.fields import as_object, text
from channels.telegram.account import Account
from zeroclaw import ChannelLog, ChannelRejected, Language, Menu, MenuEntry, ZeroclawError

MOST_COMMANDS = 100
MOST_DOES_CHARS = 256
"""Bot API, setMyCommands and BotCommand, read 2026-11."""
LANGUAGE_CODES: tuple[tuple[str, Language], ...] = (("", "en"), ("de", "de"))
"""What Telegram calls them; people whose app speaks another language get the first."""

Listed = tuple[tuple[str, str], ...]
"""A menu as Telegram has it: names, and what each does."""


async def offer(account: Account, menu: Menu, log: ChannelLog) -> None:
    """Set what differs from the menu; what can't be set is told to the log and left.

    Args:
        account: Whose.
        menu: What is to be shown; nothing is done for an empty one.
        log: For facts.
    """
    if not menu.everyone:
        return
    chats = tuple(one for one in menu.operator_senders if one.isdecimal())
    try:
        for chat in ("", *chats):
            await _set(account, chat, menu.operators if chat else menu.everyone, log)
    except ZeroclawError as error:
        log("menu_not_set", why=str(error), level="warning")


async def _set(account: Account, chat: str, entries: Sequence[MenuEntry], log: ChannelLog) -> None:
    """Set the menu of one private chat, or of all where none is named."""
    bot = account.bot
    scope = BotCommandScopeChat(int(chat)) if chat else BotCommandScopeAllPrivateChats()
    try:
        for code, language in LANGUAGE_CODES:
            wanted = listed(entries, language)
            if await _standing(account, scope, code) == wanted:
                continue
            commands = [BotCommand(name, does) for name, does in wanted]
            await account.read(
                partial(bot.set_my_commands, commands, scope, language_code=code or None)
            )
            log("menu_set", chat=chat or "every", language=language)
    except ChannelRejected as refused:
        # An operator who has not opened the chat yet; the others have theirs.
        log("menu_refused", chat=chat or "every", why=str(refused))


def listed(entries: Sequence[MenuEntry], language: Language) -> Listed:
    """Return the entries as Telegram takes them."""
    return tuple(
        (one.name, one.does[language][:MOST_DOES_CHARS]) for one in entries[:MOST_COMMANDS]
    )


async def _standing(account: Account, scope: BotCommandScope, code: str) -> Listed:
    """Return what Telegram shows; nothing where its answer can't be read."""
    asked, bot = urlencode({"scope": scope.to_json(), "language_code": code}), account.bot
    # Left as JSON, for what the library can't read would stop the channel.
    answer: object = await account.read(
        lambda: bot.request.post(f"{bot.base_url}/getMyCommands?{asked}")
    )
    found = [as_object(one) for one in answer] if isinstance(answer, list) else []
    return tuple((text(one, "command"), text(one, "description")) for one in found)
