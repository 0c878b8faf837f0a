"""Telegram: one bot account, received by long polling or by webhook.

Nothing of the libraries of the extra `telegram` is imported before it is known to be there.

What an account may do is what Telegram publishes, taken a little short: two clocks lie between a
call and its count, some calls are not paced, such as a question for a reason, and a call that comes
too early is refused for seconds.
"""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from channels._remote.servers import is_near, trust
from zeroclaw import (
    HOOK_PATH,
    Budget,
    Capabilities,
    Channel,
    ChannelContext,
    ChannelManifest,
    ConfigError,
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
FASTEST_EDIT_S = 0.05
"""Where no limits are kept: as often as an eye can follow."""

EXTRA = ("telegram", "telegramify_markdown")
API = "https://api.telegram.org"
WEBHOOK_PORTS = frozenset({None, 443, 80, 88, 8443})
"""Bot API, setWebhook, notes, read 2026-11."""


class TelegramSettings(BaseModel):
    """The keys of `[channels.telegram]` beside the common ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    token: SecretReference
    """Of the bot, as BotFather gave it."""
    api_base_url: str = Field(default=API, max_length=200)
    """Where the Bot API answers; another one for a Bot API server of your own."""
    receive: Literal["polling", "webhook"] = "polling"
    """How updates come: they are fetched, or Telegram calls the public listener."""
    webhook_url: str = Field(default="", max_length=200)
    """Where Telegram reaches the public listener, with the path that is served; for `webhook`."""
    groups: Literal["off", "mentioned", "all"] = "mentioned"
    """What is taken in groups: nothing, what is meant for the bot, or every message."""
    link_previews: bool = False
    """Whether Telegram shows what links in answers lead to; it fetches each link for that. Of rich
    messages it is not known to take such a wish."""
    drafts: Literal["native", "edited"] = "native"
    """What an answer in a private chat is while it is written: Telegram's own draft, which is no
    message, or a message that is edited."""
    rich: bool = True
    """Whether an answer with a table is a rich message, in which it is one, or shows it in signs.
    Apps from before the summer of 2026 say in place of a rich message that they can't show it, and
    nobody is told of that; the server's refusals are seen to."""
    uncertain: Literal["probe", "resend", "hold"] = "probe"
    """What follows a message whose answer was lost: it is looked for; or sent again and marked as a
    possible repeat; or neither, and the operator is told that it may have arrived."""
    limits: Literal["published", "off"] = "published"
    """Which limits are kept; `off` only for a server of your own that has none."""

    def capabilities(self) -> Capabilities:
        """Return what an account can do, within the limits that are kept."""
        can = replace(
            CAPABILITIES,
            native_draft=self.drafts == "native",
            can_lookup=self.uncertain == "probe",
            may_repeat=self.uncertain != "hold",
        )
        if self.limits == "off":
            return replace(can, min_edit_interval_s=FASTEST_EDIT_S)
        return replace(
            can,
            min_edit_interval_s=EDIT_INTERVAL_S,
            chat_budget=CHAT,
            group_budget=GROUP,
            account_budget=ACCOUNT,
        )

    @field_validator("api_base_url")
    @classmethod
    def _is_safe(cls, url: str) -> str:
        """Refuse plain HTTP to the internet: the token is part of each address."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query:
            message = "must be an address such as https://api.telegram.org"
            raise ValueError(message)
        if parts.scheme == "http" and not is_near(parts.hostname):
            message = f"`{parts.hostname}` needs https: the token is part of each address"
            raise ValueError(message)
        return url.rstrip("/")

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


def prepare() -> None:
    """Load the libraries and read the certificates, nearly half a second of work; see the manifest.

    Without the extra it does nothing: `open_channel` says so.
    """
    if _has_extra():
        import_module("channels.telegram.adapter")
        trust()


def open_channel(context: ChannelContext) -> Channel:
    """Make the adapter; it opens nothing before it is used.

    Raises:
        ConfigError: The extra is not installed.
        ChannelUnauthorized: The token can't be one.
    """
    _needs_extra(context.name)
    from channels.telegram.adapter import TelegramChannel

    return TelegramChannel(context)


async def check(settings: TelegramSettings, secrets: Mapping[str, str]) -> str:
    """Ask Telegram who the bot is and what it may hear; changes nothing.

    Raises:
        ConfigError: The extra is not installed.
        ChannelUnauthorized: The token is not accepted.
        ChannelUnavailable: Telegram can't be reached.
    """
    _needs_extra("telegram")
    from channels.telegram.account import Account
    from channels.telegram.webhook import deliveries

    account = Account("telegram", settings, secrets)
    try:
        user = await account.me()
        hook = await account.webhook()
    finally:
        await account.aclose()
    hears = "every message" if user.can_read_all_group_messages else "what is meant for it"
    facts = [f"@{user.username} answers; in groups it hears {hears}"]
    if settings.groups == "all" and not user.can_read_all_group_messages:
        facts.append('`groups = "all"` needs privacy mode off (@BotFather, /setprivacy)')
    facts += deliveries(settings, hook)
    return "; ".join(facts)


def _has_extra() -> bool:
    return all(find_spec(module) for module in EXTRA)


def _needs_extra(channel: str) -> None:
    if not _has_extra():
        fault = (
            f"channels.{channel}: Telegram needs more packages; install the extra `telegram`: "
            "python -m pip install -e '.[telegram]' in the checkout"
        )
        raise ConfigError((fault,))


MANIFEST = ChannelManifest(
    kind="telegram",
    adapter="channels.telegram:open_channel",
    settings="channels.telegram:TelegramSettings",
    prepare="channels.telegram:prepare",
    check="channels.telegram:check",
    sender=r"-?[0-9]{1,20}",
    public="channels.telegram:is_public",
)
