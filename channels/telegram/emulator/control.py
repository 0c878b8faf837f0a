"""The state of Telegram and the acts of people, for the page and others that have its key.

POST do    {"do": "say", "person": 1000001, "text": "hello"}
say     person, text; chat, thread, reply_to       a long text is sent as several messages
file    person, kind, name, base64; caption, chat
album   person, photos; caption, chat              photos: 2 to 10 of {name, base64}
edit    person, chat, message, text
delete  person, chat, message
forward person, chat, message; to
press   person, chat, message, data
block   person                                     and `unblock`
fail    how; method, chat, times, and retry_after_s, code or description, depending on `how`
release                                            lets all hanging calls go on

`how` is one of too_many, refuse, lose (the call), lose_answer, bad_gateway, hang (before the call is
carried out) and hang_answer; calls hang until `release`.
"""

import asyncio
import base64
import binascii
from collections.abc import Callable, Mapping

from channels._remote.emulator.cast import Cast
from channels._remote.emulator.site import Unusable
from channels.telegram.emulator.actor import Actor
from channels.telegram.emulator.chats import Chat, Message
from channels.telegram.emulator.emulator import Emulator
from channels.telegram.emulator.faults import BadGateway, Fault, Hang, Lose, Refuse, TooMany
from channels.telegram.emulator.files import FOLDERS
from channels.telegram.emulator.view import snapshot
from channels.telegram.emulator.wire import Json, is_array, is_object, number_of, text_of

_USUAL_WAIT_S = 5
_USUAL_CODE = 400


# Bot API, sendMediaGroup, read 2026-11; apps have the same limits.
_MIN_PHOTOS, _MAX_PHOTOS = 2, 10


class Control:
    """Telegram for the page; a `Platform` of `_remote.emulator.site`."""

    def __init__(self, telegram: Emulator, actors: Mapping[int, Actor], cast: Cast) -> None:
        """Take the people who can act, by id, and the cast for the page."""
        self._telegram = telegram
        self._actors = actors
        self._cast = cast
        self._handlers: Mapping[str, Callable[[Json], object]] = {
            "say": self._say,
            "file": self._file,
            "album": self._album,
            "edit": self._edit,
            "delete": self._delete,
            "forward": self._forward,
            "press": self._press,
            "block": lambda act: self._actor(act).blocks(),
            "unblock": lambda act: self._actor(act).unblocks(),
            "fail": self._fail,
            "release": lambda _: self._release(),
        }
        self._hanging: list[Hang] = []

    def state(self) -> Json:
        """Return everything that the page shows."""
        telegram = self._telegram
        has_bot = telegram.is_polled or telegram.account.webhook is not None
        view = snapshot(
            telegram.account, telegram.now(), is_polled=has_bot, calls=len(telegram.calls)
        )
        return {"platform": "Telegram", **self._cast.shown(), **view}

    def file(self, path: str) -> bytes | None:
        """Return a sent file by its path."""
        file = self._telegram.account.files.at(path)
        return None if file is None else file.content

    def next_change(self) -> asyncio.Event:
        """Return an event that is set at the next change."""
        return self._telegram.next_change()

    def do(self, asked: Json) -> None:
        """Carry out one act.

        Raises:
            Unusable: It names something that does not exist.
        """
        handler = self._handlers.get(text_of(asked, "do"))
        if handler is None:
            raise Unusable(f"`do` is one of {', '.join(self._handlers)}")
        handler(asked)

    def _say(self, act: Json) -> object:
        actor, chat, thread = self._actor(act), self._chat(act), number_of(act, "thread")
        text = text_of(act, "text")
        if not text.strip():
            raise Unusable("there is no text")
        number = number_of(act, "reply_to")
        reply_to = self._message(chat, number) if number else None
        return actor.pastes(text, chat=chat, thread=thread, reply_to=reply_to)

    def _file(self, act: Json) -> object:
        kind = text_of(act, "kind") or "document"
        if kind not in FOLDERS:
            raise Unusable(f"`kind` is one of {', '.join(FOLDERS)}")
        return self._actor(act).sends(
            kind,
            _content(act),
            name=text_of(act, "name") or "file.bin",
            media_type=text_of(act, "media_type") or "application/octet-stream",
            caption=text_of(act, "caption"),
            chat=self._chat(act),
        )

    def _album(self, act: Json) -> object:
        items = act.get("photos")
        photos = [item for item in items if is_object(item)] if is_array(items) else []
        if not _MIN_PHOTOS <= len(photos) <= _MAX_PHOTOS:
            raise Unusable(f"an album has {_MIN_PHOTOS} to {_MAX_PHOTOS} `photos`")
        return self._actor(act).sends_album(
            [(text_of(photo, "name") or "photo.jpg", _content(photo)) for photo in photos],
            caption=text_of(act, "caption"),
            chat=self._chat(act),
        )

    def _edit(self, act: Json) -> object:
        message = self._message(self._chat(act), number_of(act, "message"))
        return self._actor(act).edits(message, text_of(act, "text"))

    def _delete(self, act: Json) -> object:
        message = self._message(self._chat(act), number_of(act, "message"))
        return self._actor(act).deletes(message)

    def _forward(self, act: Json) -> object:
        message = self._message(self._chat(act), number_of(act, "message"))
        to = self._chat({**act, "chat": act["to"]}) if "to" in act else None
        return self._actor(act).forwards(message, chat=to)

    def _press(self, act: Json) -> object:
        message = self._message(self._chat(act), number_of(act, "message"))
        return self._actor(act).presses(message, data=text_of(act, "data"))

    def _fail(self, act: Json) -> object:
        wait_s = number_of(act, "retry_after_s") or _USUAL_WAIT_S
        faults: Mapping[str, Fault] = {
            "too_many": TooMany(retry_after_s=wait_s),
            "lose": Lose(carried_out=False),
            "lose_answer": Lose(carried_out=True),
            "bad_gateway": BadGateway(),
            "hang": Hang(),
            "hang_answer": Hang(carried_out=True),
            "refuse": Refuse(
                code=number_of(act, "code") or _USUAL_CODE,
                description=text_of(act, "description") or "Bad Request: refused by the page",
            ),
        }
        fault = faults.get(text_of(act, "how"))
        if fault is None:
            raise Unusable(f"`how` is one of {', '.join(faults)}")
        if isinstance(fault, Hang):
            self._hanging.append(fault)
        chat = self._chat(act) if "chat" in act else None
        times = number_of(act, "times") or 1
        return self._telegram.will(
            text_of(act, "method") or "sendMessage", fault, chat=chat, times=times
        )

    def _release(self) -> None:
        for hang in self._hanging:
            hang.release()
        self._hanging.clear()

    # --- people and chats ------------------------------------------------------------------------

    def _actor(self, act: Json) -> Actor:
        actor = self._actors.get(number_of(act, "person"))
        if actor is None:
            raise Unusable(f"`person` is one of {', '.join(map(str, self._actors))}")
        return actor

    def _chat(self, act: Json) -> Chat:
        """Return the chat of an act; by default the person's private chat."""
        if "chat" not in act:
            return self._actor(act).chat
        chat = self._telegram.account.chats.get(number_of(act, "chat"))
        if chat is None:
            raise Unusable("`chat` is none")
        return chat

    def _message(self, chat: Chat, id_: int) -> Message:
        message = chat.by_id.get(id_)
        if message is None:
            raise Unusable(f"there is no message {id_} in {chat!r}")
        return message


def _content(act: Json) -> bytes:
    try:
        return base64.b64decode(text_of(act, "base64"), validate=True)
    except binascii.Error as error:
        raise Unusable("`base64` can't be read") from error
