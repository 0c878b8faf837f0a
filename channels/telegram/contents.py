"""The content of a message as the model reads it: its text, quotes, attachments and the like.

It also decides whether a message probably continues in the next one: as a long text that the app split,
or as an album. Apps split a text into messages of 4,096 UTF-16 units. Android's looks for a place in
the last 300 units, Telegram Desktop in the second half, and the one for iOS takes the last end of a
line or sentence (their published sources, read 2026-11). They send all parts at once, so the rest
arrives sooner than a person could type it. After shorter texts nothing is waited for.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from channels._remote.fields import Json, array, as_object, inner, integer, number, storable, text
from channels._remote.incoming import listed, plain_name, quoted
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

MOST_LEVELS = 40
"""Deepest nesting that is read; Telegram allows 16."""
_TICKS = re.compile("`+")
_BLOCKS = frozenset({"blockquote", "expandable_blockquote", "pre"})
_SAID = ("summary", "text", "expression", "caption", "credit")
_SHOWN = ("text", "expression", "alternative_text")

_FILES: Mapping[str, tuple[str, str]] = {
    # An animation comes as a document as well, so it is looked for first.
    "animation": ("animation.mp4", "video/mp4"),
    "document": ("document", "application/octet-stream"),
    "audio": ("audio", "audio/mpeg"),
    "voice": ("voice.ogg", "audio/ogg"),
    "video": ("video.mp4", "video/mp4"),
    "video_note": ("video-note.mp4", "video/mp4"),
}
"""Default name and media type of each kind of file, if Telegram gives none."""


def words(message: Json) -> str:
    """Return the text of a message, of a file's caption, or of a rich message.

    What its writer formatted as a quote or a code block is marked as where people type the marks.
    """
    units = _plain(message).encode("utf-16-le")
    spans = ((_span(one), text(one, "type")) for one in marks(message))
    read, done = "", 0
    for (start, end), kind in sorted(spans, key=lambda one: (one[0][0], -one[0][1], one[1])):
        if kind not in _BLOCKS or not done <= start < end <= len(units):
            continue
        inside = units[start:end].decode("utf-16-le", "replace")
        if kind == "pre":
            sign = "`" * max([3, *(len(ticks) + 1 for ticks in _TICKS.findall(inside))])
            shown = f"{sign}\n{inside}\n{sign}"
        else:
            shown = "> " + inside.replace("\n", "\n> ")
        read += units[done:start].decode("utf-16-le", "replace") + shown
        done = end
    return read + units[done:].decode("utf-16-le", "replace")


def _plain(message: Json) -> str:
    return text(message, "text") or text(message, "caption") or rich_words(message)


def marks(message: Json) -> tuple[Json, ...]:
    """Return the entities of a message's text or caption."""
    found = array(message, "entities") or array(message, "caption_entities")
    return tuple(as_object(one) for one in found)


def marked(message: Json, mark: Json) -> str:
    """Return the piece of the text that an entity covers; offsets count UTF-16 units."""
    start, end = _span(mark)
    return _plain(message).encode("utf-16-le")[start:end].decode("utf-16-le", "replace")


def _span(mark: Json) -> tuple[int, int]:
    """Return where an entity begins and ends, in bytes of UTF-16; nowhere for an odd one."""
    offset, length = integer(mark, "offset"), integer(mark, "length")
    if offset is None or length is None or offset < 0 or length < 0:
        return 0, 0
    return 2 * offset, 2 * (offset + length)


# --- who -----------------------------------------------------------------------------------------


def name_of(user: Json) -> str:
    """Return the name of a user or a chat, which people choose freely.

    It is one line without square brackets, so that a name can't pass for our own notes.
    """
    full = f"{text(user, 'first_name')} {text(user, 'last_name')}".strip()
    name = full or text(user, "title") or text(user, "username")
    return plain_name(name) or str(integer(user, "id") or "somebody")


# --- quotes and forwards -------------------------------------------------------------------------


def with_context(message: Json, said: str, bot: int) -> str:
    """Return a text after the notes about its origin and the message that it replies to."""
    before = lead(message, bot)
    return f"{before}{said}" if said else before.rstrip()


def lead(message: Json, bot: int) -> str:
    """Return the notes before a text: who it was forwarded from, and what it replies to."""
    return f"{_forwarded(message)}{_quoted(message, bot)}"


def _forwarded(message: Json) -> str:
    origin = inner(message, "forward_origin")
    if not origin:
        return ""
    whom = inner(origin, "sender_user") or inner(origin, "sender_chat") or inner(origin, "chat")
    name = plain_name(text(origin, "sender_user_name")) or name_of(whom)
    return f"[forwarded from {name}]\n"


def _quoted(message: Json, bot: int) -> str:
    if message.keys().isdisjoint(("reply_to_message", "quote")):
        return ""  # the usual case
    answered = inner(message, "reply_to_message")
    said = text(inner(message, "quote"), "text") or words(answered) or thing(answered)
    author = inner(answered, "from")
    return quoted(said, "" if integer(author, "id") == bot else name_of(author))


# --- files and other content ---------------------------------------------------------------------


