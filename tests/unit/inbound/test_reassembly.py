"""Messages that a client sent in pieces are one, and all others wait for nothing."""

import asyncio
import re
from datetime import timedelta

import pytest

from tests.fakes.house import House, World
from tests.fakes.scripted_model import asks_for, says
from zeroclaw.config.model import (
    AttachmentSettings,
    ChannelSettings,
    LimitsSettings,
    RuntimeSettings,
    WhileBusy,
)
from zeroclaw.conversation.inbox import Fragment
from zeroclaw.envelope import Admission, Attachment, Command, Continues, Envelope, ItemId, Said
from zeroclaw.inbound.fragments import CUT_WITHIN, MAX_FRAGMENTS
from zeroclaw.inbound.reassembly import AFTER_START_S
from zeroclaw.store import Commit, DurablePoint, Query, Row, RowKind
from zeroclaw.value import replace

WINDOW_S = 1.5
MORE = Continues(within_s=WINDOW_S)
ALBUM = Continues(within_s=WINDOW_S, group="g")


def configured(world: World, mode: WhileBusy) -> None:
    settings = ChannelSettings(allowed_users=("*",), while_busy=mode, collect_s=WINDOW_S)
    world.configure(channels={"chat": settings})


def piece(
    house: House,
    text: str,
    more: Continues | None = None,
    who: str = "ada",
    *,
    room: str = "",
    files: tuple[Attachment, ...] = (),
    quoted: tuple[Attachment, ...] = (),
) -> Envelope:
    """A piece that goes on as `more` says; the last one without."""
    envelope = house.envelope(Said(text=text, quoted=quoted), who, room=room)
    return replace(envelope, continues=more, attachments=files)


async def send(
    house: House,
    text: str,
    more: Continues | None = None,
    who: str = "ada",
    *,
    room: str = "",
    files: tuple[Attachment, ...] = (),
    quoted: tuple[Attachment, ...] = (),
) -> Admission:
    envelope = piece(house, text, more, who, room=room, files=files, quoted=quoted)
    answer = await house.world.platforms["chat"].say(envelope)
    await house.settle()
    return answer


async def test_a_text_in_pieces_is_one_message(world: World) -> None:
    """Put together as it was, answered once, as soon as the last piece is there (P1)."""
    async with world.running() as house:
        await send(house, "one ", MORE)
        await send(house, "tw", MORE)
        assert world.model.requests == []
        await send(house, "o")
        assert world.model.asked() == ["user: one two"]
        assert house.texts() == ["ok"]
        assert await house.states() == ["answered", "joined", "joined"]
        assert world.clock.sleeping()[:1] != (WINDOW_S,)


async def test_an_ordinary_message_waits_for_nothing(world: World) -> None:
    """Whoever writes meanwhile in another chat does not either (P2)."""
    async with world.running() as house:
        await send(house, "long", MORE)
        await house.say("hello", "ben")
        assert house.texts("ben") == ["ok"]
        assert house.texts() == []
        await house.advance(WINDOW_S)
        assert house.texts() == ["ok"]


async def test_what_has_no_rest_is_answered_when_the_time_is_over(world: World) -> None:
    """And what comes then is a message of its own."""
    async with world.running() as house:
        await send(house, "long", MORE)
        await house.advance(WINDOW_S)
        await send(house, "next")
        assert world.model.asked() == ["user: long", "assistant: ok", "user: next"]


async def test_each_piece_has_its_time(world: World) -> None:
    """A long text on a slow line is one text."""
    async with world.running() as house:
        for text in ("a", "b", "c"):
            await send(house, text, MORE)
            await house.advance(WINDOW_S - 0.1)
        assert world.model.requests == []
        await send(house, "d")
        assert world.model.asked() == ["user: abcd"]


async def test_an_album_has_the_bounds_of_one_message(world: World) -> None:
    """So many files, and so many bytes of all of them together."""
    world.configure(attachments=AttachmentSettings(max_per_message=2, max_message_bytes=1_000))
    names = [Attachment(reference=name, name=name, media_type="x/y") for name in ("a", "b", "c")]
    world.platforms["chat"].files.update({"a": b"x" * 600, "b": b"y" * 600, "c": b"z"})
    async with world.running() as house:
        for name in names:
            await send(house, "", ALBUM, files=(name,))
        await house.advance(WINDOW_S)
        content = world.model.requests[0].messages[-1].content
        assert "1. `a`: text, 600 bytes" in content
        assert "2. `b`: did not come" in content
        assert "1 more file not taken" in content


