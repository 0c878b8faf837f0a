"""A growing answer on Slack: a stream where Slack allows one, else a message that is edited."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import pytest

from channels._remote.http import READ_S
from channels.slack.emulator.server import BOT, Fault, Person, SlackServer
from channels.slack.streams import CHECK_S, IDLE_S, LIFE_S, MAX_STARTS, REPEAT_S
from tests.contract.channel_suite import Desk
from tests.contract.channel_words import lookup_to_the_end
from tests.contract.slack_harness import SETTINGS, standing
from tests.unit.channels.slack.test_adapter import (
    RunningBot,
    bot_for_ann,
    confirmed,
    running,
    team_of_ann,
    workspace,
)
from zeroclaw import (
    Address,
    ChannelRejected,
    CheckedReceipt,
    Command,
    DeliveryUnknown,
    MessageRef,
    Outgoing,
    ToolProgress,
    replace,
)

pytestmark = [pytest.mark.slow, pytest.mark.needs("emulate")]
STREAMS = ["chat.startStream", "chat.appendStream", "chat.stopStream"]


def draft(bot: RunningBot, text: str, key: str = "k1") -> Outgoing:
    return replace(bot.message(text, key), draft=True)


async def ask(desk: Desk, ann: Person, team: str) -> Address:
    """Let Ann ask something in a channel; return the address of its answer."""
    await confirmed(ann.says("@zeroclaw go", channel=team))
    return desk.stored[-1].address


@asynccontextmanager
async def with_question(
    settings: Mapping[str, object] | None = None,
) -> AsyncGenerator[tuple[SlackServer, RunningBot, str, Address]]:
    """A channel in which Ann has asked something, and the address of its answer."""
    chosen = SETTINGS.model_copy(update=settings)
    async with (
        workspace() as (slack, desk, ann, team),
        running(slack, desk.admit, settings=chosen) as bot,
    ):
        yield slack, bot, team, await ask(desk, ann, team)


def writes(slack: SlackServer) -> list[str]:
    """The calls that wrote into a chat, in order."""
    return [method for method in slack.calls if method.startswith("chat.")]


def texts(slack: SlackServer, channel: str) -> list[str]:
    return [
        standing(message, slack).text for message in slack.bot_messages.get(channel, {}).values()
    ]


async def test_an_answer_grows_as_a_stream_and_ends_with_its_key() -> None:
    async with with_question() as (slack, bot, team, to):
        ref = await bot.channel.send(to, draft(bot, "Hel"))
        await bot.channel.edit(ref, draft(bot, "Hello, <!channel>"))
        await bot.channel.edit(ref, draft(bot, "Hello, <!channel>"))
        receipt = CheckedReceipt(
            token="t", tool="shell", summary="ls", outcome="ok", at=bot.clock.now()
        )
        final = replace(bot.message("Hello, <!channel>, Ann."), receipts=(receipt,))
        await bot.channel.edit(ref, final)
        assert writes(slack) == STREAMS
        (message,) = slack.bot_messages[team].values()
        assert standing(message).text == "Hello, &lt;!channel>, Ann."
        assert len(standing(message).receipts) == 1
        found = await lookup_to_the_end(bot.channel, to, final, str(to.thread))
        assert found.ref == ref


async def test_a_text_that_does_not_extend_the_stream_ends_it_and_is_an_edit() -> None:
    async with with_question() as (slack, bot, team, to):
        ref = await bot.channel.send(to, draft(bot, "one"))
        await bot.channel.edit(ref, draft(bot, "two"))
        await bot.channel.edit(ref, draft(bot, "two and three"))
        await bot.channel.edit(ref, replace(bot.message("*4*"), plain=True))
        assert writes(slack) == [STREAMS[0], STREAMS[2], *["chat.update"] * 3]
        assert texts(slack, team) == ["4"]


async def test_a_plain_end_of_a_stream_is_shown_literally() -> None:
    """The final screening may send a text without its markup."""
    async with with_question() as (slack, bot, team, to):
        ref = await bot.channel.send(to, draft(bot, "one"))
        await bot.channel.edit(ref, replace(bot.message("one `t`"), plain=True))
        (message,) = slack.bot_messages[team].values()
        assert [block["type"] for block in message["blocks"]] == ["rich_text"]  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]


@pytest.mark.parametrize("wait_s", [IDLE_S, LIFE_S])
async def test_a_stream_is_ended_before_slack_ends_it(wait_s: float) -> None:
    """Slack ends it as failed after half a minute of silence, or after five minutes."""
    async with with_question() as (slack, bot, team, to):
        ref = await bot.channel.send(to, draft(bot, "."))
        text = "."
        for _ in range(int((wait_s - 1) // (IDLE_S - 1)) if wait_s > IDLE_S else 0):
            await bot.clock.advance(IDLE_S - 1)
            text += "."
            await bot.channel.edit(ref, draft(bot, text))
            assert slack.streams
        await bot.clock.advance(IDLE_S + CHECK_S)
        await slack.until(lambda: not slack.streams)
        await bot.channel.edit(ref, bot.message("whole"))
        assert texts(slack, team) == ["whole"]
        assert slack.calls[-1] == "chat.update"


async def test_a_stream_that_slack_has_ended_continues_as_edits() -> None:
    async with with_question() as (slack, bot, team, to):
        ref = await bot.channel.send(to, draft(bot, "one"))
        slack.end_streams()
        await bot.channel.edit(ref, draft(bot, "one two"))
        last = await bot.channel.send(to, draft(bot, "and", "k2"))
        slack.end_streams()
        await bot.channel.edit(last, bot.message("and so on", "k2"))
        assert texts(slack, team) == ["one two", "and so on"]


@pytest.mark.parametrize(
    "fault", [Fault(status=429, headers={"Retry-After": "30"}), Fault(hangs=True)]
)
async def test_a_stream_that_can_not_be_ended_delays_no_edit(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slack refused to extend it, and has a tighter limit on ends than on edits (P9)."""
    monkeypatch.setattr("channels.slack.streams.CLOSE_S", 0.1)
    async with with_question() as (slack, bot, team, to):
        ref = await bot.channel.send(to, draft(bot, "one"))
        slack.end_streams()
        slack.will("chat.stopStream", fault)
        async with asyncio.timeout(READ_S / 2):
            await bot.channel.edit(ref, draft(bot, "one two"))
        assert writes(slack)[-2:] == ["chat.stopStream", "chat.update"]
        assert texts(slack, team) == ["one two"]


