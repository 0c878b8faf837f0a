"""What the limits make of one message: tables, and what holds for whatever is written."""

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
    told: list[Over | None] = []
    counters = counters or Counters()
    for second in seconds:
        counters, over = count_message(counters, limits, now=at(second), place=place, sent_at=None)
        told.append(over)
    return counters, told


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


def test_what_comes_at_once_is_taken_up_to_the_burst() -> None:
    """Then nothing is, until all of it has drained; that is told once."""
    _, told = written(TWO_AT_ONCE, 0, 0, 0, 5, 19.9, 20, 20, 20)
    assert told == [
        *(None, None, over(20, notify=True), over(20, notify=False), over(20, notify=False)),
        *(None, None, over(40, notify=True)),
    ]


def test_who_writes_as_fast_as_it_drains_is_never_refused() -> None:
    _, told = written(TWO_AT_ONCE, *range(0, 600, 10))
    assert set(told) == {None}


def test_a_burst_after_a_pause_is_taken() -> None:
    _, told = written(TWO_AT_ONCE, 0, 100, 100)
    assert told == [None, None, None]


def test_each_chat_is_told_of_a_stretch_once() -> None:
    """Whoever floods many chats is no person, and the last of them hear nothing."""
    counters, _ = written(TWO_AT_ONCE, 0, 0)
    tells: list[bool] = []
    for number in (0, 0, 1, *range(2, MAX_NOTIFIED + 2)):
        counters, [told] = written(TWO_AT_ONCE, 1, counters=counters, place=f"chat {number}")
        assert told is not None
        tells.append(told.notify)
    assert tells == [True, False, *[True] * (MAX_NOTIFIED - 1), False, False]


def test_what_piled_up_counts_for_when_it_was_written() -> None:
    """An hour of ten messages, delivered at once when the daemon is back."""
    counters: Counters = Counters()
    for number in range(10):
        sent = at(number * 60)
        counters, told = count_message(counters, TWO_AT_ONCE, now=at(3600), place="", sent_at=sent)
        assert told is None


def test_nothing_is_written_in_the_future_nor_before_what_came_first() -> None:
    """A platform's clock, or a header that somebody made up, earns nothing."""
    counters, told = Counters(), None
    for sent in (at(0), at(0) - MINUTE * 60, at(0) + MINUTE * 60):
        counters, told = count_message(counters, TWO_AT_ONCE, now=at(0), place="", sent_at=sent)
    assert told == over(20, notify=True)


def test_a_clock_that_was_set_back_makes_no_pause_longer() -> None:
    """It is over when a full bucket has drained, by the clock there is now."""
    counters, _ = written(TWO_AT_ONCE, 0, 0, 0)
    counters, [told] = written(TWO_AT_ONCE, -86_400, counters=counters)
    assert told == over(-86_380, notify=False)
    _, [told] = written(TWO_AT_ONCE, -86_380, counters=counters)
    assert told is None


def test_a_calm_bucket_is_not_emptied_by_a_clock_that_was_set_back() -> None:
    counters, _ = written(TWO_AT_ONCE, 0, 0)
    _, told = written(TWO_AT_ONCE, -60, counters=counters)
    assert told == [over(-40, notify=True)]


def test_a_limit_that_changes_holds_at_once() -> None:
    """A pause that a slower rate made is cut, and a limit that is gone refuses nothing."""
    slow = RateLimits(person=Rate(per_minute=1, burst=2))
    counters, told = written(slow, 0, 0, 0)
    assert told[-1] == over(120, notify=True)
    _, told = written(TWO_AT_ONCE, 10, 21, counters=counters)
    assert told == [over(30, notify=False), over(30, notify=False)]
    _, told = written(RateLimits(), 10, counters=counters)
    assert told == [None]


# --- all of them ---------------------------------------------------------------------------------

ALL = RateLimits(
    person=Rate(per_minute=6, burst=3), conversation=Rate(per_minute=6, burst=2), daily=5
)


