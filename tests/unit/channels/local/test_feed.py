"""Live events reach every open page, and no page holds up another."""

import asyncio

from channels._local.feed import MOST_READERS, MOST_WAITING, Feed, Numbered
from channels._local.render import Gone, Typing
from tests.fakes.manual_clock import EPOCH
from zeroclaw import TranscriptItem


def item(name: str, text: str = "x") -> TranscriptItem:
    return TranscriptItem(kind="bot", key=name, ref=name, text=text, at=EPOCH)


async def test_every_page_gets_every_event_in_order() -> None:
    feed = Feed()
    with feed.subscribe() as one, feed.subscribe() as two:
        feed.publish(item("a"))
        feed.publish(Gone(id="b"))
        feed.publish(Typing())
        expected = (
            Numbered(event=item("a"), number=1),
            Numbered(event=Gone(id="b"), number=2),
            Numbered(event=Typing(), number=3),
        )
        assert await one.take() == expected
        assert await two.take() == expected


async def test_a_page_that_reads_slowly_gets_the_newest_of_each_message() -> None:
    feed = Feed()
    with feed.subscribe() as page:
        for number in range(1000):
            feed.publish(item("draft", str(number)))
        assert await page.take() == (Numbered(event=item("draft", "999"), number=1000),)


async def test_a_page_that_does_not_read_is_cut_and_the_others_are_not() -> None:
    """It comes back to a fresh snapshot; nothing waits for it (P9)."""
    feed = Feed()
    with feed.subscribe() as dead, feed.subscribe() as alive:
        for number in range(MOST_WAITING + 1):
            feed.publish(item(str(number)))
            assert await alive.take() == (Numbered(event=item(str(number)), number=number + 1),)
        assert await dead.take() is None


async def test_a_ping_wakes_a_page_for_nothing() -> None:
    feed = Feed()
    with feed.subscribe() as page:
        feed.ping()
        assert await page.take() == ()


async def test_a_closed_feed_ends_every_page_that_is_open_or_comes() -> None:
    feed = Feed()
    with feed.subscribe() as early:
        feed.close()
        feed.close()
        assert await early.take() is None
        feed.publish(item("a"))
        assert not feed.has_room()
    with feed.subscribe() as late:
        assert await late.take() is None


async def test_only_so_many_pages_are_served() -> None:
    feed = Feed()
    pages = [feed.subscribe() for _ in range(MOST_READERS)]
    for page in pages:
        page.__enter__()
    assert not feed.has_room()
    pages[0].__exit__(None, None, None)
    assert feed.has_room()


async def test_a_cancelled_wait_loses_no_event() -> None:
    feed = Feed()
    with feed.subscribe() as page:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(page.take())
            await asyncio.sleep(0)
            waiting.cancel()
        feed.publish(item("a"))
        assert await page.take() == (Numbered(event=item("a"), number=1),)
