"""What a model server says that it offers: the answer to `GET /v1/models`, read.

Pure. The form is OpenAI's, which Ollama, llama.cpp, LM Studio and vLLM answer with as well:
`{"data": [{"id": "…"}, …]}`; more fields are theirs (read 2026-11).
"""

from collections.abc import Mapping

from zeroclaw.json_fields import is_array, is_object, objects_at, parse_bytes, text_at
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
    told = parse_bytes(body)
    if not is_object(told) or not is_array(told.get("data")):
        return None
    names = (text_at(one, "id") for one in objects_at(told, "data"))
    return tuple(dict.fromkeys(filter(_is_plain, names)))[:MOST_MODELS]


def _is_plain(name: str) -> bool:
    return name.isprintable() and len(name.strip()) > 0 and len(name) <= LONGEST_NAME_CHARS
