"""The slots of one kind of work are shared fairly."""

import asyncio
import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.errors import ToolFailed
from zeroclaw.host.executors import FairShare

NAMES = ("ada", "ben", "cleo")


class Work:
    """Work of conversations that a test starts, ends and cancels step by step."""

    def __init__(self, share: FairShare, group: asyncio.TaskGroup) -> None:
        self.share = share
        self.started: list[str] = []
        self.running: Counter[str] = Counter()
        self.waiting: Counter[str] = Counter()
        self._group = group
        self._tasks: list[tuple[asyncio.Task[None], asyncio.Event]] = []

    async def start(self, *names: str) -> None:
        for name in names:
            end = asyncio.Event()
            self._tasks.append((self._group.create_task(self._work(name, end)), end))
        await settle()

    async def end(self, *numbers: int) -> None:
        """End work by its number, in order of its start; work that has not started yet will end
        at once."""
        for number in numbers:
            self._tasks[number % len(self._tasks)][1].set()
        await settle()

    async def cancel(self, *numbers: int) -> None:
        for number in numbers:
            self._tasks[number % len(self._tasks)][0].cancel()
        await settle()

    async def close(self) -> None:
        await self.cancel(*range(len(self._tasks)))

    async def _work(self, conversation: str, end: asyncio.Event) -> None:
        self.waiting[conversation] += 1
        try:
            async with self.share.slot(conversation):
                self.waiting[conversation] -= 1
                self.running[conversation] += 1
                self.started.append(conversation)
                try:
                    await end.wait()
                finally:
                    self.running[conversation] -= 1
                    self.waiting[conversation] += 1
        finally:
            self.waiting[conversation] -= 1


async def settle() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


async def test_a_conversations_calls_wait_only_for_each_other() -> None:
    async with asyncio.TaskGroup() as group:
        work = Work(FairShare("searches", at_once=2), group)
        await work.start(*["ada"] * 10, "ben", "cleo")
        assert work.started == ["ada", "ben"]
        await work.end(0)
        assert work.started == ["ada", "ben", "cleo"]
        await work.end(10)
        assert work.started == ["ada", "ben", "cleo", "ada"]
        await work.close()


async def test_waiting_conversations_take_turns() -> None:
    """However many calls each of them has queued."""
    async with asyncio.TaskGroup() as group:
        work = Work(FairShare("searches", at_once=1), group)
        await work.start("ada", "ada", "ada", "ada", "ben", "cleo", "ben")
        await work.end(*range(7))
        assert work.started == ["ada", "ben", "cleo", "ada", "ben", "ada", "ada"]


async def test_a_call_that_is_cancelled_while_all_slots_are_taken_passes_its_turn_on() -> None:
    """It holds its conversation's turn while it waits for a free slot (P9)."""
    async with asyncio.TaskGroup() as group:
        work = Work(FairShare("searches", at_once=1), group)
        await work.start("ada", "ben", "ben")
        await work.cancel(1)
        await work.end(0)
        assert work.started == ["ada", "ben"]
        await work.close()


async def test_too_many_waiting_calls_are_refused() -> None:
    """A conversation's queue is bounded; another's is not affected (P10)."""
    share = FairShare("searches", at_once=1, max_waiting=2)
    async with asyncio.TaskGroup() as group:
        work = Work(share, group)
        await work.start("ada", "ada", "ada")
        with pytest.raises(ToolFailed, match="too many searches of this conversation wait already"):
            await share.run("ada", lambda: None)
        await work.start("ben")
        assert work.waiting == {"ada": 2, "ben": 1}
        await work.close()
    assert await share.run("ada", lambda: 1) == 1


async def test_work_leaves_the_event_loop() -> None:
    """It runs in another thread, and its exceptions are raised to the caller."""
    share = FairShare("searches", at_once=1)
    assert await share.run("ada", threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await share.run("ada", lambda: 1 // 0)
    assert await share.run("ada", lambda: 1) == 1


async def test_work_that_gets_no_thread_gives_its_slot_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a system without room for threads would end such work for good."""

    def refuse(_: threading.Thread) -> None:
        message = "can't start new thread"
        raise RuntimeError(message)

    share = FairShare("searches", at_once=1)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        await share.run("ada", lambda: 1)
    monkeypatch.undo()
    async with asyncio.timeout(5):
        assert await share.run("ada", lambda: 2) == 2


async def test_a_cancelled_call_keeps_its_thread_until_it_ends() -> None:
    """Otherwise a conversation that is stopped again and again would fill every thread."""
    share, go_on, started = FairShare("searches", at_once=1), threading.Event(), threading.Event()
    order: list[str] = []

    def slow() -> None:
        started.set()
        go_on.wait()
        order.append("slow")
        raise OSError

    async with asyncio.TaskGroup() as group:
        given_up = group.create_task(share.run("ada", slow))
        await asyncio.to_thread(started.wait)
        given_up.cancel()
        later = group.create_task(share.run("ada", lambda: order.append("later")))
        await settle()
        assert (given_up.cancelled(), later.done(), order) == (True, False, [])
        go_on.set()
    assert order == ["slow", "later"]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("start"), st.lists(st.sampled_from(NAMES), min_size=1, max_size=4)),
        st.tuples(
            st.sampled_from(["end", "cancel"]), st.lists(st.integers(0, 20), min_size=1, max_size=4)
        ),
    ),
    max_size=20,
)


@given(at_once=st.integers(1, 3), each=st.integers(1, 2), steps=STEPS)
def test_no_slot_is_lost_or_idle_while_a_call_waits(
    at_once: int, each: int, steps: list[tuple[str, list[str] | list[int]]]
) -> None:
    """For any order of starts, ends and cancellations."""

    async def played() -> None:
        share = FairShare("searches", at_once=at_once, each=each)
        async with asyncio.TaskGroup() as group:
            work = Work(share, group)
            await work.start("ada")
            for what, index in steps:
                await getattr(work, what)(*index)
                assert work.running.total() <= at_once
                assert max(work.running.values()) <= each
                if work.running.total() < at_once:
                    assert all(work.running[name] == each for name in +work.waiting)
            await work.close()
            for name in NAMES:
                group.create_task(share.run(name, lambda: None))

    asyncio.run(played())
