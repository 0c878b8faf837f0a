"""Messages whose answers are lost, and how they are looked for."""

import pytest

from channels.telegram.emulator import Lose
from tests.unit.channels.telegram.stage import Stage
from zeroclaw import Address, DeliveryUnknown


async def begun(on: Stage) -> int:
    """Let Ann's chat begin with a message of the bot, so that a number is known."""
    ann = on.telegram.person("Ann")
    await on.channel.send(on.place(ann.id), on.outgoing("first"))
    return ann.id


async def lost(on: Stage, to: Address, text: str = "hello") -> str:
    """Send a message whose answer is lost; return the mark of before."""
    mark = on.channel.mark(to)
    on.telegram.will("sendMessage", Lose(carried_out=True))
    with pytest.raises(DeliveryUnknown):
        await on.channel.send(to, on.outgoing(text))
    return mark


async def unknown(on: Stage, place: Address) -> None:
    with pytest.raises(DeliveryUnknown):
        await on.channel.send(place, on.outgoing("hello"))
