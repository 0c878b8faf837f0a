"""Looks for a message whose send was never confirmed, by probing message ids.

Telegram has no idempotency keys, but its message ids increase. Private chats and basic groups share
one counter of the account; each supergroup has its own. A counter never assigns an id twice, so an id
that is known to be one message can't be another (Bot API, notes on message identifiers, read 2026-11).
The id of each admitted message is stored, so even a new process knows a lower bound for the ids of
its sends.

So an unconfirmed message has an id above the newest id known when it was sent. The lookup edits the
same content onto the ids above that. The answer "not modified", or a success, means that it is the
message; "can't be edited", that another sender wrote it; "not found", that the id is unused or belongs
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
from channels.telegram.errors import NoMessage, NotOurs, OtherMessageKind
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

PROBES_AHEAD = 5
"""Ids to probe beyond the newest known one, because others may have written meanwhile."""
MAX_PROBES = 30
"""Probes before a lookup gives up; each is a call, and a group allows 19 calls a minute."""


MAX_SHARED_IDS = 2048
"""Known ids to remember of the counter that many chats share."""
MAX_GROUP_IDS = 128
"""Known ids to remember of each supergroup."""
MAX_COUNTERS = 1024
"""Counters to remember; bounded, because any user can add the bot to groups."""


class MessageIds:
    """The message id counters of one account."""

    def __init__(self, positions: Mapping[str, str]) -> None:
        """Begin with the stored positions, by scope."""
        self._newest: dict[str, int] = {}
        self._recent: dict[str, deque[int]] = {}
        for scope, cursor in positions.items():
            if cursor.isdecimal():
                self.add("" if scope == SHARED else scope, int(cursor))

    def add(self, chat: str, message_id: int) -> None:
        """Remember the id of any sender's message; ids may come out of order."""
        scope = counter(chat)
        # Move it to the end, so that the least recently used counter is first.
        self._newest[scope] = max(message_id, self._newest.pop(scope, 0))
        if len(self._newest) > MAX_COUNTERS:
            oldest = next(filter(None, self._newest))  # never the shared counter
            del self._newest[oldest], self._recent[oldest]
        limit = MAX_GROUP_IDS if scope else MAX_SHARED_IDS
        self._recent.setdefault(scope, deque(maxlen=limit)).append(message_id)

    def newest(self, chat: str) -> int:
        """Return the newest known id of a chat's counter, 0 for none."""
        return self._newest.get(counter(chat), 0)

    def recent(self, chat: str) -> frozenset[int]:
        """Return the most recent known ids of a chat's counter."""
        return frozenset(self._recent.get(counter(chat), ()))


class Mark(Value):
    """How far a lookup has probed the ids of a chat's counter.

    Attributes:
        at: Ids up to this one need no probe.
        highest: The highest id that is known to be assigned.
        probes: Probes made so far.
        refreshed: `highest` includes ids seen after the send. This happens only once, or a busy
            account's ids would stay ahead of the lookup forever.
    """

    at: int
    highest: int
    probes: int = 0
    refreshed: bool = False

    def written(self) -> str:
        """Return the mark as text."""
        return f"{self.at}/{self.highest}/{self.probes}/{self.refreshed:d}"


def read(mark: str) -> Mark | None:
    """Parse the result of `Mark.written`; None if it is invalid."""
    parts = mark.split("/")
    if len(parts) != 4 or not all(part.isdecimal() for part in parts):  # noqa: PLR2004
        return None
    at, highest, probes, refreshed = map(int, parts)
    return Mark(at=at, highest=highest, probes=probes, refreshed=bool(refreshed))


