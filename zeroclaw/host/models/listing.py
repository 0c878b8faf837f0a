"""Parses a model server's answer to `GET /v1/models`.

Pure. The format is OpenAI's, which Ollama, llama.cpp, LM Studio and vLLM use too: `{"data": [{"id":
"…"}, …]}`; they add further fields (read 2026-11).
"""

from collections.abc import Mapping

from zeroclaw.json_fields import is_array, is_object, objects_at, parse_bytes, text_at
from zeroclaw.value import Value

LONGEST_NAME_CHARS = 200
MAX_MODELS = 500


class Server(Value):
    """A server that answered.

    Attributes:
        name: The product that usually has this address, or host and port.
        base_url: Up to and including `/v1`.
        models: Names of its models, in the server's order.
    """

    name: str
    base_url: str
    models: tuple[str, ...]


# Default addresses, from each product's documentation (read 2026-11). The last ports are also used
# by other programs.
USUAL: Mapping[str, str] = {
    "http://127.0.0.1:11434/v1": "Ollama",
    "http://127.0.0.1:1234/v1": "LM Studio",
    "http://127.0.0.1:8080/v1": "llama.cpp",
    "http://127.0.0.1:8000/v1": "vLLM",
}


def models_in(body: bytes) -> tuple[str, ...] | None:
    """Return the model names in an answer; None if it is not a list of models.

    Names that a terminal can't show unchanged are left out.
    """
    answer = parse_bytes(body)
    if not is_object(answer) or not is_array(answer.get("data")):
        return None
    names = (text_at(model, "id") for model in objects_at(answer, "data"))
    return tuple(dict.fromkeys(filter(_is_plain, names)))[:MAX_MODELS]


def _is_plain(name: str) -> bool:
    return name.isprintable() and len(name.strip()) > 0 and len(name) <= LONGEST_NAME_CHARS
