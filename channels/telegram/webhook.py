"""Receives updates by webhook, confirms each once it is stored, and watches the webhook's state.

Telegram keeps a queue per chat, and posts the first update of a queue until it is accepted; different
chats are posted concurrently (tdlib/telegram-bot-api, WebhookActor.cpp and `process_new_message_queue`
in Client.cpp, read 2026-11; presses queue by person). So the order within a chat is kept on any number
of connections. But the documentation does not promise that. So an update that arrives while another
one of its chat is being stored waits in the intake, and is rejected if that one could not be stored.

From time to time Telegram is asked for the webhook's state. A webhook that was changed or removed is
set again, and failed deliveries are logged.
"""

import hmac
from collections.abc import Callable, Mapping
from contextlib import aclosing
from datetime import datetime
from hashlib import sha256
from urllib.parse import urlsplit

from channels._remote.fields import Json, flag, from_unix, integer, parse_json, text
from channels.telegram import TelegramSettings
from channels.telegram.account import Account
from channels.telegram.updates import Take
from zeroclaw import ChannelUnavailable, Clock, HookAnswer, HookRequest, Log, Mount, Refusals

AGAIN_S = 1
"""Seconds after which Telegram should retry an update that could not be stored."""
MAX_UPDATE_BYTES = 4 * 1024 * 1024
"""Larger than a rich message of 32,768 characters, each styled, in reply to another; read 2026-11.
Telegram would post an update that is refused for its size for a day, and keep the rest of its chat."""
FIRST_CHECK_S = 20.0
CHECK_INTERVAL_S = 300.0
MAX_FAILED_CHECKS = 3
"""Failed checks in a row before the channel is down; updates may still arrive meanwhile."""
MAX_CHARS = 200
_SECRET_HEADER = "x-telegram-bot-api-secret-token"  # noqa: S105  its name; Bot API, setWebhook


class Webhook:
    """Receives the updates of one account.

    Attributes:
        refused: Counts requests that were not from Telegram, by reason.
    """

    def __init__(self, account: Account, url: str, *, take: Take, clock: Clock, log: Log) -> None:
        """Mount nothing yet.

        Args:
            account: The account; the secret in Telegram's requests is derived from its token.
            url: The URL at which Telegram reaches us.
            take: Takes one update; returns False if Telegram must deliver it again.
            clock: For waits between checks, and for the secret.
            log: The channel's log.
        """
        self._account, self._url = account, url
        self._secret = secret(account.token, url, clock.now())
        self._take, self._clock, self._log = take, clock, log
        self.refused = Refusals(log, "webhook_refused", level="warning")

    async def run(self, mount: Mount, ready: Callable[[], None]) -> None:
        """Receive until cancelled.

        Raises:
            ConfigError: Another channel uses the same path.
            ChannelUnavailable: Telegram can't be reached, or another program changes the webhook.
        """
        # Mount before setting the webhook, so that the first post is answered.
        with mount.public(urlsplit(self._url).path, self.answer):
            await self._account.set_webhook(self._url, secret=self._secret)
            ready()
            await self._watch()

    # --- receiving -------------------------------------------------------------------------------

    async def answer(self, request: HookRequest) -> HookAnswer:
        """Handle one update; status 200 means that it was stored or ignored."""
        header = request.headers.get(_SECRET_HEADER, "")
        if not hmac.compare_digest(header.encode(), self._secret.encode()):
            self.refused.note("a wrong secret" if header else "no secret")
            return HookAnswer(status=401)
        # Invalid JSON is ignored like any unknown update.
        if not await self._take(parse_json(await request.body(MAX_UPDATE_BYTES))):
            return HookAnswer(status=503, retry_after_s=AGAIN_S)
        return HookAnswer()

    # --- the webhook's state -------------------------------------------------------------------------------

    async def _watch(self) -> None:
        failures = changes = 0
        reported_at = integer(await self._account.webhook(), "last_error_date")
        await self._clock.sleep(FIRST_CHECK_S)
        while True:
            try:
                state = await self._account.webhook()
                failed_at, failures = integer(state, "last_error_date"), 0
                changes = 0 if text(state, "url") == self._url else changes + 1
                if changes:
                    await self._restore(text(state, "url"), changes)
                elif failed_at != reported_at:
                    await self._report_failure(state)
                reported_at = failed_at
            except ChannelUnavailable as error:
                failures += 1
                if failures == MAX_FAILED_CHECKS or changes > 1:
                    raise
                self._log("webhook_check_failed", reason=str(error), level="warning")
            await self._clock.sleep(CHECK_INTERVAL_S)

    async def _restore(self, url: str, times: int) -> None:
        if times > 1:
            message = (
                f"`{self._account.name}`: another program sets or removes the webhook of the same token "
                "again and again; stop it, or give this daemon a bot of its own"
            )
            raise ChannelUnavailable(message)
        to = urlsplit(url).hostname if url else "nowhere"  # the path may contain a secret
        self._log("webhook_set_again", it_went=to, level="warning")
        await self._account.set_webhook(self._url, secret=self._secret)

    async def _report_failure(self, state: Json) -> None:
        """Log why a delivery failed; if updates wait, set the webhook again with our secret."""
        waiting = integer(state, "pending_update_count") or 0
        self._log(
            "webhook_not_delivered",
            reason=text(state, "last_error_message")[:MAX_CHARS],
            waiting=waiting,
            level="error" if waiting else "info",
        )
        if waiting:
            await self._account.set_webhook(self._url, secret=self._secret)


def secret(token: str, url: str, since: datetime) -> str:
    """Return the secret that Telegram sends with each post; it does not reveal the token.

    It differs at each start, because setting an unchanged webhook has no effect. Updates that failed
    while the daemon was away would then be retried only after minutes.
    """
    seed = f"zeroclaw webhook {url} {since.isoformat()}"
    return hmac.new(token.encode(), seed.encode(), sha256).hexdigest()


def deliveries(settings: TelegramSettings, state: Json) -> list[str]:
    """Summarize a WebhookInfo: where updates go, the last failure, and how many wait."""
    facts: list[str] = []
    url, error = text(state, "url"), text(state, "last_error_message")[:MAX_CHARS]
    if settings.receive == "webhook":
        condition = "" if url == settings.webhook_url else ", once the daemon starts"
        facts.append(f"Telegram calls {settings.webhook_url}{condition}")
        failed_at = from_unix(integer(state, "last_error_date"))
        if failed_at and error:
            facts.append(f"its last call that failed, at {failed_at:%Y-%m-%d %H:%M} UTC: {error}")
    elif url:
        facts.append("a webhook is set, and is removed when the daemon starts")
    if waiting := integer(state, "pending_update_count"):
        facts.append(f"updates waiting: {waiting}")
    return facts


async def check(settings: TelegramSettings, secrets: Mapping[str, str]) -> str:
    """Ask Telegram who the bot is and which messages it receives; changes nothing.

    Raises:
        ChannelUnauthorized: The token is not accepted.
        ChannelUnavailable: Telegram can't be reached.
    """
    account = Account("telegram", settings, secrets)
    async with aclosing(account.http):
        user, hook = await account.user(), await account.webhook()
    hears_all = flag(user, "can_read_all_group_messages")
    hears = "every message" if hears_all else "what is meant for it"
    facts = [f"@{text(user, 'username')} answers; in groups it hears {hears}"]
    if settings.groups == "all" and not hears_all:
        facts.append(
            '`groups = "all"` needs privacy mode off (@BotFather, /setprivacy, then re-add it)'
        )
    return "; ".join([*facts, *deliveries(settings, hook)])
