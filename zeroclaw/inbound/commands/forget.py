"""`/forget`: a person's wish that what they said be removed, once they have said it twice.

    (none) ── /forget [person] ──▶ asked ── /forget <code> ──▶ open ── removed ──▶ (none)

Each person has one wish at a time. An open one is carried out by whoever keeps the store, also
after a restart.
"""

from collections.abc import Callable
from datetime import timedelta

from zeroclaw.clock import Clock, Ids
from zeroclaw.envelope import Address, Principal
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.policy import PolicySet
from zeroclaw.store import Put, Row, RowKind, Rows, Write
from zeroclaw.table import Column, Stays, Table, Words, json_codec
from zeroclaw.text import catalogue
from zeroclaw.value import Value, replace

REPEAT_WITHIN = timedelta(minutes=10)
CODE_CHARS = 4
ASKED, OPEN = "asked", "open"


class Wish(Value):
    """The row of a wish; its key is who has it.

    Attributes:
        person: Whose words go, as `Principal.id`.
        by: Whose wish it is.
        address: Where they are told that it is done.
        code: What they repeat.
    """

    person: str
    by: Principal
    address: Address
    code: str


class Said(Value):
    """What the command comes to."""

    text: str
    writes: tuple[Write, ...] = ()


WISHES = Table(
    kind=RowKind.FORGETTING,
    owner="inbound",
    codec=json_codec(Wish),
    columns=frozenset({Column.STATE, Column.DUE_AT}),
    keeps=Stays(until="it is carried out, or nobody repeated it in time"),
    words=Words.PERSON,
)


def wish_of(row: Row) -> Wish:
    """Read a wish's row."""
    return WISHES.of(row)


class ForgetCommand:
    """Plans what `/forget` does; ingress commits it."""

    def __init__(
        self, rows: Rows, *, policy: Callable[[], PolicySet], clock: Clock, ids: Ids
    ) -> None:
        """Hold what is read; `policy` says who may have others forgotten."""
        self._rows = rows
        self._policy = policy
        self._clock = clock
        self._ids = ids

    async def plan(self, rest: str, address: Address, principal: Principal) -> Said:
        """Return the reply, and the wish as it stands after it."""
        now, language = self._clock.now(), principal.language
        named = rest.strip()
        row = await self._rows.get(RowKind.FORGETTING, principal.id)
        if row is not None and row.state == OPEN:
            return Said(text=catalogue.FORGETTING_ALREADY.to(language))
        wish = None if row is None else wish_of(row)
        is_fresh = row is not None and row.due_at is not None and now < row.due_at
        version = 0 if row is None else row.version
        if wish is not None and is_fresh and named.upper() == wish.code:
            opened = replace(wish, address=address)
            text = catalogue.FORGETTING_NOW.to(language)
            return Said(text=text, writes=(_put(opened, OPEN, version),))
        person = _person(named, principal)
        if person != principal.id and not self._may_others(principal, address):
            return Said(text=catalogue.FORGET_ONLY_YOURS.to(language))
        # Its end is random; nobody has to guess it, it only keeps a slip of the hand from harm.
        code = self._ids.ulid()[-CODE_CHARS:]
        asked = Wish(person=person, by=principal, address=address, code=code)
        text = (
            catalogue.FORGET_ASKS_YOU.to(language, code=code)
            if person == principal.id
            else catalogue.FORGET_ASKS_ABOUT.to(language, whom=person, code=code)
        )
        return Said(text=text, writes=(self._asked(asked, version),))

    def _asked(self, wish: Wish, version: int) -> Put:
        put = _put(wish, ASKED, version)
        return replace(put, due_at=self._clock.now() + REPEAT_WITHIN)

    def _may_others(self, principal: Principal, address: Address) -> bool:
        query = Query(
            principal=principal,
            action="command:forget",
            now=self._clock.now(),
            direct=address.direct,
            own=False,
        )
        return self._policy().decide(query).effect == "allow"


def _put(wish: Wish, state: str, version: int) -> Put:
    return WISHES.put(
        wish.by.id,
        wish,
        state=state,
        expect=version,
    )


def _person(named: str, principal: Principal) -> str:
    if not named:
        return principal.id
    return named if ":" in named else f"person:{named}"
