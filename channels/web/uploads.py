"""Keeps a page's uploads until the daemon fetches them, across a restart too.

A file is uploaded before the message that names it. It is removed after a day, or shortly after it
was fetched: by then it is in the store, unless the fetch is repeated.

    on record ──► disk ── chat goes off the record before a message names it ──┐
    off the record ────────────────────────────────────────────────────────────┴──► memory

A file that an on-record message has named is made read-only; that mark survives a kill, as the
message does.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from stat import S_IMODE

from zeroclaw import Clock

LIFETIME = timedelta(days=1)
FETCHED_LIFETIME = timedelta(minutes=10)
MAX_BYTES = 100_000_000
"""Limit on all kept files, and on all running uploads; beyond it a page is asked to wait."""
NAMED = 0o400
"""The mode of a file that an on-record message has named."""
_ID = re.compile(r"[0-9A-Za-z_-]{8,64}")


class UploadRefused(Exception):
    """A refused upload.

    Attributes:
        status: The HTTP status of the answer.
    """

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


class Uploads:
    """The uploads of one channel."""

    def __init__(
        self,
        directory: Path,
        clock: Clock,
        max_bytes: int,
        is_off_the_record: Callable[[], Awaitable[bool]],
    ) -> None:
        """Keep files of up to `max_bytes` each in the directory, or in memory off the record."""
        self._is_off_the_record = is_off_the_record
        self._memory: dict[str, tuple[datetime, bytes]] = {}
        self._directory = directory
        self._clock = clock
        self._max_bytes = max_bytes
        self._coming_bytes = 0
        # One thread at a time, or a listed file could vanish before its status is read.
        self._disk = asyncio.Lock()

    async def take(self, name: str, chunks: AsyncIterator[bytes]) -> int:
        """Store a file under the id made by its page; a repeated upload replaces it.

        Returns:
            Its size in bytes.

        Raises:
            UploadRefused: It is too large, or there is no room for it.
        """
        path = self._path(name)
        if path is None:
            reason = "files can't be kept here"
            raise UploadRefused(reason, 422)
        body = bytearray()
        try:
            async for chunk in chunks:
                body += chunk
                self._coming_bytes += len(chunk)
                self._refuse_too_much(len(body))
            async with self._disk:
                is_off = await self._is_off_the_record()
                has_room = await asyncio.to_thread(self._store, path, body, is_off=is_off)
        except OSError as error:
            reason = f"it could not be kept: {(error.strerror or 'unknown reason').lower()}"
            raise UploadRefused(reason, 503) from error
        finally:
            self._coming_bytes -= len(body)
        if not has_room:
            reason = "too many files wait already; send what you have, and try again"
            raise UploadRefused(reason, 503)
        return len(body)

    def _refuse_too_much(self, size_bytes: int) -> None:
        """Raise if a file, or all running uploads together, exceed their limit in memory."""
        if size_bytes > self._max_bytes:
            reason = f"it is larger than {self._max_bytes:,} bytes"
            raise UploadRefused(reason, 413)
        if self._coming_bytes > MAX_BYTES:
            reason = "too many files are on their way; try again when they have arrived"
            raise UploadRefused(reason, 503)

    async def content(self, name: str, max_bytes: int) -> bytes | None:
        """Return up to `max_bytes` + 1 bytes of a file, so that excess shows; None if there is none."""
        path = self._path(name)
        if path is None:
            return None
        async with self._disk:
            return await asyncio.to_thread(self._read, path, max_bytes)

    async def sweep(self, names: Iterable[str] = ()) -> None:
        """Remove old files, and move files that are off the record by now from disk to memory.

        Args:
            names: Files that an admitted message names. On record they stay on disk, since the
                message may have to wait across a restart.
        """
        async with self._disk:
            is_off = await self._is_off_the_record()
            await asyncio.to_thread(self._sweep, () if is_off else names, is_off=is_off)

    def _path(self, name: str) -> Path | None:
        return self._directory / name if _ID.fullmatch(name) else None

    def _store(self, path: Path, body: bytearray, *, is_off: bool) -> bool:
        """Store a file if there is room for it; returns whether there was."""
        on_disk = sum(file.stat().st_size for file in path.parent.iterdir() if file != path)
        in_memory = sum(len(data) for name, (_, data) in self._memory.items() if name != path.name)
        if on_disk + in_memory + len(body) > MAX_BYTES:
            return False
        if is_off:
            self._memory[path.name] = self._clock.now(), bytes(body)
        else:
            self._write(path, body)
        return True

    def _write(self, path: Path, body: bytearray) -> None:
        new = path.with_name(f"{path.name}.new")
        try:
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123  pathlib sets no mode
                file.write(body)
                file.flush()
                os.fsync(file.fileno())  # as durable as the message that names it
            self._date(new, timedelta())
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)  # if the disk is full, a part of it would keep it full
        self._memory.pop(path.name, None)

    def _read(self, path: Path, max_bytes: int) -> bytes | None:
        if (upload := self._memory.get(path.name)) is not None:
            self._memory[path.name] = self._clock.now() - (LIFETIME - FETCHED_LIFETIME), upload[1]
            return upload[1][: max_bytes + 1]
        try:
            with path.open("rb") as file:
                body = file.read(max_bytes + 1)
        except FileNotFoundError:
            return None
        self._date(path, LIFETIME - FETCHED_LIFETIME)
        return body

    def _sweep(self, names: Iterable[str], *, is_off: bool) -> None:
        for path in filter(None, map(self._path, names)):
            if path.exists():
                path.chmod(NAMED)
        before = self._clock.now() - LIFETIME
        self._memory = {name: entry for name, entry in self._memory.items() if entry[0] >= before}
        for path in self._directory.iterdir():
            status = path.stat()
            stored_at = datetime.fromtimestamp(status.st_mtime, UTC)
            if stored_at >= before:
                if not is_off or S_IMODE(status.st_mode) == NAMED:
                    continue
                self._memory.setdefault(path.name, (stored_at, path.read_bytes()))
            path.unlink()

    def _date(self, path: Path, age: timedelta) -> None:
        """Set a file's age; does nothing if it no longer exists."""
        at = (self._clock.now() - age).timestamp()
        if path.exists():
            os.utime(path, (at, at))
