"""Events of the platform on their way to the channel."""

from dataclasses import dataclass

from zeroclaw_test_platform.chats import Message
from zeroclaw_test_platform.wire import Json


@dataclass(eq=False, kw_only=True)
class Event:
    """An action of a person, stored until the channel confirms it.

    Attributes:
        message: The message that was written, edited, deleted or pressed.
        deliveries: The number of times that it was sent to the bot.
        confirmed: The channel has confirmed it since the newest delivery.
        refused: The number of times that the channel asked for it again.
        toast: The text that the channel showed the person alone.
    """

    id: str
    body: Json
    message: Message
    deliveries: int = 0
    confirmed: bool = False
    refused: int = 0
    toast: str = ""
