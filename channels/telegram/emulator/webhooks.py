"""The methods that set, remove and describe the webhook."""

import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from channels.telegram.emulator.account import Account, Webhook
from channels.telegram.emulator.refusals import bad_request
from channels.telegram.emulator.updates import allowed_updates
from channels.telegram.emulator.wire import Parameters

LONGEST_RETRY_S = 60.0
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")
_MAX_CONNECTIONS = 100


def set_webhook(account: Account, parameters: Parameters) -> object:
    """Do `setWebhook`; accepts plain `http` too, like a self-hosted server."""
    kinds = allowed_updates(parameters)
    url = parameters.text("url")
    if not url:
        return delete_webhook(account, parameters)
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise bad_request("bad webhook: invalid webhook URL specified")
    secret = parameters.text("secret_token")
    if secret and _SECRET.fullmatch(secret) is None:
        raise bad_request("secret token contains unallowed characters")
    connections = min(parameters.number("max_connections") or 40, _MAX_CONNECTIONS)
    account.updates.allow(kinds)
    _drop(account, parameters)
    account.webhook = Webhook(url=url, secret=secret, connections=connections)
    account.webhook_error = None
    return True


def delete_webhook(account: Account, parameters: Parameters) -> object:
    """Do `deleteWebhook`."""
    _drop(account, parameters)
    account.webhook = None
    account.webhook_error = None
    return True


def _drop(account: Account, parameters: Parameters) -> None:
    if parameters.flag("drop_pending_updates"):
        account.updates.confirm(account.updates.last_id + 1)


def get_webhook_info(account: Account, _parameters: Parameters) -> object:
    """Do `getWebhookInfo`."""
    info: dict[str, object] = {
        "url": "",
        "has_custom_certificate": False,
        "pending_update_count": len(account.updates.waiting),
    }
    if account.updates.allowed is not None:
        info["allowed_updates"] = sorted(account.updates.allowed)
    if account.webhook is not None:
        info["url"] = account.webhook.url
        info["max_connections"] = account.webhook.connections
    if account.webhook_error is not None:
        info["last_error_date"], info["last_error_message"] = account.webhook_error
    return info


METHODS: Mapping[str, Callable[[Account, Parameters], object]] = {
    "setwebhook": set_webhook,
    "deletewebhook": delete_webhook,
    "getwebhookinfo": get_webhook_info,
}
