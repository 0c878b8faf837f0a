"""Writes a new configuration from answers, with comments."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from zeroclaw.config.edit import on_one_line
from zeroclaw.config.model import Autonomy, Config, ProviderSettings
from zeroclaw.config.references import SecretReference
from zeroclaw.text.language import Language
from zeroclaw.value import Struct, Value, field

OWNER = "owner"
HEAD = """\
# zeroclaw's configuration, as `zeroclaw init` wrote it.
#
# Keys that are not here have their defaults. `zeroclaw config schema` lists every key, `zeroclaw
# config set` changes one, and `zeroclaw check-config` finds every fault. Never write a secret here, only
# where it is kept: { env = "NAME" }, { file = "/path" } (mode 600) or { keyring = "service/name" }.
"""
COMMENTS: Mapping[str, str] = {
    "autonomy": "readonly | supervised | full: which calls run, ask, or are denied; see `zeroclaw policy show`",
    "provider": "the model that answers",
    "provider.kind": "local | openai | scripted | auto: a model on this machine, any compatible endpoint, a script for tests, or the first one found",
    "provider.base_url": "for openai: up to and including /v1, such as http://127.0.0.1:11434/v1",
    "provider.model": "for openai: the model's name at the endpoint",
    "provider.model_file": "for local: a GGUF file",
    "provider.api_key": "for openai: leave it out for an endpoint without a key",
    "people": "one person, known on several channels",
    "people.ids": "<channel>:<sender id>, as the platform vouches for them",
    "people.roles": "role:operator in policy",
    "channels.web": "the page on the local listener, for whoever has its login link",
    "channels.terminal": "`zeroclaw chat`, for the daemon's own user",
    "language": "en | de: the language of the bot's own sentences; people choose theirs with `/language`",
    "provider.context_tokens": "tokens, at least 512: the size of the window if nobody else says it, or a smaller one to save money",
    "tools.fetch": "reading pages of the public internet, with GET",
    "tools.fetch.enabled": "false: the model is not told of it",
    "tools.shell": "commands, in a sandbox",
    "tools.shell.network": "true: commands reach what this machine reaches, its own services included",
    "channels.*.enabled": "false: not started",
    "channels.*.allowed_users": 'sender ids that are let in; ["*"]: everybody; local channels need none',
    "channels.*.pairing": "closed | code: strangers get silence, or a code in private, and operators are asked",
}
"""Comments by key path, worded as in `config.example.toml`."""
_COLUMN = 26


class ChosenChannel(Value):
    """A channel that will run.

    Attributes:
        kind: Its kind, which is also its name.
        own: The keys of its kind that do not keep their defaults.
        by_code: Strangers are let in by a code.
    """

    kind: str
    own: Mapping[str, object] = field(default_factory=dict[str, object])
    by_code: bool = False


class Answers(Struct, kw_only=True):
    """All answers.

    Attributes:
        operators: `<channel>:<sender id>` of the operator, on channels that don't know it.
        owner: The operator's name in policies.
        language: The language of the bot's own sentences.
        fetches: Tools may read pages of the internet.
        shell_network: Commands may use the network.
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
    comments = {**COMMENTS, "people.name": f"person:{answers.owner} in policy"}
    lines = (line for table, keys in _tables(answers) for line in _table(table, keys, comments))
    return "\n".join((HEAD, *lines, ""))


def _tables(answers: Answers) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield each table and its keys; keys that are None or empty keep their defaults."""
    language = None if answers.language == "en" else answers.language
    yield "", {"autonomy": answers.autonomy, "language": language}
    keys = ("kind", "base_url", "model", "model_file", "api_key", "context_tokens")
    yield "provider", {key: getattr(answers.provider, key) for key in keys}
    if ids := list(answers.operators):
        yield "people", {"name": answers.owner, "ids": ids, "roles": ["operator"]}
    if not answers.fetches:
        yield "tools.fetch", {"enabled": False}
    if answers.shell_network:
        yield "tools.shell", {"network": True}
    for kind in Config().channels:
        if kind not in {channel.kind for channel in answers.channels}:
            yield f"channels.{kind}", {"enabled": False}
    for channel in answers.channels:
        prefix = f"{channel.kind}:"
        senders = [sender for sender in answers.operators if sender.startswith(prefix)]
        ids = [sender.removeprefix(prefix) for sender in senders]
        pairing = "code" if channel.by_code else None
        yield f"channels.{channel.kind}", {"allowed_users": ids, "pairing": pairing, **channel.own}


def _table(path: str, keys: Mapping[str, object], comments: Mapping[str, str]) -> Iterator[str]:
    pattern = "channels.*" if path.startswith("channels.") else path
    if path:
        header = f"[[{path}]]" if path == "people" else f"[{path}]"
        comment = comments.get(path, f"the {path.removeprefix('channels.')} channel")
        yield from ("", _commented(header, comment))
    for key, value in keys.items():
        if value not in (None, "", []):
            line = f"{key} = {on_one_line(_plain(value))}"
            comment = comments.get(f"{pattern}.{key}" if path else key)
            yield line if comment is None else _commented(line, comment)


def _commented(line: str, comment: str) -> str:
    return f"{line.ljust(_COLUMN - 1)} # {comment}"


def _plain(value: object) -> object:
    if isinstance(value, SecretReference):
        return {key: name for key, name in asdict(value).items() if name is not None}
    return value
