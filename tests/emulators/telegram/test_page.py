"""The page's routes: with its key they act as all people, and without it they are not found."""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import pytest
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, MessageOriginUser
from telegram.error import Forbidden, NetworkError

from channels.telegram.emulator import emulate
from channels.telegram.emulator.wire import is_array, is_object
from tests.emulators.telegram.bots import bot_at
from tests.fakes.counting_ids import CountingIds
from tests.fakes.manual_clock import ManualClock
from zeroclaw import Emulated, EmulatorContext

ANN, OLGA = 1_000_001, 1_000_002


@dataclass(frozen=True, kw_only=True)
class TelegramPage:
    emulated: Emulated
    client: httpx.AsyncClient

    @property
    def url(self) -> str:
        return str(httpx.URL(self.emulated.page).copy_with(path="")).rstrip("/")

    @property
    def token(self) -> str:
        (token,) = self.emulated.environment.values()
        return token

    async def do(self, **action: object) -> httpx.Response:
        return await self.client.post("do", json=action)

    async def done(self, **action: object) -> None:
        answer = await self.do(**action)
        assert answer.json() == {"done": True}

    async def state(self) -> dict[str, object]:
        state: object = (await self.client.get("state")).json()
        assert is_object(state)
        return state

    async def chat(self, id_: int) -> dict[str, object]:
        chats = (await self.state())["chats"]
        assert is_array(chats)
        (found,) = [chat for chat in chats if is_object(chat) and chat["id"] == id_]
        return found

    async def messages(self, id_: int) -> list[dict[str, object]]:
        messages = (await self.chat(id_))["messages"]
        assert is_array(messages)
        return [message for message in messages if is_object(message)]


@asynccontextmanager
async def open_page(*, has_limits: bool = True) -> AsyncGenerator[tuple[TelegramPage, Bot]]:
    clock = ManualClock()
    context = EmulatorContext(clock=clock, ids=CountingIds(), port=0, has_limits=has_limits)
    async with (
        emulate(context) as emulated,
        httpx.AsyncClient(
            base_url=emulated.page, timeout=None, verify=False, trust_env=False
        ) as client,
    ):
        page = TelegramPage(emulated=emulated, client=client)
        async with bot_at(page.url, page.token) as bot:
            yield page, bot


async def test_the_page_comes_with_all_its_files_and_a_strict_policy() -> None:
    async with open_page() as (page, _):
        scripts = ("app.js", "elements.js", "message.js", "rich.js")
        for name in ("", *scripts, "base.css", "style.css", "icon.svg"):
            answer = await page.client.get(name)
            assert answer.status_code == 200
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; script-src 'self'")
            assert "unsafe" not in policy


async def test_without_the_key_the_page_is_not_found() -> None:
    """Another user of this machine, and a page that rebinds its name, find nothing."""
    async with open_page() as (page, _):
        root = page.url
        for url in (root, f"{root}/", f"{root}/guessed/", f"{root}/guessed/state"):
            assert (await page.client.get(url)).status_code == 404
        rebound = {"host": "evil.example:80"}
        assert (await page.client.get("state", headers=rebound)).status_code == 404
        for name in ("nothing", "files/nothing"):
            assert (await page.client.get(name)).status_code == 404
        assert (await page.client.put("do", json={})).status_code == 404


async def test_the_configuration_names_the_people_and_the_bot() -> None:
    async with open_page(has_limits=False) as (page, _):
        channels = page.emulated.tables["channels"]
        assert is_object(channels)
        assert channels["telegram"] == {
            "token": {"env": "EMULATED_TELEGRAM_TOKEN"},
            "api_base_url": page.url,
            "allowed_users": [str(ANN), str(OLGA)],
            "limits": "off",
        }
        state = await page.state()
        people = state["people"]
        assert is_array(people)
        assert [person["name"] for person in people if is_object(person)] == ["Ann", "Olga"]
        assert state["bot"] == {"name": "Zero", "username": "zero_bot"}


