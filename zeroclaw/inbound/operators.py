"""Where operators are reached: with a question, or with a sentence about trouble."""

from collections.abc import Callable

from zeroclaw.channel import Channel
from zeroclaw.clock import Ids
from zeroclaw.delivery.outbox import Outbox
from zeroclaw.delivery.rows import note_row
from zeroclaw.envelope import Address, Principal
from zeroclaw.inbound.people import OPERATOR, People
from zeroclaw.store import Commit, DurablePoint, Store


class Operators:
    """Finds the chats of operators on the channels that are there now."""

    def __init__(
        self,
        people: People,
        channel_of: Callable[[str], Channel | None],
        *,
        requester_may_answer: bool,
    ) -> None:
        """Hold who they are; `channel_of` returns a channel that can send, by name."""
        self._people = people
        self._channel_of = channel_of
        self._requester_may_answer = requester_may_answer

    def approvers(self, principal: Principal, here: Address) -> tuple[Address, ...]:
        """Return where a question is put: the best chats, never a group.

        An operator who asks in private answers in that very chat. Else the operators on the
        channel that asked, else those anywhere, else whoever sits at this machine.
        """
        if here.direct and OPERATOR in principal.roles and self._requester_may_answer:
            return (here,)
        reached = self._reached(but=principal if not self._requester_may_answer else None)
        near = tuple(address for address in reached if address.channel == here.channel)
        far = tuple(address for address in reached if address.channel not in self._people.local)
        return near or far or reached[:1]

    def addresses(self, but: str = "") -> tuple[Address, ...]:
        """Return every operator's chat but one: all named people's, else this machine's."""
        reached = tuple(address for address in self._reached() if address.key() != but)
        far = tuple(address for address in reached if address.channel not in self._people.local)
        return far or reached[:1]

    def _reached(self, but: Principal | None = None) -> tuple[Address, ...]:
        found: dict[str, Address] = {}
        for seat in self._people.operators():
            if but is not None and (seat.channel, seat.sender) == (but.channel, but.sender):
                continue
            channel = self._channel_of(seat.channel)
            address = None if channel is None else channel.direct_address(seat.sender)
            if address is not None:
                found[address.key()] = address
        return tuple(found.values())


class Notices:
    """Tells operators about trouble; the sentence is on record before it is sent."""

    def __init__(self, operators: Operators, store: Store, outbox: Outbox, ids: Ids) -> None:
        """Hold the way to them."""
        self._operators = operators
        self._store = store
        self._outbox = outbox
        self._ids = ids

    async def tell(self, text: str, *, but_channel: str = "") -> None:
        """Put a sentence into every operator's chat, but not by the channel it is about."""
        notes = tuple(
            note_row(key=self._ids.ulid(), address=address, text=text, quiet=True)
            for address in self._operators.addresses()
            if address.channel != but_channel
        )
        if notes:
            await self._store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=notes))
            self._outbox.announce_written(notes)
