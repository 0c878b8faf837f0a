"""The questions about strangers: answered by an operator, or ended by their deadline (P4, P5).

What an answer comes to is `pairing.py`'s. An answer is one commit by compare-and-set, with the
person who is let in and with every card that is known; whoever comes later is told how it ended.
"""

import asyncio
from collections.abc import Callable, Iterable

from zeroclaw.clock import Clock, Ids
from zeroclaw.delivery.outbox import Hooks
from zeroclaw.delivery.rows import Ask, Item, Text, note_row, settle_rows
from zeroclaw.envelope import (
    Address,
    ApprovalId,
    MessageRef,
    Pressed,
    Principal,
)
from zeroclaw.errors import Conflict
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.policy import PolicySet
from zeroclaw.inbound import pairing
from zeroclaw.inbound.identity import Known, People, known_of, known_put
from zeroclaw.inbound.pairing import Decided, Result, Stranger, TooLate
from zeroclaw.inbound.plan import Plan
from zeroclaw.store import (
    Commit,
    Delete,
    DurablePoint,
    Put,
    Row,
    RowKind,
    Rows,
    Store,
    Write,
    find_all,
)
from zeroclaw.text import catalogue
from zeroclaw.value import Value

SWEEP_S = 3600.0
"""Between two looks for what is to be forgotten."""


class Read(Value):
    """A question and the version it was read at."""

    stranger: Stranger
    version: int


class Questions:
    """All questions about strangers; one for the whole daemon."""

    def __init__(
        self,
        *,
        store: Store,
        people: People,
        policy: Callable[[], PolicySet],
        clock: Clock,
        ids: Ids,
        group: asyncio.TaskGroup,
        announce: Callable[[Plan], None],
    ) -> None:
        """Hold what is needed.

        Args:
            store: Where questions are kept.
            people: Who reads which language.
            policy: The one in force now.
            clock: For deadlines.
            ids: For rows.
            group: Owns the deadlines.
            announce: Called with what has been committed here.
        """
        self._store = store
        self._people = people
        self._policy = policy
        self._clock = clock
        self._ids = ids
        self._group = group
        self._announce = announce

    # --- answers -------------------------------------------------------------------------------

    async def press(self, pressed: Pressed, principal: Principal) -> Plan | None:
        """Return what a press comes to; None for a card of nobody's."""
        row = await self._store.get(RowKind.STRANGER, pressed.approval)
        if row is None:
            return None
        if not self._may(principal):
            toast = catalogue.ONLY_AN_OPERATOR.to(principal.language)
            return Plan(conversation=None, toast=toast, idle=True)
        one = pairing.of_row(row)
        if pressed.card is not None:
            one = pairing.with_ref(one, pressed.card)
        read = Read(stranger=one, version=row.version)
        writes, toast = await self.answer(
            read, yes=pressed.choice in ("once", "for_a_time"), principal=principal
        )
        if not writes and one != pairing.of_row(row) and pressed.card is not None:
            settles = self._settles(one, (pressed.card,))
            writes = (pairing.to_put(one, expect=row.version), *settles)
        return Plan(conversation=None, writes=writes, toast=toast, idle=not writes)

    async def answer(
        self, read: Read, *, yes: bool, principal: Principal
    ) -> tuple[tuple[Write, ...], str]:
        """Return the writes of an operator's answer, none when it changes nothing, and its toast.

        That they may answer was checked.
        """
        by = pairing.by_of(principal)
        result = pairing.answer(read.stranger, yes=yes, by=by, at=self._clock.now())
        return await self._ending(result, read.version), pairing.said(result, principal.language)

    async def by_number(
        self, place: Address, numbers: Iterable[int], principal: Principal
    ) -> dict[int, Read]:
        """Return the questions that numbers mean in one chat, for somebody who may answer them."""
        wanted = frozenset(numbers)
        if not wanted or not self._may(principal):
            return {}
        found = {pairing.number_of(one.stranger, place.key()): one for one in await self.all()}
        return {number: one for number, one in found.items() if number in wanted}

    async def all(self) -> tuple[Read, ...]:
        """Return every question that is remembered, oldest first."""
        return await read_all(self._store)

    async def lines(self, place: Address, principal: Principal) -> tuple[str, ...]:
        """Return the open questions that somebody may answer, a line each.

        In a group only those whose card stands there: others read along.
        """
        if not self._may(principal):
            return ()
        now = self._clock.now()
        return tuple(
            pairing.line(read.stranger, principal.language, place.key())
            for read in await self.all()
            if pairing.is_open(read.stranger, now)
            and (place.direct or pairing.number_of(read.stranger, place.key()))
        )

    def _may(self, principal: Principal) -> bool:
        query = Query(principal=principal, action="command:pair", now=self._clock.now(), own=True)
        return self._policy().decide(query).effect == "allow"

    async def _ending(self, result: Result, version: int) -> tuple[Write, ...]:
        match result:
            case Decided(stranger=one) | TooLate(stranger=one):
                admitted = await self._let_in(one) if one.state == "approved" else ()
                return (
                    pairing.to_put(one, expect=version),
                    *admitted,
                    *self._settles(one, one.refs),
                )
            case _:
                return ()

    async def _let_in(self, one: Stranger) -> tuple[Write, ...]:
        row = await self._store.get(RowKind.PERSON, one.identity)
        known = Known(
            id=one.identity,
            display=one.display,
            state="admitted",
            by=one.by,
            at=self._clock.now(),
            # Who sent the printed code meanwhile stays the operator that it made them.
            roles=known_of(row).roles if row is not None and row.state == "admitted" else (),
        )
        put = known_put(known, expect=row.version if row else 0)
        text = catalogue.YOU_ARE_LET_IN.to(self._people.language_of(one.identity))
        return (put, note_row(key=self._ids.ulid(), address=one.address, text=text))

    def _settles(self, one: Stranger, refs: Iterable[MessageRef]) -> tuple[Put, ...]:
        return tuple(
            put
            for ref in refs
            for put in settle_rows(
                keys=(self._ids.ulid(),),
                conversation=None,
                refs=(ref,),
                outcome=pairing.outcome_of(one, ref.address.key()),
            )
        )

    async def stands(self, id: ApprovalId) -> tuple[MessageRef, ...]:  # noqa: A002
        """Return the cards of a question that are known."""
        row = await self._store.get(RowKind.STRANGER, id)
        return () if row is None else pairing.of_row(row).refs

    async def shown(self, id: ApprovalId, ref: MessageRef) -> tuple[Write, ...]:  # noqa: A002
        """Return what to write when a card stands; one that ended meanwhile is settled."""
        row = await self._store.get(RowKind.STRANGER, id)
        if row is None:
            return ()
        one = pairing.with_ref(pairing.of_row(row), ref)
        settles = () if one.state == "waiting" else self._settles(one, (ref,))
        return (pairing.to_put(one, expect=row.version), *settles)

    # --- time ----------------------------------------------------------------------------------

    async def resume(self) -> None:
        """Take up what waits since an earlier process; once, at a start."""
        async for row in find_all(self._store, RowKind.STRANGER, state="waiting"):
            self._end_in_time(pairing.of_row(row))

    async def keep(self) -> None:
        """Forget what is over, now and then, until cancelled."""
        while True:
            await self._forget()
            await self._clock.sleep(SWEEP_S)

    def written(self, writes: Iterable[Write]) -> None:
        """Watch the deadlines of questions that were just committed."""
        for write in writes:
            if isinstance(write, Put) and write.kind is RowKind.STRANGER and write.expect == 0:
                self._end_in_time(pairing.of_row(write))

    def _end_in_time(self, one: Stranger) -> None:
        self._group.create_task(self._expire(one.id), name=f"stranger {one.identity}")

    async def _expire(self, id: ApprovalId) -> None:  # noqa: A002  as in `Stranger`
        """Wait for a question's deadline, and end it if nobody has answered."""
        while True:
            row = await self._store.get(RowKind.STRANGER, id)
            if row is None or row.state != "waiting":
                return
            one, now = pairing.of_row(row), self._clock.now()
            if now < one.deadline_at:
                await self._clock.sleep((one.deadline_at - now).total_seconds())
                continue
            try:
                await self._commit_end(pairing.expire(one, now), row)
            except Conflict:
                # Answered, or its card was shown, just now; it is looked at again.
                continue
            return

    async def _commit_end(self, ended: Stranger, row: Row) -> None:
        writes = (
            pairing.to_put(ended, expect=row.version),
            *self._settles(ended, ended.refs),
        )
        await self._store.commit(Commit(point=DurablePoint.ANSWERED, writes=writes))
        self._announce(Plan(conversation=None, writes=writes))

    async def _forget(self) -> None:
        """Remove what is over for a day, and the messages that showed its code."""
        due = find_all(self._store, RowKind.STRANGER, due_before=self._clock.now())
        async for row in due:
            if row.state == "waiting":
                continue
            messages = pairing.of_row(row).messages
            writes = (
                Delete(kind=RowKind.STRANGER, key=row.key),
                *(Delete(kind=RowKind.OUTBOX, key=key) for key in messages),
            )
            await self._store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=writes))


