"""Each committed message is sent once, as exactly its text, or the operator hears that it was not."""

import asyncio
from collections.abc import Callable

import pytest

from tests.fakes.manual_clock import EPOCH, LoopClock
from tests.fakes.memory_store import MemoryStore
from tests.fakes.scripted_channel import Call, Hang, Lost, ScriptedChannel
from tests.unit.delivery.rig import (
    CALL_TIMEOUT_S,
    CAPABILITIES,
    HERE,
    HOUR_S,
    LONG,
    LOOKING,
    PARTS,
    PLAIN_SENDS,
    Rig,
    card,
    commit,
    delivery_points,
    draft,
    final,
    never_recorded,
    note,
    outcome,
    platform,
    posted,
    refused_late,
    running,
    seen,
    turn_of,
)
from zeroclaw.channel import Budget, Capabilities
from zeroclaw.delivery import rows
from zeroclaw.delivery.account import Markdown
from zeroclaw.delivery.draft import message_key
from zeroclaw.delivery.live import NewDraft
from zeroclaw.delivery.reconcile import MAX_BARRED, MAX_LOST
from zeroclaw.delivery.rows import (
    CERTAIN,
    OUTBOX,
    ApprovalCard,
    DraftRemainder,
    Settle,
    TextPost,
    Uncertainty,
    outbox_row,
    stored,
)
from zeroclaw.delivery.split import BREAK
from zeroclaw.envelope import Address, CheckedReceipt, MessageRef, Outgoing, Rendered
from zeroclaw.errors import (
    ChannelRejected,
    ChannelUnavailable,
    Conflict,
    DeliveryUnknown,
    Fenced,
    RateLimited,
    RecordUnreadable,
)
from zeroclaw.store import Commit, Delete, DurablePoint, Put, RowKind
from zeroclaw.text import catalogue
from zeroclaw.value import replace

LOST = Uncertainty(may_stand=True)


async def send_unrecorded(rig: Rig, put: Put, *, number: int = 0, text: str = "dra") -> None:
    """Send a message of the draft of a final, which nothing records, as before a kill."""
    message = Markdown(text=text, key=message_key(turn_of(put.key), number), draft=True)
    await rig.accounts["chat"].post(rig.channel.address(), message)


async def test_a_long_final_edits_what_is_there_and_sends_the_rest() -> None:
    """Each result is committed before the next call (S2-20)."""
    async with running(platform()) as rig:
        await rig.deliver(final(rig, LONG, refs=await posted(rig, "one")))
        assert seen(rig.channel) == PARTS
        known = [DurablePoint.REF_KNOWN] * 2
        assert delivery_points(rig) == [*known, DurablePoint.DELIVERED]
        assert [call.name for call in rig.channel.calls] == ["edit", "send", "send"]


@pytest.mark.parametrize(("drafted", "replies"), [((), ["m1", "", ""]), (("a", "b"), [""])])
async def test_the_first_message_of_a_final_answers_and_the_last_carries_its_receipts(
    drafted: tuple[str, ...], replies: list[str]
) -> None:
    """And no other of them does: the first may stand above the card of the call (P7)."""
    proof = CheckedReceipt(token="t", tool="look", summary="", outcome="ok", at=EPOCH)
    async with running(platform()) as rig:
        item = OUTBOX.of(stored(final(rig, LONG), 1))
        assert isinstance(item, TextPost)
        refs = await posted(rig, *drafted)
        item = replace(item, refs=refs, reply_to="m1", receipts=(proof,))
        await rig.deliver(outbox_row(rig.ids.ulid(), item, HERE))
        assert [call.reply_to for call in rig.channel.called("send")] == replies
        shown = rig.channel.standing(item.address)
        assert [message.receipts for message in shown] == [(), (), (proof,)]


