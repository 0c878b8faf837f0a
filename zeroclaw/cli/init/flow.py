"""Makes the first configuration, from questions or from options, and says what to do next."""

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from zeroclaw.channel import ChannelManifest
from zeroclaw.cli.configuration import Loaded, Seen, ask_platform, channel_kinds, faults_in, unready
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
from zeroclaw.host.places import places_of
from zeroclaw.text.language import Language
from zeroclaw.value import Value, replace

CHECK_S = 30.0
"""Seconds that a platform may take to answer."""


class Given(Value):
    """The options of a run that asks nothing; see `zeroclaw init --help`."""

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
    more: tuple[str, ...] = ()


def by_asking(directory: Path) -> str:
    """Ask the person at the terminal, and return the text of the configuration.

    Typed secrets go into files in `directory`.
    """
    found = asyncio.run(discover(ProviderSettings(kind="auto"), os.environ))
    interview = Interview(
        found=found,
        channels=channel_kinds(),
        secrets=directory,
        try_model=model_seen,
        try_channel=channel_seen,
    )
    return compose(interview.ask())


def without_asking(given: Given, *, is_tried: bool) -> str:
    """Return the text of the configuration that the options describe.

    Raises:
        ConfigError: Lists every fault of it.
        Refused: The model or a platform was asked, and does not answer.
    """
    installed = channel_kinds()
    # Strangers need a code on channels that don't know their operator.
    known = {kind for kind, (manifest, _) in installed.items() if manifest.local_operator}
    known |= {one.partition(":")[0] for one in given.operators}
    kinds = dict.fromkeys((*Config().channels, *given.channels))
    answers = Answers(
        provider=_provider(given),
        channels=tuple(
            ChosenChannel(kind=kind, by_code=kind in installed.keys() - known) for kind in kinds
        ),
        operators=given.operators,
        autonomy=given.autonomy,
        owner=given.name,
        language=given.language,
    )
    mute = (
        f"--channel: nobody could write on `{one}`; give --operator {one}:ID too"
        for one in given.channels
        if one in installed.keys() - known and not installed[one][0].may_pair
    )
    known_kinds = ", ".join(f"`{kind}`" for kind in sorted(installed))
    missing = (
        f"--channel: `{one}` is not installed; use one of {known_kinds}"
        for one in given.channels
        if one not in installed
    )
    if wrong := (*_no_senders(given.operators), *mute, *missing):
        raise ConfigError(wrong)
    text = compose(answers)
    for one in given.more:
        key, equals, value = one.partition("=")
        if not equals:
            fault = f"--set: `{key}` has no value; write KEY=VALUE"
            raise ConfigError((fault,))
        text = set_key(text, key.strip(), value.strip())
    config = parse(text)
    faults = tuple(_unheard(given.operators, config))
    if is_tried and not faults:
        faults = tuple(map(_with_option, faults_in(text, environment=os.environ)))
    if faults:
        raise ConfigError(faults)
    if not is_tried:
        return text
    seen = [model_seen(config.provider)]
    for kind, settings in config.channels.items():
        if kind in installed and settings.enabled:
            chosen = ChosenChannel(kind=kind, own=settings.own())
            seen.append(channel_seen(chosen, installed[kind][0]))
    if lines := [one.line for one in seen if not one.is_well]:
        message = f"{'; '.join(lines)}; nothing was written; --unchecked writes it anyway"
        raise Refused(message)
    return text


def next_steps(path: Path, text: str) -> Iterator[str]:
    """Return what to do now that `text` was written to `path`.

    A daemon may have another environment than this one.
    """
    config = parse(text)
    yield f"wrote {path}"
    faults = faults_in(text, environment=os.environ)
    for fault in faults or unready(config.provider, places_of()):
        yield f"  first     {fault}"
    yield f"  start     {command('run')}"
    channels = {name: one for name, one in config.channels.items() if one.enabled}
    if "terminal" in channels:
        yield f"  talk      {command('chat')}"
    if "web" in channels:
        yield "  web page  open the link that the daemon prints when it starts"
    ids = {one for person in config.people if "operator" in person.roles for one in person.ids}
    known = {one.partition(":")[0] for one in ids}
    coded = (name for name, one in channels.items() if one.pairing == "code" and name not in known)
    if by_code := ", ".join(coded):
        if asked := "the web page" if "web" in channels else ", ".join(sorted(known & {*channels})):
            yield f"  operator  write to the bot on {by_code}, and approve your code on {asked}"
        else:
            yield f"  operator  send the code that the daemon prints to the bot, on {by_code}"
    yield f"  test      {command('models test')}"
    yield f"  change    {command('config set KEY VALUE')}"


