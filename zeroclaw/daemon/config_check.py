"""Finds all faults of a configuration at once, before anything is opened."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import cast

from pydantic import BaseModel

from zeroclaw.channel import Channel, ChannelContext, ChannelManifest
from zeroclaw.config.model import Config, ProviderSettings
from zeroclaw.config.references import SecretReference
from zeroclaw.config.validate import channel_settings
from zeroclaw.context_provider import ContextProvider
from zeroclaw.daemon.extensions import open_context_providers, other_packages, tools_of
from zeroclaw.errors import ConfigError, Refused, ZeroclawError, system_words
from zeroclaw.foreign import Raised, call_now
from zeroclaw.gate.policy import Statement, read_statements
from zeroclaw.gate.vocabulary import (
    Findings,
    Vocabulary,
    check_approvers,
    check_names,
    unused_roles,
)
from zeroclaw.host import plugins
from zeroclaw.host.places import expand, real
from zeroclaw.host.references import resolve, values_to_redact
from zeroclaw.host.tokenizer import FileTokenizer
from zeroclaw.inbound.commands.registry import COMMANDS
from zeroclaw.inbound.identity import OPERATOR
from zeroclaw.limits.budget import price_of
from zeroclaw.redact import Redactor
from zeroclaw.tool import Tool
from zeroclaw.tools.loading import read_skills
from zeroclaw.tools.loading.skill import Skill
from zeroclaw.value import Hidden, Value, field, replace

ANSWERS, SUMMARISES = "provider", "compaction.provider"
"""Key paths of the providers."""


class ChannelPart(Value):
    """A channel of the configuration, whose adapter can be created.

    Attributes:
        is_public: Whether its platform calls it on the public listener.
        secrets: The secrets for its adapter, see `ChannelContext.secrets`.
    """

    name: str
    manifest: ChannelManifest
    settings: BaseModel
    secrets: Hidden[Mapping[str, str]]
    is_public: bool = False

    def load(self) -> None:
        """Import the adapter; blocks for up to half a second."""
        self.load_function(self.manifest.adapter)

    def make(self, context: ChannelContext) -> Channel:
        """Create the adapter; imports its library if `load` has not."""
        # An adapter that is not a channel fails at its first use, where the supervisor reports it.
        new = cast("Callable[[ChannelContext], Channel]", self.load_function(self.manifest.adapter))
        return new(context)

    def load_function(self, target: str) -> object:
        """Import an object that the manifest names, and the libraries it needs.

        Raises:
            ConfigError: The libraries are not installed, or it can't be imported.
        """
        if fault := self.missing_packages():
            raise ConfigError((fault,))
        return plugins.resolve(target, key=_key_path(self.name))

    def missing_packages(self) -> str:
        """Return a fault if libraries of this kind are not installed, else an empty string."""
        if plugins.are_installed(self.manifest.needs):
            return ""
        return f"{_key_path(self.name)}: {plugins.packages_needed(self.manifest.kind)}"


class CheckedConfig(Value):
    """A configuration without faults, except for those that only opening something can show.

    Attributes:
        statements: The policy statements of the configuration.
        channels: Every enabled channel.
        tokenizers: The tokenizer files of providers, by key path.
        redactor: Knows every secret that could be resolved.
        secrets: The needed secrets that could be resolved, by key path.
        resolved: Key paths of all resolved secrets, those of disabled channels included.
        missing: The faults of needed secrets that could not be resolved, by key path.
        unreadable: The faults of needed files that this user can't read.
        skills: The skills in the configured folder.
        warnings: Valid settings that are probably mistakes; each with its key path.
    """

    statements: tuple[Statement, ...]
    channels: tuple[ChannelPart, ...]
    redactor: Redactor
    secrets: Hidden[Mapping[str, str]] = field(default_factory=dict[str, str])
    resolved: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    unreadable: tuple[str, ...] = ()
    skills: tuple[Skill, ...] = ()
    warnings: tuple[str, ...] = ()
    tokenizers: Mapping[str, FileTokenizer] = field(default_factory=dict[str, FileTokenizer])

    def secrets_of(self, path: str) -> dict[str, str]:
        """Return the secrets of one table, by their key below it."""
        return _below(path, self.secrets)


def check(
    config: Config,
    environment: Mapping[str, str],
    *,
    needs_all: bool = True,
    broken: Collection[str] = (),
) -> CheckedConfig:
    """Find every fault of a parsed configuration; blocks on files, a keyring and imports.

    Args:
        config: The parsed configuration.
        environment: `os.environ`, for secret references.
        needs_all: Whether a missing secret or file is a fault. It is not for commands that can do
            without, as the daemon may have another environment; see `CheckedConfig.missing` and
            `CheckedConfig.unreadable`.
        broken: Channels that were left out because of their own faults.

    Raises:
        ConfigError: With all faults.
    """
    faults: list[str] = []
    kinds = kinds_of(faults)
    settings, unfit = channel_settings(config, {kind: model for kind, (_, model) in kinds.items()})
    faults += unfit
    manifests = {
        name: kinds[kind][0] for name in config.channels if (kind := config.kind_of(name)) in kinds
    }
    statements, statement_faults = read_statements(config.policy.statement)
    findings = _name_findings(config, statements, broken)
    faults += [*statement_faults, *findings.faults]
    faults += _unmatchable_ids(config, statements, manifests)
    pairs = (*providers_of(config), *((_key_path(name), table) for name, table in settings.items()))
    references = dict(item for path, table in pairs for item in _references(table, path))
    resolved = resolve(references, environment=environment)
    # Those of disabled channels may be missing, since that may be why the channel was disabled.
    disabled = tuple(
        f"{_key_path(name)}." for name in settings if not config.channels[name].enabled
    )
    missing = {key: it for key, it in resolved.faults.items() if not key.startswith(disabled)}
    secrets = {key: it for key, it in resolved.values.items() if not key.startswith(disabled)}
    parts = [
        ChannelPart(
            name=name,
            manifest=manifests[name],
            settings=table,
            secrets=_below(_key_path(name), secrets),
            is_public=_is_public(manifests[name], table, _key_path(name), faults),
        )
        for name, table in settings.items()
    ]
    faults += [
        f'{_key_path(name)}.pairing: "code" would answer forged senders; name the people '
        "in `allowed_users` instead"
        for name in settings
        if config.channels[name].pairing == "code" and not manifests[name].may_pair
    ]
    route, _, _ = config.approvals.chat.partition(":")
    if route and route not in config.channels:
        faults.append(f"approvals.chat: there is no channel `{route}`; begin with a channel's name")
    providers = ("auto", *plugins.names(plugins.PROVIDERS))
    tokenizers: dict[str, FileTokenizer] = {}
    for path, provider in providers_of(config):
        if provider.kind not in providers:
            names = ", ".join(f"`{name}`" for name in providers)
            faults.append(f"{path}.kind: `{provider.kind}` is not installed; use {names}")
        try:
            if provider.tokenizer:
                tokenizers[path] = FileTokenizer(expand(provider.tokenizer).absolute())
        except Refused as error:
            faults.append(f"{path}.tokenizer: {error}")
    redactor = Redactor(references=values_to_redact(resolved.values, references, environment))
    skills, skill_warnings = _skills(config.skills_dir, redactor, faults)
    enabled = tuple(part for part in parts if config.channels[part.name].enabled)
    unreadable = tuple(_unreadable(config, enabled))
    if faults or (needs_all and (missing or unreadable)):
        raise ConfigError((*faults, *missing.values(), *unreadable))
    return CheckedConfig(
        statements=tuple(statements.values()),
        channels=enabled,
        tokenizers=tokenizers,
        redactor=redactor,
        secrets=secrets,
        resolved=tuple(resolved.values),
        missing=missing,
        unreadable=unreadable,
        skills=skills,
        warnings=(
            *filter(None, (part.missing_packages() for part in enabled)),
            *(
                f"{_key_path(part.name)}.{key}: it is empty; without it, few people or none are answered"
                for part in enabled
                for key in part.manifest.asks
                if not getattr(part.settings, key)
            ),
            *findings.warnings,
            *_self_approvals(config, manifests),
            *_price_warnings(config),
            *_prompt_warnings(config, redactor),
            *skill_warnings,
        ),
    )


def _skills(
    folder: str, redactor: Redactor, faults: list[str]
) -> tuple[tuple[Skill, ...], Iterator[str]]:
    """Return the valid skills, and a warning for each subfolder that is not one."""
    if not folder:
        return (), iter(())
    try:
        skills, warnings = read_skills(expand(folder).absolute(), redactor.redact)
    except OSError as error:
        faults.append(f"skills_dir: `{folder}` can't be read: {system_words(error)}")
        return (), iter(())
    return skills, (f"skills_dir: {warning}" for warning in warnings)


def _unreadable(config: Config, channels: Collection[ChannelPart]) -> Iterator[str]:
    """Yield a fault for each file that a start needs, such as a model, and this user can't read."""
    public, paths = config.public, dict[str, str]()
    if any(part.is_public for part in channels):
        paths = {"public.cert_file": public.cert_file, "public.key_file": public.key_file}
    for key, provider in providers_of(config):
        if provider.kind in {"auto", "local"}:
            paths[f"{key}.model_file"] = provider.model_file
        elif provider.kind == "scripted":
            paths[f"{key}.script"] = provider.script
    for part in channels:
        paths |= {
            f"{_key_path(part.name)}.{key}": path
            for key, path in part.settings
            if key.endswith("_file") and isinstance(path, str)
        }
    for key, path in paths.items():
        # `is_file` raises for a name that is too long, and `access` does not.
        if path and not (os.access(file := expand(path), os.R_OK) and file.is_file()):
            yield f"{key}: `{path}` is no file that this user can read; name one that is"


