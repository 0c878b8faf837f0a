"""A session against the real terminal channel over a real socket: messages, presses, restarts."""

import asyncio
import io
import os
import signal
import weakref
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from channels.terminal.adapter import TerminalChannel
from tests.contract.channel_words import CARD as TWO_CALLS
from tests.contract.channel_words import FIRST, call
from tests.contract.terminal_harness import OPERATOR, control_socket, terminal_context
from tests.fakes.counting_ids import CountingIds
from tests.fakes.emulated_terminal import EmulatedTerminal, emulated_terminal
from tests.fakes.manual_clock import EPOCH
from zeroclaw import (
    Accepted,
    Address,
    Admission,
    ApprovalId,
    Card,
    ChannelUnavailable,
    CheckedReceipt,
    Command,
    Ending,
    Envelope,
    Outcome,
    Outgoing,
    Pressed,
    Said,
    TranscriptItem,
)
from zeroclaw.cli.chat import talk
from zeroclaw.cli.chat.connection import STREAM, Link
from zeroclaw.cli.chat.pipe import Pipe
from zeroclaw.cli.chat.screen import View
from zeroclaw.cli.chat.session import Session, Unanswered
from zeroclaw.cli.chat.terminal import Terminal
from zeroclaw.errors import NeedsOperator, ZeroclawError
from zeroclaw.host.answers import Status
from zeroclaw.host.clock import SystemClock
from zeroclaw.host.control import DaemonUnreachable
from zeroclaw.mount import LineStream
from zeroclaw.value import replace

CTRL_C, CTRL_D, ENTER, UP = "\x03", "\x04", "\r", "\x1b[A"
CARD = replace(TWO_CALLS, calls=(call(1),))


class QuickClock(SystemClock):
    """The real clock, with short sleeps."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.001))


class Bot:
    """The daemon's side: it records messages and answers as the test sets it up."""

    def __init__(self) -> None:
        self.bodies: list[object] = []
        self.came: asyncio.Queue[object] = asyncio.Queue(100)
        self.channel: TerminalChannel
        self.outbox: asyncio.TaskGroup
        self.refusals = 0
        self.echoes = False
        self.busy = 0
        self.is_gone = False
        self.earlier: tuple[TranscriptItem, ...] = ()

    async def transcript(self, _address: Address, _after: str) -> tuple[TranscriptItem, ...]:
        return self.earlier

    async def admit(self, envelope: Envelope) -> Admission:
        if self.refusals:
            self.refusals -= 1
            raise ChannelUnavailable("the disk is full")
        self.bodies.append(envelope.body)
        self.came.put_nowait(envelope.body)
        if self.echoes and isinstance(envelope.body, Said):
            answered = self.answer(f"you said {envelope.body.text}", f"k{len(self.bodies)}")
            self.outbox.create_task(answered)
        return Accepted()

    async def answer(self, text: str, key: str, *, draft: bool = False) -> None:
        await self.channel.send(
            OPERATOR, Outgoing(rendered=self.channel.render(text), key=key, draft=draft)
        )

    async def status(self) -> Status:
        await asyncio.sleep(0)
        if self.is_gone:
            raise DaemonUnreachable("no daemon answers")
        return Status(busy=self.busy)


@asynccontextmanager
async def bot_in(place: Path, bot: Bot) -> AsyncGenerator[Bot]:
    ready = asyncio.Event()
    async with control_socket(place) as control, asyncio.TaskGroup() as group:
        channel = TerminalChannel(replace(terminal_context(control), transcript=bot.transcript))
        assert isinstance(channel, TerminalChannel)
        bot.channel, bot.outbox = channel, group
        task = group.create_task(channel.receive(bot.admit, ready.set))
        await ready.wait()
        try:
            yield bot
        finally:
            task.cancel()


