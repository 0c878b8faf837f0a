"""Every channel's promises for answers to its cards, from the real adapter to the waiting call.

`test_channel_cards.py` tests the cards and presses themselves; these tests their effect.
"""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.contract.channel_house import POKED, Home, living
from tests.contract.channel_suite import Adapter
from tests.contract.channel_words import real_channels

# Most open real sockets.
pytestmark = pytest.mark.slow


async def until_notified(home: Home, *parts: str) -> None:
    """Wait until the operator reads one of these parts: in a toast, or in a chat without buttons.

    An answer by a link in a mail gets no notice but the card's outcome.
    """

    async def is_notified() -> bool:
        texts = (text.text for text in await home.harness.messages())
        visible = home.harness.toasts() if home.adapter.capabilities.has_buttons else texts
        return not home.adapter.has_toasts or any(
            part in text for text in visible for part in parts
        )

    await home.until(is_notified)


async def card_ends(home: Home, how: str) -> None:
    """Wait until the operator's card, or a later message, shows its outcome; no button is left."""
    await home.until_texts("olga", how)
    standing = await home.harness.messages()
    assert not home.adapter.capabilities.can_edit or not any(
        message.buttons for message in standing
    )


@real_channels
async def test_the_right_person_answers_once_and_also_after_a_restart(
    adapter: Adapter, tmp_path: Path
) -> None:
    """The call runs once, whatever other answers come before or after; the card names the approver.

    Only people who may answer read its arguments.

    P3, P5, S2-10, S2-19.
    """
    async with living(adapter, tmp_path) as home:
        async with home.running():
            approval = await home.request_approval()
        async with home.running():
            for wrong in () if adapter.is_local else ("bob", "mallory"):
                assert await home.answer(wrong, approval)
            assert home.world.poke.runs == []
            assert (await home.newest()).is_open
            assert await home.answer("olga", approval)
            await until_notified(home, "approved: poke", "approved: `poke`")
            chat = await home.until_texts("ann", POKED)
            assert adapter.is_local or approval.arguments not in "".join(chat)
            await card_ends(home, "approved by")
            assert await home.answer("olga", approval, "deny")
            await until_notified(home, "already approved")
            assert home.world.poke.runs == [{"at": 1}]
            assert (await home.newest()).state == "approved"


@real_channels
async def test_the_answer_after_a_card_is_a_message_of_its_own(
    adapter: Adapter, tmp_path: Path
) -> None:
    """Platforms give no notice of a text that is added to an older message. P6, K4."""
    async with living(adapter, tmp_path) as home, home.running():
        approval = await home.request_approval(saying="let me poke")
        assert await home.answer("olga", approval)
        chat = await home.until_texts("ann", POKED)
        mine = [text for text in chat if "let me poke" in text.lower() or POKED in text.lower()]
        traits = adapter.capabilities
        is_one = not (traits.can_edit and traits.multi_message)
        assert len(mine) == (1 if is_one else 2)
        assert is_one or chat[-1].lower() == POKED


@real_channels
async def test_an_answer_that_comes_late_runs_nothing(adapter: Adapter, tmp_path: Path) -> None:
    """Also before the timer of the deadline fires; the answerer and the card hear so. P3, P5."""
    async with living(adapter, tmp_path) as home, home.running():
        approval = await home.request_approval()
        home.world.clock.leap(timedelta(hours=1))
        assert await home.answer("olga", approval)
        await until_notified(home, "too late", "expired")
        await home.until_texts("ann", POKED)
        await card_ends(home, "expired")
        assert home.world.poke.runs == []
