"""Which conversation an address points to: the first message, `/new` and `/otr` set it."""

from datetime import datetime

from zeroclaw.config.model import ChannelSettings, WhileBusy
from zeroclaw.context import notes
from zeroclaw.envelope import Address, ConversationId, Principal, is_off_the_record, off_the_record
from zeroclaw.inbound.commands.invocation import Invocation
from zeroclaw.inbound.context import InboundContext, Plan, Resolution
from zeroclaw.store import LogKind, Put, Query, Reads, Row, RowKind, Write, readable
from zeroclaw.table import Column, Stays, Table, json_codec
from zeroclaw.text.language import ENGLISH, Language
from zeroclaw.tools.notes.note import owner_of_chat
from zeroclaw.value import Struct, Value, replace

MAX_EMPTY = 50
"""Conversations in a row in which nothing was said, beyond which no earlier one is looked for."""
BUSY = ((RowKind.TURN, "open"), (RowKind.INBOX, "queued"), (RowKind.INBOX, "control"))
"""A conversation with a row in one of these states is busy."""


class Conversation(Value):
    """A conversation.

    Attributes:
        predecessor: The conversation before `/new` or `/otr`; its queue is served first.
        language: The language of the person who began it; only set off the record.
    """

    id: ConversationId
    address: Address
    started_at: datetime
    predecessor: ConversationId | None = None
    language: Language = ENGLISH


