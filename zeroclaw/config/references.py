"""Where a secret stands, as settings say it; `host/references.py` fetches what stands there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretReference:
    """Where a secret stands, exactly one of the three; a field of a channel's settings model.

    `token: SecretReference` takes `token = { env = "BOT_TOKEN" }` in `[channels.<name>]`. The
    daemon fetches the value before anything runs, keeps it out of all that people and models see,
    and hands it over in `ChannelContext.secrets`.

    Attributes:
        env: The name of an environment variable.
        file: The path of a file that holds the secret alone and is readable by its owner alone.
        keyring: `service/name`, of the desktop's keyring.

    Raises:
        ValueError: None is given, or more than one.
    """

    # For pydantic, which validates a dataclass as it stands and isn't loaded by the front door.
    __pydantic_config__: ClassVar[Mapping[str, str]] = {"extra": "forbid"}

    env: str | None = None
    file: str | None = None
    keyring: str | None = None

    def __post_init__(self) -> None:
        """Refuse what leaves open where to look."""
        if sum(value is not None for value in (self.env, self.file, self.keyring)) != 1:
            message = 'give exactly one of {env="…"}, {file="…"}, {keyring="…"}'
            raise ValueError(message)

    def __str__(self) -> str:
        """Return it as the configuration writes it, `{env="BOT_TOKEN"}`."""
        kinds = {"env": self.env, "file": self.file, "keyring": self.keyring}
        kind, place = next((one, where) for one, where in kinds.items() if where is not None)
        return f'{{{kind}="{place}"}}'
