"""Ingress: who comes in, once, and what an event does."""

import asyncio
from datetime import timedelta

import pytest

from tests.fakes.house import House, World
from tests.fakes.scripted_model import asks_for, says
from tests.fakes.trace import Trace
from tests.unit.inbound.test_reassembly import ALBUM, MORE, WINDOW_S, piece
from zeroclaw.codec import decode
from zeroclaw.conversation.inbox import INBOX, Obeyed
from zeroclaw.envelope import (
    Accepted,
    Address,
    Admission,
    Answered,
    ApprovalId,
    Continues,
    Duplicate,
    Envelope,
    Ignored,
    Membership,
    Moved,
    Position,
    Pressed,
    Said,
    Sender,
)
from zeroclaw.errors import Conflict, ShuttingDown
from zeroclaw.inbound import planner, reassembly
from zeroclaw.store import Claim, Commit, Delete, DurablePoint, Put, Query, RowKind
from zeroclaw.value import replace


async def test_a_message_is_stored_before_it_is_confirmed(world: World) -> None:
    """The admission is one commit, and comes before everything else (P1, S2-02, S3-03)."""
    async with world.running() as house:
        assert await house.say("hello") == Accepted()
        assert world.store.points()[0] is DurablePoint.ADMITTED
        assert house.texts() == ["ok"]
        assert await house.states() == ["answered"]


async def test_a_stranger_leaves_a_counter_and_nothing_else(world: World) -> None:
    """Nothing is stored, nothing is answered, the model is not asked (P4, S2-03)."""
    async with world.running() as house:
        assert await house.say("let me in", "mallory") == Ignored()
        assert await house.say("/status", "mallory") == Ignored()
        assert house.services.ingress.dropped == {"chat": 2}
        assert world.store.commits == []
        assert world.model.requests == []


async def test_a_stranger_who_presses_in_a_group_reads_that_it_is_not_theirs(world: World) -> None:
    """A button in a channel is there for all eyes; what they write there meets silence (P4, P5)."""
    pressed = Pressed(approval=ApprovalId("made-up"), choice="once")
    with_reason = replace(pressed, choice="deny", reason="because")
    async with world.running() as house:
        answer = await house.event(pressed, "mallory", room="team")
        assert answer == Answered(text="this is not yours to answer")
        assert await house.event(with_reason, "mallory", room="team") == Ignored()
        assert await house.event(pressed, "mallory") == Ignored()
        assert await house.event(Said(text="let me in"), "mallory", room="team") == Ignored()
        assert house.services.ingress.dropped == {"chat": 4}
        assert world.store.commits == []


async def test_an_unverified_id_is_a_strangers(world: World) -> None:
    """The platform's claim alone identifies; an unverified operator is a stranger (P4)."""
    async with world.running() as house:
        envelope = Envelope(
            address=house.place("ada"),
            sender=Sender(id="ada", verified=False),
            dedup=("k",),
            body=Said(text="it is me"),
        )
        assert await world.platforms["chat"].say(envelope) == Ignored()


async def test_a_group_hears_who_spoke(world: World) -> None:
    """In a chat of many the model reads the name, and the answer names the message."""
    async with world.told("hello", by="ben", room="lobby") as house:
        assert world.model.asked() == ["user: Ben: hello"]
        assert house.texts(room="lobby") == ["ok"]


async def test_a_name_that_is_half_a_character_loses_no_message(world: World) -> None:
    """JSON escapes of a platform can make one; the call that it wants is asked about all the same (P1)."""
    world.model.will(asks_for(("poke", "{}")), says("done"))
    async with world.running() as house:
        envelope = house.envelope(Said(text="poke it"))
        named = replace(envelope.sender, display="A\ud800")
        await world.platforms["chat"].say(replace(envelope, sender=named))
        await house.settle()
        assert await house.press() == "approved: `poke`"
        assert house.texts()[-1] == "done"


