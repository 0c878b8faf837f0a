"""Finds what is kept of a conversation or of a person."""

from collections.abc import Iterable
from typing import Protocol

from zeroclaw.config.model import PersonSettings
from zeroclaw.envelope import ConversationId
from zeroclaw.inbound.conversations import CONVERSATIONS
from zeroclaw.retention.export import Found
from zeroclaw.retention.tables import OF_CONVERSATIONS, OF_PERSONS, OF_WRITERS
from zeroclaw.store import LogKind, Logs, Row, Rows, read_all, scan
from zeroclaw.table import Declaration
from zeroclaw.turn import entries
from zeroclaw.turn.inbox import INBOX, Item, Opening, item_of


class Kept(Rows, Logs, Protocol):
    """What is read."""


async def collect(kept: Kept, whose: str, people: Iterable[PersonSettings]) -> tuple[Found, ...]:
    """Return what is found of it, by conversation; empty for nothing.

    Args:
        kept: Where.
        whose: A conversation's id, a person's name in the configuration, or a principal's id such
            as `telegram:7`. Of a person: the conversations that they alone read, whole, of all
            others what they said there and what came of it, and what is theirs wherever it was
            said. It is what their wish to be forgotten takes away.
        people: Of the configuration; before it named them they were kept under the ids they
            write with.
    """
    if await kept.get(CONVERSATIONS.kind, whose) is not None:
        return (await _found(kept, ConversationId(whose), OF_CONVERSATIONS, only=""),)
    person = whose if ":" in whose else f"person:{whose}"
    ids = (person, *(id_ for one in people if person == f"person:{one.name}" for id_ in one.ids))
    whole = tuple(table for table in OF_CONVERSATIONS if table.own is None)
    theirs = tuple(table for table, _ in OF_WRITERS)
    found: dict[tuple[ConversationId, str], Found] = {}
    own: list[Row] = []
    for id_ in ids:
        for here, direct in await conversations_of(kept, id_):
            tables, only = (whole, "") if direct else (theirs, id_)
            found[here, only] = await _found(kept, here, tables, only=only)
        for table, place in OF_PERSONS:
            own += [row async for row in scan(kept, table.where(place=place(id_)))]
    return (*found.values(), *([Found(rows=tuple(own))] if own else ()))


async def conversations_of(kept: Kept, person: str) -> tuple[tuple[ConversationId, bool], ...]:
    """Return where a person said anything, and whether they alone read it.

    Args:
        kept: Where.
        person: A principal's id.
    """
    found: dict[ConversationId, bool] = {}
    async for row in scan(kept, INBOX.where()):
        item = item_of(row)
        here = item.conversation
        if item.principal.id == person and not found.get(here):
            found[here] = await _is_their_own(kept, item)
    # A message may be gone already whose turn the journal still has.
    for stream in await kept.streams(LogKind.JOURNAL):
        here = ConversationId(stream)
        if here in found:
            continue
        async for one in read_all(kept, LogKind.JOURNAL, stream):
            entry = entries.decode(one.body)
            if isinstance(entry, entries.TurnOpened) and entry.principal.id == person:
                found[here] = await _is_direct(kept, here)
                break
    return tuple(found.items())


async def _is_their_own(kept: Kept, item: Item) -> bool:
    """Tell whether somebody said this in the private chat that the conversation is held in.

    Whoever answers a question does so from a chat of their own, in the conversation that asked.
    """
    if not item.address.direct:
        return False
    held = await CONVERSATIONS.get(kept, item.conversation)
    if held is None:
        return isinstance(item.content, Opening)
    return held.address.key() == item.address.key()


async def _is_direct(kept: Kept, here: ConversationId) -> bool:
    held = await CONVERSATIONS.get(kept, here)
    return held is not None and held.address.direct


async def _found(
    kept: Kept, here: ConversationId, tables: Iterable[Declaration], *, only: str
) -> Found:
    rows = [row for table in tables async for row in scan(kept, table.where(conversation=here))]
    journal = [entries.decode(one.body) async for one in read_all(kept, LogKind.JOURNAL, here)]
    return Found(conversation=here, rows=tuple(rows), journal=tuple(journal), only=only)
