"""Drafts on a platform: what people see while an answer is written."""

import asyncio
from contextlib import suppress

import pytest

from tests.fakes.house import World
from tests.fakes.manual_clock import LoopClock
from tests.fakes.scripted_channel import Hang, Lost
from tests.fakes.scripted_model import asks_for
from tests.unit.delivery.rig import (
    CALL_TIMEOUT_S,
    CAPABILITIES,
    LOOKING,
    PLAIN_SENDS,
    TURN,
    Rig,
    as_it_is,
    draft,
    final,
    platform,
    refused_late,
    running,
    seen,
    unnoted,
)
from zeroclaw.channel import Budget, ToolProgress
from zeroclaw.delivery.account import Account
from zeroclaw.delivery.live import TYPING_DELAY_S, TYPING_S, DraftRemainder, Live, NewDraft
from zeroclaw.envelope import MessageRef
from zeroclaw.errors import (
    ChannelRejected,
    ChannelUnauthorized,
    ChannelUnavailable,
    Fenced,
    NotSupported,
    RateLimited,
    StoreUnusable,
)
from zeroclaw.value import replace

PACED = replace(CAPABILITIES, min_edit_interval_s=2.0)


async def test_words_that_a_person_reads_before_they_answer_wait_behind_no_reserve() -> None:
    """The turn rests until then, so they are no beginning that an answer overtakes (P6)."""
    budget = Budget(per_s=1, burst=4)
    async with running(platform(replace(PACED, account_budget=budget))) as rig:
        handle = draft(rig)
        await rig.clock.sleep(1)
        handle.show("May I?", is_last=True)
        handle.demand_messages()
        await rig.clock.sleep(0.5)
        assert seen(rig.channel) == []
        handle.demand_messages(is_read_now=True)
        await handle.at_rest()
        assert (rig.clock.monotonic(), seen(rig.channel)) == (1.5, ["May I?"])
        await handle.close()


async def test_the_first_text_is_seen_at_once_and_the_newest_after_an_interval() -> None:
    """Never more often than the platform allows, never later than one interval (S2-06, P6)."""
    async with running(platform(PACED)) as rig:
        await rig.clock.sleep(10)
        handle = draft(rig)
        for text in ("a", "ab", "abc", "abcd"):
            handle.show(text)
            await rig.clock.sleep(0.5)
        assert [(call.at, call.text) for call in rig.channel.calls] == [(10, "a")]
        await rig.clock.sleep(1)
        assert [(call.at, call.text) for call in rig.channel.calls] == [(10, "a"), (12, "abcd")]
        assert {call.draft for call in rig.channel.calls} == {True}
        await handle.close()


async def test_an_answer_that_came_whole_is_one_call() -> None:
    """No draft of it is sent, which the final would only edit (P6)."""
    async with running(platform()) as rig:
        handle = draft(rig)
        handle.show("hello", is_last=True)
        left = await handle.close()
        await rig.commit(final(rig, "hello", refs=left.refs))
        await rig.clock.sleep(1)
        assert [(call.name, call.text) for call in rig.channel.calls] == [("send", "hello")]


async def test_a_draft_that_waited_for_another_message_obeys_its_refusal() -> None:
    """Two topics of a group are written to at once, and the first is refused (P6)."""
    async with running(platform(replace(LOOKING, has_threads=True))) as rig:
        refused_late(rig, retry_after_s=7)
        put = final(rig, "done", thread="1")
        await rig.commit(put)
        await rig.clock.sleep(0.5)
        handle = draft(rig, address=replace(rig.channel.address(), thread="2"))
        handle.show("a")
        await rig.clock.sleep(30)
        assert [call.text for call in rig.channel.calls] == ["done", "done", "a"]
        assert rig.channel.calls[1].at >= 8
        await handle.close()


