"""What a model server says that it offers: the answer to `GET /v1/models`, read.

Pure. The form is OpenAI's, which Ollama, llama.cpp, LM Studio and vLLM answer with as well:
`{"data": [{"id": "…"}, …]}`; more fields are theirs (read 2026-11).
"""

import json
from collections.abc import Mapping
from typing import cast

from zeroclaw.value import Value

LONGEST_NAME_CHARS = 200
MOST_MODELS = 500


class Server(Value):
    """A server that answered.

    Attributes:
        name: What it is likely to be, or its host and port.
        base_url: Up to and with `/v1`.
        models: Their names, in its own order.
    """

    name: str
    base_url: str
    models: tuple[str, ...]


# Where they listen unless told otherwise, by their own documentation (read 2026-11); those that
# people run for other things as well come last.
USUAL: Mapping[str, str] = {
    "http://127.0.0.1:11434/v1": "Ollama",
    "http://127.0.0.1:1234/v1": "LM Studio",
    "http://127.0.0.1:8080/v1": "llama.cpp",
    "http://127.0.0.1:8000/v1": "vLLM",
}


def models_in(body: bytes) -> tuple[str, ...] | None:
    """Return the names that an answer holds; None when it is no list of models.

    A name that a terminal could not show as it is, is left out.
    """
    try:
        told: object = json.loads(body)
    except ValueError:  # not JSON, or not UTF-8
        return None
    found = cast("dict[str, object]", told).get("data") if isinstance(told, dict) else None
    if not isinstance(found, list):
        return None
    entries = [
        cast("dict[str, object]", one).get("id")
        for one in cast("list[object]", found)
        if isinstance(one, dict)
    ]
    names = [one for one in entries if isinstance(one, str) and _is_plain(one)]
    return tuple(dict.fromkeys(names))[:MOST_MODELS]


def _is_plain(name: str) -> bool:
    return name.isprintable() and len(name.strip()) > 0 and len(name) <= LONGEST_NAME_CHARS
