"""Which numbers messages have: the newest of each counter, and the newest ones that are known.

Telegram numbers the messages of private chats and basic groups by one counter of the account, those
of a supergroup by its own. A number is never given twice by a counter, so one that is known to be
somebody's message is nobody else's (read 2026-11, in the Bot API's notes on message identifiers).

The number of each message that is taken in is stored with it, so that a process knows from the first
moment above which number whatever it sends will stand.
"""

from collections import deque
from collections.abc import Mapping

from zeroclaw import Position

KNOWN_OF_ALL = 2048
"""Numbers that are remembered of the counter that many chats share."""
KNOWN_OF_ONE = 128
"""Numbers that are remembered of one supergroup."""
MOST_COUNTERS = 1024
"""Counters that are remembered: anybody may take the bot into a group, and be heard there."""
_SUPERGROUP = "-100"  # what the ids of supergroups begin with
_SHARED = "shared"
"""The scope of the counter that many chats share."""


class Numbers:
    """All counters of one account."""

    def __init__(self, positions: Mapping[str, str]) -> None:
        """Begin with those that were stored, by scope."""
        self._newest: dict[str, int] = {}
        self._known: dict[str, deque[int]] = {}
        for scope, cursor in positions.items():
            if cursor.isdecimal():
                self.saw("" if scope == _SHARED else scope, int(cursor))

    def saw(self, chat: str, number: int) -> None:
        """Take note of a message of anybody's; an old one may come again."""
        counter = _counter(chat)
        # Behind all others, which are in the order in which they were seen last.
        self._newest[counter] = max(number, self._newest.pop(counter, 0))
        if len(self._newest) > MOST_COUNTERS:
            oldest = next(filter(None, self._newest))  # not the one that many chats share
            del self._newest[oldest], self._known[oldest]
        most = KNOWN_OF_ONE if counter else KNOWN_OF_ALL
        self._known.setdefault(counter, deque(maxlen=most)).append(number)

    def newest(self, chat: str) -> int:
        """Return the newest known number of a chat's counter, 0 for none."""
        return self._newest.get(_counter(chat), 0)

    def known(self, chat: str) -> frozenset[int]:
        """Return the numbers that are known to be messages, those seen last."""
        return frozenset(self._known.get(_counter(chat), ()))


def position(chat: str, number: int) -> Position:
    """Return what is stored with a message of somebody's."""
    return Position(scope=_counter(chat) or _SHARED, cursor=str(number))


def _counter(chat: str) -> str:
    """Return the name of the counter that numbers a chat's messages."""
    return chat if chat.startswith(_SUPERGROUP) else ""
