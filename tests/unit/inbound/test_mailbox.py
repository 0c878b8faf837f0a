"""One conversation at a time, through every failure, and no more messages than may wait."""

import asyncio
from contextlib import suppress

import pytest

from tests.fakes.house import House, World
from tests.fakes.scripted_model import asks_for, says
from zeroclaw.config.model import LimitsSettings, RuntimeSettings
from zeroclaw.conversation.inbox import INBOX, Unread
from zeroclaw.delivery.rows import stored
from zeroclaw.envelope import Accepted, ConversationId, Duplicate, Ignored, Said
from zeroclaw.errors import Fenced
from zeroclaw.inbound.conversations import CONVERSATIONS, POINTERS
from zeroclaw.inbound.mailbox import BACK_OFF
from zeroclaw.store import Commit, DurablePoint, Put, Query, Row, RowKind
from zeroclaw.value import replace


async def test_a_conversation_that_fails_is_tried_again(world: World) -> None:
    """With growing pauses, also where the operators' notice can't be stored; nothing else ends (P1, P9)."""
    failing = {"turn": True}

    def fail(commit: Commit) -> None:
        refused = DurablePoint.TURN_STARTED, DurablePoint.HOUSEKEEPING
        if commit.point in refused and failing["turn"]:
            raise LookupError("a fault")

    async with world.running() as house:
        world.store.before = fail
        await house.say("one")
        assert world.clock.sleeping()[0] == BACK_OFF.first_s
        assert await house.states() == ["queued"]
        await house.advance(BACK_OFF.first_s)
        assert world.clock.sleeping()[0] == 2 * BACK_OFF.first_s
        await house.advance(10 * BACK_OFF.longest_s)
        assert world.clock.sleeping()[0] <= BACK_OFF.longest_s
        failing["turn"] = False
        await house.advance(BACK_OFF.longest_s)
        assert house.texts() == ["ok\n\n_Answered 11 min after it was written._"]


async def test_a_turn_that_a_fault_cut_off_goes_on(world: World) -> None:
    """From its journal, as after a restart (P1)."""
    world.model.will(says("lost"), says("kept"))
    failing = {"turn": True}

    def fail(commit: Commit) -> None:
        if commit.point is DurablePoint.FINISHED and failing.pop("turn", False):
            raise LookupError("a fault")

    async with world.running() as house:
        world.store.before = fail
        await house.say("one")
        assert await house.states() == ["taken"]
        await house.advance(BACK_OFF.first_s)
        assert house.texts() == ["kept"]
        assert await house.states() == ["answered"]


async def test_a_note_to_a_failed_turn_is_given_again_to_the_one_that_goes_on(world: World) -> None:
    """Its lane may have nothing new then (P1)."""
    failed: list[DurablePoint] = []

    def fail(commit: Commit) -> None:
        if commit.point is DurablePoint.FINISHED and not failed:
            failed.append(commit.point)
            raise LookupError("this works the next time")

    async with world.told("one", (asyncio.Event(),), (asyncio.Event(),)) as house:
        world.store.before = fail
        await house.say("/stop")
        assert await house.states() == ["taken", "control"]
        await house.advance(BACK_OFF.first_s)
        assert await house.states() == ["stopped", "answered"]


