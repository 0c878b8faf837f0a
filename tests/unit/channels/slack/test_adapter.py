"""Slack's adapter against a real Web API and our own Socket Mode: receiving and sending."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

import pytest

from channels._remote import lanes
from channels._remote.reconnection import STEADY_S, WAITS_S
from channels.slack import SlackSettings, adapter
from channels.slack.adapter import MENTION_WAIT_S, SlackChannel
from channels.slack.calls import CHECK_S, MAX_CHECKS, check
from channels.slack.decode import MAX_THREADS, NOT_READ
from channels.slack.emulator.server import APP, BOT, Fault, Json, Person, SlackServer, UserAction
from channels.slack.render import link_in, text_block
from tests.contract.channel_suite import Desk, Standing, noting, receiving
from tests.contract.channel_words import (
    APPROVED,
    CARD,
    FIRST,
    call,
    lookup_to_the_end,
    outgoing_file,
)
from tests.contract.slack_harness import SETTINGS, slack_context, standing
from tests.fakes.bare_context import admits_everybody, no_log, no_transcript
from tests.fakes.manual_clock import ManualClock
from zeroclaw import (
    Accepted,
    Address,
    Admission,
    Admit,
    Answered,
    Attachment,
    Channel,
    ChannelRejected,
    ChannelUnauthorized,
    ChannelUnavailable,
    Command,
    Deleted,
    DeliveryUnknown,
    Edited,
    Envelope,
    Ignored,
    Localized,
    Log,
    Membership,
    Moved,
    NotSupported,
    Outcome,
    Outgoing,
    RateLimited,
    Rendered,
    Said,
    TranscriptItem,
    replace,
)
from zeroclaw.errors import StoreUnusable

Transcript = Callable[[Address, str], Awaitable[tuple[TranscriptItem, ...]]]
pytestmark = [pytest.mark.slow, pytest.mark.needs("emulate")]


@dataclass(frozen=True, kw_only=True)
class RunningBot:
    slack: SlackServer
    channel: Channel
    clock: ManualClock

    def message(self, text: str, key: str = "k1") -> Outgoing:
        return Outgoing(rendered=self.channel.render(text), key=key)


@asynccontextmanager
async def running(
    slack: SlackServer,
    admit: Admit,
    *,
    settings: SlackSettings = SETTINGS,
    positions: Mapping[str, str] | None = None,
    transcript: Transcript = no_transcript,
    log: Log = no_log,
    admits: Callable[[str], bool] = admits_everybody,
) -> AsyncGenerator[RunningBot]:
    clock = ManualClock()
    context = slack_context(slack, clock, settings, positions=positions)
    channel = SlackChannel(replace(context, transcript=transcript, log=log, admits=admits))
    async with receiving(channel, admit):
        yield RunningBot(slack=slack, channel=channel, clock=clock)


async def confirmed(acting: Awaitable[UserAction]) -> UserAction:
    """Let a person act, and wait until the bot has confirmed the event to Slack."""
    action = await acting
    await action.confirmed.wait()
    return action


@asynccontextmanager
async def workspace() -> AsyncGenerator[tuple[SlackServer, Desk, Person, str]]:
    """A workspace, what the bot admits in it, Ann, and a channel of hers."""
    async with SlackServer() as slack:
        ann = await slack.person()
        yield slack, Desk(), ann, await slack.channel(ann)


@asynccontextmanager
async def team_of_ann() -> AsyncGenerator[tuple[SlackServer, RunningBot, Desk, Person, str]]:
    """A workspace in which the bot runs, what it admits, Ann, and a channel of hers."""
    async with workspace() as (slack, desk, ann, team), running(slack, desk.admit) as bot:
        yield slack, bot, desk, ann, team


async def read_back(slack: SlackServer, desk: Desk, number: int) -> None:
    """Start the bot again after a time in which Slack gave up sending it events."""
    slack.waiting.clear()
    async with running(slack, desk.admit, positions=desk.positions):
        await desk.holds(number)


@asynccontextmanager
async def bot_for_ann() -> AsyncGenerator[tuple[SlackServer, RunningBot, Person, Address]]:
    """A workspace of Ann and the bot, and the address of her direct chat."""
    async with SlackServer() as slack, running(slack, Desk().admit) as bot:
        ann = await slack.person()
        to = bot.channel.direct_address(ann.id)
        assert to is not None
        yield slack, bot, ann, to


def bodies(desk: Desk) -> list[object]:
    return [envelope.body for envelope in desk.stored]


# --- incoming events ---------------------------------------------------------------------------------


async def test_a_mention_starts_a_thread_and_later_messages_there_need_none() -> None:
    """Other messages of a channel are not for the bot; it answers in the thread."""
    async with team_of_ann() as (slack, bot, desk, ann, team):
        await confirmed(ann.says("lunch?", channel=team))
        first = await confirmed(ann.says("@zeroclaw hello", channel=team))
        await confirmed(ann.says("and this", channel=team, thread=first.ts))
        assert bodies(desk) == [Said(text="hello"), Said(text="and this")]
        address = desk.stored[0].address
        assert {envelope.address for envelope in desk.stored} == {address}
        await bot.channel.send(address, bot.message("Hi there."))
        (answer,) = await slack.from_bot(team, thread=first.ts)
        assert answer["thread_ts"] == first.ts


async def test_edits_and_deletions_arrive() -> None:
    async with team_of_ann() as (_, _, desk, ann, _):
        first = await ann.says("helo")
        await confirmed(ann.edits(first, "hello"))
        await confirmed(ann.deletes(first))
        assert bodies(desk)[1:] == [
            Edited(message=first.ts, said=Said(text="hello")),
            Deleted(message=first.ts),
        ]


async def test_a_mention_that_is_added_by_an_edit_is_admitted_once() -> None:
    """Slack also sends a mention event (github.com/slack-go/slack/pull/1256, read 2026-11)."""
    async with team_of_ann() as (slack, bot, desk, ann, team):
        first = await confirmed(ann.says("lunch?", channel=team))
        for text in (f"<@{slack.bot}> lunch?", f"<@{slack.bot}> dinner?"):
            edit = await ann.edits(first, text)
            edited = cast("Json", cast("Json", edit.payload["event"])["message"])
            mention = slack.event({**edited, "type": "app_mention"})
            await mention.dispatch()
            await confirmed(ann.says("aside", channel=team))
            await bot.clock.advance(MENTION_WAIT_S)
            await mention.confirmed.wait()
        assert bodies(desk) == [
            Edited(message=first.ts, said=Said(text="lunch?")),
            Said(text="lunch?"),
            Edited(message=first.ts, said=Said(text="dinner?")),
        ]


async def test_a_mention_that_is_added_late_is_written_then() -> None:
    """Its answer is not late, nor is it too old to be answered."""
    async with team_of_ann() as (slack, bot, desk, ann, team):
        for sent, edited in (("1700000000", "1700003600"), ("1600000000", "1700003600")):
            fields: Json = {"type": "app_mention", "channel": team, "user": ann.id}
            fields |= {"ts": f"{sent}.000001", "text": f"<@{slack.bot}> lunch?"}
            fields["edited"] = {"user": ann.id, "ts": f"{edited}.000000"}
            mention = slack.event(fields)
            await mention.dispatch()
            await bot.clock.advance(MENTION_WAIT_S)
            await mention.confirmed.wait()
        sent_at = [envelope.sent_at for envelope in desk.stored]
        assert [at and at.timestamp() for at in sent_at] == [1700003600, 1600000000]


async def test_a_mention_that_arrives_before_its_files_has_them() -> None:
    """The first of two events may lack them (NousResearch/hermes-agent#77141, 2026-08)."""
    async with team_of_ann() as (slack, bot, desk, ann, team):
        fields: Json = {"channel": team, "user": ann.id, "ts": "1700000000.000001"}
        fields["text"] = f"<@{slack.bot}> read this"
        mention = slack.event({**fields, "type": "app_mention"})
        await mention.dispatch()
        files = [{"id": "F01", "name": "a.pdf", "mimetype": "application/pdf", "size": 7}]
        message = slack.event(
            {**fields, "type": "message", "subtype": "file_share", "files": files}
        )
        await message.dispatch()
        await message.confirmed.wait()
        await bot.clock.advance(MENTION_WAIT_S)
        await mention.confirmed.wait()
        (envelope,) = desk.stored
        assert [file.reference for file in envelope.attachments] == ["F01"]


async def test_a_mention_in_a_long_thread_includes_the_newest_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Slack's answer begins with the oldest message."""
    monkeypatch.setattr(adapter, "PAGE", 4)
    async with team_of_ann() as (_, _, desk, ann, team):
        lunch = await ann.says("lunch?", channel=team)
        for text in "abcdefgh":
            await ann.says(text, channel=team, thread=lunch.ts)
        await confirmed(ann.says("@zeroclaw well?", channel=team, thread=lunch.ts))
    (body,) = bodies(desk)
    assert isinstance(body, Said)
    assert body.text.endswith("wrote:]\n> h\n\nwell?")


async def test_a_thread_is_read_only_for_admitted_people() -> None:
    """Slack allows few such calls a minute. The thread is read once its writer is admitted."""
    desk, admitted = Desk(), set[str]()

    async def admit(envelope: Envelope) -> Admission:
        return await desk.admit(envelope) if envelope.sender.id in admitted else Ignored()

    async with SlackServer() as slack, running(slack, admit, admits=admitted.__contains__):
        eve = await slack.person()
        team = await slack.channel(eve)
        first = await eve.says("lunch?", channel=team)
        for text in ("@zeroclaw a", "@zeroclaw b"):
            await confirmed(eve.says(text, channel=team, thread=first.ts))
        assert "conversations.replies" not in slack.calls
        admitted.add(eve.id)
        await confirmed(eve.says("@zeroclaw c", channel=team, thread=first.ts))
        (body,) = bodies(desk)
        assert isinstance(body, Said)
        assert body.text.startswith(f'[in reply to what "{eve.id}" wrote:]\n> lunch?')


@pytest.mark.parametrize(
    "fault", [Fault(body={"ok": False, "error": "missing_scope"}), Fault(hangs=True)]
)
async def test_a_mention_in_an_unreadable_thread_is_admitted_without_it(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if Slack does not answer, since it waits only three seconds for the confirmation."""
    monkeypatch.setattr(adapter, "THREAD_READ_S", 0.01)
    async with team_of_ann() as (slack, _, desk, ann, team):
        first = await ann.says("lunch?", channel=team)
        slack.will("conversations.replies", fault)
        await confirmed(ann.says("@zeroclaw well?", channel=team, thread=first.ts))
    assert bodies(desk) == [Said(text=f"{NOT_READ}well?", own="well?")]


async def test_deleting_an_answered_question_is_a_deletion() -> None:
    """Slack replaces a message with a thread by a tombstone, and sends that as a change."""
    async with team_of_ann() as (_, bot, desk, ann, team):
        first = await confirmed(ann.says("@zeroclaw hello", channel=team))
        await bot.channel.send(desk.stored[0].address, bot.message("Hi", "k"))
        await confirmed(ann.deletes(first))
        assert bodies(desk)[1:] == [Deleted(message=first.ts)]
        assert desk.stored[1].address == desk.stored[0].address
        assert desk.stored[1].sender == desk.stored[0].sender


async def test_a_slash_command_is_answered_only_to_its_sender() -> None:
    desk = Desk()

    async def admit(envelope: Envelope) -> Admission:
        await desk.admit(envelope)
        return Answered(text="`zeroclaw` is well")

    async with SlackServer() as slack, running(slack, admit):
        ann = await slack.person()
        await ann.commands("status")
        await slack.until(lambda: slack.ephemeral)
        assert bodies(desk) == [Command(name="status")]
        (answer,) = slack.ephemeral
        assert (answer["user"], answer["text"]) == (ann.id, "zeroclaw is well")


async def test_a_malformed_event_does_not_block_the_channel() -> None:
    """A malformed event is confirmed and skipped, so that Slack does not repeat it."""
    async with team_of_ann() as (slack, _, desk, ann, _):
        event = slack.event({"type": "message", "channel": 7, "user": ["x"], "ts": None})
        await event.dispatch()
        await event.confirmed.wait()
        await slack.send({"type": "events_api"})
        await slack.send({"envelope_id": 7})
        await confirmed(ann.says("hello"))
        assert bodies(desk) == [Said(text="hello")]


async def test_messages_written_while_the_connection_is_cut_are_read_back() -> None:
    async with team_of_ann() as (slack, _, desk, ann, _):
        await confirmed(ann.says("one"))
        await slack.drop()
        await ann.says("two")
        await desk.holds(2)
        await confirmed(ann.says("three"))
        assert bodies(desk) == [Said(text=text) for text in ("one", "two", "three")]


async def test_a_connection_that_slack_moves_reads_no_history() -> None:
    """Slack keeps the events in between for the next connection."""
    async with team_of_ann() as (slack, _, _, ann, _):
        await confirmed(ann.says("one"))
        slack.calls.clear()
        await slack.request_reconnect()
        await slack.until(lambda: "apps.connections.open" in slack.calls)
        assert "conversations.history" not in slack.calls


async def test_operators_are_warned_that_another_program_takes_events() -> None:
    """Once; not because of the bot's own cut connection, which Slack still counts for a while."""
    warnings: list[Localized] = []

    async def tell(warning: Localized) -> None:
        warnings.append(warning)

    async with SlackServer() as slack:
        clock = ManualClock()
        channel = SlackChannel(replace(slack_context(slack, clock, SETTINGS), tell=tell))
        async with receiving(channel, Desk().admit):
            ann = await slack.person()

            async def warnings_after(reconnect: Callable[[], Awaitable[None]]) -> int:
                connections = slack.connections + 1
                await clock.advance(STEADY_S)
                await reconnect()
                await slack.until(lambda: slack.connections == connections)
                await confirmed(ann.says("hello"))
                return len(warnings)

            slack.other_connections = 1
            assert await warnings_after(slack.drop) == 0
            assert await warnings_after(slack.request_reconnect) == 1
            assert await warnings_after(slack.request_reconnect) == 1
    assert "`slack`" in warnings[0].to("en")
    assert "2" in warnings[0].to("de")


async def test_a_move_that_fails_at_first_reads_the_histories() -> None:
    """Only a connection that follows the last one at once misses no event."""
    async with team_of_ann() as (slack, bot, desk, ann, _):
        await confirmed(ann.says("one"))
        slack.will("apps.connections.open", Fault(status=503), Fault(status=503))
        attempts = slack.calls.count("apps.connections.open")
        await bot.clock.advance(STEADY_S)
        await slack.request_reconnect()
        await slack.until(lambda: slack.calls.count("apps.connections.open") == attempts + 2)
        await ann.says("two")
        slack.waiting.clear()  # Slack has given up sending it
        await bot.clock.advance(WAITS_S[1])
        await desk.holds(2)
        assert bodies(desk) == [Said(text="one"), Said(text="two")]


async def test_replies_to_a_missed_mention_are_read_back_with_it() -> None:
    """A channel's history has no messages of the thread that the mention started."""
    async with workspace() as (slack, desk, ann, team):
        async with running(slack, desk.admit):
            await confirmed(ann.says("@zeroclaw hello", channel=team))
        lunch = await ann.says("lunch?", channel=team)
        await ann.says("pizza", channel=team, thread=lunch.ts)
        mention = await ann.says("@zeroclaw one thing", channel=team)
        await ann.says("and another", channel=team, thread=mention.ts)
        await read_back(slack, desk, 3)
        assert bodies(desk)[1:] == [Said(text="one thing"), Said(text="and another")]
        assert {envelope.address.thread for envelope in desk.stored[1:]} == {mention.ts}


async def test_an_old_thread_stays_the_bots_however_many_are_newer() -> None:
    """The position has only the newest threads; the store has the messages of older ones."""
    desk = Desk()

    async def transcript(address: Address, _after: str) -> tuple[TranscriptItem, ...]:
        stored = [envelope for envelope in desk.stored if envelope.address == address]
        at = ManualClock().now()
        item = TranscriptItem(cursor="1", kind="person", key="", ref="", text="hello", at=at)
        return (item,) * len(stored)

    async with SlackServer() as slack:
        ann = await slack.person()
        team = await slack.channel(ann)
        lunch = await ann.says("lunch?", channel=team)
        async with running(slack, desk.admit, transcript=transcript):
            first = await confirmed(ann.says("@zeroclaw hello", channel=team))
            for number in range(MAX_THREADS):
                await confirmed(ann.says(f"@zeroclaw {number}", channel=team))
            await confirmed(ann.says("and?", channel=team, thread=first.ts))
            await confirmed(ann.says("pizza", channel=team, thread=lunch.ts))
            for number in range(MAX_THREADS):
                await confirmed(ann.says(f"@zeroclaw {number}", channel=team))
        async with running(slack, desk.admit, positions=desk.positions, transcript=transcript):
            await confirmed(ann.says("and now?", channel=team, thread=first.ts))
            await confirmed(ann.says("pasta", channel=team, thread=lunch.ts))
        in_thread = [envelope for envelope in desk.stored if envelope.address.thread == first.ts]
        assert [envelope.body for envelope in in_thread] == [
            Said(text="hello"),
            Said(text="and?"),
            Said(text="and now?"),
        ]
        assert not [envelope for envelope in desk.stored if envelope.address.thread == lunch.ts]


async def test_a_message_waits_until_its_thread_is_known() -> None:
    """While the store can't be read, no message counts as one to the bot."""
    desk, asked = Desk(), asyncio.Event()

    async def transcript(_: Address, __: str) -> tuple[TranscriptItem, ...]:
        if not asked.is_set():
            asked.set()
            message = "the disk is full"
            raise StoreUnusable(message)
        return ()

    async with SlackServer() as slack, running(slack, desk.admit, transcript=transcript) as bot:
        ann = await slack.person()
        team = await slack.channel(ann)
        first = await ann.says("lunch?", channel=team)
        aside = await ann.says("at noon", channel=team, thread=first.ts)
        await asked.wait()
        await bot.clock.advance(lanes.AGAIN_S)
        await aside.confirmed.wait()
        assert bodies(desk) == []


async def test_a_mention_makes_other_peoples_thread_the_bots() -> None:
    """The message includes what was written above the mention."""
    async with team_of_ann() as (_, _, desk, ann, team):
        lunch = await ann.says("lunch?", channel=team)
        for text in ("pizza", "@zeroclaw pizza or pasta?", "so?"):
            await confirmed(ann.says(text, channel=team, thread=lunch.ts))
        above = "".join(
            f'[in reply to what "{ann.id}" wrote:]\n> {text}\n\n' for text in ("lunch?", "pizza")
        )
        mention = Said(text=f"{above}pizza or pasta?", own="pizza or pasta?")
        assert bodies(desk) == [mention, Said(text="so?")]


async def test_threads_are_read_back_after_a_restart() -> None:
    """A chat's history has no messages of its threads. S2-02."""
    async with workspace() as (slack, desk, ann, team):
        async with running(slack, desk.admit):
            first = await confirmed(ann.says("@zeroclaw hello", channel=team))
        await ann.says("are you there?", channel=team, thread=first.ts)
        async with running(slack, desk.admit, positions=desk.positions):
            await desk.holds(2)
        assert bodies(desk)[1] == Said(text="are you there?")
        assert desk.stored[1].address == desk.stored[0].address


async def test_a_direct_chat_in_which_only_a_button_was_pressed_is_read_back() -> None:
    """Such as the chat of an operator who answers cards there but writes no message. P1."""
    desk = Desk()
    async with SlackServer() as slack:
        olga = await slack.person()
        async with running(slack, desk.admit) as bot:
            to = bot.channel.direct_address(olga.id)
            assert to is not None
            card = await bot.channel.ask(to, CARD)
            await confirmed(olga.presses(card.message, "zc-once:1", FIRST))
        await olga.says("are you there?")
        await read_back(slack, desk, 2)
        assert bodies(desk)[1] == Said(text="are you there?")


async def test_a_token_that_is_revoked_for_a_while_loses_no_messages() -> None:
    """A read that was refused for the token is retried, as during a reinstallation. P1."""
    async with workspace() as (slack, desk, ann, _):
        async with running(slack, desk.admit):
            await confirmed(ann.says("hello"))
        await ann.says("are you there?")
        slack.waiting.clear()  # Slack has given up sending it
        refusal = Fault(body={"ok": False, "error": "token_revoked"})
        slack.will("conversations.history", refusal)
        async with running(slack, desk.admit, positions=desk.positions) as bot:
            await slack.until(lambda: "conversations.history" in slack.calls)
            while len(desk.stored) == 1:
                await bot.clock.advance(1)
        assert bodies(desk)[1] == Said(text="are you there?")


async def test_the_most_recently_active_chats_are_read_back_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Slack allows so few such calls that reading a workspace of many channels takes minutes."""
    monkeypatch.setattr(lanes, "MAX_READING", 1)
    desk = Desk()
    async with SlackServer() as slack:
        people = [await slack.person() for _ in range(3)]
        async with running(slack, desk.admit):
            for person in people:
                await confirmed(person.says("hello"))
        for name, person in zip(("oldest", "older", "newest"), people, strict=True):
            await person.says(f"I am the {name}.")
        slack.waiting.clear()  # Slack has given up sending it
        known = desk.positions
        positions = {
            f"@{person.id}": known[f"@{person.id}"] for person in (people[1], people[2], people[0])
        }
        async with running(slack, desk.admit, positions=positions):
            await desk.holds(6)
        names = ("newest", "older", "oldest")
        assert bodies(desk)[3:] == [Said(text=f"I am the {name}.") for name in names]


async def test_a_press_does_not_move_the_position_of_its_chat() -> None:
    """Messages from before the press may not be stored yet."""
    async with team_of_ann() as (_, bot, desk, ann, _):
        await confirmed(ann.says("hello"))
        positions = desk.positions
        card = await bot.channel.ask(desk.stored[0].address, CARD)
        await confirmed(ann.presses(card.message, "zc-once:1", FIRST))
        assert len(desk.stored) == 2
        assert desk.positions == positions


async def test_a_long_thread_is_read_back_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slack returns a thread in pages, oldest first, each with the root."""
    monkeypatch.setattr(adapter, "PAGE", 2)
    async with workspace() as (slack, desk, ann, team):
        async with running(slack, desk.admit):
            first = await confirmed(ann.says("@zeroclaw hello", channel=team))
        for number in range(5):
            await ann.says(str(number), channel=team, thread=first.ts)
        await read_back(slack, desk, 6)
        assert bodies(desk)[1:] == [Said(text=str(number)) for number in range(5)]


async def test_the_newest_messages_of_too_long_a_thread_are_read_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Slack returns the oldest first; the log says that older messages were left out."""
    monkeypatch.setattr(adapter, "PAGE", 2)
    monkeypatch.setattr(adapter, "MAX_MISSED", 3)
    desk, facts = Desk(), list[str]()
    async with SlackServer() as slack:
        ann = await slack.person()
        team = await slack.channel(ann)
        async with running(slack, desk.admit):
            first = await confirmed(ann.says("@zeroclaw hello", channel=team))
        for number in range(7):
            await ann.says(str(number), channel=team, thread=first.ts)
        slack.waiting.clear()  # Slack has given up sending them
        async with running(slack, desk.admit, positions=desk.positions, log=noting(facts)):
            await desk.holds(4)
        assert bodies(desk)[1:] == [Said(text=str(number)) for number in (4, 5, 6)]
        assert str(facts).count("history_cut") == 1


async def test_an_assistant_thread_that_began_while_the_bot_was_away_is_read_back() -> None:
    """There all messages are in threads, and the chat's history has only the roots."""
    async with workspace() as (slack, desk, ann, _):
        roots = [
            str(
                (await slack.upstream("chat.postMessage", BOT, channel=ann.direct, text="chat"))[
                    "ts"
                ]
            )
            for _ in range(2)
        ]
        async with running(slack, desk.admit):
            await confirmed(ann.says("one", thread=roots[0]))
        await ann.says("two", thread=roots[1])
        await read_back(slack, desk, 2)
        assert [envelope.address.thread for envelope in desk.stored] == roots
        assert bodies(desk)[1] == Said(text="two")


async def test_a_deleted_thread_does_not_hide_the_rest_of_its_chat() -> None:
    async with workspace() as (slack, desk, ann, team):
        async with running(slack, desk.admit):
            await confirmed(ann.says("@zeroclaw hello", channel=team))
        await ann.says("@zeroclaw and now?", channel=team)
        slack.waiting.clear()
        slack.will("conversations.replies", Fault(body={"ok": False, "error": "thread_not_found"}))
        async with running(slack, desk.admit, positions=desk.positions):
            await desk.holds(2)
        assert bodies(desk)[1] == Said(text="and now?")


async def test_a_channel_with_a_new_id_is_read_and_answered_there() -> None:
    """The old id is invalid from then on, and a turn may have begun there. P1."""
    async with workspace() as (slack, desk, ann, _):
        old, new = await slack.channel(ann), await slack.channel(ann)
        moved: Json = {"type": "channel_id_changed", "old_channel_id": old, "new_channel_id": new}
        async with running(slack, desk.admit) as bot:
            await confirmed(ann.says("@zeroclaw hello", channel=old))
            action = slack.event(moved)
            await action.dispatch()
            await action.confirmed.wait()
            address = desk.stored[0].address
            answer = await bot.channel.send(replace(address, thread=None), bot.message("Hi."))
            await bot.channel.edit(answer, bot.message("Hi there."))
        await ann.says("@zeroclaw and now?", channel=new)
        slack.waiting.clear()
        slack.will("conversations.replies", Fault(body={"ok": False, "error": "thread_not_found"}))
        async with running(slack, desk.admit, positions=desk.positions) as bot:
            await desk.holds(3)
            await bot.channel.send(replace(address, thread=None), bot.message("It is late.", "k2"))
        texts = [message["text"] for message in await slack.from_bot(new)]
        assert texts == ["Hi there.", "It is late."]
        assert await slack.from_bot(old) == []
    assert bodies(desk)[1:] == [
        Moved(to=replace(address, chat=new, thread=None)),
        Said(text="and now?"),
    ]
    assert slack.calls.count("conversations.history") == 1


async def test_an_answer_finds_a_channel_whose_id_changed_twice() -> None:
    """A turn or a card may be older than both changes. P1."""
    async with workspace() as (slack, desk, ann, _):
        first, second, third = [await slack.channel(ann) for _ in range(3)]
        async with running(slack, desk.admit) as bot:
            await confirmed(ann.says("@zeroclaw hello", channel=first))
            address = replace(desk.stored[0].address, thread=None)
            for old, new in ((first, second), (second, third)):
                ids: Json = {"old_channel_id": old, "new_channel_id": new}
                action = slack.event({"type": "channel_id_changed", **ids})
                await action.dispatch()
                await action.confirmed.wait()
            await bot.channel.send(address, bot.message("Hi."))
        async with running(slack, desk.admit, positions=desk.positions) as bot:
            await bot.channel.send(address, bot.message("It is late.", "k2"))
        texts = [message["text"] for message in await slack.from_bot(third)]
        assert texts == ["Hi.", "It is late."]


# --- threads with an assistant -----------------------------------------------------------------------

PROMPTS = ("What is new?", "What can you do, and " + "what not " * 20)


async def test_a_thread_with_the_assistant_has_prompts_and_a_title() -> None:
    """Slack shows prompts when a person opens the assistant; the first message is the title."""
    desk = Desk()
    settings = SETTINGS.model_copy(update={"prompts": PROMPTS})
    async with SlackServer() as slack, running(slack, desk.admit, settings=settings):
        ann = await slack.person()
        await confirmed(ann.opens("1700000000.000001"))
        await slack.until(lambda: slack.prompts)
        prompts = slack.prompts[ann.direct, "1700000000.000001"]
        assert [prompt["message"] for prompt in prompts] == list(PROMPTS)
        assert [len(str(prompt["title"])) <= 75 for prompt in prompts] == [True, True]
        await confirmed(ann.says("**Why**\nis it?", thread="1700000000.000001"))
        await confirmed(ann.says("And now?", thread="1700000000.000001"))
        await slack.until(lambda: slack.titles)
        assert slack.titles == {(ann.direct, "1700000000.000001"): "**Why** is it?"}
        assert slack.calls.count("assistant.threads.setTitle") == 1


async def test_opening_the_direct_chat_offers_prompts() -> None:
    """With a thread Slack would show none; and messages outside threads set no title."""
    desk = Desk()
    settings = SETTINGS.model_copy(update={"prompts": PROMPTS})
    async with SlackServer() as slack, running(slack, desk.admit, settings=settings):
        ann = await slack.person()
        await confirmed(ann.opens_chat("home"))
        assert not desk.stored
        await confirmed(ann.opens_chat())
        await slack.until(lambda: slack.prompts)
        assert list(slack.prompts) == [(ann.direct, "")]
        await confirmed(ann.says("hello"))
        assert bodies(desk) == [Membership(present=True), Said(text="hello")]
        assert {envelope.address.thread for envelope in desk.stored} == {None}
    assert "assistant.threads.setTitle" not in slack.calls


async def test_without_prompts_opening_the_direct_chat_is_ignored() -> None:
    async with team_of_ann() as (_, _, desk, ann, _):
        await confirmed(ann.opens_chat())
        assert not desk.stored


async def test_a_stranger_who_opens_the_assistant_is_shown_nothing() -> None:
    """Without prompts, neither is anyone else. P4."""
    to_stranger = await _assistant_calls(Ignored(), PROMPTS)
    without_prompts = await _assistant_calls(Accepted(), ())
    assert (to_stranger, without_prompts) == ([], [])


async def _assistant_calls(admission: Admission, prompts: tuple[str, ...]) -> list[str]:
    async def admit(_: Envelope) -> Admission:
        return admission

    settings = SETTINGS.model_copy(update={"prompts": prompts})
    async with SlackServer() as slack, running(slack, admit, settings=settings):
        ann = await slack.person()
        await confirmed(ann.opens("1700000000.000001"))
        await confirmed(ann.says("hello"))
        return [method for method in slack.calls if method.startswith("assistant")]


# --- refusals and failures ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(status=429, headers={"Retry-After": "7"}), RateLimited),
        (Fault(body={"ok": False, "error": "ratelimited"}), RateLimited),
        (Fault(body={"ok": False, "error": "channel_not_found"}), ChannelRejected),
        (Fault(body={"ok": False, "error": "missing_scope"}), ChannelRejected),
        (Fault(body={"ok": False, "error": "token_revoked"}), ChannelUnauthorized),
        (Fault(body={"ok": False, "error": "internal_error"}), DeliveryUnknown),
        (Fault(body={"ok": False}, status=503), DeliveryUnknown),
        (Fault(status=408), DeliveryUnknown),
        (Fault(status=403), ChannelUnavailable),
        (Fault(status=413), ChannelRejected),
        (Fault(is_lost=True), DeliveryUnknown),
        (Fault(body={"ok": True}), DeliveryUnknown),
    ],
    ids=[
        "429",
        "limited",
        "no chat",
        "scope",
        "token",
        "failed",
        "503",
        "408",
        "403",
        "413",
        "lost",
        "odd",
    ],
)
async def test_each_refusal_raises_an_error_for_who_acts_next(
    fault: Fault, error: type[Exception]
) -> None:
    """The error does not contain the text that was sent."""
    async with bot_for_ann() as (slack, bot, _, to):
        slack.will("chat.postMessage", fault)
        with pytest.raises(error) as raised:
            await bot.channel.send(to, bot.message("a secret recipe"))
        assert "recipe" not in str(raised.value)
        assert slack.calls.count("chat.postMessage") == 1
        if isinstance(raised.value, RateLimited):
            assert raised.value.retry_after_s == (7 if fault.headers else 1)


