"""Discord: one bot account, received over the gateway.

Importing this module does not need the library of the extra `discord`.
"""

import base64
from contextlib import suppress
from typing import Literal

from pydantic import Field, field_validator

from channels._remote.settings import RemoteSettings
from zeroclaw import (
    Budget,
    Capabilities,
    ChannelManifest,
    ChannelUnauthorized,
    SecretReference,
    replace,
)

CAPABILITIES = Capabilities(
    max_length=2000,  # Create Message, `content`, read 2026-11
    can_edit=True,
    can_delete=True,
    has_buttons=True,
    has_typing=True,
    # Each send carries a nonce that Discord checks against "the past few minutes" (Create Message,
    # `enforce_nonce`, read 2026-11). The daemon may be down for longer, so sends with an unknown
    # outcome are looked up.
    can_lookup=True,
    max_file_bytes=10 * 1024 * 1024,  # "Uploading Files", the default for a bot, read 2026-11
    # Discord states most limits only in response headers, and says not to hard-code them ("Rate
    # Limits", read 2026-11). Seen there: 5 messages in 5 s in a channel, and the same for edits.
    # Published: 50 calls a second in all. Here edits and sends share one budget, slightly below these.
    min_edit_interval_s=1.1,
    chat_budget=Budget(per_s=0.9, burst=4),
    account_budget=Budget(per_s=40, burst=30),
)
API = "https://discord.com/api/v10"


class DiscordSettings(RemoteSettings):
    """The keys of `[channels.discord]`, in addition to the common ones."""

    token: SecretReference
    """The bot's token, from the developer portal."""
    servers: Literal["off", "mentioned", "all"] = "mentioned"
    """Which messages in servers are taken: none, mentions of the bot and replies to it, or all."""
    channels: tuple[str, ...] = ()
    """Ids of channels in which every message is taken, including their threads, even if `servers` is
    `mentioned`."""
    threads: bool = False
    """Whether a message that is taken in a channel opens a thread for its conversation, in which no
    mentions are needed."""
    api_base_url: str = Field(default=API, max_length=200)
    """Base URL of the API; change it for a server of your own."""

    def capabilities(self) -> Capabilities:
        """Return the account's capabilities under these settings."""
        return self.within(replace(CAPABILITIES, has_threads=self.threads))

    @property
    def reads_everything(self) -> bool:
        """Whether the bot needs the content of messages in servers that don't mention it."""
        has_open_chats = bool(self.channels) or self.threads
        return self.servers == "all" or (self.servers == "mentioned" and has_open_chats)

    @field_validator("channels")
    @classmethod
    def _are_ids(cls, channels: tuple[str, ...]) -> tuple[str, ...]:
        """Reject channel names: they change, and Discord's events contain ids."""
        for channel in channels:
            if not (channel.isascii() and channel.isdecimal()):
                message = f"`{channel}` is no channel's id; turn on developer mode and copy the id"
                raise ValueError(message)
        return channels


def account_of(name: str, token: str) -> str:
    """Return the account's id, which is the first part of its token.

    Raises:
        ChannelUnauthorized: The token is not in Discord's format.
    """
    first, dot, _ = token.partition(".")
    with suppress(ValueError):  # includes the errors of invalid Base64 and of invalid ASCII
        id_ = base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)).decode("ascii")
        if dot and id_.isdecimal() and token.isprintable():
            return id_
    message = (
        f"`{name}`: that is no bot's token; get one at https://discord.com/developers "
        "under Bot, Reset Token"
    )
    raise ChannelUnauthorized(message)


MANIFEST = ChannelManifest(
    kind="discord",
    adapter="channels.discord.adapter:DiscordChannel",
    settings="channels.discord:DiscordSettings",
    needs=("discord",),
    sender=r"[0-9]{1,20}",
    check="channels.discord.rest:check",
)
