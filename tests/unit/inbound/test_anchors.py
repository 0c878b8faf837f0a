"""The daemon's own chain records who halted everything, and who let in or revoked a person."""

import asyncio

import pytest

from tests.fakes.house import House, World
from tests.fakes.scripted_model import LOOK, POKE, says
from zeroclaw.config.model import ChannelSettings
from zeroclaw.gate import audit
from zeroclaw.inbound.anchors import EVERY_S, STREAM, verify_stream
from zeroclaw.store import Append, LogKind

BY_CODE = ChannelSettings(allowed_users=("ada", "ben"), pairing="code")
Decided = tuple[str, str, str]


async def decided(house: House) -> list[Decided]:
    """The decisions with their actors and subjects; the chain is whole."""
    store = house.world.store
    assert isinstance(await verify_stream(store, STREAM), audit.Intact)
    read = [audit.read(entry.body) for entry in await store.read(LogKind.AUDIT, STREAM)]
    return [
        (entry.kind, entry.by, entry.detail) for entry in read if isinstance(entry, audit.Entry)
    ]


async def test_a_halt_and_its_end_are_on_record(world: World) -> None:
    """With who did it and where; what changes nothing is not."""
    async with world.told("/resume") as house:
        await house.say("/halt")
        await house.ask("resume")
        await house.ask("resume")
    async with world.running() as house:
        await house.ask("halt")
        await house.say("/resume")
        assert await decided(house) == [
            ("halted", "person:ada", "in chat"),
            ("resumed", "person:operator", "in console"),
            ("halted", "person:operator", "in console"),
            ("resumed", "person:ada", "in chat"),
        ]


async def test_who_was_let_in_and_who_revoked_is_on_record(world: World) -> None:
    """Two at once too, in the order of the answers."""
    world.configure(channels={"chat": BY_CODE})
    async with world.told("let me in", by="mallory") as house:
        await house.say("and me", "trudy")
        await house.say("/approve 1 2")
        await house.say("/pair revoke chat:trudy")
        await house.ask("pair", words="revoke ben")
        await house.ask("pair", words="approve ben")
        assert await decided(house) == [
            ("person_admitted", "person:ada", "chat:mallory in chat"),
            ("person_admitted", "person:ada", "chat:trudy in chat"),
            ("person_revoked", "person:ada", "chat:trudy in chat"),
            ("person_revoked", "person:operator", "person:ben in console"),
            ("person_admitted", "person:operator", "person:ben in console"),
        ]


async def test_the_first_operator_is_on_record(world: World) -> None:
    """By their own id, because no other person let them in."""
    world.configure(channels={"chat": BY_CODE}, people=())
    async with world.running() as house:
        await house.say(world.ready[0].claim, "cleo")
        assert await decided(house) == [("person_admitted", "chat:cleo", "chat:cleo in chat")]


async def test_a_decision_and_an_anchor_in_the_same_instant_follow_each_other(world: World) -> None:
    async with world.told("poke it", POKE, says("done")) as house:
        await house.press()
        async with asyncio.TaskGroup() as group:
            group.create_task(house.services.anchors.anchor())
            group.create_task(house.say("/halt"))
        assert await decided(house) == [("halted", "person:ada", "in chat")]
        assert len(await world.store.read(LogKind.AUDIT, STREAM)) == 2


async def test_a_damaged_chain_prevents_no_halt(world: World) -> None:
    """In a chat and on the command line; the check of the chain tells the damage."""
    async with world.running() as house:
        await world.store.write(Append(log=LogKind.AUDIT, stream=STREAM, body=b"no entry"))
        await house.say("/halt")
        assert house.services.policy.halted_by == "Ada"
        await house.ask("resume")
        await house.ask("halt", by="olga")
        assert house.services.policy.halted_by == "olga"
        assert isinstance(await verify_stream(world.store, STREAM), audit.Broken)
        _, *behind = await world.store.read(LogKind.AUDIT, STREAM)
        found = [audit.read(logged.body) for logged in behind]
        kinds = [entry.kind for entry in found if isinstance(entry, audit.Entry)]
        assert kinds == ["halted", "resumed", "halted"]


@pytest.mark.parametrize("own", [True, False])
async def test_a_damaged_chain_stops_no_daemon(world: World, *, own: bool) -> None:
    """The other chains are anchored, and the log names a conversation's."""
    world.model.will(LOOK, says("seen"), LOOK, says("seen too"), says("well"))
    async with world.told("look", by="ben") as house:
        (conversation,) = await world.store.streams(LogKind.AUDIT)
        stream = STREAM if own else conversation
        await world.store.write(Append(log=LogKind.AUDIT, stream=stream, body=b"no entry"))
        await house.say("look")
        await house.advance(EVERY_S)
    async with world.running() as house:
        await house.advance(EVERY_S)
        await house.say("how are you?", "ben")
        assert house.texts("ben") == ["seen", "well"]
        found = [entry.body for entry in await world.store.read(LogKind.AUDIT, STREAM)]
        anchored = [
            entry for entry in map(audit.read, found[own:]) if isinstance(entry, audit.Anchor)
        ]
        assert [anchor.conversation == conversation for anchor in anchored] == (
            [True, False] if own else [False]
        )
