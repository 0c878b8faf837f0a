"""The transcript of a chat."""

import asyncio

from tests.fakes.house import World
from tests.fakes.memory_store import put_a_page_before
from tests.fakes.scripted_model import asks_for, says
from zeroclaw.channel import TranscriptItem
from zeroclaw.conversation.inbox import INBOX, item_put
from zeroclaw.delivery.rows import TextPost, outbox_row
from zeroclaw.envelope import Attachment, CheckedReceipt, Said
from zeroclaw.store import PAGE, Commit, DurablePoint, RowKind

POKE = asks_for(("poke", '{"a": 1}'), saying="let me ")


def lines(items: tuple[TranscriptItem, ...]) -> list[tuple[str, str]]:
    return [(item.kind, item.text) for item in items]


async def test_a_chat_reads_as_it_was_written(world: World) -> None:
    """People, answers, commands and their replies; what was withdrawn is gone."""
    held = asyncio.Event()
    async with world.told("one", (held, *says("to one"))) as house:
        await house.say("two")
        await house.withdraw("p2")
        held.set()
        await house.settle()
        await house.say("/whoami")
        await house.say("/tool look {}")
        await house.say("/retry")
        read = house.services.transcript.read
        seen = await read(house.place(), "")
        kinds = [item.kind for item in seen]
        assert lines(seen)[:2] == [("person", "one"), ("bot", "to one")]
        assert kinds == ["person", "bot", "person", "note", "person", "bot", "person", "note"]
        assert lines(seen)[2] == ("person", "/whoami")
        assert lines(seen)[4] == ("person", "/tool look {}")
        assert lines(seen)[6] == ("person", "/retry")
        assert [item.cursor for item in seen] == sorted(item.cursor for item in seen)
        assert lines(await read(house.place(), seen[4].cursor)) == lines(seen[5:])


async def test_a_file_of_the_message_answered_is_not_the_writers(world: World) -> None:
    file = Attachment(reference="a", name="a", media_type="x/y")
    async with world.running() as house:
        await house.event(Said(text="what is it?", quoted=(file,)))
        request, _ = await house.services.transcript.read(house.place(), "")
        assert (request.text, request.files) == ("what is it?", ())


async def test_a_reader_that_was_long_away_misses_nothing(world: World) -> None:
    """What came after a cursor is read to its end, more than a page of it too."""
    async with world.told("one") as house:
        row = (await house.rows(RowKind.INBOX))[0]
        await put_a_page_before(world.store, item_put(INBOX.of(row), "answered"))
        seen = await house.services.transcript.read(house.place(), " ")
        assert lines(seen) == [("person", "one")] * (PAGE + 1) + [("bot", "ok")]


async def test_others_run_while_a_long_chat_is_read(world: World) -> None:
    """Each text is screened, which takes a while for hundreds of them (P9)."""
    answers = 20
    async with world.running() as house:
        for number in range(answers):
            await house.say(f"hello {number}")
        rounds, is_read = 0, False

        async def others() -> None:
            nonlocal rounds
            while not is_read:
                rounds += 1
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            group.create_task(others())
            seen = await house.services.transcript.read(house.place(), "")
            is_read = True
        assert len(seen) == 2 * answers
        assert rounds >= answers


async def test_an_open_draft_stands_last(world: World) -> None:
    """It reads from where the reader is, even when nothing else is new there."""
    async with world.told("one", (*says("half of it ")[:1], asyncio.Event())) as house:
        seen = await house.services.transcript.read(house.place(), "")
        assert lines(seen) == [("person", "one"), ("bot", "half of it ")]
        assert seen[-1].draft
        again = await house.services.transcript.read(house.place(), seen[-1].cursor)
        assert again == seen[-1:]


async def test_a_card_shows_how_it_ended(world: World) -> None:
    """As its questions stand now; ones that are gone are left out (P5)."""
    async with world.told("poke it", POKE) as house:
        [card] = [item for item in await house.transcript() if item.kind == "card"]
        assert card.outcome is not None
        assert card.outcome.endings == ()
        await house.press("deny")
        [card] = [item for item in await house.transcript() if item.kind == "card"]
        assert card.outcome is not None
        assert [(end.how, end.by) for end in card.outcome.endings] == [("denied", "Ada")]
        world.store.forget(RowKind.APPROVAL)
        [card] = [item for item in await house.transcript() if item.kind == "card"]
        assert card.outcome is not None
        assert card.outcome.endings == ()


async def test_an_answer_is_read_with_the_receipts_that_it_quotes(world: World) -> None:
    """They are no part of its text, and prove the same wherever it is read (P7)."""
    async with world.running() as house:
        at = world.clock.now()
        proven = CheckedReceipt(token="t", tool="look", summary="", outcome="ok", at=at)
        said = TextPost(address=house.place(), text="I looked.", receipts=(proven,))
        row = outbox_row(world.ids.ulid(), said, state="delivered")
        await world.store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=(row,)))
        [seen] = await house.transcript()
        assert (seen.text, seen.receipts) == ("I looked.", (proven,))
