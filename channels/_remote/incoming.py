"""Text and names of incoming messages, the same for every platform; pure."""

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta

from channels._remote.fields import Json, integer, text
from zeroclaw import Attachment, Value, shortened

MOST_QUOTED_CHARS = 1_000
MOST_NAME_CHARS, MOST_LINE_CHARS = 64, 300
LATEST_MENTION = timedelta(days=1)
"""How long after a message an edit may add the mention that makes it one for the bot. Far less than
ingress knows a message again, so an edit has none answered a second time."""


class Skipped(Value):
    """An event that is of no use to the bot, with the reason in a few words."""

    reason: str


def plain_name(name: str, most: int = MOST_NAME_CHARS) -> str:
    """Return a name as one short line without the signs that end a note of the runtime's, or a name in it."""
    shown = " ".join(name.split()).translate(str.maketrans('[]"', "()'"))
    return shortened(shown, most)


def listed(title: str, named: str, items: Iterable[str]) -> str:
    """Return a poll or the like as a line: its title, what its items are called, and these."""
    shown = "; ".join(plain_name(one, MOST_LINE_CHARS) for one in items)
    return f"{plain_name(title, MOST_LINE_CHARS)} {named}: {shown}"


def quoted(words: str, name: str) -> str:
    """Return the quote of a replied-to message, to put before the reply; empty for no words.

    Args:
        words: Of that message.
        name: Of its writer, who chose it and may be called `you`; empty for the bot itself.
    """
    if not words.strip():
        return ""
    cut = f"{words[:MOST_QUOTED_CHARS]}…" if len(words) > MOST_QUOTED_CHARS else words
    lines = "\n".join(f"> {line}" for line in cut.splitlines())
    whose = f'"{name}"' if name else "you"
    return f"[in reply to what {whose} wrote:]\n{lines}\n\n"


def version(words: str) -> str:
    """Return by what the words of an edit are known again: a platform's time may count seconds."""
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def is_timely(written: datetime | None, edited: datetime | None) -> bool:
    """Whether an edit may still make a message one for the bot."""
    return written is not None and edited is not None and edited - written <= LATEST_MENTION


def attached(file: Json, reference: str, *, name: str, kind: str) -> Attachment:
    """Return a message's file; `name` and `kind` are the JSON keys of its name and media type."""
    return Attachment(
        reference=reference,
        name=text(file, name) or "file",
        media_type=text(file, kind) or "application/octet-stream",
        size_bytes=integer(file, "size"),
    )
