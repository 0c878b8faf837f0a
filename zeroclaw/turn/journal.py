"""The history and the open turn of a conversation, folded from its journal.

The fold steps the turn's own machine with the entries, so the resumed state equals the state that
was running. It is incremental: `extend` takes one more entry without reading the others again.
Entries that fit nothing (a late answer, an unknown call) change nothing.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from zeroclaw.context import offers
from zeroclaw.context.assembly import Transcript
from zeroclaw.envelope import ActionId
from zeroclaw.gate.receipt import detach
from zeroclaw.gate.taint import Source, merge_sources, named
from zeroclaw.gate.verdict import Denied
from zeroclaw.message import AssistantMessage, Message, ToolMessage, ToolOutcome, UserMessage
from zeroclaw.text import catalogue
from zeroclaw.turn import entries, loop_detection, signals
from zeroclaw.turn.batch import closed
from zeroclaw.turn.entries import Entry
from zeroclaw.turn.machine import (
    Step,
    add_usage,
    answered_by_runtime,
    begin,
    begin_compaction,
    begin_tool,
    step,
)
from zeroclaw.turn.states import Asking, Calling, Compacting, Done, State, Streaming
from zeroclaw.value import Value, replace


class OpenTurn(Value):
    """A turn without a recorded end.

    Attributes:
        opened: The entry of its beginning.
        state: Its current state; pass it to `machine.resume` after a restart.
        resumed: Restarts since the last entry that made progress.
        own_texts: The texts that its person wrote themselves, one for each message of the turn.
        rounds: Its rounds of calls since the person's last message.
    """

    opened: entries.TurnOpened
    state: State
    resumed: int = 0
    own_texts: tuple[str, ...] = ()
    rounds: loop_detection.Rounds = ()


class IssuedReceipt(Value):
    """A receipt that was issued in this conversation.

    Attributes:
        token: As in the result.
        action: None for a call too malformed to become an action.
    """

    token: str
    tool: str
    outcome: ToolOutcome
    at: datetime
    action: ActionId | None


class History(Value):
    """The history of a conversation.

    Attributes:
        messages: In order, without a system message. The calls of an open batch have no results
            yet; all others are directly followed by theirs.
        summary: The summary of everything before the messages, or empty.
        turn: The open turn.
        pending_notes: Notes that join the messages when the open turn ends.
        retry: The beginning of the newest failed or stopped turn, for `/retry`; None once a retry
            has succeeded, or a summary has replaced the turn's message.
        receipts: The receipts of the messages, oldest first; those of summarised ones are in the
            audit.
        untrusted: The newest sources of untrusted text that is in the messages, or was when one of
            the answers was written; empty only if there is none.
        loaded: The tools and skills that the conversation loaded on top of the standard ones.
    """

    messages: tuple[Message, ...] = ()
    summary: str = ""
    turn: OpenTurn | None = None
    pending_notes: tuple[UserMessage, ...] = ()
    retry: entries.TurnOpened | None = None
    receipts: tuple[IssuedReceipt, ...] = ()
    untrusted: tuple[Source, ...] = ()
    loaded: offers.Loaded = offers.NOTHING_LOADED

    def transcript(self, *further: Message) -> Transcript:
        """Return the messages for a request, with further ones appended."""
        return Transcript(
            messages=(*self.messages, *further),
            summary=self.summary,
            opening=None if self.turn is None else self.turn.opened.user,
            loaded=self.loaded,
        )


NO_HISTORY = History()
AT_ONCE = 64
"""Entries that are added to a history together, which takes about a millisecond."""


def fold(journal: Sequence[Entry], history: History = NO_HISTORY) -> History:
    """Return the history after more entries."""
    for start in range(0, len(journal), AT_ONCE):
        history = _extend_by(history, journal[start : start + AT_ONCE])
    return history


def fold_end(journal: Sequence[Entry]) -> History | None:
    """Return the history from the newest entries alone, None if they are too few.

    The newest summary stands for all messages before the kept ones. So the fold may begin at the
    first turn in `journal`, if that is far enough back to include the kept messages.
    """
    summaries = [at for at, entry in enumerate(journal) if isinstance(entry, entries.Compacted)]
    newest = summaries[-1] if summaries else 0
    summary = journal[newest] if journal else None
    turns = (at for at, entry in enumerate(journal) if isinstance(entry, entries.TurnOpened))
    first = next(turns, newest)
    if not isinstance(summary, entries.Compacted) or first >= newest:
        return None
    before = fold(journal[first:newest])
    if len(before.messages) < max(summary.kept, summary.pinned):
        return None
    return fold(journal[newest:], before)


def _extend_by(history: History, journal: Sequence[Entry]) -> History:
    """Extend a history by a few entries, with one copy of its messages for all of them."""
    before, after = history, replace(history, messages=(), receipts=())
    for entry in journal:
        if isinstance(entry, entries.Compacted):  # the only entry that needs earlier messages
            before, after = NO_HISTORY, _prepend(before, after)
        after = extend(after, entry)
    return _prepend(before, after)


def _prepend(before: History, after: History) -> History:
    return replace(
        after, messages=before.messages + after.messages, receipts=before.receipts + after.receipts
    )


def extend(history: History, entry: Entry) -> History:
    """Return the history after one more entry."""
    if sources := _untrusted_sources(entry):
        history = replace(history, untrusted=merge_sources(history.untrusted, sources))
    match entry:
        case entries.TurnOpened():
            return _open_turn(_abandon(history), entry)
        case entries.Noted():
            retry = history.retry and replace(history.retry, own=())
            cleared = replace(history, retry=retry, turn=history.turn and _cleared(history.turn))
            note = UserMessage(content=entry.text, note=entry.why)
            if cleared.turn is None:
                return _append(cleared, (note,))
            return replace(cleared, pending_notes=(*cleared.pending_notes, note))
        case _:
            if history.turn is None:
                return history
            return _extend_turn(history, history.turn, entry)


def first_step(opened: entries.TurnOpened) -> Step:
    """Return the first state and effects of a turn."""
    language = opened.principal.language
    if opened.call is not None:
        return begin_tool(opened.call, opened.limits, language=language)
    if opened.kind == "compact":
        return begin_compaction(opened.limits, language=language)
    if opened.kind == "unheard":
        return answered_by_runtime(catalogue.UNHEARD.to(language))
    return begin(opened.limits, language=language, context_heavy=opened.context_heavy)


def advance(state: State, entry: Entry) -> State:
    """Return the state after the event that an entry records; other entries change nothing."""
    if event := _event(state, entry):
        return step(_prepared(state, entry), event)[0]
    return state


# --- one entry -----------------------------------------------------------------------------------


def _open_turn(history: History, entry: entries.TurnOpened) -> History:
    first: tuple[Message, ...] = (entry.user,)
    if entry.call is not None:
        first = (entry.user, AssistantMessage(tool_calls=(entry.call,), mark="runtime"))
    turn = OpenTurn(opened=entry, state=first_step(entry)[0], own_texts=entry.own)
    return replace(history, messages=history.messages + first, turn=turn)


def _extend_turn(history: History, turn: OpenTurn, entry: Entry) -> History:
    if isinstance(entry, entries.TurnResumed):
        return replace(history, turn=replace(turn, resumed=turn.resumed + 1))
    if isinstance(entry, entries.RequestLost) and not isinstance(turn.state, Done):
        # It made no progress, so a crash loop continues.
        return replace(history, turn=replace(turn, state=add_usage(turn.state, entry.usage)))
    state = advance(turn.state, entry)
    # A call that starts again after a restart has made no progress.
    resumed = turn.resumed if state == turn.state else 0
    loaded = history.loaded
    match entry:
        case entries.Steered():
            texts = (*turn.own_texts, *entry.own)
            turn = _cleared(turn) if entry.user.note else replace(turn, own_texts=texts)
            turn = replace(turn, rounds=())
        case entries.BatchAppended() if isinstance(turn.state, Calling) and state != turn.state:
            slots = turn.state.batch.slots
            rounds = loop_detection.append_round(turn.rounds, slots, warned=bool(entry.word))
            turn = replace(turn, rounds=rounds)
            loaded = offers.extend(loaded, ((slot.call, slot.outcome == "ok") for slot in slots))
        case _:
            pass
    after = replace(
        _append(history, _messages_of(turn.state, state, entry)),
        turn=replace(turn, state=state, resumed=resumed),
        receipts=history.receipts + issued_receipts(turn.state, entry),
        loaded=loaded,
    )
    match entry:
        case entries.Compacted():
            return _put_summary(after, entry)
        case entries.TurnFinished():
            return _finish(after, turn, entry)
        case _:
            return after


def _messages_of(before: State, after: State, entry: Entry) -> tuple[Message, ...]:
    """Return the messages that an entry adds."""
    match entry:
        case entries.AssistantReceived() if isinstance(before, Asking):
            # An answer without calls is part of the turn's end.
            return (entry.message,) if entry.message.tool_calls else ()
        case entries.BatchAppended() if before != after:
            word = (UserMessage(content=entry.word, note="repeats"),) if entry.word else ()
            return (*_batch_results(before), *word)
        case entries.Steered():
            return (entry.user,)
        case entries.TurnFinished():
            last = () if entry.message is None else (entry.message,)
            filled = {fill.position: fill.result for fill in entry.fills}
            results = enumerate(_batch_results(before))
            return (*(filled.get(position, result) for position, result in results), *last)
        case _:
            return ()


def _finish(history: History, turn: OpenTurn, entry: entries.TurnFinished) -> History:
    retry = history.retry
    if entry.reason != "model_stop":
        retry = turn.opened
    elif turn.opened.kind == "retry":
        retry = None
    return _close(replace(history, retry=retry))


def _abandon(history: History) -> History:
    """Close a turn that is still open when another begins; only a fault causes that."""
    if history.turn is None:
        return history
    filled = _append(history, _batch_results(history.turn.state))
    return _close(replace(filled, retry=history.turn.opened))


def _close(history: History) -> History:
    noted = _append(history, history.pending_notes)
    return replace(noted, turn=None, pending_notes=())


def _cleared(turn: OpenTurn) -> OpenTurn:
    """Return the turn without its person's texts: an edit may have taken them back."""
    return replace(turn, own_texts=(), opened=replace(turn.opened, own=()))