async def test_slacks_own_stop_button_stops_the_turn_of_its_thread() -> None:
    """Slack shows it while the bot works, and stops the stream, but leaves it open (P1)."""
    async with team_of_ann() as (slack, bot, desk, ann, team):
        to = await ask(desk, ann, team)
        ref = await bot.channel.send(to, draft(bot, "Hel"))
        await confirmed(ann.stops(team, str(to.thread)))
        stop = desk.stored[-1]
        assert (stop.body, stop.address, stop.sender.id) == (Command(name="stop"), to, ann.id)
        await bot.channel.edit(ref, bot.message("Hel (stopped)"))
        assert writes(slack)[-3:] == ["chat.stopStream", "chat.stopStream", "chat.update"]
        assert texts(slack, team) == ["Hel (stopped)"]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(body={"ok": False, "error": "channel_type_not_supported"}),
        Fault(body={"ok": False, "error": "unknown_method"}),
        Fault(body={"ok": False, "error": "missing_scope", "needed": "assistant:write"}),
    ],
)
async def test_a_message_grows_by_edits_if_the_workspace_allows_no_streams(fault: Fault) -> None:
    async with with_question() as (slack, bot, team, to):
        slack.will("chat.startStream", fault)
        ref = await bot.channel.send(to, draft(bot, "one"))
        await bot.channel.edit(ref, draft(bot, "one two"))
        await bot.channel.send(to, draft(bot, "more", "k2"))
        assert writes(slack) == [STREAMS[0], "chat.postMessage", "chat.update", "chat.postMessage"]
        assert texts(slack, team) == ["one two", "more"]


async def test_a_thread_without_streams_does_not_affect_other_threads() -> None:
    """Slack may refuse a stream only because of its person or its thread."""
    async with team_of_ann() as (slack, bot, desk, ann, team):
        refused, to = await ask(desk, ann, team), await ask(desk, ann, team)
        slack.will("chat.startStream", Fault(body={"ok": False, "error": "thread_not_found"}))
        await bot.channel.send(refused, draft(bot, "one"))
        await bot.channel.send(refused, draft(bot, "two", "k2"))
        await bot.channel.send(to, draft(bot, "three", "k3"))
        assert writes(slack) == [STREAMS[0], *["chat.postMessage"] * 2, STREAMS[0]]


