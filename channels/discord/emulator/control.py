"""The state of Discord and the actions of people, for the page and others that have its key.

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

from channels._remote.emulator.cast import ActionRequest, Attached, Cast, Json, parse_action_request
from channels._remote.emulator.site import Unusable
from channels.discord.emulator.server import DiscordServer, Fault, Person, UserAction
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
        self._pressed: dict[str, tuple[str, UserAction]] = {}  # person and press, by the form's id
        self._texts: dict[int, list[str]] = {}  # all texts of each message
        self._actions: Mapping[str, Callable[[ActionRequest], None]] = {
            "say": self._say,
            "file": self._file,
            "album": self._album,
            "press": self._press,
            "fail": self._fail,
        }
        discord.backend.subscribers.append(self._remember)

    def _remember(self, event: str, payload: Mapping[str, object]) -> None:
        if event in ("MESSAGE_CREATE", "MESSAGE_UPDATE"):
            texts = self._texts.setdefault(int(str(payload["id"])), [])
            text = str(payload.get("content", ""))
            if texts[-1:] != [text]:
                texts.append(text)

    # --- the state -------------------------------------------------------------------------------

    def state(self) -> Json:
        """Return everything that the page shows."""
        discord = self._discord
        name = discord.backend.bot_user.name
        return {
            "platform": "Discord",
            **self._cast.shown(),
            "bot": {"name": name, "username": name},
            "polled": discord.is_connected,
            "calls": len(discord.calls),
            "refused": 0,
            "waiting": 0,
            "chats": [self._chat(int(id_)) for id_ in (*self._cast.chats, self._cast.room)],
            "toasts": [],
        }

    def _chat(self, id_: int) -> Json:
        """Return a chat, with open forms as questions at the end."""
        forms = [
            question(self._discord.backend, action.id, id_, str(action.form["title"]), person)
            for person, action in self._pressed.values()
            if action.channel == id_ and _is_form(action)
        ]
        earlier = {message: texts[:-1] for message, texts in self._texts.items()}
        return chat(self._discord.backend, id_, earlier=earlier, forms=forms)

    def file(self, path: str) -> bytes | None:
        """Return a sent file by its attachment id."""
        discord = self._discord
        messages = (
            message for channel in discord.backend.messages.values() for message in channel.values()
        )
        files = (file for message in messages for file in message.attachments)
        url = next((str(file["url"]) for file in files if str(file["id"]) == path), "")
        return discord.content(url) if url else None

    def next_change(self) -> asyncio.Event:
        """Return an event that is set at the next change."""
        return self._discord.next_change()

    # --- the actions -----------------------------------------------------------------------------

    def do(self, body: Mapping[str, object]) -> None:
        """Carry out one action of the page.

        Raises:
            Unusable: It names something that does not exist.
        """
        request = parse_action_request(body)
        carry_out = self._actions.get(request.do)
        if carry_out is None:
            raise Unusable(f"`do` is one of {', '.join(self._actions)}")
        carry_out(request)
        self._discord.release()

    def _say(self, request: ActionRequest) -> None:
        person, channel, text = self._person(request), self._channel(request), request.text.strip()
        if not text:
            raise Unusable("there is no text")
        if request.reply_to in self._pressed:
            person.submits(self._pressed.pop(request.reply_to)[1], text)
        elif (name := text.split()[0]).startswith("/") and name[1:] in (
            commands := self._commands()
        ):
            words = text.removeprefix(name).strip()
            options = cast("list[Json]", commands[name[1:]].get("options") or [])
            values = {str(option["name"]): words for option in options[:1] if words}
            person.uses(channel, name[1:], **values)
        else:
            bot = self._discord.backend.bot_user
            content = text.replace(f"@{bot.name}", f"<@{bot.id}>")
            reply_to = self._message(channel, request.reply_to) if request.reply_to else None
            person.says(channel, content, reply_to=reply_to)

    def _commands(self) -> Mapping[str, Json]:
        """Return the app's commands by name; any other `/word` is sent as text."""
        commands = cast("list[Json]", list(self._discord.backend.commands.get(None, {}).values()))
        return {str(command["name"]): command for command in commands}

    def _file(self, request: ActionRequest) -> None:
        self._send(request, (Attached(name=request.name, base64=request.base64),))

    def _album(self, request: ActionRequest) -> None:
        self._send(request, request.photos)

    def _send(self, request: ActionRequest, files: tuple[Attached, ...]) -> None:
        person, channel = self._person(request), self._channel(request)
        for file in files:
            person.sends(
                channel,
                file.name,
                file.base64,
                claimed_bytes=len(file.base64),
                text=request.caption if file is files[0] else "",
            )

    def _press(self, request: ActionRequest) -> None:
        person, channel = self._person(request), self._channel(request)
        press = person.presses(channel, self._message(channel, request.message), request.data)
        self._pressed[f"{FORM}{press.id}"] = (request.person, press)

    def _fail(self, request: ActionRequest) -> None:
        fault = _FAULTS.get(request.how)
        if fault is None:
            raise Unusable(f"`how` is one of {', '.join(_FAULTS)}")
        self._discord.will(fault())

    # --- people and chats ------------------------------------------------------------------------

    def _person(self, request: ActionRequest) -> Person:
        person = self._people.get(request.person)
        if person is None:
            raise Unusable(f"`person` is one of {', '.join(self._people)}")
        return person

    def _channel(self, request: ActionRequest) -> int:
        """Return the chat of an action; by default the person's private chat."""
        if not request.chat:
            return self._person(request).direct
        channels = {str(id_): int(id_) for id_ in (*self._cast.chats, self._cast.room)}
        if request.chat not in channels:
            raise Unusable("`chat` is none")
        return channels[request.chat]

    def _message(self, channel: int, id_: str) -> int:
        messages = self._discord.backend.messages.get(channel, {})
        if not id_.isdecimal() or int(id_) not in messages:
            raise Unusable(f"there is no message {id_}")
        return int(id_)


def _is_form(action: UserAction) -> bool:
    return bool(action.answers) and action.answers[-1].get("type") == _FORM