@pytest.mark.parametrize(("status", "is_late"), [(408, True), (504, False)])
async def test_a_send_that_timed_out_at_a_proxy_may_still_arrive(
    status: int, *, is_late: bool
) -> None:
    """So a lookup that finds nothing does not prove that it was lost (P1)."""
    async with bot_for_ann() as (slack, bot, _, to):
        slack.will("chat.postMessage", Fault(status=status))
        with pytest.raises(DeliveryUnknown) as raised:
            await bot.channel.send(to, bot.message("hello"))
    assert raised.value.late is is_late


async def test_an_unreachable_server_received_nothing() -> None:
    async with bot_for_ann() as (slack, bot, _, to):
        channel = SlackChannel(slack_context(slack, ManualClock()))
    with pytest.raises(ChannelUnavailable):
        await channel.send(to, bot.message("hello"))
    await channel.aclose()


async def test_a_direct_address_is_known_before_slack_has_answered() -> None:
    """Turns that a restart interrupted continue at once, and operators are notified (P3)."""
    async with SlackServer() as slack:
        ann = await slack.person()
        channel = SlackChannel(slack_context(slack, ManualClock(), account="T1-U0ZERO"))
        address = channel.direct_address(ann.id)
        await channel.aclose()
    assert address == Address(channel="slack", account="T1-U0ZERO", chat=f"@{ann.id}", direct=True)


