"""A call that is granted for a time runs without a card, is listed, and needs approval once revoked."""

from pathlib import Path

import pytest

from tests.journeys.test_commands import reply_to
from tests.journeys.test_the_command_line import zeroclaw
from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow


async def knock(world: World, text: str, what: str = "") -> None:
    """Let Ann's model want to knock."""
    world.model.call("knock", {"what": what or text}, round=0, key=text)
    world.model.say(f"Done: {text}.", round=1, key=text)
    await world.say("ann", text)


async def test_a_grant_is_listed_and_revoked_in_the_chat(tmp_path: Path) -> None:
    """Granted for a time, the same call runs without a card; revoked, it needs one again (P3, P5).

    The tool has no resources, so the grant covers no other call of it.
    """
    async with open_world(tmp_path) as world:
        assert "Nothing is granted" in await reply_to(world, "olga", "/grants")
        await knock(world, "first")
        await world.press("olga", await world.card(), "for_a_time")
        await world.expect("ann", "Done: first.")
        await knock(world, "second", what="first")
        await world.expect("ann", "Done: first.", "Done: second.")
        assert len(world.chat("olga").cards) == 1
        listed = await reply_to(world, "olga", "/grants")
        number = listed.split("`")[1]  # a plan that lost a race took one before it
        assert listed.startswith(f"- `{number}` `knock`: exactly this call (`")
        assert listed.endswith(", by olga, for `person:ann`, in `loopback/ann`")
        assert "in this conversation" in await reply_to(world, "ann", "/grants")
        assert "Nothing is granted" in await reply_to(world, "bob", "/grants")
        assert await reply_to(world, "bob", f"/revoke {number}") == (
            f"There is no grant `{number}`; `/grants` shows those that hold."
        )
        ended = await reply_to(world, "olga", f"/revoke {number}")
        assert ended == f"`{number}`: revoked; `knock` asks again."
        await knock(world, "third", what="first")
        card = await world.card()
        assert card.request.calls[0].number == 2
        assert world.bench.ran("knock") == ["first", "first"]
        await world.press("olga", card)
        await world.until(lambda: world.bench.ran("knock") == ["first", "first", "first"])


async def test_a_grant_is_revoked_from_the_terminal(tmp_path: Path) -> None:
    """Over the control socket, by the number it has in chats; it outlives a restart until then."""
    async with open_world(tmp_path) as world:
        await knock(world, "first")
        await world.press("olga", await world.card(), "for_a_time")
        await world.expect("ann", "Done: first.")
        await world.daemon.restart()
        await world.until(lambda: world.platform.connected)
        code, output, err = await zeroclaw(world, "grants", "list")
        assert err == ""
        name = output.split("`")[1]
        assert (code, "`knock`" in output, len(name)) == (0, True, 1)
        code, output, _ = await zeroclaw(world, "grants", "revoke", name)
        assert (code, output) == (0, f"`{name}`: revoked; `knock` asks again.\n")
        code, _, err = await zeroclaw(world, "grants", "revoke", name)
        assert (code, "There is no grant" in err) == (1, True)
        await knock(world, "second")
        assert (await world.card()).request.calls[0].tool == "knock"
        assert world.bench.ran("knock") == ["first"]
