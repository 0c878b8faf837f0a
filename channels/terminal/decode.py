"""Turn the lines that a client writes into events.

    {"type": "hello", "after": "<cursor>"}                      everything that stands after it
    {"type": "say", "id": "<made by the client>", "text": "…"}
    {"type": "press", "id": "…", "approval": "…", "choice": "once", "reason": "", "card": "…"}

The first line is a hello. A client keeps an id until it was told `received`, and writes the same
line again after a lost connection; what was stored already is then answered the same.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from channels._local.decode import Posted, Press, Unreadable, id_of, pressed, read, said
from zeroclaw import Envelope, Value


class Hello(Value):
    """A client wants what stands after a cursor; empty for the newest."""

    after: str


class Event(Value):
    """Something for the daemon; `id` names it in the answer."""

    id: str
    envelope: Envelope


class _Hello(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["hello"]
    after: Annotated[str, Field(max_length=200)] = ""


class _Say(Posted):
    type: Literal["say"]
    text: str


class _Press(Press):
    type: Literal["press"]


def line(channel: str, written: Mapping[str, object]) -> Hello | Event | Unreadable:
    """Read one line."""
    match written.get("type"):
        case "hello":
            hello = read(_Hello, written)
            return hello if isinstance(hello, Unreadable) else Hello(after=hello.after)
        case "say":
            say = read(_Say, written)
            found = say if isinstance(say, Unreadable) else said(channel, "say", say.id, say.text)
        case "press":
            press = read(_Press, written)
            found = press if isinstance(press, Unreadable) else pressed(channel, "press", press)
        case _:
            return Unreadable(id=id_of(written), why="type: must be hello, say or press")
    return found if isinstance(found, Unreadable) else Event(id=id_of(written), envelope=found)
