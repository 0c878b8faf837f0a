"""A store in memory that keeps the contract, records its commits, and fails on demand."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import assert_never

from zeroclaw.clock import Clock
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import AlreadyClaimed, Conflict, Fenced, StoreRefused
from zeroclaw.store import (
    LARGEST_BLOB_BYTES,
    PAGE,
    UNFENCED,
    Append,
    Claim,
    Commit,
    Delete,
    DropBlob,
    DurablePoint,
    Expect,
    Fence,
    LogEntry,
    LogKind,
    Put,
    PutBlob,
    Query,
    Row,
    RowKind,
    Store,
    Trim,
    Write,
)
from zeroclaw.table import Column, Declaration
from zeroclaw.value import replace


@dataclass
class _Tables:
    rows: dict[tuple[RowKind, str], Row] = field(default_factory=dict[tuple[RowKind, str], Row])
    logs: dict[tuple[LogKind, str], list[bytes]] = field(
        default_factory=dict[tuple[LogKind, str], list[bytes]]
    )
    trimmed: dict[tuple[LogKind, str], int] = field(default_factory=dict[tuple[LogKind, str], int])
    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    put_at: dict[str, datetime] = field(default_factory=dict[str, datetime])
    claims: dict[str, datetime] = field(default_factory=dict[str, datetime])


class MemoryStore:
    """Rows, logs, blobs and claims in dictionaries.

    A test restarts its rooms over the same store. `before` and `after` are called with each
    commit and may raise, which simulates a kill on either side of a durable point.

    Attributes:
        commits: Every commit that was written, in order.
        before: Called before a commit is written; if it raises, nothing is written.
        after: Called after a commit was written; if it raises, the commit stays written.
        meanwhile: Called before a commit is written, and may commit first, like another writer.
        afterwards: Called after a commit was written, before its caller returns.
        copies: When each copy of the whole store was made.

    With `tables` it checks every row and every query against their declarations.
    """

    def __init__(
        self, *, clock: Clock | None = None, tables: Mapping[RowKind, Declaration] | None = None
    ) -> None:
        self._clock = clock  # without one, claims never expire
        self._declared = tables
        self._tables = _Tables()
        self._tokens: dict[ConversationId, int] = {}
        self.commits: list[Commit] = []
        self.before: Callable[[Commit], None] | None = None
        self.after: Callable[[Commit], None] | None = None
        self.meanwhile: Callable[[tuple[Write, ...]], Awaitable[None]] | None = None
        self.afterwards: Callable[[], Awaitable[object]] | None = None
        self.copies: list[datetime] = []
        self._is_dead = False

    @property
    def known(self) -> frozenset[str]:
        """The keys of all admitted events."""
        return frozenset(self._tables.claims)

    def points(self) -> list[DurablePoint]:
        """Return the points of all commits, in order."""
        return [commit.point for commit in self.commits]

    def cut_after(self, point: DurablePoint) -> None:
        """Write the next commit of this point, then hang in every commit until `heal`."""

        def die(commit: Commit) -> None:
            self._is_dead = self._is_dead or commit.point is point

        self.after = die

    def heal(self) -> None:
        """Commit as usual again."""
        self.before = self.after = None
        self._is_dead = False

    def forget(self, kind: RowKind) -> None:
        """Lose every row of a kind."""
        rows = self._tables.rows
        self._tables.rows = {place: row for place, row in rows.items() if row.kind is not kind}

    def drop_last(self, stream: str) -> None:
        """Lose the newest audit entry of a stream, as an edit of the file would."""
        del self._tables.logs[LogKind.AUDIT, stream][-1]

    def rewrite(self, stream: str, change: Callable[[bytes], bytes]) -> None:
        """Rewrite the entries of a journal, for example as an earlier release wrote them."""
        log = self._tables.logs[LogKind.JOURNAL, stream]
        log[:] = map(change, log)

    def damage(self, row: Row) -> None:
        """Make a row unreadable, as a failing disk would."""
        self._tables.rows[row.kind, row.key] = replace(row, body=b"{")

    def touch(self, kind: RowKind) -> None:
        """Give every row of a kind a newer version, as another writer would."""
        for place, row in self._tables.rows.items():
            if row.kind is kind:
                self._tables.rows[place] = replace(row, version=row.version + 1)

    async def write(self, *writes: Write) -> None:
        """Commit writes that belong to no turn."""
        await self.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=writes))

    async def commit(self, commit: Commit) -> None:
        await asyncio.sleep(0)
        await self._die()
        if self.meanwhile is not None:
            await self.meanwhile(commit.writes)
        if self.before is not None:
            self.before(commit)
        self._check_fence(commit)
        tables = _Tables(
            rows=dict(self._tables.rows),
            logs={place: [*log] for place, log in self._tables.logs.items()},
            trimmed=dict(self._tables.trimmed),
            blobs=dict(self._tables.blobs),
            put_at=dict(self._tables.put_at),
            claims=dict(self._tables.claims),
        )
        for write in commit.writes:
            self._write(tables, write)
        self._tables = tables
        self.commits.append(commit)
        if self.after is not None:
            self.after(commit)
        if self.afterwards is not None:
            await self.afterwards()
        await self._die()

    async def _die(self) -> None:
        if self._is_dead:
            await asyncio.get_running_loop().create_future()

    def _check_fence(self, commit: Commit) -> None:
        if commit.fence is None:
            if commit.conversation is not None and commit.point not in UNFENCED:
                raise Fenced(f"`{commit.point}` needs a fence")
            return
        newest = self._tokens.get(commit.fence.conversation)
        if (commit.fence.conversation, commit.fence.token) != (commit.conversation, newest):
            raise Fenced(f"`{commit.conversation}` is held by a newer owner")

    def _write(self, tables: _Tables, write: Write) -> None:
        match write:
            case Claim():
                self._claim(tables, write)
            case Put():
                self._put(tables, write)
            case Delete():
                tables.rows.pop((write.kind, write.key), None)
            case Expect():
                _expect(tables, write.kind, write.key, write.version)
            case Append():
                _append(tables, write)
            case PutBlob():
                self._put_blob(tables, write)
            case Trim():
                _trim(tables, write)
            case DropBlob():
                self._drop_blob(tables, write)
            case _:
                assert_never(write)

    def _claim(self, tables: _Tables, claim: Claim) -> None:
        for key in dict.fromkeys(claim.keys):
            until = tables.claims.get(key)
            if until is not None and (self._clock is None or self._clock.now() < until):
                raise AlreadyClaimed(key)
            tables.claims[key] = claim.until

    def _put_blob(self, tables: _Tables, write: PutBlob) -> None:
        if len(write.body) > LARGEST_BLOB_BYTES:
            raise StoreRefused(f"a blob of {len(write.body)} bytes is too large")
        if hashlib.sha256(write.body).hexdigest() != write.digest:
            raise StoreRefused(f"`{write.digest}` is not the hash of its blob")
        tables.blobs[write.digest] = write.body
        if self._clock is not None:
            tables.put_at[write.digest] = self._clock.now()

    def _drop_blob(self, tables: _Tables, write: DropBlob) -> None:
        put_at = tables.put_at.get(write.digest)
        is_early = put_at is not None and self._clock is not None and put_at > self._clock.now()
        is_old = put_at is not None and write.put_before is not None and put_at < write.put_before
        if write.put_before is None or is_old or is_early:
            tables.blobs.pop(write.digest, None)
            tables.put_at.pop(write.digest, None)

    def _check(self, item: Put | Query) -> None:
        """Check that the table declares the columns; another store has no index for others."""
        if self._declared is None:
            return
        due = item.due_at if isinstance(item, Put) else item.due_before
        used = {
            Column.CONVERSATION: item.conversation,
            Column.STATE: item.state,
            Column.PLACE: item.place,
            Column.DUE_AT: due,
        }
        undeclared = {column for column, value in used.items() if value} - set(
            self._declared[item.kind].columns
        )
        assert not undeclared, (item, undeclared)

    def _put(self, tables: _Tables, put: Put) -> None:
        self._check(put)
        old = tables.rows.get((put.kind, put.key))
        tables.rows[put.kind, put.key] = Row(
            kind=put.kind,
            key=put.key,
            version=1 if old is None else old.version + 1,
            body=put.body,
            conversation=put.conversation,
            state=put.state,
            place=put.place,
            due_at=put.due_at,
        )

    async def lease(self, conversation: ConversationId) -> Fence:
        await asyncio.sleep(0)
        token = self._tokens.get(conversation, 0) + 1
        self._tokens[conversation] = token
        return Fence(conversation=conversation, token=token)

    async def get(self, kind: RowKind, key: str) -> Row | None:
        await asyncio.sleep(0)
        return self._tables.rows.get((kind, key))

    async def select(self, query: Query) -> tuple[Row, ...]:
        await asyncio.sleep(0)
        after = query.after
        found = [
            row
            for row in self._fitting(query)
            if not after or (row.key < after if query.newest_first else row.key > after)
        ]
        found.sort(key=lambda row: row.key, reverse=query.newest_first)
        return tuple(found[: query.limit])

    async def count(self, query: Query) -> int:
        await asyncio.sleep(0)
        return len(self._fitting(query))

    def _fitting(self, query: Query) -> list[Row]:
        self._check(query)
        due_before = query.due_before
        return [
            row
            for row in self._tables.rows.values()
            if row.kind is query.kind
            and query.conversation in {None, row.conversation}
            and query.state in {None, row.state}
            and query.place in {None, row.place}
            and (due_before is None or (row.due_at is not None and row.due_at < due_before))
        ]

    async def read(
        self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
    ) -> tuple[LogEntry, ...]:
        await asyncio.sleep(0)
        bodies = self._tables.logs.get((log, stream), [])
        trimmed = self._tables.trimmed.get((log, stream), 0)
        numbered = enumerate(bodies, start=trimmed + 1)
        entries = [LogEntry(sequence=n, body=body) for n, body in numbered if n > after]
        return tuple(entries[:limit])

    async def last(self, log: LogKind, stream: str) -> LogEntry | None:
        entries = await self.read(log, stream)
        return entries[-1] if entries else None

    async def streams(self, log: LogKind, *, last: int = 0, before: str = "") -> tuple[str, ...]:
        await asyncio.sleep(0)
        names = sorted(name for kind, name in self._tables.logs if kind is log)
        known = [name for name in names if not (last and before) or name < before]
        return tuple(known[-last:])

    async def blob(self, digest: str) -> bytes | None:
        await asyncio.sleep(0)
        return self._tables.blobs.get(digest)

    async def blobs(self, *, put_before: datetime, limit: int = 1000) -> tuple[str, ...]:
        await asyncio.sleep(0)
        digests = sorted(
            (at, digest) for digest, at in self._tables.put_at.items() if at < put_before
        )
        return tuple([digest for _, digest in digests[:limit]])

    async def used_bytes(self) -> int:
        return await self.size_bytes()

    async def size_bytes(self) -> int:
        await asyncio.sleep(0)
        rows = sum(len(row.body) for row in self._tables.rows.values())
        logs = sum(len(body) for log in self._tables.logs.values() for body in log)
        return rows + logs + sum(len(body) for body in self._tables.blobs.values())

    async def drop_copies(self, before: datetime) -> int:
        await asyncio.sleep(0)
        old = [at for at in self.copies if at < before]
        self.copies = [at for at in self.copies if at >= before]
        return len(old)

    async def aclose(self) -> None:
        await asyncio.sleep(0)


def _expect(tables: _Tables, kind: RowKind, key: str, version: int) -> None:
    row = tables.rows.get((kind, key))
    found = 0 if row is None else row.version
    if found != version:
        raise Conflict(f"{kind} `{key}` is at version {found}, not at {version}")


def _append(tables: _Tables, write: Append) -> None:
    log = tables.logs.setdefault((write.log, write.stream), [])
    last = tables.trimmed.get((write.log, write.stream), 0) + len(log)
    if write.after is not None and write.after != last:
        raise Conflict(f"`{write.stream}` is at {last}, not at {write.after}")
    log.append(write.body)


def _trim(tables: _Tables, write: Trim) -> None:
    place = (write.log, write.stream)
    trimmed = tables.trimmed.get(place, 0)
    left = tables.logs.get(place, [])[max(write.before - 1 - trimmed, 0) :]
    if left:
        tables.logs[place] = left
        tables.trimmed[place] = max(write.before - 1, trimmed)
    else:
        tables.logs.pop(place, None)
        tables.trimmed.pop(place, None)


# --- many rows ------------------------------------------------------------------------------------


async def put_a_page_before(store: Store, like: Put) -> None:
    """Store a full page of rows like this one, whose keys sort before all others."""
    rows = tuple(replace(like, key=f"!{number:04}") for number in range(PAGE))
    await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=rows))