async def test_streams_need_a_thread_and_a_recipient() -> None:
    async with with_question() as (slack, bot, _, to):
        direct = bot.channel.direct_address((await slack.person()).id)
        assert direct is not None
        await bot.channel.send(direct, draft(bot, "no thread"))
        await bot.channel.send(replace(to, thread="1700000000.000009"), draft(bot, "for whom"))
        await bot.channel.send(replace(direct, thread="1700000000.000008"), draft(bot, "yes"))
        assert writes(slack) == ["chat.postMessage", "chat.postMessage", "chat.startStream"]


async def test_the_setting_edited_uses_no_streams() -> None:
    async with with_question({"drafts": "edited"}) as (slack, bot, _, to):
        await bot.channel.send(to, draft(bot, "one"))
        assert writes(slack) == ["chat.postMessage"]


async def test_answers_beyond_the_limit_on_new_streams_are_messages() -> None:
    async with with_question({"limits": "published"}) as (slack, bot, _, to):
        for number in range(MAX_STARTS + 1):
            await bot.channel.send(to, draft(bot, "one", f"k{number}"))
        assert writes(slack) == [*[STREAMS[0]] * MAX_STARTS, "chat.postMessage"]
        slack.will("chat.startStream", Fault(status=429, headers={"Retry-After": "30"}))
        await bot.clock.advance(60)
        await slack.until(lambda: not slack.streams)
        await bot.channel.send(to, draft(bot, "one", "k98"))
        assert writes(slack)[-2:] == [STREAMS[0], "chat.postMessage"]


Change = Callable[[RunningBot, MessageRef], Awaitable[object]]


async def _edits(bot: RunningBot, ref: MessageRef) -> None:
    await bot.channel.edit(ref, bot.message("two"))


async def _deletes(bot: RunningBot, ref: MessageRef) -> None:
    await bot.channel.delete(ref)


@pytest.mark.parametrize(("change", "remaining"), [(_edits, ["two"]), (_deletes, [])])
async def test_a_stream_that_a_kill_left_open_is_ended_before_a_change(
    change: Change, remaining: list[str]
) -> None:
    """Slack refuses to edit or delete a message that is being streamed."""
    async with workspace() as (slack, desk, ann, team):
        async with running(slack, desk.admit) as before:
            to = await ask(desk, ann, team)
            ref = await before.channel.send(to, draft(before, "one"))
            streams = dict(slack.streams)
        slack.streams.update(streams)  # a kill ends nothing
        async with running(slack, desk.admit) as bot:
            await change(bot, ref)
            assert texts(slack, team) == remaining


async def test_closing_the_channel_ends_its_streams() -> None:
    async with workspace() as (slack, desk, ann, team):
        async with running(slack, desk.admit) as bot:
            await bot.channel.send(await ask(desk, ann, team), draft(bot, "one"))
            await bot.channel.aclose()
        assert not slack.streams


async def test_a_stream_that_can_not_be_ended_leaves_no_other_open() -> None:
    """Slack marks a stream that it has to end itself as failed."""
    async with with_question() as (slack, bot, _, to):
        for key in ("k1", "k2", "k3"):
            await bot.channel.send(to, draft(bot, "Hel", key))
        slack.will("chat.stopStream", Fault(status=503))
        await bot.channel.aclose()
        assert slack.calls.count("chat.stopStream") == 3


async def test_a_stream_whose_answer_was_lost_is_found_and_becomes_the_answer() -> None:
    """A stream has no key before it ends; all other messages of the bot's in a thread have one."""
    async with with_question() as (slack, bot, team, to):
        mark = bot.channel.mark(to)
        slack.will("chat.startStream", Fault(is_lost=True))
        with pytest.raises(DeliveryUnknown):
            await bot.channel.send(to, draft(bot, "one"))
        found = await lookup_to_the_end(bot.channel, to, bot.message("another"), mark)
        assert found.ref is not None
        assert texts(slack, team) == ["another"]
        apart = frozenset({found.ref.message})
        again = await lookup_to_the_end(
            bot.channel, to, bot.message("more", "k2"), mark, apart=apart
        )
        assert again.ref is None


