"""Messages that come in pieces: what joins what, and how long is waited for more (pure).

    a piece that goes on ──▶ open ──the next piece──▶ open
                              │  └──the last one, or too much──▶ whole
                              └──time, or something else of that person──▶ whole

A whole one waits for nothing more. An album stays open for its time, whatever its sender does; a
text ends when they do anything but change a piece of it.
"""

from datetime import datetime, timedelta

from zeroclaw.conversation.inbox import Ask, Item, Piece
from zeroclaw.envelope import Command, Continues, Envelope, ItemId, Said
from zeroclaw.value import Value

MOST_PIECES = 32
"""Of one message; what comes beyond is a message of its own."""
MOST_CHARS = 200_000
"""Of one message's text."""
SENT_WITHIN = timedelta(seconds=10)
"""Between two pieces, where the platform says when they were written: what piled up while the
daemon was away comes all at once, however far apart it was said."""
CUT_WITHIN = timedelta(seconds=2)
"""Between a piece and one that reads like a command: a person can't type one that fast, but a
text that they paste can have a slash where it is cut."""
ALWAYS_OBEYED = frozenset({"stop", "halt"})
"""Commands that only end something."""


class Run(Value):
    """A message whose rest may still come.

    Attributes:
        id: The item of its first piece.
        place: The address's key.
        sender: Whose it is; the platform's id.
        group: As in `Continues`.
        last: The newest piece.
        until: When no more is waited for, on the monotonic clock.
        pieces: How many there are.
        chars: Of their texts.
        files: That came with them, and were taken.
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
    files: int = 0
    sent_at: datetime | None = None


def piece_of(run: ItemId, more: Continues | None) -> Piece | None:
    """Return what a message is of one that its client sent in several; None for a whole one."""
    if more is None:
        return None
    return Piece(run=run, group=more.group, more_s=more.within_s, room=more.room, lead=more.lead)


def extended(run: Run | None, item: Item, ask: Ask, piece: Piece, *, now: float) -> Run | None:
    """Return a run with one more piece; None when that was the last one, or a whole message.

    Args:
        run: None for the first piece, which opens it.
        item: The piece.
        ask: Its content.
        piece: What it is of its message.
        now: On the monotonic clock.
    """
    pieces = 1 if run is None else run.pieces + 1
    if not piece.more_s or pieces >= MOST_PIECES:
        return None
    return Run(
        id=piece.run,
        place=item.address.key(),
        sender=item.principal.sender,
        group=piece.group if run is None else run.group,
        last=item.id,
        until=now + piece.more_s,
        pieces=pieces,
        chars=len(ask.text) + (run.chars if run else 0),
        files=len(ask.attachments) + (run.files if run else 0),
        sent_at=item.sent_at,
    )


def takes(run: Run, envelope: Envelope, *, now: float) -> bool:
    """Whether an event is the next piece; it has come from the same person to the same place."""
    text, more = words(envelope), envelope.continues
    if text is None or now >= run.until:
        return False
    if run.chars + len(text) > MOST_CHARS or _is_apart(run.sent_at, envelope.sent_at):
        return False
    if run.group:
        return more is not None and more.group == run.group
    if isinstance(envelope.body, Command) and not _is_cut(run.sent_at, envelope.sent_at):
        return False
    is_text = not envelope.attachments and (more is None or not more.group)
    return is_text and not envelope.alone


def words(envelope: Envelope) -> str | None:
    """Return what an event says where it is the rest of something; None for what never is."""
    match envelope.body:
        case Said(text=text):
            return text
        case Command(name=name) if name not in ALWAYS_OBEYED:
            return envelope.verbatim or None
        case _:
            return None


def own_words(envelope: Envelope) -> str:
    """Return what the sender of such an event wrote themselves."""
    match envelope.body:
        case Said(text=text, own=own):
            return text if own is None else own
        case _:
            # Before a command's slash stands what it quotes, if it does.
            return envelope.verbatim if envelope.verbatim.startswith("/") else ""


def _is_cut(before: datetime | None, after: datetime | None) -> bool:
    return before is not None and after is not None and abs(after - before) <= CUT_WITHIN


def _is_apart(before: datetime | None, after: datetime | None) -> bool:
    return before is not None and after is not None and abs(after - before) > SENT_WITHIN