class Pointer(Value):
    """The conversation that an address points to.

    Attributes:
        conversation: Empty for none yet; never stored empty.
        while_busy: The mode that `/queue` has set; None for the channel's setting.
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
        """Return this place, pointing to another conversation."""
        return replace(self, pointer=replace(self.pointer, conversation=conversation))


NOWHERE = Pointer(conversation=ConversationId(""))
UNRECORDED = "unrecorded"
"""The state of a conversation off the record, whose messages may not reach the disk."""
CONVERSATIONS = Table(
    kind=RowKind.CONVERSATION,
    codec=json_codec(Conversation),
    columns=frozenset({Column.CONVERSATION, Column.STATE, Column.PLACE}),
    keeps=Stays(until="nothing points to it and none of its content is stored"),
)


def conversation_put(conversation: Conversation) -> Put:
    """Return the write that stores a conversation."""
    id_, place = conversation.id, conversation.address.key()
    state = UNRECORDED if is_off_the_record(id_) else ""
    return CONVERSATIONS.put(id_, conversation, conversation=id_, state=state, place=place)


POINTERS = Table(
    kind=RowKind.ADDRESS,
    codec=json_codec(Pointer),
    columns=frozenset({Column.CONVERSATION, Column.PLACE}),
    keeps=Stays(until="its conversation is erased; it may point to another one till then"),
)


class Conversations(Struct, eq=False):
    """Maps addresses to conversations.

    A plan reads the pointer through its `reads`, so that it is made again after a `/new` or a move
    in between.
    """

    context: InboundContext

    async def find(self, reads: Reads, address: Address, principal: Principal) -> Resolution:
        """Return the conversation of an address, with the writes that create it if needed."""
        place = await self._place(reads, address, principal)
        return self._resolve(place) if place.pointer.conversation else self._create(place)

    async def set_mode(self, invocation: Invocation, mode: WhileBusy) -> Resolution:
        """Return the conversation, with the writes that set its `while_busy` mode."""
        place = await self._place(invocation.reads, invocation.address, invocation.principal)
        place = replace(place, pointer=replace(place.pointer, while_busy=mode))
        return self._point(place) if place.pointer.conversation else self._create(place)

    async def renew(self, invocation: Invocation) -> tuple[ConversationId, Resolution]:
        """Return the conversation that `/new` ends and its successor, both on record or both off.

        They are the same if this is the first.
        """
        old = await self._place(invocation.reads, invocation.address, invocation.principal)
        conversation = old.pointer.conversation
        if is_off_the_record(conversation):
            before = await self._on_record(invocation.reads, conversation)
            new = self._create(old.to(before), reader=invocation.principal)
        else:
            new = self._create(old)
        return conversation or new.conversation, new

    async def leave_the_record(self, invocation: Invocation) -> Resolution | None:
        """Return the conversation that `/otr` begins; None if the chat is already off the record."""
        old = await self._place(invocation.reads, invocation.address, invocation.principal)
        if is_off_the_record(old.pointer.conversation):
            return None
        return self._create(old, reader=invocation.principal)

    async def resume_record(
        self, invocation: Invocation
    ) -> tuple[ConversationId, Resolution] | None:
        """Return the conversations that `/otr off` ends and resumes; None if already on record."""
        old = await self._place(invocation.reads, invocation.address, invocation.principal)
        conversation = old.pointer.conversation
        if not is_off_the_record(conversation):
            return None
        new = old.to(await self._on_record(invocation.reads, conversation))
        resumed = self._point(new) if new.pointer.conversation else self._create(new)
        return conversation, resumed

    async def _on_record(self, reads: Reads, conversation: ConversationId) -> ConversationId:
        """Return the conversation on record before one off the record; empty if there is none."""
        current = await CONVERSATIONS.get(reads, conversation)
        before = None if current is None else current.predecessor
        row = None if before is None else await CONVERSATIONS.get(reads, before)
        return NOWHERE.conversation if row is None else row.id

    async def move(self, reads: Reads, address: Address, to: Address) -> Plan | None:
        """Move all conversations of a chat and its threads, and their notes, to the new address."""
        # A thread's name ends the key.
        old, new = replace(address, thread=None).key(), to.key()
        found: list[tuple[Row, Pointer]] = []
        query = POINTERS.where(after=old[:-1])
        async for row, pointer in readable(reads, query, lambda row: (row, POINTERS.of(row))):
            if row.key.startswith(old):
                found.append((row, pointer))
            elif row.key > old:
                break
        if not found:
            return None
        writes: list[Write] = []
        for place in dict.fromkeys((old, *(row.place for row, _ in found))):
            owner = owner_of_chat(new + place.removeprefix(old))
            writes += await notes.plan_move(reads, owner_of_chat(place), owner)
        for row, pointer in found:
            key, place = (new + stored.removeprefix(old) for stored in (row.key, row.place))
            # Guard both rows.
            for guarded in (row.key, key):
                await POINTERS.get(reads, guarded)
            writes.append(POINTERS.put(key, pointer, conversation=row.conversation, place=place))
        conversation = found[0][0].conversation if len(found) == 1 else None
        return Plan(conversation=conversation, writes=tuple(writes))

    async def predecessor(self, conversation: ConversationId) -> ConversationId | None:
        """Return the conversation that is served before this one: the one that `/new` ended.

        If no turn began there and no item waits, an earlier one may still have messages; of those,
        the last `MAX_EMPTY` are looked at.
        """
        store, current = self.context.store, conversation
        for _ in range(MAX_EMPTY):
            found = await CONVERSATIONS.find(store, current)
            if found is None or found.predecessor is None:
                return None
            current = found.predecessor
            # The journal last: a commit that takes the last item appends to it.
            if await self.is_busy(current) or await store.last(LogKind.JOURNAL, current):
                break
        return current

    async def active(self, conversation: ConversationId) -> ConversationId:
        """Return the conversation whose turn is running in this chat.

        It is this one, or an earlier one that `/new` has ended and whose turn still runs.
        """
        current = conversation
        while not await self._has(current, RowKind.TURN, "open"):
            before = await self.predecessor(current)
            if before is None or not await self.is_busy(before):
                return conversation
            current = before
        return current

    async def is_busy(self, conversation: ConversationId) -> bool:
        """Whether a turn runs there, or an item waits for one."""
        for kind, state in BUSY:
            if await self._has(conversation, kind, state):
                return True
        return False

    async def _has(self, conversation: ConversationId, kind: RowKind, state: str) -> bool:
        query = Query(kind=kind, conversation=conversation, state=state, limit=1)
        return bool(await self.context.store.select(query))

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

    def _resolve(self, place: _Place, *writes: Write) -> Resolution:
        mode = place.pointer.while_busy or self._settings(place.address).while_busy
        return Resolution(conversation=place.pointer.conversation, writes=writes, while_busy=mode)

    def _point(self, place: _Place, *writes: Write) -> Resolution:
        """Return a place's conversation, with the write that stores the pointer."""
        conversation, place_key = place.pointer.conversation, place.address.key()
        put = POINTERS.put(place.key, place.pointer, conversation=conversation, place=place_key)
        return self._resolve(place, put, *writes)

    def _create(self, before: _Place, *, reader: Principal | None = None) -> Resolution:
        """Return a new conversation for a place; with a `reader` it is off the record."""
        ulid = self.context.ids.ulid()
        new = Conversation(
            id=ConversationId(ulid) if reader is None else off_the_record(ulid),
            address=before.address,
            started_at=self.context.clock.now(),
            predecessor=before.pointer.conversation or None,
            language=ENGLISH if reader is None else reader.language,
        )
        return self._point(before.to(new.id), conversation_put(new))
