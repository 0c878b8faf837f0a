"""A kind of channel whose settings hold secrets; tests check it and never open it."""

from pydantic import BaseModel, ConfigDict

from zeroclaw import ChannelManifest, SecretReference


class Mailbox(BaseModel):
    """A model within the settings."""

    user: str
    password: SecretReference


class PostOfficeSettings(BaseModel):
    """One required secret, and two optional ones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    desk: SecretReference
    spare: SecretReference | None = None
    mailbox: Mailbox | None = None


MANIFEST = ChannelManifest(
    kind="post", adapter=f"{__name__}:nowhere", settings=f"{__name__}:PostOfficeSettings"
)
