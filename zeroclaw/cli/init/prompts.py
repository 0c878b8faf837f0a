"""The questions of `zeroclaw init` at the terminal; each answer is tried."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import cast, get_args
from urllib.parse import urlsplit

import click
from pydantic import BaseModel, ValidationError

from zeroclaw.channel import ChannelManifest
from zeroclaw.cli.configuration import TrialResult
from zeroclaw.cli.init.template import OWNER, Answers, ChosenChannel
from zeroclaw.cli.invocation import say
from zeroclaw.cli.models.choice import Discovered, Key, choose
from zeroclaw.cli.options import Integer
from zeroclaw.config.edit import value_of
from zeroclaw.config.model import Autonomy, ProviderSettings, endpoint_url
from zeroclaw.config.references import SecretReference
from zeroclaw.config.validate import faults_of
from zeroclaw.errors import Refused
from zeroclaw.host.atomic_file import write_secret
from zeroclaw.host.models.listing import Server
from zeroclaw.host.places import expand, places_of
from zeroclaw.providers.local.checks import FETCH
from zeroclaw.providers.local.provider import model_file_of
from zeroclaw.redact import without_credentials
from zeroclaw.text.language import LANGUAGES, NAMES
from zeroclaw.value import Value, replace

_MAX_SHOWN = 12
_MIN_TOKENS = 512


class Interview(Value):
    """Asks the questions, in order.

    Attributes:
        found: Servers on this machine, and keys in the environment.
        channels: The installed channels, by kind.
        secrets: The directory for typed secrets, each in its own file.
        try_model: Tries a provider.
        try_channel: Tries a channel.
    """

    found: Discovered
    channels: Mapping[str, tuple[ChannelManifest, type[BaseModel]]]
    secrets: Path
    try_model: Callable[[ProviderSettings], TrialResult]
    try_channel: Callable[[ChosenChannel, ChannelManifest], TrialResult]

    def ask(self) -> Answers:
        """Ask every question; blocks until they are answered."""
        provider = self._model()
        chosen: list[ChosenChannel] = []
        operators: list[str] = []
        while not chosen:
            for kind, (manifest, model) in sorted(
                self.channels.items(), key=lambda item: (not item[1][0].local_operator, item[0])
            ):
                if click.confirm(f"Use the channel `{kind}`?", default=manifest.local_operator):
                    chosen.append(self._channel(manifest, model, operators))
            if not chosen:
                click.echo("Without a channel nobody can talk to the bot; choose one.")
        explain(
            "What may tools do without asking you: only read, and nothing else at all (readonly), "
            "read, and ask before anything more (supervised), or all that no rule forbids (full)?"
        )
        levels = click.Choice(get_args(Autonomy))
        autonomy = cast("Autonomy", click.prompt("Autonomy", type=levels, default="supervised"))
        answers = Answers(
            provider=provider, channels=tuple(chosen), operators=tuple(operators), autonomy=autonomy
        )
        if click.confirm(
            "More questions (language, your name, what tools may reach)?", default=False
        ):
            self._ask_more(answers)
        return answers

    # --- the model ---

    def _model(self) -> ProviderSettings:
        number, settings = 1, ProviderSettings()
        while True:  # the previous answers are the defaults
            number, settings = self._provider(number, settings)
            click.echo("trying it with one word …")
            if _is_accepted(self.try_model(settings)):
                return settings

    def _provider(self, default: int, before: ProviderSettings) -> tuple[int, ProviderSettings]:
        """Ask which model to use; return the answer's number and the settings, not tried yet."""
        offers: list[tuple[str, Callable[[], ProviderSettings]]] = []
        for server in self.found.servers:
            if (settings := _first_of(server)) is not None:
                names = f"{len(server.models)} model{'s' if len(server.models) > 1 else ''}"
                label = f"{server.name} on {without_credentials(server.base_url)}, with {names}"
                offers.append((label, partial(_of_server, server, settings)))
        small_model = ProviderSettings(kind="local")
        is_present = model_file_of(small_model, places_of().models).is_file()
        state = " on this machine" if is_present else f", to be fetched first by {FETCH}"
        label = f"the small model{state}, which only chats and calls no tools"
        offers.append((label, lambda: small_model))
        for key in self.found.keys:
            label = f"{without_credentials(key.base_url)}, paid by the key in {key.variable}"
            offers.append((label, partial(_of_key, key)))
        offers.append(("another OpenAI-compatible endpoint", partial(self._of_endpoint, before)))
        click.echo("Which model should answer?")
        for number, (label, _) in enumerate(offers, start=1):
            say(f"  {number}  {label}")
        number = click.prompt("Model", type=Integer(1, len(offers)), default=default)
        return number, offers[number - 1][1]()

    def _of_endpoint(self, before: ProviderSettings) -> ProviderSettings:
        base_url = click.prompt(
            "Its address, up to and with /v1", default=before.base_url or None, value_proc=address
        )
        return ProviderSettings(
            kind="openai",
            base_url=base_url,
            model=_text("The model's name there", default=before.model or None),
            api_key=self._secret("model", is_needed=False),
        )

    # --- channels ---

    def _channel(
        self, manifest: ChannelManifest, model: type[BaseModel], operators: list[str]
    ) -> ChosenChannel:
        if manifest.local_operator:  # local, for this user only: no questions
            return ChosenChannel(kind=manifest.kind)
        settings: dict[str, object] = {}
        fields = model.model_fields
        names = [
            name for name, field in fields.items() if field.is_required() or name in manifest.asks
        ]
        for name in names:
            self._setting(manifest, model, name, settings)
        for name, field in fields.items():
            # A channel may have several ways to be used; one is enough.
            if field.annotation == SecretReference | None and _faults(model, settings):
                self._setting(manifest, model, name, settings)
                names.append(name)
        while True:
            channel = ChosenChannel(kind=manifest.kind, own=dict(settings))
            if _is_accepted(result := self.try_channel(channel, manifest)):
                break
            # Another way to use a channel, such as a webhook, needs keys that were not asked for.
            mentioned = [key for key in fields if re.search(rf"`{key}`|\b{key} = ", result.line)]
            names += [name for name in mentioned if name not in names]
            if not names:
                continue
            likely = next((name for name in names if name in result.line), names[0])
            wrong = click.prompt("Which answer is wrong", type=click.Choice(names), default=likely)
            self._setting(manifest, model, wrong, settings)
        if sender := _sender(manifest):
            operators.append(f"{manifest.kind}:{sender}")
        return ChosenChannel(kind=manifest.kind, own=settings, by_code=not sender)

    def _setting(
        self,
        manifest: ChannelManifest,
        model: type[BaseModel],
        name: str,
        settings: dict[str, object],
    ) -> None:
        """Ask for one setting, until the answer fits its key, and put it into `settings`."""
        field, key = model.model_fields[name], f"{manifest.kind}.{name}"
        is_needed = field.is_required()
        if field.annotation is SecretReference:
            settings[name] = self._secret(key)
        elif field.annotation == SecretReference | None:
            click.echo(f"`{name}` is needed for one way to use {manifest.kind}; see docs/channels.")
            settings[name] = self._secret(key, is_needed=False)
            if settings[name] is None:
                del settings[name]
        else:
            if not is_needed:
                click.echo(f"`{name}` is explained in docs/channels; it may stay empty for now.")

            def parse(answer: str) -> object:
                # A name that looks like a number is still a name.
                value = answer.strip() if field.annotation is str else value_of(answer.strip())
                for fault in _faults(model, {name: value}):
                    if fault.startswith(f"{name}: "):
                        raise click.UsageError(fault)
                return value

            settings[name] = click.prompt(
                name, default=None if is_needed else "", show_default=False, value_proc=parse
            )

    # --- secrets ---

    def _secret(self, key: str, *, is_needed: bool = True) -> SecretReference | None:
        """Ask where a secret is stored; if nowhere yet, write it into a file."""
        explain(
            f"Where is the key of `{key}`: in an environment variable (env), in a file, in the "
            "desktop's keyring, or nowhere yet? Then type it, and it goes into a file that only you "
            "can read."
        )
        kinds = ["env", "file", "keyring", "type", *([] if is_needed else ["none"])]
        while True:
            default = None if is_needed else "none"
            match click.prompt("Key", type=click.Choice(kinds), default=default):
                case "env":
                    name = click.prompt("The variable's name", value_proc=_variable)
                    return SecretReference(env=name)
                case "file":
                    return SecretReference(file=str(_path("The file")))
                case "keyring":
                    entry = click.prompt("Its entry, as service/name", value_proc=_keyring_entry)
                    return SecretReference(keyring=entry)
                case "type":
                    if (reference := self._typed(key)) is not None:
                        return reference
                case _:
                    return None

    def _typed(self, key: str) -> SecretReference | None:
        """Ask for a secret and write it into a file; None if the person picks no file for it."""
        value = _text("The key (not shown)", is_hidden=True)
        path = _path("The file it goes into", default=str(self.secrets / f"{key}.key"))
        is_new = not path.exists()
        if not (is_new or path.is_file()):
            click.echo(f"`{path}` is no file; name another")
            return None
        verb = "Write it into" if is_new else "The file already exists. Replace"
        if not click.confirm(f"{verb} `{path}`, readable by you alone?", default=is_new):
            return None
        try:
            write_secret(path, value)
        except Refused as error:
            click.echo(str(error))
            return None
        return SecretReference(file=str(path))

    # --- more ---

    def _ask_more(self, answers: Answers) -> None:
        """Ask the further questions that a person agreed to, and complete the answers."""
        languages = ", ".join(f"{code} {NAMES[code]}" for code in LANGUAGES)
        click.echo(
            f"In which language are the bot's own sentences, unless people choose theirs: {languages}?"
        )
        codes = click.Choice(LANGUAGES)
        answers.language = click.prompt("Language", type=codes, default=LANGUAGES[0])
        if answers.provider.kind == "openai":
            click.echo(
                "How many tokens does the model read at once? 0 if its server says so itself."
            )
            tokens = int(click.prompt("Context", value_proc=_window, default="0"))
            window = {"context_tokens": tokens or None}
            answers.provider = answers.provider.model_copy(update=window)
        if answers.operators:
            label = "Your name in policies"
            answers.owner = click.prompt(label, value_proc=_name, default=OWNER).lower()
        answers.channels = tuple(map(self._with_strangers, answers.channels))
        answers.fetches = click.confirm("May tools read pages of the internet?", default=True)
        answers.shell_network = click.confirm("May commands reach the network?", default=False)

    def _with_strangers(self, channel: ChosenChannel) -> ChosenChannel:
        """Let strangers request access if the person agrees and the channel allows it."""
        manifest, _ = self.channels[channel.kind]
        if channel.by_code or manifest.local_operator or not manifest.may_pair:
            return channel
        question = f"May strangers on {channel.kind} ask to be let in? You decide about each."
        return replace(channel, by_code=click.confirm(question, default=False))


