"""Erasure removes what a person said when they confirm `/forget`, and no one else's words."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Self

import pytest

from tests.fakes.house import House, World
from tests.fakes.journals import fold
from tests.fakes.manual_clock import EPOCH
from tests.fakes.memory_store import MemoryStore
from tests.fakes.scripted_channel import Call
from tests.fakes.scripted_model import LOOK, POKE, asks_for, says
from tests.unit.turn.test_compaction import with_notes
from zeroclaw.codec import decode
from zeroclaw.context.notes import Notes
from zeroclaw.conversation.inbox import INBOX
from zeroclaw.envelope import (
    ConversationId,
    Edited,
    ItemId,
    Moved,
    Principal,
    Said,
    TurnId,
    is_off_the_record,
)
from zeroclaw.errors import ChannelUnavailable
from zeroclaw.gate import audit
from zeroclaw.gate.action import ACTIONS
from zeroclaw.gate.approval import APPROVALS
from zeroclaw.gate.grant import GRANTS
from zeroclaw.gate.taint import named
from zeroclaw.inbound.anchors import verify_stream
from zeroclaw.inbound.commands.forget import OPEN
from zeroclaw.inbound.conversations import POINTERS
from zeroclaw.message import NO_USAGE, AssistantMessage, UserMessage
from zeroclaw.retention.collect import collect
from zeroclaw.retention.erase import AGAIN_S, TRIES
from zeroclaw.retention.export import lines
from zeroclaw.retention.policy import journal_without
from zeroclaw.retention.tables import TABLES
from zeroclaw.store import (
    PAGE,
    Append,
    Claim,
    Commit,
    Delete,
    DropBlob,
    DurablePoint,
    LogKind,
    Put,
    PutBlob,
    Query,
    Row,
    RowKind,
    Trim,
    Write,
)
from zeroclaw.tool import ToolContext, ToolOutput
from zeroclaw.tools.notes.note import Note
from zeroclaw.turn import entries
from zeroclaw.turn.kept_results import KeptResult
from zeroclaw.turn.states import TurnLimits
from zeroclaw.turn.titles import TITLES, Title
from zeroclaw.value import replace


def code_of(text: str) -> str:
    match = re.search(r"`/forget (\w+)`", text)
    assert match is not None, text
    return match[1]


async def forget(house: House, writer: str = "ada", subject: str = "") -> None:
    """Send `/forget` and confirm it with its code."""
    await house.say(f"/forget {subject}".rstrip(), writer)
    await house.say(f"/forget {code_of(house.texts(writer)[-1])}", writer)
    await settled(house)


async def settled(house: House) -> None:
    for _ in range(10):
        await house.advance(1)


async def let_others_work() -> None:
    """Let other tasks pick up the last commit, from within a commit that is awaited."""
    for _ in range(100):
        await asyncio.sleep(0)


def edit_while_removed(world: World, house: House, message: str, room: str) -> None:
    """Let Ben edit a message after its journal is removed, and before its own row is."""

    async def edit_first(writes: tuple[Write, ...]) -> None:
        if any(isinstance(write, Delete) and write.kind is RowKind.TURN for write in writes):
            world.store.meanwhile = None
            edit = house.envelope(
                Edited(message=message, said=Said(text="tulip two")), "ben", room=room
            )
            await house.services.ingress.admit(edit)
            await let_others_work()

    world.store.meanwhile = edit_first


async def card_ends(house: House) -> None:
    """Ben's waiting card is stopped, and nothing of its request remains."""
    await house.advance(120)
    assert house.endings() == [("stopped", "Ben")]
    assert await house.rows(RowKind.APPROVAL) == ()


async def stored_text(world: World) -> str:
    """Everything stored except the audit, as one text."""
    store = world.store
    rows = [row.body for kind in RowKind for row in await store.select(Query(kind=kind))]
    for stream in await store.streams(LogKind.JOURNAL):
        rows += [entry.body for entry in await store.read(LogKind.JOURNAL, stream)]
    return b"\n".join(rows).decode(errors="replace")


def user_messages(world: World) -> list[str]:
    """The user messages of the newest model request."""
    messages = world.model.requests[-1].messages
    return [message.content for message in messages if isinstance(message, UserMessage)]


async def test_a_private_chat_is_erased_except_for_its_audit(world: World) -> None:
    """All its conversations; a new message begins a new one, and the person is notified."""
    world.model.will(LOOK, says("tulip seen"), says("tulip again"))
    async with world.running() as house:
        await house.say("tulip one")
        await house.say("/new")
        await house.say("tulip two")
        await house.say("tulip of ben", "ben")
        streams = await world.store.streams(LogKind.AUDIT)
        await forget(house)
        remaining = await stored_text(world)
        assert "tulip of ben" in remaining
        assert not re.search(r"tulip (one|two|seen|again)", remaining)
        assert house.texts()[-1] == "Done: what you said to me is removed."
        assert await world.store.streams(LogKind.AUDIT) == streams
        for stream in streams:
            assert isinstance(await verify_stream(world.store, stream), audit.Intact)
        assert await house.rows(RowKind.FORGETTING) == ()
        await house.say("hello")
        assert house.texts()[-1] == "ok"
        assert user_messages(world) == ["hello"]


class Body(bytes):
    """The body of a row that was read, counted while something holds a reference to it."""

    alive: ClassVar[int] = 0

    def __new__(cls, body: bytes) -> Self:
        """Count it."""
        cls.alive += 1
        return super().__new__(cls, body)

    def __del__(self) -> None:
        Body.alive -= 1


class CountingStore(MemoryStore):
    """Reads its rows anew each time, as one on disk does."""

    async def select(self, query: Query) -> tuple[Row, ...]:
        """Return the rows that match, with counted bodies."""
        return tuple(replace(row, body=Body(row.body)) for row in await super().select(query))


