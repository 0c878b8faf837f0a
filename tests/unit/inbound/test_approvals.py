"""Answers to approvals: who may, once, and in time."""

import asyncio
import itertools
import json
import random
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

import pytest

from tests.fakes.house import House, World
from tests.fakes.house_parts import PEOPLE
from tests.fakes.memory_store import put_a_page_before
from tests.fakes.plain_tool import POKE as POKE_SPEC
from tests.fakes.plain_tool import PlainTool
from tests.fakes.scripted_model import POKE, TWO_POKES, asks_for, says
from zeroclaw import Accepted, Answered, Duplicate
from zeroclaw.config.model import ApprovalSettings, ChannelSettings, PersonSettings, PolicySettings
from zeroclaw.delivery.rows import OUTBOX, TextPost
from zeroclaw.envelope import ApprovalId, Choice, Pressed, Principal
from zeroclaw.errors import ChannelUnavailable, Conflict
from zeroclaw.gate import approval as approvals
from zeroclaw.gate.grant import GRANTS
from zeroclaw.inbound.approvals import LOOK_BACK
from zeroclaw.inbound.identity import PEOPLE as DECIDED
from zeroclaw.inbound.live_config import last_halt
from zeroclaw.store import Claim, Commit, DurablePoint, Put, Query, Row, RowKind
from zeroclaw.tool import Arguments, ToolContext, ToolOutput, ToolSpec
from zeroclaw.value import replace

DEADLINE_S = 900.0


async def test_an_approved_call_runs_once(world: World) -> None:
    """The answer is one commit, and the card shows it and who gave it (P5, S2-10)."""
    async with world.told("poke it", POKE) as house:
        assert world.poke.runs == []
        assert await house.press() == "approved: `poke`"
        assert world.poke.runs == [{"a": 1}]
        assert house.endings() == [("approved", "Ada")]
        assert await house.press() == "already approved by Ada"
        assert await house.press("deny") == "already approved by Ada"
        assert world.poke.runs == [{"a": 1}]
        assert await house.audited() == ["proposed", "evaluated", "answered", "executed"]


async def test_a_denied_call_does_not_run(world: World) -> None:
    """The model reads who refused it and why, and goes on (S2-09, K2)."""
    async with world.told("poke it", POKE) as house:
        toast = await house.press("deny_with_reason")
        assert toast == "why is `poke` denied? reply with the reason"
        assert house.endings() == []
        await house.press("deny_with_reason", reason="not on a Sunday")
        assert world.poke.runs == []
        assert "was refused by Ada, who said: not on a Sunday." in world.model.asked()[-1]
        assert await house.audited() == ["proposed", "evaluated", "answered", "denied"]


async def test_a_card_that_was_never_recorded_is_known_once_its_reason_is_asked_for(
    world: World,
) -> None:
    """A press that ends nothing yet names the card's place, too (P5)."""
    async with world.told("poke it", POKE, by="ben") as house:
        [row] = await house.rows(RowKind.APPROVAL)
        request = approvals.APPROVALS.of(row)
        await world.store.write(approvals.to_put(replace(request, refs=())))
        await house.press("deny_with_reason")
        await house.say("/deny 1")
        assert house.endings() == [("denied", "Ada")]


async def test_a_secret_in_a_reason_is_not_kept(world: World) -> None:
    """The reason of a denial is redacted before it is stored (P8)."""
    async with world.told("poke it", POKE) as house:
        await house.press("deny_with_reason", reason="hunter2-and-then-some")
        assert "hunter2" not in world.model.asked()[-1]


async def test_another_operator_answers_instead(world: World) -> None:
    """The card goes to the other one, under any id; the requester's press is refused (P5)."""
    dora = PersonSettings(name="dora", ids=("chat:cleo",), roles=("operator",))
    world.configure(approvals=ApprovalSettings(requester_may_answer=False), people=(*PEOPLE, dora))
    async with world.told("poke it", POKE) as house:
        refused = await house.press(who="ada", at="cleo")
        assert refused == "whoever asks may not approve; somebody else has to answer this"
        world.configure(approvals=ApprovalSettings())
        await house.ask("reload")  # it was asked of others, and stays so
        assert await house.press(who="ada", at="cleo") == refused
        assert await house.press(who="cleo") == "approved: `poke`"
        assert world.poke.runs == [{"a": 1}]


async def test_a_requester_may_not_answer_once_that_is_forbidden(world: World) -> None:
    """A reload counts for what is open by then, as every other change of who may answer (P5)."""
    async with world.told("poke it", POKE) as house:
        world.configure(approvals=ApprovalSettings(requester_may_answer=False))
        await house.ask("reload")
        refused = await house.press(who="ada")
        assert refused == "whoever asks may not approve; somebody else has to answer this"
        assert world.poke.runs == []


