"""What ends with a person who is put out: their turns, what they wrote, their grants.

Being put out closes the door and the gate at once, in memory, with the commit that says so. This
room then ends what was under way. It looks until there is nothing left, and once more at each
start, so a kill in between leaves nothing running.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from zeroclaw.clock import Clock, Ids
from zeroclaw.envelope import Address, ConversationId, ItemId, Principal
from zeroclaw.errors import Conflict
from zeroclaw.gate import grant as grants
from zeroclaw.inbound.grant_commands import AT_CONSOLE, Held, ending
from zeroclaw.inbound.people import OPERATOR, People
from zeroclaw.store import Commit, Delete, DurablePoint, Row, RowKind, Store, Write, find_all
from zeroclaw.turn.inbox import Item, Stop, item_of, item_put
from zeroclaw.turn.open_turns import turn_of


class Revoking:
    """Ends what people had under way who were put out."""

    def __init__(
        self,
        *,
        store: Store,
        people: People,
        clock: Clock,
        ids: Ids,
        wake: Callable[[ConversationId], None],
    ) -> None:
        """Hold what is needed; `wake` serves a conversation's inbox."""
        self._store = store
        self._people = people
        self._clock = clock
        self._ids = ids
        self._wake = wake

    async def sweep(self) -> None:
        """End whatever is under way of anybody who is put out."""
        out = self._people.revoked
        if not out:
            return
        by = {one.id: one.by for one in self._people.stored}
        await self._end_grants(out, by)
        # What waits before what runs: an item that is taken meanwhile is found as a turn.
        while not await self._withdraw(out):
            pass
        await self._stop(out, by)

    async def _end_grants(self, out: frozenset[str], by: Mapping[str, str]) -> None:
        rows = find_all(self._store, RowKind.GRANT)
        held = [Held(grant=grants.decode(row.body), version=row.version) async for row in rows]
        for one in held:
            gone = sorted({one.grant.holder, one.grant.granter} & out)
            if not gone:
                continue
            who = _operator(AT_CONSOLE, by.get(gone[0], OPERATOR))
            item = ItemId(self._ids.ulid())
            writes = ending(one, item, AT_CONSOLE, who, self._clock.now())
            with suppress(Conflict):  # somebody else has just ended it
                await self._commit(writes, one.grant.conversation)
                self._wake(one.grant.conversation)

    async def _withdraw(self, out: frozenset[str]) -> bool:
        """End what waits for its turn; false when something was taken meanwhile."""
        rows = find_all(self._store, RowKind.INBOX, state="queued")
        for row in [row async for row in rows if item_of(row).principal.id in out]:
            ended = item_put(item_of(row), "stopped", expect=row.version)
            try:
                await self._commit((ended,), row.conversation)
            except Conflict:
                return False
        return True

    async def _stop(self, out: frozenset[str], by: Mapping[str, str]) -> None:
        rows = find_all(self._store, RowKind.TURN, state="open")
        for row in [row async for row in rows if turn_of(row).item.principal.id in out]:
            stop = self._stop_item(row, by)
            await self._commit((item_put(stop, "control", expect=0),), stop.conversation)
            self._wake(stop.conversation)

    def _stop_item(self, row: Row, by: Mapping[str, str]) -> Item:
        item = turn_of(row).item
        return Item(
            id=ItemId(self._ids.ulid()),
            conversation=item.conversation,
            address=item.address,
            principal=_operator(item.address, by.get(item.principal.id, OPERATOR)),
            content=Stop(cause="revoked"),
            admitted_at=self._clock.now(),
        )

    async def _commit(
        self, writes: Iterable[Write | Delete], conversation: ConversationId | None = None
    ) -> None:
        commit = Commit(
            point=DurablePoint.ADMITTED, conversation=conversation, writes=tuple(writes)
        )
        if commit.writes:
            await self._store.commit(commit)


def _operator(address: Address, display: str) -> Principal:
    """Return whoever put somebody out, as far as it is known: by the name they go by."""
    return Principal(
        id=f"person:{OPERATOR}",
        roles=frozenset({OPERATOR}),
        channel=address.channel,
        sender=OPERATOR,
        display=display,
    )
