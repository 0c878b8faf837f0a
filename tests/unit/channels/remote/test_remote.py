"""Code shared by remote platforms: order of events, reconnection, limits, safe addresses."""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from channels._remote import lanes
from channels._remote.fields import from_unix, utc_time
from channels._remote.http import Http
from channels._remote.intake import MAX_ANSWERS, ShortAnswers, try_admit
from channels._remote.lanes import AGAIN_S, Lanes, call_when_allowed
from channels._remote.limits import LONGEST_QUIET_S, LONGEST_WAIT_S, UNSTATED_WAIT_S, wait_s
from channels._remote.reconnection import STEADY_S, WAITS_S, ConnectionEnd, keep_connected
from channels._remote.settings import RemoteSettings, is_safe
from channels._remote.tables import without_lost_cells
from channels.discord import DiscordSettings
from channels.slack import SlackSettings
from channels.telegram import TelegramSettings
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
    SecretReference,
    Sender,
    ZeroclawError,
)


class Rig:
    """Records the events that it takes; `history` holds the messages of each chat."""

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


async def test_missed_events_are_admitted_before_waiting_ones() -> None:
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


async def test_an_unstored_event_blocks_only_its_chat() -> None:
    """It is retried until it is stored (P1, P2, P9)."""
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


async def test_a_full_lane_drops_events_and_reads_them_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So memory is bounded, and no event is lost (P9)."""
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


async def test_a_failed_history_is_read_again_with_growing_or_requested_waits() -> None:
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
    """Sends share the platform's limits with them."""
    rig = Rig()
    rig.gate.clear()
    async with asyncio.TaskGroup() as group:
        for chat in "abcde":
            rig.lanes.catch_up(group, chat)
        await rig.clock.settle()
        assert rig.reads == ["a", "b"]
        rig.gate.set()
    assert sorted(rig.reads) == list("abcde")


async def test_a_chat_with_a_waiting_event_is_read_first() -> None:
    """After a cut all chats are read, which takes minutes on a platform with strict limits."""
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


async def test_history_reads_end_with_the_channel() -> None:
    """However many are queued, all of them end."""
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


async def test_an_unstored_event_is_logged_and_has_no_admission() -> None:
    log, faults = Facts(), [ZeroclawError("the disk is full")]

    async def admit(envelope: Envelope) -> Admission:
        assert envelope == HELLO
        if faults:
            raise faults.pop()
        return Accepted()

    assert await try_admit(admit, HELLO, log) is None
    assert await try_admit(admit, HELLO, log) == Accepted()
    fields = {"reason": "the disk is full", "level": "warning"}
    assert log.seen == [("event_not_admitted", fields)]


async def test_replies_beyond_a_bound_are_dropped_and_failed_ones_logged() -> None:
    log, statuses, free = Facts(), list[int](), asyncio.Event()
    answers = ShortAnswers(log, "toast_lost")

    async def give() -> None:
        statuses.append(len(statuses))
        await free.wait()
        raise ChannelUnavailable("`chat` is away")

    async with asyncio.TaskGroup() as group:
        for _ in range(MAX_ANSWERS + 1):
            answers.begin(group, give)
            await asyncio.sleep(0)
        assert statuses == list(range(MAX_ANSWERS))
        free.set()
    assert log.seen == [("toast_lost", {"reason": "`chat` is away"})] * MAX_ANSWERS
    async with asyncio.TaskGroup() as group:
        answers.begin(group, give)
    assert statuses == list(range(MAX_ANSWERS + 1))


# --- connections ----------------------------------------------------------------------------------


async def test_waits_grow_with_each_failure_until_the_channel_is_down() -> None:
    """An established connection is reopened at once, and the waits start again."""
    clock, http = ManualClock(), Http("chat", "Chat")
    outcomes = [
        ConnectionEnd(reason="lost", was_up=True),
        *[ConnectionEnd(reason="no")] * 2,
        ConnectionEnd(reason="lost", was_up=True),
    ]
    at: list[float] = []

    async def hear() -> ConnectionEnd:
        at.append(clock.monotonic())
        if not outcomes:
            raise ChannelUnavailable("`chat`: it is away")
        outcome = outcomes.pop(0)
        await clock.sleep(STEADY_S if outcome.was_up else 0)
        return outcome

    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(_error_of(keep_connected(hear, http, clock, no_log)))
        for _ in range(40):
            await clock.advance(0.5)
        assert str(await keeping) == "`chat`: the gateway can't be heard: it is away"
    assert at == [0, 5, 5, 6, 11, 11, 12, 14, 18]