async def test_an_open_question_is_for_the_approvers_of_now(world: World) -> None:
    """A reload decides who approves, also for cards that were sent before (P5)."""
    async with world.told("poke it", POKE) as house:
        world.configure(approvals=ApprovalSettings(approvers=("person:ben",)))
        await house.ask("reload")
        assert await house.press(who="ada") == "only ben may answer this"
        assert await house.press(who="ben", at="ada") == "approved: `poke`"
        assert world.poke.runs == [{"a": 1}]


BOTH = asks_for(("poke", '{"a": 1}'), ("poke", '{"a": 2}'))
DORA = PersonSettings(name="dora", ids=("chat:cleo",), roles=("operator",))
NO_OPERATOR = PEOPLE[0].model_copy(update={"roles": ()})
LATER: dict[str, dict[str, object]] = {
    "is no operator any more": {"people": (NO_OPERATOR, PEOPLE[1], DORA)},
    "is let in no more": {"channels": {"chat": ChannelSettings(allowed_users=("ben", "cleo"))}},
    "approves nothing any more": {"approvals": ApprovalSettings(approvers=("person:dora",))},
    "asked, and may not approve": {"approvals": ApprovalSettings(requester_may_answer=False)},
}


@pytest.mark.parametrize("later", LATER)
async def test_an_approval_of_a_former_approver_starts_no_call(world: World, later: str) -> None:
    """The first yes waits for the second one; by then its giver may no longer give it (P5)."""
    requester = "ada" if later.startswith("asked") else "ben"
    world.configure(people=(*PEOPLE, DORA))
    async with world.told("poke twice", BOTH, by=requester) as house:
        await house.press(who="ada")
        world.configure(**LATER[later])
        await house.ask("reload")
        assert await house.press(who="cleo", at="ada", call=1) == "approved: `poke`"
        assert world.poke.runs == [{"a": 2}]
        text = "`poke` did not run: Ada approved it and may no longer do so"
        assert text in world.model.asked()[-2]
        assert await house.audited() == [
            *("proposed", "evaluated") * 2,
            *("answered", "answered", "denied", "executed"),
        ]


async def test_a_revoked_operator_has_approved_nothing_that_has_not_started(world: World) -> None:
    """As after a reload; a restart in between changes nothing (P5)."""
    world.configure(people=(*PEOPLE, DORA))
    async with world.told("poke twice", BOTH, by="ben") as house:
        await house.press(who="ada")
        await house.ask("pair", words="revoke ada")
    async with world.running() as house:
        assert await house.press(who="cleo", call=1) == "approved: `poke`"
        assert world.poke.runs == [{"a": 2}]


@pytest.mark.parametrize("requester", ["ada", "ben"])
async def test_an_operator_who_may_not_approve_a_tool_gets_no_card_for_it(
    world: World, requester: str
) -> None:
    """A statement takes it from Ada; the operator who may approve it gets the card, not she (P5)."""
    statement: dict[str, object] = {
        "id": "mine",
        "effect": "deny",
        "principals": ["person:ada"],
        "actions": ["approve:poke"],
    }
    world.configure(people=(*PEOPLE, DORA), policy=PolicySettings(statement=(statement,)))
    world.model.will(asks_for(("burn", "{}"), ("poke", '{"a": 1}')))
    async with world.told("poke it", by=requester) as house:
        assert [call.tool for call in house.card("cleo").calls] == ["burn", "poke"]
        assert await house.press(who="ada", at="cleo", call=1) == "only an operator may answer this"
        assert await house.press(who="cleo", call=1) == "approved: `poke`"


async def test_where_no_person_may_approve_a_tool_the_model_reads_so(world: World) -> None:
    """At once, instead of a card that no person can answer (P5)."""
    statement: dict[str, object] = {
        "id": "mine",
        "effect": "deny",
        "principals": ["anyone"],
        "actions": ["approve:poke"],
    }
    world.configure(policy=PolicySettings(statement=(statement,)))
    async with world.told("poke it", POKE):
        assert "no operator can be reached from here" in world.model.asked()[-1]


async def test_a_former_operator_gets_no_card(world: World) -> None:
    """The operator of now is, though the other one's own turn is still at work (P5)."""
    world.look.hold = asyncio.Event()
    world.configure(people=(*PEOPLE, DORA))
    async with world.told("poke it", asks_for(("look", "{}")), POKE) as house:
        world.configure(people=(NO_OPERATOR, PEOPLE[1], DORA))
        await house.ask("reload")
        world.look.hold.set()
        await house.settle()
        assert await house.press(who="cleo") == "approved: `poke`"


