"""Makes the first configuration, from questions or from options, and lists the next steps."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from zeroclaw.channel import ChannelManifest
from zeroclaw.cli.configuration import (
    Loaded,
    TrialResult,
    ask_platform,
    channel_kinds,
    faults_in,
    unready,
)
from zeroclaw.cli.init.prompts import Interview, address
from zeroclaw.cli.init.template import OWNER, Answers, ChosenChannel, compose
from zeroclaw.cli.invocation import command
from zeroclaw.cli.models.provider import discover, first_of, open_model
from zeroclaw.cli.models.trial import try_and_close, verdict
from zeroclaw.config.edit import set_key
from zeroclaw.config.model import Autonomy, ChannelSettings, Config, ProviderSettings
from zeroclaw.config.references import SecretReference
from zeroclaw.config.validate import faults_of, parse
from zeroclaw.daemon.config_check import check
from zeroclaw.errors import ConfigError, Refused, ZeroclawError
from zeroclaw.host import resolver
from zeroclaw.host.places import places_of
from zeroclaw.text.language import Language
from zeroclaw.value import Value, replace

CHECK_S = 30.0
"""Seconds that a platform may take to answer."""


class Options(Value):
    """The options of `zeroclaw init --yes`; see `zeroclaw init --help`."""

    url: str = ""
    model: str = ""
    key_env: str = ""
    key_file: str = ""
    model_file: str = ""
    channels: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    autonomy: Autonomy = "supervised"
    name: str = OWNER
    language: Language = "en"
    keys: tuple[str, ...] = ()


def from_interview(directory: Path) -> str:
    """Ask the person at the terminal, and return the text of the configuration.

    Typed secrets go into files in `directory`.
    """
    found = resolver.run(discover(ProviderSettings(kind="auto"), os.environ))
    interview = Interview(
        found=found,
        channels=channel_kinds(),
        secrets=directory,
        try_model=try_model,
        try_channel=try_channel,
    )
    return compose(interview.ask())


def from_options(options: Options, *, is_tried: bool) -> str:
    """Return the text of the configuration that the options describe.

    Raises:
        ConfigError: Lists every fault of it.
        Refused: The model or a platform was tried, and does not answer.
    """
    installed = channel_kinds()
    # Strangers need a code on channels that don't know their operator.
    with_operator = {kind for kind, (manifest, _) in installed.items() if manifest.local_operator}
    with_operator |= {operator.partition(":")[0] for operator in options.operators}
    with_code = installed.keys() - with_operator
    kinds = dict.fromkeys((*Config().channels, *options.channels))
    answers = Answers(
        provider=_provider(options),
        channels=tuple(ChosenChannel(kind=kind, by_code=kind in with_code) for kind in kinds),
        operators=options.operators,
        autonomy=options.autonomy,
        owner=options.name,
        language=options.language,
    )
    closed = (
        f"--channel: nobody could write on `{kind}`; give --operator {kind}:ID too"
        for kind in options.channels
        if kind in with_code and not installed[kind][0].may_pair
    )
    names = ", ".join(f"`{kind}`" for kind in sorted(installed))
    missing = (
        f"--channel: `{kind}` is not installed; use one of {names}"
        for kind in options.channels
        if kind not in installed
    )
    if faults := (*_malformed_senders(options.operators), *closed, *missing):
        raise ConfigError(faults)
    text = compose(answers)
    for assignment in options.keys:
        key, equals, value = assignment.partition("=")
        if not equals:
            fault = f"--set: `{key}` has no value; write KEY=VALUE"
            raise ConfigError((fault,))
        text = set_key(text, key.strip(), value.strip())
    config = parse(text)
    faults = tuple(_missing_channels(options.operators, config))
    if is_tried and not faults:
        faults = tuple(map(_with_option, faults_in(text, environment=os.environ)))
    if faults:
        raise ConfigError(faults)
    if not is_tried:
        return text
    results = [try_model(config.provider)]
    for kind, settings in config.channels.items():
        if kind in installed and settings.enabled:
            channel = ChosenChannel(kind=kind, own=settings.own())
            results.append(try_channel(channel, installed[kind][0]))
    if lines := [result.line for result in results if not result.is_ok]:
        message = f"{'; '.join(lines)}; nothing was written; --unchecked writes it anyway"
        raise Refused(message)
    return text


def next_steps(path: Path, text: str) -> Iterator[str]:
    """Yield lines on what to do now that `text` was written to `path`.

    Faults of this environment are listed, not raised: a daemon may have another one.
    """
    config = parse(text)
    yield f"wrote {path}"
    faults = faults_in(text, environment=os.environ)
    for fault in faults or unready(config.provider, places_of()):
        yield f"  first     {fault}"
    yield f"  start     {command('run')}"
    channels = {name: settings for name, settings in config.channels.items() if settings.enabled}
    if "terminal" in channels:
        yield f"  talk      {command('chat')}"
    if "web" in channels:
        yield "  web page  open the link that the daemon prints when it starts"
    ids = (id_ for person in config.people if "operator" in person.roles for id_ in person.ids)
    with_operator = {id_.partition(":")[0] for id_ in ids}
    with_code = {name for name, settings in channels.items() if settings.pairing == "code"}
    if by_code := ", ".join(name for name in channels if name in with_code - with_operator):
        approvers_on = ", ".join(sorted(with_operator & {*channels}))
        if "web" in channels:
            approvers_on = "the web page"
        if approvers_on:
            yield f"  operator  write to the bot on {by_code}, and approve your code on {approvers_on}"
        else:
            yield f"  operator  send the code that the daemon prints to the bot, on {by_code}"
    yield f"  test      {command('models test')}"
    yield f"  change    {command('config set KEY VALUE')}"


# --- trying the answers before they are written -------------------------------------------------


def try_model(settings: ProviderSettings) -> TrialResult:
    """Ask a model for one short answer; blocks, and runs its own event loop."""
    loaded = Loaded(config=Config(provider=settings), places=places_of())
    try:
        trial = resolver.run(try_and_close(open_model(loaded, url="", model=""), is_brief=True))
    except ZeroclawError as error:
        return TrialResult(is_ok=False, line=" ".join(str(error).split()))
    if not trial.answers:
        return TrialResult(is_ok=False, line=verdict(trial))
    first_s = trial.answer.first_s or 0.0
    return TrialResult(is_ok=True, line=f"`{trial.model}` answers, after {first_s:.1f} s")


def try_channel(channel: ChosenChannel, manifest: ChannelManifest) -> TrialResult:
    """Check a channel's settings and secrets, and ask its platform if the manifest can."""
    settings = ChannelSettings.model_validate(dict(channel.own))
    try:
        checked = check(Config(channels={channel.kind: settings}), os.environ)
        if not manifest.check:
            return TrialResult(is_ok=True, line=f"{channel.kind}: its settings are well-formed")
        (part,) = checked.channels
        result = resolver.run(ask_platform(part, checked.redactor, within_s=CHECK_S))
    except ConfigError as error:
        return TrialResult(is_ok=False, line="; ".join(error.faults))
    return replace(result, line=f"{channel.kind}: {' '.join(result.line.split())}")


