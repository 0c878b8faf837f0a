"""A person with a bot's token has a bot that answers every message once, and asks its operator."""

from pathlib import Path

import pytest

from channels.discord.emulator.server import Fault
from tests.journeys.discord.bot import bot

pytestmark = pytest.mark.slow

SEND = r"/channels/\d+/messages$"


async def test_a_message_is_answered_once_in_a_message_that_grows(tmp_path: Path) -> None:
    """Edited in place, and ends as the answer. S2-01, S2-06, P6."""
    async with bot(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("One, *two*, ", gate, "three.")
        here.ann.says(here.ann.direct, "count")
        (message,) = await here.until(lambda: here.discord.from_bot(here.ann.direct))
        assert "three" not in message.content
        gate.open()
        await here.expect(here.ann.direct, "One, *two*, three.")
        sent = [
            path
            for method, path in here.discord.calls
            if (method, path[-9:]) == ("POST", "/messages")
        ]
        assert len(sent) == 1


async def test_what_was_said_while_it_was_down_is_answered_in_order(tmp_path: Path) -> None:
    """In a direct chat and in a server; a stranger hears nothing. S2-02, P1, P2, P4."""
    call = "<@{}> "
    async with bot(tmp_path) as here:
        call = call.format(here.discord.bot)
        here.model.say("hello", key="hi")
        here.ann.says(here.ann.direct, "hi")
        await here.expect(here.ann.direct, "hello")
        here.model.say("hello all", key="hi all")
        here.bob.says(here.general, f"{call}hi all")
        await here.expect(here.general, "hello all")
        await here.daemon.kill()
        for word in ("one", "two"):
            here.model.say(f"to {word}", key=word)
            here.ann.says(here.ann.direct, word)
        here.model.say("to bob", key="from bob")
        here.mallory.says(here.general, f"{call}let me in")
        here.bob.says(here.general, f"{call}from bob")
        await here.daemon.start()
        await here.expect(here.ann.direct, "hello", "to one", "to two")
        await here.expect(here.general, "hello all", "to bob")
        assert len(here.model.requests) == 5


async def test_a_mention_that_is_added_by_an_edit_is_answered_once(tmp_path: Path) -> None:
    """People forget it and add it. What was answered is a question no more; strangers stay unheard."""
    async with bot(tmp_path) as here:
        call = f"<@{here.discord.bot}> "
        here.model.say("It is noon.")
        strange = here.mallory.says(here.general, "hi")
        asked = here.ann.says(here.general, "what time is it?")
        here.mallory.edits(strange, f"{call}hi")
        here.ann.edits(asked, f"{call}what time is it?")
        await here.expect(here.general, "It is noon.")
        await here.restart()
        here.ann.edits(asked, f"{call}what time is it now?")
        here.model.say("Bye.", key="bye")
        here.bob.says(here.general, f"{call}bye")
        await here.expect(here.general, "It is noon.", "Bye.")
        assert len(here.model.requests) == 2


async def test_an_answer_that_a_kill_cut_off_stands_once(tmp_path: Path) -> None:
    """The daemon dies by `kill -9` after Discord took the message and before it heard so. P1."""
    # not streamed, or what hangs may be the beginning of the answer
    async with bot(tmp_path, channel={"stream": False}) as here:
        here.model.say("hello", key="hi")
        here.ann.says(here.ann.direct, "hi")
        await here.expect(here.ann.direct, "hello")
        here.model.say("once", key="again?")
        here.discord.will(Fault(method="POST", path=SEND, carried_out=True, hangs=True))
        here.ann.says(here.ann.direct, "again?")
        await here.expect(here.ann.direct, "hello", "once")
        await here.restart()
        here.model.say("that is all", key="all?")
        here.ann.says(here.ann.direct, "all?")
        await here.expect(here.ann.direct, "hello", "once", "that is all")


async def test_a_denial_gives_its_reason_in_a_form(tmp_path: Path) -> None:
    """S2-09, P5."""
    async with bot(tmp_path) as here:
        here.model.call("knock", {"what": "on wood"}, round=0)
        here.model.say("So not.", round=1)
        here.ann.says(here.ann.direct, "please knock")
        card = await here.card()
        pressed = here.olga.presses(here.olga.direct, card.id, here.button(card, "Deny, because …"))
        await here.until(lambda: pressed.answers)
        here.olga.submits(pressed, "not on a Sunday")
        await here.until(lambda: "So not." in here.texts(here.ann.direct))
        await here.until(lambda: "not on a Sunday" in card.content)
        assert here.bench.ran("knock") == []
        assert "not on a Sunday" in repr(here.model.requests[-1].messages)


async def test_a_slash_command_and_a_deletion_are_obeyed(tmp_path: Path) -> None:
    """`/stop` ends the answer; what was deleted before its turn is not answered. S2-03."""
    async with bot(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("One, ", gate, "two.", key="count")
        here.ann.says(here.ann.direct, "count")
        await here.until(lambda: here.discord.from_bot(here.ann.direct))
        withdrawn = here.ann.says(here.ann.direct, "and this")
        here.ann.deletes(withdrawn)
        used = here.ann.uses(here.ann.direct, "stop")
        await here.until(lambda: used.answers)
        await here.until(lambda: "Stopped by ann" in here.texts(here.ann.direct)[0])
        gate.open()
        here.model.say("bye", key="bye")
        here.ann.says(here.ann.direct, "bye")
        await here.until(lambda: here.texts(here.ann.direct)[-1] == "bye")
        assert [request.last_user for request in here.model.requests] == ["count", "bye"]