def _untrusted_sources(entry: Entry) -> tuple[Source, ...]:
    """Return the sources of untrusted text that an entry adds."""
    match entry:
        case entries.TurnOpened(untrusted=None):
            return (named("earlier"),)
        case (
            entries.TurnOpened(untrusted=tuple() as sources)
            | entries.CallFinished(untrusted=sources)
            | entries.Steered(untrusted=sources)
            | entries.AssistantReceived(untrusted=sources)
            | entries.TurnFinished(untrusted=sources)
            | entries.Noted(untrusted=sources)
        ):
            return sources
        case _:
            return ()


def _append(history: History, messages: tuple[Message, ...]) -> History:
    return replace(history, messages=history.messages + messages)


def _put_summary(history: History, entry: entries.Compacted) -> History:
    """Replace the older messages by a summary; drop the receipts and the retry found only there."""
    kept = _kept_messages(history.messages, entry.kept, entry.pinned)
    tokens = {detach(message.content)[1] for message in kept if isinstance(message, ToolMessage)}
    retry = history.retry
    return replace(
        history,
        messages=kept,
        summary=entry.summary,
        loaded=offers.Loaded(
            tools=tuple(dict.fromkeys((*entry.tools, *history.loaded.tools))),
            skills=tuple(dict.fromkeys((*entry.skills, *history.loaded.skills))),
        ),
        receipts=tuple(receipt for receipt in history.receipts if receipt.token in tokens),
        retry=None if retry is None or retry.user not in kept else retry,
    )


