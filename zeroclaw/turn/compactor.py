"""Replaces the older part of a conversation by a summary: requests it, and returns what to record.

A kill before the commit repeats its requests; the journal has every message before and after it.
Failures are counted: after three in a row, no summary is requested in this conversation for a
while, and requests are cut instead (K13).

Facts from the messages that are about to be replaced are saved as notes of their owner (S3-11).
Each fact is a call of `remember` that the runtime makes for the turn's person. The gate decides on
it, knows that no model made it (the condition `compaction`), and audits it like any other. A call
that needs approval is dropped: no person caused it, and the summary has the fact as well. The notes
are written in the commit of the summary, so a kill keeps both or neither.
"""

from msgspec.json import encode

from zeroclaw.context.assembly import reserve_of, room_of
from zeroclaw.context.compaction import (
    UNKNOWN_WINDOW,
    Breaker,
    facts_question,
    is_little,
    kept_summary,
    kept_tail,
    parse_facts,
    summary_question,
)
from zeroclaw.context.notes import note_of, plan_additions
from zeroclaw.envelope import ActionId, is_off_the_record
from zeroclaw.errors import ContextOverflow, ToolFailed
from zeroclaw.foreign import Raised
from zeroclaw.gate import audit
from zeroclaw.gate.verdict import Allowed, Asked, GatedBatch, Setting
from zeroclaw.message import Message, ToolCall
from zeroclaw.store import DurablePoint, Reads, Row
from zeroclaw.text import catalogue
from zeroclaw.tools.notes import REMEMBER, make_note
from zeroclaw.tools.notes.note import Note, owner_of
from zeroclaw.turn.context import TurnContext
from zeroclaw.turn.entries import Compacted, RequestLost
from zeroclaw.turn.model_call import OFF_THE_RECORD
from zeroclaw.turn.session import NOTHING, Transition
from zeroclaw.turn.signals import CompactionFailed
from zeroclaw.turn.states import CompactionCause
from zeroclaw.turn.tool_calls import ToolCalls
from zeroclaw.value import replace


