"""Slack's adapter against a real Web API and our own Socket Mode: what is heard, and what goes wrong."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

import pytest
from pydantic import ValidationError

from channels._remote import lanes
from channels._remote.reconnection import STEADY_S, WAITS_S
from channels.slack import SlackSettings, adapter
from channels.slack.adapter import MENTION_WAIT_S, SlackChannel
from channels.slack.calls import CHECK_S, MAX_CHECKS, check
from channels.slack.decode import MAX_THREADS, NOT_READ
from channels.slack.emulator.server import APP, BOT, Fault, Json, Person, SlackServer
from channels.slack.render import link_in, text_block
from tests.contract.channel_suite import Desk, Standing, noting, receiving
from tests.contract.channel_words import APPROVED, CARD, FIRST, call, looked, outgoing_file
from tests.contract.slack_harness import SETTINGS, slack_context, standing
from tests.fakes.bare_context import no_log, no_transcript
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
    SecretReference,
    TranscriptItem,
    replace,
)
from zeroclaw.channel import admits_everybody

Transcript = Callable[[Address, str], Awaitable[tuple[TranscriptItem, ...]]]
pytestmark = [pytest.mark.slow, pytest.mark.needs("emulate")]


@dataclass(frozen=True, kw_only=True)
class Stage:
    slack: SlackServer
    channel: Channel
    clock: ManualClock

    def message(self, text: str, key: str = "k1") -> Outgoing:
        return Outgoing(rendered=self.channel.render(text), key=key)


@asynccontextmanager
async def stage(
    slack: SlackServer,
    admit: Admit,
    *,
    settings: SlackSettings = SETTINGS,
    positions: Mapping[str, str] | None = None,
    transcript: Transcript = no_transcript,
    log: Log = no_log,
    admits: Callable[[str], bool] = admits_everybody,
) -> AsyncGenerator[Stage]:
    clock = ManualClock()
    context = slack_context(slack, clock, settings, positions=positions)
    channel = SlackChannel(replace(context, transcript=transcript, log=log, admits=admits))
    async with receiving(channel, admit):
        yield Stage(slack=slack, channel=channel, clock=clock)


@asynccontextmanager
async def with_ann() -> AsyncGenerator[tuple[SlackServer, Stage, Person, Address]]:
    """A workspace of Ann and the bot, and where the bot writes to her."""
    async with SlackServer() as slack, stage(slack, Desk().admit) as here:
        ann = await slack.person()
        to = here.channel.direct_address(ann.id)
        assert to is not None
        yield slack, here, ann, to


def said(desk: Desk) -> list[object]:
    return [one.body for one in desk.stored]


# --- what is heard -----------------------------------------------------------------------------------


async def test_a_mention_begins_a_thread_and_what_follows_needs_none() -> None:
    """In a channel everything else is nobody's business; answers stand in the thread."""
    desk = Desk()
    async with SlackServer() as slack, stage(slack, desk.admit) as here:
        ann = await slack.person()
        team = await slack.channel(ann)
        await (await ann.says("lunch?", channel=team)).confirmed.wait()
        first = await ann.says("@zeroclaw hello", channel=team)
        await first.confirmed.wait()
        await (await ann.says("and this", channel=team, thread=first.ts)).confirmed.wait()
        assert said(desk) == [Said(text="hello"), Said(text="and this")]
        place = desk.stored[0].address
        assert {one.address for one in desk.stored} == {place}
        await here.channel.send(place, here.message("Hi there."))
        (answer,) = await slack.from_bot(team, thread=first.ts)
        assert answer["thread_ts"] == first.ts


async def test_edits_and_deletions_arrive() -> None:
    desk = Desk()
    async with SlackServer() as slack, stage(slack, desk.admit):
        ann = await slack.person()
        first = await ann.says("helo")
        await (await ann.edits(first, "hello")).confirmed.wait()
        await (await ann.deletes(first)).confirmed.wait()
        assert said(desk)[1:] == [
            Edited(message=first.ts, said=Said(text="hello")),
            Deleted(message=first.ts),
        ]


async def test_a_mention_that_is_added_by_an_edit_is_taken_once() -> None:
    """Slack tells of it as of a mention too (github.com/slack-go/slack/pull/1256, read 2026-11)."""
    desk = Desk()
    async with SlackServer() as slack, stage(slack, desk.admit) as here:
        ann = await slack.person()
        team = await slack.channel(ann)
        first = await ann.says("lunch?", channel=team)
        await first.confirmed.wait()
        for text in (f"<@{slack.bot}> lunch?", f"<@{slack.bot}> dinner?"):
            changed = await ann.edits(first, text)
            now = cast("Json", cast("Json", changed.payload["event"])["message"])
            told = slack.event({**now, "type": "app_mention"})
            await told.dispatch()
            await (await ann.says("aside", channel=team)).confirmed.wait()
            await here.clock.advance(MENTION_WAIT_S)
            await told.confirmed.wait()
        assert said(desk) == [
            Edited(message=first.ts, said=Said(text="lunch?")),
            Said(text="lunch?"),
            Edited(message=first.ts, said=Said(text="dinner?")),
        ]


async def test_a_mention_that_is_told_before_its_files_has_them() -> None:
    """Slack tells of it twice, perhaps first without files (NousResearch/hermes-agent#77141, 2026-08)."""
    desk = Desk()
    async with SlackServer() as slack, stage(slack, desk.admit) as here:
        ann = await slack.person()
        team = await slack.channel(ann)
        about: Json = {"channel": team, "user": ann.id, "ts": "1700000000.000001"}
        about["text"] = f"<@{slack.bot}> read this"
        early = slack.event({**about, "type": "app_mention"})
        await early.dispatch()
        files = [{"id": "F01", "name": "a.pdf", "mimetype": "application/pdf", "size": 7}]
        whole = slack.event({**about, "type": "message", "subtype": "file_share", "files": files})
        await whole.dispatch()
        await whole.confirmed.wait()
        await here.clock.advance(MENTION_WAIT_S)
        await early.confirmed.wait()
        (taken,) = desk.stored
        assert [one.reference for one in taken.attachments] == ["F01"]


