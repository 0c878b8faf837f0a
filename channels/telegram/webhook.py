"""Be called by Telegram with each update, told "received" once it is stored; and see that it calls.

Telegram keeps a queue for each chat and posts the first of a queue again and again until it is taken,
those of different chats at once (tdlib/telegram-bot-api, WebhookActor.cpp and `process_new_message_queue`
in Client.cpp, read 2026-11; presses queue by person). So the order within a chat holds on any number of
connections. As its documentation promises less, what is posted for a chat while another one of it is
being stored waits here, and is sent back when that could not be stored.

Now and then Telegram is asked where it posts to: a webhook that was moved or removed is set again,
and what it says of deliveries that failed is logged.
"""

import asyncio
import hmac
from collections.abc import Callable, Mapping
from contextlib import aclosing
from datetime import datetime
from hashlib import sha256
from urllib.parse import urlsplit

from channels._remote.fields import Json, flag, parsed, text, whole
from channels.telegram import TelegramSettings
from channels.telegram.account import Account
from channels.telegram.decode import chat_of, moment
from channels.telegram.updates import Take
from zeroclaw import (
    ChannelLog,
    ChannelUnavailable,
    Clock,
    HookAnswer,
    HookRequest,
    Mount,
    Refusals,
    Struct,
    field,
)

AGAIN_S = 1
"""Seconds after which Telegram is asked to post again what could not be stored."""
FIRST_LOOK_S = 20.0
LOOK_S = 300.0
MOST_MISSED = 3
"""Looks that may fail one after another: updates can come while questions are not answered."""
MOST_CHARS = 200
_SECRET_HEADER = "x-telegram-bot-api-secret-token"  # noqa: S105  its name; Bot API, setWebhook


class _Lane(Struct, kw_only=True):
    """The updates of one chat that are here now; `failed` counts those that were not stored."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    inside: int = 0
    failed: int = 0


class Webhook:
    """Receives for one account.

    Attributes:
        refused: Requests that were not Telegram's.
    """

    def __init__(
        self, account: Account, url: str, *, take: Take, clock: Clock, log: ChannelLog
    ) -> None:
        """Hold what is needed.

        Args:
            account: Whose; the secret that Telegram shows us is made from its token.
            url: Where Telegram reaches us.
            take: Takes one update; False when it must come again.
            clock: For looks.
            log: For facts.
        """
        self._account = account
        self._url = url
        self._secret = secret(account.token, url, clock.now())
        self._take = take
        self._clock = clock
        self._log = log
        self._lanes: dict[str, _Lane] = {}
        self.refused = Refusals(log, "webhook_refused", level="warning")

    async def run(self, mount: Mount, ready: Callable[[], None]) -> None:
        """Receive until cancelled.

        Raises:
            ConfigError: Another channel is called at the same path.
            ChannelUnavailable: Telegram can't be asked, or is told otherwise by another program.
        """
        # Mounted before Telegram is told, so that its first post finds us.
        with mount.public(urlsplit(self._url).path, self.answer):
            await self._account.set_webhook(self._url, secret=self._secret)
            ready()
            await self._watch()

    # --- inward ----------------------------------------------------------------------------------

    async def answer(self, request: HookRequest) -> HookAnswer:
        """Take one update; 200 says that it is stored, or of no use."""
        shown = request.headers.get(_SECRET_HEADER, "")
        if not hmac.compare_digest(shown.encode(), self._secret.encode()):
            self.refused.note("a wrong secret" if shown else "no secret")
            return HookAnswer(status=401)
        # What is no JSON is passed over like any odd update.
        if not await self._in_turn(parsed(await request.body())):
            return HookAnswer(status=503, retry_after_s=AGAIN_S)
        return HookAnswer()

    async def _in_turn(self, update: object) -> bool:
        """Show an update to the door after those of its chat that are here already."""
        chat = chat_of(update)
        lane = self._lanes.setdefault(chat, _Lane())
        failed = lane.failed
        lane.inside += 1
        try:
            async with lane.lock:
                if lane.failed != failed:
                    return False
                stored = False
                try:
                    stored = await self._take(update)
                finally:  # also when it was given up, or broke: the next one must not overtake it
                    lane.failed += not stored
                return stored
        finally:
            lane.inside -= 1
            if not lane.inside:
                del self._lanes[chat]

    # --- the watch -------------------------------------------------------------------------------

    async def _watch(self) -> None:
        missed = moved = 0
        told = whole(await self._account.webhook(), "last_error_date")
        await self._clock.sleep(FIRST_LOOK_S)
        while True:
            try:
                found = await self._account.webhook()
                failed_at, missed = whole(found, "last_error_date"), 0
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
        to = urlsplit(url).hostname if url else "nowhere"  # a path may hold a secret
        self._log("webhook_set_again", it_went=to, level="warning")
        await self._account.set_webhook(self._url, secret=self._secret)

    async def _tell(self, found: Json) -> None:
        """Log why a delivery failed; where the secret is another by now, this sets ours again."""
        waiting = whole(found, "pending_update_count") or 0
        self._log(
            "webhook_not_delivered",
            why=text(found, "last_error_message")[:MOST_CHARS],
            waiting=waiting,
            level="error" if waiting else "info",
        )
        if waiting:
            await self._account.set_webhook(self._url, secret=self._secret)


def secret(token: str, url: str, since: datetime) -> str:
    """Return what Telegram is to show with each post; the token can't be learned from it.

    Another one after each start: a webhook that is set as it was before stays as it is, and what
    failed while the daemon was away would come only after minutes.
    """
    said = f"zeroclaw webhook {url} {since.isoformat()}"
    return hmac.new(token.encode(), said.encode(), sha256).hexdigest()


def deliveries(own: TelegramSettings, found: Json) -> list[str]:
    """Say in a few words where updates go, and what has become of them; of a WebhookInfo."""
    facts: list[str] = []
    url, why = text(found, "url"), text(found, "last_error_message")[:MOST_CHARS]
    if own.receive == "webhook":
        when = "" if url == own.webhook_url else ", once the daemon starts"
        facts.append(f"Telegram calls {own.webhook_url}{when}")
        failed_at = moment(whole(found, "last_error_date"))
        if failed_at and why:
            facts.append(f"its last call that failed, at {failed_at:%Y-%m-%d %H:%M} UTC: {why}")
    elif url:
        facts.append("a webhook is set, and is removed when the daemon starts")
    if waiting := whole(found, "pending_update_count"):
        facts.append(f"{waiting} updates wait")
    return facts


async def check(settings: TelegramSettings, secrets: Mapping[str, str]) -> str:
    """Ask Telegram who the bot is and what it may hear; changes nothing.

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
        facts.append('`groups = "all"` needs privacy mode off (@BotFather, /setprivacy)')
    return "; ".join([*facts, *deliveries(settings, hook)])
