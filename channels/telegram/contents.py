"""What a message holds, as the model reads it: its words, what it quotes, what came with it.

And whether it very likely goes on in the next one: long texts that a client cut, and albums. Clients
cut a text into messages of 4,096 UTF-16 units. The one for Android looks for a place in the last 300
of them, Telegram Desktop in the second half, and the one for iOS takes the last end of a line or
sentence (their published sources, read 2026-11). They send all of it at once, so the rest is there
within a moment; a person can't type that fast. Shorter texts are never waited for.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from channels._remote.fields import Json, array, as_object, inner, number, storable, text, whole
from channels._remote.said import plain_name, quoted
from zeroclaw import Attachment, Continues

FULL = 4096
NEARLY_FULL = FULL - 300
HALF = FULL // 2
FULL_S = 1.5
"""Seconds for the rest of a text that fills its message; it hardly ever ends there."""
HALF_S = 0.6
"""Seconds for that of one that fills half of it, which may well be all."""
ALBUM_S = 1.0
"""Seconds for one more picture of an album; nothing says which one is the last."""

MOST_LEVELS = 40
"""Telegram allows 16; what lies deeper was not written by Telegram."""
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
"""How each kind of file is called, and what it is, where Telegram does not say."""


def words(message: Json) -> str:
    """Return what was written: the text, a file's caption, or a rich message's words."""
    return text(message, "text") or text(message, "caption") or rich_words(message)


def marks(message: Json) -> tuple[Json, ...]:
    """Return the entities of what was written."""
    found = array(message, "entities") or array(message, "caption_entities")
    return tuple(as_object(one) for one in found)


def marked(message: Json, mark: Json) -> str:
    """Return the piece of the text that an entity covers; offsets count UTF-16 units."""
    offset, length = whole(mark, "offset"), whole(mark, "length")
    if offset is None or length is None or offset < 0 or length < 0:
        return ""
    units = words(message).encode("utf-16-le")
    return units[2 * offset : 2 * (offset + length)].decode("utf-16-le", "replace")


# --- who -----------------------------------------------------------------------------------------


def name_of(user: Json) -> str:
    """Return how a user, or a chat, is called; users choose that themselves.

    One line without brackets, so that a name can't pass for what we write around it.
    """
    full = f"{text(user, 'first_name')} {text(user, 'last_name')}".strip()
    name = full or text(user, "title") or text(user, "username")
    return plain_name(name) or str(whole(user, "id") or "somebody")


# --- around the words ----------------------------------------------------------------------------


def with_context(message: Json, said: str, bot: int) -> str:
    """Return the words with what they answer or pass on before them."""
    before = lead(message, bot)
    return f"{before}{said}" if said else before.rstrip()


def lead(message: Json, bot: int) -> str:
    """Return what stands before the words: whose they are, and what they answer."""
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
        return ""  # as most often
    answered = inner(message, "reply_to_message")
    said = text(inner(message, "quote"), "text") or words(answered) or thing(answered)
    author = inner(answered, "from")
    whose = "you" if whole(author, "id") == bot else name_of(author)
    return quoted(said, whose if author else "somebody")


# --- what came with the words --------------------------------------------------------------------


def attachments(message: Json) -> tuple[Attachment, ...]:
    """Return the file of a message; a message has one at most."""
    pictures = [as_object(one) for one in array(message, "photo")]
    if pictures:
        largest = max(
            pictures, key=lambda one: (whole(one, "width") or 0) * (whole(one, "height") or 0)
        )
        return _file(largest, f"photo-{whole(message, 'message_id') or 0}.jpg", "image/jpeg")
    kind = next(filter(message.__contains__, _FILES), "")
    return _file(inner(message, kind), *_FILES[kind]) if kind else ()


def _file(found: Json, name: str, media_type: str) -> tuple[Attachment, ...]:
    reference = text(found, "file_id")
    if not reference:
        return ()
    attachment = Attachment(
        reference=reference,
        name=text(found, "file_name") or name,
        media_type=text(found, "mime_type") or media_type,
        size_bytes=whole(found, "file_size"),
    )
    return (attachment,)


def thing(message: Json) -> str:
    """Return in words what a message holds beside words and files, empty for nothing we know."""
    kind = next(filter(message.__contains__, _THINGS), "")
    return f"[{_THINGS[kind](inner(message, kind))}]" if kind else ""


def is_of_others(message: Json) -> bool:
    """Whether what a message holds beside words has a text that others may have chosen."""
    return not message.keys().isdisjoint(("venue", "contact", "poll"))


def _venue(found: Json) -> str:
    place = _location(inner(found, "location"))
    return f"{place}, {plain_name(text(found, 'title'))}, {plain_name(text(found, 'address'))}"


def _location(found: Json) -> str:
    latitude, longitude = number(found, "latitude"), number(found, "longitude")
    return f"location: latitude {latitude}, longitude {longitude}"


def _poll(found: Json) -> str:
    options = (plain_name(text(as_object(one), "text")) for one in array(found, "options"))
    return f"poll: {plain_name(text(found, 'question'))} Options: {'; '.join(options)}"


_THINGS: Mapping[str, Callable[[Json], str]] = {
    "sticker": lambda found: f"sticker {text(found, 'emoji')}".rstrip(),
    # A venue comes as a location as well, so it is looked for first.
    "venue": _venue,
    "location": _location,
    "contact": lambda found: (
        f"contact: {name_of(found)}, {plain_name(text(found, 'phone_number'))}"
    ),
    "poll": _poll,
    "dice": lambda found: f"{text(found, 'emoji') or 'dice'} shows {whole(found, 'value')}",
}


# --- rich messages -------------------------------------------------------------------------------


def rich_words(message: Json) -> str:
    """Return the words of a rich message, which has no text beside its blocks; empty for any other.

    Each row of a table is a line. Somebody answers one of ours, or passes on another bot's. Shapes of
    the Bot API's RichBlock and RichText (10.1 of 2026-06-11), read 2026-11. A kind that came later is
    read as far as it has the same fields.
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
    """Return the words of a RichText: a text, something with a text, or several of them."""
    if isinstance(found, str):
        return storable(found)
    if not levels:
        return ""
    if isinstance(found, list):
        return "".join(_said(one, levels - 1) for one in cast("list[object]", found))
    styled = as_object(found)
    return _said(next((styled[key] for key in _SHOWN if key in styled), ""), levels - 1)


# --- what goes on --------------------------------------------------------------------------------


def continues(message: Json, said: str, bot: int) -> Continues | None:
    """Return how a message goes on, None for one that is whole.

    Args:
        message: As the Bot API writes it.
        said: What was written in it.
        bot: Whose words are not quoted as another's.
    """
    group = text(message, "media_group_id")
    if group:
        return Continues(within_s=ALBUM_S, group=group, lead=lead(message, bot))
    if len(said) <= HALF // 2 or not text(message, "text") or stands_alone(message):
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
    """Whether a message may belong to one before it that named the bot, and itself does not."""
    return bool(text(message, "media_group_id")) or (
        bool(text(message, "text")) and not stands_alone(message)
    )


def stands_alone(message: Json) -> bool:
    """Whether its sender did not write it: they pass it on, or let another bot write it.

    It commands nothing, and is never the rest of what they wrote before.
    """
    return not message.keys().isdisjoint(("forward_origin", "via_bot"))