def test_what_one_limit_refuses_counts_against_no_other() -> None:
    counters, _ = written(ALL, 0, 0)
    after, [told] = written(ALL, 0, counters=counters)
    assert told == Over(limit="conversation", until=at(20), notify=True)
    assert (after.person, after.day) == (counters.person, counters.day)
    again, [told] = written(ALL, 0, counters=replace(after, conversation=None))
    assert told is None
    last, [told] = written(ALL, 0, counters=again)
    assert told == Over(limit="person", until=at(30), notify=True)
    assert (last.conversation, last.day) == (again.conversation, again.day)


def test_a_crowded_chat_is_told_once_for_all_who_write_there() -> None:
    counters, _ = written(ALL, 0, 0)
    counters, [told] = written(ALL, 0, counters=counters)
    assert told == Over(limit="conversation", until=at(20), notify=True)
    _, [told] = written(ALL, 0, counters=replace(counters, person=None), place="elsewhere")
    assert told == Over(limit="conversation", until=at(20), notify=False)


def test_a_day_ends_at_midnight_utc() -> None:
    """Twelve hours after these tests begin; each chat is told once a day."""
    day = RateLimits(daily=2)
    counters, told = written(day, 0, 1, 2, 3)
    full = Over(limit="day", until=at(43_200), notify=True)
    assert told == [None, None, full, replace(full, notify=False)]
    counters, told = written(day, 4, counters=counters, place="elsewhere")
    assert told == [full]
    _, told = written(day, 43_199, 43_200, 43_200, 43_200, counters=counters)
    assert told == [replace(full, notify=False), None, None, replace(full, until=at(129_600))]


def test_commands_are_counted_apart_and_never_by_the_day() -> None:
    all_, commands = limits_of(Config(), "web"), limits_of(Config(), "web", "commands")
    assert commands == RateLimits(person=all_.person)
    own = Config(channels={"web": ChannelSettings(rate=RateSettings(person_burst=3))})
    assert limits_of(own, "web", "answers").per_channel == frozenset({"person"})


def test_a_day_says_when_it_ends() -> None:
    assert ends_at(Day(begins_at=at(-43_200))) == at(43_200)


# --- whatever is written -------------------------------------------------------------------------

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
    taken: list[datetime] = []
    counters = Counters()
    for now in instants(gaps):
        counters, over = count_message(counters, limits, now=now, place="", sent_at=None)
        taken += [now] if over is None else []
    for first, began in enumerate(taken):
        for last in range(first, len(taken)):
            minutes = (taken[last] - began) / MINUTE
            # An instant has no more than six digits after the second.
            assert last - first + 1 <= rate.burst + rate.per_minute * minutes + 1e-3
    assert not daily or len(taken) <= daily


@given(rate=rates, pauses=st.lists(st.floats(0, 100, allow_nan=False), max_size=60))
def test_whoever_writes_slowly_is_never_refused(rate: Rate, pauses: list[float]) -> None:
    now, counters = EPOCH, Counters()
    for pause in pauses:
        now += rate.drained_after(1) + timedelta(seconds=pause)
        counters, over = count_message(
            counters, RateLimits(person=rate), now=now, place="", sent_at=None
        )
        assert over is None


@given(rate=rates, gaps=gaps)
def test_whoever_is_told_when_to_go_on_can(rate: Rate, gaps: list[float]) -> None:
    """At that instant a whole burst is taken, whatever they wrote meanwhile."""
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
def test_a_flood_is_told_once_a_stretch(rate: Rate, gaps: list[float]) -> None:
    """Each time that it is told, a whole burst was taken since the last time."""
    counters, taken = Counters(), 0
    for now in instants(gaps):
        counters, over = count_message(
            counters, RateLimits(person=rate), now=now, place="", sent_at=None
        )
        if over is None:
            taken += 1
        elif over.notify:
            assert taken >= rate.burst
            taken = 0


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