async def test_a_file_that_each_piece_of_a_text_answers_comes_once(world: World) -> None:
    """Apps make each piece of a long text a reply; a reply to another message brings another file."""
    file = Attachment(reference="a", name="a", media_type="x/y", size_bytes=1)
    other = replace(file, reference="b", name="b")
    world.platforms["chat"].files.update({"a": b"x", "b": b"yz"})
    async with world.running() as house:
        await send(house, "one ", MORE, quoted=(file,))
        await send(house, "two ", MORE, quoted=(replace(file, reference="a, asked anew"),))
        await send(house, "three", quoted=(other,))
        content = world.model.requests[0].messages[-1].content
        assert content.startswith("one two three\n\n[Files that came with this message")
        assert "1. `a`, with the message it replies to: text, 1 byte" in content
        assert "2. `b`, with the message it replies to: text, 2 bytes" in content
        assert "3. " not in content


async def test_files_of_ones_own_come_without_those_of_the_message_answered(world: World) -> None:
    file = Attachment(reference="a", name="a", media_type="x/y")
    world.platforms["chat"].files["a"] = b"x"
    async with world.running() as house:
        await send(house, "see", files=(file,), quoted=(replace(file, name="b"),))
        content = world.model.requests[0].messages[-1].content
        assert "1. `a`: text, 1 byte" in content
        assert "2. " not in content


async def test_another_member_of_the_group_joins_nothing(world: World) -> None:
    """Nor do they part what they stand between (P2)."""
    async with world.running() as house:
        await send(house, "one ", MORE, "ben", room="room")
        await send(house, "hello", None, "ada", room="room")
        await send(house, "two", None, "ben", room="room")
        texts = [request.messages[-1].content for request in world.model.requests]
        assert texts == ["Ben: one two", "Ada: hello"]


@pytest.mark.parametrize("command", ["/help", "/stop", "/new"])
async def test_a_command_in_between_ends_a_text(world: World, command: str) -> None:
    """It is obeyed, and what follows is another message (P1)."""
    async with world.running() as house:
        await send(house, "one ", MORE)
        await house.say(command)
        await send(house, "two")
        await house.advance(WINDOW_S)
        texts = [request.messages[-1].content for request in world.model.requests]
        assert texts[-1] == "two"
        assert texts[0] in ("one ", "two")
        assert set(await house.states()) <= {"answered", "stopped"}


async def test_a_press_in_between_ends_a_text(world: World) -> None:
    """It is answered at once, and what follows is another message (P5)."""
    async with world.told("poke it", asks_for(("poke", '{"a": 1}'))) as house:
        await send(house, "one ", MORE)
        await house.press("deny")
        await send(house, "two")
        await house.advance(WINDOW_S)
        texts = [line for line in world.model.asked() if line.startswith("user:")]
        assert texts == ["user: poke it", "user: one ", "user: two"]


async def test_a_file_and_forwarded_words_are_no_rest_of_a_text(world: World) -> None:
    async with world.running() as house:
        await send(house, "one ", MORE)
        forwarded = replace(piece(house, "theirs"), alone=True)
        await world.platforms["chat"].say(forwarded)
        await house.settle()
        assert world.model.asked()[-1] == "user: theirs"
        assert await house.states() == ["answered", "answered"]


async def test_a_kill_after_the_last_piece_that_came_delays_no_answer_for_ever(
    world: World,
) -> None:
    """Nothing more comes, and the turn begins a moment after the start (P1)."""
    async with world.running() as house:
        await send(house, "one", MORE)
    async with world.running() as house:
        assert world.model.requests == []
        await house.advance(AFTER_START_S)
        assert house.texts() == ["ok"]


async def test_a_message_after_a_text_ends_it_over_a_restart_too(world: World) -> None:
    async with world.told("/halt") as house:
        await send(house, "one ", MORE)
        await house.advance(WINDOW_S)
        await house.say("two")
    async with world.running() as house:
        await send(house, "three")
        await house.say("/resume")
        texts = [line for line in world.model.asked() if line.startswith("user:")]
        assert texts == ["user: one ", "user: two", "user: three"]


@pytest.mark.parametrize("hours", [-3, 3])
async def test_a_clock_that_is_set_delays_no_answer_and_parts_nothing(
    world: World, hours: int
) -> None:
    """The wait is measured on the monotonic clock (P2)."""
    async with world.running() as house:
        await send(house, "one ", MORE)
        world.clock.leap(timedelta(hours=hours))
        assert world.model.requests == []
        await send(house, "two", MORE)
        await house.advance(WINDOW_S)
        assert len(world.model.requests) == 1
        # The ids here go back with the clock, which those of a daemon do not.
        assert {"one ", "two"} <= set(re.findall("one |two", world.model.asked()[0]))


