"""`/pair` and `zeroclaw pair`: who wants in, who is in, and who is put out again.

    pair                        lists
    pair approve CODE|PERSON    lets in who waits, or takes back that somebody was revoked
    pair deny CODE|PERSON       refuses who waits
    pair revoke PERSON          puts somebody out, at once

A PERSON is `ann` or `person:ann` of the configuration, or `<channel>:<sender id>`.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Literal, get_args

from zeroclaw.card_words import by_whom
from zeroclaw.envelope import Principal, chosen_name, labelled
from zeroclaw.inbound import pairing
from zeroclaw.inbound.approvals import Approvals, Read, strangers_of
from zeroclaw.inbound.context import InboundContext
from zeroclaw.inbound.identity import PEOPLE, Known, known_delete, known_of, known_put
from zeroclaw.inbound.pairing import CONSOLE, Stranger
from zeroclaw.inbound.plan import Plan
from zeroclaw.store import (
    Commit,
    DurablePoint,
    Reads,
    RowKind,
    Rows,
    Write,
    scan,
    transact,
)
from zeroclaw.text import catalogue
from zeroclaw.text.language import Language
from zeroclaw.value import Value, replace

Do = Literal["list", "approve", "deny", "revoke"]
DOINGS: tuple[Do, ...] = get_args(Do)


class Outcome(Value):
    """What a wish comes to.

    Attributes:
        text: For whoever wished it; Markdown, one line but for a list.
        writes: Empty when nothing is changed.
    """

    text: str
    writes: tuple[Write, ...] = ()


class PairCommand:
    """Plans what `pair` does; the caller has checked that it may be used."""

    def __init__(
        self, context: InboundContext, requests: Approvals, announce: Callable[[Plan], None]
    ) -> None:
        """Hold what is needed; `announce` is told what the console has committed."""
        self._store = context.store
        self._people = context.people
        self._clock = context.clock
        self._requests = requests
        self._announce = announce

    async def plan(self, text: str, principal: Principal, *, direct: bool = True) -> Outcome:
        """Return what the words after `pair` come to; people are listed where one person reads."""
        language = principal.language
        word, _, rest = text.strip().partition(" ")
        do = next((one for one in DOINGS if one == (word.lower() or "list")), None)
        what = rest.strip()
        match do:
            case "list" if not direct:
                return Outcome(text=catalogue.PAIR_LIST_IN_PRIVATE.to(language))
            case "list":
                return Outcome(text=await listed(self._store, self._clock.now(), language))
            case "approve" if what:
                return await self._answer(what, principal, yes=True)
            case "deny" if what:
                return await self._answer(what, principal, yes=False)
            case "revoke" if what:
                return await self._revoke(what, principal)
            case _:
                return Outcome(text=catalogue.PAIR_USAGE.to(language))

    async def console(self, asked: Mapping[str, object]) -> dict[str, object]:
        """Do what `zeroclaw pair` asks for over the control socket.

        Raises:
            Conflict: Somebody else kept changing the same.
        """
        given = asked.get("words")
        words = given if isinstance(given, str) else ""

        async def wish(_reads: Reads) -> tuple[Commit | None, Outcome]:
            outcome = await self.plan(words, CONSOLE)
            commit = Commit(point=DurablePoint.ANSWERED, writes=outcome.writes)
            return commit if outcome.writes else None, outcome

        outcome = await transact(self._store, wish)
        if outcome.writes:
            self._announce(Plan(conversation=None, writes=outcome.writes))
        return {"text": outcome.text, "changed": bool(outcome.writes)}

    # --- what is done --------------------------------------------------------------------------

    async def _answer(self, what: str, principal: Principal, *, yes: bool) -> Outcome:
        read = await self._meant(what)
        if read is not None:
            writes, text = await self._requests.answer_about_stranger(
                read, yes=yes, principal=principal, at=self._clock.now()
            )
            return Outcome(text=text, writes=writes)
        shown, language = chosen_name(what), principal.language
        if pairing.read_code(what):
            return Outcome(text=catalogue.PAIR_NO_SUCH_CODE.to(language, code=shown))
        if yes:
            return await self._take_back(what, principal)
        return Outcome(text=catalogue.PAIR_NOBODY_WAITS_SO.to(language, name=shown))

    async def _meant(self, what: str) -> Read[Stranger] | None:
        """Return the question that a code or an id names; of several the newest open one."""
        code = pairing.read_code(what)
        named = [
            read
            for read in await strangers_of(self._store)
            if read.request.identity == what
            or (
                code
                and pairing.is_code(code, salt=read.request.salt, code_hash=read.request.code_hash)
            )
        ]
        if not code:
            named = [read for read in named if read.request.state == "waiting"]
        return named[-1] if named else None

    async def _revoke(self, what: str, principal: Principal) -> Outcome:
        name, language = self._people.named(what), principal.language
        if not name:
            text = catalogue.PAIR_NOBODY_IS_CALLED_SO.to(
                language, name=chosen_name(what), usage=catalogue.PAIR_USAGE
            )
            return Outcome(text=text)
        if name == principal.id:
            return Outcome(text=catalogue.PAIR_NOT_YOURSELF.to(language))
        row = await self._store.get(RowKind.PERSON, name)
        before = None if row is None else known_of(row)
        if before is not None and before.state == "revoked":
            text = catalogue.PAIR_ALREADY_REVOKED.to(language, name=name, who=by_whom(before.by))
            return Outcome(text=text)
        known = Known(
            id=name,
            display=before.display if before else "",
            state="revoked",
            by=pairing.by_of(principal),
            at=self._clock.now(),
            ids=self._people.ids_of(name),
        )
        put = known_put(known, expect=row.version if row else 0)
        text = catalogue.PAIR_REVOKED.to(language, name=name)
        return Outcome(text=text, writes=(put, *await self._refused(name, principal)))

    async def _refused(self, name: str, principal: Principal) -> tuple[Write, ...]:
        """End what is still asked about somebody, so that no older card lets them in again."""
        writes: list[Write] = []
        for read in await strangers_of(self._store):
            if self._people.named(read.request.identity) == name:
                ended, _ = await self._requests.answer_about_stranger(
                    read, yes=False, principal=principal, at=self._clock.now()
                )
                writes += ended
        return tuple(writes)

    async def _take_back(self, what: str, principal: Principal) -> Outcome:
        # The configuration may name them since, or otherwise, or no more.
        name = self._people.put_out_as(what) or self._people.named(what)
        row = await self._store.get(RowKind.PERSON, name) if name else None
        before = None if row is None else known_of(row)
        if row is None or before is None or before.state != "revoked":
            text = catalogue.PAIR_NOTHING_TO_APPROVE.to(principal.language, name=chosen_name(what))
            return Outcome(text=text)
        text = catalogue.PAIR_LET_IN_AGAIN.to(principal.language, name=name)
        if self._people.is_configured(name) or name.startswith("person:"):
            return Outcome(text=text, writes=(known_delete(name),))
        again = replace(
            before,
            state="admitted",
            by=pairing.by_of(principal),
            at=self._clock.now(),
            roles=(),
        )
        return Outcome(text=text, writes=(known_put(again, expect=row.version),))


async def listed(rows: Rows, now: datetime, language: Language) -> str:
    """List who waits for an answer, and what was decided about people."""
    waiting = [
        f"- {pairing.line(one.request, language)}"
        for one in await strangers_of(rows)
        if pairing.is_open(one.request, now)
    ]
    decided = [known_of(row) async for row in scan(rows, PEOPLE.where())]
    known = [f"- {_line(one, language)}" for one in decided]
    return "\n".join((*waiting, *known)) or catalogue.PAIR_NOBODY.to(language)


def _line(one: Known, language: Language) -> str:
    id_ = f"`{pairing.exact(one.id)}`"
    is_in = one.state == "admitted"
    return (catalogue.PAIR_ADMITTED if is_in else catalogue.PAIR_PUT_OUT).to(
        language,
        name=labelled(id_, one.display),
        roles=f", {', '.join(one.roles)}" if one.roles else "",
        who=by_whom(one.by),
        at=f"{one.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
    )
