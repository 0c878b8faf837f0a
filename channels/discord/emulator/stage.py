"""What `zeroclaw try discord` opens: a server with two people and a channel, and the page."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from channels._remote.emulator.cast import Cast
from channels._remote.emulator.http import Server
from channels._remote.emulator.site import Site, load_page
from channels.discord.emulator.control import Control
from channels.discord.emulator.server import DiscordServer
from zeroclaw import Emulated, EmulatorContext

TOKEN_VARIABLE = "EMULATED_DISCORD_TOKEN"  # noqa: S105  the name of a variable


@asynccontextmanager
async def emulate(context: EmulatorContext) -> AsyncGenerator[Emulated]:
    """Start the emulator: the page on the given port, the platform on another one.

    Raises:
        OSError: The port is in use.
    """
    page = await asyncio.to_thread(load_page)
    async with DiscordServer(clock=context.clock) as discord:
        discord.backend.bot_user.name = "zero"
        ann, olga = discord.person("Ann"), discord.person("Olga")
        cast = Cast(
            ann=str(ann.id),
            olga=str(olga.id),
            chats=(str(ann.direct), str(olga.direct)),
            room=str(discord.channel("room")),
        )
        control = Control(discord, {str(person.id): person for person in (ann, olga)}, cast)
        key = context.ids.token()
        site = Site(control, key=key, page=page)
        server = Server(site.answer, context.port)
        await server.up()
        keys = {"token": {"env": TOKEN_VARIABLE}, "api_base_url": discord.url}
        limits = {} if context.has_limits else {"limits": "off"}
        try:
            yield Emulated(
                page=f"http://127.0.0.1:{server.port}/{key}/",
                tables=cast.tables("discord", {**keys, **limits}),
                environment={TOKEN_VARIABLE: discord.token},
            )
        finally:
            await server.down()