async def test_erasing_a_long_chat_holds_one_page_in_memory(world: World) -> None:
    """A person may have written for years."""
    world.store = CountingStore(clock=world.clock, tables=TABLES)
    alive = list[int]()
    async with world.running() as house:
        await house.say("tulip")
        (message,) = await house.rows(RowKind.INBOX)
        copies = (
            replace(
                INBOX.put(f"{message.key[:-4]}{number:04}", INBOX.of(message)), state=message.state
            )
            for number in range(3 * PAGE)
        )
        writes = [
            replace(row, conversation=message.conversation, place=message.place) for row in copies
        ]
        await world.store.write(*writes)
        del message
        world.store.before = lambda commit: alive.append(Body.alive)
        await forget(house)
        assert house.texts()[-1] == "Done: what you said to me is removed."
        assert "tulip" not in await stored_text(world)
    assert max(alive) < 2 * PAGE


async def test_an_edit_that_arrives_as_its_message_is_removed_is_not_stored(world: World) -> None:
    """It is planned while the message exists, and committed after it is gone."""
    async with world.running() as house:
        await house.say("tulip one")
        await house.say("/forget")
        repeated = house.command("forget", code_of(house.texts()[-1]))

        async def erase_first(_: tuple[Write, ...]) -> None:
            world.store.meanwhile = None
            await house.services.ingress.admit(house.envelope(repeated))
            await world.clock.advance(10)
            assert await house.rows(RowKind.FORGETTING) == ()

        world.store.meanwhile = erase_first
        await house.edit("p1", "tulip two")
        assert house.texts()[-1] == "Done: what you said to me is removed."
        assert "tulip" not in await stored_text(world)


@pytest.mark.parametrize("room", ["", "club"])
async def test_an_edit_that_arrives_while_its_chat_is_removed_is_not_stored(
    world: World, room: str
) -> None:
    """It is admitted after the journal is removed, and before the message that it changes."""
    async with world.running() as house:
        await house.say("tulip one", "ben", room=room)
        edit_while_removed(world, house, "p1", room)
        await forget(house, "ben")
        assert world.store.meanwhile is None
        assert house.texts("ben")[-1] == "Done: what you said to me is removed."
        assert "tulip" not in await stored_text(world)


@pytest.mark.parametrize("is_during", [True, False])
async def test_an_edit_stored_after_another_persons_turn_is_erased_too(
    world: World, is_during: bool
) -> None:
    """It is in the shared journal, behind or within a turn that stays."""
    async with world.running() as house:
        await house.say("tulip one", "ben", room="club")
        world.model.will(*[POKE] * is_during, says("of ada"))
        await house.say("a rose", room="club")
        await house.edit("p1", "tulip two", "ben", room="club")
        if is_during:
            await house.press()
        assert "tulip two" in await stored_text(world)
        await house.say("a lily", room="club")
        await house.edit("p2", "a daisy", room="club")
        await forget(house, "ben")
        remaining = await stored_text(world)
        assert "tulip" not in remaining
        assert "a daisy" in remaining


async def test_a_stop_that_arrives_while_its_chat_is_removed_leaves_nothing(world: World) -> None:
    """It is planned while the earlier conversation has a turn, and is answered there (P1)."""
    world.model.will(asks_for(("burn", "{}")))
    world.burn.hold = asyncio.Event()
    async with world.running() as house, asyncio.TaskGroup() as group:
        await house.say("tulip")
        await house.press()
        [conversation] = await world.store.streams(LogKind.JOURNAL)
        stop = house.envelope(house.said("/stop"))
        is_due = asyncio.Event()

        async def stop_late(writes: tuple[Write, ...]) -> None:
            removed = {(write.kind, write.key) for write in writes if isinstance(write, Delete)}
            if any(isinstance(write, Claim) and write.keys == stop.keys for write in writes):
                await is_due.wait()
            elif (RowKind.CONVERSATION, conversation) in removed and not is_due.is_set():
                is_due.set()
                await let_others_work()

        await house.say("/new")
        world.store.meanwhile = stop_late
        stopped = group.create_task(house.services.ingress.admit(stop))
        await house.settle()
        world.burn.hold.set()
        await forget(house)
        assert stopped.done()
        assert is_due.is_set()
        assert house.texts()[-1] == "Done: what you said to me is removed."
        for kind in (RowKind.INBOX, RowKind.OUTBOX):
            assert conversation not in [row.conversation for row in await house.rows(kind)]


async def test_a_setting_changed_while_an_off_the_record_chat_is_erased_is_kept(
    world: World,
) -> None:
    """The chat stays off the record, with the setting that was just chosen."""
    async with world.running() as house:
        await house.say("/otr")
        await house.say("tulip")
        await house.say("/forget")
        code = code_of(house.texts()[-1])

        async def choose_first(writes: tuple[Write, ...]) -> None:
            if any(isinstance(write, Put) and write.kind is RowKind.ADDRESS for write in writes):
                world.store.meanwhile = None
                choice = house.envelope(house.command("queue", "steer"))
                await house.services.ingress.admit(choice)

        world.store.meanwhile = choose_first
        await house.say(f"/forget {code}")
        await settled(house)
        assert house.texts()[-1] == "Done: what you said to me is removed."
        (row,) = await house.rows(RowKind.ADDRESS)
        pointer = POINTERS.of(row)
        assert (is_off_the_record(pointer.conversation), pointer.while_busy) == (True, "steer")


