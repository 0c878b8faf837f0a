"""How much people may write: the rate limits applied to one message (pure).

    open ──a message overflows the bucket──▶ closed ──the bucket is empty──▶ open

A bucket fills by one with each message and drains at its rate, so that in any period no more
messages pass than its burst plus those its rate allows. Once it overflows, it refuses every message
until it is empty, and the notice says when that is: a person can then write a burst again, and a
script that never stops gets one notice instead of one for every second message.

A day is a UTC date: it is the same for everyone, and a restart does not reset it.
"""

from datetime import UTC, datetime, time, timedelta
from typing import Literal

from zeroclaw.config.model import Config
from zeroclaw.value import Value, replace

MAX_NOTIFIED = 8
"""Chats that get a notice while a bucket is closed; a person does not write in more at once."""

LimitName = Literal["person", "conversation", "day"]
Lane = Literal["messages", "commands", "answers"]


class Rate(Value):
    """How fast messages may come.

    Attributes:
        per_minute: How many drain per minute; 0 for no limit.
        burst: How many may come at once after a break, at least 1.
    """

    per_minute: int
    burst: int

    def drained_after(self, level: float) -> timedelta:
        """Return the time in which this many messages drain."""
        return timedelta(minutes=level / self.per_minute)


UNLIMITED = Rate(per_minute=0, burst=1)


class RateLimits(Value):
    """All limits on one channel.

    Attributes:
        person: Messages of one person.
        conversation: Messages of one conversation, from everyone in it.
        daily: Messages of one person on one day, 0 for no limit.
        per_channel: Those of `person` and `day` that this channel counts separately; the others are
            counted over all channels that do not set them.
    """

    person: Rate = UNLIMITED
    conversation: Rate = UNLIMITED
    daily: int = 0
    per_channel: frozenset[LimitName] = frozenset()


def limits_of(config: Config, channel: str, lane: Lane = "messages") -> RateLimits:
    """Return a channel's limits: its own `rate`, and `[limits]` for the keys that it leaves out.

    Commands that start no turn, and answers that change nothing, are limited only per person. Each
    lane is counted separately, so that a flood in one does not block another.
    """
    rate = config.settings_of(channel).rate
    # The keys of both have the same names.
    limits = config.limits.model_copy(update=rate.model_dump(exclude_none=True))
    per_channel: set[LimitName] = set()
    if rate.person_per_minute is not None or rate.person_burst is not None:
        per_channel.add("person")
    if rate.daily_messages is not None:
        per_channel.add("day")
    person = Rate(per_minute=limits.person_per_minute, burst=limits.person_burst)
    found = RateLimits(person=person, per_channel=frozenset(per_channel))
    if lane != "messages":
        return found
    chat = Rate(per_minute=limits.conversation_per_minute, burst=limits.conversation_burst)
    return replace(found, conversation=chat, daily=limits.daily_messages)


# --- counters ------------------------------------------------------------------------------------


class Bucket(Value):
    """How full one bucket is.

    Attributes:
        level: In messages, at `at`.
        at: When it was last filled, by the messages' own times; UTC.
        closed_until: When it takes messages again; None while it is open.
        notified: The chats that got a notice since it closed.
    """

    level: float
    at: datetime
    closed_until: datetime | None = None
    notified: tuple[str, ...] = ()


class Day(Value):
    """The count of one person's messages on one day.

    Attributes:
        begins_at: 00:00 UTC.
        taken: The admitted messages.
        told: The chats that got the notice that the day is full.
    """

    begins_at: datetime
    taken: int = 0
    told: tuple[str, ...] = ()


class Counters(Value):
    """The counters for one message; None for one that is not used, or not started yet."""

    person: Bucket | None = None
    conversation: Bucket | None = None
    day: Day | None = None


class Over(Value):
    """The limit that a message is over.

    Attributes:
        limit: Its name.
        until: When messages are admitted again.
        notify: Whether the sender gets a notice in this chat: they have had none since
            it closed, and fewer than `MAX_NOTIFIED` chats have.
    """

    limit: LimitName
    until: datetime
    notify: bool


class _Message(Value):
    """A message; the fields are as in `count_message`."""

    now: datetime
    sent_at: datetime | None
    place: str


# --- decisions -----------------------------------------------------------------------------------


def count_message(
    counters: Counters, limits: RateLimits, *, now: datetime, place: str, sent_at: datetime | None
) -> tuple[Counters, Over | None]:
    """Count one message, or return the limit it is over; then it counts against no other.

    Args:
        counters: The counters so far.
        limits: The current limits; they may have changed since.
        now: UTC.
        place: The chat, which gets one notice until messages are admitted again.
        sent_at: When it was written, by the platform; None for now. Messages that piled up while
            the daemon was down were written slowly, and count that way.
    """
    message = _Message(now=now, sent_at=sent_at, place=place)
    person, over = _fill(counters.person, limits.person, "person", message)
    if over is not None:
        return replace(counters, person=person), over
    # A conversation with many people gets one notice for all of them.
    shared = replace(message, place="")
    chat, over = _fill(counters.conversation, limits.conversation, "conversation", shared)
    if over is not None:
        return replace(counters, conversation=chat), over
    day, over = _count_day(counters.day, limits.daily, message)
    if over is not None:
        return replace(counters, day=day), over
    return Counters(person=person, conversation=chat, day=day), None


def ends_at(day: Day) -> datetime:
    """Return the end of a day."""
    return day.begins_at + timedelta(days=1)


def _fill(
    bucket: Bucket | None, rate: Rate, limit: LimitName, message: _Message
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
    if bucket.closed_until is not None:
        # A full bucket drains no longer than this; a later time comes from another clock.
        until = min(bucket.closed_until, at + rate.drained_after(rate.burst))
        if at < until:
            return _close(bucket, until, limit, message.place)
        bucket = Bucket(level=0, at=until)
    level = max(0.0, bucket.level - (at - bucket.at) / rate.drained_after(1))
    if level + 1 <= rate.burst:
        return Bucket(level=level + 1, at=at), None
    full = Bucket(level=level, at=at)
    return _close(full, at + rate.drained_after(level), limit, message.place)


def _close(bucket: Bucket, until: datetime, limit: LimitName, place: str) -> tuple[Bucket, Over]:
    notified, notify = _with_place(bucket.notified, place)
    over = Over(limit=limit, until=until, notify=notify)
    return replace(bucket, closed_until=until, notified=notified), over


def _count_day(day: Day | None, daily: int, message: _Message) -> tuple[Day | None, Over | None]:
    if not daily:
        return day, None
    today = datetime.combine(message.now.astimezone(UTC).date(), time(), UTC)
    if day is None or day.begins_at != today:
        day = Day(begins_at=today)
    if day.taken < daily:
        return replace(day, taken=day.taken + 1), None
    told, notify = _with_place(day.told, message.place)
    return replace(day, told=told), Over(limit="day", until=ends_at(day), notify=notify)


def _with_place(notified: tuple[str, ...], place: str) -> tuple[tuple[str, ...], bool]:
    """Return the notified chats with this one added, and whether it gets a notice now."""
    if place in notified or len(notified) >= MAX_NOTIFIED:
        return notified, False
    return (*notified, place), True