async def test_a_message_that_can_no_longer_be_deleted_says_so() -> None:
    """Some platforms delete young messages only; a message already gone is no trouble."""
    async with running(platform()) as rig:
        refs = await posted(rig, "a", "b", "c", "d")
        rig.channel.will("delete", ChannelRejected("too old"), ChannelRejected("?", gone=True))
        rig.channel.will("edit", None, ChannelUnavailable("no route"))
        rig.channel.will("delete", ChannelUnavailable("no route"), ChannelRejected("too old"))
        await rig.deliver(final(rig, "x", refs=refs))
        assert seen(rig.channel)[:2] == ["x", catalogue.CONTINUED_ABOVE.en]


async def test_a_message_that_can_not_be_changed_just_now_says_so_later() -> None:
    """No fragment of a draft stays below its answer because the platform was away (P6)."""
    async with running(platform()) as rig:
        refs = await posted(rig, "a", "b")
        rig.channel.will("delete", *(ChannelRejected("too old"),) * 2)
        rig.channel.will("edit", None, ChannelUnavailable("no route"))
        await rig.deliver(final(rig, "x", refs=refs))
        assert seen(rig.channel) == ["x", catalogue.CONTINUED_ABOVE.en]


class Unrendering(ScriptedChannel):
    """A channel with a fault in its renderer."""

    def render(self, markdown: str) -> Rendered:
        message = f"a fault at {markdown}"
        raise LookupError(message)


class Unmeasuring(ScriptedChannel):
    """A channel with a fault in its measure, which its sending meets as well."""

    def measure(self, rendered: Rendered) -> int:
        raise LookupError

    async def send(self, to: Address, outgoing: Outgoing) -> MessageRef:
        raise LookupError


@pytest.mark.parametrize("kind", [Unrendering, Unmeasuring])
async def test_a_text_that_its_channel_cannot_render_is_given_up(
    kind: type[ScriptedChannel],
) -> None:
    """Else the daemon would end, and again at each start, for the text would still wait."""
    channel = kind(clock=LoopClock(), capabilities=CAPABILITIES, name="chat")
    async with running(channel) as rig:
        handle = draft(rig)
        handle.show(LONG)
        await handle.close()
        await rig.deliver(final(rig, LONG))
        assert seen(channel) == []
        assert rig.hooks.reasons == ["raised LookupError"]


class Unmarking(ScriptedChannel):
    """A channel with a fault where it notes its newest message."""

    def mark(self, to: Address) -> str:
        raise LookupError


async def test_a_channel_that_cannot_mark_a_chat_still_sends() -> None:
    """Else a turn would fail at its last commit, and again after each restart."""
    channel = Unmarking(clock=LoopClock(), capabilities=LOOKING, name="chat")
    async with running(channel) as rig:
        await rig.deliver(final(rig, "done", begun=True))
        assert seen(channel) == ["done"]


@pytest.mark.parametrize("drafted", [(), ("do",)])
async def test_a_final_whose_markup_is_refused_is_shown_without_it(
    drafted: tuple[str, ...],
) -> None:
    """As a new message and as an edit; the operator has nothing to do (P6)."""
    async with running(platform()) as rig:
        refs = await posted(rig, *drafted)
        rig.channel.will("send", *[ChannelRejected("?", markup=True)] * 2)
        rig.channel.will("edit", *[ChannelRejected("?", markup=True)] * 2)
        await rig.deliver(final(rig, "*done*", refs=refs))
        assert (seen(rig.channel), rig.hooks.reasons) == (["done"], [])


async def test_what_the_draft_learned_late_is_used() -> None:
    """A message that came into being after the turn's last commit is edited too (P6)."""
    async with running(platform()) as rig:
        refs = await posted(rig, "dra")
        put = final(rig, "drawn")
        await rig.deliver(put, DraftRemainder(refs=refs))
        assert seen(rig.channel) == ["drawn"]
        assert delivery_points(rig) == [DurablePoint.REF_KNOWN, DurablePoint.DELIVERED]


