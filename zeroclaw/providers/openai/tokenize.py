"""How llama.cpp's server is asked to count tokens, and what it answers.

Pure. `POST /tokenize` makes tokens of one content, which may be a list of texts and numbers; numbers
pass as they are (`tools/server/README.md` of llama.cpp, read 2026-11), so that one that is no token
parts the texts and a single request counts all of them.
"""

from collections.abc import Sequence

from msgspec.json import encode

from zeroclaw.json_fields import array_at, is_object, parse_bytes, whole

_APART = -1


def tokenize_body(texts: Sequence[str]) -> bytes:
    """Return what is posted; marks of the chat template are read as the plain text that they are."""
    content: list[str | int] = []
    for text in texts:
        content += [whole(text), _APART]
    return encode({"content": content, "add_special": False, "parse_special": False})


def sizes_in(body: bytes, count: int) -> tuple[int, ...] | None:
    """Return how many tokens each of so many texts has; None where the answer does not say."""
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
