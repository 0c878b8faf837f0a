"""Looks for a message whose send was never confirmed, by probing message ids.

Telegram has no idempotency keys, but its message ids increase. Private chats and basic groups share
one counter of the account; each supergroup has its own. A counter never assigns an id twice, so an id
that is known to be one message can't be another (Bot API, notes on message identifiers, read 2026-11).
The id of each admitted message is stored, so even a new process knows a lower bound for the ids of
its sends.

So an unconfirmed message has an id above the newest id known when it was sent. The lookup edits the
same content onto the ids above that. The answer "not modified", or a success, means that it is the
message; "can't be edited", that it is somebody else's; "not found", that the id is unused or belongs
to another chat. People see no change, because the ids of our other messages are known and skipped.

This relies on documented answers of the Bot API, and on increasing ids (read 2026-11). The setting
`uncertain` turns it off.
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
    ChannelRejected,
    DeliveryUnknown,
    Log,
    LookupResult,
    MessageRef,
    Outcome,
    Postable,
    Value,
    replace,
)

LOOK_AHEAD = 5
"""Ids to probe beyond the newest known one, because others may have written meanwhile."""
MOST_LOOKS = 30
"""Probes before a lookup gives up; each is a call, and a group allows 19 calls a minute."""


KNOWN_OF_ALL = 2048
"""Known ids to remember of the counter that many chats share."""
KNOWN_OF_ONE = 128
"""Known ids to remember of each supergroup."""
MOST_COUNTERS = 1024
"""Counters to remember; bounded, because any user can add the bot to groups."""


class Numbers:
    """The message id counters of one account."""

    def __init__(self, positions: Mapping[str, str]) -> None:
        """Begin with the stored positions, by scope."""
        self._newest: dict[str, int] = {}
        self._known: dict[str, deque[int]] = {}
        for scope, cursor in positions.items():
            if cursor.isdecimal():
                self.saw("" if scope == SHARED else scope, int(cursor))

    def saw(self, chat: str, number: int) -> None:
        """Remember a message's id, whoever sent it; ids may come out of order."""
        name = counter(chat)
        # Move it to the end, so that the least recently used counter is first.
        self._newest[name] = max(number, self._newest.pop(name, 0))
        if len(self._newest) > MOST_COUNTERS:
            oldest = next(filter(None, self._newest))  # never the shared counter
            del self._newest[oldest], self._known[oldest]
        most = KNOWN_OF_ONE if name else KNOWN_OF_ALL
        self._known.setdefault(name, deque(maxlen=most)).append(number)

    def newest(self, chat: str) -> int:
        """Return the newest known id of a chat's counter, 0 for none."""
        return self._newest.get(counter(chat), 0)

    def known(self, chat: str) -> frozenset[int]:
        """Return the most recent known ids of a chat's counter."""
        return frozenset(self._known.get(counter(chat), ()))


class Mark(Value):
    """How far a lookup has probed the ids of a chat's counter.

    Attributes:
        at: Ids up to this one are done.
        taken: The highest id that is known to be assigned.
        looks: Probes made so far.
        heard: `taken` was updated from ids seen after the send. This happens only once, or a busy
            account's ids would stay ahead of the lookup forever.
    """

    at: int
    taken: int
    looks: int = 0
    heard: bool = False

    def written(self) -> str:
        """Return the mark as text."""
        return f"{self.at}/{self.taken}/{self.looks}/{self.heard:d}"


def read(mark: str) -> Mark | None:
    """Parse the result of `Mark.written`; None if it is invalid."""
    parts = mark.split("/")
    if len(parts) != 4 or not all(part.isdecimal() for part in parts):  # noqa: PLR2004
        return None
    at, taken, looks, heard = map(int, parts)
    return Mark(at=at, taken=taken, looks=looks, heard=bool(heard))


class Lookup:
    """Finds messages that one account may have sent."""

    def __init__(self, messages: Messages, numbers: Numbers, log: Log) -> None:
        """Look up nothing yet."""
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
            raise _unknown(to, "it is not known where to look")
        mark = self._told(mark, to.chat)
        last = int(before) - 1 if before.isdecimal() else mark.taken + LOOK_AHEAD
        numbers = self._free(to, mark.at, last, apart)
        if not numbers:
            return self._seen_nothing(replace(mark, at=last), to.chat, is_last=bool(before))
        # With `before` only probing all the ids gives an answer, so don't begin if they are too many.
        if mark.looks + (len(numbers) if before else 1) > MOST_LOOKS:
            raise _unknown(to, "it may stand further on than can be looked")
        number = numbers[0]
        ref = MessageRef(address=to, message=str(number))
        whose = await self._whose(ref, content)
        if whose in ("ours", "another's"):
            self._numbers.saw(to.chat, number)
        if whose == "ours":
            self._log("lost_message_found", looks=mark.looks + 1)
            return LookupResult(ref=ref)
        # Even another's message shows that ids were assigned up to here.
        taken = mark.taken if whose == "nobody's" else max(mark.taken, number)
        left = self._told(replace(mark, at=number, taken=taken, looks=mark.looks + 1), to.chat)
        last = last if before else left.taken + LOOK_AHEAD
        if not self._free(to, number, last, apart):
            return self._seen_nothing(left, to.chat, is_last=bool(before))
        return LookupResult(since=left.written(), is_over=False)

    def _seen_nothing(self, mark: Mark, chat: str, *, is_last: bool) -> LookupResult:
        """Return the result of a lookup that found nothing and has no ids left to probe.

        Its mark also serves later sends: ids that may not have been assigned yet when they were
        probed are probed again.
        """
        if not is_last:
            taken = max(mark.taken, self._numbers.newest(chat))
            mark = Mark(at=min(mark.at, mark.taken), taken=taken)
        return LookupResult(since=mark.written())

    def _told(self, mark: Mark, chat: str) -> Mark:
        """Return a mark with `taken` updated from newer ids; happens once per lookup."""
        newest = self._numbers.newest(chat)
        if mark.heard or newest < mark.taken:
            return mark
        return replace(mark, taken=newest, heard=True)

    def _free(self, to: Address, at: int, last: int, apart: frozenset[str]) -> tuple[int, ...]:
        """Return the next ids to probe, up to one more than the limit; skips those of known messages."""
        others = self._numbers.known(to.chat)
        numbers = range(at + 1, last + 1)
        free = (one for one in numbers if one not in others and str(one) not in apart)
        return tuple(islice(free, MOST_LOOKS + 1))

    async def _whose(
        self, ref: MessageRef, content: Postable
    ) -> Literal["ours", "of another kind", "another's", "nobody's"]:
        """Probe an id by an edit and return whose message it is; if ours, it now shows the content.

        A message of another kind is another unconfirmed send of ours, which has its own lookup.
        """
        try:
            # The edit tries the rich form first, as the send did.
            with repeatable():
                await self._messages.edit(ref, shown_of(content))
        except NotThere:
            return "nobody's"
        except OtherKind:
            return "of another kind"
        except NotOurs:
            return "another's"
        except ChannelRejected as refused:
            raise _unknown(ref.address, f"it can't be looked for: {refused}") from refused
        return "ours"


def _unknown(to: Address, why: str) -> DeliveryUnknown:
    return DeliveryUnknown(f"`{to.channel}`: {why}")


def shown_of(content: Postable) -> Styled:
    """Return the message that is posted for a content."""
    if isinstance(content, Card):
        return cards.view(Outcome(card=content, endings=()))
    return from_outgoing(content)
