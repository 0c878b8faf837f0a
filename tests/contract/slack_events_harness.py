"""Slack under the contract suite, when it calls us: signed posts to the real public listener.

All messages are in a thread, where answers are streamed.
"""

import dataclasses
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from channels.slack import SlackSettings
from channels.slack.emulator.server import BOT, SIGNING_SECRET, SlackServer
from tests.contract.slack_harness import SETTINGS, SLACK, SlackHarness, slack_context, slack_with
from tests.contract.telegram_webhook_harness import OnPublic, public_listener
from tests.fakes.manual_clock import ManualClock
from zeroclaw import ChannelContext, SecretReference, replace
from zeroclaw.host.public_listener import PublicListener

CALLED = SlackSettings(
    bot_token=SETTINGS.bot_token,
    receive="webhook",
    signing_secret=SecretReference(env="SIGNING"),
    api_base_url=SETTINGS.api_base_url,
)


def called_context(
    listener: PublicListener, slack: SlackServer, clock: ManualClock
) -> ChannelContext:
    slack.request_url = f"http://127.0.0.1:{listener.port}{CALLED.webhook_path}"
    slack.now = lambda: clock.now().timestamp()
    secrets = {"bot_token": BOT, "signing_secret": SIGNING_SECRET}
    context = slack_context(slack, clock, CALLED)
    return replace(context, secrets=secrets, mount=OnPublic(listener))


@asynccontextmanager
async def slack_called(directory: Path) -> AsyncGenerator[SlackHarness]:
    async with (
        public_listener() as listener,
        slack_with(
            lambda slack, clock: called_context(listener, slack, clock), in_thread=True
        ) as harness,
    ):
        yield harness


SLACK_BY_WEBHOOK = dataclasses.replace(
    SLACK, name="slack, by webhook", platform=slack_called, placed=None
)