def _faults(model: type[BaseModel], settings: Mapping[str, object]) -> tuple[str, ...]:
    """Return the faults of a channel's settings, one line each."""
    try:
        model.model_validate(settings)
    except ValidationError as error:
        return faults_of(error, model)
    return ()


def address(answer: str) -> str:
    """Return the address of an endpoint.

    Raises:
        click.UsageError: It is not an address, or contains a secret.
    """
    text = answer.strip().rstrip("/")
    try:
        parts = urlsplit(endpoint_url(text or answer))  # an address may be blank, but not empty
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if "@" in parts.netloc or parts.query:
        message = "leave user, password and ?… out of the address; the key is asked for separately"
        raise click.UsageError(message)
    return text


def _parser_of(fits: Callable[[str], object], refusal: str) -> Callable[[str], str]:
    """Return a parser of answers that fit; the refusal repeats no answer, as it may be a secret."""

    def parse(answer: str) -> str:
        if not fits(text := answer.strip()):
            raise click.UsageError(refusal)
        return text

    return parse


_variable = _parser_of(
    re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch,
    "that is not the name of an environment variable; give the name, not the key",
)
_keyring_entry = _parser_of(
    re.compile(r"[^/]+/.+").fullmatch, "that is not a keyring entry; give service/name, not the key"
)
_window = _parser_of(
    lambda text: text == "0" or (text.isdecimal() and int(text) >= _MIN_TOKENS),
    f"a number of tokens, at least {_MIN_TOKENS}, or 0",
)
_name = _parser_of(
    re.compile(r"(?i)[a-z][a-z0-9_-]{0,31}").fullmatch,  # as `config.Name`
    "a name begins with a letter, and has at most 32 of a to z, digits, - and _",
)


