"""A session against the real terminal channel over a real socket: said, shown, pressed, resumed."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from channels.terminal.adapter import TerminalChannel
from tests.contract.terminal_harness import OPERATOR, control_socket, terminal_context
from tests.fakes.counting_ids import CountingIds
from tests.fakes.manual_clock import EPOCH
from zeroclaw import (
    Accepted,
    Admission,
    ApprovalId,
    Card,
    CardCall,
    ChannelUnavailable,
    Command,
    Ending,
    Envelope,
    Outcome,
    Outgoing,
    Pressed,
    Said,
)
from zeroclaw.cli.chat.connection import STREAM, Link
from zeroclaw.cli.chat.keyboard import Ended, Event, Interrupted, Resized, Typed
from zeroclaw.cli.chat.screen import Cards, Ink, View
from zeroclaw.cli.chat.session import Session, Unanswered
from zeroclaw.errors import NeedsOperator, ZeroclawError
from zeroclaw.host.answers import Status
from zeroclaw.host.clock import SystemClock
from zeroclaw.host.control import Unreachable
from zeroclaw.mount import LineStream
from zeroclaw.value import replace

SCREEN = Ink(moves=True, colours=False)
PIPE = Ink(moves=False, colours=False)
CARD = Card(
    key="c1",
    asked_by="operator",
    calls=(
        CardCall(
            approval=ApprovalId("a1"),
            number=1,
            tool="shell",
            summary="run `ls`",
            arguments="{}",
            why="it asks",
            hash8="0a1b2c3d",
        ),
    ),
    deadline_at=EPOCH + timedelta(minutes=15),
)


class QuickClock(SystemClock):
    """The real one, except that nobody waits long."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.001))


class Keyboard:
    """What a person types, when the test says so."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event] = asyncio.Queue(100)

    def press(self, *events: Event | str) -> None:
        for event in events:
            self._queue.put_nowait(Typed(text=event) if isinstance(event, str) else event)

    async def events(self) -> AsyncGenerator[Event, None]:
        while True:
            event = await self._queue.get()
            yield event
            if event == Ended():
                return


class Bot:
    """The daemon's side: it records what comes and answers as the test says."""

    def __init__(self) -> None:
        self.bodies: list[object] = []
        self.came: asyncio.Queue[object] = asyncio.Queue(100)
        self.channel: TerminalChannel
        self.refusals = 0
        self.echoes = False
        self.busy = 0
        self.is_gone = False

    async def admit(self, envelope: Envelope) -> Admission:
        if self.refusals:
            self.refusals -= 1
            message = "the disk is full"
            raise ChannelUnavailable(message)
        self.bodies.append(envelope.body)
        self.came.put_nowait(envelope.body)
        if self.echoes and isinstance(envelope.body, Said):
            await self.answer(f"you said {envelope.body.text}", f"k{len(self.bodies)}")
        return Accepted()

    async def answer(self, text: str, key: str, *, draft: bool = False) -> None:
        await self.channel.send(
            OPERATOR, Outgoing(rendered=self.channel.render(text), key=key, draft=draft)
        )

    async def status(self) -> Status:
        await asyncio.sleep(0)
        if self.is_gone:
            message = "no daemon answers"
            raise Unreachable(message)
        return Status(busy=self.busy)


@asynccontextmanager
async def bot_in(place: Path, bot: Bot) -> AsyncGenerator[Bot]:
    ready = asyncio.Event()
    async with control_socket(place) as control, asyncio.TaskGroup() as group:
        channel = TerminalChannel(terminal_context(control))
        assert isinstance(channel, TerminalChannel)
        bot.channel = channel
        task = group.create_task(channel.receive(bot.admit, ready.set))
        await ready.wait()
        try:
            yield bot
        finally:
            task.cancel()


