"""A local Telegram: the Bot API on a loopback port, and the people who talk to the bot.

    async with Emulator(clock=SystemClock()) as telegram:
        ann = telegram.person("Ann")
        ann.says("hello")
        await telegram.until(lambda: ann.chat.texts)

A bot reaches it with `base_url=telegram.base_url`, `base_file_url=telegram.base_file_url` and
`token=telegram.token`. It runs in the process that opened it, so it outlives a bot that is killed. It
waits for time to pass only where Telegram does, by the clock that it was given.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Self, TypeVar

from channels._remote.emulator.http import NOTHING_HERE, Answer, Handle, Request, Server
from channels.telegram.emulator.account import Account
from channels.telegram.emulator.actor import Actor
from channels.telegram.emulator.bot_api import BotApi
from channels.telegram.emulator.buckets import Buckets, Limits
from channels.telegram.emulator.chat_methods import open_topic
from channels.telegram.emulator.chats import Chat, Instant, Message, Person, Topic
from channels.telegram.emulator.faults import Call, Fault, Planned
from channels.telegram.emulator.people import UserAction
from channels.telegram.emulator.polling import Polling
from channels.telegram.emulator.updates import Update, Updates
from channels.telegram.emulator.webhook_delivery import WebhookDelivery
from channels.telegram.emulator.wire import Json
from zeroclaw import Clock, replace

PATIENCE_S = 40.0
"""Seconds that `until` waits; less than a test's time limit, so that its message is shown."""
BOT_ID = 7_000_000_001
TOKEN = f"{BOT_ID}:an-emulated-bot-has-no-secret-token"
T = TypeVar("T")


