"""Replaces the older part of a conversation by a summary: requests it, and returns what to record.

A kill before the commit repeats its requests; the journal has every message before and after it.
Failures are counted: after three in a row, no summary is requested in this conversation for a
while, and requests are cut instead (K13).
"""

from zeroclaw.context.assembly import reserve_of, room_of
from zeroclaw.context.compaction import (
    UNKNOWN_WINDOW,
    Breaker,
    is_little,
    kept,
    kept_summary,
    summary_question,
)
from zeroclaw.envelope import is_off_the_record
from zeroclaw.errors import ContextOverflow
from zeroclaw.foreign import Raised
from zeroclaw.store import DurablePoint
from zeroclaw.text import catalogue
from zeroclaw.turn.context import TurnContext
from zeroclaw.turn.entries import Compacted, RequestLost
from zeroclaw.turn.facts import FactNotes
from zeroclaw.turn.model_call import OFF_THE_RECORD
from zeroclaw.turn.session import Transition
from zeroclaw.turn.signals import CompactionFailed
from zeroclaw.turn.states import CompactionCause


async def compact(turn: TurnContext, notes: FactNotes, cause: CompactionCause) -> Transition:
    """Return the summary or why there is none; `notes` keeps facts that outlast it."""
    services, session, composer = turn.services, turn.session, turn.composer
    record, language, is_asked = session.requests, turn.language, cause == "asked"
    scene = await composer.scene(session.history.spoken())
    known, learned = record.weighed, composer.learned
    tail = await composer.run_off_loop_if_large(
        scene.messages, lambda: kept(scene, known, learned, least=is_asked)
    )
    if tail is None:
        return _failed(catalogue.NOTHING_TO_COMPACT.to(language))
    if not is_asked and not composer.summarises():
        return _failed("")
    messages, start = scene.messages, tail.start
    gone = [one for at, one in enumerate(messages[:start]) if at != tail.pinned]
    if is_asked and await composer.run_off_loop_if_large(gone, lambda: is_little(gone)):
        return _failed(catalogue.NOTHING_TO_COMPACT.to(language))
    room = room_of(scene, composer.learned) or UNKNOWN_WINDOW
    if (window := services.sources.model.summariser.facts.context_tokens) is not None:
        room = min(room, window - reserve_of(window))
    facts = await notes.find(gone, scene.window, room)
    question = summary_question(scene.summary, scene.window)
    answer = await composer.ask(question, gone, room)
    if isinstance(answer, Raised) and isinstance(answer.error, ContextOverflow):
        answer = await composer.ask(question, gone, room // 2)
    usage = composer.take_uncharged_usage()
    summary = "" if isinstance(answer, Raised) else kept_summary(answer, scene.window)
    if not summary:
        why = answer.line if isinstance(answer, Raised) else "the model said nothing"
        why = OFF_THE_RECORD if is_off_the_record(session.conversation) else why
        record.breaker = record.breaker.failed(services.clock.monotonic())
        services.log("compaction_failed", why=why, level="warning")
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
    told = (turn.says(catalogue.COMPACTED.to(language)),) if is_first else ()

    async def planned() -> Transition:
        keeps = await notes.plan(facts)
        if keeps.count:
            services.log("facts_kept", count=keeps.count)
        return Transition(
            events=(compacted,),
            point=DurablePoint.COMPACTED,
            journal=(compacted,),
            audited=keeps.audited,
            writes=(*told, *keeps.writes),
            again=planned,
        )

    return await planned()


def _failed(why: str) -> Transition:
    return Transition(events=(CompactionFailed(text=why),))
