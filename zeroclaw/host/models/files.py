"""Keeps model files: lists them, and takes one in, from a path, so that it is there whole or not.

What arrives is written beside its place under another name, checked, and moved there in one step.

The GGUF format: github.com/ggml-org/ggml, docs/gguf.md, version 3 (read 2026-11): magic, counts,
key-value pairs, then the weights. Numbers are little-endian; a text is its length (u64) and UTF-8.
"""

import errno
import fcntl
import hashlib
import mmap
import os
import re
import shutil
import struct
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

from zeroclaw.errors import Refused, system_words
from zeroclaw.value import Value

CHUNK_BYTES = 4 * 1024 * 1024
SUFFIX = ".gguf"
MAGIC = b"GGUF"
_TEXT_TYPE = 8
_LENGTH = struct.Struct("<Q")
# Keys of the template that llama.cpp takes, and of the one that it prefers when tools are given.
_TEMPLATES = ("tokenizer.chat_template", "tokenizer.chat_template.tool_use")
# The vocabulary stands before the template; the largest seen takes 12 MB.
_HEADER_BYTES = 64 * 1024 * 1024
# The architecture's name stands before it, and the number's type, u32, behind it; near the front.
_WINDOW_KEY = b".context_length" + struct.pack("<I", 4)
_HEAD_BYTES = 1024 * 1024
_TOOLS = re.compile(r"\btools\b")
Show = Callable[[int, int | None], None]
"""Told how many bytes are there, and of how many; None when that is unknown."""


class ModelNotTaken(Refused):
    """Raised when a model could not be taken in; the text says why and what to do."""


