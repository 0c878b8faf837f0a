"""Searches files for words that should stand in none of them."""

import base64
from pathlib import Path

PHRASE = "marmalade under the third stone"
"""What is said off the record."""


def spellings(phrase: str) -> tuple[bytes, ...]:
    """Return a phrase as it may stand in a file: as it is, wide, in hexadecimal, in Base64."""
    said = phrase.encode()
    shifted = (base64.b64encode(b"x" * shift + said)[4:-4] for shift in range(3))
    return (said, phrase.encode("utf-16-le"), said.hex().encode(), *shifted)


def traces(directory: Path, phrase: str = PHRASE) -> list[str]:
    """Return the files below a directory in which a phrase stands, however it is spelled."""
    return [
        f"{path.relative_to(directory)}: {one!r}"
        for path in sorted(directory.rglob("*"))
        if path.is_file()
        for one in spellings(phrase)
        if one in path.read_bytes()
    ]