class Sitting:
    """A session and what it wrote."""

    def __init__(self, place: Path, bot: Bot, ink: Ink, *, approves: bool = False) -> None:
        self.written = ""
        self._grew = asyncio.Event()
        clock, ids = QuickClock(), CountingIds()
        self.keyboard = Keyboard()
        self.link = Link(place, clock=clock, token=ids.ulid)
        self.session = Session(
            link=self.link,
            view=View(cards=Cards(ink=ink), history=0),
            write=self._write,
            status=bot.status,
            clock=clock,
            approves=approves,
        )

    def _write(self, text: str) -> None:
        self.written += text
        self._grew.set()

    async def run(self, *first: str) -> None:
        await self.session.run(self.keyboard.events(), first)

    async def sees(self, text: str) -> None:
        while text not in self.written:
            self._grew.clear()
            await self._grew.wait()


async def test_what_is_typed_arrives_and_what_comes_is_shown(tmp_path: Path) -> None:
    bot = Bot()
    async with bot_in(tmp_path, bot), asyncio.TaskGroup() as group:
        sitting = Sitting(tmp_path, bot, SCREEN)
        group.create_task(sitting.run())
        await sitting.sees("» ")
        sitting.keyboard.press("hello", "/stop now", "")
        assert [await bot.came.get(), await bot.came.get()] == [
            Said(text="hello"),
            Command(name="stop", rest="now"),
        ]
        await bot.answer("hi", "k1", draft=True)
        await bot.answer("hi there", "k1")
        await sitting.sees("● hi there\n")
        sitting.keyboard.press(Ended())


async def test_a_letter_answers_the_one_open_call(tmp_path: Path) -> None:
    """And is a message like any other when none is open, or the choice is not offered (P5)."""
    bot = Bot()
    async with bot_in(tmp_path, bot), asyncio.TaskGroup() as group:
        sitting = Sitting(tmp_path, bot, SCREEN)
        group.create_task(sitting.run())
        await sitting.sees("» ")
        ref = await bot.channel.ask(OPERATOR, CARD)
        await sitting.sees("a = Approve once")
        sitting.keyboard.press("T")
        assert await bot.came.get() == Pressed(
            approval=ApprovalId("a1"), choice="for_a_time", card=ref
        )
        ending = Ending(approval=ApprovalId("a1"), how="approved", by="operator", at=EPOCH)
        await bot.channel.settle(ref, Outcome(card=CARD, endings=(ending,)))
        await sitting.sees(f"{SCREEN.badge('✅ 1')}  shell approved by operator")
        sitting.keyboard.press("a", Ended())
        assert await bot.came.get() == Said(text="a")


async def test_a_letter_that_may_have_been_typed_for_another_card_answers_none(
    tmp_path: Path,
) -> None:
    """One ended and the next came before Enter was pressed; once more, and it is meant (P5)."""
    bot = Bot()
    call = replace(CARD.calls[0], approval=ApprovalId("a2"), summary="run `rm`")
    other = replace(CARD, key="c2", calls=(call,))
    async with bot_in(tmp_path, bot), asyncio.TaskGroup() as group:
        sitting = Sitting(tmp_path, bot, SCREEN)
        group.create_task(sitting.run())
        await sitting.sees("» ")
        first = await bot.channel.ask(OPERATOR, CARD)
        await sitting.sees("a = Approve once")
        ending = Ending(approval=ApprovalId("a1"), how="expired", by="", at=EPOCH)
        await bot.channel.settle(first, Outcome(card=CARD, endings=(ending,)))
        second = await bot.channel.ask(OPERATOR, other)
        await sitting.sees("run `rm`")
        sitting.keyboard.press("a")
        await sitting.sees("another call came up; type it again")
        sitting.keyboard.press("d", Ended())
        assert await bot.came.get() == Pressed(
            approval=ApprovalId("a2"), choice="deny", card=second
        )


async def test_a_letter_within_a_pasted_text_answers_no_call(tmp_path: Path) -> None:
    """It is said, as the rest of the text is; who pasted it may not have read it (P5)."""
    bot = Bot()
    async with bot_in(tmp_path, bot), asyncio.TaskGroup() as group:
        sitting = Sitting(tmp_path, bot, SCREEN)
        group.create_task(sitting.run())
        await sitting.sees("» ")
        ref = await bot.channel.ask(OPERATOR, CARD)
        await sitting.sees("a = Approve once")
        sitting.keyboard.press(Typed(text="a", is_pasted=True), "", "a", Ended())
        assert await bot.came.get() == Said(text="a")
        assert await bot.came.get() == Pressed(approval=ApprovalId("a1"), choice="once", card=ref)


