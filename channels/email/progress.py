"""How far a mailbox was read, across restarts: the newest of what the runtime and this file know.

The runtime commits a position with each event that it takes. What it never sees, such as mail of
robots, moves no position, and of a mailbox that nobody has written to yet there is none. So a note
in the channel's directory says how far reading came without it, and where it began. It is only ever
behind: what is lost of it is read again, and known by its keys.
"""

from collections.abc import Mapping
from pathlib import Path

from channels.email.kept import Kept
from zeroclaw import Value

FILE_NAME = "read-up-to"


class Read(Value):
    """How far one numbering of a mailbox was read; RFC 3501, 2.3.1.1."""

    validity: int
    uid: int

    def cursor(self) -> str:
        """Return it as a position has it."""
        return f"{self.validity}:{self.uid}"


def read_cursor(cursor: str) -> Read | None:
    """Return what a cursor says, None for what is none."""
    validity, _, uid = cursor.strip().partition(":")
    if not (validity.isascii() and validity.isdecimal() and uid.isascii() and uid.isdecimal()):
        return None
    return Read(validity=int(validity), uid=int(uid))


class Progress:
    """How far one mailbox was read."""

    def __init__(self, mailbox: str, positions: Mapping[str, str], directory: Path | None) -> None:
        """Hold where it stands.

        Args:
            mailbox: The scope of its position.
            positions: As committed; grows.
            directory: Where the note is kept, None for nowhere.
        """
        self._mailbox = mailbox
        self._positions = positions
        self._note = Kept(directory, FILE_NAME)

    @property
    def stored(self) -> Read | None:
        """What was stored last, None where nothing was."""
        return read_cursor(self._positions.get(self._mailbox, ""))

    async def known(self) -> tuple[Read, ...]:
        """Return all that is known, of this numbering or of earlier ones."""
        cursor, _, mailbox = (await self._note.read()).strip().partition(" ")
        noted = cursor if mailbox == self._mailbox else ""
        return tuple(one for one in (self.stored, read_cursor(noted)) if one is not None)

    async def note(self, read: Read) -> None:
        """Keep how far was read, where the position does not say it already."""
        if self._positions.get(self._mailbox) == read.cursor():
            return
        await self._note.keep(f"{read.cursor()} {self._mailbox}\n")
