"""The content of a message as the model reads it: its text, quotes, attachments and the like.

It also decides whether a message probably continues in the next one, as a long text that the app split
or as an album does. Apps split a text into messages of 4,096 UTF-16 units. Android's looks for a place in
the last 300 units, Telegram Desktop in the second half, and the one for iOS takes the last end of a
line or sentence (their published sources, read 2026-11). They send all parts at once, so the rest
arrives sooner than a person could type it. No rest is expected after a shorter text.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import cast

from channels._remote.fields import Json, array, as_object, inner, integer, number, storable, text
from channels._remote.incoming import item_line, plain_name, quote
from channels._remote.limits import units
from channels.telegram import cards
from zeroclaw import Attachment, Continues

FULL = 4096
NEARLY_FULL = FULL - 300
HALF = FULL // 2
FULL_S = 1.5
"""Seconds to wait for the rest of a text that fills its message; it is hardly ever complete."""
HALF_S = 0.6
"""Seconds to wait after a text that fills half of its message; it may well be complete."""
ALBUM_S = 1.0
"""Seconds to wait for another picture of an album; nothing marks the last one."""

MAX_LEVELS = 40
"""Deepest nesting that is read; Telegram allows 16."""
_TICKS = re.compile("`+")
_BLOCKS = frozenset({"blockquote", "expandable_blockquote", "pre"})
_TEXT_KEYS = ("summary", "text", "expression", "caption", "credit")
_STYLED_KEYS = ("text", "expression", "alternative_text")

_FILES: Mapping[str, tuple[str, str]] = {
    # An animation comes as a document as well, so it is tested first.
    "animation": ("animation.mp4", "video/mp4"),
    "document": ("document", "application/octet-stream"),
    "audio": ("audio", "audio/mpeg"),
    "voice": ("voice.ogg", "audio/ogg"),
    "video": ("video.mp4", "video/mp4"),
    "video_note": ("video-note.mp4", "video/mp4"),
}
"""Default name and media type of each kind of file, if Telegram gives none."""


def text_of(message: Json) -> str:
    """Return the text of a message, of a file's caption, or of a rich message.

    Quotes and code blocks, which are entities, get their Markdown marks, and each link its target.
    """
    encoded = _plain(message).encode("utf-16-le")
    spans = (
        (*_span(entity), text(entity, "type"), text(entity, "url")) for entity in entities(message)
    )
    marks: list[tuple[int, str]] = []
    done = 0
    for start, end, kind, url in sorted(spans, key=lambda span: (span[0], -span[1], span[2])):
        if not start < end <= len(encoded):
            continue
        covered = encoded[start:end].decode("utf-16-le", "replace")
        # The link in a question for a reason names its approval, which no model needs to know.
        if url not in {"", covered} and cards.ASKS not in url:
            marks.append((end, f" ({url})"))
        if kind not in _BLOCKS or start < done:
            continue
        done = end
        if kind == "pre":
            fence = "`" * max([3, *(len(ticks) + 1 for ticks in _TICKS.findall(covered))])
            marks += ((start, f"{fence}\n"), (end, f"\n{fence}"))
            continue
        for line in covered.split("\n"):
            marks.append((start, "> "))
            start += 2 * units(line) + 2  # noqa: PLW2901  the next line's
    result, done = "", 0
    for at, mark in sorted(marks, key=itemgetter(0)):
        result += encoded[done:at].decode("utf-16-le", "replace") + mark
        done = at
    return result + encoded[done:].decode("utf-16-le", "replace")


def _plain(message: Json) -> str:
    return text(message, "text") or text(message, "caption") or rich_text(message)


def entities(message: Json) -> tuple[Json, ...]:
    """Return the entities of a message's text or caption."""
    raw = array(message, "entities") or array(message, "caption_entities")
    return tuple(as_object(entity) for entity in raw)


def covered_text(message: Json, entity: Json) -> str:
    """Return the piece of the text that an entity covers; offsets count UTF-16 units."""
    start, end = _span(entity)
    return _plain(message).encode("utf-16-le")[start:end].decode("utf-16-le", "replace")