class Sitting:
    """A session at a terminal, or of a script."""

    def __init__(
        self, place: Path, bot: Bot, at: EmulatedTerminal | None = None, *, approves: bool = False
    ) -> None:
        self._output = io.StringIO()
        view = View(is_terminal=at is not None, history=0)
        clock = QuickClock()
        self.session = Session(
            link=Link(place, clock=clock, token=CountingIds().ulid),
            view=view,
            screen=self._pipe()
            if at is None
            else Terminal(view, source=at.keyboard, output=at.output()),
            status=bot.status,
            clock=clock,
            approves=approves,
        )

    @property
    def written(self) -> str:
        return self._output.getvalue()

    def _pipe(self) -> Pipe:
        source, self._into = os.pipe()
        weakref.finalize(self, os.close, source)
        self._end = weakref.finalize(self, os.close, self._into)
        return Pipe(source, self._output)

    def script(self, *lines: str | None) -> None:
        """Write lines; None ends the script."""
        for line in lines:
            if line is None:
                self._end()
            else:
                os.write(self._into, f"{line}\n".encode())

    async def run(self, *first: str) -> None:
        await self.session.run(first)


@asynccontextmanager
async def chat(
    place: Path, bot: Bot, *, columns: int = 80, rows: int = 24
) -> AsyncGenerator[EmulatedTerminal]:
    """A person at a terminal, who leaves at the end."""
    with emulated_terminal(columns=columns, rows=rows) as terminal:
        async with asyncio.TaskGroup() as group:
            group.create_task(Sitting(place, bot, terminal).run())
            await terminal.sees("»")
            yield terminal
            terminal.press(CTRL_D)


@asynccontextmanager
async def at_terminal(
    place: Path, *, columns: int = 80, rows: int = 24
) -> AsyncGenerator[tuple[Bot, EmulatedTerminal]]:
    """A bot, and a person at a terminal."""
    bot = Bot()
    async with bot_in(place, bot), chat(place, bot, columns=columns, rows=rows) as terminal:
        yield bot, terminal


def ended(outcome: str, card: Card = CARD) -> Outcome:
    approval, by = card.calls[0].approval, "" if outcome == "expired" else "operator"
    return Outcome(
        card=card,
        endings=(Ending(approval=approval, how=outcome, by=by, at=EPOCH),),  # pyright: ignore[reportArgumentType]
    )


async def test_a_typed_message_arrives_and_its_answer_is_shown(tmp_path: Path) -> None:
    async with at_terminal(tmp_path) as (bot, terminal):
        terminal.press(f"hello{ENTER}")
        assert await bot.came.get() == Said(text="hello")
        terminal.press(f"/stop now{ENTER}")
        assert await bot.came.get() == Command(name="stop", rest="now")
        await bot.answer("hi", "k1", draft=True)
        await terminal.sees("● hi")
        await bot.answer("hi there", "k1")
        await terminal.sees("● hi there\n»")
        assert terminal.text == "» hello\n» /stop now\n● hi there\n»"


async def test_a_half_typed_line_survives_incoming_messages(tmp_path: Path) -> None:
    """An answer that grows, one that ends, and a card."""
    async with at_terminal(tmp_path) as (bot, terminal):
        terminal.press("hal")
        await terminal.sees("» hal")
        await bot.answer("one", "k1", draft=True)
        await terminal.sees("● one\n» hal")
        terminal.press("f")
        await bot.answer("one two", "k1")
        await terminal.sees("● one two\n» half")
        await bot.channel.ask(OPERATOR, CARD)
        await terminal.sees("Deny · /deny 1 because …\n» half")
        terminal.press(ENTER)
        assert await bot.came.get() == Said(text="half")


async def test_a_line_is_edited_as_in_a_shell(tmp_path: Path) -> None:
    """Ctrl-A, -E, -W, -U, the arrows, Ctrl-L."""
    async with at_terminal(tmp_path) as (bot, terminal):
        terminal.press("lost\x15two thre\x1b[Dx\x17three\x01one \x05!\x0c")
        await terminal.sees("» one two threee!")
        terminal.press(ENTER)
        assert await bot.came.get() == Said(text="one two threee!")


