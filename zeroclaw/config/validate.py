"""Reads a configuration: TOML text in, frozen models out, all faults reported together.

Takes text and mappings only; `host/references.py` handles files, the environment and secrets.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from zeroclaw.config import table_of
from zeroclaw.config.model import ID_PATTERN, NAME_PATTERN, ChannelSettings, Config
from zeroclaw.errors import ConfigError, did_you_mean

MAX_FAULTS = 100
_LISTED = "; `zeroclaw config schema` lists the keys"
_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
_SENTENCES = {
    "missing": "field required",
    "too_short": "should not be empty",
    "tuple_type": "should be a list",
    "string_type": 'should be a text, in quotes: "…"',
    "int_type": "should be a whole number",
    "int_parsing": "should be a whole number",
    "bool_type": "should be true or false",
    "bool_parsing": "should be true or false",
    "float_type": "should be a number",
    "float_parsing": "should be a number",
    "dict_type": "should be a table",
    "model_type": "should be a table",
    "invalid-json-value": "should be a text, a number, true, false, a list or a table",
    # The one dataclass of the settings is `SecretReference`.
    "dataclass_type": 'say where it stands, {env="…"}, {file="…"} or {keyring="…"}, never what it is',
}
"""Replaces pydantic's messages that name Python types, by error type."""
_FORMS = {
    NAME_PATTERN: "a name begins with one of a-z, and goes on with up to 31 of a-z, 0-9, `_` and `-`",
    ID_PATTERN: "an id is <channel>:<sender id>, such as `telegram:7`",
}
"""Replaces messages that quote a regular expression."""


def parse(text: str) -> Config:
    """Parse and validate a configuration.

    Raises:
        ConfigError: Lists every fault with its key path and the allowed values.
    """
    table = table_of(text)
    try:
        return config_of(table)
    except ValidationError as error:
        raise ConfigError(faults_of(error, Config)) from error


def config_of(table: Mapping[str, object]) -> Config:
    """Validate a file's table; configuring one channel keeps the default ones.

    A channel replaces a default channel of the same kind, even under another name.

    Raises:
        ValidationError: Lists every fault.
    """
    config = Config.model_validate(table)
    kinds = {config.kind_of(name) for name in config.channels}
    unnamed = {
        name: settings
        for name, settings in Config().channels.items()
        if name not in config.channels and name not in kinds
    }
    return config.model_copy(update={"channels": {**unnamed, **config.channels}})


def channel_settings(
    config: Config, models: Mapping[str, type[BaseModel]]
) -> tuple[dict[str, BaseModel], tuple[str, ...]]:
    """Validate each channel's own keys against its kind's model.

    Args:
        config: The parsed configuration.
        models: The model of each installed kind.

    Returns:
        The settings by channel name, and the faults of the channels left out.
    """
    found: dict[str, BaseModel] = {}
    faults: list[str] = []
    for name, settings in config.channels.items():
        kind = config.kind_of(name)
        model = models.get(kind)
        if model is None:
            allowed = ", ".join(f"`{other}`" for other in sorted(models))
            faults.append(f"channels.{name}.kind: `{kind}` is not installed; use one of {allowed}")
            continue
        try:
            found[name] = model.model_validate(settings.own())
        except ValidationError as error:
            faults.extend(faults_of(error, model, ChannelSettings, prefix=f"channels.{name}."))
    return found, tuple(faults)


def faults_of(
    error: ValidationError, *models: type[BaseModel], prefix: str = ""
) -> tuple[str, ...]:
    """Return one line per validation fault: its key path, the fault, and the allowed values.

    After `MAX_FAULTS` lines, one line counts the others.

    Args:
        error: The validation's error.
        models: The models whose keys the table may have.
        prefix: Put before each key path.
    """
    faults = error.errors(include_url=False, include_input=False)
    lines = tuple(
        f"{_key_path(fault['loc'], prefix)}: {_sentence(fault, models)}"
        for fault in faults[:MAX_FAULTS]
    )
    if (others := len(faults) - MAX_FAULTS) > 0:
        line = f"{_key_path((), prefix)}: {others} more faults, listed once these are mended"
        return (*lines, line)
    return lines


def _key_path(places: tuple[int | str, ...], prefix: str) -> str:
    # pydantic puts the type of each of the options behind its key
    first = next((n for n in (2, 3) if places[n - 2 : n] == ("provider", "options")), len(places))
    # It appends `[key]` if the key itself is at fault; a fault of the whole table has no path.
    path = "".join(
        f"[{place}]" if isinstance(place, int) else f".{on_one_line(place)}"
        for place in (*places[:first], *places[first::2])
        if place != "[key]"
    )
    return f"{prefix}{path.removeprefix('.')}".removesuffix(".") or "file"


def on_one_line(key: str) -> str:
    """Return a key in the form of a key path: quoted keys may have line breaks."""
    return " ".join(key.split())[:200]


def _sentence(fault: ErrorDetails, models: tuple[type[BaseModel], ...]) -> str:
    kind, places = fault["type"], fault["loc"]
    if kind in _UNKNOWN:
        names = (name for model in models for name in _resolve(model, places[:-1])[0].model_fields)
        return f"unknown key{did_you_mean(str(places[-1]), names) or _LISTED}"
    keys = (_resolve(model, places)[1] for model in models)
    allowed = next((key.description for key in keys if key and key.description), "")
    sentence = _SENTENCES.get(kind, "")
    if allowed and kind != "value_error":
        return f"{sentence and f'{sentence}; '}allowed are {allowed}"
    if pattern := fault.get("ctx", {}).get("pattern"):
        sentence = _FORMS.get(pattern, "has a character that is not allowed")
    if sentence:
        return sentence
    text = fault["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return text[:1].lower() + text[1:]


def _resolve(
    model: type[BaseModel], places: Iterable[int | str]
) -> tuple[type[BaseModel], FieldInfo | None]:
    """Return the model of a nested table, and the last key on the path to it.

    Table names and list indexes in the path are skipped.
    """
    key: FieldInfo | None = None
    for place in places:
        if found := model.model_fields.get(str(place)):
            key, model = found, next(_models_in(found.annotation), model)
    return model, key


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)
