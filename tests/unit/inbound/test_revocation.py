"""What ends with a person who is revoked: their turn, their questions, their grants, at once."""

import asyncio

from tests.fakes.house import House, World
from tests.fakes.scripted_model import asks_for, says
from zeroclaw.envelope import ConversationId, Principal
from zeroclaw.gate.conditions import Query
from zeroclaw.inbound.identity import Known, known_put
from zeroclaw.store import Commit, Delete, DurablePoint, Put, RowKind

POKE = asks_for(("poke", '{"a": 1}'))
STOPPED = "_Stopped: you may no longer talk to me by the operator on this machine._"


BEN = Principal(id="person:ben", roles=frozenset(), channel="chat", sender="ben")


def out_by_ada(world: World) -> Known:
    """What is stored about Ben when Ada has revoked him."""
    return Known(id=BEN.id, display="", state="revoked", by="Ada", at=world.clock.now())


async def revoke(house: House, whom: str = "ben") -> None:
    assert (await house.ask("pair", words=f"revoke {whom}"))["changed"] is True


async def test_the_gate_denies_them_at_once(world: World) -> None:
    """With the commit that says so, before their turn has even heard of it (P3)."""
    async with world.running() as house:
        query = Query(principal=BEN, action="command:help", now=world.clock.now())
        assert house.services.policy().decide(query).effect == "allow"
        await revoke(house)
        assert house.services.policy().decide(query).effect == "deny"
        await house.ask("pair", words="approve ben")
        assert house.services.policy().decide(query).effect == "allow"


async def test_what_was_granted_to_them_ends(world: World) -> None:
    """And what they granted; others keep theirs."""
    world.model.will(POKE, says("done"), POKE, says("done"))
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.press("for_a_time")
        await house.say("poke it", "cleo")
        await house.press("for_a_time")
        assert len(await house.rows(RowKind.GRANT)) == 2
        await revoke(house)
        assert len(await house.rows(RowKind.GRANT)) == 1
        await revoke(house, "ada")
        assert await house.rows(RowKind.GRANT) == ()
        assert [kind for kind in await house.audited() if kind == "revoked"] == ["revoked"] * 2


async def test_a_grant_that_somebody_else_ends_in_that_instant_is_ended_once(world: World) -> None:
    """And audited once."""
    world.model.will(POKE, says("done"))
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.press("for_a_time")

        def meanwhile(commit: Commit) -> None:
            if any(isinstance(one, Delete) for one in commit.writes):
                world.store.before = None
                world.store.forget(RowKind.GRANT)

        world.store.before = meanwhile
        await revoke(house)
        assert "revoked" not in await house.audited()
        assert await house.rows(RowKind.INBOX, "control") == ()


async def test_others_go_on(world: World) -> None:
    """Their answers, their waiting messages and their questions are not touched (P9)."""
    more = asyncio.Event()
    world.model.will((*says("Once upon")[:1], more, *says(" a time")))
    async with world.running() as house:
        await house.say("a story", "cleo")
        await house.say("and another", "cleo")
        await revoke(house)
        more.set()
        await house.settle()
        assert house.texts("cleo") == ["Once upon a time", "ok"]


async def test_an_operator_who_is_revoked_answers_nothing_more(world: World) -> None:
    """Neither by pressing nor as one who is asked (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it", "ben")
        await revoke(house, "ada")
        assert await house.press() == ""
        assert world.poke.runs == []
        assert house.services.operators.readers() == ()


async def test_a_kill_in_between_leaves_nothing_running(world: World) -> None:
    """Who was revoked has nothing taken up again after a restart."""
    more = asyncio.Event()
    world.model.will((*says("Once upon")[:1], more, *says(" a time")))
    async with world.running() as house:
        await house.say("a story", "ben")
        await house.say("and another", "ben")
        put = known_put(out_by_ada(world), expect=0)
        await world.store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=(put,)))
    async with world.running() as house:
        assert house.texts("ben")[0].endswith("_Stopped: you may no longer talk to me by Ada._")
        assert await house.states("stopped") == ["stopped", "stopped"]


async def test_a_message_that_comes_in_at_that_instant_is_not_answered(world: World) -> None:
    """It was let in before, and is committed after; it ends like what waited."""
    async with world.running() as house:

        def meanwhile(_commit: Commit) -> None:
            world.store.before = None
            house.services.learn_people((known_put(out_by_ada(world), expect=0),))

        world.store.before = meanwhile
        await house.say("hi", "ben")
        told = house.texts("ben")
        assert told in ([], ["_Stopped: you may no longer talk to me by Ada._"])
        assert await house.rows(RowKind.TURN, "open") == ()


async def test_a_damaged_row_keeps_nobody_from_being_revoked(world: World) -> None:
    """It is its own conversation's trouble; the start and the others are not held up."""
    world.model.will((*says("Once upon")[:1], asyncio.Event()))
    kinds = ((RowKind.INBOX, "queued"), (RowKind.TURN, "open"), (RowKind.GRANT, ""))
    damaged = tuple(
        Put(kind=kind, key="0", body=b"", conversation=ConversationId("c"), state=state)
        for kind, state in kinds
    )
    async with world.running() as house:
        await house.say("a story", "ben")
        await world.store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=damaged))
        await revoke(house)
        assert house.texts("ben")[0].endswith(STOPPED)
