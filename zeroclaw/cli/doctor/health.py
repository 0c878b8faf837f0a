"""Trouble in the store: open requests, undelivered messages, failing conversations."""

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
from zeroclaw.inbound.pairing import PAIRINGS
from zeroclaw.store import LogKind, Query, ReadableStore, RowKind, readable_of, scan
from zeroclaw.turn import entries

STUCK = timedelta(minutes=5)
"""A message that is not sent after this long is in trouble."""
RECENT = timedelta(days=1)
_MAX_ROWS = 500  # messages, newest first; older failures are not recent
_MAX_LATEST = 20
_MAX_CHAINS = 50  # the anchors of each are in memory, some hundred bytes for five minutes of use
_ENDED = frozenset({"answered", "failed", "stopped"})
# The kinds whose keys are ulids; every message adds a row of one of them.
_TIMED = (RowKind.INBOX, RowKind.TURN, RowKind.OUTBOX, RowKind.CONVERSATION)


async def health(store: ReadableStore, now: datetime) -> Health:
    """Return the state of the store.

    Args:
        store: Opened read-only.
        now: The time to compare with.

    Raises:
        StoreUnusable: A row that a daemon needs to start can't be read.
    """
    approvals = [row async for row in scan(store, APPROVALS.where(state="pending"))]
    pairings = [row async for row in scan(store, PAIRINGS.where(state="waiting"))]
    to_answer = (*approvals, *pairings)
    requested = _times(readable_of(approvals, lambda row: APPROVALS.of(row).action))
    requested += readable_of(pairings, lambda row: PAIRINGS.of(row).asked_at)
    deadlines = [row.due_at for row in to_answer if row.due_at is not None]
    unsent = [row for state in OPEN_STATES async for row in scan(store, OUTBOX.where(state=state))]
    newest = [await store.select(Query(kind=kind, newest_first=True, limit=1)) for kind in _TIMED]
    times = [at for rows in newest for at in _times(row.key for row in rows)]
    refused = await store.select(OUTBOX.where(state="refused", newest_first=True, limit=_MAX_ROWS))
    chains = await store.streams(LogKind.AUDIT, last=_MAX_CHAINS)
    verdicts = zip(chains, await verify_streams(store, chains), strict=True)
    return Health(
        newest_at=max(times, default=None),
        halt=await last_halt(store),
        pending=len(to_answer),
        damaged=len(to_answer) - len(requested),
        oldest_at=min(requested, default=None),
        next_deadline_at=min(deadlines, default=None),
        queued=await store.count(INBOX.where(state="queued")),
        stuck=sum(at < now - STUCK for at in _times(row.key for row in unsent)),
        refused=sum(at > now - RECENT for at in _times(row.key for row in refused)),
        failing=await _failing(store),
        joined=frozenset(
            [identity_parts(person.id)[0] async for person in PEOPLE.all(store, state="admitted")]
        ),
        chains=len(chains),
        broken=tuple(
            f"`{stream}` at entry {verdict.at}: {verdict.reason}"
            for stream, verdict in verdicts
            if isinstance(verdict, Broken)
        ),
    )


async def _failing(store: ReadableStore) -> tuple[Failing, ...]:
    failed = await store.select(INBOX.where(state="failed", newest_first=True, limit=_MAX_ROWS))
    newest = {row.conversation: row for row in reversed(failed) if row.conversation is not None}
    found: list[Failing] = []
    for conversation, row in newest.items():
        query = INBOX.where(conversation=conversation, newest_first=True, limit=_MAX_LATEST)
        failures = _failures_in_a_row(row.state for row in await store.select(query))
        if failures >= MIN_FAILURES:
            found += [
                Failing(
                    conversation=conversation,
                    place=row.place,
                    failures=failures,
                    last_at=at,
                    reason=await _last_note(store, conversation),
                )
                for at in _times((row.key,))
            ]
    return tuple(sorted(found, key=lambda failing: failing.last_at, reverse=True))


async def _last_note(store: ReadableStore, conversation: ConversationId) -> str:
    """Return the note at the end of the newest turn."""
    last = await store.last(LogKind.JOURNAL, conversation)
    with suppress(RecordUnreadable):
        entry = None if last is None else entries.decode(last.body)
        return entry.note if isinstance(entry, entries.TurnFinished) else ""
    return ""


def _failures_in_a_row(states: Iterable[str]) -> int:
    """Count the failures before the first message that ended well; open messages are skipped."""
    failures = 0
    for state in states:
        if state == "failed":
            failures += 1
        elif state in _ENDED:
            break
    return failures


def _times(ulids: Iterable[str]) -> list[datetime]:
    """Return the times of these ulids; other keys are skipped."""
    found: list[datetime] = []
    for ulid in ulids:
        with suppress(ValueError):
            found.append(made_at(ulid))
    return found