async def test_only_a_named_approver_gets_the_card(world: World) -> None:
    """`approvals.approvers` names who gets a card and whose answer counts (P5)."""
    world.configure(approvals=ApprovalSettings(approvers=("person:ben",)))
    async with world.told("poke it", POKE) as house:
        assert house.texts() == ["Waiting for ben to approve `poke`."]
        assert await house.press(who="ada", at="ben") == "only ben may answer this"
        assert await house.press(who="ben") == "approved: `poke`"


async def test_a_press_at_the_deadline_is_too_late(world: World) -> None:
    """Silence has become a denial, whether or not the timer has fired (P5)."""
    async with world.told("poke it", POKE) as house:
        await house.advance(DEADLINE_S - 1)
        assert house.endings() == []
        await house.advance(1)
        assert house.endings() == [("expired", "")]
        assert await house.press() == "too late: it expired at 12:15:00 UTC"
        assert "nobody answered in time" in world.model.asked()[-1]
        assert await house.audited() == ["proposed", "evaluated", "answered", "denied"]


async def test_a_press_before_the_timer_fires_can_be_late_too(world: World) -> None:
    """It was admitted at the deadline, so it has lost (P5)."""
    async with world.told("poke it", POKE) as house:
        world.clock.leap(timedelta(seconds=DEADLINE_S))
        assert await house.press() == "too late: it expired at 12:15:00 UTC"
        assert world.poke.runs == []
        assert house.endings() == [("expired", "")]


async def test_a_deadline_is_not_waited_for_by_a_clock_that_was_wrong(world: World) -> None:
    """A machine without a battery starts in 1970, and a time server sets it right a minute later."""
    world.model.will(POKE, says("I see"))
    async with world.running() as house:
        await house.say("poke it")
    world.clock.leap(-timedelta(days=20_000))
    async with world.running() as house:
        await house.advance(60)
        assert house.endings() == []
        world.clock.leap(timedelta(days=20_000))
        await house.advance(world.config.approvals.timeout_s)
        assert house.endings() == [("expired", "")]
        assert house.texts()[-1] == "I see"


async def test_a_deadline_meets_a_card_that_becomes_known(world: World) -> None:
    """The row has just changed; it is read anew, and ended as it stands now (P5)."""
    async with world.told("poke it", POKE) as house:
        raced: list[Commit] = []

        def touch(commit: Commit) -> None:
            if commit.point is DurablePoint.ANSWERED and not raced:
                raced.append(commit)
                world.store.touch(RowKind.APPROVAL)

        world.store.before = touch
        await house.advance(DEADLINE_S)
        assert house.endings() == [("expired", "")]
        await house.advance(10)
        assert await house.states() == ["answered", "answered"]  # the message, and the deadline


async def test_a_late_press_on_an_unknown_copy_settles_it_too(world: World) -> None:
    """Even when the question has ended already (P5)."""
    async with world.told("poke it", POKE) as house:
        await house.press()
        card = house.card()
        await world.platforms["chat"].ask(house.place(), card)
        assert house.endings() == []
        assert await house.press() == "already approved by Ada"
        assert house.endings() == [("approved", "Ada")]


@pytest.mark.parametrize("is_over", [False, True])
async def test_a_press_without_the_right_to_answer_records_no_card(
    world: World, *, is_over: bool
) -> None:
    """On Telegram a client can name any message of the bot's as the card that it pressed (P5)."""
    async with world.told("hi", by="ben") as house:
        world.model.will(POKE)
        (answer,) = world.platforms["chat"].standing(house.place("ben"))
        await house.say("poke it")
        if is_over:
            await house.press()
        forged = replace(house.pressed(), card=answer.ref)
        refused = await house.event(forged, "ben")
        assert isinstance(refused, Answered)
        assert refused.text == "only an operator may answer this"
        if not is_over:
            await house.press()
        assert answer.outcome is None
        assert house.endings() == [("approved", "Ada")]


# --- for a time ----------------------------------------------------------------------------------


class Nameless(PlainTool):
    """Can't tell what it touches."""

    async def resources(self, arguments: Arguments, context: ToolContext) -> tuple[str, ...]:
        raise RuntimeError("somewhere")


async def test_what_cannot_be_named_is_offered_once_only(world: World) -> None:
    """The choice is not on the card, and pressing it all the same is refused."""
    exec_only = Nameless(
        type(POKE_SPEC)(name="poke", description="", parameters={}, effects=frozenset({"network"}))
    )
    world.tools = (exec_only,)
    async with world.told("poke it", POKE) as house:
        assert "for_a_time" not in house.card().choices
        assert await house.press("for_a_time") == "this answer is not offered here"


