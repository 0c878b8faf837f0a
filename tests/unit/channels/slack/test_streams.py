"""A growing answer on Slack: a stream where Slack lets it be one, and edits of a message elsewhere."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import pytest

from channels.slack.emulator.server import BOT, Fault, Person, SlackServer
from channels.slack.streams import CHECK_S, IDLE_S, LIFE_S, MAX_STARTS, REPEAT_S
from tests.contract.channel_suite import Desk
from tests.contract.channel_words import looked
from tests.contract.slack_harness import SETTINGS, standing
from tests.unit.channels.slack.test_adapter import Stage, stage
from zeroclaw import (
    Address,
    ChannelRejected,
    CheckedReceipt,
    DeliveryUnknown,
    MessageRef,
    Outgoing,
    ToolProgress,
    replace,
)

pytestmark = [pytest.mark.slow, pytest.mark.needs("emulate")]
STREAMS = ["chat.startStream", "chat.appendStream", "chat.stopStream"]


def draft(here: Stage, text: str, key: str = "k1") -> Outgoing:
    return replace(here.message(text, key), draft=True)


async def asks(slack: SlackServer, desk: Desk, ann: Person, team: str) -> Address:
    """Where an answer stands to what Ann asks in a channel."""
    await (await ann.says("@zeroclaw go", channel=team)).confirmed.wait()
    return desk.stored[-1].address


@asynccontextmanager
async def asked(
    settings: Mapping[str, object] | None = None,
) -> AsyncGenerator[tuple[SlackServer, Stage, str, Address]]:
    """A channel in which Ann has asked something, and where its answer stands."""
    desk, wanted = Desk(), SETTINGS.model_copy(update=settings)
    async with SlackServer() as slack, stage(slack, desk.admit, settings=wanted) as here:
        ann = await slack.person()
        team = await slack.channel(ann)
        yield slack, here, team, await asks(slack, desk, ann, team)


def written(slack: SlackServer) -> list[str]:
    """The calls that wrote into a chat, in order."""
    return [one for one in slack.calls if one.startswith("chat.")]


def texts(slack: SlackServer, place: str) -> list[str]:
    return [standing(one, slack).text for one in slack.bot_messages.get(place, {}).values()]


async def test_an_answer_grows_as_a_stream_and_ends_as_it_is_with_its_key() -> None:
    async with asked() as (slack, here, team, place):
        ref = await here.channel.send(place, draft(here, "Hel"))
        await here.channel.edit(ref, draft(here, "Hello, <!channel>"))
        await here.channel.edit(ref, draft(here, "Hello, <!channel>"))
        receipt = CheckedReceipt(
            token="t", tool="shell", summary="ls", outcome="ok", at=here.clock.now()
        )
        final = replace(here.message("Hello, <!channel>, Ann."), receipts=(receipt,))
        await here.channel.edit(ref, final)
        assert written(slack) == STREAMS
        (shown,) = slack.bot_messages[team].values()
        assert standing(shown).text == "Hello, &lt;!channel>, Ann."
        assert len(standing(shown).receipts) == 1
        found = await looked(here.channel, place, final, str(place.thread))
        assert found.ref == ref


async def test_a_text_that_is_another_one_ends_the_stream_and_is_an_edit() -> None:
    async with asked() as (slack, here, team, place):
        ref = await here.channel.send(place, draft(here, "one"))
        await here.channel.edit(ref, draft(here, "two"))
        await here.channel.edit(ref, draft(here, "two and three"))
        await here.channel.edit(ref, replace(here.message("*4*"), plain=True))
        assert written(slack) == [STREAMS[0], STREAMS[2], *["chat.update"] * 3]
        assert texts(slack, team) == ["4"]


async def test_a_plain_end_of_a_stream_is_shown_letter_by_letter() -> None:
    """What the last look at a text found goes out without its markup."""
    async with asked() as (slack, here, team, place):
        ref = await here.channel.send(place, draft(here, "one"))
        await here.channel.edit(ref, replace(here.message("one `t`"), plain=True))
        (shown,) = slack.bot_messages[team].values()
        assert [one["type"] for one in shown["blocks"]] == ["rich_text"]  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]


@pytest.mark.parametrize("wait_s", [IDLE_S, LIFE_S])
async def test_a_stream_is_ended_before_slack_ends_it(wait_s: float) -> None:
    """Slack marks as failed what it ends by itself: after half a minute of silence, or five minutes."""
    async with asked() as (slack, here, team, place):
        ref = await here.channel.send(place, draft(here, "."))
        text = "."
        for _ in range(int((wait_s - 1) // (IDLE_S - 1)) if wait_s > IDLE_S else 0):
            await here.clock.advance(IDLE_S - 1)
            text += "."
            await here.channel.edit(ref, draft(here, text))
            assert slack.streams
        await here.clock.advance(IDLE_S + CHECK_S)
        await slack.until(lambda: not slack.streams)
        await here.channel.edit(ref, here.message("whole"))
        assert texts(slack, team) == ["whole"]
        assert slack.calls[-1] == "chat.update"


async def test_a_stream_that_slack_has_ended_goes_on_as_edits() -> None:
    async with asked() as (slack, here, team, place):
        ref = await here.channel.send(place, draft(here, "one"))
        slack.end_streams()
        await here.channel.edit(ref, draft(here, "one two"))
        last = await here.channel.send(place, draft(here, "and", "k2"))
        slack.end_streams()
        await here.channel.edit(last, here.message("and so on", "k2"))
        assert texts(slack, team) == ["one two", "and so on"]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(body={"ok": False, "error": "channel_type_not_supported"}),
        Fault(body={"ok": False, "error": "unknown_method"}),
        Fault(body={"ok": False, "error": "missing_scope", "needed": "assistant:write"}),
    ],
)
async def test_where_a_workspace_lets_nothing_be_streamed_a_message_grows(fault: Fault) -> None:
    async with asked() as (slack, here, team, place):
        slack.will("chat.startStream", fault)
        ref = await here.channel.send(place, draft(here, "one"))
        await here.channel.edit(ref, draft(here, "one two"))
        await here.channel.send(place, draft(here, "more", "k2"))
        assert written(slack) == [STREAMS[0], "chat.postMessage", "chat.update", "chat.postMessage"]
        assert texts(slack, team) == ["one two", "more"]


async def test_a_thread_that_takes_no_stream_takes_none_from_the_others() -> None:
    """Slack may refuse one for its person or its thread alone."""
    desk = Desk()
    async with SlackServer() as slack, stage(slack, desk.admit) as here:
        ann = await slack.person()
        team = await slack.channel(ann)
        refused, place = await asks(slack, desk, ann, team), await asks(slack, desk, ann, team)
        slack.will("chat.startStream", Fault(body={"ok": False, "error": "thread_not_found"}))
        await here.channel.send(refused, draft(here, "one"))
        await here.channel.send(refused, draft(here, "two", "k2"))
        await here.channel.send(place, draft(here, "three", "k3"))
        assert written(slack) == [STREAMS[0], *["chat.postMessage"] * 2, STREAMS[0]]


async def test_streams_stand_in_threads_and_for_somebody_alone() -> None:
    async with asked() as (slack, here, _, place):
        direct = here.channel.direct_address((await slack.person()).id)
        assert direct is not None
        await here.channel.send(direct, draft(here, "no thread"))
        await here.channel.send(replace(place, thread="1700000000.000009"), draft(here, "for whom"))
        await here.channel.send(replace(direct, thread="1700000000.000008"), draft(here, "yes"))
        assert written(slack) == ["chat.postMessage", "chat.postMessage", "chat.startStream"]


async def test_whoever_wants_edits_has_no_streams() -> None:
    async with asked({"drafts": "edited"}) as (slack, here, _, place):
        await here.channel.send(place, draft(here, "one"))
        assert written(slack) == ["chat.postMessage"]


async def test_more_than_slack_lets_begin_in_a_minute_are_messages() -> None:
    async with asked({"limits": "published"}) as (slack, here, _, place):
        for number in range(MAX_STARTS + 1):
            await here.channel.send(place, draft(here, "one", f"k{number}"))
        assert written(slack) == [*[STREAMS[0]] * MAX_STARTS, "chat.postMessage"]
        slack.will("chat.startStream", Fault(status=429, headers={"Retry-After": "30"}))
        await here.clock.advance(60)
        await slack.until(lambda: not slack.streams)
        await here.channel.send(place, draft(here, "one", "k98"))
        assert written(slack)[-2:] == [STREAMS[0], "chat.postMessage"]


Deed = Callable[[Stage, MessageRef], Awaitable[object]]


async def _edits(here: Stage, ref: MessageRef) -> None:
    await here.channel.edit(ref, here.message("two"))


async def _deletes(here: Stage, ref: MessageRef) -> None:
    await here.channel.delete(ref)


@pytest.mark.parametrize(("deed", "left"), [(_edits, ["two"]), (_deletes, [])])
async def test_a_stream_that_a_kill_left_open_is_ended_before_it_is_changed(
    deed: Deed, left: list[str]
) -> None:
    """Slack lets nobody edit or delete what is being streamed."""
    desk = Desk()
    async with SlackServer() as slack:
        ann = await slack.person()
        team = await slack.channel(ann)
        async with stage(slack, desk.admit) as before:
            place = await asks(slack, desk, ann, team)
            ref = await before.channel.send(place, draft(before, "one"))
            open_ones = dict(slack.streams)
        slack.streams.update(open_ones)  # a kill ends nothing
        async with stage(slack, desk.admit) as here:
            await deed(here, ref)
            assert texts(slack, team) == left


async def test_streams_are_ended_when_the_bot_leaves() -> None:
    desk = Desk()
    async with SlackServer() as slack:
        ann = await slack.person()
        team = await slack.channel(ann)
        async with stage(slack, desk.admit) as here:
            await here.channel.send(await asks(slack, desk, ann, team), draft(here, "one"))
            await here.channel.aclose()
        assert not slack.streams


async def test_a_stream_whose_answer_was_lost_is_found_and_becomes_the_answer() -> None:
    """A stream carries no key before it ends; nothing else of the bot's in a thread is without one."""
    async with asked() as (slack, here, team, place):
        mark = here.channel.mark(place)
        slack.will("chat.startStream", Fault(is_lost=True))
        with pytest.raises(DeliveryUnknown):
            await here.channel.send(place, draft(here, "one"))
        found = await looked(here.channel, place, here.message("another"), mark)
        assert found.ref is not None
        assert texts(slack, team) == ["another"]
        apart = frozenset({found.ref.message})
        again = await looked(here.channel, place, here.message("more", "k2"), mark, apart=apart)
        assert again.ref is None


