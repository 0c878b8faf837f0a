"""Look for a message that may stand, though its answer was lost.

Telegram takes no key by which a repeated send is known. But its numbers grow: it numbers the messages
of private chats and basic groups by one counter of the account, those of a supergroup by its own. A
number is never given twice by a counter, so one that is known to be somebody's message is nobody
else's (read 2026-11, in the Bot API's notes on message identifiers). The number of each message that
is taken in is stored with it, so that a process knows from the first moment above which number
whatever it sends will stand.

So a message whose answer was lost, or whose sender died, stands above the newest number known when it
was sent, and editing the same content onto the numbers up there finds it: "not modified", or a
success, is ours; "can't be edited" is somebody else's; "not found" is nobody's, or of another chat.
Nothing that a person sees is changed, because our own other messages up there are known.

What is rested on are documented answers of the Bot API, and numbers that grow within a counter
(read 2026-11); it has a switch, `uncertain`.
"""

from collections import deque
from collections.abc import Mapping
from itertools import islice
from typing import Literal

from channels._remote.http import repeatable
from channels.telegram import cards
from channels.telegram.decode import SHARED, counter
from channels.telegram.errors import NotOurs, NotThere, OtherKind
from channels.telegram.messages import Messages
from channels.telegram.styled import Styled, from_outgoing
from zeroclaw import (
    Address,
    Card,
    ChannelLog,
    ChannelRejected,
    DeliveryUnknown,
    LookupResult,
    MessageRef,
    Outcome,
    Postable,
    Value,
    replace,
)

LOOK_AHEAD = 5
"""Numbers beyond the newest known one that are looked at: others may have written meanwhile."""
MOST_LOOKS = 30
"""Each look is a call, in a group one of 19 a minute; what lies further away can't be told."""


KNOWN_OF_ALL = 2048
"""Numbers that are remembered of the counter that many chats share."""
KNOWN_OF_ONE = 128
"""Numbers that are remembered of one supergroup."""
MOST_COUNTERS = 1024
"""Counters that are remembered: any user may take the bot into a group, and be heard there."""


class Numbers:
    """All counters of one account."""

    def __init__(self, positions: Mapping[str, str]) -> None:
        """Begin with those that were stored, by scope."""
        self._newest: dict[str, int] = {}
        self._known: dict[str, deque[int]] = {}
        for scope, cursor in positions.items():
            if cursor.isdecimal():
                self.saw("" if scope == SHARED else scope, int(cursor))

    def saw(self, chat: str, number: int) -> None:
        """Take note of a message, whoever's it is; an old one may come again."""
        name = counter(chat)
        # Behind all others, which are in the order in which they were seen last.
        self._newest[name] = max(number, self._newest.pop(name, 0))
        if len(self._newest) > MOST_COUNTERS:
            oldest = next(filter(None, self._newest))  # not the one that many chats share
            del self._newest[oldest], self._known[oldest]
        most = KNOWN_OF_ONE if name else KNOWN_OF_ALL
        self._known.setdefault(name, deque(maxlen=most)).append(number)

    def newest(self, chat: str) -> int:
        """Return the newest known number of a chat's counter, 0 for none."""
        return self._newest.get(counter(chat), 0)

    def known(self, chat: str) -> frozenset[int]:
        """Return the numbers that are known to be messages, those seen last."""
        return frozenset(self._known.get(counter(chat), ()))


class Mark(Value):
    """How far the numbers of a chat's counter were looked at.

    Attributes:
        at: Up to here nothing is sought.
        taken: The highest number that is known to be given.
        looks: Calls that were made since the message was sent.
        heard: Whether `taken` was heard of after the message was sent. What is given later is of no
            account: were it, a busy account's numbers would run ahead of the looks without end.
    """

    at: int
    taken: int
    looks: int = 0
    heard: bool = False

    def written(self) -> str:
        """Return the mark as others keep it."""
        return f"{self.at}/{self.taken}/{self.looks}/{self.heard:d}"


def read(mark: str) -> Mark | None:
    """Return what `written` wrote, None for anything else."""
    parts = mark.split("/")
    if len(parts) != 4 or not all(part.isdecimal() for part in parts):  # noqa: PLR2004
        return None
    at, taken, looks, heard = map(int, parts)
    return Mark(at=at, taken=taken, looks=looks, heard=bool(heard))


