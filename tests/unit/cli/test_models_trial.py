"""What `zeroclaw models test` finds out of a model."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from tests.contract.provider_implementations import over
from tests.emulators.model_server import ModelServer
from tests.fakes.manual_clock import LoopClock
from zeroclaw.cli.models.trial import TOOL, Played, Tried, as_json, in_words, try_and_close, verdict
from zeroclaw.errors import ProviderUnusable
from zeroclaw.provider import Endpoint, ModelRequest, ProviderFacts, StreamEvent, TextDelta

SAID = "what a lobster is"
ASKED = "Call the tool"


@asynccontextmanager
async def trying() -> AsyncGenerator[ModelServer, None]:
    async with ModelServer() as server:
        server.say("A lobster ", "is a ", "crustacean.", key=SAID, usage=(12, 9))
        yield server


async def tried(server: ModelServer) -> Tried:
    return await try_and_close(over(Endpoint(base_url=server.url, model="m")))


async def test_a_model_that_does_all_is_told_so() -> None:
    """The definition of the tool goes with the second request only."""
    async with trying() as server:
        server.call(TOOL.name, {"word": "Lobster"}, key=ASKED)
        found = await tried(server)
        assert [one.tools for one in server.requests] == [[], [TOOL.name]]
    assert verdict(found) == ("`m` streams and calls tools: it can do all that zeroclaw offers")
    assert (found.answers, found.answer.pieces, found.answer.tokens) == (True, 3, 9)
    assert found.answer.first_s is not None
    words = "\n".join(in_words(found))
    assert "answer       A lobster is a crustacean.\ntool call    yes\n" in words
    assert as_json(found)["tool_call"] == "called"
    assert "is sent      text" in list(in_words(found))
    assert "window       nobody says; the first refusal will" in list(in_words(found))


async def test_who_says_how_much_a_model_reads_is_told() -> None:
    """The endpoint, when it is asked; so nobody wonders when a conversation is summed up (S0-16)."""
    async with trying() as server:
        server.listed = {"context_length": 65_536}
        found = await try_and_close(over(Endpoint(base_url=server.url, model="scripted")))
    assert "window       65,536 tokens, says the endpoint" in list(in_words(found))
    assert as_json(found)["window"] == "65,536 tokens, says the endpoint"


def test_what_a_model_is_sent_beside_text_is_told() -> None:
    """So that nobody wonders why it does not see a picture."""
    found = Tried(model="m", answer=Played(pieces=1), takes=("audio", "images"))
    assert "is sent      text, audio, images" in list(in_words(found))
    assert as_json(found)["takes"] == ("audio", "images")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("repeat_word", "{"), ("repeat_word", {"word": "crab"}), ("other", {"word": "lobster"})],
)
async def test_a_wrong_call_is_no_call(name: str, arguments: dict[str, object] | str) -> None:
    async with trying() as server:
        server.call(name, arguments, key=ASKED)
        found = await tried(server)
    assert verdict(found) == "`m` streams but calls tools wrongly: expect calls that fail"
    assert any(line.startswith(f"tool call    wrong: {name} ") for line in in_words(found))


async def test_a_model_that_only_talks_makes_no_tool_call() -> None:
    async with trying() as server:
        server.say("I would call it ", "now.", key=ASKED)
        found = await tried(server)
    assert verdict(found) == "`m` streams but makes no tool call: it can chat, and nothing else"
    assert "tool call    no tool call" in list(in_words(found))


async def test_a_model_that_thinks_for_too_long_is_told_so() -> None:
    """It may call tools, but nobody would wait for it."""
    async with trying() as server:
        server.say("", reasoning="Should I call it?", finish="length", key=ASKED)
        found = await tried(server)
    assert verdict(found) == "`m` streams but makes no tool call within 2048 tokens"


async def test_an_endpoint_that_refuses_tools_is_quoted() -> None:
    """As Ollama does for models without tools."""
    async with trying() as server:
        server.refuse(400, "`m` does not support tools", key=ASKED)
        found = await tried(server)
    assert verdict(found).startswith("`m` streams but makes no tool call: with tools its endpoint")
    assert "does not support tools" in verdict(found)
    assert found.answers


async def test_an_answer_in_one_piece_is_told_so() -> None:
    async with ModelServer() as server:
        server.say("A crustacean.", key=SAID, usage=(3, 0))
        server.call(TOOL.name, {"word": "lobster"}, key=ASKED)
        found = await tried(server)
    assert verdict(found).startswith("`m` answers in one piece and calls tools")
    assert "speed        came in one piece" in list(in_words(found))


async def test_a_model_that_does_not_answer_is_asked_no_more() -> None:
    """P10: the endpoint's own word, in one line."""
    async with ModelServer() as server:
        server.refuse(404, "model `m` not found", key=SAID)
        found = await tried(server)
        assert len(server.requests) == 1
    assert not found.answers
    assert verdict(found).startswith("`m` does not answer: ")
    assert "model `m` not found" in verdict(found)
    assert list(in_words(found)) == [verdict(found)]


class Slow:
    """A model that takes two seconds to load, and one for each word; or does not load."""

    def __init__(self, clock: LoopClock, *, fails: bool = False) -> None:
        self._clock = clock
        self._fails = fails

    facts = ProviderFacts(model="slow")

    async def start(self) -> None:
        if self._fails:
            raise ProviderUnusable("no model at `x`")

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        yield TextDelta(text="a\x1b[2J")
        yield TextDelta(text="b")

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_a_model_that_does_not_load_does_not_answer() -> None:
    clock = LoopClock()
    found = await try_and_close(Slow(clock, fails=True), clock)
    assert verdict(found) == "`slow` does not answer: no model at `x`"
    loaded = await try_and_close(Slow(clock), clock)
    assert loaded.load_s is not None
    assert "\x1b" not in "\n".join(in_words(loaded))


def test_speed_is_of_the_writing_and_not_of_the_waiting() -> None:
    """The first token takes as long as reading the question does."""
    played = Played(pieces=11, first_s=5.0, writing_s=2.0, tokens=21)
    assert played.per_second == 10.0
    guessed = Tried(model="m", answer=Played(pieces=11, first_s=5.0, writing_s=2.0))
    assert "speed        about 5 tokens a second" in list(in_words(guessed))
    at_once = Tried(model="m", answer=Played(pieces=11, first_s=5.0))
    assert "speed        too fast to measure" in list(in_words(at_once))
    assert verdict(at_once).startswith("`m` streams")
