"""The approval requests of a conversation: where they go, and how the end of a delivery affects them."""

import pytest

from tests.fakes.house import World
from tests.fakes.house_parts import CAPABILITIES
from tests.fakes.memory_store import put_a_page_before
from tests.fakes.scripted_channel import Lost
from tests.fakes.scripted_model import POKE, TWO_POKES, asks_for
from zeroclaw.channel import Budget
from zeroclaw.conversation.inbox import INBOX, ApprovalAnswered, item_put
from zeroclaw.delivery import rows as outbox_rows
from zeroclaw.delivery.rows import OUTBOX, ApprovalCard
from zeroclaw.envelope import ApprovalId, ItemId
from zeroclaw.errors import ChannelRejected, ChannelUnavailable
from zeroclaw.gate import approval as approvals
from zeroclaw.gate.receipt import detach
from zeroclaw.store import Commit, Delete, DurablePoint, Query, RowKind
from zeroclaw.turn.session import read_history
from zeroclaw.value import replace


async def test_a_call_that_a_person_denied_has_a_receipt(world: World) -> None:
    """The model can prove that it did not run, like every other outcome (P7)."""
    async with world.told("poke it", asks_for(("poke", "{}"))) as house:
        await house.press("deny")
        [row] = await house.rows(RowKind.APPROVAL)
        assert row.conversation is not None
        [issued] = (await read_history(world.store, row.conversation)).receipts
        result = world.model.requests[-1].messages[-1].content
        assert (issued.outcome, issued.token) == ("denied", detach(result)[1])


@pytest.mark.slow
async def test_a_card_is_settled_whole_behind_a_page_of_questions(world: World) -> None:
    """All its calls stay on it, however many the conversation has asked about before (P5)."""
    world.model.will(asks_for(("poke", '{"a": 1}'), ("poke", '{"a": 2}')))
    async with world.told("poke both") as house:
        approval = approvals.APPROVALS.of((await house.rows(RowKind.APPROVAL))[0])
        old = replace(approvals.stop(approval, by="Ada", at=world.clock.now()), card="old", refs=())
        await put_a_page_before(world.store, approvals.to_put(old))
        await house.press()
        outcome = house.outcome()
        assert outcome is not None
        assert len(outcome.card.calls) == 2


async def test_a_card_that_is_known_by_a_press_alone_shows_every_call(world: World) -> None:
    """It keeps what was not pressed, and shows how that ends, wherever it is answered (P5)."""
    world.model.will(asks_for(("poke", '{"a": 1}'), ("poke", '{"a": 2}')))
    async with world.told("poke both") as house:
        rows = await house.rows(RowKind.APPROVAL)
        stored = [approvals.APPROVALS.of(row) for row in rows]
        unknown = tuple(approvals.to_put(replace(approval, refs=())) for approval in stored)
        await world.store.commit(Commit(point=DurablePoint.ANSWERED, writes=unknown))
        await house.press(call=1)
        outcome = house.outcome()
        assert outcome is not None
        assert [call.approval for call in outcome.card.calls] == [
            approval.id for approval in stored
        ]
        assert house.endings() == [("approved", "Ada")]
        await house.say("/approve 1")
        assert house.endings() == [("approved", "Ada"), ("approved", "Ada")]


async def test_where_calls_are_few_the_words_before_a_card_are_there_with_it(world: World) -> None:
    """The requester reads what is about to be done, and then that an approval is requested (P6)."""
    few = Budget(per_s=1, burst=20)
    world.add_platform("chat", replace(CAPABILITIES, account_budget=few))
    world.model.will(asks_for(("poke", "{}"), saying="I am about to poke it."))
    async with world.told("poke it", by="ben") as house:
        await house.advance(3)
        assert house.card().calls[0].tool == "poke"
        assert house.texts("ben")[0] == "I am about to poke it."


# --- in the chat that is configured for all questions ---------------------------------------------

TOLD = "An approval card in `chat` was refused by the platform: chat not found."


def routed(world: World, **settings: object) -> World:
    """Have all questions put into the chat `team`."""
    more = {"chat": "chat:team", **settings}
    world.configure(approvals=world.config.approvals.model_copy(update=more))
    return world


