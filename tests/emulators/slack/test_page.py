"""What the page of `zeroclaw try slack` shows, and what people can do there."""

import asyncio
import sys
from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

import httpx
import pytest

from channels._remote.emulator.cast import Cast
from channels._remote.emulator.site import Unusable
from channels.slack.emulator.control import Control
from channels.slack.emulator.server import BOT, Person, SlackServer
from channels.slack.emulator.stage import emulate
from tests.fakes.counting_ids import CountingIds
from tests.fakes.manual_clock import ManualClock
from zeroclaw import EmulatorContext

pytestmark = [pytest.mark.slow, pytest.mark.needs("emulate")]
Json = Mapping[str, object]
PRESS = {"type": "plain_text", "text": "Deny"}
BUTTON = {"type": "button", "text": PRESS, "action_id": "no:1", "value": "a1", "style": "danger"}
FIELD = {"type": "input", "block_id": "reason", "label": {"type": "plain_text", "text": "Why?"}}


@dataclass(frozen=True, kw_only=True)
class Here:
    """A page with a bot that hears nothing, and calls what a test lets it."""

    slack: SlackServer
    control: Control
    ann: Person
    olga: Person
    room: str
    bot: httpx.AsyncClient

    def do(self, do: str, who: Person, **asked: object) -> None:
        self.control.do({"do": do, "person": who.id, **asked})

    def messages(self, channel: str) -> list[Json]:
        chats = cast("list[Json]", self.control.state()["chats"])
        (found,) = [one for one in chats if one["id"] == channel]
        return cast("list[Json]", found["messages"])

    async def holds(self, channel: str, count: int) -> list[Json]:
        await self.slack.until(lambda: len(self.messages(channel)) == count)
        return self.messages(channel)

    async def sends(self, channel: str, **body: object) -> Json:
        blocks = [
            {"type": "markdown", "text": body.pop("text")},
            *cast("list[Json]", body.pop("more", [])),
        ]
        said = {"channel": channel, "text": "-", "blocks": blocks, **body}
        answer = await self.bot.post("/chat.postMessage", json=said)
        return cast("Json", answer.raise_for_status().json())


@asynccontextmanager
async def page() -> AsyncGenerator[Here]:
    async with SlackServer() as slack, asyncio.TaskGroup() as group:
        ann, olga = await slack.person(), await slack.person()
        room = await slack.channel(ann, olga)
        of_page = Cast(ann=ann.id, olga=olga.id, chats=(ann.direct, olga.direct), room=room)
        head = {"Authorization": f"Bearer {BOT}"}
        async with httpx.AsyncClient(
            base_url=slack.url, headers=head, timeout=None, trust_env=False
        ) as bot:
            control = Control(slack, {one.id: one for one in (ann, olga)}, of_page, group)
            yield Here(slack=slack, control=control, ann=ann, olga=olga, room=room, bot=bot)


async def test_people_write_and_what_the_bot_says_below_is_seen() -> None:
    """In a chat of their own and in the room, where a reply stands in its thread."""
    async with page() as here:
        here.do("say", here.ann, chat=here.room, text="@zero are you here?")
        (asked,) = await here.holds(here.room, 1)
        await here.sends(here.room, text="**yes** &lt;b>", thread_ts=asked["id"])
        here.do("say", here.olga, chat=here.room, text="so?", reply_to=asked["id"])
        _, answer, so = await here.holds(here.room, 3)
    assert (asked["text"], asked["name"], asked["bot"]) == ("@zeroclaw are you here?", "Ann", False)
    assert (answer["text"], answer["bot"]) == ("**yes** <b>", True)
    assert answer["reply"] == so["reply"] == {"name": "Ann", "text": "@zeroclaw are you here?"}


async def test_a_button_is_pressed_and_the_form_behind_it_is_filled_in() -> None:
    """The form stands as a question to who pressed, until it is answered."""
    async with page() as here:
        row = {"type": "actions", "elements": [BUTTON]}
        call = {
            "type": "rich_text",
            "elements": [
                {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "ls"}]}
            ],
        }
        sent = await here.sends(here.olga.direct, text="?", more=[call, row])
        (card,) = here.messages(here.olga.direct)
        (pressed,) = cast("list[list[Json]]", card["rows"])[0]
        here.do("press", here.olga, message=sent["ts"], data=pressed["callback_data"])
        await here.slack.until(lambda: here.control.pressed)
        (trigger,) = here.control.pressed
        view = {"callback_id": "f", "title": FIELD["label"], "blocks": [FIELD]}
        opened = await here.bot.post("/views.open", json={"trigger_id": trigger, "view": view})
        assert opened.json()["ok"]
        _, question = here.messages(here.olga.direct)
        here.do("say", here.olga, text="not today", reply_to=question["id"])
        await here.holds(here.olga.direct, 1)
    assert (pressed["text"], pressed["style"]) == ("Deny", "danger")
    assert cast("Json", card["rich"])["blocks"] == [{"type": "pre", "text": "ls"}]
    assert (question["text"], question["asks"], question["only"]) == ("Why?", True, here.olga.id)


