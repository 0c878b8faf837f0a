"""Finds the stored data of a conversation or of a person."""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

from zeroclaw.config.model import PersonSettings
from zeroclaw.conversation.inbox import INBOX, Item, Opening
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import RecordUnreadable
from zeroclaw.inbound.conversations import CONVERSATIONS
from zeroclaw.retention.export import Source
from zeroclaw.retention.tables import OF_CONVERSATIONS, OF_PERSONS, OF_WRITERS
from zeroclaw.store import LogKind, ReadableStore, Row, read_all, readable, readable_of, scan
from zeroclaw.table import Owner
from zeroclaw.turn import entries

_OF_MESSAGES = tuple(item for item in OF_WRITERS if item[0].kind is not INBOX.kind)
"""Tables with rows that follow from messages, each with a function for the owner of a row."""


async def collect(
    store: ReadableStore, subject: str, people: Iterable[PersonSettings]
) -> tuple[Source, ...]:
    """Return the stored data, by conversation; empty if there is none.

    Args:
        store: The store to read.
        subject: A conversation's id, a person's name in the configuration, or a principal's id such
            as `telegram:7`. For a person: whole conversations that only they read; from all others,
            their messages and the data that follows from them; and their own rows of any table. An
            erasure removes the same data.
        people: From the configuration.
    """
    if await store.get(CONVERSATIONS.kind, subject) is not None:
        return (await _source_of(store, ConversationId(subject)),)
    ids = await ids_of(store, subject if ":" in subject else f"person:{subject}", people)
    sources = [
        await _source_of(store, conversation, only=frozenset[str]() if direct else ids)
        for conversation, direct in await conversations_of(store, ids)
    ]
    collected = {(row.kind, row.key) for source in sources for row in source.rows}

    def may_be_theirs(row: Row, owner_of: Callable[[Row], str]) -> bool:
        with suppress(RecordUnreadable):
            return owner_of(row) in ids
        return True

    rows = [
        row
        for table, owner_of in OF_PERSONS
        async for row in scan(store, table.where())
        if may_be_theirs(row, owner_of) and (row.kind, row.key) not in collected
    ]
    return (*sources, *([Source(rows=tuple(rows))] if rows else ()))


async def ids_of(
    store: ReadableStore, person: str, people: Iterable[PersonSettings]
) -> frozenset[str]:
    """Return the principal ids under which the messages of this person alone are stored.

    Messages from before the configuration named this person are stored under their platform ids.
    Those from before it renamed the person are stored under the old name, which no person of it has
    now. An old name is not theirs if another identity wrote under it too: the configuration may
    have split one person into two.
    """
    ids_by_name = {f"person:{settings.name}": settings.ids for settings in people}
    ids, is_theirs = {person, *ids_by_name.get(person, ())}, dict[str, bool]()
    async for item in INBOX.readable(store):
        writer = item.principal
        may_be_theirs = is_theirs.get(writer.id, writer.id not in ids_by_name)
        is_theirs[writer.id] = may_be_theirs and writer.identity in ids
    return frozenset((*ids, *(id_ for id_, is_its in is_theirs.items() if is_its)))


async def conversations_of(
    store: ReadableStore, ids: Collection[str]
) -> tuple[tuple[ConversationId, bool], ...]:
    """Return the conversations in which a person wrote, and whether only they read each.

    Unreadable records are skipped.

    Args:
        store: The store to read.
        ids: All principal ids of that person.
    """
    found: dict[ConversationId, bool] = {}
    async for item in INBOX.readable(store):
        if item.principal.id in ids and not found.get(item.conversation):
            found[item.conversation] = await _is_in_own_chat(store, item)
    # A message may be deleted before the data that followed from it.
    for table, owner_of in _OF_MESSAGES:

        def place(row: Row, owner_of: Callable[[Row], Owner] = owner_of) -> ConversationId | None:
            return row.conversation if owner_of(row).person in ids else None

        async for conversation in readable(store, table.where(), place):
            if conversation is not None and conversation not in found:
                found[conversation] = await _is_direct(store, conversation)
    for stream in await store.streams(LogKind.JOURNAL):
        conversation = ConversationId(stream)
        if conversation not in found and await _has_written(store, conversation, ids):
            found[conversation] = await _is_direct(store, conversation)
    return tuple(found.items())


async def _has_written(store: ReadableStore, id_: ConversationId, ids: Collection[str]) -> bool:
    """Whether a person wrote anything in a conversation, as far as its journal can be read."""
    async for entry in read_all(store, LogKind.JOURNAL, id_):
        with suppress(RecordUnreadable):
            if any(writer in ids for writer in entries.writers_of(entries.decode(entry.body))):
                return True
    return False


async def _is_in_own_chat(store: ReadableStore, item: Item) -> bool:
    """Whether a message was written in the direct chat that its conversation belongs to.

    An approver answers from their own chat, but in the conversation of the request.
    """
    if not item.address.direct:
        return False
    conversation = await CONVERSATIONS.find(store, item.conversation)
    if conversation is None:
        return isinstance(item.content, Opening)
    return conversation.address.key() == item.address.key()


async def _is_direct(store: ReadableStore, id_: ConversationId) -> bool:
    conversation = await CONVERSATIONS.find(store, id_)
    return conversation is not None and conversation.address.direct


async def _source_of(
    store: ReadableStore, id_: ConversationId, *, only: frozenset[str] = frozenset()
) -> Source:
    tables = tuple(table for table, _ in OF_WRITERS) if only else OF_CONVERSATIONS
    queries = [table.where(conversation=id_) for table in tables]
    rows = [row for query in queries async for row in scan(store, query)]
    journal: list[entries.Entry | None] = []
    async for entry in read_all(store, LogKind.JOURNAL, id_):
        try:
            journal.append(entries.decode(entry.body))
        except RecordUnreadable:
            journal.append(None)
    turns = readable_of((row for row in rows if row.kind is TURNS.kind), TURNS.of)
    ids = frozenset(turn.turn for turn in turns if only & {turn.item.principal.id, turn.wrote})
    return Source(conversation=id_, rows=tuple(rows), journal=tuple(journal), only=only, turns=ids)
