"""The web page as a stage for scenes: what its script does, without a browser.

The one person who is there keeps what they have written until the daemon says that it is stored, and
posts it again after a kill, with the same id; as a reload does, each connection begins anew.
"""

import asyncio
import itertools
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

import httpx

from tests.fakes.web_page import Stream
from tests.faults.on_terminal import AGAIN_S, Heard, Lost, on_local
from tests.faults.stage import Open
from zeroclaw.cli.chat.connection import Line
from zeroclaw.host.clock import SystemClock
from zeroclaw.host.control import DaemonUnreachable, request

_PATIENCE = httpx.Timeout(30, pool=None)


class Page:
    """A `Client`: logs in with each daemon, follows its stream, posts what is not known to be stored."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._numbers = itertools.count()
        self._files: dict[str, bytes] = {}
        self._more = asyncio.Event()
        self.pending: dict[str, Line] = {}

    def say(self, text: str, files: Mapping[str, bytes] | None = None) -> str:
        claimed: list[Line] = []
        for name, content in (files or {}).items():
            key = f"uploaded-{next(self._numbers)}"
            self._files[key] = content
            claimed.append({"id": key, "name": name, "type": "", "size": len(content)})
        return self._keep({"text": text, "files": claimed})

    def press(self, approval: str, choice: str, card: str) -> str:
        return self._keep({"approval": approval, "choice": choice, "card": card})

    def again(self, key: str, line: Line) -> None:
        self.pending[key] = line
        self._more.set()

    def _keep(self, line: Line) -> str:
        key = f"made-by-page-{next(self._numbers)}"
        self.again(key, {"id": key, **line})
        return key

    async def run(self, heard: Heard, lost: Lost) -> None:
        """Stay connected, whichever daemon there is, until cancelled."""
        while True:
            with suppress(DaemonUnreachable):
                status = await request(self._data, {"call": "status"})
                try:
                    await self._talk(str(status["login_url"]), heard)
                except* (httpx.HTTPError, StopAsyncIteration):
                    lost()
            await SystemClock().sleep(AGAIN_S)

    async def _talk(self, login: str, heard: Heard) -> None:
        async with (
            httpx.AsyncClient(
                base_url=login.partition("?")[0],
                headers={"sec-fetch-site": "same-origin"},
                timeout=_PATIENCE,
                trust_env=False,
            ) as client,
            asyncio.TaskGroup() as group,
        ):
            (await client.get(login)).raise_for_status()
            async with client.stream("GET", "events") as answer:
                answer.raise_for_status()
                posting = group.create_task(self._post_all(client, heard))
                try:
                    await self._hear_all(Stream(chunks=answer.aiter_bytes()), heard)
                finally:
                    posting.cancel()

    async def _hear_all(self, stream: Stream, heard: Heard) -> None:
        while True:
            name, data = await stream.hear()
            heard({"type": name, **data})
            for item in cast("list[Line]", data.get("items", ())):
                heard({"type": "item", **item})
            if name == "snapshot":
                heard({"type": "live"})

    async def _post_all(self, client: httpx.AsyncClient, heard: Heard) -> None:
        """Post what is pending, in order and one at a time, until each is acknowledged or refused."""
        while True:
            for key, line in tuple(self.pending.items()):
                for file in cast("list[Line]", line.get("files", ())):
                    name = str(file["id"])
                    await client.post(f"files/{name}", content=self._files[name])
                answer = await client.post("answers" if "choice" in line else "messages", json=line)
                if answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
                    await SystemClock().sleep(AGAIN_S)
                    break
                self.pending.pop(key)
                heard({"type": "received"})
            self._more.clear()
            if not self.pending:
                await self._more.wait()


def on_web(*, channel: Mapping[str, object]) -> Open:
    """Return what opens it, with these keys of the channel's configuration."""
    return on_local("web", Page, channel)