async def test_each_new_message_is_known_before_anything_else_is_sent() -> None:
    """So that a process that dies finds its messages (P1)."""
    known: list[MessageRef | str] = []

    async def recorded(ref: MessageRef | str) -> None:
        known.append(ref)

    async with running(platform()) as rig:
        handle = draft(rig, record=recorded)
        handle.show("a" * 50 + "\n\n" + "b" * 50)
        refs_at_calls: list[int] = []

        async def count(call: object) -> None:
            refs_at_calls.append(len(known))

        rig.channel.before = count
        await rig.clock.sleep(1)
        assert refs_at_calls == [0, 1]
        assert (await handle.close()).refs == tuple(known)


@pytest.mark.parametrize(
    "fault",
    [
        ChannelUnavailable("no route"),
        ChannelUnauthorized("bad token"),
        KeyError("an adapter's own fault"),
        Lost(),
    ],
)
async def test_a_failure_is_tried_again(fault: Exception | Lost) -> None:
    """Whatever the adapter does, the newest text is shown in the end (P6)."""
    async with running(platform()) as rig:
        rig.channel.will("edit", fault)
        handle = draft(rig)
        handle.show("a")
        await rig.clock.sleep(1)
        handle.show("ab")
        await rig.clock.sleep(5)
        assert seen(rig.channel) == ["ab"]
        await handle.close()


@pytest.mark.parametrize("refusal", [ChannelRejected("too long"), NotSupported("no sending here")])
async def test_a_refused_draft_falls_silent(refusal: Exception) -> None:
    """The final tries again."""
    async with running(platform()) as rig:
        rig.channel.will("send", refusal)
        handle = draft(rig)
        handle.show("a")
        await rig.clock.sleep(1)
        handle.show("ab")
        await rig.clock.sleep(1)
        assert len(rig.channel.calls) == 1
        assert (await handle.close()).refs == ()


async def test_closing_waits_for_the_call_under_way_and_returns_its_message() -> None:
    """The final knows the message that was on its way (P6)."""
    async with running(platform()) as rig:

        async def slow(call: object) -> None:
            await rig.clock.sleep(5)

        rig.channel.before = slow
        handle = draft(rig)
        handle.show("a")
        await rig.clock.sleep(1)
        assert [ref.message for ref in (await handle.close()).refs] == ["m1"]
        assert rig.clock.monotonic() == 5
        assert [ref.message for ref in (await handle.close()).refs] == ["m1"]


async def test_a_draft_whose_call_hangs_takes_nothing_from_the_next_one_of_its_turn() -> None:
    """A turn that fails is tried again, and shows its text as soon as the chat may be written to."""
    slow = replace(CAPABILITIES, chat_budget=Budget(per_s=1 / 60, burst=1))
    async with running(platform(slow)) as rig:
        await rig.clock.sleep(70)
        rig.channel.will("send", Hang())
        old = draft(rig)
        old.show("one")
        await rig.clock.sleep(1)
        assert old.begin_close() is None
        new = draft(rig)
        new.show("two")
        await rig.clock.sleep(70)
        assert [call.text for call in rig.channel.called("send")] == ["one", "two"]
        await new.close()


async def test_a_cancelled_close_can_be_repeated() -> None:
    """Cancellation changes nothing: the draft is closed and its call goes on."""
    async with running(platform()) as rig:

        async def slow(call: object) -> None:
            await rig.clock.sleep(5)

        rig.channel.before = slow
        handle = draft(rig)
        handle.show("a")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await handle.close()
        assert [ref.message for ref in (await handle.close()).refs] == ["m1"]


async def test_a_send_that_may_have_arrived_is_uncertain() -> None:
    """Where the platform does not know our keys (P1)."""
    async with running(platform(PLAIN_SENDS)) as rig:
        rig.channel.will("send", Lost())
        handle = draft(rig)
        handle.show("a")
        await rig.clock.sleep(1)
        handle.show("ab")
        await rig.clock.sleep(1)
        left = await handle.close()
        assert (left.refs, left.uncertainty.may_stand) == ((), True)
        assert seen(rig.channel) == ["a"]


