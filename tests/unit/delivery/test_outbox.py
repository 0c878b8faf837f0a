"""Whatever was committed to be said is said, once, or somebody is told."""

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.fakes.memory_store import MemoryStore
from tests.fakes.scripted_channel import Call, Hang, Lost, ScriptedChannel
from tests.unit.delivery.rig import (
    CALL_TIMEOUT_S,
    CAPABILITIES,
    HERE,
    PLAIN_SENDS,
    Rig,
    card,
    commit,
    outcome,
    platform,
    running,
)
from zeroclaw.channel import Capabilities
from zeroclaw.delivery import rows
from zeroclaw.delivery.draft import CONTINUED_ABOVE, message_key
from zeroclaw.delivery.posting import MOST_LOST
from zeroclaw.delivery.rows import (
    POSSIBLE_REPEAT,
    Ask,
    Text,
    ask_row,
    final_row,
    note_row,
    settle_rows,
)
from zeroclaw.envelope import MessageRef, TurnId
from zeroclaw.errors import (
    ChannelRejected,
    ChannelUnavailable,
    Conflict,
    DeliveryUnknown,
    Fenced,
    RateLimited,
)
from zeroclaw.store import Commit, DurablePoint, Put, RowKind

LONG = "one " * 14 + "\n\n" + "two " * 14 + "\n\n" + "three"
PARTS = ["one " * 13 + "one", "two " * 13 + "two", "three"]
HOUR_S = 3600.0


def final(
    rig: Rig, text: str, *, refs: tuple[MessageRef, ...] = (), chat: str = "c1", name: str = "chat"
) -> Put:
    key = rig.ids.ulid()
    return final_row(
        key=key,
        conversation=HERE,
        turn=turn_of(key),
        address=rig.channels[name].address(chat),
        text=text,
        refs=refs,
    )


def turn_of(key: str) -> TurnId:
    return TurnId(f"turn of {key}")


def note(rig: Rig, text: str, *, quiet: bool = False) -> Put:
    return note_row(key=rig.ids.ulid(), address=rig.channel.address(), text=text, quiet=quiet)


async def posted(rig: Rig, *texts: str) -> tuple[MessageRef, ...]:
    """Messages that a draft left in the chat."""
    to = rig.channel.address()
    endings = [await rig.accounts["chat"].send(to, text, key=text, draft=True) for text in texts]
    rig.channel.calls.clear()
    shown = rig.channel.standing(to)
    assert len(endings) == len(shown)
    return tuple(one.ref for one in shown)


def seen(channel: ScriptedChannel, chat: str = "c1") -> list[str]:
    return channel.chat(channel.address(chat))


def delivery_points(rig: Rig) -> list[DurablePoint]:
    return rig.store.points()[1:]


# --- finals --------------------------------------------------------------------------------------


async def test_a_final_without_a_draft_is_sent() -> None:
    """One call and one commit, which holds where it stands (S2-14, S2-19)."""
    async with running(platform()) as rig:
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done"]
        row = await rig.row(put)
        assert (row.state, delivery_points(rig)) == ("delivered", [DurablePoint.DELIVERED])
        item = rows.read(row)
        assert isinstance(item, Text)
        assert [ref.message for ref in item.refs] == ["m1"]
        assert rig.hooks.delivered_texts == ["done"]
        assert [call.key for call in rig.channel.calls] == [f"{turn_of(put.key)}:0"]


async def test_a_final_edits_its_draft() -> None:
    """What people saw growing ends as exactly the final (P6)."""
    async with running(platform()) as rig:
        refs = await posted(rig, "dra")
        put = final(rig, "drawn", refs=refs)
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        (shown,) = rig.channel.standing(rig.channel.address())
        assert (shown.text, shown.draft, shown.ref) == ("drawn", False, refs[0])


async def test_a_long_final_edits_what_is_there_and_sends_the_rest() -> None:
    """Each result is committed before the next call (S2-20)."""
    async with running(platform()) as rig:
        put = final(rig, LONG, refs=await posted(rig, "one"))
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == PARTS
        known = [DurablePoint.REF_KNOWN] * 2
        assert delivery_points(rig) == [*known, DurablePoint.DELIVERED]
        assert [call.name for call in rig.channel.calls] == ["edit", "send", "send"]


