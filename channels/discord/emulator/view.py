"""Turns the chats into the form that the page shows; ids are strings, since JavaScript rounds them."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

from simcord.backend import Backend
from simcord.backend.models import Message

from channels._remote.emulator.markup import blocks

Json = Mapping[str, object]
SHOWN = 60
"""Newest messages shown of each chat: enough for a screen, and few enough to send at each change."""
FORM = "form-"
"""Prefix for the id of a press that was answered with a form."""
_EPOCH_MS = 1_420_070_400_000  # ids count milliseconds from the start of 2015
_BUTTON, _ROW = 2, 1
_STYLES = {3: "success", 4: "danger"}
_MENTION = re.compile(r"<@!?(\d{1,20})>")


def chat(
    backend: Backend, id_: int, *, earlier: Mapping[int, Sequence[str]], forms: Sequence[Json]
) -> Json:
    """Return a chat for the page.

    Args:
        backend: The state of Discord.
        id_: The channel's id.
        earlier: Earlier texts of edited messages, by id.
        forms: Open forms from `question`, shown at the end.
    """
    messages = sorted(backend.messages.get(id_, {}).values(), key=lambda message: message.id)[
        -SHOWN:
    ]
    return {
        "id": str(id_),
        "draft": None,
        "acting": "",
        "messages": [
            *(_message(backend, message, earlier.get(message.id, ())) for message in messages),
            *forms,
        ],
    }


def question(backend: Backend, press: int, channel: int, title: str, person: str) -> Json:
    """Return a form that waits for one person, as a message that asks for a reply."""
    return {
        **_bare(f"{FORM}{press}", channel),
        "sender": str(backend.bot_user.id),
        "name": backend.bot_user.name,
        "bot": True,
        "only": person,
        "date": ((press >> 22) + _EPOCH_MS) / 1000,
        "text": title,
        "asks": True,
    }


def _bare(id_: str, channel: int) -> Json:
    return {
        "id": id_,
        "chat": str(channel),
        "rich": None,
        "entities": [],
        "earlier": [],
        "rows": [],
        "asks": False,
        "reply": None,
        "files": [],
    }


def _message(backend: Backend, message: Message, earlier: Sequence[str]) -> Json:
    author = backend.users[message.author_id]
    text = _MENTION.sub(lambda mention: f"@{_name(backend, int(mention[1]))}", message.content)
    interaction = message.interaction_metadata or {}
    person = cast("Json", interaction.get("user") or {})
    return {
        **_bare(str(message.id), message.channel_id),
        "sender": str(author.id),
        "name": author.name,
        "bot": author.id == backend.bot_user.id,
        "only": str(person.get("id", "")) if message.is_ephemeral else "",
        "date": datetime.fromisoformat(message.timestamp).timestamp(),
        "text": message.content,
        "rich": {"blocks": blocks(text)} if text else None,
        "earlier": list(earlier),
        "rows": [_row(row) for row in message.components if row.get("type") == _ROW],
        "reply": _quoted(backend, message),
        "files": [
            {"kind": "file", "name": str(file["filename"]), "path": str(file["id"])}
            for file in message.attachments
        ],
    }


def _name(backend: Backend, id_: int) -> str:
    user = backend.users.get(id_)
    return user.name if user is not None else "unknown"


def _row(row: Json) -> Sequence[Json]:
    return [
        {
            "text": str(button.get("label", "")),
            "callback_data": "" if button.get("disabled") else str(button.get("custom_id", "")),
            "style": _STYLES.get(cast("int", button.get("style", 0)), ""),
        }
        for button in cast("list[Json]", row.get("components", []))
        if button.get("type") == _BUTTON
    ]


def _quoted(backend: Backend, message: Message) -> Json | None:
    id_ = (message.reference or {}).get("message_id")
    answered = None if id_ is None else backend.messages.get(message.channel_id, {}).get(int(id_))
    if answered is None:
        return None
    return {"name": _name(backend, answered.author_id), "text": answered.content}
