"""One agent on several real platforms: what is asked on one is approved on another.

The rules are held in `tests/unit/inbound/test_across_channels.py`, without a process; here the buttons,
codes and ids of real adapters meet.
"""

import asyncio
import tomllib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from threading import Event
from typing import TypeVar

import pytest

from channels.discord.emulator.server import DiscordServer, Person
from channels.email.emulator.servers import PASSWORD, Servers, servers
from tests.contract.email_harness import body, email_settings, links, mail_from
from tests.contract.slack_harness import standing
from tests.journeys.configuration import merged, toml
from tests.journeys.daemon_process import PATIENCE_S
from tests.journeys.email.mailing import read_from
from tests.journeys.slack.bot import Bot, bot
from zeroclaw.host.clock import SystemClock

pytestmark = [pytest.mark.slow, pytest.mark.needs("emulate")]
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Both:
    """One daemon on Slack and Discord.

    Attributes:
        world: Its Slack; Olga, the operator, is there alone.
        cara: On Discord, and on Slack as Ann.
    """

    world: Bot
    discord: DiscordServer
    cara: Person

    def texts(self) -> list[str]:
        """What stands in Cara's direct chat on Discord."""
        return [one.content for one in self.discord.from_bot(self.cara.direct)]


@asynccontextmanager
async def on_discord() -> AsyncGenerator[tuple[DiscordServer, Person]]:
    """Start a Discord with one person."""
    async with DiscordServer(clock=SystemClock()) as discord:
        discord.patience_s = PATIENCE_S
        yield discord, discord.person("cara")


def discord_settings(directory: Path, discord: DiscordServer, cara: Person) -> dict[str, object]:
    """The table of a bot there, to whom that person may write."""
    token = directory / "token"
    token.write_text(discord.token)
    token.chmod(0o600)
    return {
        "allowed_users": [str(cara.id)],
        "token": {"file": str(token)},
        "api_base_url": discord.url,
        "limits": "off",
    }


def configure(directory: Path, own: Mapping[str, object]) -> None:
    """Lay tables over the configuration that is there."""
    path = directory / "zeroclaw.toml"
    before = tomllib.loads(path.read_text(encoding="utf-8"))
    path.write_text(toml(merged(before, own)), encoding="utf-8")


@asynccontextmanager
async def both(directory: Path) -> AsyncGenerator[Both]:
    async with on_discord() as (discord, cara), bot(directory, start=False) as world:
        people = [
            {"name": "olga", "ids": [f"slack:{world.olga.id}"], "roles": ["operator"]},
            {"name": "cara", "ids": [f"discord:{cara.id}", f"slack:{world.ann.id}"]},
        ]
        own = discord_settings(directory, discord, cara)
        configure(directory, {"people": people, "channels": {"discord": own}})
        await world.daemon.start()
        await world.until(lambda: world.slack.connections)
        await discord.until(lambda: discord.identifies)
        yield Both(world=world, discord=discord, cara=cara)


async def test_the_operator_on_slack_approves_what_was_asked_on_discord(tmp_path: Path) -> None:
    """The card stands where the operator is; the answer goes back to where it was asked. S2-19, P5."""
    async with both(tmp_path) as stage:
        world = stage.world
        world.model.call("knock", {"what": "on wood"}, round=0)
        world.model.say("So be it.", round=1)
        stage.cara.says(stage.cara.direct, "please knock")
        card = await world.card()
        assert "cara" in standing(card).text
        await world.olga.presses(str(card["ts"]), *world.button(card, "Approve once"))
        await stage.discord.until(lambda: "So be it." in stage.texts())
        assert world.bench.ran("knock") == ["on wood"]
        await world.until(lambda: "approved by" in str(world.messages(world.olga.direct)[0]))
        assert world.texts(world.ann.direct) == []


@dataclass(frozen=True, kw_only=True)
class Posted:
    """One daemon on Slack, on Discord and on a mail account.

    Attributes:
        world: Its Slack; Olga, Bob and the bot are in the channel `operators`.
        discord: Where Cara is.
        ann: An address; on Slack she is nobody.
        olga: An address of Olga's, who answers by mail where `operators` is not asked.
    """

    world: Bot
    discord: DiscordServer
    cara: Person
    mail: Servers
    operators: str
    bot: str
    ann: str
    olga: str

    async def says(self, sender: str, text: str, *, subject: str) -> None:
        """Write to the bot as somebody for whom the server vouches."""
        mail = mail_from(sender, self.bot, text, subject=subject, in_reply_to="")
        await self.mail.deliver(self.bot, mail.as_bytes(), sender=sender)

    async def until(self, who: str, holds: Callable[[list[EmailMessage]], T]) -> T:
        """Wait until something holds of all mails that came to somebody; they tell nobody."""
        beat = Event()
        async with asyncio.timeout(PATIENCE_S):
            while not (found := holds(await self.mail.mails(who))):
                self.world.daemon.check()
                await asyncio.to_thread(beat.wait, 0.02)
        return found


