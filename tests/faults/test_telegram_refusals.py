"""Telegram refuses, fails or forgets to answer, and each answer stands once, as soon as it may.

Nobody has to write again to be told: what could not be said is said when it can be.
"""

from functools import partial
from pathlib import Path

import pytest

from channels.telegram.emulator import BadGateway, Chat, Lose, Refuse, TooMany
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow

WAIT_S = 2


def calls_within(here: Bot, chat: Chat, method: str) -> list[str]:
    """Return what was called in a chat while it was to wait; the first refusal begins that."""
    refused = next(one for one in here.telegram.called(method, chat=chat) if one.refusal)
    later = [one for one in here.telegram.calls if one.chat == chat.id and one.at > refused.at]
    return [repr(one) for one in later if one.at < refused.at + WAIT_S]


@pytest.mark.parametrize(
    ("method", "stream"),
    [("sendMessage", True), ("sendMessage", False), ("editMessageText", True)],
    ids=["a draft's send", "a final's send", "an edit"],
)
async def test_a_wait_is_kept_to_the_letter_and_in_one_chat_only(
    tmp_path: Path, method: str, *, stream: bool
) -> None:
    """Not one call goes into the chat before its time; elsewhere nobody notices. P6, P9."""
    async with bot(tmp_path, channel={"stream": stream}) as here:
        here.telegram.will(method, TooMany(retry_after_s=WAIT_S), chat=here.ann.chat)
        here.model.call("peek", {"what": "x"}, text="Let me look.", key="ann", round=0)
        here.model.say("One, ", "two.", key="ann", round=1)
        here.ann.says("ann")
        await here.until(
            lambda: any(one.refusal for one in here.telegram.called(method, chat=here.ann.chat))
        )
        here.bob.says("bob")
        await here.expect(here.bob.chat, "bob")
        answered_at = here.bob.chat.from_bot[0].versions[0].at
        await here.expect(here.ann.chat, "Let me look.\n\nOne, two.")
        assert calls_within(here, here.ann.chat, method) == []
        assert answered_at < here.ann.chat.from_bot[-1].versions[-1].at


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
async def test_whichever_call_fails_once_everything_stands_once(
    tmp_path: Path, fault: TooMany | BadGateway | Lose
) -> None:
    """A draft, a card, its press, its end, the final, the poll: each fails, and nobody sees it.

    P1, P5, P6.
    """
    async with bot(tmp_path) as here:
        here.model.call("knock", {"what": "on wood"}, text="Let me knock.", key="please", round=0)
        here.model.say("So ", "be it.", key="please", round=1)
        hello = here.ann.says("hello")
        await here.expect(here.ann.chat, "hello")
        here.telegram.will("sendMessage", fault, chat=here.ann.chat)
        here.telegram.will("sendMessage", fault, chat=here.olga.chat)
        here.telegram.will("answerCallbackQuery", fault)
        here.telegram.will("getUpdates", fault)
        asked = here.ann.says("please")
        # Not the edits by which a message is looked for whose answer was lost.
        here.telegram.will("editMessageText", fault, when=lambda call: "approved by" in call.text)
        here.telegram.will("editMessageText", fault, when=lambda call: "So" in call.text)
        card = await here.card()
        pressed = here.olga.presses(card, "Approve once")
        await here.until(lambda: "Let me knock.\n\nSo be it." in here.ann.chat.texts)
        await here.until(lambda: not any(one.buttons for one in here.olga.chat.from_bot))
        await here.telegram.confirmed(hello, asked, pressed)
        waiting = "Waiting for an operator to approve knock."
        said = [text for text in here.ann.chat.texts if text != waiting]
        assert said == ["hello", "Let me knock.\n\nSo be it."]
        assert here.ann.chat.texts.count(waiting) <= 1
        # One that is pressed while it is still looked for may stand twice, and both say how it ended.
        assert len(here.olga.chat.from_bot) <= 2
        assert all("approved by" in text for text in here.olga.chat.texts)
        assert here.bench.ran("knock") == ["on wood"]


async def test_a_lost_answer_is_found_although_ids_ran_ahead(tmp_path: Path) -> None:
    """Who writes elsewhere meanwhile hides it; the repeat tells where it is, and goes. P1."""
    async with bot(tmp_path, channel={"stream": False}) as here:
        here.ann.says("hello")
        await here.expect(here.ann.chat, "hello")
        here.telegram.will("sendMessage", Lose(carried_out=True), when=lambda _: _runs_ahead(here))
        here.ann.says("good day")
        await here.until(lambda: len([one for one in here.ann.chat.messages if one.deleted]) == 1)
        assert here.ann.chat.texts == ["hello", "good day"]


def _runs_ahead(here: Bot) -> bool:
    here.telegram.skip_ids(10)
    return True


async def test_somebody_who_blocks_the_bot_is_nobody_elses_trouble(tmp_path: Path) -> None:
    """The operator is told once, others go on, and whoever comes back is answered. P1, P9, P10."""
    async with bot(tmp_path, channel={"drafts": "edited"}) as here:
        gate = here.model.gate()
        here.model.say("One, ", gate, "two.", key="count")
        here.ann.says("count")
        await gate.reached()
        await here.until(lambda: here.ann.chat.texts)
        here.ann.says("are you there?")
        await here.telegram.confirmed(here.ann.blocks())
        gate.open()
        here.bob.says("hello")
        await here.expect(here.bob.chat, "hello")
        # The whole of the second answer, which a draft of it may come before.
        sent = partial(here.telegram.called, "sendMessage", chat=here.ann.chat)
        await here.until(
            lambda: [one for one in sent() if one.refusal and one.text == "are you there?"]
        )
        await here.until(lambda: here.olga.chat.texts)
        await here.telegram.confirmed(here.ann.unblocks(), here.ann.says("back again"))
        await here.until(lambda: here.ann.chat.texts[-1] == "back again")
        assert here.ann.chat.texts[0].startswith("One,")
        assert len(here.ann.chat.texts) == 2
        (told,) = here.olga.chat.texts
        assert "blocked by the user" in told


async def test_a_poll_that_fails_takes_nothing_away(tmp_path: Path) -> None:
    """Refused, cut, lost, or ended by another program: what people write is answered. P1."""
    async with bot(tmp_path) as here:
        conflict = Refuse(code=409, description="Conflict: terminated by other getUpdates request")
        here.telegram.will("getUpdates", Lose(carried_out=True), TooMany(retry_after_s=1), conflict)
        here.telegram.cut()
        said = [here.ann.says(f"message {number}") for number in range(3)]
        await here.expect(here.ann.chat, "message 0", "message 1", "message 2")
        await here.telegram.confirmed(*said)
