"""Files that the bot sent go with what was said, and are named where it is written out."""

from datetime import timedelta

import pytest

from tests.fakes.house import House, World
from tests.fakes.house_parts import CAPABILITIES
from tests.fakes.scripted_model import asks_for, says
from tests.unit.retention.test_erase import forget
from zeroclaw.config.model import RetentionSettings
from zeroclaw.delivery import rows
from zeroclaw.delivery.rows import OUTBOX
from zeroclaw.retention.collect import collect
from zeroclaw.retention.export import lines
from zeroclaw.retention.policy import horizons, may_go
from zeroclaw.store import Query, Row, RowKind
from zeroclaw.tools import files
from zeroclaw.value import replace


@pytest.fixture
def sending(world: World) -> World:
    world.add_platform("chat", replace(CAPABILITIES, max_file_bytes=1_000))
    world.configure(autonomy="full")
    world.others = files.tools(files.FilesSettings())
    return world


async def send(house: House, content: str, who: str = "ada", room: str = "") -> None:
    """Have the model write a file and send it."""
    write = f'{{"path": "a.txt", "content": "{content}"}}'
    house.world.model.otherwise(
        asks_for(("write_file", write)),
        asks_for(("send_file", '{"path": "a.txt", "caption": "here"}')),
        says("done"),
    )
    await house.say("send it", who, room=room)


async def sent(world: World) -> list[tuple[Row, rows.File]]:
    read = [(row, OUTBOX.of(row)) for row in await world.store.select(Query(kind=RowKind.OUTBOX))]
    return [(row, item) for row, item in read if isinstance(item, rows.File)]


async def test_files_of_a_private_chat_go_when_they_are_forgotten(sending: World) -> None:
    """With their bytes; the same bytes stay where somebody else was sent them too."""
    async with sending.running() as house:
        await send(house, "only mine")
        await send(house, "of both")
        await send(house, "of both", "ben")
        (_, own), (_, both), (bens, _) = await sent(sending)
        await house.advance(1)
        await forget(house)
        assert [row.key for row, _ in await sent(sending)] == [bens.key]
        assert await sending.store.blob(own.digest) is None
        assert await sending.store.blob(both.digest) == b"of both"


async def test_files_of_a_shared_chat_go_with_whoever_wished_for_them(sending: World) -> None:
    async with sending.running() as house:
        await send(house, "of ada", room="garden")
        await send(house, "of ben", "ben", room="garden")
        (_, adas), (bens, _) = await sent(sending)
        await house.advance(1)
        await forget(house)
        assert [row.key for row, _ in await sent(sending)] == [bens.key]
        assert await sending.store.blob(adas.digest) is None


async def test_a_file_goes_by_the_age_of_messages_once_it_is_delivered(sending: World) -> None:
    async with sending.running() as house:
        await send(house, "milk")
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
        await send(house, "milk", "ben", room="garden")
        await send(house, "eggs!", "ada", room="garden")
        found = await collect(sending.store, "person:ada", ())
        told = [one.text for one in lines(found, str) if one.kind == "sent"]
        assert told == ["`a.txt`, 5 bytes: here"]
        [garden, *_] = {one.conversation for one in found}
        everybodys = lines(await collect(sending.store, garden, ()), str)
        assert [one.text for one in everybodys if one.kind == "sent"] == [
            "`a.txt`, 4 bytes: here",
            "`a.txt`, 5 bytes: here",
        ]