def attachments(message: Json) -> tuple[Attachment, ...]:
    """Return the file of a message; a message has at most one."""
    pictures = [as_object(one) for one in array(message, "photo")]
    if pictures:
        largest = max(
            pictures, key=lambda one: (integer(one, "width") or 0) * (integer(one, "height") or 0)
        )
        return _file(largest, f"photo-{integer(message, 'message_id') or 0}.jpg", "image/jpeg")
    kind = next(filter(message.__contains__, _FILES), "")
    return _file(inner(message, kind), *_FILES[kind]) if kind else ()


def quoted_files(message: Json) -> tuple[Attachment, ...]:
    """Return the file of the message that one replies to, also if that stands in another chat."""
    answered = inner(message, "reply_to_message") or inner(message, "external_reply")
    return attachments(answered)


def _file(found: Json, name: str, media_type: str) -> tuple[Attachment, ...]:
    reference = text(found, "file_id")
    if not reference:
        return ()
    attachment = Attachment(
        reference=reference,
        name=text(found, "file_name") or name,
        media_type=text(found, "mime_type") or media_type,
        size_bytes=integer(found, "file_size"),
    )
    return (attachment,)


def thing(message: Json) -> str:
    """Describe other content of a message, such as a location or a poll; empty for none."""
    kind = next(filter(message.__contains__, _THINGS), "")
    return f"[{_THINGS[kind](inner(message, kind))}]" if kind else ""


def is_of_others(message: Json) -> bool:
    """Whether the other content of a message has text that other people may have written."""
    return not message.keys().isdisjoint(("venue", "contact", "poll", "checklist"))


def _venue(found: Json) -> str:
    place = _location(inner(found, "location"))
    return f"{place}, {plain_name(text(found, 'title'))}, {plain_name(text(found, 'address'))}"


def _location(found: Json) -> str:
    return f"location: latitude {number(found, 'latitude')}, longitude {number(found, 'longitude')}"


def _list(found: Json, title: str, named: str, key: str) -> str:
    texts = (text(as_object(one), "text") for one in array(found, key))
    return listed(text(found, title), named, texts)


_THINGS: Mapping[str, Callable[[Json], str]] = {
    "sticker": lambda found: f"sticker {text(found, 'emoji')}".rstrip(),
    # A venue comes as a location as well, so it is looked for first.
    "venue": _venue,
    "location": _location,
    "contact": lambda found: (
        f"contact: {name_of(found)}, {plain_name(text(found, 'phone_number'))}"
    ),
    "poll": lambda found: f"poll: {_list(found, 'question', 'Options', 'options')}",
    "checklist": lambda found: f"checklist: {_list(found, 'title', 'Tasks', 'tasks')}",
    "story": lambda _: "story",
    "dice": lambda found: f"{text(found, 'emoji') or 'dice'} shows {integer(found, 'value')}",
}


# --- rich messages -------------------------------------------------------------------------------


def rich_words(message: Json) -> str:
    """Return the text of a rich message, which has only blocks; empty for any other message.

    Each row of a table is a line. People reply to our rich messages, or forward those of other bots.
    The fields are those of RichBlock and RichText (Bot API 10.1 of 2026-06-11, read 2026-11). Newer
    kinds are read as far as they have the same fields.
    """
    return "\n".join(_lines(array(inner(message, "rich_message"), "blocks"), MOST_LEVELS)).strip()


def _lines(blocks: Sequence[object], levels: int) -> Iterator[str]:
    for one in map(as_object, blocks if levels else ()):
        for key in _SAID:
            if key in one:
                yield _said(one[key], levels)
        for row in array(one, "cells"):
            cells = cast("list[object]", row) if isinstance(row, list) else []
            yield " | ".join(_said(as_object(cell).get("text"), levels) for cell in cells)
        for item in map(as_object, array(one, "items")):
            held = "\n".join(_lines(array(item, "blocks"), levels - 1))
            yield f"{text(item, 'label')} {held}"
        yield from _lines(array(one, "blocks"), levels - 1)


def _said(found: object, levels: int) -> str:
    """Return the text of a RichText: a string, an object with a text, or a list of these."""
    if isinstance(found, str):
        return storable(found)
    if not levels:
        return ""
    if isinstance(found, list):
        return "".join(_said(one, levels - 1) for one in cast("list[object]", found))
    styled = as_object(found)
    return _said(next((styled[key] for key in _SHOWN if key in styled), ""), levels - 1)


# --- messages in several parts -------------------------------------------------------------------


def continues(message: Json, bot: int) -> Continues | None:
    """Return how a message may continue in the next one, None if it is complete.

    Args:
        message: The Bot API's Message.
        bot: The bot's user id, which is quoted as "you".
    """
    group = text(message, "media_group_id")
    if group:
        return Continues(within_s=ALBUM_S, group=group, lead=lead(message, bot))
    said = text(message, "text")
    if len(said) <= HALF // 2 or stands_alone(message):
        return None
    units = len(said.encode("utf-16-le")) // 2
    if units <= HALF:
        return None
    return Continues(
        within_s=FULL_S if units > NEARLY_FULL else HALF_S,
        room=max(FULL - units, 0),
        lead=lead(message, bot),
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
