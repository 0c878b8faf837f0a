"""What was not said to the bot is taken only as the rest of what was."""

from tests.fakes.house import House, World
from tests.unit.inbound.test_reassembly import ALBUM, MORE, WINDOW_S, piece
from zeroclaw.envelope import Accepted, Admission, Continues, Duplicate, Ignored
from zeroclaw.store import Commit, DurablePoint, Put, Query, RowKind
from zeroclaw.value import replace


async def overheard(
    house: House, text: str, more: Continues | None = None, who: str = "ben"
) -> Admission:
    envelope = replace(piece(house, text, more, who, room="room"), overheard=True)
    told = await house.world.platforms["chat"].say(envelope)
    await house.settle()
    return told


async def said(house: House, text: str, more: Continues | None) -> None:
    await house.world.platforms["chat"].say(piece(house, text, more, "ben", room="room"))
    await house.settle()


async def test_talk_in_a_group_leaves_nothing_behind(world: World) -> None:
    """Neither a row nor a count of strangers (P4)."""
    async with world.running() as house:
        assert await overheard(house, "hello all") == Ignored()
        assert await overheard(house, "hello all", MORE, "mallory") == Ignored()
        assert await house.rows(RowKind.INBOX) == ()
        assert not house.services.ingress.dropped


async def test_the_rest_of_what_was_said_to_the_bot_is_taken(world: World) -> None:
    """It need not name the bot again; what others say there is not its rest (P2)."""
    async with world.running() as house:
        await said(house, "one ", MORE)
        assert await overheard(house, "not yours", None, "ada") == Ignored()
        assert await overheard(house, "two ", MORE) == Accepted()
        assert await overheard(house, "three") == Accepted()
        assert await overheard(house, "four") == Ignored()
        assert world.model.asked() == ["user: Ben: one two three"]


async def test_the_pictures_of_an_album_follow_the_one_with_the_name(world: World) -> None:
    async with world.running() as house:
        await said(house, "look", ALBUM)
        assert await overheard(house, "here", ALBUM) == Accepted()
        assert await overheard(house, "and there", replace(ALBUM, group="h")) == Ignored()
        await house.advance(WINDOW_S)
        assert world.model.asked() == ["user: Ben: look\n\nhere"]


async def test_what_comes_too_late_is_talk(world: World) -> None:
    """The time is over, though nobody has forgotten it yet."""
    async with world.running() as house:
        await house.say("/halt")
        await said(house, "one ", MORE)
        await house.advance(WINDOW_S)
        assert await overheard(house, "two") == Ignored()
        assert await house.states("queued") == ["queued"]


async def test_what_was_taken_is_known_when_it_comes_again(world: World) -> None:
    """While more may come; afterwards nobody looks (P1)."""
    async with world.running() as house:
        await said(house, "one ", MORE)
        again = replace(piece(house, "two ", MORE, "ben", room="room"), overheard=True)
        assert await world.platforms["chat"].say(again) == Accepted()
        assert await world.platforms["chat"].say(again) == Duplicate()
        await overheard(house, "three")
        assert await world.platforms["chat"].say(again) == Ignored()
        assert world.model.asked() == ["user: Ben: one two three"]


async def test_a_row_that_can_not_be_read_stops_no_start(world: World) -> None:
    """Its conversation is told of; the others go on (P2)."""
    async with world.running() as house:
        await house.say("/halt")
        await house.say("hello")
    [row] = await world.store.select(Query(kind=RowKind.INBOX, state="queued"))
    odd = Put(
        kind=row.kind,
        key=row.key,
        body=b"{}",
        conversation=row.conversation,
        state=row.state,
        place=row.place,
    )
    await world.store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=(odd,)))
    async with world.running() as house:
        await house.say("/resume", "ada", channel="chat")
        await house.say("hello", "ben")
        assert house.texts("ben") == ["ok"]
