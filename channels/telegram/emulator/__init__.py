"""A local Bot API server, to try and test a Telegram bot without Telegram.

    buckets entities links markdown_v2 html_markup   pure: rate limits, and marks in texts
    account chats files updates shapes               pure: the state, and its form in the Bot API
    send_methods edit_methods draft_methods          pure: the methods
    bot_methods chat_methods message_fields
    people view                                      pure: people's actions, and what the page shows
    bot_api polling webhook_delivery                 sockets and waits
    emulator actor                                   for tests
    control stage                                    for `zeroclaw try telegram`

It does not import the adapter, and the adapter does not import it.
"""

from channels._remote.emulator.buckets import Rate
from channels.telegram.emulator.actor import Actor
from channels.telegram.emulator.buckets import Limits
from channels.telegram.emulator.chats import Chat, Message
from channels.telegram.emulator.emulator import Emulator
from channels.telegram.emulator.faults import BadGateway, BadMarkup, Hang, Lose, Refuse, TooMany
from channels.telegram.emulator.people import UserAction
from channels.telegram.emulator.stage import emulate

__all__ = [
    "Actor",
    "BadGateway",
    "BadMarkup",
    "Chat",
    "Emulator",
    "Hang",
    "Limits",
    "Lose",
    "Message",
    "Rate",
    "Refuse",
    "TooMany",
    "UserAction",
    "emulate",
]
