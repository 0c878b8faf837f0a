"""Decides which data is old enough to be deleted.

Open data stays, whatever its age: an open turn, a waiting message, an open outbox row and an
unanswered approval request.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import assert_never

from zeroclaw.clock import ULID_TIME_CHARS, ulid_time
from zeroclaw.config.model import RetentionSettings
from zeroclaw.gate.taint import named
from zeroclaw.store import Row
from zeroclaw.table import Age, Ages, Declaration, Stays, UntilDue
from zeroclaw.turn import entries
from zeroclaw.value import Value, replace

FOR_EVER = datetime.min.replace(tzinfo=UTC)
"""An instant before every row; keeps rows for ever."""
ERASED = "forgotten"
"""Reason in a journal note for removed messages."""
HALVINGS = 6
"""How often the ages are halved, at most, while the store exceeds its disk limit."""
_MB = 1_000_000


class Horizons(Value):
    """The instants before which data may be deleted.

    Attributes:
        now: For grants that ended, and for the counters of past days.
        ages: For each age that tables name; the journal's is that of messages.
        blobs: For whole results and attached files.
        audit: For the audit.
    """

    now: datetime
    ages: Mapping[Age, datetime]
    blobs: datetime
    audit: datetime


def horizons(limits: RetentionSettings, now: datetime, *, halved: int = 0) -> Horizons:
    """Return the instants for the settings.

    Args:
        limits: The configured ages.
        now: The current time; aware.
        halved: How often the ages are halved because the store exceeds its disk limit. The audit's
            age is not, so that no person can push it out by writing much.
    """

    def ago(days: int, times: int = halved) -> datetime:
        return now - timedelta(days=days) / 2**times if days else FOR_EVER

    return Horizons(
        now=now,
        ages={Age.MESSAGES: ago(limits.messages_days), Age.APPROVALS: ago(limits.approvals_days)},
        blobs=ago(limits.blobs_days),
        audit=ago(limits.audit_days, 0),
    )


def is_over(settings: RetentionSettings, used_bytes: int) -> bool:
    """Whether the store exceeds the disk limit."""
    return bool(settings.max_disk_mb) and used_bytes > settings.max_disk_mb * _MB


def may_go(table: Declaration, row: Row, at: Horizons) -> bool:
    """Whether a row has ended and is old enough to be deleted.

    Raises:
        RecordUnreadable: Its body can't be decoded.
    """
    match table.keeps:
        case UntilDue():
            return row.due_at is not None and row.due_at < at.now
        case Ages(age=age, ended=ended, at=began, sooner=sooner):
            if ended and row.state not in ended:
                return False
            sooner_age = None if sooner is None else sooner(row)
            horizon = max(at.ages[age], FOR_EVER if sooner_age is None else at.ages[sooner_age])
            if began is None:
                return is_before(row.key, horizon)
            began_at = began(row)
            return began_at is not None and began_at < horizon
        case Stays():
            return False
        case _:
            assert_never(table.keeps)


def is_before(ulid: str, instant: datetime) -> bool:
    """Whether a ULID is older than an instant; its first characters count milliseconds."""
    return ulid[:ULID_TIME_CHARS] < ulid_time(instant)


def journal_cut(journal: Iterable[tuple[int, entries.Entry]], before: datetime) -> int | None:
    """Return the first sequence number of a journal that stays; None if nothing can be deleted.

    The cut is at the beginning of a turn, so that the rest is a history of whole turns and no
    result loses its call. It is after the end if everything is old and no turn is open.

    Args:
        journal: Its entries with their numbers, from the first one; reading stops at the first that
            is not old.
        before: Older entries may be deleted.
    """
    first_kept: int | None = None
    last: int | None = None
    is_open = False
    for number, entry in journal:
        if isinstance(entry, entries.TurnOpened):
            first_kept, is_open = (None if last is None else number), True
        elif isinstance(entry, entries.TurnFinished):
            is_open = False
        if entry.at >= before:
            return first_kept
        last = number
    return first_kept if last is None or is_open else last + 1


def journal_without(
    journal: Iterable[entries.Entry], person: str
) -> tuple[entries.Entry, ...] | None:
    """Return a shared conversation's journal without a person; None if none of it is theirs.

    Whole turns are removed, up to the beginning of the next one, and the person's late edits
    everywhere; edits that an earlier release stored without a writer are all removed. Every summary
    is removed too, because it mixes all people's words; the turns that it covered are sent in full
    again, and summarised again when they get too long.

    Args:
        journal: Of a conversation without an open turn.
        person: A principal's id.
    """
    remaining: list[entries.Entry] = []
    has_theirs = is_theirs = False
    for entry in map(_without_names, journal):
        writers = entries.writers_of(entry)
        has_theirs |= person in writers
        if isinstance(entry, entries.TurnOpened):
            is_theirs = person in writers
        is_edit = isinstance(entry, entries.Noted) and entry.why == "edited"
        is_removed = is_theirs or (is_edit and writers in (("",), (person,)))
        if not is_removed and not isinstance(entry, entries.Compacted):
            remaining.append(entry)
    return tuple(remaining) if has_theirs else None


def _without_names(entry: entries.Entry) -> entries.Entry:
    """Keep the mark of untrusted text without the names of its sources, which may identify people."""
    if isinstance(entry, entries.TurnOpened) and entry.untrusted:
        return replace(entry, untrusted=(named("quoted"),))
    return entry
