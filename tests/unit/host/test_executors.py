"""The places of one kind of work are shared out fairly."""

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
    """Work of conversations that starts, ends and is given up, one step after another."""

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
        """End work by its number, in order of its start; what has not started ends at once then."""
        for number in numbers:
            self._tasks[number % len(self._tasks)][1].set()
        await settle()

    async def cancel(self, *numbers: int) -> None:
        for number in numbers:
            self._tasks[number % len(self._tasks)][0].cancel()
        await settle()

    async def close(self) -> None:
        await self.cancel(*range(len(self._tasks)))

    async def _work(self, whose: str, end: asyncio.Event) -> None:
        self.waiting[whose] += 1
        try:
            async with self.share.slot(whose):
                self.waiting[whose] -= 1
                self.running[whose] += 1
                self.started.append(whose)
                try:
                    await end.wait()
                finally:
                    self.running[whose] -= 1
                    self.waiting[whose] += 1
        finally:
            self.waiting[whose] -= 1


async def settle() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


async def test_one_conversation_waits_for_itself_and_others_do_not() -> None:
    async with asyncio.TaskGroup() as group:
        work = Work(FairShare("searches", at_once=2), group)
        await work.start(*["ada"] * 10, "ben", "cleo")
        assert work.started == ["ada", "ben"]
        await work.end(0)
        assert work.started == ["ada", "ben", "cleo"]
        await work.end(10)
        assert work.started == ["ada", "ben", "cleo", "ada"]
        await work.close()


async def test_those_who_wait_take_turns() -> None:
    """However many calls each of them has waiting."""
    async with asyncio.TaskGroup() as group:
        work = Work(FairShare("searches", at_once=1), group)
        await work.start("ada", "ada", "ada", "ada", "ben", "cleo", "ben")
        await work.end(*range(7))
        assert work.started == ["ada", "ben", "cleo", "ada", "ben", "ada", "ada"]


async def test_too_many_that_wait_are_refused() -> None:
    """What a conversation has waiting is bounded; another one's is not touched by it (P10)."""
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
    """It is done in another thread, and what it raises comes back."""
    share = FairShare("searches", at_once=1)
    assert await share.run("ada", threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await share.run("ada", lambda: 1 // 0)
    assert await share.run("ada", lambda: 1) == 1


async def test_a_thread_keeps_its_place_when_nobody_waits_for_it_any_more() -> None:
    """Else a conversation that is stopped again and again would fill every thread."""
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
def test_no_place_is_lost_and_none_is_idle_while_somebody_could_have_it(
    at_once: int, each: int, steps: list[tuple[str, list[str] | list[int]]]
) -> None:
    """Whoever starts, ends or gives up, and when."""

    async def played() -> None:
        share = FairShare("searches", at_once=at_once, each=each)
        async with asyncio.TaskGroup() as group:
            work = Work(share, group)
            await work.start("ada")
            for what, which in steps:
                await getattr(work, what)(*which)
                assert work.running.total() <= at_once
                assert max(work.running.values()) <= each
                if work.running.total() < at_once:
                    assert all(work.running[name] == each for name in +work.waiting)
            await work.close()
            for name in NAMES:
                group.create_task(share.run(name, lambda: None))

    asyncio.run(played())
