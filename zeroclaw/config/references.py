"""Secret references in settings; `host/references.py` resolves them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretReference:
    """The source of a secret, exactly one of the three; a field of a channel's settings model.

    `token: SecretReference` takes `token = { env = "BOT_TOKEN" }` in `[channels.<name>]`. The
    daemon resolves the value before anything runs, keeps it out of everything that people and
    models see, and passes it in `ChannelContext.secrets`.

    Attributes:
        env: The name of an environment variable.
        file: The path of a file that contains only the secret and is readable only by its owner.
        keyring: `service/name` in the desktop's keyring.

    Raises:
        ValueError: None of them is given, or more than one.
    """

    # For pydantic, which validates plain dataclasses; the front door must not import pydantic.
    __pydantic_config__: ClassVar[Mapping[str, str]] = {"extra": "forbid"}

    env: str | None = None
    file: str | None = None
    keyring: str | None = None

    def __post_init__(self) -> None:
        """Check that exactly one source is given."""
        if sum(value is not None for value in (self.env, self.file, self.keyring)) != 1:
            message = 'give exactly one of {env="…"}, {file="…"}, {keyring="…"}'
            raise ValueError(message)

    def __str__(self) -> str:
        """Return it in the configuration's syntax, `{env="BOT_TOKEN"}`."""
        kinds = {"env": self.env, "file": self.file, "keyring": self.keyring}
        kind, name = next((kind, name) for kind, name in kinds.items() if name is not None)
        return f'{{{kind}="{name}"}}'
