"""The limits of Slack's emulator, and the calls that it refuses as Slack does."""

import asyncio

import aiohttp
import pytest

from channels.slack.emulator.server import APP, BOT, SlackServer, emulate_url

pytestmark = [pytest.mark.slow, pytest.mark.needs("emulate")]
CALLS = 200
Json = dict[str, object]


async def call(slack: SlackServer, method: str, body: Json) -> Json:
    """Make a call as the bot."""
    url, bearer = f"{slack.url}/{method}", {"Authorization": f"Bearer {BOT}"}
    async with slack.session.post(url, json=body, headers=bearer) as answer:
        return await answer.json()


async def test_the_bot_can_make_more_calls_an_hour_than_emulate_allows_one_token() -> None:
    async with SlackServer() as slack:
        for _ in range(CALLS):
            assert (await slack.upstream("auth.test", BOT))["ok"]
        bearer = {"Authorization": f"Bearer {BOT}-0"}
        url = f"{emulate_url()}/api/auth.test"
        async with slack.session.post(url, headers=bearer) as answer:
            left = int(answer.headers["X-RateLimit-Remaining"])
    assert left > 5000 - CALLS / 2, "no token makes them all"


async def test_an_http_error_of_emulate_is_raised() -> None:
    async with SlackServer() as slack:
        with pytest.raises(aiohttp.ClientResponseError):
            await slack.upstream("no.such.method", BOT)


async def test_an_event_for_a_disconnected_bot_is_sent_when_it_reconnects() -> None:
    """The disconnect is noticed late; until then the emulator writes to a closing connection."""
    async with SlackServer() as slack, aiohttp.ClientSession() as session:
        bearer = {"Authorization": f"Bearer {APP}"}
        url, action = f"{slack.url}/apps.connections.open", slack.event({"text": "hello"})
        for connection in (1, 2):
            async with session.post(url, headers=bearer) as answer:
                link = (await answer.json())["url"]
            async with session.ws_connect(link) as socket:
                assert (await socket.receive_json())["type"] == "hello"
                if connection == 2:
                    assert (await socket.receive_json())["payload"] == action.payload
                else:
                    await slack.until(lambda: slack.is_connected)
                    socket.get_extra_info("socket").shutdown(2)
                    while slack.is_connected:
                        await action.dispatch()
                        await asyncio.sleep(0)


def button(**more: object) -> Json:
    text: Json = {"type": "plain_text", "text": "Deny"}
    return {"type": "button", "text": text, "action_id": "no:1", "value": "a1", **more}


def actions(*buttons: Json) -> Json:
    return {"type": "actions", "elements": list(buttons)}


def text(length: int) -> Json:
    return {"type": "section", "text": {"type": "mrkdwn", "text": "a" * length}}


def context(*lengths: int) -> Json:
    elements = [{"type": "plain_text", "text": "a" * length} for length in lengths]
    return {"type": "context", "elements": elements}


@pytest.mark.parametrize(
    ("blocks", "error"),
    [
        ([text(1)] * 51, "invalid_blocks"),
        ([text(3001)], "invalid_blocks"),
        ([text(0)], "invalid_blocks"),
        ([context(3001)], "invalid_blocks"),
        ([context(*[1] * 11)], "invalid_blocks"),
        ([actions(*[button()] * 26)], "invalid_blocks"),
        ([actions()], "invalid_blocks"),
        ([actions(button(text={"type": "plain_text", "text": "a" * 76}))], "invalid_blocks"),
        ([actions(button(action_id="a" * 256))], "invalid_blocks"),
        ([actions(button(value="a" * 2001))], "invalid_blocks"),
        ([{"type": "markdown", "text": "a" * 6001}] * 2, "msg_blocks_too_long"),
        ([text(3000)] * 50, ""),
    ],
)
async def test_a_message_that_is_too_long_in_any_part_is_refused(
    blocks: list[Json], error: str
) -> None:
    async with SlackServer() as slack:
        ann = await slack.person()
        body: Json = {"channel": ann.direct, "text": "a", "blocks": blocks}
        assert (await call(slack, "chat.postMessage", body)).get("error", "") == error


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("views.open", {"trigger_id": "t", "view": {"title": {"text": "a" * 25}}}),
        (
            "views.open",
            {"trigger_id": "t", "view": {"title": {"text": "a"}, "private_metadata": "a" * 3001}},
        ),
        (
            "assistant.threads.setSuggestedPrompts",
            {
                "channel_id": "D1",
                "thread_ts": "1.1",
                "prompts": [{"title": "a", "message": "a"}] * 5,
            },
        ),
    ],
)
async def test_forms_and_prompts_have_limits(method: str, body: Json) -> None:
    async with SlackServer() as slack:
        assert await call(slack, method, body) == {"ok": False, "error": "invalid_arguments"}


async def test_a_stream_accepts_chunks_or_text_but_not_both() -> None:
    async with SlackServer() as slack:
        ann = await slack.person()
        place: Json = {"channel": ann.direct, "thread_ts": "1700000000.000001"}
        chunks = [{"type": "markdown_text", "text": "a"}]
        task = {"type": "task_update", "id": "1", "title": "look", "status": "done"}

        async def error(method: str, **body: object) -> object:
            return (await call(slack, method, {**place, **body})).get("error", "")

        both = "cannot_provide_both_markdown_text_and_chunks"
        assert await error("chat.startStream", markdown_text="a", chunks=chunks) == both
        started = await call(slack, "chat.startStream", {**place, "chunks": chunks})
        ts = started["ts"]
        mode = "streaming_mode_mismatch"
        assert await error("chat.appendStream", ts=ts, markdown_text="a") == mode
        assert await error("chat.appendStream", ts=ts, chunks=[task]) == "invalid_arguments"
        assert await error("chat.stopStream", ts=ts, chunks=chunks) == ""


async def test_calls_beyond_the_rate_limits_are_refused() -> None:
    """New messages count per channel, and other methods per workspace."""
    at = 0.0
    async with SlackServer() as slack:
        slack.is_paced, slack.now = True, lambda: at
        ann, bob = await slack.person(), await slack.person()

        async def error(method: str, **body: object) -> object:
            fields = {"text": "a", "blocks": [text(1)], **body}
            return (await call(slack, method, fields)).get("error", "")

        errors = [await error("chat.postMessage", channel=ann.direct) for _ in range(5)]
        assert errors == [*[""] * 4, "ratelimited"]
        assert await error("chat.postMessage", channel=bob.direct) == ""
        at = 1.0
        assert await error("chat.postMessage", channel=ann.direct) == ""
        edits = [await error("chat.update", channel=ann.direct, ts="1.1") for _ in range(51)]
        assert (edits[-1], slack.buckets.refused) == ("ratelimited", 2)
