"""Look for a message that may stand, though nobody heard of it: in the history of its chat.

A repeated send within minutes is told from the first by its nonce. What is older, or was sent by a
process that died, is looked up: ids are given in order of time, so all of our own messages after a
mark are read, and one with the same words that is not known to be another is the one.
"""

from collections.abc import Sequence
from datetime import datetime

from channels.discord.errors import NotThere
from channels.discord.fields import Json, inner, is_snowflake, objects, snowflake, text, whole
from channels.discord.rest import Rest
from zeroclaw import (
    Address,
    ChannelLog,
    ChannelRejected,
    DeliveryUnknown,
    LookupResult,
    MessageRef,
    Value,
)

PAGE = 100
MOST_PAGES = 20
"""What stands further on can't be told: each page is a call, in the same channel as what is sent."""
_EPOCH_MS = 1_420_070_400_000  # "Snowflakes", of 2015, read 2026-11
_TIME_BITS = 22


class Sent(Value):
    """What a message shows in a history.

    Attributes:
        content: Its text, as it was sent.
        file: The name and size of its file, None for none.
    """

    content: str
    file: tuple[str, int] | None = None


def snowflake_at(at: datetime, slack_s: float) -> int:
    """Return an id below all that are given from some seconds before a time on."""
    since_epoch_ms = int((at.timestamp() - slack_s) * 1000) - _EPOCH_MS
    return max(since_epoch_ms, 0) << _TIME_BITS


class Lookup:
    """Finds what one account has sent."""

    def __init__(self, rest: Rest, log: ChannelLog) -> None:
        """Hold what is the account's."""
        self._rest = rest
        self._log = log

    async def lookup(
        self,
        to: Address,
        channel: str,
        sent: Sent,
        *,
        since: str,
        apart: frozenset[str],
        before: str,
        me: str,
    ) -> LookupResult:
        """Read one page; see `Channel.lookup`."""
        mark, _, pages = since.partition("/")
        looked = int(pages) if pages.isdecimal() else 0
        if not is_snowflake(mark) or looked >= MOST_PAGES:
            message = f"`{to.channel}`: it is not known where to look"
            raise DeliveryUnknown(message)
        page = await self._page(to, channel, mark)
        last = int(before) if is_snowflake(before) else None
        seen = sorted(
            (one for one in page if last is None or int(snowflake(one, "id") or 0) < last),
            key=lambda one: int(snowflake(one, "id") or 0),
        )
        for one in seen:
            number = snowflake(one, "id")
            if number not in apart and _is(one, sent, me):
                self._log("lost_message_found", pages=looked + 1)
                return LookupResult(ref=MessageRef(address=to, message=number))
        if len(page) < PAGE or len(seen) < len(page):
            # What is sent now stands after all of these, and may be looked for from there.
            return LookupResult(since=snowflake(seen[-1], "id") if seen else mark)
        return LookupResult(since=f"{snowflake(seen[-1], 'id')}/{looked + 1}", is_over=False)

    async def _page(self, to: Address, channel: str, mark: str) -> Sequence[Json]:
        path = f"/channels/{channel}/messages?limit={PAGE}&after={mark}"
        try:
            return objects({"found": await self._rest.read(path)}, "found")
        except NotThere as error:
            # No chat, so nothing stands in it; what is sent there is refused.
            self._log("lookup_refused", why=str(error))
            return ()
        except ChannelRejected as error:
            message = f"`{to.channel}`: it can't be looked for: {error}"
            raise DeliveryUnknown(message) from error


def _is(message: Json, sent: Sent, me: str) -> bool:
    """Whether a message is what was sent; Discord takes blanks from both ends."""
    if snowflake(inner(message, "author"), "id") != me:
        return False
    files = objects(message, "attachments")
    file = (text(files[0], "filename"), whole(files[0], "size")) if files else None
    is_same_file = (file is None) == (sent.file is None)
    if file is not None and sent.file is not None:
        # Discord may change a file's name, never its size.
        is_same_file = file[1] == sent.file[1]
    return is_same_file and text(message, "content").strip() == sent.content.strip()
