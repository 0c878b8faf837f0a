"""Telegram refuses, is slow, loses answers, or the daemon dies: the answer stands all the same."""

from pathlib import Path

import pytest

from channels.telegram.emulator import BadGateway, BadMarkup, Hang, Limits, Lose, Refuse, TooMany
from tests.journeys.telegram.bot import bot

EDITED = {"drafts": "edited"}
"""Private answers in messages that grow, as in groups."""

pytestmark = pytest.mark.slow

WORDS = [f"word{number} " for number in range(40)]


@pytest.mark.parametrize("method", ["sendMessage", "editMessageText"])
async def test_too_many_calls_delay_an_answer_and_change_nothing(
    tmp_path: Path, method: str
) -> None:
    """The wait that Telegram names is kept to, and the answer stands once. P6."""
    async with bot(tmp_path, channel=EDITED) as here:
        gate = here.model.gate()
        here.telegram.will(method, TooMany(retry_after_s=1))
        here.model.say("One, ", gate, "two.")
        here.ann.says("count")
        await gate.reached()
        await here.until(lambda: here.ann.chat.from_bot)
        gate.open()
        await here.expect(here.ann.chat, "One, two.")
        refused, *later = here.telegram.called(method)
        assert refused.refusal
        assert later[0].at - refused.at >= 1


async def test_within_the_published_limits_nothing_is_refused(tmp_path: Path) -> None:
    """Several chats at once, a private one and a group, each with a draft. P6."""
    async with bot(tmp_path, limits=Limits()) as here:
        team = here.telegram.supergroup("Team", here.ann)
        for word in ("ann", "bob", "team"):
            here.model.say(*WORDS, f"for {word}.", key=word)
        here.ann.says("ann")
        here.bob.says("bob")
        here.ann.says("@zero_bot team", chat=team)
        for chat, word in ((here.ann.chat, "ann"), (here.bob.chat, "bob"), (team, "team")):
            await here.expect(chat, "".join((*WORDS, f"for {word}.")))
        assert here.telegram.exceeded == 0


async def test_markup_that_is_refused_becomes_plain_text(tmp_path: Path) -> None:
    async with bot(tmp_path, channel={"stream": False}) as here:
        here.telegram.will("sendMessage", BadMarkup())
        here.model.say("*hello*")
        here.ann.says("hi")
        await here.expect(here.ann.chat, "hello")
        assert here.ann.chat.from_bot[0].versions[-1].formatted.entities == ()


async def test_a_refused_answer_is_told_to_the_operator(tmp_path: Path) -> None:
    """Ann has blocked the bot; nothing is tried for ever, and nobody is left in the dark."""
    async with bot(tmp_path, channel={"stream": False}) as here:
        here.telegram.will(
            "sendMessage",
            Refuse(code=403, description="Forbidden: bot was blocked by the user"),
            chat=here.ann.chat,
            times=None,
        )
        here.model.say("hello")
        here.ann.says("hi")
        await here.until(
            lambda: any("blocked by the user" in text for text in here.olga.chat.texts)
        )
        assert here.ann.chat.texts == []


@pytest.mark.parametrize(
    "fault", [BadGateway(), BadGateway(carried_out=True), Lose(carried_out=False)], ids=repr
)
async def test_an_edit_whose_answer_is_lost_is_made_again(
    tmp_path: Path, fault: BadGateway | Lose
) -> None:
    """The same text twice on one message is one text."""
    async with bot(tmp_path, channel=EDITED) as here:
        gate = here.model.gate()
        here.model.say("One, ", gate, "two.")
        here.ann.says("count")
        await gate.reached()
        await here.until(lambda: here.ann.chat.from_bot)
        here.telegram.will("editMessageText", fault)
        gate.open()
        await here.expect_once("One, two.")


@pytest.mark.parametrize(
    "channel", [EDITED, {}, {"stream": False}], ids=["a draft", "behind a draft", "a final"]
)
@pytest.mark.parametrize(
    "fault",
    [BadGateway(carried_out=True), Lose(carried_out=True), Lose(carried_out=False)],
    ids=repr,
)
async def test_a_message_whose_answer_is_lost_stands_once(
    tmp_path: Path, fault: BadGateway | Lose, channel: dict[str, object]
) -> None:
    """It is looked for by its id; found, it is gone on with, and else it is sent (P1)."""
    async with bot(tmp_path, channel=channel) as here:
        here.telegram.will("sendMessage", fault)
        here.model.say("hello ", "Ann")
        here.ann.says("hi")
        await here.expect_once("hello Ann")


async def test_killed_between_a_send_and_its_record_the_answer_stands(tmp_path: Path) -> None:
    """A draft was carried out that nobody recorded: it is found, and becomes the answer. P1."""
    async with bot(tmp_path, channel=EDITED) as here:
        hang = Hang(carried_out=True)
        here.telegram.will("sendMessage", hang)
        for _ in range(2):
            here.model.say("hello Ann")
        here.ann.says("hi")
        await hang.reached()
        await here.daemon.kill()
        hang.release()
        await here.daemon.start()
        await here.expect(here.ann.chat, "hello Ann")


async def test_telegram_away_for_a_while_is_reached_again(tmp_path: Path) -> None:
    """Polling goes on by itself when the network is back; nothing is lost meanwhile."""
    async with bot(tmp_path) as here:
        here.model.say("hello Ann")
        await here.telegram.down()
        here.ann.says("hi")
        await here.telegram.up()
        await here.expect_once("hello Ann")
