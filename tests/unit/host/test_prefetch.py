"""How an answer's body is read ahead of whoever takes it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from zeroclaw.host.prefetch import MOST_AHEAD, Prefetch


class CutOff(Exception):
    """What a connection raises here."""


async def pieces(*these: bytes | asyncio.Event | Exception) -> AsyncIterator[bytes]:
    """Give pieces; wait where an event stands, raise where an error does."""
    for one in these:
        match one:
            case asyncio.Event():
                await one.wait()
            case Exception():
                raise one
            case _:
                yield one


async def test_what_came_together_is_taken_together() -> None:
    """A piece costs every station behind; nobody waits for one that has not come."""
    more = asyncio.Event()
    async with Prefetch(pieces(b"a", b"b", more, b"c", b"d"), CutOff) as ahead:
        chunks = ahead.chunks()
        assert await anext(chunks) == b"ab"
        more.set()
        assert await anext(chunks) == b"cd"
        assert [chunk async for chunk in chunks] == []


async def test_an_error_comes_behind_all_that_came_before_it() -> None:
    async with Prefetch(pieces(b"a", b"b", CutOff("cut")), CutOff) as ahead:
        chunks = ahead.chunks()
        assert await anext(chunks) == b"ab"
        with pytest.raises(CutOff, match="cut"):
            await anext(chunks)


async def test_no_more_is_read_ahead_than_may_be() -> None:
    """Whoever takes slowly holds the other side back, as a slow reader of a socket does."""
    large = b"x" * MOST_AHEAD
    async with Prefetch(pieces(large, large, b"rest"), CutOff) as ahead:
        chunks = ahead.chunks()
        assert await anext(chunks) == large
        assert await anext(chunks) == large
        assert await anext(chunks) == b"rest"


async def test_leaving_early_ends_the_reading_and_what_failed_leaves_as_it_is() -> None:
    async def failing() -> None:
        async with Prefetch(pieces(b"a", asyncio.Event()), CutOff) as ahead:
            assert await anext(ahead.chunks()) == b"a"
            message = "in the body"
            raise LookupError(message)

    with pytest.raises(LookupError, match="in the body"):
        await failing()


async def test_what_is_dropped_is_read_to_its_end_and_holds_nothing_up() -> None:
    """A connection that was closed gives what it had received, however much that is."""
    large = b"x" * MOST_AHEAD
    async with Prefetch(pieces(large, large, large, CutOff("closed")), CutOff) as ahead:
        assert await anext(ahead.chunks()) == large
        await ahead.dropped()


async def test_nothing_is_an_end() -> None:
    async with Prefetch(pieces(), CutOff) as ahead:
        assert [chunk async for chunk in ahead.chunks()] == []
