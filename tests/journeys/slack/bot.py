"""The world of a Slack journey: a Slack workspace, a model, tools, the real daemon.

Ann and Bob may write to the bot; Olga is an operator; Mallory is a stranger. As in
`tests/journeys/world.py` the clock is the real one, and nothing waits for time to pass.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from channels.slack.emulator.server import (
    APP,
    BOT,
    PATIENCE_S,
    SIGNING_SECRET,
    Json,
    Person,
    SlackServer,
)
from tests.contract.slack_harness import standing
from tests.emulators.model_server import ModelServer
from tests.faults.fork_client import PRODUCT
from tests.journeys.bench import Bench
from tests.journeys.daemon_process import DaemonProcess
from tests.journeys.harness import ends_cleanly, open_harness, people
from zeroclaw.host.clock import SystemClock

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Bot:
    """One journey."""

    slack: SlackServer
    model: ModelServer
    bench: Bench
    daemon: DaemonProcess
    team: str
    ann: Person
    bob: Person
    olga: Person
    mallory: Person

    async def until(self, condition: Callable[[], T]) -> T:
        """Wait until a condition holds; fail when the daemon dies.

        It is checked here, for inside the emulator nothing may read a file.
        """
        async with asyncio.timeout(PATIENCE_S):
            while not (found := self.daemon.check() or condition()):
                await self.slack.next_change().wait()
        return found

    def messages(self, channel: str) -> list[Json]:
        """The bot's messages of a chat, in order."""
        return [*self.slack.bot_messages.get(channel, {}).values()]

    def texts(self, channel: str, *, thread: str = "") -> list[str]:
        """Their texts, without cards."""
        return [
            standing(message, self.slack).text
            for message in self.messages(channel)
            if not _is_card(message) and (message.get("thread_ts") or "") == thread
        ]

    async def expect(self, channel: str, *texts: str, thread: str = "") -> None:
        """Wait until the bot's messages of a chat are exactly these."""
        await self.until(lambda: self.texts(channel, thread=thread) == list(texts))

    async def card(self) -> Json:
        """Wait for a card that Olga can press, and return the newest."""
        found = await self.until(
            lambda: [
                message
                for message in self.messages(self.olga.direct)
                if standing(message, self.slack).buttons
            ]
        )
        return found[-1]

    async def restart(self) -> None:
        """Kill the daemon with -9, start it again, and wait until it hears."""
        begun = self.slack.connections
        await self.daemon.restart()
        await self.until(lambda: self.slack.connections > begun)

    def button(self, card: Json, label: str) -> tuple[str, str]:
        """The ids of a card's button: its action, and the call."""
        rows = [block for block in cast("list[Json]", card["blocks"]) if block["type"] == "actions"]
        buttons = [element for row in rows for element in cast("list[Json]", row["elements"])]
        by_label = {str(cast("Json", button["text"])["text"]): button for button in buttons}
        return str(by_label[label]["action_id"]), str(by_label[label]["value"])


def _is_card(message: Json) -> bool:
    return any(block["type"] == "rich_text" for block in cast("list[Json]", message["blocks"]))


@asynccontextmanager
async def bot(
    directory: Path,
    *,
    start: bool = True,
    environment: Mapping[str, str] | None = None,
    command: tuple[str, ...] = PRODUCT,
    channel: Mapping[str, object] | None = None,
    port: int = 0,
    **config: object,
) -> AsyncGenerator[Bot]:
    """Open everything and start the daemon; then stop it and check that it ends.

    With a port Slack calls the daemon there; else the daemon connects to Slack.
    """
    async with (
        SlackServer() as slack,
        open_harness(directory, ModelServer(), slack.wake) as harness,
    ):
        ann, bob, olga, mallory = [await slack.person() for _ in range(4)]
        team = await slack.channel(ann, bob, mallory)
        way: dict[str, object] = {"app_token": {"env": "JOURNEY_SLACK_APP"}}
        if port:
            way = {"receive": "webhook", "signing_secret": {"env": "JOURNEY_SLACK_SIGNING"}}
            config |= {"public": {"port": port}}
            slack.request_url = f"http://127.0.0.1:{port}/slack"
            slack.now = lambda: SystemClock().now().timestamp()
        own = {
            "people": people("slack", olga=olga.id, ann=ann.id, bob=bob.id),
            "channels": {
                "slack": {
                    "allowed_users": [person.id for person in (ann, bob, olga)],
                    "bot_token": {"env": "JOURNEY_SLACK_BOT"},
                    **way,
                    "api_base_url": slack.url,
                    "limits": "off",
                    **(channel or {}),
                }
            },
        }
        secrets = {"JOURNEY_SLACK_BOT": BOT, "JOURNEY_SLACK_APP": APP}
        secrets["JOURNEY_SLACK_SIGNING"] = SIGNING_SECRET
        daemon = harness.daemon(
            own, config, environment=secrets | dict(environment or {}), command=command
        )
        world = Bot(
            slack=slack,
            model=harness.model,
            bench=harness.bench,
            daemon=daemon,
            team=team,
            ann=ann,
            bob=bob,
            olga=olga,
            mallory=mallory,
        )
        async with ends_cleanly(daemon, secrets, lambda: slack.bot_messages):
            if start:
                await daemon.start()
                await (slack.verify_url() if port else world.until(lambda: slack.connections))
            yield world
