"""Reads one file of a workspace whole, for the people of the chat. It blocks: call it in a thread."""

import mimetypes
import os

from pydantic import Field

from zeroclaw.errors import ToolFailed
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.tool import ToolFile, ToolOutput
from zeroclaw.tools import ToolArguments, counted, quoted
from zeroclaw.tools.files.beneath import opened_file, shown
from zeroclaw.tools.files.content import Path, readable_parts
from zeroclaw.tools.files.place import Place

MOST_CAPTION_CHARS = 500
UNKNOWN_TYPE = "application/octet-stream"


class SendArguments(ToolArguments):
    """What `send_file` takes."""

    path: Path = Field(description="Relative to the workspace.")
    caption: str = Field(
        default="",
        max_length=MOST_CAPTION_CHARS,
        description="Plain text that stands with the file; empty for none.",
    )
    name: str = Field(
        default="",
        max_length=255,
        description="What the people see as its name; empty for its own.",
    )


def send_file(arguments: SendArguments, place: Place) -> ToolOutput:
    """Read a file; it goes out once the result of the call is recorded."""
    parts = readable_parts(arguments.path, place)
    if not place.max_file_bytes:
        message = "this chat takes no files; say what is in it instead, or where it can be sent"
        raise ToolFailed(message)
    with opened_file(place.workspace, parts) as file:
        most = min(place.max_file_bytes, place.settings.max_send_bytes)
        size_bytes = os.fstat(file).st_size
        with os.fdopen(file, "rb", closefd=False) as stream:
            # It may grow while it is read.
            content = stream.read(most + 1) if size_bytes <= most else b""
    size_bytes = max(size_bytes, len(content))
    if size_bytes > most:
        size = counted(size_bytes, "byte")
        message = f"{shown(parts)} has {size}, and {most:,} is the most that can be sent here"
        raise ToolFailed(message)
    if not content:
        message = f"{shown(parts)} is empty, and an empty file can't be sent"
        raise ToolFailed(message)
    place.go_on()
    name = arguments.name.strip() or parts[-1]
    sent = ToolFile(
        name=name, media_type=media_type(name), content=content, caption=arguments.caption
    )
    told = f"{shown(parts)} goes to the chat as {quoted(name)}: {counted(len(content), 'byte')}"
    return ToolOutput(text=told, files=(sent,))


def send_line(asked: SendArguments) -> Localized:
    """Return what a call would do."""
    name = catalogue.WOULD_SEND_AS.about(name=quoted(asked.name)) if asked.name.strip() else ""
    caption = quoted(asked.caption, limit_chars=60)
    words = catalogue.WOULD_SEND_SAYING.about(words=caption) if asked.caption.strip() else ""
    return catalogue.WOULD_SEND.about(path=quoted(asked.path), name=name, words=words)


def media_type(name: str) -> str:
    """Return what a file's ending says that it is, the same on every machine."""
    # Its own table; the machine's would differ, and is read from files.
    known = mimetypes.MimeTypes(filenames=())
    found, packed = known.guess_type(name, strict=True)
    return UNKNOWN_TYPE if packed or found is None else found
