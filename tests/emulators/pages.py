"""An HTTP server of prepared pages, with ranges, redirects and connections that are cut.

async with Pages() as server:
    server.pages["/m.gguf"] = Page(body=b"…", cut_after=10)
    … f"{server.url}/m.gguf" …
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What is answered.

    Attributes:
        ranges: `Range: bytes=N-` is obeyed.
        cut_after: The connection is cut after so many bytes of the body.
        cut_when: Not before this is set; at once when None.
        hangs: Nothing is answered, ever.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    ranges: bool = True
    cut_after: int | None = None
    cut_when: asyncio.Event | None = None
    hangs: bool = False


@dataclass(eq=False, kw_only=True)
class Pages:
    """The server, on a loopback port.

    Attributes:
        pages: By path; others are 404.
        asked: Every request: its path and its headers.
    """

    pages: dict[str, Page] = field(default_factory=dict[str, Page])
    asked: list[tuple[str, Mapping[str, str]]] = field(
        default_factory=list[tuple[str, Mapping[str, str]]]
    )
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    @property
    def url(self) -> str:
        """`http://127.0.0.1:port`."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *rest = head.rstrip().split("\r\n")
            pairs = (one.partition(":") for one in rest)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            path = line.split(" ")[1]
            self.asked.append((path, headers))
            page = self.pages.get(path, Page(status=404))
            if page.hangs:
                await reader.read()
            writer.write(answer(page, headers.get("range", "")))
            await writer.drain()
            if page.cut_when is not None:
                await page.cut_when.wait()
            if writer.can_write_eof():
                writer.write_eof()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return  # a cancelled connection is how the server closes
        finally:
            writer.close()
            self._tasks.discard(task)


def answer(page: Page, wanted: str) -> bytes:
    """The bytes of an answer, a part of it where a part was asked for."""
    body, status = page.body, page.status
    headers = {"Content-Length": str(len(body)), "Connection": "close", **page.headers}
    start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
    if wanted and page.ranges and page.status == 200:
        status = 206 if start < len(body) else 416
        headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        body = body[start:]
        headers["Content-Length"] = str(len(body))
    lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body[: page.cut_after]
