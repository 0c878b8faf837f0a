"""Receives Slack's events by Socket Mode: one websocket, each event in an envelope with an id.

It does not use the library's client (`slack_sdk.socket_mode.aiohttp`, slack-sdk 3.47), which starts an
unsupervised task for each envelope and so loses their order, has an unbounded queue, swallows every
error, and retries the connection forever without reporting it.

Slack resends an unconfirmed event at once, after a minute and after five ("Events API", read 2026-11).
So an envelope is confirmed when its event is stored. If the connection has ended by then, nothing is
lost.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress

from channels._remote.fields import Json, inner, integer, text
from channels._remote.http import CONNECT_S, Socket
from channels._remote.reconnection import ConnectionEnd, keep_connected
from channels.slack.calls import Calls
from zeroclaw import ChannelContext, ChannelUnavailable, Sentence, Value, ZeroclawError

# Each event goes to one of an app's connections ("Using Socket Mode", docs.slack.dev; presses that
# another program gets are lost, github.com/slackapi/python-slack-sdk/issues/1940; read 2026-11).
EVENTS_SHARED = Sentence(
    en="`{channel}`: Slack spreads what people write and press over {count} connections of this app, so I may "
    "miss some. If another program uses its tokens, stop it. If a connection was just cut, Slack soon forgets it.",
    de="`{channel}`: Slack verteilt, was geschrieben und gedrückt wird, auf {count} Verbindungen dieser App; mir kann "
    "etwas entgehen. Beende ein anderes Programm, das ihre Tokens benutzt. Eine abgerissene vergisst Slack bald.",
)


class SlackEnvelope(Value):
    """One event from Slack, to be confirmed by its id."""

    id: str
    kind: str
    payload: Json


OnEnvelope = Callable[[SlackEnvelope], None]
OnUp = Callable[[bool], None]


class SocketMode:
    """Receives the events of one app."""

    def __init__(
        self, calls: Calls, context: ChannelContext, *, on_up: OnUp, on_envelope: OnEnvelope
    ) -> None:
        """Connect to nothing yet.

        Args:
            calls: The app's calls.
            context: The channel's context.
            on_up: Called for each new connection with whether events may have been missed.
            on_envelope: Called with each envelope; must not wait or raise.
        """
        self._calls, self._context = calls, context
        self._on_up, self._on_envelope = on_up, on_envelope
        self._socket: Socket | None = None
        # Whether Slack announced the end of the last connection; None before the first.
        self._was_planned: bool | None = None
        self._is_warned = False

    async def run(self) -> None:
        """Receive events until cancelled; see `keep_connected`."""
        context, http = self._context, self._calls.http
        await keep_connected(self._connect, http, context.clock, context.log)

    async def _connect(self) -> ConnectionEnd:
        # Slack keeps events for the next connection only if the first attempt succeeds.
        was_planned, self._was_planned = self._was_planned, False
        async with aclosing(await self._calls.connect()) as socket:
            count = await self._await_greeting(socket)
            self._socket = socket
            self._on_up(not was_planned)
            # For a while Slack also counts a connection that was cut.
            if count > 1 and was_planned is not False:
                await self._warn_of_others(count)
            self._was_planned = await self._hear(socket)
        return ConnectionEnd(reason="closed", was_up=True, is_planned=self._was_planned)

    async def confirm(self, envelope: SlackEnvelope) -> None:
        """Tell Slack that an event is stored; if the confirmation is lost, Slack resends the event."""
        if self._socket is None or not await self._socket.send({"envelope_id": envelope.id}):
            self._context.log("confirmation_lost", level="debug")

    async def _warn_of_others(self, count: int) -> None:
        """Warn operators, once, that other connections get a share of the events."""
        context = self._context
        context.log("events_shared", connections=count, level="warning")
        if not self._is_warned:
            self._is_warned = True
            with suppress(ZeroclawError):  # the log has it
                await context.tell(EVENTS_SHARED.about(channel=context.name, count=count))

    async def _await_greeting(self, socket: Socket) -> int:
        """Wait for the greeting; return how many connections the app has, including this one.

        Raises:
            ChannelUnavailable: The first message was not a greeting, or did not come in time.
        """
        greeting: Json | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * CONNECT_S):
                greeting = await socket.next()
        if greeting is None or text(greeting, "type") != "hello":
            message = f"`{self._context.name}`: the gateway sent no greeting"
            raise ChannelUnavailable(message)
        return integer(greeting, "num_connections") or 1

    async def _hear(self, socket: Socket) -> bool:
        """Receive events until the connection ends; return whether Slack had announced the end."""
        while (frame := await socket.next()) is not None:
            kind, id_ = text(frame, "type"), text(frame, "envelope_id")
            if kind == "disconnect":
                # Slack moves connections every few hours, and keeps events for the next one.
                reason = text(frame, "reason")[:50]
                self._context.log("gateway_reconnects", reason=reason, level="debug")
                return True
            if id_:
                self._on_envelope(SlackEnvelope(id=id_, kind=kind, payload=inner(frame, "payload")))
        return False