async def test_a_line_with_the_apps_command_is_that_and_its_answer_is_for_one() -> None:
    async with page() as here:
        here.do("say", here.ann, chat=here.room, text="/zeroclaw status")
        told = {"channel": here.room, "user": here.ann.id, "text": "all &lt;well>"}
        (await here.bot.post("/chat.postEphemeral", json=told)).raise_for_status()
        (line,) = await here.holds(here.room, 1)
    assert (line["text"], line["only"]) == ("all <well>", here.ann.id)


async def test_files_go_both_ways() -> None:
    async with page() as here:
        content = b64encode(b"picture").decode()
        photo = {"name": "a.png", "base64": content}
        here.do("file", here.ann, name="a.txt", base64=content, caption="mine")
        await here.holds(here.ann.direct, 1)
        here.do("album", here.ann, photos=[photo, photo])
        shown = await here.holds(here.ann.direct, 3)
        files = [one for message in shown for one in cast("list[Json]", message["files"])]
        assert [one["name"] for one in files] == ["a.txt", "a.png", "a.png"]
        assert here.control.file(str(files[0]["path"])) == b"picture"
        assert here.control.file("1") is None


@pytest.mark.parametrize(("how", "shown"), [("lose", 0), ("lose_answer", 1)])
async def test_the_next_message_of_the_bot_is_lost_as_told(how: str, shown: int) -> None:
    async with page() as here:
        here.control.do({"do": "fail", "how": how})
        with pytest.raises(httpx.RemoteProtocolError):
            await here.sends(here.ann.direct, text="hi")
        assert len(here.messages(here.ann.direct)) == shown


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ({"do": "dance"}, "`do` is one of say, file, album, press, fail"),
        ({"do": "say", "person": "5", "text": "hi"}, "`person` is one of "),
        ({"do": "say", "text": 5}, "Expected `str`"),
        (
            {"do": "fail", "how": "badly"},
            "`how` is one of too_many, bad_gateway, lose, lose_answer",
        ),
    ],
)
async def test_an_impossible_action_is_refused_with_a_reason(action: Json, why: str) -> None:
    async with page() as here:
        with pytest.raises(Unusable, match="^" + why):
            here.control.do(action)


async def test_a_deed_at_a_place_that_is_none_says_why() -> None:
    async with page() as here:
        with pytest.raises(Unusable, match="`chat` is none"):
            here.do("say", here.ann, chat="5", text="hi")
        with pytest.raises(Unusable, match="there is no button on no"):
            here.do("press", here.ann, message="no", data="x")
        with pytest.raises(Unusable, match="there is no text"):
            here.do("say", here.ann, text=" ")


async def test_the_stage_says_who_is_who() -> None:
    """The tables bring a daemon there."""
    context = EmulatorContext(clock=ManualClock(), ids=CountingIds(), port=0, has_limits=False)
    async with (
        emulate(context) as emulated,
        httpx.AsyncClient(base_url=emulated.page, timeout=None, trust_env=False) as client,
    ):
        state = (await client.get("state")).json()
        channel = cast("Mapping[str, Json]", emulated.tables["channels"])["slack"]
    assert state["platform"] == "Slack"
    assert channel["limits"] == "off"
    assert set(emulated.environment.values()) == {BOT, "xapp-1-A000000001-1"}


OPENS = """
import asyncio
from channels.slack.emulator.server import SlackServer, emulate_url

async def main():
    async with SlackServer():
        print(emulate_url(), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_whoever_is_killed_takes_its_emulator_with_it() -> None:
    """A test run that was ended, or a `try`; else a node process stays for good."""
    opener = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OPENS, stdout=asyncio.subprocess.PIPE
    )
    assert opener.stdout is not None
    url = (await opener.stdout.readline()).decode()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    opener.kill()
    assert await reader.read() == b""
    writer.close()
    await opener.wait()