class ModelFile(Value):
    """A model that is here.

    Attributes:
        calls_tools: Its chat template has a place for tools.
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
    """Return where a model of this name goes.

    Raises:
        ModelNotTaken: It is no name of a file that ends in `.gguf`.
    """
    is_plain = name.isprintable() and "/" not in name and not name.startswith(".")
    if not is_plain or not name.endswith(SUFFIX):
        message = f"`{name}` is no name for a model; give one that ends in {SUFFIX} with --name"
        raise ModelNotTaken(message)
    return directory / name


def is_here(target: Path, sha256: str) -> bool:
    """Whether this very model is there already; blocks for as long as reading it takes.

    Raises:
        ModelNotTaken: Another one is, or it can't be told without a hash.
    """
    if not os.path.lexists(target):
        return False
    with _told(target):
        if sha256 and target.is_file() and _hash_of(target) == sha256:
            return True
    message = f"`{target}` is there already; take it away, or give another name with --name"
    raise ModelNotTaken(message)


def take(source: Path, target: Path, *, copies: bool, sha256: str, show: Show) -> None:
    """Put a model that is on this machine in its place, as a link or as a copy; blocks.

    Args:
        source: The file.
        target: As `place_for` gave it; nothing is there.
        copies: A copy; else a symbolic link.
        sha256: Empty when it is unknown.
        show: Told the progress.

    Raises:
        ModelNotTaken: It is no GGUF, it has another hash, or the disk refuses.
    """
    with _told(target):
        if not is_gguf(source):
            message = f"`{source}` is not a GGUF model"
            raise ModelNotTaken(message)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not copies:
            if sha256 and _hash_of(source) != sha256:
                raise _another_hash(str(source))
            target.symlink_to(source.absolute())
            return
        with Part(target, sha256 or "copy") as part, source.open("rb") as file:
            part.restart()
            total = source.stat().st_size
            part.needs(total)
            while data := file.read(CHUNK_BYTES):
                part.write(data)
                show(part.size_bytes, total)
            part.finish(sha256 or part.sha256)


class Part:
    """A model that is still arriving; one process at a time works on it. All of it blocks."""

    def __init__(self, target: Path, tag: str) -> None:
        """Open what an earlier try left, and read it once; a new file where none did.

        Args:
            target: Where the whole file goes.
            tag: Tells apart what is not the same; the file's hash.

        Raises:
            ModelNotTaken: Another process is at it, or the disk refuses.
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
                raise ModelNotTaken(message) from error
            while data := self._file.read(CHUNK_BYTES):
                self._take(data)
            unless_ready.pop_all()

    @property
    def sha256(self) -> str:
        """Of what is there so far."""
        return self._digest.hexdigest()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def needs(self, total: int) -> None:
        """Look whether the rest of so many bytes fits.

        Raises:
            ModelNotTaken: It does not.
        """
        free, missing = shutil.disk_usage(self._path.parent).free, total - self.size_bytes
        if missing > free:
            message = (
                f"no space for `{self._target.name}`: it needs {_megabytes(missing)} more, and "
                f"`{self._target.parent}` has {_megabytes(free)}; make room and run this again"
            )
            raise ModelNotTaken(message)

    def write(self, data: bytes) -> None:
        """Add bytes.

        Raises:
            ModelNotTaken: They are no GGUF's, or the disk refuses.
        """
        with _told(self._target):
            self._file.write(data)
            self._file.flush()  # here it can be told that the disk is full
        self._take(data)
        if len(self._begin) == len(MAGIC) and self._begin != MAGIC:
            self._throw_away()
            message = f"what came for `{self._target.name}` is not a GGUF model; is it a web page?"
            raise ModelNotTaken(message)

    def restart(self) -> None:
        """Forget what is there.

        Raises:
            ModelNotTaken: The disk refuses.
        """
        with _told(self._target):
            self._file.seek(0)
            self._file.truncate()
        self._digest = hashlib.sha256()
        self._begin = b""
        self.size_bytes = 0

    def finish(self, sha256: str) -> None:
        """Check the whole and move it into its place.

        Raises:
            ModelNotTaken: It is another file than it should be, and was thrown away; or the disk
                refuses.
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


def _another_hash(name: str, found: str = "") -> ModelNotTaken:
    came = f" ({found}), so it was thrown away" if found else ""
    return ModelNotTaken(f"`{name}` has another SHA-256 than you gave{came}; check both")


@contextmanager
def _told(target: Path) -> Generator[None]:
    """Tell in a line what the disk refuses."""
    try:
        yield
    except OSError as error:
        reason = f"`{error.filename or target}` can't be used: {system_words(error)}"
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            reason = (
                f"no space for `{target.name}` in `{target.parent}`; make room and run this again"
            )
        raise ModelNotTaken(reason) from error


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


# --- what a model file says of itself, without loading the model ---


def is_gguf(path: Path) -> bool:
    """Whether a file begins as a GGUF does; blocks.

    Raises:
        OSError: It can't be read.
    """
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def knows_tools(path: Path) -> bool | None:
    """Whether the model's chat template has a place for tools; blocks for milliseconds.

    A template without one leaves the definitions out, so that the model never hears of them.

    Returns:
        None when the file can't be read, or is no GGUF.
    """
    # A file that is empty can't be mapped: that is the ValueError.
    with suppress(OSError, ValueError), path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            return any(_TOOLS.search(_text(mapped, key)) for key in _TEMPLATES)
    return None


def trained_tokens(path: Path) -> int | None:
    """Return the window that a model was trained for; blocks for milliseconds.

    Returns:
        None when the file does not say, can't be read, or is no GGUF.
    """
    with suppress(OSError, ValueError), path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        at = head.find(_WINDOW_KEY) + len(_WINDOW_KEY)
        if head.startswith(MAGIC) and at >= len(_WINDOW_KEY) and len(head) >= at + 4:
            return int.from_bytes(head[at : at + 4], "little")
    return None


def _text(mapped: mmap.mmap, key: str) -> str:
    """Return the text of a key, empty for none.

    Looked for by its bytes: going through the pairs would read every word of the vocabulary, a
    tenth of a second.
    """
    name = _LENGTH.pack(len(key)) + key.encode() + struct.pack("<I", _TEXT_TYPE)
    at = mapped.find(name, 0, _HEADER_BYTES)
    start = at + len(name) + _LENGTH.size
    if at < 0 or start > len(mapped):
        return ""
    (length,) = _LENGTH.unpack_from(mapped, at + len(name))
    return mapped[start : min(start + length, _HEADER_BYTES)].decode(errors="replace")