class Emulator:
    """Telegram on a loopback port; leaving the context cuts every connection.

    Attributes:
        account: Everything that the bot sees, to read; use `person` to act.
        token: The bot's token.
        ago: How far people's messages are dated back, as if they had waited to be fetched.
        site: Answers requests that are not the Bot API's, such as those for a page.
        patience_s: Seconds that `until` waits.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        limits: Limits | None = None,
        port: int = 0,
        token: str = TOKEN,
        name: str = "Zero",
        username: str = "zero_bot",
        privacy: bool = False,
        first_update: int = 100_000_001,
    ) -> None:
        """Open nothing yet.

        Args:
            clock: For dates, limits and waits.
            limits: The bot's rate limits; None lets everything pass.
            port: The port, 0 for any free one.
            token: The bot's token; the part before the colon is its id.
            name: The bot's name.
            username: The bot's user name, without `@`.
            privacy: In groups the bot gets only messages meant for it.
            first_update: The id of the first update.
        """
        bot = Person(
            id=int(token.partition(":")[0]), first_name=name, username=username, is_bot=True
        )
        updates = Updates(last_id=first_update - 1)
        self.token = token
        self.account = Account(
            bot=bot, token=token, buckets=Buckets(limits=limits), updates=updates, privacy=privacy
        )
        self._polling = Polling(updates, clock)
        self._api = BotApi(
            account=self.account, polling=self._polling, clock=clock, on_change=self._signal
        )
        self._webhook_delivery = WebhookDelivery(
            account=self.account, polling=self._polling, clock=clock, on_change=self._signal
        )
        self._server = Server(self._handle, port)
        self.site: Handle | None = None
        self.ago = timedelta()
        self.patience_s = PATIENCE_S
        self._group = asyncio.TaskGroup()
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()

    # --- opening and closing -------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.up()
        await self._group.__aenter__()
        self._tasks.append(self._group.create_task(self._webhook_delivery.run()))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await self.down()
        if isinstance(error, asyncio.CancelledError):
            await self._group.__aexit__(kind, error, trace)
        else:  # an error of the body is raised as it is, not wrapped in a group
            await self._group.__aexit__(None, None, None)

    async def up(self) -> None:
        """Accept connections; after `down` on the same port.

        Raises:
            OSError: The port is in use.
        """
        await self._server.up()

    async def down(self) -> None:
        """Cut every connection and accept no new ones; people can still act."""
        await self._server.down()

    def cut(self) -> None:
        """Cut every connection and every post to a webhook, but go on accepting and posting."""
        self._server.cut()
        self._webhook_delivery.cut()

    @property
    def url(self) -> str:
        """The server's URL, as for a self-hosted Bot API server."""
        return f"http://127.0.0.1:{self._server.port}"

    @property
    def base_url(self) -> str:
        """The prefix of URLs of methods; the token and the method follow."""
        return f"{self.url}/bot"

    @property
    def base_file_url(self) -> str:
        """The prefix of URLs of files; the token and the file's path follow."""
        return f"{self.url}/file/bot"

    # --- people and chats ------------------------------------------------------------------------

    def person(self, name: str, *, username: str = "", id_: int = 0, started: bool = True) -> Actor:
        """Add a person.

        Args:
            name: Their first name.
            username: Their user name without `@`, empty for none.
            id_: Their id, 0 for the next free one.
            started: They have already opened a private chat with the bot.
        """
        person = self.account.add_person(name, username=username, id_=id_)
        person.started = started
        return Actor(self.account, person, now=self._backdated_now, on_update=self._signal_update)

    def group(self, title: str, *members: Actor) -> Chat:
        """Open a basic group with the bot in it."""
        return self._with(self.account.add_group(title, is_super=False), members)

    def supergroup(self, title: str, *members: Actor, is_forum: bool = False) -> Chat:
        """Open a supergroup with the bot in it; a forum has topics."""
        return self._with(self.account.add_group(title, is_super=True, is_forum=is_forum), members)

    def _with(self, chat: Chat, members: tuple[Actor, ...]) -> Chat:
        chat.members |= dict.fromkeys((member.id for member in members), "member")
        self._signal_update()
        return chat

    def topic(self, chat: Chat, name: str) -> Topic:
        """Open a topic in a forum."""
        topic = open_topic(self.account, chat, name, self._api.now())
        self._signal_update()
        return topic

    def happen(self, kind: str, body: Json) -> UserAction:
        """Add any other update, such as `message_reaction`, in the Bot API's form."""
        update = self.account.updates.add(kind, body, self._api.now().at)
        self._signal_update()
        return UserAction(update=update)

    def skip_ids(self, count: int, chat: Chat | None = None) -> None:
        """Use up message ids, as other activity does: of a supergroup, or of the shared counter."""
        if chat is not None and chat.kind == "supergroup":
            chat.last_id += count
        else:
            self.account.last_id += count

    # --- delivery of updates ---------------------------------------------------------------------

    def redeliver(self, action: UserAction, *, as_new: bool = False) -> Update:
        """Deliver an update again, with the same id or a new one."""
        update = action.update
        if as_new:
            update = self.account.updates.add(update.kind, update.body, self._api.now().at)
        else:
            self.account.updates.again(update)
        self._signal_update()
        return update

    def hold(self) -> None:
        """Deliver nothing until `release`."""
        self._polling.on_hold = True

    def release(self) -> None:
        """Deliver the held updates, at once and in order."""
        self._polling.on_hold = False
        self._signal_update()

    async def confirmed(self, *actions: UserAction) -> None:
        """Wait until the bot has confirmed the updates of these actions."""
        await self.until(lambda: all(action.update.confirmed for action in actions))

    @property
    def is_polled(self) -> bool:
        """Whether a bot is polling right now."""
        return self._polling.is_waited

    # --- the bot's calls -------------------------------------------------------------------------

    @property
    def calls(self) -> list[Call]:
        """Every call of the bot, in order of arrival."""
        return self._api.calls

    @property
    def exceeded(self) -> int:
        """Number of calls refused by the rate limits; planned faults don't count."""
        return self.account.buckets.refused

    def called(self, *methods: str, chat: Chat | None = None) -> list[Call]:
        """Return the calls of these methods, optionally only those of one chat."""
        names = {method.lower() for method in methods}
        return [
            call
            for call in self.calls
            if call.method.lower() in names and (chat is None or call.chat == chat.id)
        ]

    def draft(self, chat: Chat, thread: int = 0) -> str | None:
        """Return the native draft that is visible in a chat now, None for none."""
        return chat.draft(self._api.now().at, thread)

    async def until(self, condition: Callable[[], T]) -> T:
        """Wait until a condition is true, and return its result; checks it at each change.

        Raises:
            AssertionError: It did not become true; the message has the emulator's transcript.
        """
        try:
            async with asyncio.timeout(self.patience_s):
                while not (result := condition()):
                    await self._changed.wait()
        except TimeoutError:
            message = f"waited {self.patience_s:g} s in vain; Telegram shows\n{self.transcript()}"
            raise AssertionError(message) from None
        return result

    def next_change(self) -> asyncio.Event:
        """Return an event that is set at the next change."""
        return self._changed

    def now(self) -> Instant:
        """Return the current time on both clocks."""
        return self._api.now()

    def _backdated_now(self) -> Instant:
        now = self._api.now()
        return replace(now, wall=now.wall - self.ago)

    def transcript(self) -> str:
        """Return all chats and the last calls, for the message of a failure."""
        lines = [f"polled: {self.is_polled}"]
        for chat in self.account.chats.values():
            lines += [f"--- {chat!r}", *(repr(message) for message in chat.messages)]
        waiting = [f"{update.id} {update.kind}" for update in self.account.updates.waiting]
        lines.append(f"unconfirmed updates: {waiting}")
        lines.append("last calls:")
        lines += [f"  {call!r}" for call in self.calls[-12:]]
        return "\n".join(lines)

    def message(self, chat: Chat, id_: int) -> Message:
        """Return a message by its id."""
        return chat.by_id[id_]

    # --- faults ----------------------------------------------------------------------------------

    @property
    def latency_s(self) -> float:
        """Delay of every answer in seconds, 0 by default."""
        return self._api.latency_s

    @latency_s.setter
    def latency_s(self, seconds: float) -> None:
        self._api.latency_s = seconds

    def will(
        self,
        method: str,
        *faults: Fault | None,
        chat: Chat | None = None,
        times: int | None = 1,
        when: Callable[[Call], bool] = lambda _: True,
    ) -> None:
        """Plan faults for the next calls, one after another; None lets a call pass.

        Args:
            method: The method, in any letter case; empty for all.
            faults: The faults in order.
            chat: Limit this to calls that name this chat.
            times: The number of calls for each fault, None for no limit.
            when: Limit this to calls for which this returns True.
        """
        self._api.planned += [
            Planned(
                method=method.lower(),
                fault=fault,
                chat=0 if chat is None else chat.id,
                when=when,
                remaining=times,
            )
            for fault in faults
        ]

    def without(self, *methods: str) -> None:
        """Remove methods, as on an older server: `404 Not Found`."""
        self.account.missing |= {method.lower() for method in methods}

    def revoke_token(self) -> None:
        """Make the token invalid: `401 Unauthorized`."""
        self.account.token = f"{self.account.bot.id}:revoked"

    # --- inside ----------------------------------------------------------------------------------

    async def _handle(self, request: Request) -> Answer:
        answer = await self._api.answer(request)
        if answer is not None:
            return answer
        return NOTHING_HERE if self.site is None else await self.site(request)

    def _signal_update(self) -> None:
        """Signal a change about which the bot gets an update."""
        self._polling.wake()
        self._signal()

    def _signal(self) -> None:
        self._webhook_delivery.wake()
        self._changed.set()
        self._changed = asyncio.Event()
