"""Events of each chat, one after another, with what was missed before them."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

import pytest

from channels._remote import lanes
from channels._remote.lanes import AGAIN_S, Lanes
from tests.fakes.house_parts import Facts
from tests.fakes.manual_clock import ManualClock
from zeroclaw import ChannelUnavailable, RateLimited


class Rig:
    """Takes what it is shown; `history` is what stands in a chat."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.log = Facts()
        self.taken: list[str] = []
        self.history: defaultdict[str, list[str]] = defaultdict(list)
        self.reads: list[str] = []
        self.fault: Exception | None = None
        self.refused: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()
        self.lanes = Lanes(take=self.take, read=self.read, clock=self.clock, log=self.log)

    async def take(self, event: str) -> bool:
        if event in self.refused:
            return False
        self.taken.append(event)
        return True

    async def read(self, chat: str) -> Sequence[str]:
        self.reads.append(chat)
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        return tuple(self.history[chat])


async def test_what_was_missed_comes_before_what_waits() -> None:
    rig = Rig()
    rig.history["a"] = ["a1", "a2"]
    rig.gate.clear()
    async with asyncio.TaskGroup() as group:
        rig.lanes.catch_up(group, "a")
        rig.lanes.put(group, "a", "a3")
        rig.lanes.put(group, "b", "b1")
        await rig.clock.settle()
        assert rig.taken == ["b1"]
        rig.gate.set()
    assert rig.taken == ["b1", "a1", "a2", "a3"]


async def test_what_could_not_be_stored_holds_up_its_chat_alone() -> None:
    """And is shown again until it could (P1, P2, P9)."""
    rig = Rig()
    rig.refused = {"a1"}
    async with asyncio.TaskGroup() as group:
        for event in ("a1", "a2"):
            rig.lanes.put(group, "a", event)
        rig.lanes.put(group, "b", "b1")
        await rig.clock.advance(3 * AGAIN_S)
        assert rig.taken == ["b1"]
        rig.refused.clear()
        await rig.clock.advance(AGAIN_S)
    assert rig.taken == ["b1", "a1", "a2"]


async def test_a_lane_that_is_full_forgets_and_reads_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """So memory is bounded, and nothing is lost (P9)."""
    monkeypatch.setattr(lanes, "MOST_WAITING", 3)
    rig = Rig()
    rig.refused = {"a0"}
    async with asyncio.TaskGroup() as group:
        for number in range(7):
            rig.lanes.put(group, "a", f"a{number}")
            await rig.clock.settle()
        rig.history["a"] = [f"a{number}" for number in range(1, 7)]
        rig.refused.clear()
        await rig.clock.advance(AGAIN_S)
    assert list(dict.fromkeys(rig.taken)) == [f"a{number}" for number in range(7)]


async def test_a_history_that_fails_is_read_again_with_growing_waits_or_as_long_as_is_asked() -> (
    None
):
    rig = Rig()
    rig.history["a"] = ["a1"]
    rig.fault = ChannelUnavailable("away")
    async with asyncio.TaskGroup() as group:
        rig.lanes.catch_up(group, "a")
        await rig.clock.settle()
        assert rig.clock.sleeping() == (1,)
        await rig.clock.advance(1)
        assert rig.clock.sleeping() == (2,)
        rig.fault = RateLimited("too many", retry_after_s=50)
        await rig.clock.advance(2)
        assert rig.clock.sleeping() == (50,)
        rig.fault = None
        await rig.clock.advance(50)
    assert rig.taken == ["a1"]


async def test_few_histories_are_read_at_once() -> None:
    """What is sent shares the platform's limits with them."""
    rig = Rig()
    rig.gate.clear()
    async with asyncio.TaskGroup() as group:
        for chat in "abcde":
            rig.lanes.catch_up(group, chat)
        await rig.clock.settle()
        assert rig.reads == ["a", "b"]
        rig.gate.set()
    assert sorted(rig.reads) == list("abcde")
