"""A draft that grows by much at once is cut while others go on."""

import asyncio
import threading

from tests.fakes.manual_clock import LoopClock
from tests.fakes.scripted_channel import ScriptedChannel
from tests.unit.delivery.rig import CAPABILITIES, PLAIN_SENDS, TURN, Rig, running
from zeroclaw.delivery.live import CUT_AT_ONCE_CHARS, DraftHandle, NewDraft
from zeroclaw.delivery.split import split
from zeroclaw.envelope import MessageRef, Rendered, TurnId
from zeroclaw.value import replace

LARGE = replace(CAPABILITIES, max_length=4096)
LONG = "- **word** and _more_\n" * 1500


class Watched(ScriptedChannel):
    """Remembers what it rendered in the event loop, and can be told to wait elsewhere."""

    def __init__(self, *, native_draft: bool = False) -> None:
        capabilities = LARGE if not native_draft else replace(PLAIN_SENDS, native_draft=True)
        super().__init__(clock=LoopClock(), capabilities=replace(capabilities, max_length=4096))
        self.in_loop: list[int] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def render(self, markdown: str) -> Rendered:
        if threading.current_thread() is threading.main_thread():
            self.in_loop.append(len(markdown))
        else:
            self.may_go_on.wait(5)
        return super().render(markdown)


def draft(rig: Rig) -> DraftHandle:
    async def on_ref(ref: MessageRef) -> None:
        await asyncio.sleep(0)

    address = rig.channel.address(direct=True)
    return rig.live.open(NewDraft(turn=TurnId(TURN), fence=1, address=address, on_ref=on_ref))


def seen(channel: ScriptedChannel) -> tuple[str, ...]:
    return tuple(channel.chat(channel.address(direct=True)))


async def test_a_text_that_leaps_is_cut_off_the_event_loop() -> None:
    """It renders there no more than it sends, however often cutting has to measure (P9)."""
    channel = Watched()
    async with running(channel) as rig:
        handle = draft(rig)
        handle.show(0, LONG)
        assert channel.in_loop == []
        await handle.at_rest()
        assert seen(channel) == split(LONG, rig.accounts["chat"].fits)
        assert len(channel.in_loop) <= 3 * len(channel.calls)
        await handle.close()


async def test_a_text_that_grows_while_it_is_cut_is_shown_whole() -> None:
    """What came meanwhile is not forgotten, and comes after (P6)."""
    channel = Watched()
    async with running(channel) as rig:
        handle = draft(rig)
        channel.may_go_on.clear()
        handle.show(0, LONG)
        handle.show(1, LONG + "end")
        channel.may_go_on.set()
        await handle.at_rest()
        assert seen(channel) == split(LONG + "end", rig.accounts["chat"].fits)
        await handle.close()


async def test_what_is_still_cut_is_waited_for_before_it_stands() -> None:
    """Nor does a card come before words above it that came while others were cut (P6)."""
    channel, words = Watched(native_draft=True), "word " * CUT_AT_ONCE_CHARS
    async with running(channel) as rig, asyncio.TaskGroup() as group:
        handle = draft(rig)
        channel.may_go_on.clear()
        handle.show(0, words)
        await asyncio.sleep(0)
        handle.show(1, words * 2)
        handle.demand_messages()
        waiting = group.create_task(handle.wait_for_messages())
        await asyncio.sleep(0)
        assert not waiting.done()
        channel.may_go_on.set()
        await waiting
        assert " ".join(seen(channel)).split() == ["word"] * (2 * CUT_AT_ONCE_CHARS)
        await handle.close()


async def test_a_draft_ends_while_its_text_is_cut() -> None:
    """Nothing is shown after that, and the chat is free for the final (P6)."""
    channel = Watched()
    async with running(channel) as rig:
        handle = draft(rig)
        handle.show(0, "a")
        await handle.at_rest()
        channel.may_go_on.clear()
        handle.show(1, LONG)
        await rig.clock.sleep(0)
        left = await handle.close()
        channel.may_go_on.set()
        async with rig.accounts["chat"].permitted(channel.address(direct=True)):
            assert seen(channel) == ("a",)
        assert [ref.message for ref in left.refs] == ["m1"]


async def test_a_process_ends_while_a_text_is_cut() -> None:
    """Cancelled, the draft is over, and shows nothing more."""
    channel = Watched()
    async with running(channel) as rig:
        handle = draft(rig)
        channel.may_go_on.clear()
        handle.show(0, LONG)
        await asyncio.sleep(0)
    channel.may_go_on.set()
    assert (await handle.close()).refs == ()
    assert channel.calls == []
