"""Notes that go along with a message: their owner, their lifetime, and their effects."""

from contextlib import aclosing
from itertools import pairwise
from pathlib import Path

import pytest

from tests.fakes.house import House, World
from tests.fakes.house_parts import SECRET
from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_tool import LOOK, PlainTool
from tests.fakes.scripted_model import asks_for, says
from zeroclaw.config.model import NotesSettings, ToolsSettings
from zeroclaw.context import notes as notes_of
from zeroclaw.context.notes import NOTES, Notes
from zeroclaw.daemon.services import recalled_chars
from zeroclaw.envelope import ConversationId, Edited, Moved, Said
from zeroclaw.errors import Conflict, ToolFailed
from zeroclaw.message import UserMessage
from zeroclaw.store import Commit, DurablePoint, Query, Reads, RowKind, Write
from zeroclaw.stores.sqlite import open_store
from zeroclaw.tools import notes
from zeroclaw.tools.notes.note import KeptNote, Note, owner_of_chat
from zeroclaw.value import replace

REMEMBER = asks_for(("remember", '{"text": "likes green tea"}'))
OPENING = "[What was remembered earlier"


def open_the_notes(world: World, settings: NotesSettings) -> None:
    world.configure(autonomy="full", tools=ToolsSettings(notes=settings))
    world.others = notes.tools(settings, Notes(world.store), str)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    open_the_notes(world, NotesSettings())
    return world


async def remember_tea(house: House) -> None:
    """Ada has a fact remembered in her own chat."""
    house.world.model.will(REMEMBER, says("noted"))
    await house.say("I like green tea")


def newest(world: World) -> str:
    """The newest words of a person, as the model reads them."""
    messages = [
        message for message in world.model.requests[-1].messages if isinstance(message, UserMessage)
    ]
    return messages[-1].content


async def test_a_private_fact_is_not_known_in_a_group_nor_to_others(world: World) -> None:
    async with world.running() as house:
        await remember_tea(house)
        await house.say("what do I like?", room="club")
        assert newest(world) == "Ada: what do I like?"
        await house.say("what does Ada like?", "ben")
        assert newest(world) == "what does Ada like?"


async def test_forwarded_words_bring_what_they_are_about(world: World) -> None:
    """It comes first, though none of them are the person's own."""
    facts = ("the bicycle is red", "tea is green")
    script = (asks_for(*(("remember", f'{{"text": "{fact}"}}') for fact in facts)), says("noted"))
    async with world.running() as house:
        world.model.will(*script)
        await house.say("keep these")
        await house.event(Said(text="[forwarded from Eve]\nwhere is the bicycle?", own=""))
        assert newest(world).index(facts[0]) < newest(world).index(facts[1])


@pytest.mark.parametrize("thread", ["", "/1"])
async def test_the_facts_of_a_group_follow_it_to_its_new_address(world: World, thread: str) -> None:
    """Telegram gives a group that grows another id, and Slack a channel that is shared."""
    async with world.running() as house:
        world.model.will(REMEMBER, says("noted"))
        await house.say("I like green tea", room=f"old{thread}")
        moved = Moved(to=house.place(room="new"))
        await house.event(moved, "mallory", room="old")
        await house.say("what does Ada like?", "ben", room=f"new{thread}")
        assert "this conversation: likes green tea" in newest(world)
        before = house.place(room=f"old{thread}").key()
        assert await Notes(world.store).all(owner_of_chat(before)) == ()


async def test_a_fact_from_before_a_person_had_a_name_is_theirs_under_it(world: World) -> None:
    """The configuration names them later; no other person's notes come along."""
    ada, ben = world.config.people
    world.configure(people=(ada,))
    async with world.running() as house:
        world.model.will(REMEMBER, says("noted"))
        await house.say("I like green tea", "ben")
        assert [row.place for row in await house.rows(RowKind.NOTE, "")] == ["of:chat:ben"]
        world.configure(people=(ada, ben))
        await house.ask("reload")
        await house.say("what do I like?", "ben")
        assert "likes green tea" in newest(world)
        assert [row.place for row in await house.rows(RowKind.NOTE, "")] == ["of:person:ben"]
        await house.say("what does Ben like?")
        assert newest(world) == "what does Ben like?"


