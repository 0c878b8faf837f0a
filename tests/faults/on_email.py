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
from tests.faults.stage import (
    HOWS,
    Asked,
    Card,
    Deed,
    Open,
    Shown,
    Stage,
    WithDirectChats,
    read_up_to,
)
from tests.journeys.daemon_process import PATIENCE_S
from tests.journeys.email.mailing import Mailing, mailing
from zeroclaw import Choice, Position

T = TypeVar("T")
BEAT_S = 0.02
_CALL = re.compile(r"(?m)^(\d+)\. (?=\w+: )")
_ENDED = re.compile(rf"(?m)^(\d+)\. \w+: .*\n([{''.join(HOWS)}])")


@dataclass(frozen=True, slots=True)
class _Written:
    """A mail of a person; its sender hears of it by the answer alone."""

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
    """Read a card as a person does, with what later mails say of how its calls ended."""
    approvals = dict.fromkeys(found[2] for one in links(mail) if (found := CODE.search(one)))
    _, *parts = _CALL.split(body(mail))
    ended = {found[1]: HOWS[found[2]] for one in below for found in _ENDED.finditer(body(one))}
    calls = zip(approvals, parts[::2], parts[1::2], strict=True)
    return Card(
        id=str(mail["message-id"]),
        question=" ".join(approvals),
        calls=tuple(
            Asked(approval=approval, says=says, how=ended.get(number, ""))
            for approval, number, says in calls
        ),
    )


@dataclass(slots=True)
class _Chat:
    name: str
    address: str
    mails: Sequence[EmailMessage] = ()
    shown: Sequence[Shown] = ()
    cards: Sequence[Card] = ()

    def read(self, mails: Sequence[EmailMessage]) -> None:
        """Read all that has come, once: what stands here is looked at in every instant."""
        asked = [one for one in mails if links(one)]
        ids = {str(one["message-id"]) for one in asked}
        below: dict[str, list[EmailMessage]] = {each: [] for each in ids}
        for one in mails:
            below.get(str(one["in-reply-to"]), []).append(one)
        said = [one for one in mails if not ids & {str(one["message-id"]), str(one["in-reply-to"])}]
        self.mails = mails
        self.shown = [Shown(text=body(one).partition("\n\n-- \n")[0]) for one in said]
        self.cards = [_card(one, below[str(one["message-id"])]) for one in asked]

    @property
    def ever(self) -> str:
        return "\n".join(map(body, self.mails))


class OnEmail(WithDirectChats[_Chat]):
    """A `Stage`."""

    tells_repeats = False

    def __init__(self, here: Mailing, directory: Path, changed: asyncio.Event) -> None:
        self._here = here
        self.wake = changed.set
        self._changed = changed
        self._people = {"ann": here.ann, "bob": here.bob, "olga": here.olga}
        self._ledger = Ledger(directory / "data")
        self._me = decode.Bot(channel="email", settings=email_settings(here.mail, here.bot))
        chats = {name: _Chat(name, address) for name, address in self._people.items()}
        super().__init__(here, directory, chats)

    @property
    def listening(self) -> bool:
        return self.daemon.is_running

    async def say(
        self, who: str, text: str, *, where: str = "", files: Mapping[str, bytes] | None = None
    ) -> Deed:
        assert not where
        mail = mail_from(self._people[who], self._here.bot, text)
        for name, content in (files or {}).items():
            mail.add_attachment(content, maintype="text", subtype="plain", filename=name)
        return await self._written(who, mail, text)

    async def edit(self, deed: Deed, text: str) -> Deed:
        raise AssertionError("a mail that was sent stays as it is")

    async def press(self, who: str, where: str, card: Card, choice: Choice, *, call: int) -> Deed:
        (asked, *_) = [one for one in self._chats[where].mails if str(one["message-id"]) == card.id]
        wanted = (CODES[choice], card.calls[call].approval)
        link = next(
            one
            for one in links(asked)
            if (found := CODE.search(one)) is not None and found.groups() == wanted
        )
        mail = mail_from(self._people[who], self._here.bot, subject=link, answers="")
        return await self._written(who, mail, link)

    async def _written(self, who: str, mail: EmailMessage, text: str) -> Deed:
        bare = copy(mail)
        del bare["Subject"]  # only the bot can tell what a card's code proves
        taken = decode.decoded(Fetched(validity=1, uid=1, raw=bare.as_bytes()), self._me)
        assert isinstance(taken, Decoded)
        await self._here.write(self._people[who], mail)
        return _Written(
            text=text,
            sender=self._people[who],
            mail=mail,
            message=taken.envelope.message,
            claim=f"{self._account}/{taken.envelope.dedup[-1]}",
            ledger=self._ledger,
        )

    @property
    def _account(self) -> str:
        return f"email/{self._here.bot}"

    async def again(self, deed: Deed) -> None:
        assert isinstance(deed, _Written)
        await self._here.write(deed.sender, deed.mail)

    def refuse(self, where: str) -> None:
        assert where == "ann"
        self._people[where] = self._here.gone

    async def until(self, holds: Callable[[], T]) -> T:
        """Look again and again, for mail tells nobody; once more when nothing is on its way."""
        mail = self._here.mail
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    self._changed.clear()
                    if await self._looked(holds):
                        await mail.all_delivered()
                        if found := await self._looked(holds):
                            return found
                    await self._next()
        except TimeoutError:
            read = {one.name: one.ever for one in self.chats()}
            raise AssertionError(f"waited {PATIENCE_S:g} s in vain\n{read}") from None

    async def _looked(self, holds: Callable[[], T]) -> T:
        self.daemon.check()
        mail = self._here.mail
        for chat in self._chats.values():
            if await mail.count(chat.address) > len(chat.mails):
                chat.read(await mail.mails(chat.address))
        return holds()

    async def _next(self) -> None:
        loop = asyncio.get_running_loop()
        beat = loop.call_later(BEAT_S, self._changed.set)
        await self._changed.wait()
        beat.cancel()

    async def known(self) -> None:
        """Let the bot have read before: what came before its first start is left to people."""
        first = mail_from(self._here.ann, self._here.bot, "Is there anybody?")
        await self._here.write(self._here.ann, first)
        numbering = await asyncio.to_thread(self._here.mail.numbering, self._here.bot)
        position = Position(scope=self._me.settings.mailbox, cursor=f"{numbering}:1")
        await read_up_to(self.directory, self._account, [position])


def on_email(*, channel: Mapping[str, object] | None = None) -> Open:
    """Return what opens it.

    Args:
        channel: Keys of the channel's configuration.
    """

    @asynccontextmanager
    async def opened(directory: Path, environment: Mapping[str, str]) -> AsyncGenerator[Stage]:
        changed = asyncio.Event()
        async with mailing(
            directory,
            environment=environment,
            start=False,
            command=COMMAND,
            channel=channel,
            changed=changed.set,
        ) as here:
            stage = OnEmail(here, directory, changed)
            await stage.known()
            yield stage

    return opened