async def test_otr_off_during_an_erasure_begins_a_new_conversation(world: World) -> None:
    """While the removal waits for a turn, `/otr off` begins a new conversation."""
    world.model.will(asks_for(("burn", "{}")))
    world.burn.hold = asyncio.Event()
    async with world.running() as house:
        await house.say("burn it")
        await house.press()
        await house.say("/otr")
        await house.say("/forget")
        await house.say(f"/forget {code_of(house.texts()[-1])}")
        await house.say("/otr off")
        world.burn.hold.set()
        await settled(house)
        assert await house.rows(RowKind.FORGETTING) == ()
        (pointer_row,) = await house.rows(RowKind.ADDRESS)
        assert await house.rows(RowKind.TURN) == ()
        assert pointer_row.conversation in [
            row.key for row in await house.rows(RowKind.CONVERSATION)
        ]


async def test_messages_from_before_a_person_had_a_name_are_erased_too(world: World) -> None:
    """In shared chats too, where they are stored under the sender's id alone."""
    ada, ben = world.config.people
    world.configure(people=(ada,))
    async with world.running() as house:
        await house.say("tulip of ben", "ben", room="lobby")
        await house.say("rose of ada", room="lobby")
        world.configure(people=(ada, ben))
        await house.ask("reload")
        await forget(house, "ben")
        remaining = await stored_text(world)
        assert "tulip" not in remaining
        assert "rose of ada" in remaining
        assert house.texts("ben")[-1] == "Done: what you said to me is removed."


async def test_messages_under_a_persons_earlier_name_are_erased_too(world: World) -> None:
    """An id that changed hands does not erase anything of its earlier owner."""
    ada, ben = world.config.people
    world.configure(people=(ada, ben.model_copy(update={"name": "benedict"})))
    async with world.running() as house:
        await house.say("tulip of ben", "ben")
        await house.say("tulip of ben", "ben", room="lobby")
        await house.say("/language de", "ben")
        await house.say("/language en")
        await house.say("rose of ada", room="lobby")
        renamed_ada = ada.model_copy(update={"ids": ("chat:17",)})
        world.configure(people=(renamed_ada, ben.model_copy(update={"ids": (*ada.ids, *ben.ids)})))
        await house.ask("reload")
        await forget(house, "ben")
        remaining = await stored_text(world)
        assert "tulip" not in remaining
        assert "rose of ada" in remaining
        assert [row.key for row in await house.rows(RowKind.LANGUAGE)] == ["person:ada"]


@pytest.mark.parametrize("is_named", [True, False])
async def test_messages_under_a_name_shared_by_several_stay_until_an_operator_erases_them(
    world: World, *, is_named: bool
) -> None:
    """The configuration has since split one person in two; an operator may erase the old name."""
    ada, ben = world.config.people
    old = ben.model_copy(update={"name": "old", "ids": (*ben.ids, "chat:cleo")})
    world.configure(people=(ada, old))
    async with world.running() as house:
        await house.say("tulip of ben", "ben")
        await house.say("rose of cleo", "cleo")
        await house.say("rose of cleo", "cleo", room="lobby")
        cleo = old.model_copy(update={"name": "cleo", "ids": ("chat:cleo",)})
        world.configure(people=(ada, *[ben, cleo] * is_named))
        await house.ask("reload")
        await house.say("tulip two", "ben")
        await forget(house, "ben")
        remaining = await stored_text(world)
        assert "tulip two" not in remaining
        assert remaining.count("rose of cleo") > 1
        await forget(house, subject="old")
        assert "rose of cleo" not in await stored_text(world)


async def test_a_request_must_be_confirmed_in_time(world: World) -> None:
    """With the code, within ten minutes; any other code makes a new request."""
    async with world.running() as house:
        await house.say("tulip")
        await house.say("/forget")
        first = code_of(house.texts()[-1])
        await house.advance(601)
        await house.say(f"/forget person:{first}")
        await house.say(f"/forget {first}")
        await settled(house)
        assert "tulip" in await stored_text(world)
        assert code_of(house.texts()[-1]) != first
    async with world.running() as house:
        await settled(house)
        assert "tulip" in await stored_text(world)


async def test_an_erasure_survives_restarts(world: World) -> None:
    """The next process continues it from wherever it was cut off."""
    world.model.will(LOOK, says("tulip seen"))
    async with world.running() as house:
        await house.say("tulip", "ben")
        await forget_and_cut_off(house, world)
    await cut_off_everywhere(world)
    assert "tulip" not in await stored_text(world)


async def test_rows_of_an_earlier_name_are_erased_wherever_an_erasure_is_cut_off(
    world: World,
) -> None:
    """Only messages hold that name, and a process may have removed them already."""
    ada, ben = world.config.people
    async with world.running() as house:
        await house.say("tulip", "ben")
        await house.say("/language de", "ben")
        world.configure(people=(ada, ben.model_copy(update={"name": "benedict"})))
        await house.ask("reload")
        await forget_and_cut_off(house, world)
    await cut_off_everywhere(world)
    async with world.running() as house:
        assert await house.rows(RowKind.LANGUAGE) == ()


async def test_shared_facts_and_titles_are_erased_wherever_an_erasure_is_cut_off(
    world: World,
) -> None:
    """The facts and the title of a shared chat; the rows that lead to that chat are erased as
    well."""
    with_notes(world)
    world.configure(autonomy="full")
    async with world.running() as house:
        await house.say("rose", room="club")
        await house.say("tulip", "ben", room="club")
        world.model.will(says('"They like a tulip."'), says("State: a tulip."))
        await house.say("/compact", room="club")
        [conversation] = {
            row.conversation for row in await house.rows(RowKind.NOTE) if row.conversation
        }
        await world.store.write(
            TITLES.put(conversation, Title(text="Tulips"), conversation=conversation)
        )
        await forget_and_cut_off(house, world)
    await cut_off_everywhere(world)
    async with world.running() as house:
        assert await house.rows(RowKind.TITLE) == ()
        assert [row.key for row in await house.rows(RowKind.NOTE) if row.conversation] == []


