"""Answers to approvals: who may, once, and in time."""

from datetime import timedelta

import pytest

from tests.fakes.house import World
from tests.fakes.house_parts import PEOPLE
from tests.fakes.plain_tool import POKE as POKE_SPEC
from tests.fakes.plain_tool import PlainTool
from tests.fakes.scripted_model import asks_for
from zeroclaw import Answered
from zeroclaw.config.model import ApprovalSettings, PersonSettings
from zeroclaw.store import Commit, DurablePoint, RowKind
from zeroclaw.tool import Arguments, ToolContext
from zeroclaw.value import replace

POKE = asks_for(("poke", '{"a": 1}'))
DEADLINE_S = 900.0


async def test_an_approved_call_runs_once(world: World) -> None:
    """The answer is one commit, and the card shows it and who gave it (P5, S2-10)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        assert world.poke.runs == []
        assert await house.press() == "approved: `poke`"
        assert world.poke.runs == [{"a": 1}]
        assert house.endings() == [("approved", "Ada")]
        assert await house.press() == "already approved by Ada"
        assert await house.press("deny") == "already approved by Ada"
        assert world.poke.runs == [{"a": 1}]
        assert await house.audited() == ["proposed", "evaluated", "answered", "executed"]


async def test_a_denied_call_does_not_run(world: World) -> None:
    """The model is told who refused it and why, and goes on (S2-09, K2)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        toast = await house.press("deny_with_reason")
        assert toast == "why is `poke` denied? reply with the reason"
        assert house.endings() == []
        await house.press("deny_with_reason", reason="not on a Sunday")
        assert world.poke.runs == []
        assert "was refused by Ada, who said: not on a Sunday." in world.model.asked()[-1]
        assert await house.audited() == ["proposed", "evaluated", "answered", "denied"]


async def test_a_secret_in_a_reason_is_not_kept(world: World) -> None:
    """What people type into a denial is redacted before it is stored (P8)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        await house.press("deny_with_reason", reason="hunter2-and-then-some")
        assert "hunter2" not in world.model.asked()[-1]


async def test_another_operator_answers_instead(world: World) -> None:
    """The card goes to the other one, by whatever id; the requester's press is refused (P5)."""
    dora = PersonSettings(name="dora", ids=("chat:cleo",), roles=("operator",))
    world.configure(approvals=ApprovalSettings(requester_may_answer=False), people=(*PEOPLE, dora))
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        refused = await house.press(who="ada", at="cleo")
        assert refused == "whoever asks may not approve; somebody else has to answer this"
        assert await house.press(who="cleo") == "approved: `poke`"
        assert world.poke.runs == [{"a": 1}]


async def test_nobody_answers_their_own_question_once_that_is_forbidden(world: World) -> None:
    """A reload counts for what is open by then, as every other change of who may answer (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        world.configure(approvals=ApprovalSettings(requester_may_answer=False))
        await house.ask("reload")
        refused = await house.press(who="ada")
        assert refused == "whoever asks may not approve; somebody else has to answer this"
        assert world.poke.runs == []


async def test_a_named_approver_is_asked_and_nobody_else(world: World) -> None:
    """`approvals.approvers` says whom a card goes to and whose answer counts (P5)."""
    world.configure(approvals=ApprovalSettings(approvers=("person:ben",)))
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        assert house.texts() == ["Waiting for ben to approve `poke`."]
        assert await house.press(who="ada", at="ben") == "only ben may answer this"
        assert await house.press(who="ben") == "approved: `poke`"


async def test_a_press_at_the_deadline_is_too_late(world: World) -> None:
    """Silence has become a denial, whether or not the timer has fired (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        await house.advance(DEADLINE_S - 1)
        assert house.endings() == []
        await house.advance(1)
        assert house.endings() == [("expired", "")]
        assert await house.press() == "too late: it expired at 12:15:00 UTC"
        assert "nobody answered in time" in world.model.asked()[-1]
        assert await house.audited() == ["proposed", "evaluated", "answered", "denied"]


async def test_a_press_before_the_timer_fires_can_be_late_too(world: World) -> None:
    """It was admitted at the deadline, so it has lost (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        world.clock.leap(timedelta(seconds=DEADLINE_S))
        assert await house.press() == "too late: it expired at 12:15:00 UTC"
        assert world.poke.runs == []
        assert house.endings() == [("expired", "")]


async def test_a_deadline_meets_a_card_that_becomes_known(world: World) -> None:
    """The row has just changed; it is read anew, and ended as it stands now (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        raced: list[Commit] = []

        def touch(commit: Commit) -> None:
            if commit.point is DurablePoint.ANSWERED and not raced:
                raced.append(commit)
                world.store.touch(RowKind.APPROVAL)

        world.store.before = touch
        await house.advance(DEADLINE_S)
        assert house.endings() == [("expired", "")]
        await house.advance(10)
        assert await house.states() == ["answered"]


async def test_a_late_press_on_an_unknown_copy_settles_it_too(world: World) -> None:
    """Even when the question has ended already (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        await house.press()
        card = house.card()
        await world.platforms["chat"].ask(house.place(), card)
        assert house.endings() == []
        assert await house.press() == "already approved by Ada"
        assert house.endings() == [("approved", "Ada")]


@pytest.mark.parametrize("is_over", [False, True])
async def test_a_press_of_whoever_may_not_answer_says_nothing_of_where_cards_stand(
    world: World, *, is_over: bool
) -> None:
    """On Telegram a client can name any message of the bot's as the card that it pressed (P5)."""
    async with world.running() as house:
        await house.say("hi", "ben")
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
        message = "somewhere"
        raise RuntimeError(message)


async def test_what_cannot_be_named_is_offered_once_only(world: World) -> None:
    """The choice is not on the card, and pressing it all the same is refused."""
    exec_only = Nameless(
        type(POKE_SPEC)(name="poke", description="", parameters={}, effects=frozenset({"network"}))
    )
    world.tools = (exec_only,)
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        assert "for_a_time" not in house.card().choices
        assert await house.press("for_a_time") == "this answer is not offered here"