# --- by number, and the list of what waits --------------------------------------------------------

NOBODY = Principal(id="person:nobody", roles=frozenset(), channel="chat", sender="nobody")


async def test_calls_are_answered_by_number(world: World) -> None:
    """Each by its own; what is denied does not run, and the batch waits for all (P5, K2)."""
    async with world.told("poke both", TWO_POKES) as house:
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
    async with world.told("poke it", POKE) as house:
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
    async with world.told("poke both", TWO_POKES) as house:
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
    async with world.told("poke it", POKE) as house:
        await house.say(f"/{command} {' '.join(map(str, range(1, 900)))}")
        assert house.texts()[-1] == "One message answers 32 calls at most; nothing was changed."
        assert await house.states("pending", "control") == []
        await house.say(f"/{command} {' '.join(map(str, range(2, 34)))}")
        assert house.texts()[-1].count("\n") == 31


async def test_numbers_are_not_for_everybody(world: World) -> None:
    """A number counts in its own chat and for its own approver only (P5)."""
    world.configure(approvals=ApprovalSettings(approvers=("person:ben",)))
    async with world.told("poke it", POKE) as house:
        await house.say("/approve 1", "ada")
        assert house.texts()[-1] == "There is no call `1` in this chat."
        await house.say("/approve 1", "cleo")
        assert house.texts("cleo") == ["There is no call `1` in this chat."]
        await house.say("/approve 1", "ben")
        assert world.poke.runs == [{"a": 1}]


async def test_a_number_pressed_by_the_wrong_person_is_refused(world: World) -> None:
    """In the approver's chat, but not by the approver (P5)."""
    async with world.told("poke it", POKE) as house:
        await house.say("/approve 1", "ben", room="ada")
        assert "`1`: only an operator may answer this." in house.texts()
        assert world.poke.runs == []


async def test_calls_of_several_conversations_in_one_answer(world: World) -> None:
    """Each conversation's in a commit of its own, and each says what was answered (P5)."""
    async with world.told("poke both", TWO_POKES, POKE, by="ben") as house:
        await house.say("poke it", "cleo")
        await house.say("/approve 1 3 2 9")
        assert house.texts()[-2:] == [
            "There is no call `9` in this chat.\n`1`: approved: `poke`.\n`2`: approved: `poke`.",
            "`3`: approved: `poke`.",
        ]
        assert sorted(map(str, world.poke.runs)) == ["{'a': 1}", "{'a': 1}", "{'a': 2}"]
        assert house.texts("ben")[-1] == house.texts("cleo")[-1] == "ok"


async def test_a_kill_between_the_answers_loses_none(world: World) -> None:
    """The platform delivers the command again, because it was not confirmed (P1, P5)."""
    async with world.told("poke it", POKE, asks_for(("poke", '{"a": 2}')), by="ben") as house:
        await house.say("poke it", "cleo")
        world.store.cut_after(DurablePoint.ADMITTED)
        async with asyncio.TaskGroup() as group:
            envelope = house.envelope(house.command("approve", "1 2"))
            admitted = group.create_task(house.services.ingress.admit(envelope))
            await house.settle()
            admitted.cancel()
    world.store.heal()
    async with world.running() as house:
        assert world.poke.runs == [{"a": 1}]
        await house.advance(1)
        assert house.texts()[-1] == "`1`: approved: `poke`."
        assert await house.services.ingress.admit(envelope) == Accepted()
        await house.settle()
        assert world.poke.runs == [{"a": 1}, {"a": 2}]
        [again] = [text for text in house.texts() if "`2`" in text]
        assert again.splitlines()[1:] == ["`2`: approved: `poke`."]
        assert await house.services.ingress.admit(envelope) == Duplicate()


async def test_a_refused_answer_to_several_conversations_is_said_once(world: World) -> None:
    """Even if the platform delivers the command again (P1)."""
    async with world.told("poke it", POKE, POKE, room="den") as house:
        await house.say("poke it", "ada", room="lab")
        envelope = house.envelope(house.command("approve", "1 2"), "ben", room="ada")
        assert await house.services.ingress.admit(envelope) == Accepted()
        await house.settle()
        said = house.texts()
        refused = "only an operator may answer this."
        assert said[-1] == f"`1`: {refused}\n`2`: {refused}"
        assert await house.services.ingress.admit(envelope) == Duplicate()
        await house.settle()
        assert house.texts() == said


