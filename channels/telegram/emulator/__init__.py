"""A Bot API server of our own, to try and to test a Telegram bot without Telegram.

    buckets entities links markdown_v2 html_markup   pure: how often, what is marked in a text
    account chats files updates shapes               pure: all that stands, and how the bot is told
    sending editing drafting about_bot about_chats   pure: the methods
    people                                           pure: what people do
    http bot_api polling delivering                  sockets and waits
    actor emulator                                   what a test, or the page, acts by

It knows nothing of the adapter, and the adapter nothing of it.
"""

from channels.telegram.emulator.actor import Actor
from channels.telegram.emulator.buckets import Limits, Rate
from channels.telegram.emulator.chats import Chat, Message
from channels.telegram.emulator.emulator import Emulator
from channels.telegram.emulator.faults import BadGateway, BadMarkup, Hang, Lose, Refuse, TooMany
from channels.telegram.emulator.people import Deed

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
]
