"""Calls that no library makes are refused like every other, and never break the server."""

import asyncio

import httpx
import pytest

from channels.telegram.emulator import Emulator
from tests.emulators.telegram.bots import call
from tests.fakes.manual_clock import ManualClock

BAD = "Bad Request: "
NO_KEYBOARDS: list[object] = [{}, {"inline_keyboard": []}, {"inline_keyboard": [[]]}]


UNREADABLE: list[tuple[str, dict[str, object], str]] = [
    ("sendMessage", {"text": "x", "entities": "["}, "can't parse entities JSON object"),
    ("sendMessage", {"text": "x", "entities": {}}, "can't parse entities JSON object"),
    (
        "sendMessage",
        {"text": "x", "reply_parameters": "["},
        "can't parse reply parameters JSON object",
    ),
    (
        "sendMessage",
        {"text": "x", "reply_parameters": []},
        "can't parse reply parameters JSON object",
    ),
    (
        "sendMessage",
        {"text": "x", "link_preview_options": "["},
        "can't parse link preview options JSON object",
    ),
    (
        "sendMessage",
        {"text": "x", "reply_markup": "["},
        "can't parse reply keyboard markup JSON object",
    ),
    ("sendMessage", {"text": "x", "reply_markup": {"a": 1}}, "object expected as reply markup"),
    (
        "sendMessage",
        {"text": "x", "reply_markup": {"inline_keyboard": [{}]}},
        'field "inline_keyboard" must be of type Array of Arrays',
    ),
    (
        "sendMessage",
        {"text": "x", "reply_markup": {"inline_keyboard": [["a"]]}},
        "can't parse inline keyboard button: expected an Object",
    ),
    (
        "sendMessage",
        {"text": "x", "reply_markup": {"inline_keyboard": [[{}]]}},
        'can\'t parse inline keyboard button: field "text" must be of type String',
    ),
    (
        "sendMessage",
        {"text": "x", "reply_markup": {"inline_keyboard": [[{"text": "a"}]]}},
        "can't parse inline keyboard button: text buttons are unallowed in the inline keyboard",
    ),
    (
        "sendMessage",
        {"text": "x", "reply_markup": {"inline_keyboard": [[{"text": "a", "url": "a"}]]}},
        "inline keyboard button URL 'a' is invalid: Wrong HTTP URL",
    ),
    (
        "sendMessage",
        {
            "text": "x",
            "reply_markup": {"inline_keyboard": [[{"text": "a", "callback_data": "a"}] * 101]},
        },
        "REPLY_MARKUP_TOO_LONG",
    ),
    ("sendMediaGroup", {"media": "["}, "can't parse media JSON object"),
    ("sendMediaGroup", {"media": []}, "wrong number of media in the album specified"),
    (
        "sendMediaGroup",
        {"media": [{"type": "poem"}]},
        "can't parse InputMedia: type must be one of the media types",
    ),
    ("editMessageMedia", {"media": "["}, "can't parse InputMedia JSON object"),
    (
        "editMessageMedia",
        {"media": {"type": "poem"}},
        "can't parse InputMedia: type must be one of the media types",
    ),
    ("deleteMessages", {"message_ids": "["}, "can't parse message identifiers JSON object"),
    (
        "deleteMessages",
        {"message_ids": []},
        "message identifiers are not specified, or are too many",
    ),
    ("setMyCommands", {"commands": "["}, "can't parse commands JSON object"),
    ("getMyCommands", {"scope": "["}, "can't parse BotCommandScope JSON object"),
    ("sendRichMessage", {"rich_message": "["}, "can't parse InputRichMessage JSON object"),
    (
        "sendRichMessage",
        {"rich_message": {"html": "a", "markdown": "b"}},
        "rich message must have exactly one of html and markdown",
    ),
    ("sendRichMessage", {"rich_message": {"html": " "}}, "rich message must be non-empty"),
    ("sendRichMessage", {"rich_message": {"html": "x" * 32769}}, "rich message is too long"),
    ("sendRichMessage", {"rich_message": {"markdown": "x" * 32769}}, "rich message is too long"),
    ("forwardMessage", {"from_chat_id": 1_000_001}, "message to forward not found"),
]


@pytest.mark.parametrize(("method", "values", "description"), UNREADABLE)
async def test_unreadable_parameters_are_refused_with_the_reason(
    method: str, values: dict[str, object], description: str
) -> None:
    async with Emulator(clock=ManualClock()) as telegram:
        chat_id = telegram.person("Ann").id
        answer = await call(telegram, method, chat_id=chat_id, **values)
        assert (answer.code, answer.description) == (400, f"{BAD}{description}")


