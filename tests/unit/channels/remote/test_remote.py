"""What the platforms share: events in order, connections made anew, limits, addresses for secrets."""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime

import pytest

from channels._remote import lanes
from channels._remote.fields import from_unix, utc_time
from channels._remote.http import Http
from channels._remote.intake import MAX_ANSWERS, ShortAnswers, try_admit
from channels._remote.lanes import AGAIN_S, Lanes, call_when_allowed
from channels._remote.limits import LONGEST_QUIET_S, LONGEST_WAIT_S, UNSTATED_WAIT_S, wait_s
from channels._remote.reconnection import STEADY_S, WAITS_S, ConnectionEnd, keep_connected
from channels._remote.settings import is_safe
from tests.fakes.bare_context import no_log
from tests.fakes.house_parts import Facts
from tests.fakes.manual_clock import ManualClock
from zeroclaw import (
    Accepted,
    Address,
    Admission,
    ChannelUnavailable,
    Envelope,
    RateLimited,
    Said,
    Sender,
    ZeroclawError,
)


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
    monkeypatch.setattr(lanes, "MAX_WAITING", 3)
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


async def test_a_chat_in_which_somebody_waits_is_read_first() -> None:
    """After a cut all chats are read, which takes minutes where a platform allows few readings."""
    rig = Rig()
    rig.gate.clear()
    async with asyncio.TaskGroup() as group:
        for chat in "abcde":
            rig.lanes.catch_up(group, chat)
        await rig.clock.settle()
        rig.lanes.put(group, "d", "d1")
        rig.lanes.put(group, "f", "f1")
        await rig.clock.settle()
        assert (rig.reads, rig.taken) == (["a", "b"], ["f1"])
        rig.gate.set()
    assert rig.reads[2] == "d"
    assert sorted(rig.reads) == list("abcde")
    assert rig.taken == ["f1", "d1"]


async def test_readings_end_with_the_channel() -> None:
    """However many wait for a place, none of them is in the way of the others' end."""
    rig = Rig()
    rig.gate.clear()

    async def receive() -> None:
        async with asyncio.TaskGroup() as group:
            for chat in "abcde":
                rig.lanes.catch_up(group, chat)
            await rig.clock.settle()
            raise ChannelUnavailable("cut")

    with pytest.raises(ExceptionGroup) as raised:
        await receive()
    assert [str(exception) for exception in raised.value.exceptions] == ["cut"]
    assert rig.reads == ["a", "b"]


# --- what could not be stored comes again ---------------------------------------------------------

ANN = Address(channel="chat", account="1", chat="77", direct=True)
HELLO = Envelope(
    address=ANN, sender=Sender(id="77", verified=True), dedup=("1",), body=Said(text="hello")
)


async def test_what_could_not_be_stored_is_told_and_has_no_admission() -> None:
    log, faults = Facts(), [ZeroclawError("the disk is full")]

    async def admit(envelope: Envelope) -> Admission:
        assert envelope == HELLO
        if faults:
            raise faults.pop()
        return Accepted()

    assert await try_admit(admit, HELLO, log) is None
    assert await try_admit(admit, HELLO, log) == Accepted()
    why = {"reason": "the disk is full", "level": "warning"}
    assert log.seen == [("event_not_admitted", why)]


async def test_a_short_answer_beyond_the_most_is_lost_and_one_that_fails_is_told() -> None:
    log, given, free = Facts(), list[int](), asyncio.Event()
    answers = ShortAnswers(log, "toast_lost")

    async def give() -> None:
        given.append(len(given))
        await free.wait()
        raise ChannelUnavailable("`chat` is away")

    async with asyncio.TaskGroup() as group:
        for _ in range(MAX_ANSWERS + 1):
            answers.begin(group, give)
            await asyncio.sleep(0)
        assert given == list(range(MAX_ANSWERS))
        free.set()
    assert log.seen == [("toast_lost", {"reason": "`chat` is away"})] * MAX_ANSWERS
    async with asyncio.TaskGroup() as group:
        answers.begin(group, give)
    assert given == list(range(MAX_ANSWERS + 1))


# --- connections ----------------------------------------------------------------------------------


async def test_each_failure_is_waited_for_longer_until_the_channel_is_down() -> None:
    """One that stood is made anew at once, and the waits begin anew."""
    clock, http = ManualClock(), Http("chat", "Chat")
    ends = [
        ConnectionEnd(reason="lost", was_up=True),
        *[ConnectionEnd(reason="no")] * 2,
        ConnectionEnd(reason="lost", was_up=True),
    ]
    at: list[float] = []

    async def hear() -> ConnectionEnd:
        at.append(clock.monotonic())
        if not ends:
            raise ChannelUnavailable("`chat`: it is away")
        end = ends.pop(0)
        await clock.sleep(STEADY_S if end.was_up else 0)
        return end

    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(_error_of(keep_connected(hear, http, clock, no_log)))
        for _ in range(40):
            await clock.advance(0.5)
        assert str(await keeping) == "`chat`: the gateway can't be heard: it is away"
    assert at == [0, 5, 5, 6, 11, 11, 12, 14, 18]