async def test_a_resumed_turn_goes_on_in_its_messages() -> None:
    """The new text replaces the draft of the process before (K4)."""
    channel = platform()
    async with running(channel) as rig:
        before = draft(rig)
        before.show("the draft")
        await rig.clock.sleep(1)
        refs = (await before.close()).refs
    async with running(channel) as rig:
        after = draft(rig, refs=refs)
        after.show("again")
        await rig.clock.sleep(1)
        assert (await after.close()).refs == refs
        assert seen(channel) == ["again"]


async def test_a_newer_holder_ends_the_draft() -> None:
    """Closing it still returns its message."""
    async with running(platform()) as rig:

        async def fenced(ref: MessageRef | str) -> None:
            raise Fenced("held by somebody newer")

        handle = draft(rig, record=fenced)
        handle.show("a")
        await rig.clock.sleep(1)
        handle.show("ab")
        await rig.clock.sleep(1)
        assert seen(rig.channel) == ["a"]
        assert [ref.message for ref in (await handle.close()).refs] == ["m1"]


async def test_open_drafts_are_seen_by_transcripts() -> None:
    """Whole and newest, with the key and the messages that carry them; in their chat alone."""
    async with running(platform(PACED)) as rig:
        address = rig.channel.address()
        handle = draft(rig)
        assert rig.live.open_drafts(address) == ()
        handle.show("a")
        key = rig.live.open_drafts(address)[0].key
        await rig.clock.sleep(10)
        handle.show("ab")
        handle.show("abc")
        (found,) = rig.live.open_drafts(address)
        assert (found.text, found.key) == ("abc", key)
        assert rig.live.open_drafts(rig.channel.address("c2")) == ()
        assert found.ref == (await handle.close()).refs[0].message
        assert rig.live.open_drafts(address) == ()


async def test_a_retried_turn_is_seen_though_its_former_draft_ends_late() -> None:
    """That one waits for a call that hangs, and takes only itself out of the transcript."""
    async with running(platform(PACED)) as rig:
        rig.channel.will("send", Hang())
        former = draft(rig)
        former.show("a")
        await rig.clock.sleep(1)
        assert former.begin_close() is None
        newer = draft(rig)
        newer.show("b")
        await former.close()
        assert [item.text for item in rig.live.open_drafts(rig.channel.address())] == ["b"]
        await newer.close()


async def test_a_channel_that_is_not_there_shows_nothing() -> None:
    """The turn goes on without a draft (P9)."""
    async with running(platform()) as rig:
        handle = draft(rig, address=replace(rig.channel.address(), channel="gone"))
        handle.show("a")
        await rig.clock.sleep(1)
        assert (await handle.close()).refs == ()


async def test_many_drafts_share_an_account_evenly_and_keep_its_budget() -> None:
    """Every chat moves, and the platform's limit is never passed (P2, P6)."""
    capabilities = replace(CAPABILITIES, account_budget=Budget(per_s=2, burst=1))
    async with running(platform(capabilities)) as rig:
        chats = [f"c{number}" for number in range(10)]
        handles = [draft(rig, address=rig.channel.address(chat), turn=chat) for chat in chats]
        for number in range(100):
            for handle in handles:
                handle.show(f"text {number}")
            await rig.clock.sleep(0.5)
        counts = [
            len([call for call in rig.channel.calls if call.address.chat == chat]) for chat in chats
        ]
        assert sum(counts) == 99
        assert max(counts) - min(counts) <= 1
        for handle in handles:
            await handle.close()


