"""Which model answers if the configuration leaves it open."""

import pytest

from tests.emulators.model_server import ModelServer
from zeroclaw.cli.models.choice import Choice, Confirm, Discovered, Key, choose, keys_in
from zeroclaw.cli.models.provider import discover
from zeroclaw.config.model import ProviderSettings
from zeroclaw.config.references import SecretReference
from zeroclaw.host.models.listing import Server

OLLAMA = Server(
    name="Ollama", base_url="http://127.0.0.1:11434/v1", models=("nomic-embed", "qwen3:8b")
)
STUDIO = Server(name="LM Studio", base_url="http://127.0.0.1:1234/v1", models=("phi:latest",))
EMBEDS = Server(name="vLLM", base_url="http://127.0.0.1:8000/v1", models=("bge-m3",))
FIRST = Key(variable="A_KEY", base_url="https://a/v1", model="a-small")
SECOND = Key(variable="B_KEY", base_url="https://b/v1", model="b-small")
AUTO = ProviderSettings(kind="auto")
PHI = ProviderSettings(kind="auto", model="phi")
NO_SERVER = "taken because no model server on this machine answers"


def person_who_accepts(*accepted: str) -> Confirm:
    """A person who says yes to these keys alone."""
    return lambda question: question.split()[0] in accepted


def summary_of(chosen: Choice) -> tuple[str, str, str]:
    """The kind, address and model of a choice."""
    settings = chosen.settings
    return settings.kind, settings.base_url, settings.model


@pytest.mark.parametrize(
    ("settings", "discovered", "ask", "choice", "reason"),
    [
        (
            ProviderSettings(kind="auto", base_url="http://me/v1", model="m"),
            Discovered(servers=(OLLAMA,)),
            None,
            ("openai", "http://me/v1", "m"),
            "taken because the configuration names it: `provider.base_url`",
        ),
        (
            ProviderSettings(kind="auto", model_file="/m/big.gguf"),
            Discovered(servers=(OLLAMA,), keys=(FIRST,)),
            person_who_accepts(),
            ("local", "", ""),
            "taken because the configuration names it: `provider.model_file`",
        ),
        (
            ProviderSettings(kind="auto", script="s.toml"),
            Discovered(servers=(OLLAMA,)),
            None,
            ("scripted", "", ""),
            "taken because the configuration names it: `provider.script`",
        ),
        (
            AUTO,
            Discovered(servers=(EMBEDS, OLLAMA, STUDIO), keys=(FIRST,)),
            person_who_accepts(),
            ("openai", "http://127.0.0.1:11434/v1", "qwen3:8b"),
            "taken because Ollama offers it on http://127.0.0.1:11434/v1, with 1 more to name in "
            "`provider.model`",
        ),
        (
            PHI,
            Discovered(servers=(OLLAMA, STUDIO)),
            None,
            ("openai", "http://127.0.0.1:1234/v1", "phi:latest"),
            "taken because LM Studio offers it on http://127.0.0.1:1234/v1",
        ),
        (
            PHI,
            Discovered(servers=(OLLAMA,)),
            None,
            ("local", "", "phi"),
            "taken because no model server on this machine offers `phi`",
        ),
        (AUTO, Discovered(), None, ("local", "", ""), NO_SERVER),
        (AUTO, Discovered(servers=(EMBEDS,)), None, ("local", "", ""), NO_SERVER),
        (
            AUTO,
            Discovered(keys=(FIRST, SECOND)),
            None,
            ("local", "", ""),
            f"{NO_SERVER}, and a key in the environment (A_KEY, B_KEY) is taken only after a yes on a "
            "terminal, or in a [provider] that names it",
        ),
        (
            AUTO,
            Discovered(keys=(FIRST, SECOND)),
            person_who_accepts("B_KEY"),
            ("openai", "https://b/v1", "b-small"),
            "taken because you said yes to B_KEY, for https://b/v1; a [provider] that names it is "
            "not asked about",
        ),
        (
            PHI,
            Discovered(keys=(FIRST,)),
            person_who_accepts("A_KEY"),
            ("openai", "https://a/v1", "phi"),
            "taken because you said yes to A_KEY, for https://a/v1; a [provider] that names it is "
            "not asked about",
        ),
        (
            AUTO,
            Discovered(keys=(FIRST, SECOND)),
            person_who_accepts(),
            ("local", "", ""),
            f"{NO_SERVER}, and you said no to A_KEY, B_KEY",
        ),
    ],
)
def test_the_discovered_models_decide_the_choice_and_its_reason(
    settings: ProviderSettings,
    discovered: Discovered,
    ask: Confirm | None,
    choice: tuple[str, str, str],
    reason: str,
) -> None:
    """The configuration, then this machine, then a key with a yes, then the local model."""
    chosen = choose(settings, discovered, ask)
    assert summary_of(chosen) == choice
    assert chosen.reason == reason


