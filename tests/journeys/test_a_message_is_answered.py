"""Every message is answered once, in its own conversation, with all that was said before."""

from pathlib import Path

import pytest

from tests.journeys.daemon_process import PROGRAM, executed
from tests.journeys.world import world

pytestmark = pytest.mark.slow


async def test_a_message_is_answered(tmp_path: Path) -> None:
    """A person writes, the model is asked, and its whole answer stands in the chat, once.

    S2-01, S2-04, S2-14, S2-19, S3-01, S0-06, S0-20, P1.
    """
    # as it is installed: this is the one that executes the program
    async with world(tmp_path, command=(PROGRAM,), launch=executed) as here:
        here.model.say("Hello ", "Ann.")
        event = await here.say("ann", "hi")
        await here.answered("ann", "Hello Ann.")
        assert event.confirmed
        (request,) = here.model.requests
        assert [message["role"] for message in request.messages] == ["system", "user"]
        assert request.last_user == "hi"


async def test_the_model_reads_all_that_was_said_before(tmp_path: Path) -> None:
    """Each request carries the whole conversation, in order. S1-01, S1-03, S1-05, S3-05."""
    async with world(tmp_path) as here:
        here.model.say("Red.", key="first")
        here.model.say("Blue.", key="second")
        await here.say("ann", "first colour?")
        await here.answered("ann", "Red.")
        await here.say("ann", "second colour?")
        await here.answered("ann", "Red.", "Blue.")
        said = [(one["role"], one["content"]) for one in here.model.requests[-1].messages[1:]]
        assert said == [
            ("user", "first colour?"),
            ("assistant", "Red."),
            ("user", "second colour?"),
        ]


async def test_a_conversation_goes_on_after_a_restart(tmp_path: Path) -> None:
    """What was said before a kill is part of the next request. S2-14, S3-03."""
    async with world(tmp_path) as here:
        here.model.say("Red.", key="first")
        await here.say("ann", "first colour?")
        await here.answered("ann", "Red.")
        await here.daemon.restart()
        here.model.say("Blue.", key="second")
        await here.say("ann", "second colour?")
        await here.answered("ann", "Red.", "Blue.")
        contents = [one["content"] for one in here.model.requests[-1].messages[1:]]
        assert contents == ["first colour?", "Red.", "second colour?"]


async def test_messages_of_one_conversation_are_answered_in_order(tmp_path: Path) -> None:
    """What comes while a turn runs waits for it (P2)."""
    async with world(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("One", gate, ".", key="first")
        here.model.say("Two.", key="second")
        here.model.say("Three.", key="third")
        await here.say("ann", "first")
        await gate.reached()
        later = [await here.say("ann", text) for text in ("second", "third")]
        await here.platform.confirmed(*later)
        assert len(here.model.requests) == 1
        gate.open()
        await here.until(lambda: "Three." in here.chat("ann").answers)
        asked = [request.last_user for request in here.model.requests]
        assert asked == ["first", "second", "third"]
        answers = [text for text in here.chat("ann").answers if text in ("One.", "Two.", "Three.")]
        assert answers == ["One.", "Two.", "Three."]


async def test_conversations_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """Bob is answered while the model still writes to Ann (P2)."""
    async with world(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("For Ann", gate, ".", key="ann")
        here.model.say("For Bob.", key="bob")
        await here.say("ann", "ann asks")
        await gate.reached()
        await here.say("bob", "bob asks")
        await here.answered("bob", "For Bob.")
        assert here.chat("ann").answers == []
        gate.open()
        await here.answered("ann", "For Ann.")


async def test_people_of_a_group_share_one_conversation(tmp_path: Path) -> None:
    """The model is told who said what, and the answer stands in the group."""
    async with world(tmp_path) as here:
        here.model.say("Hello both.", key="hello")
        here.model.say("You are Bob.", key="who am I")
        await here.say("ann", "hello", chat="#room")
        await here.answered("#room", "Hello both.")
        await here.say("bob", "who am I?", chat="#room")
        await here.answered("#room", "Hello both.", "You are Bob.")
        contents = [one["content"] for one in here.model.requests[-1].messages[1:]]
        assert contents == ["ann: hello", "Hello both.", "bob: who am I?"]
        assert here.chat("ann").from_bot == []


async def test_a_thread_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    """What was said in one thread is not told in another, and the answer stands in its own."""
    async with world(tmp_path) as here:
        here.model.say("In one.", key="one")
        here.model.say("In two.", key="two")
        await here.say("ann", "one", chat="#room", thread="t1")
        await here.answered("#room", "In one.")
        await here.say("ann", "two", chat="#room", thread="t2")
        await here.answered("#room", "In one.", "In two.")
        assert [one.thread for one in here.chat("#room").said] == ["t1", "t2"]
        assert len(here.model.requests[-1].messages) == 2


async def test_a_long_answer_stands_as_several_messages(tmp_path: Path) -> None:
    """It is cut where the platform's limit wants it, and no word is lost. S2-20, P6."""
    words = " ".join(f"word{number}" for number in range(100))
    async with world(tmp_path, platform={"max_length": 200}) as here:
        here.model.say(words)
        await here.say("ann", "talk")
        await here.until(lambda: " ".join(" ".join(here.chat("ann").answers).split()) == words)
        assert max(len(text) for text in here.chat("ann").answers) <= 200


async def test_an_answer_stands_on_a_platform_that_edits_nothing(tmp_path: Path) -> None:
    """No draft is shown; the whole answer is sent once, at the end. S2-20."""
    async with world(tmp_path, platform={"can_edit": False, "can_delete": False}) as here:
        here.model.say("Hello ", "Ann.", size=2)
        await here.say("ann", "hi")
        await here.answered("ann", "Hello Ann.")
        assert [call.text for call in here.platform.called("send", "edit")] == ["Hello Ann."]


async def test_a_stranger_is_met_with_silence(tmp_path: Path) -> None:
    """Nothing reaches the model, nothing is said; the platform is told it was received (P4).

    S2-03.
    """
    async with world(tmp_path) as here:
        event = await here.say("mallory", "let me in")
        forged = await here.platform.say("ann", "I am Ann", verified=False)
        await here.platform.confirmed(event, forged)
        here.model.say("Hello.")
        await here.say("ann", "hi")
        await here.answered("ann", "Hello.")
        assert [request.last_user for request in here.model.requests] == ["hi"]
        assert here.chat("mallory").from_bot == []


async def test_the_daemon_ends_when_it_is_told_to(tmp_path: Path) -> None:
    """SIGTERM ends it with 0, and what comes then is answered by the next."""
    async with world(tmp_path) as here:
        assert await here.daemon.terminate() == 0
        await here.say("ann", "anybody?")
        here.model.say("I am back.")
        await here.daemon.start()
        await here.answered("ann", "I am back.")