async def test_people_write_answer_edit_and_delete() -> None:
    async with open_page() as (page, bot):
        await page.done(do="say", person=ANN, text="hello")
        await bot.send_message(ANN, "*hi*", parse_mode="MarkdownV2")
        first, second = await page.messages(ANN)
        await page.done(do="say", person=ANN, text="well", reply_to=second["id"])
        await page.done(do="edit", person=ANN, chat=ANN, message=first["id"], text="hello!")
        *_, last = await page.messages(ANN)
        assert (first["text"], first["bot"], second["bot"]) == ("hello", False, True)
        assert second["entities"] == [{"type": "bold", "offset": 0, "length": 2}]
        assert last["reply"] == {"name": "Zero", "text": "hi"}
        assert (await page.messages(ANN))[0]["earlier"] == ["hello"]
        await page.done(do="delete", person=ANN, message=first["id"])
        assert len(await page.messages(ANN)) == 2


async def test_a_message_is_forwarded_to_the_bot_or_into_a_chat() -> None:
    async with open_page() as (page, bot):
        room = (await page.state())["room"]
        await page.done(do="say", person=OLGA, text="the plan")
        (plan,) = await page.messages(OLGA)
        forward = {"do": "forward", "chat": OLGA, "message": plan["id"]}
        await page.done(**forward, person=ANN)
        await page.done(**forward, person=ANN, to=room)
        updates = await bot.get_updates(timeout=5)
        _, private, public = [update.message for update in updates if update.message]
        assert (private.chat.id, public.chat.id) == (ANN, room)
        assert private.text == public.text == "the plan"
        assert isinstance(private.forward_origin, MessageOriginUser)
        assert private.forward_origin.sender_user.id == OLGA
        answer = await page.do(**forward, person=ANN, to=5)
        assert (answer.status_code, answer.json()["error"]) == (422, "`chat` is none")


async def test_a_button_is_pressed_and_its_toast_is_shown() -> None:
    async with open_page() as (page, bot):
        keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="yes")]])
        sent = await bot.send_message(OLGA, "well?", reply_markup=keyboard)
        await page.done(do="press", person=OLGA, message=sent.message_id, data="yes")
        assert (await page.state())["toasts"] == []
        (update,) = await bot.get_updates(timeout=5)
        assert update.callback_query is not None
        await update.callback_query.answer("noted")
        state = await page.state()
        assert state["toasts"] == [{"id": "press-1", "person": OLGA, "text": "noted"}]


async def test_an_album_comes_as_messages_of_one_group() -> None:
    """Whatever the names of the pictures; the first has the caption. S2-01."""
    async with open_page() as (page, bot):
        photo = {"name": "a.jpg", "base64": b64encode(b"picture").decode()}
        await page.done(do="album", person=ANN, photos=[photo, photo], caption="two")
        updates = await bot.get_updates(timeout=5)
        photos = [update.message for update in updates if update.message]
        assert [message.caption for message in photos] == ["two", None]
        assert len({message.media_group_id for message in photos}) == 1
        assert all(message.photo for message in photos)


async def test_files_go_both_ways() -> None:
    """They are downloads, never shown: a file of the bot could be a web page."""
    async with open_page() as (page, bot):
        content = b64encode(b"picture").decode()
        await page.done(do="file", person=ANN, kind="photo", base64=content, caption="me")
        await page.done(do="file", person=ANN, name="a.txt", base64=content)
        await bot.send_document(ANN, b"<script>", filename="a.html")
        photo, _, document = await page.messages(ANN)
        assert photo["text"] == "me"
        files = document["files"]
        assert is_array(files)
        assert files == [{"kind": "document", "name": "a.html", "path": "documents/file_2.html"}]
        answer = await page.client.get("files/documents/file_2.html")
        assert (answer.content, answer.headers["content-disposition"]) == (
            b"<script>",
            "attachment",
        )


