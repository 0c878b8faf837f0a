"""What the page of `zeroclaw try discord` shows, and what people can do there."""

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
class Here:
    """A page with a bot that is told nothing, and calls what a test lets it."""

    discord: DiscordServer
    control: Control
    ann: Person
    olga: Person
    room: int
    bot: httpx.AsyncClient

    def do(self, do: str, who: Person, **asked: object) -> None:
        self.control.do({"do": do, "person": str(who.id), **asked})

    def messages(self, channel: int) -> list[Json]:
        chats = cast("list[Json]", self.control.state()["chats"])
        (found,) = [one for one in chats if one["id"] == str(channel)]
        return cast("list[Json]", found["messages"])

    async def sends(self, channel: int, **body: object) -> Json:
        answer = await self.bot.post(f"/channels/{channel}/messages", json=body)
        return cast("Json", answer.raise_for_status().json())

    def acted(self) -> UserAction:
        """What was done last with a button or a command."""
        return list(self.discord.actions.values())[-1]

    async def answers(self, action: UserAction, body: object) -> None:
        token = action.event["token"]
        answer = await self.bot.post(f"/interactions/{action.id}/{token}/callback", json=body)
        answer.raise_for_status()


@asynccontextmanager
async def page() -> AsyncGenerator[Here]:
    async with DiscordServer(clock=ManualClock()) as discord:
        ann, olga = discord.person("Ann"), discord.person("Olga")
        room = discord.channel("room")
        chats = (str(ann.direct), str(olga.direct))
        of_page = Cast(ann=str(ann.id), olga=str(olga.id), chats=chats, room=str(room))
        people = {str(one.id): one for one in (ann, olga)}
        head = {"Authorization": f"Bot {discord.token}"}
        async with httpx.AsyncClient(
            base_url=discord.url, headers=head, timeout=None, trust_env=False
        ) as bot:
            control = Control(discord, people, of_page)
            yield Here(discord=discord, control=control, ann=ann, olga=olga, room=room, bot=bot)


async def test_people_write_and_what_the_bot_edits_is_seen() -> None:
    """In a chat of their own and in the room, where `@` mentions the bot; answers say to what."""
    async with page() as here:
        here.do("say", here.ann, text=" hello ")
        (hello,) = here.messages(here.ann.direct)
        sent = await here.sends(here.ann.direct, content="**hi** <@1>")
        await here.bot.patch(
            f"/channels/{here.ann.direct}/messages/{sent['id']}", json={"content": "*hi*"}
        )
        here.do("say", here.ann, text="well", reply_to=str(sent["id"]))
        _, answer, well = here.messages(here.ann.direct)
        name = here.discord.backend.bot_user.name
        here.do("say", here.olga, chat=str(here.room), text=f"@{name}, are you here?")
        (asked,) = here.messages(here.room)
        assert (hello["text"], hello["name"], hello["bot"]) == ("hello", "Ann", False)
        assert (answer["earlier"], answer["bot"]) == (["**hi** <@1>"], True)
        said = {"type": "paragraph", "text": [{"type": "italic", "text": ["hi"]}]}
        assert answer["rich"] == {"blocks": [said]}
        assert well["reply"] == {"name": name, "text": "*hi*"}
        assert asked["text"] == f"<@{here.discord.bot}>, are you here?"
        assert asked["rich"] == {
            "blocks": [{"type": "paragraph", "text": [f"@{name}, are you here?"]}]
        }


async def test_a_button_is_pressed_and_the_form_behind_it_is_filled_in() -> None:
    """The form stands as a question to whoever pressed, until it is answered."""
    async with page() as here:
        button = {"type": 2, "style": 4, "label": "Deny", "custom_id": "no"}
        over = {"type": 2, "style": 3, "label": "Done", "custom_id": "over", "disabled": True}
        rows = [{"type": 1, "components": [button, over]}]
        sent = await here.sends(here.olga.direct, content="?", components=rows)
        (card,) = here.messages(here.olga.direct)
        here.do("press", here.olga, chat=str(here.olga.direct), message=sent["id"], data="no")
        pressed = here.acted()
        assert len(here.messages(here.olga.direct)) == 1
        await here.answers(pressed, FORM)
        _, question = here.messages(here.olga.direct)
        here.do("say", here.olga, text="not today", reply_to=question["id"])
        submitted = here.acted()
        assert card["rows"] == [
            [
                {"text": "Deny", "callback_data": "no", "style": "danger"},
                {"text": "Done", "callback_data": "", "style": "success"},
            ]
        ]
        assert (question["text"], question["asks"], question["only"]) == (
            "Why not?",
            True,
            str(here.olga.id),
        )
        assert (submitted.event["type"], "not today" in str(submitted.event)) == (5, True)
        assert len(here.messages(here.olga.direct)) == 1


