"""The notes' needs of a store, over all stores: stored once, ranked, and gone once forgotten."""

import asyncio
import threading
import unicodedata
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Literal

import pytest

from tests.contract.store_implementations import IMPLEMENTATIONS, Implementation
from tests.fakes.manual_clock import ManualClock
from zeroclaw.context.notes import Notes
from zeroclaw.context.recollection import Recollection
from zeroclaw.envelope import Address, ConversationId, Principal
from zeroclaw.tools.notes.note import Note, owner_of

CLOCK = ManualClock()
ADA = Principal(id="person:ada", roles=frozenset(), channel="chat", sender="ada")
ALONE = Address(channel="chat", account="bot", chat="ada", direct=True)
CLUB = Address(channel="chat", account="bot", chat="club")
HERE = ConversationId("01C")
over_all = pytest.mark.parametrize(
    "implementation", IMPLEMENTATIONS, ids=lambda implementation: implementation.name
)


def note(text: str) -> Note:
    return Note(number=0, text=text, by="Ada", at=CLOCK.now(), conversation=HERE)


@over_all
async def test_what_fits_a_message_is_found_in_its_order(
    implementation: Implementation, tmp_path: Path
) -> None:
    """Any word, more matching words first, then the newest; of this owner alone. S2-05."""
    async with AsyncExitStack() as stack:
        notes = Notes(await stack.enter_async_context(implementation.opened(tmp_path, CLOCK)))
        for text in ("likes green tea", "owns a car", "a green car", "lives in Rome"):
            await notes.add(owner_of(ALONE, ADA), note(text), max_notes=9)
        await notes.add(owner_of(CLUB, ADA), note("the club's car is green"), max_notes=9)
        recollection = Recollection(notes=notes, max_chars=1_000, redact=str)
        found = await recollection.choose(ALONE, ADA, "Which car is green?")
        assert [match.number for match in found] == [3, 2, 1, 4]
        recalled = await recollection.text(owner_of(ALONE, ADA), (2, 3), HERE)
        assert recalled.index("owns a car") < recalled.index("a green car")
        assert "club" not in recalled


@over_all
async def test_a_note_that_is_forgotten_is_not_found(
    implementation: Implementation, tmp_path: Path
) -> None:
    """Neither by a search nor by an earlier selection, and its number is not reused."""
    async with AsyncExitStack() as stack:
        notes = Notes(await stack.enter_async_context(implementation.opened(tmp_path, CLOCK)))
        owner = owner_of(ALONE, ADA)
        await notes.add(owner, note("likes tea"), max_notes=9)
        recollection = Recollection(notes=notes, max_chars=1_000, redact=str)
        assert await notes.forget(owner, 1) is not None
        assert await recollection.choose(ALONE, ADA, "tea") == ()
        assert await recollection.text(owner_of(ALONE, ADA), (1,), HERE) == ""
        again = await notes.add(owner, note("likes tea"), max_notes=9)
        assert again != "full"
        assert again.note.number == 2


@over_all
async def test_the_same_fact_noted_twice_at_once_is_kept_once(
    implementation: Implementation, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        notes = Notes(await stack.enter_async_context(implementation.opened(tmp_path, CLOCK)))
        owner = owner_of(ALONE, ADA)
        async with asyncio.TaskGroup() as group:
            for text in ("likes tea", "Likes tea!", "likes  tea"):
                group.create_task(notes.add(owner, note(text), max_notes=9))
        assert len(await notes.all(owner)) == 1


@over_all
async def test_folding_holds_no_conversation_up(
    implementation: Implementation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes time in the square of a run of marks, and no other thread runs meanwhile (P9)."""
    on_the_loop, lengths, normalize = set[bool](), list[int](), unicodedata.normalize

    def observed(form: Literal["NFKC"], text: str) -> str:
        on_the_loop.add(threading.current_thread() is threading.main_thread())
        lengths.append(len(text))
        return normalize(form, text)

    marks = "e" + "\u0301\u0323" * 900
    async with AsyncExitStack() as stack:
        notes = Notes(await stack.enter_async_context(implementation.opened(tmp_path, CLOCK)))
        monkeypatch.setattr("zeroclaw.tools.notes.note.unicodedata.normalize", observed)
        await notes.add(owner_of(ALONE, ADA), note(f"tea {marks}"), max_notes=9)
        recollection = Recollection(notes=notes, max_chars=9_000, redact=str)
        assert await recollection.choose(ALONE, ADA, f"{marks} tea")
        repeated = await notes.add(owner_of(ALONE, ADA), note(f"TEA {marks}"), max_notes=9)
    assert repeated != "full"
    assert not repeated.is_new
    assert on_the_loop == {False}
    assert max(lengths) <= 256
