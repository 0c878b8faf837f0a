"""Every channel's promises for outgoing messages: complete, in order, and each declared capability."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.contract.channel_house import living
from tests.contract.channel_suite import Adapter, Desk
from tests.contract.channel_words import (
    AWKWARD,
    CARD,
    channels_that,
    channels_without,
    every_channel,
    outgoing,
    real_channels,
    texts,
)
from tests.fakes.scripted_model import says
from zeroclaw import ChannelRejected, CheckedReceipt, NotSupported, ToolProgress
from zeroclaw.value import replace

PROVEN = CheckedReceipt(
    token=f"zc-receipt-1700000000-{'A' * 43}",
    tool="shell",
    summary="run `ls`",
    outcome="ok",
    at=datetime(2026, 1, 1, 12, tzinfo=UTC),
)

# Most open real sockets.
pytestmark = pytest.mark.slow


@every_channel
async def test_a_channel_matches_its_declaration(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        assert harness.channel.capabilities == adapter.capabilities
        assert harness.channel.name == harness.address.channel
        direct = replace(harness.address, thread=None)
        assert harness.channel.direct_address(harness.person) == direct


@every_channel
async def test_a_sent_message_stands_whole(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        message = outgoing(harness, AWKWARD)
        ref = await harness.channel.send(harness.address, message)
        assert await texts(harness) == [message.rendered.body]
        assert ref.address == harness.address


@every_channel
async def test_the_plain_form_is_sent_when_it_is_asked_for(
    adapter: Adapter, tmp_path: Path
) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        message = replace(outgoing(harness, "*hello*"), plain=True)
        await harness.channel.send(harness.address, message)
        assert await texts(harness) == [message.rendered.plain]


@every_channel
async def test_what_an_answer_proves_stands_apart_from_its_text(
    adapter: Adapter, tmp_path: Path
) -> None:
    """In a form that no text has; a draft or a text without it shows none (P7)."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        text = f"✅ {PROVEN.line()}\n> {PROVEN.line()}\n[{PROVEN.line()}](https://a.example)"
        bare = outgoing(harness, text)
        ref = await harness.channel.send(harness.address, bare)
        assert [message.receipts for message in await harness.messages()] == [()]
        if harness.channel.capabilities.can_edit:
            await harness.channel.edit(ref, replace(bare, receipts=(PROVEN,)))
        else:
            await harness.channel.send(harness.address, replace(bare, key="k2", receipts=(PROVEN,)))
        *_, last = await harness.messages()
        assert [receipt.removeprefix("✅ ") for receipt in last.receipts] == [PROVEN.line()]


@every_channel
async def test_a_sequence_of_messages_stands_in_order(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        for number in range(5):
            message = outgoing(harness, f"part {number}", f"k{number}")
            await harness.channel.send(harness.address, message)
        assert await texts(harness) == [f"part {number}" for number in range(5)]


@every_channel
async def test_messages_may_be_sent_at_the_same_time(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        async with asyncio.TaskGroup() as group:
            for number in range(5):
                message = outgoing(harness, f"part {number}", f"k{number}")
                group.create_task(harness.channel.send(harness.address, message))
        assert sorted(await texts(harness)) == [f"part {number}" for number in range(5)]


@every_channel
async def test_the_longest_message_passes_and_a_longer_one_is_refused(
    adapter: Adapter, tmp_path: Path
) -> None:
    """`max_length` is true, in the channel's own measure."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        longest = outgoing(harness, "a" * adapter.capabilities.max_length)
        assert harness.channel.measure(longest.rendered) == adapter.capabilities.max_length
        await harness.channel.send(harness.address, longest)
        longer = outgoing(harness, "a" * (adapter.capabilities.max_length + 1), "k2")
        with pytest.raises(ChannelRejected):
            await harness.channel.send(harness.address, longer)
        assert await texts(harness) == [longest.rendered.body]


@channels_that("can_edit")
async def test_an_edit_replaces_the_whole_text(adapter: Adapter, tmp_path: Path) -> None:
    """A draft becomes the final text in place; the same text again is no error. P6, S2-06."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        ref = await harness.channel.send(harness.address, outgoing(harness, "h", draft=True))
        await harness.channel.send(harness.address, outgoing(harness, "after", "k2"))
        await harness.channel.edit(ref, outgoing(harness, "hel", draft=True))
        await harness.channel.edit(ref, outgoing(harness, "hello"))
        await harness.channel.edit(ref, outgoing(harness, "hello"))
        assert await texts(harness) == ["hello", "after"]


@channels_without("can_edit")
async def test_what_edits_nothing_says_so(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        ref = await harness.channel.send(harness.address, outgoing(harness, "hello"))
        with pytest.raises(NotSupported):
            await harness.channel.edit(ref, outgoing(harness, "bye"))
        assert await texts(harness) == ["hello"]


@channels_that("can_delete")
async def test_a_deleted_message_is_gone(adapter: Adapter, tmp_path: Path) -> None:
    """One that is gone already is no error."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        ref = await harness.channel.send(harness.address, outgoing(harness, "hello"))
        await harness.channel.send(harness.address, outgoing(harness, "stays", "k2"))
        await harness.channel.delete(ref)
        await harness.channel.delete(ref)
        assert await texts(harness) == ["stays"]


@channels_without("can_delete")
async def test_what_deletes_nothing_says_so(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        ref = await harness.channel.send(harness.address, outgoing(harness, "hello"))
        with pytest.raises(NotSupported):
            await harness.channel.delete(ref)
        assert await texts(harness) == ["hello"]


@channels_that("idempotent_send")
async def test_a_repeated_send_shows_one_message(adapter: Adapter, tmp_path: Path) -> None:
    """After an answer that was lost the same key is sent again, safely."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        first = await harness.channel.send(harness.address, outgoing(harness, "hello"))
        again = await harness.channel.send(harness.address, outgoing(harness, "hello"))
        card = await harness.channel.ask(harness.address, CARD)
        assert await harness.channel.ask(harness.address, CARD) == card
        assert first == again
        assert len(await harness.messages()) == 2


@channels_that("has_threads")
async def test_a_thread_is_a_place_of_its_own(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        thread = replace(harness.address, thread=adapter.thread)
        ref = await harness.channel.send(thread, outgoing(harness, "hello"))
        assert ref.address.key() == thread.key()
        assert await texts(harness) == []


@channels_without("has_threads")
async def test_what_has_no_threads_says_so(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        thread = replace(harness.address, thread="t")
        with pytest.raises(NotSupported):
            await harness.channel.send(thread, outgoing(harness, "hello"))
        with pytest.raises(NotSupported):
            await harness.channel.ask(thread, CARD)


@channels_that("native_draft")
async def test_a_preview_is_seen_and_is_no_message(adapter: Adapter, tmp_path: Path) -> None:
    """It grows, in the plain form where that is asked for, until a message comes (S2-06)."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        growing = outgoing(harness, "*hel*", draft=True)
        await harness.channel.preview(harness.address, growing)
        await harness.channel.preview(harness.address, growing)
        longer = outgoing(harness, "*hello*", draft=True)
        await harness.channel.preview(harness.address, replace(longer, plain=True))
        assert (await harness.sees_preview(), await texts(harness)) == (longer.rendered.plain, [])
        second = outgoing(harness, "another", "k2", draft=True)
        await harness.channel.preview(harness.address, second)
        assert await harness.sees_preview() == second.rendered.plain
        await harness.channel.send(harness.address, second)
        assert await harness.sees_preview() == ""
        assert await texts(harness) == [second.rendered.body]


@channels_that("native_draft")
async def test_a_preview_is_held_to_the_length_of_a_message(
    adapter: Adapter, tmp_path: Path
) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        longer = outgoing(harness, "a" * (adapter.capabilities.max_length + 1))
        with pytest.raises(ChannelRejected):
            await harness.channel.preview(harness.address, longer)


@channels_that("native_draft")
async def test_nothing_is_previewed_where_several_people_read(
    adapter: Adapter, tmp_path: Path
) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        with pytest.raises(NotSupported):
            await harness.channel.preview(
                replace(harness.address, direct=False), outgoing(harness, "hello")
            )


@channels_without("native_draft")
async def test_what_shows_no_previews_says_so(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        with pytest.raises(NotSupported):
            await harness.channel.preview(harness.address, outgoing(harness, "hello"))
        assert await texts(harness) == []


@channels_that("has_typing")
async def test_a_person_sees_that_the_bot_is_at_work(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        assert not await harness.sees_typing()
        place = replace(harness.address, thread=adapter.typing_thread or None)
        await harness.channel.typing(place)
        assert await harness.sees_typing()


WORKS = (
    ToolProgress(key="1", tool="shell", state="running"),
    ToolProgress(key="2", tool="fetch", state="running"),
)
ENDED = (replace(WORKS[0], state="ok"), replace(WORKS[1], state="failed"))


@channels_that("has_typing")
async def test_that_tools_are_at_work_is_shown_as_far_as_a_platform_can(
    adapter: Adapter, tmp_path: Path
) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        place = replace(harness.address, thread=adapter.typing_thread or None)
        await harness.channel.typing(place, WORKS)
        assert await harness.sees_typing()
        names = ("shell running", "fetch running") if adapter.capabilities.names_tools else ()
        assert await harness.tools_seen() == names


@channels_that("names_tools")
async def test_below_a_growing_text_people_see_what_tools_do_and_how_they_end(
    adapter: Adapter, tmp_path: Path
) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        place = replace(harness.address, thread=adapter.typing_thread or None)
        draft = replace(outgoing(harness, "let me look"), draft=True)
        ref = await harness.channel.send(place, draft)
        await harness.channel.typing(place, WORKS)
        assert await harness.tools_seen() == ("shell running", "fetch running")
        await harness.channel.typing(place, ENDED)
        assert await harness.tools_seen() in {("shell ok", "fetch failed"), ()}
        final = replace(outgoing(harness, "let me look: here"), key=draft.key)
        await harness.channel.edit(ref, final)
        assert "shell running" not in await harness.tools_seen()


@channels_without("has_typing")
async def test_what_shows_no_typing_says_so(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        with pytest.raises(NotSupported):
            await harness.channel.typing(harness.address)


@real_channels
async def test_an_answer_that_no_message_holds_stands_whole_where_it_was_asked(
    adapter: Adapter, tmp_path: Path
) -> None:
    """In several messages, which leave no block of code open; in no other chat. P6, S2-19, S2-20."""
    count = adapter.capabilities.max_length // 40
    lines = [f"line {number:05} of what is to be done" for number in range(2 * count)]
    answer = "\n".join((*lines[: count // 2], "", "```", *lines[count // 2 :], "```"))
    async with living(adapter, tmp_path) as home, home.running():
        home.world.model.will(says(answer[: len(answer) // 3], answer[len(answer) // 3 :]))
        assert await home.say("ann", "tell me all")
        texts = await home.until_texts("ann", lines[-1])
        assert len(texts) > 1
        assert [line for text in texts for line in lines if line in text] == lines
        assert [text.count("```") for text in texts if text.count("```") % 2] == []
        bystanders = () if adapter.is_local else ("bob", "olga")
        assert [text for bystander in bystanders for text in await home.texts_of(bystander)] == []
