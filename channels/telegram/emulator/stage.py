"""Telegram with somebody who talks to the bot, an operator, a group, and a page to act by.

What `zeroclaw try telegram` opens.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from channels._remote.emulator.site import Site, load_page
from channels.telegram.emulator.actor import Actor
from channels.telegram.emulator.buckets import Limits
from channels.telegram.emulator.control import Control
from channels.telegram.emulator.emulator import BOT_ID, Emulator
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
            {**_shown(ann), "role": "somebody who talks with the bot"},
            {**_shown(olga), "role": "an operator, who is asked"},
        )
        key = context.ids.token()
        control = Control(telegram, actors, {"people": people, "room": room.id})
        site = Site(control, port=telegram.port, key=key, page=page)
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


def _shown(actor: Actor) -> dict[str, object]:
    return {"id": actor.id, "chat": actor.chat.id, "name": actor.person.first_name}
