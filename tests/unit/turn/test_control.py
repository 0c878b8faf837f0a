"""The control lane: what steers a running turn, and what comes between turns."""

import asyncio
from datetime import timedelta
from typing import Literal

import pytest

from tests.fakes.house import World
from tests.fakes.memory_store import put_a_page_before
from tests.fakes.scripted_model import LOOK, POKE, asks_for, says
from zeroclaw.config.model import ApprovalSettings, PersonSettings, PolicySettings
from zeroclaw.conversation.inbox import INBOX, Amend, PersonMessage, Stop, item_put
from zeroclaw.envelope import Address, Choice, ItemId, MessageRef
from zeroclaw.gate import audit
from zeroclaw.gate.approval import APPROVALS, to_put, with_ref
from zeroclaw.provider import TextDelta
from zeroclaw.store import Commit, DurablePoint, LogKind, Put, RowKind, Write
from zeroclaw.text.catalogue import CALL_NOT_ANSWERED, CALL_TOOK_TOO_LONG, CALL_UNREACHABLE, SECONDS
from zeroclaw.value import replace


async def test_a_call_that_must_not_be_cancelled_is_waited_for(world: World) -> None:
    """The turn's end comes after it."""
    world.model.will(asks_for(("burn", "{}")))
    world.burn.hold = asyncio.Event()
    async with world.told("burn it") as house:
        await house.press()
        await house.say("/stop")
        assert await house.states() == ["taken", "answered", "control"]
        world.burn.hold.set()
        await house.settle()
        assert world.burn.ended == 1
        assert await house.states() == ["stopped", "answered", "answered"]


async def test_only_its_person_or_an_operator_may_stop_a_turn(world: World) -> None:
    """Another person reads who may, and the turn goes on."""
    held = asyncio.Event()
    world.model.will((held, *says("done")), (asyncio.Event(),))
    async with world.told("one", by="ben", room="lobby") as house:
        await house.say("/stop", "cleo", room="lobby")
        assert house.texts(room="lobby") == ["Only Ben or an operator may stop this."]
        held.set()
        await house.settle()
        assert house.texts(room="lobby")[-1] == "done"
        await house.say("two", "ben", room="lobby")
        await house.say("/stop", "ada", room="lobby")
        assert house.texts(room="lobby")[-1] == "_Stopped by Ada._"


async def test_a_stop_amid_code_is_not_shown_as_code(world: World) -> None:
    async with world.told("one", (TextDelta(text="```py\na\nb\n"), asyncio.Event())) as house:
        await house.say("/stop")
        assert house.texts() == ["```py\na\nb\n```\n\n_Stopped by Ada._"]


async def test_two_stops_end_one_turn(world: World) -> None:
    """The second finds nothing running, and what waited is answered."""
    async with world.told("one", (asyncio.Event(),)) as house:
        await house.say("two")
        admit = house.services.ingress.admit
        await admit(house.envelope(house.command("stop")))
        await admit(house.envelope(house.command("stop")))
        await house.settle()
        assert house.texts() == ["_Stopped by Ada._", "Nothing is running.", "ok"]


async def test_an_approved_call_that_has_not_started_does_not_run(world: World) -> None:
    """The answer is on record, the turn ended first (K24)."""
    world.model.will(asks_for(("poke", '{"a": 1}'), ("poke", '{"a": 2}')))
    async with world.told("poke both") as house:
        await house.press()
        await house.say("/stop")
        assert world.poke.runs == []
        assert house.endings() == [("approved", "Ada"), ("stopped", "Ada")]


@pytest.mark.parametrize(
    ("choice", "shown"), [("once", ("stopped", "Ada")), ("for_a_time", ("approved", "Ada"))]
)
@pytest.mark.parametrize("ends", ["stop", "halt", "new"])
async def test_an_answer_whose_turn_is_over_is_shown_as_one_that_ran_nothing(
    world: World, ends: str, choice: Choice, shown: tuple[str, str]
) -> None:
    """Admitted before the end and read after it: audited as late; what it granted stands (P5)."""
    async with world.told("poke it", POKE) as house:
        door = house.services.ingress
        stop = house.envelope(house.command(ends))
        press = house.envelope(house.pressed(choice))
        await door.admit(stop)
        await door.admit(press)
        await house.settle()
        assert world.poke.runs == []
        first, *others = await house.states()
        assert (first, {*others}) == ("stopped", {"answered"})
        assert "answered" in await house.audited()
        assert house.endings() == [shown]
        assert len(await house.rows(RowKind.APPROVAL, shown[0])) == 1


