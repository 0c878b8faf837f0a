"""What the end of a delivery means to questions, answers and operators."""

from tests.fakes.house import World
from tests.fakes.house_parts import CAPABILITIES
from tests.fakes.scripted_calls import Lost
from tests.fakes.scripted_model import asks_for
from zeroclaw.delivery import rows as outbox_rows
from zeroclaw.delivery.rows import OUTBOX, ApprovalCard
from zeroclaw.errors import ChannelRejected, ChannelUnavailable
from zeroclaw.store import Commit, DurablePoint, Query, RowKind
from zeroclaw.value import replace

POKE = asks_for(("poke", '{"a": 1}'))
TWO_POKES = asks_for(("poke", '{"a": 1}'), ("poke", '{"a": 2}'))


async def test_a_card_that_arrives_after_its_question_ended_is_settled(world: World) -> None:
    """All its calls are shown on it, ended or open (P5)."""
    world.model.will(TWO_POKES)
    platform = world.platforms["chat"]
    platform.will("ask", *[ChannelUnavailable("down")] * 3)
    async with world.running() as house:
        await house.say("poke both", "ben")
        number, _ = await house.numbers()
        await house.say(f"/deny {number}")
        assert [shown for shown in platform.standing(house.place()) if shown.card] == []
        await house.advance(60)
        outcome = house.outcome()
        assert outcome is not None
        assert len(outcome.card.calls) == 2
        assert house.endings() == [("denied", "Ada")]
        await house.press(call=1)
        assert house.endings() == [("denied", "Ada"), ("approved", "Ada")]


async def test_a_pressed_card_stands_although_its_send_is_not_on_record(world: World) -> None:
    """Killed before the record, and pressed by the time it is looked for: nobody has two (P5)."""
    platform = world.add_platform("chat", replace(CAPABILITIES, idempotent_send=False))
    world.model.will(TWO_POKES)
    async with world.running() as house:
        await house.say("poke both")
        await house.press()
    (row,) = [
        row
        for row in await world.store.select(Query(kind=RowKind.OUTBOX))
        if isinstance(OUTBOX.of(row), ApprovalCard)
    ]
    shown = OUTBOX.of(row)
    assert isinstance(shown, ApprovalCard)
    unknown = outbox_rows.changed(row, replace(shown, ref=None), "sending")
    await world.store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=(unknown,)))
    async with world.running() as house:
        await house.settle()
        assert len([one for one in platform.standing(house.place()) if one.card]) == 1
        assert house.endings() == [("approved", "Ada")]
        again = await world.store.get(RowKind.OUTBOX, row.key)
        assert again is not None
        assert OUTBOX.of(again) == shown


async def test_a_card_that_the_platform_refuses_is_told_elsewhere(world: World) -> None:
    """The question stays until its deadline."""
    world.local = ("web",)
    world.add_channel("web")
    world.model.will(POKE)
    world.platforms["chat"].will("ask", ChannelRejected("too long"))
    async with world.running() as house:
        await house.say("poke it")
        assert house.texts("operator", channel="web") == [
            "An approval card in `chat` was refused by the platform: too long."
        ]
        await house.advance(900)
        assert await house.states() == ["answered"]


async def test_a_refused_note_is_told_but_a_refused_report_is_not(world: World) -> None:
    """Or reports about reports would never end."""
    refused = ChannelRejected("no")
    world.platforms["chat"].will("send", refused, refused, refused)
    async with world.running() as house:
        await house.say("/whoami", "ben")
        assert house.texts() == []
        assert [row.state for row in await house.rows(RowKind.OUTBOX)] == ["refused", "refused"]
        assert world.store.points().count(DurablePoint.REFUSED) == 2


async def test_an_answer_that_may_have_arrived_is_told_as_that(world: World) -> None:
    """Where the operator chose that it is held back, nobody reads that it was refused (P1)."""
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
    async with world.running() as house:
        await house.say("poke it")
        world.store.forget(RowKind.APPROVAL)
        await house.advance(10)
        assert house.card().calls[0].tool == "poke"