@pytest.mark.parametrize("method", ["auth.test", "apps.connections.open"])
async def test_a_token_that_is_not_accepted_needs_the_operator(method: str) -> None:
    async with SlackServer() as slack:
        slack.will(method, Fault(body={"ok": False, "error": "invalid_auth"}))
        channel = SlackChannel(slack_context(slack, ManualClock()))
        with pytest.raises((ChannelUnauthorized, ExceptionGroup)) as raised:
            await channel.receive(Desk().admit, lambda: None)
        await channel.aclose()
    errors = (
        raised.value.exceptions if isinstance(raised.value, ExceptionGroup) else (raised.value,)
    )
    (error,) = errors
    assert isinstance(error, ChannelUnauthorized)
    assert "invalid_auth" in str(error)


async def test_a_token_that_is_refused_later_does_not_stop_receiving() -> None:
    """Events use another token; the runtime reports that answers wait, and retries them."""
    refusal, desk = Fault(body={"ok": False, "error": "token_revoked"}), Desk()
    async with SlackServer() as slack, running(slack, desk.admit) as bot:
        ann = await slack.person()
        await confirmed(ann.says("hello"))
        slack.will("auth.test", refusal)
        slack.will("chat.postMessage", refusal)
        to = desk.stored[0].address
        with pytest.raises(ChannelUnauthorized, match=r"`bot_token` \(token_revoked\)"):
            await bot.channel.send(to, bot.message("hello"))
        await confirmed(ann.says("are you there?"))
        assert bodies(desk) == [Said(text="hello"), Said(text="are you there?")]


