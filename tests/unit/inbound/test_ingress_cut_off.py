"""An admission that is cut off after its commit, while the daemon goes on."""

import asyncio

from tests.fakes.house import World
from zeroclaw.envelope import Duplicate, Said
from zeroclaw.store import DurablePoint


async def test_what_was_stored_but_not_announced_is_answered_when_it_comes_again(
    world: World,
) -> None:
    """A channel that is restarted is cut off anywhere, and its platform delivers again (P1)."""
    async with world.running() as house, asyncio.TaskGroup() as group:
        world.store.cut_after(DurablePoint.ADMITTED)
        envelope = house.envelope(Said(text="hello"))
        admitting = group.create_task(house.services.ingress.admit(envelope))
        await house.settle()
        admitting.cancel()
        await house.settle()
        world.store.heal()
        assert world.model.requests == []
        assert isinstance(await world.platforms["chat"].say(envelope), Duplicate)
        await house.settle()
        assert world.model.asked() == ["user: hello"]
        assert house.texts() == ["ok"]
