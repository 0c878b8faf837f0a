"""Which conversation an address points to: the first message, `/new` and `/otr` set it."""

from contextlib import suppress
from datetime import datetime

from zeroclaw.config.model import ChannelSettings, WhileBusy
from zeroclaw.context import notes
from zeroclaw.envelope import Address, ConversationId, Principal, is_off_the_record, off_the_record
from zeroclaw.errors import RecordUnreadable
from zeroclaw.inbound.commands.invocation import Invocation
from zeroclaw.inbound.context import InboundContext, Plan, Resolution
from zeroclaw.store import Query, Reads, Row, RowKind, Rows, Write, readable
from zeroclaw.table import Column, Stays, Table, Words, json_codec
from zeroclaw.text.language import ENGLISH, Language
from zeroclaw.tools.notes.note import owner_of_chat
from zeroclaw.value import Struct, Value, replace

BUSY = ((RowKind.TURN, "open"), (RowKind.INBOX, "queued"), (RowKind.INBOX, "control"))
"""Rows in these states mean that a conversation has something to do."""


class Conversation(Value):
    """A conversation's row.

    Attributes:
        predecessor: The conversation that `/new` ended, or `/otr` left; its queue is served first.
        language: The language of the person who began it; only set off the record.
    """

    id: ConversationId
    address: Address
    started_at: datetime
    predecessor: ConversationId | None = None
    language: Language = ENGLISH


class Pointer(Value):
    """An address row: where it points now.

    Attributes:
        conversation: Empty for none yet; never stored empty.
        while_busy: As `/queue` chose, None for the channel's setting.
    """

    conversation: ConversationId
    while_busy: WhileBusy | None = None


class _Place(Value):
    """An address and its row; `NOWHERE` if it has no row.

    Attributes:
        key: The row's key; see `Conversations.key_of`.
    """

    key: str
    address: Address
    pointer: Pointer

    def to(self, conversation: ConversationId) -> "_Place":
        """Return the place pointing to another conversation."""
        return replace(self, pointer=replace(self.pointer, conversation=conversation))


NOWHERE = Pointer(conversation=ConversationId(""))
UNRECORDED = "unrecorded"
"""The state of the row of a conversation off the record: nothing said in it may reach the disk."""
CONVERSATIONS = Table(
    kind=RowKind.CONVERSATION,
    codec=json_codec(Conversation),
    columns=frozenset({Column.CONVERSATION, Column.STATE, Column.PLACE}),
    keeps=Stays(until="nothing leads to it and nothing is left of it"),
    words=Words.CONVERSATION,
)


async def conversation_of(rows: Rows, here: str) -> Conversation | None:
    """Return a conversation's record; None if there is none, or none that can be read."""
    with suppress(RecordUnreadable):
        return await CONVERSATIONS.get(rows, here)
    return None


POINTERS = Table(
    kind=RowKind.ADDRESS,
    codec=json_codec(Pointer),
    columns=frozenset({Column.CONVERSATION, Column.PLACE}),
    keeps=Stays(until="its conversation is erased; it may point to another one till then"),
    words=Words.CONVERSATION,
)


