"""Sets the menu of commands that Telegram shows in private chats.

Groups have no menu: a command there needs the bot's name, and most concern only the person.
"""

from collections.abc import Sequence
from typing import cast

from channels._remote.fields import Json, as_object, text
from channels.telegram.account import Account
from zeroclaw import ChannelRejected, Language, Log, Menu, MenuEntry, ZeroclawError

MAX_COMMANDS = 100
MAX_DESCRIPTION_CHARS = 256
"""Bot API, setMyCommands and BotCommand, read 2026-11."""
LANGUAGE_CODES: tuple[tuple[str, Language], ...] = (("", "en"), ("de", "de"))
"""Telegram's language codes; the empty one is the default for all other languages."""

Listed = tuple[tuple[str, str], ...]
"""A menu as Telegram stores it: names and descriptions."""


async def offer(account: Account, menu: Menu, log: Log) -> None:
    """Set the menus that differ from the registered ones; a failure is only logged.

    Args:
        account: The account.
        menu: The menu to show; does nothing if it is empty.
        log: The channel's log.
    """
    if not menu.everyone:
        return
    chats = tuple(sender for sender in menu.operator_senders if sender.isdecimal())
    try:
        for chat in ("", *chats):
            await _set(account, chat, menu.operators if chat else menu.everyone, log)
    except ZeroclawError as error:
        log("menu_not_set", reason=str(error), level="warning")


async def _set(account: Account, chat: str, entries: Sequence[MenuEntry], log: Log) -> None:
    """Set the menu of one private chat; an empty `chat` means all of them."""
    scope: Json = {"type": "all_private_chats"}
    if chat:
        scope = {"type": "chat", "chat_id": int(chat)}
    try:
        for code, language in LANGUAGE_CODES:
            query: Json = {"scope": scope, "language_code": code or None}
            menu = listed(entries, language)
            if await _current(account, query) == menu:
                continue
            commands = [{"command": name, "description": does} for name, does in menu]
            await account.read("setMyCommands", {**query, "commands": commands})
            log("menu_set", chat=chat or "every", language=language)
    except ChannelRejected as error:
        # This operator has not opened the chat yet; the others get their menus.
        log("menu_refused", chat=chat or "every", reason=str(error))


def listed(entries: Sequence[MenuEntry], language: Language) -> Listed:
    """Return the entries in Telegram's form."""
    entries = entries[:MAX_COMMANDS]
    return tuple((entry.name, entry.does[language][:MAX_DESCRIPTION_CHARS]) for entry in entries)


async def _current(account: Account, query: Json) -> Listed:
    """Return the menu that Telegram shows; empty if its answer can't be read."""
    result = await account.read("getMyCommands", query)
    if not isinstance(result, list):
        return ()
    commands = map(as_object, cast("list[object]", result))
    return tuple((text(command, "command"), text(command, "description")) for command in commands)
