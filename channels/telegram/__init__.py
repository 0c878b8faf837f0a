"""Telegram: one bot account, received by long polling.

What an account may do is what Telegram publishes, taken a little short: two clocks and a network
lie between a call and its count, and a call that comes too early is refused for seconds.
"""

from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from zeroclaw import Budget, Capabilities, ChannelManifest, SecretReference

CAPABILITIES = Capabilities(
    max_length=4096,  # UTF-16 units; Bot API, sendMessage, read 2026-11
    can_edit=True,
    can_delete=True,
    has_buttons=True,
    has_threads=True,
    has_typing=True,
    max_file_bytes=50_000_000,  # Bot API, "Sending files": other files, multipart, read 2026-11
)
"""Without limits; see `PUBLISHED`."""

# Bots FAQ, "My bot is hitting limits, how do I avoid this?", read 2026-11: one message a second in
# a chat, where short bursts pass; 20 a minute in a group; about 30 a second in all. Edits are counted
# alike, of which the page says nothing.
EDIT_INTERVAL_S = 1.0
CHAT = Budget(per_s=1, burst=2)
GROUP = Budget(per_s=19 / 60, burst=2)
ACCOUNT = Budget(per_s=28, burst=20)


class TelegramSettings(BaseModel):
    """The keys of `[channels.telegram]` beside the common ones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: SecretReference
    """Of the bot, as BotFather gave it."""
    api_base_url: str = Field(default="https://api.telegram.org", max_length=200)
    """Where the Bot API answers; another one for a Bot API server of your own."""
    groups: Literal["off", "mentioned", "all"] = "mentioned"
    """What is taken in groups: nothing, what is meant for the bot, or every message."""
    link_previews: bool = False
    """Whether Telegram shows what links in answers lead to; it fetches each link for that."""
    uncertain: Literal["probe", "resend"] = "probe"
    """What follows a message whose answer was lost: it is looked for, or sent again and marked."""
    limits: Literal["published", "off"] = "published"
    """Which limits are kept; `off` only for a server of your own that has none."""

    @field_validator("api_base_url")
    @classmethod
    def _is_safe(cls, url: str) -> str:
        """Refuse plain HTTP to the internet: the token is part of each address."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query:
            message = "must be an address such as https://api.telegram.org"
            raise ValueError(message)
        if parts.scheme == "http" and not _is_near(parts.hostname):
            message = f"`{parts.hostname}` needs https: the token is part of each address"
            raise ValueError(message)
        return url.rstrip("/")


def _is_near(host: str) -> bool:
    """Whether a host is this machine or stands in its own network."""
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".lan"))


MANIFEST = ChannelManifest(
    kind="telegram",
    adapter="channels.telegram.opening:open_channel",
    settings="channels.telegram:TelegramSettings",
    check="channels.telegram.opening:check",
)
