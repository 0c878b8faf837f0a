"""Searches files for text that must not be in any of them."""

import base64
from pathlib import Path

PHRASE = "marmalade under the third stone"
"""The text that people write off the record."""


def encodings(phrase: str) -> tuple[bytes, ...]:
    """Return the encodings of a phrase to search for: UTF-8, UTF-16, hexadecimal, Base64."""
    plain = phrase.encode()
    shifted = (base64.b64encode(b"x" * shift + plain)[4:-4] for shift in range(3))
    return (plain, phrase.encode("utf-16-le"), plain.hex().encode(), *shifted)


def leaks(directory: Path, phrase: str = PHRASE) -> list[str]:
    """Return the files below a directory that contain a phrase in any encoding."""
    return [
        f"{path.relative_to(directory)}: {encoded!r}"
        for path in sorted(directory.rglob("*"))
        if path.is_file()
        for encoded in encodings(phrase)
        if encoded in path.read_bytes()
    ]
