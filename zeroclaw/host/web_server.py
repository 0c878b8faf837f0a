"""Connects an `HttpServer` to an ASGI application (asgi.readthedocs.io, read 2026-11)."""

import asyncio
import socket
from functools import partial
from typing import cast
from urllib.parse import unquote

import h11

from zeroclaw.channel import Log, Refusals
from zeroclaw.foreign import Raised, call
from zeroclaw.host.connections import PROVE, ASGIApp, Bounds, Message, Scope
from zeroclaw.host.http_server import Headers, HttpConnection, HttpServer

_ASGI_VERSIONS = {"version": "3.0", "spec_version": "2.3"}


def web_server(
    bound: socket.socket, application: ASGIApp, *, bounds: Bounds, log: Log
) -> HttpServer:
    """Return a server that serves an application on a bound socket."""
    handle = partial(_answer, application, log)
    return HttpServer(bound, handle, bounds=bounds, log=log, refused=Refusals(log, "local_refused"))


async def _answer(
    application: ASGIApp, log: Log, connection: HttpConnection, head: h11.Request
) -> None:
    request = _Request(connection, head)
    result = await call(lambda: application(request.scope, request.receive, request.send))
    if isinstance(result, Raised):
        log("application_failed", reason=result.line, level="error")
    elif not request.is_answered:
        log("application_failed", reason="it did not answer", level="error")
    if not request.is_answered:
        connection.answer(500, [(b"connection", b"close")])


class _Request:
    """One request, with the three ASGI arguments for the application."""

    def __init__(self, connection: HttpConnection, head: h11.Request) -> None:
        self._connection = connection
        self._is_head = head.method == b"HEAD"
        self._is_read = self._is_gone = False
        self.is_answered = False  # or the client is gone
        path, _, query = head.target.partition(b"?")
        self.scope: Scope = {
            "type": "http",
            "asgi": _ASGI_VERSIONS,
            "http_version": head.http_version.decode("ascii"),
            "scheme": "http",
            "method": head.method.decode("ascii"),
            "root_path": "",
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "headers": list(head.headers),
            PROVE: self._prove,
        }

    async def receive(self) -> Message:
        """Return the next piece of the body; after its end, wait until the peer is gone and report that."""
        connection = self._connection
        try:
            if self._is_read:
                await connection.wait_until_gone()
            else:
                async with asyncio.timeout(connection.bounds.body_s):
                    data = await connection.body()
                self._is_read = connection.has_full_request
                return {"type": "http.request", "body": data, "more_body": not self._is_read}
        except (OSError, h11.RemoteProtocolError):
            connection.cut()
        self._is_gone = self.is_answered = True
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Write a part of the answer and wait for room; does nothing if the client is gone."""
        if self._is_gone:
            return
        if message["type"] == "http.response.start":
            self.is_answered = True
            headers = cast("Headers", message.get("headers", ()))
            self._connection.start(cast("int", message["status"]), headers)
        else:
            body = b"" if self._is_head else cast("bytes", message.get("body", b""))
            self._connection.write(h11.Data(data=body))
            if not message.get("more_body"):
                self._connection.write(h11.EndOfMessage())
        try:
            await self._connection.drained()
        except OSError:
            self._is_gone = True

    def _prove(self) -> None:
        self._connection.is_proven = True
