"""Looks in a chat's history for a message whose send was never confirmed.

Discord recognises a send that is repeated within minutes by its nonce. Older sends, and those of a
process that died, are looked up. Ids increase with time, so the lookup reads our own messages after a
mark, and takes one that is not known to be another message. A process that died may have sent an
earlier draft of the text; then the message is edited.
"""

from datetime import datetime

from channels._remote.fields import Json, inner, integer, objects, text
from channels.discord import cards
from channels.discord.decode import WRITTEN
from channels.discord.errors import NotFound
from channels.discord.rest import Rest
from channels.discord.snowflakes import is_snowflake, number_of, snowflake
from zeroclaw import Address, DeliveryUnknown, Log, LookupResult, MessageRef, Value

PAGE = 100
MAX_PAGES = 20
"""Pages before a lookup gives up: each is a call that shares the channel's limits with sends."""
_EPOCH_MS = 1_420_070_400_000  # the start of 2015; "Snowflakes", read 2026-11
_TIME_BITS = 22


class Sent(Value):
    """The features that identify a sent message in a history.

    Attributes:
        content: Its text as sent.
        file: The size of its file in bytes, None for none; Discord may change a file's name.
        buttons: The data of a card's buttons, empty for other messages.
        is_whole: It was complete when it was sent, not a draft.
    """

    content: str
    file: int | None = None
    buttons: frozenset[str] = frozenset()
    is_whole: bool = True


def snowflake_at(at: datetime, slack_s: float) -> int:
    """Return an id below all that Discord assigns later than `slack_s` before a time."""
    since_epoch_ms = int((at.timestamp() - slack_s) * 1000) - _EPOCH_MS
    return max(since_epoch_ms, 0) << _TIME_BITS


async def look(
    rest: Rest,
    log: Log,
    to: Address,
    channel: str,
    sent: Sent,
    *,
    since: str,
    apart: frozenset[str],
    before: str,
) -> tuple[LookupResult, bool]:
    """Read one page; see `Channel.lookup`. Also return whether the message found has the sent text."""
    mark, _, pages = since.partition("/")
    pages_read = int(pages) if pages.isdecimal() else 0
    if not is_snowflake(mark) or pages_read >= MAX_PAGES:
        message = f"`{to.channel}`: there is no position to look from"
        raise DeliveryUnknown(message)
    try:
        page = await rest.messages(channel, f"limit={PAGE}&after={mark}")
        is_readable = page or to.direct or await rest.messages(channel, "limit=1")
    except NotFound as error:
        # The chat does not exist, so neither does the message; Discord refuses sends there as well.
        log("lookup_refused", reason=str(error))
        return LookupResult(since=mark), False
    if not is_readable:
        # A history that the bot may not read is empty ("Get Channel Messages", read 2026-11).
        message = f"`{to.channel}`: the chat's history can't be read"
        raise DeliveryUnknown(message)
    last = int(before) if is_snowflake(before) else None
    older = (message for message in page if last is None or number_of(message) < last)
    seen = sorted(older, key=number_of)
    matches = [
        message
        for message in seen
        if snowflake(message, "id") not in apart and _matches(message, sent, rest.account)
    ]
    same = [found for found in matches if text(found, "content").strip() == sent.content.strip()]
    if matches:
        log("lost_message_found", pages=pages_read + 1, as_sent=bool(same))
        ref = MessageRef(address=to, message=snowflake((same or matches)[0], "id"))
        return LookupResult(ref=ref), bool(same)
    if len(page) < PAGE or len(seen) < len(page):
        # Messages sent from now on come after all of these, so their lookup can start here.
        return LookupResult(since=snowflake(seen[-1], "id") if seen else mark), False
    since = f"{snowflake(seen[-1], 'id')}/{pages_read + 1}"
    return LookupResult(since=since, is_over=False), False


def buttons_of(message: Json) -> frozenset[str]:
    """Return the data of the approval buttons of a message, sent or read."""
    return frozenset(
        text(button, "custom_id")
        for row in objects(message, "components")
        for button in objects(row, "components")
        if cards.read(text(button, "custom_id"))
    )


def _matches(message: Json, sent: Sent, account: str) -> bool:
    """Whether a message is ours and may be the sent one; replies to slash commands never are."""
    is_ours = snowflake(inner(message, "author"), "id") == account
    is_written = integer(message, "type") in WRITTEN
    if not is_ours or not is_written or message.get("interaction_metadata"):
        return False
    files, buttons = objects(message, "attachments"), buttons_of(message)
    if sent.buttons or buttons:
        return buttons == sent.buttons
    if sent.is_whole and text(message, "content").strip() != sent.content.strip():
        return False
    return (integer(files[0], "size") if files else None) == sent.file
