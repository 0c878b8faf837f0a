"""A scripted OpenAI-compatible endpoint with control over every byte it sends.

In this process:    async with ModelServer() as server: server.say("hi") …
In its own:         async with ModelProcess() as server: … the same
By hand:            python -m tests.emulators.model_server --port 8200

Control API of the own process: POST /_control/script · POST /_control/open {"gate"} ·
GET /_control/reached?gate= (answers when a stream waits there) · GET /_control/requests ·
GET /_control/state (requests, disconnects) · POST /_control/reset.
"""

import argparse
import asyncio
import http.client
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import parse_qs, urlsplit

from tests.emulators.model_scripts import (
    Cut,
    Head,
    Json,
    Planned,
    Received,
    ScriptBook,
    Send,
    Wait,
    delta,
    ending,
    from_json,
    is_array,
    is_object,
    role,
    to_json,
)
from tests.fakes.tcp_server import CuttingServer
from zeroclaw.value import Value, replace


@dataclass(eq=False, kw_only=True)
class LocalGate:
    """A gate of a server in this process."""

    name: str
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    was_reached: asyncio.Event = field(default_factory=asyncio.Event)

    def open(self) -> None:
        self.opened.set()

    async def reached(self) -> None:
        await self.was_reached.wait()


class _Request(Value):
    """Any request, read to its end."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class _ConnectionClosed(Exception):
    """The script, or the client, ended the connection."""


class ModelServer(ScriptBook, CuttingServer):
    """The endpoint on a loopback port.

    Attributes:
        requests: Every request for an answer, in order.
        disconnects: Number of clients that disconnected before the end of their answer.
        open_connections: Number of connected clients, idle ones included.
        taken_connections: Number of all connections so far.
        listed: More fields of the only model in its list of models.
    """

    def __init__(self, *, port: int = 0) -> None:
        self.requests: list[Received] = []
        self.disconnects = 0
        self.listed: dict[str, object] = {}
        self.open_connections = self.taken_connections = 0
        self.port = port
        self._planned: list[Planned] = []
        self._gates: dict[str, LocalGate] = {}
        self._changed = asyncio.Event()

    @property
    def url(self) -> str:
        """The base address, up to and with `/v1`."""
        return f"http://127.0.0.1:{self.port}/v1"

    def add(self, planned: Planned) -> None:
        self._planned.append(planned)

    def gate(self, name: str = "") -> LocalGate:
        """Return the gate of this name; without a name, a new one."""
        name = name or f"gate {len(self._gates)}"
        return self._gates.setdefault(name, LocalGate(name=name))

    def reset(self) -> None:
        """Forget scripts and requests."""
        self._planned.clear()
        self.requests.clear()
        self.disconnects = 0

    async def until(self, condition: Callable[["ModelServer"], bool]) -> None:
        """Wait for requests, disconnects or connections."""
        while not condition(self):
            await self._change()

    async def _change(self) -> None:
        await self._changed.wait()

    def _note(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # --- one connection ---

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open_connections += 1
        self.taken_connections += 1
        try:
            with suppress(_ConnectionClosed):
                while True:
                    await self._route(await _read(reader), reader, writer)
        finally:
            writer.transport.abort()
            self.open_connections -= 1
            self._note()

    async def _route(
        self, request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        address = urlsplit(request.target)
        match request.method, address.path:
            case "POST", path if path.endswith("/chat/completions"):
                body: object = json.loads(request.body)
                assert is_object(body)
                received = Received(path=path, headers=request.headers, body=body)
                steps = self._choose(received)
                self.requests.append(received)
                self._note()
                await self._play(steps, reader, writer)
            case "GET", "/health":
                await _answer(writer, {"status": "ok"})
            case "GET", path if path.endswith("/models"):
                await _answer(
                    writer, {"object": "list", "data": [{"id": "scripted", **self.listed}]}
                )
            case _, path if path.startswith("/_control/"):
                await _answer(writer, await self._control(path, address.query, request.body))
            case _:
                await _answer(writer, {"error": {"message": "no such address"}}, status=404)

    def _choose(self, received: Received) -> Planned:
        """Return the script for a request: a keyed one, else the next, else an echo."""
        for is_keyed in (True, False):
            for index, planned in enumerate(self._planned):
                if bool(planned.key) == is_keyed and planned.matches(received):
                    if planned.times == 1:
                        del self._planned[index]
                    elif planned.times is not None:
                        self._planned[index] = replace(planned, times=planned.times - 1)
                    return planned
        echo = delta(content=received.last_user or "(nothing)")
        return Planned(steps=(Head(), role(), echo, *ending("stop", (1, 1))))

    async def _play(
        self, planned: Planned, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            for step in planned.steps:
                match step:
                    case Head():
                        writer.write(_head(step.status, step.headers))
                    case Send() if step.data:
                        writer.write(b"%x\r\n%b\r\n" % (len(step.data), step.data))
                    case Send():
                        pass  # an empty chunk would end the body
                    case Wait():
                        await writer.drain()
                        await self._wait(self.gate(step.gate), reader)
                    case Cut():
                        await writer.drain()
                        if writer.can_write_eof():  # sends the end after the written bytes
                            writer.write_eof()
                        raise _ConnectionClosed
                await writer.drain()
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        except ConnectionError:
            self.disconnects += 1
            self._note()
            raise

    async def _wait(self, gate: LocalGate, reader: asyncio.StreamReader) -> None:
        gate.was_reached.set()

        async def watch() -> None:
            with suppress(ConnectionError):
                await reader.read(1)

        async with asyncio.TaskGroup() as group:
            opening = group.create_task(gate.opened.wait())
            watching = group.create_task(watch())
            opening.add_done_callback(lambda _: watching.cancel())
            watching.add_done_callback(lambda _: opening.cancel())
        if not gate.opened.is_set():
            raise ConnectionAbortedError("the client has disconnected")

    # --- the control API ---

    async def _control(self, path: str, query: str, body: bytes) -> object:
        parameters: object = json.loads(body or b"{}")
        assert is_object(parameters)
        match path.removeprefix("/_control/"):
            case "script":
                self.add(from_json(parameters))
            case "open":
                self.gate(str(parameters["gate"])).open()
            case "reached":
                await self.gate(parse_qs(query)["gate"][0]).reached()
            case "requests":
                return [
                    {"path": item.path, "headers": dict(item.headers), "body": item.body}
                    for item in self.requests
                ]
            case "state":
                return {"requests": len(self.requests), "disconnects": self.disconnects}
            case "reset":
                self.reset()
            case other:
                return {"error": f"no control `{other}`"}
        return {}


class RemoteGate:
    """A gate of a server in its own process."""

    def __init__(self, name: str, ask: Callable[[str, str, Json | None], object]) -> None:
        self.name = name
        self._ask = ask

    def open(self) -> None:
        self._ask("POST", "open", {"gate": self.name})

    async def reached(self) -> None:
        await asyncio.to_thread(self._ask, "GET", f"reached?gate={self.name}", None)


class ModelProcess(ScriptBook):
    """The same endpoint in a process of its own; it ends with the block."""

    def __init__(self) -> None:
        self._port = 0
        self._gates = 0
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """The base address, up to and with `/v1`."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def requests(self) -> list[Received]:
        """Every request for an answer, in order."""
        items = self._ask("GET", "requests", None)
        assert is_array(items)
        return [_received(item) for item in items if is_object(item)]

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.emulators.model_server", stdout=asyncio.subprocess.PIPE
        )
        assert self._process.stdout is not None
        self._port = int((await self._process.stdout.readline()).rsplit(b":", 1)[1].split(b"/")[0])
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    def add(self, planned: Planned) -> None:
        self._ask("POST", "script", to_json(planned))

    def gate(self, name: str = "") -> RemoteGate:
        """Return the gate of this name; without a name, a new one. Names have no spaces."""
        self._gates += 1
        return RemoteGate(name or f"gate-{self._gates}", self._ask)

    def reset(self) -> None:
        """Forget scripts and requests."""
        self._ask("POST", "reset", None)

    def _ask(self, method: str, path: str, body: Json | None) -> object:
        connection = http.client.HTTPConnection("127.0.0.1", self._port)
        try:
            connection.request(method, f"/_control/{path}", body=json.dumps(body or {}))
            answer: object = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return answer


def _received(item: Json) -> Received:
    headers, body = item["headers"], item["body"]
    assert is_object(headers)
    assert is_object(body)
    named = {name: str(value) for name, value in headers.items()}
    return Received(path=str(item["path"]), headers=named, body=body)


async def _read(reader: asyncio.StreamReader) -> _Request:
    """Read one request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.rstrip().split("\r\n")
    method, target, _ = line.split(" ")
    pairs = (header.partition(":") for header in rest)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return _Request(method=method, target=target, headers=headers, body=body)


async def _answer(writer: asyncio.StreamWriter, body: object, *, status: int = 200) -> None:
    data = json.dumps(body).encode()
    writer.write(_head(status, {"content-type": "application/json"}))
    writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data))
    await writer.drain()


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {'OK' if status < 400 else 'Refused'}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "transfer-encoding: chunked", "", ""]).encode()


async def _run(port: int) -> None:
    async with ModelServer(port=port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    """Serve until killed; the first line of output is the base address."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    with suppress(KeyboardInterrupt):
        asyncio.run(_run(parser.parse_args().port))


if __name__ == "__main__":
    main()
