"""Files that came with messages, or that the bot sent, go with what was said, and are named where it is written out."""

import asyncio
import hashlib
from datetime import timedelta

import pytest

from tests.fakes.house import House, World
from tests.fakes.house_parts import CAPABILITIES
from tests.fakes.scripted_channel import Call
from tests.fakes.scripted_model import asks_for, says
from tests.unit.retention.test_erase import code_of, cut_off_everywhere, forget
from zeroclaw.config.model import RetentionSettings
from zeroclaw.conversation.attachments import ATTACHMENTS
from zeroclaw.delivery import rows
from zeroclaw.delivery.rows import OUTBOX
from zeroclaw.envelope import Attachment, Said
from zeroclaw.retention.collect import collect
from zeroclaw.retention.export import lines
from zeroclaw.retention.policy import horizons, may_go
from zeroclaw.retention.sweep import EVERY_S
from zeroclaw.store import Commit, Delete, DropBlob, DurablePoint, Query, Row, RowKind
from zeroclaw.tools import files
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


async def test_files_go_although_the_clock_was_set_back_since(world: World) -> None:
    """It says that they were stored in the future, and so after they were forgotten."""
    async with world.running() as house:
        await send(house, "own.txt", b"only mine")
        [own] = await digests(world)
        world.clock.leap(-timedelta(hours=1))
        await forget(house)
        assert await world.store.blob(own) is None


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


async def test_who_else_needs_the_bytes_is_looked_up_once_for_many_files(world: World) -> None:
    """Not again before each commit; the bytes go with the last of the files that need them."""
    seen: list[str] = []
    select = world.store.select

    async def noted(query: Query) -> tuple[Row, ...]:
        seen.extend(["looked up"] * (query.kind is RowKind.RESULT))
        return await select(query)

    def note(commit: Commit) -> None:
        gone = [one for one in commit.writes if isinstance(one, Delete)]
        if any(one.kind is RowKind.ATTACHMENT for one in gone):
            dropped = sum(isinstance(one, DropBlob) for one in commit.writes)
            seen.append(f"{len(gone)} gone, {dropped} dropped")

    async with world.running() as house:
        await send(house, "own.txt", b"only mine")
        [row] = await world.store.select(Query(kind=RowKind.ATTACHMENT))
        more = (
            ATTACHMENTS.put(f"{row.key}{one}", ATTACHMENTS.of(row), conversation=row.conversation)
            for one in range(200)
        )
        await world.store.write(*more)
        await house.advance(1)
        world.store.select, world.store.before = noted, note
        await forget(house)
        ends = ["100 gone, 0 dropped", "100 gone, 0 dropped", "1 gone, 1 dropped"]
        first = seen.index(ends[0])
        assert seen[first : first + 3] == ends


@pytest.mark.parametrize("room", ["", "garden"])
async def test_their_bytes_go_wherever_a_wish_is_cut_off(world: World, room: str) -> None:
    """They are known by the rows of files, which go after them; others keep what they share."""
    async with world.running() as house:
        await send(house, "own.txt", b"only mine", room=room)
        await send(house, "both.txt", b"of both", room=room)
        await send(house, "both.txt", b"of both", "ben", room=room)
        own, both, _ = await digests(world)
        await house.advance(1)
        await house.say("/forget")
        code = code_of(house.texts()[-1])
        world.store.cut_after(DurablePoint.HOUSEKEEPING)
        await house.say(f"/forget {code}")
    await cut_off_everywhere(world)
    assert await digests(world) == [both]
    assert await world.store.blob(own) is None
    assert await world.store.blob(both) == b"of both"


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
        await house.advance(EVERY_S + 60)
        assert await world.store.blob(old) is None
        assert await digests(world) == [old]
    world.clock.leap(timedelta(days=60))
    async with world.running() as house:
        await house.advance(EVERY_S + 60)
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


# --- files that the bot sent ----------------------------------------------------------------------


@pytest.fixture
def sending(world: World) -> World:
    world.add_platform("chat", replace(CAPABILITIES, max_file_bytes=1_000))
    world.configure(autonomy="full")
    world.others = files.tools(files.FilesSettings())
    return world


async def have_sent(house: House, content: str, who: str = "ada", room: str = "") -> None:
    """Have the model write a file and send it."""
    write = f'{{"path": "a.txt", "content": "{content}"}}'
    house.world.model.otherwise(
        asks_for(("write_file", write)),
        asks_for(("send_file", '{"path": "a.txt", "caption": "here"}')),
        says("done"),
    )
    await house.say("send it", who, room=room)


async def sent(world: World) -> list[tuple[Row, rows.FilePost]]:
    read = [(row, OUTBOX.of(row)) for row in await world.store.select(Query(kind=RowKind.OUTBOX))]
    return [(row, item) for row, item in read if isinstance(item, rows.FilePost)]


async def test_sent_files_of_a_private_chat_go_when_they_are_forgotten(sending: World) -> None:
    """With their bytes; the same bytes stay where somebody else was sent them too."""
    async with sending.running() as house:
        await have_sent(house, "only mine")
        await have_sent(house, "of both")
        await have_sent(house, "of both", "ben")
        (_, own), (_, both), (bens, _) = await sent(sending)
        await house.advance(1)
        await forget(house)
        assert [row.key for row, _ in await sent(sending)] == [bens.key]
        assert await sending.store.blob(own.digest) is None
        assert await sending.store.blob(both.digest) == b"of both"


async def test_files_of_a_shared_chat_go_with_whoever_wished_for_them(sending: World) -> None:
    async with sending.running() as house:
        await have_sent(house, "of ada", room="garden")
        await have_sent(house, "of ben", "ben", room="garden")
        (_, adas), (bens, _) = await sent(sending)
        await house.advance(1)
        await forget(house)
        assert [row.key for row, _ in await sent(sending)] == [bens.key]
        assert await sending.store.blob(adas.digest) is None


async def test_a_file_goes_by_the_age_of_messages_once_it_is_delivered(sending: World) -> None:
    async with sending.running() as house:
        await have_sent(house, "milk")
        [(row, _)] = await sent(sending)
        settings = RetentionSettings(messages_days=10, approvals_days=100)
        now = sending.clock.now()
        assert row.state == "delivered"
        assert not may_go(OUTBOX, row, horizons(settings, now + timedelta(days=9)))
        assert may_go(OUTBOX, row, horizons(settings, now + timedelta(days=11)))
        waiting = replace(row, state="pending")
        assert not may_go(OUTBOX, waiting, horizons(settings, now + timedelta(days=99)))


async def test_an_export_names_what_was_sent_to_a_person_and_no_other(sending: World) -> None:
    async with sending.running() as house:
        await have_sent(house, "milk", "ben", room="garden")
        await have_sent(house, "eggs!", "ada", room="garden")
        found = await collect(sending.store, "person:ada", ())
        told = [one.text for one in lines(found, str) if one.kind == "sent"]
        assert told == ["`a.txt`, 5 bytes: here"]
        [garden, *_] = {one.conversation for one in found}
        everybodys = lines(await collect(sending.store, garden, ()), str)
        assert [one.text for one in everybodys if one.kind == "sent"] == [
            "`a.txt`, 4 bytes: here",
            "`a.txt`, 5 bytes: here",
        ]
