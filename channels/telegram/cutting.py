"""Which messages very likely go on in the next one: long texts that a client cut, and albums.

Clients cut a text into messages of 4,096 UTF-16 units. The one for Android looks for a place in the
last 300 of them, Telegram Desktop in the second half, and the one for iOS takes the last end of a
line or sentence (their published sources, read 2026-11). They send all of it at once, so the rest is
there within a moment; nobody types that fast. Shorter texts are never waited for.
"""

from channels.telegram.contents import is_forwarded, lead
from channels.telegram.fields import Json, inner, text
from zeroclaw import Continues

FULL = 4096
NEARLY_FULL = FULL - 300
HALF = FULL // 2
FULL_S = 1.5
"""Seconds for the rest of a text that fills its message; it hardly ever ends there."""
HALF_S = 0.6
"""Seconds for that of one that fills half of it, which may well be all."""
ALBUM_S = 1.0
"""Seconds for one more picture of an album; nothing says which one is the last."""


def continues(message: Json, said: str, bot: int) -> Continues | None:
    """Return how a message goes on, None for one that is whole.

    Args:
        message: As the Bot API writes it.
        said: What was written in it.
        bot: Whose words are not quoted as somebody else's.
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
    return is_forwarded(message) or bool(inner(message, "via_bot"))