async def test_drafts_and_actions_are_seen() -> None:
    async with open_page() as (page, bot):
        await bot.send_message_draft(ANN, 1, "wri")
        await bot.send_chat_action(ANN, "typing")
        chat = await page.chat(ANN)
        assert (chat["draft"], chat["acting"]) == ("wri", "typing")
        await bot.send_message(ANN, "written")
        chat = await page.chat(ANN)
        assert (chat["draft"], chat["acting"]) == (None, "")


async def test_the_bot_can_be_blocked_and_its_calls_let_fail() -> None:
    async with open_page() as (page, bot):
        await page.done(do="block", person=ANN)
        assert (await page.chat(ANN))["blocked"] is True
        await page.done(do="unblock", person=ANN)
        await page.done(do="fail", method="sendMessage", how="lose_answer", chat=ANN)
        with pytest.raises(NetworkError):
            await bot.send_message(ANN, "hello")
        assert [message["text"] for message in await page.messages(ANN)] == ["hello"]


async def test_calls_hang_until_they_are_released_and_are_refused_as_requested() -> None:
    async with open_page() as (page, bot), asyncio.TaskGroup() as group:
        await page.done(do="fail", method="sendMessage", how="hang_answer")
        refusal = {"code": 403, "description": "Forbidden: not today"}
        await page.done(do="fail", method="getChat", how="refuse", **refusal)
        sending = group.create_task(bot.send_message(ANN, "hello"))
        with pytest.raises(Forbidden, match="not today"):
            await bot.get_chat(ANN)
        while not await page.messages(ANN):
            assert not sending.done()
        await page.done(do="release")
        assert (await sending).text == "hello"


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ({}, "`do` is one of say, file, album, edit"),
        ({"do": "say", "person": 5, "text": "x"}, "`person` is one of 1000001, 1000002"),
        ({"do": "say", "person": ANN, "text": " "}, "there is no text"),
        ({"do": "say", "person": ANN, "chat": 5, "text": "x"}, "`chat` is none"),
        ({"do": "edit", "person": ANN, "message": 5}, "there is no message 5 in private"),
        ({"do": "file", "person": ANN, "kind": "poem"}, "`kind` is one of document"),
        ({"do": "file", "person": ANN, "base64": "?"}, "`base64` can't be read"),
        ({"do": "album", "person": ANN, "photos": "?"}, "an album has 2 to 10 `photos`"),
        (
            {"do": "album", "person": ANN, "photos": [{"name": "a.jpg"}]},
            "an album has 2 to 10 `photos`",
        ),
        ({"do": "fail", "how": "sadly"}, "`how` is one of too_many"),
    ],
)
async def test_an_impossible_action_is_refused_with_a_reason(
    action: dict[str, object], reason: str
) -> None:
    async with open_page() as (page, _):
        answer = await page.do(**action)
        assert (answer.status_code, answer.json()["error"].startswith(reason)) == (422, True)


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [("text/plain", b"{}", 415), ("application/json", b"{", 422), ("application/json", b"[]", 422)],
)
async def test_a_form_of_another_page_does_nothing(
    content_type: str, body: bytes, status: int
) -> None:
    async with open_page() as (page, _):
        answer = await page.client.post("do", content=body, headers={"content-type": content_type})
        assert answer.status_code == status


async def test_the_page_gets_every_change() -> None:
    """The stream ends when the client disconnects."""
    async with open_page() as (page, bot):
        async with page.client.stream("GET", "events") as events:
            lines = events.aiter_lines()
            assert _texts(await anext(lines)) == []
            async with asyncio.TaskGroup() as group:
                group.create_task(bot.send_message(ANN, "hello"))
                while _texts(await anext(lines)) != ["hello"]:
                    pass
        assert (await page.client.get("state")).status_code == 200


def _texts(line: str) -> list[str]:
    if not line:
        return []
    chats = json.loads(line.removeprefix("data: "))["chats"]
    return [message["text"] for chat in chats for message in chat["messages"]]
