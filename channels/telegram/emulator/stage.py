"""Telegram with somebody who talks to the bot, an operator, a group, and a page to act by.

What `zeroclaw try telegram` opens.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from channels.telegram.emulator.buckets import Limits
from channels.telegram.emulator.control import Control
from channels.telegram.emulator.emulator import BOT_ID, Emulator
from channels.telegram.emulator.site import Site, load_page
from zeroclaw import Emulated, EmulatorContext

TOKEN_VARIABLE = "EMULATED_TELEGRAM_TOKEN"  # noqa: S105  the name of a variable

# A small model asks for no tools; so somebody who is no operator sees how one is asked for.
TOOLS_FOR_ANN = {
    "id": "ann-tries-tools",
    "effect": "allow",
    "principals": ["person:ann"],
    "actions": ["command:tool"],
}


@asynccontextmanager
async def emulate(context: EmulatorContext) -> AsyncGenerator[Emulated]:
    """Open it.

    Raises:
        OSError: The port is taken.
    """
    page = await asyncio.to_thread(load_page)
    token = f"{BOT_ID}:{context.ids.token()}"
    limits = Limits() if context.has_limits else None
    telegram = Emulator(clock=context.clock, limits=limits, port=context.port, token=token)
    async with telegram:
        ann = telegram.person("Ann", username="ann")
        olga = telegram.person("Olga", username="olga")
        room = telegram.supergroup("Room", ann, olga)
        actors = {one.id: one for one in (ann, olga)}
        people = (
            {"id": ann.id, "name": "Ann", "role": "somebody who talks with the bot"},
            {"id": olga.id, "name": "Olga", "role": "an operator, who is asked"},
        )
        key = context.ids.token()
        cast = {"people": people, "room": room.id}
        site = Site(telegram, Control(telegram, actors), key=key, page=page, cast=cast)
        telegram.site = site.answer
        kept = {} if context.has_limits else {"limits": "off"}
        yield Emulated(
            page=f"{telegram.url}/{key}/",
            tables={
                "channels": {
                    "telegram": {
                        "token": {"env": TOKEN_VARIABLE},
                        "api_base_url": telegram.url,
                        "allowed_users": [str(ann.id), str(olga.id)],
                        **kept,
                    }
                },
                "policy": {"statement": [TOOLS_FOR_ANN]},
                "people": [
                    {"name": "ann", "ids": [f"telegram:{ann.id}"]},
                    {"name": "olga", "ids": [f"telegram:{olga.id}"], "roles": ["operator"]},
                ],
            },
            environment={TOKEN_VARIABLE: token},
        )
