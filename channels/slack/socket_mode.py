"""Hear Slack by Socket Mode: one websocket, on which each event is a numbered envelope.

Not the library's own client (`slack_sdk.socket_mode.aiohttp`, slack-sdk 3.47): it starts a loose task
for each envelope, which loses their order, keeps them in a queue without bound, swallows every error,
and tries to connect for ever without telling anybody.

What is not confirmed Slack sends again, at once, after a minute and after five ("Events API", read
2026-11); so an envelope is confirmed when its event is stored, and the connection that brought it may
have gone by then, which loses nothing.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from channels._remote.fields import Json, inner, text
from channels._remote.http import CONNECT_S, Line
from channels._remote.kept import Ended, keep_connected
from channels.slack.calls import Calls
from zeroclaw import ChannelLog, ChannelUnavailable, Clock, Value


class Envelope(Value):
    """One thing that Slack tells, to be confirmed by its id."""

    id: str
    kind: str
    payload: Json


OnEnvelope = Callable[[Envelope], None]
OnUp = Callable[[bool], None]


class SocketMode:
    """Hears for one app."""

    def __init__(
        self, calls: Calls, *, on_up: OnUp, on_envelope: OnEnvelope, clock: Clock, log: ChannelLog
    ) -> None:
        """Hold what is needed.

        Args:
            calls: The app's.
            on_up: Told of each connection that stands; whether something may have been missed.
            on_envelope: Takes each envelope; never waits, never raises.
            clock: For waits.
            log: For facts.
        """
        self._calls = calls
        self._on_up = on_up
        self._on_envelope = on_envelope
        self._clock = clock
        self._log = log
        self._line: Line | None = None
        self._is_planned = False

    async def run(self) -> None:
        """Hear until cancelled; see `keep_connected`."""
        await keep_connected(self._connect, self._calls.http, self._clock, self._log)

    async def _connect(self) -> Ended:
        line = await self._calls.line()
        try:
            await self._greeted(line)
            self._line = line
            self._on_up(not self._is_planned)
            self._is_planned = await self._hear(line)
        finally:
            self._line = None
            await line.aclose()
        return Ended(why="closed", was_up=True, is_planned=self._is_planned)

    async def confirm(self, envelope: Envelope) -> None:
        """Tell Slack that an event is stored; it may be lost, and then the event comes again."""
        if self._line is None or not await self._line.say({"envelope_id": envelope.id}):
            self._log("confirmation_lost", level="debug")

    async def _greeted(self, line: Line) -> None:
        """Wait for the first word.

        Raises:
            ChannelUnavailable: It is another one, or does not come.
        """
        said: Json | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * CONNECT_S):
                said = await line.next()
        if said is None or text(said, "type") != "hello":
            message = f"`{self._calls.name}`: the gateway does not greet"
            raise ChannelUnavailable(message)

    async def _hear(self, line: Line) -> bool:
        """Hear until the connection ends; whether Slack said before that it would."""
        while (said := await line.next()) is not None:
            kind, number = text(said, "type"), text(said, "envelope_id")
            if kind == "disconnect":
                # Every few hours, to move connections; what comes meanwhile is kept for the next.
                self._log("gateway_moves", why=text(said, "reason")[:50], level="debug")
                return True
            if number:
                envelope = Envelope(id=number, kind=kind, payload=inner(said, "payload"))
                self._on_envelope(envelope)
        return False