def _key_path(channel: str) -> str:
    return f"channels.{channel}"


# --- names in the policy -------------------------------------------------------------------------

_BUILT_IN_TOOLS = (
    ("read_file", "file", "path first_line max_lines"),
    ("list_files", "file", "path depth"),
    ("search_files", "file", "pattern path names regex ignore_case max_results"),
    ("write_file", "file", "path content"),
    ("edit_file", "file", "path old_text new_text"),
    ("send_file", "file", "path caption name"),
    ("shell", "sandbox host skill", "command timeout_s"),
    ("fetch", "host", "url links"),
    ("remember", "notes", "text"),
    ("recall", "notes", "words limit"),
    ("forget_note", "notes", "number"),
    ("read_result", "results", "id offset limit word lines"),
    ("read_attachment", "attachment", "id page offset limit"),
    ("load_tools", "tools", "groups"),
    ("load_skills", "skill", "name file"),
)
SHIPPED = {tool: frozenset(kinds.split()) for tool, kinds, _ in _BUILT_IN_TOOLS}
"""The built-in tools, enabled or not, each with the kinds of resources that it names."""
ARGUMENTS = {tool: frozenset(names.split()) for tool, _, names in _BUILT_IN_TOOLS}
"""The arguments of each of them; a test compares this with their declarations."""


