"""Something that a person did on the platform, on its way to the channel."""

from dataclasses import dataclass

from zeroclaw_test_platform.chats import Message
from zeroclaw_test_platform.wire import Json


@dataclass(eq=False, kw_only=True)
class Event:
    """Something that a person did; kept until the channel confirms it.

    Attributes:
        message: What was written, edited, deleted or pressed.
        deliveries: How often it was sent to the bot.
        confirmed: The channel said that it was received, after the newest delivery.
        refused: How often the channel asked for it again.
        toast: What the channel showed the person alone.
    """

    id: str
    body: Json
    message: Message
    deliveries: int = 0
    confirmed: bool = False
    refused: int = 0
    toast: str = ""