async def read_all(rows: Rows) -> tuple[Read, ...]:
    """Return every question that is remembered, oldest first."""
    found = find_all(rows, RowKind.STRANGER)
    read = [Read(stranger=pairing.of_row(row), version=row.version) async for row in found]
    return tuple(sorted(read, key=lambda one: one.stranger.asked_at))


class CardsOfStrangers:
    """The outbox's hooks: cards about strangers are known here, all else to the next hooks."""

    def __init__(self, next_hooks: Hooks, questions: Callable[[], Questions]) -> None:
        """Stand before other hooks; the questions are made after the outbox."""
        self._next = next_hooks
        self._questions = questions

    async def delivered(self, row: Row, item: Text) -> tuple[Write, ...]:
        """See `Hooks`."""
        return await self._next.delivered(row, item)

    async def asked(self, row: Row, item: Ask, ref: MessageRef) -> tuple[Write, ...]:
        """See `Hooks`; a question of no conversation is about a stranger."""
        if row.conversation is not None:
            return await self._next.asked(row, item, ref)
        found = [await self._questions().shown(ApprovalId(one), ref) for one in item.approvals]
        return tuple(write for writes in found for write in writes)

    async def pressed(self, row: Row, item: Ask) -> MessageRef | None:
        """See `Hooks`; as in `asked`."""
        if row.conversation is not None:
            return await self._next.pressed(row, item)
        found = [await self._questions().stands(ApprovalId(one)) for one in item.approvals]
        here = item.address.key()
        return next((ref for refs in found for ref in refs if ref.address.key() == here), None)

    async def refused(self, row: Row, item: Item, why: str) -> tuple[Write, ...]:
        """See `Hooks`."""
        return await self._next.refused(row, item, why)
