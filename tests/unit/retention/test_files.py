"""Received and sent files are erased and swept with their messages, and exports name them."""

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
    attachment = Attachment(reference=name, name=name, media_type="text/plain")
    envelope = replace(house.envelope(Said(text="look"), who, room=room), attachments=(attachment,))
    await platform.say(envelope)
    await house.settle()


async def digests(world: World) -> list[str]:
    """The digests that the attachment rows name."""
    rows = await world.store.select(Query(kind=RowKind.ATTACHMENT))
    return [ATTACHMENTS.of(row).digest for row in rows]


async def test_files_of_a_private_chat_are_erased(world: World) -> None:
    """With their bytes; the same bytes stay if another person sent them too."""
    async with world.running() as house:
        await send(house, "own.txt", b"only mine")
        await send(house, "both.txt", b"of both")
        await send(house, "both.txt", b"of both", "ben")
        own, shared, _ = await digests(world)
        await house.advance(1)
        await forget(house)
        assert await digests(world) == [shared]
        assert await world.store.blob(own) is None
        assert await world.store.blob(shared) == b"of both"


async def test_files_are_erased_although_the_clock_was_set_back_since(world: World) -> None:
    """By that clock they were stored in the future, after the request to erase them."""
    async with world.running() as house:
        await send(house, "own.txt", b"only mine")
        [own] = await digests(world)
        world.clock.leap(-timedelta(hours=1))
        await forget(house)
        assert await world.store.blob(own) is None


async def test_files_in_a_shared_chat_are_erased_with_their_sender(world: World) -> None:
    """Other people's stay."""
    async with world.running() as house:
        await send(house, "a.txt", b"of ada", room="garden")
        await send(house, "b.txt", b"of ben", "ben", room="garden")
        ada, ben = await digests(world)
        await house.advance(1)
        await forget(house)
        assert await digests(world) == [ben]
        assert await world.store.blob(ada) is None
        assert await world.store.blob(ben) == b"of ben"


async def test_other_users_of_the_bytes_are_looked_up_once_for_many_files(world: World) -> None:
    """Not again before each commit; the bytes go with the last of the files that need them."""
    events: list[str] = []
    select = world.store.select

    async def select_and_note(query: Query) -> tuple[Row, ...]:
        events.extend(["looked up"] * (query.kind is RowKind.RESULT))
        return await select(query)

    def note_commit(commit: Commit) -> None:
        deletes = [write for write in commit.writes if isinstance(write, Delete)]
        if any(delete.kind is RowKind.ATTACHMENT for delete in deletes):
            dropped = sum(isinstance(write, DropBlob) for write in commit.writes)
            events.append(f"{len(deletes)} gone, {dropped} dropped")

    async with world.running() as house:
        await send(house, "own.txt", b"only mine")
        [row] = await world.store.select(Query(kind=RowKind.ATTACHMENT))
        copies = (
            ATTACHMENTS.put(
                f"{row.key}{number}", ATTACHMENTS.of(row), conversation=row.conversation
            )
            for number in range(200)
        )
        await world.store.write(*copies)
        await house.advance(1)
        world.store.select, world.store.before = select_and_note, note_commit
        await forget(house)
        ends = ["100 gone, 0 dropped", "100 gone, 0 dropped", "1 gone, 1 dropped"]
        first = events.index(ends[0])
        assert events[first : first + 3] == ends


@pytest.mark.parametrize("room", ["", "garden"])
async def test_bytes_are_dropped_wherever_an_erasure_is_cut_off(world: World, room: str) -> None:
    """Attachment rows name them and are erased after them; bytes shared with others stay."""
    async with world.running() as house:
        await send(house, "own.txt", b"only mine", room=room)
        await send(house, "both.txt", b"of both", room=room)
        await send(house, "both.txt", b"of both", "ben", room=room)
        own, shared, _ = await digests(world)
        await house.advance(1)
        await house.say("/forget")
        code = code_of(house.texts()[-1])
        world.store.cut_after(DurablePoint.HOUSEKEEPING)
        await house.say(f"/forget {code}")
    await cut_off_everywhere(world)
    assert await digests(world) == [shared]
    assert await world.store.blob(own) is None
    assert await world.store.blob(shared) == b"of both"


