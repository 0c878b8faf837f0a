"""The questions of a conversation, among many that were asked before."""

from dataclasses import replace

import pytest

from tests.fakes.house import World
from tests.fakes.many_rows import put_a_page_before
from tests.fakes.scripted_model import asks_for
from zeroclaw.gate import approval as approvals
from zeroclaw.store import RowKind


@pytest.mark.slow
async def test_a_card_is_settled_whole_behind_a_page_of_questions(world: World) -> None:
    """All its calls stay on it, however many the conversation has asked about before (P5)."""
    world.model.will(asks_for(("poke", '{"a": 1}'), ("poke", '{"a": 2}')))
    async with world.running() as house:
        await house.say("poke both")
        one = approvals.decode((await house.rows(RowKind.APPROVAL))[0].body)
        old = replace(approvals.stop(one, by="Ada", at=world.clock.now()), card="old", refs=())
        await put_a_page_before(world.store, approvals.to_put(old, expect=0))
        await house.press()
        outcome = house.outcome()
        assert outcome is not None
        assert len(outcome.card.calls) == 2
