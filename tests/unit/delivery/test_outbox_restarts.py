"""A delivery that was interrupted goes on where it was, by whoever holds the conversation."""

import asyncio

import pytest

from tests.fakes.memory_store import MemoryStore
from tests.fakes.scripted_calls import Call
from tests.unit.delivery.outbox_rows import HOUR_S, LONG, PARTS, final, note, seen, turn_of
from tests.unit.delivery.rig import HERE, PLAIN_SENDS, commit, platform, running
from zeroclaw.delivery import rows
from zeroclaw.delivery.account import Markdown
from zeroclaw.delivery.draft import message_key
from zeroclaw.delivery.live import NewDraft
from zeroclaw.delivery.rows import OUTBOX, Text
from zeroclaw.envelope import MessageRef
from zeroclaw.errors import Fenced
from zeroclaw.store import Commit, DurablePoint
from zeroclaw.text import catalogue
from zeroclaw.value import replace


async def kill_at(point: DurablePoint, *, after: bool, store: MemoryStore) -> asyncio.Event:
    """Stop the world at the first commit of this point."""
    dead = asyncio.Event()

    def stop(found: Commit) -> None:
        if found.point is point:
            dead.set()
            raise asyncio.CancelledError

    if after:
        store.after = stop
    else:
        store.before = stop
    return dead


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("point", [DurablePoint.REF_KNOWN, DurablePoint.DELIVERED])
async def test_a_killed_delivery_goes_on_where_it_was(point: DurablePoint, after: bool) -> None:
    """Before and after each commit: whole, in order, and once (P1)."""
    store, channel = MemoryStore(), platform()
    async with running(channel, store=store) as rig:
        put = final(rig, LONG)
        await commit(store, put)
        dead = await kill_at(point, after=after, store=store)
        rig.outbox.announce(put)
        await dead.wait()
    store.before = store.after = None
    async with running(channel, store=store) as rig:
        await rig.outbox.resume()
        await rig.outbox.ended(put.key)
        assert seen(channel) == PARTS


async def test_a_send_that_was_begun_before_a_kill_counts_as_unknown() -> None:
    """Where keys mean nothing, the repeat says so (P1)."""
    store, channel = MemoryStore(), platform(PLAIN_SENDS)
    async with running(channel, store=store) as rig:
        put = final(rig, "done")
        await commit(store, put)
        dead = await kill_at(DurablePoint.DELIVERED, after=False, store=store)
        rig.outbox.announce(put)
        await dead.wait()
    store.before = None
    async with running(channel, store=store) as rig:
        await rig.outbox.resume()
        await rig.outbox.ended(put.key)
        assert seen(channel) == ["done", "done" + catalogue.POSSIBLE_REPEAT.en]


async def test_a_draft_that_died_with_its_process_leaves_no_fragment() -> None:
    """Its send was never recorded; the final finds it and replaces it (P1)."""
    store, channel = MemoryStore(), platform()
    async with running(channel, store=store) as rig:
        put = final(rig, "drawn")
        key = message_key(turn_of(put.key), 0)
        await rig.accounts["chat"].post(
            channel.address(), Markdown(text="dra", key=key, draft=True)
        )
        await commit(store, put)
    async with running(channel, store=store) as rig:
        await rig.outbox.resume()
        await rig.outbox.ended(put.key)
        assert seen(channel) == ["drawn"]


async def test_a_draft_of_an_earlier_life_of_its_turn_leaves_no_fragment() -> None:
    """The turn was resumed, and ended before it showed anything in this life (P1, P6)."""
    store, channel = MemoryStore(), platform()
    async with running(channel, store=store) as rig:
        put = final(rig, "drawn")
        turn = turn_of(put.key)
        key = message_key(turn, 0)
        await rig.accounts["chat"].post(
            channel.address(), Markdown(text="dra", key=key, draft=True)
        )
    async with running(channel, store=store) as rig:

        async def on_ref(ref: MessageRef) -> None:
            raise AssertionError(ref)

        handle = rig.live.open(
            NewDraft(turn=turn, fence=1, address=channel.address(), resumed=True, on_ref=on_ref)
        )
        await commit(store, put)
        left = await handle.close()
        rig.outbox.announce(put, left)
        await rig.outbox.ended(put.key)
        assert seen(channel) == ["drawn"]


async def test_a_found_message_that_somebody_deleted_is_sent_anew_once() -> None:
    """A chat where everything is deleted at once does not go round in circles."""
    store, channel = MemoryStore(), platform()
    async with running(channel, store=store) as rig:
        put = final(rig, "drawn")
        await commit(store, put)
    async with running(channel, store=store) as rig:

        async def delete_all(call: Call) -> None:
            for shown in channel.standing(channel.address()):
                channel.lose(shown.ref)

        channel.before = delete_all
        await rig.outbox.resume()
        await rig.outbox.ended(put.key)
        assert [call.name for call in channel.calls] == ["send", "edit", "send"]


async def test_what_was_delivered_before_is_over_at_once() -> None:
    """So is what never was; and a cancelled wait leaves nothing behind."""
    async with running(platform()) as rig:
        put = final(rig, "done")
        await rig.commit(put)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await rig.outbox.ended(put.key)
        await rig.outbox.ended(put.key)
        await rig.outbox.ended(put.key)
        await rig.outbox.ended("no such row")
        rig.outbox.announce(put)
        await rig.clock.sleep(1)
        assert seen(rig.channel) == ["done"]


async def test_a_row_that_changed_meanwhile_is_read_again() -> None:
    """The outbox is not the only one that may write it."""
    async with running(platform()) as rig:
        put = final(rig, "old")
        await rig.commit(put)

        async def change(call: object) -> None:
            rig.channel.before = None
            row = await rig.row(put)
            item = OUTBOX.of(row)
            assert isinstance(item, Text)
            await commit(rig.store, rows.changed(row, replace(item, text="new"), "pending"))

        rig.channel.before = change
        await rig.outbox.ended(put.key)
        item = OUTBOX.of(await rig.row(put))
        assert isinstance(item, Text)
        assert item.text == "new"


async def test_a_newer_holder_of_the_conversation_delivers_instead() -> None:
    """This process stops, and its other rows go on (P2)."""
    async with running(platform()) as rig:
        put = final(rig, "done")
        await commit(rig.store, put)
        taking = True

        def take(found: Commit) -> None:
            if taking and found.conversation == HERE:
                message = "held by somebody newer"
                raise Fenced(message)

        rig.store.before = take
        rig.outbox.announce(put)
        await rig.clock.sleep(HOUR_S)
        taking = False
        assert (await rig.row(put)).state == "pending"
        other = note(rig, "a note")
        await rig.commit(other)
        await rig.outbox.ended(other.key)
