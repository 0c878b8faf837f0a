"""What the page shows of the people's mailboxes, and what it lets their owners do.

POST do    {"do": "say", "person": "ann@zero.test", "text": "hello"}
say     person, text; reply_to       answers the named mail, else the bot's newest
file    person, name, base64; caption
press   person, data                 a card's link: the subject of the mail that it writes

Mail servers announce nothing to us, so the mailboxes are polled.
"""

import asyncio
from collections.abc import Callable, Mapping
from email.message import EmailMessage
from email.utils import format_datetime, parsedate_to_datetime

from channels._remote.emulator.cast import Asked, Cast, Json, asked_of
from channels._remote.emulator.markup import blocks
from channels._remote.emulator.site import Unusable
from channels.email.emulator import letters
from channels.email.emulator.servers import Servers
from zeroclaw import Clock

LOOKS_S = 0.2
SHOWN = 60
"""The number of each person's newest mails on the page."""
FIRST = "hello"
"""The subject of a mail that begins a thread."""


class Control:
    """Mail, as the page shows it and acts on it; a `Platform` of `_remote.emulator.site`."""

    def __init__(
        self, mail: Servers, bot: str, names: Mapping[str, str], of_page: Cast, clock: Clock
    ) -> None:
        """Start with the people who write to the bot, by their addresses."""
        self._mail = mail
        self._clock = clock
        self._bot = bot
        self._names = names
        self._cast = of_page
        self._mails: dict[str, list[EmailMessage]] = {one: [] for one in names}
        self._letters: asyncio.Queue[tuple[str, EmailMessage]] = asyncio.Queue(100)
        self._changed = asyncio.Event()
        self._is_read = False
        self._deeds: Mapping[str, Callable[[Asked], EmailMessage]] = {
            "say": self._said,
            "file": self._filed,
            "press": self._pressed,
        }

    # --- what the page shows -------------------------------------------------------------------------

    def state(self) -> Json:
        """Return the state that the page shows."""
        return {
            "platform": "E-mail",
            **self._cast.shown(),
            "bot": {"name": self._bot, "username": self._bot},
            "polled": self._is_read,
            "calls": sum(self._is_from_bot(one) for some in self._mails.values() for one in some),
            "refused": 0,
            "waiting": self._letters.qsize(),
            "chats": [self._chat(one) for one in self._names],
            "toasts": [],
        }

    def _chat(self, whose: str) -> Json:
        shown = [self._message(whose, one) for one in self._mails[whose][-SHOWN:]]
        return {"id": whose, "draft": None, "acting": "", "messages": shown}

    def _message(self, whose: str, mail: EmailMessage) -> Json:
        is_bot = self._is_from_bot(mail)
        is_answer = is_bot and not letters.links(mail)
        return {
            "id": _id(mail),
            "chat": whose,
            "sender": self._bot if is_bot else whose,
            "name": f"{self._bot if is_bot else self._names[whose]} · {letters.shown_subject(mail)}",
            "bot": is_bot,
            "only": "",
            "date": parsedate_to_datetime(str(mail["date"])).timestamp(),
            "text": letters.shown(mail),
            "rich": {"blocks": blocks(letters.markdown(mail))} if is_answer else None,
            "entities": [],
            "earlier": [],
            "rows": [[{"text": label, "callback_data": to}] for label, to in letters.buttons(mail)],
            "asks": False,
            "reply": None,
            "files": [
                {"kind": "file", "name": str(one.get_filename()), "path": f"{_id(mail)}/{number}"}
                for number, one in enumerate(mail.iter_attachments())
            ],
        }

    def file(self, path: str) -> bytes | None:
        """Return an attachment, by the mail's id and the attachment's number."""
        id_, _, number = path.rpartition("/")
        every = (one for some in self._mails.values() for one in some if _id(one) == id_)
        files = [one for mail in every for one in mail.iter_attachments()]
        found = files[int(number)] if number.isdecimal() and int(number) < len(files) else None
        content = None if found is None else found.get_payload(decode=True)
        return content if isinstance(content, bytes) else None

    def next_change(self) -> asyncio.Event:
        """Return an event that is set at the next change."""
        return self._changed

    def _is_from_bot(self, mail: EmailMessage) -> bool:
        return self._bot in str(mail["from"])

    # --- what people do ------------------------------------------------------------------------------

    def do(self, asked: Mapping[str, object]) -> None:
        """Carry out one action of the page.

        Raises:
            Unusable: It names something that does not exist.
        """
        deed = asked_of(asked)
        write = self._deeds.get(deed.do)
        if write is None:
            raise Unusable(f"`do` is one of {', '.join(self._deeds)}")
        if deed.person not in self._names:
            raise Unusable(f"`person` is one of {', '.join(self._names)}")
        if self._letters.full():
            raise Unusable("there are too many mails on their way")
        self._letters.put_nowait((deed.person, write(deed)))

    def _said(self, asked: Asked) -> EmailMessage:
        if not asked.text.strip():
            raise Unusable("there is no text")
        return self._written(asked, asked.text)

    def _filed(self, asked: Asked) -> EmailMessage:
        mail = self._written(asked, asked.caption)
        mail.add_attachment(
            asked.base64, maintype="application", subtype="octet-stream", filename=asked.name
        )
        return mail

    def _pressed(self, asked: Asked) -> EmailMessage:
        if not asked.data:
            raise Unusable("there is no link")
        return self._written(asked, "", subject=asked.data)

    def _written(self, asked: Asked, text: str, *, subject: str = "") -> EmailMessage:
        """Write a mail in answer to the named one, else to the newest that is not a card."""
        mails = self._mails[asked.person]
        named = [one for one in mails if _id(one) == asked.reply_to]
        newest = [one for one in mails if self._is_from_bot(one) and not letters.links(one)]
        answered = None if subject else next(iter([*named, *reversed(newest)]), None)
        about = str(answered["subject"]) if answered is not None else subject or FIRST
        mail = letters.mail_from(
            asked.person,
            self._bot,
            text,
            subject=about
            if subject or about == FIRST or about.startswith("Re: ")
            else f"Re: {about}",
            answers="" if answered is None else str(answered["message-id"]),
            name=self._names[asked.person],
        )
        mail["Date"] = format_datetime(self._clock.now())
        return mail

    # --- in the background ---------------------------------------------------------------------------

    async def deliver(self) -> None:
        """Deliver people's mails to the bot's mailbox, until cancelled."""
        while True:
            sender, mail = await self._letters.get()
            await self._mail.deliver(self._bot, mail.as_bytes(), sender=sender)
            self._mails[sender].append(mail)
            self._change()

    async def watch(self) -> None:
        """Poll for new mails, until cancelled."""
        read = dict.fromkeys(self._names, 0)
        while True:
            is_read = bool(await asyncio.to_thread(self._mail.sessions, self._bot))
            if is_read != self._is_read:
                self._is_read = is_read
                self._change()
            for whose in self._names:
                count = await self._mail.count(whose)
                if count > read[whose]:
                    came = await self._mail.mails(whose)
                    self._mails[whose] += came[read[whose] :]
                    read[whose] = len(came)
                    self._change()
            await self._clock.sleep(LOOKS_S)

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _id(mail: EmailMessage) -> str:
    return str(mail["message-id"]).strip("<>")