async def test_the_up_arrow_recalls_earlier_messages(tmp_path: Path) -> None:
    """Ctrl-R searches it, and Ctrl-C ends the search."""
    async with at_terminal(tmp_path) as (bot, terminal):
        for text in ("first", "second"):
            terminal.press(f"{text}{ENTER}")
            await terminal.sees(f"» {text}\n»")  # the library fills its history as it draws
            await bot.came.get()
        terminal.press(UP)
        await terminal.sees("» second\n» second")
        terminal.press(f"{UP}!{ENTER}")
        await terminal.sees("» first!\n»")
        assert await bot.came.get() == Said(text="first!")
        terminal.press("\x12fir")
        await terminal.sees("I-search backward: fir")
        terminal.press(CTRL_C)
        await terminal.sees_no("I-search")
        terminal.press("\x12sec")
        await terminal.sees("» second\nI-search backward: sec")
        terminal.press(ENTER)
        await terminal.sees_no("I-search")
        terminal.press(ENTER)
        assert await bot.came.get() == Said(text="second")


async def test_the_history_of_other_sessions_comes_from_the_daemon(tmp_path: Path) -> None:
    """No history file exists that `/forget` and retention would miss."""
    bot = Bot()
    async with bot_in(tmp_path, bot):
        bot.earlier = (
            TranscriptItem(ref="1", kind="person", text="what I said", at=EPOCH),
            TranscriptItem(key="k0", kind="bot", text="what it said", at=EPOCH),
        )
        async with chat(tmp_path, bot) as terminal:
            terminal.press(UP)
            await terminal.sees("» what I said")
            terminal.press(ENTER)
            assert await bot.came.get() == Said(text="what I said")


async def test_a_message_may_have_several_lines(tmp_path: Path) -> None:
    """By Alt-Enter, and by a backslash before Enter."""
    async with at_terminal(tmp_path) as (bot, terminal):
        terminal.press(f"one\x1b{ENTER}two\\")
        await terminal.sees("» one\n  two\\")
        terminal.press(ENTER)
        await terminal.sees_no("\\")
        terminal.press("three")
        await terminal.sees("» one\n  two\n  three")
        terminal.press(ENTER)
        assert await bot.came.get() == Said(text="one\ntwo\nthree")


async def test_a_command_is_completed(tmp_path: Path) -> None:
    async with at_terminal(tmp_path) as (bot, terminal):
        terminal.press("/hel\t")
        await terminal.sees("» /help")
        terminal.press(ENTER)
        assert await bot.came.get() == Command(name="help")


async def test_a_letter_answers_the_one_open_call(tmp_path: Path) -> None:
    """Without an open call, or for a choice that is not offered, it is a plain message (P5)."""
    async with at_terminal(tmp_path) as (bot, terminal):
        ref = await bot.channel.ask(OPERATOR, CARD)
        await terminal.sees("a = Approve once")
        terminal.press(f"T{ENTER}")
        assert await bot.came.get() == Pressed(approval=FIRST, choice="for_a_time", card=ref)
        await bot.channel.settle(ref, ended("approved"))
        await terminal.sees("✅ 1  shell approved by operator")
        assert terminal.inverse == ["┌", "└", "✅ 1"]
        terminal.press(f"a{ENTER}")
        assert await bot.came.get() == Said(text="a")


async def test_a_letter_typed_before_a_new_card_answers_no_card(tmp_path: Path) -> None:
    """One card ended and the next came before Enter; the letter counts when it is typed again
    (P5)."""
    call = replace(CARD.calls[0], approval=ApprovalId("a2"), summary="run `rm`")
    other = replace(CARD, key="c2", calls=(call,))
    async with at_terminal(tmp_path) as (bot, terminal):
        first = await bot.channel.ask(OPERATOR, CARD)
        await terminal.sees("a = Approve once")
        terminal.press("a")
        await bot.channel.settle(first, ended("expired"))
        second = await bot.channel.ask(OPERATOR, other)
        await terminal.sees("run `rm`")
        terminal.press(ENTER)
        await terminal.sees("if you mean this call, type it again")
        terminal.press(f"d{ENTER}")
        assert await bot.came.get() == Pressed(
            approval=ApprovalId("a2"), choice="deny", card=second
        )