async def test_a_call_into_a_long_thread_brings_along_its_newest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Slack's answer begins with the oldest."""
    monkeypatch.setattr(adapter, "PAGE", 4)
    desk = Desk()
    async with SlackServer() as slack, stage(slack, desk.admit):
        ann = await slack.person()
        team = await slack.channel(ann)
        lunch = await ann.says("lunch?", channel=team)
        for text in "abcdefgh":
            await ann.says(text, channel=team, thread=lunch.ts)
        action = await ann.says("@zeroclaw well?", channel=team, thread=lunch.ts)
        await action.confirmed.wait()
    (told,) = said(desk)
    assert isinstance(told, Said)
    assert told.text.endswith("wrote:]\n> h\n\nwell?")


async def test_a_thread_is_read_for_nobody_but_who_is_let_in() -> None:
    """Slack allows few such calls a minute; but who was a stranger until now has theirs read."""
    desk, people = Desk(), set[str]()

    async def admit(envelope: Envelope) -> Admission:
        return await desk.admit(envelope) if envelope.sender.id in people else Ignored()

    async with SlackServer() as slack, stage(slack, admit, admits=people.__contains__):
        eve = await slack.person()
        team = await slack.channel(eve)
        first = await eve.says("lunch?", channel=team)
        for text in ("@zeroclaw a", "@zeroclaw b"):
            await (await eve.says(text, channel=team, thread=first.ts)).confirmed.wait()
        assert "conversations.replies" not in slack.calls
        people.add(eve.id)
        await (await eve.says("@zeroclaw c", channel=team, thread=first.ts)).confirmed.wait()
        (told,) = said(desk)
        assert isinstance(told, Said)
        assert told.text.startswith(f'[in reply to what "{eve.id}" wrote:]\n> lunch?')