@pytest.mark.parametrize(
    ("last", "text"),
    [("three", "one\n\n  two\nthree"), ("", "one\n\n  two"), ("a", "one\n\n  two\na")],
)
async def test_a_pasted_text_is_one_message_that_enter_sends(
    last: str, text: str, tmp_path: Path
) -> None:
    """The terminal keeps a last line without a line end to itself until Enter is pressed."""
    bot = Bot()
    async with bot_in(tmp_path, bot), asyncio.TaskGroup() as group:
        sitting = Sitting(tmp_path, bot, SCREEN)
        group.create_task(sitting.run())
        await sitting.sees("» ")
        sitting.keyboard.press(*(Typed(text=one, is_pasted=True) for one in ("one", "", "  two")))
        await sitting.sees("Enter sends what you pasted")
        assert bot.bodies == []
        sitting.keyboard.press(last, Ended())
        assert await bot.came.get() == Said(text=text)
    assert sitting.written.count("Enter sends what you pasted") == 1


async def test_ctrl_c_drops_a_pasted_text(tmp_path: Path) -> None:
    """It does not count as the first of the two that leave."""
    bot = Bot()
    async with bot_in(tmp_path, bot), asyncio.TaskGroup() as group:
        sitting = Sitting(tmp_path, bot, SCREEN)
        group.create_task(sitting.run())
        await sitting.sees("» ")
        sitting.keyboard.press(
            Typed(text="one", is_pasted=True), Interrupted(), Interrupted(), "two"
        )
        assert await bot.came.get() == Said(text="two")
        sitting.keyboard.press(Ended())


async def test_a_pasted_text_is_not_lost_by_leaving(tmp_path: Path) -> None:
    bot = Bot()
    async with bot_in(tmp_path, bot), asyncio.TaskGroup() as group:
        sitting = Sitting(tmp_path, bot, SCREEN)
        group.create_task(sitting.run())
        await sitting.sees("» ")
        sitting.keyboard.press(Typed(text="one", is_pasted=True), Ended())
        assert await bot.came.get() == Said(text="one")


async def test_in_a_window_of_another_size_nothing_above_an_answer_is_erased(
    tmp_path: Path,
) -> None:
    """What took three rows may take one, and two of others stand above it; it goes on below."""
    bot = Bot()
    async with bot_in(tmp_path, bot), asyncio.TaskGroup() as group:
        sitting = Sitting(tmp_path, bot, SCREEN)
        group.create_task(sitting.run())
        await sitting.sees("» ")
        await bot.answer("x" * 200, "k1", draft=True)
        await sitting.sees("xxx")
        sitting.keyboard.press(Resized(columns=300, rows=24))
        await sitting.sees("xxx\n")
        await bot.answer("y" * 200, "k1", draft=True)
        await sitting.sees("● yyy")
        assert "\x1b[2A" not in sitting.written
        await bot.answer("z" * 600, "k1", draft=True)
        await sitting.sees("zzz")
        await bot.answer("end", "k1")
        await sitting.sees("end\n")
        assert "\x1b[2A\x1b[J● end" in sitting.written
        sitting.keyboard.press(Ended())


async def test_one_interrupt_stops_the_answer_and_two_leave(tmp_path: Path) -> None:
    bot = Bot()
    async with bot_in(tmp_path, bot), asyncio.TaskGroup() as group:
        sitting = Sitting(tmp_path, bot, SCREEN)
        running = group.create_task(sitting.run())
        await sitting.sees("» ")
        sitting.keyboard.press(Interrupted())
        await sitting.sees("Ctrl-C again leaves")
        sitting.keyboard.press("go")
        assert await bot.came.get() == Said(text="go")
        await bot.answer("I wri", "k1", draft=True)
        await sitting.sees("I wri")
        sitting.keyboard.press(Interrupted())
        assert await bot.came.get() == Command(name="stop")
        sitting.keyboard.press(Interrupted())
        await running


