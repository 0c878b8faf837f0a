"""`zeroclaw config`: the configuration's keys, for people's editors."""

import json

import click


@click.group("config")
def command() -> None:
    """Describe the configuration's keys."""


@command.command("schema")
def schema() -> None:
    """Print the JSON Schema of the configuration.

    With every key, its type, its bounds and its default. An editor that knows the schema completes
    keys and marks faults while you type. The keys of each kind of channel are under
    `x-channel-kinds`. `config.example.toml` shows the same with a reason for each key.
    """
    from zeroclaw.cli.installed import channel_models
    from zeroclaw.config import Config

    whole = Config.model_json_schema()
    whole["x-channel-kinds"] = {
        kind: one.model_json_schema() for kind, one in channel_models().items()
    }
    click.echo(json.dumps(whole, indent=2, ensure_ascii=False))
