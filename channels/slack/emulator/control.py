"""The state of the workspace and the acts of people, for the page.

The acts are

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

from channels._remote.emulator.cast import Asked, Attached, Cast, Json, asked_of
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
        """Take the people who can act, by id; their acts run in the group."""
        self._slack = slack
        self._people = people
        self._cast = of_page
        self._group = group
        self.pressed: dict[str, tuple[str, str]] = {}
        self._deeds: Mapping[str, Callable[[Asked], Awaitable[object]]] = {
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
            "polled": slack.listening,
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
        of_people, of_bot = slack.said.get(id_, {}), slack.standing.get(id_, {})
        standing = sorted((*of_people.values(), *of_bot.values()), key=lambda one: str(one["ts"]))
        last = str(standing[-1]["ts"]) if standing else "0"
        lines: list[Json] = [
            {"id": f"{LINE}{at}", "ts": last, "text": told["text"], "only": told["user"]}
            for at, told in enumerate(slack.ephemeral)
            if told["channel"] == id_
        ]
        forms: list[Json] = [
            {"id": f"{FORM}{at}", "ts": last, "text": _label(view), "only": person, "asks": True}
            for at, view in enumerate(slack.views)
            for person, place in [self.pressed.get(str(view["trigger"]), ("", ""))]
            if place == id_
        ]
        return chat(id_, [*standing, *lines[-1:], *forms], names=names, files=slack.links)

    def file(self, path: str) -> bytes | None:
        """Return a sent file by its id."""
        return self._slack.files.get(path)

    def next_change(self) -> asyncio.Event:
        """Return an event that is set at the next change."""
        return self._slack.next_change()

    # --- the acts --------------------------------------------------------------------------------

    def do(self, asked: Mapping[str, object]) -> None:
        """Start one act.

        Raises:
            Unusable: It names something that does not exist.
        """
        deed = asked_of(asked)
        if deed.do == "fail":
            self._fail(deed)
            return
        carry_out = self._deeds.get(deed.do)
        if carry_out is None:
            raise Unusable(f"`do` is one of {', '.join((*self._deeds, 'fail'))}")
        self._person(deed)
        self._place(deed)
        if deed.do == "say" and not deed.text.strip():
            raise Unusable("there is no text")
        if deed.do == "press" and self._row_of(deed) is None:
            raise Unusable(f"there is no button on {deed.message}")
        self._group.create_task(self._carried_out(carry_out, deed))

    async def _carried_out(
        self, carry_out: Callable[[Asked], Awaitable[object]], deed: Asked
    ) -> None:
        await carry_out(deed)
        self._slack.wake()

    async def _say(self, asked: Asked) -> object:
        person, place, text = self._person(asked), self._place(asked), asked.text.strip()
        if asked.reply_to.startswith(FORM):
            view = self._slack.views[int(asked.reply_to.removeprefix(FORM))]
            self.pressed.pop(str(view["trigger"]), None)
            return await person.submits(view, text)
        if text.startswith(COMMAND):
            return await person.commands(text.removeprefix(COMMAND).strip(), channel=place)
        return await person.says(
            text.replace("@zero ", "@zeroclaw "), channel=place, thread=self._thread(asked)
        )

    def _thread(self, asked: Asked) -> str:
        """Return the thread that a reply belongs to, empty for none."""
        place, to = self._place(asked), asked.reply_to
        found = self._slack.said.get(place, {}).get(to) or self._slack.standing.get(place, {}).get(
            to
        )
        return str(found.get("thread_ts") or to) if found else ""

    async def _file(self, asked: Asked) -> object:
        return await self._send(asked, (Attached(name=asked.name, base64=asked.base64),))

    async def _album(self, asked: Asked) -> object:
        return await self._send(asked, asked.photos)

    async def _send(self, asked: Asked, files: tuple[Attached, ...]) -> object:
        for one in files:
            await self._person(asked).sends(
                one.name,
                one.base64,
                said_bytes=len(one.base64),
                text=asked.caption if one is files[0] else "",
                thread=self._thread(asked),
                channel=self._place(asked),
            )
        return None

    async def _press(self, asked: Asked) -> object:
        action, _, value = asked.data.partition(" ")
        place = self._place(asked)
        card = self._row_of(asked) or {}
        deed = await self._person(asked).presses(
            asked.message, action, value, channel=place, thread=str(card.get("thread_ts") or "")
        )
        self.pressed[str(deed.payload["trigger_id"])] = asked.person, place
        return deed

    def _fail(self, asked: Asked) -> None:
        fault = _FAULTS.get(asked.how)
        if fault is None:
            raise Unusable(f"`how` is one of {', '.join(_FAULTS)}")
        self._slack.will("chat.postMessage", fault)

    # --- people and chats ------------------------------------------------------------------------

    def _person(self, asked: Asked) -> Person:
        found = self._people.get(asked.person)
        if found is None:
            raise Unusable(f"`person` is one of {', '.join(self._people)}")
        return found

    def _place(self, asked: Asked) -> str:
        """Return the chat of an act; by default the person's private chat."""
        if not asked.chat:
            return self._person(asked).direct
        if asked.chat not in map(str, (*self._cast.chats, self._cast.room)):
            raise Unusable("`chat` is none")
        return asked.chat

    def _row_of(self, asked: Asked) -> Json | None:
        return self._slack.standing.get(self._place(asked), {}).get(asked.message)


def _label(view: Json) -> str:
    """Return a form's question."""
    (field,) = cast("list[Json]", view["blocks"])
    return str(cast("Json", field["label"])["text"])
