"""Events arrive in order and once, over cut connections, and after a time away."""

import asyncio
from collections.abc import Mapping

import pytest

from channels._remote import lanes, reconnection
from channels._remote.limits import LONGEST_WAIT_S
from channels.discord import DiscordSettings, adapter, cards, gateway
from channels.discord.adapter import DiscordChannel
from channels.discord.emulator import server
from channels.discord.emulator.server import CONTENT, Fault, Person
from tests.contract.channel_suite import Desk
from tests.contract.channel_words import CARD, FIRST
from tests.contract.discord_harness import SETTINGS
from tests.unit.channels.discord.rig import Rig, bot_for_ann, rig_for_ann, rigged
from zeroclaw import (
    Admission,
    ChannelUnauthorized,
    ChannelUnavailable,
    Deleted,
    Edited,
    Envelope,
    Ignored,
    RateLimited,
    Said,
    ZeroclawError,
)

pytestmark = pytest.mark.slow

EVERYTHING = SETTINGS.model_copy(update={"servers": "all"})
ONCE = cards.data(FIRST, "once")
HISTORY = r"/channels/\d+/messages$"


def words(count: int, start: int = 0) -> list[object]:
    return [Said(text=f"message {number}") for number in range(start, start + count)]


async def say_one(
    rig: Rig, ann: Person, channel: int, text: str, settings: DiscordSettings = SETTINGS
) -> None:
    """Let Ann write a message to the bot, which then stops."""
    async with rig.bot(settings):
        ann.says(channel, text)
        await rig.desk.holds(1)


# --- connections ---------------------------------------------------------------------------------


async def test_a_cut_connection_is_resumed_and_missed_events_arrive_once() -> None:
    """In order, by the same session (P1, P2)."""
    async with bot_for_ann() as (rig, ann, _, _):
        ann.says(ann.direct, "message 0")
        await rig.desk.holds(1)
        await rig.discord.drop()
        for number in range(1, 6):
            ann.says(ann.direct, f"message {number}")
        await rig.desk.holds(6)
    assert rig.bodies() == words(6)
    assert (rig.discord.identifies, rig.discord.resumes) == (1, 1)
    assert len(rig.desk.arrived) == 6


async def test_a_temporarily_closed_gateway_is_tried_again() -> None:
    async with bot_for_ann() as (rig, ann, _, _):
        rig.discord.refuses_connections = True
        await rig.discord.drop()
        ann.says(ann.direct, "message 0")
        await rig.log.until("gateway_lost", 2)
        rig.discord.refuses_connections = False
        await rig.clock.advance(1)
        await rig.desk.holds(1)
    assert rig.discord.resumes == 1


async def test_a_lost_session_begins_anew_and_the_histories_are_read() -> None:
    """The gateway repeats no events then; messages sent meanwhile arrive all the same (P1)."""
    async with bot_for_ann() as (rig, ann, _, _):
        ann.says(ann.direct, "message 0")
        await rig.desk.holds(1)
        await rig.discord.drop(forget=True)
        ann.says(ann.direct, "message 1")
        await rig.log.until("gateway_lost", 2)
        await rig.clock.advance(gateway.UNRESUMED_S)
        await rig.desk.holds(2)
    assert rig.bodies() == words(2)
    assert rig.discord.identifies == 2


async def test_a_silent_connection_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats are answered, so silence does not mean a quiet chat."""
    monkeypatch.setattr(gateway, "QUIET_S", 0.1)
    async with rigged() as rig, rig.bot():
        await rig.log.until("gateway_lost")
        await rig.discord.until_resumed()


async def test_a_connection_that_answers_no_heartbeat_is_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Even if it sends events: data sent to it are lost."""
    monkeypatch.setattr(server, "HEARTBEAT_MS", 20)
    async with rigged() as rig, rig.bot():
        rig.discord.ignores_heartbeats = True
        await rig.log.until("gateway_lost")
        rig.discord.ignores_heartbeats = False
        await rig.discord.until_resumed()