async def test_a_token_of_the_wrong_kind_is_rejected_at_once() -> None:
    async with SlackServer() as slack:
        context = slack_context(slack, ManualClock())
        swapped = replace(context, secrets={"bot_token": APP, "app_token": BOT})
        with pytest.raises(ChannelUnauthorized, match="xoxb-"):
            SlackChannel(swapped)


async def test_an_unreachable_gateway_is_reported_as_down() -> None:
    """After several attempts with growing waits."""
    async with SlackServer() as slack:
        clock = ManualClock()
        failure = Fault(body={"ok": False, "error": "internal_error"})
        slack.will("apps.connections.open", *[failure] * 9)
        channel = SlackChannel(slack_context(slack, clock))
        raised: list[BaseException] = []

        async def receive() -> None:
            try:
                await channel.receive(Desk().admit, lambda: None)
            except* ChannelUnavailable as errors:
                raised.extend(errors.exceptions)

        async with asyncio.TaskGroup() as group:
            task = group.create_task(receive())
            while not task.done():
                await slack.upstream("auth.test", BOT)  # lets other tasks run
                await clock.advance(8.0)
        await channel.aclose()
    assert "the gateway can't be heard" in str(raised[0])
    assert slack.calls.count("apps.connections.open") == 5


# --- files, cards, settings --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://slack.com.evil.example/x",
        "http://files.slack.com/x",
        "https://files.slack.com:8443/x",
        "https://user@evil.example/x",
        "https://[odd",
        "",
    ],
)
async def test_the_token_is_sent_only_to_slacks_own_hosts(url: str) -> None:
    """Whatever URL a file has."""
    async with SlackServer() as slack, running(slack, Desk().admit) as bot:
        slack.file_records["F1"] = {"id": "F1", "url_private": url}
        file = Attachment(reference="F1", name="a", media_type="x/y")
        with pytest.raises(ChannelRejected, match="not on a server of Slack"):
            await bot.channel.fetch(file, max_bytes=10)


