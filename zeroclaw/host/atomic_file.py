"""Replaces files atomically, and closes file descriptors; blocks."""

import codecs
import os
import secrets
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
        old = target.stat() if target.exists() else None
        first_line = b"" if old is None else _first_line_of(target)
        if first_line.startswith(codecs.BOM_UTF8):
            text = f"\ufeff{text}"
        if first_line.endswith(b"\r\n"):
            text = text.replace("\n", "\r\n")
        with _in_place_of(target) as new:
            mode = 0o600 if old is None else old.st_mode & 0o7777
            _write(new, text.encode(), mode)
            if old is not None and os.geteuid() == 0:
                os.chown(new, old.st_uid, old.st_gid)
    with refused_as(Refused, f"`{path}` is written, but a power cut may undo that"):
        sync_directory(target.parent)


def replace_private(path: Path, body: bytes) -> None:
    """Replace a file that belongs to the daemon, mode 0600; one writer at a time.

    Raises:
        OSError: The disk is full or permission is denied, and the old file is kept; or the new
            one stands, but the disk did not confirm it.
    """
    # A fixed name, so that the next writer removes a file that a killed one left.
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    _write(new, body, 0o600)
    new.replace(path)
    sync_directory(path.parent)


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


def back_up(path: Path) -> Path:
    """Copy a file that is about to be replaced to a new file next to it, and return its path.

    The copy has the file's mode. It is called `<name>.before`, then `<name>.before-2` and so on,
    because an older copy may be the only one that its owner wrote by hand.

    Raises:
        Refused: The disk is full or permission is denied.
    """
    copy = path.with_name(f"{path.name}.before")
    number = 1
    while copy.exists():
        number += 1
        copy = path.with_name(f"{path.name}.before-{number}")
    with refused_as(Refused, f"`{copy}` can't be written", _REMEDY), _in_place_of(copy) as new:
        _write(new, path.read_bytes(), path.stat().st_mode & 0o7777)
    return copy


def write_secret(path: Path, value: str) -> None:
    """Write a secret into a file that only its owner can read; replaces an existing file.

    Raises:
        Refused: The file can't be created or replaced.
    """
    with refused_as(Refused, f"`{path}` can't be written", "name another file"):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _in_place_of(path) as new:
            _write(new, f"{value}\n".encode(), 0o600)


@contextmanager
def _in_place_of(target: Path) -> Generator[Path]:
    """Yield a temporary path next to a file; the file written there then replaces it."""
    new = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        yield new
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)


def _write(path: Path, body: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