async def compact(turn: TurnContext, calls: ToolCalls, cause: CompactionCause) -> Transition:
    """Return the transition with the summary and the notes of its facts, or with a failure."""
    services, session, composer = turn.services, turn.session, turn.composer
    record, language, is_asked = session.requests, turn.language, cause == "asked"
    inputs = await composer.inputs(session.history.transcript())
    tail = await composer.run_sized(inputs.messages, lambda: kept_tail(inputs, is_minimal=is_asked))
    if tail is None:
        return _failed(catalogue.NOTHING_TO_COMPACT.to(language))
    if not is_asked and not composer.summarises():
        return _failed("")
    messages, start = inputs.messages, tail.start
    older = [message for index, message in enumerate(messages[:start]) if index != tail.pinned]
    if is_asked and await composer.run_sized(older, lambda: is_little(older)):
        return _failed(catalogue.NOTHING_TO_COMPACT.to(language))
    max_tokens = room_of(inputs) or UNKNOWN_WINDOW
    if (context_tokens := services.sources.model.summariser.facts.context_tokens) is not None:
        max_tokens = min(max_tokens, context_tokens - reserve_of(context_tokens))
    facts = await _find_facts(turn, calls, older, max_tokens)
    question = summary_question(inputs.summary, inputs.window)
    answer = await composer.ask(question, older, max_tokens)
    if isinstance(answer, Raised) and isinstance(answer.error, ContextOverflow):
        answer = await composer.ask(question, older, max_tokens // 2)
    usage = composer.take_uncharged_usage()
    summary = "" if isinstance(answer, Raised) else kept_summary(answer, inputs.window)
    if not summary:
        reason = answer.line if isinstance(answer, Raised) else "the summary is empty or cut off"
        reason = OFF_THE_RECORD if is_off_the_record(session.conversation) else reason
        record.breaker = record.breaker.failed(services.clock.monotonic())
        turn.log("compaction_failed", reason=reason, level="warning")
        return Transition(
            events=(CompactionFailed(text=catalogue.NO_SUMMARY.to(language), usage=usage),),
            point=DurablePoint.HOUSEKEEPING,
            journal=(RequestLost(usage=usage, at=services.clock.now()),),
        )
    compacted = Compacted(
        summary=summary,
        kept=len(messages) - start,
        pinned=0 if tail.pinned is None else len(messages) - tail.pinned,
        usage=usage,
        tools=session.history.loaded.tools,
        skills=session.history.loaded.skills,
        at=services.clock.now(),
    )
    record.breaker, record.is_cut = Breaker(), False
    is_first = not is_asked and not session.history.summary
    notice = (turn.notice(catalogue.COMPACTED.to(language)),) if is_first else ()
    gate_setting = await _setting(calls)
    batch = await services.gate.gate_batch(map(_call, facts), gate_setting)

    async def plan(reads: Reads) -> Transition:
        notes = await _kept_facts(turn, reads, gate_setting, batch, facts)
        return replace(
            notes,
            events=(compacted,),
            point=DurablePoint.COMPACTED,
            journal=(compacted,),
            writes=(*notice, *notes.writes),
        )

    return Transition(plan=plan)


def _failed(reason: str) -> Transition:
    return Transition(events=(CompactionFailed(text=reason),))


# --- facts ---------------------------------------------------------------------------------------

OF_A_GROUP = "this group"
"""The author of facts from a group: the model extracts the facts of several people together."""


def is_of_a_group(row: Row) -> bool:
    """Tell whether a row is a fact from a group's conversation."""
    note = note_of(row)
    return note is not None and note.by == OF_A_GROUP and not note.writer


async def _find_facts(
    turn: TurnContext, calls: ToolCalls, messages: list[Message], max_tokens: int
) -> tuple[str, ...]:
    """Ask the model for the facts in messages; do not ask if the gate would allow no note.

    Args:
        turn: The turn; its person, or their group, will own the facts.
        calls: Its calls.
        messages: The messages.
        max_tokens: Limit of the request.
    """
    services = turn.services
    if REMEMBER not in services.gate.tools or not await _may_keep(turn, calls):
        return ()
    notes = await services.recollection.notes.all(owner_of(turn.address, turn.opened.principal))
    # The model that extracts facts would read a note that a web page dictated.
    known_facts = (note.text for note in notes if note.trusted)
    question = facts_question(known_facts, max_tokens)
    answer = await turn.composer.ask(question, messages, max_tokens)
    if isinstance(answer, Raised):
        turn.log("facts_failed", reason=answer.line, level="warning")
        return ()
    return parse_facts(answer.content)


async def _may_keep(turn: TurnContext, calls: ToolCalls) -> bool:
    """Tell whether the gate would allow a note now; this records nothing."""
    gated = await turn.services.gate.gate_batch((_call("."),), await _setting(calls))
    return isinstance(gated.verdicts[0], Allowed)


async def _kept_facts(
    turn: TurnContext, reads: Reads, setting: Setting, gated: GatedBatch, facts: tuple[str, ...]
) -> Transition:
    """Return the audit entries of the calls, and the notes of the facts that the gate has allowed.

    The calls get no rows: their arguments quote several people, and would outlive the notes.
    """
    if not facts:
        return NOTHING
    services = turn.services
    undecided = {verdict.action for verdict in gated.verdicts if isinstance(verdict, Asked)}
    kinds: dict[str, audit.Kind] = {}
    notes: list[tuple[ActionId, Note]] = []
    for fact, verdict in zip(facts, gated.verdicts, strict=True):
        if isinstance(verdict, Allowed):
            note = _note(turn, fact, setting)
            kinds[verdict.action] = audit.Kind.FAILED
            notes += [] if note is None else [(verdict.action, note)]
    writes, results = await plan_additions(
        reads,
        owner_of(turn.address, turn.opened.principal),
        [note for _, note in notes],
        max_notes=services.recollection.max_notes,
    )
    for (action, _), result in zip(notes, results, strict=True):
        if result != "full":
            kinds[action] = audit.Kind.EXECUTED
    audited = [entry for entry in gated.audited if entry.action not in undecided]
    hashes = {entry.action: entry.hash for entry in audited}
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
        for action, kind in kinds.items()
    ]
    if count := sum(result != "full" and result.is_new for result in results):
        turn.log("facts_remembered", count=count)
    return Transition(audited=tuple(audited), writes=writes)


async def _setting(calls: ToolCalls) -> Setting:
    return replace(await calls.setting(), compaction=True)


def _note(turn: TurnContext, fact: str, setting: Setting) -> Note | None:
    """Return a fact as a note, None if it contains a secret."""
    by = "" if turn.address.direct else OF_A_GROUP
    try:
        return make_note(fact, setting.context, turn.services.gate.redactor.redact, by=by)
    except ToolFailed:
        return None


def _call(fact: str) -> ToolCall:
    return ToolCall(id="fact", name=REMEMBER, arguments=encode({"text": fact}).decode())
