"""What `zeroclaw try slack` opens: a workspace with two people and a channel, and the page."""

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
    """Start the emulator: the page on the given port, the platform on another one.

    Raises:
        OSError: The port is in use, or npm can't be run.
        ConfigError: npm can't install the package.
    """
    page = await asyncio.to_thread(load_page)
    await asyncio.to_thread(install)
    async with SlackServer() as slack, asyncio.TaskGroup() as group:
        ann, olga = await slack.person(), await slack.person()
        room = await slack.channel(ann, olga)
        cast = Cast(ann=ann.id, olga=olga.id, chats=(ann.direct, olga.direct), room=room)
        control = Control(slack, {person.id: person for person in (ann, olga)}, cast, group)
        key = context.ids.token()
        server = Server(Site(control, key=key, page=page).answer, context.port)
        await server.up()
        keys = {
            "bot_token": {"env": BOT_VARIABLE},
            "app_token": {"env": APP_VARIABLE},
            "api_base_url": slack.url,
        }
        limits = {} if context.has_limits else {"limits": "off"}
        try:
            yield Emulated(
                page=f"http://127.0.0.1:{server.port}/{key}/",
                tables=cast.tables("slack", {**keys, **limits}),
                environment={BOT_VARIABLE: BOT, APP_VARIABLE: APP},
            )
        finally:
            await server.down()
