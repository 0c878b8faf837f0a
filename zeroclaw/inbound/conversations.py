"""Which conversation an address means: minted at the first message, re-pointed by `/new`."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from zeroclaw.clock import Clock, Ids
from zeroclaw.envelope import Address, ConversationId, Principal
from zeroclaw.inbound.plan import Plan
from zeroclaw.record import decode, encode
from zeroclaw.store import Expect, Put, RowKind, Store, Write

CACHE = 4096
"""Addresses remembered; a miss costs one read."""
BUSY = ((RowKind.TURN, "open"), (RowKind.INBOX, "queued"), (RowKind.INBOX, "control"))
"""The rows that say that a conversation has something to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation's row.

    Attributes:
        predecessor: What `/new` ended; its queue is served first.
    """

    id: ConversationId
    address: Address
    started_at: datetime
    predecessor: ConversationId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """An address row: where it points now."""

    conversation: ConversationId


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A conversation, and the writes that make it exist, or make sure that it is still meant."""

    conversation: ConversationId
    writes: tuple[Write, ...] = ()


class Conversations:
    """Maps addresses to conversations; remembers only what is committed."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        *,
        scopes: dict[str, Literal["chat", "person"]],
    ) -> None:
        """Hold the store; `scopes` says by channel who shares a conversation in a group."""
        self._store = store
        self._clock = clock
        self._ids = ids
        self._scopes = scopes
        self._known: OrderedDict[str, tuple[ConversationId, int]] = OrderedDict()

    async def find(self, address: Address, principal: Principal) -> Found:
        """Return the conversation of an address, with its writes when it must be made."""
        key = self._key(address, principal)
        conversation, version = await self._pointer(key)
        if conversation is not None:
            # Whoever meets a `/new` or a move is told by a conflict, and looks again.
            still = Expect(kind=RowKind.ADDRESS, key=key, version=version)
            return Found(conversation=conversation, writes=(still,))
        return self._mint(key, address, version=0, predecessor=None)

    async def renew(self, address: Address, principal: Principal) -> tuple[Found, Found]:
        """Return the conversation that ends and the one that `/new` begins."""
        key = self._key(address, principal)
        old, version = await self._pointer(key)
        new = self._mint(key, address, version=version, predecessor=old)
        if old is None:
            return new, new
        return Found(conversation=old), new

    async def move(self, address: Address, to: Address, principal: Principal) -> Plan | None:
        """Let a chat's conversation follow it to its new address."""
        key = self._key(address, principal)
        conversation, version = await self._pointer(key)
        if conversation is None:
            return None
        there = await self._store.get(RowKind.ADDRESS, self._key(to, principal))
        return Plan(
            conversation=conversation,
            writes=(
                Expect(kind=RowKind.ADDRESS, key=key, version=version),
                Put(
                    kind=RowKind.ADDRESS,
                    key=self._key(to, principal),
                    body=encode(Pointer(conversation=conversation)),
                    conversation=conversation,
                    place=to.key(),
                    expect=0 if there is None else there.version,
                ),
            ),
        )

    def forget(self, address: Address, principal: Principal) -> None:
        """Read the address anew next time; called when it was not as expected."""
        self._known.pop(self._key(address, principal), None)

    def written(self, writes: Iterable[Write]) -> None:
        """Read anew what a commit has just pointed elsewhere."""
        for write in writes:
            if isinstance(write, Put) and write.kind is RowKind.ADDRESS:
                self._known.pop(write.key, None)

    async def predecessor(self, conversation: ConversationId) -> ConversationId | None:
        """Return what `/new` ended when it began this one."""
        row = await self._store.get(RowKind.CONVERSATION, conversation)
        return None if row is None else decode(Conversation, row.body).predecessor

    async def at_work(self, conversation: ConversationId) -> ConversationId:
        """Return the conversation whose turn is under way where this one is meant.

        That is itself, or one that `/new` left behind and that is still being finished.
        """
        found = conversation
        while not await self._has(found, RowKind.TURN, "open"):
            before = await self.predecessor(found)
            if before is None or not await self._is_busy(before):
                return conversation
            found = before
        return found

    async def _is_busy(self, conversation: ConversationId) -> bool:
        for kind, state in BUSY:
            if await self._has(conversation, kind, state):
                return True
        return False

    async def _has(self, conversation: ConversationId, kind: RowKind, state: str) -> bool:
        return bool(await self._store.find(kind, conversation=conversation, state=state, limit=1))

    def _key(self, address: Address, principal: Principal) -> str:
        shared = address.direct or self._scopes.get(address.channel, "chat") == "chat"
        return address.key() if shared else f"{address.key()}#{principal.id}"

    async def _pointer(self, key: str) -> tuple[ConversationId | None, int]:
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known
        row = await self._store.get(RowKind.ADDRESS, key)
        if row is None:
            return None, 0
        found = (decode(Pointer, row.body).conversation, row.version)
        self._known[key] = found
        if len(self._known) > CACHE:
            self._known.popitem(last=False)
        return found

    def _mint(
        self, key: str, address: Address, *, version: int, predecessor: ConversationId | None
    ) -> Found:
        made = Conversation(
            id=ConversationId(self._ids.ulid()),
            address=address,
            started_at=self._clock.now(),
            predecessor=predecessor,
        )
        return Found(
            conversation=made.id,
            writes=(
                Put(
                    kind=RowKind.ADDRESS,
                    key=key,
                    body=encode(Pointer(conversation=made.id)),
                    conversation=made.id,
                    place=address.key(),
                    expect=version,
                ),
                Put(
                    kind=RowKind.CONVERSATION,
                    key=made.id,
                    body=encode(made),
                    conversation=made.id,
                    place=address.key(),
                    expect=0,
                ),
            ),
        )