# --- from options -------------------------------------------------------------------------------


def _with_option(fault: str) -> str:
    """Return a fault, with the option that fixes it if a required key is missing."""
    key, colon, text = fault.partition(": ")
    if not colon or text != "field required":
        return fault
    return f"{fault}; give it as --set {key}=VALUE, a secret as --set '{key}={{env=\"NAME\"}}'"


def _provider(options: Options) -> ProviderSettings:
    """Return the provider that the options describe.

    Raises:
        ConfigError: They don't fit together.
    """
    if not options.url:
        if options.model or options.key_env or options.key_file:
            fault = "--model and keys belong to an endpoint; name it with --url"
            raise ConfigError((fault,))
        return ProviderSettings(kind="local", model_file=options.model_file)
    if options.model_file:
        fault = "--url and --model-file are two models; give one of them"
        raise ConfigError((fault,))
    base_url = address(options.url)
    key: SecretReference | None = None
    try:
        if options.key_env or options.key_file:
            key = SecretReference(env=options.key_env or None, file=options.key_file or None)
        return ProviderSettings(
            kind="openai",
            base_url=base_url,
            model=options.model or resolver.run(first_of(base_url)),
            api_key=key,
        )
    except ValidationError as error:
        raise ConfigError(faults_of(error, ProviderSettings, prefix="provider.")) from error
    except ValueError as error:
        fault = "--key-env and --key-file are two keys; give one of them"
        raise ConfigError((fault,)) from error


def _malformed_senders(operators: tuple[str, ...]) -> Iterator[str]:
    for operator in operators:
        if not re.fullmatch("[^:]+:.+", operator):
            yield f"--operator: `{operator}` is not a sender; write CHANNEL:ID, such as telegram:4711"


def _missing_channels(operators: tuple[str, ...], config: Config) -> Iterator[str]:
    """Yield a fault for each operator on a channel that does not exist."""
    for operator in operators:
        channel, _, _ = operator.partition(":")
        if channel not in config.channels:
            yield f"--operator: there is no channel `{channel}` here; give --channel {channel} too"
