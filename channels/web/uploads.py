"""Keeps files that a page has uploaded until the daemon fetches them, across a restart too.

A file is uploaded before the message that names it. One that is not fetched goes after a day, one
that was fetched a little later: by then it stands in the store, or is asked for once more.

    on record ──► disk ── the record is left before a message names it ──┐
    off the record ──────────────────────────────────────────────────────┴──► memory

One that a message on record has named is read-only from then on: that outlasts a kill, as the message does.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from stat import S_IMODE

from zeroclaw import Clock

KEPT = timedelta(days=1)
KEPT_AFTER = timedelta(minutes=10)
MOST_BYTES = 100_000_000
"""Of all files that wait, and of all that are on their way; a page that uploads more is told to wait."""
NAMED = 0o400
"""The mode of a file that a message on record has named."""
_ID = re.compile(r"[0-9A-Za-z_-]{8,64}")


class Refused(Exception):
    """A file that is not taken.

    Attributes:
        status: Of HTTP.
    """

    def __init__(self, why: str, status: int) -> None:
        super().__init__(why)
        self.status = status


async def never() -> bool:
    """Tell that the chat is on record."""
    return False


class Uploads:
    """The files of one channel; without a directory it takes none."""

    def __init__(
        self,
        directory: Path | None,
        clock: Clock,
        most_bytes: int,
        is_off_the_record: Callable[[], Awaitable[bool]] = never,
    ) -> None:
        """Keep them there, each of at most `most_bytes`; off the record in memory."""
        self._is_off_the_record = is_off_the_record
        self._held: dict[str, tuple[datetime, bytes]] = {}
        self._directory = directory
        self._clock = clock
        self._most_bytes = most_bytes
        self._coming_bytes = 0
        # A file that another thread renames or removes may be gone once it was listed.
        self._disk = asyncio.Lock()

    async def take(self, name: str, chunks: AsyncIterator[bytes]) -> int:
        """Keep a file under an id that its page made; once more replaces it.

        Returns:
            Its size in bytes.

        Raises:
            Refused: It is too large, or there is no room for it.
        """
        path = self._path(name)
        if path is None:
            why = "files can't be kept here"
            raise Refused(why, 422)
        body = bytearray()
        try:
            async for chunk in chunks:
                body += chunk
                self._coming_bytes += len(chunk)
                self._refuse_too_much(len(body))
            async with self._disk:
                is_off = await self._is_off_the_record()
                keep = self._hold if is_off else self._write
                has_room = await asyncio.to_thread(keep, path, body)
        except OSError as error:
            why = f"it could not be kept: {(error.strerror or 'unknown reason').lower()}"
            raise Refused(why, 503) from error
        finally:
            self._coming_bytes -= len(body)
        if not has_room:
            why = "too many files wait already; send what you have, and try again"
            raise Refused(why, 503)
        return len(body)

    def _refuse_too_much(self, size_bytes: int) -> None:
        """Raise when a file, or all together, have come to more than may be held in memory."""
        if size_bytes > self._most_bytes:
            why = f"it is larger than {self._most_bytes:,} bytes"
            raise Refused(why, 413)
        if self._coming_bytes > MOST_BYTES:
            why = "too many files are on their way; try again when they have arrived"
            raise Refused(why, 503)

    async def content(self, name: str, max_bytes: int) -> bytes | None:
        """Return a file's bytes, and one more where it has more than `max_bytes`; None for none."""
        path = self._path(name)
        if path is None:
            return None
        async with self._disk:
            return await asyncio.to_thread(self._read, path, max_bytes)

    async def sweep(self, named: Iterable[str] = ()) -> None:
        """Remove what was kept long enough, and from the disk what is off the record by now.

        Args:
            named: By a message that was admitted; on record they stay, for it may wait across a restart.
        """
        async with self._disk:
            is_off = await self._is_off_the_record()
            await asyncio.to_thread(self._sweep, () if is_off else named, is_off=is_off)

    def _path(self, name: str) -> Path | None:
        if self._directory is None or _ID.fullmatch(name) is None:
            return None
        return self._directory / name

    def _write(self, path: Path, body: bytearray) -> bool:
        if not self._has_room(path, body):
            return False
        new = path.with_name(f"{path.name}.new")
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123  pathlib sets no mode
            file.write(body)
            file.flush()
            os.fsync(file.fileno())  # the message that names it is stored as surely
        self._date(new, timedelta())
        new.replace(path)
        self._held.pop(path.name, None)
        return True

    def _hold(self, path: Path, body: bytearray) -> bool:
        if not self._has_room(path, body):
            return False
        self._held[path.name] = self._clock.now(), bytes(body)
        return True

    def _has_room(self, path: Path, body: bytearray) -> bool:
        on_disk = sum(one.stat().st_size for one in path.parent.iterdir() if one != path)
        held = sum(len(one) for name, (_, one) in self._held.items() if name != path.name)
        return on_disk + held + len(body) <= MOST_BYTES

    def _read(self, path: Path, max_bytes: int) -> bytes | None:
        if (held := self._held.get(path.name)) is not None:
            self._held[path.name] = self._clock.now() - (KEPT - KEPT_AFTER), held[1]
            return held[1][: max_bytes + 1]
        try:
            with path.open("rb") as file:
                body = file.read(max_bytes + 1)
        except FileNotFoundError:
            return None
        self._date(path, KEPT - KEPT_AFTER)
        return body

    def _sweep(self, named: Iterable[str], *, is_off: bool) -> None:
        if self._directory is None:
            return
        for path in filter(None, map(self._path, named)):
            if path.exists():
                path.chmod(NAMED)
        before = self._clock.now() - KEPT
        self._held = {name: one for name, one in self._held.items() if one[0] >= before}
        for path in self._directory.iterdir():
            found = path.stat()
            kept_at = datetime.fromtimestamp(found.st_mtime, UTC)
            if kept_at >= before:
                if not is_off or S_IMODE(found.st_mode) == NAMED:
                    continue
                self._held.setdefault(path.name, (kept_at, path.read_bytes()))
            path.unlink()

    def _date(self, path: Path, age: timedelta) -> None:
        """Let a file count as this old; one that is gone meanwhile is asked for in vain."""
        at = (self._clock.now() - age).timestamp()
        if path.exists():
            os.utime(path, (at, at))
