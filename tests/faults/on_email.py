"""Mail as a stage for scenes, read as people see it.

A mail that was sent stays as it is, so there are no drafts; a card ends by a mail below it. People
see every copy of a mail, as on servers that show equal ids twice.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import TypeVar

from channels.email import decode
from channels.email.decode import Decoded, Fetched
from tests.contract.email_harness import CODE, CODES, body, email_settings, links, mail_from
from tests.faults.fork_client import COMMAND
from tests.faults.ledger import Ledger
from tests.faults.platform_world import (
    OUTCOMES,
    Action,
    BotMessage,
    Card,
    CardCall,
    OpenWorld,
    PlatformWorld,
    WithDirectChats,
    read_up_to,
)
from tests.journeys.daemon_process import PATIENCE_S
from tests.journeys.email.mailing import Mailing, mailing
from zeroclaw import Choice, Position

T = TypeVar("T")
BEAT_S = 0.02
_CALL = re.compile(r"(?m)^(\d+)\. (?=\w+: )")
_ENDED = re.compile(rf"(?m)^(\d+)\. \w+: .*\n([{''.join(OUTCOMES)}])")


@dataclass(frozen=True, slots=True)
class _Written:
    """A mail of a person; only the store shows whether it was admitted."""

    text: str
    sender: str
    mail: EmailMessage
    message: str
    claim: str
    ledger: Ledger

    @property
    def confirmed(self) -> bool:
        return self.ledger.has_claimed(self.claim)


def _card(mail: EmailMessage, below: Sequence[EmailMessage]) -> Card:
    """Read a card as a person does; later mails report the outcomes of its calls."""
    approvals = dict.fromkeys(match[2] for link in links(mail) if (match := CODE.search(link)))
    _, *parts = _CALL.split(body(mail))
    outcomes = {
        match[1]: OUTCOMES[match[2]]
        for later_mail in below
        for match in _ENDED.finditer(body(later_mail))
    }
    calls = zip(approvals, parts[::2], parts[1::2], strict=True)
    return Card(
        id=str(mail["message-id"]),
        question=" ".join(approvals),
        calls=tuple(
            CardCall(approval=approval, text=text, outcome=outcomes.get(number, ""))
            for approval, number, text in calls
        ),
    )


@dataclass(slots=True)
class _Chat:
    name: str
    address: str
    mails: Sequence[EmailMessage] = ()
    messages: Sequence[BotMessage] = ()
    cards: Sequence[Card] = ()

    def read(self, mails: Sequence[EmailMessage]) -> None:
        """Parse all mails once, since the run checks them at every kill point."""
        card_mails = [mail for mail in mails if links(mail)]
        ids = {str(mail["message-id"]) for mail in card_mails}
        below: dict[str, list[EmailMessage]] = {mail_id: [] for mail_id in ids}
        for mail in mails:
            below.get(str(mail["in-reply-to"]), []).append(mail)
        answers = [
            mail for mail in mails if not ids & {str(mail["message-id"]), str(mail["in-reply-to"])}
        ]
        self.mails = mails
        self.messages = [BotMessage(text=body(mail).partition("\n\n-- \n")[0]) for mail in answers]
        self.cards = [_card(mail, below[str(mail["message-id"])]) for mail in card_mails]

    @property
    def ever(self) -> str:
        return "\n".join(map(body, self.mails))


class OnEmail(WithDirectChats[_Chat]):
    """A `PlatformWorld`."""

    detects_repeats = False
    begins_anew_below_cards = False

    def __init__(self, world: Mailing, directory: Path, changed: asyncio.Event) -> None:
        self._world = world
        self.wake = changed.set
        self._changed = changed
        self._people = {"ann": world.ann, "bob": world.bob, "olga": world.olga}
        self._ledger = Ledger(directory / "data")
        self._bot = decode.Bot(channel="email", settings=email_settings(world.mail, world.bot))
        chats = {name: _Chat(name, address) for name, address in self._people.items()}
        super().__init__(world, directory, chats)

    @property
    def listening(self) -> bool:
        return self.daemon.is_running

    async def say(
        self, who: str, text: str, *, where: str = "", files: Mapping[str, bytes] | None = None
    ) -> Action:
        assert not where
        mail = mail_from(self._people[who], self._world.bot, text)
        for name, content in (files or {}).items():
            mail.add_attachment(content, maintype="text", subtype="plain", filename=name)
        return await self._written(who, mail, text)

    async def edit(self, action: Action, text: str) -> Action:
        raise AssertionError("a mail that was sent stays as it is")

    async def press(self, who: str, where: str, card: Card, choice: Choice, *, call: int) -> Action:
        (card_mail, *_) = [
            mail for mail in self._chats[where].mails if str(mail["message-id"]) == card.id
        ]
        expected = (CODES[choice], card.calls[call].approval)
        link = next(
            link
            for link in links(card_mail)
            if (found := CODE.search(link)) is not None and found.groups() == expected
        )
        mail = mail_from(self._people[who], self._world.bot, subject=link, in_reply_to="")
        return await self._written(who, mail, link)

    async def _written(self, who: str, mail: EmailMessage, text: str) -> Action:
        bare = copy(mail)
        del bare["Subject"]  # only the bot can tell what a card's code proves
        decoded = decode.decode(Fetched(validity=1, uid=1, raw=bare.as_bytes()), self._bot)
        assert isinstance(decoded, Decoded)
        await self._world.write(self._people[who], mail)
        return _Written(
            text=text,
            sender=self._people[who],
            mail=mail,
            message=decoded.envelope.message,
            claim=f"{self._account}/{decoded.envelope.dedup[-1]}",
            ledger=self._ledger,
        )

    @property
    def _account(self) -> str:
        return f"email/{self._world.bot}"

    async def redeliver(self, action: Action) -> None:
        assert isinstance(action, _Written)
        await self._world.write(action.sender, action.mail)

    def refuse(self, where: str) -> None:
        assert where == "ann"
        self._people[where] = self._world.unreachable

    async def until(self, condition: Callable[[], T]) -> T:
        """Poll, for mail servers report nothing; once more when nothing is on its way."""
        mail = self._world.mail
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    self._changed.clear()
                    if await self._checked(condition):
                        await mail.wait_delivered()
                        if found := await self._checked(condition):
                            return found
                    await self._next()
        except TimeoutError:
            read = {chat.name: chat.ever for chat in self.chats()}
            raise AssertionError(f"waited {PATIENCE_S:g} s in vain\n{read}") from None

    async def _checked(self, condition: Callable[[], T]) -> T:
        self.daemon.check()
        mail = self._world.mail
        for chat in self._chats.values():
            if await mail.count(chat.address) > len(chat.mails):
                chat.read(await mail.mails(chat.address))
        return condition()

    async def _next(self) -> None:
        loop = asyncio.get_running_loop()
        beat = loop.call_later(BEAT_S, self._changed.set)
        await self._changed.wait()
        beat.cancel()

    async def store_positions(self) -> None:
        """Let the bot have read before: what came before its first start is left to people."""
        first = mail_from(self._world.ann, self._world.bot, "Is there anybody?")
        await self._world.write(self._world.ann, first)
        validity = await asyncio.to_thread(self._world.mail.validity, self._world.bot)
        position = Position(scope=self._bot.settings.mailbox, cursor=f"{validity}:1")
        await read_up_to(self.directory, self._account, [position])


def on_email(*, channel: Mapping[str, object] | None = None) -> OpenWorld:
    """Return the opener of the platform.

    Args:
        channel: Keys of the channel's configuration.
    """

    @asynccontextmanager
    async def open_world(
        directory: Path, environment: Mapping[str, str]
    ) -> AsyncGenerator[PlatformWorld]:
        changed = asyncio.Event()
        async with mailing(
            directory,
            environment=environment,
            start=False,
            command=COMMAND,
            channel=channel,
            changed=changed.set,
        ) as world:
            adapted = OnEmail(world, directory, changed)
            await adapted.store_positions()
            yield adapted

    return open_world