def _span(entity: Json) -> tuple[int, int]:
    """Return where an entity begins and ends, in bytes of UTF-16; nowhere for an odd one."""
    offset, length = integer(entity, "offset"), integer(entity, "length")
    if offset is None or length is None or offset < 0 or length < 0:
        return 0, 0
    return 2 * offset, 2 * (offset + length)


# --- names -----------------------------------------------------------------------------------------


def name_of(user: Json) -> str:
    """Return the name of a user or a chat, which people choose freely.

    It is one line without square brackets, so that a name can't pass for our own notes.
    """
    full = f"{text(user, 'first_name')} {text(user, 'last_name')}".strip()
    name = full or text(user, "title") or text(user, "username")
    return plain_name(name) or str(integer(user, "id") or "somebody")


# --- quotes and forwards -------------------------------------------------------------------------


def lead(message: Json, bot_id: int) -> str:
    """Return the notes before a text: its origin if forwarded, and the message that it replies to."""
    return f"{_forward_note(message)}{_reply_note(message, bot_id)}"


def _forward_note(message: Json) -> str:
    origin = inner(message, "forward_origin")
    if not origin:
        return ""
    writer = inner(origin, "sender_user") or inner(origin, "sender_chat") or inner(origin, "chat")
    name = plain_name(text(origin, "sender_user_name")) or name_of(writer)
    return f"[forwarded from {name}]\n"


def _reply_note(message: Json, bot_id: int) -> str:
    if message.keys().isdisjoint(("reply_to_message", "quote")):
        return ""  # the usual case
    original = inner(message, "reply_to_message")
    content = text_of(inner(message, "quote")) or text_of(original) or other_content(original)
    author = inner(original, "from")
    return quote(content, "" if integer(author, "id") == bot_id else name_of(author))


# --- files and other content ---------------------------------------------------------------------


def attachments(message: Json) -> tuple[Attachment, ...]:
    """Return the file of a message; a message has at most one."""
    if sizes := [as_object(size) for size in array(message, "photo")]:
        largest = max(
            sizes, key=lambda size: (integer(size, "width") or 0) * (integer(size, "height") or 0)
        )
        return _file(largest, f"photo-{integer(message, 'message_id') or 0}.jpg", "image/jpeg")
    kind = next(filter(message.__contains__, _FILES), "")
    return _file(inner(message, kind), *_FILES[kind]) if kind else ()


def quoted_files(message: Json) -> tuple[Attachment, ...]:
    """Return the file of the replied-to message, also if that one is in another chat."""
    return attachments(inner(message, "reply_to_message") or inner(message, "external_reply"))


def _file(file: Json, name: str, media_type: str) -> tuple[Attachment, ...]:
    reference = text(file, "file_id")
    if not reference:
        return ()
    attachment = Attachment(
        reference=reference,
        name=text(file, "file_name") or name,
        media_type=text(file, "mime_type") or media_type,
        size_bytes=integer(file, "file_size"),
    )
    return (attachment,)


def other_content(message: Json) -> str:
    """Describe other content of a message, such as a location or a poll; empty for none."""
    kind = next(filter(message.__contains__, _OTHER_CONTENT), "")
    return f"[{_OTHER_CONTENT[kind](inner(message, kind))}]" if kind else ""


def may_quote_others(message: Json) -> bool:
    """Whether the other content of a message has text that other people may have written."""
    return not message.keys().isdisjoint(("venue", "contact", "poll", "checklist"))


def _venue(value: Json) -> str:
    place = _location(inner(value, "location"))
    return f"{place}, {plain_name(text(value, 'title'))}, {plain_name(text(value, 'address'))}"


def _location(value: Json) -> str:
    return f"location: latitude {number(value, 'latitude')}, longitude {number(value, 'longitude')}"


