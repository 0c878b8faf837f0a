"""Scripts for the answers of a model endpoint, as values that can also be sent as JSON.

`ScriptBook` writes them, for a server in this process and for one in its own alike:

    server.say("Hello ", gate, "world")          pieces of text; a gate holds the stream until it is open
    server.call("shell", {"command": "date"})    one tool call, arguments in fragments
    server.calls(("a", {}), ("b", {}))           several
    server.raw(b"data: {", b"...", cut=True)     exact bytes, each part its own HTTP chunk
    server.refuse(429, "slow down", headers={"retry-after": "2"})
    server.disconnect() · server.hang() · server.json({...})

Each takes `key=` (only for requests whose last user message contains it; with `last=` ends with it,
for unanswered messages are sent as one), `round=` (only for the n-th model call of a turn,
0 first) and `times=` (None: no limit). Keyed scripts are tried first, then the others, in the
order they were added; without any the model repeats the user's message.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeGuard, assert_never

from zeroclaw.value import Value, field

Json = Mapping[str, object]
STREAM_HEADERS = {"content-type": "text/event-stream; charset=utf-8"}
JSON_HEADERS = {"content-type": "application/json"}


class Head(Value):
    """Send the status line and headers, which come first."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: dict(STREAM_HEADERS))


class Send(Value):
    """Send bytes as one HTTP chunk, so that the client reads them separately from the next."""

    data: bytes


class Wait(Value):
    """Wait until the gate of this name is open, or the client has disconnected."""

    gate: str


class Cut(Value):
    """Close the connection without ending the body; before a `Head`, without an answer."""


Step = Head | Send | Wait | Cut


class Gate(Protocol):
    """A place in a script where the stream waits until the test opens it."""

    @property
    def name(self) -> str: ...

    def open(self) -> None:
        """Let every stream pass, later ones too."""
        ...

    async def reached(self) -> None:
        """Wait until a stream has reached the gate."""
        ...


Piece = str | Gate


class Planned(Value):
    """A script and the requests that it is for; `times` None is no limit."""

    steps: tuple[Step, ...]
    key: str = ""
    last: bool = False
    round: int | None = None
    times: int | None = 1

    def matches(self, received: "Received") -> bool:
        """Whether the script is for this request."""
        text = received.last_user
        has_key = text.endswith(self.key) if self.last else self.key in text
        return has_key and self.round in (None, received.round)


class Received(Value):
    """A request for an answer, as it was received."""

    path: str
    headers: Mapping[str, str]
    body: Json

    @property
    def messages(self) -> list[dict[str, object]]:
        """The conversation."""
        value = self.body.get("messages")
        return [item for item in value if is_object(item)] if is_array(value) else []

    @property
    def last_user(self) -> str:
        """The text of the newest user message."""
        contents = [
            message.get("content") for message in self.messages if message["role"] == "user"
        ]
        newest = contents[-1] if contents else ""
        if is_array(newest):
            return "".join(str(part.get("text", "")) for part in newest if is_object(part))
        return newest if isinstance(newest, str) else ""

    @property
    def parts(self) -> list[Json]:
        """The parts of all messages that are made of parts, in order."""
        contents = [message.get("content") for message in self.messages]
        return [
            part for content in contents if is_array(content) for part in content if is_object(part)
        ]

    @property
    def round(self) -> int:
        """How many assistant messages follow the newest user message."""
        roles = [message["role"] for message in self.messages]
        since = roles[::-1].index("user") if "user" in roles else len(roles)
        return roles[len(roles) - since :].count("assistant")

    @property
    def tools(self) -> list[str]:
        """The names of the tools that were offered."""
        value = self.body.get("tools")
        functions = (
            [item.get("function") for item in value if is_object(item)] if is_array(value) else []
        )
        return [str(function["name"]) for function in functions if is_object(function)]