async def test_a_file_being_fetched_during_an_erasure_does_not_come_back(world: World) -> None:
    """Its person is forgotten while it is fetched; the fetched bytes are dropped."""
    is_released = asyncio.Event()

    async def hold(call: Call) -> None:
        if call.name == "fetch":
            await is_released.wait()

    async with world.running() as house:
        world.platforms["chat"].before = hold
        await send(house, "a.txt", b"tulip")
        await forget(house)
        assert house.texts()[-1] == "Done: what you said to me is removed."
        is_released.set()
        await house.settle()
        assert await digests(world) == []
        assert await world.store.blob(hashlib.sha256(b"tulip").hexdigest()) is None


async def test_files_are_swept_by_age(world: World) -> None:
    """Their bytes after `blobs_days`, their rows with the messages."""
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


async def test_an_export_names_files(world: World) -> None:
    """Each person's export names their own files."""
    async with world.running() as house:
        await send(house, "a.txt", b"of ada", room="garden")
        await send(house, "b.txt", b"of ben", "ben", room="garden")
    records = lines(await collect(world.store, "ben", ()), str)
    texts = [line.text for line in records if line.kind == "file"]
    assert texts == ["2. `b.txt`: text, 6 bytes"]


# --- files that the bot sent ----------------------------------------------------------------------


@pytest.fixture
def sending(world: World) -> World:
    world.add_platform("chat", replace(CAPABILITIES, max_file_bytes=1_000))
    world.configure(autonomy="full")
    world.others = files.tools(files.FilesSettings())
    return world


async def send_from_bot(house: House, content: str, who: str = "ada", room: str = "") -> None:
    """Have the model write a file and send it."""
    write = f'{{"path": "a.txt", "content": "{content}"}}'
    house.world.model.otherwise(
        asks_for(("write_file", write)),
        asks_for(("send_file", '{"path": "a.txt", "caption": "here"}')),
        says("done"),
    )
    await house.say("send it", who, room=room)


async def file_posts(world: World) -> list[tuple[Row, rows.FilePost]]:
    posts = [(row, OUTBOX.of(row)) for row in await world.store.select(Query(kind=RowKind.OUTBOX))]
    return [(row, item) for row, item in posts if isinstance(item, rows.FilePost)]


async def test_sent_files_of_a_private_chat_are_erased(sending: World) -> None:
    """With their bytes; the same bytes stay if another person was sent them too."""
    async with sending.running() as house:
        await send_from_bot(house, "only mine")
        await send_from_bot(house, "of both")
        await send_from_bot(house, "of both", "ben")
        (_, own), (_, shared), (bens, _) = await file_posts(sending)
        await house.advance(1)
        await forget(house)
        assert [row.key for row, _ in await file_posts(sending)] == [bens.key]
        assert await sending.store.blob(own.digest) is None
        assert await sending.store.blob(shared.digest) == b"of both"


async def test_sent_files_of_a_shared_chat_are_erased_with_their_requester(sending: World) -> None:
    async with sending.running() as house:
        await send_from_bot(house, "of ada", room="garden")
        await send_from_bot(house, "of ben", "ben", room="garden")
        (_, adas), (bens, _) = await file_posts(sending)
        await house.advance(1)
        await forget(house)
        assert [row.key for row, _ in await file_posts(sending)] == [bens.key]
        assert await sending.store.blob(adas.digest) is None


async def test_a_delivered_file_is_swept_by_the_age_of_messages(sending: World) -> None:
    async with sending.running() as house:
        await send_from_bot(house, "milk")
        [(row, _)] = await file_posts(sending)
        settings = RetentionSettings(messages_days=10, approvals_days=100)
        now = sending.clock.now()
        assert row.state == "delivered"
        assert not may_go(OUTBOX, row, horizons(settings, now + timedelta(days=9)))
        assert may_go(OUTBOX, row, horizons(settings, now + timedelta(days=11)))
        waiting = replace(row, state="pending")
        assert not may_go(OUTBOX, waiting, horizons(settings, now + timedelta(days=99)))


async def test_an_export_names_only_the_files_sent_to_that_person(sending: World) -> None:
    async with sending.running() as house:
        await send_from_bot(house, "milk", "ben", room="garden")
        await send_from_bot(house, "eggs!", "ada", room="garden")
        sources = await collect(sending.store, "person:ada", ())
        texts = [record.text for record in lines(sources, str) if record.kind == "sent"]
        assert texts == ["`a.txt`, 5 bytes: here"]
        [garden, *_] = {source.conversation for source in sources}
        records = lines(await collect(sending.store, garden, ()), str)
        assert [record.text for record in records if record.kind == "sent"] == [
            "`a.txt`, 4 bytes: here",
            "`a.txt`, 5 bytes: here",
        ]
