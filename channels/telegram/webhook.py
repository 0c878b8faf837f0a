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
FIRST_LOOK_S = 20.0
LOOK_S = 300.0
MOST_MISSED = 3
"""Failed checks in a row before the channel is down; updates may still arrive meanwhile."""
MOST_CHARS = 200
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
        self._account = account
        self._url = url
        self._secret = secret(account.token, url, clock.now())
        self._take = take
        self._clock = clock
        self._log = log
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
        shown = request.headers.get(_SECRET_HEADER, "")
        if not hmac.compare_digest(shown.encode(), self._secret.encode()):
            self.refused.note("a wrong secret" if shown else "no secret")
            return HookAnswer(status=401)
        # Invalid JSON is ignored like any unknown update.
        if not await self._take(parse_json(await request.body())):
            return HookAnswer(status=503, retry_after_s=AGAIN_S)
        return HookAnswer()

    # --- the watch -------------------------------------------------------------------------------

    async def _watch(self) -> None:
        missed = moved = 0
        told = integer(await self._account.webhook(), "last_error_date")
        await self._clock.sleep(FIRST_LOOK_S)
        while True:
            try:
                found = await self._account.webhook()
                failed_at, missed = integer(found, "last_error_date"), 0
                moved = 0 if text(found, "url") == self._url else moved + 1
                if moved:
                    await self._put_right(text(found, "url"), moved)
                elif failed_at != told:
                    await self._tell(found)
                told = failed_at
            except ChannelUnavailable as error:
                missed += 1
                if missed == MOST_MISSED or moved > 1:
                    raise
                self._log("webhook_not_looked_at", why=str(error), level="warning")
            await self._clock.sleep(LOOK_S)

    async def _put_right(self, url: str, times: int) -> None:
        if times > 1:
            message = (
                f"`{self._account.name}`: another program sets or removes the webhook of the same token "
                "again and again; stop it, or give this daemon a bot of its own"
            )
            raise ChannelUnavailable(message)
        to = urlsplit(url).hostname if url else "nowhere"  # the path may contain a secret
        self._log("webhook_set_again", it_went=to, level="warning")
        await self._account.set_webhook(self._url, secret=self._secret)

    async def _tell(self, found: Json) -> None:
        """Log why a delivery failed; if updates wait, set the webhook again with our secret."""
        waiting = integer(found, "pending_update_count") or 0
        self._log(
            "webhook_not_delivered",
            why=text(found, "last_error_message")[:MOST_CHARS],
            waiting=waiting,
            level="error" if waiting else "info",
        )
        if waiting:
            await self._account.set_webhook(self._url, secret=self._secret)


def secret(token: str, url: str, since: datetime) -> str:
    """Return the secret that Telegram sends with each post; the token can't be derived from it.

    It differs at each start, because setting an unchanged webhook has no effect. Updates that failed
    while the daemon was away would then be retried only after minutes.
    """
    said = f"zeroclaw webhook {url} {since.isoformat()}"
    return hmac.new(token.encode(), said.encode(), sha256).hexdigest()


def deliveries(own: TelegramSettings, found: Json) -> list[str]:
    """Summarize a WebhookInfo: where updates go, the last failure, and how many wait."""
    facts: list[str] = []
    url, why = text(found, "url"), text(found, "last_error_message")[:MOST_CHARS]
    if own.receive == "webhook":
        when = "" if url == own.webhook_url else ", once the daemon starts"
        facts.append(f"Telegram calls {own.webhook_url}{when}")
        failed_at = from_unix(integer(found, "last_error_date"))
        if failed_at and why:
            facts.append(f"its last call that failed, at {failed_at:%Y-%m-%d %H:%M} UTC: {why}")
    elif url:
        facts.append("a webhook is set, and is removed when the daemon starts")
    if waiting := integer(found, "pending_update_count"):
        facts.append(f"updates waiting: {waiting}")
    return facts


async def check(settings: TelegramSettings, secrets: Mapping[str, str]) -> str:
    """Ask Telegram who the bot is and what it may receive; changes nothing.

    Raises:
        ChannelUnauthorized: The token is not accepted.
        ChannelUnavailable: Telegram can't be reached.
    """
    account = Account("telegram", settings, secrets)
    async with aclosing(account.http):
        user, hook = await account.me(), await account.webhook()
    hears_all = flag(user, "can_read_all_group_messages")
    hears = "every message" if hears_all else "what is meant for it"
    facts = [f"@{text(user, 'username')} answers; in groups it hears {hears}"]
    if settings.groups == "all" and not hears_all:
        facts.append(
            '`groups = "all"` needs privacy mode off (@BotFather, /setprivacy, then re-add it)'
        )
    return "; ".join([*facts, *deliveries(settings, hook)])