async def test_cards_are_erased_wherever_an_erasure_is_cut_off(world: World) -> None:
    """Approval requests name their calls and are erased last; another person's cards stay."""
    tulip, rose = (asks_for(("poke", f'{{"a": "{flower}"}}')) for flower in ("tulip", "rose"))
    world.model.will(tulip, says("done"), rose, says("done"))
    async with world.running() as house:
        await house.say("poke it", "ben", room="club")
        await house.press()
        await house.say("poke it", room="club")
        await house.press()
        await forget_and_cut_off(house, world)
    await cut_off_everywhere(world)
    assert "tulip" not in await stored_text(world)
    cards = [row.body for row in await world.store.select(Query(kind=RowKind.OUTBOX))]
    assert len([body for body in cards if b"rose" in body]) == 2


async def forget_and_cut_off(house: House, world: World) -> None:
    """Ben asks for erasure; the process that performs it ends after one commit."""
    await house.say("/forget", "ben")
    code = code_of(house.texts("ben")[-1])
    world.store.cut_after(DurablePoint.HOUSEKEEPING)
    await house.say(f"/forget {code}", "ben")


async def cut_off_everywhere(world: World) -> None:
    """Let an erasure run in as many processes as it has commits."""
    cuts = 0
    while await world.store.select(Query(kind=RowKind.FORGETTING)):
        world.store.heal()
        world.store.cut_after(DurablePoint.HOUSEKEEPING)
        async with world.running() as house:
            await settled(house)
        cuts += 1
    world.store.heal()
    assert cuts > 5


@pytest.mark.parametrize(
    "kind", [RowKind.INBOX, RowKind.OUTBOX, RowKind.RESULT, RowKind.FORGETTING]
)
async def test_another_persons_damaged_record_does_not_block_an_erasure(
    world: World, kind: RowKind
) -> None:
    """Nor does it end the daemon, which would find it again at each start."""

    async def long_output(_context: ToolContext) -> ToolOutput:
        return ToolOutput(text="rose " * 5_000)

    world.look.does = long_output
    world.model.will(LOOK, says("seen"), LOOK, says("seen"))
    async with world.running() as house:
        await house.say("look", "ben")
        await house.say("/forget", "ben")
        (row, *_) = await house.rows(kind)
        state = OPEN if kind is RowKind.FORGETTING else row.state
        damaged = Put(kind=kind, key=row.key, body=b"{", conversation=row.conversation, state=state)
        await world.store.write(damaged)
        await house.say("look at a tulip")
        await forget(house)
        assert house.texts()[-1] == "Done: what you said to me is removed."
        assert "tulip" not in await stored_text(world)


async def test_a_damaged_journal_does_not_end_the_daemon(world: World) -> None:
    """Another person's does not block; in one that has to be rewritten, the words stay.

    The requester is notified, and later messages are not erased.
    """
    async with world.running() as house:
        await house.say("a rose", "ben", room="lobby")
        (lobby,) = await world.store.streams(LogKind.JOURNAL)
        await world.store.write(Append(log=LogKind.JOURNAL, stream=lobby, body=b"?"))
        await house.say("a tulip")
        await forget(house)
        assert house.texts()[-1] == "Done: what you said to me is removed."
        assert "tulip" not in await stored_text(world)
        await house.say("a lily", "ben")
        await forget(house, "ben")
        assert "lily" not in await stored_text(world)
        answer = house.texts("ben")[-1]
        assert "is removed, except where a record is damaged (chats: 1)" in answer
        await house.say("a daisy", "ben")
        await house.advance(3 * AGAIN_S)
        assert "daisy" in await stored_text(world)


async def test_words_behind_a_damaged_entry_of_a_journal_are_reported(world: World) -> None:
    """Retention leaves that journal alone, while the rows that name its writers grow old."""
    async with world.running() as house:
        await house.say("a lily", "ben", room="lobby")
        (lobby,) = await world.store.streams(LogKind.JOURNAL)
        bodies = (b"?", *(it.body for it in await world.store.read(LogKind.JOURNAL, lobby)))
        appends = [Append(log=LogKind.JOURNAL, stream=lobby, body=body) for body in bodies]
        await world.store.write(Trim(log=LogKind.JOURNAL, stream=lobby, before=99), *appends)
        for kind in (RowKind.INBOX, RowKind.TURN, RowKind.OUTBOX):
            world.store.forget(kind)
        await forget(house, "ben")
        assert "lily" in await stored_text(world)
        answer = house.texts("ben")[-1]
        assert "is removed, except where a record is damaged (chats: 1)" in answer


@pytest.mark.parametrize("kind", [RowKind.INBOX, RowKind.TURN, RowKind.OUTBOX, RowKind.APPROVAL])
async def test_a_damaged_record_of_a_shared_chat_is_reported_and_the_rest_erased(
    world: World, kind: RowKind
) -> None:
    """It may be theirs, and stays for an operator to inspect."""
    world.model.will(POKE, says("poked"))
    async with world.running() as house:
        await house.say("poke it", "ben", room="club")
        await house.press()
        row, *_ = await house.rows(kind)
        world.store.damage(row)
        await house.say("a tulip", "ben", room="club")
        edit_while_removed(world, house, "p3", "club")
        await forget(house, "ben")
        assert world.store.meanwhile is None
        assert "tulip" not in await stored_text(world)
        answer = house.texts("ben")[-1]
        assert "is removed, except where a record is damaged (chats: 1)" in answer
        assert row.key in [other.key for other in await house.rows(kind)]


