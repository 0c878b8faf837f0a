"""Decides what is old enough to go.

Only what has ended goes: an open turn, a message that waits, an open row of the outbox and a
question without an answer stay whatever their age.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import assert_never

from zeroclaw.clock import ULID_TIME_CHARS, ulid_time
from zeroclaw.config.model import RetentionSettings
from zeroclaw.store import Row
from zeroclaw.table import Age, Ages, Declaration, Stays, UntilDue
from zeroclaw.turn import entries
from zeroclaw.value import Value

FOR_EVER = datetime.min.replace(tzinfo=UTC)
"""The instant before which there is nothing."""
ERASED = "forgotten"
"""Why a note in a journal says that something was taken out of it."""
HALVINGS = 6
"""Times that the days are halved, at most, when the disk's bound is reached."""
_MB = 1_000_000


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

    def of(self, age: Age) -> datetime:
        """Return the instant of an age that tables name."""
        match age:
            case Age.MESSAGES:
                return self.messages
            case Age.APPROVALS:
                return self.approvals
            case _:
                assert_never(age)


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


def may_go(table: Declaration, row: Row, at: Horizons) -> bool:
    """Tell whether a row of a table has ended and is old enough.

    Raises:
        StoreUnusable: Its body is none of its kind.
    """
    match table.keeps:
        case UntilDue(ended=ended):
            return is_ended(row, ended) and row.due_at is not None and row.due_at < at.now
        case Ages(age=age, ended=ended, at=began, sooner=sooner):
            if not is_ended(row, ended):
                return False
            other = None if sooner is None else sooner(row)
            horizon = max(at.of(age), FOR_EVER if other is None else at.of(other))
            if began is None:
                return is_before(row.key, horizon)
            began_at = began(row)
            return began_at is not None and began_at < horizon
        case Stays():
            return False
        case _:
            assert_never(table.keeps)


def is_ended(row: Row, ended: frozenset[str]) -> bool:
    """Tell whether a row is in one of these states; in any state is enough without them."""
    return not ended or row.state in ended


def is_before(ulid: str, instant: datetime) -> bool:
    """Tell whether a ulid was made before an instant; its first characters count milliseconds."""
    return ulid[:ULID_TIME_CHARS] < ulid_time(instant)


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


def journal_without(
    journal: Iterable[entries.Entry], person: str
) -> tuple[entries.Entry, ...] | None:
    """Return what stays of a shared conversation, None when nothing of it is that person's.

    Whole turns go, from their beginning up to the next one's. Every summary goes too, for it is of
    everybody's words: what it stood for is read in full again, and summed up anew when it is too
    long.

    Args:
        journal: Of a conversation in which no turn is open.
        person: A principal's id.
    """
    staying: list[entries.Entry] = []
    has_theirs = is_theirs = False
    for entry in journal:
        if isinstance(entry, entries.TurnOpened):
            is_theirs = entry.principal.id == person
            has_theirs = has_theirs or is_theirs
        if not is_theirs and not isinstance(entry, entries.Compacted):
            staying.append(entry)
    return tuple(staying) if has_theirs else None
