"""State in the channel's own directory that outlives the process: short texts, and reading progress.

The runtime commits a position with each event that it takes. Mail that the runtime never sees, such
as mail from robots, moves no position, and a mailbox that nobody has written to has none. So a note
records the progress without positions, and where it began. The note may only be behind: mails after
it are read again, and recognised by their keys.
"""

import asyncio
import os
import re
from contextlib import suppress
from pathlib import Path
from threading import Lock

from zeroclaw import ChannelUnavailable, Value, refused_as

_CURSOR = re.compile(r"(\d{1,20}):(\d{1,20})", re.ASCII)


class KeptText:
    """One text, replaced as a whole and readable only by its owner; not kept without a directory."""

    def __init__(self, directory: Path | None, name: str) -> None:
        """Remember the file."""
        self._file = None if directory is None else directory / name
        self._text = ""

    async def read(self) -> str:
        """Return the text as it is on the disk, else as it was last; empty if there never was one.

        Raises:
            ChannelUnavailable: It can't be read now, which must not pass for a text that is missing.
        """
        failed = refused_as(ChannelUnavailable, f"`{self._file}` can't be read now")
        with failed, suppress(FileNotFoundError):
            if self._file is not None:
                self._text = await asyncio.to_thread(self._file.read_text, "utf-8", "replace")
        return self._text

    async def keep(self, text: str) -> None:
        """Replace the text.

        Raises:
            ChannelUnavailable: The disk does not take it now.
        """
        if self._file is not None and text != self._text:
            with refused_as(ChannelUnavailable, f"`{self._file}` can't be written now"):
                await asyncio.to_thread(_write, self._file, text)
            self._text = text


class Read(Value):
    """How far a mailbox was read under one UIDVALIDITY; RFC 3501, 2.3.1.1."""

    validity: int
    uid: int


def read_cursor(cursor: str) -> Read | None:
    """Return the progress that a cursor says, None if it is not one."""
    found = _CURSOR.fullmatch(cursor)
    return Read(validity=int(found[1]), uid=int(found[2])) if found else None


def _write(file: Path, text: str) -> None:
    """Replace a file's text on the disk: a server may take a token no more that was replaced."""
    new, flags = file.with_suffix(".new"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_SYNC
    with _writing:
        with os.fdopen(os.open(new, flags, 0o600), "w", encoding="utf-8") as opened:
            opened.write(text)
        new.replace(file)
        directory = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


_writing = Lock()
"""An adapter that has ended may still be writing when the next one does, since threads finish late."""