async def test_a_deadline_that_comes_as_the_turn_is_stopped_answers_nothing(world: World) -> None:
    """It is audited as the deadline's, and not as the requester's (P5)."""
    async with world.told("poke it", POKE) as house:
        await house.services.ingress.admit(house.envelope(house.command("stop")))
        world.clock.leap(timedelta(seconds=901))
        await house.services.open_requests.end_overdue()
        await house.settle()
        (stream,) = await world.store.streams(LogKind.AUDIT)
        chain = [audit.read(entry.body) for entry in await world.store.read(LogKind.AUDIT, stream)]
        answered = [entry for entry in chain if getattr(entry, "kind", "") == "answered"]
        assert [entry.by for entry in answered if isinstance(entry, audit.Entry)] == ["deadline"]
        assert house.endings() == [("expired", "")]


async def test_a_card_that_becomes_known_as_a_late_answer_is_taken_keeps_its_place(
    world: World,
) -> None:
    """Its request is ended as it is by then, so that this card is known to show the end too."""
    world.model.will(POKE)
    elsewhere = MessageRef(address=Address(channel="chat", account="", chat="den"), message="9")

    async def learn(writes: tuple[Write, ...]) -> None:
        ended = (
            write for write in writes if isinstance(write, Put) and write.kind is APPROVALS.kind
        )
        if any(row.state == "stopped" for row in ended):
            [row] = await world.store.select(APPROVALS.where(state="approved"))
            known = with_ref(APPROVALS.of(row), elsewhere)
            put = to_put(known)
            world.store.meanwhile = None
            await world.store.commit(Commit(point=DurablePoint.ASKED, writes=(put,)))

    async with world.told("poke it") as house:
        press = house.envelope(house.pressed())
        world.store.meanwhile = learn
        await house.services.ingress.admit(house.envelope(house.command("stop")))
        await house.services.ingress.admit(press)
        await house.settle()
        [row] = await house.rows(RowKind.APPROVAL, "stopped")
        assert elsewhere in APPROVALS.of(row).refs
        assert "control" not in await house.states()


# --- edits ---------------------------------------------------------------------------------------


async def test_an_edit_that_is_durable_before_the_batch_ends_joins_it(world: World) -> None:
    """The running turn reads it, even before the announcement of the edit."""
    world.model.will(LOOK, says("done"))
    world.look.hold = asyncio.Event()
    async with world.told("look") as house:
        row = (await house.rows(RowKind.INBOX))[0]
        edit = replace(
            INBOX.of(row), id=ItemId("1"), content=Amend(message="p1", text="look closely")
        )
        writes = (item_put(edit, "control"),)
        await world.store.commit(Commit(point=DurablePoint.ADMITTED, writes=writes))
        world.look.hold.set()
        await house.settle()
        note = "user: [Ada edited their message. It now reads:]\nlook closely"
        assert world.model.asked()[-1] == note
        assert DurablePoint.STEERED in world.store.points()


async def test_what_another_person_edits_steers_no_turn_of_ones_own(world: World) -> None:
    """A turn acts for one person alone; what others change is a note of the history (§4)."""
    async with world.told("hello", by="ben", room="room") as house:
        world.model.will(LOOK, says("done"))
        world.look.hold = asyncio.Event()
        await house.say("look", room="room")
        await house.edit("p1", "run it", "ben", room="room")
        await house.edit("p2", "closely", room="room")
        world.look.hold.set()
        await house.settle()
        requests = world.model.asked()
        assert requests[-1] == "user: [Ada edited their message. It now reads:]\nclosely"
        assert not [text for text in requests if "run it" in text]
        await house.say("and now?", room="room")
        assert [text for text in world.model.asked() if "run it" in text]
        assert await house.states() == ["answered", "answered", "joined", "joined", "answered"]


async def test_an_edit_that_no_batch_took_is_a_note(world: World) -> None:
    """It starts no turn; the next one reads it."""
    held = asyncio.Event()
    async with world.told("one", (held, *says("done"))) as house:
        await house.edit("p1", "two")
        held.set()
        await house.settle()
        assert await house.states() == ["answered", "joined"]
        assert len(world.model.requests) == 1
        await house.say("three")
        assert world.model.asked()[2] == "user: [Ada edited their message. It now reads:]\ntwo"


async def test_a_message_withdrawn_while_it_is_answered_is_a_note(world: World) -> None:
    """A turn that has begun is answered."""
    world.model.will(LOOK, says("done"))
    world.look.hold = asyncio.Event()
    async with world.told("look") as house:
        await house.withdraw("p1")
        world.look.hold.set()
        await house.settle()
        assert world.model.asked()[-1] == "user: [Ada deleted their message.]"
        assert await house.states() == ["answered", "joined"]


async def test_an_edit_of_a_stopped_turn_is_not_lost(world: World) -> None:
    """Held for a batch that never came, it joins the history with the end."""
    async with world.told("poke it", POKE) as house:
        await house.edit("p1", "poke it twice")
        await house.say("/stop")
        assert await house.states() == ["stopped", "joined", "answered"]