def vocabulary_of(config: Config, faults: list[str]) -> Vocabulary:
    """Return all names that a statement may use; blocks on imports of other packages.

    Packages that the daemon could not open add their faults to `faults`.
    """
    tools: dict[str, frozenset[str] | None] = {**SHIPPED}
    for package in other_packages():
        for name in _opened(lambda package=package: tools_of(package), faults):
            if name in tools:
                text = f"`{name}` is a tool already; uninstall one of the two"
                faults.append(f"tools.{package}: {text}")
            tools[name] = None
    return Vocabulary(
        tools=tools,
        commands=tuple(COMMANDS),
        channels=tuple(config.channels),
        people={OPERATOR: (OPERATOR,)} | {person.name: person.roles for person in config.people},
        ids={identity: person.name for person in config.people for identity in person.ids},
        arguments=ARGUMENTS,
    )


def _opened(load: Callable[[], tuple[Tool | ContextProvider, ...]], faults: list[str]) -> list[str]:
    """Return the names of a package's tools or providers; none, and a fault, if it can't be opened."""
    try:
        return [part.spec.name for part in load()]
    except ZeroclawError as error:
        faults += error.faults if isinstance(error, ConfigError) else (str(error),)
        return []


def _name_findings(
    config: Config, statements: Mapping[str, Statement], broken: Collection[str]
) -> Findings:
    """Return the faults and warnings about names in statements and approvers."""
    faults: list[str] = []
    _opened(open_context_providers, faults)
    vocabulary = vocabulary_of(config, faults)
    vocabulary = replace(vocabulary, channels=(*vocabulary.channels, *broken))
    approvers = config.approvals.approvers
    principals = (statement.principals for statement in statements.values())
    findings = [check_approvers(approvers, "approvals.approvers", vocabulary)]
    for path, statement in statements.items():
        findings.append(check_names(statement, path, vocabulary))
        faults += (fault for resource in statement.resources for fault in _links_in(resource, path))
    return Findings(
        faults=(*(fault for finding in findings for fault in finding.faults), *faults),
        warnings=(
            *(warning for finding in findings for warning in finding.warnings),
            *unused_roles(chain([f"role:{OPERATOR}"], approvers, *principals), vocabulary),
            # The other sets already allow every call, or ask about it, and ask beats allow.
            *(
                f'{path}: it has no effect with `autonomy = "{config.autonomy}"`; choose '
                "`readonly` to allow tools by statements"
                for path, statement in statements.items()
                if config.autonomy != "readonly" and statement.effect == "allow"
                if all(action.startswith("tool:") for action in statement.actions)
            ),
        ),
    )