async def test_a_lost_draft_makes_the_final_a_possible_repeat() -> None:
    """The message says that it may be a repeat (P1)."""
    async with running(platform(PLAIN_SENDS)) as rig:
        put = final(rig, "done")
        await rig.deliver(put, DraftRemainder(uncertainty=LOST))
        assert seen(rig.channel) == ["done" + catalogue.POSSIBLE_REPEAT.en]


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
        await send_unrecorded(rig, put, text=draft)
        await rig.deliver(put, DraftRemainder(uncertainty=LOST))
        assert seen(rig.channel) == left


@pytest.mark.parametrize(("stand", "parts"), [(1, ["short"]), (2, PARTS[:2])])
async def test_a_lost_message_that_the_final_does_not_need_is_taken_away(
    stand: int, parts: list[str]
) -> None:
    """Found by its key, counted from the messages that the draft posted, and the last of them (P1)."""
    async with running(platform()) as rig:
        put = final(rig, "\n\n".join(parts))
        to, turn, account = rig.channel.address(), turn_of(put.key), rig.accounts["chat"]
        for number, text in enumerate(["a", "deleted", "lost"]):
            await account.post(to, Markdown(text=text, key=message_key(turn, number), draft=True))
        refs = tuple(shown.ref for shown in rig.channel.standing(to))
        for deleted in refs[stand:2]:
            rig.channel.lose(deleted)
        await rig.deliver(put, DraftRemainder(refs=refs[:stand], uncertainty=LOST, posted=2))
        assert seen(rig.channel) == parts


@pytest.mark.parametrize("uncertainty", [CERTAIN, LOST])
async def test_of_a_blank_final_nothing_is_shown(uncertainty: Uncertainty) -> None:
    """No platform takes a message without words; the operator has nothing to do (P6)."""
    async with running(platform()) as rig:
        put = final(rig, " \n")
        await rig.deliver(put, DraftRemainder(refs=(), uncertainty=uncertainty, posted=0))
        assert (seen(rig.channel), (await rig.row(put)).state) == ([], "delivered")


async def test_a_refused_quiet_note_is_not_reported() -> None:
    """So a note to the operator can't cause another note."""
    async with running(platform()) as rig:
        rig.channel.will("send", ChannelRejected("blocked"))
        put = note(rig, "a final was refused", quiet=True)
        await rig.deliver(put)
        assert ((await rig.row(put)).state, rig.hooks.reasons) == ("refused", [])


# --- a final that goes out at once says in its own commit that its send begins --------------------


async def begun(rig: Rig, text: str) -> Put:
    """Commit a final as the end of a turn does."""
    put = final(rig, text, begun=True)
    assert put.state == "sending"
    await commit(rig.store, put)
    rig.outbox.announce(put, DraftRemainder())
    return put


async def test_a_begun_final_is_sent_without_a_lookup_or_another_commit() -> None:
    """Its own process knows that it has not been sent."""
    async with running(platform(LOOKING)) as rig:
        put = await begun(rig, "done")
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done"]
        assert [call.name for call in rig.channel.calls] == ["send"]
        assert rig.store.points() == [DurablePoint.FINISHED, DurablePoint.DELIVERED]


async def test_a_begun_final_that_was_killed_unsent_is_looked_up_and_stands_once() -> None:
    """Only its own process knew that no send was begun (P1)."""
    store, channel = MemoryStore(), platform(LOOKING)
    async with running(channel, store=store) as rig:
        put = final(rig, "done", begun=True)
        await commit(store, put)
    async with running(channel, store=store) as rig:
        await rig.outbox.resume()
        await rig.outbox.ended(put.key)
        assert seen(channel) == ["done"]
        assert channel.called("lookup")


