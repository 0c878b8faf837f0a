"""What was approved for a time runs without a card, is listed, and ends the moment it is revoked."""

from pathlib import Path

import pytest

from tests.journeys.test_commands import told
from tests.journeys.test_the_command_line import zeroclaw
from tests.journeys.world import World, world

pytestmark = pytest.mark.slow


async def knock(here: World, text: str, what: str = "") -> None:
    """Let Ann's model want to knock."""
    here.model.call("knock", {"what": what or text}, round=0, key=text)
    here.model.say(f"Done: {text}.", round=1, key=text)
    await here.say("ann", text)


async def test_a_grant_is_listed_and_revoked_in_the_chat(tmp_path: Path) -> None:
    """Approved for a time; the same call asks nobody; revoked, it asks again (P3, P5).

    The tool names nothing that it touches, so no other call of it is let through.
    """
    async with world(tmp_path) as here:
        assert "Nothing is granted" in await told(here, "olga", "/grants")
        await knock(here, "first")
        await here.press("olga", await here.carded(), "for_a_time")
        await here.answered("ann", "Done: first.")
        await knock(here, "second", what="first")
        await here.answered("ann", "Done: first.", "Done: second.")
        assert len(here.chat("olga").cards) == 1
        listed = await told(here, "olga", "/grants")
        number = listed.split("`")[1]  # a plan that lost a race took one before it
        assert listed.startswith(f"- `{number}` `knock`: exactly this call (`")
        assert listed.endswith(", by olga, for `person:ann`, in `loopback/ann`")
        assert "in this conversation" in await told(here, "ann", "/grants")
        assert "Nothing is granted" in await told(here, "bob", "/grants")
        assert await told(here, "bob", f"/revoke {number}") == (
            f"There is no grant `{number}`; `/grants` shows those that hold."
        )
        ended = await told(here, "olga", f"/revoke {number}")
        assert ended == f"`{number}`: revoked; `knock` asks again."
        await knock(here, "third", what="first")
        card = await here.carded()
        assert card.asked.calls[0].number == 2
        assert here.bench.ran("knock") == ["first", "first"]
        await here.press("olga", card)
        await here.until(lambda: here.bench.ran("knock") == ["first", "first", "first"])


async def test_a_grant_is_revoked_from_the_terminal(tmp_path: Path) -> None:
    """Over the control socket, by the number it has in chats; it outlives a restart until then."""
    async with world(tmp_path) as here:
        await knock(here, "first")
        await here.press("olga", await here.carded(), "for_a_time")
        await here.answered("ann", "Done: first.")
        await here.daemon.restart()
        await here.until(lambda: here.platform.connected)
        code, out, err = await zeroclaw(here, "grants", "list")
        assert err == ""
        name = out.split("`")[1]
        assert (code, "`knock`" in out, len(name)) == (0, True, 1)
        code, out, _ = await zeroclaw(here, "grants", "revoke", name)
        assert (code, out) == (0, f"`{name}`: revoked; `knock` asks again.\n")
        code, _, err = await zeroclaw(here, "grants", "revoke", name)
        assert (code, "There is no grant" in err) == (1, True)
        await knock(here, "second")
        assert (await here.carded()).asked.calls[0].tool == "knock"
        assert here.bench.ran("knock") == ["first"]
