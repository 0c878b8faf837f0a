"""What every channel promises of answers to its cards, from the real adapter to the call that waits.

`test_channel_cards.py` holds what a card and a press are; here an answer comes to something, or not.
"""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.contract.channel_house import POKED, Home, living
from tests.contract.channel_suite import Adapter
from tests.contract.channel_words import real_channels

# Most open real sockets.
pytestmark = pytest.mark.slow


async def told(home: Home, *words: str) -> None:
    """Wait until the operator reads one of these words: alone, or in their chat where they type.

    Who answers by a link in a mail reads nothing more than the card's ending.
    """

    async def holds() -> bool:
        texts = (one.text for one in await home.harness.messages())
        said = home.harness.toasts() if home.adapter.capabilities.has_buttons else texts
        return not home.adapter.has_toasts or any(word in one for one in said for word in words)

    await home.until(holds)


async def card_ends(home: Home, how: str) -> None:
    """Wait until the operator's card, or what follows it, says how it ended; no button is left."""
    await home.until_said("olga", how)
    standing = await home.harness.messages()
    assert not home.adapter.capabilities.can_edit or not any(one.buttons for one in standing)


@real_channels
async def test_the_right_person_answers_once_and_also_after_a_restart(
    adapter: Adapter, tmp_path: Path
) -> None:
    """The call runs once, whoever answers before and however often after; the card says by whom.

    Only who may answer reads its arguments.

    P3, P5, S2-10, S2-19.
    """
    async with living(adapter, tmp_path) as home:
        async with home.running():
            asked = await home.asked()
        async with home.running():
            for wrong in () if adapter.is_local else ("bob", "mallory"):
                assert await home.answer(wrong, asked)
            assert home.world.poke.runs == []
            assert (await home.newest()).is_open
            assert await home.answer("olga", asked)
            await told(home, "approved: poke", "approved: `poke`")
            chat = await home.until_said("ann", POKED)
            assert adapter.is_local or asked.arguments not in "".join(chat)
            await card_ends(home, "approved by")
            assert await home.answer("olga", asked, "deny")
            await told(home, "already approved")
            assert home.world.poke.runs == [{"at": 1}]
            assert (await home.newest()).state == "approved"


@real_channels
async def test_an_answer_that_comes_late_runs_nothing(adapter: Adapter, tmp_path: Path) -> None:
    """Also where no timer has told that the deadline is over; who answers and the card say so. P3, P5."""
    async with living(adapter, tmp_path) as home, home.running():
        asked = await home.asked()
        home.world.clock.leap(timedelta(hours=1))
        assert await home.answer("olga", asked)
        await told(home, "too late", "expired")
        await home.until_said("ann", POKED)
        await card_ends(home, "expired")
        assert home.world.poke.runs == []
