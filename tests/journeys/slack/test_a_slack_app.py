"""A person with an app's tokens has a bot that answers every message once, and asks its operator."""

from pathlib import Path

import pytest

from channels.slack.emulator.server import Fault
from tests.contract.slack_harness import standing
from tests.journeys.slack.bot import bot

pytestmark = [pytest.mark.slow, pytest.mark.needs("emulate")]


async def test_a_message_is_answered_once_in_a_message_that_grows(tmp_path: Path) -> None:
    """Edited in place, and ends as the answer. S2-01, S2-06, P6."""
    async with bot(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("One, *two*, ", gate, "three.")
        await world.ann.says("count")
        (message,) = await world.until(lambda: world.messages(world.ann.direct))
        assert "three" not in standing(message).text
        gate.open()
        await world.expect(world.ann.direct, "One, *two*, three.")
        assert world.slack.calls.count("chat.postMessage") == 1


async def test_messages_while_it_was_down_are_answered_in_order(tmp_path: Path) -> None:
    """In a direct chat and in a thread; a stranger hears nothing. S2-02, P1, P2, P4."""
    async with bot(tmp_path) as world:
        world.model.say("hello", key="hi")
        await world.ann.says("hi")
        await world.expect(world.ann.direct, "hello")
        world.model.say("hello all", key="hi all")
        first = await world.bob.says("@zeroclaw hi all", channel=world.team)
        await world.expect(world.team, "hello all", thread=first.ts)
        await world.daemon.kill()
        for word in ("one", "two"):
            world.model.say(f"to {word}", key=word)
            await world.ann.says(word)
        world.model.say("to bob", key="from bob")
        await world.mallory.says("let me in", channel=world.team, thread=first.ts)
        await world.bob.says("from bob", channel=world.team, thread=first.ts)
        await world.daemon.start()
        await world.expect(world.ann.direct, "hello", "to one", "to two")
        await world.expect(world.team, "hello all", "to bob", thread=first.ts)
        assert len(world.model.requests) == 5


async def test_an_answer_in_a_thread_is_streamed_and_outlives_a_kill(tmp_path: Path) -> None:
    """Streamed, then killed by `kill -9`: the stream that stands becomes the answer. S2-06, P1, P6."""
    async with bot(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("One, *two*, ", gate, "three.", key="count")
        question = await world.ann.says("@zeroclaw count", channel=world.team)
        await world.until(lambda: world.slack.streams)
        await world.daemon.kill()
        world.model.say("Three, two, one.", key="count")
        await world.daemon.start()
        await world.expect(world.team, "Three, two, one.", thread=question.ts)
        gate = world.model.gate()
        world.model.say("Four, ", gate, "five.", key="go on")
        await world.ann.says("go on", channel=world.team, thread=question.ts)
        await world.until(lambda: world.slack.streams)
        gate.open()
        await world.expect(world.team, "Three, two, one.", "Four, five.", thread=question.ts)
        assert not world.slack.streams
        assert world.slack.calls.count("chat.postMessage") == 0


async def test_an_answer_that_a_kill_cut_off_stands_once(tmp_path: Path) -> None:
    """The daemon dies by `kill -9` after Slack took the message and before it heard so. P1."""
    async with bot(tmp_path) as world:
        world.model.say("hello", key="hi")
        await world.ann.says("hi")
        await world.expect(world.ann.direct, "hello")
        world.model.say("once", key="again?")
        world.slack.will("chat.postMessage", Fault(hangs=True))
        await world.ann.says("again?")
        await world.expect(world.ann.direct, "hello", "once")
        world.model.say("once", key="again?")  # a turn that was not over is asked anew
        await world.restart()
        world.model.say("that is all", key="all?")
        await world.ann.says("all?")
        await world.expect(world.ann.direct, "hello", "once", "that is all")


async def test_a_file_that_a_kill_cut_off_stands_once(tmp_path: Path) -> None:
    """The daemon dies by `kill -9` after Slack took the file and before it heard so. P1."""
    async with bot(tmp_path, autonomy="full") as world:
        gate = world.model.gate()
        world.model.call("write_file", {"path": "a.csv", "content": "a;b"}, round=0)
        world.model.call("send_file", {"path": "a.csv", "caption": "here"}, round=1)
        world.model.say(gate, "There it is.", round=2)
        world.slack.will("chat.postMessage", Fault(hangs=True))
        await world.ann.says("make it")
        await world.until(lambda: world.messages(world.ann.direct))
        world.model.say("There it is.", round=2)
        await world.restart()
        await world.expect(world.ann.direct, "There it is.")
        file, _answer = world.messages(world.ann.direct)
        assert standing(file, world.slack).file == ("a.csv", 3)
        assert standing(file, world.slack).text == "here"


async def test_a_long_call_is_approved_with_the_file_that_shows_it(tmp_path: Path) -> None:
    """It stands in the card's message, whole, and the buttons work. S2-10, P5."""
    async with bot(tmp_path) as world:
        world.model.call("knock", {"what": "wood " * 4_000}, round=0)
        world.model.say("So be it.", round=1)
        await world.ann.says("please knock")
        card = await world.card()
        place = world.olga.direct
        (file,) = world.slack.links.values()
        assert b"wood " * 4_000 in world.slack.files[str(file["id"])]
        await world.olga.presses(str(card["ts"]), *world.button(card, "Approve once"))
        await world.until(lambda: "So be it." in world.texts(world.ann.direct))
        await world.until(lambda: not standing(world.messages(place)[0], world.slack).buttons)
        assert "approved by" in standing(world.messages(place)[0], world.slack).text
        assert world.bench.ran("knock") == ["wood " * 4_000]


async def test_a_denial_gives_its_reason_in_a_form(tmp_path: Path) -> None:
    """S2-09, P5."""
    async with bot(tmp_path) as world:
        world.model.call("knock", {"what": "on wood"}, round=0)
        world.model.say("So not.", round=1)
        await world.ann.says("please knock")
        card = await world.card()
        await world.olga.presses(str(card["ts"]), *world.button(card, "Deny, because …"))
        (form,) = await world.until(lambda: world.slack.views)
        await world.olga.submits(form, "not on a Sunday")
        await world.until(lambda: "So not." in world.texts(world.ann.direct))
        place = world.olga.direct
        await world.until(lambda: "not on a Sunday" in standing(world.messages(place)[0]).text)
        assert world.bench.ran("knock") == []
        assert "not on a Sunday" in repr(world.model.requests[-1].messages)


async def test_a_slash_command_and_a_deletion_are_obeyed(tmp_path: Path) -> None:
    """`/zeroclaw stop` ends the answer; what was deleted before its turn is not answered. S2-03."""
    async with bot(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("One, ", gate, "two.", key="count")
        await world.ann.says("count")
        await world.until(lambda: world.messages(world.ann.direct))
        withdrawn = await world.ann.says("and this")
        await (await world.ann.deletes(withdrawn)).confirmed.wait()
        await (await world.ann.commands("stop")).confirmed.wait()
        await world.until(lambda: "Stopped by ann" in world.texts(world.ann.direct)[0])
        gate.open()
        world.model.say("bye", key="bye")
        await world.ann.says("bye")
        await world.until(lambda: world.texts(world.ann.direct)[-1] == "bye")
        assert [request.last_user for request in world.model.requests] == ["count", "bye"]
