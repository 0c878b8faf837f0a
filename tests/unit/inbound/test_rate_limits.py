"""How the limits decide about one message: tables, and what holds for any input."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.manual_clock import EPOCH
from zeroclaw.config.model import ChannelSettings, Config, LimitsSettings, RateSettings
from zeroclaw.inbound.rate_limits import (
    MAX_NOTIFIED,
    Counters,
    Day,
    Over,
    Rate,
    RateLimits,
    count_message,
    ends_at,
    limits_of,
)
from zeroclaw.value import replace

MINUTE = timedelta(minutes=1)
TWO_AT_ONCE = RateLimits(person=Rate(per_minute=6, burst=2))
"""One each ten seconds, two at once."""


def at(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def written(
    limits: RateLimits, *seconds: float, counters: Counters | None = None, place: str = "here"
) -> tuple[Counters, list[Over | None]]:
    """Write at these instants, one after another."""
    results: list[Over | None] = []
    counters = counters or Counters()
    for second in seconds:
        counters, over = count_message(counters, limits, now=at(second), place=place, sent_at=None)
        results.append(over)
    return counters, results


def over(until: float, *, notify: bool) -> Over:
    return Over(limit="person", until=at(until), notify=notify)


# --- the settings --------------------------------------------------------------------------------


def test_a_channel_without_a_rate_has_the_limits_of_all() -> None:
    assert limits_of(Config(), "web") == limits_of(Config(), "gone")
    assert limits_of(Config(), "web") == RateLimits(
        person=Rate(per_minute=20, burst=30), conversation=Rate(per_minute=60, burst=60), daily=1000
    )


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (
            RateSettings(person_per_minute=1),
            {"person": Rate(per_minute=1, burst=3), "per_channel": frozenset({"person"})},
        ),
        (
            RateSettings(person_burst=9),
            {"person": Rate(per_minute=2, burst=9), "per_channel": frozenset({"person"})},
        ),
        (RateSettings(daily_messages=0), {"daily": 0, "per_channel": frozenset({"day"})}),
        (
            RateSettings(conversation_per_minute=0, conversation_burst=1),
            {"conversation": Rate(per_minute=0, burst=1)},
        ),
    ],
    ids=["rate", "burst", "day", "conversation"],
)
def test_a_rate_stands_in_place_of_what_it_names(
    rate: RateSettings, expected: dict[str, object]
) -> None:
    """What it names of a person is counted by itself, the rest with all other channels."""
    config = Config(
        limits=LimitsSettings(
            person_per_minute=2,
            person_burst=3,
            conversation_per_minute=4,
            conversation_burst=5,
            daily_messages=6,
        ),
        channels={"chat": ChannelSettings(rate=rate), "web": ChannelSettings()},
    )
    all_ = RateLimits(
        person=Rate(per_minute=2, burst=3), conversation=Rate(per_minute=4, burst=5), daily=6
    )
    assert limits_of(config, "web") == all_
    changed = {"person": all_.person, "conversation": all_.conversation, "daily": 6, **expected}
    assert limits_of(config, "chat") == replace(all_, **changed)


# --- one bucket ----------------------------------------------------------------------------------


def test_messages_at_once_are_taken_up_to_the_burst() -> None:
    """Then nothing is, until all of it has drained; the writer reads that once."""
    _, results = written(TWO_AT_ONCE, 0, 0, 0, 5, 19.9, 20, 20, 20)
    assert results == [
        *(None, None, over(20, notify=True), over(20, notify=False), over(20, notify=False)),
        *(None, None, over(40, notify=True)),
    ]


def test_who_writes_as_fast_as_it_drains_is_never_refused() -> None:
    _, results = written(TWO_AT_ONCE, *range(0, 600, 10))
    assert set(results) == {None}


def test_a_burst_after_a_pause_is_taken() -> None:
    _, results = written(TWO_AT_ONCE, 0, 100, 100)
    assert results == [None, None, None]


def test_each_chat_gets_one_notice_a_stretch() -> None:
    """A person does not flood so many chats, so the last of them get no notice."""
    counters, _ = written(TWO_AT_ONCE, 0, 0)
    notified: list[bool] = []
    for number in (0, 0, 1, *range(2, MAX_NOTIFIED + 2)):
        counters, [result] = written(TWO_AT_ONCE, 1, counters=counters, place=f"chat {number}")
        assert result is not None
        notified.append(result.notify)
    assert notified == [True, False, *[True] * (MAX_NOTIFIED - 1), False, False]


def test_a_backlog_counts_for_when_it_was_written() -> None:
    """An hour of ten messages, delivered at once when the daemon is back."""
    counters: Counters = Counters()
    for number in range(10):
        sent = at(number * 60)
        counters, result = count_message(
            counters, TWO_AT_ONCE, now=at(3600), place="", sent_at=sent
        )
        assert result is None


def test_nothing_is_written_in_the_future_nor_before_what_came_first() -> None:
    """A platform's clock, or a forged header, earns nothing."""
    counters, result = Counters(), None
    for sent in (at(0), at(0) - MINUTE * 60, at(0) + MINUTE * 60):
        counters, result = count_message(counters, TWO_AT_ONCE, now=at(0), place="", sent_at=sent)
    assert result == over(20, notify=True)