FILE = outgoing_file(b"1;2")


@pytest.mark.parametrize(
    ("method", "fault", "error"),
    [
        ("files.getUploadURLExternal", Fault(is_lost=True), ChannelUnavailable),
        ("files.getUploadURLExternal", Fault(status=429), RateLimited),
        (
            "files.getUploadURLExternal",
            Fault(body={"ok": False, "error": "missing_scope"}),
            ChannelRejected,
        ),
        (
            "files.getUploadURLExternal",
            Fault(body={"ok": True, "upload_url": "https://evil.example/up", "file_id": "F1"}),
            ChannelUnavailable,
        ),
        ("upload", Fault(status=500), ChannelUnavailable),
        ("upload", Fault(status=413), ChannelRejected),
        ("upload", Fault(status=429, headers={"Retry-After": "30"}), RateLimited),
        ("upload", Fault(is_lost=True), ChannelUnavailable),
        ("files.completeUploadExternal", Fault(is_lost=True), ChannelUnavailable),
        ("files.info", Fault(is_lost=True), ChannelUnavailable),
        (
            "files.info",
            Fault(body={"ok": True, "file": {"mimetype": "a/b", "permalink": "https://a|b> <!x"}}),
            ChannelUnavailable,
        ),
    ],
)
async def test_a_failed_upload_shows_nothing(
    method: str, fault: Fault, error: type[Exception]
) -> None:
    """So it may be sent again, and is then shown once."""
    async with bot_for_ann() as (slack, bot, ann, to):
        slack.will(method, fault)
        with pytest.raises(error):
            await bot.channel.send_file(to, FILE)
        assert await slack.from_bot(ann.direct) == []
        await bot.channel.send_file(to, FILE)
        (message,) = await slack.from_bot(ann.direct)
        assert standing(message, slack).file == (FILE.name, 3)


