"""What a person said is removed when they wish it twice, and nobody else's is."""

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
from zeroclaw.retention.erase import AGAIN_S
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
    found = re.search(r"`/forget (\w+)`", text)
    assert found is not None, text
    return found[1]


async def forget(house: House, who: str = "ada", whom: str = "") -> None:
    """Say it, and say it again."""
    await house.say(f"/forget {whom}".rstrip(), who)
    await house.say(f"/forget {code_of(house.texts(who)[-1])}", who)
    await settled(house)


async def settled(house: House) -> None:
    for _ in range(10):
        await house.advance(1)


async def let_others_work() -> None:
    """Let what was just committed be taken up, from within a commit that is waited for."""
    for _ in range(100):
        await asyncio.sleep(0)


def edit_while_removed(world: World, house: House, message: str, room: str) -> None:
    """Let Ben edit a message after its journal went, and before its own row does."""

    async def edit_first(writes: tuple[Write, ...]) -> None:
        if any(isinstance(one, Delete) and one.kind is RowKind.TURN for one in writes):
            world.store.meanwhile = None
            edit = house.envelope(
                Edited(message=message, said=Said(text="tulip two")), "ben", room=room
            )
            await house.services.ingress.admit(edit)
            await let_others_work()

    world.store.meanwhile = edit_first


async def card_ends(house: House) -> None:
    """Ben's card that was waiting is stopped, and nothing of its request is left."""
    await house.advance(120)
    assert house.endings() == [("stopped", "Ben")]
    assert await house.rows(RowKind.APPROVAL) == ()


async def kept(world: World) -> str:
    """Everything that is kept but the audit, as one text."""
    store = world.store
    rows = [row.body for kind in RowKind for row in await store.select(Query(kind=kind))]
    for stream in await store.streams(LogKind.JOURNAL):
        rows += [one.body for one in await store.read(LogKind.JOURNAL, stream)]
    return b"\n".join(rows).decode(errors="replace")


def said_to_the_model(world: World) -> list[str]:
    """What people said, as the newest request has it."""
    messages = world.model.requests[-1].messages
    return [one.content for one in messages if isinstance(one, UserMessage)]


async def test_everything_of_a_private_chat_goes_but_its_audit(world: World) -> None:
    """Of all conversations there; a new message begins a new one, and they are told."""
    world.model.will(LOOK, says("tulip seen"), says("tulip again"))
    async with world.running() as house:
        await house.say("tulip one")
        await house.say("/new")
        await house.say("tulip two")
        await house.say("tulip of ben", "ben")
        streams = await world.store.streams(LogKind.AUDIT)
        await forget(house)
        left = await kept(world)
        assert "tulip of ben" in left
        assert not re.search(r"tulip (one|two|seen|again)", left)
        assert house.texts()[-1] == "Done: what you said to me is removed."
        assert await world.store.streams(LogKind.AUDIT) == streams
        for stream in streams:
            assert isinstance(await verify_stream(world.store, stream), audit.Intact)
        assert await house.rows(RowKind.FORGETTING) == ()
        await house.say("hello")
        assert house.texts()[-1] == "ok"
        assert said_to_the_model(world) == ["hello"]


class Body(bytes):
    """What was read of a row, counted for as long as something holds it."""

    held: ClassVar[int] = 0

    def __new__(cls, body: bytes) -> Self:
        """Count it."""
        cls.held += 1
        return super().__new__(cls, body)

    def __del__(self) -> None:
        Body.held -= 1


class CountingStore(MemoryStore):
    """Reads its rows anew each time, as one on disk does."""

    async def select(self, query: Query) -> tuple[Row, ...]:
        """Return the rows that match, with counted bodies."""
        return tuple(replace(row, body=Body(row.body)) for row in await super().select(query))


async def test_of_a_long_chat_that_goes_memory_holds_a_page_at_a_time(world: World) -> None:
    """Somebody may have written for years."""
    world.store = CountingStore(clock=world.clock, tables=TABLES)
    held = list[int]()
    async with world.running() as house:
        await house.say("tulip")
        (said,) = await house.rows(RowKind.INBOX)
        more = (
            replace(INBOX.put(f"{said.key[:-4]}{number:04}", INBOX.of(said)), state=said.state)
            for number in range(3 * PAGE)
        )
        put = [replace(one, conversation=said.conversation, place=said.place) for one in more]
        await world.store.write(*put)
        del said
        world.store.before = lambda commit: held.append(Body.held)
        await forget(house)
        assert house.texts()[-1] == "Done: what you said to me is removed."
        assert "tulip" not in await kept(world)
    assert max(held) < 2 * PAGE