async def test_a_question_that_the_configured_chat_refuses_is_put_in_private(world: World) -> None:
    """A bot that is no member there would let every call wait for its deadline (P10)."""
    routed(world).model.will(TWO_POKES)
    world.platforms["chat"].will("ask", ChannelRejected("chat not found"))
    async with world.told("poke both", by="ben") as house:
        assert TOLD in house.texts()
        assert [call.number for call in house.card().calls] == [1, 2]
        await house.press()
        await house.say("/approve 2")
        assert house.endings() == [("approved", "Ada"), ("approved", "Ada")]
        assert "ok" in house.texts("ben")
        assert len(world.poke.runs) == 2


async def test_a_requester_gets_no_card_in_the_chat_where_they_may_not_answer(world: World) -> None:
    """A refusal opens no way around the second pair of eyes (P5)."""
    operators = ("person:ada", "person:ben")
    routed(world, approvers=operators, requester_may_answer=False).model.will(POKE)
    world.platforms["chat"].will("ask", ChannelRejected("chat not found"))
    async with world.told("poke it") as house:
        assert not any(message.card for message in world.platforms["chat"].standing(house.place()))
        assert house.card("ben").calls[0].tool == "poke"
        await house.press(who="ben")
        assert house.endings("ben") == [("approved", "Ben")]


async def test_where_all_read_the_card_the_requester_may_still_not_answer(world: World) -> None:
    """Neither by their press nor by its number (P5)."""
    operators = ("person:ada", "person:ben")
    routed(world, approvers=operators, requester_may_answer=False).model.will(POKE)
    async with world.told("poke it") as house:
        assert await house.press(at="team") == (
            "whoever asks may not approve; somebody else has to answer this"
        )
        await house.say("/approve 1", room="team")
        assert house.endings("team") == []
        assert world.poke.runs == []
        await house.press(who="ben", at="team")
        assert house.endings("team") == [("approved", "Ben")]


async def test_a_question_that_ended_meanwhile_is_put_to_no_other_approver(world: World) -> None:
    """Operators read only that a card was refused."""
    routed(world).model.will(POKE)
    down = [ChannelUnavailable("down")] * 3
    world.platforms["chat"].will("ask", *down, ChannelRejected("chat not found"))
    async with world.told("poke it", by="ben") as house:
        await house.say("/stop", "ben")
        await house.advance(60)
        assert house.texts() == [
            "An approval card in `chat` was refused by the platform: chat not found."
        ]


async def test_no_approver_is_asked_twice_for_a_card_that_each_refuses(world: World) -> None:
    """A question that no chat takes waits for its deadline, and is tried in each of them once."""
    routed(world).model.will(POKE)
    refused = [ChannelRejected("chat not found"), ChannelRejected("blocked")]
    world.platforms["chat"].will("ask", *refused)
    async with world.told("poke it", by="ben") as house:
        assert [call.name for call in world.platforms["chat"].calls].count("ask") == 2
        await house.advance(900)
        assert await house.states() == ["answered", "answered"]  # the message, and the deadline


# --- what the end of a delivery means to questions, answers and operators -------------------------


async def test_a_card_that_arrives_after_its_question_ended_is_settled(world: World) -> None:
    """All its calls are shown on it, ended or open (P5)."""
    world.model.will(TWO_POKES)
    platform = world.platforms["chat"]
    platform.will("ask", *[ChannelUnavailable("down")] * 3)
    async with world.told("poke both", by="ben") as house:
        number, _ = await house.numbers()
        await house.say(f"/deny {number}")
        assert [message for message in platform.standing(house.place()) if message.card] == []
        await house.advance(60)
        outcome = house.outcome()
        assert outcome is not None
        assert len(outcome.card.calls) == 2
        assert house.endings() == [("denied", "Ada")]
        await house.press(call=1)
        assert house.endings() == [("denied", "Ada"), ("approved", "Ada")]


async def test_a_pressed_card_stands_although_its_send_is_not_on_record(world: World) -> None:
    """Killed before the record, and pressed by the time it is looked up: no person has two (P5)."""
    platform = world.add_platform("chat", replace(CAPABILITIES, idempotent_send=False))
    async with world.told("poke both", TWO_POKES) as house:
        await house.press()
    (row,) = [
        row
        for row in await world.store.select(Query(kind=RowKind.OUTBOX))
        if isinstance(OUTBOX.of(row), ApprovalCard)
    ]
    shown = OUTBOX.of(row)
    assert isinstance(shown, ApprovalCard)
    await world.store.write(outbox_rows.changed(row, replace(shown, ref=None), "sending"))
    async with world.running() as house:
        await house.settle()
        assert len([message for message in platform.standing(house.place()) if message.card]) == 1
        assert house.endings() == [("approved", "Ada")]
        again = await world.store.get(RowKind.OUTBOX, row.key)
        assert again is not None
        assert OUTBOX.of(again) == shown


