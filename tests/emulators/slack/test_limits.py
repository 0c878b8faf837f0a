"""What Slack's emulator bears, and what it refuses as Slack does."""

import aiohttp
import pytest

from channels.slack.emulator.server import BOT, SlackServer, emulate_url

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