@asynccontextmanager
async def posted(directory: Path, *, asks_on_slack: bool) -> AsyncGenerator[Posted]:
    mail = await asyncio.to_thread(servers)
    address, ann, olga = map(mail.new_address, ("bot", "ann", "olga"))
    password = {"JOURNEY_MAIL_PASSWORD": PASSWORD}
    async with (
        on_discord() as (discord, cara),
        bot(directory, start=False, environment=password) as world,
    ):
        operators = await world.slack.channel(world.olga, world.bob)
        ids = [f"slack:{world.olga.id}"] if asks_on_slack else [f"email:{olga}"]
        settings = email_settings(mail, address).model_dump(exclude_defaults=True, mode="json")
        own = {
            "approvals": {"chat": f"slack:{operators}" if asks_on_slack else ""},
            "people": [
                {"name": "olga", "ids": ids, "roles": ["operator"]},
                {"name": "ann", "ids": [f"email:{ann}", f"slack:{world.ann.id}"]},
                {"name": "bob", "ids": [f"slack:{world.bob.id}"]},
                {"name": "cara", "ids": [f"discord:{cara.id}"]},
            ],
            "channels": {
                "discord": discord_settings(directory, discord, cara),
                "email": {
                    **settings,
                    "password": {"env": "JOURNEY_MAIL_PASSWORD"},
                    "allowed_users": [ann, olga],
                },
            },
        }
        configure(directory, own)
        await world.daemon.start()
        await world.until(lambda: world.slack.connections)
        await discord.until(lambda: discord.identifies)
        await asyncio.to_thread(read_from, directory)
        yield Posted(
            world=world,
            discord=discord,
            cara=cara,
            mail=mail,
            operators=operators,
            bot=address,
            ann=ann,
            olga=olga,
        )


@pytest.mark.needs("dovecot", "postfix")
async def test_what_is_asked_by_mail_is_answered_in_a_channel_of_operators_on_slack(
    tmp_path: Path,
) -> None:
    """By an operator alone, across a kill, once; who asked reads the answer in their mail. S2-19, P5."""
    async with posted(tmp_path, asks_on_slack=True) as stage:
        world, place = stage.world, stage.operators
        world.model.call("knock", {"what": "on wood"}, round=0)
        world.model.say("So be it.", round=1)
        await stage.says(stage.ann, "please knock", subject="a favour")
        [card] = await world.until(lambda: world.messages(place))
        assert standing(card).text.startswith("Ann asks")
        button = world.button(card, "Approve once")
        await world.bob.presses(str(card["ts"]), *button, channel=place)
        await world.until(lambda: world.slack.ephemeral)
        assert "only an operator may answer this" in str(world.slack.ephemeral)
        await world.restart()
        await world.olga.presses(str(card["ts"]), *button, channel=place)
        await stage.until(stage.ann, lambda mails: "So be it." in map(body, mails))
        await world.olga.presses(str(card["ts"]), *button, channel=place)
        await world.until(lambda: "already approved by olga" in str(world.slack.ephemeral))
        assert world.bench.ran("knock") == ["on wood"]
        await world.until(lambda: "approved by olga" in str(world.messages(place)[0]))
        assert (world.messages(world.olga.direct), world.texts(world.ann.direct)) == ([], [])


@pytest.mark.needs("dovecot", "postfix")
async def test_what_is_asked_on_slack_or_discord_is_answered_by_mail(tmp_path: Path) -> None:
    """By a code that counts in the mail of the operator alone, across a kill. S2-10, S2-19, P5."""
    async with posted(tmp_path, asks_on_slack=False) as stage:
        world = stage.world
        world.model.call("knock", {"what": "on wood"}, round=0)
        world.model.say("So be it.", round=1)
        await world.ann.says("please knock")
        card = await stage.until(stage.olga, lambda mails: [one for one in mails if links(one)])
        once = links(card[0])[0]
        await stage.says(stage.ann, "", subject=once)
        await world.restart()
        await stage.says(stage.olga, "", subject=once)
        await world.until(lambda: "So be it." in world.texts(world.ann.direct))
        await stage.until(stage.olga, lambda mails: "approved by olga" in "".join(map(body, mails)))
        assert world.bench.ran("knock") == ["on wood"]
        world.model.call("knock", {"what": "on glass"}, key="and you", round=0)
        world.model.say("So be it.", key="and you", round=1)
        stage.cara.says(stage.cara.direct, "and you")
        card = await stage.until(
            stage.olga, lambda mails: [one for one in mails if links(one) and "cara" in body(one)]
        )
        await stage.says(stage.olga, "", subject=links(card[0])[0])
        place = stage.cara.direct
        await stage.discord.until(
            lambda: [one for one in stage.discord.from_bot(place) if "So be it." in one.content]
        )
        assert world.bench.ran("knock") == ["on wood", "on glass"]


async def test_one_person_on_two_platforms_is_one_person(tmp_path: Path) -> None:
    """With a conversation in each place, and one language."""
    async with both(tmp_path) as stage:
        world = stage.world
        world.model.say("on Slack", key="one")
        world.model.say("on Discord", key="two")
        await world.ann.says("one")
        await world.expect(world.ann.direct, "on Slack")
        stage.cara.says(stage.cara.direct, "two")
        await stage.discord.until(lambda: stage.texts() == ["on Discord"])
        assert len(world.model.requests[-1].messages) == 2
        await world.ann.commands("language de")
        await world.until(lambda: len(world.texts(world.ann.direct)) == 2)
        stage.cara.says(stage.cara.direct, "/whoami")
        await stage.discord.until(lambda: "person:cara" in stage.texts()[-1])
        assert "du bist" in stage.texts()[-1].lower()
