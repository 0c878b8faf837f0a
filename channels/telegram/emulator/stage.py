"""What `zeroclaw try telegram` opens: Telegram with two people and a group, and the page."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from channels._remote.emulator.cast import Cast
from channels._remote.emulator.site import Site, load_page
from channels.telegram.emulator.buckets import Limits
from channels.telegram.emulator.control import Control
from channels.telegram.emulator.emulator import BOT_ID, Emulator
from zeroclaw import Emulated, EmulatorContext

TOKEN_VARIABLE = "EMULATED_TELEGRAM_TOKEN"  # noqa: S105  the name of a variable


@asynccontextmanager
async def emulate(context: EmulatorContext) -> AsyncGenerator[Emulated]:
    """Start the emulator; the page and the platform share the given port.

    Raises:
        OSError: The port is in use.
    """
    page = await asyncio.to_thread(load_page)
    token = f"{BOT_ID}:{context.ids.token()}"
    limits = Limits() if context.has_limits else None
    telegram = Emulator(clock=context.clock, limits=limits, port=context.port, token=token)
    async with telegram:
        ann = telegram.person("Ann", username="ann")
        olga = telegram.person("Olga", username="olga")
        room = telegram.supergroup("Room", ann, olga)
        # A private chat has the person's id.
        cast = Cast(ann=ann.id, olga=olga.id, chats=(ann.id, olga.id), room=room.id)
        control = Control(telegram, {actor.id: actor for actor in (ann, olga)}, cast)
        key = context.ids.token()
        telegram.site = Site(control, key=key, page=page).answer
        keys = {"token": {"env": TOKEN_VARIABLE}, "api_base_url": telegram.url}
        limits_key = {} if context.has_limits else {"limits": "off"}
        yield Emulated(
            page=f"{telegram.url}/{key}/",
            tables=cast.tables("telegram", {**keys, **limits_key}),
            environment={TOKEN_VARIABLE: token},
        )
