"""A short text in the channel's own directory, which outlives the process."""

import asyncio
from pathlib import Path
from threading import Lock


class Kept:
    """One text, replaced whole and readable by its owner alone; where there is no directory, none."""

    def __init__(self, directory: Path | None, name: str) -> None:
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
