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
from collections.abc import Awaitable, Callable, Container, Sequence
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

HELD = frozenset(
    {
        RowKind.INBOX, RowKind.TURN, RowKind.OUTBOX, RowKind.ACTION, RowKind.APPROVAL,
        RowKind.GRANT, RowKind.RESULT, RowKind.ATTACHMENT, RowKind.TITLE, RowKind.NOTICE,
    }
)  # fmt: skip
"""Rows with message content; a conversation's other rows contain ids and outlive the process."""
MOST_BLOB_BYTES = 64 * 2**20
"""Limit on all blobs in memory; beyond it the oldest are dropped, as those on disk are by age."""

_REFERENCE = b"off the record "
_ALIAS = "~"


def is_reference(body: bytes) -> bool:
    """Whether a stored body is a reference to a body in some process's memory."""
    return body.startswith(_REFERENCE)


def left_by(body: bytes) -> bytes:
    """Return the rest of a reference, as made by `leaves`; empty for none."""
    return body.removeprefix(_REFERENCE).partition(b" ")[2]


class _Held(Value):
    """A body in memory: its conversation, and the row's original key and conversation column."""

    conversation: ConversationId
    body: bytes
    key: str = ""
    column: ConversationId | None = None


class OffTheRecord:
    """A `Store` that wraps another one and keeps off-the-record content out of it."""

    def __init__(
        self,
        store: Store,
        held: Container[RowKind] = HELD,
        leaves: Callable[[Put], bytes] = lambda _: b"",
    ) -> None:
        """Start with nothing in memory.

        Args:
            store: The store on disk.
            held: The kinds of rows to keep in memory.
            leaves: Returns what the next process needs of such a row besides its columns, without
                any message content.
        """
        self._store = store
        self._kinds = held
        self._leaves = leaves
        self._held: dict[bytes, _Held] = {}
        self._newest: dict[tuple[RowKind, str], bytes] = {}
        self._blobs: OrderedDict[str, tuple[ConversationId, bytes]] = OrderedDict()
        self._salt = secrets.token_bytes()
        self.count, self.streams, self.blobs = store.count, store.streams, store.blobs
        self.size_bytes, self.used_bytes = store.size_bytes, store.used_bytes
        self.lease, self.aclose = store.lease, store.aclose

    # --- reads ---------------------------------------------------------------------------------

    async def get(self, kind: RowKind, key: str) -> Row | None:
        """Return one row; see `Rows.get`."""

        async def read() -> Sequence[Row]:
            row = await self._store.get(kind, self._stored(kind, key))
            return () if row is None else (row,)

        return next(iter(await self._whole(read)), None)

    async def select(self, query: Query) -> tuple[Row, ...]:
        """Return the rows that a query selects; see `Rows.select`."""
        if query.after:
            query = replace(query, after=self._stored(query.kind, query.after))
        return await self._whole(lambda: self._store.select(query))

    async def read(
        self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
    ) -> tuple[LogEntry, ...]:
        """Return log entries; see `Logs.read`."""
        return await self._whole(lambda: self._store.read(log, stream, after=after, limit=limit))

    async def last(self, log: LogKind, stream: str) -> LogEntry | None:
        """Return the newest entry; see `Logs.last`."""

        async def read() -> Sequence[LogEntry]:
            entry = await self._store.last(log, stream)
            return () if entry is None else (entry,)

        return next(iter(await self._whole(read)), None)

    async def blob(self, digest: str) -> bytes | None:
        """Return a blob's bytes; see `Store.blob`."""
        held = self._blobs.get(digest)
        return await self._store.blob(digest) if held is None else held[1]

    async def _whole(self, read: Callable[[], Awaitable[Sequence[T]]]) -> tuple[T, ...]:
        """Read and replace references by their bodies; read again if a body was replaced meanwhile.

        A reference that is still unresolved the second time was left by an earlier process and is
        returned as it is.
        """
        seen: set[bytes] = set()
        while True:
            found = await read()
            references = {one.body for one in found if one.body.startswith(_REFERENCE)}
            if not references:
                return tuple(found)  # nearly always; a lookup per row of a long page is slow
            lost = references - self._held.keys()
            if lost <= seen:
                return tuple(map(self._with_body, found))
            seen |= lost

    def _with_body(self, one: T) -> T:
        held = self._held.get(one.body)
        if held is None:
            return one
        if isinstance(one, Row):
            return replace(one, key=held.key, body=held.body, conversation=held.column)
        return replace(one, body=held.body)

    # --- writes --------------------------------------------------------------------------------

    async def commit(self, commit: Commit) -> None:
        """Write everything or nothing; see `Store.commit`."""
        kept: dict[bytes, _Held] = {}
        scope = commit.conversation
        of = scope or self._deleted_conversation(commit.writes)
        written = [
            self._written(one, of if isinstance(one, Put) else scope, kept) for one in commit.writes
        ]
        # Before the commit, because a reader may see the rows before this task continues.
        self._held |= kept
        try:
            await self._store.commit(replace(commit, writes=tuple(filter(None, written))))
        except (StoreRefused, StoreUnusable):
            for reference in kept:
                self._held.pop(reference, None)  # its conversation may have gone meanwhile
            raise
        if self._held or self._blobs or None in written:  # seldom
            for write, stored in zip(commit.writes, written, strict=True):
                self._committed(write, stored, scope)

    def _deleted_conversation(self, writes: Sequence[Write]) -> ConversationId | None:
        """Return the conversation of an in-memory row that this commit deletes.

        A row of the daemon's own that takes its place has content from the same conversation.
        """
        gone = (self._newest.get((one.kind, one.key)) for one in writes if isinstance(one, Delete))
        return next((self._held[one].conversation for one in gone if one is not None), None)

    def _written(
        self, write: Write, scope: ConversationId | None, kept: dict[bytes, _Held]
    ) -> Write | None:
        """Return the write for the store, None for none; a body kept back goes to `kept`."""
        match write:
            case Put(kind=kind, key=key) if kind in self._kinds:
                whose = self._whose(write, scope)
                if whose is None:
                    return write
                held = _Held(
                    conversation=whose, body=write.body, key=key, column=write.conversation
                )
                left = self._leaves(write)
                key, body = self._stored(kind, key), self._keep(held, kept, left)
                return replace(write, key=key, body=body, conversation=whose)
            case Append(log=LogKind.JOURNAL, stream=stream, body=body) if is_off_the_record(stream):
                whose = ConversationId(stream)
                held = _Held(conversation=whose, body=body)
                return replace(write, body=self._keep(held, kept))
            case PutBlob() if scope is not None and is_off_the_record(scope):
                return None
            case Delete(kind=RowKind.RESULT, key=key) | Expect(kind=RowKind.RESULT, key=key):
                return replace(write, key=self._stored(RowKind.RESULT, key))
            case _:
                return write

    def _whose(self, put: Put, scope: ConversationId | None) -> ConversationId | None:
        """Return the off-the-record conversation that a row belongs to, None for none.

        A row committed in the scope of such a conversation belongs to it, for example a note to
        operators or a reply to an approver. It stays that way whoever writes it next.
        """
        for found in (put.conversation, scope):
            if found is not None and is_off_the_record(found):
                return found
        reference = self._newest.get((put.kind, put.key))
        return None if reference is None else self._held[reference].conversation

    def _keep(self, held: _Held, kept: dict[bytes, _Held], left: bytes = b"") -> bytes:
        reference = _REFERENCE + secrets.token_hex().encode() + b" " * bool(left) + left
        kept[reference] = held
        return reference

    def _stored(self, kind: RowKind, key: str) -> str:
        """Return a row's key in the store; hides the digest of the text in the key of a result."""
        here, _, name = key.partition("/")
        if kind is not RowKind.RESULT or not is_off_the_record(here) or name.startswith(_ALIAS):
            return key
        alias = hashlib.blake2s(name.encode(), key=self._salt).hexdigest()
        return f"{here}/{_ALIAS}{alias}"

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
        while size_bytes > MOST_BLOB_BYTES and len(self._blobs) > 1:
            _, (_, body) = self._blobs.popitem(last=False)
            size_bytes -= len(body)

    def _forget(self, conversation: ConversationId) -> None:
        """Drop everything of a conversation whose row was deleted."""
        gone = {key for key, held in self._held.items() if held.conversation == conversation}
        self._newest = {row: key for row, key in self._newest.items() if key not in gone}
        self._held = {key: held for key, held in self._held.items() if key not in gone}
        for digest in [one for one, (whose, _) in self._blobs.items() if whose == conversation]:
            del self._blobs[digest]
