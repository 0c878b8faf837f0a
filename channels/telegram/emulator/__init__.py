"""A Bot API server of our own, to try and to test a Telegram bot without Telegram.

    buckets entities links markdown_v2 html_markup   pure: how often, what is marked in a text
    account chats files updates shapes               pure: all that stands, and how the bot is told
    sending editing drafting about_bot about_chats   pure: the methods
    people view                                      pure: what people do, and what a page shows
    http bot_api polling delivering                  sockets and waits
    emulator actor                                   what a test acts by
    control site page/ stage                         what `zeroclaw try telegram` acts by

It knows nothing of the adapter, and the adapter nothing of it.
"""

from channels._remote.emulator.buckets import Rate
from channels.telegram.emulator.actor import Actor
from channels.telegram.emulator.buckets import Limits
from channels.telegram.emulator.chats import Chat, Message
from channels.telegram.emulator.emulator import Emulator
from channels.telegram.emulator.faults import BadGateway, BadMarkup, Hang, Lose, Refuse, TooMany
from channels.telegram.emulator.people import Deed
from channels.telegram.emulator.stage import emulate

__all__ = [
    "Actor",
    "BadGateway",
    "BadMarkup",
    "Chat",
    "Deed",
    "Emulator",
    "Hang",
    "Limits",
    "Lose",
    "Message",
    "Rate",
    "Refuse",
    "TooMany",
    "emulate",
]
