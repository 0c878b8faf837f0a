"""Keeps off-the-record content in memory; the store behind it gets only references (K23).

    Put, Append ──► body kept in memory ──► the same write with a reference as its body ──► store
    PutBlob     ──► kept in memory

The store still provides order, versions, fences and dedup keys, so an off-the-record message is
admitted like any other; only its ids, states and times reach the disk. The bodies are dropped when
the row of their conversation is deleted, and when the process ends: references left by an earlier
process lead nowhere.
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from zeroclaw.envelope import ConversationId, is_off_the_record
from zeroclaw.errors import StoreRefused, StoreUnusable
from zeroclaw.store import (
    Append,
    Commit,
    Delete,
    DropBlob,
    Expect,
    LogEntry,
    LogKind,
    Put,
    PutBlob,
    Query,
    Row,
    RowKind,
    Store,
    Write,
)
from zeroclaw.value import Value, replace

T = TypeVar("T", Row, LogEntry)

IN_MEMORY = frozenset(
    {
        RowKind.INBOX, RowKind.TURN, RowKind.OUTBOX, RowKind.ACTION, RowKind.APPROVAL,
        RowKind.GRANT, RowKind.RESULT, RowKind.ATTACHMENT, RowKind.TITLE, RowKind.NOTICE,
    }
)  # fmt: skip
"""Rows with message content; a conversation's other rows contain ids and outlive the process."""
MAX_BLOB_BYTES = 64 * 2**20
"""Limit on all blobs in memory; beyond it the oldest are dropped, as those on disk are by age."""

_REFERENCE = b"off the record "
_ALIAS = "~"


def is_reference(body: bytes) -> bool:
    """Whether a stored body is a reference to a body in some process's memory."""
    return body.startswith(_REFERENCE)


def facts_in(body: bytes) -> bytes:
    """Return the facts in a reference, as `facts_of` made them; empty for none."""
    return body.removeprefix(_REFERENCE).partition(b" ")[2]


class _Held(Value):
    """A body in memory: its conversation, and the row's original key and conversation column."""

    conversation: ConversationId
    body: bytes
    key: str = ""
    column: ConversationId | None = None


