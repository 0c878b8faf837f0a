"""Decide who may call a platform next, and when.

One `Pacing` for each account. Whoever wants to call says so (`Wanted`) and is granted, or waits:

    Wanted ──▶ waiting ──▶ Granted ──▶ (the call) ──▶ Answered | Refused | Unreached
                  └─ Withdrawn

Four things hold a call back: the account's budget, its chat's budget, the interval between two
calls about one message, and what the platform asked for when it refused. A refusal is obeyed to
the letter in its chat. Whether the limit was the account's is not said: where chats have no budget
that is known, a second chat that is refused while a first still waits says so, and everybody waits;
where they have, two may just be two busy groups, and it takes three whose waits end together.

A platform that names no numbers is learned: each refusal doubles the chat's own gap between calls,
and each answer shortens that gap by a fifth. Where the chat's budget is known and the refusal names
its wait, there is nothing to learn; the bucket only counts as spent until then. A platform that is
out of reach teaches nothing either: each call of a chat in vain doubles the time to its next one,
the first answer in the chat ends that, and an answer in any other leaves no more of it than after
the first call in vain.

Finals and cards go before drafts, and find room: where a bucket allows a burst, drafts leave a part
of it, so that an answer does not wait behind its own beginning; in the long run that costs drafts
nothing. Nor does the interval hold a final where the chat's budget is known. Among drafts of an
account the one that was served longest ago is next, so when the budget is short all of them thin
out evenly. After a start each bucket counts as spent, because nobody knows what the process before
used.

A platform counts a call when it arrives, not when it was granted. On a busy machine calls pile up
on their way and arrive together, so no more are granted while too many are under way.

Instants are monotonic seconds of one clock.
"""

from collections.abc import Mapping
from typing import assert_never

from zeroclaw.channel import Budget
from zeroclaw.delivery.pacing_events import (
    Answered,
    Effect,
    Ended,
    Event,
    Forgotten,
    Grant,
    Rank,
    Refused,
    Request,
    Ticked,
    Unreached,
    WakeAt,
    Wanted,
    Withdrawn,
)
from zeroclaw.value import Value, field, replace

# The gap after a first refusal by a platform that states no interval.
FIRST_GAP_S = 0.5
# A final waits so long at most after a refusal, on top of what the platform asked for, or after a
# call in vain.
LONGEST_GAP_S = 30.0
GROWTH = 2.0
DECAY = 0.8
# A gap below this is noise; it ends.
SMALLEST_GAP_S = 0.05
# Clocks and sums of floats may fall this short of an instant.
TOLERANCE_S = 1e-6
# Of a burst drafts leave this part to finals, and at least one call.
LEFT_TO_FINALS = 4
# So many chats whose waits end so close together are held by one limit, the account's; platforms
# state what is left of a wait in whole seconds, and answers take their time.
ACCOUNTS_CHATS = 3
TOGETHER_S = 2.0
# A call that is under way for longer has arrived, or its platform hangs, and must not hold up all.
LATE_S = 5.0
# When so many chats or messages are remembered, those that nothing holds back are forgotten.
REMEMBERED = 256


class Limits(Value):
    """What a platform allows one account, as its channel's capabilities state it.

    Attributes:
        edit_interval_s: Seconds between two calls about one message.
        group: Of a chat that several people read, None where that makes no difference.
        under_way: So many calls may be under way, and so arrive at once; 0 for any number.
    """

    chat: Budget
    account: Budget
    edit_interval_s: float = 0.0
    group: Budget | None = None
    under_way: int = 0


class Lane(Value):
    """A token bucket and what refusals taught about it.

    Attributes:
        tokens: Calls that may be made, as of `at`.
        held_until: The platform asked to wait until then.
        gap_s: Seconds between two calls, beyond what the budget says; 0 when never refused.
        last: When the last call was granted.
        outage_s: Seconds from one call in vain to the next; 0 while the platform answers here.
        unreached: When the last call was in vain.
    """

    tokens: float
    at: float
    held_until: float
    gap_s: float
    last: float
    outage_s: float = 0.0
    unreached: float = 0.0


class Pacing(Value):
    """The state of one account.

    Attributes:
        started: When the process began to use the account.
        chats: Lanes by chat; a chat that is not here has an untouched one.
        groups: The chats among them that several people read.
        messages: When each message was last touched.
        served: By request id, the number of the grant that served it last.
        waiting: In order of arrival.
        under_way: When calls were granted, oldest first, of which so many have not ended. One
            that was granted and never made is among them until it is late.
        grants: How many were granted.
        reached: When the platform answered last, in any chat.
    """

    limits: Limits
    started: float
    account: Lane
    chats: Mapping[str, Lane] = field(default_factory=dict[str, Lane])
    groups: frozenset[str] = frozenset()
    messages: Mapping[str, float] = field(default_factory=dict[str, float])
    served: Mapping[str, int] = field(default_factory=dict[str, int])
    waiting: tuple[Request, ...] = ()
    under_way: tuple[float, ...] = ()
    grants: int = 0
    reached: float = float("-inf")