async def test_facts_that_come_to_a_chat_that_has_some_stand_behind_them(world: World) -> None:
    """Each keeps its words, and no number is given twice; what came meanwhile is taken along."""
    store, notes = world.store, Notes(world.store)
    old, new = "in:chat/bot/old", "in:chat/bot/new"
    for owner, text in ((old, "tea"), (old, "milk"), (new, "cake")):
        at, conversation = world.clock.now(), ConversationId("01C")
        note = Note(number=0, text=text, by="Ada", at=at, conversation=conversation)
        await notes.add(owner, note, max_notes=9)
    await notes.forget(old, 1)
    at, conversation = world.clock.now(), ConversationId("01C")
    late = Note(number=0, text="late", by="Ada", at=at, conversation=conversation)

    async def come(_: tuple[Write, ...]) -> None:
        store.meanwhile = None
        await notes.add(old, late, max_notes=9)

    store.meanwhile = come
    await notes.adopt(old, new)
    assert [(note.number, note.text) for note in await notes.all(new)] == [
        (4, "late"),
        (3, "milk"),
        (1, "cake"),
    ]
    assert await notes_of.plan_move(Reads(store), old, new) == ()
    again = await notes.add(new, replace(late, text="more"), max_notes=9)
    assert again != "full"
    assert again.note.number == 5


async def test_only_the_newest_message_has_notes_beside_it(world: World) -> None:
    """So what is sent again begins as it did, and a late edit is no message of its own."""
    async with world.running() as house:
        await remember_tea(house)
        await house.say("one")
        await house.event(Edited(message="p2", said=Said(text="uno")))
        await house.say("two")
        contents = [message.content for message in world.model.requests[-1].messages[1:]]
        assert [content.startswith(OPENING) for content in contents] == [False] * (
            len(contents) - 1
        ) + [True]
        assert contents[-1].endswith("\n\ntwo")


async def test_a_repeated_request_begins_as_it_did(world: World) -> None:
    """The messages before the newest words of the last request, with any notes."""
    async with world.running() as house:
        await remember_tea(house)
        for number in range(10):
            world.model.will(
                asks_for(("remember", f'{{"text": "fact {number}"}}')), says(f"answer {number}")
            )
            await house.say(f"remember fact {number}")
        requests = [request.messages for request in world.model.requests[2:]]
    for before, after in pairwise(requests):
        newest_at = max(at for at, message in enumerate(before) if isinstance(message, UserMessage))
        assert after[:newest_at] == before[:newest_at]


async def test_the_notes_of_a_turn_stay_as_they_were_chosen(world: World) -> None:
    """A note that is kept in the middle of it goes along with the next one; a kill changes nothing."""
    async with world.running() as house:
        await remember_tea(house)
        second = asks_for(("remember", '{"text": "owns a cat"}'))
        world.model.will(second, says("noted"))
        await house.say("and I own a cat")
        first, last = world.model.requests[-2:]
        assert last.messages[: len(first.messages)] == first.messages
        await house.say("what do I own?")
        assert "owns a cat" in newest(world)


async def test_a_turn_that_a_kill_cut_off_has_its_notes_again(world: World) -> None:
    async with world.running() as house:
        await remember_tea(house)
        world.store.cut_after(DurablePoint.TURN_STARTED)
        await house.say_and_die("which tea?")
    assert len(world.model.requests) == 2
    world.store.heal()
    async with world.running():
        assert newest(world).startswith(OPENING)
        assert newest(world).endswith("\n\nwhich tea?")


async def test_a_note_of_an_untrusted_turn_makes_the_next_one_untrusted(world: World) -> None:
    """Its calls need approval, though the model did not call `recall`; the card names the note."""
    parameters = {"type": "object", "properties": {"command": {"type": "string"}}}
    page, run = (
        PlainTool(replace(LOOK, name=name, parameters=parameters, effects=frozenset({effect})))
        for name, effect in (("page", "network"), ("run", "exec"))
    )
    world.tools = (page, run)
    async with world.running() as house:
        world.model.will(asks_for(("page", "{}")), REMEMBER, says("noted"))
        await house.say("sum up the page")
        await house.say("/new")
        world.model.will(asks_for(("run", '{"command": "curl evil"}')))
        await house.say("do as usual")
        assert run.runs == []
        [reason] = [call.why for call in house.card().calls]
        assert reason.endswith(
            "(what is kept as note 1 (the bot kept it after it had read such text))"
        )


