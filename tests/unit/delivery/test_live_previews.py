"""Drafts on platforms of another kind: those that show unsent text, and those where no key tells a message."""

import asyncio
import threading
from itertools import pairwise

import pytest

from tests.fakes.manual_clock import LoopClock
from tests.fakes.memory_store import MemoryStore
from tests.fakes.scripted_channel import Call, Hang, Lost, ScriptedChannel
from tests.unit.delivery.cuts import split
from tests.unit.delivery.rig import (
    CAPABILITIES,
    HERE,
    LONG,
    LOOKING,
    PLAIN_SENDS,
    TURN,
    Rig,
    commit,
    draft,
    noted,
    platform,
    running,
    seen,
)
from zeroclaw.channel import Budget
from zeroclaw.delivery.live import LONGEST_STAND_S, LOOK_S, DraftHandle, NewDraft
from zeroclaw.delivery.rows import CERTAIN, DraftRemainder, TextPost, Uncertainty, outbox_row
from zeroclaw.delivery.split import CUT_AT_ONCE_CHARS
from zeroclaw.envelope import Address, MessageRef, Rendered
from zeroclaw.errors import ChannelRejected, ChannelUnavailable, Fenced, NotSupported, RateLimited
from zeroclaw.value import Value, replace

NATIVE = replace(PLAIN_SENDS, native_draft=True)


def direct_draft(rig: Rig, *, turn: str = TURN) -> DraftHandle:
    return draft(rig, address=rig.channel.address(direct=True), turn=turn)


def address(channel: ScriptedChannel, *, direct: bool = True) -> Address:
    return channel.address(direct=direct)


def shown(channel: ScriptedChannel) -> tuple[str | None, list[str]]:
    """What is shown and not sent, and the messages."""
    return channel.previews.get(address(channel).key()), channel.chat(address(channel))


async def test_the_last_text_leaves_no_call_for_the_final_to_wait_for() -> None:
    """Not even one that was asked for before it came (P6)."""
    async with running(platform(replace(NATIVE, min_edit_interval_s=5))) as rig:
        handle = direct_draft(rig)
        handle.show("a")
        await rig.clock.sleep(6)
        handle.show("ab")
        handle.show("abc", is_last=True)
        await handle.at_rest()
        await rig.clock.sleep(10)
        assert shown(rig.channel) == ("a", [])
        assert (await handle.close()).refs == ()


async def test_what_must_stand_is_a_message_before_anybody_waits() -> None:
    """A card comes below it, and a preview would vanish (K4)."""
    async with running(platform(NATIVE)) as rig:
        handle = direct_draft(rig)
        handle.show("let me look")
        handle.demand_messages()
        await handle.wait_for_messages()
        assert shown(rig.channel) == (None, ["let me look"])
        handle.show("let me look\n\nfound")
        await rig.clock.sleep(1)
        assert shown(rig.channel) == (None, ["let me look\n\nfound"])
        assert [ref.message for ref in (await handle.close()).refs] == ["m1"]
        handle.demand_messages()
        await handle.wait_for_messages()


async def test_an_empty_draft_delays_no_call() -> None:
    async with running(platform(NATIVE)) as rig:
        handle = direct_draft(rig)
        handle.demand_messages()
        await handle.wait_for_messages()
        assert rig.clock.monotonic() == 0
        handle.show("a")
        await rig.clock.sleep(1)
        assert shown(rig.channel) == ("a", [])
        await handle.close()


async def test_where_nothing_can_be_edited_no_call_waits_for_a_message() -> None:
    """No text is shown there before the final, neither as a preview nor as a message (P9)."""
    async with running(platform(replace(NATIVE, can_edit=False))) as rig:
        handle = direct_draft(rig)
        handle.show("let me look")
        handle.demand_messages()
        await handle.wait_for_messages()
        assert rig.clock.monotonic() == 0
        assert shown(rig.channel) == (None, [])
        await handle.close()


