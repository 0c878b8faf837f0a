"""Hear Discord's gateway, by the library's own connection and nothing around it.

The library's client runs each handler as a loose task, which loses the order of events, and keeps
members, users and messages in memory. Its connection alone does what is wanted of it: heartbeats,
close codes, and the session by which it resumes (`discord.gateway`, discord.py 2.7.1). Each event is
handed over as it came, at once and in order.

A session that is cut is resumed, and the gateway tells again what was missed. One that can't be
resumed begins anew, and nothing is told again: then the histories are read (`lanes.py`).
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from math import inf

import yarl
from discord.errors import ConnectionClosed
from discord.gateway import DiscordWebSocket, ReconnectWebSocket

from channels._remote.fields import Json, as_object
from channels._remote.http import BROKEN, CONNECT_S, Websocket
from channels._remote.kept import Ended
from channels.discord.errors import closed
from channels.discord.rest import Rest

OPEN_S = 3 * CONNECT_S
"""Seconds until a connection stands and Discord has greeted."""
MOST_FRAME_BYTES = 32 * 1024 * 1024
"""Of one event; a large server's first is several MiB."""
QUIET_S = 60.0
"""Seconds without a word after which a connection is dead: heartbeats are answered each 41 s."""
UNRESUMED_S = 2.0
"""Before a session that can't be resumed begins anew: 1 to 5 ("Resuming", read 2026-11)."""

# Gateway Intents, read 2026-11: servers and their channels; messages in them, and in direct chats.
# What is said in servers to others is privileged, and is asked for only where it is used.
_SERVERS, _SERVER_MESSAGES, _DIRECT_MESSAGES, _CONTENT = 1 << 0, 1 << 9, 1 << 12, 1 << 15

HEARD = frozenset(
    {"READY", "MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK"}
    | {"INTERACTION_CREATE", "GUILD_CREATE", "THREAD_CREATE", "THREAD_UPDATE", "THREAD_LIST_SYNC"}
)
"""Events that are handed over."""

UNREADABLE = (ValueError, KeyError, TypeError, AttributeError)
"""What the library raises of a frame that is none of Discord's; the connection is made anew."""

OnEvent = Callable[[str, Json], None]


def intents(*, servers: bool, content: bool) -> int:
    """Return the fewest intents that serve."""
    return _DIRECT_MESSAGES | (_SERVERS | _SERVER_MESSAGES) * servers | _CONTENT * content


class _Socket(DiscordWebSocket):
    """One connection. The library makes these of its client; here they are made without one."""

    def __init__(self, socket: Websocket, *, token: str, intents: int, on_event: OnEvent) -> None:
        super().__init__(socket, loop=asyncio.get_running_loop())
        self.token = token
        self.shard_id = None
        self.shard_count = None
        self.is_up = False
        self._intents = intents
        self._max_heartbeat_timeout = QUIET_S
        self._on_event = on_event
        self._discord_parsers = {name: self._handing_over(name) for name in HEARD | {"RESUMED"}}

    def _handing_over(self, name: str) -> Callable[[object], None]:
        def hand_over(data: object) -> None:
            self.is_up = self.is_up or name in {"READY", "RESUMED"}
            self._on_event(name, as_object(data))

        return hand_over

    async def identify(self) -> None:
        """Begin a session, with what this bot hears and nothing else."""
        properties = {"os": sys.platform, "browser": "zeroclaw", "device": "zeroclaw"}
        data: Mapping[str, object] = {
            "token": self.token,
            "properties": properties,
            "intents": self._intents,
        }
        await self.send_as_json({"op": self.IDENTIFY, "d": data})

    async def send_heartbeat(self, data: object) -> None:
        """Beat, or leave a connection that did not answer the last beat ("Heartbeat", read 2026-11).

        The library leaves only after silence: one that still tells of events, and hears nothing,
        would be kept for ever. Its figure of the last answer shows whether one came.
        """
        beats = self._keep_alive
        if beats is not None and beats.latency == inf:
            await self.close(4000)
            return
        if beats is not None:
            beats.latency = inf
        await super().send_heartbeat(data)

    async def end(self, code: int) -> None:
        """End the connection, and the thread that keeps it alive; safe twice."""
        if self._keep_alive is not None:
            self._keep_alive.stop()
            self._keep_alive = None
        if not self.socket.closed:
            await self.socket.close(code=code)


class Gateway:
    """Hears for one account."""

    def __init__(self, rest: Rest, intents: int, on_event: OnEvent) -> None:
        """Hold what is needed; `on_event` never waits and never raises."""
        self._rest = rest
        self._intents = intents
        self._on_event = on_event
        self._last: _Socket | None = None  # by whose session the next one goes on

    async def hear(self) -> Ended:
        """Make one connection, and hear by it until it ends."""
        socket: _Socket | None = None
        wait_s = 0.0
        try:
            async with self._connected(self._last) as socket:
                self._last = socket
                while True:
                    await socket.poll_event()
        except ReconnectWebSocket as again:
            why = "reconnect" if again.resume else "invalid session"
            if not again.resume:
                self._last, wait_s = None, UNRESUMED_S
        except ConnectionClosed as end:
            raise closed(self._rest.name, end.code) from end
        except (*BROKEN, *UNREADABLE) as error:
            why = type(error).__name__
        return Ended(why=why, was_up=socket is not None and socket.is_up, wait_s=wait_s)

    @asynccontextmanager
    async def _connected(self, last: _Socket | None) -> AsyncGenerator[_Socket]:
        """Open a connection that has greeted, and was told who resumes or begins."""
        known = last if last is not None and last.session_id else None
        address = self._rest.checked(str(known.gateway)) if known else await self._rest.gateway()
        url = yarl.URL(address).with_query(v=10, encoding="json")
        opened = await self._rest.http.websocket(str(url), most=MOST_FRAME_BYTES, autoclose=False)
        socket = _Socket(
            opened, token=self._rest.token, intents=self._intents, on_event=self._on_event
        )
        is_over = True  # by us; Discord then shows the bot as away
        try:
            async with asyncio.timeout(OPEN_S):
                socket.gateway = yarl.URL(address)
                await socket.poll_event()
                if known is None:
                    await socket.identify()
                else:
                    socket.session_id, socket.sequence = known.session_id, known.sequence
                    await socket.resume()
            yield socket
        except Exception:
            is_over = False
            raise
        finally:
            await socket.end(1000 if is_over else 4000)