async def test_a_commit_that_a_fault_left_under_way_is_not_overtaken(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is waited for, or refused; otherwise the next try links its audit to an old head (P3)."""
    write, is_first, under_way = world.store.commit, [True], list[Commit]()

    async def slowly(commit: Commit) -> None:
        if commit.point is DurablePoint.CALL_FINISHED and is_first:
            is_first.clear()
            under_way.append(commit)
            await asyncio.Event().wait()
        if under_way and commit.fence is not None:
            with suppress(Fenced):
                await write(under_way.pop())
        await write(commit)

    def damage(commit: Commit) -> None:
        """Make the edit unreadable for the turn that waits for the commit."""
        for write in commit.writes:
            if isinstance(write, Put) and write.state == "control":
                world.store.damage(stored(write, 1))

    world.model.will(asks_for(("look", "{}")))
    async with world.running() as house:
        monkeypatch.setattr(world.store, "commit", slowly)
        await house.say("one")
        world.store.after = damage
        await house.edit("p1", "two")
        [damaged] = await house.rows(RowKind.INBOX, "control")
        await world.store.write(INBOX.delete(damaged.key))
        await house.advance(BACK_OFF.first_s)
        assert house.texts() == ["ok"]
        assert await house.audited() == ["proposed", "evaluated", "executed"]


async def test_a_turn_that_always_fails_is_given_up_and_reported(world: World) -> None:
    """After three tries that came no further, to person and operator (P1, S4-19)."""

    def fail(commit: Commit) -> None:
        if commit.point is DurablePoint.CALL_STARTED:
            raise LookupError("this never works")

    async with world.running() as house:
        world.model.will(*[asks_for(("look", "{}"))] * 4)
        world.store.before = fail
        await house.say("one", "ben")
        for _ in range(5):
            await house.advance(BACK_OFF.longest_s)
        assert house.texts() == [
            "An answer to Ben in `chat` failed: I was cut off again and again while I worked on it."
        ]
        assert house.texts("ben")[-1] == (
            "_I was cut off again and again while I worked on this; send `/retry` to try again._"
        )
        assert await house.states() == ["failed"]


async def test_a_process_that_lost_the_conversation_leaves_it_alone(world: World) -> None:
    """A newer holder goes on; this one takes it anew when something new comes (P2)."""
    async with world.told("one") as house:
        [row] = await house.rows(RowKind.INBOX)
        assert row.conversation is not None
        await world.store.lease(row.conversation)
        await house.say("two")
        assert await house.states() == ["answered", "queued"]
        assert len(house.services.mailboxes) == 0
        await house.say("three")
        assert await house.states() == ["answered"] * 3


async def test_a_conversation_that_cannot_go_on_holds_up_no_new_one(world: World) -> None:
    """`/new` is a way out of it."""
    poisoned: list[str] = []

    def fail(commit: Commit) -> None:
        if commit.conversation in poisoned and commit.fence is not None:
            raise LookupError("damaged")

    held = asyncio.Event()
    async with world.told("one", (held,)) as house:
        [row] = await house.rows(RowKind.INBOX)
        poisoned.append(str(row.conversation))
        world.store.before = fail
        await house.say("/new")
        await house.say("two")
        held.set()
        await house.settle()
        assert house.texts()[-1] == "ok"
        assert await house.states("answered") == ["answered"]


async def test_operators_learn_once_of_a_conversation_that_keeps_failing(world: World) -> None:
    """Its person gets no answer, and only the operators can find out why (P1)."""
    async with world.told("hello", by="ben") as house:
        [row] = await house.rows(RowKind.INBOX)
        next_key, conversation = f"{row.key}0", row.conversation
        await world.store.write(
            Put(kind=row.kind, key=next_key, body=b"{", conversation=conversation, state="queued")
        )
        await house.say("anybody?", "ben")
        await house.advance(2 * BACK_OFF.first_s)
        assert house.texts() == []
        for _ in range(9):
            await house.advance(BACK_OFF.longest_s)
        [text] = house.texts()
        assert text.startswith(
            f"Messages in the conversation `{conversation}` stay unanswered: a stored record"
        )
        assert "`/new`" in text
        await house.say("/new", "ben")
        await house.say("hello again", "ben")
        assert house.texts("ben")[-1] == "ok"


async def test_a_stop_does_not_wait_for_a_conversation_that_fails(world: World) -> None:
    """The grace time is for running turns; the message is there at the next start (P1)."""

    def fail(commit: Commit) -> None:
        if commit.point is DurablePoint.TURN_STARTED:
            raise LookupError("a fault")

    async with world.running() as house:
        world.store.before = fail
        await house.say("one")
        house.services.mailboxes.close()
        await house.services.mailboxes.at_rest()
        assert await house.states() == ["queued"]


async def test_a_mailbox_that_lost_its_fence_closes(world: World) -> None:
    """Even in the middle of a turn: the newer holder resumes it."""

    def fence(commit: Commit) -> None:
        if commit.point is DurablePoint.FINISHED:
            raise Fenced("somebody newer")

    async with world.running() as house:
        world.store.before = fence
        await house.say("one")
        assert len(house.services.mailboxes) == 0
        assert await house.states() == ["taken"]
        world.store.before = None
        await house.say("two")
        assert await house.states() == ["answered", "answered"]


async def test_a_closed_house_starts_no_turn(world: World) -> None:
    """The running turn may end; waiting messages are answered after the next start (P1)."""
    held = asyncio.Event()
    async with world.told("one", (held, *says("to one"))) as house:
        await house.say("two")
        house.services.mailboxes.close()
        await house.say("three", "ben")
        held.set()
        await house.services.mailboxes.at_rest()
        assert await house.states() == ["answered", "queued", "queued"]
    async with world.running() as house:
        assert house.texts() == ["to one", "ok"]
        assert house.texts("ben") == ["ok"]


async def test_a_halted_mailbox_closes_with_the_house(world: World) -> None:
    """Nothing is lost: the message is there at the next start."""
    async with world.told("/halt") as house:
        await house.say("one")
        house.services.mailboxes.close()
        await house.services.mailboxes.at_rest()
        assert await house.states() == ["queued"]


async def test_after_a_halt_too_a_conversation_waits_for_the_one_before_it(world: World) -> None:
    """Messages before `/new` are answered first (P2)."""
    held = asyncio.Event()
    async with world.told("/halt", (held, *says("to one")), says("to two")) as house:
        await house.say("one")
        await house.say("/new")
        await house.say("two")
        await house.say("/stop")
        assert house.texts()[-1] == "Nothing is running."
        await house.say("/status")
        assert "0 being answered" in house.texts()[-1]
        await house.say("/resume")
        assert len(world.model.requests) == 1
        held.set()
        await house.settle()
        assert house.texts()[-2:] == ["to one", "to two"]


async def test_a_conversation_waits_for_the_one_before_others_without_a_message(
    world: World,
) -> None:
    """At a start, too, when nothing is left to do in those; and `/stop` means what runs (P2)."""
    held = asyncio.Event()
    async with world.told("/halt", (held, *says("to one")), says("to two")) as house:
        await house.say("one")
        await house.say("/new")
        await house.say("/new")
        await house.say("two")
    async with world.told("/resume") as house:
        assert len(world.model.requests) == 1
        await house.say("/stop")
        assert house.texts()[-2:] == ["_Stopped by Ada._", "to two"]


async def test_a_conversation_waits_for_a_turn_that_is_just_beginning(world: World) -> None:
    """Its start takes the item away between two reads of those that look for it (P2)."""
    held, looked, began = asyncio.Event(), asyncio.Event(), asyncio.Event()
    world.model.will((held, *says("to one")), says("to two"))
    write, select = world.store.commit, world.store.select

    async def write_later(commit: Commit) -> None:
        if commit.point is DurablePoint.TURN_STARTED and not began.is_set():
            await looked.wait()
            await write(commit)
            began.set()
        else:
            await write(commit)

    async def look(query: Query) -> tuple[Row, ...]:
        rows = await select(query)
        if query.kind is RowKind.TURN and query.limit == 1:
            looked.set()
            await began.wait()
        return rows

    async with world.told("/halt") as house:
        await house.say("one")
        await house.say("/new")
        world.store.commit, world.store.select = write_later, look
        await house.say("/resume")
        await house.say("two")
        assert len(world.model.requests) == 1
        held.set()
        await house.settle()
        assert house.texts()[-2:] == ["to one", "to two"]


async def test_a_thousand_conversations_without_a_message_stop_no_later_one(world: World) -> None:
    """Somebody may write nothing but `/new` (P9)."""
    async with world.told("/new", says("hello")) as house:
        (row,) = await world.store.select(Query(kind=RowKind.ADDRESS))
        pointer = POINTERS.of(row)
        last = await CONVERSATIONS.find(world.store, pointer.conversation)
        assert last is not None
        for number in range(1_500):
            last = replace(last, id=ConversationId(f"c{number}"), predecessor=last.id)
            put = CONVERSATIONS.put(last.id, last, conversation=last.id, place=row.place)
            await world.store.write(put)
        pointed = replace(pointer, conversation=last.id)
        await world.store.write(
            POINTERS.put(row.key, pointed, conversation=last.id, place=row.place)
        )
        await house.say("hi")
        assert house.texts()[-1] == "hello"


# --- a message too many: told, ended, and nothing worse -------------------------------------------


async def test_a_message_too_many_gets_one_notice_and_ends(world: World) -> None:
    """The backlog has a bound; nothing is dropped in silence, and later there is room (P1, P10)."""
    world.configure(runtime=RuntimeSettings(backlog=2))
    held = asyncio.Event()
    world.model.will((held, *says("first")))
    async with world.running() as house:
        for text in ("one", "two", "three", "four", "five"):
            await house.say(text)
        assert house.texts() == [
            "I am busy: 2 messages wait here already. I did not take this one, nor those that "
            "follow it; send it again later."
        ]
        held.set()
        await house.settle()
        await house.say("four")
        assert house.texts()[1:] == ["first", "ok", "ok", "ok"]
        assert await house.states() == [*["answered"] * 3, "failed", "answered"]


async def test_a_flood_that_finds_no_room_leaves_one_row_a_stretch(world: World) -> None:
    """However much comes, also from an operator without limits; the row holds no words (P9)."""
    world.configure(runtime=RuntimeSettings(backlog=2))
    first, second = asyncio.Event(), asyncio.Event()
    world.model.will((first, *says("first")), says("ok"), says("ok"), (second, *says("second")))
    async with world.running() as house:
        for number in range(60):
            await house.say(f"tulip {number}")
        assert await turned_away(house) == [Unread(over="queue", count=57)]
        assert len(house.texts()) == 1
        first.set()
        await house.settle()
        for number in range(60):
            await house.say(f"rose {number}")
        assert await turned_away(house) == [
            Unread(over="queue", count=57),
            Unread(over="queue", count=57),
        ]
        second.set()


async def test_in_a_group_each_writer_who_finds_no_room_gets_a_notice(world: World) -> None:
    """A member need not take another's notice for their own (P10)."""
    world.configure(runtime=RuntimeSettings(backlog=1))
    held = asyncio.Event()
    world.model.will((held, *says("first")))
    async with world.running() as house:
        for who in ("ada", "ada", "ada", "ben", "ben"):
            await house.say("hello", who, room="lobby")
        assert await turned_away(house) == [Unread(over="queue"), Unread(over="queue", count=2)]
        assert len(house.texts(room="lobby")) == 2
        held.set()


async def test_a_refused_message_overtakes_nothing_when_it_is_delivered_again(world: World) -> None:
    """What was written after it was refused as well; so it stays refused when there is room (P2)."""
    world.configure(runtime=RuntimeSettings(backlog=1))
    held = asyncio.Event()
    world.model.will((held, *says("first")))
    async with world.running() as house:
        for key in ("a", "b", "c", "d", "e"):
            assert await house.event(Said(text=key), key=key) == Accepted()
        held.set()
        await house.settle()
        for key in ("c", "d", "e"):
            assert await house.event(Said(text=key), key=key) == Duplicate()
        assert house.texts()[1:] == ["first", "ok"]
        assert await house.event(Said(text="f"), key="f") == Accepted()
        assert house.texts()[1:] == ["first", "ok", "ok"]


async def turned_away(house: House) -> list[object]:
    return [INBOX.of(row).content for row in await house.rows(RowKind.INBOX, "failed")]


async def test_a_chat_that_is_forgotten_just_now_refuses_no_event(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer reads that it is busy, although all of it has gone, and nothing worse."""
    world.configure(runtime=RuntimeSettings(backlog=1))
    held = asyncio.Event()
    world.model.will((held, *says("first")))
    count = world.store.count

    async def count_and_forget(query: Query) -> int:
        found = await count(query)
        if found:
            world.store.forget(RowKind.INBOX)
        return found

    async with world.told("one") as house:
        await house.say("two")
        monkeypatch.setattr(house.services.foundation.store, "count", count_and_forget)
        assert await house.say("three") == Accepted()
        assert await house.states() == ["failed"]
        assert house.texts()[0].startswith("I am busy: a message waits here already.")


async def test_a_full_queue_gets_a_notice_although_a_flood_had_one(world: World) -> None:
    """Two different reasons, and each is said."""
    world.configure(limits=LimitsSettings(person_per_minute=6, person_burst=2))
    world.configure(runtime=RuntimeSettings(backlog=2))
    held = asyncio.Event()
    world.model.will((held, *says("first")))
    async with world.running() as house:
        for text in ("one", "two"):
            await house.say(text, "ben", room="lobby")
        await house.say("three", "ben", room="lobby")
        await house.say("four", "cleo", room="lobby")
        await house.say("five", "cleo", room="lobby")
        texts = house.texts(room="lobby")
        assert [text.partition(" ")[0] for text in texts] == ["That", "I"]
        held.set()


async def test_an_edit_of_what_found_no_room_says_nothing(world: World) -> None:
    """It never was a message of the conversation, so the model reads of no change to it either."""
    world.configure(runtime=RuntimeSettings(backlog=1))
    held = asyncio.Event()
    world.model.will((held, *says("first")))
    async with world.running() as house:
        for text in ("one", "two", "three"):
            await house.say(text)
        assert await house.edit("p3", "tulip") == Ignored()
        assert await house.withdraw("p3") == Ignored()
        held.set()
        await house.settle()
        await house.say("four")
        assert "tulip" not in str(world.model.requests)
        assert "three" not in str(world.model.requests)
