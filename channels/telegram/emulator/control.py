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
        self._deeds: Mapping[str, Callable[[Json], object]] = {
            "say": self._say,
            "file": self._file,
            "album": self._album,
            "edit": self._edit,
            "delete": self._delete,
            "forward": self._forward,
            "press": self._press,
            "block": lambda asked: self._actor(asked).blocks(),
            "unblock": lambda asked: self._actor(asked).unblocks(),
            "fail": self._fail,
            "release": lambda _: self._release(),
        }
        self._hanging: list[Hang] = []

    def state(self) -> Json:
        """Return everything that the page shows."""
        telegram = self._telegram
        has_bot = telegram.is_polled or telegram.account.webhook is not None
        seen = snapshot(
            telegram.account, telegram.now(), is_polled=has_bot, calls=len(telegram.calls)
        )
        return {"platform": "Telegram", **self._cast.shown(), **seen}

    def file(self, path: str) -> bytes | None:
        """Return a sent file by its path."""
        found = self._telegram.account.files.at(path)
        return None if found is None else found.content

    def next_change(self) -> asyncio.Event:
        """Return an event that is set at the next change."""
        return self._telegram.next_change()

    def do(self, asked: Json) -> None:
        """Carry out one act.

        Raises:
            Unusable: It names something that does not exist.
        """
        deed = self._deeds.get(text_of(asked, "do"))
        if deed is None:
            raise Unusable(f"`do` is one of {', '.join(self._deeds)}")
        deed(asked)

    def _say(self, asked: Json) -> object:
        actor, chat, thread = self._actor(asked), self._chat(asked), number_of(asked, "thread")
        text = text_of(asked, "text")
        if not text.strip():
            raise Unusable("there is no text")
        number = number_of(asked, "reply_to")
        answered = self._message(chat, number) if number else None
        return actor.pastes(text, chat=chat, thread=thread, reply_to=answered)

    def _file(self, asked: Json) -> object:
        kind = text_of(asked, "kind") or "document"
        if kind not in FOLDERS:
            raise Unusable(f"`kind` is one of {', '.join(FOLDERS)}")
        return self._actor(asked).sends(
            kind,
            _content(asked),
            name=text_of(asked, "name") or "file.bin",
            media_type=text_of(asked, "media_type") or "application/octet-stream",
            caption=text_of(asked, "caption"),
            chat=self._chat(asked),
        )

    def _album(self, asked: Json) -> object:
        given = asked.get("photos")
        photos = [one for one in given if is_object(one)] if is_array(given) else []
        if not _MIN_PHOTOS <= len(photos) <= _MAX_PHOTOS:
            raise Unusable(f"an album has {_MIN_PHOTOS} to {_MAX_PHOTOS} `photos`")
        return self._actor(asked).sends_album(
            [(text_of(one, "name") or "photo.jpg", _content(one)) for one in photos],
            caption=text_of(asked, "caption"),
            chat=self._chat(asked),
        )

    def _edit(self, asked: Json) -> object:
        message = self._message(self._chat(asked), number_of(asked, "message"))
        return self._actor(asked).edits(message, text_of(asked, "text"))

    def _delete(self, asked: Json) -> object:
        message = self._message(self._chat(asked), number_of(asked, "message"))
        return self._actor(asked).deletes(message)

    def _forward(self, asked: Json) -> object:
        message = self._message(self._chat(asked), number_of(asked, "message"))
        to = self._chat({**asked, "chat": asked["to"]}) if "to" in asked else None
        return self._actor(asked).forwards(message, chat=to)

    def _press(self, asked: Json) -> object:
        message = self._message(self._chat(asked), number_of(asked, "message"))
        return self._actor(asked).presses(message, data=text_of(asked, "data"))

    def _fail(self, asked: Json) -> object:
        wait_s = number_of(asked, "retry_after_s") or _USUAL_WAIT_S
        faults: Mapping[str, Fault] = {
            "too_many": TooMany(retry_after_s=wait_s),
            "lose": Lose(carried_out=False),
            "lose_answer": Lose(carried_out=True),
            "bad_gateway": BadGateway(),
            "hang": Hang(),
            "hang_answer": Hang(carried_out=True),
            "refuse": Refuse(
                code=number_of(asked, "code") or _USUAL_CODE,
                description=text_of(asked, "description") or "Bad Request: refused by the page",
            ),
        }
        fault = faults.get(text_of(asked, "how"))
        if fault is None:
            raise Unusable(f"`how` is one of {', '.join(faults)}")
        if isinstance(fault, Hang):
            self._hanging.append(fault)
        chat = self._chat(asked) if "chat" in asked else None
        times = number_of(asked, "times") or 1
        return self._telegram.will(
            text_of(asked, "method") or "sendMessage", fault, chat=chat, times=times
        )

    def _release(self) -> None:
        for hang in self._hanging:
            hang.release()
        self._hanging.clear()

    # --- people and chats ------------------------------------------------------------------------

    def _actor(self, asked: Json) -> Actor:
        actor = self._actors.get(number_of(asked, "person"))
        if actor is None:
            raise Unusable(f"`person` is one of {', '.join(map(str, self._actors))}")
        return actor

    def _chat(self, asked: Json) -> Chat:
        """Return the chat of an act; by default the person's private chat."""
        if "chat" not in asked:
            return self._actor(asked).chat
        chat = self._telegram.account.chats.get(number_of(asked, "chat"))
        if chat is None:
            raise Unusable("`chat` is none")
        return chat

    def _message(self, chat: Chat, id_: int) -> Message:
        message = chat.by_id.get(id_)
        if message is None:
            raise Unusable(f"there is no message {id_} in {chat!r}")
        return message


def _content(asked: Json) -> bytes:
    try:
        return base64.b64decode(text_of(asked, "base64"), validate=True)
    except binascii.Error as error:
        raise Unusable("`base64` can't be read") from error