@pytest.mark.parametrize("is_planned", [False, True])
async def test_a_connection_that_ends_at_once_counts_as_failed(*, is_planned: bool) -> None:
    """Also if the platform asks for it, as Slack does for extra connections; one move is free."""
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


async def test_a_short_wait_requested_by_the_platform_keeps_the_channel_sending() -> None:
    """The adapter stays, so pending sends go on; each refusal counts as a failure."""
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
async def test_a_long_wait_or_a_closed_channel_ends_it(error: RateLimited | None) -> None:
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
def test_a_wait_is_the_requested_one_within_a_day(stated: object, waited_s: float) -> None:
    assert wait_s(stated) == waited_s


# --- settings -------------------------------------------------------------------------------------


SECRET = SecretReference(env="X")
SETTINGS = (
    TelegramSettings(token=SECRET),
    DiscordSettings(token=SECRET),
    SlackSettings(bot_token=SECRET, app_token=SECRET),
)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize(
    "url",
    [
        *("https://bots.example.org/api/", "http://127.0.0.1:8081", "http://10.1.2.3:8081"),
        *("http://bot-api:8081", "http://[::1]:8081", "http://bots.internal"),
    ],
)
def test_an_address_that_keeps_the_token_safe_is_accepted(
    settings: RemoteSettings, url: str
) -> None:
    changed = type(settings).model_validate({**dict(settings), "api_base_url": url})
    assert (changed.api_base_url, is_safe(url)) == (url.rstrip("/"), True)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("url", ["http://bots.example.org", "http://8.8.8.8", "https://x/?a"])
def test_an_address_that_would_expose_the_token_is_refused(
    settings: RemoteSettings, url: str
) -> None:
    """It goes with each call, so plain HTTP is only for one's own network (P8)."""
    with pytest.raises(ValidationError):
        type(settings).model_validate({**dict(settings), "api_base_url": url})


@pytest.mark.parametrize("url", ["", "x", "https://", "https:///x", "https://[", "ftp://127.0.0.1"])
def test_what_is_no_address_is_refused(url: str) -> None:
    assert not is_safe(url)
    with pytest.raises(ValidationError):
        TelegramSettings(token=SECRET, api_base_url=url)


async def test_a_read_resumes_where_it_had_to_wait() -> None:
    """Starting again after each wait would use up the same limit each time."""
    clock, waits = ManualClock(), [7.0, 0.0]

    async def page() -> str:
        if waits:
            raise RateLimited("too many calls", retry_after_s=waits.pop())
        return "page"

    async with asyncio.TaskGroup() as group:
        task = group.create_task(call_when_allowed(page, clock, Facts()))
        await clock.advance(AGAIN_S)
        assert clock.sleeping() == (7.0,)
        await clock.advance(7)
    assert task.result() == "page"
    waits.append(lanes.LONGEST_AGAIN_S + 1)
    with pytest.raises(RateLimited):
        await call_when_allowed(page, clock, Facts())


# --- times ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-01-01T13:00:00+01:00", datetime(2026, 1, 1, 12, tzinfo=UTC)),
        ("2026-01-01T12:00:00", datetime(2026, 1, 1, 12, tzinfo=UTC)),
        ("0001-01-01T00:00:00+01:00", None),
        ("9999-12-31T23:59:59-01:00", None),
        ("yesterday", None),
    ],
)
def test_a_time_in_any_zone_becomes_utc(text: str, at: datetime | None) -> None:
    parsed = utc_time(text, datetime.fromisoformat)
    assert (parsed, parsed and parsed.tzinfo) == (at, at and UTC)


@pytest.mark.parametrize(
    ("seconds", "at"),
    [
        (1, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        (0, None),
        (999_999_999_999, None),
        (None, None),
    ],
)
def test_seconds_become_a_time_within_the_range_of_years(
    seconds: int | None, at: datetime | None
) -> None:
    assert from_unix(seconds) == at


def test_text_below_a_table_is_no_row_of_it() -> None:
    """Its bars do not make the table plain text."""
    source = "| a |\n| - |\n| b |\n\nx | y | z"
    assert without_lost_cells(source, "!") == source
    assert without_lost_cells(source.replace("\n\n", "\n"), "!") != source
