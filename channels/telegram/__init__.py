"""Telegram: one bot account, received by long polling or by webhook.

Importing this module does not need the library of the extra `telegram`.

The rate limits are slightly below those that Telegram publishes: the two sides count by different
clocks, some calls are not paced (such as the question for a reason), and one call too many is
refused for seconds.
"""

from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from channels._remote.settings import RemoteSettings, is_near
from zeroclaw import (
    HOOK_PATH,
    Budget,
    Capabilities,
    ChannelManifest,
    SecretReference,
    replace,
    without_credentials,
)

CAPABILITIES = Capabilities(
    max_length=4096,  # UTF-16 units; Bot API, sendMessage, read 2026-11
    can_edit=True,
    can_delete=True,
    has_buttons=True,
    has_threads=True,
    native_draft=True,
    has_typing=True,
    max_file_bytes=50_000_000,  # Bot API, "Sending files": other files, multipart, read 2026-11
    # Bots FAQ, "My bot is hitting limits, how do I avoid this?", read 2026-11: one message a second
    # in a chat, with short bursts; 20 a minute in a group; about 30 a second in all. The page does
    # not mention edits; here they count like messages.
    min_edit_interval_s=1.0,
    chat_budget=Budget(per_s=1, burst=2),
    group_budget=Budget(per_s=19 / 60, burst=2),
    account_budget=Budget(per_s=29, burst=28),
)
API = "https://api.telegram.org"
WEBHOOK_PORTS = frozenset({None, 443, 80, 88, 8443})
"""Bot API, setWebhook, notes, read 2026-11."""


class TelegramSettings(RemoteSettings):
    """The keys of `[channels.telegram]`, in addition to the common ones."""

    token: SecretReference
    """The bot's token from BotFather."""
    receive: Literal["polling", "webhook"] = "polling"
    """How updates arrive: fetched by polling, or by Telegram calling the public listener."""
    webhook_url: str = Field(default="", max_length=200)
    """The URL at which Telegram reaches the public listener, including the path; for `webhook`."""
    groups: Literal["off", "mentioned", "all"] = "mentioned"
    """Which messages in groups are taken: none, those meant for the bot, or all."""
    drafts: Literal["native", "edited"] = "native"
    """How a growing answer in a private chat is shown: as Telegram's native draft, which is not a
    message, or as a message that is edited."""
    rich: bool = True
    """Whether an answer with a table is sent as a rich message; if not, the table is drawn as text.
    Apps from before summer 2026 show a notice instead of a rich message, which the daemon can't
    detect. If the server refuses rich messages, the ordinary form is sent."""
    uncertain: Literal["probe", "resend", "hold"] = "probe"  # pyright: ignore[reportIncompatibleVariableOverride]  a frozen model's
    """What to do about a send with unknown outcome: look the message up; or send it again, marked as
    a possible repeat; or neither, and tell the operator that it may have arrived."""
    api_base_url: str = Field(default=API, max_length=200)

    def capabilities(self) -> Capabilities:
        """Return the account's capabilities under these settings."""
        return self.within(replace(CAPABILITIES, native_draft=self.drafts == "native"))

    @model_validator(mode="after")
    def _can_be_called(self) -> "TelegramSettings":
        """Reject a webhook URL that Telegram would refuse, that is not encrypted, or that is unused."""
        if self.webhook_url and "receive" not in self.model_fields_set:
            fault = (
                '`webhook_url` is used with receive = "webhook" only; set that, or '
                'receive = "polling" to keep the address for later'
            )
            raise ValueError(fault)
        if self.receive == "webhook" or self.webhook_url:
            is_own_server = self.api_base_url != API
            if fault := _fault_of(self.webhook_url, is_own_server=is_own_server):
                raise ValueError(fault)
        return self


def _fault_of(url: str, *, is_own_server: bool) -> str:
    """Return why Telegram can't call a URL, empty if it can."""
    if not url:
        return 'receive = "webhook" needs the key `webhook_url`, such as https://bot.example.org/telegram'
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not host or HOOK_PATH.fullmatch(parts.path) is None or parts.query or parts.username:
        shown = without_credentials(url)
        return f"`{shown}` must be an address with a path, such as https://bot.example.org/telegram"
    if parts.scheme == "http" and is_own_server and is_near(host):
        return ""
    if parts.scheme != "https":
        return f"`{without_credentials(url)}` needs https: what people write comes in there"
    if not is_own_server and is_near(host):
        return (
            f"Telegram can't reach `{host}`, which is a name or an address of a network of its own"
        )
    if not is_own_server and parts.port not in WEBHOOK_PORTS:
        return f"Telegram calls the ports 443, 80, 88 and 8443, not {parts.port}"
    return ""


MANIFEST = ChannelManifest(
    kind="telegram",
    adapter="channels.telegram.adapter:TelegramChannel",
    settings="channels.telegram:TelegramSettings",
    needs=("telegramify_markdown",),
    check="channels.telegram.webhook:check",
    sender=r"-?[0-9]{1,20}",
    public="channels._remote.settings:is_public",
)
