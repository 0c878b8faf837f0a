"""A person on the emulator, for tests to act as."""

from collections.abc import Callable, Iterable

from channels.telegram.emulator import people, shapes
from channels.telegram.emulator.account import Account, Toast
from channels.telegram.emulator.chats import Chat, Instant, Message, Person, Status, buttons_of
from channels.telegram.emulator.entities import Entity, Formatted
from channels.telegram.emulator.files import media
from channels.telegram.emulator.people import UserAction, formatted
from channels.telegram.emulator.wire import Json, Upload


class Actor:
    """Acts as one person; the bot gets the updates at once.

    Attributes:
        person: The person.
        chat: Their private chat with the bot.
    """

    def __init__(
        self,
        account: Account,
        person: Person,
        *,
        now: Callable[[], Instant],
        on_update: Callable[[], None],
    ) -> None:
        """Do nothing yet; `on_update` is called after every action."""
        self._account = account
        self._now = now
        self._on_update = on_update
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
        extra: Json | None = None,
    ) -> UserAction:
        """Send a message, by default in the private chat.

        Args:
            text: The text; mentions, commands and URLs in it are marked as apps do.
            chat: The chat.
            thread: The topic.
            reply_to: The message that it replies to.
            quote: The quoted part of that message.
            entities: More marks, with offsets in the text as given.
            extra: Other fields of the Bot API's Message, such as `via_bot`.
        """
        quote_fields: Json = {"quote": {"text": quote, "position": 0}} if quote else {}
        return self._say(
            formatted(text, entities),
            chat=chat,
            thread=thread,
            reply_to=reply_to,
            extra={**quote_fields, **(extra or {})},
        )

    def starts(self, payload: str = "") -> UserAction:
        """Press Start in the private chat."""
        return self.says(f"/start {payload}".rstrip())

    def pastes(
        self,
        text: str,
        *,
        chat: Chat | None = None,
        thread: int = 0,
        reply_to: Message | None = None,
    ) -> list[UserAction]:
        """Paste a long text, which the app sends as several messages at once."""
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
        claimed_bytes: int | None = None,
        chat: Chat | None = None,
        thread: int = 0,
        reply_to: Message | None = None,
    ) -> UserAction:
        """Send a file.

        Args:
            kind: `document`, `photo`, `voice` and so on.
            content: The file's bytes.
            name: The file's name.
            media_type: The file's media type.
            caption: The caption.
            claimed_bytes: The size in the update, if it should differ from the content's.
            chat: The chat.
            thread: The topic.
            reply_to: The message that it replies to.
        """
        upload = Upload(name=name, content=content, media_type=media_type)
        file = self._account.files.store(kind, upload, claimed_bytes=claimed_bytes)
        return self._say(
            formatted(caption), chat=chat, thread=thread, reply_to=reply_to, media=media(file)
        )

    def sends_album(
        self,
        photos: Iterable[tuple[str, bytes]],
        *,
        caption: str = "",
        below: int = 0,
        chat: Chat | None = None,
    ) -> list[UserAction]:
        """Send several pictures, given with their names, as an album; `below` which the caption is."""
        self._account.albums += 1
        album = {"media_group_id": f"album-{self._account.albums}"}
        files = [
            media(self._account.files.store("photo", Upload(name=name, content=content)))
            for name, content in photos
        ]
        captions = [caption if number == below else "" for number, _ in enumerate(files)]
        return [
            self._say(formatted(text), chat=chat, media=photo, extra=album)
            for text, photo in zip(captions, files, strict=True)
        ]

    def forwards(self, message: Message, *, chat: Chat | None = None) -> UserAction:
        """Forward a message to a chat with the bot."""
        target = chat or self.chat
        return self._done(
            people.forward(self._account, self.person, message, self._now(), chat=target)
        )

    def edits(self, message: Message, text: str) -> UserAction:
        """Edit a message."""
        return self._done(people.edit(self._account, message, formatted(text), self._now()))

    def deletes(self, message: Message) -> None:
        """Delete a message; bots get no update about that."""
        message.deleted = True
        self._on_update()

    # --- pressing --------------------------------------------------------------------------------

    def presses(self, message: Message, button: str = "", *, data: str = "") -> UserAction:
        """Press a button.

        Args:
            message: The message with the button.
            button: Its label, now or at any earlier time.
            data: The data to send, instead of that of a button.

        Raises:
            LookupError: The message never had such a button.
        """
        if not data:
            buttons = [
                candidate
                for version in reversed(message.versions)
                for candidate in buttons_of(version.markup)
                if candidate.text == button
            ]
            if not buttons:
                reason = f"no button `{button}` under {message!r}"
                raise LookupError(reason)
            data = buttons[0].data
        return self._done(people.press(self._account, self.person, message, data, self._now()))

    def toast(self, pressed: UserAction) -> Toast | None:
        """Return the answer to a press, None while there is none."""
        return self._account.presses[str(pressed.update.body["id"])].toast

    # --- coming and going ------------------------------------------------------------------------

    def blocks(self) -> UserAction:
        """Block the bot."""
        return self.lets_bot("kicked", self.chat)

    def unblocks(self) -> UserAction:
        """Unblock the bot."""
        return self.lets_bot("member", self.chat)

    def adds_bot(self, chat: Chat) -> UserAction:
        """Add the bot to a group."""
        return self.lets_bot("member", chat)

    def kicks_bot(self, chat: Chat) -> UserAction:
        """Remove the bot from a group."""
        return self.lets_bot("kicked", chat)

    def lets_bot(self, status: Status, chat: Chat) -> UserAction:
        """Change the bot's status in a chat."""
        return self._done(people.set_status(self._account, self.person, chat, status, self._now()))

    def joins(self, chat: Chat) -> UserAction:
        """Join a group."""
        chat.members[self.id] = "member"
        return self._service(chat, "new_chat_members", many=True)

    def leaves(self, chat: Chat) -> UserAction:
        """Leave a group."""
        chat.members[self.id] = "left"
        return self._service(chat, "left_chat_member", many=False)

    def upgrades(self, chat: Chat) -> tuple[UserAction, UserAction]:
        """Upgrade a group to a supergroup; the second action is in the new chat."""
        left, joined = people.migrate(self._account, self.person, chat, self._now())
        self._on_update()
        return left, joined

    # --- inside ----------------------------------------------------------------------------------

    def _say(
        self,
        formatted: Formatted,
        *,
        chat: Chat | None,
        thread: int = 0,
        reply_to: Message | None = None,
        media: Json | None = None,
        extra: Json | None = None,
    ) -> UserAction:
        return self._done(
            people.say(
                self._account,
                self.person,
                formatted,
                self._now(),
                chat=chat or self.chat,
                thread=thread,
                reply_to=reply_to,
                media=media,
                extra=extra,
            )
        )

    def _service(self, chat: Chat, field: str, *, many: bool) -> UserAction:
        user = shapes.user(self.person)
        extra: Json = {field: [user] if many else user}
        return self._done(people.service(self._account, self.person, chat, extra, self._now()))

    def _done(self, action: UserAction) -> UserAction:
        self._on_update()
        return action

    def __repr__(self) -> str:
        return f"{self.person!r} ({self.id})"