async def test_a_call_that_changes_between_the_answers_is_read_anew(world: World) -> None:
    """The compare-and-set is each call's own (P5)."""
    async with world.told("poke it", POKE, POKE, by="ben") as house:
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
            raise Conflict("raced")

    async with world.told("poke it", by="ben") as house:
        await house.say("poke it", "cleo")
        world.store.before = race
        with pytest.raises(Conflict, match="others kept changing"):
            await house.services.ingress.admit(house.envelope(house.command("approve", "1 2")))
        await house.settle()
        assert world.poke.runs == [{"a": 1}]
        assert await house.numbers() == (2,)


def is_answer(commit: Commit) -> bool:
    """Whether it is the last answer of a command, which claims the command's message."""
    kinds = {write.kind for write in commit.writes if isinstance(write, Put)}
    return RowKind.APPROVAL in kinds and any(isinstance(write, Claim) for write in commit.writes)


async def test_a_late_number_reads_that_it_expired(world: World) -> None:
    """As a press would be (P5)."""
    async with world.told("poke it", POKE) as house:
        world.clock.leap(timedelta(seconds=DEADLINE_S))
        await house.say("/approve 1")
        assert "`1`: too late: it expired at 12:15:00 UTC." in house.texts()
        assert world.poke.runs == []


async def many_others(house: House) -> None:
    """Let a page of questions wait before all others, and a screenful end after them."""
    request = approvals.APPROVALS.of((await house.rows(RowKind.APPROVAL))[0])
    other = replace(request, id=ApprovalId("x"), tool="other", numbers=(), requester=NOBODY)
    await put_a_page_before(house.world.store, approvals.to_put(other))
    ended = approvals.to_put(approvals.stop(other, by="", at=house.world.clock.now()))
    later = tuple(
        replace(ended, key=f"~{number:04}", place=house.place().key())
        for number in range(LOOK_BACK)
    )
    await house.world.store.write(*later)


@pytest.mark.slow
async def test_a_number_is_found_behind_a_page_of_questions(world: World) -> None:
    """However many wait, each open one can be answered (P5)."""
    async with world.told("poke it", POKE) as house:
        await many_others(house)
        await house.say("/approve 1")
        assert world.poke.runs == [{"a": 1}]


# --- /pending ------------------------------------------------------------------------------------


async def test_pending_lists_requests_to_answer_and_own_ones(world: World) -> None:
    """The approver sees the number, the requester sees whom it waits for."""
    async with world.told("/pending", POKE) as house:
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


async def test_in_the_chat_of_the_cards_every_question_is_listed_whole(world: World) -> None:
    """Its readers see the cards anyway, and answer by these numbers (P5)."""
    world.configure(approvals=ApprovalSettings(chat="chat:team"))
    async with world.told("poke it", POKE, by="ben") as house:
        await house.say("/pending", room="team")
        assert house.texts(room="team")[-1] == "- `1` `poke`: poke ['a'], open until 12:15:00 UTC"


async def test_pending_looks_through_all_that_waits(world: World) -> None:
    """A page of questions for other people hides none (P5)."""
    no_other: dict[str, object] = {
        "id": "mine",
        "effect": "deny",
        "principals": ["anyone"],
        "actions": ["approve:other"],
    }
    world.configure(policy=PolicySettings(statement=(no_other,)))
    async with world.told("poke it", POKE) as house:
        await many_others(house)
        await house.say("/pending")
        assert house.texts()[-1] == "- `1` `poke`: poke ['a'], open until 12:15:00 UTC"


@pytest.mark.parametrize("who", ["ben", "ada"])
async def test_a_message_that_waits_for_an_approval_reads_so(world: World, who: str) -> None:
    """Whoever writes while the turn waits learns why nothing comes."""
    async with world.told("poke both", TWO_POKES, room="lobby") as house:
        await house.say("hello?", who, room="lobby")
        assert house.texts(room="lobby")[-1] == (
            "Waiting for an operator to approve `poke`; your message is next."
        )


# --- reminders, once, before a deadline -----------------------------------------------------------

REMINDED = (
    "Still waiting for an answer: `poke` (`/approve 1`, `/deny 1`). 3 min left; after that it "
    "counts as denied."
)
DUE_S = 720
"""After so many seconds of 900 a fifth is left."""


def reminders(house: House, who: str = "ada", channel: str = "chat") -> list[str]:
    """The reminders that they got."""
    texts = house.texts(who, channel=channel)
    return [text for text in texts if text.startswith(("Still waiting", "Das wartet noch"))]


def configure(world: World, **approvals: float) -> None:
    world.model.will(POKE)
    world.configure(approvals=ApprovalSettings.model_validate(approvals))


