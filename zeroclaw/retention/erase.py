"""Carries out open wishes to be forgotten: stops what runs, then removes what was said.

Of a conversation that one person alone reads everything goes: new messages begin a new one. Of a
shared one only their messages and turns go, when nobody's turn runs in it. Every step may be done
again, so a wish that a restart cut off is carried out from its beginning.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from zeroclaw.channel import ChannelLog
from zeroclaw.clock import Clock, Ids
from zeroclaw.codec import decode
from zeroclaw.delivery import rows
from zeroclaw.envelope import ConversationId, ItemId
from zeroclaw.errors import Conflict
from zeroclaw.gate import approval as approvals
from zeroclaw.gate.action import from_row
from zeroclaw.inbound.commands.forget import ASKED, OPEN, Wish, wish_of
from zeroclaw.retention.collect import conversations_of
from zeroclaw.retention.without import WHY, without
from zeroclaw.store import (
    Append,
    Commit,
    Delete,
    DropBlob,
    DurablePoint,
    LogKind,
    Put,
    Row,
    RowKind,
    Store,
    Trim,
    Write,
    find_all,
    read_all,
)
from zeroclaw.text import catalogue
from zeroclaw.tools.notes import owner_of_person
from zeroclaw.turn import entries
from zeroclaw.turn.attached import attached_of
from zeroclaw.turn.bell import Bell
from zeroclaw.turn.inbox import Item, Stop, item_of, item_put
from zeroclaw.turn.kept import KeptResult
from zeroclaw.turn.leases import Leases
from zeroclaw.turn.open_turns import turn_of
from zeroclaw.value import replace

LOOK_S = 1.0
"""Between two looks at whether a stopped turn is over."""
TRIES = 60
"""Looks at one wish before the others have theirs."""
AGAIN_S = 60.0
"""Until the next try at a wish that could not be carried out."""
_BATCH = 100
_WHOLE = (
    RowKind.TURN,
    RowKind.OUTBOX,
    RowKind.APPROVAL,
    RowKind.ACTION,
    RowKind.GRANT,
    RowKind.NOTE,
    RowKind.RESULT,
    RowKind.ATTACHMENT,
    RowKind.WORKSPACE,
)
_THEIRS = (
    RowKind.ATTACHMENT,
    RowKind.INBOX,
    RowKind.OUTBOX,
    RowKind.APPROVAL,
    RowKind.ACTION,
    RowKind.RESULT,
    RowKind.TURN,
)
_LAST = (RowKind.INBOX, RowKind.CONVERSATION)
"""By these a conversation is found again when a restart cut the removal off."""
_FILE = f'"{rows.File.__name__}"'.encode()
_RUNNING = ((RowKind.TURN, "open"), (RowKind.INBOX, "control"), (RowKind.INBOX, "taken"))


class Mailboxes(Protocol):
    """Who holds conversations now."""

    def wake(self, conversation: ConversationId) -> None:
        """Something is new in the inbox."""
        ...

    def is_open(self, conversation: ConversationId) -> bool:
        """Tell whether somebody holds it."""
        ...


class Erasure:
    """Carries out wishes; one for the whole daemon."""

    def __init__(
        self,
        *,
        store: Store,
        leases: Leases,
        mailboxes: Mailboxes,
        clock: Clock,
        ids: Ids,
        ids_of: Callable[[str], tuple[str, ...]],
        announce: Callable[[tuple[Write, ...]], None],
        log: ChannelLog,
    ) -> None:
        """Hold what is needed.

        `ids_of` returns the ids that a person of the configuration writes with, under which they
        may have written before it named them; `announce` hands over what was committed to be said.
        """
        self._store = store
        self._leases = leases
        self._mailboxes = mailboxes
        self._clock = clock
        self._ids = ids
        self._ids_of = ids_of
        self._announce = announce
        self._log = log
        self._bell = Bell()

    def learn(self, writes: tuple[Write, ...]) -> None:
        """Hear what was committed; never waits."""
        if any(isinstance(one, Put) and one.kind is RowKind.FORGETTING for one in writes):
            self._bell.ring()

    async def keep(self) -> None:
        """Carry out every wish, those of an earlier process too; until cancelled."""
        while True:
            self._bell.silence()
            left = [row async for row in find_all(self._store, RowKind.FORGETTING, state=OPEN)]
            done = [await self._fulfil(row) for row in left]
            if not all(done):
                await self._clock.sleep(AGAIN_S)
            else:
                await self._tidy()
                await self._bell.wait()

    async def _tidy(self) -> None:
        """Remove wishes that nobody repeated in time."""
        now = self._clock.now()
        rows_ = find_all(self._store, RowKind.FORGETTING, state=ASKED, due_before=now)
        await self._remove([row async for row in rows_])

    async def _fulfil(self, row: Row) -> bool:
        wish = wish_of(row)
        names = (wish.person, *self._ids_of(wish.person))
        done = [await self._removed(replace(wish, person=name)) for name in names]
        if not all(done):
            self._log("forgetting_waits", person=wish.person, level="warning")
            return False
        language = wish.by.language
        text = (
            catalogue.FORGOTTEN_YOU.to(language)
            if wish.person == wish.by.id
            else catalogue.FORGOTTEN_OTHER.to(language, whom=wish.person)
        )
        told = rows.note_row(
            key=self._ids.ulid(), address=wish.address, text=text, language=language
        )
        gone = Delete(kind=RowKind.FORGETTING, key=row.key)
        await self._commit(told, gone)
        self._announce((told,))
        self._log("forgotten", person=wish.person)
        return True

    async def _removed(self, wish: Wish) -> bool:
        """Remove what somebody said under one name; False if not all of it could go yet."""
        done = [
            await (self._whole(wish, here) if direct else self._theirs(wish, here))
            for here, direct in await conversations_of(self._store, wish.person)
        ]
        notes = find_all(self._store, RowKind.NOTE, place=owner_of_person(wish.person))
        await self._remove([one async for one in notes])
        return all(done)

    # --- a conversation that is theirs alone ---------------------------------------------------

    async def _whole(self, wish: Wish, here: ConversationId) -> bool:
        """Remove everything of a conversation but its audit; False if a turn would not end."""
        # Without it a new message begins a new conversation; one that is just being admitted to
        # this one is refused by its expectation, and looks again.
        pointers = find_all(self._store, RowKind.ADDRESS, conversation=here)
        await self._remove([row async for row in pointers])
        if not await self._stopped(wish, here, everybodys=True):
            return False
        digests = await self._digests(here)
        await self._remove_kinds(_WHOLE, here)
        newest = await self._store.last(LogKind.JOURNAL, here)
        if newest is not None:
            before = newest.sequence + 1
            await self._commit(Trim(log=LogKind.JOURNAL, stream=here, before=before))
        await self._drop(digests)
        await self._remove_kinds(_LAST, here)
        self._leases.lost(here)
        return True

    async def _remove_kinds(self, kinds: tuple[RowKind, ...], here: ConversationId) -> None:
        for kind in kinds:
            found = find_all(self._store, kind, conversation=here)
            await self._remove([row async for row in found])

    async def _digests(self, here: ConversationId | None = None) -> frozenset[str]:
        """Return the blobs that a conversation may read or has been sent, or anybody."""
        results = find_all(self._store, RowKind.RESULT, conversation=here)
        files = find_all(self._store, RowKind.ATTACHMENT, conversation=here, state="kept")
        told = find_all(self._store, RowKind.OUTBOX, conversation=here)
        # Looked at before it is read: most rows are texts, some of them long.
        sent = [rows.read(row) async for row in told if _FILE in row.body]
        return frozenset(
            [
                *[decode(KeptResult, row.body).digest async for row in results],
                *[attached_of(row).digest async for row in files],
                *[one.digest for one in sent if isinstance(one, rows.File)],
            ]
        )

    async def _drop(self, digests: frozenset[str]) -> None:
        """Remove those of these blobs that nobody may read any more."""
        if not digests:
            return
        since = self._clock.now() + timedelta(microseconds=1)
        for digest in digests - await self._digests():
            # Somebody else may put the same bytes just now, and names them only then.
            await self._commit(DropBlob(digest=digest, put_before=since))

    # --- a conversation that others share ------------------------------------------------------

    async def _theirs(self, wish: Wish, here: ConversationId) -> bool:
        """Remove one person's messages and turns; False while turns follow each other."""
        if not await self._stopped(wish, here, everybodys=False):
            return False
        for _ in range(TRIES):
            if await self._is_free(here) and await self._rewritten(wish.person, here):
                break
            await self._clock.sleep(LOOK_S)
        else:
            return False
        turns = frozenset(
            [
                row.key
                async for row in find_all(self._store, RowKind.TURN, conversation=here)
                if turn_of(row).item.principal.id == wish.person
            ]
        )
        digests = await self._digests(here)
        for kind in _THEIRS:
            found = find_all(self._store, kind, conversation=here)
            await self._remove([row async for row in found if _is_of(row, wish.person, turns)])
        await self._drop(digests)
        return True

    async def _is_free(self, here: ConversationId) -> bool:
        return not self._mailboxes.is_open(here) and not await self._is_running(here)

    async def _rewritten(self, person: str, here: ConversationId) -> bool:
        """Put the journal without their turns in its place; False when somebody wrote meanwhile."""
        stored = [one async for one in read_all(self._store, LogKind.JOURNAL, here)]
        left = without((entries.decode(one.body) for one in stored), person)
        if left is None:
            return True
        note = entries.Noted(
            text="Somebody's messages were removed from here, as they wished.",
            why=WHY,
            at=self._clock.now(),
        )
        bodies = [entries.encode(one) for one in (*left, note)]
        last = stored[-1].sequence
        appended = [
            Append(log=LogKind.JOURNAL, stream=here, body=body, after=last + number)
            for number, body in enumerate(bodies)
        ]
        if self._mailboxes.is_open(here):
            return False  # its fence must last until it has ended
        # From here on whoever takes the conversation reads it anew.
        self._leases.lost(here)
        try:
            await self._commit(*appended, Trim(log=LogKind.JOURNAL, stream=here, before=last + 1))
        except Conflict:
            return False
        # Whoever took it before that commit read the old one, and must not keep it.
        while self._mailboxes.is_open(here):
            await self._clock.sleep(LOOK_S)
        self._leases.lost(here)
        return True

    # --- both ----------------------------------------------------------------------------------

    async def _stopped(self, wish: Wish, here: ConversationId, *, everybodys: bool) -> bool:
        """Take back what waits, stop what runs as `/new` does, and wait for its end."""
        async for row in find_all(self._store, RowKind.INBOX, conversation=here, state="queued"):
            item = item_of(row)
            if everybodys or item.principal.id == wish.person:
                await self._superseded(row, item)
        if not await self._is_running(here):
            return True
        if everybodys or await self._runs_theirs(wish.person, here):
            stop = Item(
                id=ItemId(self._ids.ulid()),
                conversation=here,
                address=wish.address,
                principal=wish.by,
                content=Stop(cause="new"),
                admitted_at=self._clock.now(),
            )
            await self._store.commit(
                Commit(
                    point=DurablePoint.ADMITTED,
                    conversation=here,
                    writes=(item_put(stop, "control", expect=0),),
                )
            )
            self._mailboxes.wake(here)
        for _ in range(TRIES):
            if await self._is_free(here):
                return True
            await self._clock.sleep(LOOK_S)
        return False

    async def _superseded(self, row: Row, item: Item) -> None:
        try:
            await self._commit(item_put(item, "superseded", expect=row.version))
        except Conflict:
            return  # its turn has begun, and is stopped
        if self._mailboxes.is_open(item.conversation):
            self._mailboxes.wake(item.conversation)  # its files may be on their way

    async def _is_running(self, here: ConversationId) -> bool:
        for kind, state in _RUNNING:
            if await self._store.find(kind, conversation=here, state=state, limit=1):
                return True
        return False

    async def _runs_theirs(self, person: str, here: ConversationId) -> bool:
        found = await self._store.find(RowKind.TURN, conversation=here, state="open")
        return any(turn_of(row).item.principal.id == person for row in found)

    async def _remove(self, found: list[Row]) -> None:
        for start in range(0, len(found), _BATCH):
            batch = found[start : start + _BATCH]
            await self._commit(*(Delete(kind=row.kind, key=row.key) for row in batch))

    async def _commit(self, *writes: Write) -> None:
        await self._store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=writes))


def _is_of(row: Row, person: str, turns: frozenset[str]) -> bool:
    """Tell whether a row of a shared conversation is a person's, or of a turn that they began."""
    match row.kind:
        case RowKind.INBOX:
            return item_of(row).principal.id == person
        case RowKind.ATTACHMENT:
            return attached_of(row).principal == person
        case RowKind.TURN:
            return row.key in turns
        case RowKind.APPROVAL:
            return approvals.decode(row.body).turn in turns
        case RowKind.ACTION:
            return from_row(row.body).action.turn in turns
        case RowKind.RESULT:
            return decode(KeptResult, row.body).turn in turns
        case _:
            item = rows.read(row)
            return isinstance(item, rows.Text | rows.File) and item.turn in turns