async def test_a_file_stays_when_its_caption_changes() -> None:
    """The note that it may be a repeat is removed when it turns out to be none."""
    async with bot_for_ann() as (slack, bot, ann, to):
        ref = await bot.channel.send_file(to, FILE)
        caption = Rendered(body="*now*", plain="*now*")
        await bot.channel.edit(ref, Outgoing(rendered=caption, key="f1", plain=True))
        (message,) = await slack.from_bot(ann.direct)
    assert standing(message, slack) == Standing(text="*now*", file=(FILE.name, 3))


@pytest.mark.parametrize("checks", [1, MAX_CHECKS + 1])
async def test_a_file_is_shown_once_slack_has_processed_it(checks: int) -> None:
    """Or after a while: a file that is not processed is shown as a link."""
    async with bot_for_ann() as (slack, bot, ann, to):
        slack.unprocessed = checks
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(bot.channel.send_file(to, FILE))
            while not sending.done():
                await slack.upstream("auth.test", BOT)  # lets other tasks run
                await bot.clock.advance(CHECK_S)
        assert slack.calls.count("files.info") == min(checks, MAX_CHECKS) + 1
        assert len(await slack.from_bot(ann.direct)) == 1


async def test_a_lost_answer_is_found_with_a_clock_that_is_an_hour_fast() -> None:
    """The question comes before the answer, whatever the local time is. P1."""
    async with team_of_ann() as (slack, bot, desk, ann, _):
        question = await confirmed(ann.says("@zeroclaw hello", channel=await slack.channel(ann)))
        fast = datetime.fromtimestamp(float(question.ts) + 3600, UTC)
        bot.clock.leap(fast - bot.clock.now())
        to = desk.stored[0].address
        mark = bot.channel.mark(to)
        slack.will("chat.postMessage", Fault(is_lost=True))
        with pytest.raises(DeliveryUnknown):
            await bot.channel.send(to, bot.message("Hi there."))
        assert (
            await lookup_to_the_end(bot.channel, to, bot.message("Hi there."), mark)
        ).ref is not None


