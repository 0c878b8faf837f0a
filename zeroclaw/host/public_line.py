"""One connection of the public listener, as HTTP: heads and bodies come in, statuses go out."""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from http.client import responses

import h11

from zeroclaw.errors import ZeroclawError
from zeroclaw.host.crowd import Bounds
from zeroclaw.mount import HookAnswer

CLOSE_S = 1.0
LINGER_BYTES = 64 * 1024
"""Read and thrown away behind an early answer; else the system might cut the answer off."""
READ_BYTES = 16 * 1024
SUCCESS = 300


class NotRead(ZeroclawError):
    """Raised when a body does not come as it must; its text is what is counted."""

    def __init__(self, status: int) -> None:
        """Take what is answered, 0 where nobody listens any more."""
        super().__init__({413: "too large", 408: "slow"}.get(status, "cut"))
        self.status = status


class Line:
    """One connection, as HTTP; `open` comes first."""

    def __init__(self, accepted: socket.socket, bounds: Bounds) -> None:
        """Take over a connection that was accepted, and nothing more."""
        self._accepted = accepted
        self._reader = asyncio.StreamReader(limit=READ_BYTES, loop=asyncio.get_running_loop())
        self._writer: asyncio.StreamWriter | None = None
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=bounds.head_bytes)
        self.bounds = bounds

    @property
    def is_heard(self) -> bool:
        """A request is here to its last byte, and waits for its answer."""
        return self._http.their_state is h11.DONE

    async def open(self, tls: ssl.SSLContext | None) -> None:
        """Shake hands, where TLS is spoken; before, nothing can be read or written.

        Raises:
            OSError: They could not be shaken, or not in time.
        """
        loop = asyncio.get_running_loop()
        protocol = asyncio.StreamReaderProtocol(self._reader, loop=loop)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            self._accepted,
            ssl=tls,
            ssl_handshake_timeout=None if tls is None else self.bounds.head_s,
        )
        self._writer = asyncio.StreamWriter(transport, protocol, self._reader, loop)

    async def next(self) -> h11.Event:
        """Return what came next.

        Raises:
            OSError: The connection broke.
            h11.RemoteProtocolError: It is no HTTP, or larger than a head may be.
        """
        while True:
            event = self._http.next_event()
            if not isinstance(event, type):
                return event
            if event is h11.PAUSED:  # somebody sends on before they were answered
                message = "no answer was waited for"
                raise h11.RemoteProtocolError(message)
            if self._http.they_are_waiting_for_100_continue:
                self._write(h11.InformationalResponse(status_code=100, headers=[]))
            self._http.receive_data(await self._reader.read(READ_BYTES))

    async def answer(self, answer: HookAnswer) -> None:
        """Write a status; where there is no next request, say so, and let it arrive."""
        self._throw_away_what_is_here()
        headers = [("content-length", "0")]
        if answer.retry_after_s:
            headers.append(("retry-after", str(answer.retry_after_s)))
        if not self.is_heard or answer.status >= SUCCESS:
            headers.append(("connection", "close"))
        phrase = responses.get(answer.status, "")  # what Telegram tells of a failed call
        self._write(h11.Response(status_code=answer.status, headers=headers, reason=phrase))
        self._write(h11.EndOfMessage())
        if not self.is_heard:
            await self._linger()

    def goes_on(self) -> bool:
        """Make ready for the next request; False when this was the last."""
        if self._http.our_state is not h11.DONE or not self.is_heard:
            return False
        self._http.start_next_cycle()
        return True

    def cut(self) -> None:
        """End the connection at once, whatever is under way."""
        if self._writer is not None:
            self._writer.transport.abort()
            return
        with suppress(OSError):  # gone by itself
            self._accepted.shutdown(socket.SHUT_RDWR)  # whoever waits for the handshake hears it

    async def aclose(self) -> None:
        """Close the connection; what a peer doesn't read within a second is lost. Safe twice."""
        if self._writer is None:
            self._accepted.close()
            return
        self._writer.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._writer.wait_closed()
        except TimeoutError:
            self.cut()
        except OSError:
            return

    def _throw_away_what_is_here(self) -> None:
        """Read on in what has come already, for mostly that is all."""
        with suppress(h11.RemoteProtocolError):
            while not self.is_heard and isinstance(self._http.next_event(), h11.Data):
                pass

    async def _linger(self) -> None:
        left = LINGER_BYTES
        with suppress(TimeoutError, OSError):
            if self._out.can_write_eof():  # not over TLS
                self._out.write_eof()
            async with asyncio.timeout(CLOSE_S):
                while left > 0 and (thrown := await self._reader.read(READ_BYTES)):
                    left -= len(thrown)

    def _write(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._out.write(data)  # a few hundred bytes, for which no buffer is too full

    @property
    def _out(self) -> asyncio.StreamWriter:
        if self._writer is None:
            message = "the connection is not open"
            raise ConnectionError(message)
        return self._writer


class Request:
    """One request, of which the head is read."""

    def __init__(self, line: Line, head: h11.Request) -> None:
        self._line = line
        self._bounds = line.bounds
        self._headers = {
            name.decode("ascii", "replace"): value.decode("latin-1") for name, value in head.headers
        }

    @property
    def headers(self) -> Mapping[str, str]:
        """By name in lower case."""
        return self._headers

    async def body(self) -> bytes:
        """Read the body; see `HookRequest.body`."""
        said = self._headers.get("content-length", "")
        if (
            said.isdecimal() and int(said) > self._bounds.body_bytes
        ):  # h11 has seen to it that it is short
            raise NotRead(413)
        read = bytearray()
        try:
            async with asyncio.timeout(self._bounds.body_s):
                while isinstance(event := await self._line.next(), h11.Data):
                    read += event.data
                    if len(read) > self._bounds.body_bytes:
                        raise NotRead(413)
        except TimeoutError as error:
            raise NotRead(408) from error
        except (OSError, h11.RemoteProtocolError) as error:
            raise NotRead(0) from error
        return bytes(read)
