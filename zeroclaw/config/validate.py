"""Reads a configuration: one TOML text in, frozen models out, every fault at once.

It takes text and mappings only; files, the environment and secrets are `host/references.py`'s.
"""

from collections.abc import Mapping

from pydantic import BaseModel, ValidationError

from zeroclaw.config import table_of
from zeroclaw.config.model import Config
from zeroclaw.config.references import SecretReference
from zeroclaw.errors import ConfigError


def parse(text: str) -> Config:
    """Read a configuration.

    Raises:
        ConfigError: With every fault, each with its key path and what is allowed.
    """
    table = table_of(text)
    try:
        return config_of(table)
    except ValidationError as error:
        raise ConfigError(faults_of(error)) from error


def config_of(table: Mapping[str, object]) -> Config:
    """Validate a file's table; naming one channel leaves the default ones where they are.

    A channel of the same kind under another name stands in place of a default one.

    Raises:
        ValidationError: With every fault.
    """
    config = Config.model_validate(table)
    kinds = {config.kind_of(name) for name in config.channels}
    unnamed = {
        name: one
        for name, one in Config().channels.items()
        if name not in config.channels and name not in kinds
    }
    return config.model_copy(update={"channels": {**unnamed, **config.channels}})


def channel_settings(
    config: Config, models: Mapping[str, type[BaseModel]]
) -> tuple[dict[str, BaseModel], tuple[str, ...]]:
    """Validate each channel's own keys against its kind's model.

    Args:
        config: As parsed.
        models: The model of each installed kind.

    Returns:
        The settings by channel name, and the faults of those that have none.
    """
    found: dict[str, BaseModel] = {}
    faults: list[str] = []
    for name, settings in config.channels.items():
        kind = config.kind_of(name)
        model = models.get(kind)
        if model is None:
            allowed = ", ".join(f"`{known}`" for known in sorted(models))
            faults.append(f"channels.{name}.kind: `{kind}` is not installed; use one of {allowed}")
            continue
        try:
            found[name] = model.model_validate(settings.own())
        except ValidationError as error:
            faults.extend(faults_of(error, prefix=f"channels.{name}."))
    return found, tuple(faults)


def faults_of(error: ValidationError, prefix: str = "") -> tuple[str, ...]:
    """Say each fault of a validation in one line: key path, what is wrong, what is allowed."""
    return tuple(
        f"{_key_path(fault['loc'], prefix)}: {_sentence(fault['type'], fault['msg'])}"
        for fault in error.errors(include_url=False, include_input=False)
    )


def _key_path(places: tuple[int | str, ...], prefix: str) -> str:
    # pydantic says `[key]` after a key that is itself the fault, and nothing of a whole table
    path = ".".join(str(place) for place in places if place != "[key]")
    return f"{prefix}{path}".removesuffix(".") or "file"


def _sentence(kind: str, message: str) -> str:
    if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        return "unknown key; `zeroclaw config schema` lists what is allowed"
    if message.endswith(f"instance of {SecretReference.__name__}"):
        return 'say where it stands, {env="…"}, {file="…"} or {keyring="…"}, never what it is'
    text = message.removeprefix("Value error, ").removeprefix("Input ")
    return text[:1].lower() + text[1:]
