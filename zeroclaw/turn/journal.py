"""The history and the open turn of a conversation, folded from its journal.

The fold drives the turn's own machine with the entries, so the resumed state equals the state
that was running. It is incremental: `extend` takes one more entry without reading the others again.
Entries that fit nothing (a late answer, an unknown call) change nothing.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from zeroclaw.context import offers
from zeroclaw.context.assembly import Spoken
from zeroclaw.envelope import ActionId
from zeroclaw.gate.receipt import detach
from zeroclaw.gate.taint import Source, merge_sources, named
from zeroclaw.gate.verdict import Denied
from zeroclaw.message import AssistantMessage, Message, ToolMessage, ToolOutcome, UserMessage
from zeroclaw.text import catalogue
from zeroclaw.turn import entries, loop_detection, signals
from zeroclaw.turn.batch import Fill, closed
from zeroclaw.turn.entries import Entry
from zeroclaw.turn.machine import (
    Step,
    answered_by_runtime,
    begin,
    begin_compaction,
    begin_tool,
    paid,
    step,
)
from zeroclaw.turn.states import Asking, Calling, Compacting, Done, State, Streaming
from zeroclaw.value import Value, replace


class OpenTurn(Value):
    """A turn without a recorded end.

    Attributes:
        opened: How it began.
        state: Its current state; pass it to `machine.resume` after a restart.
        resumed: Restarts since the last entry that made progress.
        own: What its person has written themselves, one text for each message of the turn.
        calls: Its rounds of calls since the person's last message.
    """

    opened: entries.TurnOpened
    state: State
    resumed: int = 0
    own: tuple[str, ...] = ()
    calls: loop_detection.Rounds = ()


class Issued(Value):
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
        waiting: Notes that join the messages when the open turn ends.
        retry: How the newest failed or stopped turn began, for `/retry`; None once it was retried
            successfully, or a summary has replaced it.
        receipts: The receipts of the messages, oldest first; those of summarised ones are in the
            audit.
        untrusted: The newest sources of untrusted text that is in the messages, or was when one of
            the answers was written; empty only if there is none.
        loaded: The tools and skills that the conversation loaded on top of the standard ones.
    """

    messages: tuple[Message, ...] = ()
    summary: str = ""
    turn: OpenTurn | None = None
    waiting: tuple[UserMessage, ...] = ()
    retry: entries.TurnOpened | None = None
    receipts: tuple[Issued, ...] = ()
    untrusted: tuple[Source, ...] = ()
    loaded: offers.Loaded = offers.NOTHING_LOADED

    def spoken(self, *more: Message) -> Spoken:
        """Return the messages for a request, with `more` appended."""
        opened = None if self.turn is None else self.turn.opened.user
        return Spoken(
            messages=(*self.messages, *more),
            summary=self.summary,
            opened=opened,
            loaded=self.loaded,
        )


NO_HISTORY = History()
AT_ONCE = 64
"""Entries that are added to a history together, which takes about a millisecond."""


def folded(journal: Sequence[Entry], history: History = NO_HISTORY) -> History:
    """Return the history after more entries."""
    for at in range(0, len(journal), AT_ONCE):
        history = _extended(history, journal[at : at + AT_ONCE])
    return history


def folded_end(journal: Sequence[Entry]) -> History | None:
    """Return the history from the newest entries alone, None if they are too few.

    After a summary, every reader sees the same for the messages before it. So the fold begins at a
    turn that is far enough back to include the kept messages.
    """
    newest = max(
        (at for at, one in enumerate(journal) if isinstance(one, entries.Compacted)), default=0
    )
    entry = journal[newest] if journal else None
    starts = (at for at, one in enumerate(journal) if isinstance(one, entries.TurnOpened))
    start = next(starts, newest)
    if not isinstance(entry, entries.Compacted) or start >= newest:
        return None
    before = folded(journal[start:newest])
    if len(before.messages) < max(entry.kept, entry.pinned):
        return None
    return folded(journal[newest:], before)


def _extended(history: History, journal: Sequence[Entry]) -> History:
    """Extend a history by a few entries, adding their messages to the others at once.

    So a long history is not copied for each entry.
    """
    before, after = history, replace(history, messages=(), receipts=())
    for entry in journal:
        if isinstance(entry, entries.Compacted):  # the only entry that needs earlier messages
            before, after = NO_HISTORY, _behind(before, after)
        after = extend(after, entry)
    return _behind(before, after)