def fresh(limits: Limits, at: float) -> Pacing:
    """Return the state at the start of a process; every bucket is spent."""
    return Pacing(limits=limits, started=at, account=_spent(at))


def step(state: Pacing, event: Event) -> tuple[Pacing, tuple[Effect, ...]]:
    """Take in what happened; return who may call, in order, and when to look again."""
    match event:
        case Wanted():
            others = tuple(request for request in state.waiting if request.id != event.request.id)
            state = replace(state, waiting=(*others, event.request))
            if event.request.in_group:
                state = replace(state, groups=state.groups | {event.request.chat})
        case Withdrawn():
            state = _without(state, event.id)
        case Ended():
            state = replace(state, under_way=state.under_way[1:])
        case Answered():
            state = _after_answer(state, event)
        case Refused():
            state = _after_refusal(state, event)
        case Unreached():
            state = _after_a_call_in_vain(state, event)
        case Forgotten():
            served = {one: grant for one, grant in state.served.items() if one != event.id}
            state = replace(_without(state, event.id), served=served)
        case Ticked():
            pass
        case _:
            assert_never(event)
    return _serve(state, event.at)


# --- what calls teach ----------------------------------------------------------------------------


def _after_answer(state: Pacing, event: Answered) -> Pacing:
    lane = _lane(state, event.chat)
    gap_s = lane.gap_s * DECAY
    lane = replace(lane, gap_s=gap_s if gap_s >= SMALLEST_GAP_S else 0.0, outage_s=0.0)
    state = replace(state, reached=event.at)
    if event.message:
        # An edit's interval began when it was granted; a new message has no earlier instant.
        messages = {_name(event.chat, event.message): event.at, **state.messages}
        state = replace(state, messages=messages)
    return _forget_idle(replace(state, chats={**state.chats, event.chat: lane}), event.at)


def _after_refusal(state: Pacing, event: Refused) -> Pacing:
    lane, budget = _lane(state, event.chat), _budget(state, event.chat)
    until = event.at + max(event.retry_after_s, 0.0)
    held_until = max(lane.held_until, until)
    lane = replace(lane, held_until=held_until)
    if budget.per_s and event.retry_after_s > 0:
        # The call that was refused may come then, but no burst behind it.
        lane = replace(lane, tokens=min(1.0, _tokens(lane, budget, held_until)), at=held_until)
    else:
        gap_s = max(lane.gap_s, state.limits.edit_interval_s, _spacing_s(budget))
        gap_s = min(max(gap_s * GROWTH, FIRST_GAP_S), LONGEST_GAP_S)
        lane = replace(lane, gap_s=max(lane.gap_s, gap_s))
    account = state.account
    if _is_the_accounts(state, event, until):
        account = replace(account, held_until=max(account.held_until, until))
    return replace(state, account=account, chats={**state.chats, event.chat: lane})


def _after_a_call_in_vain(state: Pacing, event: Unreached) -> Pacing:
    lane = _lane(state, event.chat)
    outage_s = min(max(_outage_s(state, lane) * GROWTH, FIRST_GAP_S), LONGEST_GAP_S)
    lane = replace(lane, outage_s=outage_s, unreached=event.at)
    return replace(state, chats={**state.chats, event.chat: lane})


def _outage_s(state: Pacing, lane: Lane) -> float:
    """Return what is left of a chat's outage, now that others may have been answered."""
    is_over = state.reached > lane.unreached
    return min(lane.outage_s, FIRST_GAP_S) if is_over else lane.outage_s


def _is_the_accounts(state: Pacing, event: Refused, until: float) -> bool:
    """Whether a refusal is about more than its chat, as far as the waits of other chats tell."""
    waits = [
        lane.held_until
        for chat, lane in state.chats.items()
        if chat != event.chat and lane.held_until > event.at
    ]
    if not _budget(state, event.chat).per_s:
        return bool(waits)
    alike = [wait for wait in waits if abs(wait - until) <= TOGETHER_S]
    return len(alike) + 1 >= ACCOUNTS_CHATS


def _spacing_s(budget: Budget) -> float:
    return 1 / budget.per_s if budget.per_s else 0.0


# --- who is next ---------------------------------------------------------------------------------


def _serve(state: Pacing, at: float) -> tuple[Pacing, tuple[Effect, ...]]:
    """Grant what may be granted at this instant."""
    effects: list[Effect] = []
    kept_for_finals: set[str] = set()
    held: list[Request] = []
    for request in _in_order(state):
        if request.rank is Rank.DRAFT and request.chat in kept_for_finals:
            continue
        if _ready_at(state, request, at) <= at + TOLERANCE_S:
            state = _grant(state, request, at)
            effects.append(Grant(id=request.id))
            continue
        held.append(request)
        if request.rank is Rank.FINAL:
            # Its chat's next token is promised; a draft there would push it back.
            kept_for_finals.add(request.chat)
    if held:
        # Looked at again, because a grant after it may have put a request off.
        effects.append(WakeAt(at=min(_ready_at(state, request, at) for request in held)))
    return state, tuple(effects)