async def test_text_for_another_message_asks_anew_when_its_turn_comes() -> None:
    """A grant for one message is not used for another, whose interval may not be over (P6)."""
    capabilities = replace(PACED, account_budget=Budget(per_s=0.1, burst=1))
    async with running(platform(capabilities)) as rig:
        handle = draft(rig)
        handle.show("a" * 50)
        await rig.clock.sleep(10.5)
        handle.show("a" * 50 + "\n\n" + "b" * 50)
        await rig.clock.sleep(1)
        handle.show("short")
        await rig.clock.sleep(40)
        assert seen(rig.channel) == ["short"]
        await handle.close()


@pytest.mark.parametrize("newest", ["abc", "words " * 200])
async def test_a_process_that_ends_while_it_calls_leaves_no_task(newest: str) -> None:
    """Cancelling the owner cancels the call; nothing new is begun, by no draft of the chat."""
    async with running(platform()) as rig:
        rig.channel.will("edit", Hang())
        handle, other = draft(rig), draft(rig, turn="other")
        handle.show("a")
        await rig.clock.sleep(1)
        handle.show("ab")
        other.show("b")
        await rig.clock.sleep(1)
        handle.show(newest)
        other.show(newest)
        assert len(rig.channel.in_flight) == 1
    assert rig.channel.in_flight == []
    assert len(rig.channel.calls) == 2


# --- the group that owns the calls goes down ------------------------------------------------------


async def test_a_draft_ends_whose_call_was_cancelled_before_it_began() -> None:
    """Whoever closes it as the daemon ends is not kept waiting (P9)."""
    async with running(platform()) as rig:
        handle = draft(rig)
        handle.show("a")
        (call,) = (task for task in asyncio.all_tasks() if f"draft {TURN}" in task.get_name())
        call.cancel()
        async with asyncio.timeout(1):
            left = await handle.close()
        assert (left.refs, rig.channel.calls) == ((), [])


async def test_a_draft_ends_whose_call_comes_when_the_group_takes_no_more() -> None:
    """The same, a moment later (P9)."""
    closed: list[DraftRemainder] = []
    channel = platform()

    async def unrecorded(ref: MessageRef | str) -> None:
        raise AssertionError(ref)

    async def turn(group: asyncio.TaskGroup) -> None:
        account = Account(
            channel=channel,
            clock=LoopClock(),
            group=group,
            call_timeout_s=CALL_TIMEOUT_S,
            calls_at_once=1,
            screen=as_it_is,
            note_refused=unnoted,
        )
        live = Live(account_of={"chat": account}.get, group=group)
        handle = live.open(NewDraft(turn=TURN, address=channel.address(), record=unrecorded))
        try:
            await asyncio.Event().wait()
        finally:
            handle.show("a")
            async with asyncio.timeout(1):
                closed.append(await handle.close())

    with suppress(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            group.create_task(turn(group))
            await asyncio.sleep(0)
            raise StoreUnusable("the store is full")
    assert [left.refs for left in closed] == [()]


# --- signs: that the bot is at work, and when a draft has caught up ------------------------------

TYPES = replace(CAPABILITIES, has_typing=True)


def names(rig: Rig) -> list[str]:
    return [call.name for call in rig.channel.calls]


async def test_typing_is_shown_until_the_first_text_comes() -> None:
    """A person soon sees that their message was taken; then the text says so itself (P6)."""
    async with running(platform(TYPES)) as rig:
        handle = draft(rig)
        await rig.clock.sleep(TYPING_S * 1.5)
        assert names(rig) == ["typing", "typing"]
        handle.show("a")
        await rig.clock.sleep(TYPING_S * 3)
        assert names(rig) == ["typing", "typing", "send"]
        await handle.close()


@pytest.mark.parametrize("saying", ["", "let me poke it"])
async def test_nothing_is_typed_while_the_turn_waits_for_a_person(
    world: World, saying: str
) -> None:
    """It may wait for long; once they have answered it works again, and its text comes below (P6)."""
    chat = world.add_platform("chat", TYPES)
    world.model.will(asks_for(("poke", '{"a": 1}'), saying=saying), (asyncio.Event(),))
    async with world.told("poke it") as house:
        await asyncio.sleep(TYPING_S * 3)
        assert chat.called("typing") == []
        await house.press()
        await asyncio.sleep(TYPING_S)
        assert chat.called("typing") != []


async def test_a_text_that_comes_soon_needs_no_sign() -> None:
    """No call is spent on what is overtaken at once (P6)."""
    async with running(platform(TYPES)) as rig:
        handle = draft(rig)
        await rig.clock.sleep(TYPING_DELAY_S / 2)
        handle.show("a")
        await rig.clock.sleep(TYPING_S * 3)
        assert names(rig) == ["send"]
        await handle.close()


async def test_no_sign_is_begun_when_all_is_over() -> None:
    """A text that was to be shown a moment later is dropped."""
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: faults.append(what))
    async with running(platform(TYPES)) as rig:
        draft(rig)
    await rig.clock.sleep(TYPING_DELAY_S * 2)
    assert (names(rig), faults) == ([], [])


