"""One agent on several real platforms: a call requested on one is approved on another.

`tests/unit/inbound/test_across_channels.py` tests the rules without a process; these tests combine the
buttons, codes and ids of real adapters.
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
        """The bot's messages in Cara's direct chat on Discord."""
        return [message.content for message in self.discord.from_bot(self.cara.direct)]


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


def configure(directory: Path, tables: Mapping[str, object]) -> None:
    """Lay tables over the configuration that is there."""
    path = directory / "zeroclaw.toml"
    before = tomllib.loads(path.read_text(encoding="utf-8"))
    path.write_text(toml(merged(before, tables)), encoding="utf-8")


@asynccontextmanager
async def open_both(directory: Path) -> AsyncGenerator[Both]:
    async with on_discord() as (discord, cara), bot(directory, start=False) as world:
        people = [
            {"name": "olga", "ids": [f"slack:{world.olga.id}"], "roles": ["operator"]},
            {"name": "cara", "ids": [f"discord:{cara.id}", f"slack:{world.ann.id}"]},
        ]
        tables = discord_settings(directory, discord, cara)
        configure(directory, {"people": people, "channels": {"discord": tables}})
        await world.daemon.start()
        await world.until(lambda: world.slack.connections)
        await discord.until(lambda: discord.identifies)
        yield Both(world=world, discord=discord, cara=cara)


async def test_the_operator_on_slack_approves_a_request_of_discord(tmp_path: Path) -> None:
    """The card appears on the operator's platform, the answer on the asker's. S2-19, P5."""
    async with open_both(tmp_path) as platforms:
        world = platforms.world
        world.model.call("knock", {"what": "on wood"}, round=0)
        world.model.say("So be it.", round=1)
        platforms.cara.says(platforms.cara.direct, "please knock")
        card = await world.card()
        assert "cara" in standing(card).text
        await world.olga.presses(str(card["ts"]), *world.button(card, "Approve once"))
        await platforms.discord.until(lambda: "So be it." in platforms.texts())
        assert world.bench.ran("knock") == ["on wood"]
        await world.until(lambda: "approved by" in str(world.messages(world.olga.direct)[0]))
        assert world.texts(world.ann.direct) == []


@dataclass(frozen=True, kw_only=True)
class Posted:
    """One daemon on Slack, on Discord and on a mail account.

    Attributes:
        world: Its Slack; Olga, Bob and the bot are in the channel `operators`.
        discord: Where Cara is.
        ann: Her mail address; on Slack she has no role.
        olga: Olga's mail address, for approvals by mail.
    """

    world: Bot
    discord: DiscordServer
    cara: Person
    mail: Servers
    operators: str
    bot: str
    ann: str
    olga: str

    async def deliver(self, sender: str, text: str, *, subject: str) -> None:
        """Write to the bot from an address that the server authenticates."""
        mail = mail_from(sender, self.bot, text, subject=subject, in_reply_to="")
        await self.mail.deliver(self.bot, mail.as_bytes(), sender=sender)

    async def until(self, address: str, condition: Callable[[list[EmailMessage]], T]) -> T:
        """Wait until `holds` is true of all mails of an address, by polling: mail has no events."""
        poll = Event()
        async with asyncio.timeout(PATIENCE_S):
            while not (found := condition(await self.mail.mails(address))):
                self.world.daemon.check()
                await asyncio.to_thread(poll.wait, 0.02)
        return found


@asynccontextmanager
async def open_posted(directory: Path, *, asks_on_slack: bool) -> AsyncGenerator[Posted]:
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
        tables = {
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
        configure(directory, tables)
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
async def test_a_request_by_mail_is_answered_in_a_channel_of_operators_on_slack(
    tmp_path: Path,
) -> None:
    """By an operator alone, across a kill, once; who asked reads the answer in their mail. S2-19, P5."""
    async with open_posted(tmp_path, asks_on_slack=True) as platforms:
        world, place = platforms.world, platforms.operators
        world.model.call("knock", {"what": "on wood"}, round=0)
        world.model.say("So be it.", round=1)
        await platforms.deliver(platforms.ann, "please knock", subject="a favour")
        [card] = await world.until(lambda: world.messages(place))
        assert standing(card).text.startswith("Ann asks")
        button = world.button(card, "Approve once")
        await world.bob.presses(str(card["ts"]), *button, channel=place)
        await world.until(lambda: world.slack.ephemeral)
        assert "only an operator may answer this" in str(world.slack.ephemeral)
        await world.restart()
        await world.olga.presses(str(card["ts"]), *button, channel=place)
        await platforms.until(platforms.ann, lambda mails: "So be it." in map(body, mails))
        await world.olga.presses(str(card["ts"]), *button, channel=place)
        await world.until(lambda: "already approved by olga" in str(world.slack.ephemeral))
        assert world.bench.ran("knock") == ["on wood"]
        await world.until(lambda: "approved by olga" in str(world.messages(place)[0]))
        assert (world.messages(world.olga.direct), world.texts(world.ann.direct)) == ([], [])


@pytest.mark.needs("dovecot", "postfix")
async def test_a_request_on_slack_or_discord_is_answered_by_mail(tmp_path: Path) -> None:
    """By a code that counts in the mail of the operator alone, across a kill. S2-10, S2-19, P5."""
    async with open_posted(tmp_path, asks_on_slack=False) as platforms:
        world = platforms.world
        world.model.call("knock", {"what": "on wood"}, round=0)
        world.model.say("So be it.", round=1)
        await world.ann.says("please knock")
        card = await platforms.until(
            platforms.olga, lambda mails: [mail for mail in mails if links(mail)]
        )
        once = links(card[0])[0]
        await platforms.deliver(platforms.ann, "", subject=once)
        await world.restart()
        await platforms.deliver(platforms.olga, "", subject=once)
        await world.until(lambda: "So be it." in world.texts(world.ann.direct))
        await platforms.until(
            platforms.olga, lambda mails: "approved by olga" in "".join(map(body, mails))
        )
        assert world.bench.ran("knock") == ["on wood"]
        world.model.call("knock", {"what": "on glass"}, key="and you", round=0)
        world.model.say("So be it.", key="and you", round=1)
        platforms.cara.says(platforms.cara.direct, "and you")
        card = await platforms.until(
            platforms.olga,
            lambda mails: [mail for mail in mails if links(mail) and "cara" in body(mail)],
        )
        await platforms.deliver(platforms.olga, "", subject=links(card[0])[0])
        place = platforms.cara.direct
        await platforms.discord.until(
            lambda: [
                mail for mail in platforms.discord.from_bot(place) if "So be it." in mail.content
            ]
        )
        assert world.bench.ran("knock") == ["on wood", "on glass"]


async def test_one_person_on_two_platforms_is_one_person(tmp_path: Path) -> None:
    """With a conversation in each place, and one language."""
    async with open_both(tmp_path) as platforms:
        world = platforms.world
        world.model.say("on Slack", key="one")
        world.model.say("on Discord", key="two")
        await world.ann.says("one")
        await world.expect(world.ann.direct, "on Slack")
        platforms.cara.says(platforms.cara.direct, "two")
        await platforms.discord.until(lambda: platforms.texts() == ["on Discord"])
        assert len(world.model.requests[-1].messages) == 2
        await world.ann.commands("language de")
        await world.until(lambda: len(world.texts(world.ann.direct)) == 2)
        platforms.cara.says(platforms.cara.direct, "/whoami")
        await platforms.discord.until(lambda: "person:cara" in platforms.texts()[-1])
        assert "du bist" in platforms.texts()[-1].lower()
