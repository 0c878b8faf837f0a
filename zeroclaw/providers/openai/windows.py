"""How much a model of an endpoint reads at once: what the endpoint says, else a table.

Pure. There is no agreed name for it in the list of models that each endpoint offers at `/models`;
these are the names of OpenRouter and Together, vLLM, Groq, Mistral and LM Studio, and Anthropic
(documents and sources read 2026-11). llama.cpp's newer builds name what they serve beside what a model
was trained for, which may be more and is not taken; the refusals of older ones say what they serve.
"""

from zeroclaw.json_fields import is_array, is_object, object_at, parse_bytes, text_at

NAMES = (
    "context_length",
    "max_model_len",
    "context_window",
    "max_context_length",
    "max_input_tokens",
)
LEAST, MOST = 512, 100_000_000
AS_OF = "2026-11"
"""The month in which the table was put together, from tables that others keep of what vendors say. Of
a family the smallest window stands here: too small costs a summary, too large a refused request."""
WINDOWS: tuple[tuple[str, int], ...] = (
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-5", 272_000),  # of 400,000 with the answer
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
    """Return what an endpoint's list of models says of one; None when it does not say."""
    for one in _models(body):
        if model in (text_at(one, "id"), text_at(one, "name")):
            said = [*map(one.get, NAMES), object_at(one, "meta").get("n_ctx")]
            found = (size for size in said if isinstance(size, int) and LEAST <= size <= MOST)
            return next(found, None)
    return None


def is_llama_cpp(body: bytes) -> bool:
    """Tell by a list of models whether llama.cpp's server wrote it."""
    return any(text_at(one, "owned_by") == "llamacpp" for one in _models(body))


def _models(body: bytes) -> list[dict[str, object]]:
    listed = parse_bytes(body)
    models = listed.get("data") if is_object(listed) else listed
    return [one for one in models if is_object(one)] if is_array(models) else []


def known_window(model: str) -> int | None:
    """Return what the table says of a model, whatever vendor stands before its name."""
    name = model.rpartition("/")[2].lower()
    return next((size for known, size in WINDOWS if name.startswith(known)), None)