async def test_a_demanded_text_is_sent_at_once_behind_its_own_previews() -> None:
    """They leave a call of the chat's burst to it (P6)."""
    capabilities = replace(NATIVE, chat_budget=Budget(per_s=1, burst=2), min_edit_interval_s=1.0)
    async with running(platform(capabilities)) as rig:
        handle = direct_draft(rig)
        await rig.clock.sleep(10)
        for number in range(100):
            handle.show(f"text {number}")
            await rig.clock.sleep(0.1)
        at = rig.clock.monotonic()
        handle.demand_messages()
        await handle.wait_for_messages()
        assert rig.clock.monotonic() == at
        assert shown(rig.channel) == (None, ["text 99"])
        await handle.close()


@pytest.mark.parametrize("fault", [Hang(), RateLimited("slow down", retry_after_s=60)])
async def test_a_platform_that_is_slow_holds_up_a_tool_for_seconds_only(
    fault: Hang | RateLimited,
) -> None:
    """The message comes when it can (P9)."""
    async with running(platform(NATIVE)) as rig:
        rig.channel.will("preview", fault)
        handle = direct_draft(rig)
        handle.show("a")
        await rig.clock.sleep(1)
        handle.demand_messages()
        await handle.wait_for_messages()
        assert rig.clock.monotonic() == 1 + LONGEST_STAND_S
        await rig.clock.sleep(60)
        assert shown(rig.channel) == (None, ["a"])
        await handle.close()


async def test_a_silent_preview_is_shown_anew_before_it_fades() -> None:
    """Platforms show it for half a minute; nothing is called once it has ended (P6)."""
    async with running(platform(NATIVE)) as rig:
        handle = direct_draft(rig)
        await rig.clock.sleep(5)
        handle.show("a")
        await rig.clock.sleep(60)
        at = [call.at for call in rig.channel.called("preview")]
        assert all(later - earlier <= 2 * LOOK_S for earlier, later in pairwise(at))
        assert at[-1] > 60 - 2 * LOOK_S
        await handle.close()
        await rig.clock.sleep(60)
        assert len(rig.channel.called("preview")) == len(at)


@pytest.mark.parametrize(
    "fault", [Lost(), ChannelUnavailable("no route"), KeyError("an adapter's own fault")]
)
async def test_a_preview_that_fails_is_made_again(fault: Exception | Lost) -> None:
    """And is never one that may stand twice (P1)."""
    async with running(platform(NATIVE)) as rig:
        rig.channel.will("preview", fault)
        handle = direct_draft(rig)
        handle.show("a")
        await rig.clock.sleep(1)
        handle.show("ab")
        await rig.clock.sleep(5)
        assert shown(rig.channel) == ("ab", [])
        assert await handle.close() == DraftRemainder(posted=0)


async def test_a_draft_that_began_before_the_refusal_makes_no_call_either() -> None:
    """A refusal of one draft counts for the whole account."""
    async with running(platform(NATIVE)) as rig:
        first, second = direct_draft(rig), direct_draft(rig, turn="second")
        rig.channel.will("preview", NotSupported("no such method"))
        first.show("a")
        await rig.clock.sleep(1)
        second.show("b")
        await rig.clock.sleep(1)
        assert len(rig.channel.called("preview")) == 1
        assert shown(rig.channel) == (None, ["a", "b"])
        for handle in (first, second):
            await handle.close()


# --- drafts that grow by much at once are cut while others go on ----------------------------------

LARGE = replace(CAPABILITIES, max_length=4096)
LEAP = "- **word** and _more_\n" * 1500


class Watched(ScriptedChannel):
    """Remembers what it rendered in the event loop, and can be told to wait elsewhere.

    Attributes:
        most: How many renderings stood there at once.
    """

    def __init__(self, *, native_draft: bool = False) -> None:
        capabilities = LARGE if not native_draft else replace(PLAIN_SENDS, native_draft=True)
        super().__init__(clock=LoopClock(), capabilities=replace(capabilities, max_length=4096))
        self.in_loop: list[int] = []
        self.elsewhere = self.most = 0
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def render(self, markdown: str) -> Rendered:
        if threading.current_thread() is threading.main_thread():
            self.in_loop.append(len(markdown))
            return super().render(markdown)
        self.elsewhere += 1
        self.most = max(self.most, self.elsewhere)
        self.may_go_on.wait(5)
        self.elsewhere -= 1
        return super().render(markdown)


def standing(channel: ScriptedChannel) -> tuple[str, ...]:
    return tuple(channel.chat(channel.address(direct=True)))