@pytest.mark.parametrize("room", ["", "club"])
async def test_a_turn_that_fails_for_ever_holds_up_no_erasure(world: World, room: str) -> None:
    """It can't be stopped, and no later try would find it ended."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke the tulip", "ben", room=room)
        row, *_ = await house.rows(RowKind.TURN)
        world.store.damage(row)
    async with world.running() as house:
        await forget(house, "ben")
        await house.advance(2 * AGAIN_S)
        assert house.texts("ben")[-1].startswith("Done: what you said to me is removed")
        assert "tulip" not in await stored_text(world)
        assert await house.rows(RowKind.FORGETTING) == ()


async def test_a_running_turn_is_stopped_first(world: World) -> None:
    """A turn that waits for an approval ends, and says why; its card is settled."""
    world.model.will(POKE, says("poked"))
    async with world.running() as house:
        await house.say("tulip")
        await forget(house)
        assert "_Stopped: what was said here is being removed by Ada._" in house.texts()
        assert house.endings() == [("stopped", "Ada")]
        assert "tulip" not in await stored_text(world)
        assert await house.rows(RowKind.TURN) == ()
        assert world.poke.runs == []


async def test_an_erasure_waits_for_a_tool_that_can_not_be_cancelled(world: World) -> None:
    """What it returns would be stored after everything else was removed."""
    world.burn.hold = asyncio.Event()
    world.model.will(asks_for(("burn", '{"a": "tulip"}')))
    async with world.running() as house:
        await house.say("burn the tulip", "ben")
        await house.press()
        await forget(house, "ben")
        await house.advance(TRIES)
        assert "tulip" in await stored_text(world)
        world.burn.hold.set()
        await house.advance(AGAIN_S)
        assert world.burn.ended == 1
        assert "tulip" not in await stored_text(world)


async def test_in_a_shared_chat_only_the_persons_own_words_are_erased(world: World) -> None:
    """Other people's messages and answers stay; the model no longer reads what was erased."""
    world.model.will(LOOK, says("tulip answer"), says("rose answer"))
    async with world.running() as house:
        await house.say("tulip asked", "ben", room="club")
        await house.say("rose asked", room="club")
        await forget(house, "ben")
        remaining = await stored_text(world)
        assert "tulip" not in remaining
        assert "rose asked" in remaining
        assert "rose answer" in remaining
        await house.say("and now?", room="club")
        messages = user_messages(world)
        assert "Ada: rose asked" in messages
        assert not any("tulip" in message for message in messages)


@pytest.mark.parametrize("is_answered", [True, False])
@pytest.mark.parametrize("room", ["", "club"])
async def test_a_card_is_erased_with_its_call(
    world: World, room: str, *, is_answered: bool
) -> None:
    """An operator elsewhere saw the card whole, and its outcome."""
    world.model.will(asks_for(("poke", '{"a": "tulip"}')), says("done"))
    async with world.running() as house:
        await house.say("poke it", "ben", room=room)
        if is_answered:
            await house.press()
        await forget(house, "ben")
        assert "tulip" not in await stored_text(world)
        assert [outcome for outcome, _ in house.endings()] == [
            "approved" if is_answered else "stopped"
        ]


async def test_a_persons_grants_are_erased_with_them(world: World) -> None:
    """A grant names resources; other people's grants in the same chat stay."""
    world.model.will(POKE, says("done"), asks_for(("burn", "{}")), says("done"))
    async with world.running() as house:
        await house.say("poke it", "ben", room="club")
        await house.press("for_a_time")
        await house.say("burn it", room="club")
        await house.press("for_a_time")
        await forget(house, "ben")
        (grant,) = await house.rows(RowKind.GRANT)
        assert GRANTS.of(grant).holder == "person:ada"


async def test_an_unsent_card_is_not_sent_once_its_call_is_erased(world: World) -> None:
    """It could not be answered, and nothing would show that."""
    world.model.will(POKE)
    world.platforms["chat"].will("ask", *[ChannelUnavailable("away")] * 8)
    async with world.running() as house:
        await house.say("poke it", "ben", room="club")
        await forget(house, "ben")
        await house.advance(3600)
        assert house.texts() == []


@pytest.mark.parametrize("room", ["", "club"])
async def test_a_card_shows_its_outcome_before_the_outcome_is_erased(
    world: World, room: str
) -> None:
    """Even if its platform is unreachable and the process is killed before it is back (P5)."""
    world.model.will(POKE)
    world.platforms["chat"].will("settle", *[ChannelUnavailable("away")] * 6)
    async with world.running() as house:
        await house.say("poke it", "ben", room=room)
        await forget(house, "ben")
        assert house.outcome() is None
    async with world.running() as house:
        await card_ends(house)


@pytest.mark.parametrize("room", ["", "club"])
async def test_a_card_shows_its_outcome_while_another_person_is_erased(
    world: World, room: str
) -> None:
    """A new request goes first, and the one that waits for its cards is tried again (P5)."""
    world.model.will(POKE)
    world.platforms["chat"].will("settle", *[ChannelUnavailable("away")] * 6)
    async with world.running() as house:
        await house.say("poke it", "ben", room=room)
        await forget(house, "ben")
        assert house.outcome() is None
        await house.say("/forget")
        await house.advance(1)
        assert house.outcome() is None
    async with world.running() as house:
        await card_ends(house)


@pytest.mark.parametrize("room", ["", "club"])
async def test_a_card_being_sent_shows_its_outcome_before_the_outcome_is_erased(
    world: World, room: str
) -> None:
    """No row would record a card that the platform had already accepted (P5)."""
    world.model.will(POKE)
    accepted = asyncio.Event()

    async def wait_for_accept(call: Call) -> None:
        if call.name == "ask":
            await accepted.wait()

    async with world.running() as house:
        world.platforms["chat"].before = wait_for_accept
        await house.say("poke it", "ben", room=room)
        await forget(house, "ben")
        accepted.set()
        await card_ends(house)