@pytest.mark.parametrize(
    "fault", [Fault(body={"ok": False, "error": "missing_scope"}), Fault(hangs=True)]
)
async def test_a_call_into_a_thread_that_can_not_be_read_is_taken_as_it_is(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if Slack does not say so: it waits three seconds to hear that the call has come."""
    monkeypatch.setattr(adapter, "THREAD_READ_S", 0.01)
    desk = Desk()
    async with SlackServer() as slack, stage(slack, desk.admit):
        ann = await slack.person()
        team = await slack.channel(ann)
        first = await ann.says("lunch?", channel=team)
        slack.will("conversations.replies", fault)
        action = await ann.says("@zeroclaw well?", channel=team, thread=first.ts)
        await action.confirmed.wait()
    assert said(desk) == [Said(text=f"{NOT_READ}well?", own="well?")]


async def test_a_question_that_is_deleted_below_its_answer_is_withdrawn() -> None:
    """Slack leaves a stone where a message with a thread stood, and calls that a change."""
    desk = Desk()
    async with SlackServer() as slack, stage(slack, desk.admit) as here:
        ann = await slack.person()
        team = await slack.channel(ann)
        first = await ann.says("@zeroclaw hello", channel=team)
        await first.confirmed.wait()
        await here.channel.send(desk.stored[0].address, here.message("Hi", "k"))
        await (await ann.deletes(first)).confirmed.wait()
        assert said(desk)[1:] == [Deleted(message=first.ts)]
        assert desk.stored[1].address == desk.stored[0].address
        assert desk.stored[1].sender == desk.stored[0].sender


async def test_a_slash_command_is_answered_for_its_sender_alone() -> None:
    desk = Desk()

    async def admit(envelope: Envelope) -> Admission:
        await desk.admit(envelope)
        return Answered(text="`zeroclaw` is well")

    async with SlackServer() as slack, stage(slack, admit):
        ann = await slack.person()
        await ann.commands("status")
        await slack.until(lambda: slack.ephemeral)
        assert said(desk) == [Command(name="status")]
        (told,) = slack.ephemeral
        assert (told["user"], told["text"]) == (ann.id, "zeroclaw is well")


async def test_a_broken_event_poisons_no_channel() -> None:
    """What can't be read is confirmed and passed over, so that Slack does not send it for ever."""
    desk = Desk()
    async with SlackServer() as slack, stage(slack, desk.admit):
        ann = await slack.person()
        odd = slack.event({"type": "message", "channel": 7, "user": ["x"], "ts": None})
        await odd.dispatch()
        await odd.confirmed.wait()
        await slack.send({"type": "events_api"})
        await slack.send({"envelope_id": 7})
        await (await ann.says("hello")).confirmed.wait()
        assert said(desk) == [Said(text="hello")]


async def test_what_is_written_while_a_connection_is_cut_is_read_back() -> None:
    desk = Desk()
    async with SlackServer() as slack, stage(slack, desk.admit):
        ann = await slack.person()
        await (await ann.says("one")).confirmed.wait()
        await slack.drop()
        await ann.says("two")
        await desk.holds(2)
        await (await ann.says("three")).confirmed.wait()
        assert said(desk) == [Said(text=text) for text in ("one", "two", "three")]


async def test_a_connection_that_slack_moves_costs_no_history() -> None:
    """What comes in between Slack keeps for the next connection."""
    desk = Desk()
    async with SlackServer() as slack, stage(slack, desk.admit):
        ann = await slack.person()
        await (await ann.says("one")).confirmed.wait()
        slack.calls.clear()
        await slack.request_reconnect()
        await slack.until(lambda: "apps.connections.open" in slack.calls)
        assert "conversations.history" not in slack.calls


async def test_operators_are_told_that_another_program_takes_half_of_the_events() -> None:
    """Once, and not of the bot's own connection, which Slack counts on after it was cut."""
    told: list[Localized] = []

    async def tell(says: Localized) -> None:
        told.append(says)

    async with SlackServer() as slack:
        clock = ManualClock()
        channel = SlackChannel(replace(slack_context(slack, clock, SETTINGS), tell=tell))
        async with receiving(channel, Desk().admit):
            ann = await slack.person()

            async def told_after(reconnect: Callable[[], Awaitable[None]]) -> int:
                times = slack.connections + 1
                await clock.advance(STEADY_S)
                await reconnect()
                await slack.until(lambda: slack.connections == times)
                await (await ann.says("hello")).confirmed.wait()
                return len(told)

            slack.other_connections = 1
            assert await told_after(slack.drop) == 0
            assert await told_after(slack.request_reconnect) == 1
            assert await told_after(slack.request_reconnect) == 1
    assert "`slack`" in told[0].to("en")
    assert "2" in told[0].to("de")


async def test_a_move_that_fails_at_first_has_histories_read() -> None:
    """Only a connection that follows the one before it at once misses nothing."""
    desk = Desk()
    async with SlackServer() as slack, stage(slack, desk.admit) as here:
        ann = await slack.person()
        await (await ann.says("one")).confirmed.wait()
        slack.will("apps.connections.open", Fault(status=503), Fault(status=503))
        tries = slack.calls.count("apps.connections.open")
        await here.clock.advance(STEADY_S)
        await slack.request_reconnect()
        await slack.until(lambda: slack.calls.count("apps.connections.open") == tries + 2)
        await ann.says("two")
        slack.waiting.clear()  # Slack has given up sending it
        await here.clock.advance(WAITS_S[1])
        await desk.holds(2)
        assert said(desk) == [Said(text="one"), Said(text="two")]


async def test_what_follows_a_mention_that_nobody_heard_is_read_back_with_it() -> None:
    """A channel's history does not hold what was written in the thread that the mention began."""
    desk = Desk()
    async with SlackServer() as slack:
        ann = await slack.person()
        team = await slack.channel(ann)
        async with stage(slack, desk.admit):
            await (await ann.says("@zeroclaw hello", channel=team)).confirmed.wait()
        lunch = await ann.says("lunch?", channel=team)
        await ann.says("pizza", channel=team, thread=lunch.ts)
        again = await ann.says("@zeroclaw one thing", channel=team)
        await ann.says("and another", channel=team, thread=again.ts)
        slack.waiting.clear()
        async with stage(slack, desk.admit, positions=desk.positions):
            await desk.holds(3)
        assert said(desk)[1:] == [Said(text="one thing"), Said(text="and another")]
        assert {one.address.thread for one in desk.stored[1:]} == {again.ts}


async def test_a_thread_is_the_bots_however_many_are_younger() -> None:
    """The position holds the youngest alone; what was said in an older one is in the store."""
    desk = Desk()

    async def transcript(place: Address, _after: str) -> tuple[TranscriptItem, ...]:
        known = [one for one in desk.stored if one.address == place]
        at = ManualClock().now()
        item = TranscriptItem(cursor="1", kind="person", key="", ref="", text="hello", at=at)
        return (item,) * len(known)

    async with SlackServer() as slack:
        ann = await slack.person()
        team = await slack.channel(ann)
        lunch = await ann.says("lunch?", channel=team)
        async with stage(slack, desk.admit, transcript=transcript):
            first = await ann.says("@zeroclaw hello", channel=team)
            await first.confirmed.wait()
            for number in range(MAX_THREADS):
                await (await ann.says(f"@zeroclaw {number}", channel=team)).confirmed.wait()
            await (await ann.says("and?", channel=team, thread=first.ts)).confirmed.wait()
            await (await ann.says("pizza", channel=team, thread=lunch.ts)).confirmed.wait()
            for number in range(MAX_THREADS):
                await (await ann.says(f"@zeroclaw {number}", channel=team)).confirmed.wait()
        async with stage(slack, desk.admit, positions=desk.positions, transcript=transcript):
            await (await ann.says("and now?", channel=team, thread=first.ts)).confirmed.wait()
            await (await ann.says("pasta", channel=team, thread=lunch.ts)).confirmed.wait()
        words = [one for one in desk.stored if one.address.thread == first.ts]
        assert [one.body for one in words] == [
            Said(text="hello"),
            Said(text="and?"),
            Said(text="and now?"),
        ]
        assert not [one for one in desk.stored if one.address.thread == lunch.ts]


async def test_a_thread_that_can_not_be_read_back_is_the_bots_and_holds_up_nobody() -> None:
    desk = Desk()

    async def transcript(_place: Address, _after: str) -> tuple[TranscriptItem, ...]:
        raise ChannelUnavailable("a row can't be read")

    async with SlackServer() as slack, stage(slack, desk.admit, transcript=transcript):
        ann = await slack.person()
        team = await slack.channel(ann)
        lunch = await ann.says("lunch?", channel=team)
        await (await ann.says("pizza", channel=team, thread=lunch.ts)).confirmed.wait()
        assert said(desk) == [Said(text="pizza")]


async def test_a_thread_that_was_other_peoples_is_the_bots_from_a_mention_on() -> None:
    """What stands above the mention comes with it."""
    desk = Desk()
    async with SlackServer() as slack, stage(slack, desk.admit):
        ann = await slack.person()
        team = await slack.channel(ann)
        lunch = await ann.says("lunch?", channel=team)
        for text in ("pizza", "@zeroclaw pizza or pasta?", "so?"):
            await (await ann.says(text, channel=team, thread=lunch.ts)).confirmed.wait()
        above = "".join(
            f'[in reply to what "{ann.id}" wrote:]\n> {one}\n\n' for one in ("lunch?", "pizza")
        )
        called = Said(text=f"{above}pizza or pasta?", own="pizza or pasta?")
        assert said(desk) == [called, Said(text="so?")]


async def test_threads_are_read_back_after_a_restart() -> None:
    """A chat's history does not hold what was written in its threads. S2-02."""
    desk = Desk()
    async with SlackServer() as slack:
        ann = await slack.person()
        team = await slack.channel(ann)
        async with stage(slack, desk.admit):
            first = await ann.says("@zeroclaw hello", channel=team)
            await first.confirmed.wait()
        await ann.says("are you there?", channel=team, thread=first.ts)
        async with stage(slack, desk.admit, positions=desk.positions):
            await desk.holds(2)
        assert said(desk)[1] == Said(text="are you there?")
        assert desk.stored[1].address == desk.stored[0].address


async def test_a_direct_chat_in_which_only_a_button_was_pressed_is_read_back() -> None:
    """As an operator's may be, who answers cards there and writes nothing. P1."""
    desk = Desk()
    async with SlackServer() as slack:
        olga = await slack.person()
        async with stage(slack, desk.admit) as here:
            to = here.channel.direct_address(olga.id)
            assert to is not None
            card = await here.channel.ask(to, CARD)
            pressed = await olga.presses(card.message, "zc-once:1", FIRST)
            await pressed.confirmed.wait()
        await olga.says("are you there?")
        slack.waiting.clear()  # Slack has given up sending it
        async with stage(slack, desk.admit, positions=desk.positions):
            await desk.holds(2)
        assert said(desk)[1] == Said(text="are you there?")


async def test_a_token_that_is_revoked_for_a_while_costs_no_history() -> None:
    """Nothing counts as read that was refused for the token, as while an app is installed anew. P1."""
    desk = Desk()
    async with SlackServer() as slack:
        ann = await slack.person()
        async with stage(slack, desk.admit):
            await (await ann.says("hello")).confirmed.wait()
        await ann.says("are you there?")
        slack.waiting.clear()  # Slack has given up sending it
        said_no = Fault(body={"ok": False, "error": "token_revoked"})
        slack.will("conversations.history", said_no)
        async with stage(slack, desk.admit, positions=desk.positions) as here:
            await slack.until(lambda: "conversations.history" in slack.calls)
            while len(desk.stored) == 1:
                await here.clock.advance(1)
        assert said(desk)[1] == Said(text="are you there?")


async def test_the_chats_that_were_written_in_last_are_read_back_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Slack allows so few such calls that a workspace of many channels is read for minutes."""
    monkeypatch.setattr(lanes, "MAX_READING", 1)
    desk = Desk()
    async with SlackServer() as slack:
        people = [await slack.person() for _ in range(3)]
        async with stage(slack, desk.admit):
            for one in people:
                await (await one.says("hello")).confirmed.wait()
        for name, one in zip(("oldest", "older", "newest"), people, strict=True):
            await one.says(f"I am the {name}.")
        slack.waiting.clear()  # Slack has given up sending it
        known = desk.positions
        positions = {f"@{one.id}": known[f"@{one.id}"] for one in (people[1], people[2], people[0])}
        async with stage(slack, desk.admit, positions=positions):
            await desk.holds(6)
        names = ("newest", "older", "oldest")
        assert said(desk)[3:] == [Said(text=f"I am the {name}.") for name in names]


async def test_a_press_leaves_the_position_of_its_chat_where_it_is() -> None:
    """What was written before it may not be stored yet."""
    desk = Desk()
    async with SlackServer() as slack, stage(slack, desk.admit) as here:
        ann = await slack.person()
        await (await ann.says("hello")).confirmed.wait()
        before = desk.positions
        card = await here.channel.ask(desk.stored[0].address, CARD)
        await (await ann.presses(card.message, "zc-once:1", FIRST)).confirmed.wait()
        assert len(desk.stored) == 2
        assert desk.positions == before


async def test_a_long_thread_is_read_back_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slack gives so much of a thread at once, oldest first, and its root each time."""
    monkeypatch.setattr(adapter, "PAGE", 2)
    desk = Desk()
    async with SlackServer() as slack:
        ann = await slack.person()
        team = await slack.channel(ann)
        async with stage(slack, desk.admit):
            first = await ann.says("@zeroclaw hello", channel=team)
            await first.confirmed.wait()
        for number in range(5):
            await ann.says(str(number), channel=team, thread=first.ts)
        slack.waiting.clear()  # Slack has given up sending them
        async with stage(slack, desk.admit, positions=desk.positions):
            await desk.holds(6)
        assert said(desk)[1:] == [Said(text=str(number)) for number in range(5)]


async def test_of_a_thread_that_is_too_long_the_newest_is_read_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Slack gives the oldest first; what is too far back is told to the log."""
    monkeypatch.setattr(adapter, "PAGE", 2)
    monkeypatch.setattr(adapter, "MAX_MISSED", 3)
    desk, facts = Desk(), list[str]()
    async with SlackServer() as slack:
        ann = await slack.person()
        team = await slack.channel(ann)
        async with stage(slack, desk.admit):
            first = await ann.says("@zeroclaw hello", channel=team)
            await first.confirmed.wait()
        for number in range(7):
            await ann.says(str(number), channel=team, thread=first.ts)
        slack.waiting.clear()  # Slack has given up sending them
        async with stage(slack, desk.admit, positions=desk.positions, log=noting(facts)):
            await desk.holds(4)
        assert said(desk)[1:] == [Said(text=str(number)) for number in (4, 5, 6)]
        assert str(facts).count("history_cut") == 1


async def test_a_thread_begun_with_the_assistant_while_nobody_listened_is_read_back() -> None:
    """There all is said in threads, and a chat's history holds no more than their roots."""
    desk = Desk()
    async with SlackServer() as slack:
        ann = await slack.person()
        roots = [
            str(
                (await slack.upstream("chat.postMessage", BOT, channel=ann.direct, text="chat"))[
                    "ts"
                ]
            )
            for _ in range(2)
        ]
        async with stage(slack, desk.admit):
            await (await ann.says("one", thread=roots[0])).confirmed.wait()
        await ann.says("two", thread=roots[1])
        slack.waiting.clear()
        async with stage(slack, desk.admit, positions=desk.positions):
            await desk.holds(2)
        assert [one.address.thread for one in desk.stored] == roots
        assert said(desk)[1] == Said(text="two")


async def test_a_thread_that_is_gone_costs_its_chat_nothing() -> None:
    desk = Desk()
    async with SlackServer() as slack:
        ann = await slack.person()
        team = await slack.channel(ann)
        async with stage(slack, desk.admit):
            await (await ann.says("@zeroclaw hello", channel=team)).confirmed.wait()
        await ann.says("@zeroclaw and now?", channel=team)
        slack.waiting.clear()
        slack.will("conversations.replies", Fault(body={"ok": False, "error": "thread_not_found"}))
        async with stage(slack, desk.admit, positions=desk.positions):
            await desk.holds(2)
        assert said(desk)[1] == Said(text="and now?")


async def test_a_channel_with_another_id_is_read_and_answered_there() -> None:
    """Its old id is good for nothing from then on, and a turn may have begun there. P1."""
    desk = Desk()
    async with SlackServer() as slack:
        ann = await slack.person()
        old, new = await slack.channel(ann), await slack.channel(ann)
        moved: Json = {"type": "channel_id_changed", "old_channel_id": old, "new_channel_id": new}
        async with stage(slack, desk.admit) as here:
            await (await ann.says("@zeroclaw hello", channel=old)).confirmed.wait()
            action = slack.event(moved)
            await action.dispatch()
            await action.confirmed.wait()
            place = desk.stored[0].address
            answer = await here.channel.send(replace(place, thread=None), here.message("Hi."))
            await here.channel.edit(answer, here.message("Hi there."))
        await ann.says("@zeroclaw and now?", channel=new)
        slack.waiting.clear()
        slack.will("conversations.replies", Fault(body={"ok": False, "error": "thread_not_found"}))
        async with stage(slack, desk.admit, positions=desk.positions) as here:
            await desk.holds(3)
            await here.channel.send(replace(place, thread=None), here.message("It is late.", "k2"))
        texts = [one["text"] for one in await slack.from_bot(new)]
        assert texts == ["Hi there.", "It is late."]
        assert await slack.from_bot(old) == []
    assert said(desk)[1:] == [
        Moved(to=replace(place, chat=new, thread=None)),
        Said(text="and now?"),
    ]
    assert slack.calls.count("conversations.history") == 1


async def test_an_answer_finds_a_channel_that_got_another_id_twice() -> None:
    """A turn or a card may be older than both. P1."""
    desk = Desk()
    async with SlackServer() as slack:
        ann = await slack.person()
        first, second, third = [await slack.channel(ann) for _ in range(3)]
        async with stage(slack, desk.admit) as here:
            await (await ann.says("@zeroclaw hello", channel=first)).confirmed.wait()
            place = replace(desk.stored[0].address, thread=None)
            for old, new in ((first, second), (second, third)):
                ids: Json = {"old_channel_id": old, "new_channel_id": new}
                action = slack.event({"type": "channel_id_changed", **ids})
                await action.dispatch()
                await action.confirmed.wait()
            await here.channel.send(place, here.message("Hi."))
        async with stage(slack, desk.admit, positions=desk.positions) as here:
            await here.channel.send(place, here.message("It is late.", "k2"))
        texts = [one["text"] for one in await slack.from_bot(third)]
        assert texts == ["Hi.", "It is late."]


# --- threads with an assistant -----------------------------------------------------------------------

PROMPTS = ("What is new?", "What can you do, and " + "what not " * 20)


async def test_a_thread_with_the_assistant_has_prompts_and_a_title() -> None:
    """Slack shows them where somebody opens the assistant; the first question names the thread."""
    desk = Desk()
    settings = SETTINGS.model_copy(update={"prompts": PROMPTS})
    async with SlackServer() as slack, stage(slack, desk.admit, settings=settings):
        ann = await slack.person()
        opened = await ann.opens("1700000000.000001")
        await opened.confirmed.wait()
        await slack.until(lambda: slack.prompts)
        shown = slack.prompts[ann.direct, "1700000000.000001"]
        assert [one["message"] for one in shown] == list(PROMPTS)
        assert [len(str(one["title"])) <= 75 for one in shown] == [True, True]
        await (await ann.says("**Why**\nis it?", thread="1700000000.000001")).confirmed.wait()
        await (await ann.says("And now?", thread="1700000000.000001")).confirmed.wait()
        await slack.until(lambda: slack.titles)
        assert slack.titles == {(ann.direct, "1700000000.000001"): "**Why** is it?"}
        assert slack.calls.count("assistant.threads.setTitle") == 1


async def test_who_opens_the_direct_chat_is_offered_prompts() -> None:
    """A thread would make Slack show none, and what is written there is part of no thread with a title."""
    desk = Desk()
    settings = SETTINGS.model_copy(update={"prompts": PROMPTS})
    async with SlackServer() as slack, stage(slack, desk.admit, settings=settings):
        ann = await slack.person()
        await (await ann.opens_chat("home")).confirmed.wait()
        assert not desk.stored
        await (await ann.opens_chat()).confirmed.wait()
        await slack.until(lambda: slack.prompts)
        assert list(slack.prompts) == [(ann.direct, "")]
        first = await ann.says("hello")
        await first.confirmed.wait()
        assert said(desk) == [Membership(present=True), Said(text="hello")]
        assert {one.address.thread for one in desk.stored} == {None}
    assert "assistant.threads.setTitle" not in slack.calls


async def test_without_prompts_it_is_nobodys_business_who_opens_the_direct_chat() -> None:
    desk = Desk()
    async with SlackServer() as slack, stage(slack, desk.admit):
        ann = await slack.person()
        await (await ann.opens_chat()).confirmed.wait()
        assert not desk.stored


async def test_a_stranger_who_opens_the_assistant_is_shown_nothing() -> None:
    """And without prompts nobody is. P4."""
    strange = await _shown_to_whoever_opens(Ignored(), PROMPTS)
    bare = await _shown_to_whoever_opens(Accepted(), ())
    assert (strange, bare) == ([], [])


async def _shown_to_whoever_opens(admission: Admission, prompts: tuple[str, ...]) -> list[str]:
    async def admit(_: Envelope) -> Admission:
        return admission

    settings = SETTINGS.model_copy(update={"prompts": prompts})
    async with SlackServer() as slack, stage(slack, admit, settings=settings):
        ann = await slack.person()
        await (await ann.opens("1700000000.000001")).confirmed.wait()
        await (await ann.says("hello")).confirmed.wait()
        return [one for one in slack.calls if one.startswith("assistant")]


# --- what is refused ---------------------------------------------------------------------------------


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
async def test_each_refusal_says_who_acts_next(fault: Fault, error: type[Exception]) -> None:
    """And holds nothing of what was sent."""
    async with with_ann() as (slack, here, _, to):
        slack.will("chat.postMessage", fault)
        with pytest.raises(error) as raised:
            await here.channel.send(to, here.message("a secret recipe"))
        assert "recipe" not in str(raised.value)
        assert slack.calls.count("chat.postMessage") == 1
        if isinstance(raised.value, RateLimited):
            assert raised.value.retry_after_s == (7 if fault.headers else 1)


async def test_a_server_that_is_not_there_got_nothing() -> None:
    async with with_ann() as (slack, here, _, to):
        gone = SlackChannel(slack_context(slack, ManualClock()))
    with pytest.raises(ChannelUnavailable):
        await gone.send(to, here.message("hello"))
    await gone.aclose()


async def test_a_person_can_be_told_something_before_slack_has_answered() -> None:
    """What a restart cut off goes on at once, and operators hear of it (P3)."""
    async with SlackServer() as slack:
        ann = await slack.person()
        channel = SlackChannel(slack_context(slack, ManualClock(), account="T1-U0ZERO"))
        place = channel.direct_address(ann.id)
        await channel.aclose()
    assert place == Address(channel="slack", account="T1-U0ZERO", chat=f"@{ann.id}", direct=True)


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


async def test_a_token_that_is_refused_later_leaves_the_channel_to_hear() -> None:
    """Events come by a token of their own; the runtime tells that answers wait, and tries them again."""
    said_no, desk = Fault(body={"ok": False, "error": "token_revoked"}), Desk()
    async with SlackServer() as slack, stage(slack, desk.admit) as here:
        ann = await slack.person()
        await (await ann.says("hello")).confirmed.wait()
        slack.will("auth.test", said_no)
        slack.will("chat.postMessage", said_no)
        to = desk.stored[0].address
        with pytest.raises(ChannelUnauthorized, match=r"`bot_token` \(token_revoked\)"):
            await here.channel.send(to, here.message("hello"))
        await (await ann.says("are you there?")).confirmed.wait()
        assert said(desk) == [Said(text="hello"), Said(text="are you there?")]


async def test_a_token_of_another_kind_is_seen_at_once() -> None:
    async with SlackServer() as slack:
        context = slack_context(slack, ManualClock())
        swapped = replace(context, secrets={"bot_token": APP, "app_token": BOT})
        with pytest.raises(ChannelUnauthorized, match="xoxb-"):
            SlackChannel(swapped)


async def test_a_gateway_that_stays_away_is_said_to_be_down() -> None:
    """It was tried several times, ever later."""
    async with SlackServer() as slack:
        clock = ManualClock()
        down = Fault(body={"ok": False, "error": "internal_error"})
        slack.will("apps.connections.open", *[down] * 9)
        channel = SlackChannel(slack_context(slack, clock))
        told: list[BaseException] = []

        async def receive() -> None:
            try:
                await channel.receive(Desk().admit, lambda: None)
            except* ChannelUnavailable as errors:
                told.extend(errors.exceptions)

        async with asyncio.TaskGroup() as group:
            task = group.create_task(receive())
            while not task.done():
                await slack.upstream("auth.test", BOT)  # lets the others go on
                await clock.advance(8.0)
        await channel.aclose()
    assert "the gateway can't be heard" in str(told[0])
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
async def test_the_token_goes_to_slacks_own_hosts_alone(url: str) -> None:
    """Whatever a file says of where it is."""
    async with SlackServer() as slack, stage(slack, Desk().admit) as here:
        slack.file_records["F1"] = {"id": "F1", "url_private": url}
        file = Attachment(reference="F1", name="a", media_type="x/y")
        with pytest.raises(ChannelRejected, match="not on a server of Slack"):
            await here.channel.fetch(file, max_bytes=10)


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
async def test_a_file_that_could_not_be_handed_over_shows_nothing(
    method: str, fault: Fault, error: type[Exception]
) -> None:
    """So it may be sent again, and then stands once."""
    async with with_ann() as (slack, here, ann, to):
        slack.will(method, fault)
        with pytest.raises(error):
            await here.channel.send_file(to, FILE)
        assert await slack.from_bot(ann.direct) == []
        await here.channel.send_file(to, FILE)
        (shown,) = await slack.from_bot(ann.direct)
        assert standing(shown, slack).file == (FILE.name, 3)


async def test_a_file_whose_caption_changes_stays() -> None:
    """The note that it may be a repeat is taken off again where it is none."""
    async with with_ann() as (slack, here, ann, to):
        ref = await here.channel.send_file(to, FILE)
        said = Rendered(body="*now*", plain="*now*")
        await here.channel.edit(ref, Outgoing(rendered=said, key="f1", plain=True))
        (stands,) = await slack.from_bot(ann.direct)
    assert standing(stands, slack) == Standing(text="*now*", file=(FILE.name, 3))


@pytest.mark.parametrize("looks", [1, MAX_CHECKS + 1])
async def test_a_file_is_shown_once_slack_has_looked_into_it(looks: int) -> None:
    """Or after a while: what it does not look into is shown as a link."""
    async with with_ann() as (slack, here, ann, to):
        slack.unprocessed = looks
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(here.channel.send_file(to, FILE))
            while not sending.done():
                await slack.upstream("auth.test", BOT)  # lets the others go on
                await here.clock.advance(CHECK_S)
        assert slack.calls.count("files.info") == min(looks, MAX_CHECKS) + 1
        assert len(await slack.from_bot(ann.direct)) == 1


async def test_a_lost_answer_is_found_by_a_clock_that_is_an_hour_fast() -> None:
    """What the bot answers stands above the answer, whatever the time is here. P1."""
    desk = Desk()
    async with SlackServer() as slack, stage(slack, desk.admit) as here:
        ann = await slack.person()
        asked = await ann.says("@zeroclaw hello", channel=await slack.channel(ann))
        await asked.confirmed.wait()
        fast = datetime.fromtimestamp(float(asked.ts) + 3600, UTC)
        here.clock.leap(fast - here.clock.now())
        to = desk.stored[0].address
        mark = here.channel.mark(to)
        slack.will("chat.postMessage", Fault(is_lost=True))
        with pytest.raises(DeliveryUnknown):
            await here.channel.send(to, here.message("Hi there."))
        assert (await looked(here.channel, to, here.message("Hi there."), mark)).ref is not None


async def test_a_file_whose_answer_was_lost_is_found() -> None:
    """By its key, which its message carries (P1)."""
    async with with_ann() as (slack, here, _, to):
        mark = here.channel.mark(to)
        slack.will("chat.postMessage", Fault(is_lost=True))
        with pytest.raises(DeliveryUnknown):
            await here.channel.send_file(to, FILE)
        seen = await looked(here.channel, to, FILE, mark)
        other = await looked(here.channel, to, replace(FILE, key="f2"), mark)
    assert seen.ref is not None
    assert other.ref is None


async def test_a_scope_that_the_app_lacks_is_named() -> None:
    """The operator reads what to add to the app (P10)."""
    async with with_ann() as (slack, here, _, to):
        said = {"ok": False, "error": "missing_scope", "needed": "files:write"}
        slack.will("files.getUploadURLExternal", Fault(body=said))
        with pytest.raises(ChannelRejected, match="missing_scope, the app needs the scope files:w"):
            await here.channel.send_file(to, FILE)


async def test_no_link_in_a_caption_is_fetched_for_a_preview() -> None:
    """The link to the file is; what the model wrote stands letter by letter."""
    said = "see https://evil.example/?secret <!channel> *bold*"
    async with with_ann() as (slack, here, ann, to):
        await here.channel.send_file(to, replace(FILE, caption=said))
        (shown,) = await slack.from_bot(ann.direct)
        (sent,) = slack.bot_messages[ann.direct].values()
    caption, below = cast("list[Json]", shown["blocks"])
    assert caption == text_block(said)
    assert "evil" not in str(below)
    assert (sent["unfurl_links"], sent["unfurl_media"]) == (False, True)


@pytest.mark.parametrize("is_read", [True, False])
async def test_a_card_that_is_too_long_stands_whole_in_a_file(is_read: bool) -> None:
    """P5. Its end is shown beside the file; or alone, where the bot may not read what it wrote."""
    async with with_ann() as (slack, here, ann, to):
        long = replace(CARD, calls=(replace(call(1), arguments="x" * 20_000),))
        ref = await here.channel.ask(to, long)
        (card,) = await slack.from_bot(ann.direct)
        link = link_in(cast("list[Json]", card["blocks"]))
        if not is_read:
            fault = Fault(body={"ok": False, "error": "missing_scope"})
            slack.will("conversations.history", fault)
        await here.channel.settle(ref, Outcome(card=long, endings=(APPROVED,)))
        (ended,) = await slack.from_bot(ann.direct)
        content = slack.files[str(slack.links[link]["id"])].decode()
    assert "x" * 20_000 in content
    assert long.calls[0].approval in str(card)
    assert long.calls[0].approval not in str(ended)
    assert link_in(cast("list[Json]", ended["blocks"])) == (link if is_read else "")


async def test_a_call_that_is_still_open_keeps_its_file_though_it_can_not_be_read() -> None:
    """P5: a button stands beside all of what it approves."""
    async with with_ann() as (slack, here, ann, to):
        long = replace(CARD, calls=(replace(call(1), arguments="x" * 20_000), call(2)))
        ref = await here.channel.ask(to, long)
        fault = Fault(body={"ok": False, "error": "missing_scope"})
        slack.will("conversations.history", fault)
        await here.channel.settle(ref, Outcome(card=long, endings=(APPROVED,)))
        (shown,) = await slack.from_bot(ann.direct)
        link = link_in(cast("list[Json]", shown["blocks"]))
        content = slack.files[str(slack.links[link]["id"])].decode()
    assert long.calls[1].approval in str(shown)
    assert long.calls[1].arguments in content


async def test_a_name_after_an_at_is_made_no_mention() -> None:
    """Slack is told to look for none, when a text is sent and when it is edited."""
    async with with_ann() as (slack, here, ann, to):
        ref = await here.channel.send(to, here.message("@channel @here @everyone"))
        await here.channel.edit(ref, here.message("@channel"))
        calls = [json.loads(one) for one in slack.history[ann.direct]]
    assert [(one["parse"], one["link_names"]) for one in calls] == [("none", False)] * 2


async def test_a_long_answer_is_edited_whole() -> None:
    """Slack takes less text beside the blocks of an edit than beside those of a new message (P6)."""
    whole = "Äpfel & Birnen, " * 700
    async with with_ann() as (slack, here, ann, to):
        ref = await here.channel.send(to, here.message("Äpfel"))
        await here.channel.edit(ref, here.message(whole))
        (shown,) = await slack.from_bot(ann.direct)
    assert standing(shown, slack).text == whole.strip()


@pytest.mark.parametrize("error", ["invalid_blocks", "msg_blocks_too_long"])
async def test_an_answer_whose_blocks_slack_refuses_is_shown_letter_by_letter(error: str) -> None:
    """It makes several blocks of Markdown, one of each table, and takes fifty. P6."""
    begun, whole = "`rm build/*`", "1. `rm build/*`\n\n| a[0] |\n|---|\n| List<T> &lt; &c |"
    refused = Fault(body={"ok": False, "error": error})
    async with with_ann() as (slack, here, ann, to):
        slack.will("chat.postMessage", refused)
        slack.will("chat.update", refused)
        ref = await here.channel.send(to, here.message(begun))
        (sent,) = await slack.from_bot(ann.direct)
        await here.channel.edit(ref, here.message(whole))
        (edited,) = await slack.from_bot(ann.direct)
    assert (sent["blocks"], edited["blocks"]) == ([text_block(begun)], [text_block(whole)])


async def test_a_message_whose_blocks_slack_refuses_in_any_form_is_refused() -> None:
    """An answer that lacks signs is not sent in its place: the operator is told (P6)."""
    refused = Fault(body={"ok": False, "error": "invalid_blocks"})
    async with with_ann() as (slack, here, _, to):
        slack.will("chat.postMessage", *(refused,) * 3)
        with pytest.raises(ChannelRejected) as text:
            await here.channel.send(to, here.message("a*b"))
        with pytest.raises(ChannelRejected):
            await here.channel.ask(to, CARD)
    assert not text.value.markup
    assert slack.calls.count("chat.postMessage") == 3


async def test_a_card_of_a_long_call_shows_its_end() -> None:
    """P5."""
    async with with_ann() as (slack, here, ann, to):
        long = replace(CARD, calls=(replace(call(1), arguments="x" * 5_000),))
        ref = await here.channel.ask(to, long)
        await here.channel.settle(ref, Outcome(card=long, endings=(APPROVED,)))
        (ended,) = await slack.from_bot(ann.direct)
    assert long.calls[0].approval not in str(ended)


async def test_what_slack_can_not_do_is_said() -> None:
    async with SlackServer() as slack, stage(slack, Desk().admit) as here:
        place = Address(channel="slack", account="T-U", chat="../x", direct=True)
        with pytest.raises(ChannelRejected):
            await here.channel.send(place, here.message("hello"))
        assert here.channel.direct_address("../x") is None
        with pytest.raises(ChannelRejected):
            await here.channel.typing(place)
        with pytest.raises(NotSupported, match="only in a thread"):
            await here.channel.typing(replace(place, chat="@UANN"))


async def test_a_message_ends_what_shows_that_the_bot_is_at_work() -> None:
    """Also one that came first while Slack was still told so."""
    async with SlackServer() as slack, stage(slack, Desk().admit) as here:
        ann = await slack.person()
        first = await ann.says("hello")
        to = here.channel.direct_address(ann.id)
        assert to is not None
        thread = replace(to, thread=first.ts)
        place = (ann.direct, first.ts)
        await here.channel.typing(thread)
        assert slack.statuses == {place: "…"}
        await here.channel.send(thread, here.message("hi"))
        assert slack.statuses == {}
        gate = asyncio.Event()
        slack.gates["assistant.threads.setStatus"] = gate
        async with asyncio.TaskGroup() as group:
            group.create_task(here.channel.typing(thread))
            await slack.until(lambda: slack.calls[-1] == "assistant.threads.setStatus")
            await here.channel.send(thread, here.message("there", "k2"))
            gate.set()
        assert slack.statuses == {place: ""}


async def test_the_settings_can_be_tried_without_a_message() -> None:
    async with SlackServer() as slack:
        settings = SETTINGS.model_copy(update={"api_base_url": slack.url})
        told = await check(settings, {"bot_token": BOT, "app_token": APP})
        assert told == "@zeroclaw answers in the workspace Zero"
        assert slack.calls == ["auth.test", "apps.connections.open"]


@pytest.mark.parametrize("url", ["http://slack.example.org/api", "ftp://127.0.0.1", "api"])
def test_a_token_is_not_sent_in_clear(url: str) -> None:
    token = SecretReference(env="X")
    with pytest.raises(ValidationError):
        SlackSettings(bot_token=token, app_token=token, api_base_url=url)


def test_what_follows_a_lost_message_is_configured() -> None:
    held = SETTINGS.model_copy(update={"uncertain": "hold"}).capabilities()
    assert (held.can_lookup, held.may_repeat) == (False, False)
    free = SETTINGS.model_copy(update={"limits": "off"}).capabilities()
    assert free.chat_budget.per_s == 0