class Lookup:
    """Finds messages that one account may have sent."""

    def __init__(self, messages: Messages, ids: MessageIds, log: Log) -> None:
        """Look up nothing yet."""
        self._messages, self._ids, self._log = messages, ids, log

    def mark(self, to: Address) -> str:
        """See `Channel.mark`."""
        newest = self._ids.newest(to.chat)
        return Mark(at=newest, highest=newest).written() if newest else ""

    async def lookup(
        self, to: Address, content: Postable, *, since: str, apart: frozenset[str], before: str
    ) -> LookupResult:
        """See `Channel.lookup`."""
        mark = read(since)
        if mark is None:
            raise _unknown(to, "no id is known to start from")
        mark = self._with_newest(mark, to.chat)
        last = int(before) - 1 if before.isdecimal() else mark.highest + PROBES_AHEAD
        ids = self._unprobed(to, mark.at, last, apart)
        if not ids:
            return self._not_found(replace(mark, at=last), to.chat, is_last=bool(before))
        # With `before` only probing all the ids gives an answer, so don't begin if they are too many.
        if mark.probes + (len(ids) if before else 1) > MAX_PROBES:
            raise _unknown(to, "too many message ids would have to be probed")
        message_id = ids[0]
        ref = MessageRef(address=to, message=str(message_id))
        result = await self._probe(ref, content)
        if result in ("ours", "not ours"):
            self._ids.add(to.chat, message_id)
        if result == "ours":
            self._log("lost_message_found", looks=mark.probes + 1)
            return LookupResult(ref=ref)
        # Another sender's message too shows that ids up to here are assigned.
        highest = mark.highest if result == "unused" else max(mark.highest, message_id)
        mark = replace(mark, at=message_id, highest=highest, probes=mark.probes + 1)
        mark = self._with_newest(mark, to.chat)
        last = last if before else mark.highest + PROBES_AHEAD
        if not self._unprobed(to, message_id, last, apart):
            return self._not_found(mark, to.chat, is_last=bool(before))
        return LookupResult(since=mark.written(), is_over=False)

    def _not_found(self, mark: Mark, chat: str, *, is_last: bool) -> LookupResult:
        """Return the result of a lookup that found nothing and has no ids left to probe.

        Its mark also serves later sends: ids that may not have been assigned yet when they were
        probed are probed again.
        """
        if not is_last:
            highest = max(mark.highest, self._ids.newest(chat))
            mark = Mark(at=min(mark.at, mark.highest), highest=highest)
        return LookupResult(since=mark.written())

    def _with_newest(self, mark: Mark, chat: str) -> Mark:
        """Return a mark whose `highest` includes newer ids; it changes once per lookup."""
        newest = self._ids.newest(chat)
        if mark.refreshed or newest < mark.highest:
            return mark
        return replace(mark, highest=newest, refreshed=True)

    def _unprobed(self, to: Address, at: int, last: int, apart: frozenset[str]) -> tuple[int, ...]:
        """Return the next ids to probe, up to one more than the limit; skips those of known messages."""
        known = self._ids.recent(to.chat)
        ids = range(at + 1, last + 1)
        unprobed = (number for number in ids if number not in known and str(number) not in apart)
        return tuple(islice(unprobed, MAX_PROBES + 1))

    async def _probe(
        self, ref: MessageRef, content: Postable
    ) -> Literal["ours", "of another kind", "not ours", "unused"]:
        """Probe an id by an edit and return who sent it; our message then shows the content.

        A message of another kind is another unconfirmed send of ours, which has its own lookup.
        """
        try:
            # The edit tries the rich form first, as the send did.
            with repeatable():
                await self._messages.edit(ref, styled_of(content))
        except NoMessage:
            return "unused"
        except OtherMessageKind:
            return "of another kind"
        except NotOurs:
            return "not ours"
        except ChannelRejected as error:
            raise _unknown(ref.address, f"it can't be looked up: {error}") from error
        return "ours"


def _unknown(to: Address, reason: str) -> DeliveryUnknown:
    return DeliveryUnknown(f"`{to.channel}`: {reason}")


def styled_of(content: Postable) -> Styled:
    """Return the message that is posted for a content."""
    if isinstance(content, Card):
        return cards.view(Outcome(card=content, endings=()))
    return from_outgoing(content)