async def receive_error(rig: Rig, settings: object = SETTINGS) -> ZeroclawError:
    """Return the error that `receive` raises."""
    assert isinstance(settings, type(SETTINGS))
    channel = DiscordChannel(rig.context(settings))
    try:
        with pytest.raises(ExceptionGroup) as raised:
            await channel.receive(rig.desk.admit, lambda: None)
    finally:
        await channel.aclose()
    [error] = raised.value.exceptions
    assert isinstance(error, ZeroclawError)
    return error


async def test_a_gateway_that_stays_away_ends_receiving() -> None:
    """So the supervisor reports it, and restarts with its own waits (P10)."""
    async with rigged() as rig, asyncio.TaskGroup() as group:
        rig.discord.refuses_connections = True
        failing = group.create_task(receive_error(rig))
        for tries, wait_s in enumerate(reconnection.WAITS_S[:-1], start=1):
            await rig.log.until("gateway_lost", tries)
            await rig.clock.advance(wait_s)
        error = await failing
    assert type(error) is ChannelUnavailable
    assert str(error).startswith(
        "`discord`: the gateway can't be heard: the gateway can't be reached"
    )


async def test_an_unknown_token_is_one_line() -> None:
    async with rigged() as rig:
        rig.discord.token += "x"
        context = rig.context()
        rig.discord.token = rig.discord.token[:-1]
        channel = DiscordChannel(context)
        with pytest.raises(
            ChannelUnauthorized, match="does not accept the token; get one at https:"
        ):
            await channel.receive(rig.desk.admit, lambda: None)
        await channel.aclose()


async def test_an_intent_that_is_not_granted_is_one_line() -> None:
    """The intent is requested only if every message is needed (P10)."""
    async with rigged() as rig:
        rig.discord.granted = ~CONTENT
        error = await receive_error(rig, EVERYTHING)
        async with rig.bot():
            pass
    assert isinstance(error, ChannelUnauthorized)
    assert "turn on Message Content Intent" in str(error)


@pytest.mark.parametrize(
    ("settings", "bits"),
    [({"servers": "off"}, {12}), ({}, {0, 9, 12}), ({"servers": "all"}, {0, 9, 12, 15})],
)
async def test_only_the_needed_intents_are_requested(
    settings: Mapping[str, object], bits: set[int]
) -> None:
    """A bot for direct chats gets no server events; presses and slash commands need no intent."""
    async with rigged() as rig, rig.bot(SETTINGS.model_copy(update=settings)):
        assert rig.discord.intents == {sum(1 << bit for bit in bits)}


@pytest.mark.parametrize(("reset_after_ms", "waited_s"), [(60_000, 60), (2**62, LONGEST_WAIT_S)])
async def test_a_bot_without_sessions_left_today_waits(
    reset_after_ms: int, waited_s: float
) -> None:
    """Otherwise Discord revokes its token; no server can make it wait for years."""
    async with rigged() as rig:
        rig.discord.remaining, rig.discord.reset_after_ms = 0, reset_after_ms
        error = await receive_error(rig)
    assert isinstance(error, RateLimited)
    assert error.retry_after_s == waited_s
    assert rig.discord.identifies == 0


async def test_malformed_events_are_skipped_and_later_ones_received() -> None:
    """A broken event does not stop the channel (P9)."""
    async with bot_for_ann() as (rig, ann, _, _):
        malformed: list[object] = [None, [], {}, {"id": 5}, {"channel_id": "9" * 40, "author": []}]
        for name in sorted(gateway.EVENTS - {"READY"}):
            for data in malformed:
                rig.discord.dispatch(name, data)
        ids: list[object] = [None, [], "1"]
        rig.discord.dispatch("MESSAGE_DELETE_BULK", {"ids": ids, "channel_id": "1"})
        rig.discord.dispatch("SOMETHING_NEW", {"a": 1})
        ann.says(ann.direct, "message 0")
        await rig.desk.holds(1)
    assert rig.bodies() == words(1)


