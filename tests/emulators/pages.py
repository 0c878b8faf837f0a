"""An HTTP server of prepared pages, with ranges, redirects and connections that are cut.

async with Pages() as server:
    server.pages["/m.gguf"] = Page(body=b"…", cut_after=10)
    … f"{server.url}/m.gguf" …
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.fakes.tcp_server import CuttingServer


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
class Pages(CuttingServer):
    """The server, on a loopback port.

    Attributes:
        pages: By path; others are 404.
        asked: Every request: its path and its headers.
    """

    pages: dict[str, Page] = field(default_factory=dict[str, Page])
    asked: list[tuple[str, Mapping[str, str]]] = field(
        default_factory=list[tuple[str, Mapping[str, str]]]
    )

    @property
    def url(self) -> str:
        """`http://127.0.0.1:port`."""
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