@pytest.mark.parametrize("fault", [Lost(), RateLimited("slow down", retry_after_s=1)])
async def test_a_failed_send_of_a_begun_final_is_handled_like_any_other(
    fault: Lost | RateLimited,
) -> None:
    """A lost answer leads to a lookup, a refusal to none (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", fault)
        put = await begun(rig, "done")
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done"]
        assert bool(rig.channel.called("lookup")) == isinstance(fault, Lost)


async def test_a_begun_final_that_another_writer_changed_is_read_and_looked_up() -> None:
    """Whether it was sent before is then unknown (P1)."""
    async with running(platform(LOOKING)) as rig:
        put = final(rig, "done", begun=True)
        await commit(rig.store, put)
        await rig.deliver(put, DraftRemainder())
        assert seen(rig.channel) == ["done"]
        assert [call.name for call in rig.channel.calls] == ["send", "lookup"]


async def test_a_row_that_is_gone_when_its_turn_comes_is_not_sent() -> None:
    """A row that waits for others is read when they are over."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", RateLimited("slow down", retry_after_s=9))
        first = note(rig, "first")
        await rig.commit(first)
        second = note(rig, "second")
        await rig.commit(second)
        rig.store.forget(RowKind.OUTBOX)
        await rig.outbox.ended(second.key)
        assert "second" not in seen(rig.channel)


@pytest.mark.parametrize(
    "can",
    [
        pytest.param(CAPABILITIES, id="it may be sent twice"),
        pytest.param(PLAIN_SENDS, id="it can't be looked for"),
        pytest.param(replace(LOOKING, may_repeat=False), id="it might be given up unsent"),
        pytest.param(
            replace(LOOKING, chat_budget=Budget(per_s=0.01, burst=1)), id="the chat has to wait"
        ),
        pytest.param(
            replace(LOOKING, account_budget=Budget(per_s=0.01, burst=1)), id="all have to wait"
        ),
    ],
)
async def test_where_a_send_can_not_begin_at_once_its_row_is_marked_later(
    can: Capabilities,
) -> None:
    """A final that a kill leaves unsent is then sent without a lookup."""
    async with running(platform(can)) as rig:
        assert rig.outbox.mark_if_sent_now(rig.channel.address()) == ""


async def test_a_final_behind_another_or_in_a_missing_channel_is_not_begun() -> None:
    """It begins when the others are over."""
    async with running(platform(LOOKING)) as rig:
        address = rig.channel.address()
        put = note(rig, "first")
        await rig.commit(put)
        assert rig.outbox.mark_if_sent_now(address) == ""
        await rig.outbox.ended(put.key)
        assert rig.outbox.mark_if_sent_now(address) != ""
        assert rig.outbox.mark_if_sent_now(replace(address, channel="gone")) == ""


# --- a card is shown, its approvals learn where, and it shows how each ended ----------------------


def asking(rig: Rig) -> Put:
    return outbox_row(
        rig.ids.ulid(),
        ApprovalCard(
            address=rig.channel.address("approver", direct=True), card=card(), approvals=("a1",)
        ),
        HERE,
    )


@pytest.mark.parametrize("capabilities", [CAPABILITIES, PLAIN_SENDS])
async def test_a_card_is_shown_and_its_approvals_learn_where(capabilities: Capabilities) -> None:
    """In one commit, with the writes that the approvals add (S2-10)."""
    async with running(platform(capabilities)) as rig:
        rig.channel.will("ask", ChannelUnavailable("no route"), Lost())
        put = asking(rig)
        rig.hooks.add = (Put(kind=RowKind.APPROVAL, key="a1", body=b"with its ref"),)
        await rig.deliver(put)
        row = await rig.row(put)
        item = OUTBOX.of(row)
        assert isinstance(item, ApprovalCard)
        assert (row.state, rig.store.points()[-1]) == ("delivered", DurablePoint.ASKED)
        assert rig.hooks.sent_refs == [item.ref]
        assert await rig.store.get(RowKind.APPROVAL, "a1") is not None