class Lookup:
    """Finds what one account has sent."""

    def __init__(self, messages: Messages, numbers: Numbers, log: ChannelLog) -> None:
        """Hold what is the account's."""
        self._messages = messages
        self._numbers = numbers
        self._log = log

    def mark(self, to: Address) -> str:
        """See `Channel.mark`."""
        newest = self._numbers.newest(to.chat)
        return Mark(at=newest, taken=newest).written() if newest else ""

    async def lookup(
        self, to: Address, content: Postable, *, since: str, apart: frozenset[str], before: str
    ) -> LookupResult:
        """See `Channel.lookup`."""
        mark = read(since)
        if mark is None:
            why = "it is not known where to look"
            raise _unknown(to, why)
        mark = self._told(mark, to.chat)
        last = int(before) - 1 if before.isdecimal() else mark.taken + LOOK_AHEAD
        numbers = self._free(to, mark.at, last, apart)
        if not numbers:
            return self._seen_nothing(replace(mark, at=last), to.chat, is_last=bool(before))
        # Up to a known number there is nothing to be learned but by all looks together.
        if mark.looks + (len(numbers) if before else 1) > MOST_LOOKS:
            why = "it may stand further on than can be looked"
            raise _unknown(to, why)
        number = numbers[0]
        ref = MessageRef(address=to, message=str(number))
        whose = await self._whose(ref, content)
        if whose in ("ours", "another's"):
            self._numbers.saw(to.chat, number)
        if whose == "ours":
            self._log("lost_message_found", looks=mark.looks + 1)
            return LookupResult(ref=ref)
        # Somebody's all the same, the numbers have run at least as far.
        taken = mark.taken if whose == "nobody's" else max(mark.taken, number)
        left = self._told(replace(mark, at=number, taken=taken, looks=mark.looks + 1), to.chat)
        last = last if before else left.taken + LOOK_AHEAD
        if not self._free(to, number, last, apart):
            return self._seen_nothing(left, to.chat, is_last=bool(before))
        return LookupResult(since=left.written(), is_over=False)

    def _seen_nothing(self, mark: Mark, chat: str, *, is_last: bool) -> LookupResult:
        """Return that there is nothing more to look at.

        What is sent now may be looked for from there as well. Numbers that may not have been given
        when they were looked at are looked at again.
        """
        if not is_last:
            taken = max(mark.taken, self._numbers.newest(chat))
            mark = Mark(at=min(mark.at, mark.taken), taken=taken)
        return LookupResult(since=mark.written())

    def _told(self, mark: Mark, chat: str) -> Mark:
        """Return a mark with the numbers that were heard of since, once."""
        newest = self._numbers.newest(chat)
        if mark.heard or newest < mark.taken:
            return mark
        return replace(mark, taken=newest, heard=True)

    def _free(self, to: Address, at: int, last: int, apart: frozenset[str]) -> tuple[int, ...]:
        """Return the next numbers that may be the one that is sought, as many as can be looked at."""
        others = self._numbers.known(to.chat)
        numbers = range(at + 1, last + 1)
        free = (one for one in numbers if one not in others and str(one) not in apart)
        return tuple(islice(free, MOST_LOOKS + 1))

    async def _whose(
        self, ref: MessageRef, content: Postable
    ) -> Literal["ours", "of another kind", "another's", "nobody's"]:
        """Return whose message it is; ours then shows what is sought.

        One of another kind was lost as well, so it is left to whoever looks for that one.
        """
        try:
            # In which form a text was sent is tried out as when it was sent.
            with repeatable():
                await self._messages.edit(ref, shown_of(content))
        except NotThere:
            return "nobody's"
        except OtherKind:
            return "of another kind"
        except NotOurs:
            return "another's"
        except ChannelRejected as refused:
            why = f"it can't be looked for: {refused}"
            raise _unknown(ref.address, why) from refused
        return "ours"


def _unknown(to: Address, why: str) -> DeliveryUnknown:
    return DeliveryUnknown(f"`{to.channel}`: {why}")


def shown_of(content: Postable) -> Styled:
    """Return what is shown of something when it is posted."""
    if isinstance(content, Card):
        return cards.view(Outcome(card=content, endings=()))
    return from_outgoing(content)
