"""What was approved for a time runs without a card, is listed, and ends the moment it is revoked."""

from pathlib import Path

import pytest

from tests.journeys.test_commands import told
from tests.journeys.test_the_command_line import zeroclaw
from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow


async def knock(world: World, text: str, what: str = "") -> None:
    """Let Ann's model want to knock."""
    world.model.call("knock", {"what": what or text}, round=0, key=text)
    world.model.say(f"Done: {text}.", round=1, key=text)
    await world.say("ann", text)


async def test_a_grant_is_listed_and_revoked_in_the_chat(tmp_path: Path) -> None:
    """Approved for a time; the same call asks nobody; revoked, it asks again (P3, P5).

    The tool names nothing that it touches, so no other call of it is let through.
    """
    async with open_world(tmp_path) as world:
        assert "Nothing is granted" in await told(world, "olga", "/grants")
        await knock(world, "first")
        await world.press("olga", await world.card(), "for_a_time")
        await world.expect("ann", "Done: first.")
        await knock(world, "second", what="first")
        await world.expect("ann", "Done: first.", "Done: second.")
        assert len(world.chat("olga").cards) == 1
        listed = await told(world, "olga", "/grants")
        number = listed.split("`")[1]  # a plan that lost a race took one before it
        assert listed.startswith(f"- `{number}` `knock`: exactly this call (`")
        assert listed.endswith(", by olga, for `person:ann`, in `loopback/ann`")
        assert "in this conversation" in await told(world, "ann", "/grants")
        assert "Nothing is granted" in await told(world, "bob", "/grants")
        assert await told(world, "bob", f"/revoke {number}") == (
            f"There is no grant `{number}`; `/grants` shows those that hold."
        )
        ended = await told(world, "olga", f"/revoke {number}")
        assert ended == f"`{number}`: revoked; `knock` asks again."
        await knock(world, "third", what="first")
        card = await world.card()
        assert card.asked.calls[0].number == 2
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
        code, out, err = await zeroclaw(world, "grants", "list")
        assert err == ""
        name = out.split("`")[1]
        assert (code, "`knock`" in out, len(name)) == (0, True, 1)
        code, out, _ = await zeroclaw(world, "grants", "revoke", name)
        assert (code, out) == (0, f"`{name}`: revoked; `knock` asks again.\n")
        code, _, err = await zeroclaw(world, "grants", "revoke", name)
        assert (code, "There is no grant" in err) == (1, True)
        await knock(world, "second")
        assert (await world.card()).asked.calls[0].tool == "knock"
        assert world.bench.ran("knock") == ["first"]
