"""A person with a bot token has a bot that answers every message once, live, and asks its operator."""

import re
from pathlib import Path

import pytest

from channels.telegram.emulator.account import Toast
from tests.journeys.daemon_process import PROGRAM, spawn
from tests.journeys.telegram.bot import bot

pytestmark = pytest.mark.slow


async def test_a_message_is_answered_once_in_a_message_that_grows(tmp_path: Path) -> None:
    """Where that is wished it is edited in place, and ends as the answer. S2-01, S2-14, S2-19."""
    async with bot(tmp_path, channel={"drafts": "edited"}) as here:
        gate = here.model.gate()
        here.model.say("One, **two**, ", gate, "three.")
        said = here.ann.says("count")
        await here.until(lambda: here.ann.chat.from_bot)
        (message,) = here.ann.chat.from_bot
        assert "three" not in message.text
        gate.open()
        await here.expect(here.ann.chat, "One, two, three.")
        await here.telegram.confirmed(said)
        assert [entity.type for entity in message.versions[-1].formatted.entities] == ["bold"]
        assert len(here.telegram.called("sendMessage")) == 1


async def test_an_update_that_comes_again_is_answered_once(tmp_path: Path) -> None:
    """As itself, after a restart, and under a new number. S2-02."""
    # as it is installed: this is the one that executes the program
    async with bot(tmp_path, command=(PROGRAM,), launch=spawn) as here:
        await here.answers_once_what_comes_again()


async def test_what_came_while_it_was_down_is_answered_in_order(tmp_path: Path) -> None:
    """Nothing that waits at Telegram is thrown away. S2-02."""
    async with bot(tmp_path, start=False) as here:
        for word in ("one", "two", "three"):
            here.model.say(f"to {word}", key=word)
            here.ann.says(word)
        await here.daemon.start()
        await here.expect(here.ann.chat, "to one", "to two", "to three")


async def test_a_denial_asks_for_its_reason_and_takes_only_a_reply_to_that(tmp_path: Path) -> None:
    """Also after a restart, because the question itself says what it is about. S2-09, P5."""
    async with bot(tmp_path) as here:
        here.model.call("knock", {"what": "on wood"}, round=0)
        here.model.say("So not.", round=1)
        here.ann.says("please knock")
        card = await here.card()
        here.olga.presses(card, "Deny, because …")
        asked = (
            await here.until(
                lambda: [message for message in here.olga.chat.from_bot if message.asks_for_reply]
            )
        )[-1]
        assert asked.reply_to is card
        await here.restart()
        here.olga.says("not on a Sunday", reply_to=asked)
        await here.until(lambda: "So not." in here.ann.chat.texts)
        await here.until(lambda: not card.buttons)
        assert "not on a Sunday" in card.text
        assert here.bench.runs == []


async def test_questions_come_into_the_operators_group_where_one_is_configured(
    tmp_path: Path,
) -> None:
    """Everybody there reads the call, and only an operator may answer it (P5)."""
    async with bot(tmp_path, start=False, approvals={"chat": "telegram:-1"}) as here:
        office = here.telegram.supergroup("Office", here.olga, here.bob, here.mallory)
        config = tmp_path / "zeroclaw.toml"
        text = config.read_text(encoding="utf-8")
        config.write_text(text.replace("telegram:-1", f"telegram:{office.id}"), encoding="utf-8")
        await here.daemon.start()
        here.model.call("knock", {"what": "on wood"}, round=0)
        here.model.say("So be it.", round=1)
        here.ann.says("please knock")
        (card,) = await here.until(
            lambda: [message for message in office.from_bot if message.buttons]
        )
        strange, curious = (
            here.mallory.presses(card, "Approve once"),
            here.bob.presses(card, "Deny"),
        )
        toast = Toast(text="only an operator may answer this")
        await here.until(lambda: here.bob.toast(curious) == toast)
        # It stands where strangers read along, too; that it is not theirs is all that they are told.
        refused = Toast(text="this is not yours to answer")
        await here.until(lambda: here.mallory.toast(strange) == refused)
        assert here.bench.runs == []
        here.olga.presses(card, "Approve once")
        await here.until(lambda: "So be it." in here.ann.chat.texts and not card.buttons)
        assert "approved by Olga" in card.text
        assert here.olga.chat.from_bot == []