async def test_the_position_is_committed_with_its_event(world: World) -> None:
    """Catching up after downtime starts where the last admission stands (P1)."""
    async with world.running() as house:
        envelope = Envelope(
            address=house.place("ada"),
            sender=Sender(id="ada", verified=True),
            dedup=("k",),
            body=Said(text="hello"),
            position=Position(scope="inbox/1", cursor="17"),
        )
        await world.platforms["chat"].say(envelope)
        [row] = await house.rows(RowKind.POSITION)
        assert decode(Position, row.body) == Position(scope="inbox/1", cursor="17")
        assert (row.key, row.place) == ("chat/bot/inbox/1", "chat/bot")
        assert world.store.commits[0].point is DurablePoint.ADMITTED


async def test_a_daemon_that_ends_admits_nothing_more(world: World) -> None:
    """The adapter gets an error, so that the platform delivers the event again (P1)."""
    async with world.running() as house:
        house.services.ingress.open = False
        with pytest.raises(ShuttingDown, match="after the next start"):
            await house.say("hello")
        house.services.ingress.open = True
        assert await house.say("hello") == Accepted()


async def test_an_event_that_was_not_stored_is_not_confirmed(world: World) -> None:
    """The adapter sees the failure, and the same event can be sent again (P1)."""

    def fail(commit: Commit) -> None:
        raise RuntimeError("no room")

    async with world.running() as house:
        world.store.before = fail
        event = house.envelope(Said(text="hello"), key="k")
        with pytest.raises(RuntimeError, match="no room"):
            await house.services.ingress.admit(event)
        world.store.before = None
        assert await house.event(Said(text="hello"), key="k") == Accepted()
        assert house.texts() == ["ok"]


async def test_two_first_messages_at_once_share_a_conversation(world: World) -> None:
    """Of two that make the conversation one loses, looks again, and joins it (P2)."""
    async with world.running() as house:
        admit = house.services.ingress.admit
        async with asyncio.TaskGroup() as group:
            group.create_task(admit(house.envelope(Said(text="one"), room="lobby")))
            group.create_task(admit(house.envelope(Said(text="two"), "ben", room="lobby")))
        await house.settle()
        rows = await house.rows(RowKind.INBOX)
        assert len({row.conversation for row in rows}) == 1
        assert [row.state for row in rows] == ["answered", "answered"]


async def test_a_race_without_end_is_given_up(world: World) -> None:
    """The platform keeps the event when another writer is always first."""

    def race(commit: Commit) -> None:
        raise Conflict("raced")

    async with world.running() as house:
        world.store.before = race
        with pytest.raises(Conflict, match="others kept changing"):
            await house.say("hello")


# --- messages that change ------------------------------------------------------------------------


async def test_a_message_withdrawn_before_its_turn_is_not_answered(world: World) -> None:
    """It ends as superseded."""
    held = asyncio.Event()
    async with world.told("one", (held, *says("first"))) as house:
        await house.say("two")
        await house.withdraw("p2")
        held.set()
        await house.settle()
        assert len(world.model.requests) == 1
        assert await house.states() == ["answered", "superseded"]


async def test_another_persons_message_cannot_be_changed(world: World) -> None:
    """An edit finds only what its own sender wrote, in this chat."""
    held = asyncio.Event()
    async with world.told("one", (held, *says("first")), room="lobby") as house:
        await house.say("two", room="lobby")
        assert await house.edit("p2", "mine", "ben", room="lobby") == Ignored()
        assert await house.withdraw("p2", "ben", room="lobby") == Ignored()
        assert await house.edit("p9", "never said", room="lobby") == Ignored()
        assert await house.edit("p2", "of another chat", room="attic") == Ignored()
        assert await house.withdraw("p2") == Ignored()
        held.set()
        await house.settle()
        assert world.model.asked()[-1] == "user: Ada: two"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("edit", "user: [Ada edited their message. It now reads:]\nbye"),
        ("withdraw", "user: [Ada deleted their message.]"),
    ],
)
async def test_a_change_after_the_turn_is_a_note_in_the_history(
    world: World, change: str, expected: str
) -> None:
    """It starts no turn and ends as joined; the model reads it with the next message."""
    async with world.told("hello") as house:
        await (house.edit("p1", "bye") if change == "edit" else house.withdraw("p1"))
        assert len(world.model.requests) == 1
        assert await house.states() == ["answered", "joined"]
        await house.say("and now")
        assert world.model.asked() == ["user: hello", "assistant: ok", expected, "user: and now"]