@pytest.mark.parametrize("frame", ["{", "[]", '{"op": 0, "t": "READY", "s": 1, "d": {}}', "null"])
async def test_an_invalid_frame_ends_only_the_connection(frame: str) -> None:
    async with bot_for_ann() as (rig, ann, _, _):
        await rig.discord.send_raw(frame)
        await rig.log.until("gateway_lost")
        await rig.clock.advance(1)
        ann.says(ann.direct, "message 0")
        await rig.desk.holds(1)


# --- reading back ---------------------------------------------------------------------


async def test_servers_and_threads_are_read_back_too() -> None:
    """Each is a separate chat; the bot's own and other people's messages are skipped."""
    async with rig_for_ann() as (rig, ann, general):
        thread = rig.discord.thread(general, "aside")
        call = f"<@{rig.discord.bot}>"
        async with rig.bot() as channel:
            ann.says(general, f"{call} message 0")
            ann.says(thread, f"{call} message 1")
            await rig.desk.holds(2)
            to = rig.desk.stored[0].address
            await channel.typing(to)
        ann.says(general, "to somebody else")
        ann.says(general, f"{call} message 2")
        ann.says(thread, f"{call} message 3")
        async with rig.bot():
            await rig.desk.holds(4)
    chats = [envelope.address.chat for envelope in rig.desk.stored]
    assert chats[:2] == [str(general), str(thread)]
    assert sorted(chats[2:]) == sorted(chats[:2])
    assert {envelope.address.direct for envelope in rig.desk.stored} == {False}


async def test_a_chat_in_which_an_edit_first_mentioned_the_bot_is_read_back() -> None:
    """The chat is known from then on, although the message was first skipped."""
    async with rigged() as rig:

        async def admit(envelope: Envelope) -> Admission:
            is_edit = isinstance(envelope.body, Edited)
            return Ignored() if is_edit else await rig.desk.admit(envelope)

        ann, general = rig.discord.person("ann"), rig.discord.channel("general")
        call = f"<@{rig.discord.bot}>"
        async with rig.bot(admit=admit):
            ann.edits(ann.says(general, "message 0"), f"{call} message 0")
            await rig.desk.holds(1)
        ann.says(general, f"{call} message 1")
        async with rig.bot():
            await rig.desk.holds(2)
    assert rig.bodies() == words(2)


async def test_a_chat_without_new_messages_is_not_read() -> None:
    """Servers send the newest message of each channel, so a restart needs no call for it."""
    async with rig_for_ann() as (rig, ann, general):
        for number in range(4):
            other = rig.discord.channel(f"other-{number}")
            async with rig.bot():
                ann.says(other, f"<@{rig.discord.bot}> hello")
                await rig.desk.holds(number + 1)
        rig.discord.calls.clear()
        async with rig.bot():
            ann.says(general, f"<@{rig.discord.bot}> hello")
            await rig.desk.holds(5)
        reads = [
            path for method, path in rig.discord.calls if method == "GET" and "messages" in path
        ]
    assert len(reads) <= 2


async def test_a_servers_data_from_before_a_lost_session_hide_no_message() -> None:
    """Servers send their channels' newest messages after a session has begun and chats were
    read."""
    async with rig_for_ann() as (rig, ann, general):
        rig.discord.are_servers_late = True
        async with rig.bot(EVERYTHING):
            ann.says(general, "message 0")
            await rig.desk.holds(1)
            rig.discord.dispatch_servers()
            ann.says(ann.direct, "message 1")  # is received after the server's data
            await rig.desk.holds(2)
            await rig.discord.drop(forget=True)
            ann.says(general, "message 2")
            await rig.log.until("gateway_lost", 2)
            await rig.clock.advance(gateway.UNRESUMED_S)
            await rig.discord.until(lambda: rig.discord.identifies == 2)
            rig.discord.dispatch_servers()
            await rig.desk.holds(3)
    assert rig.bodies() == words(3)


async def test_an_archived_thread_is_looked_up_in_each_session() -> None:
    """Servers do not tell of it, even if messages opened it while the session was lost."""
    async with rig_for_ann() as (rig, ann, general):
        thread = rig.discord.thread(general, "aside")
        await say_one(rig, ann, thread, "message 0", EVERYTHING)
        rig.discord.archive(thread)
        async with rig.bot(EVERYTHING):
            await rig.discord.until_called("GET", rf"/channels/{thread}$")
            await rig.discord.drop(forget=True)
            ann.says(thread, "message 1")
            rig.discord.archive(thread)
            await rig.log.until("gateway_lost", 2)
            await rig.clock.advance(gateway.UNRESUMED_S)
            await rig.desk.holds(2)
    assert rig.bodies() == words(2)


