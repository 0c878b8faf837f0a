"""How one message walks through the house: down, and hardly ever back."""

from tests.fakes.house import World
from tests.fakes.trace import Trace
from zeroclaw.envelope import Accepted, Said


async def test_one_message_walks_down_through_the_rooms(world: World) -> None:
    """The first message of a conversation: 17 entries into files, none entered more than twice.

    `ingress`, `limiter`, `conversations` and `reassembly` are entered twice: each is a step, and is
    what that step's commit or lock hangs on.
    """
    async with world.running() as house:
        envelope = house.envelope(Said(text="hello"), "ben")
        with Trace() as trace:
            assert await house.services.ingress.admit(envelope) == Accepted()
        _, most = trace.most
        assert (len(trace.entered) <= 17, most, trace.returns) == (True, 2, 4), trace.entered
