"""Keeps in mind whose message is not whole yet, so that its rest joins it; what joins, `runs.py` says.

Each piece is committed as it comes, as a message of its own that names the first: a kill between
two loses nothing. What waits is measured on the monotonic clock, so that no clock that is set holds
a message up, and anew after a start, because the platform can only bring the rest from then on.
"""

from collections.abc import Generator
from contextlib import contextmanager, suppress

from zeroclaw.clock import Clock
from zeroclaw.envelope import (
    Command,
    Deleted,
    Edited,
    Envelope,
    ItemId,
    Membership,
    Moved,
    Pressed,
    Principal,
    Said,
)
from zeroclaw.errors import StoreUnusable
from zeroclaw.inbound.runs import Run, continued, opened, takes
from zeroclaw.store import Expect, RowKind, Store, find_all
from zeroclaw.turn.inbox import Ask, Item, item_of
from zeroclaw.value import Value, replace

AFTER_START_S = 10.0
"""Seconds from a start until no more is waited for: the platform has to be reached first."""


class Sequel(Value):
    """What an event is the rest of.

    Attributes:
        last: The piece before it.
        still: Fails the commit unless that piece waits as it did.
    """

    run: Run
    last: Item
    still: Expect


class Joining:
    """Knows what is not whole; one for the whole daemon."""

    def __init__(self, store: Store, clock: Clock) -> None:
        """Hold where pieces are kept; nothing is open before `remember`."""
        self._store = store
        self._clock = clock
        self._runs: dict[ItemId, Run] = {}
        self._newest: dict[tuple[str, str, str], ItemId] = {}
        self._coming: dict[str, float] = {}

    async def remember(self) -> None:
        """Take up what an earlier process was waiting for; once, before anything is admitted."""
        async for row in find_all(self._store, RowKind.INBOX, state="queued"):
            # What can't be read is its conversation's trouble, and is told of there.
            with suppress(StoreUnusable):
                self.admitted(item_of(row), rest_s=AFTER_START_S)

    def left_s(self, run: str) -> float:
        """Return for how many seconds the rest of a message may come, 0 for a whole one."""
        found = self._runs.get(ItemId(run))
        left_s = 0.0 if found is None else found.until - self._clock.monotonic()
        return max(left_s, self._coming.get(run, 0.0))

    @contextmanager
    def coming(self, piece: Item | None) -> Generator[None]:
        """Let nobody take a piece for whole who sees it before its commit has returned."""
        ask = None if piece is None else piece.content
        if not isinstance(ask, Ask) or ask.piece is None:
            yield
            return
        run = ask.piece.run
        self._coming[run] = ask.piece.more_s
        try:
            yield
        finally:
            self._coming.pop(run, None)

    def expects(self, envelope: Envelope) -> bool:
        """Whether an event's sender has begun something there that it could be the rest of."""
        return _where(envelope) in self._newest

    async def sequel(self, envelope: Envelope) -> Sequel | None:
        """Return what an event is the rest of, None for what stands for itself."""
        run = self._runs.get(self._newest.get(_where(envelope), ItemId("")))
        if run is None or not takes(run, envelope, now=self._clock.monotonic()):
            return None
        row = await self._store.get(RowKind.INBOX, run.last)
        if row is None or row.state != "queued":
            return None  # its turn has begun, or it was withdrawn
        still = Expect(kind=row.kind, key=row.key, version=row.version)
        return Sequel(run=run, last=item_of(row), still=still)

    def admitted(self, item: Item, *, rest_s: float = 0.0) -> None:
        """Learn what waits: a piece opens, continues or ends a run, anything else ends a text.

        Args:
            item: What waits now.
            rest_s: How long is waited at least where more is to come.
        """
        ask, now = item.content, self._clock.monotonic()
        if not isinstance(ask, Ask) or ask.piece is None:
            self._ends_text(item.address.key(), item.principal.sender)
            return
        piece = ask.piece
        if piece.more_s:
            piece = replace(piece, more_s=max(piece.more_s, rest_s))
        before = self._runs.pop(piece.run, None)
        if before is None:
            self._ends_text(item.address.key(), item.principal.sender)
            run = opened(item, ask, piece, now=now)
        else:
            run = continued(before, item, ask, piece, now=now)
        self._let_go(now)
        if run is not None:
            self._runs[run.id] = run
            self._newest[_key(run)] = run.id

    def happened(self, envelope: Envelope, principal: Principal, piece: Item | None) -> None:
        """Learn what was committed; a text is whole when its writer goes on to something else.

        `piece` is what waits now, where it is one.
        """
        if piece is not None:
            self.admitted(piece)
            return
        match envelope.body:
            case Said() | Command() | Pressed():
                self._ends_text(envelope.address.key(), principal.sender)
            case Edited() | Deleted() | Moved() | Membership():
                pass

    def _ends_text(self, place: str, sender: str) -> None:
        run = self._newest.pop((place, sender, ""), None)
        if run is not None:
            self._runs.pop(run, None)

    def _let_go(self, now: float) -> None:
        """Forget what nobody waits for any more."""
        self._runs = {one.id: one for one in self._runs.values() if one.until > now}
        self._newest = {key: run for key, run in self._newest.items() if run in self._runs}


def _where(envelope: Envelope) -> tuple[str, str, str]:
    group = "" if envelope.continues is None else envelope.continues.group
    return envelope.address.key(), envelope.sender.id, group


def _key(run: Run) -> tuple[str, str, str]:
    return run.place, run.sender, run.group
