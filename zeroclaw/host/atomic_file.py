"""Writes a file that a person owns, so that it is there whole or not at all; blocks."""

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from zeroclaw.errors import Refused


class NotWritten(Refused):
    """Raised when a file could not be written; the text says which, why, and what to do."""


def replace_text(path: Path, text: str) -> None:
    """Put a text in the place of a file's own, in one step; the file keeps its mode.

    It keeps its owner too, where root writes for somebody else, who has to read it afterwards. A
    link stays one: what it points at is replaced. A file that is not there yet is made, for its
    owner alone, and so are the directories above it.

    Raises:
        NotWritten: The disk or the permissions are in the way; the old text stands.
    """
    target = path.resolve()
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = target.stat() if target.exists() else None
        mode = 0o600 if found is None else found.st_mode & 0o7777
        fresh = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
        try:
            _write(fresh, text, mode)
            if found is not None and os.geteuid() == 0:
                os.chown(fresh, found.st_uid, found.st_gid)
            fresh.replace(target)
        finally:
            with suppress(FileNotFoundError):
                fresh.unlink()
        directory = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        message = f"`{path}` can't be written: {error.strerror}; make it writable for this user"
        raise NotWritten(message) from error


def kept_before(path: Path) -> Path:
    """Copy a file that is about to be replaced to `<name>.before`, and return that path.

    The copy has the file's mode. An older copy goes.

    Raises:
        NotWritten: The disk or the permissions are in the way.
    """
    kept = path.with_name(f"{path.name}.before")
    fresh = path.with_name(f".{kept.name}.{secrets.token_hex(6)}")
    try:
        try:
            shutil.copy2(path, fresh)
            fresh.replace(kept)
        finally:
            with suppress(FileNotFoundError):
                fresh.unlink()
    except OSError as error:
        message = f"`{kept}` can't be written: {error.strerror}; make it writable for this user"
        raise NotWritten(message) from error
    return kept


def write_secret(path: Path, value: str) -> None:
    """Write a secret into a new file that its owner alone may read.

    Raises:
        NotWritten: There is something of that name already, or it can't be made.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(path, f"{value}\n", 0o600)
    except FileExistsError as error:
        message = f"`{path}` is there already; name another file, or give that one"
        raise NotWritten(message) from error
    except OSError as error:
        message = f"`{path}` can't be written: {error.strerror}; name another file"
        raise NotWritten(message) from error


def _write(path: Path, text: str, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
