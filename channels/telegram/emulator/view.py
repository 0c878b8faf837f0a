"""Turns the account's state into the form that the page shows."""

from collections.abc import Mapping

from channels.telegram.emulator.account import Account, Press
from channels.telegram.emulator.chats import Chat, Message, Moment
from channels.telegram.emulator.wire import Json, is_array, is_object, text_of

SHOWN = 60
"""Newest messages shown of each chat: enough for a screen, and few enough to send at each change."""


def snapshot(account: Account, moment: Moment, *, is_polled: bool, calls: int) -> Json:
    """Return all chats and the bot's state.

    Args:
        account: The bot's account.
        moment: The current time.
        is_polled: A bot is polling, or has a webhook.
        calls: The number of calls that it has made.
    """
    return {
        "bot": {"name": account.me.first_name, "username": account.me.username},
        "polled": is_polled,
        "calls": calls,
        "refused": account.buckets.refused,
        "waiting": len(account.updates.waiting),
        "chats": [
            _chat(chat, moment, account.files.paths)
            for chat in account.chats.values()
            if not chat.upgraded_to
        ],
        "toasts": [_toast(press) for press in account.presses.values() if press.toast is not None],
    }


def _chat(chat: Chat, moment: Moment, paths: Mapping[str, str]) -> Json:
    draft = chat.draft(moment.at)
    shown = None if draft is None else chat.drafts[0].rich
    return {
        "id": chat.id,
        "kind": chat.kind,
        "title": chat.title,
        "blocked": chat.bot in ("kicked", "left"),
        "draft": draft,
        "draft_rich": shown,
        "acting": chat.actions[-1] if moment.at < chat.acting_until else "",
        "messages": [_message(one, paths) for one in chat.messages[-SHOWN:] if not one.deleted],
    }


def _message(one: Message, paths: Mapping[str, str]) -> Json:
    formatted = one.versions[-1].formatted
    rows = (one.markup or {}).get("inline_keyboard")
    return {
        "id": one.id,
        "chat": one.chat.id,
        "sender": one.sender.id,
        "name": one.sender.first_name,
        "bot": one.is_from_bot,
        "date": one.date,
        "text": formatted.text,
        "rich": one.versions[-1].rich,
        "entities": [entity.to_json() for entity in formatted.entities],
        "earlier": one.texts[:-1],
        "rows": rows if is_array(rows) else [],
        "asks": one.asks_for_reply,
        "reply": None if one.reply_to is None else _quoted(one.reply_to),
        "files": _files(one.media, paths),
    }


def _quoted(one: Message) -> Json:
    return {"name": one.sender.first_name, "text": one.text}


def _files(media: Json, paths: Mapping[str, str]) -> list[Json]:
    """Return the kind, name and path of each file."""
    found: list[Json] = []
    for kind, value in media.items():
        largest = value[-1] if is_array(value) and value else value
        if not is_object(largest):
            continue
        id_ = text_of(largest, "file_id")
        name = text_of(largest, "file_name") or kind
        found.append({"kind": kind, "name": name, "path": paths.get(id_, "")})
    return found


def _toast(press: Press) -> Json:
    text = press.toast.text if press.toast is not None else ""
    return {"id": press.id, "person": press.person.id, "text": text}