async def test_what_the_approvals_add_is_asked_for_again_when_it_conflicts() -> None:
    """A person pressed the card before its ref was recorded."""
    async with running(platform()) as rig:
        put = asking(rig)
        conflicts = 2

        def conflict(found: Commit) -> None:
            nonlocal conflicts
            if found.point is DurablePoint.ASKED and conflicts:
                conflicts -= 1
                raise Conflict("the approval was answered")

        rig.store.before = conflict
        await rig.deliver(put)
        assert len(rig.hooks.sent_refs) == 3
        assert len(rig.channel.called("ask")) == 1


async def test_a_refused_card_is_reported() -> None:
    """No turn waits for an approver who never saw it (P10)."""
    async with running(platform()) as rig:
        rig.channel.will("ask", ChannelRejected("blocked by the user"))
        put = asking(rig)
        await rig.deliver(put)
        assert rig.hooks.reasons == ["blocked by the user"]


async def test_a_refused_answer_whose_turn_is_damaged_is_given_up_at_once() -> None:
    """The try has changed its row already; it must not be sent again and again."""
    async with running(platform(PLAIN_SENDS)) as rig:
        rig.channel.will("send", *(ChannelRejected("blocked"),) * 2)
        rig.hooks.damaged = RecordUnreadable("the turn is damaged")
        put = final(rig, "hello")
        await rig.deliver(put)
        assert len(rig.channel.called("send")) == 1
        assert rig.hooks.reasons == ["blocked", "the turn is damaged"]
        assert (await rig.row(put)).state == "refused"


async def test_an_answer_that_is_given_up_is_not_sent_again_for_a_conflict() -> None:
    """Another writer may add the operators' note at the same time (P1)."""
    async with running(platform(PLAIN_SENDS)) as rig:
        rig.channel.will("send", *(ChannelRejected("blocked"),) * 2)
        rig.hooks.damaged = RecordUnreadable("the turn is damaged")
        rig.hooks.add = (Delete(kind=RowKind.NOTICE, key="n"),)
        conflicts = 2

        def conflict(found: Commit) -> None:
            nonlocal conflicts
            if rig.hooks.add[0] in found.writes and conflicts:
                conflicts -= 1
                raise Conflict("the notice was written")

        rig.store.before = conflict
        put = final(rig, "hello")
        await rig.deliver(put)
        assert len(rig.channel.called("send")) == 1
        assert (await rig.row(put)).state == "refused"


async def test_every_message_of_a_card_shows_how_it_ended() -> None:
    """P5; a lost answer is repeated, a deleted card needs nothing."""
    async with running(platform()) as rig:
        card_put = asking(rig)
        await rig.deliver(card_put)
        item = OUTBOX.of(await rig.row(card_put))
        assert isinstance(item, ApprovalCard)
        assert item.ref is not None
        deleted = replace(item.ref, message="deleted")
        puts = [
            outbox_row(rig.ids.ulid(), Settle(ref=ref, outcome=outcome()), HERE)
            for ref in (item.ref, deleted)
        ]
        rig.channel.will("settle", DeliveryUnknown("no answer"))
        await rig.commit(*puts)
        for put in puts:
            await rig.outbox.ended(put.key)
        (shown,) = rig.channel.standing(item.ref.address)
        assert shown.outcome == outcome()
        assert rig.store.points()[-2:] == [DurablePoint.SETTLED] * 2


async def test_a_refused_settle_is_reported() -> None:
    """The card still offers its buttons, so the operators hear that the platform refused (P5)."""
    async with running(platform()) as rig:
        card_put = asking(rig)
        await rig.deliver(card_put)
        item = OUTBOX.of(await rig.row(card_put))
        assert isinstance(item, ApprovalCard)
        assert item.ref is not None
        put = outbox_row(rig.ids.ulid(), Settle(ref=item.ref, outcome=outcome()), HERE)
        rig.channel.will("settle", ChannelRejected("too old"))
        await rig.deliver(put)
        assert (await rig.row(put)).state == "refused"
        assert rig.hooks.reasons == ["too old"]


