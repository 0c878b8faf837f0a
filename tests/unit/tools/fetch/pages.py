"""A web server of a few lines on loopback, and a resolver that answers as a test says."""

import asyncio
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Self

from zeroclaw.host.resolver import NameUnknown


def answer(
    body: bytes | str = b"",
    content_type: str = "text/plain",
    *,
    status: str = "200 OK",
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """A whole answer."""
    data = body.encode() if isinstance(body, str) else body
    named = {"Content-Type": content_type, "Content-Length": str(len(data)), **(headers or {})}
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in named.items() if value)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def redirect(location: str, status: str = "302 Found") -> bytes:
    return answer(status=status, headers={"Location": location})


def without_end(start: bytes, chunk: bytes = b"") -> Iterator[bytes]:
    """A chunk again and again until nobody listens; nothing more after the start without one."""
    return chain([start], repeat(chunk)) if chunk else iter([start, b""])


@dataclass(kw_only=True)
class Pages:
    """Answers each path with what was put there, and keeps the heads of all requests.

    An empty chunk waits until the client is gone; a path with nothing is closed without an answer.
    """

    host: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None
    pages: dict[str, bytes | Iterator[bytes]] = field(
        default_factory=dict[str, "bytes | Iterator[bytes]"]
    )
    heads: list[str] = field(default_factory=list[str])
    names: list[str] = field(default_factory=list[str])
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    async def __aenter__(self) -> Self:
        if self.tls is not None:
            self.tls.sni_callback = lambda _socket, name, _context: self.names.append(name or "")
        self._server = await asyncio.start_server(self._serve, self.host, 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            self.asked.set()
            page = self.pages.get(head.split(" ")[1], iter(()))
            for chunk in iter([page]) if isinstance(page, bytes) else page:
                if not chunk:
                    await reader.read()
                writer.write(chunk)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()
            self.gone.set()


@dataclass(kw_only=True)
class Names:
    """A resolver: each name's answers one after the other, the last of them for ever."""

    answers: Mapping[str, list[tuple[str, ...]]]
    asked: list[str] = field(default_factory=list[str])

    async def __call__(self, name: str) -> tuple[str, ...]:
        self.asked.append(name)
        if name not in self.answers:
            message = "name or service not known"
            raise NameUnknown(message)
        known = self.answers[name]
        return known.pop(0) if len(known) > 1 else known[0]
