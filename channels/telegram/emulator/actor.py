"""A person on the emulator, through whom a test acts."""

from collections.abc import Callable, Iterable

from channels.telegram.emulator import people, shapes
from channels.telegram.emulator.account import Account, Toast
from channels.telegram.emulator.chats import Chat, Message, Moment, Person, Standing, buttons_of
from channels.telegram.emulator.entities import Entity, Formatted
from channels.telegram.emulator.files import media
from channels.telegram.emulator.people import Deed, marked
from channels.telegram.emulator.wire import Json, Upload


class Actor:
    """Does what one person does; everything is told to the bot at once.

    Attributes:
        person: Who.
        chat: Their private chat with the bot.
    """

    def __init__(
        self,
        account: Account,
        person: Person,
        *,
        now: Callable[[], Moment],
        happened: Callable[[], None],
    ) -> None:
        """Hold what is needed; `happened` is called after every deed."""
        self._account = account
        self._now = now
        self._happened = happened
        self.person = person
        self.chat = account.chats[person.id]

    @property
    def id(self) -> int:
        """Their id, which is also that of their private chat."""
        return self.person.id

    # --- writing ---------------------------------------------------------------------------------

    def says(
        self,
        text: str,
        *,
        chat: Chat | None = None,
        thread: int = 0,
        reply_to: Message | None = None,
        quote: str = "",
        entities: Iterable[Entity] = (),
        more: Json | None = None,
    ) -> Deed:
        """Write, in the private chat unless another is named.

        Args:
            text: Mentions, commands and addresses in it are marked as clients do.
            chat: Where.
            thread: The topic.
            reply_to: What it answers.
            quote: A part of that, which is quoted.
            entities: More marks, counted in the text as given.
            more: Other fields of the Bot API's message, such as `via_bot`.
        """
        quoted: Json = {"quote": {"text": quote, "position": 0}} if quote else {}
        return self._say(
            marked(text, entities),
            chat=chat,
            thread=thread,
            reply_to=reply_to,
            more={**quoted, **(more or {})},
        )

    def starts(self, payload: str = "") -> Deed:
        """Press Start in the private chat."""
        return self.says(f"/start {payload}".rstrip())

    def pastes(
        self,
        text: str,
        *,
        chat: Chat | None = None,
        thread: int = 0,
        reply_to: Message | None = None,
    ) -> list[Deed]:
        """Paste a long text, which the client sends as several messages at once."""
        return [
            self.says(piece, chat=chat, thread=thread, reply_to=reply_to)
            for piece in people.pieces(text)
        ]

    def sends(
        self,
        kind: str,
        content: bytes,
        *,
        name: str = "file.bin",
        media_type: str = "application/octet-stream",
        caption: str = "",
        claimed_size: int | None = None,
        chat: Chat | None = None,
        thread: int = 0,
        reply_to: Message | None = None,
    ) -> Deed:
        """Send a file.

        Args:
            kind: `document`, `photo`, `voice` and so on.
            content: What it holds.
            name: Its name.
            media_type: Its type.
            caption: What is written under it.
            claimed_size: The size that Telegram tells, when that is not to be the content's.
            chat: Where.
            thread: The topic.
            reply_to: What it answers.
        """
        upload = Upload(name=name, content=content, media_type=media_type)
        file = self._account.files.keep(kind, upload, claimed_size=claimed_size)
        return self._say(
            marked(caption), chat=chat, thread=thread, reply_to=reply_to, held=media(file)
        )

    def sends_album(
        self, photos: Iterable[tuple[str, bytes]], *, caption: str = "", chat: Chat | None = None
    ) -> list[Deed]:
        """Send several pictures, by name, as one album; the caption stands under the first."""
        self._account.albums += 1
        album = {"media_group_id": f"album-{self._account.albums}"}
        kept = [
            media(self._account.files.keep("photo", Upload(name=name, content=content)))
            for name, content in photos
        ]
        captions = [caption, *("" for _ in kept[1:])]
        return [
            self._say(marked(said), chat=chat, held=held, more=album)
            for said, held in zip(captions, kept, strict=True)
        ]

    def forwards(self, message: Message, *, chat: Chat | None = None) -> Deed:
        """Forward a message to a chat with the bot."""
        where = chat or self.chat
        return self._done(
            people.forward(self._account, self.person, message, self._now(), chat=where)
        )

    def edits(self, message: Message, text: str) -> Deed:
        """Change what somebody wrote."""
        return self._done(people.edit(self._account, message, marked(text), self._now()))

    def deletes(self, message: Message) -> None:
        """Remove a message, of which a bot is told nothing."""
        message.deleted = True
        self._happened()

    # --- pressing --------------------------------------------------------------------------------

    def presses(self, message: Message, button: str = "", *, data: str = "") -> Deed:
        """Press a button.

        Args:
            message: Under which it stands, or stood.
            button: What is written on it, now or at any time before.
            data: What it sends, instead of looking for the button.

        Raises:
            LookupError: There never was such a button.
        """
        if not data:
            known = [
                one
                for version in reversed(message.versions)
                for one in buttons_of(version.markup)
                if one.text == button
            ]
            if not known:
                reason = f"no button `{button}` under {message!r}"
                raise LookupError(reason)
            data = known[0].data
        return self._done(people.press(self._account, self.person, message, data, self._now()))

    def toast(self, pressed: Deed) -> Toast | None:
        """Return how a press was answered, None while it is not."""
        return self._account.presses[str(pressed.update.body["id"])].toast

    # --- coming and going ------------------------------------------------------------------------

    def blocks(self) -> Deed:
        """Block the bot."""
        return self.lets_bot("kicked", self.chat)

    def unblocks(self) -> Deed:
        """Unblock the bot."""
        return self.lets_bot("member", self.chat)

    def adds_bot(self, chat: Chat) -> Deed:
        """Bring the bot into a group."""
        return self.lets_bot("member", chat)

    def kicks_bot(self, chat: Chat) -> Deed:
        """Remove the bot from a group."""
        return self.lets_bot("kicked", chat)

    def lets_bot(self, standing: Standing, chat: Chat) -> Deed:
        """Change how the bot stands to a chat."""
        return self._done(people.stand(self._account, self.person, chat, standing, self._now()))

    def joins(self, chat: Chat) -> Deed:
        """Come into a group."""
        chat.members[self.id] = "member"
        return self._service(chat, "new_chat_members", many=True)

    def leaves(self, chat: Chat) -> Deed:
        """Leave a group."""
        chat.members[self.id] = "left"
        return self._service(chat, "left_chat_member", many=False)

    def upgrades(self, chat: Chat) -> tuple[Deed, Deed]:
        """Make a supergroup of a group; the second deed is in the new chat."""
        left, came = people.migrate(self._account, self.person, chat, self._now())
        self._happened()
        return left, came

    # --- inside ----------------------------------------------------------------------------------

    def _say(
        self,
        formatted: Formatted,
        *,
        chat: Chat | None,
        thread: int = 0,
        reply_to: Message | None = None,
        held: Json | None = None,
        more: Json | None = None,
    ) -> Deed:
        return self._done(
            people.say(
                self._account,
                self.person,
                formatted,
                self._now(),
                chat=chat or self.chat,
                thread=thread,
                reply_to=reply_to,
                held=held,
                more=more,
            )
        )

    def _service(self, chat: Chat, field: str, *, many: bool) -> Deed:
        who = shapes.user(self.person)
        more: Json = {field: [who] if many else who}
        return self._done(people.service(self._account, self.person, chat, more, self._now()))

    def _done(self, deed: Deed) -> Deed:
        self._happened()
        return deed

    def __repr__(self) -> str:
        return f"{self.person!r} ({self.id})"
