"""The state of Telegram and the actions of people, for the page and others that have its key.

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
            "block": lambda request: self._actor(request).blocks(),
            "unblock": lambda request: self._actor(request).unblocks(),
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

    def do(self, body: Json) -> None:
        """Carry out one action of the page.

        Raises:
            Unusable: It names something that does not exist.
        """
        handler = self._handlers.get(text_of(body, "do"))
        if handler is None:
            raise Unusable(f"`do` is one of {', '.join(self._handlers)}")
        handler(body)

    def _say(self, request: Json) -> object:
        actor, chat, thread = (
            self._actor(request),
            self._chat(request),
            number_of(request, "thread"),
        )
        text = text_of(request, "text")
        if not text.strip():
            raise Unusable("there is no text")
        number = number_of(request, "reply_to")
        reply_to = self._message(chat, number) if number else None
        return actor.pastes(text, chat=chat, thread=thread, reply_to=reply_to)

    def _file(self, request: Json) -> object:
        kind = text_of(request, "kind") or "document"
        if kind not in FOLDERS:
            raise Unusable(f"`kind` is one of {', '.join(FOLDERS)}")
        return self._actor(request).sends(
            kind,
            _content(request),
            name=text_of(request, "name") or "file.bin",
            media_type=text_of(request, "media_type") or "application/octet-stream",
            caption=text_of(request, "caption"),
            chat=self._chat(request),
        )

    def _album(self, request: Json) -> object:
        items = request.get("photos")
        photos = [item for item in items if is_object(item)] if is_array(items) else []
        if not _MIN_PHOTOS <= len(photos) <= _MAX_PHOTOS:
            raise Unusable(f"an album has {_MIN_PHOTOS} to {_MAX_PHOTOS} `photos`")
        return self._actor(request).sends_album(
            [(text_of(photo, "name") or "photo.jpg", _content(photo)) for photo in photos],
            caption=text_of(request, "caption"),
            chat=self._chat(request),
        )

    def _edit(self, request: Json) -> object:
        message = self._message(self._chat(request), number_of(request, "message"))
        return self._actor(request).edits(message, text_of(request, "text"))

    def _delete(self, request: Json) -> object:
        message = self._message(self._chat(request), number_of(request, "message"))
        return self._actor(request).deletes(message)

    def _forward(self, request: Json) -> object:
        message = self._message(self._chat(request), number_of(request, "message"))
        to = self._chat({**request, "chat": request["to"]}) if "to" in request else None
        return self._actor(request).forwards(message, chat=to)

    def _press(self, request: Json) -> object:
        message = self._message(self._chat(request), number_of(request, "message"))
        return self._actor(request).presses(message, data=text_of(request, "data"))

    def _fail(self, request: Json) -> object:
        wait_s = number_of(request, "retry_after_s") or _USUAL_WAIT_S
        faults: Mapping[str, Fault] = {
            "too_many": TooMany(retry_after_s=wait_s),
            "lose": Lose(carried_out=False),
            "lose_answer": Lose(carried_out=True),
            "bad_gateway": BadGateway(),
            "hang": Hang(),
            "hang_answer": Hang(carried_out=True),
            "refuse": Refuse(
                code=number_of(request, "code") or _USUAL_CODE,
                description=text_of(request, "description") or "Bad Request: refused by the page",
            ),
        }
        fault = faults.get(text_of(request, "how"))
        if fault is None:
            raise Unusable(f"`how` is one of {', '.join(faults)}")
        if isinstance(fault, Hang):
            self._hanging.append(fault)
        chat = self._chat(request) if "chat" in request else None
        times = number_of(request, "times") or 1
        return self._telegram.will(
            text_of(request, "method") or "sendMessage", fault, chat=chat, times=times
        )

    def _release(self) -> None:
        for hang in self._hanging:
            hang.release()
        self._hanging.clear()

    # --- people and chats ------------------------------------------------------------------------

    def _actor(self, request: Json) -> Actor:
        actor = self._actors.get(number_of(request, "person"))
        if actor is None:
            raise Unusable(f"`person` is one of {', '.join(map(str, self._actors))}")
        return actor

    def _chat(self, request: Json) -> Chat:
        """Return the chat of an action; by default the person's private chat."""
        if "chat" not in request:
            return self._actor(request).chat
        chat = self._telegram.account.chats.get(number_of(request, "chat"))
        if chat is None:
            raise Unusable("`chat` is none")
        return chat

    def _message(self, chat: Chat, id_: int) -> Message:
        message = chat.by_id.get(id_)
        if message is None:
            raise Unusable(f"there is no message {id_} in {chat!r}")
        return message


def _content(request: Json) -> bytes:
    try:
        return base64.b64decode(text_of(request, "base64"), validate=True)
    except binascii.Error as error:
        raise Unusable("`base64` can't be read") from error
