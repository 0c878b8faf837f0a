"""Sets the menu of commands that Telegram shows in private chats.

Groups have no menu: a command there needs the bot's name, and most concern only the person.
"""

from collections.abc import Sequence

from channels._remote.fields import Json
from channels.telegram.account import Account
from zeroclaw import ChannelRejected, Language, Log, Menu, MenuEntry, ZeroclawError

LANGUAGE_CODES: tuple[tuple[str, Language], ...] = (("", "en"), ("de", "de"))
"""Telegram's language codes; the empty one is the default for all other languages."""


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
            commands = [
                {"command": entry.name, "description": entry.does[language]} for entry in entries
            ]
            if await account.read("getMyCommands", query) != commands:
                await account.read("setMyCommands", {**query, "commands": commands})
                log("menu_set", chat=chat or "every", language=language)
    except ChannelRejected as error:
        # This operator has not opened the chat yet; the others get their menus.
        log("menu_refused", chat=chat or "every", reason=str(error))