async def test_a_card_that_can_not_be_settled_delays_an_erasure_only_briefly(world: World) -> None:
    """A person's words are erased however the platform fails."""
    world.model.will(POKE)
    world.platforms["chat"].will("settle", *[ChannelUnavailable("away")] * 10_000)
    async with world.running() as house:
        await house.say("tulip", "ben", room="club")
        await forget(house, "ben")
        assert "tulip" in await stored_text(world)
        await house.advance(120)
        assert "tulip" not in await stored_text(world)


@pytest.mark.parametrize(("writer", "other"), [("ben", "ada"), ("ada", "ben")])
async def test_an_erasure_in_a_shared_chat_waits_for_another_persons_turn(
    world: World, writer: str, other: str
) -> None:
    """One person's erasure, even an operator's, does not cut off another person's answer."""
    world.model.will(says("tulip answer"), POKE, says("poked"))
    async with world.running() as house:
        await house.say("tulip asked", writer, room="club")
        await house.say("poke", other, room="club")
        await forget(house, writer)
        await house.advance(61)
        assert "tulip asked" in await stored_text(world)
        await house.say("/forget", writer)
        assert house.texts(writer)[-1].startswith("I am already at work on it")
        await house.press()
        assert world.poke.runs
        await house.advance(AGAIN_S + 5)
        assert "tulip" not in await stored_text(world)


async def test_an_erasure_stops_no_other_persons_turn_for_ones_own_elsewhere(world: World) -> None:
    """Even an operator's: their own turn, in another chat, is stopped there."""
    world.model.will(says("tulip answer"), POKE, POKE, says("poked"))
    async with world.running() as house:
        await house.say("tulip asked", room="club")
        await house.say("poke the tulip", room="lobby")
        await house.say("poke", "ben", room="club")
        await forget(house)
        assert house.endings() == []
        await house.press()
        await house.advance(AGAIN_S + 5)
        assert house.texts(room="club")[-1] == "poked"
        assert "tulip" not in await stored_text(world)


async def test_an_erasure_does_not_wait_for_a_halt_to_end(world: World) -> None:
    """Though another person's message waits for that in the same chat; it is answered then."""
    async with world.running() as house:
        await house.say("tulip asked", "ben", room="club")
        await house.say("/halt")
        await house.say("hello", room="club")
        await house.say("/new", room="club")
        await house.say("tulip again", "ben", room="club")
        await forget(house, "ben")
        await house.advance(5)
        assert "tulip" not in await stored_text(world)
        await house.say("/resume")
        assert house.texts(room="club")[-1] == "ok"


@pytest.mark.parametrize("retries", [1, 2])
async def test_a_message_that_another_person_retried_is_erased_too(
    world: World, retries: int
) -> None:
    """The retried turn repeats their words, however often; an export shows its answer."""
    poke = asks_for(("poke", '{"a": "tulip"}'))
    world.model.will(*[poke] * (retries + 1), says("tulip answer"))
    async with world.running() as house:
        await house.say("tulip", "ben", room="club")
        for _ in range(retries):
            await house.say("/stop", room="club")
            await house.say("/retry", room="club")
        await house.press()
        records = lines(await collect(world.store, "person:ben", world.config.people), str)
        assert "tulip answer" in [record.text for record in records]
        await forget(house, "ben")
        assert "tulip" not in await stored_text(world)


async def test_waiting_messages_of_others_in_a_shared_chat_are_answered(world: World) -> None:
    """Of the messages still queued only the person's own are withdrawn (P1)."""
    world.model.will(POKE, says("poked"))
    async with world.running() as house:
        await house.say("poke", room="club")
        await house.say("tulip asked", "ben", room="club")
        await house.say("rose asked", "cleo", room="club")
        await forget(house, "ben")
        await house.press()
        await house.advance(AGAIN_S + 5)
        assert user_messages(world) == ["Ada: poke", "chat:cleo: rose asked"]
        assert "tulip" not in await stored_text(world)


@pytest.mark.parametrize("waited_s", [1, 70], ids=["while it is tried", "between two tries"])
@pytest.mark.parametrize("writer", ["ben", "cleo"])
async def test_an_erasure_that_has_to_wait_does_not_block_another(
    world: World, waited_s: int, writer: str
) -> None:
    """P9: the other erasure runs at once, whichever comes first by name."""
    world.model.will(says("tulip answer"), says("rose answer"), POKE)
    async with world.running() as house:
        await house.say("tulip asked", writer, room="club")
        await house.say("rose asked")
        await house.say("poke", room="club")
        await forget(house, writer)
        await house.advance(waited_s)
        await forget(house, "ada")
        assert "rose" not in await stored_text(world)
        assert house.texts()[-1] == "Done: what you said to me is removed."


@pytest.mark.parametrize("named", ["ben", "chat:ben"])
async def test_only_an_operator_may_erase_other_people(world: World, named: str) -> None:
    """By their name in the configuration, or by any of their ids."""
    async with world.running() as house:
        await house.say("tulip", "ben")
        await house.say("/forget ada", "ben")
        assert house.texts("ben")[-1].startswith("You can only have your own words forgotten")
        await forget(house, "ada", named)
        assert "tulip" not in await stored_text(world)
        assert house.texts()[-1] == "Done: what `person:ben` said to me is removed."
        await forget(house, "ada", "bob")
        assert (
            house.texts()[-1] == "There is nothing left to remove: of `person:bob` I keep nothing."
        )


async def test_erasing_an_approver_keeps_the_chat_whose_call_they_approved(world: World) -> None:
    """The private chat in which the call was requested stays whole."""
    world.model.will(POKE, POKE, says("poked"))
    async with world.running() as house:
        await house.say("tulip of ben", "ben")
        await house.press()
        await house.say("/approve 2")
        assert house.texts("ben")[-1] == "poked"
        await forget(house)
        await house.say("and now?", "ben")
        assert user_messages(world) == ["tulip of ben", "and now?"]