async def test_what_piled_up_is_not_taken_for_the_rest(world: World) -> None:
    """It was written much later, though it comes at the same moment."""
    async with world.running() as house:
        now = world.clock.now()
        for text, more, seconds in (("one", MORE, -300), ("two", None, -200)):
            late = replace(piece(house, text, more), sent_at=now + timedelta(seconds=seconds))
            await world.platforms["chat"].say(late)
        await house.settle()
        assert world.model.asked() == ["user: one", "assistant: ok", "user: two"]


async def test_limits_count_one_message(world: World) -> None:
    """However many pieces it came in; the next one is over."""
    world.configure(limits=LimitsSettings(person_per_minute=1, person_burst=1, daily_messages=1))
    async with world.running() as house:
        for text in ("one ", "two ", "three "):
            await send(house, text, MORE, "ben")
        await send(house, "four", None, "ben")
        assert world.model.asked() == ["user: one two three four"]
        await send(house, "five", None, "ben")
        assert await house.states() == ["answered", *["joined"] * 3, "failed"]


async def test_a_full_backlog_takes_the_rest_of_what_it_took(world: World) -> None:
    """Half a message has no use."""
    world.configure(runtime=RuntimeSettings(backlog=1))
    async with world.running() as house:
        await send(house, "one ", MORE)
        await send(house, "two")
        assert world.model.asked() == ["user: one two"]


async def test_a_piece_edited_before_the_turn_is_changed_in_its_place(world: World) -> None:
    """And what is withdrawn is left out; the rest still joins."""
    async with world.running() as house:
        await send(house, "one ", MORE)
        await send(house, "tow ", MORE)
        await house.edit("p2", "two ")
        await send(house, "three ", MORE)
        await house.withdraw("p1")
        await send(house, "four")
        assert world.model.asked() == ["user: two three four"]
        assert sorted(await house.states()) == ["answered", "joined", "joined", "superseded"]


async def test_the_rest_of_a_withdrawn_text_is_a_message(world: World) -> None:
    async with world.running() as house:
        await send(house, "one ", MORE)
        await house.withdraw("p1")
        await send(house, "two")
        assert world.model.asked() == ["user: two"]


async def test_a_message_has_so_many_pieces_and_no_more(world: World) -> None:
    """Then it is answered, and what follows is the next one."""
    async with world.running() as house:
        for _ in range(MAX_FRAGMENTS + 1):
            await send(house, "x", MORE)
        assert world.model.asked() == [f"user: {'x' * MAX_FRAGMENTS}"]
        await house.advance(WINDOW_S)
        assert world.model.asked()[-1] == "user: x"


