"""`/grants`, `/revoke` and `zeroclaw grants`: what runs without asking for a time, and its end.

A grant is gone with the commit that revokes it, so the next decision of the gate asks again, and
the last check of a call that has not started yet finds it gone. The conversation's holder is told
by a control item, because only the holder writes that conversation's audit.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from zeroclaw.delivery.rows import note_row
from zeroclaw.envelope import Address, Command, ConversationId, ItemId, Principal, chosen_name
from zeroclaw.gate import grant as grants
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.grant import GRANTS, Grant
from zeroclaw.gate.wording import MOST_NUMBERS
from zeroclaw.inbound.context import InboundContext
from zeroclaw.inbound.conversations import CONVERSATIONS, Found
from zeroclaw.inbound.pairing import CONSOLE
from zeroclaw.inbound.plan import Plan
from zeroclaw.store import (
    Commit,
    DurablePoint,
    Expect,
    Reads,
    RowKind,
    Write,
    scan,
    transact,
)
from zeroclaw.text import catalogue
from zeroclaw.text.language import Language
from zeroclaw.turn.inbox import Item, Revoked, item_put
from zeroclaw.value import Value, replace

USAGE = "Use `grants list`, or `grants revoke ID`; the list shows the ids."
AT_CONSOLE = Address(channel=CONSOLE.channel, account="", chat="", direct=True)


class Held(Value):
    """A grant that holds, and the version it was read at."""

    grant: Grant
    version: int


class _Outcome(Value):
    """What words come to, as far as one commit may go.

    Attributes:
        scope: The conversation whose grants end; None when none does.
        told: One line a word.
        left: Words that name grants of other conversations.
    """

    scope: ConversationId | None
    writes: tuple[Write, ...]
    told: tuple[str, ...]
    left: tuple[str, ...]


class GrantCommands:
    """Lists grants and ends them.

    Whoever may approve a tool's calls sees and ends all grants of it, and so does an operator.
    Everybody sees those of their own conversation, and may end what was granted to themselves. In a
    group nobody is shown more than that conversation's.
    """

    def __init__(self, context: InboundContext, announce: Callable[[Plan], None]) -> None:
        """Hold what is needed; `announce` is told what the console has committed."""
        self._store = context.store
        self._policy = context.policy
        self._redact = context.redact
        self._clock = context.clock
        self._ids = context.ids
        self._announce = announce

    # --- in a chat -------------------------------------------------------------------------------

    async def listed(self, here: ConversationId, address: Address, principal: Principal) -> str:
        """Return what holds now, a line each, as far as it concerns this person."""
        lines: list[str] = []
        language = principal.language
        for held in await self._held():
            if self._sees(held.grant, principal, address, here):
                name = grants.name_of(held.grant)
                where = await self._where(held.grant.conversation, here, language)
                line = catalogue.GRANT_HELD_BY.to(
                    language,
                    grant=self._redact(grants.describe(held.grant, language)),
                    holder=self._redact(held.grant.holder),
                    where=where,
                )
                lines.append(f"- `{name}` {line}")
        return "\n".join(lines) or catalogue.NOTHING_GRANTED.to(language)

    async def revoke(
        self, command: Command, address: Address, principal: Principal, found: Found
    ) -> Plan:
        """Return what `/revoke 1 3` comes to in one chat.

        Grants of another conversation than the first one's are left for a plan after it.
        """
        words, language = _words(command.rest), principal.language
        is_too_many = len(words) > MOST_NUMBERS
        outcome = await self._revoke(
            () if is_too_many else words, address, principal, found.conversation, "/grants"
        )
        text = "\n".join(outcome.told) or catalogue.SAY_WHICH_GRANT.to(language)
        if is_too_many:
            text = catalogue.TOO_MANY_NUMBERS.to(language, most=MOST_NUMBERS)
        note = note_row(
            key=self._ids.ulid(),
            conversation=found.conversation,
            address=address,
            text=text,
            language=language,
        )
        rest = replace(command, rest=" ".join(outcome.left))
        return Plan(
            conversation=outcome.scope or found.conversation,
            writes=(*found.writes, *outcome.writes, note),
            wake=(outcome.scope,) if outcome.scope else (),
            idle=outcome.scope is None,
            rest=rest if outcome.left else None,
        )

    # --- at the console --------------------------------------------------------------------------

    async def console(self, asked: Mapping[str, object]) -> dict[str, object]:
        """Do what `zeroclaw grants` asks for over the control socket.

        Raises:
            Conflict: Somebody else kept changing the same.
        """
        given = asked.get("words")
        word, *words = _words(given if isinstance(given, str) else "") or ("list",)
        if word == "list" and not words:
            text = await self.listed(ConversationId(""), AT_CONSOLE, CONSOLE)
            every = [self._as_json(held.grant) for held in await self._held()]
            return {"text": text, "changed": False, "grants": every}
        if word != "revoke" or not words:
            return {"text": USAGE, "changed": False}
        told: list[str] = []
        is_changed = False
        left = tuple(words)
        while left:
            outcome = await self._at_console(left)
            told += outcome.told
            is_changed = is_changed or outcome.scope is not None
            left = outcome.left
        return {"text": "\n".join(told), "changed": is_changed}

    async def _at_console(self, words: tuple[str, ...]) -> _Outcome:
        async def wish(_reads: Reads) -> tuple[Commit | None, _Outcome]:
            outcome = await self._revoke(
                words, AT_CONSOLE, CONSOLE, ConversationId(""), "zeroclaw grants list"
            )
            commit = Commit(
                point=DurablePoint.ANSWERED, conversation=outcome.scope, writes=outcome.writes
            )
            return None if outcome.scope is None else commit, outcome

        outcome = await transact(self._store, wish)
        if outcome.scope is not None:
            wake = (outcome.scope,)
            self._announce(Plan(conversation=outcome.scope, writes=outcome.writes, wake=wake))
        return outcome

    # --- what holds ------------------------------------------------------------------------------

    async def _held(self) -> tuple[Held, ...]:
        now = self._clock.now()
        rows = scan(self._store, GRANTS.where())
        held = [Held(grant=grants.decode(row.body), version=row.version) async for row in rows]
        return tuple(one for one in held if now < one.grant.until)

    async def _where(
        self, conversation: ConversationId, here: ConversationId, language: Language
    ) -> str:
        if conversation == here:
            return catalogue.GRANT_HERE.to(language)
        row = await self._store.get(RowKind.CONVERSATION, conversation)
        if row is None:
            return catalogue.GRANT_ELSEWHERE.to(language, conversation=conversation)
        address = CONVERSATIONS.of(row).address
        thread = f"/{address.thread}" if address.thread else ""
        chat = f"{address.channel}/{address.chat}{thread}"
        return catalogue.GRANT_IN_CHAT.to(language, chat=chat)

    def _as_json(self, one: Grant) -> dict[str, object]:
        return {
            "id": one.id,
            "name": grants.name_of(one),
            "tool": one.tool,
            "resources": [self._redact(resource) for resource in one.resources],
            "arguments_hash": one.arguments_hash or "",
            "conversation": one.conversation,
            "holder": one.holder,
            "granted_by": one.granted_by,
            "until": one.until.isoformat(),
        }

    # --- what may be done ------------------------------------------------------------------------

    def _sees(
        self, one: Grant, principal: Principal, address: Address, here: ConversationId
    ) -> bool:
        # Others read along in a group.
        return one.conversation == here or (
            address.direct and self._may_end(one, principal, address)
        )

    def _may_end(self, one: Grant, principal: Principal, address: Address) -> bool:
        query = Query(
            principal=principal,
            action="command:revoke",
            now=self._clock.now(),
            direct=address.direct,
            own=one.holder == principal.id,
        )
        approves = replace(query, action=f"approve:{one.tool}", own=None)
        decide = self._policy().decide
        return "allow" in (decide(query).effect, decide(approves).effect)

    async def _revoke(
        self,
        words: tuple[str, ...],
        address: Address,
        principal: Principal,
        here: ConversationId,
        lists: str,
    ) -> _Outcome:
        every, language = await self._held(), principal.language
        seen = [one for one in every if self._sees(one.grant, principal, address, here)]
        ends: dict[str, Held] = {}
        scope: ConversationId | None = None
        told: list[str] = []
        left: list[str] = []
        for word in words:
            meant = _meant(word, seen)
            shown = chosen_name(word)
            if meant is None:
                told.append(catalogue.NO_SUCH_GRANT.to(language, name=shown, lists=lists))
            elif not self._may_end(meant.grant, principal, address):
                told.append(catalogue.GRANT_IS_NOT_YOURS.to(language, name=shown))
            elif scope not in (None, meant.grant.conversation):
                left.append(word)
            else:
                scope = meant.grant.conversation
                ends[meant.grant.id] = meant
                told.append(catalogue.GRANT_REVOKED.to(language, name=shown, tool=meant.grant.tool))
        now = self._clock.now()
        writes: list[Write] = []
        for one in ends.values():
            writes += ending(one, ItemId(self._ids.ulid()), address, principal, now)
        return _Outcome(scope=scope, writes=tuple(writes), told=tuple(told), left=tuple(left))


def ending(held: Held, item: ItemId, address: Address, by: Principal, at: datetime) -> list[Write]:
    """Return the writes that revoke a grant and let its conversation's holder audit it.

    Of two who revoke it one does, and the other meets a conflict.
    """
    one = held.grant
    control = Item(
        id=item,
        conversation=one.conversation,
        address=address,
        principal=by,
        content=Revoked(grant=one.id, tool=one.tool),
        admitted_at=at,
    )
    return [
        Expect(kind=RowKind.GRANT, key=one.id, version=held.version),
        grants.to_delete(one),
        item_put(control, "control", expect=0),
    ]


def _words(text: str) -> tuple[str, ...]:
    """Return the names in a text, `1 3`, `1, 3`, `#1` or an id, each once."""
    words = (word.strip("#`") for word in text.replace(",", " ").split(maxsplit=MOST_NUMBERS))
    return tuple(dict.fromkeys(word for word in words if word))


def _meant(word: str, seen: Iterable[Held]) -> Held | None:
    """Return the one grant that a word names, None for none and for several."""
    named = [one for one in seen if grants.is_called(one.grant, word)]
    return named[0] if len(named) == 1 else None
