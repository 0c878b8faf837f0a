"""A long text is cut while others go on."""

import asyncio
import threading
from typing import SupportsIndex

from tests.fakes.manual_clock import LoopClock
from tests.fakes.scripted_channel import ScriptedChannel
from tests.unit.delivery.rig import CAPABILITIES, running
from zeroclaw.delivery.posting import parted
from zeroclaw.delivery.split import split
from zeroclaw.envelope import Rendered
from zeroclaw.value import replace


async def test_it_is_cut_as_split_cuts_it_and_others_have_their_turns() -> None:
    """Between any two texts that are measured (P9)."""
    text = "**word** " * 400
    turns: list[str] = []

    def fits(part: str) -> bool:
        turns.append("measured")
        return len(part) <= 500

    async def other() -> None:
        while True:
            turns.append("other")
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(other())
        parts = await parted(text, fits)
        task.cancel()
    asked = turns.count("measured")
    assert parts == split(text, lambda part: len(part) <= 500)
    assert asked > len(parts) > 1
    assert "".join(one[0] for one in turns).count("mm") == 0


async def test_a_blank_text_has_no_parts() -> None:
    assert await parted(" \n", lambda _: True) == ()


class Counting(ScriptedChannel):
    """Remembers how long each text was that it rendered."""

    lengths: tuple[int, ...] = ()

    def render(self, markdown: str) -> Rendered:
        self.lengths = (*self.lengths, len(markdown))
        return super().render(markdown)


async def test_a_long_text_is_never_rendered_whole() -> None:
    """Nor much more of it than a message holds, nor very often (P9)."""
    large = replace(CAPABILITIES, max_length=4096)
    channel = Counting(clock=LoopClock(), capabilities=large)
    async with running(channel) as rig:
        text = "**word** and _more_ " * 1500
        parts = await parted(text, rig.accounts["chat"].fits)
        assert "".join("".join(parts).split()) == "".join(text.split())
        assert max(channel.lengths) <= 2 * 4096
        assert sum(channel.lengths) < 10 * len(text)


class Watched(str):
    """Remembers in which thread its lines were read."""

    __slots__ = ("read_in",)

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        if not hasattr(self, "read_in"):
            self.read_in = threading.current_thread()
        return super().__getitem__(key)


async def test_the_lines_of_a_long_text_are_read_off_the_event_loop() -> None:
    """A text of 40,000 line ends takes no time of another conversation (P9)."""
    text = Watched("\n" * 40_000 + "end")
    assert await parted(text, lambda part: len(part) <= 4096) == ("end",)
    assert text.read_in is not threading.main_thread()