async def test_on_a_terminal_a_true_mark_is_inverse_even_without_colours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inverse is a style that no text can have (no-color.org is about colours, not styles). P7."""
    proof = CheckedReceipt(token="zc", tool="ls", summary="it", outcome="ok", at=EPOCH)
    monkeypatch.setenv("NO_COLOR", "1")
    async with at_terminal(tmp_path) as (bot, terminal):
        await bot.channel.ask(OPERATOR, CARD)
        rendered = bot.channel.render("Done. ✅ receipt: shell")
        await bot.channel.send(OPERATOR, Outgoing(rendered=rendered, key="k", receipts=(proof,)))
        await terminal.sees("● Done. ✅ receipt: shell\n✅ receipt: ls · ok")
        assert terminal.inverse == ["┌", "└", "✅ receipt:"]
        assert terminal.colours == {"default"}


PASTED = "\x1b[200~{}\x1b[201~"


@pytest.mark.parametrize(
    "keys",
    [
        PASTED.format("a"),
        PASTED.format("a\n"),
        PASTED.format("a") + PASTED.format(""),
        PASTED.format("a") + PASTED.format("\n"),
        f"{PASTED.format('a')}{PASTED.format('b')}\x7f",
        f"{PASTED.format('a')}\x15\x19",
        f"{PASTED.format('ab')}\x7f",
        "a\r\r",
    ],
)
async def test_a_letter_within_a_pasted_text_answers_no_call(tmp_path: Path, keys: str) -> None:
    """The person may not have read the pasted text (P5)."""
    async with at_terminal(tmp_path) as (bot, terminal):
        ref = await bot.channel.ask(OPERATOR, CARD)
        await terminal.sees("a = Approve once")
        terminal.press(keys)
        terminal.press(ENTER)
        await terminal.sees("type it again")
        terminal.press(f"{PASTED.format('b')}\x7fa{ENTER}")
        assert await bot.came.get() == Pressed(approval=FIRST, choice="once", card=ref)


async def test_a_recalled_letter_answers_no_call(tmp_path: Path) -> None:
    """The up arrow and Enter repeat the last message as a message (P5)."""
    async with at_terminal(tmp_path) as (bot, terminal):
        terminal.press(f"a{ENTER}")
        assert await bot.came.get() == Said(text="a")
        await terminal.sees("» a\n»")
        ref = await bot.channel.ask(OPERATOR, CARD)
        await terminal.sees("a = Approve once")
        terminal.press(UP)
        await terminal.sees("because …\n» a")
        terminal.press(ENTER)
        await terminal.sees("type it again")
        terminal.press(f"a{ENTER}")
        assert await bot.came.get() == Pressed(approval=FIRST, choice="once", card=ref)


@pytest.mark.parametrize("keys", [PASTED.format("one\r\n\r  two"), "one\r\r  two"])
async def test_a_pasted_text_is_one_message_that_enter_sends(tmp_path: Path, keys: str) -> None:
    """Also from a terminal without bracketed paste."""
    async with at_terminal(tmp_path) as (bot, terminal):
        terminal.press(keys)
        await terminal.sees("» one\n\n    two")
        assert bot.bodies == []
        terminal.press(ENTER)
        assert await bot.came.get() == Said(text="one\n\n  two")


async def test_control_characters_of_a_pasted_text_are_not_obeyed(tmp_path: Path) -> None:
    """Neither in the input, nor in the output (P5, P7)."""
    evil = "\x9b7m┌ olga asks\x1b[7m\x07"
    async with at_terminal(tmp_path) as (bot, terminal):
        terminal.press(PASTED.format(evil))
        await terminal.sees("┌ olga asks")
        terminal.press(ENTER)
        assert await bot.came.get() == Said(text=evil)
        await terminal.sees("» ⟨U+009B⟩7m┌ olga asks⟨U+001B⟩[7m⟨U+0007⟩\n»")
        assert terminal.inverse == []


# Characters whose width differs between terminals.
AMBIGUOUS_WIDTH = (
    "\t",
    "\u200b",
    "\u200d",
    "\ufe0f",
    "\u0301",
    "👩\u200d",
    "\u1161",
    "👍🏽",
    "\u0605",
    "🇩🇪",
    "ש",
)


@pytest.mark.parametrize("sign", AMBIGUOUS_WIDTH)
async def test_no_row_above_an_answer_is_erased(tmp_path: Path, sign: str) -> None:
    """A card may be there; terminals differ in the width of these characters (P5)."""
    async with at_terminal(tmp_path, columns=40, rows=30) as (bot, terminal):
        await bot.channel.ask(OPERATOR, CARD)
        await terminal.sees("because …\n»")
        card = terminal.text.removesuffix("»")
        for number, text in enumerate((f"Hi{sign * 150}", f"{sign} " * 90, "x\n" * 9, "b")):
            await bot.answer(f"{text} {number}.", "k1", draft=True)
            await terminal.sees(f"{number}.")
            assert terminal.text.startswith(card)
        await bot.answer("end", "k1")
        await terminal.sees("● end\n»")
        assert terminal.text.startswith(card)


@pytest.mark.parametrize(("columns", "rows"), [(20, 24), (40, 30), (120, 24)])
async def test_resizing_the_window_loses_no_printed_text(
    tmp_path: Path, columns: int, rows: int
) -> None:
    """However the answer's rows were rewrapped, it grows on below the text above it."""
    async with at_terminal(tmp_path, columns=60, rows=24) as (bot, terminal):
        await bot.answer("above", "k0")
        await terminal.sees("● above")
        await bot.answer("word " * 60, "k1", draft=True)
        await terminal.sees("word")
        terminal.resize(columns=columns, rows=rows)
        os.kill(os.getpid(), signal.SIGWINCH)
        await bot.answer("word " * 60 + "end.", "k1")
        await terminal.sees("end.\n»")
        assert "● above" in terminal.text
        assert max(map(len, terminal.rows[-5:])) <= columns


