"""A model's context window: as the endpoint reports it, else from a table.

Pure. Endpoints list their models at `/models`, but there is no agreed name for the window in that
list. These are the names used by OpenRouter and Together, vLLM, Groq, Mistral and LM Studio, and
Anthropic (documents and sources read 2026-11). Newer builds of llama.cpp report the window they
serve, and also the one the model was trained for, which may be larger and is ignored. Older builds
report the served window only in their refusals.
"""

from zeroclaw.json_fields import is_array, is_object, object_at, parse_bytes, text_at

NAMES = (
    "context_length",
    "max_model_len",
    "context_window",
    "max_context_length",
    "max_input_tokens",
)
MIN_TOKENS, MAX_TOKENS = 512, 100_000_000
AS_OF = "2026-11"
"""The month in which the table was compiled, from public tables of vendors' statements. For a
family of models it has the smallest window: too small costs a summary, too large a refused request.
"""
WINDOWS: tuple[tuple[str, int], ...] = (
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-5", 272_000),  # 400,000 including the answer
    ("gpt-oss", 131_072),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("claude-", 200_000),
    ("gemini-2.", 1_048_576),
    ("mistral-small", 128_000),
    ("mistral-medium", 128_000),
    ("mistral-large", 128_000),
    ("deepseek-", 65_536),
)


def window_in(body: bytes, model: str) -> int | None:
    """Return a model's window according to an endpoint's list of models; None if not stated."""
    for entry in _models(body):
        if model in (text_at(entry, "id"), text_at(entry, "name")):
            values = [*map(entry.get, NAMES), object_at(entry, "meta").get("n_ctx")]
            sizes = (value for value in values if isinstance(value, int))
            return next((size for size in sizes if MIN_TOKENS <= size <= MAX_TOKENS), None)
    return None


def is_llama_cpp(body: bytes) -> bool:
    """Whether a list of models was written by llama.cpp's server."""
    return any(text_at(entry, "owned_by") == "llamacpp" for entry in _models(body))


def _models(body: bytes) -> list[dict[str, object]]:
    listed = parse_bytes(body)
    models = listed.get("data") if is_object(listed) else listed
    return [entry for entry in models if is_object(entry)] if is_array(models) else []


def known_window(model: str) -> int | None:
    """Return a model's window according to the table, ignoring a vendor prefix."""
    name = model.rpartition("/")[2].lower()
    return next((size for prefix, size in WINDOWS if name.startswith(prefix)), None)
