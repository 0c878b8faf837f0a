"""Chooses the model if the configuration leaves it open: `[provider] kind = "auto"`.

Pure: turns the discovered servers and keys into a choice with a reason, in this order:

    the configured model → a server on this machine → a key in the environment, if a person says yes
    → the local model

Using a key sends people's messages to another company's machine and costs money. So a person is
asked first, and without a person to ask, no key is used.
"""

from collections.abc import Callable, Mapping, Sequence

from zeroclaw.config.model import ProviderSettings
from zeroclaw.config.references import SecretReference
from zeroclaw.host.models.listing import Server
from zeroclaw.redact import without_credentials
from zeroclaw.value import Value, replace

Confirm = Callable[[str], bool]
"""Asks a person a yes-or-no question."""
# Parts of names of models that don't chat; a server's list says nothing else about them.
_NO_CHAT = ("embed", "rerank", "whisper", "bge-", "tts", "clip")


class Key(Value):
    """An API key in the environment, and its endpoint.

    Attributes:
        variable: The environment variable with the key.
        base_url: The endpoint, up to and including `/v1`.
        model: The model to use unless the configuration names one.
    """

    variable: str
    base_url: str
    model: str


# Endpoints with OpenAI's API, by their own documentation (read 2026-11), each with a small model
# whose name is stable. Anthropic's is its compatibility layer.
KEYS = tuple(
    Key(variable=variable, base_url=base_url, model=model)
    for variable, base_url, model in (
        ("OPENAI_API_KEY", "https://api.openai.com/v1", "gpt-5-mini"),
        ("ANTHROPIC_API_KEY", "https://api.anthropic.com/v1", "claude-haiku-4-5"),
        ("OPENROUTER_API_KEY", "https://openrouter.ai/api/v1", "openrouter/auto"),
        ("GROQ_API_KEY", "https://api.groq.com/openai/v1", "openai/gpt-oss-20b"),
        ("MISTRAL_API_KEY", "https://api.mistral.ai/v1", "mistral-small-latest"),
        (
            "GEMINI_API_KEY",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "gemini-2.5-flash",
        ),
        ("DEEPSEEK_API_KEY", "https://api.deepseek.com/v1", "deepseek-chat"),
    )
)


class Discovered(Value):
    """The discovered servers and keys.

    Attributes:
        servers: Servers on this machine that answered, in order of preference.
        keys: Keys in the environment, in order of preference.
    """

    servers: tuple[Server, ...] = ()
    keys: tuple[Key, ...] = ()


class Choice(Value):
    """The chosen provider.

    Attributes:
        settings: Its settings, of a kind that can be opened.
        reason: Why it was chosen, in one line for a person.
    """

    settings: ProviderSettings
    reason: str


def keys_in(environment: Mapping[str, str]) -> tuple[Key, ...]:
    """Return the keys that are set; OpenAI's with the address that may be set with it."""
    # The key may belong to another endpoint; OpenAI's own libraries read its address from here.
    base_url = environment.get("OPENAI_BASE_URL", "").strip().rstrip("/")
    return tuple(
        replace(key, base_url=base_url) if base_url and key.variable == "OPENAI_API_KEY" else key
        for key in KEYS
        if environment.get(key.variable, "").strip()
    )


def configured(settings: ProviderSettings) -> Choice | None:
    """Return the choice that the configuration itself makes; None if it leaves it open."""
    for kind, key, value in (
        ("openai", "base_url", settings.base_url),
        ("local", "model_file", settings.model_file),
        ("scripted", "script", settings.script),
    ):
        if value:
            return _choice(settings, f"the configuration names it: `provider.{key}`", kind=kind)
    return None


def choose(settings: ProviderSettings, found: Discovered, ask: Confirm | None = None) -> Choice:
    """Choose a provider; ask a person about each key until they say yes.

    Args:
        settings: Settings of kind auto.
        found: The discovered servers and keys.
        ask: None without a person to ask; then no key is used.
    """
    if (choice := configured(settings)) is not None:
        return choice
    for server in found.servers:
        if model := _model_of(server, settings.model):
            return _of_server(settings, server, model)
    if ask is not None:
        for key in found.keys:
            if ask(_question(settings, key)):
                return _of_key(settings, key)
    lack = f" offers `{settings.model}`" if settings.model else " answers"
    reason = f"no model server on this machine{lack}{_why_no_key(found.keys, ask)}"
    return _choice(settings, reason, kind="local")


def _model_of(server: Server, name: str) -> str:
    """Return the model to request from a server; empty if it has none that fits."""
    if name:
        # Ollama lists a model without a tag as `:latest`.
        return next((model for model in (name, f"{name}:latest") if model in server.models), "")
    for model in server.models:
        if not any(part in model.lower() for part in _NO_CHAT):
            return model
    return ""


def _of_server(settings: ProviderSettings, server: Server, model: str) -> Choice:
    others = len(server.models) - 1
    hint = f", with {others} more to name in `provider.model`" if others else ""
    reason = f"{server.name} offers it on {without_credentials(server.base_url)}{hint}"
    return _choice(settings, reason, kind="openai", base_url=server.base_url, model=model)


def _question(settings: ProviderSettings, key: Key) -> str:
    model = settings.model or key.model
    return (
        f"{key.variable} is set. Send conversations to {without_credentials(key.base_url)} and let "
        f"`{model}` answer, paid by that key?"
    )


def _of_key(settings: ProviderSettings, key: Key) -> Choice:
    reason = (
        f"you said yes to {key.variable}, for {without_credentials(key.base_url)}; a [provider] that "
        "names it is not asked about"
    )
    return _choice(
        settings,
        reason,
        kind="openai",
        base_url=key.base_url,
        model=settings.model or key.model,
        api_key=SecretReference(env=key.variable),
    )


def _choice(settings: ProviderSettings, reason: str, **values: object) -> Choice:
    return Choice(settings=settings.model_copy(update=values), reason=f"taken because {reason}")


def _why_no_key(keys: Sequence[Key], ask: Confirm | None) -> str:
    names = ", ".join(key.variable for key in keys)
    if not names:
        return ""
    if ask is not None:
        return f", and you said no to {names}"
    return (
        f", and a key in the environment ({names}) is taken only after a yes on a terminal, or in a "
        "[provider] that names it"
    )
