"""Decides which model answers where the configuration leaves it open: `[provider] kind = "auto"`.

Pure. From what was found to a choice and its reason, in this order:

    what the configuration names → a server on this machine → a key in the environment, if a person
    says yes → the local model

A key sends what people write to somebody else's machine and costs money, so a question comes first,
and where nobody can be asked it is left alone.
"""

from collections.abc import Callable, Mapping, Sequence

from zeroclaw.config.model import ProviderSettings
from zeroclaw.config.references import SecretReference
from zeroclaw.host.models.listing import Server
from zeroclaw.redact import without_credentials
from zeroclaw.value import Value, replace

AUTO = "auto"
Ask = Callable[[str], bool]
"""Puts a whole question to a person, who says yes or no."""
# Models that servers offer beside those that answer; by their names, for the list says no more.
_NO_CHAT = ("embed", "rerank", "whisper", "bge-", "tts", "clip")


class Key(Value):
    """A key that stands in the environment, and where it belongs.

    Attributes:
        variable: The name of the variable that holds it.
        base_url: Of the endpoint, up to and with `/v1`.
        model: What is asked for unless the configuration says otherwise.
    """

    variable: str
    base_url: str
    model: str


# Endpoints that speak OpenAI's form, by their own documentation (read 2026-11): small models with
# names that stay. Anthropic's is its compatibility layer.
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
# A key of that name may belong to another endpoint, which OpenAI's own libraries read from here.
_OPENAI_ADDRESS = ("OPENAI_API_KEY", "OPENAI_BASE_URL")


class Found(Value):
    """What there is.

    Attributes:
        servers: Those on this machine that answered, in order of preference.
        keys: Those that stand in the environment, likewise.
    """

    servers: tuple[Server, ...] = ()
    keys: tuple[Key, ...] = ()


class Choice(Value):
    """What is taken.

    Attributes:
        settings: Of a kind that can be opened.
        reason: One line for a person: what was taken, and why.
    """

    settings: ProviderSettings
    reason: str


def keys_in(environment: Mapping[str, str]) -> tuple[Key, ...]:
    """Return the keys that are set; an address beside OpenAI's goes with it."""
    variable, address = _OPENAI_ADDRESS
    elsewhere = environment.get(address, "").strip().rstrip("/")
    return tuple(
        replace(key, base_url=elsewhere) if elsewhere and key.variable == variable else key
        for key in KEYS
        if environment.get(key.variable, "").strip()
    )


def named(settings: ProviderSettings) -> Choice | None:
    """Return what the configuration itself names, None when it leaves it open."""
    for kind, key, value in (
        ("openai", "base_url", settings.base_url),
        ("local", "model_file", settings.model_file),
        ("scripted", "script", settings.script),
    ):
        if value:
            return _taken(settings, f"the configuration names it: `provider.{key}`", kind=kind)
    return None


def choose(settings: ProviderSettings, found: Found, ask: Ask | None = None) -> Choice:
    """Choose, asking a person about each key until a yes.

    Args:
        settings: Of kind auto.
        found: What there is.
        ask: None where nobody can be asked; then no key is taken.
    """
    if (choice := named(settings)) is not None:
        return choice
    for server in found.servers:
        if model := _model_of(server, settings.model):
            return _of_server(settings, server, model)
    if ask is not None:
        for key in found.keys:
            if ask(_question(settings, key)):
                return _of_key(settings, key)
    wanted = f" offers `{settings.model}`" if settings.model else " answers"
    reason = f"no model server on this machine{wanted}{_why_no_key(found.keys, ask)}"
    return _taken(settings, reason, kind="local")


def _model_of(server: Server, wanted: str) -> str:
    """Return the model to ask a server for, empty for none."""
    if wanted:
        # Ollama calls a model without a tag by its newest one.
        return next((one for one in (wanted, f"{wanted}:latest") if one in server.models), "")
    return next((one for one in server.models if not _is_no_chat(one)), "")


def _is_no_chat(model: str) -> bool:
    return any(part in model.lower() for part in _NO_CHAT)


def _of_server(settings: ProviderSettings, server: Server, model: str) -> Choice:
    others = len(server.models) - 1
    more = f", with {others} more to name in `provider.model`" if others else ""
    why = f"{server.name} offers it on {without_credentials(server.base_url)}{more}"
    return _taken(settings, why, kind="openai", base_url=server.base_url, model=model)


def _question(settings: ProviderSettings, key: Key) -> str:
    model = settings.model or key.model
    return (
        f"{key.variable} is set. Send conversations to {without_credentials(key.base_url)} and let "
        f"`{model}` answer, paid by that key?"
    )


def _of_key(settings: ProviderSettings, key: Key) -> Choice:
    why = (
        f"you said yes to {key.variable}, for {without_credentials(key.base_url)}; a [provider] that "
        "names it is not asked about"
    )
    return _taken(
        settings,
        why,
        kind="openai",
        base_url=key.base_url,
        model=settings.model or key.model,
        api_key=SecretReference(env=key.variable),
    )


def _taken(settings: ProviderSettings, why: str, **chosen: object) -> Choice:
    return Choice(settings=settings.model_copy(update=chosen), reason=f"taken because {why}")


def _why_no_key(keys: Sequence[Key], ask: Ask | None) -> str:
    names = ", ".join(key.variable for key in keys)
    if not names:
        return ""
    if ask is not None:
        return f", and you said no to {names}"
    return (
        f", and a key in the environment ({names}) is taken only after a yes on a terminal, or in a "
        "[provider] that names it"
    )
