"""Text and names of incoming messages, the same for every platform; pure."""

import hashlib
import re
from collections.abc import Iterable
from datetime import datetime, timedelta

from channels._remote.fields import Json, integer, text
from zeroclaw import Attachment, Value, shortened

# Not the colon of `:wq` or of an emoji's name.
_SET_OFF = re.compile(r"\A\s*(?:,+|:+(?=[\s/]|\Z))")
MAX_QUOTED_CHARS = 1_000
MAX_NAME_CHARS, MAX_LINE_CHARS = 64, 300
LATEST_MENTION = timedelta(days=1)
"""How long after a message an edit may add the mention that addresses it to the bot. Ingress recognises
repeats for far longer, so an edit never makes the bot answer a message twice."""


class Skipped(Value):
    """An event that is of no use to the bot, with the reason in a few words, for the log."""

    reason: str


def plain_name(name: str, max_chars: int = MAX_NAME_CHARS) -> str:
    """Return a name as one short line without the characters that end a runtime note or a name in one."""
    line = " ".join(name.split()).translate(str.maketrans('[]"', "()'"))
    return shortened(line, max_chars)


def item_line(title: str, label: str, items: Iterable[str]) -> str:
    """Return a poll or the like as a line: its title, the label of its items, and the items."""
    joined = "; ".join(plain_name(item, MAX_LINE_CHARS) for item in items)
    return f"{plain_name(title, MAX_LINE_CHARS)} {label}: {joined}"


def quote(original: str, name: str) -> str:
    """Return the quote of a replied-to message, to put before the reply; empty for a blank text.

    Args:
        original: The text of that message.
        name: The name that its author chose, even `you`; empty for the bot itself.
    """
    if not original.strip():
        return ""
    cut = f"{original[:MAX_QUOTED_CHARS]}…" if len(original) > MAX_QUOTED_CHARS else original
    lines = "\n".join(f"> {line}" for line in cut.splitlines())
    author = f'"{name}"' if name else "you"
    return f"[in reply to what {author} wrote:]\n{lines}\n\n"


def after_mention(words: str) -> str:
    """Return what follows a leading mention of the bot, without the comma or colon that sets it off."""
    return _SET_OFF.sub("", words, count=1).lstrip()


def text_hash(content: str) -> str:
    """Return a hash that tells two edits within a second apart, since platforms may count seconds."""
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def is_timely(sent_at: datetime | None, edited_at: datetime | None) -> bool:
    """Whether an edit may still address a message to the bot."""
    return sent_at is not None and edited_at is not None and edited_at - sent_at <= LATEST_MENTION


def attachment(file: Json, reference: str, *, name: str, kind: str) -> Attachment:
    """Return a message's file; `name` and `kind` are the JSON keys of its name and media type."""
    return Attachment(
        reference=reference,
        name=text(file, name) or "file",
        media_type=text(file, kind) or "application/octet-stream",
        size_bytes=integer(file, "size"),
    )