def test_a_key_is_never_taken_silently() -> None:
    """Each key has a question until one gets a yes; it names the endpoint and who pays."""
    questions: list[str] = []

    def ask(question: str) -> bool:
        questions.append(question)
        return question.startswith(SECOND.variable)

    third = Key(variable="C_KEY", base_url="https://c/v1", model="c")
    chosen = choose(AUTO, Discovered(keys=(FIRST, SECOND, third)), ask)
    assert summary_of(chosen) == ("openai", "https://b/v1", "b-small")
    assert questions == [
        "A_KEY is set. Send conversations to https://a/v1 and let `a-small` answer, paid by that "
        "key?",
        "B_KEY is set. Send conversations to https://b/v1 and let `b-small` answer, paid by that "
        "key?",
    ]


def test_a_chosen_key_stays_a_reference() -> None:
    """P8: its value is resolved and redacted like every secret."""
    chosen = choose(AUTO, Discovered(keys=(FIRST,)), person_who_accepts("A_KEY"))
    assert chosen.settings.api_key == SecretReference(env="A_KEY")


def test_keys_are_found_by_name_and_belong_to_their_endpoint() -> None:
    """OpenAI's key may belong to another address, given in a second variable."""
    keys = keys_in({"GROQ_API_KEY": "x", "OPENAI_API_KEY": " ", "SOME_API_KEY": "y"})
    assert [(key.variable, key.base_url) for key in keys] == [
        ("GROQ_API_KEY", "https://api.groq.com/openai/v1")
    ]
    elsewhere = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": "http://proxy/v1/", "GROQ_API_KEY": "y"}
    assert [key.base_url for key in keys_in(elsewhere)] == [
        "http://proxy/v1",
        "https://api.groq.com/openai/v1",
    ]


@pytest.mark.slow
async def test_servers_and_keys_are_discovered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timeout suits a busy machine: the first lookup loads the client as well."""
    monkeypatch.setattr("zeroclaw.host.models.servers.LOOPBACK_S", 30.0)
    async with ModelServer() as server:
        addresses = (server.url, "http://127.0.0.1:1/v1")
        monkeypatch.setattr("zeroclaw.cli.models.provider.USUAL", addresses)
        discovered = await discover(AUTO, {"GROQ_API_KEY": "x"})
    assert [server.models for server in discovered.servers] == [("scripted",)]
    assert [key.variable for key in discovered.keys] == ["GROQ_API_KEY"]
    assert summary_of(choose(AUTO, discovered)) == ("openai", server.url, "scripted")


async def test_a_configured_model_needs_no_discovery(monkeypatch: pytest.MonkeyPatch) -> None:
    """The addresses would raise if they were used."""
    monkeypatch.setattr("zeroclaw.cli.models.provider.USUAL", ("?",))
    settings = ProviderSettings(kind="auto", model_file="/m/a.gguf")
    assert await discover(settings, {"GROQ_API_KEY": "x"}) == Discovered()