async def test_the_beginning_of_a_thread_is_not_taken_for_a_lost_stream() -> None:
    """An assistant's thread begins with a message of the bot's that has no key, as streams have none."""
    async with SlackServer() as slack, stage(slack, Desk().admit) as here:
        ann = await slack.person()
        direct = here.channel.direct_address(ann.id)
        assert direct is not None
        begun = await slack.upstream("chat.postMessage", BOT, channel=ann.direct, text="New chat")
        place = replace(direct, thread=str(begun["ts"]))
        found = await looked(here.channel, place, here.message("hello"), "1700000000.000001")
        assert found.ref is None
        assert "chat.update" not in slack.calls


@pytest.mark.parametrize("method", ["chat.appendStream", "chat.stopStream"])
async def test_what_of_a_stream_may_have_arrived_is_written_anew(method: str) -> None:
    async with asked() as (slack, here, team, place):
        ref = await here.channel.send(place, draft(here, "one"))
        slack.will(method, Fault(is_lost=True))
        grown = here.message("one two")
        with pytest.raises(DeliveryUnknown):
            await here.channel.edit(ref, replace(grown, draft=method == "chat.appendStream"))
        await here.channel.edit(ref, grown)
        assert texts(slack, team) == ["one two"]


WORKS = ToolProgress(key="1", tool="shell", state="running")