async def test_a_history_is_read_once_the_bots_role_is_known() -> None:
    """Servers tell the role that a missed message may mention in place of the bot."""
    async with rig_for_ann() as (rig, ann, general):
        await say_one(rig, ann, general, f"<@{rig.discord.bot}> message 0")
        missed = {"id": str(ann.says(general, "?").id), "channel_id": str(general), "type": 0}
        missed |= {"content": "<@&5> message 1", "mention_roles": ["5"]}
        missed |= {"author": {"id": str(ann.id), "username": "ann"}}
        rig.discord.will(Fault(method="GET", path=HISTORY, status=200, body=[missed]))
        rig.discord.are_servers_late = True
        async with rig.bot() as channel:
            await channel.typing(rig.desk.stored[0].address)
            ann.says(ann.direct, "message 2")
            await rig.desk.holds(2)
            [guild] = rig.discord.backend.guilds
            role = {"id": "5", "tags": {"bot_id": str(rig.discord.bot)}}
            rig.discord.dispatch("GUILD_CREATE", {"id": str(guild), "roles": [role]})
            await rig.desk.holds(3)
    assert rig.bodies() == [*words(1), *words(1, 2), *words(1, 1)]


async def test_messages_dropped_by_a_full_queue_are_read_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The newest message at the beginning of a session is no longer the newest."""
    monkeypatch.setattr(lanes, "MAX_WAITING", 1)
    async with rig_for_ann() as (rig, ann, general):
        await say_one(rig, ann, general, "message 0", EVERYTHING)
        async with rig.bot(EVERYTHING):
            rig.desk.hold()
            for number in range(1, 4):
                ann.says(general, f"message {number}")
            await rig.log.until("lane_overflowed")
            rig.desk.release()
            await rig.desk.holds(4)
    assert rig.bodies() == words(4)


async def test_a_server_in_an_outage_delays_no_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "SERVERS_S", 0.0)
    async with rig_for_ann() as (rig, ann, general):
        await say_one(rig, ann, general, f"<@{rig.discord.bot}> message 0")
        ann.says(general, f"<@{rig.discord.bot}> message 1")
        rig.discord.are_servers_late = True
        async with rig.bot():
            await rig.desk.holds(2)
    assert rig.bodies() == words(2)


async def test_the_most_recent_chats_are_read_back_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread is a chat, and after a year of threads the others would wait for minutes."""
    monkeypatch.setattr(lanes, "MAX_READING", 1)
    async with rigged() as rig:
        names = ("ann", "ben", "cat")
        people = [rig.discord.person(name) for name in names]
        async with rig.bot():
            for count, person in enumerate((people[2], people[0], people[1]), 1):
                person.says(person.direct, "hello")
                await rig.desk.holds(count)
        for person, name in zip(people, names, strict=True):
            person.says(person.direct, f"I am {name}.")
        async with rig.bot():
            await rig.desk.holds(6)
    assert rig.bodies()[3:] == [Said(text=f"I am {name}.") for name in ("ben", "ann", "cat")]


async def test_a_direct_chat_with_only_a_button_press_is_read_back() -> None:
    """Such as the chat of an operator who only answers cards. P1."""
    async with rigged() as rig:
        olga = rig.discord.person("olga")
        async with rig.bot() as channel:
            to = channel.direct_address(str(olga.id))
            assert to is not None
            card = await channel.ask(to, CARD)
            await olga.presses(olga.direct, int(card.message), ONCE).answered()
        olga.says(olga.direct, "message 0")
        async with rig.bot():
            await rig.desk.holds(2)
    assert rig.bodies()[1:] == words(1)