def test_a_clock_that_was_set_back_makes_no_pause_longer() -> None:
    """It is over when a full bucket has drained, by the clock there is now."""
    counters, _ = written(TWO_AT_ONCE, 0, 0, 0)
    counters, [result] = written(TWO_AT_ONCE, -86_400, counters=counters)
    assert result == over(-86_380, notify=False)
    _, [result] = written(TWO_AT_ONCE, -86_380, counters=counters)
    assert result is None


def test_a_calm_bucket_is_not_emptied_by_a_clock_that_was_set_back() -> None:
    counters, _ = written(TWO_AT_ONCE, 0, 0)
    _, results = written(TWO_AT_ONCE, -60, counters=counters)
    assert results == [over(-40, notify=True)]


def test_a_limit_that_changes_holds_at_once() -> None:
    """A pause that a slower rate made is cut, and a limit that is gone refuses nothing."""
    slow = RateLimits(person=Rate(per_minute=1, burst=2))
    counters, results = written(slow, 0, 0, 0)
    assert results[-1] == over(120, notify=True)
    _, results = written(TWO_AT_ONCE, 10, 21, counters=counters)
    assert results == [over(30, notify=False), over(30, notify=False)]
    _, results = written(RateLimits(), 10, counters=counters)
    assert results == [None]


# --- all of them ---------------------------------------------------------------------------------

ALL = RateLimits(
    person=Rate(per_minute=6, burst=3), conversation=Rate(per_minute=6, burst=2), daily=5
)


def test_a_message_that_one_limit_refuses_counts_against_no_other() -> None:
    counters, _ = written(ALL, 0, 0)
    after, [result] = written(ALL, 0, counters=counters)
    assert result == Over(limit="conversation", until=at(20), notify=True)
    assert (after.person, after.day) == (counters.person, counters.day)
    again, [result] = written(ALL, 0, counters=replace(after, conversation=None))
    assert result is None
    last, [result] = written(ALL, 0, counters=again)
    assert result == Over(limit="person", until=at(30), notify=True)
    assert (last.conversation, last.day) == (again.conversation, again.day)


def test_a_crowded_chat_gets_one_notice_for_all_its_writers() -> None:
    counters, _ = written(ALL, 0, 0)
    counters, [result] = written(ALL, 0, counters=counters)
    assert result == Over(limit="conversation", until=at(20), notify=True)
    _, [result] = written(ALL, 0, counters=replace(counters, person=None), place="elsewhere")
    assert result == Over(limit="conversation", until=at(20), notify=False)


def test_a_day_ends_at_midnight_utc() -> None:
    """Twelve hours after these tests begin; each chat gets one notice a day."""
    day = RateLimits(daily=2)
    counters, results = written(day, 0, 1, 2, 3)
    full = Over(limit="day", until=at(43_200), notify=True)
    assert results == [None, None, full, replace(full, notify=False)]
    counters, results = written(day, 4, counters=counters, place="elsewhere")
    assert results == [full]
    _, results = written(day, 43_199, 43_200, 43_200, 43_200, counters=counters)
    assert results == [replace(full, notify=False), None, None, replace(full, until=at(129_600))]