@pytest.mark.parametrize(
    ("can_delete", "left"),
    [
        pytest.param(True, ["short"], id="deleted"),
        pytest.param(False, ["short", CONTINUED_ABOVE, CONTINUED_ABOVE], id="marked"),
    ],
)
async def test_messages_that_the_final_does_not_need_are_taken_away(
    can_delete: bool, left: list[str]
) -> None:
    """Or say that the answer is above (P6)."""
    async with running(platform(replace(CAPABILITIES, can_delete=can_delete))) as rig:
        put = final(rig, "short", refs=await posted(rig, "a", "b", "c"))
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == left


async def test_a_message_that_can_no_longer_be_deleted_says_so() -> None:
    """Some platforms delete young messages only; a message already gone is no trouble."""
    async with running(platform()) as rig:
        refs = await posted(rig, "a", "b", "c", "d")
        rig.channel.will("delete", ChannelRejected("too old"), ChannelRejected("?", gone=True))
        rig.channel.will("edit", None, ChannelUnavailable("no route"))
        rig.channel.will("delete", ChannelUnavailable("no route"), ChannelRejected("too old"))
        put = final(rig, "x", refs=refs)
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel)[:2] == ["x", CONTINUED_ABOVE]


async def test_what_the_draft_learned_late_is_used() -> None:
    """A message that came into being after the turn's last commit is edited too (P6)."""
    async with running(platform()) as rig:
        refs = await posted(rig, "dra")
        put = final(rig, "drawn")
        await commit(rig.store, put)
        rig.outbox.announce(put, refs=refs)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["drawn"]
        assert delivery_points(rig) == [DurablePoint.REF_KNOWN, DurablePoint.DELIVERED]


async def test_a_lost_draft_makes_the_final_a_possible_repeat() -> None:
    """The person is told that it may stand there twice (P1)."""
    async with running(platform(PLAIN_SENDS)) as rig:
        put = final(rig, "done")
        await commit(rig.store, put)
        rig.outbox.announce(put, uncertain=True)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done" + POSSIBLE_REPEAT]


@pytest.mark.parametrize(
    ("draft", "text", "left"),
    [
        pytest.param("dra", "drawn", ["drawn"], id="its first"),
        pytest.param("one", LONG, PARTS, id="one of many"),
    ],
)
async def test_a_lost_message_of_the_draft_is_found_by_its_key(
    draft: str, text: str, left: list[str]
) -> None:
    """Where the platform knows our keys no fragment stays (P1)."""
    async with running(platform()) as rig:
        put = final(rig, text)
        to, turn = rig.channel.address(), turn_of(put.key)
        await rig.accounts["chat"].send(to, draft, key=message_key(turn, 0), draft=True)
        await commit(rig.store, put)
        rig.outbox.announce(put, uncertain=True)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == left


async def test_a_lost_message_that_the_final_does_not_need_is_taken_away() -> None:
    """Found by its key, and counted from the messages that the draft posted (P1)."""
    async with running(platform()) as rig:
        put = final(rig, "short")
        to, turn, account = rig.channel.address(), turn_of(put.key), rig.accounts["chat"]
        for number, text in enumerate(["a", "deleted", "lost"]):
            await account.send(to, text, key=message_key(turn, number), draft=True)
        first, deleted, _ = (shown.ref for shown in rig.channel.standing(to))
        rig.channel.lose(deleted)
        await commit(rig.store, put)
        rig.outbox.announce(put, refs=(first,), uncertain=True, posted=2)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["short"]


async def test_a_message_that_somebody_deleted_is_sent_anew() -> None:
    """An edit refused because the message is gone becomes a send (P6)."""
    async with running(platform()) as rig:
        refs = await posted(rig, "dra")
        rig.channel.lose(refs[0])
        put = final(rig, "drawn", refs=refs)
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["drawn"]


@pytest.mark.parametrize("call", ["send", "edit"])
async def test_refused_markup_becomes_plain_text(call: str) -> None:
    """Before anything is given up (P6)."""
    async with running(platform(PLAIN_SENDS)) as rig:
        refs = await posted(rig, "dra") if call == "edit" else ()
        rig.channel.will("edit" if refs else "send", ChannelRejected("bad entity", markup=True))
        put = final(rig, "*bold*", refs=refs)
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["bold"]


async def test_a_final_that_is_refused_is_told_to_the_operator() -> None:
    """In the commit that says so, with what the operator is told (P6, P10)."""
    async with running(platform()) as rig:
        markup = ChannelRejected("bad entity", markup=True)
        rig.channel.will("send", markup, ChannelRejected("blocked"))
        told = note(rig, "a final was refused", quiet=True)
        rig.hooks.add = (told,)
        put = final(rig, "*bold*")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert (await rig.row(put)).state == "refused"
        assert rig.hooks.reasons == ["blocked"]
        await rig.outbox.ended(told.key)
        assert seen(rig.channel) == ["a final was refused"]