async def test_a_direct_chat_with_only_a_command_is_read_back_in_the_next_session() -> None:
    async with bot_for_ann() as (rig, ann, _, _):
        await ann.uses(ann.direct, "help").answered()
        await rig.discord.drop(forget=True)
        ann.says(ann.direct, "message 0")
        await rig.log.until("gateway_lost", 2)
        await rig.clock.advance(gateway.UNRESUMED_S)
        await rig.desk.holds(2)
    assert rig.bodies()[1:] == words(1)


async def test_a_channel_in_which_a_question_was_asked_by_command_is_read_back() -> None:
    """The bot answered there, so people expect that it knows the channel. P1."""
    async with rig_for_ann() as (rig, ann, general):
        async with rig.bot():
            await ann.uses(general, "ask", question="are you there?").answered()
        ann.says(general, f"<@{rig.discord.bot}> message 0")
        async with rig.bot():
            await rig.desk.holds(2)
    assert rig.bodies()[1:] == words(1)


async def test_long_histories_are_read_page_by_page_up_to_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The newest are read, oldest first; the log notes messages beyond the bound."""
    monkeypatch.setattr(adapter, "MAX_MISSED", 200)
    async with rig_for_ann() as (rig, ann, _):
        async with rig.bot():
            ann.says(ann.direct, "first")
            await rig.desk.holds(1)
        for number in range(250):
            ann.says(ann.direct, f"message {number}")
        async with rig.bot():
            await rig.desk.holds(201)
    assert rig.bodies()[1:] == words(200, 50)
    assert rig.log.count("history_cut") == 1


async def test_a_long_history_is_read_to_its_end_despite_rate_limits() -> None:
    """Starting again after each wait would use up the same limit each time."""
    async with rig_for_ann() as (rig, ann, _):
        await say_one(rig, ann, ann.direct, "message 0")
        for number in range(1, 251):
            ann.says(ann.direct, f"message {number}")
        spent = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "2"}
        rig.discord.limits.append(("GET", HISTORY, spent))
        async with rig.bot():
            await rig.log.until("history_paused", 1)
            await rig.clock.advance(2)
            await rig.log.until("history_paused", 2)
            await rig.clock.advance(2)
            await rig.desk.holds(251)
    assert rig.bodies() == words(251)


async def test_messages_received_while_a_history_is_read_wait_for_it() -> None:
    """Only messages of that chat wait; a failed read is retried (P2, P9)."""
    async with rigged() as rig:
        ann, bob = rig.discord.person("ann"), rig.discord.person("bob")
        await say_one(rig, ann, ann.direct, "message 0")
        ann.says(ann.direct, "message 1")
        rig.discord.will(Fault(method="GET", path=HISTORY, status=500, body={}))
        async with rig.bot():
            await rig.log.until("history_not_read")
            ann.says(ann.direct, "message 2")
            bob.says(bob.direct, "hello")
            await rig.desk.holds(2)
            assert rig.bodies()[-1] == Said(text="hello")
            await rig.clock.advance(1)
            await rig.desk.holds(4)
    assert rig.bodies() == [*words(1), Said(text="hello"), *words(2, 1)]


async def test_a_forbidden_history_is_left_out() -> None:
    async with rig_for_ann() as (rig, ann, _):
        await say_one(rig, ann, ann.direct, "message 0")
        body = {"message": "Missing Access", "code": 50001}
        rig.discord.will(Fault(method="GET", path=HISTORY, status=403, body=body))
        async with rig.bot():
            await rig.log.until("history_refused")
            ann.says(ann.direct, "message 1")
            await rig.desk.holds(2)
    assert rig.bodies() == words(2)


async def test_a_history_that_is_refused_within_is_read_again_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its newest page comes first, and would move the position past the other messages (P1)."""
    monkeypatch.setattr(adapter, "PAGE", 1)
    async with rig_for_ann() as (rig, ann, _):
        await say_one(rig, ann, ann.direct, "message 0")
        ann.says(ann.direct, "message 1")
        newest = {"id": str(ann.says(ann.direct, "message 2").id), "channel_id": str(ann.direct)}
        newest |= {"type": 0, "content": "message 2", "author": {"id": str(ann.id)}}
        rig.discord.will(Fault(method="GET", path=HISTORY, status=200, body=[newest]))
        body = {"message": "Missing Access", "code": 50001}
        rig.discord.will(Fault(method="GET", path=HISTORY, status=403, body=body))
        async with rig.bot():
            await rig.log.until("history_refused")
        async with rig.bot():
            await rig.desk.holds(3)
    assert rig.bodies() == words(3)