async def test_the_root_of_a_thread_is_not_taken_for_a_lost_stream() -> None:
    """An assistant's thread begins with a message of the bot's without a key, like a stream."""
    async with bot_for_ann() as (slack, bot, ann, direct):
        root = await slack.upstream("chat.postMessage", BOT, channel=ann.direct, text="New chat")
        to = replace(direct, thread=str(root["ts"]))
        found = await lookup_to_the_end(bot.channel, to, bot.message("hello"), "1700000000.000001")
        assert found.ref is None
        assert "chat.update" not in slack.calls


@pytest.mark.parametrize("method", ["chat.appendStream", "chat.stopStream"])
async def test_a_stream_with_an_unknown_state_is_edited_as_a_whole(method: str) -> None:
    async with with_question() as (slack, bot, team, to):
        ref = await bot.channel.send(to, draft(bot, "one"))
        slack.will(method, Fault(is_lost=True))
        grown = bot.message("one two")
        with pytest.raises(DeliveryUnknown):
            await bot.channel.edit(ref, replace(grown, draft=method == "chat.appendStream"))
        await bot.channel.edit(ref, grown)
        assert texts(slack, team) == ["one two"]


RUNNING = ToolProgress(key="1", tool="shell", state="running")


async def test_tool_progress_is_shown_in_a_growing_answer() -> None:
    """A task is sent once per state, ends like its call, and does not change the text."""
    async with with_question() as (slack, bot, team, to):
        ref = await bot.channel.send(to, draft(bot, "one"))
        for state in ("running", "running", "failed"):
            await bot.channel.typing(to, (replace(RUNNING, state=state),))
        await bot.channel.edit(ref, bot.message("one two"))
        assert writes(slack) == [STREAMS[0], STREAMS[1], STREAMS[1], STREAMS[2]]
        assert slack.tasks == [("shell", "in_progress"), ("shell", "error")]
        assert (texts(slack, team), slack.statuses) == (["one two"], {})


async def test_a_long_call_keeps_its_stream_open_and_ends_with_it() -> None:
    """No tool seems to run after the answer has ended."""
    async with with_question() as (slack, bot, _, to):
        ref = await bot.channel.send(to, draft(bot, "one"))
        for _ in range(int(2 * IDLE_S / REPEAT_S)):
            await bot.channel.typing(to, (RUNNING,))
            await bot.clock.advance(REPEAT_S)
        assert slack.streams
        await bot.channel.edit(ref, bot.message("one"))
        assert slack.tasks == [*[("shell", "in_progress")] * 4, ("shell", "error")]


async def test_a_task_ends_in_the_stream_where_it_began() -> None:
    """Below a card an answer goes on in another message; its call must not look failed above it."""
    async with with_question() as (slack, bot, _, to):
        above = await bot.channel.send(to, draft(bot, "one"))
        await bot.channel.typing(to, (RUNNING,))
        below = await bot.channel.send(to, draft(bot, "two", "k2"))
        await bot.channel.typing(to, (replace(RUNNING, state="ok"),))
        for ref, text in ((above, "one"), (below, "two")):
            await bot.channel.edit(ref, bot.message(text))
        assert slack.tasks == [("shell", "in_progress"), ("shell", "complete")]


async def test_a_refused_task_does_not_affect_the_answer() -> None:
    async with with_question() as (slack, bot, team, to):
        ref = await bot.channel.send(to, draft(bot, "one"))
        slack.will("chat.appendStream", Fault(body={"ok": False, "error": "invalid_chunks"}))
        with pytest.raises(ChannelRejected):
            await bot.channel.typing(to, (RUNNING,))
        await bot.channel.edit(ref, draft(bot, "one two"))
        await bot.channel.edit(ref, bot.message("one two three"))
        assert (slack.tasks, texts(slack, team)) == ([], ["one two three"])
        assert slack.calls[-1] == STREAMS[2]


async def test_without_streams_the_status_names_the_tools() -> None:
    async with with_question({"drafts": "edited"}) as (slack, bot, team, to):
        key = (team, str(to.thread))
        await bot.channel.send(to, draft(bot, "one"))
        await bot.channel.typing(to, (RUNNING, replace(RUNNING, key="2", tool="fetch")))
        assert slack.statuses == {key: "shell, fetch…"}
        await bot.channel.typing(to, (replace(RUNNING, state="ok"),))
        assert slack.statuses == {key: ""}