async def test_a_pipe_says_one_line_after_the_other_and_waits_for_the_last(tmp_path: Path) -> None:
    """No prompt, no colour, each answer once."""
    bot = Bot()
    bot.echoes = True
    async with bot_in(tmp_path, bot):
        sitting = Sitting(tmp_path, bot, PIPE)
        sitting.keyboard.press("one", "two", Ended())
        await sitting.run()
    assert sitting.written == "● you said one\n● you said two\n"


async def test_a_pipe_answers_a_card_with_its_next_line(tmp_path: Path) -> None:
    """A card that waits is what the next line is for."""
    bot = Bot()
    bot.busy = 1
    async with bot_in(tmp_path, bot), asyncio.TaskGroup() as group:
        sitting = Sitting(tmp_path, bot, PIPE)
        running = group.create_task(sitting.run())
        sitting.keyboard.press("list", "d", Ended())
        assert await bot.came.get() == Said(text="list")
        ref = await bot.channel.ask(OPERATOR, CARD)
        assert await bot.came.get() == Pressed(approval=ApprovalId("a1"), choice="deny", card=ref)
        ending = Ending(approval=ApprovalId("a1"), how="denied", by="operator", at=EPOCH)
        await bot.channel.settle(ref, Outcome(card=CARD, endings=(ending,)))
        await bot.answer("then not", "k1")
        bot.busy = 0
        await running
    assert sitting.written.endswith("❌ 1  shell denied by operator\n● then not\n")


async def test_a_command_without_an_answer_does_not_hold_up_a_pipe(tmp_path: Path) -> None:
    """A daemon with nothing to do has nothing more to say."""
    bot = Bot()
    async with bot_in(tmp_path, bot):
        sitting = Sitting(tmp_path, bot, PIPE)
        sitting.keyboard.press("/stop", Ended())
        await sitting.run()
    assert bot.bodies == [Command(name="stop")]


async def test_a_daemon_that_others_keep_busy_does_not_hold_up_a_pipe(tmp_path: Path) -> None:
    bot = Bot()
    bot.echoes, bot.busy = True, 3
    async with bot_in(tmp_path, bot):
        sitting = Sitting(tmp_path, bot, PIPE)
        sitting.keyboard.press("one", Ended())
        await sitting.run()
    assert sitting.written == "● you said one\n"


async def test_a_script_that_ends_with_a_card_open_ends(tmp_path: Path) -> None:
    """Nobody can answer it from here, and it may wait for a quarter of an hour (P10)."""
    bot = Bot()
    bot.busy = 1
    async with bot_in(tmp_path, bot), asyncio.TaskGroup() as group:
        sitting = Sitting(tmp_path, bot, PIPE)
        sitting.keyboard.press("list", Ended())
        running = group.create_task(ending_of(sitting))
        assert await bot.came.get() == Said(text="list")
        await bot.channel.ask(OPERATOR, CARD)
        assert isinstance(await running, Unanswered)


async def test_a_script_does_not_wait_for_a_daemon_that_stays_away(tmp_path: Path) -> None:
    """What was said and not stored is not waited for either (P10)."""
    bot = Bot()
    bot.echoes = True
    async with asyncio.TaskGroup() as group:
        async with bot_in(tmp_path, bot):
            sitting = Sitting(tmp_path, bot, PIPE)
            running = group.create_task(ending_of(sitting))
            sitting.keyboard.press("one")
            await sitting.sees("you said one\n")
        bot.is_gone = True
        sitting.keyboard.press("two", Ended())
        assert isinstance(await running, Unreachable)


async def ending_of(sitting: Sitting) -> ZeroclawError | None:
    try:
        await sitting.run()
    except ZeroclawError as error:
        return error
    return None