async def test_in_a_group_it_answers_whom_it_is_meant_for_and_nobody_else(tmp_path: Path) -> None:
    """Who spoke is told to the model; strangers get silence there, and a code in private (P4)."""
    async with bot(tmp_path, channel={"pairing": "code"}) as here:
        team = here.telegram.supergroup("Team", here.ann, here.bob, here.mallory)
        here.model.say("It is noon.")
        actions = [
            here.mallory.says("@zero_bot what time is it?", chat=team),
            here.bob.says("hello all", chat=team),
            here.ann.says("@zero_bot what time is it?", chat=team),
        ]
        await here.telegram.confirmed(*actions)
        await here.expect(team, "It is noon.")
        assert team.from_bot[0].reply_to is team.messages[2]
        asked = here.model.requests[-1].messages[-1]["content"]
        assert asked == "Ann: what time is it?"
        here.mallory.says("hello")
        (told,) = await here.until(lambda: here.mallory.chat.texts)
        card = await here.card()
        (code,) = re.findall("code: ([0-9A-Z]+)", card.text)
        assert code in told
        here.olga.presses(card, "Approve once")
        await here.until(lambda: "You may talk to me now." in here.mallory.chat.texts)


async def test_a_topic_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    async with bot(tmp_path) as here:
        forum = here.telegram.supergroup("Forum", here.ann, is_forum=True)
        first, second = here.telegram.topic(forum, "One"), here.telegram.topic(forum, "Two")
        here.model.say("in one", key="first")
        here.model.say("in two", key="second")
        here.ann.says("@zero_bot first", chat=forum, thread=first.id)
        here.ann.says("@zero_bot second", chat=forum, thread=second.id)
        await here.until(lambda: {"in one", "in two"} <= set(forum.texts))
        threads = {message.text: message.thread for message in forum.from_bot if message.text}
        assert threads == {"in one": first.id, "in two": second.id}
        assert len(here.model.requests[-1].messages) == 2


async def test_an_edit_before_the_answer_begins_counts(tmp_path: Path) -> None:
    async with bot(tmp_path) as here:
        gate = here.model.gate()
        here.model.say(gate, "first", key="wait")
        here.model.say("better", key="better")
        here.ann.says("wait")
        await gate.reached()
        here.ann.says("worse")
        written = here.ann.chat.messages[-1]
        await here.telegram.confirmed(here.ann.edits(written, "better"))
        gate.open()
        await here.until(lambda: here.ann.chat.texts[-1:] == ["better"])


async def test_a_mention_that_is_added_by_an_edit_is_answered_once(tmp_path: Path) -> None:
    """People forget it and add it. What was answered is a question no more; strangers stay unheard."""
    async with bot(tmp_path) as here:
        team = here.telegram.supergroup("Team", here.ann, here.mallory)
        here.model.say("It is noon.")
        actions = [here.ann.says("what time is it?", chat=team), here.mallory.says("hi", chat=team)]
        asked, strange = team.messages
        actions += [here.mallory.edits(strange, "@zero_bot hi")]
        actions += [here.ann.edits(asked, "@zero_bot what time is it?")]
        await here.telegram.confirmed(*actions)
        await here.expect(team, "It is noon.")
        assert team.from_bot[0].reply_to is asked
        await here.restart()
        await here.telegram.confirmed(here.ann.edits(asked, "@zero_bot what time is it now?"))
        here.model.say("Bye.", key="bye")
        here.ann.says("@zero_bot bye", chat=team)
        await here.expect(team, "It is noon.", "Bye.")


async def test_a_group_that_becomes_a_supergroup_keeps_its_conversation(tmp_path: Path) -> None:
    async with bot(tmp_path) as here:
        old = here.telegram.group("Team", here.ann)
        here.model.say("noted", key="remember")
        here.model.say("it is blue", key="colour")
        here.ann.says("@zero_bot remember: blue", chat=old)
        await here.expect(old, "noted")
        here.ann.upgrades(old)
        new = here.telegram.account.chats[old.upgraded_to]
        here.ann.says("@zero_bot which colour?", chat=new)
        await here.until(lambda: "it is blue" in new.texts)
        assert len(here.model.requests[-1].messages) == 4