# --- platforms in trouble -------------------------------------------------------------------------


async def test_a_message_behind_another_of_its_chat_obeys_the_refusal() -> None:
    """Two topics of a group share its limit, and one is posted after the other (P6)."""
    async with running(platform(replace(LOOKING, has_threads=True))) as rig:
        refused_late(rig, retry_after_s=7)
        puts = [final(rig, thread, thread=thread) for thread in ("1", "2")]
        await rig.commit(*puts)
        for put in puts:
            await rig.outbox.ended(put.key)
        assert sorted(call.at for call in rig.channel.calls) == pytest.approx([0, 8, 9])


@pytest.mark.parametrize(
    ("capabilities", "fault", "reason"),
    [
        (PLAIN_SENDS, KeyError("fault"), "raised KeyError"),
        (CAPABILITIES, KeyError("fault"), "raised KeyError"),
        (LOOKING, Hang(), "no answer within 20 s"),
    ],
    ids=["repeats are seen", "they are not", "it comes late"],
)
async def test_a_send_that_is_lost_every_time_is_given_up_and_reported(
    capabilities: Capabilities, fault: Exception | Hang, reason: str
) -> None:
    """An adapter that breaks down, or a platform that answers too late, fills no chat (P1)."""
    async with running(platform(capabilities)) as rig:
        rig.channel.will("send", *[fault] * MAX_LOST)
        await rig.deliver(final(rig, "done"))
        assert len(rig.channel.called("send")) == MAX_LOST
        assert rig.hooks.reasons == [reason]


async def test_a_silent_platform_is_tried_without_end_where_repeats_are_not_seen() -> None:
    """A final is not given up because the platform was away for an hour (P1)."""
    async with running(platform()) as rig:
        rig.channel.will("send", *[Hang()] * 100)
        await rig.deliver(final(rig, "done"))
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


# --- after an outage ------------------------------------------------------------------------------


@pytest.mark.parametrize("away", [ChannelUnavailable("no route"), DeliveryUnknown("no answer")])
async def test_a_platform_that_is_there_again_is_tried_at_once(away: Exception) -> None:
    """A person who waits for an answer does not wait for the end of a pause as well (P6)."""
    async with running(platform()) as rig:
        rig.channel.will("send", *[away] * 6)
        first = final(rig, "done")
        await rig.commit(first)
        account, began = rig.accounts["chat"], rig.clock.monotonic()
        await rig.clock.sleep(50)  # in the middle of the pause that ends after 63 s
        assert len(rig.channel.calls) == 6
        account.retry_now()
        await rig.outbox.ended(first.key)
        assert rig.clock.monotonic() - began == pytest.approx(50)
        assert seen(rig.channel) == ["done"]


async def test_an_answer_in_another_chat_ends_the_pause_of_all() -> None:
    """The platform need not be asked whether it is there: something else was carried out."""
    async with running(platform()) as rig:
        rig.channel.will("send", *[ChannelUnavailable("no route")] * 6)
        first, other = final(rig, "done"), final(rig, "other", chat="c2")
        await rig.commit(first)
        await rig.clock.sleep(50)
        await rig.deliver(other)
        await rig.outbox.ended(first.key)
        assert rig.clock.monotonic() < 55
        assert (seen(rig.channel), seen(rig.channel, "c2")) == (["done"], ["other"])


async def test_a_send_that_fails_while_all_others_arrive_is_tried_ever_more_rarely() -> None:
    """Its failure looks like an outage each time, and each answer elsewhere like its end."""
    async with running(platform()) as rig:
        account = rig.accounts["chat"]
        await account.post(rig.channel.address("c2"), Markdown(text="other", key="other"))
        [other] = rig.channel.standing(rig.channel.address("c2"))
        rig.channel.will("send", *[ChannelUnavailable("no route")] * 200)
        await rig.commit(final(rig, "done"))
        for number in range(300):
            await account.edit(other.ref, Markdown(text=f"other {number}", key="other"))
            await rig.clock.sleep(1)
        assert 30 < len(rig.channel.called("send")) < 70