def _first_of(server: Server) -> ProviderSettings | None:
    """Return the settings for the first model of a server that can chat."""
    settings = choose(ProviderSettings(kind="auto"), Discovered(servers=(server,))).settings
    return settings if settings.kind == "openai" else None


def _of_server(server: Server, first: ProviderSettings) -> ProviderSettings:
    if len(server.models) == 1:
        return first
    for name in server.models[:_MAX_SHOWN]:
        say(f"  {name}")
    if (others := len(server.models) - _MAX_SHOWN) > 0:
        click.echo(f"  … and {others} more")
    return first.model_copy(update={"model": _text("Its model", default=first.model)})


def _of_key(key: Key) -> ProviderSettings:
    return ProviderSettings(
        kind="openai",
        base_url=key.base_url,
        model=_text("Its model", default=key.model),
        api_key=SecretReference(env=key.variable),
    )


def explain(text: str) -> None:
    """Print a longer text, wrapped for this terminal."""
    click.echo(click.wrap_text(text, width=click.HelpFormatter().width))


def _is_accepted(result: TrialResult) -> bool:
    """Print the result of a trial; after a failed one, ask whether to use the answers anyway."""
    say(f"  {result.line}")
    return result.is_ok or click.confirm("Use it anyway?", default=False)


def _sender(manifest: ChannelManifest) -> str:
    """Ask for the operator's id on a channel; empty if a code will identify them."""
    hint = (
        " If you don't know it, leave it empty: "
        "the daemon prints a code, and the person who sends it to the bot becomes the operator."
    )
    explain(f"Your sender id there makes you the operator.{hint if manifest.may_pair else ''}")
    default = "" if manifest.may_pair else None
    while typed := _text(f"Your sender id on {manifest.kind}", default=default):
        if sender := manifest.spelled(typed):
            return sender
        click.echo(f"`{typed}` is not the form of a sender id there.")
    return ""


def _text(label: str, *, default: str | None = None, is_hidden: bool = False) -> str:
    """Ask for a text; a blank answer is the default, or is refused where there is none."""

    def parse(answer: str) -> str:
        text = answer.strip() or default
        if text is None:
            message = "that is blank; write an answer"
            raise click.UsageError(message)
        return text

    return click.prompt(
        label, default=default, hide_input=is_hidden, show_default=bool(default), value_proc=parse
    )


def _path(label: str, *, default: str | None = None) -> Path:
    return expand(_text(label, default=default)).absolute()
