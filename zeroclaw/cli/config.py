"""`zeroclaw config` and `zeroclaw check-config`: keys, their schema, and their faults."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import click

from zeroclaw.cli.client import is_running, secrets_of_daemon
from zeroclaw.cli.configuration import channel_models, faults_in, in_file, load, start_of, unready
from zeroclaw.cli.invocation import note, say
from zeroclaw.cli.options import print_result, with_config, with_places
from zeroclaw.config import edit
from zeroclaw.config.diff import changed_keys, is_live
from zeroclaw.config.model import Config, StatementSettings
from zeroclaw.config.validate import channel_settings, parse
from zeroclaw.errors import ConfigError
from zeroclaw.host.atomic_file import replace_text
from zeroclaw.host.places import data_place, find_config, read_config, usual_config


@click.group("config")
def command() -> None:
    """Read and change keys of the configuration, or print its schema."""


@command.command("get")
@click.argument("key")
@with_config
def get(key: str, config: Path | None) -> None:
    """Print the value of a key.

    If the file does not set it, its default. KEY is a path such as `provider.model`; a table is
    printed as TOML.
    """
    loaded = load(config)
    channel_tables, faults = channel_settings(loaded.config, channel_models())
    try:
        value = edit.get(loaded.config, channel_tables, key)
    except ConfigError as error:  # the key may be one of a channel whose settings have a fault
        raise ConfigError((*error.faults, *in_file(loaded.places.config, faults))) from error
    click.echo(edit.as_toml(value))


# Otherwise `config set tools.notes.max_notes -1` would fail as an unknown option.
@command.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("value")
@with_places
def set_(key: str, value: str, **daemon: Path | None) -> None:
    """Set one key in the configuration file; keeps comments and order.

    VALUE is read as TOML (`true`, `8`, `["a"]`, `{ env = "NAME" }`), and as text if it is not TOML.
    A change that would add a fault is not written. Without --config, a missing file is created.
    """
    rewrite(lambda before: edit.set_key(before, key, value), f"{key} is set", **daemon)


@command.command("unset")
@click.argument("key")
@with_places
def unset(key: str, **daemon: Path | None) -> None:
    """Remove one key from the configuration file.

    Its default applies again. KEY is a path such as `provider.attempts`, or a whole table. Other
    comments and the order stay. A change that would add a fault is not written.
    """
    rewrite(lambda before: edit.unset_key(before, key), f"{key} has its default again", **daemon)


def rewrite(
    change: Callable[[str], str], done: str, *, config: Path | None, data_dir: Path | None
) -> None:
    """Write the changed text, unless the change adds a fault; print when it takes effect.

    Args:
        change: Returns the new text; called again if another program has changed the file meanwhile.
        done: What the change does, for the person.
        config: As given on the command line.
        data_dir: As given on the command line.
    """
    found = find_config(config)
    path = found or usual_config()
    before = read_config(found)
    try:
        after = change(before)
    except ConfigError as error:
        raise ConfigError(in_file(path, error.faults)) from error
    # An older fault, such as a variable that only the daemon has, is no reason to refuse an
    # unrelated change.
    old_faults = faults_in(before, environment=os.environ)
    faults = faults_in(after, environment=os.environ)
    if new := tuple(fault for fault in faults if fault not in old_faults):
        raise ConfigError(in_file(path, (*new, "nothing was changed")))
    if read_config(find_config(config)) != before:
        rewrite(change, done, config=config, data_dir=data_dir)
        return
    replace_text(path, after)
    place = data_place(config, data_dir)
    say(f"{path}: {done}; {when_it_applies(before, after, place)}")
    secrets = asyncio.run(secrets_of_daemon(place)) if faults else frozenset[str]()
    remaining = tuple(fault for fault in faults if fault.partition(":")[0] not in secrets)
    for line in in_file(path, remaining):
        note(f"{line} (as before)")


@command.command("schema")
def schema() -> None:
    """Print the JSON Schema of the configuration.

    It has every key with its type, limits and default. An editor that knows the schema completes
    keys and marks faults while you type. The keys of each kind of channel are under
    `x-channel-kinds`. `config.example.toml` lists the same keys with a reason for each.
    """
    document = Config.model_json_schema()
    statements = document["$defs"]["PolicySettings"]["properties"]["statement"]
    statements["items"] = StatementSettings.model_json_schema()
    models = channel_models()
    document["x-channel-kinds"] = {kind: models[kind].model_json_schema() for kind in models}
    print_result(document, (), as_json=True)


@click.command("check-config")
@with_places
def check(config: Path | None, data_dir: Path | None) -> None:
    """Find every fault in the configuration.

    Checks the syntax, every key, also those of the installed channels, the policy's statements,
    that the named files exist, and that each secret can be read, here or by the running daemon.
    Prints one line for each fault, and exits with 2 if there is any. An oddity, such as a role
    without people, is a warning. Starts nothing and changes nothing.
    """
    start = start_of(load(config, data_dir), os.environ, needs_all=False)
    places, missing = start.places, start.checked.missing
    secrets = asyncio.run(secrets_of_daemon(places.data)) if missing else frozenset[str]()
    faults = (*(missing[key] for key in missing if key not in secrets), *start.checked.unreadable)
    if faults:
        raise ConfigError(in_file(places.config, faults))
    for key in missing:
        click.echo(f"{key}: not known in this shell; the running daemon has it")
    name = places.config or "the built-in defaults"
    no_model = (f"provider: {reason}" for reason in unready(start.config.provider, places))
    for warning in (*start.checked.warnings, *no_model):
        say(f"{name}: warning: {warning}")
    click.echo(f"{name}: no faults")
    click.echo(f"data in {places.data}, workspaces in {places.workspaces}")


def when_it_applies(before: str, after: str, place: Path) -> str:
    """Return a clause on when a change takes effect.

    Args:
        before: The old text.
        after: The new text.
        place: The data directory, where a daemon may run.
    """
    try:
        keys = changed_keys(parse(before), parse(after))
    except ConfigError:
        return "it applies once the file has no fault and zeroclaw is restarted"
    if not keys:
        return "the configuration means the same as before"
    if not asyncio.run(is_running(place)):
        return "it applies when zeroclaw is started"
    if all(map(is_live, keys)):
        return "zeroclaw is running; `zeroclaw reload` puts it in force"
    return "zeroclaw is running; it applies when the daemon is restarted"
