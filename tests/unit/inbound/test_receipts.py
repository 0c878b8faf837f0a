"""Receipts looked up over all conversations, and the daemon's own chain."""

import asyncio

from tests.fakes.house import World
from tests.fakes.scripted_model import asks_for
from zeroclaw.envelope import ConversationId
from zeroclaw.gate import audit, receipt
from zeroclaw.inbound.anchors import EVERY_S
from zeroclaw.store import LogKind

LOOK = asks_for(("look", "{}"))
FORGED = "zc-receipt-1767268800-" + "A" * 43


async def test_a_receipt_is_true_earlier_or_false(world: World) -> None:
    """Valid in the process that issued it, earlier after a restart, else false (P7)."""
    world.model.will(LOOK)
    async with world.running() as house:
        await house.say("look")
        await house.say("hello", "ben")
        [token] = receipt.find_tokens(world.model.requests[1].messages[-1].content)
        assert await house.ask("receipts", text=f"{token} and {FORGED}") == {
            "receipts": [
                {
                    "token": token,
                    "verdict": "valid",
                    "tool": "look",
                    "outcome": "ok",
                    "at": "2026-01-01T12:00:00+00:00",
                },
                {"token": FORGED, "verdict": "false", "tool": "", "outcome": "", "at": ""},
            ]
        }
        [found] = await house.rooms.receipts_in(token)
        assert found["verdict"] == "valid"
    async with world.running() as house:
        [found] = await house.rooms.receipts_in(token)
        assert found["verdict"] == "earlier"
        assert await house.ask("receipts") == {"receipts": []}


async def test_heads_are_anchored_now_and_then(world: World) -> None:
    """Once for each time that a chain moved; a chain that was cut is then told (P3)."""
    world.model.will(LOOK)
    async with world.running() as house:
        await house.say("look")
        [stream] = await world.store.streams(LogKind.AUDIT)
        await house.advance(EVERY_S)
        await house.advance(EVERY_S)
        daemon = [one.body for one in await world.store.read(LogKind.AUDIT, "daemon")]
        anchors = audit.anchors_of(daemon, ConversationId(stream))
        assert [anchor.sequence for anchor in anchors] == [3]
        whole = [one.body for one in await world.store.read(LogKind.AUDIT, stream)]
        assert isinstance(audit.verify(whole, anchors), audit.Intact)
        assert isinstance(audit.verify(whole[:-1], anchors), audit.Broken)


async def test_two_that_anchor_at_once_make_one_chain(world: World) -> None:
    """One waits for the other, and finds nothing new."""
    world.model.will(LOOK)
    async with world.running() as house:
        await house.say("look")
        async with asyncio.TaskGroup() as group:
            group.create_task(house.rooms.anchors.anchor())
            group.create_task(house.rooms.anchors.anchor())
        daemon = [one.body for one in await world.store.read(LogKind.AUDIT, "daemon")]
        assert len(daemon) == 1
        assert isinstance(audit.verify(daemon), audit.Intact)


async def test_an_anchor_goes_on_from_the_last_one(world: World) -> None:
    """The daemon's chain is one across restarts."""
    world.model.will(LOOK, asks_for(), LOOK)
    async with world.running() as house:
        await house.say("look")
        await house.rooms.anchors.anchor()
    async with world.running() as house:
        await house.say("look again")
        await house.rooms.anchors.anchor()
        daemon = [one.body for one in await world.store.read(LogKind.AUDIT, "daemon")]
        assert isinstance(audit.verify(daemon), audit.Intact)
        assert len(daemon) == 2