class ScriptBook:
    """Writes scripts; a server implements `add`."""

    def add(self, planned: Planned) -> None:
        """Add a script."""
        raise NotImplementedError

    def say(
        self,
        *pieces: Piece,
        reasoning: str = "",
        finish: str = "stop",
        usage: tuple[int, int] = (12, 5),
        size: int = 0,
        cut: bool = False,
        key: str = "",
        last: bool = False,
        round: int | None = None,  # noqa: A002  a round of the turn, as everywhere
        times: int | None = 1,
    ) -> None:
        """Answer with text, each piece a delta; `size` splits pieces into that many characters."""
        steps: list[Step] = [Head(), role()]
        if reasoning:
            steps.append(delta(reasoning_content=reasoning))
        for piece in pieces:
            if isinstance(piece, str):
                steps += [delta(content=text) for text in cut_text(piece, size)]
            else:
                steps.append(Wait(gate=piece.name))
        steps += [Cut()] if cut else ending(finish, usage)
        self.add(Planned(steps=tuple(steps), key=key, last=last, round=round, times=times))

    def call(
        self,
        tool: str,
        arguments: Json | str,
        *,
        text: str = "",
        reasoning: str = "",
        id: str = "",  # noqa: A002  the wire's word
        key: str = "",
        round: int | None = None,  # noqa: A002
        times: int | None = 1,
    ) -> None:
        """Answer with one tool call; arguments given as text are sent unchanged."""
        self.calls(
            (tool, arguments),
            text=text,
            reasoning=reasoning,
            ids=(id,),
            key=key,
            round=round,
            times=times,
        )

    def calls(
        self,
        *calls: tuple[str, Json | str],
        text: str = "",
        reasoning: str = "",
        ids: Sequence[str] = (),
        key: str = "",
        round: int | None = None,  # noqa: A002
        times: int | None = 1,
    ) -> None:
        """Answer with several calls; ids default to `call_0`, `call_1` … in every answer (S1-18)."""
        steps: list[Step] = [Head(), role()]
        if reasoning:
            steps.append(delta(reasoning_content=reasoning))
        if text:
            steps.append(delta(content=text))
        for index, (tool, arguments) in enumerate(calls):
            id_ = (ids[index] if index < len(ids) else "") or f"call_{index}"
            steps += call_fragments(index, id_, tool, arguments)
        steps += ending("tool_calls", (20, 9))
        self.add(Planned(steps=tuple(steps), key=key, round=round, times=times))

    def raw(
        self,
        *parts: bytes | Gate,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        cut: bool = False,
        key: str = "",
        round: int | None = None,  # noqa: A002
        times: int | None = 1,
    ) -> None:
        """Answer with exact bytes."""
        steps: list[Step] = [Head(status=status, headers=headers or STREAM_HEADERS)]
        steps += [
            Send(data=part) if isinstance(part, bytes) else Wait(gate=part.name) for part in parts
        ]
        if cut:
            steps.append(Cut())
        self.add(Planned(steps=tuple(steps), key=key, round=round, times=times))

    def json(
        self,
        body: object,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        key: str = "",
        times: int | None = 1,
    ) -> None:
        """Answer with one JSON text instead of a stream."""
        data = json.dumps(body).encode()
        self.raw(
            data, status=status, headers={**JSON_HEADERS, **(headers or {})}, key=key, times=times
        )

    def refuse(
        self,
        status: int,
        message: str = "refused",
        *,
        code: str | int = "",
        kind: str = "",
        headers: Mapping[str, str] | None = None,
        key: str = "",
        times: int | None = 1,
    ) -> None:
        """Answer with an error status and OpenAI's error object."""
        error: dict[str, object] = {"message": message}
        error |= {"code": code} if code else {}
        error |= {"type": kind} if kind else {}
        self.json({"error": error}, status=status, headers=headers, key=key, times=times)

    def disconnect(self, *, key: str = "", times: int | None = 1) -> None:
        """Close the connection without an answer."""
        self.add(Planned(steps=(Cut(),), key=key, times=times))

    def hang(self, gate: Gate, *, headers_first: bool = False, key: str = "") -> None:
        """Send nothing until the gate is open or the client disconnects."""
        steps: tuple[Step, ...] = (Wait(gate=gate.name), Cut())
        self.add(Planned(steps=(Head(), *steps) if headers_first else steps, key=key))


def chunk(**fields: object) -> Send:
    """One event of a stream; `fields` are added to the usual ones of a chunk."""
    body = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "scripted", **fields}
    return Send(data=f"data: {json.dumps(body, ensure_ascii=False)}\n\n".encode())


def delta(finish_reason: str | None = None, **fields: object) -> Send:
    """One event with a delta of the first choice."""
    return chunk(choices=[{"index": 0, "delta": fields, "finish_reason": finish_reason}])


def role() -> Send:
    """The first event of most endpoints."""
    return delta(role="assistant", content="")


def call_fragments(index: int, id_: str, tool: str, arguments: Json | str) -> list[Step]:
    """A tool call as OpenAI streams it: a head, then its arguments in pieces."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    head = {
        "index": index,
        "id": id_,
        "type": "function",
        "function": {"name": tool, "arguments": ""},
    }
    rest = [{"index": index, "function": {"arguments": piece}} for piece in cut_text(text, 7)]
    return [delta(tool_calls=[fragment]) for fragment in (head, *rest)]


def ending(finish: str, usage: tuple[int, int]) -> list[Send]:
    """The finish, the usage and `[DONE]`."""
    tokens = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return [
        delta(finish_reason=finish),
        chunk(choices=[], usage=tokens),
        Send(data=b"data: [DONE]\n\n"),
    ]


def cut_text(text: str, size: int) -> list[str]:
    """Split a text into pieces of that many characters; 0 is one piece."""
    return [text[start : start + size] for start in range(0, len(text), size)] if size else [text]


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Whether parsed JSON is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[object]]:
    """Whether parsed JSON is an array."""
    return isinstance(value, list)


# --- as JSON, for a server in its own process ------------------------------------------------------


def to_json(planned: Planned) -> Json:
    """Encode a script for the control API."""
    return {
        "steps": [_step_to_json(step) for step in planned.steps],
        "key": planned.key,
        "last": planned.last,
        "round": planned.round,
        "times": planned.times,
    }


def from_json(body: Json) -> Planned:
    """Decode a script of the control API."""
    steps, round_, times = body["steps"], body["round"], body["times"]
    assert is_array(steps)
    return Planned(
        steps=tuple(_step_from_json(step) for step in steps if is_object(step)),
        key=str(body["key"]),
        last=bool(body["last"]),
        round=round_ if isinstance(round_, int) else None,
        times=times if isinstance(times, int) else None,
    )


def _step_to_json(step: Step) -> Json:
    match step:
        case Head():
            return {"status": step.status, "headers": dict(step.headers)}
        case Send():
            return {"base64": base64.b64encode(step.data).decode()}
        case Wait():
            return {"wait": step.gate}
        case Cut():
            return {"cut": True}
        case _:
            assert_never(step)


def _step_from_json(step: Json) -> Step:
    match step:
        case {"status": int(status), "headers": headers} if is_object(headers):
            return Head(
                status=status, headers={name: str(value) for name, value in headers.items()}
            )
        case {"base64": str(data)}:
            return Send(data=base64.b64decode(data))
        case {"wait": str(gate)}:
            return Wait(gate=gate)
        case _:
            return Cut()