async def test_a_line_with_a_slash_is_a_command_where_the_bot_offers_it() -> None:
    """Any other is a text, as in the app; what is said for one person only one sees."""
    async with page() as here:
        option = {"type": 3, "name": "question", "description": "it", "required": True}
        path = f"/applications/{here.discord.backend.application_id}/commands"
        ask = {"name": "ask", "description": "asks", "options": [option]}
        (await here.bot.put(path, json=[ask])).raise_for_status()
        here.do("say", here.ann, chat=str(here.room), text="/ask why not?")
        used = here.acted()
        await here.answers(used, {"type": 4, "data": {"content": "so", "flags": 64}})
        here.do("say", here.ann, chat=str(here.room), text="/tool date")
        for_ann, text = here.messages(here.room)
        given = cast("Json", used.event["data"])["options"]
        assert given == [{"type": 3, "name": "question", "value": "why not?"}]
        assert (for_ann["text"], for_ann["only"]) == ("so", str(here.ann.id))
        assert (text["text"], text["only"]) == ("/tool date", "")


async def test_files_go_both_ways() -> None:
    async with page() as here:
        content = b64encode(b"picture").decode()
        photo = {"name": "a.png", "base64": content}
        here.do("file", here.ann, name="a.txt", base64=content, caption="mine")
        here.do("album", here.ann, photos=[photo, photo])
        upload = {"payload_json": (None, b"{}"), "files[0]": ("b.txt", b"from the bot")}
        path = f"/channels/{here.ann.direct}/messages"
        (await here.bot.post(path, files=upload)).raise_for_status()
        shown = here.messages(here.ann.direct)
        files = [one for message in shown for one in cast("list[Json]", message["files"])]
        assert [one["name"] for one in files] == ["a.txt", "a.png", "a.png", "b.txt"]
        assert [one["text"] for one in shown] == ["mine", "", "", ""]
        assert here.control.file(str(files[0]["path"])) == b"picture"
        assert here.control.file(str(files[3]["path"])) == b"from the bot"
        assert here.control.file("1") is None


@pytest.mark.parametrize(("how", "status"), [("too_many", 429), ("bad_gateway", 502)])
async def test_the_next_message_of_the_bot_fails_as_told(how: str, status: int) -> None:
    async with page() as here:
        here.control.do({"do": "fail", "how": how})
        path = f"/channels/{here.ann.direct}/messages"
        first = await here.bot.post(path, json={"content": "hi"})
        second = await here.bot.post(path, json={"content": "hi"})
        assert (first.status_code, second.status_code) == (status, 200)
        assert len(here.messages(here.ann.direct)) == 1


@pytest.mark.parametrize(("how", "shown"), [("lose", 0), ("lose_answer", 1)])
async def test_the_next_message_of_the_bot_is_lost_as_told(how: str, shown: int) -> None:
    async with page() as here:
        here.control.do({"do": "fail", "how": how})
        with pytest.raises(httpx.RemoteProtocolError):
            await here.sends(here.ann.direct, content="hi")
        assert len(here.messages(here.ann.direct)) == shown


@pytest.mark.parametrize(
    ("action", "why"),
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
async def test_an_impossible_action_is_refused_with_a_reason(action: Json, why: str) -> None:
    async with page() as here:
        with pytest.raises(Unusable, match="^" + why.replace("$", r"\$")):
            here.control.do(action)


async def test_a_deed_at_a_place_that_is_none_says_why() -> None:
    async with page() as here:
        with pytest.raises(Unusable, match="`chat` is none"):
            here.do("say", here.ann, chat="5", text="hi")
        with pytest.raises(Unusable, match="there is no message no"):
            here.do("press", here.ann, message="no", data="x")
        with pytest.raises(Unusable, match="there is no text"):
            here.do("say", here.ann, text=" ")


async def test_the_stage_says_who_is_who_and_opens_a_page_by_its_key_alone() -> None:
    """The tables bring a daemon there; another user of this machine finds nothing."""
    context = EmulatorContext(clock=ManualClock(), ids=CountingIds(), port=0, has_limits=False)
    async with (
        emulate(context) as emulated,
        httpx.AsyncClient(base_url=emulated.page, timeout=None, trust_env=False) as client,
    ):
        state = (await client.get("state")).json()
        ann, olga = (one["id"] for one in state["people"])
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
        assert [one.status_code for one in elsewhere] == [404, 404]
        assert channels["discord"]["allowed_users"] == [ann, olga]
        assert channels["discord"]["limits"] == "off"
        assert list(emulated.environment) == ["EMULATED_DISCORD_TOKEN"]
