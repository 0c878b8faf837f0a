"""However an answer was written, it ends as exactly the final."""

import asyncio
from collections.abc import Coroutine

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.manual_clock import VirtualTimeLoop
from tests.fakes.scripted_channel import Fault, Hang, Lost, ScriptedChannel
from tests.unit.delivery.cuts import split
from tests.unit.delivery.rig import CAPABILITIES, HERE, TURN, commit, draft, platform, running
from zeroclaw.channel import Budget, Capabilities
from zeroclaw.delivery.rows import TextPost, outbox_row
from zeroclaw.errors import ChannelRejected, ChannelUnavailable, RateLimited
from zeroclaw.text import catalogue
from zeroclaw.value import replace

pytestmark = pytest.mark.slow

FAULTS: st.SearchStrategy[Fault | None] = st.sampled_from(
    [
        None,
        None,
        RateLimited("slow down", retry_after_s=0),
        RateLimited("slow down", retry_after_s=9),
        ChannelUnavailable("no route"),
        Lost(),
        Hang(),
        ChannelRejected("bad entity", markup=True),
    ]
)
SCRIPTS = st.lists(FAULTS, max_size=4)
# Words without markup, so that plain text reads the same.
TEXTS = st.integers(1, 40).map(lambda words: " ".join(f"word{number}" for number in range(words)))
FRAMES = st.lists(st.tuples(TEXTS, st.sampled_from([0.0, 0.3, 2.0, 30.0])), max_size=8)
PACED = replace(CAPABILITIES, min_edit_interval_s=1.0, chat_budget=Budget(per_s=1, burst=3))


def in_virtual_time(test: Coroutine[None, None, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(test)


async def answer(
    channel: ScriptedChannel, frames: list[tuple[str, float]], text: str
) -> ScriptedChannel:
    """Write an answer as a turn does, and wait until it is over."""
    async with running(channel) as rig:
        address = channel.address()
        handle = draft(rig)
        for frame, pause_s in frames:
            handle.show(frame)
            await rig.clock.sleep(pause_s)
        put = outbox_row(rig.ids.ulid(), TextPost(turn=TURN, address=address, text=text), HERE)
        await commit(rig.store, put)
        left = await handle.close()
        rig.outbox.announce(put, left)
        await rig.outbox.ended(put.key)
        assert (await rig.row(put)).state == "delivered"
        return channel


def scripted(
    capabilities: Capabilities, sends: list[Fault | None], edits: list[Fault | None]
) -> ScriptedChannel:
    channel = platform(capabilities)
    channel.will("send", *sends)
    channel.will("edit", *edits)
    return channel


@given(sends=SCRIPTS, edits=SCRIPTS, frames=FRAMES, text=TEXTS, can_edit=st.booleans())
def test_the_chat_ends_as_exactly_the_final(
    sends: list[Fault | None],
    edits: list[Fault | None],
    frames: list[tuple[str, float]],
    text: str,
    can_edit: bool,
) -> None:
    """Through refusals, lost answers and hanging calls (P1, P6)."""
    channel = scripted(replace(PACED, can_edit=can_edit), sends, edits)
    in_virtual_time_answer = answer(channel, frames, text)

    async def check() -> None:
        await in_virtual_time_answer
        parts = split(text, lambda part: len(part) <= PACED.max_length)
        assert tuple(channel.chat(channel.address())) == parts
        assert not any(shown.draft for shown in channel.standing(channel.address()))

    in_virtual_time(check())


@given(sends=SCRIPTS, edits=SCRIPTS, frames=FRAMES, text=TEXTS)
def test_where_keys_mean_nothing_only_marked_repeats_and_fragments_are_more(
    sends: list[Fault | None], edits: list[Fault | None], frames: list[tuple[str, float]], text: str
) -> None:
    """The final is whole and in order; a text that stands twice says so (P1)."""
    capabilities = replace(PACED, idempotent_send=False)
    channel = scripted(capabilities, sends, edits)

    async def check() -> None:
        await answer(channel, frames, text)
        room = PACED.max_length - len(catalogue.POSSIBLE_REPEAT.en)
        parts = split(text, lambda part: len(part) <= room)
        shown = [
            message.text for message in channel.standing(channel.address()) if not message.draft
        ]
        clean = [text.removesuffix(catalogue.POSSIBLE_REPEAT.en) for text in shown]
        assert list(dict.fromkeys(clean)) == list(parts)
        marked = [text for text in shown if text.endswith(catalogue.POSSIBLE_REPEAT.en)]
        assert len(shown) - len(marked) <= len(parts)

    in_virtual_time(check())
