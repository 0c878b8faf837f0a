"""What Slack's emulator bears, and what it refuses as Slack does."""

import asyncio

import aiohttp
import pytest

from channels.slack.emulator.server import APP, BOT, SlackServer, emulate_url

pytestmark = [pytest.mark.slow, pytest.mark.needs("emulate")]
CALLS = 200


async def test_the_bot_makes_more_calls_an_hour_than_emulate_bears_of_one_token() -> None:
    async with SlackServer() as slack:
        for _ in range(CALLS):
            assert (await slack.up("auth.test", BOT))["ok"]
        bearer = {"Authorization": f"Bearer {BOT}-0"}
        url = f"{emulate_url()}/api/auth.test"
        async with slack.session.post(url, headers=bearer) as answer:
            left = int(answer.headers["X-RateLimit-Remaining"])
    assert left > 5000 - CALLS / 2, "no token bears them all"


async def test_an_answer_that_slack_would_not_give_is_a_failure_of_its_own() -> None:
    async with SlackServer() as slack:
        with pytest.raises(aiohttp.ClientResponseError):
            await slack.up("no.such.method", BOT)


async def test_a_bot_that_is_gone_is_told_nothing_and_reads_it_when_it_is_back() -> None:
    """Its end is noticed a moment later; until then the emulator writes to a closing connection."""
    async with SlackServer() as slack, aiohttp.ClientSession() as session:
        bearer = {"Authorization": f"Bearer {APP}"}
        url, deed = f"{slack.url}/apps.connections.open", slack.event({"text": "hello"})
        for life in (1, 2):
            async with session.post(url, headers=bearer) as answer:
                link = (await answer.json())["url"]
            async with session.ws_connect(link) as socket:
                assert (await socket.receive_json())["type"] == "hello"
                if life == 2:
                    assert (await socket.receive_json())["payload"] == deed.payload
                else:
                    await slack.until(lambda: slack.listening)
                    socket.get_extra_info("socket").shutdown(2)
                    while slack.listening:
                        await deed.tell()
                        await asyncio.sleep(0)
