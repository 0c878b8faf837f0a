"""The state of the workspace and the actions of people, for the page.

The actions are

say     person, chat, text, reply_to             `/zeroclaw …` is the slash command; a reply, a thread
file    person, chat, name, base64, caption
album   person, chat, photos, caption            each of {name, base64}, sent one by one
press   person, chat, message, data
fail    how                                      makes the bot's next message fail

`how` is one of too_many, bad_gateway, lose (the call) and lose_answer. Ids are strings.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import cast

from channels._remote.emulator.cast import ActionRequest, Attached, Cast, Json, parse_action_request
from channels._remote.emulator.site import Unusable
from channels.slack.emulator.server import Fault, Person, SlackServer
from channels.slack.emulator.view import FORM, LINE, chat

_WAIT_S = 5
COMMAND = "/zeroclaw"
_FAULTS: Mapping[str, Fault] = {
    "too_many": Fault(status=429, headers={"Retry-After": str(_WAIT_S)}),
    "bad_gateway": Fault(status=502),
    "lose": Fault(is_cut=True),
    "lose_answer": Fault(is_lost=True),
}


class Control:
    """Slack for the page; a `Platform` of `_remote.emulator.site`.

    Attributes:
        pressed: The person and chat of each press, by its trigger id, which may open a form.
    """

    def __init__(
        self,
        slack: SlackServer,
        people: Mapping[str, Person],
        of_page: Cast,
        group: asyncio.TaskGroup,
    ) -> None:
        """Take the people who can act, by id; their actions run in the group."""
        self._slack = slack
        self._people = people
        self._cast = of_page
        self._group = group
        self.pressed: dict[str, tuple[str, str]] = {}
        self._actions: Mapping[str, Callable[[ActionRequest], Awaitable[object]]] = {
            "say": self._say,
            "file": self._file,
            "album": self._album,
            "press": self._press,
        }

    # --- the state -------------------------------------------------------------------------------

    def state(self) -> Json:
        """Return everything that the page shows."""
        slack = self._slack
        return {
            "platform": "Slack",
            **self._cast.shown(),
            "bot": {"name": "zeroclaw", "username": "zeroclaw"},
            "polled": slack.is_connected,
            "calls": len(slack.calls),
            "refused": 0,
            "waiting": len(slack.waiting),
            "chats": [self._chat(str(id_)) for id_ in (*self._cast.chats, self._cast.room)],
            "toasts": [],
        }

    def _chat(self, id_: str) -> Json:
        slack = self._slack
        names = {"bot": "zeroclaw", slack.bot: "zeroclaw", str(self._cast.ann): "Ann"}
        names[str(self._cast.olga)] = "Olga"
        of_people, of_bot = slack.user_messages.get(id_, {}), slack.bot_messages.get(id_, {})
        messages = sorted((*of_people.values(), *of_bot.values()), key=lambda item: str(item["ts"]))
        last = str(messages[-1]["ts"]) if messages else "0"
        lines: list[Json] = [
            {"id": f"{LINE}{index}", "ts": last, "text": line["text"], "only": line["user"]}
            for index, line in enumerate(slack.ephemeral)
            if line["channel"] == id_
        ]
        forms: list[Json] = [
            {"id": f"{FORM}{index}", "ts": last, "text": _label(view), "only": person, "asks": True}
            for index, view in enumerate(slack.views)
            for person, channel in [self.pressed.get(str(view["trigger"]), ("", ""))]
            if channel == id_
        ]
        return chat(id_, [*messages, *lines[-1:], *forms], names=names, files=slack.links)

    def file(self, path: str) -> bytes | None:
        """Return a sent file by its id."""
        return self._slack.files.get(path)

    def next_change(self) -> asyncio.Event:
        """Return an event that is set at the next change."""
        return self._slack.next_change()

    # --- the actions -----------------------------------------------------------------------------

    def do(self, body: Mapping[str, object]) -> None:
        """Start one action of the page.

        Raises:
            Unusable: It names something that does not exist.
        """
        request = parse_action_request(body)
        if request.do == "fail":
            self._fail(request)
            return
        carry_out = self._actions.get(request.do)
        if carry_out is None:
            raise Unusable(f"`do` is one of {', '.join((*self._actions, 'fail'))}")
        self._person(request)
        self._channel(request)
        if request.do == "say" and not request.text.strip():
            raise Unusable("there is no text")
        if request.do == "press" and self._message(request) is None:
            raise Unusable(f"there is no button on {request.message}")
        self._group.create_task(self._run(carry_out, request))

    async def _run(
        self, carry_out: Callable[[ActionRequest], Awaitable[object]], request: ActionRequest
    ) -> None:
        await carry_out(request)
        self._slack.wake()

    async def _say(self, request: ActionRequest) -> object:
        person, channel, text = self._person(request), self._channel(request), request.text.strip()
        if request.reply_to.startswith(FORM):
            view = self._slack.views[int(request.reply_to.removeprefix(FORM))]
            self.pressed.pop(str(view["trigger"]), None)
            return await person.submits(view, text)
        if text.startswith(COMMAND):
            return await person.commands(text.removeprefix(COMMAND).strip(), channel=channel)
        return await person.says(
            text.replace("@zero ", "@zeroclaw "), channel=channel, thread=self._thread(request)
        )

    def _thread(self, request: ActionRequest) -> str:
        """Return the thread that a reply belongs to, empty for none."""
        slack, channel, ts = self._slack, self._channel(request), request.reply_to
        of_people, of_bot = (
            slack.user_messages.get(channel, {}),
            slack.bot_messages.get(channel, {}),
        )
        message = of_people.get(ts) or of_bot.get(ts)
        return str(message.get("thread_ts") or ts) if message else ""

    async def _file(self, request: ActionRequest) -> object:
        return await self._send(request, (Attached(name=request.name, base64=request.base64),))

    async def _album(self, request: ActionRequest) -> object:
        return await self._send(request, request.photos)

    async def _send(self, request: ActionRequest, files: tuple[Attached, ...]) -> object:
        for file in files:
            await self._person(request).sends(
                file.name,
                file.base64,
                claimed_bytes=len(file.base64),
                text=request.caption if file is files[0] else "",
                thread=self._thread(request),
                channel=self._channel(request),
            )
        return None

    async def _press(self, request: ActionRequest) -> object:
        button, _, value = request.data.partition(" ")
        channel, card = self._channel(request), self._message(request) or {}
        thread = str(card.get("thread_ts") or "")
        press = await self._person(request).presses(
            request.message, button, value, channel=channel, thread=thread
        )
        self.pressed[str(press.payload["trigger_id"])] = request.person, channel
        return press

    def _fail(self, request: ActionRequest) -> None:
        fault = _FAULTS.get(request.how)
        if fault is None:
            raise Unusable(f"`how` is one of {', '.join(_FAULTS)}")
        self._slack.will("chat.postMessage", fault)

    # --- people and chats ------------------------------------------------------------------------

    def _person(self, request: ActionRequest) -> Person:
        person = self._people.get(request.person)
        if person is None:
            raise Unusable(f"`person` is one of {', '.join(self._people)}")
        return person

    def _channel(self, request: ActionRequest) -> str:
        """Return the chat of an action; by default the person's private chat."""
        if not request.chat:
            return self._person(request).direct
        if request.chat not in map(str, (*self._cast.chats, self._cast.room)):
            raise Unusable("`chat` is none")
        return request.chat

    def _message(self, request: ActionRequest) -> Json | None:
        return self._slack.bot_messages.get(self._channel(request), {}).get(request.message)


def _label(view: Json) -> str:
    """Return a form's question."""
    (field,) = cast("list[Json]", view["blocks"])
    return str(cast("Json", field["label"])["text"])
