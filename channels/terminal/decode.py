"""Parses the lines that a client writes.

    {"type": "hello", "after": "<cursor>"}                      asks for the items after the cursor
    {"type": "say", "id": "<made by the client>", "text": "…"}
    {"type": "press", "id": "…", "approval": "…", "choice": "once", "reason": "", "card": "…"}

The first line is a hello. After a lost connection a client repeats each line that was not answered
with `received`, with the same id. An event that was already stored gets the same answer.
"""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from channels._local.decode import Message, Press, RefusedPost, id_of, read


class Hello(BaseModel):
    """A client asks for the items after a cursor; empty for the newest items."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    after: Annotated[str, Field(max_length=200)] = ""


_LINES: Mapping[str, type[Hello | Message | Press]] = {
    "hello": Hello,
    "say": Message,
    "press": Press,
}


def line(raw: Mapping[str, object]) -> Hello | Message | Press | RefusedPost:
    """Parse one line."""
    fields = dict(raw)
    model = _LINES.get(str(fields.pop("type", "")))
    if model is None:
        return RefusedPost(id=id_of(raw), reason="type: must be hello, say or press")
    return read(model, fields)
