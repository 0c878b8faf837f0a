"""Where no key tells a message, a draft's send is on record before it is made."""

import asyncio
from collections.abc import Awaitable, Callable

from tests.fakes.memory_store import MemoryStore
from tests.fakes.scripted_calls import Call, Lost
from tests.fakes.scripted_channel import ScriptedChannel
from tests.unit.delivery.outbox_rows import LONG, noted, seen
from tests.unit.delivery.rig import (
    CAPABILITIES,
    HERE,
    LOOKING,
    TURN,
    Rig,
    commit,
    platform,
    running,
)
from zeroclaw.delivery.live import DraftHandle, NewDraft
from zeroclaw.delivery.rows import CERTAIN, Text, Uncertainty, lost_from, outbox_row
from zeroclaw.envelope import MessageRef
from zeroclaw.errors import ChannelRejected, ChannelUnavailable, Fenced
from zeroclaw.value import Value, replace


def opened(rig: Rig, log: list[str], *, sending: Callable[[str], Awaitable[None]]) -> DraftHandle:
    """Open a draft that logs what it posts, beside what it has recorded."""

    async def on_ref(ref: MessageRef) -> None:
        log.append(f"known {ref.message}")

    async def note_call(call: Call) -> None:
        log.append(call.name)

    rig.channel.before = note_call
    return rig.live.open(
        NewDraft(
            turn=TURN, fence=1, address=rig.channel.address(), on_ref=on_ref, on_sending=sending
        )
    )


async def test_what_is_begun_to_be_sent_is_recorded_first() -> None:
    """So a kill in between leaves no beginning of an answer behind (P1, P6)."""
    async with running(platform(LOOKING)) as rig:
        log: list[str] = []

        async def sending(mark: str) -> None:
            log.append(f"from {mark}")

        handle = opened(rig, log, sending=sending)
        handle.show(1, "hello")
        await handle.at_rest()
        handle.show(2, "hello there")
        await handle.at_rest()
        assert log == ["from 0", "send", "known m1", "edit"]


async def test_what_did_not_arrive_is_no_longer_on_record() -> None:
    """Nobody looks later for what nobody has sent; what may have arrived is looked for."""
    async with running(platform(LOOKING)) as rig:
        log: list[str] = []

        async def sending(mark: str) -> None:
            log.append(f"from {mark}")

        rig.channel.will("send", ChannelUnavailable("no route"), Lost())
        handle = opened(rig, log, sending=sending)
        handle.show(1, "hello")
        await handle.at_rest()
        assert log == ["from 0", "send", "from ", "from 0", "send"]
        assert (await handle.close()).uncertainty == Uncertainty(may_stand=True, mark="0")


async def test_what_is_refused_is_no_longer_on_record() -> None:
    async with running(platform(LOOKING)) as rig:
        log: list[str] = []

        async def sending(mark: str) -> None:
            log.append(f"from {mark}")

        rig.channel.will("send", ChannelRejected("blocked"))
        handle = opened(rig, log, sending=sending)
        handle.show(1, "hello")
        await handle.at_rest()
        assert log == ["from 0", "send", "from "]
        assert (await handle.close()).uncertainty == CERTAIN


async def test_where_it_can_not_be_recorded_nothing_is_sent() -> None:
    """Somebody newer has the conversation, and shows its draft (P2)."""
    async with running(platform(LOOKING)) as rig:

        async def sending(_mark: str) -> None:
            message = "held by somebody newer"
            raise Fenced(message)

        handle = opened(rig, [], sending=sending)
        handle.show(1, "hello")
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

            async def sending(mark: str, log: list[str] = log) -> None:
                log.append(f"from {mark}")

            handle = opened(rig, log, sending=sending)
            handle.show(1, "hello")
            await handle.at_rest()
            assert log == ["send", "known m1"]


class Died(Value):
    """What a life left that died while it showed a draft."""

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

    async def on_ref(ref: MessageRef) -> None:
        if len(known) == refs:
            dead.set()
            raise asyncio.CancelledError
        known.append(ref)

    async def sending(mark: str) -> None:
        marks.append(mark)
        if not arrives and len(known) == refs:
            dead.set()
            raise asyncio.CancelledError

    async with running(channel, store=store) as rig:
        await noted(rig, "earlier")
        handle = rig.live.open(
            NewDraft(
                turn=TURN, fence=1, address=channel.address(), on_ref=on_ref, on_sending=sending
            )
        )
        handle.show(1, text)
        await dead.wait()
    return Died(store=store, channel=channel, refs=tuple(known), mark=marks[-1])


async def answered(died: Died) -> list[str]:
    """Answer in the next life, which has a draft to show as well."""

    async def nothing(_: object) -> None:
        return

    async with running(died.channel, store=died.store, open_drafts=died.refs) as rig:
        put = outbox_row(
            "the final",
            Text(
                turn=TURN,
                address=rig.channel.address(),
                text="drawn",
                refs=died.refs,
                uncertainty=lost_from(died.mark),
            ),
            HERE,
        )
        handle = rig.live.open(
            NewDraft(
                turn=TURN,
                fence=1,
                address=rig.channel.address(),
                refs=died.refs,
                resumed=True,
                lost=died.mark,
                on_ref=nothing,
            )
        )
        handle.show(1, "dra")
        await handle.at_rest()
        await commit(died.store, put)
        left = await handle.close()
        rig.outbox.announce(put, left)
        await rig.outbox.ended(put.key)
        return seen(rig.channel)


async def test_the_next_life_answers_in_the_message_that_nobody_had_recorded() -> None:
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
