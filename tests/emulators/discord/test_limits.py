"""What Discord's emulator refuses as Discord does, so that an adapter that asks for it fails its tests."""

from collections.abc import Mapping

import aiohttp
import pytest

from channels.discord.emulator.server import DiscordServer
from tests.fakes.manual_clock import ManualClock

pytestmark = [pytest.mark.slow]
BUTTON = {"type": 2, "style": 1, "label": "x"}
Json = Mapping[str, object]


def row(count: int, **more: object) -> Json:
    buttons = [{**BUTTON, "custom_id": f"c{number}", **more} for number in range(count)]
    return {"type": 1, "components": buttons}


def message(**more: object) -> Json:
    return {"content": "a", **more}


def asking(discord: DiscordServer) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(headers={"Authorization": f"Bot {discord.token}"})


@pytest.mark.parametrize(
    "body",
    [
        message(content="a" * 2001),
        message(content=""),
        message(nonce="n" * 26),
        message(components=[row(1)] * 6),
        message(components=[row(6)]),
        message(components=[row(1, label="l" * 81)]),
        message(components=[row(1, custom_id="c" * 101)]),
        message(components=[row(2, custom_id="same")]),
        message(embeds=[{"title": "t"}] * 11),
        message(embeds=[{"description": "d" * 4097}]),
        message(embeds=[{"description": "d" * 3001}] * 2),
    ],
)
async def test_a_message_that_is_too_long_in_any_part_is_refused(body: Json) -> None:
    async with DiscordServer(clock=ManualClock()) as discord, asking(discord) as bot:
        ann = discord.person("ann")
        async with bot.post(f"{discord.url}/channels/{ann.direct}/messages", json=body) as answer:
            assert (answer.status, (await answer.json())["code"]) == (400, 50035)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/channels/{room}/threads", {"name": "n" * 101, "type": 11}),
        ("/interactions/1/t/callback", {"type": 9, "data": {"title": "t" * 46}}),
    ],
)
async def test_names_of_threads_and_forms_are_limited(path: str, body: Json) -> None:
    async with DiscordServer(clock=ManualClock()) as discord, asking(discord) as bot:
        url = discord.url + path.format(room=discord.channel("team"))
        async with bot.post(url, json=body) as answer:
            assert (answer.status, (await answer.json())["code"]) == (400, 50035)


async def test_calls_above_the_rate_are_refused_until_retry_after() -> None:
    """Each channel has a bucket of its own, and edits another one."""
    clock = ManualClock()
    async with DiscordServer(clock=clock) as discord, asking(discord) as bot:
        discord.is_paced = True
        ann, bob = discord.person("ann"), discord.person("bob")

        async def status(channel: int) -> tuple[int, str]:
            url = f"{discord.url}/channels/{channel}/messages"
            async with bot.post(url, json=message()) as answer:
                return answer.status, answer.headers.get("Retry-After", "")

        assert [await status(ann.direct) for _ in range(6)] == [*[(200, "")] * 5, (429, "1")]
        assert await status(bob.direct) == (200, "")
        assert discord.buckets.refused == 1
        await clock.advance(1)
        assert await status(ann.direct) == (200, "")