async def test_nobody_is_told_of_a_refused_quiet_note() -> None:
    """So telling the operator can't go round in circles."""
    async with running(platform()) as rig:
        rig.channel.will("send", ChannelRejected("blocked"))
        put = note(rig, "a final was refused", quiet=True)
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert ((await rig.row(put)).state, rig.hooks.reasons) == ("refused", [])


# --- trouble -------------------------------------------------------------------------------------


async def test_an_unreachable_platform_is_tried_until_it_answers() -> None:
    """With longer and longer pauses, up to a minute (P1)."""
    async with running(platform()) as rig:
        rig.channel.will("send", *[ChannelUnavailable("no route")] * 10)
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        starts = [call.at for call in rig.channel.calls]
        pauses = [later - earlier for earlier, later in pairwise(starts)]
        assert pauses == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60, 60, 60])
        assert seen(rig.channel) == ["done"]


async def test_a_platforms_wait_is_obeyed_to_the_letter() -> None:
    """Not longer either (P6)."""
    async with running(platform()) as rig:
        rig.channel.will("send", RateLimited("slow down", retry_after_s=7))
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert [call.at for call in rig.channel.calls] == pytest.approx([0, 7])


async def test_a_lost_answer_is_repeated_under_the_same_key() -> None:
    """Where the platform knows keys, nobody sees it twice (P1)."""
    async with running(platform()) as rig:
        rig.channel.will("send", Lost(), Hang())
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done"]
        assert {call.key for call in rig.channel.calls} == {f"{turn_of(put.key)}:0"}


async def test_elsewhere_a_repeat_says_that_it_may_be_one() -> None:
    """The one window that nobody can close is not hidden (P1)."""
    async with running(platform(PLAIN_SENDS)) as rig:
        rig.channel.will("send", Lost(), ChannelUnavailable("no route"))
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done", "done" + POSSIBLE_REPEAT]


async def test_what_is_lost_every_time_is_given_up_and_told() -> None:
    """An adapter that breaks down each time does not fill a chat (P1)."""
    async with running(platform(PLAIN_SENDS)) as rig:
        rig.channel.will("send", *[KeyError("fault")] * MOST_LOST)
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert len(rig.channel.calls) == MOST_LOST
        assert rig.hooks.reasons == ["raised KeyError"]


async def test_a_silent_platform_is_tried_without_end_where_repeats_are_not_seen() -> None:
    """A final is not given up because the platform was away for an hour (P1)."""
    async with running(platform()) as rig:
        rig.channel.will("send", *[Hang()] * 100)
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done"]
        assert rig.clock.monotonic() > HOUR_S


async def test_a_channel_that_hangs_delays_no_other_channel_and_no_other_chat() -> None:
    """P9: only its own chat waits."""
    async with running(platform(), platform(name="other")) as rig:
        rig.channel.will("send", Hang())
        stuck, free = final(rig, "stuck"), final(rig, "free", chat="c2")
        other = final(rig, "other", name="other")
        await rig.commit(stuck)
        await rig.clock.sleep(1)
        await rig.commit(free)
        await rig.commit(other)
        async with asyncio.timeout(1):
            await rig.outbox.ended(free.key)
            await rig.outbox.ended(other.key)
        await rig.outbox.ended(stuck.key)
        assert rig.clock.monotonic() > CALL_TIMEOUT_S
        assert seen(rig.channel) == ["stuck"]


async def test_an_account_makes_so_many_calls_at_once_and_no_more() -> None:
    """The rest wait for one to end."""
    async with running(platform(), calls_at_once=2) as rig:
        most = 0

        async def count(call: object) -> None:
            nonlocal most
            most = max(most, len(rig.channel.in_flight))
            await rig.clock.sleep(1)

        rig.channel.before = count
        puts = [final(rig, "done", chat=f"c{number}") for number in range(10)]
        for put in puts:
            await rig.commit(put)
        for put in puts:
            await rig.outbox.ended(put.key)
        assert most == 2


async def test_rows_of_one_address_go_out_in_the_order_of_their_keys() -> None:
    """Each after the one before it is over (P2)."""
    async with running(platform()) as rig:
        rig.channel.will("send", ChannelUnavailable("no route"))
        puts = [final(rig, f"{number}") for number in range(5)]
        await commit(rig.store, *puts)
        for put in reversed(puts):
            rig.outbox.announce(put)
        await rig.outbox.ended(puts[-1].key)
        await rig.outbox.ended(puts[0].key)
        assert seen(rig.channel) == ["0", "1", "2", "3", "4"]


