"""Every channel's promises for the files that it sends, and for those that it does not take."""

from pathlib import Path

import pytest

from tests.contract.channel_suite import Adapter, Desk
from tests.contract.channel_words import channels_that, channels_without, outgoing, outgoing_file
from zeroclaw import ChannelRejected, NotSupported
from zeroclaw.value import replace

# Most open real sockets.
pytestmark = pytest.mark.slow

FILE = outgoing_file()
LONGEST = "👩🏽‍🚀"[:1] * 500
"""Of a caption, with a note behind it; each character counts as two where UTF-16 counts."""


@channels_that("max_file_bytes")
async def test_a_file_stands_with_its_name_and_its_caption(
    adapter: Adapter, tmp_path: Path
) -> None:
    """As one message among the others, in order; the caption is no markup."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        await harness.channel.send(harness.address, outgoing(harness, "before"))
        ref = await harness.channel.send_file(harness.address, FILE)
        await harness.channel.send(harness.address, outgoing(harness, "after", "k2"))
        assert ref.address == harness.address
        assert [(message.text, message.file) for message in await harness.messages()] == [
            ("before", None),
            (FILE.caption, (FILE.name, len(FILE.content))),
            ("after", None),
        ]


@channels_that("max_file_bytes")
async def test_a_file_needs_no_caption_and_may_have_a_long_one(
    adapter: Adapter, tmp_path: Path
) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        await harness.channel.send_file(harness.address, replace(FILE, caption=""))
        await harness.channel.send_file(harness.address, replace(FILE, caption=LONGEST, key="f2"))
        assert [message.text for message in await harness.messages()] == ["", LONGEST]


@channels_that("max_file_bytes")
async def test_a_file_that_is_too_large_is_refused_for_good(
    adapter: Adapter, tmp_path: Path
) -> None:
    """`max_file_bytes` is true."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        large = outgoing_file(bytes(adapter.capabilities.max_file_bytes + 1))
        with pytest.raises(ChannelRejected):
            await harness.channel.send_file(harness.address, large)
        assert await harness.messages() == ()


@channels_that("max_file_bytes")
async def test_a_repeated_file_shows_one_where_its_key_is_known(
    adapter: Adapter, tmp_path: Path
) -> None:
    """Elsewhere it may appear twice, so a repeat carries a note."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        first = await harness.channel.send_file(harness.address, FILE)
        again = await harness.channel.send_file(harness.address, FILE)
        is_known = adapter.capabilities.idempotent_send
        assert first == again or not is_known
        # A platform may know a key for minutes only: no promise, though there may be one file.
        count = len(await harness.messages())
        assert count in {len({first, again}), 1 if is_known else 2}


@channels_without("max_file_bytes")
async def test_what_takes_no_files_says_so(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        with pytest.raises(NotSupported):
            await harness.channel.send_file(harness.address, FILE)
        assert await harness.messages() == ()
