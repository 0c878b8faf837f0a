"""Reads what a GGUF model file says of itself, without loading the model.

Format: github.com/ggml-org/ggml, docs/gguf.md, version 3 (read 2026-11): magic, counts, key-value
pairs, then the weights. Numbers are little-endian; a text is its length (u64) and UTF-8.
"""

import mmap
import re
import struct
from contextlib import suppress
from pathlib import Path

MAGIC = b"GGUF"
_TEXT_TYPE = 8
_LENGTH = struct.Struct("<Q")
# Keys of the template that llama.cpp takes, and of the one that it prefers when tools are given.
_TEMPLATES = ("tokenizer.chat_template", "tokenizer.chat_template.tool_use")
# The vocabulary stands before the template; the largest seen takes 12 MB.
_HEADER_BYTES = 64 * 1024 * 1024
_TOOLS = re.compile(r"\btools\b")


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
