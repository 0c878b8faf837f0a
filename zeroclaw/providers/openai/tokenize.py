"""Requests and responses of the token counter in llama.cpp's server.

Pure. `POST /tokenize` tokenizes one content, which may be a list of texts and numbers. Numbers pass
through as they are (`tools/server/README.md` of llama.cpp, read 2026-11). So a number that is not a
token separates the texts, and a single request counts all of them.
"""

from collections.abc import Sequence

from msgspec.json import encode

from zeroclaw.json_fields import array_at, is_object, parse_bytes, whole

_APART = -1


def tokenize_body(texts: Sequence[str]) -> bytes:
    """Return the request body; marks of the chat template count as plain text."""
    content: list[str | int] = []
    for text in texts:
        content += [whole(text), _APART]
    return encode({"content": content, "add_special": False, "parse_special": False})


def sizes_in(body: bytes, count: int) -> tuple[int, ...] | None:
    """Return the token count of each of `count` texts; None if the response does not have them."""
    answered = parse_bytes(body)
    sizes: list[int] = []
    size = 0
    for token in array_at(answered, "tokens") if is_object(answered) else ():
        if token == _APART:
            sizes.append(size)
            size = 0
        else:
            size += 1
    return tuple(sizes) if len(sizes) == count else None
