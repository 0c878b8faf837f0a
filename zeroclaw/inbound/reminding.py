"""Reminds approvers, once, that a question is about to end without an answer.

What is told is committed together with a claim that it was, and only while nobody has answered:
so a restart does not tell it twice, and a kill between the two leaves neither.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from zeroclaw.clock import Clock, Ids
from zeroclaw.delivery.outbox import Hooks
from zeroclaw.delivery.rows import Ask, Item, Text, note_row
from zeroclaw.envelope import Address, MessageRef
from zeroclaw.errors import AlreadyClaimed, Conflict
from zeroclaw.gate import approval as approvals
from zeroclaw.gate.approval import Approval
from zeroclaw.store import (
    Claim,
    Commit,
    DurablePoint,
    Expect,
    Put,
    Row,
    RowKind,
    Store,
    Write,
    find_all,
)
from zeroclaw.text import catalogue
from zeroclaw.text.language import Language
from zeroclaw.turn.span import span
from zeroclaw.value import Value

LEAST_S = 10.0
"""With less time than this left, nobody would read it before it is too late."""
CLAIM_KEPT = timedelta(days=1)


class _Read(Value):
    """A question and the version it was read at."""

    approval: Approval
    version: int


class Reminding:
    """Watches the deadlines of all open questions about calls; one for the whole daemon."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: Ids,
        group: asyncio.TaskGroup,
        lead_s: Callable[[], float],
        language_at: Callable[[Address, Iterable[str]], Language],
        announce: Callable[[Iterable[Write]], None],
    ) -> None:
        """Hold what is needed.

        Args:
            store: Where questions are kept.
            clock: For deadlines.
            ids: For rows.
            group: Owns what waits.
            lead_s: Seconds before a deadline at which its approvers are reminded, by now.
            language_at: What is read in an approver's chat; takes the approvers' names too.
            announce: Called with what has been committed.
        """
        self._store = store
        self._clock = clock
        self._ids = ids
        self._group = group
        self._lead_s = lead_s
        self._language_at = language_at
        self._announce = announce
        self._watched: set[str] = set()

    async def resume(self) -> None:
        """Take up what waits since an earlier process; once, at a start."""
        cards: dict[str, tuple[str, ...]] = {}
        async for row in find_all(self._store, RowKind.APPROVAL, state="pending"):
            card = approvals.decode(row.body).card
            cards[card] = (*cards.get(card, ()), row.key)
        for card, keys in cards.items():
            self._watch(card, keys)

    def shown(self, item: Ask) -> None:
        """Watch the questions of a card that stands now; never waits.

        One that is shown when it is nearly over says so itself.
        """
        lead = timedelta(seconds=self._lead_s())
        if self._clock.now() < item.card.deadline_at - lead:
            self._watch(item.card.key, item.approvals)

    def _watch(self, card: str, keys: tuple[str, ...]) -> None:
        if card not in self._watched:
            self._watched.add(card)
            self._group.create_task(self._remind(card, keys), name=f"reminder {card}")

    async def _remind(self, card: str, keys: tuple[str, ...]) -> None:
        """Wait until it is time, and tell those who have the card."""
        try:
            while (wait := await self._told(keys)) is not None:
                await self._clock.sleep(wait)
        finally:
            self._watched.discard(card)

    async def _told(self, keys: tuple[str, ...]) -> float | None:
        """Tell it if it is time; return the seconds until then, None when all is said."""
        rows = [await self._store.get(RowKind.APPROVAL, key) for key in keys]
        read = [_read(row) for row in rows if row is not None and row.state == "pending"]
        lead_s, now = self._lead_s(), self._clock.now()
        if not read or lead_s < LEAST_S:
            return None
        deadline = min(one.approval.deadline_at for one in read)
        left_s = (deadline - now).total_seconds()
        if left_s > lead_s:
            return left_s - lead_s
        notes = self._notes([one.approval for one in read], left_s)
        if left_s <= 0 or not notes:
            return None
        try:
            await self._store.commit(_once(read, notes, deadline))
        except AlreadyClaimed:
            return None  # by an earlier process
        except Conflict:
            return 0.0  # one was answered just now, or its card became known
        self._announce(notes)
        return None

    def _notes(self, open_: list[Approval], left_s: float) -> tuple[Put, ...]:
        """Return what each approver who has the card is told."""
        places = {ref.address.key(): ref.address for one in open_ for ref in one.refs}
        return tuple(
            note_row(
                key=self._ids.ulid(),
                address=address,
                text=catalogue.ABOUT_TO_EXPIRE.to(
                    self._language_at(address, open_[0].approvers),
                    calls=", ".join(_named(one, place) for one in open_),
                    left=span(left_s),
                ),
                quiet=True,
            )
            for place, address in places.items()
        )


class Reminded:
    """The outbox's hooks: a card that is shown is watched, and all goes on to the next hooks."""

    def __init__(self, next_hooks: Hooks, reminding: Callable[[], Reminding]) -> None:
        """Stand before other hooks; who reminds is made after the outbox."""
        self._next = next_hooks
        self._reminding = reminding

    async def delivered(self, row: Row, item: Text) -> tuple[Write, ...]:
        """See `Hooks`."""
        return await self._next.delivered(row, item)

    async def asked(self, row: Row, item: Ask, ref: MessageRef) -> tuple[Write, ...]:
        """See `Hooks`; a question of no conversation is about a stranger, who waits longer."""
        writes = await self._next.asked(row, item, ref)
        if row.conversation is not None:
            self._reminding().shown(item)
        return writes

    async def pressed(self, row: Row, item: Ask) -> MessageRef | None:
        """See `Hooks`."""
        return await self._next.pressed(row, item)

    async def refused(self, row: Row, item: Item, why: str) -> tuple[Write, ...]:
        """See `Hooks`."""
        return await self._next.refused(row, item, why)


def _read(row: Row) -> _Read:
    return _Read(approval=approvals.decode(row.body), version=row.version)


def _once(read: list[_Read], notes: tuple[Put, ...], deadline: datetime) -> Commit:
    """Return the commit that tells it, if nobody did and nobody has answered."""
    told = tuple(f"reminded/{one.approval.id}" for one in read)
    still = (
        Expect(kind=RowKind.APPROVAL, key=one.approval.id, version=one.version) for one in read
    )
    claim = Claim(keys=told, until=deadline + CLAIM_KEPT)
    return Commit(point=DurablePoint.HOUSEKEEPING, writes=(claim, *still, *notes))


def _named(one: Approval, place: str) -> str:
    number = approvals.number_of(one, place)
    return f"`{one.tool}` (`/approve {number}`, `/deny {number}`)" if number else f"`{one.tool}`"