async def test_an_empty_keyboard_is_none_and_older_parameters_are_taken() -> None:
    async with Emulator(clock=ManualClock()) as telegram:
        ann = telegram.person("Ann")
        message = ann.says("hello").sent
        older = {"disable_web_page_preview": "True", "protect_content": True}
        for markup in NO_KEYBOARDS:
            await call(telegram, "sendMessage", chat_id=ann.id, text="x", reply_markup=markup)
        await call(
            telegram,
            "sendMessage",
            chat_id=str(ann.id),
            text=5,
            reply_to_message_id=message.id,
            **older,
        )
        await call(
            telegram,
            "sendMessage",
            chat_id=ann.id,
            text="y",
            reply_to_message_id=99,
            allow_sending_without_reply=True,
        )
        *plain, answered, unanswered = ann.chat.from_bot
        assert [sent.markup for sent in plain] == [None, None, None]
        assert (answered.text, answered.reply_to, unanswered.reply_to) == ("5", message, None)
        assert answered.extra["link_preview_options"] == {"is_disabled": True}


async def test_a_copied_file_may_have_another_caption_and_another_file_in_its_place() -> None:
    async with Emulator(clock=ManualClock()) as telegram:
        ann = telegram.person("Ann")
        file = ann.sends("document", b"x", caption="old").sent
        for more in ({}, {"caption": "new"}):
            await call(
                telegram,
                "copyMessage",
                chat_id=ann.id,
                from_chat_id=ann.id,
                message_id=file.id,
                **more,
            )
        assert ann.chat.texts == ["old", "new"]
        media = {"type": "document", "media": "document-0-file", "caption": "newer"}
        last = ann.chat.from_bot[-1]
        answer = await call(
            telegram, "editMessageMedia", chat_id=ann.id, message_id=last.id, media=media
        )
        assert (answer.status, last.texts) == (200, ["new", "newer"])


async def test_parameters_come_in_every_form() -> None:
    """From the query, a form, a form with files, or JSON; any other body is ignored."""
    async with (
        Emulator(clock=ManualClock()) as telegram,
        httpx.AsyncClient(timeout=None, verify=False) as client,
    ):
        ann = telegram.person("Ann")
        url = f"{telegram.base_url}{telegram.token}/sendMessage"
        await client.get(url, params={"chat_id": ann.id, "text": "query"})
        await client.post(url, data={"chat_id": str(ann.id), "text": "form & more"})
        await client.post(url, files={"chat_id": (None, str(ann.id)), "text": (None, "ü")})
        await client.post(url, json={"chat_id": ann.id, "text": "json"})
        await client.post(url, params={"chat_id": ann.id, "text": "else"}, content=b"x")
        assert ann.chat.texts == ["query", "form & more", "ü", "json", "else"]


@pytest.mark.parametrize(
    ("content_type", "body", "description"),
    [
        ("application/json", b"{", "can't parse request JSON object"),
        ("application/json", b"[]", "can't parse request JSON object"),
        ("application/x-www-form-urlencoded", b"text=\xff", "strings must be encoded in UTF-8"),
        (
            "multipart/form-data",
            b"",
            "boundary parameter in content-type header of multipart is not found",
        ),
        (
            "multipart/form-data; boundary=b",
            b"--b\r\ncontent-type: text/plain\r\n\r\nx\r\n--b--\r\n",
            "a part of the form has no name",
        ),
    ],
)
async def test_an_invalid_body_is_refused(content_type: str, body: bytes, description: str) -> None:
    async with (
        Emulator(clock=ManualClock()) as telegram,
        httpx.AsyncClient(timeout=None, verify=False) as client,
    ):
        url = f"{telegram.base_url}{telegram.token}/sendMessage"
        answer = await client.post(url, content=body, headers={"content-type": content_type})
        assert answer.json()["description"] == f"{BAD}{description}"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 404),
        ("/botnobody/getMe", 404),
        ("/bot1:wrong/getMe", 401),
        ("/file/bot1:wrong/a", 401),
        ("/bot1:wrong/getMe/more", 404),
    ],
)
async def test_an_unknown_address_is_not_found(path: str, status: int) -> None:
    async with (
        Emulator(clock=ManualClock()) as telegram,
        httpx.AsyncClient(timeout=None, verify=False) as client,
    ):
        assert (await client.get(f"{telegram.url}{path}")).status_code == status


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"GET / HTTP/1.1\r\ncontent-length: many\r\n\r\n",
        b"GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 20_000,
        b"",
    ],
)
async def test_what_is_no_request_ends_the_connection(sent: bytes) -> None:
    """It ends, and the next one is served."""
    async with Emulator(clock=ManualClock()) as telegram:
        reader, writer = await asyncio.open_connection("127.0.0.1", _port(telegram))
        writer.write(sent)
        writer.write_eof()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(1)
        writer.close()
        assert (await call(telegram, "getMe")).status == 200


async def test_half_a_body_is_no_request_and_a_connection_may_close_after_one() -> None:
    async with Emulator(clock=ManualClock()) as telegram:
        reader, writer = await asyncio.open_connection("127.0.0.1", _port(telegram))
        writer.write(b"GET /nothing HTTP/1.1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 404 ")
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", _port(telegram))
        writer.write(b"GET /nothing HTTP/1.1\r\ncontent-length: 10\r\n\r\nhalf")
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()


def _port(telegram: Emulator) -> int:
    return int(telegram.url.rpartition(":")[2])
