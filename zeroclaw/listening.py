"""Where the daemon listens: the tables `[listener]` and `[public]` of the configuration."""

from ipaddress import ip_address
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator


class ListenerSettings(BaseModel):
    """`[listener]`: the local listener; it never leaves this machine."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: Literal["127.0.0.1", "::1", "localhost"] = "127.0.0.1"
    port: int = Field(default=8420, ge=0, le=65535)


def _own_address(host: str) -> str:
    """Take an address to listen on."""
    try:
        ip_address(host)
    except ValueError:
        message = f"`{host}` is no address of this machine, such as 127.0.0.1, 0.0.0.0 or ::"
        raise ValueError(message) from None
    return host


class PublicSettings(BaseModel):
    """`[public]`: the public listener, for channels that their platform calls; else there is none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: Annotated[str, AfterValidator(_own_address)] = "127.0.0.1"
    port: int = Field(default=8443, ge=0, le=65535)
    cert_file: str = ""
    key_file: str = ""

    @model_validator(mode="after")
    def _both_or_none(self) -> "PublicSettings":
        if bool(self.cert_file) != bool(self.key_file):
            message = "`cert_file` and `key_file` go together; without both it speaks plain HTTP"
            raise ValueError(message)
        return self
