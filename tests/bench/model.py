"""A model that answers at once, in a process of its own, so that the daemon never waits for it.

It does as little as it can: a request is read whole, its newest user message picks the answer, and
the answer's bytes were made before. The user's words:

    text …      40 pieces of text, all in one write
    tool …      one call of `list_files`, and after its result the same text
    stream …    200 pieces, one every 5 ms
    slow …      200 pieces, one every 20 ms; the last is `ended-SECONDS`, when it was written
    hold …      never answers
    expressions …  twelve calls of `search_files` that take all they may, then the same text
    keys …      twelve calls of `read_file` on what is slow to redact, then the same text
    book …      twelve calls of `read_attachment` on the first file, then the same text

`GET …/shared` tells how much of the requests for these stood at the beginning of the next one, which is
what an endpoint can keep of its work: bytes of both, since the last time.

Run as `python -m tests.bench.model`; the first line of output is the base address.
"""

import asyncio
import json
import sys
import time
from typing import TypedDict, cast

PIECES = 40
STREAMED = 200
STREAM_EVERY_S = 0.005
SLOW_EVERY_S = 0.02
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class _Message(TypedDict):
    role: str
    content: str


class _Body(TypedDict):
    messages: list[_Message]


def _event(delta: object, finish: str | None = None) -> bytes:
    chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    data = b"data: " + json.dumps(chunk).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


_END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
_STOP = _event({}, "stop") + _END
_TEXT = b"".join((_HEAD, *(_event({"content": f"word{n} "}) for n in range(PIECES)), _STOP))
_STREAM = tuple(_event({"content": f"word{n} "}) for n in range(STREAMED))
_CALL = {
    "index": 0,
    "id": "call_1",
    "type": "function",
    "function": {"name": "list_files", "arguments": '{"path": "."}'},
}


def _batch(name: str, arguments: object) -> bytes:
    function = {"name": name, "arguments": json.dumps(arguments)}
    calls = [
        {"index": n, "id": f"call_{n}", "type": "function", "function": function} for n in range(12)
    ]
    return _HEAD + _event({"tool_calls": calls}) + _event({}, "tool_calls") + _END


_BATCHES = {
    "expressions": _batch(
        "search_files", {"pattern": "[ab]*a[ab]{900}c", "regex": True, "path": "."}
    ),
    "keys": _batch("read_file", {"path": "keys"}),
    "book": _batch("read_attachment", {"id": 1}),
}
_TOOL = _HEAD + _event({"tool_calls": [_CALL]}) + _event({}, "tool_calls") + _END


_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class _Shared:
    """What each request has in common with the one before it; of one conversation at a time."""

    def __init__(self) -> None:
        self._before = b""
        self._counts = [0, 0]

    def take(self, body: bytes) -> None:
        now, before = body.partition(b'"tools":')[0], self._before
        least, most = 0, min(len(now), len(before))
        while least < most:
            middle = (least + most + 1) // 2
            if now[:middle] == before[:middle]:
                least = middle
            else:
                most = middle - 1
        self._counts[0] += least
        self._counts[1] += len(before)
        self._before = now

    def respond(self) -> bytes:
        body = json.dumps(self._counts).encode()
        self._counts = [0, 0]
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


_SHARED = _Shared()


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._read = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, found, rest = self._read.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or b"0")
        if len(rest) >= length:
            self._read = rest[length:]
            if head.startswith(b"GET /v1/shared"):
                self._transport.write(_SHARED.respond())
            elif head.startswith(
                b"GET "
            ):  # what models there are; then nothing is known of this one
                self._transport.write(_NOT_FOUND)
            else:
                self._answer(rest[:length])

    def _answer(self, body: bytes) -> None:
        messages = cast("_Body", json.loads(body))["messages"]
        request = next(
            message["content"] for message in reversed(messages) if message["role"] == "user"
        )
        if request.startswith(("text ", "tool ")):  # and no summary is asked for
            _SHARED.take(body)
        match request.partition(" ")[0]:
            case "tool" if messages[-1]["role"] == "user":
                self._transport.write(_TOOL)
            case word if word in _BATCHES and messages[-1]["role"] == "user":
                self._transport.write(_BATCHES[word])
            case "stream":
                self._transport.write(_HEAD)
                self._stream(0)
            case "slow":
                self._transport.write(_HEAD)
                self._slow(0)
            case "hold":
                return
            case _:
                self._transport.write(_TEXT)

    def _stream(self, sent: int) -> None:
        if sent == STREAMED:
            self._transport.write(_STOP)
            return
        self._transport.write(_STREAM[sent])
        asyncio.get_running_loop().call_later(STREAM_EVERY_S, self._stream, sent + 1)

    def _slow(self, sent: int) -> None:
        if sent == STREAMED - 1:
            ended = _event({"content": f"ended-{time.monotonic():.6f}"})
            self._transport.write(ended + _STOP)
            return
        self._transport.write(_STREAM[sent])
        asyncio.get_running_loop().call_later(SLOW_EVERY_S, self._slow, sent + 1)


async def _main() -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", 0)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main())