async def test_an_approver_is_reminded_once_before_the_deadline(world: World) -> None:
    """With tool, number and time left; the one who asked hears nothing of it (P5)."""
    configure(world)
    async with world.told("poke it", by="ben") as house:
        await house.advance(DUE_S - 1)
        assert reminders(house) == []
        await house.advance(1)
        assert reminders(house) == [REMINDED]
        await house.advance(179)
        assert reminders(house) == [REMINDED]
        assert reminders(house, "ben") == []
        await house.say("/approve 1")
        assert house.endings() == [("approved", "Ada")]


async def test_an_answer_in_time_needs_no_reminder(world: World) -> None:
    configure(world)
    async with world.told("poke it", by="ben") as house:
        await house.press("deny")
        await house.advance(900)
        assert reminders(house) == []


async def test_calls_of_one_card_share_one_reminder(world: World) -> None:
    """Those that were answered are left out."""
    world.model.will(asks_for(*[("poke", f'{{"a": {n}}}') for n in range(3)]))
    async with world.told("poke all", by="ben") as house:
        await house.press("deny", call=1)
        await house.advance(DUE_S)
        assert [text.partition(".")[0] for text in reminders(house)] == [
            "Still waiting for an answer: `poke` (`/approve 1`, `/deny 1`), "
            "`poke` (`/approve 3`, `/deny 3`)"
        ]


async def test_a_restart_reminds_neither_twice_nor_never(world: World) -> None:
    """The next process repeats no reminder of an earlier one, and sends those that it missed."""
    configure(world)
    async with world.told("poke it", by="ben") as house:
        await house.advance(10)
    async with world.running() as house:
        await house.advance(DUE_S)
        assert reminders(house) == [REMINDED]
    async with world.running() as house:
        await house.advance(60)
        assert len(reminders(house)) == 1


async def test_a_restart_past_the_moment_reminds_at_once(world: World) -> None:
    configure(world)
    async with world.told("poke it", by="ben") as house:
        await house.advance(10)
    await world.clock.advance(DUE_S + 80)
    async with world.running() as house:
        await house.advance(1)  # its channel is not there yet
        assert len(reminders(house)) == 1
        assert "90 s left" in reminders(house)[0]


@pytest.mark.parametrize("written", [True, False], ids=["after", "before"])
async def test_a_kill_at_the_reminder_leaves_one_reminder(world: World, *, written: bool) -> None:
    """The claim and the note are one commit."""
    configure(world)
    async with world.told("poke it", by="ben") as house:
        if written:
            world.store.cut_after(DurablePoint.HOUSEKEEPING)
            await house.advance(DUE_S)
        else:
            await house.advance(DUE_S - 1)
    world.store.heal()
    async with world.running() as house:
        await house.advance(2)
        assert len(reminders(house)) == 1


async def test_an_answer_that_comes_just_then_wins(world: World) -> None:
    """Whoever has answered is not reminded, however close it was."""
    configure(world)
    async with world.told("poke it", by="ben") as house:
        answers: list[str] = []

        async def answer(writes: object) -> None:
            if not answers and world.clock.monotonic() >= DUE_S:
                answers.append("deny")
                async with asyncio.TaskGroup() as group:
                    group.create_task(
                        house.services.ingress.admit(house.envelope(house.pressed("deny")))
                    )

        world.store.meanwhile = answer
        await house.advance(DUE_S)
        assert answers == ["deny"]
        assert reminders(house) == []
        assert house.endings() == [("denied", "Ada")]


@pytest.mark.parametrize(
    "approvals",
    [{"remind_share": 0.0}, {"timeout_s": 49.0}, {"timeout_s": 900.0, "remind_share": 0.01}],
    ids=["never", "a short time", "a small share"],
)
async def test_a_person_who_could_not_act_gets_no_reminder(
    world: World, approvals: dict[str, float]
) -> None:
    """Switched off, or with less than ten seconds left."""
    configure(world, **approvals)
    async with world.told("poke it", by="ben") as house:
        await house.advance(900)
        assert reminders(house) == []
        assert house.endings() == [("expired", "")]


async def test_a_share_that_is_read_again_holds_for_questions_from_then_on(world: World) -> None:
    configure(world)
    async with world.running() as house:
        world.configure(approvals=ApprovalSettings(remind_share=0.5))
        assert (await house.ask("reload"))["live"] == ["approvals.remind_share"]
        await house.say("poke it", "ben")
        await house.advance(450)
        assert [text.partition(". ")[2] for text in reminders(house)] == [
            "8 min left; after that it counts as denied."
        ]