def _list(value: Json, title: str, items_label: str, key: str) -> str:
    texts = (text(as_object(item), "text") for item in array(value, key))
    return item_line(text(value, title), items_label, texts)


_OTHER_CONTENT: Mapping[str, Callable[[Json], str]] = {
    "sticker": lambda value: f"sticker {text(value, 'emoji')}".rstrip(),
    # A venue comes as a location as well, so it is tested first.
    "venue": _venue,
    "location": _location,
    "contact": lambda value: (
        f"contact: {name_of(value)}, {plain_name(text(value, 'phone_number'))}"
    ),
    "poll": lambda value: f"poll: {_list(value, 'question', 'Options', 'options')}",
    "checklist": lambda value: f"checklist: {_list(value, 'title', 'Tasks', 'tasks')}",
    "story": lambda _: "story",
    "dice": lambda value: f"{text(value, 'emoji') or 'dice'} shows {integer(value, 'value')}",
}


# --- rich messages -------------------------------------------------------------------------------


def rich_text(message: Json) -> str:
    """Return the text of a rich message, which has only blocks; empty for any other message.

    Each row of a table is a line. People reply to our rich messages, or forward those of other bots.
    The fields are those of RichBlock and RichText (Bot API 10.1 of 2026-06-11, read 2026-11). Newer
    kinds are read as far as they have the same fields.
    """
    lines = _lines(array(inner(message, "rich_message"), "blocks"), MAX_LEVELS)
    return storable("\n".join(lines)).strip()


def _lines(blocks: Sequence[object], levels: int) -> Iterator[str]:
    for block in map(as_object, blocks if levels else ()):
        for key in _TEXT_KEYS:
            if key in block:
                yield _styled(block[key], levels)
        for row in array(block, "cells"):
            cells = cast("list[object]", row) if isinstance(row, list) else []
            yield " | ".join(_styled(as_object(cell).get("text"), levels) for cell in cells)
        for item in map(as_object, array(block, "items")):
            content = "\n".join(_lines(array(item, "blocks"), levels - 1))
            yield f"{text(item, 'label')} {content}"
        yield from _lines(array(block, "blocks"), levels - 1)


def _styled(value: object, levels: int) -> str:
    """Return the text of a RichText: a string, an object with a text, or a list of these."""
    if isinstance(value, str):
        return value
    if not levels:
        return ""
    if isinstance(value, list):
        return "".join(_styled(part, levels - 1) for part in cast("list[object]", value))
    styled = as_object(value)
    content = _styled(next((styled[key] for key in _STYLED_KEYS if key in styled), ""), levels - 1)
    url = text(styled, "url")
    return content if url in {"", content} else f"{content} ({url})"


# --- messages in several parts -------------------------------------------------------------------


def continues(message: Json, bot_id: int) -> Continues | None:
    """Return how a message may continue in the next one, None if it is complete.

    Args:
        message: The Bot API's Message.
        bot_id: The bot's user id, which is quoted as "you".
    """
    group = text(message, "media_group_id")
    if group:
        return Continues(within_s=ALBUM_S, group=group, lead=lead(message, bot_id))
    content = text(message, "text")
    if len(content) <= HALF // 2 or stands_alone(message):
        return None
    length = len(content.encode("utf-16-le")) // 2
    if length <= HALF:
        return None
    return Continues(
        within_s=FULL_S if length > NEARLY_FULL else HALF_S,
        room=max(FULL - length, 0),
        lead=lead(message, bot_id),
    )


def may_be_rest(message: Json) -> bool:
    """Whether a message without a mention may be a part of an earlier one that mentioned the bot."""
    return bool(text(message, "media_group_id")) or (
        bool(text(message, "text")) and not stands_alone(message)
    )


def stands_alone(message: Json) -> bool:
    """Whether a message was not written by its sender, but forwarded or sent via another bot.

    It is never a command, and never a part of an earlier message. Bot API servers older than 7.0 send
    `forward_date` alone.
    """
    return not message.keys().isdisjoint(("forward_origin", "forward_date", "via_bot"))
