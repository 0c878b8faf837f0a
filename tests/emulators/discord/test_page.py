"""The page of `zeroclaw try discord`: what it shows, and the actions of people on it."""

from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

import httpx
import pytest

from channels._remote.emulator.cast import Cast
from channels._remote.emulator.site import Unusable
from channels.discord.emulator.control import Control
from channels.discord.emulator.server import DiscordServer, Person, UserAction
from channels.discord.emulator.stage import emulate
from tests.fakes.counting_ids import CountingIds
from tests.fakes.manual_clock import ManualClock
from zeroclaw import EmulatorContext

Json = Mapping[str, object]
FIELD = {"type": 4, "custom_id": "reason", "style": 2, "label": "Reason"}
ROWS = [{"type": 1, "components": [FIELD]}]
FORM: Json = {"type": 9, "data": {"custom_id": "why", "title": "Why not?", "components": ROWS}}


@dataclass(frozen=True, kw_only=True)
class DiscordPage:
    """A page, and a bot without a gateway, whose calls a test makes."""

    discord: DiscordServer
    control: Control
    ann: Person
    olga: Person
    room: int
    bot: httpx.AsyncClient

    def do(self, do: str, who: Person, **fields: object) -> None:
        self.control.do({"do": do, "person": str(who.id), **fields})

    def messages(self, channel: int) -> list[Json]:
        chats = cast("list[Json]", self.control.state()["chats"])
        (found,) = [chat for chat in chats if chat["id"] == str(channel)]
        return cast("list[Json]", found["messages"])

    async def sends(self, channel: int, **body: object) -> Json:
        answer = await self.bot.post(f"/channels/{channel}/messages", json=body)
        return cast("Json", answer.raise_for_status().json())

    def last_action(self) -> UserAction:
        """Return the last use of a button or a command."""
        return list(self.discord.actions.values())[-1]

    async def answers(self, action: UserAction, body: object) -> None:
        token = action.event["token"]
        answer = await self.bot.post(f"/interactions/{action.id}/{token}/callback", json=body)
        answer.raise_for_status()


@asynccontextmanager
async def open_page() -> AsyncGenerator[DiscordPage]:
    async with DiscordServer(clock=ManualClock()) as discord:
        ann, olga = discord.person("Ann"), discord.person("Olga")
        room = discord.channel("room")
        chats = (str(ann.direct), str(olga.direct))
        of_page = Cast(ann=str(ann.id), olga=str(olga.id), chats=chats, room=str(room))
        people = {str(person.id): person for person in (ann, olga)}
        head = {"Authorization": f"Bot {discord.token}"}
        async with httpx.AsyncClient(
            base_url=discord.url, headers=head, timeout=None, trust_env=False
        ) as bot:
            control = Control(discord, people, of_page)
            yield DiscordPage(
                discord=discord, control=control, ann=ann, olga=olga, room=room, bot=bot
            )


async def test_people_write_and_see_the_edits_of_the_bot() -> None:
    """In private chats and in the room, where `@` mentions the bot; replies quote their message."""
    async with open_page() as page:
        page.do("say", page.ann, text=" hello ")
        (hello,) = page.messages(page.ann.direct)
        sent = await page.sends(page.ann.direct, content="**hi** <@1>")
        await page.bot.patch(
            f"/channels/{page.ann.direct}/messages/{sent['id']}", json={"content": "*hi*"}
        )
        page.do("say", page.ann, text="well", reply_to=str(sent["id"]))
        _, answer, well = page.messages(page.ann.direct)
        name = page.discord.backend.bot_user.name
        page.do("say", page.olga, chat=str(page.room), text=f"@{name}, are you here?")
        (question,) = page.messages(page.room)
        assert (hello["text"], hello["name"], hello["bot"]) == ("hello", "Ann", False)
        assert (answer["earlier"], answer["bot"]) == (["**hi** <@1>"], True)
        paragraph = {"type": "paragraph", "text": [{"type": "italic", "text": ["hi"]}]}
        assert answer["rich"] == {"blocks": [paragraph]}
        assert well["reply"] == {"name": name, "text": "*hi*"}
        assert question["text"] == f"<@{page.discord.bot}>, are you here?"
        assert question["rich"] == {
            "blocks": [{"type": "paragraph", "text": [f"@{name}, are you here?"]}]
        }


async def test_a_button_is_pressed_and_the_form_behind_it_is_filled_in() -> None:
    """The form is a question for the person who pressed, until they answer."""
    async with open_page() as page:
        button = {"type": 2, "style": 4, "label": "Deny", "custom_id": "no"}
        over = {"type": 2, "style": 3, "label": "Done", "custom_id": "over", "disabled": True}
        rows = [{"type": 1, "components": [button, over]}]
        sent = await page.sends(page.olga.direct, content="?", components=rows)
        (card,) = page.messages(page.olga.direct)
        page.do("press", page.olga, chat=str(page.olga.direct), message=sent["id"], data="no")
        pressed = page.last_action()
        assert len(page.messages(page.olga.direct)) == 1
        await page.answers(pressed, FORM)
        _, question = page.messages(page.olga.direct)
        page.do("say", page.olga, text="not today", reply_to=question["id"])
        submitted = page.last_action()
        assert card["rows"] == [
            [
                {"text": "Deny", "callback_data": "no", "style": "danger"},
                {"text": "Done", "callback_data": "", "style": "success"},
            ]
        ]
        assert (question["text"], question["asks"], question["only"]) == (
            "Why not?",
            True,
            str(page.olga.id),
        )
        assert (submitted.event["type"], "not today" in str(submitted.event)) == (5, True)
        assert len(page.messages(page.olga.direct)) == 1


