"""Turn the lines that a client writes into events.

    {"type": "hello", "after": "<cursor>"}                      everything that stands after it
    {"type": "say", "id": "<made by the client>", "text": "…"}
    {"type": "press", "id": "…", "approval": "…", "choice": "once", "reason": "", "card": "…"}

The first line is a hello. A client keeps an id until it was told `received`, and writes the same
line again after a lost connection; what was stored already is then answered the same.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from zeroclaw import (
    Address,
    ApprovalId,
    Choice,
    Command,
    Envelope,
    MessageRef,
    Pressed,
    Said,
    Sender,
    Value,
)

ACCOUNT = "local"
CHAT = "operator"
"""The one chat and the one person of this channel: whoever runs as the daemon's own user."""

Key = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{8,64}$")]
_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]*)(?:\s+(.*))?", re.DOTALL)
P = TypeVar("P", bound=BaseModel)


class Hello(Value):
    """A client wants what stands after a cursor; empty for the newest."""

    after: str


class Event(Value):
    """Something for the daemon; `id` names it in the answer, `text` is what a person wrote."""

    id: str
    envelope: Envelope
    text: str = ""


class Unreadable(Value):
    """A line that is no event; `why` is one line for whoever wrote it, `id` empty for none."""

    id: str
    why: str


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Hello(_Line):
    type: Literal["hello"]
    after: Annotated[str, Field(max_length=200)] = ""


class _Say(_Line):
    type: Literal["say"]
    id: Key
    text: str


class _Press(_Line):
    type: Literal["press"]
    id: Key
    approval: Annotated[str, Field(min_length=1, max_length=200)]
    choice: Choice
    reason: Annotated[str, Field(max_length=2_000)] = ""
    card: Annotated[str, Field(max_length=200)] = ""


def address(channel: str) -> Address:
    """Return the one chat of this channel."""
    return Address(channel=channel, account=ACCOUNT, chat=CHAT, direct=True)


def line(channel: str, written: Mapping[str, object]) -> Hello | Event | Unreadable:
    """Read one line."""
    match written.get("type"):
        case "hello":
            hello = _read(_Hello, written)
            return hello if isinstance(hello, Unreadable) else Hello(after=hello.after)
        case "say":
            return _said(channel, written)
        case "press":
            return _pressed(channel, written)
        case _:
            return Unreadable(id=_id(written), why="type: must be hello, say or press")


def said_or_command(text: str) -> Said | Command:
    """Tell a command from a message; what follows its name is kept as typed, ends stripped."""
    found = _COMMAND.fullmatch(text.strip())
    if found is None:
        return Said(text=text)
    return Command(name=found[1].lower(), rest=found[2] or "")


def _said(channel: str, written: Mapping[str, object]) -> Event | Unreadable:
    say = _read(_Say, written)
    if isinstance(say, Unreadable):
        return say
    if not say.text.strip():
        return Unreadable(id=say.id, why="the message is empty")
    envelope = Envelope(
        address=address(channel),
        sender=_operator(),
        dedup=(f"say/{say.id}",),
        body=said_or_command(say.text),
        message=say.id,
    )
    return Event(id=say.id, envelope=envelope, text=say.text)


def _pressed(channel: str, written: Mapping[str, object]) -> Event | Unreadable:
    press = _read(_Press, written)
    if isinstance(press, Unreadable):
        return press
    here = address(channel)
    envelope = Envelope(
        address=here,
        sender=_operator(),
        dedup=(f"press/{press.id}",),
        body=Pressed(
            approval=ApprovalId(press.approval),
            choice=press.choice,
            reason=press.reason.strip(),
            card=MessageRef(address=here, message=press.card) if press.card else None,
        ),
    )
    return Event(id=press.id, envelope=envelope)


def _operator() -> Sender:
    return Sender(id=CHAT, verified=True, display=CHAT)


def _read(model: type[P], written: Mapping[str, object]) -> P | Unreadable:
    try:
        return model.model_validate(written)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return Unreadable(id=_id(written), why=f"{where}: {first['msg'].lower()}")


def _id(written: Mapping[str, object]) -> str:
    found = written.get("id")
    return found[:64] if isinstance(found, str) else ""
