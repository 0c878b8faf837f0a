"""Finds the stored data of a conversation or of a person."""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

from zeroclaw.config.model import PersonSettings
from zeroclaw.conversation.inbox import INBOX, Item, Opening
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import RecordUnreadable
from zeroclaw.inbound.conversations import CONVERSATIONS, conversation_of
from zeroclaw.retention.export import Source
from zeroclaw.retention.tables import OF_CONVERSATIONS, OF_PERSONS, OF_WRITERS
from zeroclaw.store import LogKind, ReadableStore, Row, read_all, readable, readable_of, scan
from zeroclaw.table import Owner
from zeroclaw.turn import entries

_OF_MESSAGES = tuple(one for one in OF_WRITERS if one[0].kind is not INBOX.kind)
"""Tables with rows that follow from messages, with the owner of a row."""


async def collect(
    kept: ReadableStore, whose: str, people: Iterable[PersonSettings]
) -> tuple[Source, ...]:
    """Return what is found, by conversation; empty for nothing.

    Args:
        kept: Where to look.
        whose: A conversation's id, a person's name in the configuration, or a principal's id such
            as `telegram:7`. For a person: the whole of conversations that only they read; in all
            others, what they said and what came of it; and what belongs to them anywhere. This is
            what a request to be forgotten removes.
        people: From the configuration.
    """
    if await kept.get(CONVERSATIONS.kind, whose) is not None:
        return (await _found(kept, ConversationId(whose)),)
    ids = await ids_of(kept, whose if ":" in whose else f"person:{whose}", people)
    found = [
        await _found(kept, here, only=frozenset[str]() if direct else ids)
        for here, direct in await conversations_of(kept, ids)
    ]
    told = {(row.kind, row.key) for one in found for row in one.rows}

    def may_be_theirs(row: Row, its: Callable[[Row], str]) -> bool:
        with suppress(RecordUnreadable):
            return its(row) in ids
        return True

    own = [
        row
        for table, its in OF_PERSONS
        async for row in scan(kept, table.where())
        if may_be_theirs(row, its) and (row.kind, row.key) not in told
    ]
    return (*found, *([Source(rows=tuple(own))] if own else ()))


async def ids_of(
    kept: ReadableStore, person: str, people: Iterable[PersonSettings]
) -> frozenset[str]:
    """Return all principal ids under which a person's words, and nobody else's, are stored.

    Messages from before the configuration named this person are stored under their platform ids,
    and those from before it renamed them under a name that no person of it has. Such a name is not
    theirs if another identity wrote under it too: the configuration may have parted two people.
    """
    named = {f"person:{one.name}": one.ids for one in people}
    ids, wrote = {person, *named.get(person, ())}, dict[str, bool]()
    async for item in INBOX.readable(kept):
        by = item.principal
        wrote[by.id] = wrote.get(by.id, by.id not in named) and by.identity in ids
    return frozenset((*ids, *(id_ for id_, is_theirs in wrote.items() if is_theirs)))


async def conversations_of(
    kept: ReadableStore, ids: Collection[str]
) -> tuple[tuple[ConversationId, bool], ...]:
    """Return the conversations in which a person said anything, and whether only they read each.

    What can't be read tells of nobody.

    Args:
        kept: Where to look.
        ids: All principal ids of that person.
    """
    found: dict[ConversationId, bool] = {}
    async for item in INBOX.readable(kept):
        if item.principal.id in ids and not found.get(item.conversation):
            found[item.conversation] = await _is_their_own(kept, item)
    # A message may be gone while data that came of it is kept longer.
    for table, whose in _OF_MESSAGES:

        def place(row: Row, whose: Callable[[Row], Owner] = whose) -> ConversationId | None:
            return row.conversation if whose(row).person in ids else None

        async for here in readable(kept, table.where(), place):
            if here is not None and here not in found:
                found[here] = await _is_direct(kept, here)
    for stream in await kept.streams(LogKind.JOURNAL):
        here = ConversationId(stream)
        if here not in found and await _has_written(kept, here, ids):
            found[here] = await _is_direct(kept, here)
    return tuple(found.items())


async def _has_written(kept: ReadableStore, here: ConversationId, ids: Collection[str]) -> bool:
    """Whether a person wrote anything in a conversation, as far as its journal can be read."""
    with suppress(RecordUnreadable):
        async for one in read_all(kept, LogKind.JOURNAL, here):
            if any(writer in ids for writer in entries.writers_of(entries.decode(one.body))):
                return True
    return False


async def _is_their_own(kept: ReadableStore, item: Item) -> bool:
    """Whether a message was written in the direct chat that its conversation belongs to.

    An approver answers from their own chat, but in the conversation of the request.
    """
    if not item.address.direct:
        return False
    held = await conversation_of(kept, item.conversation)
    if held is None:
        return isinstance(item.content, Opening)
    return held.address.key() == item.address.key()


async def _is_direct(kept: ReadableStore, here: ConversationId) -> bool:
    held = await conversation_of(kept, here)
    return held is not None and held.address.direct


async def _found(
    kept: ReadableStore, here: ConversationId, *, only: frozenset[str] = frozenset()
) -> Source:
    tables = tuple(table for table, _ in OF_WRITERS) if only else OF_CONVERSATIONS
    rows = [row for table in tables async for row in scan(kept, table.where(conversation=here))]
    journal: list[entries.Entry | None] = []
    async for one in read_all(kept, LogKind.JOURNAL, here):
        try:
            journal.append(entries.decode(one.body))
        except RecordUnreadable:
            journal.append(None)
    every = readable_of((row for row in rows if row.kind is TURNS.kind), TURNS.of)
    turns = frozenset(row.turn for row in every if only & {row.item.principal.id, row.wrote})
    return Source(
        conversation=here, rows=tuple(rows), journal=tuple(journal), only=only, turns=turns
    )