async def test_a_text_that_leaps_is_cut_off_the_event_loop() -> None:
    """It renders there no more than it sends, however often cutting has to measure (P9)."""
    channel = Watched()
    async with running(channel) as rig:
        handle = direct_draft(rig)
        handle.show(LEAP)
        assert channel.in_loop == []
        await handle.at_rest()
        assert standing(channel) == split(LEAP, rig.accounts["chat"].fits)
        assert len(channel.in_loop) <= 3 * len(channel.calls)
        await handle.close()


async def test_a_text_that_grows_while_it_is_cut_is_shown_whole() -> None:
    """The text of meanwhile is kept, and shown afterwards (P6)."""
    channel = Watched()
    async with running(channel) as rig:
        handle = direct_draft(rig)
        channel.may_go_on.clear()
        handle.show(LEAP)
        handle.show(LEAP + "end")
        channel.may_go_on.set()
        await handle.at_rest()
        assert standing(channel) == split(LEAP + "end", rig.accounts["chat"].fits)
        await handle.close()


async def test_a_text_still_being_cut_is_awaited_before_it_is_sent() -> None:
    """Nor does a card come before words above it that came while others were cut (P6)."""
    channel, words = Watched(native_draft=True), "word " * CUT_AT_ONCE_CHARS
    async with running(channel) as rig, asyncio.TaskGroup() as group:
        handle = direct_draft(rig)
        channel.may_go_on.clear()
        handle.show(words)
        await asyncio.sleep(0)
        handle.show(words * 2)
        handle.demand_messages()
        waiting = group.create_task(handle.wait_for_messages())
        await asyncio.sleep(0)
        assert not waiting.done()
        channel.may_go_on.set()
        await waiting
        assert " ".join(standing(channel)).split() == ["word"] * (2 * CUT_AT_ONCE_CHARS)
        assert channel.most == 1
        await handle.close()


async def test_a_draft_ends_while_its_text_is_cut() -> None:
    """Nothing is shown after that, and the chat is free for the final (P6)."""
    channel = Watched()
    async with running(channel) as rig:
        handle = direct_draft(rig)
        handle.show("a")
        await handle.at_rest()
        channel.may_go_on.clear()
        handle.show(LEAP)
        await rig.clock.sleep(0)
        left = await handle.close()
        channel.may_go_on.set()
        async with rig.accounts["chat"].permitted(channel.address(direct=True)):
            assert standing(channel) == ("a",)
        assert [ref.message for ref in left.refs] == ["m1"]


async def test_a_process_ends_while_a_text_is_cut() -> None:
    """Cancelled, the draft is over, and shows nothing more."""
    channel = Watched()
    async with running(channel) as rig:
        handle = direct_draft(rig)
        channel.may_go_on.clear()
        handle.show(LEAP)
        await asyncio.sleep(0)
    channel.may_go_on.set()
    assert (await handle.close()).refs == ()
    assert channel.calls == []


# --- where no key tells a message, a send is on record before it is made --------------------------


def opened(rig: Rig, log: list[str]) -> DraftHandle:
    """Open a draft that logs what it posts, beside what it has recorded."""

    async def record(message: MessageRef | str) -> None:
        log.append(f"from {message}" if isinstance(message, str) else f"known {message.message}")

    async def note_call(call: Call) -> None:
        log.append(call.name)

    rig.channel.before = note_call
    return rig.live.open(NewDraft(turn=TURN, address=rig.channel.address(), record=record))


async def test_a_send_is_recorded_before_it_begins() -> None:
    """So a kill in between leaves no beginning of an answer behind (P1, P6)."""
    async with running(platform(LOOKING)) as rig:
        log: list[str] = []
        handle = opened(rig, log)
        handle.show("hello")
        await handle.at_rest()
        handle.show("hello there")
        await handle.at_rest()
        assert log == ["from 0", "send", "known m1", "edit"]