def _unmatchable_ids(
    config: Config, statements: Mapping[str, Statement], manifests: Mapping[str, ChannelManifest]
) -> Iterator[str]:
    """Return faults for ids that no sender of that channel can have: they would never match."""
    ids = (
        *(
            (f"{_key_path(name)}.allowed_users", f"{name}:{sender}")
            for name, settings in config.channels.items()
            for sender in settings.allowed_users
            if sender != "*"
        ),
        *(
            (f"people[{number}].ids", identity)
            for number, person in enumerate(config.people)
            for identity in person.ids
        ),
        *(
            (f"{path}.principals", principal)
            for path, statement in statements.items()
            for principal in statement.principals
        ),
        *(("approvals.approvers", approver) for approver in config.approvals.approvers),
    )
    for path, identity in ids:
        channel, _, sender = identity.partition(":")
        manifest = manifests.get(channel)
        if manifest is None or (spelled := manifest.spelled(sender)) == sender:
            continue
        hint = f"; did you mean `{spelled}`?" if spelled else ""
        yield f"{path}: no sender there can have the id `{sender}`{hint}"


def _links_in(resource: str, path: str) -> Iterator[str]:
    """Yield a fault for a path through a link: tools name real paths, so it would never match."""
    kind, _, path_pattern = resource.partition(":")
    if kind != "file" or not path_pattern.startswith("/"):
        return
    plain, star, _ = path_pattern.partition("*")
    folder = plain.rpartition("/")[0] if star else plain
    target = real(Path(folder or "/"))
    if str(target) != (folder or "/"):
        yield f"{path}.resources: `{resource}` goes through a link: write `file:{target}` for `file:{folder}`"


