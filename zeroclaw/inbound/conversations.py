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
        key = self.key_of(address, principal)
        pointer, version = await self._pointer(key)
        if pointer is None:
            return self._mint(key, address, NOWHERE, 0)
        # A planner that meets a `/new` or a move is told by a conflict, and looks again.
        return self._found(address, pointer, POINTERS.expect(key, version))

    async def choose(self, address: Address, principal: Principal, mode: WhileBusy) -> Found:
        """Return the conversation with the writes that change what it does while it is busy."""
        key = self.key_of(address, principal)
        before, version = await self._pointer(key)
        pointer = replace(before or NOWHERE, while_busy=mode)
        if before is None:
            return self._mint(key, address, pointer, version)
        return self._found(address, pointer, self._pointing(key, address, pointer, version))

    async def renew(self, address: Address, principal: Principal) -> tuple[Found, Found]:
        """Return the conversation that ends and the one that `/new` begins, both or none on record."""
        key = self.key_of(address, principal)
        old, version = await self._pointer(key)
        if old is not None and is_off_the_record(old.conversation):
            before = replace(old, conversation=await self._on_record(old.conversation))
            new = self._mint(key, address, before, version, reader=principal)
        else:
            new = self._mint(key, address, old or NOWHERE, version)
        return (new if old is None else Found(conversation=old.conversation)), new

    async def leave_the_record(self, address: Address, principal: Principal) -> Found | None:
        """Return what `/otr` begins in an address, None where it is off the record already."""
        key = self.key_of(address, principal)
        old, version = await self._pointer(key)
        if old is not None and is_off_the_record(old.conversation):
            return None
        return self._mint(key, address, old or NOWHERE, version, reader=principal)

    async def go_on_record(
        self, address: Address, principal: Principal
    ) -> tuple[Found, Found] | None:
        """Return what `/otr off` ends and what goes on, None where all is on record already."""
        key = self.key_of(address, principal)
        old, version = await self._pointer(key)
        if old is None or not is_off_the_record(old.conversation):
            return None
        before = replace(old, conversation=await self._on_record(old.conversation))
        if not before.conversation:
            new = self._mint(key, address, before, version)
        else:
            new = self._found(address, before, self._pointing(key, address, before, version))
        return Found(conversation=old.conversation), new

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
            writes += (
                POINTERS.expect(row.key, row.version),
                self._pointing(key, to, POINTERS.of(row), version),
            )
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

    async def _pointer(self, key: str) -> tuple[Pointer | None, int]:
        known = self._known.get(key)
        if known is not None:
            self._known[key] = known
            return known
        pointer, version = await POINTERS.read(self.context.store, key)
        if pointer is not None:
            self._known[key] = pointer, version
        return pointer, version

    def _found(self, address: Address, pointer: Pointer, *writes: Write) -> Found:
        mode = pointer.while_busy or self._settings(address).while_busy
        return Found(conversation=pointer.conversation, writes=writes, while_busy=mode)

    def _pointing(self, key: str, address: Address, pointer: Pointer, version: int) -> Put:
        here, place = pointer.conversation, address.key()
        return POINTERS.put(key, pointer, conversation=here, place=place, expect=version)

    def _mint(
        self,
        key: str,
        address: Address,
        before: Pointer,
        version: int,
        *,
        reader: Principal | None = None,
    ) -> Found:
        """Return a new conversation, which takes the place of the one that was pointed to before.

        With a `reader` it is off the record.
        """
        ulid = self.context.ids.ulid()
        made = Conversation(
            id=ConversationId(ulid) if reader is None else off_the_record(ulid),
            address=address,
            started_at=self.context.clock.now(),
            predecessor=before.conversation or None,
            language=ENGLISH if reader is None else reader.language,
        )
        pointer = replace(before, conversation=made.id)
        put = CONVERSATIONS.put(
            made.id,
            made,
            conversation=made.id,
            state="" if reader is None else UNRECORDED,
            place=address.key(),
            expect=0,
        )
        return self._found(address, pointer, self._pointing(key, address, pointer, version), put)
