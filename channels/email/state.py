"""State in the channel's own directory that outlives the process: short texts, and reading progress.

The runtime commits a position with each event that it takes. Mail that the runtime never sees, such
as mail from robots, moves no position, and a mailbox without mail from people has none. So a file
stores the progress, including its start. The file may be behind, never ahead: ingress recognises the
mails that are read again by their keys.
"""

import asyncio
import os
import re
from contextlib import suppress
from pathlib import Path
from threading import Lock

from zeroclaw import ChannelUnavailable, Value, refused_as

_CURSOR = re.compile(r"(\d{1,20}):(\d{1,20})", re.ASCII)


class TextFile:
    """One text, replaced as a whole and readable only by its owner; without a directory not stored."""

    def __init__(self, directory: Path | None, name: str) -> None:
        """Read nothing yet."""
        self._file = None if directory is None else directory / name
        self._text = ""

    async def read(self) -> str:
        """Return the text on the disk; if the file is missing the last known one, or empty.

        Raises:
            ChannelUnavailable: The disk fails, which must not pass for a missing text.
        """
        failed = refused_as(ChannelUnavailable, f"`{self._file}` can't be read now")
        with failed, suppress(FileNotFoundError):
            if self._file is not None:
                self._text = await asyncio.to_thread(self._file.read_text, "utf-8", "replace")
        return self._text

    async def write(self, text: str) -> None:
        """Replace the text.

        Raises:
            ChannelUnavailable: The disk refuses it, such as a full one.
        """
        if self._file is not None and text != self._text:
            with refused_as(ChannelUnavailable, f"`{self._file}` can't be written now"):
                await asyncio.to_thread(_write, self._file, text)
            self._text = text


class Progress(Value):
    """How far a mailbox was read under one UIDVALIDITY; RFC 3501, 2.3.1.1."""

    validity: int
    uid: int


def read_cursor(cursor: str) -> Progress | None:
    """Parse a cursor; None if it is not one."""
    match = _CURSOR.fullmatch(cursor)
    return Progress(validity=int(match[1]), uid=int(match[2])) if match else None


def _write(file: Path, text: str) -> None:
    """Replace a file's text durably: a server may no longer accept the token that it replaces."""
    temporary, flags = file.with_suffix(".new"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_SYNC
    with _writing:
        with os.fdopen(os.open(temporary, flags, 0o600), "w", encoding="utf-8") as stream:
            stream.write(text)
        temporary.replace(file)
        directory = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


_writing = Lock()
"""Held while writing: a thread of an adapter that has ended may still write when the next one does."""