async def test_a_long_answer_can_be_read_while_it_grows(tmp_path: Path) -> None:
    """Its rows scroll away as usual, each of them once."""
    lines = [f"line {number}." for number in range(200)]
    async with at_terminal(tmp_path, columns=40, rows=12) as (bot, terminal):
        for at in range(10, 201, 10):
            await bot.answer("\n".join(lines[:at]), "k1", draft=True)
            await terminal.sees(f"line {at - 1}.\n»")
        await bot.answer("\n".join(lines), "k1")
        await bot.answer("ok", "k2")
        await terminal.sees("● ok\n»")
        assert terminal.text == "\n".join(("● line 0.", *lines[1:], "● ok", "»"))


async def test_a_terminal_is_left_as_it_was_when_the_program_is_ended(tmp_path: Path) -> None:
    """SIGTERM would leave it without echo."""
    bot = Bot()
    async with bot_in(tmp_path, bot):
        with emulated_terminal() as terminal:
            async with asyncio.TaskGroup() as group:
                group.create_task(Sitting(tmp_path, bot, terminal).run())
                await terminal.sees("»")
                await bot.answer("I wri", "k1", draft=True)
                await terminal.sees("I wri")
                os.kill(os.getpid(), signal.SIGTERM)
    assert terminal.text == "● I wri"


