"""Keeps notes in the store: a row for each, and one that counts an owner's.

The count is put with every note at the version that was read, so two who write at the same time
for one owner can't both take the last free place, or one number.
"""

from typing import Literal

from zeroclaw.codec import decode, encode
from zeroclaw.errors import Conflict, ToolFailed
from zeroclaw.store import Commit, Delete, DurablePoint, Put, Row, RowKind, Store, find_all
from zeroclaw.tools.notes import Kept, Note
from zeroclaw.value import Value, replace

_TRIES = 8


class Numbered(Value):
    """The row that counts: the newest number that an owner's notes were given."""

    last: int


class Notes:
    """The notes of all owners; what a `NotesStore` promises."""

    def __init__(self, store: Store) -> None:
        """Keep them there."""
        self._store = store

    async def all(self, owner: str) -> tuple[Note, ...]:
        """Return the notes of an owner, newest first."""
        rows = find_all(self._store, RowKind.NOTE, place=owner)
        return tuple(reversed([_note(row) async for row in rows]))

    async def add(self, owner: str, note: Note, *, most: int) -> Kept | Literal["full"]:
        """Keep a note, unless its text is kept already or there is no room."""
        for _ in range(_TRIES):
            counted = await self._store.get(RowKind.NOTE, _count_key(owner))
            every = await self.all(owner)
            same = next((one for one in every if one.text == note.text), None)
            if same is not None:
                return Kept(note=same, is_new=False)
            if len(every) >= most:
                return "full"
            last = 0 if counted is None else decode(Numbered, counted.body).last
            numbered = replace(note, number=last + 1)
            try:
                await self._put(owner, numbered, version=0 if counted is None else counted.version)
            except Conflict:
                continue
            return Kept(note=numbered, is_new=True)
        message = "others are writing notes here at the same time: try again"
        raise ToolFailed(message)

    async def forget(self, owner: str, number: int) -> Note | None:
        """Remove a note of this owner."""
        key = _key(owner, number)
        row = await self._store.get(RowKind.NOTE, key)
        if row is None:
            return None
        gone = Delete(kind=RowKind.NOTE, key=key)
        await self._store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=(gone,)))
        return _note(row)

    async def _put(self, owner: str, note: Note, *, version: int) -> None:
        count = Put(
            kind=RowKind.NOTE,
            key=_count_key(owner),
            body=encode(Numbered(last=note.number)),
            expect=version,
        )
        put = Put(
            kind=RowKind.NOTE,
            key=_key(owner, note.number),
            body=encode(note),
            conversation=note.conversation,
            place=owner,
            expect=0,
        )
        await self._store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=(count, put)))


def _count_key(owner: str) -> str:
    return f"{owner}#"


def _key(owner: str, number: int) -> str:
    """Return a key that sorts by number among those of the owner."""
    return f"{owner}#{number:010}"


def _note(row: Row) -> Note:
    return decode(Note, row.body)