BARRED = ChannelUnavailable("something before it answers in its place", barred=True)


async def test_a_send_that_is_barred_while_others_arrive_is_given_up_and_reported() -> None:
    """A firewall may take offence at its words; the messages behind it must not wait for ever (P1)."""
    async with running(platform()) as rig:
        rig.channel.will("send", *[BARRED] * (1 + MAX_BARRED))
        first, second = final(rig, "done"), final(rig, "next")
        await rig.commit(first, second)
        account = rig.accounts["chat"]
        while rig.channel.faults["send"]:
            await rig.clock.sleep(1)
            account.outage.end()
        await rig.outbox.ended(second.key)
        assert seen(rig.channel) == ["next"]
        assert rig.hooks.reasons == ["something before it answers in its place"]


async def test_a_send_that_was_barred_often_may_still_be_lost_as_often_as_any_other() -> None:
    """A call that arrived may not be given up for those that a firewall kept from arriving (P1)."""
    async with running(platform()) as rig:
        rig.channel.will("send", *[BARRED] * (1 + MAX_LOST), KeyError("fault"))
        only = final(rig, "done")
        await rig.commit(only)
        while rig.channel.faults["send"]:
            await rig.clock.sleep(1)
            rig.accounts["chat"].outage.end()
        await rig.outbox.ended(only.key)
        assert seen(rig.channel) == ["done"]


async def test_a_send_that_is_barred_with_all_others_is_tried_without_end() -> None:
    """It may pass when the way is free again (P1)."""
    async with running(platform()) as rig:
        rig.channel.will("send", *[BARRED] * 5 * MAX_BARRED)
        outage = rig.accounts["chat"].outage
        outage.begin()
        outage.end()  # the way was free once
        await rig.deliver(final(rig, "done"))
        assert seen(rig.channel) == ["done"]


async def test_a_lost_send_waits_before_it_counts_as_lost() -> None:
    """Else it would be given up while the platform is only slow."""
    async with running(platform(PLAIN_SENDS)) as rig:
        rig.channel.will("send", *[Lost()] * 2)
        first = final(rig, "done")
        await rig.commit(first)
        await rig.clock.sleep(0.1)
        account = rig.accounts["chat"]
        account.outage.begin()
        account.outage.end()
        await rig.clock.sleep(0.1)
        assert len(rig.channel.calls) == 1
        await rig.outbox.ended(first.key)


# --- deliveries that were interrupted go on where they were ---------------------------------------


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
        await send_unrecorded(rig, put)
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
        await send_unrecorded(rig, put)
    async with running(channel, store=store) as rig:
        handle = rig.live.open(
            NewDraft(turn=turn, address=channel.address(), resumed=True, record=never_recorded)
        )
        await commit(store, put)
        left = await handle.close()
        rig.outbox.announce(put, left)
        await rig.outbox.ended(put.key)
        assert seen(channel) == ["drawn"]


def leave(_channel: ScriptedChannel, _ref: MessageRef) -> None:
    """Let a message stand."""


@pytest.mark.parametrize(
    ("does", "stands"), [(leave, ["above", "below"]), (ScriptedChannel.lose, ["below"])]
)
async def test_what_a_person_read_above_a_card_is_not_touched_again(
    does: Callable[[ScriptedChannel, MessageRef], None], stands: list[str]
) -> None:
    """The answer below waits for no edit of it, and what they deleted stays deleted (P6)."""
    async with running(platform()) as rig:
        put = final(rig, f"above{BREAK}below")
        handle = draft(rig, turn=turn_of(put.key))
        handle.show("above")
        await handle.at_rest()
        handle.demand_messages(is_read_now=True)
        await handle.at_rest()
        (above,) = rig.channel.standing(rig.channel.address())
        assert not above.draft
        rig.channel.calls.clear()
        does(rig.channel, above.ref)
        await commit(rig.store, put)
        rig.outbox.announce(put, await handle.close())
        await rig.outbox.ended(put.key)
        assert [call.name for call in rig.channel.calls] == ["send"]
        assert seen(rig.channel) == stands


