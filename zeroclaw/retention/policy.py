"""Decides what is old enough to go.

Only what has ended goes: an open turn, a message that waits, an open row of the outbox and a
question without an answer stay whatever their age.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from zeroclaw.clock import ULID_ALPHABET, ULID_TIME_CHARS
from zeroclaw.codec import decode
from zeroclaw.config.model import RetentionSettings
from zeroclaw.delivery import rows
from zeroclaw.gate import approval as approvals
from zeroclaw.store import Row, RowKind
from zeroclaw.turn import entries
from zeroclaw.turn.attached import attached_of
from zeroclaw.turn.kept import KeptResult
from zeroclaw.value import Value

FOR_EVER = datetime.min.replace(tzinfo=UTC)
"""The instant before which there is nothing."""
HALVINGS = 6
"""Times that the days are halved, at most, when the disk's bound is reached."""
_MB = 1_000_000

ENDED: Mapping[RowKind, tuple[str | None, ...]] = {
    RowKind.INBOX: ("answered", "joined", "superseded", "stopped", "failed"),
    RowKind.TURN: ("closed",),
    RowKind.OUTBOX: ("delivered", "refused"),
    RowKind.APPROVAL: ("approved", "denied", "expired", "stopped"),
    RowKind.ACTION: (None,),
    RowKind.GRANT: ("open",),
    RowKind.ALLOWANCE: (None,),
    RowKind.RESULT: (None,),
    RowKind.ATTACHMENT: (None,),
}
"""The states of rows that may go by their age, None for any."""
DUE = frozenset({RowKind.GRANT, RowKind.ALLOWANCE})
"""The kinds of rows that say themselves when they are over."""
TIMELESS = DUE | {RowKind.APPROVAL, RowKind.RESULT, RowKind.ATTACHMENT}
"""The kinds of rows whose keys don't tell when they were made."""

OPEN: tuple[tuple[RowKind, str], ...] = (
    (RowKind.TURN, "open"),
    (RowKind.INBOX, "queued"),
    (RowKind.INBOX, "control"),
    (RowKind.INBOX, "taken"),
    (RowKind.APPROVAL, "pending"),
    *((RowKind.OUTBOX, state) for state in rows.OPEN_STATES),
)
"""The rows that say that something is under way in a conversation, which is then left alone."""


class Horizons(Value):
    """What came before these instants may go.

    Attributes:
        now: Grants that ended before it go, and the counts of days that are over.
        messages: For what people and the bot said, and for the journal.
        approvals: For ended questions, their cards, and the calls they were about.
        blobs: For results that were kept whole, and for files that came and went.
        audit: For the record of who let what run.
    """

    now: datetime
    messages: datetime
    approvals: datetime
    blobs: datetime
    audit: datetime


def horizons(settings: RetentionSettings, now: datetime, *, halved: int = 0) -> Horizons:
    """Return the instants that the settings mean now.

    Args:
        settings: As configured.
        now: Aware.
        halved: How many times the days are halved, because the disk's bound is reached. The
            audit keeps its days: nobody may push it out by writing much.
    """

    def ago(days: int, times: int = halved) -> datetime:
        return now - timedelta(days=days) / 2**times if days else FOR_EVER

    return Horizons(
        now=now,
        messages=ago(settings.messages_days),
        approvals=ago(settings.approvals_days),
        blobs=ago(settings.blobs_days),
        audit=ago(settings.audit_days, 0),
    )


def is_over(settings: RetentionSettings, used_bytes: int) -> bool:
    """Tell whether what is stored takes more than the disk's bound."""
    return bool(settings.max_disk_mb) and used_bytes > settings.max_disk_mb * _MB


def may_go(row: Row, at: Horizons) -> bool:
    """Tell whether a row has ended and is old enough.

    Raises:
        StoreUnusable: Its body is none of its kind.
    """
    states = ENDED.get(row.kind, ())
    if row.state not in states and None not in states:
        return False
    match row.kind:
        case RowKind.GRANT | RowKind.ALLOWANCE:
            return row.due_at is not None and row.due_at < at.now
        case RowKind.APPROVAL:
            # Its key is unguessable and tells no time.
            ended_at = approvals.decode(row.body).at
            return ended_at is not None and ended_at < at.approvals
        case RowKind.RESULT:
            # Its blob may go before: then whoever reads the result's id in the journal is told so.
            return decode(KeptResult, row.body).at < at.messages
        case RowKind.ATTACHMENT:
            return attached_of(row).at < at.messages
        case RowKind.ACTION:
            return is_before(row.key, at.approvals)
        case RowKind.OUTBOX:
            # A card without its questions would look as if it were still open.
            is_card = isinstance(rows.read(row), rows.Ask | rows.Settle)
            return is_before(row.key, max(at.messages, at.approvals) if is_card else at.messages)
        case _:
            return is_before(row.key, at.messages)


def is_before(ulid: str, instant: datetime) -> bool:
    """Tell whether a ulid was made before an instant; its first characters count milliseconds."""
    return ulid[:ULID_TIME_CHARS] < _time_chars(instant)


def _time_chars(instant: datetime) -> str:
    number = max(int(instant.timestamp() * 1000), 0)
    characters: list[str] = []
    for _ in range(ULID_TIME_CHARS):
        number, digit = divmod(number, len(ULID_ALPHABET))
        characters.append(ULID_ALPHABET[digit])
    return "".join(reversed(characters))


class Step(Value):
    """A journal's entry and its number."""

    sequence: int
    entry: entries.Entry


def journal_cut(journal: Iterable[Step], before: datetime) -> int | None:
    """Return the first sequence number that stays of a journal, None where nothing may go.

    It is where a turn begins, so that what stays folds to a history of whole turns and no result
    loses its call; or behind the end, where all is old and no turn is open.

    Args:
        journal: From its first entry; reading stops at the first one that is not old.
        before: The age, as an instant.
    """
    found: int | None = None
    last: Step | None = None
    is_open = False
    for step in journal:
        match step.entry:
            case entries.TurnOpened():
                found, is_open = (step.sequence if last else None), True
            case entries.TurnFinished():
                is_open = False
            case _:
                pass
        if step.entry.at >= before:
            return found
        last = step
    return found if last is None or is_open else last.sequence + 1
