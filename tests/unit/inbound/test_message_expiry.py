"""What was written while nobody listened: answered in order, or too old to be."""

from datetime import timedelta

from tests.fakes.house import House, World
from zeroclaw.config.model import ChannelSettings, LimitsSettings
from zeroclaw.conversation.inbox import INBOX, TooOld
from zeroclaw.envelope import Body, Command, Duplicate, Said
from zeroclaw.inbound.limiter import MOST_KEPT_CHARS
from zeroclaw.store import RowKind
from zeroclaw.value import replace

HOUR_S = 3600.0
TOLD = (
    "What was written here more than 60 min ago reached me only now, and I leave it unanswered. "
    "Write it again if it still matters."
)


def bounded(world: World, max_age_s: float = HOUR_S) -> None:
    settings = ChannelSettings(allowed_users=("ada", "ben"), max_age_s=max_age_s)
    world.configure(channels={"chat": settings})


async def written(
    house: House, body: Body, hours: float, who: str = "ada", *, room: str = ""
) -> None:
    """What was written so long ago comes now."""
    sent_at = house.world.clock.now() - timedelta(hours=hours)
    late = replace(house.envelope(body, who, room=room), sent_at=sent_at)
    await house.world.platforms["chat"].say(late)
    await house.settle()


async def test_what_is_too_old_is_kept_and_told_once(world: World) -> None:
    """Nothing of it is answered; what is younger is, with a word about the wait (P10)."""
    bounded(world)
    async with world.running() as house:
        await written(house, Said(text="one"), 3)
        await written(house, Said(text="two"), 2)
        assert house.texts() == [TOLD]
        await written(house, Said(text="three"), 0.5)
        assert house.texts() == [TOLD, "ok\n\n_Answered 30 min after it was written._"]
        assert world.model.asked() == [
            "user: [written 2026-01-01 11:30 UTC, 30 min before you read it]\nthree"
        ]
        assert await house.states() == ["failed", "answered"]
        kept = [INBOX.of(row).content for row in await house.rows(RowKind.INBOX, "failed")]
        assert kept == [TooOld(text="one\n\ntwo", count=2)]
        assert [one.text for one in await house.transcript() if one.kind == "person"] == [
            "one\n\ntwo",
            "three",
        ]


async def test_what_is_too_old_and_comes_again_is_kept_once(world: World) -> None:
    """Of operators as well, whom no limit counts; after a restart too (P1)."""
    bounded(world)
    async with world.running() as house:
        sent_at = world.clock.now() - timedelta(hours=3)
        late = [
            replace(house.envelope(Said(text=text)), sent_at=sent_at) for text in ("one", "two")
        ]
        admit = house.services.ingress.admit
        assert [await admit(one) for one in (*late, late[1])][2:] == [Duplicate()]
    async with world.running() as house:
        admit = house.services.ingress.admit
        assert [await admit(one) for one in late] == [Duplicate()] * 2
        kept = [INBOX.of(row).content for row in await house.rows(RowKind.INBOX, "failed")]
        assert kept == [TooOld(text="one\n\ntwo", count=2)]


async def test_a_flood_that_is_too_old_leaves_one_row_of_bounded_length(world: World) -> None:
    """However much was written while nobody listened (P9)."""
    bounded(world)
    async with world.running() as house:
        for number in range(60):
            await written(house, Said(text=f"{number} " + "x" * 1000), 3)
        (kept,) = [INBOX.of(row).content for row in await house.rows(RowKind.INBOX, "failed")]
        assert isinstance(kept, TooOld)
        assert (len(kept.text), kept.count) == (MOST_KEPT_CHARS, 60)
        assert house.texts() == [TOLD]
        await written(house, Said(text="late"), 2, "ben")
        assert len(await house.rows(RowKind.INBOX, "failed")) == 2


async def test_it_is_told_again_the_next_time(world: World) -> None:
    """Not for each message, but for each time that somebody wrote into the void."""
    bounded(world)
    async with world.running() as house:
        await written(house, Said(text="one"), 3)
        await house.say("hello")
    async with world.running() as house:
        await written(house, Said(text="two"), 2)
        assert house.texts() == [TOLD, "ok", TOLD]


async def test_each_is_told_for_themselves_and_a_stranger_nothing(world: World) -> None:
    """In a group too (P4)."""
    bounded(world)
    async with world.running() as house:
        for who in ("ada", "ben", "ada", "mallory"):
            await written(house, Said(text="hello"), 2, who, room="room")
        assert house.texts(room="room") == [TOLD, TOLD]
        await written(house, Said(text="hello"), 2, "mallory")
        assert house.texts("mallory") == []


async def test_a_call_that_is_too_old_does_not_run(world: World) -> None:
    """Who wrote it did not mean it for now; other commands are obeyed (P3)."""
    bounded(world)
    async with world.running() as house:
        await written(house, Command(name="tool", rest="poke {}"), 2)
        assert house.texts() == [TOLD]
        assert world.poke.runs == []
        await written(house, Command(name="whoami"), 2)
        assert house.texts()[-1].startswith("You are")


async def test_a_message_that_is_too_old_counts_for_nothing(world: World) -> None:
    """What is not answered uses up nobody's day; and its edit finds nothing."""
    bounded(world)
    world.configure(limits=LimitsSettings(daily_messages=1))
    async with world.running() as house:
        await written(house, Said(text="one"), 2, "ben")
        await house.edit("p1", "two", "ben")
        await house.say("hello", "ben")
        assert house.texts("ben") == [TOLD, "ok"]


async def test_without_a_bound_all_is_answered_in_its_order(world: World) -> None:
    """However old it is, and a file alone has nothing but its name to keep."""
    bounded(world, 0)
    async with world.running() as house:
        for number in (3, 2, 1):
            await written(house, Said(text=f"{number} days"), 24 * number)
        asked = [
            request.messages[-1].content.partition("\n")[2] for request in world.model.requests
        ]
        assert asked == ["3 days", "2 days", "1 days"]
        assert house.texts()[0] == "ok\n\n_Answered 72 h after it was written._"