class OffTheRecord:
    """A `Store` that wraps another one and keeps off-the-record content out of it."""

    def __init__(self, store: Store, facts_of: Callable[[Put], bytes] = lambda _: b"") -> None:
        """Start with nothing in memory.

        Args:
            store: The store on disk.
            facts_of: Returns the facts that the next process needs of a row in memory besides its
                columns, without any message content.
        """
        self._store = store
        self._facts_of = facts_of
        self._held: dict[bytes, _Held] = {}
        self._newest: dict[tuple[RowKind, str], bytes] = {}
        self._blobs: OrderedDict[str, tuple[ConversationId, bytes]] = OrderedDict()
        self._salt = secrets.token_bytes()
        self.count, self.streams, self.blobs = store.count, store.streams, store.blobs
        self.size_bytes, self.used_bytes = store.size_bytes, store.used_bytes
        self.lease, self.drop_copies, self.aclose = store.lease, store.drop_copies, store.aclose

    # --- reads ---------------------------------------------------------------------------------

    async def get(self, kind: RowKind, key: str) -> Row | None:
        """Return one row; see `Rows.get`."""
        return await self._one_resolved(lambda: self._store.get(kind, self._stored(kind, key)))

    async def select(self, query: Query) -> tuple[Row, ...]:
        """Return the rows that a query selects; see `Rows.select`."""
        if query.after:
            query = replace(query, after=self._stored(query.kind, query.after))
        return await self._resolved(lambda: self._store.select(query))

    async def read(
        self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
    ) -> tuple[LogEntry, ...]:
        """Return log entries; see `Logs.read`."""
        return await self._resolved(lambda: self._store.read(log, stream, after=after, limit=limit))

    async def last(self, log: LogKind, stream: str) -> LogEntry | None:
        """Return the newest entry; see `Logs.last`."""
        return await self._one_resolved(lambda: self._store.last(log, stream))

    async def blob(self, digest: str) -> bytes | None:
        """Return a blob's bytes; see `Store.blob`."""
        held = self._blobs.get(digest)
        return await self._store.blob(digest) if held is None else held[1]

    async def _one_resolved(self, read: Callable[[], Awaitable[T | None]]) -> T | None:
        async def read_one() -> Sequence[T]:
            record = await read()
            return () if record is None else (record,)

        return next(iter(await self._resolved(read_one)), None)

    async def _resolved(self, read: Callable[[], Awaitable[Sequence[T]]]) -> tuple[T, ...]:
        """Read and replace references by their bodies; read again if a body was replaced meanwhile.

        A reference that is still unresolved the second time was left by an earlier process and is
        returned as it is.
        """
        missed: set[bytes] = set()
        while True:
            records = await read()
            references = {record.body for record in records if record.body.startswith(_REFERENCE)}
            if not references:
                return tuple(records)  # nearly always; a lookup per row of a long page is slow
            unresolved = references - self._held.keys()
            if unresolved <= missed:
                return tuple(map(self._with_body, records))
            missed |= unresolved

    def _with_body(self, record: T) -> T:
        held = self._held.get(record.body)
        if held is None:
            return record
        if isinstance(record, Row):
            return replace(record, key=held.key, body=held.body, conversation=held.column)
        return replace(record, body=held.body)

    # --- writes --------------------------------------------------------------------------------

    async def commit(self, commit: Commit) -> None:
        """Write everything or nothing; see `Store.commit`."""
        held: dict[bytes, _Held] = {}
        scope = commit.conversation
        put_scope = scope or self._deleted_conversation(commit.writes)
        stored_writes = [
            self._split(write, put_scope if isinstance(write, Put) else scope, held)
            for write in commit.writes
        ]
        # Before the commit, because a reader may see the rows before this task continues.
        self._held |= held
        try:
            await self._store.commit(replace(commit, writes=tuple(filter(None, stored_writes))))
        except (StoreRefused, StoreUnusable):
            for reference in held:
                self._held.pop(reference, None)  # its conversation may be deleted meanwhile
            raise
        if self._held or self._blobs or None in stored_writes:  # seldom
            for write, stored in zip(commit.writes, stored_writes, strict=True):
                self._committed(write, stored, scope)

    def _deleted_conversation(self, writes: Sequence[Write]) -> ConversationId | None:
        """Return the conversation of an in-memory row that this commit deletes.

        A row without a conversation that replaces it has content from the same conversation.
        """
        deletes = (write for write in writes if isinstance(write, Delete))
        references = (self._newest.get((delete.kind, delete.key)) for delete in deletes)
        return next((self._held[it].conversation for it in references if it is not None), None)

    def _split(
        self, write: Write, scope: ConversationId | None, held: dict[bytes, _Held]
    ) -> Write | None:
        """Return the write for the store, None for none; puts a body to keep in memory into `held`."""
        match write:
            case Put(kind=kind, key=key) if kind in IN_MEMORY:
                owner = self._owner_of(write, scope)
                if owner is None:
                    return write
                row = _Held(conversation=owner, body=write.body, key=key, column=write.conversation)
                reference = self._hold(row, held, self._facts_of(write))
                stored_key = self._stored(kind, key)
                return replace(write, key=stored_key, body=reference, conversation=owner)
            case Append(log=LogKind.JOURNAL, stream=stream, body=body) if is_off_the_record(stream):
                body = _Held(conversation=ConversationId(stream), body=body)
                return replace(write, body=self._hold(body, held))
            case PutBlob() if scope is not None and is_off_the_record(scope):
                return None
            case Delete(kind=RowKind.RESULT, key=key) | Expect(kind=RowKind.RESULT, key=key):
                return replace(write, key=self._stored(RowKind.RESULT, key))
            case _:
                return write

    def _owner_of(self, put: Put, scope: ConversationId | None) -> ConversationId | None:
        """Return the off-the-record conversation that a row belongs to, None for none.

        A row committed in the scope of such a conversation belongs to it, for example a note to
        operators or a reply to an approver. Later writes from other scopes do not change that.
        """
        for conversation in (put.conversation, scope):
            if conversation is not None and is_off_the_record(conversation):
                return conversation
        reference = self._newest.get((put.kind, put.key))
        return None if reference is None else self._held[reference].conversation

    def _hold(self, body: _Held, held: dict[bytes, _Held], facts: bytes = b"") -> bytes:
        reference = _REFERENCE + secrets.token_hex().encode() + b" " * bool(facts) + facts
        held[reference] = body
        return reference

    def _stored(self, kind: RowKind, key: str) -> str:
        """Return a row's key in the store; hides the digest of the text in the key of a result."""
        owner, _, name = key.partition("/")
        if kind is not RowKind.RESULT or not is_off_the_record(owner) or name.startswith(_ALIAS):
            return key
        alias = hashlib.blake2s(name.encode(), key=self._salt).hexdigest()
        return f"{owner}/{_ALIAS}{alias}"

    def _committed(self, write: Write, stored: Write | None, scope: ConversationId | None) -> None:
        """Drop the bodies that a write replaced or deleted."""
        match write, stored:
            case Put(kind=kind, key=key), Put(body=reference) if reference in self._held:
                before = self._newest.get((kind, key))
                self._newest[kind, key] = reference
                if before is not None:
                    del self._held[before]
            case Delete(kind=RowKind.CONVERSATION, key=key), _:
                self._forget(ConversationId(key))
            case Delete(kind=kind, key=key), _:
                reference = self._newest.pop((kind, key), None)
                if reference is not None:
                    del self._held[reference]
            case PutBlob(digest=digest, body=body), None if scope is not None:
                self._blobs[digest] = scope, body
                self._blobs.move_to_end(digest)
                self._bound_blobs()
            case DropBlob(digest=digest, put_before=None), _:
                self._blobs.pop(digest, None)
            case _:
                pass

    def _bound_blobs(self) -> None:
        size_bytes = sum(len(body) for _, body in self._blobs.values())
        while size_bytes > MAX_BLOB_BYTES and len(self._blobs) > 1:
            _, (_, body) = self._blobs.popitem(last=False)
            size_bytes -= len(body)

    def _forget(self, conversation: ConversationId) -> None:
        """Drop everything of a conversation whose row was deleted."""
        dropped = {key for key, held in self._held.items() if held.conversation == conversation}
        self._newest = {row: key for row, key in self._newest.items() if key not in dropped}
        self._held = {key: held for key, held in self._held.items() if key not in dropped}
        for digest in [key for key, (owner, _) in self._blobs.items() if owner == conversation]:
            del self._blobs[digest]
