"""One session of the chat: sends typed lines, shows arriving ones, and decides when to end.

A script's next line is sent once the previous one was answered, or a card waits. At the end of the
script the session waits for the last answer. It does not wait for a person: it ends if a card is
open when the input has ended, or if the daemon does not come back.
"""

import asyncio
import os
import secrets
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from zeroclaw.cli.chat.connection import Line, Link
from zeroclaw.cli.chat.screen import KEYS, StyledText, View
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
"""Polls after which an idle daemon will send nothing more."""
_SILENT_POLLS = 20
"""The same for a daemon that others keep busy: all is answered, and no line came during these."""
_CARD_POLLS = 50
"""A card open for so long after the last line was sent is not answered by that line."""
_UNREACHABLE_POLLS = 300
"""Polls within which a restarting daemon is back."""


class Unanswered(Refused):
    """Raised if a call waits for an approval and the input has ended."""


class Screen(Protocol):
    """A terminal, or the pipes of a script."""

    def show(self, text: StyledText) -> None:
        """Print a text, and redraw the rest."""
        ...

    async def run(self, session: "Session") -> None:
        """Read until the person leaves, or to the end of the script."""
        ...


class Session(Struct, kw_only=True):
    """Connects a link, a view and the person who types.

    Attributes:
        link: The connection to the daemon.
        view: The state of the screen.
        screen: Where the person, or the script, is.
        status: Returns the daemon's answer to `status`.
        clock: For waits.
        approves: Every call is approved once, without asking; for the demo.
    """

    link: Link
    view: View
    screen: Screen
    status: Callable[[], Awaitable[Status]]
    clock: Clock
    approves: bool = False
    _pressed: set[str] = field(default_factory=set[str])
    _live: asyncio.Event = field(default_factory=asyncio.Event)
    _sent: int = 0
    _awaited: int = 0
    _silent_polls: int = 0
    _failed_polls: int = 0
    _interrupts: int = 0

    async def run(self, first: tuple[str, ...] = ()) -> None:
        """Send the first messages, then the typed ones, until the person leaves.

        Raises:
            Unreachable: No daemon runs, or it does not come back at the end of a script.
            NeedsOperator: The daemon has no terminal channel.
            Unanswered: A script ended with a card open.
        """
        with ungrouped():
            async with asyncio.TaskGroup() as group:
                link = group.create_task(self.link.run(self._receive, self._note_loss))
                await self._live.wait()
                for text in first:
                    self._say(text)
                await self.screen.run(self)
                self.screen.show(self.view.settled())
                link.cancel()

    async def quiet(self, *, or_card: bool) -> None:
        """Wait until every message sent is answered, or a card waits for a person."""
        idle = open_for = 0
        while not (or_card and self.view.cards.open_calls):
            idle = idle + 1 if await self._is_idle() else 0
            is_done = self.view.answered >= self._sent
            if (idle and is_done) or idle >= _IDLE_POLLS:
                return
            if is_done and self._silent_polls >= _SILENT_POLLS and not self.view.cards.open_calls:
                return
            open_for = open_for + 1 if self.view.cards.open_calls and not self.approves else 0
            if open_for >= _CARD_POLLS:
                message = (
                    "a call waits for an approval, and nothing more can be typed here; answer it "
                    "in another `zeroclaw chat`, or on the web page"
                )
                raise Unanswered(message)
            self._silent_polls += 1
            await self.clock.sleep(POLL_S)

    async def _is_idle(self) -> bool:
        try:
            status = await self.status()
        except ZeroclawError:
            self._failed_polls += 1
            if self._failed_polls >= _UNREACHABLE_POLLS:
                raise
            return False  # it restarts, and answers afterwards
        self._failed_polls = 0
        if self.link.pending or self.view.is_drafting or not self.view.is_live:
            self._silent_polls = 0
            return False
        return not status.busy and (not status.waiting or bool(status.halted))

    # --- the daemon's lines ----------------------------------------------------------------------

    def _receive(self, line: Line) -> None:
        self._silent_polls = 0
        self.screen.show(self.view.take(line))
        if self.view.is_live:
            self._live.set()
        if self.approves:
            self._approve()

    def _note_loss(self) -> None:
        self.screen.show(self.view.note("the daemon is gone; I go on when it is back"))

    def _approve(self) -> None:
        for call in self.view.cards.open_calls:
            if call.approval not in self._pressed:
                self._pressed.add(call.approval)
                self.link.press(call.approval, "once", call.card)

    # --- the person's input ----------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """Whether an answer is awaited."""
        return self.view.is_drafting or self.view.answered < self._awaited

    def enter(self, text: str, *, is_letter_typed: bool = True) -> None:
        """Handle a message, a command or the answer to a card.

        Args:
            text: The input.
            is_letter_typed: If it is a single letter, its key was the last one before Enter.
        """
        self._interrupts = 0
        is_sure = self.view.is_sure() and is_letter_typed
        choice = KEYS.get(text.strip().lower())
        text = text.rstrip("\n")
        calls = self.view.cards.open_calls
        if len(calls) == 1 and choice is not None and choice in calls[0].choices:
            self.screen.show(self.view.entered(text))
            if is_sure:
                self.link.press(calls[0].approval, choice, calls[0].card)
            else:
                self.screen.show(self.view.note("if you mean this call, type it again"))
        elif text.strip():
            self._say(text)

    def interrupt(self) -> bool:
        """Handle Ctrl-C: the first stops the answer, the second returns true, to leave."""
        self._interrupts += 1
        if self._interrupts == 1 and self.is_busy:
            self.screen.show(self.view.note("stopping it; Ctrl-C again leaves"))
            self.view.sent(self.link.say("/stop"))
        elif self._interrupts == 1:
            self.screen.show(self.view.note("Ctrl-C again leaves"))
        return self._interrupts > 1

    def _say(self, text: str) -> None:
        self.screen.show(self.view.entered(text))
        self._sent += 1
        is_for_model = not text.lstrip().startswith("/")
        self._awaited = max(self._awaited, self.view.answered) + is_for_model
        self.view.sent(self.link.say(text))


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
    is_terminal = not approves and has_screen()
    view = View(is_terminal=is_terminal, history=HISTORY if is_terminal else 0)
    if is_terminal:
        from zeroclaw.cli.chat.terminal import Terminal

        screen: Screen = Terminal(view)
    else:
        from zeroclaw.cli.chat.pipe import Pipe

        screen = Pipe(sys.stdin.fileno(), sys.stdout)
    clock = SystemClock()
    session = Session(
        link=Link(place, clock=clock, token=lambda: secrets.token_hex(12)),
        view=view,
        screen=screen,
        status=lambda: ask(place, "status", Status),
        clock=clock,
        approves=approves,
    )
    await session.run(first)


def has_screen() -> bool:
    """Whether a person sits at a terminal; if not, the session is a script."""
    is_dumb = os.environ.get("TERM", "dumb") == "dumb"
    return sys.stdout.isatty() and sys.stdin.isatty() and not is_dumb