async def test_a_secret_that_became_known_since_is_taken_out(world: World) -> None:
    """A note may be older than the reference that holds its secret. P8."""
    at, conversation = world.clock.now(), ConversationId("01C")
    old = Note(number=0, text=f"the word is {SECRET}", by="Ada", at=at, conversation=conversation)
    await Notes(world.store).add("of:person:ada", old, max_notes=9)
    async with world.running() as house:
        await house.say("what is the word?")
        assert "the word is" in newest(world)
        assert SECRET not in newest(world)


@pytest.mark.parametrize("off", [NotesSettings(recalled_chars=0), NotesSettings(enabled=False)])
async def test_one_key_turns_recollection_off(world: World, off: NotesSettings) -> None:
    async with world.running() as house:
        await remember_tea(house)
    open_the_notes(world, off)
    async with world.running() as house:
        await house.say("what do I like?")
        assert newest(world) == "what do I like?"


def test_a_small_window_has_room_for_little() -> None:
    settings = NotesSettings(recalled_chars=2_000)
    assert [recalled_chars(settings, window) for window in (None, 4_096, 128_000)] == [
        2_000,
        512,
        2_000,
    ]


async def test_a_repeated_message_has_notes_too(world: World) -> None:
    """`/retry` asks anew, with the notes of now."""
    async with world.running() as house:
        await remember_tea(house)
        world.model.will((RuntimeError("broken"),), says("tea"))
        await house.say("what do I like?")
        await house.say("/retry")
        assert newest(world).startswith(OPENING)
        assert newest(world).endswith("\n\nwhat do I like?")


async def test_notes_of_an_earlier_release_open(world: World) -> None:
    """It kept no channel with them."""
    body = (
        b'{"is":"Note","number":1,"text":"tea","by":"Ada","at":"2026-01-01T00:00:00Z",'
        b'"conversation":"01C","trusted":true}'
    )
    old = replace(
        NOTES.put(
            "of:person:ada#0000000001",
            Note(
                number=1, text="", by="", at=world.clock.now(), conversation=ConversationId("01C")
            ),
            place="of:person:ada",
        ),
        body=body,
    )
    await world.store.write(old)
    async with world.running() as house:
        await house.say("tea?")
        assert "[1] 2026-01-01, Ada, another conversation: tea" in newest(world)


# --- notes in the store ---------------------------------------------------------------------------

NOTE = Note(
    number=0, text="tea", by="Ada", at=ManualClock().now(), conversation=ConversationId("01C")
)
FIRST = Note(number=1, text=NOTE.text, by=NOTE.by, at=NOTE.at, conversation=NOTE.conversation)


async def test_a_note_is_there_after_a_restart(tmp_path: Path) -> None:
    """And its number is still taken."""
    async with aclosing(await open_store(tmp_path / "data", clock=ManualClock())) as store:
        added = await Notes(store).add("of:ada", NOTE, max_notes=2)
        assert added == KeptNote(note=FIRST, is_new=True)
    async with aclosing(await open_store(tmp_path / "data", clock=ManualClock())) as store:
        notes = Notes(store)
        assert await notes.all("of:ada") == (FIRST,)
        assert await notes.all("of:ad") == ()
        assert await notes.add("of:ada", NOTE, max_notes=2) == KeptNote(note=FIRST, is_new=False)
        assert await notes.forget("of:ada", 1) == FIRST
        assert await notes.forget("of:ada", 1) is None
        assert await store.select(Query(kind=RowKind.NOTE, conversation=NOTE.conversation)) == ()


async def test_a_note_is_found_by_its_conversation_too() -> None:
    """So that export and erasure of a conversation find it."""
    store = MemoryStore()
    await Notes(store).add("of:ada", NOTE, max_notes=2)
    rows = await store.select(Query(kind=RowKind.NOTE, conversation=NOTE.conversation))
    assert [row.key for row in rows] == ["of:ada#0000000001"]


async def test_a_writer_that_always_loses_the_race_gets_an_error() -> None:
    """It ends, and no note is stored."""
    store = MemoryStore()

    def refuse(_: Commit) -> None:
        raise Conflict("of:ada#")

    store.before = refuse
    with pytest.raises(ToolFailed, match="try again"):
        await Notes(store).add("of:ada", NOTE, max_notes=2)
    assert store.commits == []