async def test_a_card_that_the_platform_refuses_is_reported_elsewhere(world: World) -> None:
    """And so is the question, which stays until its deadline."""
    world.local = ("web",)
    world.add_channel("web")
    world.model.will(POKE)
    world.platforms["chat"].will("ask", ChannelRejected("too long"))
    async with world.told("poke it") as house:
        assert set(house.texts("operator", channel="web")) == {
            "An approval card in `chat` was refused by the platform: too long.",
            "1. poke ['a']",
        }
        await house.advance(900)
        assert await house.states() == ["answered", "answered"]  # the message, and the deadline


async def test_a_refused_note_is_reported_but_a_refused_report_is_not(world: World) -> None:
    """Or reports about reports would never end."""
    refused = ChannelRejected("no")
    world.platforms["chat"].will("send", refused, refused, refused)
    async with world.told("/whoami", by="ben") as house:
        assert house.texts() == []
        assert [row.state for row in await house.rows(RowKind.OUTBOX)] == ["refused", "refused"]
        assert world.store.points().count(DurablePoint.REFUSED) == 2


async def test_an_answer_that_may_have_arrived_is_reported_as_such(world: World) -> None:
    """Where the operator chose that it is held back, no notice says that it was refused (P1)."""
    held = replace(CAPABILITIES, can_edit=False, idempotent_send=False, may_repeat=False)
    world.add_platform("chat", held)
    async with world.running() as house:
        world.platforms["chat"].will("send", Lost())
        await house.say("hello", "ben")
        await house.advance(60)
        assert house.texts() == [
            "An answer to Ben in `chat` may or may not have arrived: "
            "the answer was lost, and it is not sent again."
        ]
        assert await house.states() == ["failed"]


async def test_an_approval_that_is_gone_is_passed_over(world: World) -> None:
    """A card whose question was deleted by retention is shown and forgotten."""
    world.model.will(POKE)
    world.platforms["chat"].will("ask", ChannelUnavailable("down"))
    async with world.told("poke it") as house:
        world.store.forget(RowKind.APPROVAL)
        await house.advance(10)
        assert house.card().calls[0].tool == "poke"


@pytest.mark.parametrize("is_gone", [True, False])
async def test_an_answer_without_an_answered_question_changes_nothing(
    world: World, *, is_gone: bool
) -> None:
    """Retention deleted it, or an older file was brought back, before the daemon came up again."""
    async with world.told("poke it", POKE) as house:
        (question,) = await house.rows(RowKind.APPROVAL)
        (row,) = await house.rows(RowKind.INBOX)
    content = ApprovalAnswered(approval=ApprovalId(question.key))
    answer = replace(INBOX.of(row), id=ItemId(world.ids.ulid()), content=content)
    deletions = [Delete(kind=RowKind.APPROVAL, key=question.key)] * is_gone
    await world.store.write(*deletions, item_put(answer, "control"))
    async with world.running() as house:
        assert await house.states() == ["taken", "answered"]
        await house.say("/stop")
        assert await house.states("stopped") == ["stopped"]
        assert world.poke.runs == []


@pytest.mark.parametrize("before", ["hello", "/stop"])
async def test_an_answer_to_a_damaged_question_blocks_no_conversation(
    world: World, before: str
) -> None:
    """Whether the turn waits or is over: `/stop` ends it, and the next message is answered."""
    async with world.told("poke it", POKE) as house:
        await house.say(before)
        (question,) = await house.rows(RowKind.APPROVAL)
        (row, *_) = await house.rows(RowKind.INBOX)
    content = ApprovalAnswered(approval=ApprovalId(question.key))
    answer = replace(INBOX.of(row), id=ItemId(world.ids.ulid()), content=content)
    await world.store.write(item_put(answer, "control"))
    world.store.damage(question)
    async with world.told("/stop") as house:
        await house.say("how are you?")
        assert house.texts()[-1] == "ok"
        assert world.poke.runs == []
