"""Notes in the store: one row each, numbered by versions, and there after a restart."""

from contextlib import aclosing
from pathlib import Path

import pytest

from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_store import MemoryStore
from zeroclaw.context.notes import Notes
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import Conflict, ToolFailed
from zeroclaw.store import Commit, Query, RowKind
from zeroclaw.stores.sqlite import open_store
from zeroclaw.tools.notes.note import Kept, Note

NOTE = Note(
    number=0, text="tea", by="Ada", at=ManualClock().now(), conversation=ConversationId("01C")
)
FIRST = Note(number=1, text=NOTE.text, by=NOTE.by, at=NOTE.at, conversation=NOTE.conversation)


async def test_a_note_is_there_after_a_restart(tmp_path: Path) -> None:
    """And its number is still taken."""
    async with aclosing(await open_store(tmp_path / "data", clock=ManualClock())) as store:
        kept = await Notes(store).add("of:ada", NOTE, most=2)
        assert kept == Kept(note=FIRST, is_new=True)
    async with aclosing(await open_store(tmp_path / "data", clock=ManualClock())) as store:
        notes = Notes(store)
        assert await notes.all("of:ada") == (FIRST,)
        assert await notes.all("of:ad") == ()
        assert await notes.add("of:ada", NOTE, most=2) == Kept(note=FIRST, is_new=False)
        assert await notes.forget("of:ada", 1) == FIRST
        assert await notes.forget("of:ada", 1) is None
        assert await store.select(Query(kind=RowKind.NOTE, conversation=NOTE.conversation)) == ()


async def test_a_note_is_found_by_its_conversation_too() -> None:
    """So that whatever of a conversation is exported or removed can be found."""
    store = MemoryStore()
    await Notes(store).add("of:ada", NOTE, most=2)
    rows = await store.select(Query(kind=RowKind.NOTE, conversation=NOTE.conversation))
    assert [row.key for row in rows] == ["of:ada#0000000001"]


async def test_who_always_comes_second_is_told() -> None:
    """It ends, and nothing is kept that was not said to be."""
    store = MemoryStore()

    def refuse(_: Commit) -> None:
        raise Conflict("of:ada#")

    store.before = refuse
    with pytest.raises(ToolFailed, match="try again"):
        await Notes(store).add("of:ada", NOTE, most=2)
    assert store.commits == []
