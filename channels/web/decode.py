"""Turn what the page posts into envelopes."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from channels._local.decode import Key, Posted, Press, Unreadable, pressed, read, said
from zeroclaw import Attachment, Envelope


class _File(BaseModel):
    """A file that was uploaded under this id before the message."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Key
    name: Annotated[str, Field(max_length=1_000)]
    type: Annotated[str, Field(max_length=1_000)] = ""
    size: Annotated[int, Field(ge=0)]


class _Message(Posted):
    text: str
    files: Annotated[tuple[_File, ...], Field(max_length=100)] = ()


def message(channel: str, body: bytes) -> Envelope | Unreadable:
    """Read `{id, text, files}`; a text that begins with `/word` is a command."""
    posted = read(_Message, body)
    if isinstance(posted, Unreadable):
        return posted
    files = tuple(
        Attachment(reference=one.id, name=one.name, media_type=one.type, size_bytes=one.size)
        for one in posted.files
    )
    return said(channel, "message", posted.id, posted.text, files)


def answer(channel: str, body: bytes) -> Envelope | Unreadable:
    """Read `{id, approval, choice, reason, card}`."""
    posted = read(Press, body)
    return posted if isinstance(posted, Unreadable) else pressed(channel, "answer", posted)