# --- trying the answers before they are written -------------------------------------------------


def model_seen(settings: ProviderSettings) -> Seen:
    """Ask a model for one short answer; blocks, and runs its own event loop."""
    loaded = Loaded(config=Config(provider=settings), places=places_of())
    try:
        tried = asyncio.run(try_and_close(open_model(loaded, url="", model=""), is_brief=True))
    except ZeroclawError as error:
        return Seen(is_well=False, line=" ".join(str(error).split()))
    if not tried.answers:
        return Seen(is_well=False, line=verdict(tried))
    first_s = tried.answer.first_s or 0.0
    return Seen(is_well=True, line=f"`{tried.model}` answers, after {first_s:.1f} s")


def channel_seen(channel: ChosenChannel, manifest: ChannelManifest) -> Seen:
    """Check a channel's settings and secrets, and ask its platform if the manifest can."""
    settings = ChannelSettings.model_validate(dict(channel.own))
    try:
        checked = check(Config(channels={channel.kind: settings}), os.environ)
        if not manifest.check:
            return Seen(is_well=True, line=f"{channel.kind}: its settings are well-formed")
        (part,) = checked.channels
        seen = asyncio.run(ask_platform(part, checked.redactor, within_s=CHECK_S))
    except ConfigError as error:
        return Seen(is_well=False, line="; ".join(error.faults))
    return replace(seen, line=f"{channel.kind}: {' '.join(seen.line.split())}")


# --- out of options -----------------------------------------------------------------------------


def _with_option(fault: str) -> str:
    """Return a fault, with the option that fixes it if a required key is missing."""
    key, colon, said = fault.partition(": ")
    if not colon or said != "field required":
        return fault
    return f"{fault}; give it as --set {key}=VALUE, a secret as --set '{key}={{env=\"NAME\"}}'"


def _provider(given: Given) -> ProviderSettings:
    """Return the provider that the options describe.

    Raises:
        ConfigError: They don't fit together.
    """
    if not given.url:
        if given.model or given.key_env or given.key_file:
            fault = "--model and keys belong to an endpoint; name it with --url"
            raise ConfigError((fault,))
        return ProviderSettings(kind="local", model_file=given.model_file)
    if given.model_file:
        fault = "--url and --model-file are two models; give one of them"
        raise ConfigError((fault,))
    base_url = address(given.url)
    key: SecretReference | None = None
    try:
        if given.key_env or given.key_file:
            key = SecretReference(env=given.key_env or None, file=given.key_file or None)
        return ProviderSettings(
            kind="openai",
            base_url=base_url,
            model=given.model or asyncio.run(first_of(base_url)),
            api_key=key,
        )
    except ValidationError as error:
        raise ConfigError(faults_of(error, ProviderSettings, prefix="provider.")) from error
    except ValueError as error:
        fault = "--key-env and --key-file are two keys; give one of them"
        raise ConfigError((fault,)) from error


def _no_senders(operators: tuple[str, ...]) -> Iterator[str]:
    for one in operators:
        if not re.fullmatch("[^:]+:.+", one):
            yield f"--operator: `{one}` is not a sender; write CHANNEL:ID, such as telegram:4711"


def _unheard(operators: tuple[str, ...], config: Config) -> Iterator[str]:
    """Yield a fault for each operator on a channel that does not exist."""
    for one in operators:
        channel, _, _ = one.partition(":")
        if channel not in config.channels:
            yield f"--operator: there is no channel `{channel}` here; give --channel {channel} too"
