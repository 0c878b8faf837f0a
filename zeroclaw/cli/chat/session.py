"""One session of the chat: sends what is typed, shows what arrives, and knows when to end.

In a pipe the input is a script: each line is sent once the one before was answered, or a card
waits. At the end of the input the session waits for the last answer. It does not wait for a person:
it ends if a card is open when nothing more can be typed, or if the daemon stays away.
"""

import asyncio
import os
import secrets
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from zeroclaw.cli.chat.connection import Line, Link
from zeroclaw.cli.chat.keyboard import Ended, Event, Interrupted, Resized, Typed, typed
from zeroclaw.cli.chat.screen import KEYS, Cards, Ink, View
from zeroclaw.cli.client import ask
from zeroclaw.clock import Clock
from zeroclaw.errors import Refused, ZeroclawError, ungrouped
from zeroclaw.host.answers import Status
from zeroclaw.host.clock import SystemClock
from zeroclaw.value import Struct, field

HISTORY = 10
"""Number of earlier messages that are shown on a terminal."""
POLL_S = 0.1
_IDLE_POLLS = 10
"""Polls after which an idle daemon has nothing more to say."""
_STILL_POLLS = 20
"""The same for a daemon that others keep busy: all is answered, and nothing arrived for so long."""
_CARD_POLLS = 50
"""A card open for so long after the last line was sent is not answered by that line."""
_GONE_POLLS = 300
"""Polls within which a restarting daemon is back."""


class Unanswered(Refused):
    """Raised if a call waits for an approval and the input has ended."""


