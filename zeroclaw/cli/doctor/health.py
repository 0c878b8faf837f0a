"""Trouble that the store shows: pending approvals, undelivered messages, failing conversations."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from zeroclaw.cli.doctor.checks import MIN_FAILURES, Failing, Health
from zeroclaw.clock import made_at
from zeroclaw.conversation.inbox import INBOX
from zeroclaw.delivery.rows import OPEN_STATES, OUTBOX
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import RecordUnreadable
from zeroclaw.gate.approval import APPROVALS
from zeroclaw.gate.audit import Broken
from zeroclaw.inbound.anchors import verify_streams
from zeroclaw.inbound.identity import PEOPLE, identity_parts
from zeroclaw.inbound.live_config import last_halt
from zeroclaw.store import LogKind, Query, ReadableStore, RowKind, readable_of, scan
from zeroclaw.turn import entries

STUCK = timedelta(minutes=5)
"""A message that is not sent after this long is in trouble."""
LATELY = timedelta(days=1)
_MOST_FAILED = 500  # messages, newest first; older failures are not recent
_LOOKED_BACK = 20
_CHAINS = 50  # the marks of each are in memory, some hundred bytes for five minutes of use
_ENDED = frozenset({"answered", "failed", "stopped"})
# The kinds whose keys are ulids; every message adds a row of one of them.
_TIMED = (RowKind.INBOX, RowKind.TURN, RowKind.OUTBOX, RowKind.CONVERSATION)


async def health(kept: ReadableStore, now: datetime) -> Health:
    """Return the state of the store.

    Args:
        kept: Opened read-only.
        now: The time to compare with.

    Raises:
        StoreUnusable: A row that a daemon needs to start can't be read.
    """
    approvals = [row async for row in scan(kept, APPROVALS.where(state="pending"))]
    actions = [*readable_of(approvals, lambda row: APPROVALS.of(row).action)]
    asked = _times(actions)
    deadlines = [row.due_at for row in approvals if row.due_at is not None]
    unsent = [row for state in OPEN_STATES async for row in scan(kept, OUTBOX.where(state=state))]
    newest = [await kept.select(Query(kind=kind, newest_first=True, limit=1)) for kind in _TIMED]
    refused = await kept.select(
        OUTBOX.where(state="refused", newest_first=True, limit=_MOST_FAILED)
    )
    chains = await kept.streams(LogKind.AUDIT, last=_CHAINS)
    verdicts = zip(chains, await verify_streams(kept, chains), strict=True)
    return Health(
        newest_at=max(
            (at for rows in newest for at in _times(row.key for row in rows)), default=None
        ),
        halt=await last_halt(kept),
        pending=len(approvals),
        damaged=len(approvals) - len(actions),
        oldest_at=min(asked, default=None),
        next_deadline_at=min(deadlines, default=None),
        queued=await kept.count(INBOX.where(state="queued")),
        stuck=sum(at < now - STUCK for at in _times(row.key for row in unsent)),
        refused=sum(at > now - LATELY for at in _times(row.key for row in refused)),
        failing=await _failing(kept),
        joined=frozenset(
            [identity_parts(one.id)[0] async for one in PEOPLE.all(kept, state="admitted")]
        ),
        chains=len(chains),
        broken=tuple(
            f"`{stream}` at entry {verdict.at}: {verdict.why}"
            for stream, verdict in verdicts
            if isinstance(verdict, Broken)
        ),
    )


async def _failing(kept: ReadableStore) -> tuple[Failing, ...]:
    failed = await kept.select(INBOX.where(state="failed", newest_first=True, limit=_MOST_FAILED))
    newest = {row.conversation: row for row in reversed(failed) if row.conversation is not None}
    found: list[Failing] = []
    for conversation, row in newest.items():
        latest = await kept.select(
            INBOX.where(conversation=conversation, newest_first=True, limit=_LOOKED_BACK)
        )
        times = _in_a_row(one.state for one in latest)
        if times >= MIN_FAILURES:
            found += [
                Failing(
                    conversation=conversation,
                    place=row.place,
                    times=times,
                    last_at=at,
                    why=await _told(kept, conversation),
                )
                for at in _times((row.key,))
            ]
    return tuple(sorted(found, key=lambda one: one.last_at, reverse=True))


async def _told(kept: ReadableStore, conversation: ConversationId) -> str:
    """Return the note at the end of the newest turn."""
    last = await kept.last(LogKind.JOURNAL, conversation)
    with suppress(RecordUnreadable):
        entry = None if last is None else entries.decode(last.body)
        return entry.note if isinstance(entry, entries.TurnFinished) else ""
    return ""


def _in_a_row(states: Iterable[str]) -> int:
    """Count the failures before the first message that ended well; open messages are skipped."""
    times = 0
    for state in states:
        if state == "failed":
            times += 1
        elif state in _ENDED:
            break
    return times


def _times(ulids: Iterable[str]) -> list[datetime]:
    """Return when these ulids were made; other keys are skipped."""
    found: list[datetime] = []
    for ulid in ulids:
        with suppress(ValueError):
            found.append(made_at(ulid))
    return found
