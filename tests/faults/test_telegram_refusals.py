"""Telegram refuses, fails or forgets to answer, and each answer stands once, as soon as it may.

No person has to write again: a delayed message is sent when it can be.
"""

from functools import partial
from pathlib import Path

import pytest

from channels.telegram.emulator import BadGateway, Chat, Lose, Refuse, TooMany
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow

WAIT_S = 2


def calls_within(world: Bot, chat: Chat, method: str) -> list[str]:
    """Return what was called in a chat while it was to wait; the first refusal begins that."""
    refused = next(call for call in world.telegram.called(method, chat=chat) if call.refusal)
    later = [call for call in world.telegram.calls if call.chat == chat.id and call.at > refused.at]
    return [repr(call) for call in later if call.at < refused.at + WAIT_S]


@pytest.mark.parametrize(
    ("method", "stream"),
    [("sendMessage", True), ("sendMessage", False), ("editMessageText", True)],
    ids=["a draft's send", "a final's send", "an edit"],
)
async def test_a_wait_is_kept_to_the_letter_and_in_one_chat_only(
    tmp_path: Path, method: str, *, stream: bool
) -> None:
    """Not one call goes into the chat before its time; no other chat notices. P6, P9."""
    async with bot(tmp_path, channel={"stream": stream}) as world:
        world.telegram.will(method, TooMany(retry_after_s=WAIT_S), chat=world.ann.chat)
        world.model.call("peek", {"what": "x"}, text="Let me look.", key="ann", round=0)
        world.model.say("One, ", "two.", key="ann", round=1)
        world.ann.says("ann")
        await world.until(
            lambda: any(call.refusal for call in world.telegram.called(method, chat=world.ann.chat))
        )
        world.bob.says("bob")
        await world.expect(world.bob.chat, "bob")
        answered_at = world.bob.chat.from_bot[0].versions[0].at
        await world.expect(world.ann.chat, "Let me look.\n\nOne, two.")
        assert calls_within(world, world.ann.chat, method) == []
        assert answered_at < world.ann.chat.from_bot[-1].versions[-1].at


@pytest.mark.parametrize(
    "fault",
    [
        TooMany(retry_after_s=1),
        BadGateway(),
        BadGateway(carried_out=True),
        Lose(carried_out=False),
        Lose(carried_out=True),
    ],
    ids=repr,
)
async def test_any_call_that_fails_once_leaves_everything_standing_once(
    tmp_path: Path, fault: TooMany | BadGateway | Lose
) -> None:
    """A draft, a card, its press, its end, the final, the poll: each fails, and no person sees it.

    P1, P5, P6.
    """
    async with bot(tmp_path) as world:
        world.model.call("knock", {"what": "on wood"}, text="Let me knock.", key="please", round=0)
        world.model.say("So ", "be it.", key="please", round=1)
        hello = world.ann.says("hello")
        await world.expect(world.ann.chat, "hello")
        world.telegram.will("sendMessage", fault, chat=world.ann.chat)
        world.telegram.will("sendMessage", fault, chat=world.olga.chat)
        world.telegram.will("answerCallbackQuery", fault)
        world.telegram.will("getUpdates", fault)
        request_ = world.ann.says("please")
        # Not the edits by which a message is looked for whose answer was lost.
        world.telegram.will("editMessageText", fault, when=lambda call: "approved by" in call.text)
        world.telegram.will("editMessageText", fault, when=lambda call: "So" in call.text)
        card = await world.card()
        pressed = world.olga.presses(card, "Approve once")
        await world.until(lambda: "So be it." in world.ann.chat.texts)
        await world.until(lambda: not any(message.buttons for message in world.olga.chat.from_bot))
        await world.telegram.confirmed(hello, request_, pressed)
        waiting = "Waiting for an operator to approve knock."
        texts = [text for text in world.ann.chat.texts if text != waiting]
        assert texts == ["hello", "Let me knock.", "So be it."]
        assert world.ann.chat.texts.count(waiting) <= 1
        # One that is pressed while it is still looked for may stand twice, and both say how it ended.
        assert len(world.olga.chat.from_bot) <= 2
        assert all("approved by" in text for text in world.olga.chat.texts)
        assert world.bench.ran("knock") == ["on wood"]


async def test_a_lost_answer_is_found_although_ids_ran_ahead(tmp_path: Path) -> None:
    """Messages elsewhere meanwhile hide it; the repeat reveals its place, and is deleted. P1."""
    async with bot(tmp_path, channel={"stream": False}) as world:
        world.ann.says("hello")
        await world.expect(world.ann.chat, "hello")
        world.telegram.will(
            "sendMessage", Lose(carried_out=True), when=lambda _: _runs_ahead(world)
        )
        world.ann.says("good day")
        await world.until(
            lambda: len([message for message in world.ann.chat.messages if message.deleted]) == 1
        )
        assert world.ann.chat.texts == ["hello", "good day"]


def _runs_ahead(world: Bot) -> bool:
    world.telegram.skip_ids(10)
    return True


async def test_a_person_who_blocks_the_bot_troubles_no_other_person(tmp_path: Path) -> None:
    """The operator reads it once, others go on, and a returning person is answered. P1, P9, P10."""
    async with bot(tmp_path, channel={"drafts": "edited"}) as world:
        gate = world.model.gate()
        world.model.say("One, ", gate, "two.", key="count")
        world.ann.says("count")
        await gate.reached()
        await world.until(lambda: world.ann.chat.texts)
        world.ann.says("are you there?")
        await world.telegram.confirmed(world.ann.blocks())
        gate.open()
        world.bob.says("hello")
        await world.expect(world.bob.chat, "hello")
        # The whole of the second answer, which a draft of it may come before.
        sent = partial(world.telegram.called, "sendMessage", chat=world.ann.chat)
        await world.until(
            lambda: [call for call in sent() if call.refusal and call.text == "are you there?"]
        )
        await world.until(lambda: world.olga.chat.texts)
        await world.telegram.confirmed(world.ann.unblocks(), world.ann.says("back again"))
        await world.until(lambda: world.ann.chat.texts[-1] == "back again")
        assert world.ann.chat.texts[0].startswith("One,")
        assert len(world.ann.chat.texts) == 2
        (notice,) = world.olga.chat.texts
        assert "blocked by the user" in notice


async def test_a_poll_that_fails_takes_nothing_away(tmp_path: Path) -> None:
    """Refused, cut, lost, or ended by another program: what people write is answered. P1."""
    async with bot(tmp_path) as world:
        conflict = Refuse(code=409, description="Conflict: terminated by other getUpdates request")
        world.telegram.will(
            "getUpdates", Lose(carried_out=True), TooMany(retry_after_s=1), conflict
        )
        world.telegram.cut()
        actions = [world.ann.says(f"message {number}") for number in range(3)]
        await world.expect(world.ann.chat, "message 0", "message 1", "message 2")
        await world.telegram.confirmed(*actions)