class Session(Struct, kw_only=True):
    """Connects a link, a view and the person who types.

    Attributes:
        link: The connection to the daemon.
        view: The state of the screen.
        write: Writes text to the screen and flushes it.
        status: Returns the daemon's answer to `status`.
        clock: For waits.
        approves: Every call is approved once, without asking; for the demo.
    """

    link: Link
    view: View
    write: Callable[[str], None]
    status: Callable[[], Awaitable[Status]]
    clock: Clock
    approves: bool = False
    _pressed: set[str] = field(default_factory=set[str])
    _pasted: list[str] = field(default_factory=list[str])  # lines that the next Enter sends
    _live: asyncio.Event = field(default_factory=asyncio.Event)
    _said: int = 0
    _awaited: int = 0
    _still: int = 0
    _gone: int = 0
    _interrupts: int = 0

    async def run(self, events: AsyncIterator[Event], first: tuple[str, ...] = ()) -> None:
        """Send the first messages, then what is typed, until the person leaves.

        Raises:
            Unreachable: No daemon runs, or it stays away at the end of a script.
            NeedsOperator: The daemon has no terminal channel.
            Unanswered: A script ended with a card open.
        """
        with ungrouped():
            async with asyncio.TaskGroup() as group:
                linked = group.create_task(self.link.run(self._heard, self._lost))
                await self._live.wait()
                for text in first:
                    self._show(self.view.typed_for(text))
                    self._say(text)
                self._prompt()
                if self.approves:
                    await self.quiet(or_card=False)
                else:
                    await self._listen(events)
                linked.cancel()

    async def _listen(self, events: AsyncIterator[Event]) -> None:
        async for event in events:
            match event:
                case Typed(text=text, is_pasted=is_pasted):
                    self._interrupts = 0
                    self._enter(text, is_pasted=is_pasted)
                    if not self.view.ink.moves:
                        await self.quiet(or_card=True)
                case Interrupted():
                    self._interrupts += not self._pasted
                    if self._interrupts > 1:
                        self._show("\n")
                        return
                    self._interrupt()
                case Resized(columns=columns, rows=rows):
                    self._show(self.view.resized(columns, rows))
                case Ended():
                    if self._pasted:
                        self._enter("", is_pasted=False)
                    break
        if self.view.ink.moves:
            self._show("\n")
        else:
            await self.quiet(or_card=False)

    async def quiet(self, *, or_card: bool) -> None:
        """Wait until every message sent is answered, or a card waits for a person."""
        idle = open_for = 0
        while not (or_card and self.view.cards.open_calls):
            idle = idle + 1 if await self._is_idle() else 0
            is_answered = self.view.answered >= self._said
            if (idle and is_answered) or idle >= _IDLE_POLLS:
                return
            if is_answered and self._still >= _STILL_POLLS and not self.view.cards.open_calls:
                return
            open_for = open_for + 1 if self.view.cards.open_calls and not self.approves else 0
            if open_for >= _CARD_POLLS:
                message = (
                    "a call waits for an approval, and nothing more can be typed here; answer it "
                    "in another `zeroclaw chat`, or on the web page"
                )
                raise Unanswered(message)
            self._still += 1
            await self.clock.sleep(POLL_S)

    async def _is_idle(self) -> bool:
        try:
            told = await self.status()
        except ZeroclawError:
            self._gone += 1
            if self._gone >= _GONE_POLLS:
                raise
            return False  # it restarts, and answers afterwards
        self._gone = 0
        if self.link.pending or self.view.is_drafting or not self.view.is_live:
            self._still = 0
            return False
        return not told.busy and (not told.waiting or bool(told.halted))

    # --- what comes ------------------------------------------------------------------------------

    def _heard(self, line: Line) -> None:
        self._still = 0
        added = self.view.take(line)
        if self.view.is_live:
            self._live.set()
        self._show(added)
        if self.approves:
            self._approve()
        if added:
            self._prompt()

    def _lost(self) -> None:
        self._show(self.view.note("the daemon is gone; I go on when it is back"))
        self._prompt()

    def _approve(self) -> None:
        for call in self.view.cards.open_calls:
            if call.approval not in self._pressed:
                self._pressed.add(call.approval)
                self.link.press(call.approval, "once", call.card)

    # --- what is typed ---------------------------------------------------------------------------

    def _enter(self, text: str, *, is_pasted: bool) -> None:
        is_sure = self.view.entered()
        if is_pasted:
            if not self._pasted:
                # Its last line may be at the cursor: the terminal keeps it back until Enter.
                note = self.view.note("Enter sends what you pasted, Ctrl-C drops it")
                self._show(f"\n{note}{self.view.prompt()}")
            self._pasted.append(text)
            return
        choice = None if self._pasted else KEYS.get(text.strip().lower())
        text = "\n".join((*self._pasted, text)).rstrip("\n")
        self._pasted.clear()
        calls = self.view.cards.open_calls
        if len(calls) == 1 and choice is not None and choice in calls[0].choices:
            if is_sure:
                self.link.press(calls[0].approval, choice, calls[0].card)
            else:
                self._show(self.view.note("another call came up; type it again"))
                self._prompt()
        elif text.strip():
            self._say(text)
        else:
            self._prompt()

    def _say(self, text: str) -> None:
        self._said += 1
        is_for_model = not text.lstrip().startswith("/")
        self._awaited = max(self._awaited, self.view.answered) + is_for_model
        self.view.said(self.link.say(text))

    def _interrupt(self) -> None:
        if self._pasted:
            self._pasted.clear()
            self._show(self.view.note("dropped it"))
        elif self.view.is_drafting or self.view.answered < self._awaited:
            self._show(self.view.note("stopping it; Ctrl-C again leaves"))
            self.view.said(self.link.say("/stop"))
        else:
            self._show(self.view.note("Ctrl-C again leaves"))
        self._prompt()

    # --- the screen ------------------------------------------------------------------------------

    def _show(self, text: str) -> None:
        if text:
            self.write(text)

    def _prompt(self) -> None:
        is_busy = self.view.is_drafting or self.view.answered < self._awaited
        if (self.view.cards.open_calls or not is_busy) and not self.approves:
            self._show(self.view.prompt())


async def converse(place: Path, *, first: tuple[str, ...] = (), approves: bool = False) -> None:
    """Talk until the person leaves.

    Args:
        place: The daemon's data directory.
        first: Messages to send before anything is typed.
        approves: Approve every call once, and end the session with the last answer.

    Raises:
        Unreachable: No daemon runs there.
        NeedsOperator: The daemon has no terminal channel.
    """
    ink = ink_of_stdout()
    clock = SystemClock()
    session = Session(
        link=Link(place, clock=clock, token=lambda: secrets.token_hex(12)),
        view=View(cards=Cards(ink=ink), history=HISTORY if ink.moves else 0),
        write=_write,
        status=lambda: ask(place, "status", Status),
        clock=clock,
        approves=approves,
    )
    await session.run(typed(sys.stdin.fileno()), first)


def ink_of_stdout() -> Ink:
    """Return the abilities of stdout; without a terminal as input, the session is a script."""
    is_screen = (
        sys.stdout.isatty() and sys.stdin.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    )
    size = shutil.get_terminal_size()
    return Ink(
        moves=is_screen,
        colours=is_screen and not os.environ.get("NO_COLOR"),
        columns=size.columns,
        rows=size.lines,
    )


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
