"""People watch an answer grow in one message, which ends as exactly the final text (P6)."""

from itertools import pairwise
from pathlib import Path

import pytest
from zeroclaw_test_platform.chats import Message
from zeroclaw_test_platform.faults import Hang, Lose, TooMany, Unavailable

from tests.journeys.world import world

pytestmark = pytest.mark.slow


def grows(message: Message) -> bool:
    """Each text of a message begins with the one before, a sign that more follows apart."""
    return all(
        later.startswith(earlier.rstrip(" …▍")) for earlier, later in pairwise(message.texts)
    )


async def test_a_draft_grows_and_ends_as_the_final(tmp_path: Path) -> None:
    """One message, edited in place as the model writes, and never more than was written.

    S2-06, S0-22, S3-17.
    """
    async with world(tmp_path) as here:
        first, second = here.model.gate(), here.model.gate()
        here.model.say("One, ", first, "two, ", second, "three.")
        await here.say("ann", "count")
        await first.reached()
        await here.until(lambda: "One," in here.chat("ann").ever)
        (message,) = here.chat("ann").said
        assert message.draft
        assert "two" not in message.text
        first.open()
        await second.reached()
        await here.until(lambda: "One, two," in message.text)
        assert message.draft
        second.open()
        await here.answered("ann", "One, two, three.")
        assert here.chat("ann").said == [message]
        assert grows(message)


async def test_one_message_carries_what_was_said_around_a_tool_call(tmp_path: Path) -> None:
    """The text before a call, and the text after it, end in one edited message. K4, S2-07."""
    async with world(tmp_path) as here:
        here.model.call("peek", {"what": "the sky"}, text="Let me look.", round=0)
        here.model.say("It is blue.", round=1)
        await here.say("ann", "what colour is the sky?")
        await here.answered("ann", "Let me look.\n\nIt is blue.")
        assert len(here.chat("ann").messages) == 2
        assert grows(here.chat("ann").said[0])


async def test_a_long_draft_flows_into_a_next_message(tmp_path: Path) -> None:
    """What is full stays as it is, and the rest goes on below; the end is the whole text. S2-20."""
    words = [f"word{number} " for number in range(60)]
    async with world(tmp_path, platform={"max_length": 150}) as here:
        gate = here.model.gate()
        here.model.say(*words[:50], gate, *words[50:])
        await here.say("ann", "talk")
        await gate.reached()
        await here.until(lambda: "word49" in here.chat("ann").ever)
        drafts = here.chat("ann").said
        assert len(drafts) > 1
        gate.open()
        await here.until(
            lambda: " ".join(here.chat("ann").answers).split() == "".join(words).split()
        )
        assert here.chat("ann").said[: len(drafts)] == drafts


async def test_a_platform_that_asks_to_wait_is_obeyed(tmp_path: Path) -> None:
    """After a 429 nothing is sent to the chat before its time is over; the final lands."""
    async with world(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("One, ", gate, "two.")
        here.platform.will("send", TooMany(retry_after_s=0.4))
        await here.say("ann", "count")
        await gate.reached()
        await here.until(lambda: here.platform.called("send"))
        gate.open()
        await here.answered("ann", "One, two.")
        refused, again = here.platform.called("send", "edit")[:2]
        assert again.at - refused.at >= 0.4


async def test_drafts_stay_inside_the_platforms_limits(tmp_path: Path) -> None:
    """However fast the model writes, no call is refused for being one too many."""
    limits = {"chat_per_s": 4.0, "chat_burst": 2, "account_per_s": 6.0, "account_burst": 3}
    async with world(tmp_path, platform=limits) as here:
        here.model.say("A long answer. " * 40, "End.", size=3, times=None)
        await here.say("ann", "talk")
        await here.say("bob", "talk")
        whole = "A long answer. " * 40 + "End."
        await here.until(lambda: here.chat("ann").answers == [whole])
        await here.until(lambda: here.chat("bob").answers == [whole])
        assert here.platform.desk.limits.exceeded == 0


@pytest.mark.parametrize("carried_out", [True, False])
async def test_an_edit_whose_answer_was_lost_changes_nothing(
    tmp_path: Path, carried_out: bool
) -> None:
    """The next frame holds the whole text, so the chat ends right either way."""
    async with world(tmp_path) as here:
        first, second = here.model.gate(), here.model.gate()
        here.model.say("One, ", first, "two, ", second, "three.")
        here.platform.will("edit", Lose(carried_out=carried_out))
        await here.say("ann", "count")
        await here.until(lambda: here.chat("ann").said)
        first.open()
        await here.until(lambda: here.platform.called("edit"))
        second.open()
        await here.answered("ann", "One, two, three.")
        assert len(here.chat("ann").said) == 1


async def test_a_first_frame_whose_answer_was_lost_is_not_left_behind(tmp_path: Path) -> None:
    """The platform knows the key, so the message that nobody had heard of becomes the answer."""
    async with world(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("One, ", gate, "two.")
        here.platform.will("send", Lose(carried_out=True))
        await here.say("ann", "count")
        await here.until(lambda: here.chat("ann").said)
        gate.open()
        await here.answered("ann", "One, two.")
        assert len(here.chat("ann").said) == 1


async def test_a_platform_that_stands_still_delays_nobody_elses_answer(tmp_path: Path) -> None:
    """Ann's frame hangs; Bob is answered, and Ann in the end as well (P9)."""
    async with world(tmp_path) as here:
        hang = Hang()
        here.platform.will("send", hang, chat="ann")
        here.model.say("For Ann.", key="ann")
        here.model.say("For Bob.", key="bob")
        await here.say("ann", "ann asks")
        await hang.reached()
        await here.say("bob", "bob asks")
        await here.answered("bob", "For Bob.")
        hang.release()
        await here.answered("ann", "For Ann.")
        assert len(here.chat("ann").said) == 1


async def test_an_answer_survives_a_platform_that_is_away(tmp_path: Path) -> None:
    """It is said when the platform is back, once."""
    async with world(tmp_path) as here:
        here.platform.will("send", Unavailable(), Unavailable())
        here.model.say("Hello.")
        await here.say("ann", "hi")
        await here.answered("ann", "Hello.")
        assert len(here.chat("ann").said) == 1
