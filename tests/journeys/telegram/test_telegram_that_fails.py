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
    async with bot(tmp_path, channel=EDITED) as world:
        gate = world.model.gate()
        world.telegram.will(method, TooMany(retry_after_s=1))
        world.model.say("One, ", gate, "two.")
        world.ann.says("count")
        await gate.reached()
        await world.until(lambda: world.ann.chat.from_bot)
        gate.open()
        await world.expect(world.ann.chat, "One, two.")
        refused, *later = world.telegram.called(method)
        assert refused.refusal
        assert later[0].at - refused.at >= 1


async def test_within_the_published_limits_nothing_is_refused(tmp_path: Path) -> None:
    """Several chats at once, a private one and a group, each with a draft. P6."""
    async with bot(tmp_path, limits=Limits()) as world:
        team = world.telegram.supergroup("Team", world.ann)
        for word in ("ann", "bob", "team"):
            world.model.say(*WORDS, f"for {word}.", key=word)
        world.ann.says("ann")
        world.bob.says("bob")
        world.ann.says("@zero_bot team", chat=team)
        for chat, word in ((world.ann.chat, "ann"), (world.bob.chat, "bob"), (team, "team")):
            await world.expect(chat, "".join((*WORDS, f"for {word}.")))
        assert world.telegram.exceeded == 0


async def test_markup_that_is_refused_becomes_plain_text(tmp_path: Path) -> None:
    async with bot(tmp_path, channel={"stream": False}) as world:
        world.telegram.will("sendMessage", BadMarkup())
        world.model.say("*hello*")
        world.ann.says("hi")
        await world.expect(world.ann.chat, "hello")
        assert world.ann.chat.from_bot[0].versions[-1].formatted.entities == ()


async def test_a_refused_answer_is_reported_to_the_operator(tmp_path: Path) -> None:
    """Ann has blocked the bot; nothing is tried for ever, and the operator reads why."""
    async with bot(tmp_path, channel={"stream": False}) as world:
        world.telegram.will(
            "sendMessage",
            Refuse(code=403, description="Forbidden: bot was blocked by the user"),
            chat=world.ann.chat,
            times=None,
        )
        world.model.say("hello")
        world.ann.says("hi")
        await world.until(
            lambda: any("blocked by the user" in text for text in world.olga.chat.texts)
        )
        assert world.ann.chat.texts == []


@pytest.mark.parametrize(
    "fault", [BadGateway(), BadGateway(carried_out=True), Lose(carried_out=False)], ids=repr
)
async def test_an_edit_whose_answer_is_lost_is_made_again(
    tmp_path: Path, fault: BadGateway | Lose
) -> None:
    """The same text twice on one message is one text."""
    async with bot(tmp_path, channel=EDITED) as world:
        gate = world.model.gate()
        world.model.say("One, ", gate, "two.")
        world.ann.says("count")
        await gate.reached()
        await world.until(lambda: world.ann.chat.from_bot)
        world.telegram.will("editMessageText", fault)
        gate.open()
        await world.expect_once("One, two.")


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
    """It is looked up by its id; if found, delivery continues from it, else it is sent (P1)."""
    async with bot(tmp_path, channel=channel) as world:
        world.telegram.will("sendMessage", fault)
        world.model.say("hello ", "Ann")
        world.ann.says("hi")
        await world.expect_once("hello Ann")


async def test_killed_between_a_send_and_its_record_the_answer_stands(tmp_path: Path) -> None:
    """An unrecorded draft stands: it is found, and becomes the answer. P1."""
    async with bot(tmp_path, channel=EDITED) as world:
        hang = Hang(carried_out=True)
        world.telegram.will("sendMessage", hang)
        for _ in range(2):
            world.model.say("hello Ann")
        world.ann.says("hi")
        await hang.reached()
        await world.daemon.kill()
        hang.release()
        await world.daemon.start()
        await world.expect(world.ann.chat, "hello Ann")


async def test_telegram_away_for_a_while_is_reached_again(tmp_path: Path) -> None:
    """Polling goes on by itself when the network is back; nothing is lost meanwhile."""
    async with bot(tmp_path) as world:
        world.model.say("hello Ann")
        await world.telegram.down()
        world.ann.says("hi")
        await world.telegram.up()
        await world.expect_once("hello Ann")