class Conversations(Struct, eq=False):
    """Maps addresses to conversations.

    A plan reads the address through its `reads`: if a `/new` or a move gets in between, it is made
    again.
    """

    context: InboundContext

    async def find(self, reads: Reads, address: Address, principal: Principal) -> Resolution:
        """Return the conversation of an address, with the writes that create it if needed."""
        place = await self._place(reads, address, principal)
        return self._found(place) if place.pointer.conversation else self._mint(place)

    async def choose(self, given: Invocation, mode: WhileBusy) -> Resolution:
        """Return the conversation with the writes that change its `while_busy` mode."""
        place = await self._place(given.reads, given.address, given.principal)
        place = replace(place, pointer=replace(place.pointer, while_busy=mode))
        return self._pointed(place) if place.pointer.conversation else self._mint(place)

    async def renew(self, given: Invocation) -> tuple[Resolution, Resolution]:
        """Return the conversation that `/new` ends and its successor; both are on record, or none."""
        old = await self._place(given.reads, given.address, given.principal)
        here = old.pointer.conversation
        if is_off_the_record(here):
            before = await self._on_record(given.reads, here)
            new = self._mint(old.to(before), reader=given.principal)
        else:
            new = self._mint(old)
        return (Resolution(conversation=here) if here else new), new

    async def leave_the_record(self, given: Invocation) -> Resolution | None:
        """Return the conversation that `/otr` begins, None if the chat is already off the record."""
        old = await self._place(given.reads, given.address, given.principal)
        if is_off_the_record(old.pointer.conversation):
            return None
        return self._mint(old, reader=given.principal)

    async def go_on_record(self, given: Invocation) -> tuple[Resolution, Resolution] | None:
        """Return what `/otr off` ends and what continues, None if the chat is already on record."""
        old = await self._place(given.reads, given.address, given.principal)
        here = old.pointer.conversation
        if not is_off_the_record(here):
            return None
        new = old.to(await self._on_record(given.reads, here))
        goes_on = self._pointed(new) if new.pointer.conversation else self._mint(new)
        return Resolution(conversation=here), goes_on

    async def _on_record(self, reads: Reads, conversation: ConversationId) -> ConversationId:
        """Return the recorded conversation before one off the record; empty if there is none."""
        left = await CONVERSATIONS.get(reads, conversation)
        before = None if left is None else left.predecessor
        row = None if before is None else await CONVERSATIONS.get(reads, before)
        return NOWHERE.conversation if row is None else row.id

    async def move(self, reads: Reads, address: Address, to: Address) -> Plan | None:
        """Move all conversations of a chat and its threads, and their notes, to the new address."""
        # A thread's name ends the key.
        old, new = replace(address, thread=None).key(), to.key()
        found: list[tuple[Row, Pointer]] = []
        every = POINTERS.where(after=old[:-1])
        async for row, pointer in readable(reads, every, lambda row: (row, POINTERS.of(row))):
            if row.key.startswith(old):
                found.append((row, pointer))
            elif row.key > old:
                break
        if not found:
            return None
        writes: list[Write] = []
        for place in dict.fromkeys((old, *(row.place for row, _ in found))):
            theirs = owner_of_chat(new + place.removeprefix(old))
            writes += await notes.plan_move(reads, owner_of_chat(place), theirs)
        for row, pointer in found:
            key, place = (new + one.removeprefix(old) for one in (row.key, row.place))
            # Guards both rows.
            for one in (row.key, key):
                await POINTERS.get(reads, one)
            writes.append(POINTERS.put(key, pointer, conversation=row.conversation, place=place))
        here = found[0][0].conversation if len(found) == 1 else None
        return Plan(conversation=here, writes=tuple(writes))

    async def predecessor(self, conversation: ConversationId) -> ConversationId | None:
        """Return the conversation that `/new` ended when it began this one."""
        found = await CONVERSATIONS.get(self.context.store, conversation)
        return None if found is None else found.predecessor

    async def at_work(self, conversation: ConversationId) -> ConversationId:
        """Return the conversation whose turn is running in this chat.

        That is the given one, or an earlier one that `/new` has ended and that is still being
        finished.
        """
        found = conversation
        while not await self._has(found, RowKind.TURN, "open"):
            before = await self.predecessor(found)
            if before is None or not await self.is_busy(before):
                return conversation
            found = before
        return found

    async def is_busy(self, conversation: ConversationId) -> bool:
        """Whether a turn is running there, or something waits for one."""
        for kind, state in BUSY:
            if await self._has(conversation, kind, state):
                return True
        return False

    async def _has(self, conversation: ConversationId, kind: RowKind, state: str) -> bool:
        return bool(
            await self.context.store.select(
                Query(kind=kind, conversation=conversation, state=state, limit=1)
            )
        )

    def key_of(self, address: Address, principal: Principal) -> str:
        """Return the key under which the current conversation of an address is stored."""
        shared = address.direct or self._settings(address).scope == "chat"
        return address.key() if shared else f"{address.key()}#{principal.id}"

    def _settings(self, address: Address) -> ChannelSettings:
        return self.context.settings.config.settings_of(address.channel)

    async def _place(self, reads: Reads, address: Address, principal: Principal) -> _Place:
        key = self.key_of(address, principal)
        pointer = await POINTERS.get(reads, key) or NOWHERE
        return _Place(key=key, address=address, pointer=pointer)

    def _found(self, place: _Place, *writes: Write) -> Resolution:
        mode = place.pointer.while_busy or self._settings(place.address).while_busy
        return Resolution(conversation=place.pointer.conversation, writes=writes, while_busy=mode)

    def _pointed(self, place: _Place, *writes: Write) -> Resolution:
        """Return the conversation that a place points to, with the write that stores the pointer."""
        here, where = place.pointer.conversation, place.address.key()
        put = POINTERS.put(place.key, place.pointer, conversation=here, place=where)
        return self._found(place, put, *writes)

    def _mint(self, before: _Place, *, reader: Principal | None = None) -> Resolution:
        """Return a new conversation that replaces the one that was pointed to before.

        With a `reader` it is off the record.
        """
        ulid = self.context.ids.ulid()
        made = Conversation(
            id=ConversationId(ulid) if reader is None else off_the_record(ulid),
            address=before.address,
            started_at=self.context.clock.now(),
            predecessor=before.pointer.conversation or None,
            language=ENGLISH if reader is None else reader.language,
        )
        put = CONVERSATIONS.put(
            made.id,
            made,
            conversation=made.id,
            state="" if reader is None else UNRECORDED,
            place=before.address.key(),
        )
        return self._pointed(before.to(made.id), put)
