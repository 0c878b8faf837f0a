"""Receives events from Discord's gateway, with only the connection class of the library.

The library's client runs each handler as an unsupervised task, which loses the order of events, and
keeps members, users and messages in memory. Its connection class alone does what is needed:
heartbeats, close codes, and session resumption (`discord.gateway`, discord.py 2.7.1). It passes
each event on unchanged, at once and in order.

After a lost connection the session is resumed, and the gateway replays the missed events. If it can't
be resumed, a new session begins without a replay, and the chats' histories are read instead
(`lanes.py`).
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from math import inf

import yarl
from discord.errors import ConnectionClosed
from discord.gateway import DiscordWebSocket, ReconnectWebSocket

from channels._remote.fields import Json, as_object
from channels._remote.http import BROKEN, CONNECT_S, Websocket
from channels._remote.reconnection import ConnectionEnd
from channels.discord import DiscordSettings
from channels.discord.errors import closed
from channels.discord.rest import Rest

OPEN_S = 3 * CONNECT_S
"""Time limit in seconds for the greeting on a new connection."""
MAX_FRAME_BYTES = 32 * 1024 * 1024
"""Largest event accepted; the first one of a large server is several MiB."""
QUIET_S = 60.0
"""Seconds of silence after which a connection is dead; heartbeats are answered every 41 s."""
UNRESUMED_S = 2.0
"""Wait before a new session replaces one that can't be resumed: 1 to 5 ("Resuming", read 2026-11)."""

# Gateway Intents, read 2026-11: servers and their channels; messages in servers; direct messages; and
# the content of messages in servers that don't mention the bot. The last one is privileged, and is
# requested only if the settings need it.
_SERVERS, _SERVER_MESSAGES, _DIRECT_MESSAGES, _CONTENT = 1 << 0, 1 << 9, 1 << 12, 1 << 15

EVENTS = frozenset(
    {"READY", "MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK"}
    | {"INTERACTION_CREATE", "GUILD_CREATE", "THREAD_CREATE", "THREAD_UPDATE", "THREAD_LIST_SYNC"}
)
"""Events that the connection passes on."""

UNREADABLE = (ValueError, KeyError, TypeError, AttributeError)
"""Errors that the library raises for a malformed frame; the connection is then replaced."""

OnEvent = Callable[[str, Json], None]


def intents(settings: DiscordSettings) -> int:
    """Return the smallest set of intents with which the bot receives the events that it needs."""
    in_servers = (_SERVERS | _SERVER_MESSAGES) * (settings.servers != "off")
    return _DIRECT_MESSAGES | in_servers | _CONTENT * settings.reads_everything


class _Socket(DiscordWebSocket):
    """One connection, created without the library's client."""

    def __init__(self, socket: Websocket, gateway: "Gateway") -> None:
        super().__init__(socket, loop=asyncio.get_running_loop())
        self.token = gateway.rest.token
        self.shard_id = self.shard_count = None
        self.is_up = False
        self._max_heartbeat_timeout = QUIET_S
        self._owner = gateway
        self._discord_parsers = {name: partial(self._handle, name) for name in (*EVENTS, "RESUMED")}

    def _handle(self, name: str, data: object) -> None:
        self.is_up = self.is_up or name in {"READY", "RESUMED"}
        self._owner.on_event(name, as_object(data))

    async def identify(self) -> None:
        """Begin a session with the bot's own intents."""
        properties = {"os": sys.platform, "browser": "zeroclaw", "device": "zeroclaw"}
        data: Mapping[str, object] = {
            "token": self.token,
            "properties": properties,
            "intents": self._owner.intents,
        }
        await self.send_as_json({"op": self.IDENTIFY, "d": data})

    async def send_heartbeat(self, data: object) -> None:
        """Send a heartbeat, or close if the last one was not answered ("Heartbeat", read 2026-11).

        The library closes a connection only if it is silent, so it would keep one that still delivers
        events but no longer receives ours. `latency` is set to infinity with each heartbeat and
        to a number with its answer.
        """
        keep_alive = self._keep_alive
        if keep_alive is not None and keep_alive.latency == inf:
            await self.close(4000)
            return
        if keep_alive is not None:
            keep_alive.latency = inf
        await super().send_heartbeat(data)

    async def end(self, code: int) -> None:
        """Close the connection and stop its heartbeat thread; safe to call twice."""
        if self._keep_alive is not None:
            self._keep_alive.stop()
            self._keep_alive = None
        if not self.socket.closed:
            await self.socket.close(code=code)


class Gateway:
    """Receives the events of one account."""

    def __init__(self, rest: Rest, intents: int, on_event: OnEvent) -> None:
        """Connect to nothing yet; `on_event` must not wait or raise."""
        self.rest, self.intents, self.on_event = rest, intents, on_event
        self._last: _Socket | None = None  # the next connection resumes its session

    async def hear(self) -> ConnectionEnd:
        """Open one connection and receive events until it ends."""
        socket: _Socket | None = None
        wait_s = 0.0
        try:
            async with self._connected(self._last) as socket:
                self._last = socket
                while True:
                    await socket.poll_event()
        except ReconnectWebSocket as reconnect:
            reason = "reconnect" if reconnect.resume else "invalid session"
            if not reconnect.resume:
                self._last, wait_s = None, UNRESUMED_S
        except ConnectionClosed as end:
            raise closed(self.rest.http.name, end.code) from end
        except (*BROKEN, *UNREADABLE) as error:
            reason = type(error).__name__
        was_up = socket is not None and socket.is_up
        return ConnectionEnd(reason=reason, was_up=was_up, wait_s=wait_s)

    @asynccontextmanager
    async def _connected(self, last: _Socket | None) -> AsyncGenerator[_Socket]:
        """Open a connection, wait for the greeting, and resume the last session or begin one."""
        resumable = last if last is not None and last.session_id else None
        address = str(resumable.gateway) if resumable else await self.rest.gateway()
        url = f"{address.partition('?')[0]}?v=10&encoding=json"
        websocket = await self.rest.http.websocket(url, max_bytes=MAX_FRAME_BYTES, autoclose=False)
        socket = _Socket(websocket, self)
        is_final = True  # ended by us; closing with 1000 makes Discord show the bot as offline
        try:
            async with asyncio.timeout(OPEN_S):
                socket.gateway = yarl.URL(address)
                await socket.poll_event()
                if resumable is None:
                    await socket.identify()
                else:
                    socket.session_id, socket.sequence = resumable.session_id, resumable.sequence
                    await socket.resume()
            yield socket
        except Exception:
            is_final = False
            raise
        finally:
            await socket.end(1000 if is_final else 4000)