async def test_the_last_piece_may_come_while_the_others_are_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is whole by then was not whole as it was read (P1)."""
    async with world.running() as house:
        read, rest = world.store.select, [piece(house, "three")]

        async def overtaken(query: Query) -> tuple[Row, ...]:
            rows = await read(query)
            if rest and query.kind is RowKind.INBOX and len(rows) == 2:
                await house.services.ingress.admit(rest.pop())
            return rows

        await send(house, "one ", MORE)
        monkeypatch.setattr(house.services.foundation.store, "select", overtaken)
        await send(house, "two ", MORE)
        assert world.model.asked() == ["user: one two three"]


async def test_a_piece_is_waited_for_before_it_is_committed(world: World) -> None:
    """A reader may see its row first; other messages wait for nothing (P1, P2)."""
    async with world.running() as house:
        pieces, first = house.services.reassembly, piece(house, "one ", MORE)
        more = Continues(within_s=WINDOW_S, group="g", room=3, lead="> ")
        placed = pieces.as_fragment(replace(first, continues=more), ItemId("run"))
        assert placed == Fragment(run=ItemId("run"), group="g", more_s=WINDOW_S, room=3, lead="> ")
        assert pieces.as_fragment(piece(house, "whole"), ItemId("2")) is None
        assert (pieces.remaining_s("run"), pieces.remaining_s("another")) == (WINDOW_S, 0)
        pieces.committed(first, None)
        assert pieces.remaining_s("run") == 0


async def test_the_same_piece_twice_is_taken_once(world: World) -> None:
    """Each keeps its own key (P1)."""
    async with world.running() as house:
        first, last = piece(house, "one ", MORE), piece(house, "two")
        for envelope in (first, first, last, last):
            await world.platforms["chat"].say(envelope)
        await house.settle()
        assert world.model.asked() == ["user: one two"]


async def test_a_message_that_changes_as_its_rest_comes_is_looked_at_again(world: World) -> None:
    """Nothing is joined to what is not as it was read (P1)."""
    clashes: list[Commit] = []

    def clash(commit: Commit) -> None:
        if commit.point is DurablePoint.ADMITTED and not clashes:
            clashes.append(commit)
            world.store.touch(RowKind.INBOX)

    async with world.running() as house:
        await send(house, "one ", MORE)
        world.store.before = clash
        await send(house, "two")
        assert len(clashes) == 1
        assert world.model.asked() == ["user: one two"]


# --- what becomes of it while an answer is being written -----------------------------------------


async def test_collected_messages_hold_whole_ones(world: World) -> None:
    """Pieces are put together, messages stand apart."""
    configured(world, "collect")
    async with world.running() as house:
        await send(house, "hello")
        await send(house, "one ", MORE)
        await send(house, "two")
        await house.advance(WINDOW_S)
        assert world.model.asked() == ["user: hello\n\none two"]


async def test_a_running_turn_is_steered_by_whole_messages_only(world: World) -> None:
    """What is not whole yet waits for the next batch, or for a turn of its own (P1)."""
    configured(world, "steer")
    look = asks_for(("look", "{}"))
    world.model.will(look, look)
    async with world.running() as house:
        world.look.hold = asyncio.Event()
        await house.say("first", "ben")
        await send(house, "one ", MORE, "ben")
        held, world.look.hold = world.look.hold, asyncio.Event()
        held.set()
        await house.settle()
        assert [line for line in world.model.asked() if "one" in line] == []
        await send(house, "two", None, "ben")
        world.look.hold.set()
        await house.settle()
        assert world.model.asked()[-1] == "user: one two"
        assert DurablePoint.STEERED in world.store.points()
        assert await house.states() == ["answered", "joined", "joined"]


async def test_a_message_interrupts_once(world: World) -> None:
    """Its pieces do not end the turn that it begins itself."""
    configured(world, "interrupt")
    async with world.told("first", (*says("half ")[:1], asyncio.Event())) as house:
        await send(house, "one ", MORE)
        await send(house, "two")
        assert house.texts() == ["half \n\n_Interrupted by a newer message of Ada._", "ok"]
        assert world.model.asked()[-1] == "user: one two"


# --- a slash where a pasted text was cut commands nothing -----------------------------------------


def command(house: House, written: str) -> Envelope:
    """What reads like a command, as a channel tells it whose clients cut long texts."""
    name, _, rest = written.removeprefix("/").partition(" ")
    event = house.envelope(Command(name=name, rest=rest))
    return replace(event, verbatim=written, sent_at=house.world.clock.now())


async def hand_over(house: House, envelope: Envelope) -> None:
    await house.world.platforms["chat"].say(envelope)
    await house.settle()


async def test_a_slash_where_a_text_was_cut_commands_nothing(world: World) -> None:
    """Else the author of a text that an operator pastes would command in their name (P3)."""
    async with world.running() as house:
        more = replace(MORE, room=4)
        await hand_over(house, replace(piece(house, "read this:", more), sent_at=world.clock.now()))
        await hand_over(house, replace(command(house, "/new and"), continues=more))
        await hand_over(house, command(house, "/help"))
        assert world.model.asked() == ["user: read this: /new and /help"]
        assert house.texts() == ["ok"]


async def test_what_a_person_types_after_a_long_text_is_obeyed(world: World) -> None:
    """The platform says when it was written, though all of it comes at the same moment."""
    async with world.running() as house:
        before = world.clock.now() - CUT_WITHIN - timedelta(seconds=1)
        await hand_over(house, replace(piece(house, "one", MORE), sent_at=before))
        await hand_over(house, command(house, "/new"))
        await hand_over(house, piece(house, "two"))
        assert [request.messages[-1].content for request in world.model.requests] == ["one", "two"]


async def test_a_stop_is_obeyed_wherever_it_stands(world: World) -> None:
    """It only ends something, and no text waits for it."""
    async with world.running() as house:
        await hand_over(house, replace(piece(house, "one", MORE), sent_at=world.clock.now()))
        await hand_over(house, command(house, "/stop"))
        assert "one /stop" not in str(world.model.requests)
        assert "queued" not in await house.states()
