"""Turn the lines that a client writes into events.

    {"type": "hello", "after": "<cursor>"}                      everything that stands after it
    {"type": "say", "id": "<made by the client>", "text": "…"}
    {"type": "press", "id": "…", "approval": "…", "choice": "once", "reason": "", "card": "…"}

The first line is a hello. A client keeps an id until it was told `received`, and writes the same
line again after a lost connection; what was stored already is then answered the same.
"""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from channels._local.decode import Message, Press, Refused, id_of, read


class Hello(BaseModel):
    """A client wants what stands after a cursor; empty for the newest."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    after: Annotated[str, Field(max_length=200)] = ""


_LINES: Mapping[str, type[Hello | Message | Press]] = {
    "hello": Hello,
    "say": Message,
    "press": Press,
}


def line(written: Mapping[str, object]) -> Hello | Message | Press | Refused:
    """Read one line."""
    fields = dict(written)
    model = _LINES.get(str(fields.pop("type", "")))
    if model is None:
        return Refused(id=id_of(written), why="type: must be hello, say or press")
    return read(model, fields)
