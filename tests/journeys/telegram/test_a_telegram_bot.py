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
    async with bot(tmp_path, channel={"drafts": "edited"}) as world:
        gate = world.model.gate()
        world.model.say("One, **two**, ", gate, "three.")
        action = world.ann.says("count")
        await world.until(lambda: world.ann.chat.from_bot)
        (message,) = world.ann.chat.from_bot
        assert "three" not in message.text
        gate.open()
        await world.expect(world.ann.chat, "One, two, three.")
        await world.telegram.confirmed(action)
        assert [entity.type for entity in message.versions[-1].formatted.entities] == ["bold"]
        assert len(world.telegram.called("sendMessage")) == 1


async def test_an_update_that_comes_again_is_answered_once(tmp_path: Path) -> None:
    """As itself, after a restart, and under a new number. S2-02."""
    # as it is installed: this is the one that executes the program
    async with bot(tmp_path, command=(PROGRAM,), launch=spawn) as world:
        await world.answers_once_what_comes_again()


async def test_messages_while_it_was_down_are_answered_in_order(tmp_path: Path) -> None:
    """Nothing that waits at Telegram is thrown away. S2-02."""
    async with bot(tmp_path, start=False) as world:
        for word in ("one", "two", "three"):
            world.model.say(f"to {word}", key=word)
            world.ann.says(word)
        await world.daemon.start()
        await world.expect(world.ann.chat, "to one", "to two", "to three")


async def test_a_denial_asks_for_its_reason_and_takes_only_a_reply_to_that(tmp_path: Path) -> None:
    """Also after a restart, because the question itself says what it is about. S2-09, P5."""
    async with bot(tmp_path) as world:
        world.model.call("knock", {"what": "on wood"}, round=0)
        world.model.say("So not.", round=1)
        world.ann.says("please knock")
        card = await world.card()
        world.olga.presses(card, "Deny, because …")
        question = (
            await world.until(
                lambda: [message for message in world.olga.chat.from_bot if message.asks_for_reply]
            )
        )[-1]
        assert question.reply_to is card
        await world.restart()
        world.olga.says("not on a Sunday", reply_to=question)
        await world.until(lambda: "So not." in world.ann.chat.texts)
        await world.until(lambda: not card.buttons)
        assert "not on a Sunday" in card.text
        assert world.bench.runs == []


async def test_questions_come_into_the_operators_group_where_one_is_configured(
    tmp_path: Path,
) -> None:
    """Everybody there reads the call, and only an operator may answer it (P5)."""
    async with bot(tmp_path, start=False, approvals={"chat": "telegram:-1"}) as world:
        office = world.telegram.supergroup("Office", world.olga, world.bob, world.mallory)
        config = tmp_path / "zeroclaw.toml"
        text = config.read_text(encoding="utf-8")
        config.write_text(text.replace("telegram:-1", f"telegram:{office.id}"), encoding="utf-8")
        await world.daemon.start()
        world.model.call("knock", {"what": "on wood"}, round=0)
        world.model.say("So be it.", round=1)
        world.ann.says("please knock")
        (card,) = await world.until(
            lambda: [message for message in office.from_bot if message.buttons]
        )
        strange, curious = (
            world.mallory.presses(card, "Approve once"),
            world.bob.presses(card, "Deny"),
        )
        toast = Toast(text="only an operator may answer this")
        await world.until(lambda: world.bob.toast(curious) == toast)
        # It stands where strangers read along, too; they read only that it is not theirs.
        refused = Toast(text="this is not yours to answer")
        await world.until(lambda: world.mallory.toast(strange) == refused)
        assert world.bench.runs == []
        world.olga.presses(card, "Approve once")
        await world.until(lambda: "So be it." in world.ann.chat.texts and not card.buttons)
        assert "approved by Olga" in card.text
        assert world.olga.chat.from_bot == []