def _self_approvals(config: Config, manifests: Mapping[str, ChannelManifest]) -> Iterator[str]:
    """Warn if a requester could also answer as another person, against the configuration."""
    if config.approvals.requester_may_answer:
        return
    enabled = {name for name, settings in config.channels.items() if settings.enabled}
    local = {name for name in enabled if manifests[name].local_operator}
    remote = enabled - local
    used = [{identity.partition(":")[0] for identity in person.ids} for person in config.people]
    linked = set[str]().union(*(names for names in used if names & remote))
    if remote and (unlinked := sorted(local - linked)):
        ids = ", ".join(f"`{name}:{OPERATOR}`" for name in unlinked)
        yield (
            "approvals.requester_may_answer: a person who logs in on this machine can answer their own "
            f"requests of another channel; put {ids} and their other ids into one `[[people]]` entry"
        )


# --- price, prompt, secrets ----------------------------------------------------------------------


def _price_warnings(config: Config) -> Iterator[str]:
    """Warn if there is a money limit, but no price for the model."""
    model, budget = config.provider.model, config.budget
    limits = [key for key, limit in budget if key.endswith("_usd") and limit]
    if limits and model and price_of(model, budget, config.provider) is None:
        yield (
            f"budget.{limits[0]}: no price of `{model}` is known, so only tokens count; set it in "
            "`budget.prices`"
        )


def _prompt_warnings(config: Config, redactor: Redactor) -> Iterator[str]:
    """Warn if the operator's prompt, or the configured context files, will be left out of requests."""
    if (path := config.context.directory) and not os.path.isdir(expand(path)):  # noqa: PTH112  `is_dir` raises
        yield f"context.directory: `{path}` is no directory that this user can see; create it"
    if redactor.finds(config.runtime.prompt):
        yield (
            "runtime.prompt: it contains a secret, or text that looks like one, so requests leave out "
            "the whole prompt; remove the secret"
        )


def providers_of(config: Config) -> Iterator[tuple[str, ProviderSettings]]:
    """Yield the configured providers, each with its key path."""
    yield ANSWERS, config.provider
    if config.compaction.provider is not None:
        yield SUMMARISES, config.compaction.provider


def _references(settings: BaseModel, path: str) -> Iterator[tuple[str, SecretReference]]:
    """Yield the references that are set, with their key paths, nested models included."""
    for name in type(settings).model_fields:
        match cast("object", getattr(settings, name)):
            case SecretReference() as reference:
                yield f"{path}.{name}", reference
            case BaseModel() as inner:
                yield from _references(inner, f"{path}.{name}")
            case _:
                pass


def _below(path: str, secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets of one table, by the rest of their key paths."""
    prefix = f"{path}."
    return {key.removeprefix(prefix): it for key, it in secrets.items() if key.startswith(prefix)}


# --- installed channels --------------------------------------------------------------------------


def kinds_of(faults: list[str]) -> dict[str, tuple[ChannelManifest, type[BaseModel]]]:
    """Return every installed kind of channel, and the model of its settings.

    Blocks on files and imports, but imports no SDK.
    """
    found: dict[str, tuple[ChannelManifest, type[BaseModel]]] = {}
    for name in plugins.names(plugins.CHANNELS):
        key = f"channels.{name}"
        try:
            manifest = plugins.load(plugins.CHANNELS, name, key=key)
            if not isinstance(manifest, ChannelManifest):
                faults.append(f"{key}: its entry point is no channel manifest")
                continue
            model = plugins.resolve(manifest.settings, key=f"channels.{manifest.kind}")
        except ConfigError as error:
            faults += error.faults
            continue
        if isinstance(model, type) and issubclass(model, BaseModel):
            found[manifest.kind] = (manifest, model)
        else:
            faults.append(f"channels.{manifest.kind}: `{manifest.settings}` is no pydantic model")
    return found


def _is_public(manifest: ChannelManifest, settings: BaseModel, key: str, faults: list[str]) -> bool:
    """Whether a channel's platform calls it, according to its kind."""
    if not manifest.public:
        return False
    try:
        predicate = cast("Callable[[BaseModel], bool]", plugins.resolve(manifest.public, key=key))
    except ConfigError as error:
        faults += error.faults
        return False
    result = call_now(lambda: predicate(settings))
    if isinstance(result, Raised):
        faults.append(f"{key}: `{manifest.public}` {result.line}")
        return False
    return result
