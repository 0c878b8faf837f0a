"""Keeps model files: lists them, and adds one from a path, atomically.

New data is written next to its place under another name, checked, and then renamed.
"""

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from zeroclaw.errors import Refused, system_words
from zeroclaw.host.models.gguf import MAGIC, is_gguf, knows_tools
from zeroclaw.value import Value

CHUNK_BYTES = 4 * 1024 * 1024
SUFFIX = ".gguf"
Show = Callable[[int, int | None], None]
"""Called with the bytes so far, and the total, or None if that is unknown."""


class ModelFile(Value):
    """A model on this machine.

    Attributes:
        calls_tools: Whether its chat template has a place for tools.
    """

    path: Path
    size_bytes: int
    calls_tools: bool


def model_files(directory: Path) -> tuple[ModelFile, ...]:
    """Return the models in a directory, by name; blocks."""
    return tuple(
        ModelFile(path=path, size_bytes=path.stat().st_size, calls_tools=known)
        for path in sorted(directory.glob(f"*{SUFFIX}"))
        if (known := knows_tools(path)) is not None
    )


def place_for(name: str, directory: Path) -> Path:
    """Return the path for a model of this name.

    Raises:
        Refused: It is not a file name that ends in `.gguf`.
    """
    is_plain = name.isprintable() and "/" not in name and not name.startswith(".")
    if not is_plain or not name.endswith(SUFFIX):
        message = f"`{name}` is no name for a model; give one that ends in {SUFFIX} with --name"
        raise Refused(message)
    return directory / name


def is_here(target: Path, sha256: str) -> bool:
    """Whether this very model is already there; blocks while it hashes the file.

    Raises:
        Refused: Another file is there, or there is no hash to compare.
    """
    if not os.path.lexists(target):
        return False
    with _told(target):
        if sha256 and target.is_file() and _hash_of(target) == sha256:
            return True
    message = f"`{target}` is there already; take it away, or give another name with --name"
    raise Refused(message)


def take(source: Path, target: Path, *, copies: bool, sha256: str, show: Show) -> None:
    """Add a model from this machine, as a symbolic link or as a copy; blocks.

    Args:
        source: The file.
        target: The result of `place_for`; must not exist.
        copies: Whether to copy; otherwise a symbolic link is made.
        sha256: Expected hash; empty if unknown.
        show: Receives the progress.

    Raises:
        Refused: It is not a GGUF, its hash differs, or the disk fails.
    """
    with _told(target):
        if not is_gguf(source):
            message = f"`{source}` is not a GGUF model"
            raise Refused(message)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not copies:
            if sha256 and _hash_of(source) != sha256:
                raise _another_hash(str(source))
            target.symlink_to(source.absolute())
            return
        with PartialFile(target, sha256 or "copy") as part, source.open("rb") as file:
            part.restart()
            total = source.stat().st_size
            part.needs(total)
            while data := file.read(CHUNK_BYTES):
                part.write(data)
                show(part.size_bytes, total)
            part.finish(sha256 or part.sha256)


class PartialFile:
    """A model that is still arriving; locked by one process at a time. Everything blocks."""

    def __init__(self, target: Path, tag: str) -> None:
        """Open and hash what an earlier try left, or create a new file.

        Args:
            target: Where the complete file goes.
            tag: Distinguishes downloads of the same name; the file's hash.

        Raises:
            Refused: Another process has the lock, or the disk fails.
        """
        self._path = target.with_name(f".{target.name}.{tag[:16]}.part")
        self._target = target
        self._digest = hashlib.sha256()
        self._begin = b""
        self.size_bytes = 0
        with _told(target), ExitStack() as unless_ready:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644), "r+b")
            unless_ready.callback(self._file.close)
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                message = f"`{target.name}` is being fetched by another zeroclaw; wait for it"
                raise Refused(message) from error
            while data := self._file.read(CHUNK_BYTES):
                self._take(data)
            unless_ready.pop_all()

    @property
    def sha256(self) -> str:
        """The hash of what is there so far."""
        return self._digest.hexdigest()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def needs(self, total: int) -> None:
        """Check that the rest of the file fits on the disk.

        Raises:
            Refused: It does not fit.
        """
        free, missing = shutil.disk_usage(self._path.parent).free, total - self.size_bytes
        if missing > free:
            message = (
                f"no space for `{self._target.name}`: it needs {_megabytes(missing)} more, and "
                f"`{self._target.parent}` has {_megabytes(free)}; make room and run this again"
            )
            raise Refused(message)

    def write(self, data: bytes) -> None:
        """Append bytes.

        Raises:
            Refused: The file is not a GGUF, or the disk fails.
        """
        with _told(self._target):
            self._file.write(data)
            self._file.flush()  # so that a full disk is reported here
        self._take(data)
        if len(self._begin) == len(MAGIC) and self._begin != MAGIC:
            self._throw_away()
            message = f"what came for `{self._target.name}` is not a GGUF model; is it a web page?"
            raise Refused(message)

    def restart(self) -> None:
        """Discard what is there.

        Raises:
            Refused: The disk fails.
        """
        with _told(self._target):
            self._file.seek(0)
            self._file.truncate()
        self._digest = hashlib.sha256()
        self._begin = b""
        self.size_bytes = 0

    def finish(self, sha256: str) -> None:
        """Check the complete file and move it into place.

        Raises:
            Refused: The hash differs, and the part was deleted; or the disk fails.
        """
        if self._begin != MAGIC or self.sha256 != sha256:
            self._throw_away()
            raise _another_hash(self._target.name, self.sha256)
        with _told(self._target):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._path.replace(self._target)

    def _take(self, data: bytes) -> None:
        self._digest.update(data)
        self._begin = (self._begin + data[: len(MAGIC)])[: len(MAGIC)]
        self.size_bytes += len(data)

    def _throw_away(self) -> None:
        self._path.unlink(missing_ok=True)


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _another_hash(name: str, found: str = "") -> Refused:
    came = f" ({found}), so it was thrown away" if found else ""
    return Refused(f"`{name}` has another SHA-256 than you gave{came}; check both")


@contextmanager
def _told(target: Path) -> Generator[None]:
    """Turn disk errors into a one-line `Refused`."""
    try:
        yield
    except OSError as error:
        reason = f"`{error.filename or target}` can't be used: {system_words(error)}"
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            reason = (
                f"no space for `{target.name}` in `{target.parent}`; make room and run this again"
            )
        raise Refused(reason) from error


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
