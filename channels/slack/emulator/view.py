"""Turns the chats into the form that the page shows; pure."""

import re
from collections.abc import Mapping, Sequence
from typing import cast

from channels._remote.emulator.markup import blocks

Json = Mapping[str, object]
SHOWN = 60
"""Newest messages shown of each chat: enough for a screen, and few enough to send at each change."""
FORM, LINE = "form-", "line-"
"""Prefixes of ids of items that are not messages: an open form, and a line for item person only."""
_SIGNS = {"pending": "·", "in_progress": "…", "complete": "✓", "error": "✗"}
_STYLES = {"primary": "success", "danger": "danger"}
_LINK = re.compile(r"<(https?://[^\s<>|]+)\|")
_MENTION = re.compile(r"<@([A-Z0-9]+)>")


def chat(
    id_: str, items: Sequence[Json], *, names: Mapping[str, str], files: Mapping[str, Json]
) -> Json:
    """Return a chat for the page.

    Args:
        id_: The channel's id.
        items: Its items in order: messages, lines and forms.
        names: People's names by id.
        files: The bot's files, by the links that show them.
    """
    known = {str(item["ts"]): item for item in items}
    messages = [_message(id_, item, known, names, files) for item in items[-SHOWN:]]
    return {"id": id_, "draft": None, "acting": "", "messages": messages}


def _message(
    id_: str,
    item: Json,
    known: Mapping[str, Json],
    names: Mapping[str, str],
    files: Mapping[str, Json],
) -> Json:
    user = str(item.get("user") or "bot")
    text = _text(item, names)
    thread = str(item.get("thread_ts") or "")
    root = known.get(thread) if thread != item["ts"] else None
    quoted = root and {"name": names[str(root.get("user") or "bot")], "text": _text(root, names)}
    of_people = cast("list[Json]", item.get("files") or [])
    return {
        "id": str(item.get("id") or item["ts"]),
        "chat": id_,
        "sender": user,
        "name": names[user],
        "bot": user == "bot",
        "only": str(item.get("only") or ""),
        "asks": bool(item.get("asks")),
        "date": float(str(item["ts"])),
        "text": text,
        "rich": {"blocks": _blocks(item, text)},
        "entities": [],
        "earlier": [],
        "rows": [_row(block) for block in _blocks_of(item, "actions")],
        "reply": quoted or None,
        "files": [*(_file(file) for file in of_people), *_linked_files(item, files)],
    }


def _text(item: Json, names: Mapping[str, str]) -> str:
    """Return a message's text, unescaped; people's and the bot's are escaped alike."""
    found = [str(block["text"]) for block in _blocks_of(item, "markdown")]
    text = "\n".join(found or [str(item.get("text", ""))])
    text = _MENTION.sub(lambda mention: f"@{names.get(mention[1], mention[1])}", text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _blocks_of(item: Json, kind: str) -> list[Json]:
    found = cast("list[Json]", item.get("blocks") or [])
    return [block for block in found if block["type"] == kind]


def _blocks(item: Json, shown: str) -> Sequence[Json]:
    texts = [inner for block in _blocks_of(item, "rich_text") for inner in _elements(block)]
    lines = [line for block in _blocks_of(item, "context") for line in _elements(block)]
    receipts = [
        {"type": "paragraph", "text": [{"type": "italic", "text": [str(line["text"])]}]}
        for line in lines
        if not _LINK.search(str(line["text"]))
    ]
    tasks = cast("Mapping[str, Json]", item.get("tasks") or {}).values()
    steps = [
        {"type": "paragraph", "text": [f"{_SIGNS[str(task['status'])]} {task['title']}"]}
        for task in tasks
    ]
    return [*([_plain(inner) for inner in texts] or blocks(shown)), *steps, *receipts]


def _plain(inner: Json) -> Json:
    text = "".join(str(piece["text"]) for piece in _elements(inner))
    if inner["type"] == "rich_text_preformatted":
        return {"type": "pre", "text": text}
    return {"type": "paragraph", "text": [text]}


def _elements(block: Json) -> list[Json]:
    return cast("list[Json]", block["elements"])


def _row(block: Json) -> Sequence[Json]:
    return [
        {
            "text": str(cast("Json", button["text"])["text"]),
            "callback_data": f"{button['action_id']} {button['value']}",
            "style": _STYLES.get(str(button.get("style")), ""),
        }
        for button in _elements(block)
    ]


def _linked_files(item: Json, files: Mapping[str, Json]) -> list[Json]:
    context = _blocks_of(item, "context")
    texts = [str(line["text"]) for block in context for line in _elements(block)]
    links = [match[1] for text in texts if (match := _LINK.search(text))]
    return [_file(files[link]) for link in links if link in files]


def _file(file: Json) -> Json:
    return {"kind": "file", "name": str(file["name"]), "path": str(file["id"])}
