"""Turns the chats into the form that the page shows; pure."""

import re
from collections.abc import Mapping, Sequence
from typing import cast

from channels._remote.emulator.markup import blocks

Json = Mapping[str, object]
SHOWN = 60
"""Newest messages shown of each chat: enough for a screen, and few enough to send at each change."""
FORM, LINE = "form-", "line-"
"""Prefixes of ids of items that are not messages: an open form, and a line for one person only."""
_SIGNS = {"pending": "·", "in_progress": "…", "complete": "✓", "error": "✗"}
_STYLES = {"primary": "success", "danger": "danger"}
_LINK = re.compile(r"<(https?://[^\s<>|]+)\|")
_MENTION = re.compile(r"<@([A-Z0-9]+)>")


def chat(
    id_: str, standing: Sequence[Json], *, names: Mapping[str, str], files: Mapping[str, Json]
) -> Json:
    """Return a chat for the page.

    Args:
        id_: The channel's id.
        standing: Its items in order: messages, lines and forms.
        names: People's names by id.
        files: The bot's files, by the links that show them.
    """
    known = {str(one["ts"]): one for one in standing}
    shown = [_message(id_, one, known, names, files) for one in standing[-SHOWN:]]
    return {"id": id_, "draft": None, "acting": "", "messages": shown}


def _message(
    id_: str,
    one: Json,
    known: Mapping[str, Json],
    names: Mapping[str, str],
    files: Mapping[str, Json],
) -> Json:
    user = str(one.get("user") or "bot")
    said = _said(one, names)
    thread = str(one.get("thread_ts") or "")
    root = known.get(thread) if thread != one["ts"] else None
    quoted = root and {"name": names[str(root.get("user") or "bot")], "text": _said(root, names)}
    of_people = cast("list[Json]", one.get("files") or [])
    return {
        "id": str(one.get("id") or one["ts"]),
        "chat": id_,
        "sender": user,
        "name": names[user],
        "bot": user == "bot",
        "only": str(one.get("only") or ""),
        "asks": bool(one.get("asks")),
        "date": float(str(one["ts"])),
        "text": said,
        "rich": {"blocks": _blocks(one, said)},
        "entities": [],
        "earlier": [],
        "rows": [_row(block) for block in _of(one, "actions")],
        "reply": quoted or None,
        "files": [*(_file(file) for file in of_people), *_linked(one, files)],
    }


def _said(one: Json, names: Mapping[str, str]) -> str:
    """Return a message's text, unescaped; people's and the bot's are escaped alike."""
    texts = [str(block["text"]) for block in _of(one, "markdown")] or [str(one.get("text", ""))]
    said = _MENTION.sub(lambda found: f"@{names.get(found[1], found[1])}", "\n".join(texts))
    return said.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _of(one: Json, kind: str) -> list[Json]:
    found = cast("list[Json]", one.get("blocks") or [])
    return [block for block in found if block["type"] == kind]


def _blocks(one: Json, said: str) -> Sequence[Json]:
    texts = [inner for block in _of(one, "rich_text") for inner in _elements(block)]
    lines = [line for block in _of(one, "context") for line in _elements(block)]
    proofs = [
        {"type": "paragraph", "text": [{"type": "italic", "text": [str(line["text"])]}]}
        for line in lines
        if not _LINK.search(str(line["text"]))
    ]
    tasks = cast("Mapping[str, Json]", one.get("tasks") or {}).values()
    steps = [
        {"type": "paragraph", "text": [f"{_SIGNS[str(task['status'])]} {task['title']}"]}
        for task in tasks
    ]
    return [*([_plain(inner) for inner in texts] or blocks(said)), *steps, *proofs]


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
            "text": str(cast("Json", one["text"])["text"]),
            "callback_data": f"{one['action_id']} {one['value']}",
            "style": _STYLES.get(str(one.get("style")), ""),
        }
        for one in _elements(block)
    ]


def _linked(one: Json, files: Mapping[str, Json]) -> list[Json]:
    texts = [str(line["text"]) for block in _of(one, "context") for line in _elements(block)]
    links = [found[1] for text in texts if (found := _LINK.search(text))]
    return [_file(files[link]) for link in links if link in files]


def _file(file: Json) -> Json:
    return {"kind": "file", "name": str(file["name"]), "path": str(file["id"])}