async def test_a_line_with_a_slash_is_a_command_where_the_bot_offers_it() -> None:
    """Any other line is a text, as in the app; an ephemeral answer is shown to one person."""
    async with open_page() as page:
        option = {"type": 3, "name": "question", "description": "it", "required": True}
        path = f"/applications/{page.discord.backend.application_id}/commands"
        ask = {"name": "ask", "description": "asks", "options": [option]}
        (await page.bot.put(path, json=[ask])).raise_for_status()
        page.do("say", page.ann, chat=str(page.room), text="/ask why not?")
        used = page.last_action()
        await page.answers(used, {"type": 4, "data": {"content": "so", "flags": 64}})
        page.do("say", page.ann, chat=str(page.room), text="/tool date")
        for_ann, text = page.messages(page.room)
        options = cast("Json", used.event["data"])["options"]
        assert options == [{"type": 3, "name": "question", "value": "why not?"}]
        assert (for_ann["text"], for_ann["only"]) == ("so", str(page.ann.id))
        assert (text["text"], text["only"]) == ("/tool date", "")


async def test_files_go_both_ways() -> None:
    async with open_page() as page:
        content = b64encode(b"picture").decode()
        photo = {"name": "a.png", "base64": content}
        page.do("file", page.ann, name="a.txt", base64=content, caption="mine")
        page.do("album", page.ann, photos=[photo, photo])
        upload = {"payload_json": (None, b"{}"), "files[0]": ("b.txt", b"from the bot")}
        path = f"/channels/{page.ann.direct}/messages"
        (await page.bot.post(path, files=upload)).raise_for_status()
        shown = page.messages(page.ann.direct)
        files = [file for message in shown for file in cast("list[Json]", message["files"])]
        assert [file["name"] for file in files] == ["a.txt", "a.png", "a.png", "b.txt"]
        assert [message["text"] for message in shown] == ["mine", "", "", ""]
        assert page.control.file(str(files[0]["path"])) == b"picture"
        assert page.control.file(str(files[3]["path"])) == b"from the bot"
        assert page.control.file("1") is None


@pytest.mark.parametrize(("how", "status"), [("too_many", 429), ("bad_gateway", 502)])
async def test_the_next_message_of_the_bot_fails_as_requested(how: str, status: int) -> None:
    async with open_page() as page:
        page.control.do({"do": "fail", "how": how})
        path = f"/channels/{page.ann.direct}/messages"
        first = await page.bot.post(path, json={"content": "hi"})
        second = await page.bot.post(path, json={"content": "hi"})
        assert (first.status_code, second.status_code) == (status, 200)
        assert len(page.messages(page.ann.direct)) == 1


@pytest.mark.parametrize(("how", "shown"), [("lose", 0), ("lose_answer", 1)])
async def test_the_next_message_of_the_bot_is_lost_as_requested(how: str, shown: int) -> None:
    async with open_page() as page:
        page.control.do({"do": "fail", "how": how})
        with pytest.raises(httpx.RemoteProtocolError):
            await page.sends(page.ann.direct, content="hi")
        assert len(page.messages(page.ann.direct)) == shown


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ({"do": "dance"}, "`do` is one of say, file, album, press, fail"),
        ({"do": "say", "person": "5", "text": "hi"}, "`person` is one of "),
        ({"do": "say"}, "`person` is one of "),
        ({"do": "say", "text": 5}, "Expected `str`, got `int` - at `$.text`"),
        (
            {"do": "fail", "how": "badly"},
            "`how` is one of too_many, bad_gateway, lose, lose_answer",
        ),
    ],
)
async def test_an_impossible_action_is_refused_with_a_reason(action: Json, reason: str) -> None:
    async with open_page() as page:
        with pytest.raises(Unusable, match="^" + reason.replace("$", r"\$")):
            page.control.do(action)


async def test_an_action_in_an_unknown_chat_is_refused() -> None:
    async with open_page() as page:
        with pytest.raises(Unusable, match="`chat` is none"):
            page.do("say", page.ann, chat="5", text="hi")
        with pytest.raises(Unusable, match="there is no message no"):
            page.do("press", page.ann, message="no", data="x")
        with pytest.raises(Unusable, match="there is no text"):
            page.do("say", page.ann, text=" ")


async def test_the_stage_has_a_configuration_and_a_page_that_needs_its_key() -> None:
    """The configuration connects a daemon; another user of this machine finds nothing."""
    context = EmulatorContext(clock=ManualClock(), ids=CountingIds(), port=0, has_limits=False)
    async with (
        emulate(context) as emulated,
        httpx.AsyncClient(base_url=emulated.page, timeout=None, trust_env=False) as client,
    ):
        state = (await client.get("state")).json()
        ann, olga = (person["id"] for person in state["people"])
        done = await client.post("do", json={"do": "say", "person": ann, "text": "hello"})
        (message,) = (await client.get("state")).json()["chats"][0]["messages"]
        root = str(httpx.URL(emulated.page).copy_with(path="/"))
        elsewhere = [await client.get(f"{root}{path}") for path in ("", "guessed/state")]
        channels = cast("Mapping[str, Json]", emulated.tables["channels"])
        assert (state["platform"], done.json(), message["text"]) == (
            "Discord",
            {"done": True},
            "hello",
        )
        assert [answer.status_code for answer in elsewhere] == [404, 404]
        assert channels["discord"]["allowed_users"] == [ann, olga]
        assert channels["discord"]["limits"] == "off"
        assert list(emulated.environment) == ["EMULATED_DISCORD_TOKEN"]