# --- stored results ----------------------------------------------------------------


async def long_result(world: World, house: House) -> KeptResult:
    """Store a tool's result for Ada that is too long for the model."""

    async def long_output(_context: ToolContext) -> ToolOutput:
        return ToolOutput(text="tulip " * 5_000)

    world.look.does = long_output
    world.model.will(LOOK, says("seen"))
    await house.say("look")
    [row] = await house.rows(RowKind.RESULT)
    await house.advance(1)
    return decode(KeptResult, row.body)


async def test_a_stored_result_is_erased_too(world: World) -> None:
    """Its bytes hold a person's words, or what a tool found for them."""
    async with world.running() as house:
        result = await long_result(world, house)
        assert await world.store.blob(result.digest) is not None
        await forget(house)
        assert await world.store.blob(result.digest) is None


async def test_a_stored_result_in_a_shared_chat_is_erased_with_its_turn(world: World) -> None:
    """Other people's results stay."""
    outputs = iter(("tulip " * 5_000, "rose " * 5_000))

    async def long_output(_context: ToolContext) -> ToolOutput:
        return ToolOutput(text=next(outputs))

    world.look.does = long_output
    world.model.will(LOOK, says("seen"), LOOK, says("seen"))
    async with world.running() as house:
        await house.say("look", "ben", room="club")
        [of_ben] = await results(house)
        await house.say("look", room="club")
        [of_ada] = [result for result in await results(house) if result != of_ben]
        await house.advance(1)
        await forget(house, "ben")
        assert await results(house) == [of_ada]
        assert await world.store.blob(of_ben.digest) is None
        assert await world.store.blob(of_ada.digest) is not None


async def results(house: House) -> list[KeptResult]:
    return [decode(KeptResult, row.body) for row in await house.rows(RowKind.RESULT)]


async def test_a_result_stored_again_for_another_person_during_an_erasure_stays(
    world: World,
) -> None:
    """The same bytes, stored between the check of their users and their removal."""
    async with world.running() as house:
        result = await long_result(world, house)
        body = await world.store.blob(result.digest)
        assert body is not None
        again = Commit(
            point=DurablePoint.HOUSEKEEPING, writes=(PutBlob(digest=result.digest, body=body),)
        )
        committed: list[Commit] = []

        async def put_again(writes: tuple[Write, ...]) -> None:
            if any(isinstance(write, DropBlob) for write in writes) and not committed:
                committed.append(again)
                world.clock.leap(timedelta(seconds=1))
                await world.store.commit(again)

        world.store.meanwhile = put_again
        await forget(house)
        assert committed == [again]
        assert await world.store.blob(result.digest) == body


async def test_a_persons_notes_are_erased_without_a_trace(world: World) -> None:
    """Their notes and their counter, whose key holds their name; a group's notes stay."""
    notes = Notes(world.store)
    async with world.running() as house:
        await house.say("rose")
        for owner in ("of:person:ada", "in:club"):
            conversation = ConversationId("01ELSE")
            note = Note(number=0, text="tulip", by="Ada", at=EPOCH, conversation=conversation)
            await notes.add(owner, note, max_notes=9)
        await forget(house)
        remaining = [row.key for row in await house.rows(RowKind.NOTE)]
        assert remaining == ["in:club#", "in:club#0000000001"]


async def test_notes_that_a_person_had_taken_in_a_shared_chat_are_erased_too(world: World) -> None:
    """So are the facts of the whole chat, which are made anew; notes that others had taken stay."""
    with_notes(world)
    world.configure(autonomy="full")
    async with world.running() as house:
        for writer, flower in (("ada", "rose"), ("ben", "tulip")):
            remember = asks_for(("remember", f'{{"text": "a {flower}"}}'))
            world.model.will(remember, says("Noted."))
            await house.say(f"note my {flower}", writer, room="club")
        world.model.will(says('"They like a tulip."'), says("State: a tulip."))
        await house.say("/compact", room="club")
        assert len(await house.rows(RowKind.NOTE)) == len(("a count", "rose", "tulip", "a fact"))
        records = lines(await collect(world.store, "person:ben", world.config.people), str)
        assert [record.text for record in records if record.kind == "remembered"] == ["a tulip"]
        await forget(house, "ben")
        (owner,) = {row.place for row in await house.rows(RowKind.NOTE)}
        assert [note.text for note in await Notes(world.store).all(owner)] == ["a rose"]
        assert "tulip" not in await stored_text(world)


async def test_a_note_that_moves_with_its_chat_during_an_erasure_is_erased_too(
    world: World,
) -> None:
    """A Telegram group may become a supergroup at that moment; a fact of its chat is erased as
    well."""
    with_notes(world)
    world.configure(autonomy="full")
    world.model.will(asks_for(("remember", '{"text": "a tulip"}')), says("Noted."))
    world.model.will(says('"They like a tulip."'), says("State: a tulip."))
    async with world.running() as house:
        await house.say("note it", "ben", room="club")
        await house.say("/compact", "ben", room="club")
        assert len(await house.rows(RowKind.NOTE)) == len(("a count", "a note", "a fact"))
        # As the note is removed, and as the fact is; each is then removed where it moved to.
        moves = [("club", "new"), ("new", "newer"), None, None]

        async def move_first(writes: tuple[Write, ...]) -> None:
            if (
                isinstance(writes[0], Delete)
                and writes[0].kind is RowKind.NOTE
                and (rooms := moves.pop(0))
            ):
                moved = Moved(to=house.place(room=rooms[1]))
                await house.services.ingress.admit(house.envelope(moved, room=rooms[0]))

        world.store.meanwhile = move_first
        await forget(house, "ben")
        assert moves == []
        assert "tulip" not in await stored_text(world)


