"""Telegram: one bot account, received by long polling or by webhook.

Nothing of the library of the extra `telegram` is imported before it is known to be there.

What an account may do is what Telegram publishes, taken a little short: two clocks lie between a
call and its count, some calls are not paced, such as a question for a reason, and a call that comes
too early is refused for seconds.
"""

from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, model_validator

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
)
"""Without limits; those below are added where `limits` says so."""

# Bots FAQ, "My bot is hitting limits, how do I avoid this?", read 2026-11: one message a second in
# a chat, where short bursts pass; 20 a minute in a group; about 30 a second in all. Edits are counted
# alike, of which the page says nothing.
EDIT_INTERVAL_S = 1.0
CHAT = Budget(per_s=1, burst=2)
GROUP = Budget(per_s=19 / 60, burst=2)
ACCOUNT = Budget(per_s=29, burst=28)
API = "https://api.telegram.org"
WEBHOOK_PORTS = frozenset({None, 443, 80, 88, 8443})
"""Bot API, setWebhook, notes, read 2026-11."""


class TelegramSettings(RemoteSettings):
    """The keys of `[channels.telegram]` beside the common ones."""

    token: SecretReference
    """Of the bot, as BotFather gave it."""
    receive: Literal["polling", "webhook"] = "polling"
    """How updates come: they are fetched, or Telegram calls the public listener."""
    webhook_url: str = Field(default="", max_length=200)
    """Where Telegram reaches the public listener, with the path that is served; for `webhook`."""
    groups: Literal["off", "mentioned", "all"] = "mentioned"
    """What is taken in groups: nothing, what is meant for the bot, or every message."""
    drafts: Literal["native", "edited"] = "native"
    """What an answer in a private chat is while it is written: Telegram's own draft, which is no
    message, or a message that is edited."""
    rich: bool = True
    """Whether an answer with a table is a rich message, in which it is one, or shows it in signs.
    Apps from before the summer of 2026 say in place of a rich message that they can't show it, and
    nobody is told of that; the server's refusals are seen to."""
    uncertain: Literal["probe", "resend", "hold"] = "probe"  # pyright: ignore[reportIncompatibleVariableOverride]  a frozen model's
    """What follows a message whose answer was lost: it is looked for; or sent again and marked as a
    possible repeat; or neither, and the operator is told that it may have arrived."""
    api_base_url: str = Field(default=API, max_length=200)

    def capabilities(self) -> Capabilities:
        """Return what an account can do, within the limits that are kept."""
        can = replace(CAPABILITIES, native_draft=self.drafts == "native")
        return self.within(
            can, edit_interval_s=EDIT_INTERVAL_S, chat=CHAT, account=ACCOUNT, group=GROUP
        )

    @model_validator(mode="after")
    def _can_be_called(self) -> "TelegramSettings":
        """Refuse an address that Telegram would, that gives what people write away, or is idle."""
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


def is_public(settings: BaseModel) -> bool:
    """Whether Telegram calls the public listener; asked with the settings of one channel."""
    return isinstance(settings, TelegramSettings) and settings.receive == "webhook"


def _fault_of(url: str, *, is_own_server: bool) -> str:
    """Return why an address can't be called, empty when it can."""
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
    public="channels.telegram:is_public",
)