async def test_one_interrupt_stops_the_answer_and_two_leave(tmp_path: Path) -> None:
    """Typed text stays until Ctrl-C has nothing to stop."""
    bot = Bot()
    async with bot_in(tmp_path, bot):
        with emulated_terminal() as terminal:
            async with asyncio.TaskGroup() as group:
                group.create_task(Sitting(tmp_path, bot, terminal).run())
                await terminal.sees("»")
                terminal.press(CTRL_C)
                await terminal.sees("Ctrl-C again leaves")
                terminal.press(f"go{ENTER}")
                assert await bot.came.get() == Said(text="go")
                await bot.answer("I wri", "k1", draft=True)
                await terminal.sees("I wri")
                terminal.press(f"half{CTRL_C}")
                assert await bot.came.get() == Command(name="stop")
                await bot.answer("I wri\n\n_Stopped._", "k1")
                await terminal.sees("_Stopped._\n» half")
                terminal.press(CTRL_C)
                await terminal.sees_no("half")
                terminal.press(CTRL_C)
    assert terminal.text.endswith("● … _Stopped._")


async def test_a_pipe_sends_line_after_line_and_waits_for_the_last_answer(tmp_path: Path) -> None:
    """No prompt, no colour, each answer once."""
    bot = Bot()
    bot.echoes = True
    async with bot_in(tmp_path, bot):
        sitting = Sitting(tmp_path, bot)
        sitting.script("one", "two", None)
        await sitting.run()
    assert sitting.written == "● you said one\n● you said two\n"


async def test_a_pipe_answers_a_card_with_its_next_line(tmp_path: Path) -> None:
    """The next line answers the open card."""
    bot = Bot()
    bot.busy = 1
    async with bot_in(tmp_path, bot), asyncio.TaskGroup() as group:
        sitting = Sitting(tmp_path, bot)
        running = group.create_task(sitting.run())
        sitting.script("list", "d", None)
        assert await bot.came.get() == Said(text="list")
        ref = await bot.channel.ask(OPERATOR, CARD)
        assert await bot.came.get() == Pressed(approval=FIRST, choice="deny", card=ref)
        await bot.channel.settle(ref, ended("denied"))
        await bot.answer("then not", "k1")
        bot.busy = 0
        await running
    assert sitting.written.endswith("❌ 1  shell denied by operator\n● then not\n")


async def test_a_command_without_an_answer_does_not_hold_up_a_pipe(tmp_path: Path) -> None:
    """An idle daemon sends no further message."""
    bot = Bot()
    async with bot_in(tmp_path, bot):
        sitting = Sitting(tmp_path, bot)
        sitting.script("/stop", None)
        await sitting.run()
    assert bot.bodies == [Command(name="stop")]


async def test_a_daemon_that_others_keep_busy_does_not_hold_up_a_pipe(tmp_path: Path) -> None:
    bot = Bot()
    bot.echoes, bot.busy = True, 3
    async with bot_in(tmp_path, bot):
        sitting = Sitting(tmp_path, bot)
        sitting.script("one", None)
        await sitting.run()
    assert sitting.written == "● you said one\n"


async def test_a_script_that_ends_with_a_card_open_ends(tmp_path: Path) -> None:
    """The script can't answer it, and it may wait for a quarter of an hour (P10)."""
    bot = Bot()
    bot.busy = 1
    async with bot_in(tmp_path, bot), asyncio.TaskGroup() as group:
        sitting = Sitting(tmp_path, bot)
        sitting.script("list", None)
        running = group.create_task(ending_of(sitting))
        assert await bot.came.get() == Said(text="list")
        await bot.channel.ask(OPERATOR, CARD)
        assert isinstance(await running, Unanswered)


async def test_a_script_does_not_wait_for_a_daemon_that_is_gone(tmp_path: Path) -> None:
    """Nor for messages that were not stored (P10)."""
    bot = Bot()
    bot.echoes = True
    async with asyncio.TaskGroup() as group:
        async with bot_in(tmp_path, bot):
            sitting = Sitting(tmp_path, bot)
            running = group.create_task(ending_of(sitting))
            sitting.script("one")
            await bot.came.get()
        bot.is_gone = True
        sitting.script("two", None)
        assert isinstance(await running, DaemonUnreachable)


async def ending_of(sitting: Sitting) -> ZeroclawError | None:
    try:
        await sitting.run()
    except ZeroclawError as error:
        return error
    return None