async def test_a_persons_chosen_language_is_erased_too(world: World) -> None:
    """At once, without a restart; other people's languages stay."""
    async with world.running() as house:
        await house.say("/language de", "ben")
        await house.say("/language de")
        await forget(house)
        await house.say("/language nothing")
        await house.say("/language nothing", "ben")
        remaining = [row.key for row in await house.rows(RowKind.LANGUAGE)]
        adas_text, bens_text = house.texts()[-1], house.texts("ben")[-1]
    assert remaining == ["person:ben"]
    assert (adas_text[:13], bens_text[-12:]) == ("My own senten", "auf Deutsch.")


async def test_a_note_counter_of_an_earlier_release_is_erased_too(world: World) -> None:
    """It has neither place nor state; its key holds the name."""
    counts = [
        Put(kind=RowKind.NOTE, key=f"{owner}#", body=b'{"last":3}')
        for owner in ("of:person:ada", "of:person:ben", "in:club")
    ]
    await world.store.write(*counts)
    async with world.running() as house:
        await house.say("rose")
        sources = await collect(world.store, "ada", world.config.people)
        exported = [record.text for record in lines(sources, str)]
        await forget(house)
        remaining = [row.key for row in await house.rows(RowKind.NOTE)]
    assert exported == ["rose", "ok"]
    assert sorted(remaining) == ["in:club#", "of:person:ben#"]


async def test_approval_requests_are_erased_when_nothing_else_names_their_person(
    world: World,
) -> None:
    """Requests may be kept longer than messages; only the person's own go. An export shows them."""
    world.model.will(POKE, says("poked"), POKE, says("poked"))
    async with world.running() as house:
        for writer in ("ben", "ada"):
            await house.say("poke", writer, room="club")
            await house.press()
            await house.advance(1)
        for kind in (RowKind.INBOX, RowKind.TURN):
            world.store.forget(kind)
        for stream in await world.store.streams(LogKind.JOURNAL):
            await world.store.write(Trim(log=LogKind.JOURNAL, stream=stream, before=99))
        sources = await collect(world.store, "ben", world.config.people)
        exported = [(record.kind, record.by) for record in lines(sources, str)]
        await forget(house, "ada", "ben")
        requesters = [APPROVALS.of(row).requester.id for row in await house.rows(RowKind.APPROVAL)]
        callers = [ACTIONS.of(row).action.principal.id for row in await house.rows(RowKind.ACTION)]
    assert exported == [("approval", "Ada")]
    assert (requesters, callers) == (["person:ada"], ["person:ada"])


# --- a journal without one person's turns ---------------------------------------------------------

AT = datetime(2026, 1, 1, tzinfo=UTC)
SUMMARY = entries.Compacted(summary="they met", kept=0, at=AT)
NOTE = entries.Noted(text="edited", why="edit", at=AT)


def turn(name: str, *within: entries.Entry) -> tuple[entries.Entry, ...]:
    """A whole turn that this person began."""
    principal = Principal(
        id=f"person:{name}", roles=frozenset(), channel="chat", sender=name, display=name
    )
    opened = entries.TurnOpened(
        turn=TurnId(name),
        item=ItemId(name),
        principal=principal,
        correlation="c",
        user=UserMessage(content=f"from {name}"),
        limits=TurnLimits(max_rounds=5),
        at=AT,
    )
    answer = AssistantMessage(content=f"for {name}")
    finished = entries.TurnFinished(reason="model_stop", usage=NO_USAGE, at=AT, message=answer)
    return (opened, *within, finished)


def test_only_the_persons_turns_are_removed() -> None:
    """The entries between a turn and the next are removed with it, and the rest folds."""
    journal = (NOTE, *turn("ada"), *turn("ben"), NOTE, *turn("ada"))
    remaining = journal_without(journal, "person:ben")
    assert remaining is not None
    assert remaining == (NOTE, *turn("ada"), *turn("ada"))
    history = fold(remaining)
    assert history.turn is None
    texts = [message.content for message in history.messages]
    assert texts == ["edited", "from ada", "for ada", "from ada", "for ada"]


def test_late_edits_are_removed_wherever_they_are() -> None:
    """The person's own, and those of an earlier release, which stored no writer; one is enough."""
    of_ada, of_ben, old = (
        entries.Noted(text="now", why="edited", at=AT, by=by)
        for by in ("person:ada", "person:ben", "")
    )
    journal = (NOTE, *turn("ada", of_ben, of_ada), of_ben, old, of_ada)
    assert journal_without(journal, "person:ben") == (NOTE, *turn("ada", of_ada), of_ada)
    assert journal_without((*turn("ada", of_ada), old), "person:ben") is None


def test_summaries_are_removed_wherever_they_are() -> None:
    """They summarise everyone's words; the model reads the summarised messages in full again."""
    remaining = journal_without((*turn("ben"), *turn("ada", SUMMARY)), "person:ben")
    assert remaining == turn("ada")


def test_remaining_turns_name_no_files_of_the_erased_person() -> None:
    """A file's name reveals as much as a message; the mark that its text is untrusted stays."""
    attachment = (named("attachment", "diagnosis.pdf"),)
    opened, ended = turn("ada")
    assert isinstance(opened, entries.TurnOpened)
    journal = (*turn("ben"), replace(opened, untrusted=attachment), ended)
    expected = (replace(opened, untrusted=(named("quoted"),)), ended)
    assert journal_without(journal, "person:ben") == expected


def test_a_journal_without_the_persons_turns_is_unchanged() -> None:
    """Nothing is rewritten, even with a summary."""
    assert journal_without((*turn("ada", SUMMARY), NOTE), "person:ben") is None
    assert journal_without((), "person:ben") is None
