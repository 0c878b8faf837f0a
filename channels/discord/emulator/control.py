"""The state of Discord and the acts of people, for the page and others that have its key.

POST do    {"do": "say", "person": "100", "text": "hello"}
say     person, text; chat, reply_to             a text such as `/ask why` uses a command of the bot's
file    person, name, base64; caption, chat
album   person, photos; caption, chat            each of {name, base64}, sent one by one
press   person, chat, message, data
fail    how                                      makes the bot's next message fail

`how` is one of too_many, bad_gateway, lose (the call) and lose_answer. Ids are strings.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import cast

from channels._remote.emulator.cast import Asked, Attached, Cast, Json, asked_of
from channels._remote.emulator.site import Unusable
from channels.discord.emulator.server import Deed, DiscordServer, Fault, Person
from channels.discord.emulator.view import FORM, chat, question

_FORM = 9
"""Interaction Callback Type: MODAL."""
_WAIT_S = 5


def _on_a_send(
    *,
    status: int = 0,
    body: object = None,
    headers: Mapping[str, str] | None = None,
    carried_out: bool = False,
) -> Fault:
    return Fault(
        method="POST",
        path=r"^/channels/\d+/messages$",
        status=status,
        body=body,
        headers=headers or {},
        carried_out=carried_out,
    )


_FAULTS: Mapping[str, Callable[[], Fault]] = {
    "too_many": lambda: _on_a_send(
        status=429,
        body={"message": "You are being rate limited.", "retry_after": _WAIT_S, "global": False},
        headers={"Retry-After": str(_WAIT_S)},
    ),
    "bad_gateway": lambda: _on_a_send(status=502, body={"message": "502: Bad Gateway"}),
    "lose": _on_a_send,
    "lose_answer": lambda: _on_a_send(carried_out=True),
}


class Control:
    """Discord for the page; a `Platform` of `_remote.emulator.site`."""

    def __init__(self, discord: DiscordServer, people: Mapping[str, Person], of_page: Cast) -> None:
        """Take the people who can act, by id."""
        self._discord = discord
        self._people = people
        self._cast = of_page
        self._pressed: dict[str, tuple[str, Deed]] = {}  # person and press, by the form's id
        self._said: dict[int, list[str]] = {}  # all texts of each message
        self._deeds: Mapping[str, Callable[[Asked], None]] = {
            "say": self._say,
            "file": self._file,
            "album": self._album,
            "press": self._press,
            "fail": self._fail,
        }
        discord.backend.subscribers.append(self._remember)

    def _remember(self, event: str, payload: Mapping[str, object]) -> None:
        if event in ("MESSAGE_CREATE", "MESSAGE_UPDATE"):
            said = self._said.setdefault(int(str(payload["id"])), [])
            text = str(payload.get("content", ""))
            if said[-1:] != [text]:
                said.append(text)

    # --- the state -------------------------------------------------------------------------------

    def state(self) -> Json:
        """Return everything that the page shows."""
        discord = self._discord
        name = discord.backend.bot_user.name
        return {
            "platform": "Discord",
            **self._cast.shown(),
            "bot": {"name": name, "username": name},
            "polled": discord.is_heard,
            "calls": len(discord.calls),
            "refused": 0,
            "waiting": 0,
            "chats": [self._chat(int(id_)) for id_ in (*self._cast.chats, self._cast.room)],
            "toasts": [],
        }

    def _chat(self, id_: int) -> Json:
        """Return a chat, with open forms as questions at the end."""
        asking = [
            question(self._discord.backend, deed.id, id_, str(deed.form["title"]), person)
            for person, deed in self._pressed.values()
            if deed.channel == id_ and _is_form(deed)
        ]
        earlier = {one: said[:-1] for one, said in self._said.items()}
        return chat(self._discord.backend, id_, earlier=earlier, asking=asking)

    def file(self, path: str) -> bytes | None:
        """Return a sent file by its attachment id."""
        discord = self._discord
        standing = (one for some in discord.backend.messages.values() for one in some.values())
        files = (file for one in standing for file in one.attachments)
        found = next((str(one["url"]) for one in files if str(one["id"]) == path), "")
        return discord.content(found) if found else None

    def next_change(self) -> asyncio.Event:
        """Return an event that is set at the next change."""
        return self._discord.next_change()

    # --- the acts --------------------------------------------------------------------------------

    def do(self, asked: Mapping[str, object]) -> None:
        """Carry out one act.

        Raises:
            Unusable: It names something that does not exist.
        """
        deed = asked_of(asked)
        carry_out = self._deeds.get(deed.do)
        if carry_out is None:
            raise Unusable(f"`do` is one of {', '.join(self._deeds)}")
        carry_out(deed)
        self._discord.release()

    def _say(self, asked: Asked) -> None:
        person, channel, text = self._person(asked), self._channel(asked), asked.text.strip()
        if not text:
            raise Unusable("there is no text")
        if asked.reply_to in self._pressed:
            person.submits(self._pressed.pop(asked.reply_to)[1], text)
        elif (name := text.split()[0]).startswith("/") and name[1:] in (known := self._commands()):
            words = text.removeprefix(name).strip()
            options = cast("list[Json]", known[name[1:]].get("options") or [])
            given = {str(one["name"]): words for one in options[:1] if words}
            person.uses(channel, name[1:], **given)
        else:
            bot = self._discord.backend.bot_user
            said = text.replace(f"@{bot.name}", f"<@{bot.id}>")
            to = self._message(channel, asked.reply_to) if asked.reply_to else None
            person.says(channel, said, reply_to=to)

    def _commands(self) -> Mapping[str, Json]:
        """Return the app's commands by name; any other `/word` is sent as text."""
        offered = cast("list[Json]", list(self._discord.backend.commands.get(None, {}).values()))
        return {str(one["name"]): one for one in offered}

    def _file(self, asked: Asked) -> None:
        self._send(asked, (Attached(name=asked.name, base64=asked.base64),))

    def _album(self, asked: Asked) -> None:
        self._send(asked, asked.photos)

    def _send(self, asked: Asked, files: tuple[Attached, ...]) -> None:
        person, channel = self._person(asked), self._channel(asked)
        for one in files:
            person.sends(
                channel,
                one.name,
                one.base64,
                said_bytes=len(one.base64),
                text=asked.caption if one is files[0] else "",
            )

    def _press(self, asked: Asked) -> None:
        person, channel = self._person(asked), self._channel(asked)
        deed = person.presses(channel, self._message(channel, asked.message), asked.data)
        self._pressed[f"{FORM}{deed.id}"] = (asked.person, deed)

    def _fail(self, asked: Asked) -> None:
        fault = _FAULTS.get(asked.how)
        if fault is None:
            raise Unusable(f"`how` is one of {', '.join(_FAULTS)}")
        self._discord.will(fault())

    # --- people and chats ------------------------------------------------------------------------

    def _person(self, asked: Asked) -> Person:
        found = self._people.get(asked.person)
        if found is None:
            raise Unusable(f"`person` is one of {', '.join(self._people)}")
        return found

    def _channel(self, asked: Asked) -> int:
        """Return the chat of an act; by default the person's private chat."""
        if not asked.chat:
            return self._person(asked).direct
        known = {str(one): int(one) for one in (*self._cast.chats, self._cast.room)}
        if asked.chat not in known:
            raise Unusable("`chat` is none")
        return known[asked.chat]

    def _message(self, channel: int, id_: str) -> int:
        standing = self._discord.backend.messages.get(channel, {})
        if not id_.isdecimal() or int(id_) not in standing:
            raise Unusable(f"there is no message {id_}")
        return int(id_)


def _is_form(deed: Deed) -> bool:
    return bool(deed.answers) and deed.answers[-1].get("type") == _FORM
