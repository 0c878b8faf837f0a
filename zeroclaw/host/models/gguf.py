"""Lists model files, and reads their metadata without loading them; blocks.

The GGUF format: github.com/ggml-org/ggml, docs/gguf.md, version 3 (read 2026-11): magic, counts,
key-value pairs, then the weights. Numbers are little-endian; a string is its length (u64) and
UTF-8.
"""

import mmap
import re
import struct
from contextlib import suppress
from pathlib import Path

from zeroclaw.value import Value

MAGIC = b"GGUF"
_TEXT_TYPE = 8
_LENGTH = struct.Struct("<Q")
# Keys of llama.cpp's template, and of the one that it prefers when there are tools.
_TEMPLATES = ("tokenizer.chat_template", "tokenizer.chat_template.tool_use")
# The vocabulary comes before the template; the largest seen has 12 MB.
_HEADER_BYTES = 64 * 1024 * 1024
# The key is prefixed with the architecture, and followed by the value's type (u32); it is near the
# start.
_WINDOW_KEY = b".context_length" + struct.pack("<I", 4)
_HEAD_BYTES = 1024 * 1024
_TOOLS = re.compile(r"\btools\b")


class ModelFile(Value):
    """A model on this machine.

    Attributes:
        calls_tools: Whether its chat template has a place for tools.
    """

    path: Path
    size_bytes: int
    calls_tools: bool


def model_files(directory: Path) -> tuple[ModelFile, ...]:
    """Return the models in a directory, by name."""
    return tuple(
        ModelFile(path=path, size_bytes=path.stat().st_size, calls_tools=calls_tools)
        for path in sorted(directory.glob("*.gguf"))
        if (calls_tools := knows_tools(path)) is not None
    )


def is_gguf(path: Path) -> bool:
    """Whether a file begins like a GGUF; blocks.

    Raises:
        OSError: It can't be read.
    """
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def knows_tools(path: Path) -> bool | None:
    """Whether the model's chat template has a place for tools; blocks for milliseconds.

    A template without one drops the tool definitions, so the model never sees them.

    Returns:
        None if the file can't be read, or is not a GGUF.
    """
    # An empty file can't be mapped, which raises a ValueError.
    with suppress(OSError, ValueError), path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            return any(_TOOLS.search(_text(mapped, key)) for key in _TEMPLATES)
    return None


def trained_tokens(path: Path) -> int | None:
    """Return the context window that a model was trained with; blocks for milliseconds.

    Returns:
        None if the file does not say, can't be read, or is not a GGUF.
    """
    with suppress(OSError, ValueError), path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        at = head.find(_WINDOW_KEY) + len(_WINDOW_KEY)
        if head.startswith(MAGIC) and at >= len(_WINDOW_KEY) and len(head) >= at + 4:
            return int.from_bytes(head[at : at + 4], "little")
    return None


def _text(mapped: mmap.mmap, key: str) -> str:
    """Return the string of a key; empty if there is none.

    Searches for the bytes of the key: parsing the pairs would read the whole vocabulary, which
    takes 0.1 s.
    """
    name = _LENGTH.pack(len(key)) + key.encode() + struct.pack("<I", _TEXT_TYPE)
    at = mapped.find(name, 0, _HEADER_BYTES)
    start = at + len(name) + _LENGTH.size
    if at < 0 or start > len(mapped):
        return ""
    (length,) = _LENGTH.unpack_from(mapped, at + len(name))
    return mapped[start : min(start + length, _HEADER_BYTES)].decode(errors="replace")