def _in_order(state: Pacing) -> list[Request]:
    """Return those who wait, next one first; the sort keeps arrival where all else is equal."""
    return sorted(
        state.waiting,
        key=lambda request: (
            request.rank,
            state.served.get(request.id, 0) if request.rank is Rank.DRAFT else 0,
        ),
    )


def _ready_at(state: Pacing, request: Request, at: float) -> float:
    """Return when nothing will hold this request back any more, at or after `at`."""
    lane, budget = _lane(state, request.chat), _budget(state, request.chat)
    ready = max(
        _lane_ready_at(state.account, state.limits.account, request.rank, at),
        _lane_ready_at(lane, budget, request.rank, at),
        _room_at(state, at),
    )
    if lane.outage_s:
        ready = max(ready, lane.unreached + _outage_s(state, lane))
    if request.message:
        last = state.messages.get(_name(request.chat, request.message), state.started)
        # Where no budget is known, the interval is all that says what the platform bears.
        is_free = request.rank is Rank.FINAL and budget.per_s > 0
        interval_s = 0.0 if is_free else state.limits.edit_interval_s
        ready = max(ready, last + max(interval_s, lane.gap_s))
    return ready


def _room_at(state: Pacing, at: float) -> float:
    """Return when few enough calls are under way, at or after `at`."""
    most, under_way = state.limits.under_way, state.under_way
    return max(at, under_way[-most] + LATE_S) if 0 < most <= len(under_way) else at


def _lane_ready_at(lane: Lane, budget: Budget, rank: Rank, at: float) -> float:
    ready = max(at, lane.held_until)
    if lane.gap_s:
        ready = max(ready, lane.last + lane.gap_s)
    if budget.per_s:
        missing = 1 + _left(budget, rank) - _tokens(lane, budget, at)
        ready = max(ready, at + missing / budget.per_s)
    return ready


def _left(budget: Budget, rank: Rank) -> int:
    """Return how many calls of a bucket this rank leaves in it."""
    most = max(0, budget.burst - 1)
    return 0 if rank is Rank.FINAL else min(most, max(1, budget.burst // LEFT_TO_FINALS))


def _tokens(lane: Lane, budget: Budget, at: float) -> float:
    return min(float(max(budget.burst, 1)), lane.tokens + (at - lane.at) * budget.per_s)


def _grant(state: Pacing, request: Request, at: float) -> Pacing:
    messages, served = state.messages, state.served
    if request.message:
        messages = {**messages, _name(request.chat, request.message): at}
    if request.rank is Rank.DRAFT:
        served = {**served, request.id: state.grants + 1}
    return replace(
        _without(state, request.id),
        account=_spend(state.account, state.limits.account, at),
        chats={
            **state.chats,
            request.chat: _spend(_lane(state, request.chat), _budget(state, request.chat), at),
        },
        messages=messages,
        served=served,
        under_way=(*(one for one in state.under_way if one + LATE_S > at), at),
        grants=state.grants + 1,
    )


def _spend(lane: Lane, budget: Budget, at: float) -> Lane:
    return replace(lane, tokens=max(0.0, _tokens(lane, budget, at) - 1), at=at, last=at)


# --- remembering ---------------------------------------------------------------------------------


def _spent(at: float) -> Lane:
    return Lane(tokens=0.0, at=at, held_until=at, gap_s=0.0, last=at)


def _budget(state: Pacing, chat: str) -> Budget:
    group = state.limits.group
    return group if group is not None and chat in state.groups else state.limits.chat


def _lane(state: Pacing, chat: str) -> Lane:
    return state.chats.get(chat) or _spent(state.started)


def _name(chat: str, message: str) -> str:
    # On some platforms messages are numbered by chat.
    return f"{chat} {message}"


def _without(state: Pacing, gone: str) -> Pacing:
    return replace(state, waiting=tuple(one for one in state.waiting if one.id != gone))


def _forget_idle(state: Pacing, at: float) -> Pacing:
    """Forget chats and messages that nothing holds back any more, when there are many.

    An unknown lane counts as spent at the start, so one that has refilled since is like unknown.
    """
    if len(state.chats) > REMEMBERED:
        chats = {chat: lane for chat, lane in state.chats.items() if not _is_idle(state, chat, at)}
        waiting = {request.chat for request in state.waiting}
        groups = frozenset(chat for chat in state.groups if chat in chats or chat in waiting)
        state = replace(state, chats=chats, groups=groups)
    if len(state.messages) > REMEMBERED:
        longest = max(state.limits.edit_interval_s, LONGEST_GAP_S)
        messages = {name: last for name, last in state.messages.items() if last + longest > at}
        state = replace(state, messages=messages)
    return state


def _is_idle(state: Pacing, chat: str, at: float) -> bool:
    lane, budget = state.chats[chat], _budget(state, chat)
    full = not budget.per_s or _tokens(lane, budget, at) >= max(budget.burst, 1)
    is_free = not lane.gap_s and lane.held_until <= at
    return full and is_free and lane.unreached + lane.outage_s <= at
