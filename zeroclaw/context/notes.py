"""Store notes: one row for each, and one count row for each owner.

Every write of a note changes the count as well, so two writers for one owner can't both take the
last free place, or the same number.
"""

import asyncio
from collections.abc import Sequence
from typing import Literal

from zeroclaw.errors import Conflict, ToolFailed
from zeroclaw.store import Commit, DurablePoint, Reads, Row, RowKind, Store, Write, transact
from zeroclaw.table import Column, Stays, Table, json_codec
from zeroclaw.tools.notes.note import KeptNote, Note, gist, person_of
from zeroclaw.value import Value, replace


class Numbered(Value):
    """The body of a count row: the number of an owner's newest note, deleted ones included."""

    last: int


_NUMBER = "#"
"""In a key: the separator before a note's number; a count's key ends with it."""


def _owner_of(row: Row) -> str:
    """Return the person a row belongs to: its owner; for a group's note, its writer."""
    person, note = person_of(row.key.rpartition(_NUMBER)[0]), note_of(row)
    return person or ("" if note is None else note.writer)


NOTES = Table(
    kind=RowKind.NOTE,
    codec=json_codec(Note),
    columns=frozenset({Column.CONVERSATION, Column.PLACE, Column.STATE}),
    keeps=Stays(until="its owner has it forgotten"),
    person=_owner_of,
)
_COUNTS = NOTES.holding(json_codec(Numbered))
_COUNT = "count"
"""The state of a count row; notes have none, and an earlier release wrote counts without one."""


def note_of(row: Row) -> Note | None:
    """Return the note in a row, None for a count row."""
    return None if row.key.endswith(_NUMBER) else NOTES.of(row)


class Notes:
    """The notes of all owners; implements `NotesStore`."""

    def __init__(self, store: Store) -> None:
        """Create the notes of a store."""
        self._store = store

    async def all(self, owner: str) -> tuple[Note, ...]:
        """Return the notes of an owner, newest first."""
        notes = [note async for note in NOTES.readable(self._store, place=owner, state="")]
        return tuple(reversed(notes))

    async def add(self, owner: str, note: Note, *, max_notes: int) -> KeptNote | Literal["full"]:
        """Store a note, unless one with the same text exists or there is no room."""

        async def plan(reads: Reads) -> tuple[Commit | None, KeptNote | Literal["full"]]:
            writes, (kept,) = await plan_additions(reads, owner, (note,), max_notes=max_notes)
            return (_commit(*writes) if writes else None), kept

        try:
            return await transact(self._store, plan)
        except Conflict as error:
            message = "others are writing notes here at the same time: try again"
            raise ToolFailed(message) from error

    async def adopt(self, old: str, new: str) -> None:
        """Move an owner's notes to another owner, if there are any."""

        async def plan(reads: Reads) -> tuple[Commit | None, None]:
            writes = await plan_move(reads, old, new)
            return (_commit(*writes) if writes else None), None

        await transact(self._store, plan)

    async def get(self, owner: str, number: int) -> Note | None:
        """Return a note of this owner, None if there is none with this number."""
        return await NOTES.get(self._store, _key(owner, number))

    async def forget(self, owner: str, number: int) -> Note | None:
        """Delete a note of this owner; return it, None if there is none."""
        note = await self.get(owner, number)
        if note is not None:
            await self._store.commit(_commit(NOTES.delete(_key(owner, number))))
        return note


async def plan_additions(
    reads: Reads, owner: str, notes: Sequence[Note], *, max_notes: int
) -> tuple[tuple[Write, ...], tuple[KeptNote | Literal["full"], ...]]:
    """Return the writes that store notes of an owner, and the result for each note."""
    # Guards all of them: a writer who adds a note also changes the count.
    old_count = await _COUNTS.get(reads, _count_key(owner))
    stored = [note async for note in NOTES.readable(reads, place=owner, state="")]
    every = (*stored, *notes)
    gists = await asyncio.to_thread(lambda: {it: gist(it.text) or it.text for it in every})
    notes_by_gist = {gists[note]: note for note in stored}
    last, room = 0 if old_count is None else old_count.last, max_notes - len(stored)
    writes: list[Write] = []
    kept: list[KeptNote | Literal["full"]] = []
    for note in notes:
        if (duplicate := notes_by_gist.get(gists[note])) is not None:
            kept.append(KeptNote(note=duplicate, is_new=False))
            continue
        if len(writes) >= room:
            kept.append("full")
            continue
        last += 1
        numbered = notes_by_gist[gists[note]] = replace(note, number=last)
        key, conversation = _key(owner, last), note.conversation
        writes.append(NOTES.put(key, numbered, conversation=conversation, place=owner))
        kept.append(KeptNote(note=numbered, is_new=True))
    if not writes:
        return (), tuple(kept)
    new_count = _COUNTS.put(_count_key(owner), Numbered(last=last), place=owner, state=_COUNT)
    return (new_count, *writes), tuple(kept)


async def plan_move(reads: Reads, old: str, new: str) -> tuple[Write, ...]:
    """Return the writes that move an owner's notes to another, numbered after that owner's notes."""
    old_count = await _COUNTS.get(reads, _count_key(old))
    if old_count is None:
        return ()
    new_count = await _COUNTS.get(reads, _count_key(new))
    offset = 0 if new_count is None else new_count.last
    total = Numbered(last=offset + old_count.last)
    writes: list[Write] = [
        NOTES.delete(_count_key(old)),
        _COUNTS.put(_count_key(new), total, place=new, state=_COUNT),
    ]
    async for note in NOTES.readable(reads, place=old, state=""):
        key, conversation = _key(new, offset + note.number), note.conversation
        moved = replace(note, number=offset + note.number)
        writes += (
            NOTES.delete(_key(old, note.number)),
            NOTES.put(key, moved, conversation=conversation, place=new),
        )
    return tuple(writes)


def _commit(*writes: Write) -> Commit:
    return Commit(point=DurablePoint.HOUSEKEEPING, writes=writes)


def _count_key(owner: str) -> str:
    return f"{owner}{_NUMBER}"


def _key(owner: str, number: int) -> str:
    """Return a key that sorts by number among the owner's keys."""
    return f"{owner}{_NUMBER}{number:010}"
