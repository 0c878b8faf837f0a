"""Turns the account's state into the form that the page shows."""

from collections.abc import Mapping

from channels.telegram.emulator.account import Account, Press
from channels.telegram.emulator.chats import Chat, Instant, Message
from channels.telegram.emulator.wire import Json, is_array, is_object, text_of

MAX_SHOWN = 60
"""Newest messages shown of each chat: enough for a screen, and few enough to send at each change."""


def snapshot(account: Account, now: Instant, *, is_polled: bool, calls: int) -> Json:
    """Return all chats and the bot's state.

    Args:
        account: The bot's account.
        now: The current time.
        is_polled: A bot is polling, or has a webhook.
        calls: The number of calls that it has made.
    """
    return {
        "bot": {"name": account.bot.first_name, "username": account.bot.username},
        "polled": is_polled,
        "calls": calls,
        "refused": account.buckets.refused,
        "waiting": len(account.updates.waiting),
        "chats": [
            _chat(chat, now, account.files.paths)
            for chat in account.chats.values()
            if not chat.upgraded_to
        ],
        "toasts": [_toast(press) for press in account.presses.values() if press.toast is not None],
    }


def _chat(chat: Chat, now: Instant, paths: Mapping[str, str]) -> Json:
    draft, newest = chat.draft(now.at), chat.messages[-MAX_SHOWN:]
    rich = None if draft is None else chat.drafts[0].rich
    return {
        "id": chat.id,
        "kind": chat.kind,
        "title": chat.title,
        "blocked": chat.bot in ("kicked", "left"),
        "draft": draft,
        "draft_rich": rich,
        "acting": chat.actions[-1] if now.at < chat.acting_until else "",
        "messages": [_message(message, paths) for message in newest if not message.deleted],
    }


def _message(message: Message, paths: Mapping[str, str]) -> Json:
    formatted = message.versions[-1].formatted
    rows = (message.markup or {}).get("inline_keyboard")
    return {
        "id": message.id,
        "chat": message.chat.id,
        "sender": message.sender.id,
        "name": message.sender.first_name,
        "bot": message.is_from_bot,
        "date": message.date,
        "text": formatted.text,
        "rich": message.versions[-1].rich,
        "entities": [entity.to_json() for entity in formatted.entities],
        "earlier": message.texts[:-1],
        "rows": rows if is_array(rows) else [],
        "asks": message.asks_for_reply,
        "reply": None if message.reply_to is None else _quoted(message.reply_to),
        "files": _files(message.media, paths),
    }


def _quoted(message: Message) -> Json:
    return {"name": message.sender.first_name, "text": message.text}


def _files(media: Json, paths: Mapping[str, str]) -> list[Json]:
    """Return the kind, name and path of each file."""
    files: list[Json] = []
    for kind, value in media.items():
        largest = value[-1] if is_array(value) and value else value
        if not is_object(largest):
            continue
        id_ = text_of(largest, "file_id")
        name = text_of(largest, "file_name") or kind
        files.append({"kind": kind, "name": name, "path": paths.get(id_, "")})
    return files


def _toast(press: Press) -> Json:
    text = press.toast.text if press.toast is not None else ""
    return {"id": press.id, "person": press.person.id, "text": text}