def test_commands_are_counted_apart_and_never_by_the_day() -> None:
    all_, commands = limits_of(Config(), "web"), limits_of(Config(), "web", "commands")
    assert commands == RateLimits(person=all_.person)
    own = Config(channels={"web": ChannelSettings(rate=RateSettings(person_burst=3))})
    assert limits_of(own, "web", "answers").per_channel == frozenset({"person"})


def test_a_day_says_when_it_ends() -> None:
    assert ends_at(Day(begins_at=at(-43_200))) == at(43_200)


# --- properties, for any input ----------------------------------------------------------------------

rates = st.builds(Rate, per_minute=st.integers(1, 600), burst=st.integers(1, 20))
gaps = st.lists(st.floats(0, 40, allow_nan=False), min_size=1, max_size=80)


def instants(gaps: list[float]) -> list[datetime]:
    found, now = list[datetime](), EPOCH
    for gap in gaps:
        now += timedelta(seconds=gap)
        found.append(now)
    return found


@given(rate=rates, gaps=gaps, daily=st.integers(0, 30))
def test_no_stretch_of_time_holds_more_than_the_burst_and_the_rate(
    rate: Rate, gaps: list[float], daily: int
) -> None:
    """Between any two messages that were taken; and no day holds more than it may."""
    limits = RateLimits(person=rate, daily=daily)
    admitted: list[datetime] = []
    counters = Counters()
    for now in instants(gaps):
        counters, over = count_message(counters, limits, now=now, place="", sent_at=None)
        admitted += [now] if over is None else []
    for first, began in enumerate(admitted):
        for last in range(first, len(admitted)):
            minutes = (admitted[last] - began) / MINUTE
            # An instant has no more than six digits after the second.
            assert last - first + 1 <= rate.burst + rate.per_minute * minutes + 1e-3
    assert not daily or len(admitted) <= daily


@given(rate=rates, pauses=st.lists(st.floats(0, 100, allow_nan=False), max_size=60))
def test_a_slow_writer_is_never_refused(rate: Rate, pauses: list[float]) -> None:
    now, counters = EPOCH, Counters()
    for pause in pauses:
        now += rate.drained_after(1) + timedelta(seconds=pause)
        counters, over = count_message(
            counters, RateLimits(person=rate), now=now, place="", sent_at=None
        )
        assert over is None


@given(rate=rates, gaps=gaps)
def test_a_writer_may_go_on_at_the_announced_time(rate: Rate, gaps: list[float]) -> None:
    """At that instant a whole burst is taken, with any messages in between."""
    counters, limits = Counters(), RateLimits(person=rate)
    until: datetime | None = None
    for now in instants(gaps):
        if until is not None and now >= until:
            after = counters
            for _ in range(rate.burst):
                after, over = count_message(after, limits, now=until, place="", sent_at=None)
                assert over is None
            until = None
        counters, over = count_message(counters, limits, now=now, place="", sent_at=None)
        if over is not None:
            assert until in (None, over.until)
            until = over.until


@given(rate=rates, gaps=gaps)
def test_a_flood_gets_one_notice_a_stretch(rate: Rate, gaps: list[float]) -> None:
    """Between two notices a whole burst was taken."""
    counters, admitted = Counters(), 0
    for now in instants(gaps):
        counters, over = count_message(
            counters, RateLimits(person=rate), now=now, place="", sent_at=None
        )
        if over is None:
            admitted += 1
        elif over.notify:
            assert admitted >= rate.burst
            admitted = 0


@given(rate=rates, jumps=st.lists(st.integers(-100_000, 100_000), min_size=1, max_size=60))
def test_no_clock_that_jumps_makes_anybody_wait_longer_than_a_burst(
    rate: Rate, jumps: list[int]
) -> None:
    now, counters = EPOCH, Counters()
    for jump in jumps:
        now += timedelta(seconds=jump)
        counters, over = count_message(
            counters, RateLimits(person=rate), now=now, place="", sent_at=None
        )
        assert over is None or over.until - now <= rate.drained_after(rate.burst)
