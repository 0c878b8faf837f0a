"""Files that reach no turn: nobody waits for them any more, or there are too many."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tests.fakes.house import House, World
from tests.fakes.scripted_calls import Hang
from tests.fakes.scripted_model import asks_for, says
from tests.unit.conversation.test_downloads import busy, file, rows, send, told
from zeroclaw.config.model import AttachmentSettings, RetentionSettings
from zeroclaw.envelope import Deleted, Edited
from zeroclaw.store import PutBlob, Write
from zeroclaw.value import replace


@asynccontextmanager
async def fetching(world: World) -> AsyncGenerator[tuple[House, str]]:
    """A house that waits for a file; its platform never sends it."""
    async with world.running() as house:
        world.platforms["chat"].will("fetch", Hang())
        yield house, await send(house, "look", file(world, "a.txt"))


async def test_a_message_that_is_withdrawn_ends_the_wait_for_its_file(world: World) -> None:
    """What comes after it in the conversation is answered at once, and nothing is recorded."""
    async with fetching(world) as (house, message):
        await house.say("hello")
        assert house.texts() == []
        await house.withdraw(message)
        assert house.texts() == ["ok"]
        assert told(world) == ["hello"]
        assert await rows(house) == []


async def test_a_file_that_comes_just_as_its_message_is_withdrawn_is_not_kept(world: World) -> None:
    """The withdrawal is committed first; the bytes are nobody's, so they are not stored."""
    async with world.running() as house:
        envelope = house.envelope(house.said("look"))
        attached = replace(envelope, attachments=(file(world, "a.txt", b"tulip"),))

        async def withdraw(writes: tuple[Write, ...]) -> None:
            if any(isinstance(one, PutBlob) for one in writes):
                world.store.meanwhile = None
                gone = house.envelope(Deleted(message=attached.message))
                await world.platforms["chat"].say(gone)

        world.store.meanwhile = withdraw
        await world.platforms["chat"].say(attached)
        await house.settle()
        assert await house.states() == ["superseded"]
        assert await rows(house) == []


async def test_an_edit_just_as_a_file_comes_asks_for_it_no_second_time(world: World) -> None:
    """The message is another than when the fetch began, and the file is still its own."""
    async with world.running() as house:
        envelope = house.envelope(house.said("look"))
        attached = replace(envelope, attachments=(file(world, "a.txt"),))

        async def edit(writes: tuple[Write, ...]) -> None:
            if any(isinstance(one, PutBlob) for one in writes):
                world.store.meanwhile = None
                changed = house.envelope(Edited(message=attached.message, text="look here"))
                await world.platforms["chat"].say(changed)

        world.store.meanwhile = edit
        await world.platforms["chat"].say(attached)
        await house.settle()
        assert len(world.platforms["chat"].called("fetch")) == 1
        assert told(world)[0].startswith("look here\n\n[Files that came with this message")
        assert house.texts() == ["ok"]


async def test_the_end_of_the_daemon_does_not_wait_for_a_file(world: World) -> None:
    """The next process asks for it, and nothing is on record of this one's try (P1)."""
    async with fetching(world) as (house, _):
        await house.stop()
        assert "stopped" in world.facts.events()
        assert await rows(house) == []
    async with world.running() as house:
        await house.settle()
        assert [one.failed for one in await rows(house)] == [""]
        assert house.texts() == ["ok"]


async def test_a_steering_message_whose_files_are_too_many_says_so(world: World) -> None:
    """None of them is fetched, and it starts a turn of its own all the same, which is told."""
    world.configure(attachments=AttachmentSettings(max_per_message=0))
    busy(world, "steer")
    ready = asyncio.Event()
    world.model.will((ready, *asks_for(("look", "{}"))), says("first"), says("second"))
    async with world.running() as house:
        await house.say("go")
        await send(house, "", file(world, "a.txt"))
        ready.set()
        await house.settle()
        assert "1 more file not taken" in told(world)[-1]
        assert house.texts() == ["first", "second"]


async def test_no_file_comes_while_what_is_stored_takes_its_most(world: World) -> None:
    """Files fill the bound of the disk, never the disk; the message is answered, and says so."""
    world.configure(retention=RetentionSettings(max_disk_mb=1))
    async with world.running() as house:
        await send(house, "one", file(world, "a.txt", b"x" * 1_000_001))
        await send(house, "two", file(world, "b.txt"))
        assert [bool(one.failed) for one in await rows(house)] == [False, True]
        assert (
            "`b.txt`: did not come, tell the person: there is no room for files now"
            in told(world)[-1]
        )
        assert [call.key for call in world.platforms["chat"].called("fetch")] == ["a.txt"]
        assert house.texts() == ["ok", "ok"]