async def test_what_a_tool_does_stands_in_the_answer_while_it_grows() -> None:
    """A task is told of once, ends as its call does, and takes no word from the text."""
    async with asked() as (slack, here, team, place):
        ref = await here.channel.send(place, draft(here, "one"))
        for state in ("running", "running", "failed"):
            await here.channel.typing(place, (replace(WORKS, state=state),))
        await here.channel.edit(ref, here.message("one two"))
        assert written(slack) == [STREAMS[0], STREAMS[1], STREAMS[1], STREAMS[2]]
        assert slack.tasks == [("shell", "in_progress"), ("shell", "error")]
        assert (texts(slack, team), slack.statuses) == (["one two"], {})


async def test_a_long_call_keeps_its_stream_open_and_ends_with_it() -> None:
    """Nobody is left with a tool that seems to run after the answer has ended."""
    async with asked() as (slack, here, _, place):
        ref = await here.channel.send(place, draft(here, "one"))
        for _ in range(int(2 * IDLE_S / REPEAT_S)):
            await here.channel.typing(place, (WORKS,))
            await here.clock.advance(REPEAT_S)
        assert slack.streams
        await here.channel.edit(ref, here.message("one"))
        assert slack.tasks == [*[("shell", "in_progress")] * 4, ("shell", "error")]


async def test_a_task_that_is_refused_takes_nothing_from_the_answer() -> None:
    async with asked() as (slack, here, team, place):
        ref = await here.channel.send(place, draft(here, "one"))
        slack.will("chat.appendStream", Fault(body={"ok": False, "error": "invalid_chunks"}))
        with pytest.raises(ChannelRejected):
            await here.channel.typing(place, (WORKS,))
        await here.channel.edit(ref, draft(here, "one two"))
        await here.channel.edit(ref, here.message("one two three"))
        assert (slack.tasks, texts(slack, team)) == ([], ["one two three"])
        assert slack.calls[-1] == STREAMS[2]


async def test_where_nothing_is_streamed_tools_are_named_beside_the_answer() -> None:
    async with asked({"drafts": "edited"}) as (slack, here, team, place):
        at = (team, str(place.thread))
        await here.channel.send(place, draft(here, "one"))
        await here.channel.typing(place, (WORKS, replace(WORKS, key="2", tool="fetch")))
        assert slack.statuses == {at: "shell, fetch…"}
        await here.channel.typing(place, (replace(WORKS, state="ok"),))
        assert slack.statuses == {at: ""}