async def test_the_demo_approves_by_itself(tmp_path: Path) -> None:
    """It approves each call once, and ends with the answer."""
    bot = Bot()
    bot.busy = 1
    async with bot_in(tmp_path, bot), asyncio.TaskGroup() as group:
        sitting = Sitting(tmp_path, bot, approves=True)
        running = group.create_task(sitting.run("a haiku"))
        assert await bot.came.get() == Said(text="a haiku")
        ref = await bot.channel.ask(OPERATOR, CARD)
        assert await bot.came.get() == Pressed(approval=FIRST, choice="once", card=ref)
        await bot.channel.settle(ref, ended("approved"))
        await bot.answer("done", "k1")
        bot.busy = 0
        await running
    assert sitting.written.endswith("done\n")


async def test_a_restart_of_the_daemon_loses_no_message(tmp_path: Path) -> None:
    """P1: a message that is not known to be stored is sent again, under its own id."""
    bot, again = Bot(), Bot()
    async with AsyncExitStack() as stack:
        async with bot_in(tmp_path, bot):
            terminal = await stack.enter_async_context(chat(tmp_path, bot))
            terminal.press("are you ")
        await terminal.sees("the daemon is gone")
        terminal.press(f"there?{ENTER}")
        async with bot_in(tmp_path, again):
            assert await again.came.get() == Said(text="are you there?")
            await again.answer("yes", "k1")
            await terminal.sees("● yes\n»")
            await stack.aclose()


async def test_a_session_waits_for_a_daemon_that_is_starting(tmp_path: Path) -> None:
    """After a restart its socket answers before the terminal channel; the session goes on."""
    bot, again = Bot(), Bot()
    refused = asyncio.Event()

    async def not_yet(lines: LineStream) -> None:
        refused.set()
        await lines.send({"error": "the running daemon does not know this; is it older?"})

    async with AsyncExitStack() as stack:
        async with bot_in(tmp_path, bot):
            terminal = await stack.enter_async_context(chat(tmp_path, bot))
        async with control_socket(tmp_path) as control:
            control.stream(STREAM, not_yet)
            terminal.press(f"are you there?{ENTER}")
            await refused.wait()
        async with bot_in(tmp_path, again):
            assert await again.came.get() == Said(text="are you there?")
            await stack.aclose()


async def test_a_message_that_could_not_be_stored_is_sent_again(tmp_path: Path) -> None:
    """A full disk loses no message once there is room again."""
    bot = Bot()
    bot.refusals = 2
    async with bot_in(tmp_path, bot), chat(tmp_path, bot) as terminal:
        terminal.press(f"hello{ENTER}")
        assert await bot.came.get() == Said(text="hello")
        await terminal.sees("it is tried again\n»")
        assert terminal.text.count("it is tried again") == 2


async def test_without_a_daemon_or_a_terminal_it_says_so(tmp_path: Path) -> None:
    """P10."""
    bot = Bot()
    with pytest.raises(DaemonUnreachable):
        await Sitting(tmp_path, bot).run()
    async with control_socket(tmp_path):
        with pytest.raises(NeedsOperator, match=r"set `channels\.terminal\.enabled` to true"):
            await Sitting(tmp_path, bot).run()


async def test_a_daemon_that_hangs_does_not_hang_a_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It accepts the connection, and then says nothing (P10)."""
    monkeypatch.setattr("zeroclaw.host.control.ANSWER_S", 0.0)
    async with control_socket(tmp_path) as control:
        control.call("status", lambda _: asyncio.Future[Status]())
        with pytest.raises(DaemonUnreachable, match="does not answer within"):
            await talk(tmp_path)


async def test_a_message_without_a_connection_waits_for_the_next_one(tmp_path: Path) -> None:
    """The message is sent once there is a connection."""
    link = Link(tmp_path, clock=QuickClock(), token=CountingIds().ulid)
    for number in range(5):
        link.say(str(number))
    assert [line["text"] for line in link.pending.values()] == ["0", "1", "2", "3", "4"]
