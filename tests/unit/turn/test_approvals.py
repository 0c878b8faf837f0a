"""The questions of a conversation, among many that were asked before."""

import pytest

from tests.fakes.house import World
from tests.fakes.house_parts import CAPABILITIES
from tests.fakes.many_rows import put_a_page_before
from tests.fakes.scripted_model import asks_for
from zeroclaw.channel import Budget
from zeroclaw.gate import approval as approvals
from zeroclaw.store import Commit, DurablePoint, RowKind
from zeroclaw.value import replace


@pytest.mark.slow
async def test_a_card_is_settled_whole_behind_a_page_of_questions(world: World) -> None:
    """All its calls stay on it, however many the conversation has asked about before (P5)."""
    world.model.will(asks_for(("poke", '{"a": 1}'), ("poke", '{"a": 2}')))
    async with world.running() as house:
        await house.say("poke both")
        one = approvals.APPROVALS.of((await house.rows(RowKind.APPROVAL))[0])
        old = replace(approvals.stop(one, by="Ada", at=world.clock.now()), card="old", refs=())
        await put_a_page_before(world.store, approvals.to_put(old, expect=0))
        await house.press()
        outcome = house.outcome()
        assert outcome is not None
        assert len(outcome.card.calls) == 2


async def test_a_card_that_is_known_by_a_press_alone_shows_every_call(world: World) -> None:
    """It keeps what was not pressed, and shows how that ends, wherever it is answered (P5)."""
    world.model.will(asks_for(("poke", '{"a": 1}'), ("poke", '{"a": 2}')))
    async with world.running() as house:
        await house.say("poke both")
        rows = await house.rows(RowKind.APPROVAL)
        asked = [approvals.APPROVALS.of(row) for row in rows]
        unknown = tuple(
            approvals.to_put(replace(one, refs=()), expect=row.version)
            for row, one in zip(rows, asked, strict=True)
        )
        await world.store.commit(Commit(point=DurablePoint.ANSWERED, writes=unknown))
        await house.press(call=1)
        outcome = house.outcome()
        assert outcome is not None
        assert [call.approval for call in outcome.card.calls] == [one.id for one in asked]
        assert house.endings() == [("approved", "Ada")]
        await house.say("/approve 1")
        assert house.endings() == [("approved", "Ada"), ("approved", "Ada")]


async def test_where_calls_are_few_the_words_before_a_card_are_there_with_it(world: World) -> None:
    """Whoever asked reads what is about to be done, and then that somebody is asked (P6)."""
    few = Budget(per_s=1, burst=20)
    world.add_platform("chat", replace(CAPABILITIES, account_budget=few))
    world.model.will(asks_for(("poke", "{}"), saying="I am about to poke it."))
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.advance(3)
        assert house.card().calls[0].tool == "poke"
        assert house.texts("ben")[0] == "I am about to poke it."
