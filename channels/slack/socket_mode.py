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
from channels.slack.calls import CONNECT_S, Calls, Line
from zeroclaw import ChannelLog, ChannelUnavailable, Clock, RateLimited, Value

WAITS_S = (0.0, 1.0, 2.0, 4.0, 8.0)
"""After each connection that was lost; after the last one the channel is down, and is seen to be."""


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

    async def run(self) -> None:
        """Hear until cancelled.

        Raises:
            ChannelUnavailable: No connection stands, however often it was tried.
            ChannelUnauthorized: Slack refuses the app's token.
        """
        tries, is_planned = 0, False
        while True:
            was_up, why = False, "closed"
            try:
                line = await self._calls.line()
                try:
                    await self._greeted(line)
                    self._line, was_up, tries = line, True, 0
                    self._on_up(not is_planned)
                    is_planned = await self._hear(line)
                finally:
                    self._line = None
                    await line.aclose()
            except ChannelUnavailable as error:
                why, is_planned = str(error), False
                if self._calls.closed.is_set() or isinstance(error, RateLimited):
                    raise  # a long wait is to be seen: the channel is not up while it lasts
            wait_s = 0.0 if is_planned else WAITS_S[tries]
            tries += not was_up
            if tries >= len(WAITS_S):
                message = f"`{self._calls.name}`: Slack ends every connection ({why})"
                raise ChannelUnavailable(message)
            if not is_planned:
                self._log("gateway_lost", why=why)
            await self._clock.sleep(wait_s)

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
