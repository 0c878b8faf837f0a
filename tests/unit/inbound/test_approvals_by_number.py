"""Answers by number, and the list of what waits for one."""

import asyncio
import re
from datetime import timedelta

import pytest

from tests.fakes.house import House, World
from tests.fakes.many_rows import put_a_page_before
from tests.fakes.scripted_model import asks_for
from zeroclaw.config.model import ApprovalSettings
from zeroclaw.envelope import ApprovalId, Principal
from zeroclaw.errors import Conflict
from zeroclaw.gate import approval as approvals
from zeroclaw.inbound.approvals import LOOK_BACK
from zeroclaw.store import Commit, DurablePoint, RowKind
from zeroclaw.value import replace

NOBODY = Principal(id="person:nobody", roles=frozenset(), channel="chat", sender="nobody")
POKE = asks_for(("poke", '{"a": 1}'))
TWO_POKES = asks_for(("poke", '{"a": 1}'), ("poke", '{"a": 2}'))
DEADLINE_S = 900.0


async def test_calls_are_answered_by_number(world: World) -> None:
    """Each by its own; what is denied does not run, and the batch waits for all (P5, K2)."""
    world.model.will(TWO_POKES)
    async with world.running() as house:
        await house.say("poke both")
        assert [call.number for call in house.card().calls] == [1, 2]
        await house.say("/approve 1")
        assert house.texts()[-1] == "`1`: approved: `poke`."
        assert world.poke.runs == []
        await house.say("/deny #2 because it hurts\nthe others")
        assert world.poke.runs == [{"a": 1}]
        assert house.endings() == [("approved", "Ada"), ("denied", "Ada")]
        assert "who said: because it hurts\nthe others" in world.model.asked()[-1]


async def test_numbers_that_mean_nothing_run_nothing(world: World) -> None:
    """Unknown, ended, missing: each gets its sentence (P5, P10)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        await house.say("/approve 7")
        assert house.texts()[-1] == "There is no call `7` in this chat."
        await house.say("/approve")
        assert house.texts()[-1] == "Say which, for example `/approve 1`; `/pending` lists them."
        await house.say("/approve 1")
        await house.say("/approve 1")
        assert house.texts()[-1] == "`1`: already approved by Ada."
        assert world.poke.runs == [{"a": 1}]


@pytest.mark.parametrize("words", ["2 1 hour", "2, not 1", "2 1 3 no", "not 1", "1-2"])
async def test_words_beside_the_numbers_approve_nothing(world: World, words: str) -> None:
    """`/approve 2 1 hour` means one call, and names two (P5)."""
    world.model.will(TWO_POKES)
    async with world.running() as house:
        await house.say("poke both")
        await house.say(f"/approve {words}")
        assert house.texts()[-1] == (
            "Nothing was approved: write only numbers after `/approve`, such as `/approve 1 3`."
        )
        assert house.endings() == []
        await house.say("/approve 2\n\nAnn, extension 1")
        assert house.texts()[-1] == "`2`: approved: `poke`."
        assert house.endings() == [("approved", "Ada")]


@pytest.mark.parametrize("command", ["approve", "deny", "revoke"])
async def test_one_message_names_only_so_many(world: World, command: str) -> None:
    """One that names more changes nothing, and its answer does not grow with it (P9)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        await house.say(f"/{command} {' '.join(map(str, range(1, 900)))}")
        assert house.texts()[-1] == "One message answers 32 calls at most; nothing was changed."
        assert await house.states("pending", "control") == []
        await house.say(f"/{command} {' '.join(map(str, range(2, 34)))}")
        assert house.texts()[-1].count("\n") == 31


async def test_numbers_are_not_for_everybody(world: World) -> None:
    """A number counts in its own chat and for its own approver only (P5)."""
    world.configure(approvals=ApprovalSettings(approvers=("person:ben",)))
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        await house.say("/approve 1", "ada")
        assert house.texts()[-1] == "There is no call `1` in this chat."
        await house.say("/approve 1", "cleo")
        assert house.texts("cleo") == ["There is no call `1` in this chat."]
        await house.say("/approve 1", "ben")
        assert world.poke.runs == [{"a": 1}]


async def test_a_number_pressed_by_the_wrong_person_is_refused(world: World) -> None:
    """In the approver's chat, but not by the approver (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        await house.say("/approve 1", "ben", room="ada")
        assert "`1`: only an operator may answer this." in house.texts()
        assert world.poke.runs == []


async def test_calls_of_several_conversations_in_one_answer(world: World) -> None:
    """Each conversation's in a commit of its own, and each says what was answered (P5)."""
    world.model.will(TWO_POKES, POKE)
    async with world.running() as house:
        await house.say("poke both", "ben")
        await house.say("poke it", "cleo")
        await house.say("/approve 1 3 2 9")
        assert house.texts()[-2:] == [
            "There is no call `9` in this chat.\n`1`: approved: `poke`.\n`2`: approved: `poke`.",
            "`3`: approved: `poke`.",
        ]
        assert sorted(map(str, world.poke.runs)) == ["{'a': 1}", "{'a': 1}", "{'a': 2}"]
        assert house.texts("ben")[-1] == house.texts("cleo")[-1] == "ok"


