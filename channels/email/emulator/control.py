"""The people's mailboxes on the emulator's page, and the mails that their owners write there.

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

from channels._remote.emulator.cast import ActionRequest, Cast, Json, parse_action_request
from channels._remote.emulator.markup import blocks
from channels._remote.emulator.site import Unusable
from channels.email.emulator import letters
from channels.email.emulator.servers import Servers
from zeroclaw import Clock

POLL_S = 0.2
MAX_MAILS = 60
"""Newest mails of each person on the page."""
NEW_SUBJECT = "hello"
"""The subject of a mail that begins a thread."""


class Control:
    """Mail, as the page shows it and acts on it; a `Platform` of `_remote.emulator.site`."""

    def __init__(
        self, mail: Servers, bot: str, names: Mapping[str, str], cast: Cast, clock: Clock
    ) -> None:
        """Start with the people who write to the bot, by their addresses."""
        self._mail = mail
        self._clock = clock
        self._bot = bot
        self._names = names
        self._cast = cast
        self._mails: dict[str, list[EmailMessage]] = {address: [] for address in names}
        self._letters: asyncio.Queue[tuple[str, EmailMessage]] = asyncio.Queue(100)
        self._changed = asyncio.Event()
        self._is_read = False
        self._actions: Mapping[str, Callable[[ActionRequest], EmailMessage]] = {
            "say": self._text_mail,
            "file": self._file_mail,
            "press": self._press_mail,
        }

    # --- the page's state ----------------------------------------------------------------------------

    def state(self) -> Json:
        """Return the state that the page shows."""
        return {
            "platform": "E-mail",
            **self._cast.shown(),
            "bot": {"name": self._bot, "username": self._bot},
            "polled": self._is_read,
            "calls": sum(self._is_from_bot(mail) for box in self._mails.values() for mail in box),
            "refused": 0,
            "waiting": self._letters.qsize(),
            "chats": [self._chat(address) for address in self._names],
            "toasts": [],
        }

    def _chat(self, address: str) -> Json:
        messages = [self._message(address, mail) for mail in self._mails[address][-MAX_MAILS:]]
        return {"id": address, "draft": None, "acting": "", "messages": messages}

    def _message(self, address: str, mail: EmailMessage) -> Json:
        is_bot = self._is_from_bot(mail)
        is_answer = is_bot and not letters.links(mail)
        return {
            "id": _id(mail),
            "chat": address,
            "sender": self._bot if is_bot else address,
            "name": f"{self._bot if is_bot else self._names[address]} · {letters.visible_subject(mail)}",
            "bot": is_bot,
            "only": "",
            "date": parsedate_to_datetime(str(mail["date"])).timestamp(),
            "text": letters.visible_text(mail),
            "rich": {"blocks": blocks(letters.markdown(mail))} if is_answer else None,
            "entities": [],
            "earlier": [],
            "rows": [[{"text": label, "callback_data": to}] for label, to in letters.buttons(mail)],
            "asks": False,
            "reply": None,
            "files": [
                {"kind": "file", "name": str(part.get_filename()), "path": f"{_id(mail)}/{number}"}
                for number, part in enumerate(mail.iter_attachments())
            ],
        }

    def file(self, path: str) -> bytes | None:
        """Return an attachment, by the mail's id and the attachment's number."""
        id_, _, number = path.rpartition("/")
        mails = (part for group in self._mails.values() for part in group if _id(part) == id_)
        files = [part for mail in mails for part in mail.iter_attachments()]
        part = files[int(number)] if number.isdecimal() and int(number) < len(files) else None
        content = None if part is None else part.get_payload(decode=True)
        return content if isinstance(content, bytes) else None

    def next_change(self) -> asyncio.Event:
        """Return an event that is set at the next change."""
        return self._changed

    def _is_from_bot(self, mail: EmailMessage) -> bool:
        return self._bot in str(mail["from"])

    # --- people's actions ----------------------------------------------------------------------------

    def do(self, body: Mapping[str, object]) -> None:
        """Carry out one action of the page.

        Raises:
            Unusable: It names an action or a person that does not exist.
        """
        request = parse_action_request(body)
        write = self._actions.get(request.do)
        if write is None:
            raise Unusable(f"`do` is one of {', '.join(self._actions)}")
        if request.person not in self._names:
            raise Unusable(f"`person` is one of {', '.join(self._names)}")
        if self._letters.full():
            raise Unusable("there are too many mails on their way")
        self._letters.put_nowait((request.person, write(request)))

    def _text_mail(self, request: ActionRequest) -> EmailMessage:
        if not request.text.strip():
            raise Unusable("there is no text")
        return self._compose(request, request.text)

    def _file_mail(self, request: ActionRequest) -> EmailMessage:
        mail = self._compose(request, request.caption)
        mail.add_attachment(
            request.base64, maintype="application", subtype="octet-stream", filename=request.name
        )
        return mail

    def _press_mail(self, request: ActionRequest) -> EmailMessage:
        if not request.data:
            raise Unusable("there is no link")
        return self._compose(request, "", subject=request.data)

    def _compose(self, request: ActionRequest, text: str, *, subject: str = "") -> EmailMessage:
        """Write a mail in answer to the named one, else to the newest that is not a card."""
        mails = self._mails[request.person]
        replied_to = [mail for mail in mails if _id(mail) == request.reply_to]
        answers = [mail for mail in mails if self._is_from_bot(mail) and not letters.links(mail)]
        answered = None if subject else next(iter([*replied_to, *reversed(answers)]), None)
        title = str(answered["subject"]) if answered is not None else subject or NEW_SUBJECT
        mail = letters.mail_from(
            request.person,
            self._bot,
            text,
            subject=title
            if subject or title == NEW_SUBJECT or title.startswith("Re: ")
            else f"Re: {title}",
            in_reply_to="" if answered is None else str(answered["message-id"]),
            name=self._names[request.person],
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
            for address in self._names:
                count = await self._mail.count(address)
                if count > read[address]:
                    mails = await self._mail.mails(address)
                    self._mails[address] += mails[read[address] :]
                    read[address] = len(mails)
                    self._change()
            await self._clock.sleep(POLL_S)

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _id(mail: EmailMessage) -> str:
    return str(mail["message-id"]).strip("<>")
