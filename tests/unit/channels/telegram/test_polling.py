"""The loop that fetches updates, with a scripted server."""

import asyncio
import threading
from collections import deque

import pytest

from channels.telegram.account import LONGEST_POLL_S
from channels.telegram.decode import Decoded, Skipped
from channels.telegram.lookup import MessageIds
from channels.telegram.updates import Fetch, Intake, poll
from tests.contract.channel_suite import Desk
from tests.fakes.house_parts import Facts
from tests.fakes.manual_clock import ManualClock, VirtualTimeLoop
from tests.unit.channels.telegram.updates import BOB, GROUP, ME, message, new
from zeroclaw import Admission, ChannelUnavailable, RateLimited, Said


class Server:
    """Returns these batches, records the requested offsets, and then blocks."""

    def __init__(self, *batches: list[object]) -> None:
        self.batches = deque(batches)
        self.offsets: list[int | None] = []

    async def fetch(self, offset: int | None) -> list[object]:
        self.offsets.append(offset)
        if not self.batches:
            await asyncio.Event().wait()
        return self.batches.popleft()


class Rig:
    def __init__(self, *batches: list[object]) -> None:
        self.server = Server(*batches)
        self.desk = Desk()
        self.clock = ManualClock()
        self.log = Facts()
        self.followed: list[tuple[Decoded | Skipped, Admission | None]] = []
        self.intake = Intake(
            admit=self.desk.admit,
            respond=lambda event, admission: self.followed.append((event, admission)),
            bot=ME,
            ids=MessageIds({}),
            log=self.log,
        )

    async def poll(self, fetch: Fetch | None = None) -> None:
        await poll(fetch or self.server.fetch, self.intake.take, self.clock)


def numbered(number: int, **fields: object) -> dict[str, object]:
    return {**new(message_id=number, **fields), "update_id": number}


async def test_each_poll_confirms_the_earlier_updates() -> None:
    rig = Rig([numbered(5, text="a"), numbered(6, text="b")], [], [numbered(7, text="c")])
    async with asyncio.TaskGroup() as group:
        running = group.create_task(rig.poll())
        await rig.clock.advance(1)
        assert rig.server.offsets == [None, 7, 7, 8]
        running.cancel()
    assert len(rig.followed) == 3


async def test_an_empty_poll_that_ends_too_early_is_not_repeated_at_once() -> None:
    """A proxy that answers in Telegram's place is polled once a second, not without a pause."""
    rig = Rig([], [], [numbered(5, text="a")])
    async with asyncio.TaskGroup() as group:
        running = group.create_task(rig.poll())
        await rig.clock.settle()
        assert len(rig.server.offsets) == 1
        await rig.clock.advance(1)
        assert len(rig.server.offsets) == 2
        await rig.clock.advance(1)
        assert rig.server.offsets == [None, None, None, 6]
        running.cancel()


class Watched(dict[str, object]):
    """Remembers the threads in which its items are read."""

    def __init__(self, **items: object) -> None:
        super().__init__(items)
        self.threads: set[threading.Thread] = set()

    def get(self, key: str, default: object = None) -> object:
        self.threads.add(threading.current_thread())
        return super().get(key, default)


@pytest.mark.parametrize("is_quoted", [False, True])
async def test_a_long_update_is_not_decoded_on_the_event_loop(is_quoted: bool) -> None:
    """Each of 32,768 characters can have its own style, in the message and in the one it answers (P9)."""
    rich = Watched(blocks=[{"type": "paragraph", "text": [{"type": "bold", "text": "a"}] * 3}])
    fields = {"rich_message": rich}
    long = new(text="b", reply_to_message=message(**fields)) if is_quoted else new(**fields)
    rig = Rig()
    assert await rig.intake.take(long)
    (stored,) = rig.desk.stored
    assert isinstance(stored.body, Said)
    assert "aaa" in stored.body.text
    assert rich.threads
    assert threading.main_thread() not in rich.threads


async def test_a_quiet_poll_is_followed_by_the_next_at_once() -> None:
    """It lasted as long as requested, so no pause is needed, and no message waits for one."""
    rig = Rig([], [])

    async def fetch(offset: int | None) -> list[object]:
        await rig.clock.sleep(25)
        return await rig.server.fetch(offset)

    async with asyncio.TaskGroup() as group:
        running = group.create_task(rig.poll(fetch))
        await rig.clock.advance(25)
        assert rig.clock.sleeping() == (25,)
        running.cancel()


def test_a_poll_that_never_ends_is_given_up() -> None:
    """A connection that stays open, or sends a byte now and then, is given up and reported."""
    rig = Rig()

    async def receive() -> None:
        with pytest.raises(ChannelUnavailable, match="no end within 55 s"):
            await rig.poll()
        assert asyncio.get_running_loop().time() == LONGEST_POLL_S

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(receive())


async def test_no_update_after_a_failed_one_is_confirmed() -> None:
    """Another chat's message may already be stored; it is then fetched again as a duplicate."""
    rig = Rig([numbered(5, text="a"), numbered(6, text="b", chat=GROUP)])
    rig.desk.fault = ChannelUnavailable("the store is away")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(rig.poll())
        await rig.clock.settle()
        assert rig.server.offsets == [None]
        await rig.clock.advance(1)
        assert rig.server.offsets == [None, 5]
        running.cancel()


async def test_an_update_without_a_number_is_not_confirmed_and_slows_polling() -> None:
    """A broken server is polled once a second, not without a pause."""
    rig = Rig(["odd"], ["odd", numbered(5, text="a", **{"from": BOB})])
    async with asyncio.TaskGroup() as group:
        running = group.create_task(rig.poll())
        await rig.clock.settle()
        assert rig.server.offsets == [None]
        await rig.clock.advance(1)
        await rig.clock.advance(1)
        assert rig.server.offsets == [None, None, 6]
        running.cancel()
    assert len(rig.desk.stored) == 1
    assert rig.log.events().count("update_skipped") == 2


async def test_a_failing_update_without_a_number_delays_nothing() -> None:
    rig = Rig([{"message": message(text="a")}])
    rig.desk.fault = ChannelUnavailable("the store is away")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(rig.poll())
        await rig.clock.advance(1)
        assert rig.server.offsets == [None, None]
        running.cancel()


async def test_a_long_wait_requested_by_telegram_ends_receiving() -> None:
    """A short one is obeyed here; during a long one the channel does not count as up."""
    rig = Rig()
    faults = deque([0.0, 5.0, 600.0])

    async def fetch(offset: int | None) -> list[object]:
        raise RateLimited("too many calls", retry_after_s=faults.popleft())

    async def wait() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(rig.poll(fetch))
            await rig.clock.settle()
            assert len(faults) == 2
            await rig.clock.advance(1)
            assert len(faults) == 1
            await rig.clock.advance(5)

    with pytest.raises(ExceptionGroup) as caught:
        await wait()
    assert caught.group_contains(RateLimited)
