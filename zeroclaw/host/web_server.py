"""uvicorn as the local listener uses it: no signals, no polling, and a bound for every stage.

uvicorn waits for ever for the rest of a head or of a body, so that whoever sends only the beginning
keeps a place. Here a connection is cut when a stage takes longer than its bound:

    head ── (body) ── the application's turn, without a bound ── head of the next request ── …

There is no setting for these bounds, so the protocol is derived from uvicorn's. Imported when
serving begins, in a thread, because loading the library takes a moment.
"""

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import cast

import h11
import uvicorn
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from zeroclaw.host.connections import (
    PROVE,
    ASGIApp,
    Bounds,
    ConnectionPool,
    Receive,
    Refusals,
    Scope,
    Send,
)

GRACE_S = 1
"""Whole seconds that requests get to end by themselves when the listener closes."""
CLOSE_S = 5.0


class Server:
    """Runs uvicorn by its `startup` and `shutdown`.

    Its `serve` takes the process's signals, and looks ten times a second whether it is to end.
    """

    def __init__(self, application: ASGIApp, bounds: Bounds, refusals: Refusals) -> None:
        """Serve an application within bounds; a connection that is cut is a refusal."""
        pool = ConnectionPool["_Connection"](bounds.connections, refusals)
        self._config = uvicorn.Config(
            application,
            interface="asgi3",
            lifespan="off",
            http=cast("type[asyncio.Protocol]", partial(_Connection, pool, bounds)),
            ws="none",
            loop="none",
            log_config=None,
            log_level="error",  # else each line of nonsense that somebody sends is one of ours
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_S,
        )
        self._config.load()

    async def run_bound(self, bound: socket.socket, stopping: asyncio.Event) -> None:
        """Answer until told to stop, then end every request and connection."""
        server = uvicorn.Server(self._config)
        server.lifespan = self._config.lifespan_class(self._config)
        try:
            await server.startup(sockets=[bound])
            await stopping.wait()
        finally:
            if server.started:
                async with asyncio.timeout(CLOSE_S):
                    await server.shutdown(sockets=[bound])
            requests = set(server.server_state.tasks)
            if requests:
                await asyncio.wait(requests, timeout=CLOSE_S)


class _Connection(H11Protocol):
    """One connection, with a place in the pool and a bound for its stage."""

    def __init__(
        self,
        pool: ConnectionPool["_Connection"],
        bounds: Bounds,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._pool = pool
        self._bounds = bounds
        self._stage: tuple[object, bool] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self.app = partial(_provable, self.app, partial(pool.prove, self))

    @property
    def is_heard(self) -> bool:
        """A request is here to its last byte, and waits for its answer."""
        return self.conn.their_state is h11.DONE

    def cut(self) -> None:
        """End the connection at once, whatever is under way."""
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place, or be cut."""
        super().connection_made(cast("asyncio.Transport", transport))
        if self._pool.enter(self):
            self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._pool.leave(self)
        self._stage = None
        self._unset_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; bytes that do not end a stage do not lengthen it."""
        super().data_received(data)
        self._set_deadline()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._set_deadline()

    def _set_deadline(self) -> None:
        is_answered = not self.cycle or self.cycle.response_complete
        stage = (self.conn.their_state, is_answered)
        if stage == self._stage or self.transport.is_closing():
            return
        self._stage = stage
        self._unset_deadline()
        match stage:
            case (h11.IDLE, _):
                bound_s = self._head_s()
            case (h11.SEND_BODY, True):  # of a request that was refused by its head
                bound_s = self._bounds.head_s
            case (h11.SEND_BODY, False):
                bound_s = self._bounds.body_s
            case _:
                return
        self._deadline = self.loop.call_later(bound_s, self.cut)

    def _head_s(self) -> float:
        is_proven = self._pool.is_proven(self)
        return self._bounds.keep_s if is_proven else self._bounds.head_s

    def _unset_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


async def _provable(
    application: ASGIApp,
    prove: Callable[[], None],
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    await application({**scope, PROVE: prove}, receive, send)