async def test_a_refused_sign_holds_up_no_text_and_its_wait_is_kept_by_signs() -> None:
    """What the bot has to say waits for nothing; it only is not said again that it works (P6, P9)."""
    async with running(platform(TYPES)) as rig:
        rig.channel.will("typing", RateLimited("too many", retry_after_s=3 * TYPING_S))
        handle = draft(rig)
        await rig.clock.sleep(TYPING_S * 2)
        assert names(rig) == ["typing"]
        handle.show("a")
        await handle.at_rest()
        assert rig.channel.calls[-1].at == TYPING_S * 2
        await handle.close()
        again = draft(rig)
        await rig.clock.sleep(TYPING_S * 3)
        assert names(rig) == ["typing", "send", "typing", "typing"]
        await again.close()


async def test_a_sign_refused_in_one_chat_ends_no_wait_of_another() -> None:
    """Each chat has asked for its own (P6)."""
    async with running(platform(TYPES)) as rig:
        rig.channel.will("typing", *[RateLimited("too many", retry_after_s=3 * TYPING_S)] * 2)
        handles = [
            draft(rig, address=rig.channel.address(chat), turn=chat) for chat in ("c1", "c2")
        ]
        await rig.clock.sleep(TYPING_S * 2)
        assert names(rig) == ["typing", "typing"]
        for handle in handles:
            await handle.close()


async def test_a_turn_without_text_stops_typing_when_it_ends() -> None:
    """Nothing is shown for a turn that is over."""
    async with running(platform(TYPES)) as rig:
        handle = draft(rig)
        await rig.clock.sleep(TYPING_DELAY_S * 2)
        await handle.close()
        await rig.clock.sleep(TYPING_S * 3)
        assert names(rig) == ["typing"]


async def test_a_platform_that_shows_no_typing_gets_no_typing() -> None:
    """A call outside the capabilities is never made."""
    async with running(platform(CAPABILITIES)) as rig:
        handle = draft(rig)
        await rig.clock.sleep(TYPING_S * 3)
        assert names(rig) == []
        await handle.close()


async def test_typing_that_hangs_delays_no_text() -> None:
    """A sign is worth no wait (P9)."""
    async with running(platform(TYPES)) as rig:
        rig.channel.will("typing", Hang())
        handle = draft(rig)
        await rig.clock.sleep(TYPING_DELAY_S * 2)
        handle.show("a")
        await rig.clock.sleep(0.1)
        assert names(rig) == ["typing", "send"]
        await handle.close()


async def test_a_draft_is_at_rest_when_its_newest_text_stands() -> None:
    """So that a note below it is seen before the process ends."""
    async with running(platform(PACED)) as rig:
        await rig.clock.sleep(10)
        handle = draft(rig)
        await handle.at_rest()
        handle.show("a")
        await handle.at_rest()
        handle.show("a note")
        await handle.at_rest()
        assert [(call.at, call.text) for call in rig.channel.calls] == [(10, "a"), (12, "a note")]
        for text in ("an answer", "an answer that its final shows"):
            handle.show(text)
        await handle.close()
        async with asyncio.TaskGroup() as group:
            resting = group.create_task(handle.at_rest())
            await asyncio.sleep(0)
            assert resting.done()


