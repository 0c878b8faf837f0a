"""Discord: one bot account, received by the gateway.

Nothing of the library of the extra `discord` is imported before it is known to be there.
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
    # Each send carries a nonce that Discord enforces "in the past few minutes" (Create Message,
    # `enforce_nonce`, read 2026-11). A kill may last longer, so what is uncertain is looked up.
    can_lookup=True,
    max_file_bytes=10 * 1024 * 1024,  # "Uploading Files", the default for a bot, read 2026-11
)
"""Without limits; those below are added where `limits` says so."""

# Discord names its limits only in the headers of answers, and says not to write them down ("Rate
# Limits", read 2026-11): as seen there, 5 messages in 5 s in a channel, 5 edits likewise, and 50 calls
# a second in all, which are published. Edits and sends share one budget here, a little short.
EDIT_INTERVAL_S = 1.1
CHAT = Budget(per_s=0.9, burst=4)
ACCOUNT = Budget(per_s=40, burst=30)
API = "https://discord.com/api/v10"


class DiscordSettings(RemoteSettings):
    """The keys of `[channels.discord]` beside the common ones."""

    token: SecretReference
    """Of the bot, from the developer portal."""
    servers: Literal["off", "mentioned", "all"] = "mentioned"
    """What is taken in servers: nothing, what mentions the bot or answers it, or every message."""
    channels: tuple[str, ...] = ()
    """Ids of channels in which every message is taken, in their threads too, though elsewhere only
    mentions are."""
    threads: bool = False
    """Whether a message that is taken in a channel opens a thread, in which its conversation stands
    and nothing needs a mention."""
    api_base_url: str = Field(default=API, max_length=200)
    """Where the API answers; another one for a server of your own."""

    def capabilities(self) -> Capabilities:
        """Return what an account can do, within the limits that are kept."""
        can = replace(CAPABILITIES, has_threads=self.threads)
        return self.within(can, edit_interval_s=EDIT_INTERVAL_S, chat=CHAT, account=ACCOUNT)

    @property
    def reads_everything(self) -> bool:
        """Whether words are needed that neither mention the bot nor stand in a direct chat."""
        is_more = bool(self.channels) or self.threads
        return self.servers == "all" or (self.servers == "mentioned" and is_more)

    @field_validator("channels")
    @classmethod
    def _are_ids(cls, channels: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse names: they change, and Discord's events carry ids."""
        for one in channels:
            if not (one.isascii() and one.isdecimal()):
                message = f"`{one}` is no channel's id; turn on developer mode and copy the id"
                raise ValueError(message)
        return channels


def account_of(name: str, token: str) -> str:
    """Return the account's id, which the first part of its token is.

    Raises:
        ChannelUnauthorized: The token has another form than Discord's.
    """
    first, dot, _ = token.partition(".")
    with suppress(ValueError):  # of what is no Base64, or no text, too
        id_ = base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)).decode("ascii")
        if dot and id_.isdecimal():
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
