"""Slack with somebody who talks to the bot, an operator, a channel, and a page to act by.

What `zeroclaw try slack` opens.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from channels._remote.emulator.cast import Cast
from channels._remote.emulator.http import Server
from channels._remote.emulator.site import Site, load_page
from channels.slack.emulator.control import Control
from channels.slack.emulator.server import APP, BOT, SlackServer, install
from zeroclaw import Emulated, EmulatorContext

BOT_VARIABLE, APP_VARIABLE = "EMULATED_SLACK_BOT_TOKEN", "EMULATED_SLACK_APP_TOKEN"


@asynccontextmanager
async def emulate(context: EmulatorContext) -> AsyncGenerator[Emulated]:
    """Open it; the page answers at the port that was asked for, the platform at one of its own.

    Raises:
        OSError: The port is taken, or the package from npm can't be had.
    """
    page = await asyncio.to_thread(load_page)
    await asyncio.to_thread(install)
    async with SlackServer() as slack, asyncio.TaskGroup() as group:
        ann, olga = await slack.person(), await slack.person()
        room = await slack.channel(ann, olga)
        cast = Cast(ann=ann.id, olga=olga.id, chats=(ann.direct, olga.direct), room=room)
        control = Control(slack, {one.id: one for one in (ann, olga)}, cast, group)
        key = context.ids.token()
        server = Server(Site(control, key=key, page=page).answer, context.port)
        await server.up()
        keys = {
            "bot_token": {"env": BOT_VARIABLE},
            "app_token": {"env": APP_VARIABLE},
            "api_base_url": slack.url,
        }
        kept = {} if context.has_limits else {"limits": "off"}
        try:
            yield Emulated(
                page=f"http://127.0.0.1:{server.port}/{key}/",
                tables=cast.tables("slack", {**keys, **kept}),
                environment={BOT_VARIABLE: BOT, APP_VARIABLE: APP},
            )
        finally:
            await server.down()
