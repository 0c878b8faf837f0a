"""A person with a bot's token has a bot that answers every message once, and asks its operator."""

from pathlib import Path

import pytest

from channels.discord.emulator.server import Fault
from tests.journeys.discord.bot import bot

pytestmark = pytest.mark.slow

SEND = r"/channels/\d+/messages$"


async def test_a_message_is_answered_once_in_a_message_that_grows(tmp_path: Path) -> None:
    """Edited in place, and ends as the answer. S2-01, S2-06, P6."""
    async with bot(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("One, *two*, ", gate, "three.")
        world.ann.says(world.ann.direct, "count")
        (message,) = await world.until(lambda: world.discord.from_bot(world.ann.direct))
        assert "three" not in message.content
        gate.open()
        await world.expect(world.ann.direct, "One, *two*, three.")
        sent = [
            path
            for method, path in world.discord.calls
            if (method, path[-9:]) == ("POST", "/messages")
        ]
        assert len(sent) == 1


async def test_messages_while_it_was_down_are_answered_in_order(tmp_path: Path) -> None:
    """In a direct chat and in a server; a stranger hears nothing. S2-02, P1, P2, P4."""
    call = "<@{}> "
    async with bot(tmp_path) as world:
        call = call.format(world.discord.bot)
        world.model.say("hello", key="hi")
        world.ann.says(world.ann.direct, "hi")
        await world.expect(world.ann.direct, "hello")
        world.model.say("hello all", key="hi all")
        world.bob.says(world.general, f"{call}hi all")
        await world.expect(world.general, "hello all")
        await world.daemon.kill()
        for word in ("one", "two"):
            world.model.say(f"to {word}", key=word)
            world.ann.says(world.ann.direct, word)
        world.model.say("to bob", key="from bob")
        world.mallory.says(world.general, f"{call}let me in")
        world.bob.says(world.general, f"{call}from bob")
        await world.daemon.start()
        await world.expect(world.ann.direct, "hello", "to one", "to two")
        await world.expect(world.general, "hello all", "to bob")
        assert len(world.model.requests) == 5


async def test_a_mention_that_is_added_by_an_edit_is_answered_once(tmp_path: Path) -> None:
    """People forget it and add it. What was answered is a question no more; strangers stay unheard."""
    async with bot(tmp_path) as world:
        call = f"<@{world.discord.bot}> "
        world.model.say("It is noon.")
        strange = world.mallory.says(world.general, "hi")
        question = world.ann.says(world.general, "what time is it?")
        world.mallory.edits(strange, f"{call}hi")
        world.ann.edits(question, f"{call}what time is it?")
        await world.expect(world.general, "It is noon.")
        await world.restart()
        world.ann.edits(question, f"{call}what time is it now?")
        world.model.say("Bye.", key="bye")
        world.bob.says(world.general, f"{call}bye")
        await world.expect(world.general, "It is noon.", "Bye.")
        assert len(world.model.requests) == 2


async def test_an_answer_that_a_kill_cut_off_stands_once(tmp_path: Path) -> None:
    """The daemon dies by `kill -9` after Discord took the message and before it heard so. P1."""
    # not streamed, or what hangs may be the beginning of the answer
    async with bot(tmp_path, channel={"stream": False}) as world:
        world.model.say("hello", key="hi")
        world.ann.says(world.ann.direct, "hi")
        await world.expect(world.ann.direct, "hello")
        world.model.say("once", key="again?")
        world.discord.will(Fault(method="POST", path=SEND, carried_out=True, hangs=True))
        world.ann.says(world.ann.direct, "again?")
        await world.expect(world.ann.direct, "hello", "once")
        await world.restart()
        world.model.say("that is all", key="all?")
        world.ann.says(world.ann.direct, "all?")
        await world.expect(world.ann.direct, "hello", "once", "that is all")


async def test_a_denial_gives_its_reason_in_a_form(tmp_path: Path) -> None:
    """S2-09, P5."""
    async with bot(tmp_path) as world:
        world.model.call("knock", {"what": "on wood"}, round=0)
        world.model.say("So not.", round=1)
        world.ann.says(world.ann.direct, "please knock")
        card = await world.card()
        pressed = world.olga.presses(
            world.olga.direct, card.id, world.button(card, "Deny, because …")
        )
        await world.until(lambda: pressed.answers)
        world.olga.submits(pressed, "not on a Sunday")
        await world.until(lambda: "So not." in world.texts(world.ann.direct))
        await world.until(lambda: "not on a Sunday" in card.content)
        assert world.bench.ran("knock") == []
        assert "not on a Sunday" in repr(world.model.requests[-1].messages)


async def test_a_slash_command_and_a_deletion_are_obeyed(tmp_path: Path) -> None:
    """`/stop` ends the answer; what was deleted before its turn is not answered. S2-03."""
    async with bot(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("One, ", gate, "two.", key="count")
        world.ann.says(world.ann.direct, "count")
        await world.until(lambda: world.discord.from_bot(world.ann.direct))
        withdrawn = world.ann.says(world.ann.direct, "and this")
        world.ann.deletes(withdrawn)
        used = world.ann.uses(world.ann.direct, "stop")
        await world.until(lambda: used.answers)
        await world.until(lambda: "Stopped by ann" in world.texts(world.ann.direct)[0])
        gate.open()
        world.model.say("bye", key="bye")
        world.ann.says(world.ann.direct, "bye")
        await world.until(lambda: world.texts(world.ann.direct)[-1] == "bye")
        assert [request.last_user for request in world.model.requests] == ["count", "bye"]
