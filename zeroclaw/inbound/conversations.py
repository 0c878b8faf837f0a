"""Which conversation an address means: minted at the first message, re-pointed by `/new` and `/otr`."""

from datetime import datetime

from zeroclaw.config.model import ChannelSettings, WhileBusy
from zeroclaw.context import notes
from zeroclaw.envelope import Address, ConversationId, Principal, is_off_the_record, off_the_record
from zeroclaw.inbound.context import Found, InboundContext, Plan
from zeroclaw.recent import Recent
from zeroclaw.store import Put, Query, RowKind, Write
from zeroclaw.table import Column, Stays, Table, Words, json_codec
from zeroclaw.text.language import ENGLISH, Language
from zeroclaw.tools.notes.note import owner_of_chat
from zeroclaw.value import Struct, Value, field, replace

CACHE = 4096
"""Addresses remembered; a miss costs one read."""
BUSY = ((RowKind.TURN, "open"), (RowKind.INBOX, "queued"), (RowKind.INBOX, "control"))
"""The rows that say that a conversation has something to do."""


class Conversation(Value):
    """A conversation's row.

    Attributes:
        predecessor: What `/new` ended, or `/otr` left; its queue is served first.
        language: What the one reads who began it; told of one that is off the record alone.
    """

    id: ConversationId
    address: Address
    started_at: datetime
    predecessor: ConversationId | None = None
    language: Language = ENGLISH


class Pointer(Value):
    """An address row: where it points now.

    Attributes:
        conversation: Empty for none yet; never stored so.
        while_busy: As `/queue` chose, None for what the channel says.
    """

    conversation: ConversationId
    while_busy: WhileBusy | None = None


class _Place(Value):
    """An address and its row: `NOWHERE`, at version 0, where it has none.

    Attributes:
        key: Of the row; see `Conversations.key_of`.
    """

    key: str
    address: Address
    pointer: Pointer
    version: int

    def to(self, conversation: ConversationId) -> "_Place":
        """Return the place as it points elsewhere."""
        return replace(self, pointer=replace(self.pointer, conversation=conversation))


NOWHERE = Pointer(conversation=ConversationId(""))
UNRECORDED = "unrecorded"
"""The state of a conversation's row of which nothing that is said may reach the disk."""
CONVERSATIONS = Table(
    kind=RowKind.CONVERSATION,
    owner="inbound",
    codec=json_codec(Conversation),
    columns=frozenset({Column.CONVERSATION, Column.STATE, Column.PLACE}),
    keeps=Stays(until="nothing leads to it and nothing is left of it"),
    words=Words.CONVERSATION,
)
POINTERS = Table(
    kind=RowKind.ADDRESS,
    owner="inbound",
    codec=json_codec(Pointer),
    columns=frozenset({Column.CONVERSATION, Column.PLACE}),
    keeps=Stays(until="its conversation is erased; it may point to another one till then"),
    words=Words.CONVERSATION,
)