@pytest.mark.slow
async def test_a_stop_is_seen_behind_a_page_of_edits(world: World) -> None:
    """However much the lane holds until the next batch, all of it is read (S4-20)."""
    async with world.told("one", (asyncio.Event(),)) as house:
        row = (await house.rows(RowKind.INBOX))[0]
        edit = replace(INBOX.of(row), content=Amend(message="p1", text="two"))
        await put_a_page_before(world.store, item_put(edit, "control"))
        await house.say("/stop")
        assert house.texts() == ["_Stopped by Ada._"]


@pytest.mark.parametrize("cause", ["new", "forget"])
async def test_a_stop_from_before_a_turn_ends_no_turn(
    world: World, cause: Literal["new", "forget"]
) -> None:
    """What it was meant for has ended, and this one has begun since (P1)."""
    held = asyncio.Event()
    async with world.told("one", (held, *says("ok"))) as house:
        row = (await house.rows(RowKind.INBOX))[0]
        stop = replace(INBOX.of(row), id=ItemId("0"), content=Stop(cause=cause))
        await world.store.commit(
            Commit(
                point=DurablePoint.ADMITTED,
                conversation=stop.conversation,
                writes=(item_put(stop, "control"),),
            )
        )
        house.services.mailboxes.wake(stop.conversation)
        await house.settle()
        held.set()
        await house.settle()
        assert house.texts() == ["ok"]


# --- what never happens --------------------------------------------------------------------------


async def test_an_answer_without_its_question_is_dropped(world: World) -> None:
    """Retention may have taken the question; the lane goes on."""
    async with world.told("poke it", POKE) as house:
        await house.services.ingress.admit(house.envelope(house.command("stop")))
        await house.services.ingress.admit(house.envelope(house.pressed()))
        world.store.forget(RowKind.APPROVAL)
        await house.settle()
        assert await house.states() == ["stopped", "answered", "answered"]


@pytest.mark.parametrize("busy", [True, False])
async def test_an_item_in_the_wrong_lane_is_a_fault(world: World, busy: bool) -> None:
    """The conversation is tried again and again, and nothing runs that should not (P9)."""
    held = asyncio.Event()
    async with world.told("one", *([(held, *says("ok"))] if busy else [])) as house:
        row = (await house.rows(RowKind.INBOX))[0]
        item = replace(INBOX.of(row), id=ItemId("0"), content=PersonMessage(text="x"))
        state = "control" if busy else "queued"
        wrong = replace(item, content=PersonMessage(text="x") if busy else Stop(cause="stop"))
        await world.store.commit(
            Commit(
                point=DurablePoint.ADMITTED,
                conversation=item.conversation,
                writes=(item_put(wrong, state),),
            )
        )
        house.services.mailboxes.wake(item.conversation)
        await house.settle()
        assert world.clock.sleeping()[0] == 1.0
        assert len(world.model.requests) == 1


# --- in the reader's language ---------------------------------------------------------------------

DENY: dict[str, object] = {
    "id": "no",
    "effect": "deny",
    "principals": ["anyone"],
    "actions": ["tool:look"],
}


@pytest.fixture
def german(world: World) -> World:
    ada = PersonSettings(name="ada", ids=("chat:ada",), roles=("operator",), language="de")
    world.configure(people=(ada,))
    return world


async def test_a_call_that_policy_denies(german: World) -> None:
    german.configure(policy=PolicySettings(statement=(DENY,)))
    async with german.told("/tool look {}") as house:
        assert "`look` wurde nicht ausgeführt: " in house.texts()[-1]
        assert "verbietet" in house.texts()[-1]


async def test_a_question_without_an_answer_in_time(german: World) -> None:
    async with german.told("/tool poke {}") as house:
        await house.advance(german.config.approvals.timeout_s)
        assert CALL_NOT_ANSWERED.to("de", tool="poke") in house.texts()[-1]


async def test_a_question_that_is_answered_with_no(german: World) -> None:
    async with german.told("/tool poke {}") as house:
        await house.press("deny")
        assert "`poke` wurde nicht ausgeführt: abgelehnt von " in house.texts()[-1]


async def test_a_question_without_an_approver(german: World) -> None:
    german.configure(approvals=ApprovalSettings(requester_may_answer=False))
    async with german.told("/tool poke {}") as house:
        assert CALL_UNREACHABLE.to("de", tool="poke") in house.texts()[-1]


async def test_a_run_that_takes_too_long(german: World) -> None:
    german.look.spec = replace(german.look.spec, timeout_s=0.0)
    german.look.hold = asyncio.Event()
    result_text = CALL_TOOK_TOO_LONG.to("de", tool="look", time=SECONDS.about(number="0"))
    async with german.told("/tool look {}") as house:
        assert result_text in house.texts()[-1]