async def test_a_channel_that_is_not_there_yet_is_waited_for() -> None:
    """Its rows stay open."""
    async with running(platform()) as rig:
        account = rig.accounts.pop("chat")
        put = final(rig, "done")
        await rig.commit(put)
        await rig.clock.sleep(30)
        assert (await rig.row(put)).state == "pending"
        rig.accounts["chat"] = account
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done"]


# --- restarts ------------------------------------------------------------------------------------


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
        assert seen(channel) == ["done", "done" + POSSIBLE_REPEAT]


async def test_a_draft_that_died_with_its_process_leaves_no_fragment() -> None:
    """Its send was never recorded; the final finds it and replaces it (P1)."""
    store, channel = MemoryStore(), platform()
    async with running(channel, store=store) as rig:
        put = final(rig, "drawn")
        key = message_key(turn_of(put.key), 0)
        await rig.accounts["chat"].send(channel.address(), "dra", key=key, draft=True)
        await commit(store, put)
    async with running(channel, store=store) as rig:
        await rig.outbox.resume()
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
            item = rows.read(row)
            assert isinstance(item, Text)
            await commit(rig.store, rows.changed(row, replace(item, text="new"), "pending"))

        rig.channel.before = change
        await rig.outbox.ended(put.key)
        item = rows.read(await rig.row(put))
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


# --- cards ---------------------------------------------------------------------------------------


def asking(rig: Rig) -> Put:
    return ask_row(
        key=rig.ids.ulid(),
        conversation=HERE,
        address=rig.channel.address("approver", direct=True),
        card=card(),
        approvals=("a1",),
    )


@pytest.mark.parametrize("capabilities", [CAPABILITIES, PLAIN_SENDS])
async def test_a_card_is_shown_and_its_approvals_learn_where(
    capabilities: Capabilities,
) -> None:
    """In one commit, with whatever the approvals add (S2-10)."""
    async with running(platform(capabilities)) as rig:
        rig.channel.will("ask", ChannelUnavailable("no route"), Lost())
        put = asking(rig)
        rig.hooks.add = (Put(kind=RowKind.APPROVAL, key="a1", body=b"with its ref"),)
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        row = await rig.row(put)
        item = rows.read(row)
        assert isinstance(item, Ask)
        assert (row.state, rig.store.points()[-1]) == ("delivered", DurablePoint.ASKED)
        assert rig.hooks.asked_refs == [item.ref]
        assert await rig.store.get(RowKind.APPROVAL, "a1") is not None


async def test_what_the_approvals_add_is_asked_for_again_when_it_conflicts() -> None:
    """Somebody pressed the card before its ref was recorded."""
    async with running(platform()) as rig:
        put = asking(rig)
        conflicts = 2

        def conflict(found: Commit) -> None:
            nonlocal conflicts
            if found.point is DurablePoint.ASKED and conflicts:
                conflicts -= 1
                message = "the approval was answered"
                raise Conflict(message)

        rig.store.before = conflict
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert len(rig.hooks.asked_refs) == 3
        assert len(rig.channel.called("ask")) == 1


async def test_a_refused_card_is_told() -> None:
    """Nobody waits for an approver who never saw it (P10)."""
    async with running(platform()) as rig:
        rig.channel.will("ask", ChannelRejected("blocked by the user"))
        put = asking(rig)
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert rig.hooks.reasons == ["blocked by the user"]


async def test_every_message_of_a_card_shows_how_it_ended() -> None:
    """P5; a lost answer is repeated, a deleted card needs nothing."""
    async with running(platform()) as rig:
        asked = asking(rig)
        await rig.commit(asked)
        await rig.outbox.ended(asked.key)
        item = rows.read(await rig.row(asked))
        assert isinstance(item, Ask)
        assert item.ref is not None
        gone = replace(item.ref, message="deleted")
        puts = settle_rows(
            keys=(rig.ids.ulid(), rig.ids.ulid()),
            conversation=HERE,
            refs=(item.ref, gone),
            outcome=outcome(),
        )
        rig.channel.will("settle", DeliveryUnknown("no answer"))
        await rig.commit(*puts)
        for put in puts:
            await rig.outbox.ended(put.key)
        (shown,) = rig.channel.standing(item.ref.address)
        assert shown.outcome == outcome()
        assert rig.store.points()[-2:] == [DurablePoint.SETTLED] * 2
