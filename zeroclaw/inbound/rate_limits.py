"""How much people may write: what the limits make of one message (pure).

    calm ──one too many──▶ over, until an instant that its writer is told ──▶ calm, all of it free

A bucket fills by one with each message and drains at its rate, so that in any stretch of time no
more get through than its burst and what its rate gives. Once it overflows it takes nothing until
it has drained: a person who was told "in 40 seconds" can then write a burst again, and a script that
never stops is told once a stretch instead of once for each second message.

A day is the date in UTC: it is the same for all people, and a restart does not begin it anew.
"""

from datetime import UTC, datetime, time, timedelta
from typing import Literal

from zeroclaw.config.model import Config, RateSettings
from zeroclaw.value import Value, replace

MOST_TOLD = 8
"""Chats that are told of one stretch; who writes in more of them at once is no person."""

Which = Literal["person", "conversation", "day"]
Lane = Literal["messages", "commands", "answers"]


class Rate(Value):
    """How fast messages may come.

    Attributes:
        per_minute: What drains; 0 for no limit.
        burst: What may come at once after a pause, at least 1.
    """

    per_minute: int
    burst: int

    def drained_after(self, level: float) -> timedelta:
        """Return how long so many messages take to drain."""
        return timedelta(minutes=level / self.per_minute)


UNLIMITED = Rate(per_minute=0, burst=1)


class Limits(Value):
    """All that is limited of what is written on one channel.

    Attributes:
        person: Messages of one person.
        conversation: Messages of one conversation, of all who share it.
        daily: Messages of one person on one day, 0 for no limit.
        lane: What is counted apart from all else.
        own: Those of `person` and `day` that this channel counts by itself; the others are
            counted together with all channels that have none of their own.
    """

    person: Rate = UNLIMITED
    conversation: Rate = UNLIMITED
    daily: int = 0
    lane: Lane = "messages"
    own: frozenset[Which] = frozenset()


def limits_of(config: Config, channel: str, lane: Lane = "messages") -> Limits:
    """Return what holds on a channel: its own `rate`, and `[limits]` for what that leaves out.

    Of commands that are answered at once, and of answers that change nothing, only how fast one
    person sends them; each lane is counted apart, so that no flood of one closes another.
    """
    all_, settings = config.limits, config.channels.get(channel)
    rate = settings.rate if settings else RateSettings()
    own: set[Which] = set()
    if rate.person_per_minute is not None or rate.person_burst is not None:
        own.add("person")
    if rate.daily_messages is not None:
        own.add("day")
    person = Rate(
        per_minute=_or(rate.person_per_minute, all_.person_per_minute),
        burst=_or(rate.person_burst, all_.person_burst),
    )
    if lane != "messages":
        return Limits(person=person, lane=lane, own=frozenset(own))
    return Limits(
        person=person,
        conversation=Rate(
            per_minute=_or(rate.conversation_per_minute, all_.conversation_per_minute),
            burst=_or(rate.conversation_burst, all_.conversation_burst),
        ),
        daily=_or(rate.daily_messages, all_.daily_messages),
        own=frozenset(own),
    )


def _or(own: int | None, all_: int) -> int:
    return all_ if own is None else own


# --- what is counted -----------------------------------------------------------------------------


class Bucket(Value):
    """How full one bucket is.

    Attributes:
        level: In messages, at `at`.
        at: When it was filled last, as the messages tell it; UTC.
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
    """All that is counted of one message: None for what is not, or not yet."""

    person: Bucket | None = None
    conversation: Bucket | None = None
    day: Day | None = None


class Over(Value):
    """A message is not taken.

    Attributes:
        which: The limit that it is over.
        until: When messages are taken again.
        tell: Whether its writer has still to be told, here, about this stretch.
    """

    which: Which
    until: datetime
    tell: bool


class _Message(Value):
    """What there is to know of a message; as in `step`."""

    now: datetime
    sent_at: datetime | None
    place: str


# --- what is decided -----------------------------------------------------------------------------


def step(
    tally: Tally, limits: Limits, *, now: datetime, place: str, sent_at: datetime | None = None
) -> tuple[Tally, Over | None]:
    """Count one message, or say which limit it is over; then it counts against no other.

    Args:
        tally: What was counted so far.
        limits: As they are now; they may have changed since.
        now: UTC.
        place: The chat, for which a stretch is told once.
        sent_at: When the platform says that it was written; None for now. What piled up while
            the daemon was away was written slowly, and counts so.
    """
    message = _Message(now=now, sent_at=sent_at, place=place)
    person, over = _filled(tally.person, limits.person, "person", message)
    if over is not None:
        return replace(tally, person=person), over
    # Where many write, one of them is answered for all.
    everybodys = replace(message, place="")
    chat, over = _filled(tally.conversation, limits.conversation, "conversation", everybodys)
    if over is not None:
        return replace(tally, conversation=chat), over
    day, over = _counted(tally.day, limits.daily, message)
    if over is not None:
        return replace(tally, day=day), over
    return Tally(person=person, conversation=chat, day=day), None


def dry_at(bucket: Bucket, rate: Rate, now: datetime) -> datetime:
    """Return from when on a bucket that was filled now says no more than none at all would.

    It drains by the time of its messages, which may be long over: more of the same minute may be on
    the way, late as well, so it counts for as long as if all of it had been written now.
    """
    drained = now + rate.drained_after(bucket.level)
    return drained if bucket.over_until is None else max(drained, bucket.over_until)


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
    # Where the clock was set back, the last message was written just now.
    bucket = replace(bucket, at=min(bucket.at, message.now))
    # Nothing is written in the future, nor before what came first: an instant that somebody made
    # up earns them nothing.
    at = max(sent_at, bucket.at)
    if bucket.over_until is not None:
        # No pause is longer than a full bucket takes; one that is was told by another clock.
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
    """Return who was told once this place is, and whether it has still to be."""
    if place in told or len(told) >= MOST_TOLD:
        return told, False
    return (*told, place), True
