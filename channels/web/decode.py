"""Parses the messages that a page posts, which may name files."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from channels._local import decode
from zeroclaw import Attachment


class _File(BaseModel):
    """A file that was uploaded under `id` before the message."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: decode.Key
    name: Annotated[str, Field(max_length=1_000)]
    type: Annotated[str, Field(max_length=1_000)] = ""
    size: Annotated[int, Field(ge=0)]


class Message(decode.Message):
    """`{id, text, files}`."""

    files: Annotated[tuple[_File, ...], Field(max_length=100)] = ()

    def attachments(self) -> tuple[Attachment, ...]:
        """Return the files as attachments for the daemon to fetch."""
        return tuple(
            Attachment(
                reference=file.id, name=file.name, media_type=file.type, size_bytes=file.size
            )
            for file in self.files
        )
