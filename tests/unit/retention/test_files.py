"""Files that came with messages go with them, and are written out with them."""

import asyncio
import hashlib
from datetime import timedelta

from tests.fakes.house import House, World
from tests.fakes.scripted_channel import Call
from tests.unit.retention.test_erase import forget
from zeroclaw.conversation.attachments import ATTACHMENTS
from zeroclaw.envelope import Attachment, Said
from zeroclaw.retention.collect import collect
from zeroclaw.retention.export import lines
from zeroclaw.store import Query, RowKind
from zeroclaw.value import replace


async def send(house: House, name: str, content: bytes, who: str = "ada", room: str = "") -> None:
    platform = house.world.platforms["chat"]
    platform.files[name] = content
    one = Attachment(reference=name, name=name, media_type="text/plain")
    envelope = replace(house.envelope(Said(text="look"), who, room=room), attachments=(one,))
    await platform.say(envelope)
    await house.settle()


async def digests(world: World) -> list[str]:
    """The blobs that the rows of files name."""
    found = await world.store.select(Query(kind=RowKind.ATTACHMENT))
    return [ATTACHMENTS.of(row).digest for row in found]


async def test_files_of_a_private_chat_go_when_they_are_forgotten(world: World) -> None:
    """With their bytes; the same bytes stay where somebody else sent them too."""
    async with world.running() as house:
        await send(house, "own.txt", b"only mine")
        await send(house, "both.txt", b"of both")
        await send(house, "both.txt", b"of both", "ben")
        own, both, _ = await digests(world)
        await house.advance(1)
        await forget(house)
        assert await digests(world) == [both]
        assert await world.store.blob(own) is None
        assert await world.store.blob(both) == b"of both"


async def test_files_in_a_shared_chat_go_with_their_sender(world: World) -> None:
    """Everybody else's stay."""
    async with world.running() as house:
        await send(house, "a.txt", b"of ada", room="garden")
        await send(house, "b.txt", b"of ben", "ben", room="garden")
        ada, ben = await digests(world)
        await house.advance(1)
        await forget(house)
        assert await digests(world) == [ben]
        assert await world.store.blob(ada) is None
        assert await world.store.blob(ben) == b"of ben"


async def test_a_file_that_is_on_its_way_does_not_come_back(world: World) -> None:
    """Its person is forgotten while it is fetched; what comes then belongs to nobody."""
    held = asyncio.Event()

    async def hold(call: Call) -> None:
        if call.name == "fetch":
            await held.wait()

    async with world.running() as house:
        world.platforms["chat"].before = hold
        await send(house, "a.txt", b"tulip")
        await forget(house)
        assert house.texts()[-1] == "Done: what you said to me is removed."
        held.set()
        await house.settle()
        assert await digests(world) == []
        assert await world.store.blob(hashlib.sha256(b"tulip").hexdigest()) is None


async def test_files_go_with_their_age(world: World) -> None:
    """Their bytes after the days of blobs, what is known of them with the messages."""
    async with world.running() as house:
        await send(house, "a.txt", b"old")
        [old] = await digests(world)
    world.clock.leap(timedelta(days=31))
    async with world.running() as house:
        await house.advance(60)
        assert await world.store.blob(old) is None
        assert await digests(world) == [old]
    world.clock.leap(timedelta(days=60))
    async with world.running() as house:
        await house.advance(60)
        assert await digests(world) == []
        assert await house.rows(RowKind.INBOX) == ()


async def test_files_are_named_where_a_conversation_is_written_out(world: World) -> None:
    """Each person's are theirs."""
    async with world.running() as house:
        await send(house, "a.txt", b"of ada", room="garden")
        await send(house, "b.txt", b"of ben", "ben", room="garden")
    found = lines(await collect(world.store, "ben", ()), str)
    told = [line.text for line in found if line.kind == "file"]
    assert told == ["2. `b.txt`: text, 6 bytes"]