# --- edits and deletions -------------------------------------------------------------------------


async def test_edits_and_deletions_follow_the_message_that_they_change() -> None:
    async with bot_for_ann(EVERYTHING) as (rig, ann, general, _):
        message = ann.says(general, "hello")
        ann.edits(message, "bye")
        await rig.desk.holds(2)
        ann.deletes(message)
        await rig.desk.holds(3)
    body = [envelope.body for envelope in rig.desk.stored]
    assert body[1:] == [
        Edited(message=str(message.id), said=Said(text="bye")),
        Deleted(message=str(message.id)),
    ]
    assert {envelope.sender.id for envelope in rig.desk.stored} == {str(ann.id)}


async def test_the_deletion_of_a_new_message_follows_it() -> None:
    """Its writer is remembered before the message itself is admitted."""
    async with bot_for_ann() as (rig, ann, _, _):
        message = ann.says(ann.direct, "hello")
        ann.deletes(message)
        await rig.desk.holds(2)
    assert rig.bodies() == [Said(text="hello"), Deleted(message=str(message.id))]


async def test_a_message_with_late_link_previews_is_still_its_writers() -> None:
    """Such an update may not name the writer."""
    async with bot_for_ann(EVERYTHING) as (rig, ann, general, _):
        message = ann.says(general, "see https://example.org")
        ids = {"id": str(message.id), "channel_id": str(general), "guild_id": "1"}
        rig.discord.dispatch("MESSAGE_UPDATE", {**ids, "embeds": [{"title": "An example"}]})
        ann.deletes(message)
        await rig.desk.holds(2)
    assert rig.bodies()[1:] == [Deleted(message=str(message.id))]


async def test_the_bots_own_role_is_known_from_its_server() -> None:
    """People choose it in place of the bot's name."""
    async with rig_for_ann() as (rig, ann, general):
        role = {"id": "5", "tags": {"bot_id": str(rig.discord.bot)}}
        async with rig.bot():
            rig.discord.dispatch("GUILD_CREATE", {"id": "1", "roles": [role]})
            rig.discord.dispatch("GUILD_CREATE", {"id": "2", "roles": []})
            told = {
                "id": "9",
                "type": 0,
                "channel_id": str(general),
                "guild_id": "1",
                "content": "<@&5> hi",
            }
            author = {"id": str(ann.id), "username": "ann"}
            rig.discord.dispatch(
                "MESSAGE_CREATE", {**told, "author": author, "mention_roles": ["5"]}
            )
            ann.says(general, f"<@{rig.discord.bot}> hello")
            await rig.desk.holds(1)
    assert rig.desk.stored[0].message == "9"


async def test_messages_purged_by_a_moderator_are_each_deleted() -> None:
    async with bot_for_ann(EVERYTHING) as (rig, ann, general, _):
        message_ids = [ann.says(general, f"message {number}").id for number in range(2)]
        rig.discord.backend.bulk_delete_messages(general, message_ids)
        await rig.desk.holds(4)
    assert rig.bodies() == [*words(2), *(Deleted(message=str(id_)) for id_ in message_ids)]


async def test_an_unavailable_store_delays_events_and_loses_none() -> None:
    """Each chat keeps its order; no event passes one that could not be stored (P1, P2)."""
    desk = Desk()
    desk.fault = ChannelUnavailable("the store is away")
    async with rigged() as rig:
        rig.desk = desk
        ann = rig.discord.person("ann")
        async with rig.bot():
            for number in range(3):
                ann.says(ann.direct, f"message {number}")
            await rig.log.until("event_not_admitted")
            desk.fault = None
            await rig.clock.advance(1)
            await desk.holds(3)
    assert rig.bodies() == words(3)
