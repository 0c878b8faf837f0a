"""What the limits make of one message: tables, and what holds for whatever is written."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.manual_clock import EPOCH
from zeroclaw.config.model import ChannelSettings, Config, LimitsSettings, RateSettings
from zeroclaw.inbound.rate_limits import (
    MOST_TOLD,
    Day,
    Over,
    Rate,
    RateLimits,
    Tally,
    ends_at,
    limits_of,
    step,
)
from zeroclaw.value import replace

MINUTE = timedelta(minutes=1)
TWO_AT_ONCE = RateLimits(person=Rate(per_minute=6, burst=2))
"""One each ten seconds, two at once."""


def at(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def written(
    limits: RateLimits, *seconds: float, tally: Tally | None = None, place: str = "here"
) -> tuple[Tally, list[Over | None]]:
    """Write at these instants, one after another."""
    told: list[Over | None] = []
    tally = tally or Tally()
    for second in seconds:
        tally, over = step(tally, limits, now=at(second), place=place)
        told.append(over)
    return tally, told


def over(until: float, *, tell: bool) -> Over:
    return Over(which="person", until=at(until), tell=tell)


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
            {"person": Rate(per_minute=1, burst=3), "own": frozenset({"person"})},
        ),
        (
            RateSettings(person_burst=9),
            {"person": Rate(per_minute=2, burst=9), "own": frozenset({"person"})},
        ),
        (RateSettings(daily_messages=0), {"daily": 0, "own": frozenset({"day"})}),
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
        *(None, None, over(20, tell=True), over(20, tell=False), over(20, tell=False)),
        *(None, None, over(40, tell=True)),
    ]


def test_who_writes_as_fast_as_it_drains_is_never_refused() -> None:
    _, told = written(TWO_AT_ONCE, *range(0, 600, 10))
    assert set(told) == {None}


def test_a_burst_after_a_pause_is_taken() -> None:
    _, told = written(TWO_AT_ONCE, 0, 100, 100)
    assert told == [None, None, None]


def test_each_chat_is_told_of_a_stretch_once() -> None:
    """Whoever floods many chats is no person, and the last of them hear nothing."""
    tally, _ = written(TWO_AT_ONCE, 0, 0)
    tells: list[bool] = []
    for number in (0, 0, 1, *range(2, MOST_TOLD + 2)):
        tally, [told] = written(TWO_AT_ONCE, 1, tally=tally, place=f"chat {number}")
        assert told is not None
        tells.append(told.tell)
    assert tells == [True, False, *[True] * (MOST_TOLD - 1), False, False]


def test_what_piled_up_counts_for_when_it_was_written() -> None:
    """An hour of ten messages, delivered at once when the daemon is back."""
    tally: Tally = Tally()
    for number in range(10):
        sent = at(number * 60)
        tally, told = step(tally, TWO_AT_ONCE, now=at(3600), place="", sent_at=sent)
        assert told is None


def test_nothing_is_written_in_the_future_nor_before_what_came_first() -> None:
    """A platform's clock, or a header that somebody made up, earns nothing."""
    tally, told = Tally(), None
    for sent in (at(0), at(0) - MINUTE * 60, at(0) + MINUTE * 60):
        tally, told = step(tally, TWO_AT_ONCE, now=at(0), place="", sent_at=sent)
    assert told == over(20, tell=True)


def test_a_clock_that_was_set_back_makes_no_pause_longer() -> None:
    """It is over when a full bucket has drained, by the clock there is now."""
    tally, _ = written(TWO_AT_ONCE, 0, 0, 0)
    tally, [told] = written(TWO_AT_ONCE, -86_400, tally=tally)
    assert told == over(-86_380, tell=False)
    _, [told] = written(TWO_AT_ONCE, -86_380, tally=tally)
    assert told is None


def test_a_calm_bucket_is_not_emptied_by_a_clock_that_was_set_back() -> None:
    tally, _ = written(TWO_AT_ONCE, 0, 0)
    _, told = written(TWO_AT_ONCE, -60, tally=tally)
    assert told == [over(-40, tell=True)]


def test_a_limit_that_changes_holds_at_once() -> None:
    """A pause that a slower rate made is cut, and a limit that is gone refuses nothing."""
    slow = RateLimits(person=Rate(per_minute=1, burst=2))
    tally, told = written(slow, 0, 0, 0)
    assert told[-1] == over(120, tell=True)
    _, told = written(TWO_AT_ONCE, 10, 21, tally=tally)
    assert told == [over(30, tell=False), over(30, tell=False)]
    _, told = written(RateLimits(), 10, tally=tally)
    assert told == [None]


# --- all of them ---------------------------------------------------------------------------------