async def test_a_card_that_comes_late_says_itself_how_little_is_left(world: World) -> None:
    """A channel that was down for ten minutes of fifteen shows the card, and that is enough."""
    configure(world)
    world.platforms["chat"].will("ask", *[ChannelUnavailable("down")] * 17)
    async with world.told("poke it", by="ben") as house:
        await house.advance(890)
        assert len([text for text in house.texts() if "poke" in text]) <= 1
        assert reminders(house) == []


async def test_each_approver_reads_their_own_number_and_language(world: World) -> None:
    world.configure(
        people=(
            PersonSettings(name="ada", ids=("chat:ada",), roles=("operator",)),
            PersonSettings(name="cleo", ids=("chat:cleo",), roles=("operator",), language="de"),
        )
    )
    async with world.told("poke it", POKE, says("no"), POKE) as house:
        await house.press("deny")
        await house.say("poke it", "ben")
        await house.advance(DUE_S)
        assert "`/approve 2`" in reminders(house)[0]
        assert reminders(house, "cleo") == [
            "Das wartet noch auf eine Antwort: `poke` (`/approve 1`, `/deny 1`). Es bleiben 3 min; "
            "danach gilt es als abgelehnt."
        ]
        posts = [OUTBOX.of(row) for row in await house.rows(RowKind.OUTBOX)]
        notes = [post for post in posts if isinstance(post, TextPost)]
        # What the delivery adds to it, as to a possible repeat.
        assert {note.language for note in notes if note.address.chat == "cleo"} == {"de"}


async def test_a_question_without_a_shown_card_sends_no_reminder(world: World) -> None:
    """There is no chat to say it in."""
    configure(world)
    world.platforms["chat"].will("ask", *[ChannelUnavailable("down")] * 99)
    async with world.told("poke it", by="ben") as house:
        await house.advance(10)
    async with world.running() as house:
        await house.advance(DUE_S)
        assert reminders(house) == []


async def test_an_approval_that_is_gone_is_skipped(world: World) -> None:
    configure(world)
    async with world.told("poke it", by="ben") as house:
        world.store.forget(RowKind.APPROVAL)
        await house.advance(DUE_S)
        assert reminders(house) == []


async def test_what_ended_while_a_start_ends_what_was_due_is_left_alone(world: World) -> None:
    """What was read before is read again in the plan, so a press that came first fails no start."""
    configure(world)
    async with world.told("poke it", by="ben") as house:
        answers: list[str] = []

        async def answer(writes: object) -> None:
            if not answers:
                answers.append("deny")
                await house.services.ingress.admit(house.envelope(house.pressed("deny")))

        world.clock.leap(timedelta(seconds=901))
        world.store.meanwhile = answer
        await house.services.open_requests.end_overdue()
        assert answers == ["deny"]
        [row] = await house.rows(RowKind.APPROVAL)
        assert row.state == "expired"


# --- in any order --------------------------------------------------------------------------------

EVERYBODY = ("ada", "ben", "cleo")


