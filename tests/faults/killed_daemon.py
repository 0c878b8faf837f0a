"""The daemon under the control of a test: a composition root that reports its steps and waits.

    python -m tests.faults.killed_daemon run --config FILE

It reports each commit and each call to a channel to the test (`tests/faults/kill_points.py`), before
and after; the whole process stops until the test lets it continue or kills it. Everything else is the
product's own.
"""

import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from tests.journeys.daemon_process import say_ready
from zeroclaw.channel import (
    Admit,
    Capabilities,
    Card,
    Channel,
    ChannelContext,
    Log,
    LookupResult,
    Outcome,
    Postable,
    ToolProgress,
)
from zeroclaw.cli.configuration import load, start_of
from zeroclaw.clock import Clock
from zeroclaw.daemon import Openers, Start, run
from zeroclaw.daemon.config_check import ChannelPart
from zeroclaw.daemon.store_watch import WatchedStore
from zeroclaw.envelope import Address, Attachment, MessageRef, Outgoing, OutgoingFile, Rendered
from zeroclaw.host import logs
from zeroclaw.store import Commit, Put, Store
from zeroclaw.stores.sqlite import open_store
from zeroclaw.value import replace

PORT_VARIABLE = "FAULTS_INSTANTS_PORT"
LOUD_VARIABLE = "FAULTS_LOUD"
"""Set for a log at its most verbose."""
T = TypeVar("T")


class TestConnection:
    """The connection to the test."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))

    def report(self, what: str, name: str, when: str, **details: object) -> None:
        """Report a kill point and wait for the test; blocks on purpose."""
        message = {"what": what, "name": name, "when": when, **details}
        self._socket.sendall(json.dumps(message).encode() + b"\n")
        if not self._socket.recv(1):
            # The test has ended.
            os._exit(1)


class ReportingStore(WatchedStore):
    """A store that reports its commits."""

    def __init__(self, store: Store, connection: TestConnection) -> None:
        super().__init__(store, on_failed=lambda _: None, on_committed=lambda _: None)
        self._connection = connection

    async def commit(self, commit: Commit) -> None:
        self._report(commit, "before")
        outcome = "failed"
        try:
            await super().commit(commit)
            outcome = "after"
        finally:
            self._report(commit, outcome)

    def _report(self, commit: Commit, when: str) -> None:
        rows = [
            (write.kind.value, write.key, write.state, write.place)
            for write in commit.writes
            if isinstance(write, Put)
        ]
        where = commit.conversation or ""
        self._connection.report("commit", commit.point.value, when, where=where, rows=rows)


class ReportingChannel:
    """A channel that reports its outgoing calls."""

    def __init__(self, channel: Channel, connection: TestConnection) -> None:
        self._channel = channel
        self._connection = connection

    @property
    def name(self) -> str:
        return self._channel.name

    @property
    def capabilities(self) -> Capabilities:
        return self._channel.capabilities

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        await self._channel.receive(admit, ready)

    def render(self, markdown: str) -> Rendered:
        return self._channel.render(markdown)

    def measure(self, rendered: Rendered) -> int:
        return self._channel.measure(rendered)

    async def send(self, to: Address, outgoing: Outgoing) -> MessageRef:
        return await self._reported("send", to, self._channel.send(to, outgoing))

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        return await self._reported("send", to, self._channel.send_file(to, file))

    def mark(self, to: Address) -> str:
        return self._channel.mark(to)

    async def lookup(
        self, to: Address, content: Postable, *, since: str, apart: frozenset[str], before: str = ""
    ) -> LookupResult:
        call = self._channel.lookup(to, content, since=since, apart=apart, before=before)
        return await self._reported("lookup", to, call)

    async def edit(self, ref: MessageRef, outgoing: Outgoing) -> None:
        await self._reported("edit", ref.address, self._channel.edit(ref, outgoing))

    async def delete(self, ref: MessageRef) -> None:
        await self._reported("delete", ref.address, self._channel.delete(ref))

    async def ask(self, to: Address, card: Card) -> MessageRef:
        return await self._reported("ask", to, self._channel.ask(to, card))

    async def settle(self, ref: MessageRef, outcome: Outcome) -> None:
        await self._reported("settle", ref.address, self._channel.settle(ref, outcome))

    async def typing(self, to: Address, doing: tuple[ToolProgress, ...] = ()) -> None:
        await self._channel.typing(to, doing)

    async def preview(self, to: Address, outgoing: Outgoing) -> None:
        await self._reported("preview", to, self._channel.preview(to, outgoing))

    def direct_address(self, sender: str) -> Address | None:
        return self._channel.direct_address(sender)

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
        return await self._channel.fetch(attachment, max_bytes=max_bytes)

    async def aclose(self) -> None:
        await self._channel.aclose()

    async def _reported(self, name: str, to: Address, call: Awaitable[T]) -> T:
        self._connection.report("call", name, "before", where=to.chat)
        outcome = "failed"
        try:
            result = await call
            outcome = "after"
        finally:
            self._connection.report("call", name, outcome, where=to.chat)
        return result


class ReportingPart(ChannelPart):
    """A channel whose calls are reported."""

    connection: TestConnection

    def make(self, context: ChannelContext) -> Channel:
        return ReportingChannel(super().make(context), self.connection)


def reporting(start: Start, connection: TestConnection) -> Start:
    """Return the start of a daemon whose channels report their calls."""
    parts = tuple(
        ReportingPart(
            name=part.name,
            manifest=part.manifest,
            settings=part.settings,
            secrets=part.secrets,
            is_public=part.is_public,
            connection=connection,
        )
        for part in start.checked.channels
    )
    return replace(start, checked=replace(start.checked, channels=parts))


def make_openers(connection: TestConnection) -> Openers:
    """Return the opener of the reporting store."""

    async def open_watched(directory: Path, *, clock: Clock, log: Log) -> Store:
        return ReportingStore(await open_store(directory, clock=clock, log=log), connection)

    return Openers(store=open_watched)


def main() -> None:
    """Run the daemon; takes `run --config FILE` like the product's own command."""
    connection = TestConnection(int(os.environ[PORT_VARIABLE]))
    loaded = load(Path(sys.argv[sys.argv.index("--config") + 1]))
    start = reporting(start_of(loaded, os.environ), connection)
    level: logs.Level = "debug" if LOUD_VARIABLE in os.environ else "info"
    stop_logging = logs.set_up(redact=start.checked.redactor.redact, form="lines", level=level)
    try:
        run(start, on_ready=say_ready, openers=make_openers(connection))
    finally:
        stop_logging()


if __name__ == "__main__":
    main()