async def test_in_a_group_it_answers_only_messages_to_it(tmp_path: Path) -> None:
    """The model reads who spoke; strangers get silence there, and a code in private (P4)."""
    async with bot(tmp_path, channel={"pairing": "code"}) as world:
        team = world.telegram.supergroup("Team", world.ann, world.bob, world.mallory)
        world.model.say("It is noon.")
        actions = [
            world.mallory.says("@zero_bot what time is it?", chat=team),
            world.bob.says("hello all", chat=team),
            world.ann.says("@zero_bot what time is it?", chat=team),
        ]
        await world.telegram.confirmed(*actions)
        await world.expect(team, "It is noon.")
        assert team.from_bot[0].reply_to is team.messages[2]
        content = world.model.requests[-1].messages[-1]["content"]
        assert content == "Ann: what time is it?"
        world.mallory.says("hello")
        (text,) = await world.until(lambda: world.mallory.chat.texts)
        card = await world.card()
        (code,) = re.findall("code: ([0-9A-Z]+)", card.text)
        assert code in text
        world.olga.presses(card, "Approve once")
        await world.until(lambda: "You may talk to me now." in world.mallory.chat.texts)


async def test_a_topic_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    async with bot(tmp_path) as world:
        forum = world.telegram.supergroup("Forum", world.ann, is_forum=True)
        first, second = world.telegram.topic(forum, "One"), world.telegram.topic(forum, "Two")
        world.model.say("in one", key="first")
        world.model.say("in two", key="second")
        world.ann.says("@zero_bot first", chat=forum, thread=first.id)
        world.ann.says("@zero_bot second", chat=forum, thread=second.id)
        await world.until(lambda: {"in one", "in two"} <= set(forum.texts))
        threads = {message.text: message.thread for message in forum.from_bot if message.text}
        assert threads == {"in one": first.id, "in two": second.id}
        assert len(world.model.requests[-1].messages) == 2


async def test_an_edit_before_the_answer_begins_counts(tmp_path: Path) -> None:
    async with bot(tmp_path) as world:
        gate = world.model.gate()
        world.model.say(gate, "first", key="wait")
        world.model.say("better", key="better")
        world.ann.says("wait")
        await gate.reached()
        world.ann.says("worse")
        written = world.ann.chat.messages[-1]
        await world.telegram.confirmed(world.ann.edits(written, "better"))
        gate.open()
        await world.until(lambda: world.ann.chat.texts[-1:] == ["better"])


async def test_a_mention_that_is_added_by_an_edit_is_answered_once(tmp_path: Path) -> None:
    """People forget it and add it. What was answered is a question no more; strangers stay unheard."""
    async with bot(tmp_path) as world:
        team = world.telegram.supergroup("Team", world.ann, world.mallory)
        world.model.say("It is noon.")
        actions = [
            world.ann.says("what time is it?", chat=team),
            world.mallory.says("hi", chat=team),
        ]
        question, strange = team.messages
        actions += [world.mallory.edits(strange, "@zero_bot hi")]
        actions += [world.ann.edits(question, "@zero_bot what time is it?")]
        await world.telegram.confirmed(*actions)
        await world.expect(team, "It is noon.")
        assert team.from_bot[0].reply_to is question
        await world.restart()
        await world.telegram.confirmed(world.ann.edits(question, "@zero_bot what time is it now?"))
        world.model.say("Bye.", key="bye")
        world.ann.says("@zero_bot bye", chat=team)
        await world.expect(team, "It is noon.", "Bye.")


async def test_a_group_that_becomes_a_supergroup_keeps_its_conversation(tmp_path: Path) -> None:
    async with bot(tmp_path) as world:
        old = world.telegram.group("Team", world.ann)
        world.model.say("noted", key="remember")
        world.model.say("it is blue", key="colour")
        world.ann.says("@zero_bot remember: blue", chat=old)
        await world.expect(old, "noted")
        world.ann.upgrades(old)
        new = world.telegram.account.chats[old.upgraded_to]
        world.ann.says("@zero_bot which colour?", chat=new)
        await world.until(lambda: "it is blue" in new.texts)
        assert len(world.model.requests[-1].messages) == 4