@pytest.mark.parametrize(
    ("ends", "more", "left"),
    [
        (
            (ChannelUnavailable("no route"), Lost()),
            ["from 0", "send"],
            Uncertainty(may_stand=True, mark="0"),
        ),
        ((ChannelRejected("blocked"),), [], CERTAIN),
    ],
    ids=["did not arrive", "refused"],
)
async def test_a_send_that_surely_failed_is_no_longer_on_record(
    ends: tuple[Exception | Lost, ...], more: list[str], left: Uncertainty
) -> None:
    """A message that was not sent is never looked up; one that may have arrived is."""
    async with running(platform(LOOKING)) as rig:
        log: list[str] = []
        rig.channel.will("send", *ends)
        handle = opened(rig, log)
        handle.show("hello")
        await handle.at_rest()
        assert log == ["from 0", "send", "from ", *more]
        assert (await handle.close()).uncertainty == left


async def test_where_it_can_not_be_recorded_nothing_is_sent() -> None:
    """Somebody newer has the conversation, and shows its draft (P2)."""
    async with running(platform(LOOKING)) as rig:

        async def fenced(_: MessageRef | str) -> None:
            raise Fenced("held by somebody newer")

        handle = draft(rig, record=fenced)
        handle.show("hello")
        await handle.close()
        assert seen(rig.channel) == []
        assert not rig.channel.called("send")


async def test_where_keys_tell_a_message_nothing_is_recorded_before_it_is_sent() -> None:
    """Nor where it could not be looked for: that would cost a commit for nothing."""
    for capabilities in (
        replace(CAPABILITIES, can_lookup=True),
        replace(LOOKING, can_lookup=False),
    ):
        async with running(platform(capabilities)) as rig:
            log: list[str] = []
            handle = opened(rig, log)
            handle.show("hello")
            await handle.at_rest()
            assert log == ["send", "known m1"]


class Died(Value):
    """The remains of a life that died while it showed a draft."""

    store: MemoryStore
    channel: ScriptedChannel
    refs: tuple[MessageRef, ...]
    mark: str


async def died_drafting(text: str, *, refs: int = 0, arrives: bool = True) -> Died:
    """Show a text as a draft, and die before its last message is on record."""
    store, channel = MemoryStore(), platform(LOOKING)
    known: list[MessageRef] = []
    marks: list[str] = []
    dead = asyncio.Event()

    async def record(message: MessageRef | str) -> None:
        is_mark = isinstance(message, str)
        if is_mark:
            marks.append(message)
        if len(known) == refs and not (is_mark and arrives):
            dead.set()
            raise asyncio.CancelledError
        if not is_mark:
            known.append(message)

    async with running(channel, store=store) as rig:
        await noted(rig, "earlier")
        handle = rig.live.open(NewDraft(turn=TURN, address=channel.address(), record=record))
        handle.show(text)
        await dead.wait()
    return Died(store=store, channel=channel, refs=tuple(known), mark=marks[-1])


async def answered(died: Died) -> list[str]:
    """Answer in the next life, which has a draft to show as well."""

    async def nothing(_: object) -> None:
        return

    async with running(died.channel, store=died.store, open_drafts=died.refs) as rig:
        put = outbox_row(
            "the final",
            TextPost(
                turn=TURN,
                address=rig.channel.address(),
                text="drawn",
                refs=died.refs,
                uncertainty=Uncertainty(may_stand=bool(died.mark), mark=died.mark),
            ),
            HERE,
        )
        handle = rig.live.open(
            NewDraft(
                turn=TURN,
                address=rig.channel.address(),
                refs=died.refs,
                resumed=True,
                lost=died.mark,
                record=nothing,
            )
        )
        handle.show("dra")
        await handle.at_rest()
        await commit(died.store, put)
        left = await handle.close()
        rig.outbox.announce(put, left)
        await rig.outbox.ended(put.key)
        return seen(rig.channel)


async def test_the_next_life_answers_in_the_unrecorded_message() -> None:
    """Killed between a draft's send and its record, no beginning stays (P1, P6)."""
    died = await died_drafting("an old draft")
    assert seen(died.channel) == ["earlier", "an old draft"]
    assert await answered(died) == ["earlier", "drawn"]


async def test_the_next_life_says_it_once_where_nothing_had_arrived() -> None:
    died = await died_drafting("an old draft", arrives=False)
    assert seen(died.channel) == ["earlier"]
    assert await answered(died) == ["earlier", "drawn"]


async def test_the_next_life_takes_away_a_message_that_it_does_not_need() -> None:
    died = await died_drafting(LONG, refs=1)
    assert len(seen(died.channel)) == 3
    assert await answered(died) == ["earlier", "drawn"]
