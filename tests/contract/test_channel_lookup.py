"""Every channel's promises for a send whose answer was lost: its lookup finds the message or not."""

from pathlib import Path

import pytest

from tests.contract.channel_suite import Adapter, Desk, Harness
from tests.contract.channel_words import (
    CARD,
    NONE,
    channels_that,
    channels_without,
    lookup_to_the_end,
    outgoing,
    texts,
)
from zeroclaw import DeliveryUnknown, NotSupported

# Most open real sockets.
pytestmark = pytest.mark.slow


async def begin_send(harness: Harness) -> str:
    """Let the chat begin, so that there is a mark."""
    await harness.channel.send(harness.address, outgoing(harness, "first", "k0"))
    mark = harness.channel.mark(harness.address)
    assert mark
    return mark


@channels_that("can_lookup")
async def test_a_message_whose_answer_was_lost_is_found(adapter: Adapter, tmp_path: Path) -> None:
    """Unchanged, and people notice nothing (P1)."""
    assert adapter.loses is not None
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        mark = await begin_send(harness)
        message = outgoing(harness, "*hello*")
        adapter.loses(harness, "text")
        with pytest.raises(DeliveryUnknown):
            await harness.channel.send(harness.address, message)
        before = await texts(harness)
        seen = await lookup_to_the_end(harness.channel, harness.address, message, mark)
        assert seen.ref is not None
        assert await texts(harness) == before
        await harness.channel.edit(seen.ref, outgoing(harness, "bye"))
        assert await texts(harness) == ["first", "bye"]


@channels_that("can_lookup")
async def test_a_card_whose_answer_was_lost_is_found(adapter: Adapter, tmp_path: Path) -> None:
    """With its buttons as they were (P5)."""
    assert adapter.loses is not None
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        mark = await begin_send(harness)
        adapter.loses(harness, "card")
        with pytest.raises(DeliveryUnknown):
            await harness.channel.ask(harness.address, CARD)
        before = await harness.messages()
        seen = await lookup_to_the_end(harness.channel, harness.address, CARD, mark)
        assert seen.ref is not None
        assert await harness.messages() == before


@channels_that("can_lookup")
async def test_a_message_that_never_arrived_is_not_found(adapter: Adapter, tmp_path: Path) -> None:
    """Before and after it was sent again."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        mark = await begin_send(harness)
        message = outgoing(harness, "hello")
        seen = await lookup_to_the_end(harness.channel, harness.address, message, mark)
        assert seen.ref is None
        new = await harness.channel.send(harness.address, message)
        below = await lookup_to_the_end(
            harness.channel, harness.address, message, seen.since, before=new.message
        )
        assert below.ref is None
        apart = frozenset({new.message})
        seen = await lookup_to_the_end(
            harness.channel, harness.address, message, seen.since, apart=apart, before=new.message
        )
        assert seen.ref is None
        assert await texts(harness) == ["first", "hello"]


@channels_that("can_lookup")
async def test_a_known_message_is_not_mistaken_for_the_lost_one(
    adapter: Adapter, tmp_path: Path
) -> None:
    """Nor is it changed, though it has the same words."""
    assert adapter.loses is not None
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        mark = await begin_send(harness)
        first = await harness.channel.send(harness.address, outgoing(harness, "hello"))
        message = outgoing(harness, "hello", "k2")
        adapter.loses(harness, "text")
        with pytest.raises(DeliveryUnknown):
            await harness.channel.send(harness.address, message)
        seen = await lookup_to_the_end(
            harness.channel, harness.address, message, mark, apart=frozenset({first.message})
        )
        assert seen.ref not in {None, first}


@channels_without("can_lookup")
async def test_what_looks_for_nothing_says_so(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        with pytest.raises(NotSupported):
            harness.channel.mark(harness.address)
        with pytest.raises(NotSupported):
            await harness.channel.lookup(
                harness.address, outgoing(harness, "hello"), since="1", apart=NONE
            )
