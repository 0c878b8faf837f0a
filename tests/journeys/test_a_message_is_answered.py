"""Every message is answered once, in its own conversation, with all messages before."""

from pathlib import Path

import pytest

from tests.journeys.daemon_process import PROGRAM, spawn
from tests.journeys.world import open_world

pytestmark = pytest.mark.slow


async def test_a_message_is_answered(tmp_path: Path) -> None:
    """A person writes, the model is called, and its whole answer appears in the chat, once.

    S2-01, S2-04, S2-14, S2-19, S3-01, S0-06, S0-20, P1.
    """
    # as it is installed: this is the one that executes the program
    async with open_world(tmp_path, command=(PROGRAM,), launch=spawn) as world:
        world.model.say("Hello ", "Ann.")
        event = await world.say("ann", "hi")
        await world.expect("ann", "Hello Ann.")
        assert event.confirmed
        (request,) = world.model.requests
        assert [message["role"] for message in request.messages] == ["system", "user"]
        assert request.last_user == "hi"


async def test_the_model_reads_all_messages_before(tmp_path: Path) -> None:
    """Each request carries the whole conversation, in order. S1-01, S1-03, S1-05, S3-05."""
    async with open_world(tmp_path) as world:
        world.model.say("Red.", key="first")
        world.model.say("Blue.", key="second")
        await world.say("ann", "first colour?")
        await world.expect("ann", "Red.")
        await world.say("ann", "second colour?")
        await world.expect("ann", "Red.", "Blue.")
        history = [
            (message["role"], message["content"])
            for message in world.model.requests[-1].messages[1:]
        ]
        assert history == [
            ("user", "first colour?"),
            ("assistant", "Red."),
            ("user", "second colour?"),
        ]


async def test_a_conversation_goes_on_after_a_restart(tmp_path: Path) -> None:
    """Messages from before a kill are part of the next request. S2-14, S3-03."""
    async with open_world(tmp_path) as world:
        world.model.say("Red.", key="first")
        await world.say("ann", "first colour?")
        await world.expect("ann", "Red.")
        await world.daemon.restart()
        world.model.say("Blue.", key="second")
        await world.say("ann", "second colour?")
        await world.expect("ann", "Red.", "Blue.")
        contents = [message["content"] for message in world.model.requests[-1].messages[1:]]
        assert contents == ["first colour?", "Red.", "second colour?"]


async def test_messages_of_one_conversation_are_answered_in_order(tmp_path: Path) -> None:
    """A message that comes while a turn runs waits for it (P2)."""
    async with open_world(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("One", gate, ".", key="first")
        world.model.say("Two.", key="second")
        world.model.say("Three.", key="third")
        await world.say("ann", "first")
        await gate.reached()
        later = [await world.say("ann", text) for text in ("second", "third")]
        await world.platform.confirmed(*later)
        assert len(world.model.requests) == 1
        gate.open()
        await world.until(lambda: "Three." in world.chat("ann").answers)
        questions = [request.last_user for request in world.model.requests]
        assert questions == ["first", "second", "third"]
        answers = [text for text in world.chat("ann").answers if text in ("One.", "Two.", "Three.")]
        assert answers == ["One.", "Two.", "Three."]


async def test_conversations_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """Bob is answered while the model still writes to Ann (P2)."""
    async with open_world(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("For Ann", gate, ".", key="ann")
        world.model.say("For Bob.", key="bob")
        await world.say("ann", "ann asks")
        await gate.reached()
        await world.say("bob", "bob asks")
        await world.expect("bob", "For Bob.")
        assert world.chat("ann").answers == []
        gate.open()
        await world.expect("ann", "For Ann.")


async def test_people_of_a_group_share_one_conversation(tmp_path: Path) -> None:
    """The model reads who wrote which message, and the answer appears in the group."""
    async with open_world(tmp_path) as world:
        world.model.say("Hello both.", key="hello")
        world.model.say("You are Bob.", key="who am I")
        await world.say("ann", "hello", chat="#room")
        await world.expect("#room", "Hello both.")
        await world.say("bob", "who am I?", chat="#room")
        await world.expect("#room", "Hello both.", "You are Bob.")
        contents = [message["content"] for message in world.model.requests[-1].messages[1:]]
        assert contents == ["ann: hello", "Hello both.", "bob: who am I?"]
        assert world.chat("ann").from_bot == []


async def test_a_thread_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    """A thread's request has no messages of another thread, and its answer appears in it."""
    async with open_world(tmp_path) as world:
        world.model.say("In one.", key="one")
        world.model.say("In two.", key="two")
        await world.say("ann", "one", chat="#room", thread="t1")
        await world.expect("#room", "In one.")
        await world.say("ann", "two", chat="#room", thread="t2")
        await world.expect("#room", "In one.", "In two.")
        assert [message.thread for message in world.chat("#room").replies] == ["t1", "t2"]
        assert len(world.model.requests[-1].messages) == 2


async def test_a_long_answer_stands_as_several_messages(tmp_path: Path) -> None:
    """It is cut where the platform's limit wants it, and no word is lost. S2-20, P6."""
    answer = " ".join(f"word{number}" for number in range(100))
    async with open_world(tmp_path, platform={"max_length": 200}) as world:
        world.model.say(answer)
        await world.say("ann", "talk")
        await world.until(lambda: " ".join(" ".join(world.chat("ann").answers).split()) == answer)
        assert max(len(text) for text in world.chat("ann").answers) <= 200


async def test_an_answer_stands_on_a_platform_that_edits_nothing(tmp_path: Path) -> None:
    """No draft is shown; the whole answer is sent once, at the end. S2-20."""
    async with open_world(tmp_path, platform={"can_edit": False, "can_delete": False}) as world:
        world.model.say("Hello ", "Ann.", size=2)
        await world.say("ann", "hi")
        await world.expect("ann", "Hello Ann.")
        assert [call.text for call in world.platform.called("send", "edit")] == ["Hello Ann."]


async def test_a_stranger_is_met_with_silence(tmp_path: Path) -> None:
    """Nothing reaches the model, the bot is silent, and the platform gets its acknowledgement (P4).

    S2-03.
    """
    async with open_world(tmp_path) as world:
        event = await world.say("mallory", "let me in")
        forged = await world.platform.say("ann", "I am Ann", verified=False)
        await world.platform.confirmed(event, forged)
        world.model.say("Hello.")
        await world.say("ann", "hi")
        await world.expect("ann", "Hello.")
        assert [request.last_user for request in world.model.requests] == ["hi"]
        assert world.chat("mallory").from_bot == []


async def test_the_daemon_ends_on_a_signal(tmp_path: Path) -> None:
    """SIGTERM ends it with 0, and what comes then is answered by the next."""
    async with open_world(tmp_path) as world:
        assert await world.daemon.terminate() == 0
        await world.say("ann", "anybody?")
        world.model.say("I am back.")
        await world.daemon.start()
        await world.expect("ann", "I am back.")
