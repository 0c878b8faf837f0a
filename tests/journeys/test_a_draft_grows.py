"""People watch an answer grow in one message, which ends as exactly the final text (P6)."""

from itertools import pairwise
from pathlib import Path

import pytest
from zeroclaw_test_platform.chats import Message
from zeroclaw_test_platform.faults import Hang, Lose, TooMany, Unavailable

from tests.journeys.world import open_world

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
    async with open_world(tmp_path) as world:
        first, second = world.model.gate(), world.model.gate()
        world.model.say("One, ", first, "two, ", second, "three.")
        await world.say("ann", "count")
        await first.reached()
        await world.until(lambda: "One," in world.chat("ann").ever)
        (message,) = world.chat("ann").replies
        assert message.draft
        assert "two" not in message.text
        first.open()
        await second.reached()
        await world.until(lambda: "One, two," in message.text)
        assert message.draft
        second.open()
        await world.expect("ann", "One, two, three.")
        assert world.chat("ann").replies == [message]
        assert grows(message)


async def test_one_message_carries_the_texts_around_a_tool_call(tmp_path: Path) -> None:
    """The text before a call, and the text after it, end in one edited message. K4, S2-07."""
    async with open_world(tmp_path) as world:
        world.model.call("peek", {"what": "the sky"}, text="Let me look.", round=0)
        world.model.say("It is blue.", round=1)
        await world.say("ann", "what colour is the sky?")
        await world.expect("ann", "Let me look.\n\nIt is blue.")
        assert len(world.chat("ann").messages) == 2
        assert grows(world.chat("ann").replies[0])


async def test_a_long_draft_flows_into_a_next_message(tmp_path: Path) -> None:
    """A full message stays as it is, and the rest continues below; the end is the whole text. S2-20."""
    words = [f"word{number} " for number in range(60)]
    async with open_world(tmp_path, platform={"max_length": 150}) as world:
        gate = world.model.gate()
        world.model.say(*words[:50], gate, *words[50:])
        await world.say("ann", "talk")
        await gate.reached()
        await world.until(lambda: "word49" in world.chat("ann").ever)
        drafts = world.chat("ann").replies
        assert len(drafts) > 1
        gate.open()
        await world.until(
            lambda: " ".join(world.chat("ann").answers).split() == "".join(words).split()
        )
        assert world.chat("ann").replies[: len(drafts)] == drafts


async def test_a_platform_that_asks_to_wait_is_obeyed(tmp_path: Path) -> None:
    """After a 429 nothing is sent to the chat before its time is over; the final lands."""
    async with open_world(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("One, ", gate, "two.")
        world.platform.will("send", TooMany(retry_after_s=0.4))
        await world.say("ann", "count")
        await gate.reached()
        await world.until(lambda: world.platform.called("send"))
        gate.open()
        await world.expect("ann", "One, two.")
        refused, again = world.platform.called("send", "edit")[:2]
        assert again.at - refused.at >= 0.4


async def test_drafts_stay_inside_the_platforms_limits(tmp_path: Path) -> None:
    """However fast the model writes, no call is refused for being one too many."""
    limits = {"chat_per_s": 4.0, "chat_burst": 2, "account_per_s": 6.0, "account_burst": 3}
    async with open_world(tmp_path, platform=limits) as world:
        world.model.say("A long answer. " * 40, "End.", size=3, times=None)
        await world.say("ann", "talk")
        await world.say("bob", "talk")
        answer = "A long answer. " * 40 + "End."
        await world.until(lambda: world.chat("ann").answers == [answer])
        await world.until(lambda: world.chat("bob").answers == [answer])
        assert world.platform.backend.limits.exceeded == 0


@pytest.mark.parametrize("carried_out", [True, False])
async def test_an_edit_whose_answer_was_lost_changes_nothing(
    tmp_path: Path, carried_out: bool
) -> None:
    """The next frame holds the whole text, so the chat ends right either way."""
    async with open_world(tmp_path) as world:
        first, second = world.model.gate(), world.model.gate()
        world.model.say("One, ", first, "two, ", second, "three.")
        world.platform.will("edit", Lose(carried_out=carried_out))
        await world.say("ann", "count")
        await world.until(lambda: world.chat("ann").replies)
        first.open()
        await world.until(lambda: world.platform.called("edit"))
        second.open()
        await world.expect("ann", "One, two, three.")
        assert len(world.chat("ann").replies) == 1


async def test_a_first_frame_whose_answer_was_lost_is_not_left_behind(tmp_path: Path) -> None:
    """The platform knows the key, so the unrecorded message becomes the answer."""
    async with open_world(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("One, ", gate, "two.")
        world.platform.will("send", Lose(carried_out=True))
        await world.say("ann", "count")
        await world.until(lambda: world.chat("ann").replies)
        gate.open()
        await world.expect("ann", "One, two.")
        assert len(world.chat("ann").replies) == 1


async def test_a_platform_that_stands_still_delays_no_other_answer(tmp_path: Path) -> None:
    """Ann's frame hangs; Bob is answered, and Ann in the end as well (P9)."""
    async with open_world(tmp_path) as world:
        hang = Hang()
        world.platform.will("send", hang, chat="ann")
        world.model.say("For Ann.", key="ann")
        world.model.say("For Bob.", key="bob")
        await world.say("ann", "ann asks")
        await hang.reached()
        await world.say("bob", "bob asks")
        await world.expect("bob", "For Bob.")
        hang.release()
        await world.expect("ann", "For Ann.")
        assert len(world.chat("ann").replies) == 1


async def test_an_answer_survives_a_platform_that_is_away(tmp_path: Path) -> None:
    """It is sent when the platform is back, once."""
    async with open_world(tmp_path) as world:
        world.platform.will("send", Unavailable(), Unavailable())
        world.model.say("Hello.")
        await world.say("ann", "hi")
        await world.expect("ann", "Hello.")
        assert len(world.chat("ann").replies) == 1