async def test_an_edit_that_changes_nothing_is_none(world: World) -> None:
    """Telegram reports a reaction to a message as an edit by its writer."""
    async with world.told("hello") as house:
        for text in ("hello", "bye", "bye", "hello"):
            assert await house.edit("p1", text) == Accepted()
            await house.settle()
        assert await house.states() == ["answered", "joined", "joined"]
        await house.say("and now")
        notes = [text for text in world.model.asked() if "It now reads" in text]
    assert [note.partition("\n")[2] for note in notes] == ["bye", "hello"]


async def test_an_edit_is_looked_for_among_the_newest_messages(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many were said before it."""
    monkeypatch.setattr(planner, "LOOK_BACK", 1)
    async with world.told("hello") as house:
        await house.say("and now")
        await house.edit("p2", "bye")
        assert await house.states() == ["answered", "answered", "joined"]


async def test_an_edit_is_taken_past_a_damaged_message(world: World) -> None:
    """That one costs only itself."""
    async with world.told("hello") as house:
        await house.say("and now")
        world.store.damage((await house.rows(RowKind.INBOX))[-1])
        assert await house.edit("p1", "bye") == Accepted()
        await house.say("what?")
        assert "user: [Ada edited their message. It now reads:]\nbye" in world.model.asked()


async def test_an_edit_of_a_command_is_only_noted(world: World) -> None:
    """A tool call that a person wrote is frozen as it was written (K7)."""
    held = asyncio.Event()
    async with world.told("one", (held, *says("first"))) as house:
        await house.say("/tool look {}")
        await house.edit("p2", "/tool poke {}")
        held.set()
        await house.settle()
        assert world.look.runs == [{}]
        assert world.poke.runs == []
        assert await house.states() == ["answered", "answered", "joined"]


async def test_an_edit_races_the_start_of_the_turn(world: World) -> None:
    """Whoever is second looks again: here the turn, which then reads the new words."""
    async with world.told("warm") as house:
        edits: list[str] = []

        def edit_first(commit: Commit) -> None:
            if commit.point is DurablePoint.TURN_STARTED and not edits:
                edits.append("p2")
                raise Conflict("it was edited")

        world.store.before = edit_first
        await house.say("tow")
        assert edits == ["p2"]
        assert await house.states() == ["answered", "answered"]
        assert len(world.model.requests) == 2


# --- chats that change ---------------------------------------------------------------------------


async def test_a_chat_that_moved_takes_its_conversation_along(world: World) -> None:
    """The messages of the old address are known at the new one."""
    async with world.told("hello", room="old") as house:
        await house.event(Moved(to=house.place(room="new")), room="old")
        await house.say("again", room="new")
        assert world.model.asked() == ["user: Ada: hello", "assistant: ok", "user: Ada: again"]
        await house.event(Moved(to=house.place(room="new")), room="old")
        await house.say("still", room="new")
        assert len(world.model.asked()) == 5


async def test_a_chat_that_moved_takes_its_threads_along_and_no_other_chats(world: World) -> None:
    """Slack gives a channel another id, and each of its threads is a conversation."""
    async with world.told("hello", room="old/1") as house:
        await house.say("hi", room="old/12")
        await house.say("lost", room="old/2")
        [*_, damaged] = await house.rows(RowKind.ADDRESS)
        world.store.damage(damaged)
        await house.say("elsewhere", room="old.er/1")
        await house.event(Moved(to=house.place(room="new")), room="old")
        await house.say("again", room="new/1")
        assert world.model.asked() == ["user: Ada: hello", "assistant: ok", "user: Ada: again"]
        await house.say("still", room="new/12")
        assert world.model.asked()[0] == "user: Ada: hi"
        await house.say("here", room="old.er/1")
        assert world.model.asked()[0] == "user: Ada: elsewhere"


async def test_a_chat_that_a_stranger_moved_takes_its_conversations_along(world: World) -> None:
    """Whoever owns a group need not be one who may talk to the bot, and people keep what is theirs."""
    settings = world.config.channels["chat"].model_copy(update={"scope": "person"})
    world.config = world.config.model_copy(update={"channels": {"chat": settings}})
    async with world.told("hello", room="old") as house:
        await house.say("I am Ben", "ben", room="old")
        moved = Moved(to=house.place(room="new"))
        assert await house.event(moved, "mallory", room="old") == Accepted()
        await house.say("again", room="new")
        assert world.model.asked() == ["user: Ada: hello", "assistant: ok", "user: Ada: again"]
        await house.say("and I", "ben", room="new")
        assert world.model.asked()[0] == "user: Ben: I am Ben"


async def test_a_stranger_moves_no_chat_without_a_conversation_and_none_twice(world: World) -> None:
    """A repeated report changes nothing again (P1)."""
    async with world.told("hello", room="old") as house:
        moved = Moved(to=house.place(room="new"))
        assert await house.event(moved, "mallory", room="empty") == Ignored()
        assert await house.event(moved, "mallory", room="old", key="once") == Accepted()
        assert await house.event(moved, "mallory", room="old", key="once") == Duplicate()


async def test_a_chat_without_a_conversation_moves_nothing(world: World) -> None:
    """There is nothing to take along."""
    async with world.running() as house:
        moved = Moved(to=Address(channel="chat", account="bot", chat="new"))
        assert await house.event(moved, room="old") == Ignored()


async def test_being_invited_is_only_noted(world: World) -> None:
    """Membership starts nothing; that its sender is known is all that a channel hears."""
    async with world.running() as house:
        assert await house.event(Membership(present=True), room="lobby") == Accepted()
        assert await house.event(Membership(present=True), "mallory", room="lobby") == Ignored()
        (commit,) = world.store.commits
        assert [type(write) for write in commit.writes] == [Claim]


async def test_a_press_on_an_unknown_card_is_ignored(world: World) -> None:
    """An id that was never given out decides nothing (P5)."""
    async with world.running() as house:
        pressed = Pressed(approval=ApprovalId("made-up"), choice="once")
        assert await house.event(pressed) == Ignored()


async def test_a_conversation_of_ones_own_in_a_group(world: World) -> None:
    """With `scope = \"person\"` two people in one chat don't share a history (P2)."""
    settings = world.config.channels["chat"].model_copy(update={"scope": "person"})
    world.config = world.config.model_copy(update={"channels": {"chat": settings}})
    async with world.told("one", room="lobby") as house:
        await house.say("two", "ben", room="lobby")
        assert world.model.asked() == ["user: Ben: two"]


async def test_a_command_that_was_obeyed_is_on_record_and_done(world: World) -> None:
    """It ends answered, once; editing or deleting it later changes nothing (P1)."""
    async with world.told("/approve  7 now ") as house:
        await house.edit("p1", "/halt")
        await house.withdraw("p1")
        [row] = await house.rows(RowKind.INBOX)
        assert (row.state, INBOX.of(row).content) == ("answered", Obeyed(text="/approve  7 now"))
        assert len(house.texts()) == 1


# --- cut off after the commit, while the daemon goes on -------------------------------------------


async def cut_off_at_the_commit(world: World, house: House, text: str) -> Envelope:
    """Write something; the channel is cancelled when it is stored, before any announcement."""
    stored, answered = asyncio.Event(), asyncio.Event()

    async def answer_late() -> None:
        world.store.afterwards = None
        stored.set()
        await answered.wait()

    world.store.afterwards = answer_late
    envelope = house.envelope(house.said(text))

    async def admit() -> None:
        await house.services.supervisor.admit(envelope)

    async with asyncio.TaskGroup() as group:
        admitting = group.create_task(admit())
        await stored.wait()
        admitting.cancel()
    answered.set()
    await house.settle()
    return envelope


async def test_a_stored_message_is_announced_though_its_channel_was_cut_off(world: World) -> None:
    """A channel that is restarted is cut off anywhere, and its platform delivers again (P1)."""
    async with world.running() as house:
        envelope = await cut_off_at_the_commit(world, house, "hello")
        assert world.model.asked() == ["user: hello"]
        assert isinstance(await world.platforms["chat"].say(envelope), Duplicate)
        await house.settle()
        assert house.texts() == ["ok"]


async def test_a_command_is_in_force_though_its_channel_was_cut_off(world: World) -> None:
    """Whoever closes a window behind what stops the bot has stopped it (P3, P4)."""
    async with world.running() as house:
        await cut_off_at_the_commit(world, house, "/pair revoke person:ben")
        assert await house.say("hello", "ben") == Ignored()
        await cut_off_at_the_commit(world, house, "/halt")
        await house.say("hello")
        assert world.model.requests == []
        assert house.texts()[0].startswith("revoked: `person:ben`")


async def test_a_stop_brings_nothing_of_an_erased_conversation_back(world: World) -> None:
    """It was meant for a turn that an earlier conversation of the chat was still finishing."""
    world.burn.hold = asyncio.Event()
    async with world.told("burn it", asks_for(("burn", "{}"))) as house:
        await house.press()
        [old] = await house.rows(RowKind.CONVERSATION)
        await house.say("/new")

        async def erase_first(_writes: object) -> None:
            world.store.meanwhile = None
            found = [row for kind in RowKind for row in await house.rows(kind)]
            left = [row for row in found if row.conversation == old.key]
            deletions = tuple(Delete(kind=row.kind, key=row.key) for row in left)
            await world.store.write(*deletions)

        world.store.meanwhile = erase_first
        await house.say("/stop")
        assert world.store.meanwhile is None
        found = [row for kind in RowKind for row in await house.rows(kind)]
        assert [row.kind for row in found if row.conversation == old.key] == []


# --- a message not addressed to the bot counts only as the rest of one that was -------------------


async def overheard(
    house: House, text: str, more: Continues | None = None, who: str = "ben"
) -> Admission:
    envelope = replace(piece(house, text, more, who, room="room"), overheard=True)
    answer = await house.world.platforms["chat"].say(envelope)
    await house.settle()
    return answer


async def addressed(house: House, text: str, more: Continues | None) -> None:
    await house.world.platforms["chat"].say(piece(house, text, more, "ben", room="room"))
    await house.settle()


async def test_talk_in_a_group_leaves_nothing_behind(world: World) -> None:
    """Neither a row nor a count of strangers (P4)."""
    async with world.running() as house:
        assert await overheard(house, "hello all") == Ignored()
        assert await overheard(house, "hello all", MORE, "mallory") == Ignored()
        assert await house.rows(RowKind.INBOX) == ()
        assert not house.services.ingress.dropped


async def test_the_rest_of_a_message_to_the_bot_is_taken(world: World) -> None:
    """It need not name the bot again; what others say there is not its rest (P2)."""
    async with world.running() as house:
        await addressed(house, "one ", MORE)
        assert await overheard(house, "not yours", None, "ada") == Ignored()
        assert await overheard(house, "two ", MORE) == Accepted()
        assert await overheard(house, "three") == Accepted()
        assert await overheard(house, "four") == Ignored()
        assert world.model.asked() == ["user: Ben: one two three"]


async def test_the_pictures_of_an_album_follow_the_one_with_the_name(world: World) -> None:
    async with world.running() as house:
        await addressed(house, "look", ALBUM)
        assert await overheard(house, "here", ALBUM) == Accepted()
        assert await overheard(house, "and there", replace(ALBUM, group="h")) == Ignored()
        await house.advance(WINDOW_S)
        assert world.model.asked() == ["user: Ben: look\n\nhere"]


async def test_the_pictures_before_the_one_with_the_name_are_of_its_album(world: World) -> None:
    """As apps write the caption of several files below the last; those of strangers are kept nowhere."""
    async with world.running() as house:
        assert await overheard(house, "one", ALBUM) == Ignored()
        assert await overheard(house, "x", replace(ALBUM, group="h")) == Ignored()
        assert await overheard(house, "y", ALBUM, "ada") == Ignored()
        assert await overheard(house, "z", ALBUM, "mallory") == Ignored()
        assert not house.services.ingress.planner.reassembly.take_overheard(
            piece(house, "z", ALBUM, "mallory", room="room")
        )
        assert await overheard(house, "two", ALBUM) == Ignored()
        await addressed(house, "look", ALBUM)
        await addressed(house, "and here", ALBUM)
        assert await overheard(house, "four", ALBUM) == Accepted()
        await house.advance(WINDOW_S)
        assert world.model.asked() == ["user: Ben: one\n\ntwo\n\nlook\n\nand here\n\nfour"]


async def test_few_albums_are_remembered_for_a_mention(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reassembly, "MAX_OVERHEARD", 1)
    async with world.running() as house:
        await overheard(house, "one", ALBUM)
        await overheard(house, "x", replace(ALBUM, group="h"))
        await addressed(house, "look", ALBUM)
        await house.advance(WINDOW_S)
        assert world.model.asked() == ["user: Ben: look"]


async def test_a_piece_that_comes_too_late_is_talk(world: World) -> None:
    """The time is over, though the run is not swept yet."""
    async with world.told("/halt") as house:
        await addressed(house, "one ", MORE)
        await house.advance(WINDOW_S)
        assert await overheard(house, "two") == Ignored()
        assert await house.states("queued") == ["queued"]


async def test_a_taken_piece_is_known_when_it_comes_again(world: World) -> None:
    """While more may come; not afterwards (P1)."""
    async with world.running() as house:
        await addressed(house, "one ", MORE)
        again = replace(piece(house, "two ", MORE, "ben", room="room"), overheard=True)
        assert await world.platforms["chat"].say(again) == Accepted()
        assert await world.platforms["chat"].say(again) == Duplicate()
        await overheard(house, "three")
        assert await world.platforms["chat"].say(again) == Ignored()
        assert world.model.asked() == ["user: Ben: one two three"]


async def test_a_row_that_can_not_be_read_stops_no_start(world: World) -> None:
    """Its conversation is reported; the others go on (P2)."""
    async with world.told("/halt") as house:
        await house.say("hello")
    [row] = await world.store.select(Query(kind=RowKind.INBOX, state="queued"))
    damaged = Put(
        kind=row.kind,
        key=row.key,
        body=b"{}",
        conversation=row.conversation,
        state=row.state,
        place=row.place,
    )
    await world.store.write(damaged)
    async with world.told("/resume", channel="chat") as house:
        await house.say("hello", "ben")
        assert house.texts("ben") == ["ok"]


# --- the way of a message through the house -------------------------------------------------------


async def test_one_message_walks_down_through_the_rooms(world: World) -> None:
    """The first message of a conversation: 18 entries into files, none entered more than twice.

    `ingress`, `limiter`, `conversations` and `reassembly` are entered twice: each is a step, and is
    what that step's commit or lock hangs on.
    """
    async with world.running() as house:
        envelope = house.envelope(Said(text="hello"), "ben")
        with Trace() as trace:
            assert await house.services.ingress.admit(envelope) == Accepted()
        _, most = trace.most
        assert (len(trace.entered) <= 18, most, trace.returns) == (True, 2, 4), trace.entered


async def test_a_mention_that_an_edit_adds_to_an_album_is_read(world: World) -> None:
    """The album is admitted as it reads now, however long ago it was sent; S2-01."""
    async with world.running() as house:
        at = world.clock.now()
        first = replace(piece(house, "look", ALBUM, "ben", room="room"), sent_at=at, overheard=True)
        second = replace(
            piece(house, "the other", ALBUM, "ben", room="room"), sent_at=at, overheard=True
        )
        for envelope in (first, second):
            assert await world.platforms["chat"].say(envelope) == Ignored()
        await house.advance(60)
        anew = replace(first, body=Said(text="look, which is best?"), overheard=False)
        anew = replace(anew, sent_at=at + timedelta(seconds=60))
        await world.platforms["chat"].say(anew)
        await house.advance(WINDOW_S)
        assert world.model.asked() == ["user: Ben: look, which is best?\n\nthe other"]
