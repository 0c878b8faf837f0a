"""A crowd writes at once on Telegram: each person is answered once, in order, and memory is bounded."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from channels.telegram.emulator import Actor, Limits, UserAction
from tests.bench.process import peak_rss_mib
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow

EVERYBODY = {"allowed_users": ["*"]}
MAX_MIB = 100.0
"""That a thousand chats at once may add to what is resident; 39 were measured (2026-11)."""


def crowd(world: Bot, count: int) -> list[Actor]:
    """Let so many people have an account."""
    return [world.telegram.person(f"P{number:04}") for number in range(count)]


def all_write(world: Bot, people: Sequence[Actor], *words: str) -> list[UserAction]:
    """Have all people write each word, round by round; none is delivered before all are written."""
    world.telegram.hold()
    actions = [person.says(f"{word} {person.id}") for word in words for person in people]
    world.telegram.release()
    return actions


async def all_answered(world: Bot, people: Sequence[Actor], *words: str) -> None:
    """Wait for all answers, and fail for one that is missing, foreign or there twice."""
    for person in people:  # one by one, so that patience is with each of them, not with the crowd
        await world.until(lambda person=person: len(person.chat.texts) >= len(words))
    texts = {person.id: person.chat.texts for person in people}
    assert texts == {person.id: [f"{word} {person.id}" for word in words] for person in people}


def refused(world: Bot) -> list[str]:
    """Return the calls that Telegram refused, for any reason."""
    return [repr(call) for call in world.telegram.calls if call.refusal]


async def test_a_thousand_chats_at_once_are_each_answered_once(tmp_path: Path) -> None:
    """None is lost, doubled or swapped, no call is refused, and memory is bounded. P1, P2, P9."""
    async with bot(tmp_path, channel=EVERYBODY) as world:
        people, before_mib = crowd(world, 1_000), peak_rss_mib(world.daemon.pid)
        actions = all_write(world, people, "hello from")
        await all_answered(world, people, "hello from")
        await world.telegram.confirmed(*actions)
        assert refused(world) == []
        assert peak_rss_mib(world.daemon.pid) - before_mib < MAX_MIB
        # Once more, so that what is late, or comes twice, is seen: nothing else was said meanwhile.
        all_write(world, people[:1], "bye from")
        await all_answered(world, people[:1], "hello from", "bye from")
        assert {len(person.chat.texts) for person in people[1:]} == {1}


async def test_who_writes_twice_in_a_crowd_is_answered_in_order(tmp_path: Path) -> None:
    """Everybody's second message comes while their first waits; some look something up. P2, P9."""
    async with bot(tmp_path, channel=EVERYBODY) as world:
        people = crowd(world, 150)
        some = people[::5]
        for person in some:
            key = f"first of {person.id}"
            world.model.call("peek", {"what": str(person.id)}, round=0, key=key)
        actions = all_write(world, people, "first of", "second of")
        await all_answered(world, people, "first of", "second of")
        await world.telegram.confirmed(*actions)
        assert sorted(world.bench.ran("peek")) == sorted(str(person.id) for person in some)
        assert refused(world) == []


async def test_a_crowd_within_the_published_limits_causes_no_refusal(tmp_path: Path) -> None:
    """Twice as many as may be answered in a second wait for their turn. P1, P9, S2-19."""
    async with bot(tmp_path, limits=Limits(), channel=EVERYBODY) as world:
        people = crowd(world, 60)
        actions = all_write(world, people, "first of", "second of")
        await all_answered(world, people, "first of", "second of")
        await world.telegram.confirmed(*actions)
        assert world.telegram.exceeded == 0
        assert refused(world) == []