def _behind(before: History, after: History) -> History:
    return replace(
        after, messages=before.messages + after.messages, receipts=before.receipts + after.receipts
    )


def extend(history: History, entry: Entry) -> History:
    """Return the history after one more entry."""
    if new := _untrusted(entry):
        history = replace(history, untrusted=merge_sources(history.untrusted, new))
    match entry:
        case entries.TurnOpened():
            return _opened(_abandoned(history), entry)
        case entries.Noted():
            retry = history.retry and replace(history.retry, own=())
            noted = replace(history, retry=retry, turn=history.turn and _unsaid(history.turn))
            return _noted(noted, UserMessage(content=entry.text, note=entry.why))
        case _:
            if history.turn is None:
                return history
            return _within(history, history.turn, entry)


def begun(opened: entries.TurnOpened) -> Step:
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
        return step(_ready(state, entry), event)[0]
    return state


# --- one entry -----------------------------------------------------------------------------------


def _opened(history: History, entry: entries.TurnOpened) -> History:
    first: tuple[Message, ...] = (entry.user,)
    if entry.call is not None:
        first = (entry.user, AssistantMessage(tool_calls=(entry.call,), mark="runtime"))
    turn = OpenTurn(opened=entry, state=begun(entry)[0], own=entry.own)
    return replace(history, messages=history.messages + first, turn=turn)


def _within(history: History, turn: OpenTurn, entry: Entry) -> History:
    if isinstance(entry, entries.TurnResumed):
        return replace(history, turn=replace(turn, resumed=turn.resumed + 1))
    if isinstance(entry, entries.RequestLost) and not isinstance(turn.state, Done):
        # It made no progress, so a crash loop continues.
        return replace(history, turn=replace(turn, state=paid(turn.state, entry.usage)))
    state = advance(turn.state, entry)
    # A call that starts again after a restart has made no progress.
    resumed = turn.resumed if state == turn.state else 0
    loaded = history.loaded
    match entry:
        case entries.Steered():
            turn = _unsaid(turn) if entry.user.note else replace(turn, own=(*turn.own, *entry.own))
            turn = replace(turn, calls=())
        case entries.BatchAppended() if isinstance(turn.state, Calling) and state != turn.state:
            slots = turn.state.batch.slots
            calls = loop_detection.extended(turn.calls, slots, warned=bool(entry.word))
            turn = replace(turn, calls=calls)
            loaded = offers.extended(loaded, ((one.call, one.outcome == "ok") for one in slots))
        case _:
            pass
    after = replace(
        _joined(history, _brought(turn.state, state, entry)),
        turn=replace(turn, state=state, resumed=resumed),
        receipts=history.receipts + issued(turn.state, entry),
        loaded=loaded,
    )
    match entry:
        case entries.Compacted():
            return _summarised(after, entry)
        case entries.TurnFinished():
            return _finished(after, turn, entry)
        case _:
            return after


def _brought(before: State, after: State, entry: Entry) -> tuple[Message, ...]:
    """Return the messages that an entry adds."""
    match entry:
        case entries.AssistantReceived() if isinstance(before, Asking):
            # An answer without calls is part of the turn's end.
            return (entry.message,) if entry.message.tool_calls else ()
        case entries.BatchAppended() if before != after:
            word = (UserMessage(content=entry.word, note="repeats"),) if entry.word else ()
            return (*_unappended(before), *word)
        case entries.Steered():
            return (entry.user,)
        case entries.TurnFinished():
            last = () if entry.message is None else (entry.message,)
            return (*_filled(before, entry.fills), *last)
        case _:
            return ()


def _finished(history: History, turn: OpenTurn, entry: entries.TurnFinished) -> History:
    retry = history.retry
    if entry.reason != "model_stop":
        retry = turn.opened
    elif turn.opened.kind == "retry":
        retry = None
    return _closed(replace(history, retry=retry))


