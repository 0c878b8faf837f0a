"""Sets the menu of commands that Telegram shows in private chats.

Groups have no menu: a command there needs the bot's name, and most concern only the person.
"""

from collections.abc import Sequence
from typing import cast

from channels._remote.fields import Json, as_object, text
from channels.telegram.account import Account
from zeroclaw import ChannelRejected, Language, Log, Menu, MenuEntry, ZeroclawError

MOST_COMMANDS = 100
MOST_DOES_CHARS = 256
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
    chats = tuple(one for one in menu.operator_senders if one.isdecimal())
    try:
        for chat in ("", *chats):
            await _set(account, chat, menu.operators if chat else menu.everyone, log)
    except ZeroclawError as error:
        log("menu_not_set", why=str(error), level="warning")


async def _set(account: Account, chat: str, entries: Sequence[MenuEntry], log: Log) -> None:
    """Set the menu of one private chat; an empty `chat` means all of them."""
    scope: Json = {"type": "all_private_chats"}
    if chat:
        scope = {"type": "chat", "chat_id": int(chat)}
    try:
        for code, language in LANGUAGE_CODES:
            asked: Json = {"scope": scope, "language_code": code or None}
            wanted = listed(entries, language)
            if await _standing(account, asked) == wanted:
                continue
            commands = [{"command": name, "description": does} for name, does in wanted]
            await account.read("setMyCommands", {**asked, "commands": commands})
            log("menu_set", chat=chat or "every", language=language)
    except ChannelRejected as refused:
        # This operator has not opened the chat yet; go on with the others.
        log("menu_refused", chat=chat or "every", why=str(refused))


def listed(entries: Sequence[MenuEntry], language: Language) -> Listed:
    """Return the entries in Telegram's form."""
    return tuple(
        (one.name, one.does[language][:MOST_DOES_CHARS]) for one in entries[:MOST_COMMANDS]
    )


async def _standing(account: Account, asked: Json) -> Listed:
    """Return the menu that Telegram shows; empty if its answer can't be read."""
    answer = await account.read("getMyCommands", asked)
    found = (
        [as_object(one) for one in cast("list[object]", answer)] if isinstance(answer, list) else []
    )
    return tuple((text(one, "command"), text(one, "description")) for one in found)