ALL = RateLimits(
    person=Rate(per_minute=6, burst=3), conversation=Rate(per_minute=6, burst=2), daily=5
)


def test_what_one_limit_refuses_counts_against_no_other() -> None:
    tally, _ = written(ALL, 0, 0)
    after, [told] = written(ALL, 0, tally=tally)
    assert told == Over(which="conversation", until=at(20), tell=True)
    assert (after.person, after.day) == (tally.person, tally.day)
    again, [told] = written(ALL, 0, tally=replace(after, conversation=None))
    assert told is None
    last, [told] = written(ALL, 0, tally=again)
    assert told == Over(which="person", until=at(30), tell=True)
    assert (last.conversation, last.day) == (again.conversation, again.day)


def test_a_crowded_chat_is_told_once_for_all_who_write_there() -> None:
    tally, _ = written(ALL, 0, 0)
    tally, [told] = written(ALL, 0, tally=tally)
    assert told == Over(which="conversation", until=at(20), tell=True)
    _, [told] = written(ALL, 0, tally=replace(tally, person=None), place="elsewhere")
    assert told == Over(which="conversation", until=at(20), tell=False)


def test_a_day_ends_at_midnight_utc() -> None:
    """Twelve hours after these tests begin; each chat is told once a day."""
    day = RateLimits(daily=2)
    tally, told = written(day, 0, 1, 2, 3)
    full = Over(which="day", until=at(43_200), tell=True)
    assert told == [None, None, full, replace(full, tell=False)]
    tally, told = written(day, 4, tally=tally, place="elsewhere")
    assert told == [full]
    _, told = written(day, 43_199, 43_200, 43_200, 43_200, tally=tally)
    assert told == [replace(full, tell=False), None, None, replace(full, until=at(129_600))]


def test_commands_are_counted_apart_and_never_by_the_day() -> None:
    all_, commands = limits_of(Config(), "web"), limits_of(Config(), "web", "commands")
    assert commands == RateLimits(person=all_.person)
    own = Config(channels={"web": ChannelSettings(rate=RateSettings(person_burst=3))})
    assert limits_of(own, "web", "answers").own == frozenset({"person"})


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
    tally = Tally()
    for now in instants(gaps):
        tally, over = step(tally, limits, now=now, place="")
        taken += [now] if over is None else []
    for first, began in enumerate(taken):
        for last in range(first, len(taken)):
            minutes = (taken[last] - began) / MINUTE
            # An instant has no more than six digits after the second.
            assert last - first + 1 <= rate.burst + rate.per_minute * minutes + 1e-3
    assert not daily or len(taken) <= daily


@given(rate=rates, pauses=st.lists(st.floats(0, 100, allow_nan=False), max_size=60))
def test_whoever_writes_slowly_is_never_refused(rate: Rate, pauses: list[float]) -> None:
    now, tally = EPOCH, Tally()
    for pause in pauses:
        now += rate.drained_after(1) + timedelta(seconds=pause)
        tally, over = step(tally, RateLimits(person=rate), now=now, place="")
        assert over is None


@given(rate=rates, gaps=gaps)
def test_whoever_is_told_when_to_go_on_can(rate: Rate, gaps: list[float]) -> None:
    """At that instant a whole burst is taken, whatever they wrote meanwhile."""
    tally, limits = Tally(), RateLimits(person=rate)
    until: datetime | None = None
    for now in instants(gaps):
        if until is not None and now >= until:
            after = tally
            for _ in range(rate.burst):
                after, over = step(after, limits, now=until, place="")
                assert over is None
            until = None
        tally, over = step(tally, limits, now=now, place="")
        if over is not None:
            assert until in (None, over.until)
            until = over.until


@given(rate=rates, gaps=gaps)
def test_a_flood_is_told_once_a_stretch(rate: Rate, gaps: list[float]) -> None:
    """Each time that it is told, a whole burst was taken since the last time."""
    tally, taken = Tally(), 0
    for now in instants(gaps):
        tally, over = step(tally, RateLimits(person=rate), now=now, place="")
        if over is None:
            taken += 1
        elif over.tell:
            assert taken >= rate.burst
            taken = 0


@given(rate=rates, jumps=st.lists(st.integers(-100_000, 100_000), min_size=1, max_size=60))
def test_no_clock_that_jumps_makes_anybody_wait_longer_than_a_burst(
    rate: Rate, jumps: list[int]
) -> None:
    now, tally = EPOCH, Tally()
    for jump in jumps:
        now += timedelta(seconds=jump)
        tally, over = step(tally, RateLimits(person=rate), now=now, place="")
        assert over is None or over.until - now <= rate.drained_after(rate.burst)