def _kept_messages(messages: tuple[Message, ...], count: int, pinned: int) -> tuple[Message, ...]:
    start = max(0, len(messages) - count)
    # INVARIANT: a result never loses its call (K12).
    while start < len(messages) and isinstance(messages[start], ToolMessage):
        start -= 1
    position = len(messages) - pinned
    pinned_message = (messages[position],) if pinned and 0 <= position < start else ()
    return (*pinned_message, *messages[start:])


# --- the open batch ------------------------------------------------------------------------------


def _batch_results(state: State) -> tuple[ToolMessage, ...]:
    """Return a result for each call of a batch that is not in the history yet (K15)."""
    if isinstance(state, Calling):
        return closed(state.batch)[0]
    return state.results if isinstance(state, Done) else ()


# --- entries as events ---------------------------------------------------------------------------


def _prepared(state: State, entry: Entry) -> State:
    """Return the state in which the entry's event can occur.

    The events that lead to it (a request sent, a cut, an overflow, a failed compaction) leave no
    entry, because repeating them does no harm.
    """
    if isinstance(state, Asking):
        if isinstance(entry, entries.AssistantReceived):
            return Streaming(progress=state.progress)
        if isinstance(entry, entries.Compacted) and not isinstance(state, Compacting):
            return Compacting(progress=state.progress, cause="heavy")
    return state


def _event(state: State, entry: Entry) -> signals.Event | None:
    if isinstance(entry, entries.AssistantReceived) and isinstance(state, Asking):
        return signals.ResponseReceived(
            request=state.progress.requests,
            message=entry.message,
            usage=entry.usage,
            shown=entry.shown,
        )
    return entry if isinstance(entry, entries.Recorded) else None


# --- receipts ------------------------------------------------------------------------------------


def issued_receipts(state: State, entry: Entry) -> tuple[IssuedReceipt, ...]:
    """Return the receipts that an entry issued, in request order.

    Args:
        state: The turn's state before the entry.
        entry: The newest entry of the journal.
    """
    slots = state.batch.slots if isinstance(state, Calling) else ()
    receipts: Iterable[tuple[str, str, ToolOutcome, ActionId | None]]
    match entry:
        case entries.Gated():
            receipts = (
                (verdict.receipt, slot.call.name, verdict.outcome, verdict.action)
                for slot, verdict in zip(slots, entry.verdicts, strict=False)
                if isinstance(verdict, Denied)
            )
        case entries.AnswerTaken(receipt=receipt):
            waiting = (slot for slot in slots if slot.approval == entry.approval)
            receipts = ((receipt, slot.call.name, "denied", slot.action) for slot in waiting)
        case entries.CallFinished(receipt=receipt, outcome=outcome):
            ended = (slot for slot in slots if slot.action == entry.action)
            receipts = ((receipt, slot.call.name, outcome, slot.action) for slot in ended)
        case entries.TurnFinished():
            receipts = (
                (fill.receipt, fill.result.tool_name, fill.outcome, fill.action)
                for fill in entry.fills
            )
        case _:
            return ()
    return tuple(
        IssuedReceipt(token=token, tool=tool, outcome=outcome, at=entry.at, action=action)
        for token, tool, outcome, action in receipts
        if token
    )
