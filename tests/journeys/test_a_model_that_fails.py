"""Whatever the model's endpoint does, the person reads the cause and can continue (P10)."""

from pathlib import Path

import pytest

from tests.emulators.model_scripts import delta
from tests.journeys.test_a_long_conversation import journal
from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow


async def reports_and_goes_on(world: World, *parts: str) -> str:
    """Let Ann write, wait for the notice to her, and check that her next message is answered."""
    await world.say("ann", "first")
    await world.until(lambda: world.chat("ann").answers)
    notice = world.chat("ann").answers[-1]
    assert [part for part in parts if part not in notice] == []
    world.model.reset()
    world.model.say("All is well.", key="second")
    await world.say("ann", "second")
    await world.until(lambda: world.chat("ann").answers[-1] == "All is well.")
    return notice


async def test_a_stream_that_is_no_stream(tmp_path: Path) -> None:
    """Bytes that are no events. S1-14, S2-21."""
    async with open_world(tmp_path) as world:
        world.model.raw(b"data: {nonsense\n\ndata: [DONE]\n\n", times=None)
        await reports_and_goes_on(world, "/retry")


async def test_a_stream_that_is_cut_once_is_asked_again(tmp_path: Path) -> None:
    """Nothing had run yet, so the retry goes unnoticed. K5."""
    async with open_world(tmp_path) as world:
        world.model.say("Half an", cut=True)
        world.model.say("A whole answer.")
        await world.say("ann", "hi")
        await world.expect("ann", "A whole answer.")
        assert len(world.chat("ann").replies) == 1


async def test_a_200_with_an_error_in_it(tmp_path: Path) -> None:
    """Some endpoints answer so; its text reaches the person, redacted."""
    async with open_world(tmp_path) as world:
        world.model.json({"error": {"message": "the model is not loaded"}}, times=None)
        await reports_and_goes_on(world, "the model is not loaded")


async def test_an_endpoint_that_refuses_the_key(tmp_path: Path) -> None:
    """The operator has to act, and the person reads so."""
    async with open_world(tmp_path) as world:
        world.model.refuse(401, "invalid api key", times=None)
        await reports_and_goes_on(world, "operator")


async def test_a_model_that_says_nothing(tmp_path: Path) -> None:
    """A stream without text, call or reasoning leads to a notice, never to an empty message."""
    async with open_world(tmp_path) as world:
        world.model.say(times=None)
        await reports_and_goes_on(world)


async def test_a_model_that_stands_still(tmp_path: Path) -> None:
    """The watchdog ends the wait, also in the middle of a stream."""
    provider = {"stall_s": 2.0, "attempts": 1}  # its first piece comes within them
    async with open_world(tmp_path, provider=provider) as world:
        world.model.say("Half ", world.model.gate(), times=None)
        notice = await reports_and_goes_on(world, "/retry")
        assert notice.startswith("Half")


async def test_an_answer_that_ends_at_the_limit_says_so(tmp_path: Path) -> None:
    """The text so far stays, with a note. S1-14."""
    async with open_world(tmp_path) as world:
        world.model.say("As I was saying", finish="length")
        await world.say("ann", "talk")
        await world.until(lambda: world.chat("ann").answers)
        assert world.chat("ann").answers[0].startswith("As I was saying")
        assert "cut off" in world.chat("ann").answers[0]


async def test_arguments_that_are_no_json_are_reported_to_the_model(tmp_path: Path) -> None:
    """No exception leaves the loop; the model reads the fault and tries again. S1-11, S1-12."""
    async with open_world(tmp_path) as world:
        world.model.call("peek", '{"what": ', round=0)
        world.model.call("peek", '{"what": "a", "what": "b"}', round=1)
        world.model.say("I give up.", round=2)
        await world.say("ann", "look")
        await world.expect("ann", "I give up.")
        assert world.bench.runs == []
        assert ["can't be used" in result for result in world.tool_results()] == [True, True]


async def test_arguments_that_do_not_fit_are_reported_with_their_path(tmp_path: Path) -> None:
    """Every fault is named. S1-11, S1-12."""
    async with open_world(tmp_path) as world:
        world.model.call("peek", {"times": "many", "speed": 3}, round=0)
        world.model.say("I give up.", round=1)
        await world.say("ann", "look")
        await world.expect("ann", "I give up.")
        (result,) = world.tool_results()
        assert [name for name in ("what", "times", "speed") if name not in result] == []


async def test_a_tool_that_does_not_exist_is_reported_with_those_that_do(tmp_path: Path) -> None:
    """The rest of the batch runs. S1-21."""
    async with open_world(tmp_path) as world:
        world.model.calls(("peak", {"what": "x"}), ("peek", {"what": "y"}), round=0)
        world.model.say("Seen.", round=1)
        await world.say("ann", "look")
        await world.expect("ann", "Seen.")
        unknown, existing = world.tool_results()
        assert "no tool `peak`" in unknown
        assert "peek" in unknown
        assert "peek: y" in existing


async def test_a_model_that_never_stops_calling_tools_is_stopped(tmp_path: Path) -> None:
    """The bound counts rounds, and the person reads what may have happened. S0-43, S0-44, K1."""
    async with open_world(tmp_path, runtime={"max_iterations": 3}) as world:
        world.model.call("peek", {"what": "again"}, times=None)
        await world.say("ann", "look")
        await world.until(lambda: world.chat("ann").answers)
        assert "may already have completed" in world.chat("ann").answers[-1]
        assert len(world.bench.runs) == 3
        assert len(world.model.requests) == 3


async def test_reasoning_is_never_shown_and_goes_back_only_with_calls(tmp_path: Path) -> None:
    """S1-24, S1-25, S1-26."""
    async with open_world(tmp_path) as world:
        world.model.call("peek", {"what": "x"}, reasoning="hmm, look first", round=0)
        world.model.say("Seen.", reasoning="that was it", round=1)
        await world.say("ann", "look")
        await world.expect("ann", "Seen.")
        assert "hmm, look first" in str(world.model.requests[1].body)
        world.model.say("Hello.", key="hi")
        await world.say("ann", "hi")
        await world.expect("ann", "Seen.", "Hello.")
        last = str(world.model.requests[-1].body)
        assert "hmm, look first" in last
        assert "that was it" not in last
        assert "hmm, look first" in str(world.model.requests[2].body)
        assert "that was it" not in str(world.model.requests[2].body)
        assert "hmm" not in world.chat("ann").ever
        assert await world.daemon.terminate() == 0
        journalled = str(await journal(world))
        assert "that was it" in journalled
        assert "hmm, look first" in journalled


async def test_a_stream_is_read_wherever_its_bytes_are_split(tmp_path: Path) -> None:
    """Every byte comes in a separate chunk, also those of multi-byte letters. S2-21."""
    events = [delta(content="Grüße, "), delta(content="👩🏽‍🚀"), delta(finish_reason="stop")]
    stream = b"".join(event.data for event in events) + b"data: [DONE]\n\n"
    async with open_world(tmp_path) as world:
        world.model.raw(*(stream[at : at + 1] for at in range(len(stream))))
        await world.say("ann", "hi")
        await world.expect("ann", "Grüße, 👩🏽‍🚀")
