"""Writes a whole new configuration out of answers, with a comment on every line."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Literal

from zeroclaw.config.edit import on_one_line
from zeroclaw.config.model import Config, ProviderSettings
from zeroclaw.config.references import SecretReference
from zeroclaw.text.language import Language
from zeroclaw.value import Value, field

Autonomy = Literal["readonly", "supervised", "full"]

OWNER = "owner"
HEAD = """\
# zeroclaw's configuration, as `zeroclaw init` wrote it.
#
# What is left out keeps its default; `zeroclaw config schema` lists every key, `zeroclaw config set`
# changes one, and `zeroclaw check-config` finds every fault. Secrets are never written here, only
# where they stand: { env = "NAME" }, { file = "/path" } (mode 600) or { keyring = "service/name" }.
"""
COMMENTS: Mapping[str, str] = {
    "autonomy": "readonly | supervised | full: which calls run, ask, or are denied; `zeroclaw policy show`",
    "provider": "the model that answers",
    "provider.kind": "local | openai | scripted | auto: a model on this machine, any compatible endpoint, a script for tests, whatever is found",
    "provider.base_url": "of kind openai: up to and with /v1, such as http://127.0.0.1:11434/v1",
    "provider.model": "of kind openai: the name that the endpoint knows",
    "provider.model_file": "of kind local: a GGUF file",
    "provider.api_key": "of kind openai: leave it out for an endpoint without a key",
    "people": "one person, known on several channels",
    "people.ids": "<channel>:<sender id>, as the platform vouches for them",
    "people.roles": "role:operator in policy",
    "channels.web": "the page on the local listener, for whoever holds its login link",
    "channels.terminal": "`zeroclaw chat`, for the daemon's own user",
    "language": "en | de: what the bot's own sentences are said in; people choose theirs with `/language`",
    "provider.context_tokens": "tokens, at least 512; where the endpoint does not say how long its window is",
    "tools.fetch": "reading pages of the public internet, with GET",
    "tools.fetch.enabled": "false: the model never hears of it",
    "tools.shell": "commands, in a sandbox",
    "tools.shell.network": "true: commands reach what this machine reaches",
    "enabled": "false: not started",
    "allowed_users": 'sender ids that are let in, ["*"]: everybody; local channels need none',
    "pairing": "closed | code: strangers meet silence, or get a code in private and operators are asked",
}
"""By key path, said as `config.example.toml` says it."""
_COLUMN = 26


class ChosenChannel(Value):
    """A channel that is to run.

    Attributes:
        kind: Its kind, which is its name as well.
        own: The keys of its kind that are not left to their defaults.
        by_code: Strangers are let in by a code.
    """

    kind: str
    own: Mapping[str, object] = field(default_factory=dict[str, object])
    by_code: bool = False


class Answers(Value):
    """All that was asked.

    Attributes:
        operators: `<channel>:<sender id>` of the operator, on channels that don't know it.
        owner: What the operator is called in policies.
        language: What the bot's own sentences are said in.
        fetches: Tools may read pages of the internet.
        shell_network: Commands reach the network.
    """

    provider: ProviderSettings
    channels: tuple[ChosenChannel, ...]
    operators: tuple[str, ...] = ()
    autonomy: Autonomy = "supervised"
    owner: str = OWNER
    language: Language = "en"
    fetches: bool = True
    shell_network: bool = False


def compose(answers: Answers) -> str:
    """Return the text of the file."""
    return f"{HEAD}\n" + "\n".join(_lines(answers)) + "\n"


def _lines(answers: Answers) -> Iterator[str]:
    yield _line("autonomy", answers.autonomy)
    if answers.language != "en":
        yield _line("language", answers.language)
    yield from ("", _commented("[provider]", COMMENTS["provider"]))
    provider = answers.provider
    for key in ("kind", "base_url", "model", "model_file", "api_key", "context_tokens"):
        value: object = getattr(provider, key)
        if value:
            yield _line(key, value, "provider.")
    if answers.operators:
        yield from ("", _commented("[[people]]", COMMENTS["people"]))
        yield _commented(
            f"name = {on_one_line(answers.owner)}", f"person:{answers.owner} in policy"
        )
        yield _line("ids", list(answers.operators), "people.")
        yield _line("roles", ["operator"], "people.")
    yield from _tools(answers)
    yield from _channels(answers)


def _channels(answers: Answers) -> Iterator[str]:
    """Yield what was chosen, and the default channels that were not."""
    for kind in Config().channels:
        if kind not in {one.kind for one in answers.channels}:
            yield from ("", _commented(f"[channels.{kind}]", COMMENTS[f"channels.{kind}"]))
            yield _line("enabled", value=False)
    for channel in answers.channels:
        comment = COMMENTS.get(f"channels.{channel.kind}", f"the {channel.kind} channel")
        yield from ("", _commented(f"[channels.{channel.kind}]", comment))
        here = f"{channel.kind}:"
        if ids := [one.removeprefix(here) for one in answers.operators if one.startswith(here)]:
            yield _line("allowed_users", ids)
        if channel.by_code:
            yield _line("pairing", "code")
        for key, value in channel.own.items():
            yield f"{key} = {on_one_line(_plain(value))}"


def _tools(answers: Answers) -> Iterator[str]:
    """Yield what differs from the defaults."""
    keys = {"tools.fetch": "enabled", "tools.shell": "network"}
    values = {"tools.fetch": answers.fetches, "tools.shell": answers.shell_network}
    for table, key in keys.items():
        if values[table] != (table == "tools.fetch"):
            yield from ("", _commented(f"[{table}]", COMMENTS[table]))
            yield _line(key, values[table], f"{table}.")


def _line(key: str, value: object, table: str = "") -> str:
    return _commented(f"{key} = {on_one_line(_plain(value))}", COMMENTS[f"{table}{key}"])


def _commented(line: str, comment: str) -> str:
    return f"{line.ljust(_COLUMN - 1)} # {comment}"


def _plain(value: object) -> object:
    if isinstance(value, SecretReference):
        return {key: one for key, one in asdict(value).items() if one is not None}
    return value
