"""Messages in fragments: which fragments belong together, and how long to wait (pure).

    a first fragment ──▶ partial ──the next fragment──▶ partial
                            │  └──the last one, or too much──▶ complete
                            └──time, or another event of that person──▶ complete

An album waits for its time, whatever its sender does; a text is complete when they do anything but
edit a fragment of it.
"""

from datetime import datetime, timedelta

from zeroclaw.conversation.inbox import Fragment, Item, PersonMessage
from zeroclaw.envelope import Attachment, Command, Envelope, ItemId, Said
from zeroclaw.value import Value

MAX_FRAGMENTS = 32
"""Fragments of one message; further ones start a new message."""
MAX_CHARS = 200_000
"""Limit of one message's text."""
SENT_WITHIN = timedelta(seconds=10)
"""The longest time between two fragments, by the platform's clock: messages that piled up while the
daemon was down arrive all at once, however far apart they were written."""
CUT_WITHIN = timedelta(seconds=2)
"""The longest time between a fragment and one that reads like a command: no person types a command
that fast, but a pasted text may have a slash where it is split."""
NEVER_TEXT = frozenset({"stop", "halt"})
"""Commands that only end something, so they are never part of a text."""


class PartialMessage(Value):
    """A message whose rest may still come.

    Attributes:
        id: The item of its first fragment.
        place: The address's key.
        sender: The platform's id of its sender.
        group: As in `Continues`.
        last: The newest fragment.
        until: When to stop waiting, on the monotonic clock.
        fragments: Their number.
        chars: The length of their texts.
        files: The files accepted with them.
        sent_at: When the newest fragment was written.
    """

    id: ItemId
    place: str
    sender: str
    group: str
    last: ItemId
    until: float
    fragments: int = 1
    chars: int = 0
    files: tuple[Attachment, ...] = ()
    sent_at: datetime | None = None


def extend(
    before: PartialMessage | None, item: Item, message: PersonMessage, part: Fragment, *, now: float
) -> PartialMessage | None:
    """Return a partial message with one more fragment; None if that completes it.

    Args:
        before: None for the first fragment.
        item: The item of the new fragment.
        message: Its content.
        part: Its place in the message.
        now: On the monotonic clock.
    """
    fragments = 1 if before is None else before.fragments + 1
    if not part.more_s or fragments >= MAX_FRAGMENTS:
        return None
    return PartialMessage(
        id=part.run,
        place=item.address.key(),
        sender=item.principal.sender,
        group=part.group if before is None else before.group,
        last=item.id,
        until=now + part.more_s,
        fragments=fragments,
        chars=len(message.text) + (before.chars if before else 0),
        files=(*(before.files if before else ()), *message.attachments),
        sent_at=item.sent_at,
    )


def is_next(partial: PartialMessage, envelope: Envelope, *, now: float) -> bool:
    """Whether an event, of the same person in the same chat, is the next fragment."""
    said, continues = as_rest(envelope), envelope.continues
    if said is None or now >= partial.until:
        return False
    if partial.chars + len(said.text) > MAX_CHARS or _is_apart(partial.sent_at, envelope.sent_at):
        return False
    if partial.group:
        return continues is not None and continues.group == partial.group
    if isinstance(envelope.body, Command) and not _is_cut(partial.sent_at, envelope.sent_at):
        return False
    is_text = not envelope.attachments and (continues is None or not continues.group)
    return is_text and not envelope.alone


def as_rest(envelope: Envelope) -> Said | None:
    """Return the text of an event as the rest of a message; None if it can't be one."""
    match envelope.body:
        case Said() as said:
            return said
        case Command(name=name) if (typed := envelope.verbatim) and name not in NEVER_TEXT:
            # A quotation, if there is one, comes before a command's slash.
            return Said(text=typed, own=None if typed.startswith("/") else "")
        case _:
            return None


def _is_cut(before: datetime | None, after: datetime | None) -> bool:
    return before is not None and after is not None and abs(after - before) <= CUT_WITHIN


def _is_apart(before: datetime | None, after: datetime | None) -> bool:
    return before is not None and after is not None and abs(after - before) > SENT_WITHIN