async def test_a_kill_between_the_answers_leaves_the_others_open(world: World) -> None:
    """What was not answered runs nothing, and can be answered after the next start (P5)."""
    world.model.will(POKE, asks_for(("poke", '{"a": 2}')))
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.say("poke it", "cleo")
        world.store.cut_after(DurablePoint.ADMITTED)
        async with asyncio.TaskGroup() as group:
            told = house.envelope(house.command("approve", "1 2"))
            admitted = group.create_task(house.services.ingress.admit(told))
            await house.settle()
            admitted.cancel()
    world.store.heal()
    async with world.running() as house:
        assert world.poke.runs == [{"a": 1}]
        await house.advance(1)
        assert house.texts()[-1] == "`1`: approved: `poke`."
        await house.say("/approve 2")
        assert world.poke.runs == [{"a": 1}, {"a": 2}]


async def test_a_call_that_changes_between_the_answers_is_read_anew(world: World) -> None:
    """The compare-and-set is each call's own (P5)."""
    world.model.will(POKE, POKE)
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.say("poke it", "cleo")
        raced: list[Commit] = []

        def touch(commit: Commit) -> None:
            if is_answer(commit) and not raced:
                raced.append(commit)
                world.store.touch(RowKind.APPROVAL)

        world.store.before = touch
        await house.say("/deny 1 2")
        assert len(raced) == 1
        assert house.texts()[-1] == "`2`: denied: `poke`."
        assert world.poke.runs == []


async def test_a_call_that_always_changes_is_given_up(world: World) -> None:
    """The adapter learns that not all of it was stored; what was not runs nothing (P5)."""
    world.model.will(POKE, POKE)

    def race(commit: Commit) -> None:
        if is_answer(commit):
            message = "raced"
            raise Conflict(message)

    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.say("poke it", "cleo")
        world.store.before = race
        with pytest.raises(Conflict, match="others kept changing"):
            await house.services.ingress.admit(house.envelope(house.command("approve", "1 2")))
        await house.settle()
        assert world.poke.runs == [{"a": 1}]
        assert await house.numbers() == (2,)


def is_answer(commit: Commit) -> bool:
    """Whether it is an answer that the door commits after the first."""
    return commit.point is DurablePoint.ANSWERED and commit.fence is None


async def test_a_late_number_is_told_that_it_expired(world: World) -> None:
    """As a press would be (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        world.clock.leap(timedelta(seconds=DEADLINE_S))
        await house.say("/approve 1")
        assert "`1`: too late: it expired at 12:15:00 UTC." in house.texts()
        assert world.poke.runs == []


async def many_others(house: House) -> None:
    """Let a page of questions wait before all others, and a screenful end after them."""
    one = approvals.APPROVALS.of((await house.rows(RowKind.APPROVAL))[0])
    other = replace(one, id=ApprovalId("x"), approvers=(NOBODY.id,), numbers=(), requester=NOBODY)
    await put_a_page_before(house.world.store, approvals.to_put(other, expect=0))
    ended = approvals.to_put(approvals.stop(other, by="", at=house.world.clock.now()), expect=0)
    later = tuple(
        replace(ended, key=f"~{number:04}", place=house.place().key())
        for number in range(LOOK_BACK)
    )
    await house.world.store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=later))


@pytest.mark.slow
async def test_a_number_is_found_behind_a_page_of_questions(world: World) -> None:
    """However many wait, each open one can be answered (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        await many_others(house)
        await house.say("/approve 1")
        assert world.poke.runs == [{"a": 1}]


# --- /pending ------------------------------------------------------------------------------------


async def test_pending_lists_what_one_may_answer_or_asked_for(world: World) -> None:
    """The approver sees the number, whoever asked sees whom it waits for."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("/pending")
        await house.say("poke it", "ben")
        await house.say("/pending")
        await house.say("/pending", "ben")
        await house.say("/pending", "cleo")
        assert house.texts()[0] == "Nothing waits for an answer."
        assert house.texts()[-1] == "- `1` `poke`: poke ['a'], open until 12:15:00 UTC"
        hashed = house.card().calls[0].hash8
        assert house.texts("ben")[-1] == (
            f"- `{hashed}` `poke`: poke ['a'], open until 12:15:00 UTC, waiting for an operator"
        )
        assert house.texts("cleo") == ["Nothing waits for an answer."]


@pytest.mark.slow
async def test_in_a_group_only_its_own_questions_are_listed(world: World) -> None:
    """By the tool alone: others read along, and what it would do stands on the approver's card."""
    async with world.running() as house:
        world.model.will(POKE, POKE)
        await house.say("poke it", "ben")
        await house.say("poke it", "ben", room="lobby")
        await house.say("let me in", "mallory")
        await house.say("/pending", room="lobby")
        (line,) = house.texts(room="lobby")[-1].splitlines()
        assert re.fullmatch(r"- `[0-9a-f]{8}` `poke`, open until 12:15:00 UTC", line)


async def test_pending_looks_through_all_that_waits(world: World) -> None:
    """A page of other people's questions hides none (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        await many_others(house)
        await house.say("/pending")
        assert house.texts()[-1] == "- `1` `poke`: poke ['a'], open until 12:15:00 UTC"


@pytest.mark.parametrize("who", ["ben", "ada"])
async def test_a_message_that_waits_for_an_approval_is_told_so(world: World, who: str) -> None:
    """Whoever writes while the turn waits learns why nothing comes."""
    world.model.will(TWO_POKES)
    async with world.running() as house:
        await house.say("poke both", room="lobby")
        await house.say("hello?", who, room="lobby")
        assert house.texts(room="lobby")[-1] == (
            "Waiting for an operator to approve `poke`; your message is next."
        )