async def test_only_the_first_message_shows_what_it_answers() -> None:
    """In a group people see whose message it is about; what follows goes on below it."""
    async with running(platform()) as rig:
        handle = draft(rig, reply_to="m1")
        handle.show("a" * rig.channel.capabilities.max_length + " b")
        await handle.at_rest()
        sent = [call.reply_to for call in rig.channel.calls if call.name == "send"]
        assert sent == ["m1", ""]
        await handle.close()


NAMES = replace(TYPES, names_tools=True)
SHELL = ToolProgress(key="1", tool="shell", state="running")
ENDED = replace(SHELL, state="ok")


def masked(text: str, *, growing: bool = False) -> str:
    del growing
    return text.replace("s3cr", "***")


def tools_shown(rig: Rig) -> list[str]:
    return [call.text for call in rig.channel.calls if call.name == "typing"]


async def test_running_tools_are_shown_at_once_and_again_until_they_end() -> None:
    """Below a text as well; a sign that runs out while a tool runs is shown anew (P6)."""
    async with running(platform(NAMES)) as rig:
        handle = draft(rig)
        handle.show("a")
        await handle.at_rest()
        handle.show_tools((SHELL,))
        handle.show_tools((SHELL,))
        await rig.clock.sleep(TYPING_S * 1.5)
        assert tools_shown(rig) == ["shell running", "shell running"]
        handle.show_tools((ENDED,))
        await rig.clock.sleep(TYPING_S * 3)
        assert tools_shown(rig) == ["shell running", "shell running", "shell ok"]
        handle.show_tools((replace(SHELL, key="2"),))
        await rig.clock.sleep(TYPING_S / 2)
        assert tools_shown(rig)[3:] == ["shell running"]
        await handle.close()
        await rig.clock.sleep(TYPING_S * 3)
        assert tools_shown(rig)[4:] == ["shell failed"]


async def test_the_end_of_a_tool_whose_call_failed_is_shown_again() -> None:
    async with running(platform(NAMES)) as rig:
        handle = draft(rig)
        handle.show("a")
        await handle.at_rest()
        rig.channel.will("typing", ChannelUnavailable("no route"))
        handle.show_tools((ENDED,))
        await rig.clock.sleep(TYPING_S * 3)
        assert tools_shown(rig) == ["shell ok", "shell ok"]
        await handle.close()


async def test_before_the_first_text_one_sign_names_the_tools() -> None:
    """There are not two signs at the same time, and the plain one goes on when no tool runs."""
    async with running(platform(NAMES)) as rig:
        handle = draft(rig)
        handle.show_tools((SHELL,))
        await rig.clock.sleep(TYPING_S * 1.5)
        handle.show_tools((ENDED,))
        await rig.clock.sleep(TYPING_S)
        assert tools_shown(rig) == ["shell running", "shell running", "shell ok", ""]
        await handle.close()


async def test_a_secret_in_the_name_of_a_tool_is_masked() -> None:
    """Servers of others name tools; people read no name that was not looked at (P6, P7)."""
    async with running(platform(NAMES), screen=masked) as rig:
        handle = draft(rig)
        handle.show_tools((replace(ENDED, tool="s3cret"),))
        await rig.clock.sleep(TYPING_S / 2)
        assert tools_shown(rig)[0] == "***et ok"
        await handle.close()


async def test_a_platform_that_shows_no_tools_gets_none() -> None:
    async with running(platform(TYPES)) as rig:
        handle = draft(rig)
        handle.show("a")
        handle.show_tools((SHELL,))
        await rig.clock.sleep(TYPING_S * 3)
        assert tools_shown(rig) == []
        await handle.close()
