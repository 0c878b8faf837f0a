"""A card that can't be shown is no approval, and no trap either (P5)."""

from pathlib import Path

import pytest
from zeroclaw_test_platform.faults import Lose, Refuse, TooMany, Unavailable

from tests.journeys.test_an_approval import ask_to_knock
from tests.journeys.world import open_world

pytestmark = pytest.mark.slow


async def test_a_card_is_shown_when_the_platform_is_back(tmp_path: Path) -> None:
    """A 429 and an outage delay it."""
    async with open_world(tmp_path) as world:
        world.platform.will("ask", Unavailable(), TooMany(retry_after_s=0.2))
        card = await ask_to_knock(world)
        await world.press("olga", card)
        await world.expect("ann", "So be it.")
        assert len(world.chat("olga").cards) == 1


async def test_a_card_whose_answer_was_lost_stands_once_and_is_settled(tmp_path: Path) -> None:
    """The repeat is the same card, by its key."""
    async with open_world(tmp_path) as world:
        world.platform.will("ask", Lose(carried_out=True))
        card = await ask_to_knock(world)
        await world.until(lambda: len(world.platform.called("ask")) == 2)
        await world.press("olga", card)
        await world.until(lambda: card.outcomes == ["approved"])
        await world.expect("ann", "So be it.")
        assert len(world.chat("olga").cards) == 1
        assert world.bench.ran("knock") == ["on wood"]


async def test_both_cards_are_settled_where_a_send_can_not_be_repeated_unseen(
    tmp_path: Path,
) -> None:
    """The unrecorded one is settled when it is pressed, and nothing runs twice."""
    async with open_world(tmp_path, platform={"idempotent_send": False}) as world:
        world.platform.will("ask", Lose(carried_out=True))
        await ask_to_knock(world)
        await world.until(lambda: len(world.chat("olga").cards) == 2)
        lost, recorded = world.chat("olga").cards
        await world.press("olga", lost)
        await world.expect("ann", "So be it.")
        await world.until(
            lambda: (lost.outcomes, recorded.outcomes) == (["approved"], ["approved"])
        )
        assert world.bench.ran("knock") == ["on wood"]


async def test_a_press_on_a_card_that_was_never_recorded_settles_it_late(tmp_path: Path) -> None:
    """The second card is touched after the first was answered: it shows how that ended."""
    async with open_world(tmp_path, platform={"idempotent_send": False}) as world:
        world.platform.will("ask", Lose(carried_out=True))
        await ask_to_knock(world)
        await world.until(lambda: len(world.chat("olga").cards) == 2)
        lost, recorded = world.chat("olga").cards
        await world.press("olga", recorded, "deny")
        await world.until(lambda: recorded.outcomes == ["denied"])
        late = await world.press("olga", lost)
        assert "already denied" in late.toast
        await world.until(lambda: lost.outcomes == ["denied"])
        await world.expect("ann", "So be it.")
        assert world.bench.runs == []


async def test_a_card_that_the_platform_refuses_ends_with_its_deadline(tmp_path: Path) -> None:
    """No operator could see it: the asker hears so, the call does not run, and the turn continues."""
    async with open_world(tmp_path, approvals={"timeout_s": 3.0}) as world:
        world.platform.will("ask", Refuse(), times=None)
        world.model.call("knock", {"what": "on wood"}, round=0)
        world.model.say("So be it.", round=1)
        await world.say("ann", "please knock")
        await world.until(lambda: world.chat("ann").answers[-1:] == ["So be it."])
        *_, notice, _ = world.chat("ann").answers
        assert notice.startswith("Nobody who may approve `knock` can be reached.")
        assert world.bench.runs == []
        (result,) = world.tool_results()
        assert "no operator can be reached" in result
        assert "did not run" in result


async def test_a_settle_that_fails_is_tried_again(tmp_path: Path) -> None:
    """The card ends showing how it ended, after every fault of the platform."""
    async with open_world(tmp_path) as world:
        world.platform.will("settle", Unavailable(), Lose(carried_out=False), None)
        card = await ask_to_knock(world)
        await world.press("olga", card)
        await world.expect("ann", "So be it.")
        await world.until(lambda: card.outcomes == ["approved"])


async def test_a_card_that_was_deleted_delays_no_turn(tmp_path: Path) -> None:
    """Its number can still be answered; the outcome can't be displayed."""
    async with open_world(tmp_path) as world:
        card = await ask_to_knock(world)
        card.deleted = True
        number = card.request.calls[0].number
        await world.say("olga", f"/approve {number}")
        await world.expect("ann", "So be it.")
        assert world.bench.ran("knock") == ["on wood"]
        world.model.say("Hello.", key="hi")
        await world.say("ann", "hi")
        await world.expect("ann", "So be it.", "Hello.")


async def test_a_long_call_is_shown_whole_enough_to_judge(tmp_path: Path) -> None:
    """Forty kilobytes of arguments: the card is sent, and says how long they are."""
    async with open_world(tmp_path, platform={"max_length": 1000}) as world:
        world.model.call("knock", {"what": "begin " + "x " * 20_000 + "end"}, round=0)
        world.model.say("So be it.", round=1)
        await world.say("ann", "please knock")
        card = await world.card()
        assert "begin" in card.text
        await world.press("olga", card, "deny")
        await world.expect("ann", "So be it.")