async def test_the_demo_approves_by_itself(tmp_path: Path) -> None:
    """Once for each call, and it ends with the answer."""
    bot = Bot()
    bot.busy = 1
    async with bot_in(tmp_path, bot), asyncio.TaskGroup() as group:
        sitting = Sitting(tmp_path, bot, PIPE, approves=True)
        running = group.create_task(sitting.run("a haiku"))
        assert await bot.came.get() == Said(text="a haiku")
        ref = await bot.channel.ask(OPERATOR, CARD)
        assert await bot.came.get() == Pressed(approval=ApprovalId("a1"), choice="once", card=ref)
        ending = Ending(approval=ApprovalId("a1"), how="approved", by="operator", at=EPOCH)
        await bot.channel.settle(ref, Outcome(card=CARD, endings=(ending,)))
        await bot.answer("done", "k1")
        bot.busy = 0
        await running
    assert sitting.written.endswith("done\n")


async def test_after_a_restart_of_the_daemon_nothing_typed_is_lost(tmp_path: Path) -> None:
    """P1: what was not known to be stored is written again, under its own id."""
    bot, again = Bot(), Bot()
    async with asyncio.TaskGroup() as group:
        async with bot_in(tmp_path, bot):
            sitting = Sitting(tmp_path, bot, SCREEN)
            running = group.create_task(sitting.run())
            await sitting.sees("» ")
        await sitting.sees("the daemon is gone")
        sitting.keyboard.press("are you there?")
        async with bot_in(tmp_path, again):
            assert await again.came.get() == Said(text="are you there?")
            await again.answer("yes", "k1")
            await sitting.sees("● yes\n")
            sitting.keyboard.press(Ended())
            await running


async def test_a_daemon_that_is_not_up_yet_is_waited_for(tmp_path: Path) -> None:
    """After a restart its socket answers before the terminal channel does; that ends no session."""
    bot, again = Bot(), Bot()
    refused = asyncio.Event()

    async def not_yet(lines: LineStream) -> None:
        refused.set()
        await lines.send({"error": "the running daemon does not know this; is it older?"})

    async with asyncio.TaskGroup() as group:
        async with bot_in(tmp_path, bot):
            sitting = Sitting(tmp_path, bot, SCREEN)
            running = group.create_task(sitting.run())
            await sitting.sees("» ")
        async with control_socket(tmp_path) as control:
            control.stream(STREAM, not_yet)
            sitting.keyboard.press("are you there?")
            await refused.wait()
        async with bot_in(tmp_path, again):
            assert await again.came.get() == Said(text="are you there?")
            sitting.keyboard.press(Ended())
            await running


async def test_what_could_not_be_stored_is_written_again(tmp_path: Path) -> None:
    """A full disk that is mended costs nobody a message."""
    bot = Bot()
    bot.refusals = 2
    async with bot_in(tmp_path, bot), asyncio.TaskGroup() as group:
        sitting = Sitting(tmp_path, bot, SCREEN)
        group.create_task(sitting.run())
        sitting.keyboard.press("hello")
        assert await bot.came.get() == Said(text="hello")
        await sitting.sees("it is tried again")
        sitting.keyboard.press(Ended())
    assert sitting.written.count("it is tried again") == 2


async def test_without_a_daemon_or_a_terminal_it_says_so(tmp_path: Path) -> None:
    """P10."""
    bot = Bot()
    with pytest.raises(Unreachable):
        await Sitting(tmp_path, bot, PIPE).run()
    async with control_socket(tmp_path):
        with pytest.raises(NeedsOperator, match=r"set `channels\.terminal\.enabled` to true"):
            await Sitting(tmp_path, bot, PIPE).run()


async def test_what_finds_no_connection_waits_for_the_next_one(tmp_path: Path) -> None:
    """It is kept; it is not forgotten."""
    link = Link(tmp_path, clock=QuickClock(), token=CountingIds().ulid)
    for number in range(5):
        link.say(str(number))
    assert [line["text"] for line in link.pending.values()] == ["0", "1", "2", "3", "4"]
