"""Writes files that belong to a person, atomically, and closes what others open; blocks."""

import codecs
import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from zeroclaw.errors import Refused, refused_as
from zeroclaw.host.places import real

_REMEDY = "make it writable for this user"


def replace_text(path: Path, text: str) -> None:
    """Replace a file's text atomically, keeping its mode.

    Root, writing for another user, also keeps the owner, who has to read the file afterwards. A
    symbolic link stays; its target is replaced. A missing file is created for its owner only, and
    so are missing parent directories. The byte order mark and the line ends of some editors stay.

    Args:
        path: The file.
        text: Its new text; a line ends with a line feed.

    Raises:
        Refused: The disk is full or permission is denied, and the old text is kept; or the new
            text stands, but the disk did not confirm it. The message says which.
    """
    target = real(path)
    with refused_as(Refused, f"`{path}` can't be written", _REMEDY):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = target.stat() if target.exists() else None
        first = b"" if found is None else _first_line_of(target)
        if first.startswith(codecs.BOM_UTF8):
            text = f"\ufeff{text}"
        if first.endswith(b"\r\n"):
            text = text.replace("\n", "\r\n")
        with _in_place_of(target) as fresh:
            mode = 0o600 if found is None else found.st_mode & 0o7777
            _write(fresh, text.encode(), mode)
            if found is not None and os.geteuid() == 0:
                os.chown(fresh, found.st_uid, found.st_gid)
    with refused_as(Refused, f"`{path}` is written, but a power cut may undo that"):
        sync_directory(target.parent)


def replace_private(path: Path, body: bytes) -> None:
    """Replace a file of the daemon's own, which only its owner can read; one writer at a time.

    Raises:
        OSError: The disk is full or permission is denied; the old file is kept.
    """
    # A fixed name, so that what a kill leaves is overwritten by the next writer.
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    _write(fresh, body, 0o600)
    fresh.replace(path)


def sync_directory(directory: Path) -> None:
    """Wait until the names in a directory are on the disk."""
    with closing_descriptor(os.open(directory, os.O_RDONLY)) as descriptor:
        os.fsync(descriptor)


@contextmanager
def closing_descriptor(descriptor: int) -> Generator[int]:
    """Close a file descriptor at the end of the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _first_line_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline()


def backup_path(path: Path) -> Path:
    """Copy a file that is about to be replaced to `<name>.before`, and return that path.

    The copy has the file's mode, and replaces an older copy.

    Raises:
        Refused: The disk is full or permission is denied.
    """
    kept = path.with_name(f"{path.name}.before")
    with refused_as(Refused, f"`{kept}` can't be written", _REMEDY), _in_place_of(kept) as fresh:
        shutil.copy2(path, fresh)
    return kept


def write_secret(path: Path, value: str) -> None:
    """Write a secret into a file that only its owner can read, in place of what is there.

    Raises:
        Refused: The file can't be created or replaced.
    """
    with refused_as(Refused, f"`{path}` can't be written", "name another file"):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _in_place_of(path) as fresh:
            _write(fresh, f"{value}\n".encode(), 0o600)


@contextmanager
def _in_place_of(target: Path) -> Generator[Path]:
    """Yield a temporary name next to a file; what the block wrote there then replaces the file."""
    fresh = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        yield fresh
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)


def _write(path: Path, body: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
