"""A slash where a pasted text was cut commands nothing."""

from datetime import timedelta

from tests.fakes.house import House, World
from tests.unit.inbound.test_reassembly import MORE, piece
from zeroclaw.envelope import Command, Envelope
from zeroclaw.inbound.fragments import CUT_WITHIN
from zeroclaw.value import replace


def command(house: House, written: str) -> Envelope:
    """What reads like a command, as a channel tells it whose clients cut long texts."""
    name, _, rest = written.removeprefix("/").partition(" ")
    event = house.envelope(Command(name=name, rest=rest))
    return replace(event, verbatim=written, sent_at=house.world.clock.now())


async def send(house: House, envelope: Envelope) -> None:
    await house.world.platforms["chat"].say(envelope)
    await house.settle()


async def test_a_slash_where_a_text_was_cut_commands_nothing(world: World) -> None:
    """Else whoever wrote what an operator pastes would command in their name (P3)."""
    async with world.running() as house:
        more = replace(MORE, room=4)
        await send(house, replace(piece(house, "read this:", more), sent_at=world.clock.now()))
        await send(house, replace(command(house, "/new and"), continues=more))
        await send(house, command(house, "/help"))
        assert world.model.asked() == ["user: read this: /new and /help"]
        assert house.texts() == ["ok"]


async def test_what_a_person_types_after_a_long_text_is_obeyed(world: World) -> None:
    """The platform says when it was written, though all of it comes at the same moment."""
    async with world.running() as house:
        before = world.clock.now() - CUT_WITHIN - timedelta(seconds=1)
        await send(house, replace(piece(house, "one", MORE), sent_at=before))
        await send(house, command(house, "/new"))
        await send(house, piece(house, "two"))
        assert [request.messages[-1].content for request in world.model.requests] == ["one", "two"]


async def test_a_stop_is_obeyed_wherever_it_stands(world: World) -> None:
    """It only ends something, and nobody waits for it."""
    async with world.running() as house:
        await send(house, replace(piece(house, "one", MORE), sent_at=world.clock.now()))
        await send(house, command(house, "/stop"))
        assert "one /stop" not in str(world.model.requests)
        assert "queued" not in await house.states()
