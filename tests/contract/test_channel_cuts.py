"""Every channel's promises when its connection is cut: it reconnects, loses and doubles nothing."""

import asyncio
from pathlib import Path

import pytest

from tests.contract.channel_house import Home, living
from tests.contract.channel_suite import Adapter
from tests.contract.channel_words import real_channels
from tests.fakes.scripted_model import says
from zeroclaw.provider import Finished, TextDelta

# Most open real sockets.
pytestmark = pytest.mark.slow

LONG = "lorem ipsum " * 100  # what `Relay` takes for a mail
REPEATED = "\n\n(possible repeat)"


async def say_and_cut(home: Home, text: str, holding: asyncio.Event) -> None:
    """Write, and cut the connection while the event is held; write again if it is not acknowledged."""
    holding.clear()
    home.came.clear()
    async with asyncio.TaskGroup() as group:
        saying = group.create_task(home.say("ann", text))
        await home.came.wait()
        await home.harness.cut()
        holding.set()
    assert saying.result() or await home.harness.redeliver()


@real_channels
async def test_a_connection_that_is_cut_while_an_event_is_stored_loses_and_doubles_nothing(
    adapter: Adapter, tmp_path: Path
) -> None:
    """Before it is stored, and after that but before its acknowledgement; no secret is logged.

    P1, P2, P8, S2-01, S2-02.
    """
    async with living(adapter, tmp_path) as home, home.running():
        home.world.model.will(says("to one"), says("to two"), says("to three"))
        await say_and_cut(home, "one", home.open)
        await home.until_texts("ann", "to one")
        await say_and_cut(home, "two", home.gate)
        await home.until_texts("ann", "to two")
        assert await home.say("ann", "three")
        texts = await home.until_texts("ann", "to three")
        assert list(texts) == ["to one", "to two", "to three"]
        assert len(home.world.model.requests) == 3
        home.logs_no_secret("to one")


@real_channels
async def test_a_connection_that_is_cut_while_an_answer_is_sent_shows_it_once(
    adapter: Adapter, tmp_path: Path
) -> None:
    """In the midst of a draft, and as the platform has taken a message whose answer is lost.

    P1, P6, P8, S2-01, S2-06.
    """
    async with living(adapter, tmp_path) as home, home.running():
        holding = asyncio.Event()
        rest = TextDelta(text=f"{LONG}the end.")
        home.world.model.will((TextDelta(text="One, "), holding, rest, Finished(reason="stop")))
        if adapter.loses is not None:
            adapter.loses(home.harness, "text")
        assert await home.say("ann", "count")
        await home.harness.cut()
        holding.set()
        await home.until_texts("ann", "the end.")
        home.world.model.will(says("that is all"))
        assert await home.say("ann", "all?")
        texts = await home.until_texts("ann", "that is all")
        joined = " ".join(" ".join(texts).replace(REPEATED, "").split())
        assert joined == f"One, {LONG}the end. that is all"
        home.logs_no_secret(LONG)
