"""`config.example.toml` shows every key there is, with the default that it has."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from pydantic import BaseModel

from channels._local import LocalSettings
from channels.discord import DiscordSettings
from channels.email import EmailSettings
from channels.slack import SlackSettings
from channels.telegram import TelegramSettings
from channels.web import WebSettings
from zeroclaw.config.model import ChannelSettings, Config, PersonSettings, StatementSettings
from zeroclaw.config.references import SecretReference
from zeroclaw.config.validate import channel_settings, parse
from zeroclaw.gate.policy import Statement, configured

TEXT = (Path(__file__).parents[2] / "config.example.toml").read_text(encoding="utf-8")
UNCOMMENTED = re.sub(r"^#: ?", "", TEXT, flags=re.MULTILINE).replace("statement = []", "")
KINDS = {"web": WebSettings, "terminal": LocalSettings}
COMMENTED = {
    "discord": DiscordSettings,
    "email": EmailSettings,
    "slack": SlackSettings,
    "telegram": TelegramSettings,
}
"""Kinds that need something of a person's before they run."""


def shown(text: str) -> dict[str, object]:
    """Every key of a text by its path, with its value; of lists of tables, the first."""
    return dict(flat(tomllib.loads(text), ""))


def flat(table: dict[str, object], path: str) -> list[tuple[str, object]]:
    """Tables and lists of tables are gone into, all else is a value."""
    found: list[tuple[str, object]] = []
    for key, value in table.items():
        full_key = f"{path}{key}"
        inner = None if full_key in VALUES else table_of(value)
        found += flat(inner, f"{full_key}.") if inner else [(full_key, value)]
    return found


def table_of(value: object) -> dict[str, object] | None:
    """The table that a value is, or the first of a list of them; what TOML gives has text keys."""
    if isinstance(value, list) and value:
        return table_of(cast("list[object]", value)[0])
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


VALUES = {
    "budget.prices",
    "provider.options",
    "provider.api_key",
    "compaction.provider",
    "policy.statement.when",
    "channels.discord.token",
    "channels.email.password",
    "channels.slack.app_token",
    "channels.slack.bot_token",
    "channels.telegram.token",
}
"""Tables that are a value of one key."""


def of_model(model: type[BaseModel], path: str = "") -> dict[str, object]:
    """Every key of a model by its path, with its default as TOML would say it."""
    found: dict[str, object] = {}
    for key, field in model.model_fields.items():
        full_key = f"{path}{key}"
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found |= of_model(inner, f"{full_key}.")
            continue
        default = cast("object", field.get_default(call_default_factory=True))
        is_tuple = isinstance(default, tuple)
        found[full_key] = list(cast("tuple[object, ...]", default)) if is_tuple else default
    return found


def every_key(kinds: Mapping[str, type[BaseModel]] = KINDS) -> dict[str, object]:
    """What the models say: the keys of the house, and of channels that come with it."""
    keys = of_model(Config)
    for several in ("channels", "people", "policy.statement"):
        del keys[several]
    for name, model in kinds.items():
        keys |= of_model(ChannelSettings, f"channels.{name}.")
        keys |= of_model(model, f"channels.{name}.")
    return keys


def test_the_example_is_what_the_defaults_are() -> None:
    """Whoever copies it changes nothing."""
    config = parse(TEXT)
    assert config.model_copy(update={"channels": Config().channels}) == Config()
    settings, faults = channel_settings(config, KINDS)
    assert (settings, faults) == ({"web": WebSettings(), "terminal": LocalSettings()}, ())


def test_every_key_with_a_default_shows_it() -> None:
    """A default that changes here and not there breaks this."""
    keys = shown(TEXT)
    keys.pop("policy.statement")
    assert keys == {key: value for key, value in every_key().items() if value is not None}


def test_every_key_is_there_and_no_other() -> None:
    """Those without a default, and those of lists, are there as comments that can be used."""
    # In place of another key, so never with it.
    shown_apart = {
        "channels.email.client_secret",
        "channels.email.refresh_token",
        "channels.slack.signing_secret",
    }
    for key in shown_apart:
        assert f"\n# {key.rpartition('.')[2]} = {{" in TEXT
    statement = {f"policy.statement.{key}" for key in Statement.__struct_fields__}
    people = {f"people.{key}" for key in PersonSettings.model_fields}
    every = set(every_key(KINDS | COMMENTED)) - shown_apart
    assert set(shown(UNCOMMENTED)) == every | statement | people


def test_the_commented_examples_are_valid() -> None:
    """Taking `#:` away gives a configuration without a fault."""
    config = parse(UNCOMMENTED)
    assert [statement.id for statement in configured(config.policy.statement)] == ["our-wiki"]
    assert [person.name for person in config.people] == ["ann"]
    settings, faults = channel_settings(config, KINDS | COMMENTED)
    assert faults == ()
    token = SecretReference(env="TELEGRAM_TOKEN")
    assert settings["telegram"] == TelegramSettings(token=token)
    assert settings["discord"] == DiscordSettings(token=SecretReference(env="DISCORD_TOKEN"))
    assert settings["slack"] == SlackSettings(
        bot_token=SecretReference(env="SLACK_BOT_TOKEN"),
        app_token=SecretReference(env="SLACK_APP_TOKEN"),
    )
    assert settings["email"] == EmailSettings(
        address="bot@example.org",
        password=SecretReference(env="MAIL_PASSWORD"),
        imap_host="imap.example.org",
        smtp_host="smtp.example.org",
    )
    common = set(ChannelSettings.model_fields) - {"rate"}
    for name in COMMENTED:
        assert config.channels[name].model_dump(include=common) == (
            ChannelSettings().model_dump(include=common)
        )


def test_every_key_says_why() -> None:
    """A key without a word about it is a riddle; the last table is the one before it again."""
    lines = TEXT.partition("[channels.terminal]")[0].splitlines()
    mute = [line for line in lines if " = " in line and "#" not in line.removeprefix("#:")]
    assert mute == []


@pytest.mark.parametrize("key", ["principals", "actions", "resources"])
def test_a_statement_shows_every_form_of_its_values(key: str) -> None:
    """The faults name the same ones; docs/policy.md leaves it to this file."""
    shown_forms = TEXT.partition(f"\n#: {key} = ")[2].partition("\n")[0]
    forms = re.findall(r"`([^`]+)`", str(StatementSettings.model_fields[key].description))
    assert [form for form in forms if form.partition("<")[0] not in shown_forms] == []
