"""Replaces the older part of a conversation by a summary: asks for it, and says what is recorded.

A kill before the commit costs its requests once more; the journal holds every message before and after it.
What fails is counted: after three failures in a row no summary is asked for in this conversation for
a while, and requests are cut instead (K13).
"""

from zeroclaw.context.assembly import Scene, room_of
from zeroclaw.context.compaction import (
    UNKNOWN_WINDOW,
    Breaker,
    kept,
    kept_summary,
    summary_request,
)
from zeroclaw.delivery.rows import Text, outbox_row
from zeroclaw.errors import ContextOverflow
from zeroclaw.foreign import Raised
from zeroclaw.gate.receipt import detach
from zeroclaw.message import Message, Usage
from zeroclaw.store import DurablePoint
from zeroclaw.text import catalogue
from zeroclaw.turn.composer import Composer
from zeroclaw.turn.context import TurnContext
from zeroclaw.turn.entries import Compacted
from zeroclaw.turn.facts import FactNotes
from zeroclaw.turn.model_call import complete
from zeroclaw.turn.session import Transition
from zeroclaw.turn.signals import CompactionFailed
from zeroclaw.turn.states import CompactionCause


class Compactor:
    """Summarises for one turn."""

    def __init__(self, turn: TurnContext, composer: Composer, facts: FactNotes) -> None:
        """Work on this turn's conversation; `facts` keeps what holds beyond it."""
        self._turn, self._composer, self._facts = turn, composer, facts
        self._services, self._session = turn.services, turn.session

    async def compact(self, cause: CompactionCause) -> Transition:
        """Return what happened: a summary, or why there is none."""
        services, session, language = self._services, self._session, self._turn.language
        scene = await self._composer.scene()
        tail = kept(scene, self._composer.learned, detach, least=cause == "asked")
        if tail is None:
            return _failed(catalogue.NOTHING_TO_COMPACT.to(language))
        now = services.clock.monotonic()
        is_closed = not services.compaction().enabled or not session.breaker.lets(now)
        if is_closed and cause != "asked":
            return _failed("")
        messages, start = scene.messages, tail.start
        gone = [one for at, one in enumerate(messages[:start]) if at != tail.pinned]
        room = room_of(scene, self._composer.learned) or UNKNOWN_WINDOW
        facts, of_facts = await self._facts.find(gone, scene.window, room)
        answer = await self._ask(scene, gone, room)
        said, usage = ("", Usage()) if isinstance(answer, Raised) else answer
        summary = kept_summary(said, scene.window)
        if not summary:
            why = answer.line if isinstance(answer, Raised) else "the model said nothing"
            session.breaker = session.breaker.failed(services.clock.monotonic())
            services.log("compaction_failed", why=why, level="warning")
            return _failed(catalogue.NO_SUMMARY.to(language))
        compacted = Compacted(
            summary=summary,
            kept=len(messages) - start,
            pinned=0 if tail.pinned is None else len(messages) - tail.pinned,
            usage=of_facts + usage,
            tools=session.history.loaded.tools,
            skills=session.history.loaded.skills,
            at=services.clock.now(),
        )
        session.breaker, session.is_cut = Breaker(), False
        is_first = cause != "asked" and not session.history.summary
        note = Text(
            address=self._turn.address, text=catalogue.COMPACTED.to(language), language=language
        )
        told = (outbox_row(services.ids.ulid(), note, session.conversation),) if is_first else ()

        async def planned() -> Transition:
            keeps = await self._facts.plan(facts)
            if keeps.count:
                services.log("facts_kept", count=keeps.count)
            return Transition(
                event=compacted,
                point=DurablePoint.COMPACTED,
                journal=(compacted,),
                audited=keeps.audited,
                writes=(*told, *keeps.writes),
                again=planned,
            )

        return await planned()

    async def _ask(
        self, scene: Scene, gone: list[Message], room: int
    ) -> tuple[str, Usage] | Raised:
        """Ask for the summary; once more, with half of it, where that is too large as well."""
        services = self._services
        window = scene.window
        for most_tokens in (room, room // 2):
            request = summary_request(
                scene.summary,
                gone,
                detach,
                window=window,
                most_tokens=most_tokens,
                model=services.compaction().model,
                correlation=self._turn.opened.correlation,
            )
            answer = await complete(services.model, request)
            if not isinstance(answer, Raised) or not isinstance(answer.error, ContextOverflow):
                break
        return answer


def _failed(why: str) -> Transition:
    return Transition(event=CompactionFailed(text=why))
