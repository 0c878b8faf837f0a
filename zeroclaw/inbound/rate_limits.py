"""How much people may write: the rate limits applied to one message (pure).

    calm ──one too many──▶ over, until a time that the sender is told ──▶ calm, with an empty bucket

A bucket fills by one with each message and drains at its rate, so that in any period no more
messages pass than its burst plus what its rate allows. Once it overflows it takes nothing until it
is empty: a person who was told "in 40 seconds" can then write a burst again, and a script that
never stops is told once per stretch instead of at every second message.

A day is a UTC date: it is the same for everyone, and a restart does not reset it.
"""

from datetime import UTC, datetime, time, timedelta
from typing import Literal

from zeroclaw.config.model import Config
from zeroclaw.value import Value, replace

MOST_TOLD = 8
"""Chats that are told during one stretch; a sender who writes in more at once is not a person."""

Which = Literal["person", "conversation", "day"]
Lane = Literal["messages", "commands", "answers"]


class Rate(Value):
    """How fast messages may come.

    Attributes:
        per_minute: How many drain per minute; 0 for no limit.
        burst: How many may come at once after a pause, at least 1.
    """

    per_minute: int
    burst: int

    def drained_after(self, level: float) -> timedelta:
        """Return how long this many messages take to drain."""
        return timedelta(minutes=level / self.per_minute)


UNLIMITED = Rate(per_minute=0, burst=1)


class RateLimits(Value):
    """All limits on one channel.

    Attributes:
        person: Messages of one person.
        conversation: Messages of one conversation, from everyone in it.
        daily: Messages of one person on one day, 0 for no limit.
        own: Which of `person` and `day` this channel counts separately; the others are counted
            together with all channels that have no setting of their own.
    """

    person: Rate = UNLIMITED
    conversation: Rate = UNLIMITED
    daily: int = 0
    own: frozenset[Which] = frozenset()


def limits_of(config: Config, channel: str, lane: Lane = "messages") -> RateLimits:
    """Return a channel's limits: its own `rate`, and `[limits]` for what that leaves out.

    Commands that are answered at once, and answers that change nothing, are only limited per
    person. Each lane is counted separately, so that a flood of one does not block another.
    """
    rate = config.settings_of(channel).rate
    # The keys of both have the same names.
    limits = config.limits.model_copy(update=rate.model_dump(exclude_none=True))
    own: set[Which] = set()
    if rate.person_per_minute is not None or rate.person_burst is not None:
        own.add("person")
    if rate.daily_messages is not None:
        own.add("day")
    person = Rate(per_minute=limits.person_per_minute, burst=limits.person_burst)
    if lane != "messages":
        return RateLimits(person=person, own=frozenset(own))
    several = Rate(per_minute=limits.conversation_per_minute, burst=limits.conversation_burst)
    daily = limits.daily_messages
    return RateLimits(person=person, conversation=several, daily=daily, own=frozenset(own))


# --- counters ------------------------------------------------------------------------------------


class Bucket(Value):
    """How full one bucket is.

    Attributes:
        level: In messages, at `at`.
        at: When it was last filled, by the messages' own times; UTC.
        over_until: Until when it takes nothing, None while it is calm.
        told: The places that were told so.
    """

    level: float
    at: datetime
    over_until: datetime | None = None
    told: tuple[str, ...] = ()


class Day(Value):
    """What one person wrote on one day.

    Attributes:
        begins_at: 00:00 UTC.
        taken: Messages that were taken.
        told: The places that were told that the day is full.
    """

    begins_at: datetime
    taken: int = 0
    told: tuple[str, ...] = ()


class Tally(Value):
    """The counters for one message; None for what is not counted, or not yet."""

    person: Bucket | None = None
    conversation: Bucket | None = None
    day: Day | None = None


class Over(Value):
    """A message is not taken.

    Attributes:
        which: The limit that it is over.
        until: When messages are taken again.
        tell: Whether its sender still has to be told, here, about this stretch.
    """

    which: Which
    until: datetime
    tell: bool


class _Message(Value):
    """The facts of a message; as in `step`."""

    now: datetime
    sent_at: datetime | None
    place: str


# --- decisions -----------------------------------------------------------------------------------


def step(
    tally: Tally, limits: RateLimits, *, now: datetime, place: str, sent_at: datetime | None = None
) -> tuple[Tally, Over | None]:
    """Count one message, or say which limit it is over; then it counts against no other.

    Args:
        tally: The counters so far.
        limits: The current limits; they may have changed since.
        now: UTC.
        place: The chat, which is told once per stretch.
        sent_at: When it was written, by the platform; None for now. Messages that piled up while
            the daemon was down were written slowly, and count that way.
    """
    message = _Message(now=now, sent_at=sent_at, place=place)
    person, over = _filled(tally.person, limits.person, "person", message)
    if over is not None:
        return replace(tally, person=person), over
    # In a conversation with many people, one reply is for all.
    everybodys = replace(message, place="")
    chat, over = _filled(tally.conversation, limits.conversation, "conversation", everybodys)
    if over is not None:
        return replace(tally, conversation=chat), over
    day, over = _counted(tally.day, limits.daily, message)
    if over is not None:
        return replace(tally, day=day), over
    return Tally(person=person, conversation=chat, day=day), None


def ends_at(day: Day) -> datetime:
    """Return when a day is over."""
    return day.begins_at + timedelta(days=1)


def _filled(
    bucket: Bucket | None, rate: Rate, which: Which, message: _Message
) -> tuple[Bucket | None, Over | None]:
    if not rate.per_minute:
        return None, None
    sent_at = min(message.sent_at or message.now, message.now)
    bucket = bucket or Bucket(level=0, at=sent_at)
    # If the clock was set back, the last message was written just now.
    bucket = replace(bucket, at=min(bucket.at, message.now))
    # A message is not from the future, nor older than the one before it: a made-up time gains
    # nothing.
    at = max(sent_at, bucket.at)
    if bucket.over_until is not None:
        # No pause is longer than a full bucket needs to drain; a longer one comes from another
        # clock.
        until = min(bucket.over_until, at + rate.drained_after(rate.burst))
        if at < until:
            return _refused(bucket, until, which, message.place)
        bucket = Bucket(level=0, at=until)
    level = max(0.0, bucket.level - (at - bucket.at) / rate.drained_after(1))
    if level + 1 <= rate.burst:
        return Bucket(level=level + 1, at=at), None
    full = Bucket(level=level, at=at)
    return _refused(full, at + rate.drained_after(level), which, message.place)


def _refused(bucket: Bucket, until: datetime, which: Which, place: str) -> tuple[Bucket, Over]:
    told, tell = _told(bucket.told, place)
    over = Over(which=which, until=until, tell=tell)
    return replace(bucket, over_until=until, told=told), over


def _counted(day: Day | None, daily: int, message: _Message) -> tuple[Day | None, Over | None]:
    if not daily:
        return day, None
    today = datetime.combine(message.now.astimezone(UTC).date(), time(), UTC)
    if day is None or day.begins_at != today:
        day = Day(begins_at=today)
    if day.taken < daily:
        return replace(day, taken=day.taken + 1), None
    told, tell = _told(day.told, message.place)
    return replace(day, told=told), Over(which="day", until=ends_at(day), tell=tell)


def _told(told: tuple[str, ...], place: str) -> tuple[tuple[str, ...], bool]:
    """Return the told places with this one added, and whether it still has to be told."""
    if place in told or len(told) >= MOST_TOLD:
        return told, False
    return (*told, place), True