@pytest.mark.parametrize("is_planned", [False, True])
async def test_a_connection_that_ends_as_soon_as_it_stands_counts_as_failed(
    *, is_planned: bool
) -> None:
    """Also if the platform says so, as Slack does to one connection too many; one move costs nothing."""
    clock, http = ManualClock(), Http("chat", "Chat")
    at: list[float] = []

    async def hear() -> ConnectionEnd:
        at.append(clock.monotonic())
        return ConnectionEnd(reason="odd", was_up=True, is_planned=is_planned)

    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(_error_of(keep_connected(hear, http, clock, no_log)))
        await clock.advance(sum(WAITS_S))
        assert str(await keeping) == "`chat`: the gateway can't be heard: odd"
    assert at == [0, 0, 1, 3, 7]


async def test_a_short_wait_that_the_platform_asks_for_leaves_the_channel_sending() -> None:
    """The adapter stays, so answers on their way go on; each refusal counts as a failure."""
    clock, http = ManualClock(), Http("chat", "Chat")
    at: list[float] = []

    async def hear() -> ConnectionEnd:
        at.append(clock.monotonic())
        raise RateLimited("`chat`: too many connections", retry_after_s=LONGEST_QUIET_S)

    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(_error_of(keep_connected(hear, http, clock, no_log)))
        for _ in WAITS_S:
            await clock.advance(LONGEST_QUIET_S)
        error = await keeping
    assert not isinstance(error, RateLimited)
    assert at == [number * LONGEST_QUIET_S for number in range(len(WAITS_S))]


@pytest.mark.parametrize("error", [RateLimited("later", retry_after_s=60), None])
async def test_a_long_wait_and_a_channel_that_is_closed_end_it(error: RateLimited | None) -> None:
    clock, http = ManualClock(), Http("chat", "Chat")

    async def hear() -> ConnectionEnd:
        if error is not None:
            raise error
        await http.aclose()
        return ConnectionEnd(reason="closed", was_up=True)

    raised = await _error_of(keep_connected(hear, http, clock, no_log))
    assert raised is error or "closed" in str(raised)


async def _error_of(work: Coroutine[object, object, None]) -> ChannelUnavailable:
    with pytest.raises(ChannelUnavailable) as raised:
        await work
    return raised.value


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stated", "waited_s"),
    [
        (0.3, 0.3),
        ("7", 7),
        ("soon", UNSTATED_WAIT_S),
        (None, UNSTATED_WAIT_S),
        (-1, UNSTATED_WAIT_S),
        ("nan", UNSTATED_WAIT_S),
        (1e9, LONGEST_WAIT_S),
        ("inf", LONGEST_WAIT_S),
        (10**400, UNSTATED_WAIT_S),
    ],
)
def test_a_wait_is_what_is_said_within_a_day(stated: object, waited_s: float) -> None:
    assert wait_s(stated) == waited_s


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://example.org/x", True),
        ("http://127.0.0.1:8081", True),
        ("http://bot-api:8081", True),
        ("http://example.org", False),
        ("ftp://example.org", False),
        ("https:///x", False),
        ("https://[", False),
        ("", False),
    ],
)
def test_a_secret_goes_by_tls_or_to_a_machine_near_by(url: str, *, safe: bool) -> None:
    assert is_safe(url) is safe


async def test_a_reading_goes_on_where_it_was_asked_to_wait() -> None:
    """To begin again after each wait would use up the same limit each time."""
    clock, waits = ManualClock(), [7.0, 0.0]

    async def page() -> str:
        if waits:
            raise RateLimited("too many calls", retry_after_s=waits.pop())
        return "page"

    async with asyncio.TaskGroup() as group:
        read = group.create_task(call_when_allowed(page, clock, Facts()))
        await clock.advance(AGAIN_S)
        assert clock.sleeping() == (7.0,)
        await clock.advance(7)
    assert read.result() == "page"
    waits.append(lanes.LONGEST_AGAIN_S + 1)
    with pytest.raises(RateLimited):
        await call_when_allowed(page, clock, Facts())


# --- times ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "at"),
    [
        ("2026-01-01T13:00:00+01:00", datetime(2026, 1, 1, 12, tzinfo=UTC)),
        ("2026-01-01T12:00:00", datetime(2026, 1, 1, 12, tzinfo=UTC)),
        ("0001-01-01T00:00:00+01:00", None),
        ("9999-12-31T23:59:59-01:00", None),
        ("yesterday", None),
    ],
)
def test_a_time_in_any_zone_is_one_in_utc(told: str, at: datetime | None) -> None:
    found = utc_time(told, datetime.fromisoformat)
    assert (found, found and found.tzinfo) == (at, at and UTC)


@pytest.mark.parametrize(
    ("seconds", "at"),
    [
        (1, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        (0, None),
        (999_999_999_999, None),
        (None, None),
    ],
)
def test_seconds_are_a_time_if_any_year_has_it(seconds: int | None, at: datetime | None) -> None:
    assert from_unix(seconds) == at
