"""A message too many: told, ended, and nothing worse."""

import asyncio

import pytest

from tests.fakes.house import House, World
from tests.fakes.scripted_model import says
from zeroclaw.config.model import LimitsSettings, RuntimeSettings
from zeroclaw.conversation.inbox import INBOX, Unread
from zeroclaw.envelope import Accepted, Duplicate, Ignored, Said
from zeroclaw.store import Query, RowKind


async def test_a_message_too_many_is_told_once_and_ends(world: World) -> None:
    """The backlog has a bound; nothing is dropped in silence, and later there is room (P1, P10)."""
    world.configure(runtime=RuntimeSettings(backlog=2))
    held = asyncio.Event()
    world.model.will((held, *says("first")))
    async with world.running() as house:
        for text in ("one", "two", "three", "four", "five"):
            await house.say(text)
        assert house.texts() == [
            "I am busy: 2 messages wait here already. I did not take this one, nor those that "
            "follow it; send it again later."
        ]
        held.set()
        await house.settle()
        await house.say("four")
        assert house.texts()[1:] == ["first", "ok", "ok", "ok"]
        assert await house.states() == [*["answered"] * 3, "failed", "answered"]


async def test_a_flood_that_finds_no_room_leaves_one_row_a_stretch(world: World) -> None:
    """However much comes, an operator's too, whom no limit holds back; it keeps no words (P9)."""
    world.configure(runtime=RuntimeSettings(backlog=2))
    first, second = asyncio.Event(), asyncio.Event()
    world.model.will((first, *says("first")), says("ok"), says("ok"), (second, *says("second")))
    async with world.running() as house:
        for number in range(60):
            await house.say(f"tulip {number}")
        assert await turned_away(house) == [Unread(over="queue", count=57)]
        assert len(house.texts()) == 1
        first.set()
        await house.settle()
        for number in range(60):
            await house.say(f"rose {number}")
        assert await turned_away(house) == [
            Unread(over="queue", count=57),
            Unread(over="queue", count=57),
        ]
        second.set()


async def test_in_a_group_each_writer_who_finds_no_room_is_told(world: World) -> None:
    """Whoever reads along need not take what another was told for theirs (P10)."""
    world.configure(runtime=RuntimeSettings(backlog=1))
    held = asyncio.Event()
    world.model.will((held, *says("first")))
    async with world.running() as house:
        for who in ("ada", "ada", "ada", "ben", "ben"):
            await house.say("hello", who, room="lobby")
        assert await turned_away(house) == [Unread(over="queue"), Unread(over="queue", count=2)]
        assert len(house.texts(room="lobby")) == 2
        held.set()


async def test_what_was_refused_overtakes_nothing_when_it_is_delivered_again(world: World) -> None:
    """What was written after it was refused as well; so it stays refused when there is room (P2)."""
    world.configure(runtime=RuntimeSettings(backlog=1))
    held = asyncio.Event()
    world.model.will((held, *says("first")))
    async with world.running() as house:
        for key in ("a", "b", "c", "d", "e"):
            assert await house.event(Said(text=key), key=key) == Accepted()
        held.set()
        await house.settle()
        for key in ("c", "d", "e"):
            assert await house.event(Said(text=key), key=key) == Duplicate()
        assert house.texts()[1:] == ["first", "ok"]
        assert await house.event(Said(text="f"), key="f") == Accepted()
        assert house.texts()[1:] == ["first", "ok", "ok"]


async def turned_away(house: House) -> list[object]:
    return [INBOX.of(row).content for row in await house.rows(RowKind.INBOX, "failed")]


async def test_a_chat_that_is_forgotten_just_now_refuses_no_event(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is told that it is busy, although all of it has gone, is told so and no worse."""
    world.configure(runtime=RuntimeSettings(backlog=1))
    held = asyncio.Event()
    world.model.will((held, *says("first")))
    count = world.store.count

    async def count_and_forget(query: Query) -> int:
        found = await count(query)
        if found:
            world.store.forget(RowKind.INBOX)
        return found

    async with world.running() as house:
        await house.say("one")
        await house.say("two")
        monkeypatch.setattr(house.services.foundation.store, "count", count_and_forget)
        assert await house.say("three") == Accepted()
        assert await house.states() == ["failed"]
        assert house.texts()[0].startswith("I am busy: a message waits here already.")


async def test_a_full_backlog_is_told_although_a_flood_was(world: World) -> None:
    """Two different reasons, and each is said."""
    world.configure(limits=LimitsSettings(person_per_minute=6, person_burst=2))
    world.configure(runtime=RuntimeSettings(backlog=2))
    held = asyncio.Event()
    world.model.will((held, *says("first")))
    async with world.running() as house:
        for text in ("one", "two"):
            await house.say(text, "ben", room="lobby")
        await house.say("three", "ben", room="lobby")
        await house.say("four", "cleo", room="lobby")
        await house.say("five", "cleo", room="lobby")
        told = house.texts(room="lobby")
        assert [text.partition(" ")[0] for text in told] == ["That", "I"]
        held.set()


async def test_an_edit_of_what_found_no_room_says_nothing(world: World) -> None:
    """It never was a message of the conversation, so the model reads of no change to it either."""
    world.configure(runtime=RuntimeSettings(backlog=1))
    held = asyncio.Event()
    world.model.will((held, *says("first")))
    async with world.running() as house:
        for text in ("one", "two", "three"):
            await house.say(text)
        assert await house.edit("p3", "tulip") == Ignored()
        assert await house.withdraw("p3") == Ignored()
        held.set()
        await house.settle()
        await house.say("four")
        assert "tulip" not in str(world.model.requests)
        assert "three" not in str(world.model.requests)
