"""Messages that come in pieces: which pieces belong together, and how long to wait (pure).

    a piece that continues ──▶ open ──the next piece──▶ open
                              │  └──the last one, or too much──▶ whole
                              └──time, or something else from that person──▶ whole

A whole message waits for nothing. An album stays open for its time, whatever its sender does; a
text ends when they do anything but edit a piece of it.
"""

from datetime import datetime, timedelta

from zeroclaw.conversation.inbox import Fragment, Item, PersonMessage
from zeroclaw.envelope import Attachment, Command, Envelope, ItemId, Said
from zeroclaw.value import Value

MOST_PIECES = 32
"""Pieces of one message; further ones start a new message."""
MOST_CHARS = 200_000
"""Limit of one message's text."""
SENT_WITHIN = timedelta(seconds=10)
"""The longest time between two pieces by the platform's own times: messages that piled up while the
daemon was down arrive all at once, however far apart they were written."""
CUT_WITHIN = timedelta(seconds=2)
"""The longest time between a piece and one that reads like a command: nobody types a command that
fast, but a pasted text may have a slash where it is split."""
ALWAYS_OBEYED = frozenset({"stop", "halt"})
"""Commands that only end something, so they are never taken as part of a text."""


class PartialMessage(Value):
    """A message whose rest may still come.

    Attributes:
        id: The item of its first piece.
        place: The address's key.
        sender: The platform's id of its sender.
        group: As in `Continues`.
        last: The newest piece.
        until: When to stop waiting, on the monotonic clock.
        pieces: The number of pieces.
        chars: The length of their texts.
        files: The files accepted with them.
        sent_at: When the newest piece was written.
    """

    id: ItemId
    place: str
    sender: str
    group: str
    last: ItemId
    until: float
    pieces: int = 1
    chars: int = 0
    files: tuple[Attachment, ...] = ()
    sent_at: datetime | None = None


def extended(
    run: PartialMessage | None, item: Item, ask: PersonMessage, piece: Fragment, *, now: float
) -> PartialMessage | None:
    """Return a run with one more piece; None if that was the last one, or a whole message.

    Args:
        run: None for the first piece, which opens it.
        item: The piece.
        ask: Its content.
        piece: Its place in the message.
        now: On the monotonic clock.
    """
    pieces = 1 if run is None else run.pieces + 1
    if not piece.more_s or pieces >= MOST_PIECES:
        return None
    return PartialMessage(
        id=piece.run,
        place=item.address.key(),
        sender=item.principal.sender,
        group=piece.group if run is None else run.group,
        last=item.id,
        until=now + piece.more_s,
        pieces=pieces,
        chars=len(ask.text) + (run.chars if run else 0),
        files=(*(run.files if run else ()), *ask.attachments),
        sent_at=item.sent_at,
    )


def takes(run: PartialMessage, envelope: Envelope, *, now: float) -> bool:
    """Whether an event is the next piece; it comes from the same person in the same place."""
    rest, more = rest_of(envelope), envelope.continues
    if rest is None or now >= run.until:
        return False
    if run.chars + len(rest.text) > MOST_CHARS or _is_apart(run.sent_at, envelope.sent_at):
        return False
    if run.group:
        return more is not None and more.group == run.group
    if isinstance(envelope.body, Command) and not _is_cut(run.sent_at, envelope.sent_at):
        return False
    is_text = not envelope.attachments and (more is None or not more.group)
    return is_text and not envelope.alone


def rest_of(envelope: Envelope) -> Said | None:
    """Return an event as the rest of a message; None for an event that never is a rest."""
    match envelope.body:
        case Said() as said:
            return said
        case Command(name=name) if (typed := envelope.verbatim) and name not in ALWAYS_OBEYED:
            # A quotation, if there is one, comes before a command's slash.
            return Said(text=typed, own=None if typed.startswith("/") else "")
        case _:
            return None


def _is_cut(before: datetime | None, after: datetime | None) -> bool:
    return before is not None and after is not None and abs(after - before) <= CUT_WITHIN


def _is_apart(before: datetime | None, after: datetime | None) -> bool:
    return before is not None and after is not None and abs(after - before) > SENT_WITHIN
