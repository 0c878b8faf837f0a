"""Open a bot account, or ask Telegram about one, where the extra `telegram` is installed.

Nothing of its libraries is imported before it is known to be there.
"""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

from pydantic import BaseModel

from channels.telegram import TelegramSettings
from zeroclaw import Channel, ChannelContext, ConfigError

EXTRA = ("telegram", "telegramify_markdown")


def prepare() -> None:
    """Load the libraries and read the certificates, nearly half a second of work; see the manifest.

    Without the extra it does nothing: `open_channel` says so.
    """
    if _has_extra():
        import_module("channels.telegram.adapter")
        from channels.telegram.connection import trust

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


async def check(settings: BaseModel, secrets: Mapping[str, str]) -> str:
    """Ask Telegram who the bot is and what it may hear; changes nothing.

    Raises:
        ConfigError: The extra is not installed.
        ChannelUnauthorized: The token is not accepted.
        ChannelUnavailable: Telegram can't be reached.
    """
    _needs_extra("telegram")
    from channels.telegram.account import Account
    from channels.telegram.webhook import deliveries

    if not isinstance(settings, TelegramSettings):
        message = "the settings of a Telegram channel must be `TelegramSettings`"
        raise TypeError(message)
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
