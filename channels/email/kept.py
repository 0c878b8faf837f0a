"""What outlives the process in the channel's own directory: short texts, and how far was read.

The runtime commits a position with each event that it takes. What it never sees, such as mail of
robots, moves no position, and of a mailbox that nobody has written to yet there is none. So a note
says how far reading came without it, and where it began. It is only ever behind: what is lost of it
is read again, and known by its keys.
"""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from threading import Lock

from zeroclaw import Struct, Value

PROGRESS = "read-up-to"
_CURSOR = re.compile(r"(\d{1,20}):(\d{1,20})", re.ASCII)


class Kept:
    """One text, replaced whole and readable by its owner alone; where there is no directory, none."""

    def __init__(self, directory: Path | None = None, name: str = "") -> None:
        """Hold where it stands."""
        self._file = None if directory is None else directory / name
        self._text: str | None = None

    async def read(self) -> str:
        """Return it, empty where nothing was kept that can be read."""
        return "" if self._file is None else await asyncio.to_thread(_read, self._file)

    async def keep(self, text: str) -> None:
        """Put a text in its place."""
        if self._file is not None and text != self._text:
            self._text = text
            await asyncio.to_thread(_write, self._file, text)


class Read(Value):
    """How far one numbering of a mailbox was read; RFC 3501, 2.3.1.1."""

    validity: int
    uid: int


def read_cursor(cursor: str) -> Read | None:
    """Return what a cursor says, None for what is none."""
    found = _CURSOR.fullmatch(cursor)
    return Read(validity=int(found[1]), uid=int(found[2])) if found else None


class Progress(Struct, eq=False):
    """How far one mailbox was read: the newest of what the runtime and the note know.

    Attributes:
        mailbox: The scope of its position.
        positions: As committed; grows.
        kept: The note.
    """

    mailbox: str
    positions: Mapping[str, str]
    kept: Kept

    @property
    def stored(self) -> Read | None:
        """What was stored last, None where nothing was."""
        return read_cursor(self.positions.get(self.mailbox, ""))

    async def known(self) -> tuple[Read, ...]:
        """Return all that is known, of this numbering or of earlier ones."""
        cursor, _, mailbox = (await self.kept.read()).strip().partition(" ")
        noted = read_cursor(cursor) if mailbox == self.mailbox else None
        return tuple(filter(None, (self.stored, noted)))

    async def note(self, read: Read) -> None:
        """Keep how far was read, where the position does not say it already."""
        if read != self.stored:
            await self.kept.keep(f"{read.validity}:{read.uid} {self.mailbox}\n")


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _write(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    with _writing:
        new.touch(mode=0o600)
        new.write_text(text, "utf-8")
        new.replace(file)


_writing = Lock()
"""An adapter that has ended may still write when the next one does: a thread ends in its own time."""