async def test_receipts_stand_below_a_text_above_a_card_that_nothing_follows() -> None:
    """A model may have no more to say once its call has run (P7)."""
    proof = CheckedReceipt(token="t", tool="look", summary="", outcome="ok", at=EPOCH)
    async with running(platform()) as rig:
        item = OUTBOX.of(stored(final(rig, "above"), 1))
        assert isinstance(item, TextPost)
        put = outbox_row(rig.ids.ulid(), replace(item, receipts=(proof,)), HERE)
        handle = draft(rig, turn=item.turn or "")
        handle.show("above")
        await handle.at_rest()
        handle.demand_messages(is_read_now=True)
        await handle.at_rest()
        await commit(rig.store, put)
        rig.outbox.announce(put, await handle.close())
        await rig.outbox.ended(put.key)
        assert [message.receipts for message in rig.channel.standing(item.address)] == [(proof,)]


@pytest.mark.parametrize("deleted", [0, 1, 2])
async def test_a_new_message_in_place_of_a_deleted_one_has_a_key_of_its_own(deleted: int) -> None:
    """With the key of one that still stands, the platform would take it for a repeat (P1)."""
    async with running(platform()) as rig:
        put = final(rig, LONG)
        handle = draft(rig, turn=turn_of(put.key))
        handle.show(LONG)
        await handle.at_rest()
        rig.channel.lose(rig.channel.standing(rig.channel.address())[deleted].ref)
        await commit(rig.store, put)
        rig.outbox.announce(put, await handle.close())
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == PARTS


async def test_an_unrecorded_message_is_found_after_a_recorded_one_was_deleted() -> None:
    """It shows what its process wrote last, so it is edited before it counts as the answer (P1)."""
    store, channel = MemoryStore(), platform()
    async with running(channel, store=store) as rig:
        refs = await posted(rig, "d")
        put = final(rig, "drawn", refs=refs)
        channel.lose(refs[0])
        await send_unrecorded(rig, put, number=1)
        await commit(store, put)
    async with running(channel, store=store) as rig:
        await rig.outbox.resume()
        await rig.outbox.ended(put.key)
        assert seen(channel) == ["drawn"]


async def test_a_found_message_that_a_person_deleted_is_sent_anew_once() -> None:
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


async def test_a_delivered_row_is_over_at_once() -> None:
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
            assert isinstance(item, TextPost)
            await commit(rig.store, rows.changed(row, replace(item, text="new"), "pending"))

        rig.channel.before = change
        await rig.outbox.ended(put.key)
        item = OUTBOX.of(await rig.row(put))
        assert isinstance(item, TextPost)
        assert item.text == "new"


async def test_a_newer_holder_of_the_conversation_delivers_instead() -> None:
    """This process stops, and its other rows go on (P2); nor does it give up one that is damaged."""
    async with running(platform()) as rig:
        put, damaged = final(rig, "done"), final(rig, "lost", chat="c2")
        await commit(rig.store, put, damaged)
        rig.store.damage(await rig.row(damaged))
        taking = True

        def take(found: Commit) -> None:
            if taking and found.conversation == HERE:
                raise Fenced("held by somebody newer")

        rig.store.before = take
        await rig.outbox.resume()
        await rig.clock.sleep(HOUR_S)
        taking = False
        assert (await rig.row(put)).state == "pending"
        assert (await rig.row(damaged)).state == "pending"
        other = note(rig, "a note")
        await rig.deliver(other)