class Watched(PlainTool):
    """A tool that asks, and notes each run that it should not have had."""

    def __init__(self, spec: ToolSpec, world: World) -> None:
        super().__init__(spec)
        self.world = world
        self.faults: list[str] = []
        self._seen: set[object] = set()

    async def run(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        number, person = arguments["a"], context.principal
        if number in self._seen:
            self.faults.append(f"{number} ran twice")
        self._seen.add(number)
        if not (await last_halt(self.world.store)).over:
            self.faults.append(f"{number} ran while everything was halted")
        if not await self._is_let_in(person.sender):
            self.faults.append(f"{number} ran for {person.sender}, who was out")
        if not await self._is_allowed(arguments, context):
            self.faults.append(f"{number} ran, and no approver has approved it")
        return await super().run(arguments, context)

    async def _is_allowed(self, arguments: Arguments, context: ToolContext) -> bool:
        requests = [approvals.APPROVALS.of(row) for row in await self._rows(RowKind.APPROVAL)]
        granted = [GRANTS.of(row) for row in await self._rows(RowKind.GRANT)]
        givers = [
            request.answerer
            for request in requests
            if request.state == "approved" and json.loads(request.arguments) == arguments
        ]
        givers += [
            grant.granter_sender
            for grant in granted
            if grant.conversation == context.conversation and self.world.clock.now() < grant.until
        ]
        return any([await self._may_approve(giver, context.principal) for giver in givers])

    async def _may_approve(self, identity: str, requester: Principal) -> bool:
        config = self.world.config
        is_own = identity == requester.identity
        return (
            any(identity in person.ids and "operator" in person.roles for person in config.people)
            and await self._is_let_in(identity.removeprefix("chat:"))
            and (config.approvals.requester_may_answer or not is_own)
        )

    async def _is_let_in(self, sender: str) -> bool:
        decided = [DECIDED.of(row) for row in await self._rows(RowKind.PERSON)]
        out = {person.id.rpartition(":")[2] for person in decided if person.state == "revoked"}
        return sender in self.world.config.channels["chat"].allowed_users and sender not in out

    async def _rows(self, kind: RowKind) -> tuple[Row, ...]:
        return await self.world.store.select(Query(kind=kind))


async def press_any(house: House, chance: random.Random, choice: Choice) -> None:
    """Answer some call of the newest cards, mostly as an operator and before it has ended."""
    shown = house.world.platforms["chat"]
    cards = [
        message
        for who in EVERYBODY
        for message in shown.standing(house.place(who))
        if message.card is not None and (message.outcome is None or chance.random() < 0.2)
    ]
    operators = [person.name for person in house.world.config.people if "operator" in person.roles]
    for card in cards[-1:]:
        assert card.card is not None
        call = chance.choice(card.card.calls)
        pressed = Pressed(approval=call.approval, choice=choice, reason="no", card=card.ref)
        await house.event(pressed, chance.choice((*operators * 3, *EVERYBODY)))


async def press_behind_a_stop(house: House, chance: random.Random) -> None:
    """Answer in the instant in which the turn is being ended."""
    ends = house.command(chance.choice(("stop", "new", "halt")))
    await house.services.ingress.admit(house.envelope(ends, chance.choice(EVERYBODY)))
    await press_any(house, chance, "once")


async def reload(house: House, chance: random.Random) -> None:
    """Change who is an operator, who is let in, and whether one's own calls may be approved."""
    operators, let_in = chance.sample(EVERYBODY, 2), chance.sample(EVERYBODY, 3)
    house.world.configure(
        people=tuple(
            PersonSettings(
                name=f"{who}", ids=(f"chat:{who}",), roles=("operator",) * (who in operators)
            )
            for who in EVERYBODY
        ),
        channels={"chat": ChannelSettings(allowed_users=tuple(let_in[chance.randrange(2) :]))},
        approvals=ApprovalSettings(requester_may_answer=chance.random() < 0.7),
    )
    await house.ask("reload")


def say_anywhere(text: str) -> Callable[[House, random.Random], Awaitable[object]]:
    async def say(house: House, chance: random.Random) -> None:
        room = chance.choice(("", "lobby"))
        await house.say(text, chance.choice(EVERYBODY), room=room)

    return say


DOES: tuple[Callable[[House, random.Random], Awaitable[object]], ...] = (
    *(say_anywhere("poke it"),) * 12,
    *(partial(press_any, choice="once"),) * 24,
    *(press_behind_a_stop,) * 3,
    partial(press_any, choice="for_a_time"),
    partial(press_any, choice="deny_with_reason"),
    *map(say_anywhere, ("/approve 1 2 3", "/deny 2", "/stop", "/new", "/retry", "/halt")),
    *(say_anywhere("/resume"),) * 6,
    *(reload,) * 2,
    lambda house, chance: house.ask("pair", words=f"revoke {chance.choice(EVERYBODY)}"),
    *(
        lambda house, chance, who=who: house.ask("pair", words=f"approve {who}")
        for who in EVERYBODY
    ),
    lambda house, chance: house.edit(f"p{chance.randint(1, 9)}", "no", chance.choice(EVERYBODY)),
    lambda house, chance: house.withdraw(f"p{chance.randint(1, 9)}", chance.choice(EVERYBODY)),
    lambda house, chance: house.advance(chance.choice((60, 1_000))),
)
"""What people and operators do, and the clock."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
async def test_no_order_of_events_and_kills_runs_an_unapproved_call(
    world: World, seed: int
) -> None:
    """For any events between a question, its answer and the start of the call (P3, P5).

    Each call ends once on record, and all chains verify.
    """
    chance, numbers = random.Random(seed), itertools.count(1)
    world.poke = Watched(POKE_SPEC, world)
    world.tools = (world.poke,)
    for _ in range(3):
        async with world.running() as house:
            for does in chance.choices(DOES, k=40):
                calls = (("poke", f'{{"a": {next(numbers)}}}') for _ in range(chance.randint(1, 3)))
                world.model.otherwise(asks_for(*calls), says("done"))
                await does(house, chance)
            await house.audited()  # it verifies every chain
            world.store.cut_after(chance.choice((*DurablePoint,)))
            await house.say_and_die("poke it")
        world.store.heal()
    assert world.poke.faults == []
    assert world.poke.runs
