"""One agent on several real platforms: what is asked on one is approved on another."""

import tomllib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from channels.discord.emulator.server import DiscordServer, Person
from tests.contract.slack_harness import standing
from tests.journeys.configuration import merged, toml
from tests.journeys.daemon_process import PATIENCE_S
from tests.journeys.slack.bot import Bot, bot
from zeroclaw.host.clock import SystemClock

pytestmark = [pytest.mark.slow, pytest.mark.needs("emulate")]


@dataclass(frozen=True, kw_only=True)
class Both:
    """One daemon on Slack and Discord.

    Attributes:
        here: Its Slack; Olga, the operator, is there alone.
        cara: On Discord, and on Slack as Ann.
    """

    here: Bot
    discord: DiscordServer
    cara: Person

    def texts(self) -> list[str]:
        """What stands in Cara's direct chat on Discord."""
        return [one.content for one in self.discord.from_bot(self.cara.direct)]


@asynccontextmanager
async def both(directory: Path) -> AsyncGenerator[Both]:
    async with DiscordServer(clock=SystemClock()) as discord:
        discord.patience_s = PATIENCE_S
        cara = discord.person("cara")
        token = directory / "token"
        token.write_text(discord.token)
        token.chmod(0o600)
        async with bot(directory, start=False) as here:
            people = [
                {"name": "olga", "ids": [f"slack:{here.olga.id}"], "roles": ["operator"]},
                {"name": "cara", "ids": [f"discord:{cara.id}", f"slack:{here.ann.id}"]},
            ]
            own = {
                "allowed_users": [str(cara.id)],
                "token": {"file": str(token)},
                "api_base_url": discord.url,
                "limits": "off",
            }
            path = directory / "zeroclaw.toml"
            before = tomllib.loads(path.read_text(encoding="utf-8"))
            tables = merged(before, {"people": people, "channels": {"discord": own}})
            path.write_text(toml(tables), encoding="utf-8")
            await here.daemon.start()
            await here.until(lambda: here.slack.connections)
            await discord.until(lambda: discord.identifies)
            yield Both(here=here, discord=discord, cara=cara)


async def test_the_operator_on_slack_approves_what_was_asked_on_discord(tmp_path: Path) -> None:
    """The card stands where the operator is; the answer goes back to where it was asked. S2-19, P5."""
    async with both(tmp_path) as stage:
        here = stage.here
        here.model.call("knock", {"what": "on wood"}, round=0)
        here.model.say("So be it.", round=1)
        stage.cara.says(stage.cara.direct, "please knock")
        card = await here.carded()
        assert "cara" in standing(card).text
        await here.olga.presses(str(card["ts"]), *here.button(card, "Approve once"))
        await stage.discord.until(lambda: "So be it." in stage.texts())
        assert here.bench.ran("knock") == ["on wood"]
        await here.until(lambda: "approved by" in str(here.messages(here.olga.direct)[0]))
        assert here.texts(here.ann.direct) == []


async def test_one_person_on_two_platforms_is_one_person(tmp_path: Path) -> None:
    """With a conversation in each place, and one language."""
    async with both(tmp_path) as stage:
        here = stage.here
        here.model.say("on Slack", key="one")
        here.model.say("on Discord", key="two")
        await here.ann.says("one")
        await here.answered(here.ann.direct, "on Slack")
        stage.cara.says(stage.cara.direct, "two")
        await stage.discord.until(lambda: stage.texts() == ["on Discord"])
        assert len(here.model.requests[-1].messages) == 2
        await here.ann.commands("language de")
        await here.until(lambda: len(here.texts(here.ann.direct)) == 2)
        stage.cara.says(stage.cara.direct, "/whoami")
        await stage.discord.until(lambda: "person:cara" in stage.texts()[-1])
        assert "du bist" in stage.texts()[-1].lower()
