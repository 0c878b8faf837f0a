"""Saves facts from messages that a summary is about to replace, as notes of their owner (S3-11).

Each fact is a call of `remember` that the runtime makes for the turn's person. The gate decides on
it, knows that no model made it (the condition `compaction`), and records it like any other. A call
that needs approval is dropped: no person caused it, and the summary has the fact as well. The notes
are written in the commit of the summary, so a kill keeps both or neither.
"""

from msgspec.json import encode

from zeroclaw.context.facts import facts_question, parse_facts
from zeroclaw.context.notes import added, note_of
from zeroclaw.envelope import ActionId
from zeroclaw.errors import ToolFailed
from zeroclaw.foreign import Raised
from zeroclaw.gate import audit
from zeroclaw.gate.verdict import Allowed, Asked, Setting
from zeroclaw.message import Message, ToolCall
from zeroclaw.store import Row, Write
from zeroclaw.tools.notes import REMEMBER
from zeroclaw.tools.notes import note_of as made_note
from zeroclaw.tools.notes.note import Note, owner_of
from zeroclaw.turn.context import TurnContext
from zeroclaw.turn.tool_calls import ToolCalls
from zeroclaw.value import Value, replace

OF_A_GROUP = "this group"
"""The author of facts from a group: the facts of several people are found together."""


def is_of_a_group(row: Row) -> bool:
    """Tell whether a row is a fact from a group's conversation."""
    note = note_of(row)
    return note is not None and note.by == OF_A_GROUP and not note.writer


class KeptFacts(Value):
    """The part of a summary's commit that keeps facts.

    Attributes:
        audited: The calls, each with its end.
        writes: The calls and the notes.
        count: The number of new notes.
    """

    audited: tuple[audit.Entry, ...] = ()
    writes: tuple[Write, ...] = ()
    count: int = 0


class FactNotes:
    """Finds and keeps facts for one turn."""

    def __init__(self, turn: TurnContext, calls: ToolCalls) -> None:
        """Keep facts for this turn's person, or its group."""
        self._turn, self._calls = turn, calls
        self._services = turn.services
        self._owner = owner_of(turn.address, turn.opened.principal)

    async def find(
        self, gone: list[Message], window: int | None, most_tokens: int
    ) -> tuple[str, ...]:
        """Ask the model for the facts in messages; return none if they could not be kept.

        Args:
            gone: The messages.
            window: The model's window in tokens, None if unknown.
            most_tokens: Limit of the request.
        """
        services = self._services
        if REMEMBER not in services.gate.tools or not await self._may_keep():
            return ()
        known = await services.recollection.notes.all(self._owner)
        # The model that extracts facts would read a note that a web page dictated.
        trusted = (note.text for note in known if note.trusted)
        question = facts_question(trusted, window, most_tokens)
        answer = await self._turn.composer.ask(question, gone, most_tokens)
        if isinstance(answer, Raised):
            services.log("facts_failed", why=answer.line, level="warning")
            return ()
        return parse_facts(answer)

    async def _may_keep(self) -> bool:
        """Tell whether the gate would allow a note now; this records nothing."""
        gated = await self._services.gate.gate_batch((_call("."),), await self._setting())
        return isinstance(gated.verdicts[0], Allowed)

    async def plan(self, facts: tuple[str, ...]) -> KeptFacts:
        """Return the writes that keep the facts now; after a `Conflict`, call it again."""
        if not facts:
            return KeptFacts()
        services, setting = self._services, await self._setting()
        gated = await services.gate.gate_batch([_call(one) for one in facts], setting)
        asked = {one.action for one in gated.verdicts if isinstance(one, Asked)}
        writes: list[Write] = [one for one in gated.writes if one.key not in asked]
        ends: dict[str, audit.Kind] = {}
        notes: list[tuple[ActionId, Note]] = []
        for fact, verdict in zip(facts, gated.verdicts, strict=True):
            if isinstance(verdict, Allowed):
                note = self._note(fact, setting)
                ends[verdict.action] = audit.Kind.FAILED
                notes += [] if note is None else [(verdict.action, note)]
        more, kept = await added(
            services.store,
            self._owner,
            [note for _, note in notes],
            most=services.recollection.most_notes,
        )
        for (action, _), one in zip(notes, kept, strict=True):
            if one != "full":
                ends[action] = audit.Kind.EXECUTED
        audited = [one for one in gated.audited if one.action not in asked]
        hashes = {one.action: one.hash for one in audited}
        now = services.clock.now()
        audited += [
            audit.Entry(
                kind=kind,
                at=now,
                action=action,
                tool=REMEMBER,
                hash=hashes[action],
                detail="compaction",
            )
            for action, kind in ends.items()
        ]
        count = sum(one != "full" and one.is_new for one in kept)
        return KeptFacts(audited=tuple(audited), writes=(*writes, *more), count=count)

    async def _setting(self) -> Setting:
        return replace(await self._calls.setting(), compaction=True)

    def _note(self, fact: str, setting: Setting) -> Note | None:
        """Return a fact as a note, None if it contains a secret."""
        by = "" if self._turn.address.direct else OF_A_GROUP
        try:
            return made_note(fact, setting.context, self._services.gate.redactor.redact, by=by)
        except ToolFailed:
            return None


def _call(fact: str) -> ToolCall:
    return ToolCall(id="fact", name=REMEMBER, arguments=encode({"text": fact}).decode())
