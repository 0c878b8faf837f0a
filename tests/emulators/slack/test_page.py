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
class Page:
    """A page with a bot that receives nothing and makes only the calls of the test."""

    slack: SlackServer
    control: Control
    ann: Person
    olga: Person
    room: str
    bot: httpx.AsyncClient

    def do(self, do: str, person: Person, **fields: object) -> None:
        self.control.do({"do": do, "person": person.id, **fields})

    def messages(self, channel: str) -> list[Json]:
        chats = cast("list[Json]", self.control.state()["chats"])
        (chat,) = [chat for chat in chats if chat["id"] == channel]
        return cast("list[Json]", chat["messages"])

    async def shown(self, channel: str, count: int) -> list[Json]:
        await self.slack.until(lambda: len(self.messages(channel)) == count)
        return self.messages(channel)

    async def send(self, channel: str, **body: object) -> Json:
        blocks = [
            {"type": "markdown", "text": body.pop("text")},
            *cast("list[Json]", body.pop("more", [])),
        ]
        message = {"channel": channel, "text": "-", "blocks": blocks, **body}
        answer = await self.bot.post("/chat.postMessage", json=message)
        return cast("Json", answer.raise_for_status().json())


@asynccontextmanager
async def open_page() -> AsyncGenerator[Page]:
    async with SlackServer() as slack, asyncio.TaskGroup() as group:
        ann, olga = await slack.person(), await slack.person()
        room = await slack.channel(ann, olga)
        of_page = Cast(ann=ann.id, olga=olga.id, chats=(ann.direct, olga.direct), room=room)
        head = {"Authorization": f"Bearer {BOT}"}
        async with httpx.AsyncClient(
            base_url=slack.url, headers=head, timeout=None, trust_env=False
        ) as bot:
            control = Control(slack, {person.id: person for person in (ann, olga)}, of_page, group)
            yield Page(slack=slack, control=control, ann=ann, olga=olga, room=room, bot=bot)


async def test_the_page_shows_messages_and_replies() -> None:
    """In a direct chat and in the room, where a reply is in its thread."""
    async with open_page() as page:
        page.do("say", page.ann, chat=page.room, text="@zero are you here?")
        (question,) = await page.shown(page.room, 1)
        await page.send(page.room, text="**yes** &lt;b>", thread_ts=question["id"])
        page.do("say", page.olga, chat=page.room, text="so?", reply_to=question["id"])
        _, answer, reply = await page.shown(page.room, 3)
    assert (question["text"], question["name"], question["bot"]) == (
        "@zeroclaw are you here?",
        "Ann",
        False,
    )
    assert (answer["text"], answer["bot"]) == ("**yes** <b>", True)
    assert answer["reply"] == reply["reply"] == {"name": "Ann", "text": "@zeroclaw are you here?"}


async def test_a_button_is_pressed_and_its_form_is_submitted() -> None:
    """The form is shown as a question to the person who pressed, until it is answered."""
    async with open_page() as page:
        row = {"type": "actions", "elements": [BUTTON]}
        call = {
            "type": "rich_text",
            "elements": [
                {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "ls"}]}
            ],
        }
        sent = await page.send(page.olga.direct, text="?", more=[call, row])
        (card,) = page.messages(page.olga.direct)
        (button,) = cast("list[list[Json]]", card["rows"])[0]
        page.do("press", page.olga, message=sent["ts"], data=button["callback_data"])
        await page.slack.until(lambda: page.control.pressed)
        (trigger,) = page.control.pressed
        view = {"callback_id": "f", "title": FIELD["label"], "blocks": [FIELD]}
        opened = await page.bot.post("/views.open", json={"trigger_id": trigger, "view": view})
        assert opened.json()["ok"]
        _, question = page.messages(page.olga.direct)
        page.do("say", page.olga, text="not today", reply_to=question["id"])
        await page.shown(page.olga.direct, 1)
    assert (button["text"], button["style"]) == ("Deny", "danger")
    assert cast("Json", card["rich"])["blocks"] == [{"type": "pre", "text": "ls"}]
    assert (question["text"], question["asks"], question["only"]) == ("Why?", True, page.olga.id)


async def test_a_slash_command_is_answered_to_one_person() -> None:
    async with open_page() as page:
        page.do("say", page.ann, chat=page.room, text="/zeroclaw status")
        answer = {"channel": page.room, "user": page.ann.id, "text": "all &lt;well>"}
        (await page.bot.post("/chat.postEphemeral", json=answer)).raise_for_status()
        (line,) = await page.shown(page.room, 1)
    assert (line["text"], line["only"]) == ("all <well>", page.ann.id)


async def test_files_go_both_ways() -> None:
    async with open_page() as page:
        content = b64encode(b"picture").decode()
        photo = {"name": "a.png", "base64": content}
        page.do("file", page.ann, name="a.txt", base64=content, caption="mine")
        await page.shown(page.ann.direct, 1)
        page.do("album", page.ann, photos=[photo, photo])
        shown = await page.shown(page.ann.direct, 3)
        files = [file for message in shown for file in cast("list[Json]", message["files"])]
        assert [file["name"] for file in files] == ["a.txt", "a.png", "a.png"]
        assert page.control.file(str(files[0]["path"])) == b"picture"
        assert page.control.file("1") is None


@pytest.mark.parametrize(("how", "count"), [("lose", 0), ("lose_answer", 1)])
async def test_the_next_message_of_the_bot_can_be_lost(how: str, count: int) -> None:
    async with open_page() as page:
        page.control.do({"do": "fail", "how": how})
        with pytest.raises(httpx.RemoteProtocolError):
            await page.send(page.ann.direct, text="hi")
        assert len(page.messages(page.ann.direct)) == count


@pytest.mark.parametrize(
    ("action", "reason"),
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
async def test_an_impossible_action_is_refused_with_a_reason(action: Json, reason: str) -> None:
    async with open_page() as page:
        with pytest.raises(Unusable, match="^" + reason):
            page.control.do(action)


async def test_an_action_with_an_invalid_target_is_refused_with_a_reason() -> None:
    async with open_page() as page:
        with pytest.raises(Unusable, match="`chat` is none"):
            page.do("say", page.ann, chat="5", text="hi")
        with pytest.raises(Unusable, match="there is no button on no"):
            page.do("press", page.ann, message="no", data="x")
        with pytest.raises(Unusable, match="there is no text"):
            page.do("say", page.ann, text=" ")


async def test_the_stage_configures_a_daemon() -> None:
    """With the tables a daemon connects to the emulator."""
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


async def test_emulate_ends_with_a_killed_process() -> None:
    """Such as a test run or a `try`; otherwise a node process would remain for good."""
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