async def test_a_file_whose_answer_was_lost_is_found() -> None:
    """By the key that its message carries (P1)."""
    async with bot_for_ann() as (slack, bot, _, to):
        mark = bot.channel.mark(to)
        slack.will("chat.postMessage", Fault(is_lost=True))
        with pytest.raises(DeliveryUnknown):
            await bot.channel.send_file(to, FILE)
        found = await lookup_to_the_end(bot.channel, to, FILE, mark)
        other = await lookup_to_the_end(bot.channel, to, replace(FILE, key="f2"), mark)
    assert found.ref is not None
    assert other.ref is None


@pytest.mark.parametrize("fault", [Fault(is_lost=True), Fault(status=503)])
async def test_a_found_draft_whose_change_was_lost_is_changed_again(fault: Fault) -> None:
    """It must not be sent a second time: the lookup has found it. P1."""
    async with bot_for_ann() as (slack, bot, ann, to):
        mark = bot.channel.mark(to)
        await bot.channel.send(to, bot.message("Hi"))
        whole, nothing = bot.message("Hi there."), frozenset[str]()
        slack.will("chat.update", fault)
        with pytest.raises(ChannelUnavailable):
            await bot.channel.lookup(to, whole, since=mark, apart=nothing)
        changed = await bot.channel.lookup(to, whole, since=mark, apart=nothing)
        assert changed.ref is not None
        (message,) = await slack.from_bot(ann.direct)
        assert message["text"] == "Hi there."


async def test_a_scope_that_the_app_lacks_is_named() -> None:
    """The operator learns which scope to add to the app (P10)."""
    async with bot_for_ann() as (slack, bot, _, to):
        refusal = {"ok": False, "error": "missing_scope", "needed": "files:write"}
        slack.will("files.getUploadURLExternal", Fault(body=refusal))
        with pytest.raises(ChannelRejected, match="missing_scope, the app needs the scope files:w"):
            await bot.channel.send_file(to, FILE)


async def test_no_link_in_a_caption_is_fetched_for_a_preview() -> None:
    """The link to the file is; the model's own text is shown literally."""
    text = "see https://evil.example/?secret <!channel> *bold*"
    async with bot_for_ann() as (slack, bot, ann, to):
        await bot.channel.send_file(to, replace(FILE, caption=text))
        (message,) = await slack.from_bot(ann.direct)
        (sent,) = slack.bot_messages[ann.direct].values()
    block, below = cast("list[Json]", message["blocks"])
    assert block == text_block(text)
    assert "evil" not in str(below)
    assert (sent["unfurl_links"], sent["unfurl_media"]) == (False, True)


@pytest.mark.parametrize("is_read", [True, False])
async def test_a_card_that_is_too_long_is_complete_in_a_file(is_read: bool) -> None:
    """P5. Its ending is shown with the file, or alone if the bot may not read the history."""
    async with bot_for_ann() as (slack, bot, ann, to):
        long = replace(CARD, calls=(replace(call(1), arguments="x" * 20_000),))
        ref = await bot.channel.ask(to, long)
        (card,) = await slack.from_bot(ann.direct)
        link = link_in(cast("list[Json]", card["blocks"]))
        if not is_read:
            fault = Fault(body={"ok": False, "error": "missing_scope"})
            slack.will("conversations.history", fault)
        await bot.channel.settle(ref, Outcome(card=long, endings=(APPROVED,)))
        (ended,) = await slack.from_bot(ann.direct)
        content = slack.files[str(slack.links[link]["id"])].decode()
    assert "x" * 20_000 in content
    assert long.calls[0].approval in str(card)
    assert long.calls[0].approval not in str(ended)
    assert link_in(cast("list[Json]", ended["blocks"])) == (link if is_read else "")


