"""A person with an app's tokens has a bot that answers every message once, and asks its operator."""

from pathlib import Path

import pytest

from channels.slack.emulator.server import Fault
from tests.contract.slack_harness import standing
from tests.journeys.slack.bot import bot

pytestmark = [pytest.mark.slow, pytest.mark.needs("emulate")]


async def test_a_message_is_answered_once_in_a_message_that_grows(tmp_path: Path) -> None:
    """Edited in place, and ends as the answer. S2-01, S2-06, P6."""
    async with bot(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("One, *two*, ", gate, "three.")
        await here.ann.says("count")
        (message,) = await here.until(lambda: here.messages(here.ann.direct))
        assert "three" not in standing(message).text
        gate.open()
        await here.expect(here.ann.direct, "One, *two*, three.")
        assert here.slack.calls.count("chat.postMessage") == 1


async def test_what_was_said_while_it_was_down_is_answered_in_order(tmp_path: Path) -> None:
    """In a direct chat and in a thread; a stranger hears nothing. S2-02, P1, P2, P4."""
    async with bot(tmp_path) as here:
        here.model.say("hello", key="hi")
        await here.ann.says("hi")
        await here.expect(here.ann.direct, "hello")
        here.model.say("hello all", key="hi all")
        first = await here.bob.says("@zeroclaw hi all", channel=here.team)
        await here.expect(here.team, "hello all", thread=first.ts)
        await here.daemon.kill()
        for word in ("one", "two"):
            here.model.say(f"to {word}", key=word)
            await here.ann.says(word)
        here.model.say("to bob", key="from bob")
        await here.mallory.says("let me in", channel=here.team, thread=first.ts)
        await here.bob.says("from bob", channel=here.team, thread=first.ts)
        await here.daemon.start()
        await here.expect(here.ann.direct, "hello", "to one", "to two")
        await here.expect(here.team, "hello all", "to bob", thread=first.ts)
        assert len(here.model.requests) == 5


async def test_an_answer_in_a_thread_is_streamed_and_outlives_a_kill(tmp_path: Path) -> None:
    """Streamed, then killed by `kill -9`: the stream that stands becomes the answer. S2-06, P1, P6."""
    async with bot(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("One, *two*, ", gate, "three.", key="count")
        asked = await here.ann.says("@zeroclaw count", channel=here.team)
        await here.until(lambda: here.slack.streams)
        await here.daemon.kill()
        here.model.say("Three, two, one.", key="count")
        await here.daemon.start()
        await here.expect(here.team, "Three, two, one.", thread=asked.ts)
        gate = here.model.gate()
        here.model.say("Four, ", gate, "five.", key="go on")
        await here.ann.says("go on", channel=here.team, thread=asked.ts)
        await here.until(lambda: here.slack.streams)
        gate.open()
        await here.expect(here.team, "Three, two, one.", "Four, five.", thread=asked.ts)
        assert not here.slack.streams
        assert here.slack.calls.count("chat.postMessage") == 0


async def test_an_answer_that_a_kill_cut_off_stands_once(tmp_path: Path) -> None:
    """The daemon dies by `kill -9` after Slack took the message and before it heard so. P1."""
    async with bot(tmp_path) as here:
        here.model.say("hello", key="hi")
        await here.ann.says("hi")
        await here.expect(here.ann.direct, "hello")
        here.model.say("once", key="again?")
        here.slack.will("chat.postMessage", Fault(hangs=True))
        await here.ann.says("again?")
        await here.expect(here.ann.direct, "hello", "once")
        here.model.say("once", key="again?")  # a turn that was not over is asked anew
        await here.restart()
        here.model.say("that is all", key="all?")
        await here.ann.says("all?")
        await here.expect(here.ann.direct, "hello", "once", "that is all")


async def test_a_file_that_a_kill_cut_off_stands_once(tmp_path: Path) -> None:
    """The daemon dies by `kill -9` after Slack took the file and before it heard so. P1."""
    async with bot(tmp_path, autonomy="full") as here:
        gate = here.model.gate()
        here.model.call("write_file", {"path": "a.csv", "content": "a;b"}, round=0)
        here.model.call("send_file", {"path": "a.csv", "caption": "here"}, round=1)
        here.model.say(gate, "There it is.", round=2)
        here.slack.will("chat.postMessage", Fault(hangs=True))
        await here.ann.says("make it")
        await here.until(lambda: here.messages(here.ann.direct))
        here.model.say("There it is.", round=2)
        await here.restart()
        await here.expect(here.ann.direct, "There it is.")
        file, _answer = here.messages(here.ann.direct)
        assert standing(file, here.slack).file == ("a.csv", 3)
        assert standing(file, here.slack).text == "here"


async def test_a_long_call_is_approved_with_the_file_that_shows_it(tmp_path: Path) -> None:
    """It stands in the card's message, whole, and the buttons work. S2-10, P5."""
    async with bot(tmp_path) as here:
        here.model.call("knock", {"what": "wood " * 4_000}, round=0)
        here.model.say("So be it.", round=1)
        await here.ann.says("please knock")
        card = await here.card()
        place = here.olga.direct
        (file,) = here.slack.links.values()
        assert b"wood " * 4_000 in here.slack.files[str(file["id"])]
        await here.olga.presses(str(card["ts"]), *here.button(card, "Approve once"))
        await here.until(lambda: "So be it." in here.texts(here.ann.direct))
        await here.until(lambda: not standing(here.messages(place)[0], here.slack).buttons)
        assert "approved by" in standing(here.messages(place)[0], here.slack).text
        assert here.bench.ran("knock") == ["wood " * 4_000]


async def test_a_denial_gives_its_reason_in_a_form(tmp_path: Path) -> None:
    """S2-09, P5."""
    async with bot(tmp_path) as here:
        here.model.call("knock", {"what": "on wood"}, round=0)
        here.model.say("So not.", round=1)
        await here.ann.says("please knock")
        card = await here.card()
        await here.olga.presses(str(card["ts"]), *here.button(card, "Deny, because …"))
        (form,) = await here.until(lambda: here.slack.views)
        await here.olga.submits(form, "not on a Sunday")
        await here.until(lambda: "So not." in here.texts(here.ann.direct))
        place = here.olga.direct
        await here.until(lambda: "not on a Sunday" in standing(here.messages(place)[0]).text)
        assert here.bench.ran("knock") == []
        assert "not on a Sunday" in repr(here.model.requests[-1].messages)


async def test_a_slash_command_and_a_deletion_are_obeyed(tmp_path: Path) -> None:
    """`/zeroclaw stop` ends the answer; what was deleted before its turn is not answered. S2-03."""
    async with bot(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("One, ", gate, "two.", key="count")
        await here.ann.says("count")
        await here.until(lambda: here.messages(here.ann.direct))
        withdrawn = await here.ann.says("and this")
        await (await here.ann.deletes(withdrawn)).confirmed.wait()
        await (await here.ann.commands("stop")).confirmed.wait()
        await here.until(lambda: "Stopped by ann" in here.texts(here.ann.direct)[0])
        gate.open()
        here.model.say("bye", key="bye")
        await here.ann.says("bye")
        await here.until(lambda: here.texts(here.ann.direct)[-1] == "bye")
        assert [request.last_user for request in here.model.requests] == ["count", "bye"]