class Conversations(Struct, eq=False):
    """Maps addresses to conversations; remembers only what is committed."""

    context: InboundContext
    _known: Recent[str, tuple[Pointer, int]] = field(default_factory=lambda: Recent(CACHE))

    async def find(self, address: Address, principal: Principal) -> Found:
        """Return the conversation of an address, with its writes when it must be made."""
        place = await self._place(address, principal)
        if not place.version:
            return self._mint(place)
        # A planner that meets a `/new` or a move is told by a conflict, and looks again.
        return self._found(place, POINTERS.expect(place.key, place.version))

    async def choose(self, address: Address, principal: Principal, mode: WhileBusy) -> Found:
        """Return the conversation with the writes that change what it does while it is busy."""
        place = await self._place(address, principal)
        place = replace(place, pointer=replace(place.pointer, while_busy=mode))
        return self._pointed(place) if place.version else self._mint(place)

    async def renew(self, address: Address, principal: Principal) -> tuple[Found, Found]:
        """Return the conversation that ends and the one that `/new` begins, both or none on record."""
        old = await self._place(address, principal)
        here = old.pointer.conversation
        if is_off_the_record(here):
            new = self._mint(old.to(await self._on_record(here)), reader=principal)
        else:
            new = self._mint(old)
        return (Found(conversation=here) if old.version else new), new

    async def leave_the_record(self, address: Address, principal: Principal) -> Found | None:
        """Return what `/otr` begins in an address, None where it is off the record already."""
        old = await self._place(address, principal)
        if is_off_the_record(old.pointer.conversation):
            return None
        return self._mint(old, reader=principal)

    async def go_on_record(
        self, address: Address, principal: Principal
    ) -> tuple[Found, Found] | None:
        """Return what `/otr off` ends and what goes on, None where all is on record already."""
        old = await self._place(address, principal)
        here = old.pointer.conversation
        if not is_off_the_record(here):
            return None
        new = old.to(await self._on_record(here))
        goes_on = self._pointed(new) if new.pointer.conversation else self._mint(new)
        return Found(conversation=here), goes_on

    async def _on_record(self, conversation: ConversationId) -> ConversationId:
        """Return the conversation that one off the record left; empty where it is gone, or was none."""
        before = await self.predecessor(conversation)
        row = None if before is None else await CONVERSATIONS.get(self.context.store, before)
        return NOWHERE.conversation if row is None else row.id

    async def move(self, address: Address, to: Address) -> Plan | None:
        """Let a chat's conversations follow it to its new address, whosever they are, and its notes."""
        rows = await self.context.store.select(POINTERS.where(place=address.key()))
        if not rows:
            return None
        own = (owner_of_chat(address), owner_of_chat(to))
        writes = [*await notes.moved(self.context.store, *own)]
        for row in rows:
            key = to.key() + row.key.removeprefix(address.key())
            _, version = await POINTERS.read(self.context.store, key)
            place = _Place(key=key, address=to, pointer=POINTERS.of(row), version=version)
            writes += (POINTERS.expect(row.key, row.version), _pointing(place))
        return Plan(
            conversation=rows[0].conversation if len(rows) == 1 else None, writes=tuple(writes)
        )

    def forget(self, key: str) -> None:
        """Read an address anew next time: it is not as expected, or was pointed elsewhere."""
        self._known.pop(key, None)

    async def predecessor(self, conversation: ConversationId) -> ConversationId | None:
        """Return what `/new` ended when it began this one."""
        found = await CONVERSATIONS.get(self.context.store, conversation)
        return None if found is None else found.predecessor

    async def at_work(self, conversation: ConversationId) -> ConversationId:
        """Return the conversation whose turn is under way where this one is meant.

        That is itself, or one that `/new` left behind and that is still being finished.
        """
        found = conversation
        while not await self._has(found, RowKind.TURN, "open"):
            before = await self.predecessor(found)
            if before is None or not await self.is_busy(before):
                return conversation
            found = before
        return found

    async def is_busy(self, conversation: ConversationId) -> bool:
        """Tell whether a turn is under way there, or something waits for one."""
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
        """Return what names a conversation of an address, whichever it is now."""
        shared = address.direct or self._settings(address).scope == "chat"
        return address.key() if shared else f"{address.key()}#{principal.id}"

    def _settings(self, address: Address) -> ChannelSettings:
        # A chat may belong to a channel that was taken out since.
        return self.context.settings.config.channels.get(address.channel) or ChannelSettings()

    async def _place(self, address: Address, principal: Principal) -> _Place:
        key = self.key_of(address, principal)
        known = self._known.get(key)
        if known is None:
            pointer, version = await POINTERS.read(self.context.store, key)
            known = (pointer or NOWHERE, version)
        if known[1]:
            self._known[key] = known
        return _Place(key=key, address=address, pointer=known[0], version=known[1])

    def _found(self, place: _Place, *writes: Write) -> Found:
        mode = place.pointer.while_busy or self._settings(place.address).while_busy
        return Found(conversation=place.pointer.conversation, writes=writes, while_busy=mode)

    def _pointed(self, place: _Place, *writes: Write) -> Found:
        """Return what a place points to, with the write that has it point there."""
        return self._found(place, _pointing(place), *writes)

    def _mint(self, before: _Place, *, reader: Principal | None = None) -> Found:
        """Return a new conversation, which takes the place of the one that was pointed to before.

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
            expect=0,
        )
        return self._pointed(before.to(made.id), put)


def _pointing(place: _Place) -> Put:
    return POINTERS.put(
        place.key,
        place.pointer,
        conversation=place.pointer.conversation,
        place=place.address.key(),
        expect=place.version,
    )
