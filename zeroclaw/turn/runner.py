"""From an inbox item to a delivered answer: opens a turn, runs it, ends it, delivers the answer.

    queued ──TURN_STARTED──► taken ──(loop.py)──► (finalize.py) ──► delivered | refused

A turn that a restart interrupted is resumed from its journal. After three resumes without progress
it fails, with a note for its person (S4-19).
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TypeGuard

from zeroclaw.context.composer import Composer, RequestOwner
from zeroclaw.conversation import message_text
from zeroclaw.conversation.downloads import MessagesForModel
from zeroclaw.conversation.inbox import (
    INBOX,
    Again,
    Item,
    PersonMessage,
    Summarise,
    UseTool,
    item_put,
    said_by,
)
from zeroclaw.conversation.turn_row import TURNS, TurnRow, record_send, turn_put
from zeroclaw.delivery.live import NewDraft
from zeroclaw.envelope import ConversationId, TurnId
from zeroclaw.events import TurnStarted
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.policy import refusal_reason
from zeroclaw.gate.taint import merge_sources, named
from zeroclaw.message import ToolCall, UserMessage
from zeroclaw.store import DurablePoint, Reads, RowKind
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.turn import batch
from zeroclaw.turn.context import TurnContext, TurnServices
from zeroclaw.turn.control import ControlLane
from zeroclaw.turn.entries import RequestLost, TurnOpened, TurnResumed
from zeroclaw.turn.finalize import finish
from zeroclaw.turn.journal import first_step
from zeroclaw.turn.loop import TurnLoop, open_approvals
from zeroclaw.turn.machine import add_usage, resume
from zeroclaw.turn.session import NOTHING, ConversationSession, Transition
from zeroclaw.turn.signals import AbortRequested, Effect, Event, TurnFailed
from zeroclaw.turn.states import Asking, Calling, Done, State
from zeroclaw.value import replace

MAX_RESUMED = 3
"""Restarts in a row that a turn survives without progress; this ends a crash loop."""
CLOSE_S = 5.0
"""Seconds that a draft's pending platform call may take if its turn ends abnormally."""