async def test_an_edit_that_comes_as_its_message_is_removed_is_not_kept(world: World) -> None:
    """It was planned while the message was there, and is committed after that is gone."""
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
        assert "tulip" not in await kept(world)


@pytest.mark.parametrize("room", ["", "club"])
async def test_an_edit_that_comes_while_its_chat_is_removed_is_not_kept(
    world: World, room: str
) -> None:
    """It is admitted after the journal went, and before the message that it changes."""
    async with world.running() as house:
        await house.say("tulip one", "ben", room=room)
        edit_while_removed(world, house, "p1", room)
        await forget(house, "ben")
        assert world.store.meanwhile is None
        assert house.texts("ben")[-1] == "Done: what you said to me is removed."
        assert "tulip" not in await kept(world)


@pytest.mark.parametrize("is_during", [True, False])
async def test_an_edit_that_came_after_somebody_elses_turn_goes_too(
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
        assert "tulip two" in await kept(world)
        await house.say("a lily", room="club")
        await house.edit("p2", "a daisy", room="club")
        await forget(house, "ben")
        left = await kept(world)
        assert "tulip" not in left
        assert "a daisy" in left


async def test_a_stop_that_comes_while_its_chat_is_removed_leaves_nothing(world: World) -> None:
    """It was planned while the earlier conversation had a turn, and is answered in it (P1)."""
    world.model.will(asks_for(("burn", "{}")))
    world.burn.hold = asyncio.Event()
    async with world.running() as house, asyncio.TaskGroup() as group:
        await house.say("tulip")
        await house.press()
        [here] = await world.store.streams(LogKind.JOURNAL)
        stop = house.envelope(house.said("/stop"))
        is_due = asyncio.Event()

        async def stop_late(writes: tuple[Write, ...]) -> None:
            gone = {(one.kind, one.key) for one in writes if isinstance(one, Delete)}
            if any(isinstance(one, Claim) and one.keys == stop.keys for one in writes):
                await is_due.wait()
            elif (RowKind.CONVERSATION, here) in gone and not is_due.is_set():
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
            assert here not in [row.conversation for row in await house.rows(kind)]


async def test_what_is_chosen_as_a_chat_off_the_record_is_removed_ends_no_daemon(
    world: World,
) -> None:
    """The chat stays off the record, with the choice that was made just then."""
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


async def test_a_chat_does_not_go_back_on_record_to_what_is_being_removed(world: World) -> None:
    """While the removal waits for a turn, `/otr off` begins a conversation of its own."""
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
        (row,) = await house.rows(RowKind.ADDRESS)
        assert await house.rows(RowKind.TURN) == ()
        assert row.conversation in [one.key for one in await house.rows(RowKind.CONVERSATION)]


async def test_what_somebody_said_before_they_had_a_name_goes_too(world: World) -> None:
    """In the chats that they share with others as well, where it is kept under their id alone."""
    ada, ben = world.config.people
    world.configure(people=(ada,))
    async with world.running() as house:
        await house.say("tulip of ben", "ben", room="lobby")
        await house.say("rose of ada", room="lobby")
        world.configure(people=(ada, ben))
        await house.ask("reload")
        await forget(house, "ben")
        left = await kept(world)
        assert "tulip" not in left
        assert "rose of ada" in left
        assert house.texts("ben")[-1] == "Done: what you said to me is removed."


async def test_what_somebody_said_under_an_earlier_name_goes_too(world: World) -> None:
    """An id that only changed hands takes along nothing of the one who had it before."""
    ada, ben = world.config.people
    world.configure(people=(ada, ben.model_copy(update={"name": "benedict"})))
    async with world.running() as house:
        await house.say("tulip of ben", "ben")
        await house.say("tulip of ben", "ben", room="lobby")
        await house.say("/language de", "ben")
        await house.say("/language en")
        await house.say("rose of ada", room="lobby")
        hers = ada.model_copy(update={"ids": ("chat:17",)})
        world.configure(people=(hers, ben.model_copy(update={"ids": (*ada.ids, *ben.ids)})))
        await house.ask("reload")
        await forget(house, "ben")
        left = await kept(world)
        assert "tulip" not in left
        assert "rose of ada" in left
        assert [row.key for row in await house.rows(RowKind.LANGUAGE)] == ["person:ada"]


@pytest.mark.parametrize("is_named", [True, False])
async def test_a_name_that_several_wrote_under_is_nobodys_to_have_removed(
    world: World, *, is_named: bool
) -> None:
    """The configuration had one person, and has parted them since; an operator may remove it all."""
    ada, ben = world.config.people
    both = ben.model_copy(update={"name": "old", "ids": (*ben.ids, "chat:cleo")})
    world.configure(people=(ada, both))
    async with world.running() as house:
        await house.say("tulip of ben", "ben")
        await house.say("rose of cleo", "cleo")
        await house.say("rose of cleo", "cleo", room="lobby")
        cleo = both.model_copy(update={"name": "cleo", "ids": ("chat:cleo",)})
        world.configure(people=(ada, *[ben, cleo] * is_named))
        await house.ask("reload")
        await house.say("tulip two", "ben")
        await forget(house, "ben")
        left = await kept(world)
        assert "tulip two" not in left
        assert left.count("rose of cleo") > 1
        await forget(house, whom="old")
        assert "rose of cleo" not in await kept(world)


async def test_it_has_to_be_repeated_in_time(world: World) -> None:
    """With the code, within ten minutes; anything else asks anew."""
    async with world.running() as house:
        await house.say("tulip")
        await house.say("/forget")
        first = code_of(house.texts()[-1])
        await house.advance(601)
        await house.say(f"/forget person:{first}")
        await house.say(f"/forget {first}")
        await settled(house)
        assert "tulip" in await kept(world)
        assert code_of(house.texts()[-1]) != first
    async with world.running() as house:
        await settled(house)
        assert "tulip" in await kept(world)


async def test_a_wish_outlives_restarts(world: World) -> None:
    """Wherever it is cut off it is carried out by the next process."""
    world.model.will(LOOK, says("tulip seen"))
    async with world.running() as house:
        await house.say("tulip", "ben")
        await wish_and_cut_off(house, world)
    await cut_off_everywhere(world)
    assert "tulip" not in await kept(world)


async def test_what_belongs_to_an_earlier_name_goes_wherever_a_wish_is_cut_off(
    world: World,
) -> None:
    """That name is known by the messages alone, which a process may have removed already."""
    ada, ben = world.config.people
    async with world.running() as house:
        await house.say("tulip", "ben")
        await house.say("/language de", "ben")
        world.configure(people=(ada, ben.model_copy(update={"name": "benedict"})))
        await house.ask("reload")
        await wish_and_cut_off(house, world)
    await cut_off_everywhere(world)
    async with world.running() as house:
        assert await house.rows(RowKind.LANGUAGE) == ()


async def test_what_everybody_said_goes_wherever_a_wish_is_cut_off(world: World) -> None:
    """The facts and the title of a shared chat, for what leads to that chat goes as well."""
    with_notes(world)
    world.configure(autonomy="full")
    async with world.running() as house:
        await house.say("rose", room="club")
        await house.say("tulip", "ben", room="club")
        world.model.will(says('"They like a tulip."'), says("State: a tulip."))
        await house.say("/compact", room="club")
        [here] = {row.conversation for row in await house.rows(RowKind.NOTE) if row.conversation}
        await world.store.write(TITLES.put(here, Title(text="Tulips"), conversation=here))
        await wish_and_cut_off(house, world)
    await cut_off_everywhere(world)
    async with world.running() as house:
        assert await house.rows(RowKind.TITLE) == ()
        assert [row.key for row in await house.rows(RowKind.NOTE) if row.conversation] == []


async def test_what_a_card_showed_goes_wherever_a_wish_is_cut_off(world: World) -> None:
    """Their calls are known by the requests, which go last; another person's cards stay."""
    tulip, rose = (asks_for(("poke", f'{{"a": "{one}"}}')) for one in ("tulip", "rose"))
    world.model.will(tulip, says("done"), rose, says("done"))
    async with world.running() as house:
        await house.say("poke it", "ben", room="club")
        await house.press()
        await house.say("poke it", room="club")
        await house.press()
        await wish_and_cut_off(house, world)
    await cut_off_everywhere(world)
    assert "tulip" not in await kept(world)
    cards = [row.body for row in await world.store.select(Query(kind=RowKind.OUTBOX))]
    assert len([one for one in cards if b"rose" in one]) == 2


async def wish_and_cut_off(house: House, world: World) -> None:
    """Ben wishes to be forgotten; the process that carries it out ends after one commit."""
    await house.say("/forget", "ben")
    code = code_of(house.texts("ben")[-1])
    world.store.cut_after(DurablePoint.HOUSEKEEPING)
    await house.say(f"/forget {code}", "ben")


async def cut_off_everywhere(world: World) -> None:
    """Let a wish be carried out by as many processes as it has commits."""
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
async def test_a_damaged_record_of_somebody_else_holds_up_nobody(
    world: World, kind: RowKind
) -> None:
    """Nor does it end the daemon, which would meet it again at each start."""

    async def much(_context: ToolContext) -> ToolOutput:
        return ToolOutput(text="rose " * 5_000)

    world.look.does = much
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
        assert "tulip" not in await kept(world)


async def test_a_damaged_journal_ends_no_daemon(world: World) -> None:
    """Somebody else's holds up nobody; in one that has to be rewritten, their words stay.

    Who wished it is told, and nothing that is said afterwards goes.
    """
    async with world.running() as house:
        await house.say("a rose", "ben", room="lobby")
        (lobby,) = await world.store.streams(LogKind.JOURNAL)
        await world.store.write(Append(log=LogKind.JOURNAL, stream=lobby, body=b"?"))
        await house.say("a tulip")
        await forget(house)
        assert house.texts()[-1] == "Done: what you said to me is removed."
        assert "tulip" not in await kept(world)
        await house.say("a lily", "ben")
        await forget(house, "ben")
        assert "lily" not in await kept(world)
        told = house.texts("ben")[-1]
        assert "is removed, except where a record is damaged (chats: 1)" in told
        await house.say("a daisy", "ben")
        await house.advance(3 * AGAIN_S)
        assert "daisy" in await kept(world)


@pytest.mark.parametrize("kind", [RowKind.INBOX, RowKind.TURN, RowKind.OUTBOX, RowKind.APPROVAL])
async def test_a_damaged_record_of_a_shared_chat_is_told_and_the_rest_of_it_goes(
    world: World, kind: RowKind
) -> None:
    """It may be theirs, and stays for whoever looks at it."""
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
        assert "tulip" not in await kept(world)
        told = house.texts("ben")[-1]
        assert "is removed, except where a record is damaged (chats: 1)" in told
        assert row.key in [one.key for one in await house.rows(kind)]


async def test_what_runs_is_stopped_first(world: World) -> None:
    """A turn that waits for an approval ends, as with `/new`; its card is settled."""
    world.model.will(POKE, says("poked"))
    async with world.running() as house:
        await house.say("tulip")
        await forget(house)
        assert house.endings() == [("stopped", "Ada")]
        assert "tulip" not in await kept(world)
        assert await house.rows(RowKind.TURN) == ()
        assert world.poke.runs == []


async def test_of_a_shared_chat_only_their_own_goes(world: World) -> None:
    """What others said and were told stays, and the model no longer reads what went."""
    world.model.will(LOOK, says("tulip answer"), says("rose answer"))
    async with world.running() as house:
        await house.say("tulip asked", "ben", room="club")
        await house.say("rose asked", room="club")
        await forget(house, "ben")
        left = await kept(world)
        assert "tulip" not in left
        assert "rose asked" in left
        assert "rose answer" in left
        await house.say("and now?", room="club")
        said = said_to_the_model(world)
        assert "Ada: rose asked" in said
        assert not any("tulip" in text for text in said)


@pytest.mark.parametrize("is_answered", [True, False])
@pytest.mark.parametrize("room", ["", "club"])
async def test_what_a_card_showed_goes_with_its_call(
    world: World, room: str, *, is_answered: bool
) -> None:
    """It was put to an operator elsewhere, whole, and so was how it ended."""
    world.model.will(asks_for(("poke", '{"a": "tulip"}')), says("done"))
    async with world.running() as house:
        await house.say("poke it", "ben", room=room)
        if is_answered:
            await house.press()
        await forget(house, "ben")
        assert "tulip" not in await kept(world)
        assert [how for how, _ in house.endings()] == ["approved" if is_answered else "stopped"]


async def test_what_was_granted_to_somebody_goes_with_them(world: World) -> None:
    """It names what they wanted touched; others' grants in the same chat stay."""
    world.model.will(POKE, says("done"), asks_for(("burn", "{}")), says("done"))
    async with world.running() as house:
        await house.say("poke it", "ben", room="club")
        await house.press("for_a_time")
        await house.say("burn it", room="club")
        await house.press("for_a_time")
        await forget(house, "ben")
        (left,) = await house.rows(RowKind.GRANT)
        assert GRANTS.of(left).holder == "person:ada"


async def test_a_card_that_was_not_sent_yet_is_not_sent_when_its_call_is_forgotten(
    world: World,
) -> None:
    """Nobody could answer it, and nothing would show that."""
    world.model.will(POKE)
    world.platforms["chat"].will("ask", *[ChannelUnavailable("away")] * 8)
    async with world.running() as house:
        await house.say("poke it", "ben", room="club")
        await forget(house, "ben")
        await house.advance(3600)
        assert house.texts() == []


@pytest.mark.parametrize("room", ["", "club"])
async def test_a_card_shows_how_it_ended_before_that_is_forgotten(world: World, room: str) -> None:
    """Also where its platform is away, and a kill comes before it is back (P5)."""
    world.model.will(POKE)
    world.platforms["chat"].will("settle", *[ChannelUnavailable("away")] * 6)
    async with world.running() as house:
        await house.say("poke it", "ben", room=room)
        await forget(house, "ben")
        assert house.outcome() is None
    async with world.running() as house:
        await card_ends(house)


@pytest.mark.parametrize("room", ["", "club"])
async def test_a_card_shows_how_it_ended_whoever_else_wishes_to_be_forgotten(
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
async def test_a_card_on_its_way_shows_how_it_ended_before_that_is_forgotten(
    world: World, room: str
) -> None:
    """Nothing would tell of a card that the platform had already taken (P5)."""
    world.model.will(POKE)
    taken = asyncio.Event()

    async def slowly(call: Call) -> None:
        if call.name == "ask":
            await taken.wait()

    async with world.running() as house:
        world.platforms["chat"].before = slowly
        await house.say("poke it", "ben", room=room)
        await forget(house, "ben")
        taken.set()
        await card_ends(house)


async def test_a_card_that_is_never_shown_holds_up_nothing_for_long(world: World) -> None:
    """What somebody said goes, whatever a platform does."""
    world.model.will(POKE)
    world.platforms["chat"].will("settle", *[ChannelUnavailable("away")] * 10_000)
    async with world.running() as house:
        await house.say("tulip", "ben", room="club")
        await forget(house, "ben")
        assert "tulip" in await kept(world)
        await house.advance(120)
        assert "tulip" not in await kept(world)


@pytest.mark.parametrize(("who", "other"), [("ben", "ada"), ("ada", "ben")])
async def test_a_shared_chat_waits_for_somebody_elses_turn(
    world: World, who: str, other: str
) -> None:
    """Nobody's answer is cut off by another one's wish, an operator's included."""
    world.model.will(says("tulip answer"), POKE, says("poked"))
    async with world.running() as house:
        await house.say("tulip asked", who, room="club")
        await house.say("poke", other, room="club")
        await forget(house, who)
        await house.advance(61)
        assert "tulip asked" in await kept(world)
        await house.say("/forget", who)
        assert house.texts(who)[-1].startswith("I am already at work on it")
        await house.press()
        assert world.poke.runs
        await house.advance(AGAIN_S + 5)
        assert "tulip" not in await kept(world)


@pytest.mark.parametrize("retries", [1, 2])
async def test_what_somebody_else_retried_goes_too(world: World, retries: int) -> None:
    """Its turn repeats their words, however often; an export shows its answer."""
    poke = asks_for(("poke", '{"a": "tulip"}'))
    world.model.will(*[poke] * (retries + 1), says("tulip answer"))
    async with world.running() as house:
        await house.say("tulip", "ben", room="club")
        for _ in range(retries):
            await house.say("/stop", room="club")
            await house.say("/retry", room="club")
        await house.press()
        told = lines(await collect(world.store, "person:ben", world.config.people), str)
        assert "tulip answer" in [one.text for one in told]
        await forget(house, "ben")
        assert "tulip" not in await kept(world)


async def test_what_others_wait_with_in_a_shared_chat_is_answered(world: World) -> None:
    """Of what was not begun only the person's own is withdrawn (P1)."""
    world.model.will(POKE, says("poked"))
    async with world.running() as house:
        await house.say("poke", room="club")
        await house.say("tulip asked", "ben", room="club")
        await house.say("rose asked", "cleo", room="club")
        await forget(house, "ben")
        await house.press()
        await house.advance(AGAIN_S + 5)
        assert said_to_the_model(world) == ["Ada: poke", "chat:cleo: rose asked"]
        assert "tulip" not in await kept(world)


@pytest.mark.parametrize("waited_s", [1, 70], ids=["while it is tried", "between two tries"])
@pytest.mark.parametrize("who", ["ben", "cleo"])
async def test_one_who_can_not_be_forgotten_yet_holds_up_nobody_else(
    world: World, waited_s: int, who: str
) -> None:
    """P9: somebody else's wish is carried out at once, whoever comes first by name."""
    world.model.will(says("tulip answer"), says("rose answer"), POKE)
    async with world.running() as house:
        await house.say("tulip asked", who, room="club")
        await house.say("rose asked")
        await house.say("poke", room="club")
        await forget(house, who)
        await house.advance(waited_s)
        await forget(house, "ada")
        assert "rose" not in await kept(world)
        assert house.texts()[-1] == "Done: what you said to me is removed."


async def test_an_operator_may_have_others_forgotten_and_nobody_else(world: World) -> None:
    """By their name in the configuration, or by their id."""
    async with world.running() as house:
        await house.say("tulip", "ben")
        await house.say("/forget ada", "ben")
        assert house.texts("ben")[-1] == "You can only have your own words forgotten: `/forget`."
        await forget(house, "ada", "ben")
        assert "tulip" not in await kept(world)
        assert house.texts()[-1] == "Done: what `person:ben` said to me is removed."
        await forget(house, "ada", "bob")
        assert (
            house.texts()[-1] == "There is nothing left to remove: of `person:bob` I keep nothing."
        )


async def test_whoever_answered_a_question_takes_nobody_elses_chat_along(world: World) -> None:
    """The private chat in which the call was asked for stays whole."""
    world.model.will(POKE, POKE, says("poked"))
    async with world.running() as house:
        await house.say("tulip of ben", "ben")
        await house.press()
        await house.say("/approve 2")
        assert house.texts("ben")[-1] == "poked"
        await forget(house)
        await house.say("and now?", "ben")
        assert said_to_the_model(world) == ["tulip of ben", "and now?"]


# --- results that were kept whole ----------------------------------------------------------------


async def long_result(world: World, house: House) -> KeptResult:
    """What a tool said to Ada, too long for the model."""

    async def much(_context: ToolContext) -> ToolOutput:
        return ToolOutput(text="tulip " * 5_000)

    world.look.does = much
    world.model.will(LOOK, says("seen"))
    await house.say("look")
    [row] = await house.rows(RowKind.RESULT)
    await house.advance(1)
    return decode(KeptResult, row.body)


async def test_a_result_that_was_kept_whole_goes_too(world: World) -> None:
    """Its bytes are what a person said, or what was found for them."""
    async with world.running() as house:
        result = await long_result(world, house)
        assert await world.store.blob(result.digest) is not None
        await forget(house)
        assert await world.store.blob(result.digest) is None


async def test_a_result_in_a_shared_chat_goes_with_the_turn_it_was_made_in(world: World) -> None:
    """What was found for others stays."""
    said = iter(("tulip " * 5_000, "rose " * 5_000))

    async def much(_context: ToolContext) -> ToolOutput:
        return ToolOutput(text=next(said))

    world.look.does = much
    world.model.will(LOOK, says("seen"), LOOK, says("seen"))
    async with world.running() as house:
        await house.say("look", "ben", room="club")
        [of_ben] = await results(house)
        await house.say("look", room="club")
        [of_ada] = [one for one in await results(house) if one != of_ben]
        await house.advance(1)
        await forget(house, "ben")
        assert await results(house) == [of_ada]
        assert await world.store.blob(of_ben.digest) is None
        assert await world.store.blob(of_ada.digest) is not None


async def results(house: House) -> list[KeptResult]:
    return [decode(KeptResult, row.body) for row in await house.rows(RowKind.RESULT)]


async def test_a_result_that_somebody_else_gets_just_now_stays(world: World) -> None:
    """The same bytes, put between the look at who needs them and their removal."""
    async with world.running() as house:
        result = await long_result(world, house)
        body = await world.store.blob(result.digest)
        assert body is not None
        again = Commit(
            point=DurablePoint.HOUSEKEEPING, writes=(PutBlob(digest=result.digest, body=body),)
        )
        put: list[Commit] = []

        async def put_again(writes: tuple[Write, ...]) -> None:
            if any(isinstance(write, DropBlob) for write in writes) and not put:
                put.append(again)
                world.clock.leap(timedelta(seconds=1))
                await world.store.commit(again)

        world.store.meanwhile = put_again
        await forget(house)
        assert put == [again]
        assert await world.store.blob(result.digest) == body


async def test_what_is_remembered_of_somebody_goes_and_nothing_of_it_is_left(world: World) -> None:
    """Their notes and what counts them, which bears their name; a group's notes stay."""
    notes = Notes(world.store)
    async with world.running() as house:
        await house.say("rose")
        for owner in ("of:person:ada", "in:club"):
            here = ConversationId("01ELSE")
            note = Note(number=0, text="tulip", by="Ada", at=EPOCH, conversation=here)
            await notes.add(owner, note, most=9)
        await forget(house)
        left = [row.key for row in await house.rows(RowKind.NOTE)]
        assert left == ["in:club#", "in:club#0000000001"]


async def test_what_somebody_had_noted_in_a_shared_chat_goes_too(world: World) -> None:
    """With the facts of everybody's talk there, which are made anew; what others had noted stays."""
    with_notes(world)
    world.configure(autonomy="full")
    async with world.running() as house:
        for who, flower in (("ada", "rose"), ("ben", "tulip")):
            remember = asks_for(("remember", f'{{"text": "a {flower}"}}'))
            world.model.will(remember, says("Noted."))
            await house.say(f"note my {flower}", who, room="club")
        world.model.will(says('"They like a tulip."'), says("State: a tulip."))
        await house.say("/compact", room="club")
        assert len(await house.rows(RowKind.NOTE)) == len(("a count", "rose", "tulip", "a fact"))
        told = lines(await collect(world.store, "person:ben", world.config.people), str)
        assert [one.text for one in told if one.kind == "remembered"] == ["a tulip"]
        await forget(house, "ben")
        (owner,) = {row.place for row in await house.rows(RowKind.NOTE)}
        assert [one.text for one in await Notes(world.store).all(owner)] == ["a rose"]
        assert "tulip" not in await kept(world)


async def test_a_note_that_a_move_renames_as_it_is_removed_goes_too(world: World) -> None:
    """A Telegram group may become a supergroup at that moment; a fact of its talk goes as well."""
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
        assert "tulip" not in await kept(world)


async def test_the_language_that_somebody_chose_goes_too(world: World) -> None:
    """At once, without a restart; what others chose stays."""
    async with world.running() as house:
        await house.say("/language de", "ben")
        await house.say("/language de")
        await forget(house)
        await house.say("/language nothing")
        await house.say("/language nothing", "ben")
        left = [row.key for row in await house.rows(RowKind.LANGUAGE)]
        mine, bens = house.texts()[-1], house.texts("ben")[-1]
    assert left == ["person:ben"]
    assert (mine[:13], bens[-12:]) == ("My own senten", "auf Deutsch.")


async def test_a_count_of_notes_of_an_earlier_release_goes_too(world: World) -> None:
    """It had neither place nor state, and its key bears the name."""
    counts = [
        Put(kind=RowKind.NOTE, key=f"{owner}#", body=b'{"last":3}')
        for owner in ("of:person:ada", "of:person:ben", "in:club")
    ]
    await world.store.write(*counts)
    async with world.running() as house:
        await house.say("rose")
        found = await collect(world.store, "ada", world.config.people)
        exported = [one.text for one in lines(found, str)]
        await forget(house)
        left = [row.key for row in await house.rows(RowKind.NOTE)]
    assert exported == ["rose", "ok"]
    assert sorted(left) == ["in:club#", "of:person:ben#"]


async def test_what_was_asked_for_somebody_goes_when_nothing_else_tells_of_them(
    world: World,
) -> None:
    """Questions may be kept longer than messages; nobody else's go. An export shows them."""
    world.model.will(POKE, says("poked"), POKE, says("poked"))
    async with world.running() as house:
        for who in ("ben", "ada"):
            await house.say("poke", who, room="club")
            await house.press()
            await house.advance(1)
        for kind in (RowKind.INBOX, RowKind.TURN):
            world.store.forget(kind)
        for stream in await world.store.streams(LogKind.JOURNAL):
            await world.store.write(Trim(log=LogKind.JOURNAL, stream=stream, before=99))
        found = await collect(world.store, "ben", world.config.people)
        exported = [(one.kind, one.by) for one in lines(found, str)]
        await forget(house, "ada", "ben")
        asked = [APPROVALS.of(row).requester.id for row in await house.rows(RowKind.APPROVAL)]
        called = [ACTIONS.of(row).action.principal.id for row in await house.rows(RowKind.ACTION)]
    assert exported == [("approval", "Ada")]
    assert (asked, called) == (["person:ada"], ["person:ada"])


# --- a journal without one person's turns ---------------------------------------------------------

AT = datetime(2026, 1, 1, tzinfo=UTC)
SUMMARY = entries.Compacted(summary="they met", kept=0, at=AT)
NOTE = entries.Noted(text="edited", why="edit", at=AT)


def turn(name: str, *within: entries.Entry) -> tuple[entries.Entry, ...]:
    """A whole turn that a person began."""
    who = Principal(
        id=f"person:{name}", roles=frozenset(), channel="chat", sender=name, display=name
    )
    opened = entries.TurnOpened(
        turn=TurnId(name),
        item=ItemId(name),
        principal=who,
        correlation="c",
        user=UserMessage(content=f"from {name}"),
        limits=TurnLimits(max_rounds=5),
        at=AT,
    )
    answer = AssistantMessage(content=f"for {name}")
    finished = entries.TurnFinished(reason="model_stop", usage=NO_USAGE, at=AT, message=answer)
    return (opened, *within, finished)


def test_only_their_turns_go() -> None:
    """What follows a turn up to the next one goes with it, and what stays folds."""
    journal = (NOTE, *turn("ada"), *turn("ben"), NOTE, *turn("ada"))
    left = journal_without(journal, "person:ben")
    assert left is not None
    assert left == (NOTE, *turn("ada"), *turn("ada"))
    history = fold(left)
    assert history.turn is None
    texts = [one.content for one in history.messages]
    assert texts == ["edited", "from ada", "for ada", "from ada", "for ada"]


def test_late_edits_go_wherever_they_stand() -> None:
    """Their own, and those of an earlier release, which stored no writer; they alone suffice."""
    of_ada, of_ben, old = (
        entries.Noted(text="now", why="edited", at=AT, by=by)
        for by in ("person:ada", "person:ben", "")
    )
    journal = (NOTE, *turn("ada", of_ben, of_ada), of_ben, old, of_ada)
    assert journal_without(journal, "person:ben") == (NOTE, *turn("ada", of_ada), of_ada)
    assert journal_without((*turn("ada", of_ada), old), "person:ben") is None


def test_summaries_go_wherever_they_stand() -> None:
    """They are of everybody's words; what they stood for is read in full again."""
    left = journal_without((*turn("ben"), *turn("ada", SUMMARY)), "person:ben")
    assert left == turn("ada")


def test_turns_that_stay_name_nothing_that_others_brought() -> None:
    """A file's name says as much as a message; that its text was untrusted stays known."""
    brought = (named("attachment", "diagnosis.pdf"),)
    opened, ended = turn("ada")
    assert isinstance(opened, entries.TurnOpened)
    journal = (*turn("ben"), replace(opened, untrusted=brought), ended)
    left = (replace(opened, untrusted=(named("quoted"),)), ended)
    assert journal_without(journal, "person:ben") == left


def test_a_journal_without_them_is_left_as_it_is() -> None:
    """Nothing has to be written, a summary included."""
    assert journal_without((*turn("ada", SUMMARY), NOTE), "person:ben") is None
    assert journal_without((), "person:ben") is None