async def test_an_open_call_keeps_its_file_even_if_the_bot_can_not_read_it() -> None:
    """P5: a card with buttons always has the complete calls that they approve."""
    async with bot_for_ann() as (slack, bot, ann, to):
        long = replace(CARD, calls=(replace(call(1), arguments="x" * 20_000), call(2)))
        ref = await bot.channel.ask(to, long)
        fault = Fault(body={"ok": False, "error": "missing_scope"})
        slack.will("conversations.history", fault)
        await bot.channel.settle(ref, Outcome(card=long, endings=(APPROVED,)))
        (message,) = await slack.from_bot(ann.direct)
        link = link_in(cast("list[Json]", message["blocks"]))
        content = slack.files[str(slack.links[link]["id"])].decode()
    assert long.calls[1].approval in str(message)
    assert long.calls[1].arguments in content


async def test_a_name_after_an_at_sign_is_not_made_a_mention() -> None:
    """Sends and edits tell Slack not to look for mentions."""
    async with bot_for_ann() as (slack, bot, ann, to):
        ref = await bot.channel.send(to, bot.message("@channel @here @everyone"))
        await bot.channel.edit(ref, bot.message("@channel"))
        calls = [json.loads(body) for body in slack.history[ann.direct]]
    assert [(call["parse"], call["link_names"]) for call in calls] == [("none", False)] * 2


async def test_a_long_answer_is_edited_whole() -> None:
    """Slack accepts less text besides the blocks in an edit than in a new message (P6)."""
    long = "Äpfel & Birnen, " * 700
    async with bot_for_ann() as (slack, bot, ann, to):
        ref = await bot.channel.send(to, bot.message("Äpfel"))
        await bot.channel.edit(ref, bot.message(long))
        (message,) = await slack.from_bot(ann.direct)
    assert standing(message, slack).text == long.strip()


@pytest.mark.parametrize("error", ["invalid_blocks", "msg_blocks_too_long"])
async def test_an_answer_whose_blocks_slack_refuses_is_sent_as_literal_text(error: str) -> None:
    """It makes several blocks of Markdown, such as one of each table, and accepts fifty. P6."""
    first, last = "`rm build/*`", "1. `rm build/*`\n\n| a[0] |\n|---|\n| List<T> &lt; &c |"
    refused = Fault(body={"ok": False, "error": error})
    async with bot_for_ann() as (slack, bot, ann, to):
        slack.will("chat.postMessage", refused)
        slack.will("chat.update", refused)
        ref = await bot.channel.send(to, bot.message(first))
        (sent,) = await slack.from_bot(ann.direct)
        await bot.channel.edit(ref, bot.message(last))
        (edited,) = await slack.from_bot(ann.direct)
    assert (sent["blocks"], edited["blocks"]) == ([text_block(first)], [text_block(last)])


async def test_a_message_whose_literal_blocks_are_refused_too_is_rejected() -> None:
    """No shortened answer is sent in its place; the operator is notified (P6)."""
    refused = Fault(body={"ok": False, "error": "invalid_blocks"})
    async with bot_for_ann() as (slack, bot, _, to):
        slack.will("chat.postMessage", *(refused,) * 3)
        with pytest.raises(ChannelRejected) as raised:
            await bot.channel.send(to, bot.message("a*b"))
        with pytest.raises(ChannelRejected):
            await bot.channel.ask(to, CARD)
    assert not raised.value.markup
    assert slack.calls.count("chat.postMessage") == 3


async def test_a_card_of_a_long_call_shows_its_ending() -> None:
    """P5: also to a client without blocks, for which the text of an edit is cut."""
    async with bot_for_ann() as (slack, bot, ann, to):
        long = replace(CARD, calls=(replace(call(1), arguments="x" * 5_000),))
        ref = await bot.channel.ask(to, long)
        await bot.channel.settle(ref, Outcome(card=long, endings=(APPROVED,)))
        (ended,) = await slack.from_bot(ann.direct)
    assert long.calls[0].approval not in str(ended)
    assert str(ended["text"]).startswith("1. ✅ approved by")


async def test_unsupported_calls_raise_errors() -> None:
    async with SlackServer() as slack, running(slack, Desk().admit) as bot:
        address = Address(channel="slack", account="T-U", chat="../x", direct=True)
        with pytest.raises(ChannelRejected):
            await bot.channel.send(address, bot.message("hello"))
        assert bot.channel.direct_address("../x") is None
        with pytest.raises(ChannelRejected):
            await bot.channel.typing(address)
        with pytest.raises(NotSupported, match="only in a thread"):
            await bot.channel.typing(replace(address, chat="@UANN"))
    hold = SETTINGS.model_copy(update={"uncertain": "hold"})
    async with SlackServer() as slack, running(slack, Desk().admit, settings=hold) as bot:
        with pytest.raises(NotSupported):
            bot.channel.mark(address)
        with pytest.raises(NotSupported):
            await bot.channel.lookup(address, bot.message("hello"), since="1.0", apart=frozenset())


async def test_a_message_clears_the_working_status() -> None:
    """Also a message that arrives before the call that sets the status."""
    async with SlackServer() as slack, running(slack, Desk().admit) as bot:
        ann = await slack.person()
        first = await ann.says("hello")
        to = bot.channel.direct_address(ann.id)
        assert to is not None
        thread = replace(to, thread=first.ts)
        key = (ann.direct, first.ts)
        await bot.channel.typing(thread)
        assert slack.statuses == {key: "…"}
        await bot.channel.send(thread, bot.message("hi"))
        assert slack.statuses == {}
        gate = asyncio.Event()
        slack.gates["assistant.threads.setStatus"] = gate
        async with asyncio.TaskGroup() as group:
            group.create_task(bot.channel.typing(thread))
            await slack.until(lambda: slack.calls[-1] == "assistant.threads.setStatus")
            await bot.channel.send(thread, bot.message("there", "k2"))
            gate.set()
        assert slack.statuses == {key: ""}


async def test_the_settings_can_be_checked_without_a_message() -> None:
    async with SlackServer() as slack:
        settings = SETTINGS.model_copy(update={"api_base_url": slack.url})
        summary = await check(settings, {"bot_token": BOT, "app_token": APP})
        assert summary == "@zeroclaw answers in the workspace Zero"
        assert slack.calls == ["auth.test", "apps.connections.open"]


def test_lookups_and_limits_are_configured() -> None:
    holding = SETTINGS.model_copy(update={"uncertain": "hold"}).capabilities()
    assert (holding.can_lookup, holding.may_repeat) == (False, False)
    unlimited = SETTINGS.model_copy(update={"limits": "off"}).capabilities()
    assert unlimited.chat_budget.per_s == 0
