"""Set the menu of commands that Telegram shows in private chats, where it shows another one.

In groups it shows none: there a command needs the bot's name behind it, and most are for oneself.
"""

from collections.abc import Sequence
from typing import cast

from channels._remote.fields import Json, as_object, text
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
        # An operator who has not opened the chat yet; the others have theirs.
        log("menu_refused", chat=chat or "every", why=str(refused))


def listed(entries: Sequence[MenuEntry], language: Language) -> Listed:
    """Return the entries as Telegram takes them."""
    return tuple(
        (one.name, one.does[language][:MOST_DOES_CHARS]) for one in entries[:MOST_COMMANDS]
    )


async def _standing(account: Account, asked: Json) -> Listed:
    """Return what Telegram shows; nothing where its answer can't be read."""
    answer = await account.read("getMyCommands", asked)
    found = (
        [as_object(one) for one in cast("list[object]", answer)] if isinstance(answer, list) else []
    )
    return tuple((text(one, "command"), text(one, "description")) for one in found)
