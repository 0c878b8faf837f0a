"""Requests that commit ff26965 wrote, byte for byte, are answered, numbered and ended by this one."""

from datetime import timedelta

import pytest

from tests.fakes.house import World
from zeroclaw.envelope import Answered, ApprovalId, ConversationId, Pressed
from zeroclaw.gate.approval import APPROVALS
from zeroclaw.inbound.pairing import STRANGERS
from zeroclaw.store import Commit, DurablePoint, Put, RowKind
from zeroclaw.value import replace

A_CALL = Put(
    kind=RowKind.APPROVAL,
    key="asked-by-a-release",
    body=(
        b'{"is":"Approval","id":"asked-by-a-release","action":"01KDX0000000000000000000A1",'
        b'"action_hash":"5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f",'
        b'"tool":"poke","conversation":"01KDX0000000000000000000C1",'
        b'"turn":"01KDX0000000000000000000T1","requester":{"is":"Principal","id":"person:ben",'
        b'"roles":[],"channel":"chat","sender":"ben","display":"Ben","language":"en"},'
        b'"approvers":["role:operator"],"summary":"poke it","arguments":"{\\"at\\": \\"noon\\"}",'
        b'"why":"a statement asks","card":"01KDX0000000000000000000K1",'
        b'"deadline_at":"2026-01-01T13:00:00Z","requester_may_answer":true,"order":0,'
        b'"choices":["once","for_a_time","deny","deny_with_reason"],"reasons":[{"is":"Reason",'
        b'"statement":"ask-first","note":"nobody pokes unasked"}],"numbers":[{"is":"Numbered",'
        b'"place":"chat/bot/ada/","number":7,"language":"de"}],"refs":[{"is":"MessageRef",'
        b'"address":{"is":"Address","channel":"chat","account":"bot","chat":"ada","thread":null,'
        b'"direct":true},"message":"m1"}],"state":"pending","by":"","reason":"","choice":null,'
        b'"at":null}'
    ),
    conversation=ConversationId("01KDX0000000000000000000C1"),
    state="pending",
    place="chat/bot/ada/",
)
A_STRANGER = Put(
    kind=RowKind.STRANGER,
    key="wanted-in-by-a-release",
    body=(
        b'{"is":"Stranger","id":"wanted-in-by-a-release","channel":"chat","sender":"mallory",'
        b'"display":"Mallory","address":{"is":"Address","channel":"chat","account":"bot",'
        b'"chat":"mallory","thread":null,"direct":true},"salt":"5a17","code_hash":'
        b'"80aa42f612db0b87583e9253c25400a151aa354761038012d5edbf0cf774759b",'
        b'"asked_at":"2026-01-01T12:00:00Z","deadline_at":"2026-01-01T13:00:00Z","numbers":'
        b'[{"is":"Numbered","place":"chat/bot/ada/","number":8,"language":"en"}],"refs":'
        b'[{"is":"MessageRef","address":{"is":"Address","channel":"chat","account":"bot",'
        b'"chat":"ada","thread":null,"direct":true},"message":"m2"}],'
        b'"messages":["01KDX0000000000000000000M1"],"state":"waiting","by":"","at":null}'
    ),
    state="waiting",
    place="chat",
)


async def left(world: World) -> None:
    """Put both into the store, as the release left them."""
    due_at = world.clock.now() + timedelta(hours=1)
    for one in (A_CALL, A_STRANGER):
        put = replace(one, due_at=due_at)
        commit = Commit(point=DurablePoint.ANSWERED, conversation=one.conversation, writes=(put,))
        await world.store.commit(commit)


async def states(world: World) -> list[str]:
    """How both stand."""
    found = [await world.store.get(one.kind, one.key) for one in (A_CALL, A_STRANGER)]
    return ["gone" if one is None else one.state for one in found]


def test_every_field_is_read() -> None:
    """What the buttons carry, whom it is about, and what it is called in the operator's chat."""
    call, stranger = APPROVALS.of(A_CALL), STRANGERS.of(A_STRANGER)
    assert (call.is_open, call.tool, call.requester.label) == (True, "poke", "Ben")
    assert (call.reasons[0].note, call.numbers[0].number) == ("nobody pokes unasked", 7)
    assert (stranger.is_open, stranger.identity) == (True, "chat:mallory")
    assert (stranger.numbers[0].number, stranger.refs[0].message) == (8, "m2")


@pytest.mark.parametrize(("word", "ended"), [("approve", "approved"), ("deny", "denied")])
async def test_both_are_answered_by_number(world: World, word: str, ended: str) -> None:
    """Whatever their kind, in one message (S2-13)."""
    await left(world)
    async with world.running() as house:
        await house.say(f"/{word} 7 8")
        assert await states(world) == [ended, ended]


async def test_both_are_answered_by_a_press(world: World) -> None:
    """Their buttons stand in the chat still (P5)."""
    await left(world)
    async with world.running() as house:
        for key in (A_CALL.key, A_STRANGER.key):
            told = await house.event(Pressed(approval=ApprovalId(key), choice="deny"))
            assert isinstance(told, Answered)
        assert await states(world) == ["denied", "denied"]


async def test_a_deadline_that_passed_between_the_two_ends_both(world: World) -> None:
    """At the start; a day later the stranger is forgotten (P4)."""
    await left(world)
    await world.clock.advance(3601)
    async with world.running() as house:
        assert await states(world) == ["expired", "expired"]
        await house.advance(24 * 3600)
        assert await states(world) == ["expired", "gone"]