class TurnRunner:
    """Runs turns; the daemon has one."""

    def __init__(self, services: TurnServices, *, on_parked: Callable[[], Awaitable[None]]) -> None:
        """Start with no running turn.

        Args:
            services: The daemon's services.
            on_parked: Called whenever a step leaves a turn parked; see `parked`.
        """
        self._services = services
        self._on_parked = on_parked
        self._running: dict[TurnId, TurnLoop] = {}

    async def run(
        self, session: ConversationSession, items: tuple[Item, ...], arrived: asyncio.Event
    ) -> None:
        """Run the turn that these items start together, until its answer is delivered or refused.

        Args:
            session: The session of their conversation.
            items: At least one item, oldest first; several are messages of one person.
            arrived: Set when the control lane has something new.
        """
        item = items[0]
        messages = await self._services.arrivals.for_model(items)
        opened = self._opening(session, item, messages)
        if isinstance(opened, str):
            await self._declined(session, item, opened)
            return
        item_of_turn = replace(item, turn=opened.turn)
        row = TurnRow(turn=opened.turn, item=item_of_turn, wrote=opened.wrote)
        turn = await self._prepared(self._turn(session, opened, row, arrived))

        async def plan(reads: Reads) -> Transition:
            rows = [await reads.get(RowKind.INBOX, item.id) for item in items]
            queued = [INBOX.of(row) for row in rows if row is not None and row.state == "queued"]
            if queued != [*items]:
                # Its writer has edited or deleted a message just now; the mailbox reads it again.
                return NOTHING
            joined = (replace(further, turn=opened.turn) for further in items[1:])
            return Transition(
                point=DurablePoint.TURN_STARTED,
                journal=(turn.opened,),
                writes=(
                    item_put(item_of_turn, "taken"),
                    *(item_put(further, "joined") for further in joined),
                    turn_put(row),
                ),
            )

        if (await session.transact(Transition(plan=plan))).journal:
            turn.log("turn_started", channel=turn.address.channel)
            await self._run(turn, *first_step(turn.opened))

    async def resume(self, session: ConversationSession, arrived: asyncio.Event) -> None:
        """Bring the open turn of this conversation to its end, if there is one."""
        turn = session.history.turn
        if turn is None:
            return
        opened, state = turn.opened, turn.state
        row = await TURNS.need(self._services.store, opened.turn)
        context = self._turn(session, opened, row, arrived)
        if turn.resumed >= MAX_RESUMED and not isinstance(state, Done):
            note = catalogue.RESTARTED_TOO_OFTEN.to(opened.principal.language)
            context = replace(context, detail=catalogue.TURN_GIVEN_UP.about())
            await self._run(context, state, (), resumed=True, first=TurnFailed(text=note))
            return
        if not open_approvals(state):
            # A turn that waits for a person causes no crash loop, so its restarts do not count.
            resumed = TurnResumed(at=self._services.clock.now())
            await session.commit(Transition(point=DurablePoint.HOUSEKEEPING, journal=(resumed,)))
        if isinstance(state, Asking) or _is_asked_again(state):
            # Nothing is committed before a request, so an interrupted one may not have been sent.
            # Its usage counts anyway: rather too much than too little.
            results = batch.results(state.batch) if isinstance(state, Calling) else ()
            usage = await context.composer.expected(session.history.transcript(*results))
            lost = RequestLost(usage=usage, at=self._services.clock.now())
            await session.commit(Transition(point=DurablePoint.HOUSEKEEPING, journal=(lost,)))
            state = add_usage(state, usage)
        rerun = await _rerun(context, state)
        await self._run(context, *resume(state, rerun=rerun), resumed=True)

    def waits_for(self, item: Item) -> tuple[str, ...]:
        """Return the tools whose calls wait for an approval, and so hold up a new message."""
        return tuple(
            tool
            for loop in self._running.values()
            if loop.conversation == item.conversation and not loop.ends_with(item)
            for tool in loop.awaited_tools
        )

    def pause(self, note: Localized) -> None:
        """Show a note below every open draft; the turns continue after a restart."""
        for loop in self._running.values():
            loop.show_note(note)

    def parked(self) -> frozenset[ConversationId]:
        """Return the conversations whose turns wait only for a person."""
        return frozenset(loop.conversation for loop in self._running.values() if loop.is_parked)

    async def at_rest(self) -> None:
        """Wait until the latest text of every draft, and all cards of parked turns, arrived."""
        async with asyncio.TaskGroup() as group:
            for loop in self._running.values():
                group.create_task(loop.draft.at_rest())
            for conversation in self.parked():
                group.create_task(self._services.outbox.silent(conversation))

    async def between(self, session: ConversationSession) -> None:
        """Serve the control lane while no turn runs."""
        await ControlLane(self._services, session).between()

    async def halt(self, by: str) -> None:
        """End every running turn."""
        async with asyncio.TaskGroup() as group:
            for loop in self._running.values():
                group.create_task(loop.halt(by))

    # --- the beginning -------------------------------------------------------------------------

    def _turn(
        self, session: ConversationSession, opened: TurnOpened, row: TurnRow, arrived: asyncio.Event
    ) -> TurnContext:
        conversation, principal = session.conversation, opened.principal
        composer = Composer(
            self._services.sources,
            session.requests,
            RequestOwner(conversation=conversation, principal=principal, address=row.address),
            turn=opened.turn,
            correlation=opened.correlation,
        )
        return TurnContext(
            services=self._services,
            session=session,
            opened=opened,
            row=row,
            composer=composer,
            control_arrived=arrived,
        )

    def _opening(
        self, session: ConversationSession, item: Item, messages: MessagesForModel
    ) -> TurnOpened | str:
        """Return the first entry of an item's turn, or a reply to its writer if it starts none.

        `messages` has the text and files of this item and of those answered with it, for the model.
        """
        services = self._services
        now = services.clock.now()
        opened = TurnOpened(
            turn=TurnId(services.ids.ulid()),
            item=item.id,
            principal=item.principal,
            correlation=services.ids.ulid(),
            user=UserMessage(content=""),
            limits=services.limits(),
            at=now,
            late_s=message_text.late_s(item, now),
            # The history's sources are stored again: its oldest entries go, but answers stay.
            untrusted=merge_sources(session.history.untrusted, messages.untrusted),
        )
        match item.content:
            case PersonMessage():
                content = message_text.late_for_the_model(item, opened.late_s) + said_by(
                    item, *messages.texts
                )
                return replace(
                    opened,
                    user=UserMessage(content=content, files=messages.files),
                    own=messages.own,
                    kind="unheard" if messages.unheard == "all" else "chat",
                    unheard=messages.unheard != "nothing",
                )
            case UseTool(tool=tool, arguments=arguments):
                call = ToolCall(id="call_0", name=tool, arguments=arguments)
                user = UserMessage(content=f"/tool {tool} {arguments}")
                return replace(opened, user=user, own=(user.content,), kind="tool", call=call)
            case Summarise():
                return replace(opened, user=UserMessage(content="/compact"), kind="compact")
            case Again():
                before = session.history.retry
                if before is None:
                    return catalogue.NOTHING_TO_RETRY.to(item.principal.language)
                refusal = "" if before.call is None else self._tool_refusal(item)
                if refusal:
                    return refusal
                again = replace(
                    opened,
                    user=before.user,
                    kind="retry",
                    call=before.call,
                    unheard=before.unheard,
                    own=before.own,
                    wrote=before.wrote,
                )
                if before.principal.id == item.principal.id:
                    return again
                # In a group any person may request the retry of another person's message.
                quoted = merge_sources(again.untrusted or (), (named("quoted"),))
                wrote = before.wrote or before.principal.id
                return replace(again, own=(), untrusted=quoted, wrote=wrote)
            case _:
                message = f"the item `{item.id}` starts no turn"
                raise ValueError(message)

    async def _prepared(self, turn: TurnContext) -> TurnContext:
        """Return the turn ready to begin; one that asks a model gets notes, and may compact first."""
        opened, history = turn.opened, turn.session.history
        if opened.kind not in ("chat", "retry") or opened.call is not None:
            return turn
        is_heavy = await turn.composer.is_heavy(history.transcript(opened.user))
        text = " ".join(opened.own) or opened.user.content
        notes = await self._services.recollection.choose(turn.address, opened.principal, text)
        numbers = ", ".join(str(note.number) for note in notes if not note.trusted)
        sources = [named("notes", numbers)] if numbers else []
        providers = (
            *self._services.sources.providers.untrusted,
            *(await turn.composer.system_texts(history.loaded.skills)).untrusted,
        )
        if providers:
            sources.append(named("context", ", ".join(providers)))
        prepared = replace(
            opened,
            context_heavy=is_heavy,
            notes=tuple(note.number for note in notes),
            untrusted=merge_sources(opened.untrusted or (), sources),
        )
        return replace(turn, opened=prepared)

    def _tool_refusal(self, item: Item) -> str:
        """Return why a person may not repeat a `/tool` call; empty if they may."""
        # A person who may not make the call must not get it run by asking for a retry.
        query = Query(
            principal=item.principal,
            action="command:tool",
            now=self._services.clock.now(),
            direct=item.address.direct,
            own=True,
        )
        policy, language = self._services.gate.policy(), item.principal.language
        if policy.decide(query).effect == "allow":
            return ""
        reason = refusal_reason(policy, query, language)
        return catalogue.RETRY_IS_NOT_YOURS.to(language, why=reason)

    async def _declined(self, session: ConversationSession, item: Item, text: str) -> None:
        note, answered = self._services.reply(item, text), item_put(item, "answered")
        await session.commit(Transition(point=DurablePoint.HOUSEKEEPING, writes=(answered, note)))
        self._services.outbox.announce(note)
        await self._services.outbox.ended(note.key)

    # --- the middle ----------------------------------------------------------------------------

    async def _run(
        self,
        turn: TurnContext,
        state: State,
        effects: tuple[Effect, ...],
        *,
        resumed: bool = False,
        first: Event | None = None,
    ) -> None:
        services, session, opened, row = turn.services, turn.session, turn.opened, turn.row
        turn.publish(TurnStarted())
        draft = services.live.open(
            NewDraft(
                turn=opened.turn,
                address=row.address,
                record=partial(record_send, services.store, session.fence, opened.turn),
                lost=row.sending,
                refs=row.refs,
                resumed=resumed,
                language=turn.language,
                reply_to=row.reply_to,
            )
        )
        loop = TurnLoop(turn, draft, self._on_parked)
        self._running[opened.turn] = loop
        if halted := services.halted_by(opened.at if resumed else None):
            # A halt ends running turns; this one was about to run, so the halt did not include it.
            first = first or AbortRequested(cause="halt", by=halted)
        elif revoked := services.revoked_by(opened.principal):
            first = first or AbortRequested(cause="revoked", by=revoked)
        try:
            result = await loop.drive(state, effects, first=first)
            await finish(turn, result, draft)
        finally:
            del self._running[opened.turn]
            if draft.begin_close() is None:  # a platform call is under way
                with suppress(TimeoutError):
                    async with asyncio.timeout(CLOSE_S):
                        await draft.close()


def _is_asked_again(state: State) -> TypeGuard[Calling]:
    """Tell whether a batch's results may have been sent to the model, which is not recorded."""
    return (
        isinstance(state, Calling) and batch.is_complete(state.batch) and state.progress.asks_again
    )


async def _rerun(turn: TurnContext, state: State) -> frozenset[batch.ActionId]:
    """Return the calls that a restart interrupted and that may safely run again (P3)."""
    actions: set[batch.ActionId] = set()
    for action in batch.active(state.batch) if isinstance(state, Calling) else ():
        frozen = await turn.frozen(action)
        tool = turn.services.gate.tools.get(frozen.action.tool)
        if tool is not None and tool.spec.idempotent:
            actions.add(action)
    return frozenset(actions)