def _abandoned(history: History) -> History:
    """Close a turn that is still open when another begins; only a fault causes that."""
    if history.turn is None:
        return history
    whole = _joined(history, _unappended(history.turn.state))
    return _closed(replace(whole, retry=history.turn.opened))


def _closed(history: History) -> History:
    whole = _joined(history, history.waiting)
    return replace(whole, turn=None, waiting=())


def _unsaid(turn: OpenTurn) -> OpenTurn:
    """Return a turn in which no words dictate calls any more: an edit may have taken them back."""
    return replace(turn, own=(), opened=replace(turn.opened, own=()))


def _noted(history: History, note: UserMessage) -> History:
    if history.turn is None:
        return _joined(history, (note,))
    return replace(history, waiting=(*history.waiting, note))


def _untrusted(entry: Entry) -> tuple[Source, ...]:
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


def _joined(history: History, messages: tuple[Message, ...]) -> History:
    return replace(history, messages=history.messages + messages)


def _summarised(history: History, entry: entries.Compacted) -> History:
    """Replace the older messages by a summary, and drop what is known only from them."""
    kept = _kept(history.messages, entry.kept, entry.pinned)
    tokens = {detach(one.content)[1] for one in kept if isinstance(one, ToolMessage)}
    retry = history.retry
    return replace(
        history,
        messages=kept,
        summary=entry.summary,
        loaded=offers.Loaded(
            tools=tuple(dict.fromkeys((*entry.tools, *history.loaded.tools))),
            skills=tuple(dict.fromkeys((*entry.skills, *history.loaded.skills))),
        ),
        receipts=tuple(one for one in history.receipts if one.token in tokens),
        retry=None if retry is None or retry.user not in kept else retry,
    )


def _kept(messages: tuple[Message, ...], count: int, pinned: int) -> tuple[Message, ...]:
    start = max(0, len(messages) - count)
    # INVARIANT: a result never loses its call (K12).
    while start < len(messages) and isinstance(messages[start], ToolMessage):
        start -= 1
    before = len(messages) - pinned
    first = (messages[before],) if pinned and 0 <= before < start else ()
    return (*first, *messages[start:])


# --- the open batch ------------------------------------------------------------------------------


def _unappended(state: State) -> tuple[ToolMessage, ...]:
    """Return a result for each call of a batch that is not in the history yet (K15)."""
    if isinstance(state, Calling):
        return closed(state.batch)[0]
    return state.results if isinstance(state, Done) else ()


def _filled(state: State, fills: tuple[Fill, ...]) -> tuple[ToolMessage, ...]:
    by_position = {fill.position: fill.result for fill in fills}
    found = enumerate(_unappended(state))
    return tuple(by_position.get(position, result) for position, result in found)


# --- entries as events ---------------------------------------------------------------------------


def _ready(state: State, entry: Entry) -> State:
    """Bring a state to where the entry's event can occur.

    The events that lead there (a request sent, a cut, an overflow, a failed compaction) leave no
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


def issued(state: State, entry: Entry) -> tuple[Issued, ...]:
    """Return the receipts that an entry issued, in request order.

    Args:
        state: The turn's state before the entry.
        entry: The newest entry of the journal.
    """
    slots = state.batch.slots if isinstance(state, Calling) else ()
    found: Iterable[tuple[str, str, ToolOutcome, ActionId | None]]
    match entry:
        case entries.Gated():
            found = (
                (one.receipt, slot.call.name, one.outcome, one.action)
                for slot, one in zip(slots, entry.verdicts, strict=False)
                if isinstance(one, Denied)
            )
        case entries.AnswerTaken(receipt=receipt):
            asked = (slot for slot in slots if slot.approval == entry.approval)
            found = ((receipt, slot.call.name, "denied", slot.action) for slot in asked)
        case entries.CallFinished(receipt=receipt, outcome=outcome):
            ran = (slot for slot in slots if slot.action == entry.action)
            found = ((receipt, slot.call.name, outcome, slot.action) for slot in ran)
        case entries.TurnFinished():
            found = (
                (one.receipt, one.result.tool_name, one.outcome, one.action) for one in entry.fills
            )
        case _:
            return ()
    return tuple(
        Issued(token=token, tool=tool, outcome=outcome, at=entry.at, action=action)
        for token, tool, outcome, action in found
        if token
    )
