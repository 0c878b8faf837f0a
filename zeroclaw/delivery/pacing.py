"""Decide which caller may call a platform next, and when.

Each account has one `Pacing`. A caller requests a call (`Requested`), and is granted it or waits:

    Requested ──▶ waiting ──▶ Granted ──▶ (the call) ──▶ CallAnswered | CallRefused | CallUnreached
                     └─ Withdrawn

Five things hold a call back: the account's budget, its chat's budget, a call under way in its chat,
the interval between two calls about one message, and the wait that the platform asked for when it
refused. If a platform limits edits per account and not per chat, edits are charged to that edit
budget and not to the chat's. Each message that a draft sends is charged to it as well, so that no
more drafts begin than can be finished.

A refusal holds its chat for exactly the wait that the platform named. The platform does not say
whether the limit was the account's. If the chats have no known budget, a second chat that is
refused while a first still waits shows that it was, and all callers wait. If they have one, two
refusals may just be two busy groups, so it takes three chats whose waits end together.

A platform that states no numbers is learned: each refusal doubles the chat's own gap between calls,
and each answer shortens that gap by a fifth. If the chat's budget is known and the refusal names
its wait, the pacing learns no gap; the bucket only counts as spent until then. An unreachable
platform teaches no gap either: each failed call of a chat doubles the time to its next one. The
first answer in the chat ends that, and an answer in any other chat shortens it to the time after a
first failure.

Finals and cards go before drafts, and find tokens left: where a bucket allows a burst, drafts leave
half of it, so that an answer does not wait behind its own beginning. In the long run that costs
drafts nothing; after a start they get every second call until that reserve has filled. The interval
does not hold a final either if the chat's budget is known. Among an account's drafts the one served
longest ago is next, so when the budget is short all of them slow down evenly. After a start each
bucket counts as spent, because the usage of the process before is unknown.

A platform counts a call when it arrives, which may be at any instant from its grant to its end: on
a busy machine calls queue up and arrive together. So each chat has one call under way at a time. At
most one call then arrives later than it was granted, and a platform that tolerates one call more
than the budget has room for it, whatever the delays. A refusal is also known before the next call
is made. The account reserves a token for each call under way, and spends it when the call ends. So
whenever the calls arrive, the platform's own bucket has room for them, and no slot that is certain
to be free is left unused. While many calls are under way, the machine or the platform is busy, and
drafts wait.

Instants are monotonic seconds of one clock.
"""

from collections.abc import Mapping
from enum import IntEnum
from math import inf
from typing import TypeVar, assert_never

from zeroclaw.channel import Budget, Capabilities
from zeroclaw.value import Value, field, replace

T = TypeVar("T")

# The gap after a first refusal by a platform that states no interval.
FIRST_GAP_S = 0.5
# The longest wait after a refusal, on top of the one that the platform named, or after a failed call.
LONGEST_GAP_S = 30.0
GROWTH = 2.0
DECAY = 0.8
# A smaller gap is noise and becomes 0.
SMALLEST_GAP_S = 0.05
# Clocks and sums of floats may fall short of an instant by this much.
TOLERANCE_S = 1e-6
# Drafts leave one half of a burst to finals, and at least one call.
FINALS_SHARE = 2
# If this many chats have waits that end this close together, one limit holds them: the account's.
# Platforms state the rest of a wait in whole seconds, and answers take time.
ACCOUNT_LIMIT_CHATS = 3
TOGETHER_S = 2.0
# A call that is under way for longer has arrived, or its platform hangs; it is charged as if ended.
LATE_S = 5.0
# Above this many chats or messages, the idle ones are forgotten.
REMEMBERED = 256


# --- requests, events, effects, state ------------------------------------------------------------


class Rank(IntEnum):
    """The order of callers; lower goes first."""

    FINAL = 0
    DRAFT = 1


class Request(Value):
    """A caller's request to make one call.

    Attributes:
        id: Unique among the waiting; for a draft the same each time, so that drafts are served evenly.
        chat: The platform's chat; threads of a chat share its budget.
        message: The platform's id of the message to change, empty for a new one.
        in_group: The chat has several readers.
    """

    id: str
    chat: str
    rank: Rank
    message: str = ""
    in_group: bool = False


class Requested(Value):
    """A caller asks to make a call."""

    request: Request
    at: float


class Withdrawn(Value):
    """A caller withdraws its request; does nothing if it does not wait.

    Attributes:
        for_good: A draft has ended; it will not ask again under this id.
    """

    id: str
    at: float
    for_good: bool = False


class CallEnded(Value):
    """A chat's granted call has ended, however it went, or is not made after all."""

    chat: str
    at: float


class CallAnswered(Value):
    """A granted call was carried out.

    Attributes:
        message: The platform's id of the message it made, empty for none.
    """

    chat: str
    at: float
    message: str = ""


class CallRefused(Value):
    """The platform refused a granted call because of its rate.

    Attributes:
        retry_after_s: The wait in seconds that it asked for, 0 if it named none.
    """

    chat: str
    at: float
    retry_after_s: float = 0.0


class CallUnreached(Value):
    """A granted call did not reach the platform, which shows nothing about the platform's rate."""

    chat: str
    at: float


class Ticked(Value):
    """Time has passed."""

    at: float


Event = Requested | Withdrawn | CallEnded | CallAnswered | CallRefused | CallUnreached | Ticked


class Grant(Value):
    """The request may make its one call now."""

    id: str


class WakeAt(Value):
    """Step with `Ticked` at this instant; replaces the earlier one."""

    at: float


Effect = Grant | WakeAt


class Lane(Value):
    """A token bucket and the lessons of refusals.

    Attributes:
        tokens: Calls that may be made, as of `at`.
        held_until: The end of the wait that the platform asked for.
        gap_s: Seconds between two calls, in addition to the budget; 0 when never refused.
        last: The instant of the last grant.
        outage_s: Seconds from one failed call to the next; 0 while the platform answers here.
        unreached: The instant of the last call that did not reach the platform.
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
        limits: The platform's limits, as its channel states them.
        started: The instant when the process began to use the account.
        account: Charged for calls that have ended; a token is reserved for each call under way.
        edits: Charged for each grant of an edit, or of a draft.
        chats: Lanes by chat, charged for each grant; a missing chat counts as spent at the start.
        groups: The chats that have several readers.
        messages: The instant of each message's last call, the oldest first.
        served: By request id, the number of the grant that served it last.
        waiting: The waiting requests by id, in order of arrival.
        busy: Chats in which a call is under way.
        under_way: By chat, the instant of the grant of its call under way, oldest first; without
            late calls, which are already charged.
        grants: Count of grants.
        reached: The instant of the platform's last answer, in any chat.
        drafts_at_once: Drafts wait while this many calls are under way; 0 for no limit.
    """

    limits: Capabilities
    started: float
    account: Lane
    edits: Lane
    chats: Mapping[str, Lane] = field(default_factory=dict[str, Lane])
    groups: frozenset[str] = frozenset()
    messages: Mapping[str, float] = field(default_factory=dict[str, float])
    served: Mapping[str, int] = field(default_factory=dict[str, int])
    waiting: Mapping[str, Request] = field(default_factory=dict[str, Request])
    busy: frozenset[str] = frozenset()
    under_way: Mapping[str, float] = field(default_factory=dict[str, float])
    grants: int = 0
    reached: float = float("-inf")
    drafts_at_once: int = 0


# --- events --------------------------------------------------------------------------------------


def fresh(limits: Capabilities, at: float, *, drafts_at_once: int = 0) -> Pacing:
    """Return the state at the start of a process; every bucket is spent."""
    return Pacing(
        limits=limits,
        started=at,
        account=_spent(at),
        edits=_spent(at),
        drafts_at_once=drafts_at_once,
    )


def step(state: Pacing, event: Event) -> tuple[Pacing, tuple[Effect, ...]]:
    """Handle an event; return the grants, in order, and the instant of the next step."""
    state = _without_late_calls(state, event.at)
    match event:
        case Requested():
            state = _with(_without(state, event.request.id), event.request)
        case Withdrawn():
            state = _without(state, event.id)
            if event.for_good:
                state = replace(state, served=_without_key(state.served, event.id))
        case CallEnded():
            state = _after_a_call(state, event.chat, event.at)
            state = replace(state, busy=state.busy - {event.chat})
        case CallAnswered():
            state = _after_answer(state, event)
        case CallRefused():
            state = _after_refusal(state, event)
        case CallUnreached():
            state = _after_failure(state, event)
        case Ticked():
            pass
        case _:
            assert_never(event)
    return _serve(state, event.at)


def is_free(state: Pacing, request: Request, at: float) -> bool:
    """Whether a request would be granted at once."""
    ready = max(_account_ready_at(state, request.rank, at), _ready_at(state, request, at))
    return ready <= at + TOLERANCE_S


# --- lessons of calls ----------------------------------------------------------------------------


def _after_answer(state: Pacing, event: CallAnswered) -> Pacing:
    lane = _lane(state, event.chat)
    gap_s = lane.gap_s * DECAY
    lane = replace(lane, gap_s=gap_s if gap_s >= SMALLEST_GAP_S else 0.0, outage_s=0.0)
    state = replace(state, reached=event.at)
    name = _name(event.chat, event.message)
    if event.message and name not in state.messages:  # the interval of an edit began with its grant
        state = replace(state, messages={**state.messages, name: event.at})
    return _forget_idle(replace(state, chats={**state.chats, event.chat: lane}), event.at)


def _after_refusal(state: Pacing, event: CallRefused) -> Pacing:
    lane, budget = _lane(state, event.chat), _budget(state, event.chat)
    until = event.at + max(event.retry_after_s, 0.0)
    held_until = max(lane.held_until, until)
    lane = replace(lane, held_until=held_until)
    if budget.per_s and event.retry_after_s > 0:
        # The refused call may be made then, but no burst after it.
        lane = replace(lane, tokens=min(1.0, _tokens(lane, budget, held_until)), at=held_until)
    else:
        spacing_s = 1 / budget.per_s if budget.per_s else 0.0
        gap_s = max(lane.gap_s, state.limits.min_edit_interval_s, spacing_s)
        gap_s = min(max(gap_s * GROWTH, FIRST_GAP_S), LONGEST_GAP_S)
        lane = replace(lane, gap_s=max(lane.gap_s, gap_s))
    account = state.account
    if _is_the_accounts(state, event, until):
        account = replace(account, held_until=max(account.held_until, until))
    return replace(state, account=account, chats={**state.chats, event.chat: lane})


def _after_failure(state: Pacing, event: CallUnreached) -> Pacing:
    lane = _lane(state, event.chat)
    outage_s = min(max(_outage_s(state, lane) * GROWTH, FIRST_GAP_S), LONGEST_GAP_S)
    lane = replace(lane, outage_s=outage_s, unreached=event.at)
    return replace(state, chats={**state.chats, event.chat: lane})


def _outage_s(state: Pacing, lane: Lane) -> float:
    """Return a chat's current outage; shorter if other chats were answered since."""
    is_over = state.reached > lane.unreached
    return min(lane.outage_s, FIRST_GAP_S) if is_over else lane.outage_s


def _is_the_accounts(state: Pacing, event: CallRefused, until: float) -> bool:
    """Whether a refusal concerns the account and not only its chat, judging by other waits."""
    waits = [
        lane.held_until
        for chat, lane in state.chats.items()
        if chat != event.chat and lane.held_until > event.at
    ]
    if not _budget(state, event.chat).per_s:
        return bool(waits)
    alike = [wait for wait in waits if abs(wait - until) <= TOGETHER_S]
    return len(alike) + 1 >= ACCOUNT_LIMIT_CHATS


# --- calls under way -----------------------------------------------------------------------------


def _after_a_call(state: Pacing, chat: str, at: float) -> Pacing:
    """Charge the account for a chat's call, unless it was late and is already charged."""
    if chat not in state.under_way:
        return state
    account = _spend(state.account, state.limits.account_budget, at)
    return replace(state, account=account, under_way=_without_key(state.under_way, chat))


def _without_late_calls(state: Pacing, at: float) -> Pacing:
    for chat, granted in state.under_way.items():
        if granted + LATE_S > at + TOLERANCE_S:
            break
        state = _after_a_call(state, chat, max(granted + LATE_S, state.account.at))
    return state


# --- granting ------------------------------------------------------------------------------------


def _serve(state: Pacing, at: float) -> tuple[Pacing, tuple[Effect, ...]]:
    """Grant every request that is ready at this instant."""
    if not state.waiting:
        return state, ()  # usually after a call
    effects: list[Effect] = []
    for rank in Rank:
        # Checked first: if the account is spent, no request is ready.
        if _account_ready_at(state, rank, at) > at + TOLERANCE_S:
            break
        for request in _in_order(state, rank):
            if _ready_at(state, request, at) > at + TOLERANCE_S:
                continue
            state = _grant(state, request, at)
            effects.append(Grant(id=request.id))
            if _account_ready_at(state, rank, at) > at + TOLERANCE_S:
                break
    wake_at = _wake_at(state, at)
    return state, (*effects, WakeAt(at=wake_at)) if wake_at < inf else tuple(effects)


def _wake_at(state: Pacing, at: float) -> float:
    """Return the instant when the first waiting request is ready if no call ends before."""
    soonest = inf
    for rank in Rank:
        account_at = _account_ready_at(state, rank, at)
        if soonest <= account_at:
            break
        for request in _waiting(state, rank):
            soonest = min(soonest, max(account_at, _ready_at(state, request, at)))
            if soonest <= account_at:
                break
    return soonest


def _in_order(state: Pacing, rank: Rank) -> list[Request]:
    """Return the waiting requests, next one first; ties keep the order of arrival."""
    return sorted(_waiting(state, rank), key=lambda request: state.served.get(request.id, 0))


def _waiting(state: Pacing, rank: Rank) -> list[Request]:
    """Return the waiting requests, without drafts of a chat whose next token goes to a final."""
    finals = [request for request in state.waiting.values() if request.rank is Rank.FINAL]
    if rank is Rank.FINAL:
        return finals
    promised = {request.chat for request in finals}
    return [request for request in state.waiting.values() if request.chat not in promised]


def _ready_at(state: Pacing, request: Request, at: float) -> float:
    """Return the instant when only the account can hold a request back, at or after `at`."""
    if request.chat in state.busy:
        return inf
    lane, budget = _lane(state, request.chat), _budget(state, request.chat)
    charged = Budget() if _is_apart(state, request) else budget
    reserve = _reserve(charged, request.rank, at - state.started)
    ready = _lane_ready_at(lane, charged, reserve, at)
    if lane.outage_s:
        ready = max(ready, lane.unreached + _outage_s(state, lane))
    if request.message:
        ready = max(ready, _edits_ready_at(state, request.rank, at))
        last = state.messages.get(_name(request.chat, request.message), state.started)
        # Without a known budget, the interval is the only statement of the platform's limit.
        is_free = request.rank is Rank.FINAL and budget.per_s > 0
        interval_s = 0.0 if is_free else state.limits.min_edit_interval_s
        ready = max(ready, last + max(interval_s, lane.gap_s))
    return ready


def _account_ready_at(state: Pacing, rank: Rank, at: float) -> float:
    """Return the instant when the account allows a call, at or after `at`, if no call ends before."""
    lane, budget, under_way = state.account, state.limits.account_budget, state.under_way
    reserve = _reserve(budget, rank, at - state.started)
    max_calls = max(budget.burst, 1) - reserve if budget.per_s else 0
    if rank is Rank.DRAFT and state.drafts_at_once:
        max_calls = min(max_calls or state.drafts_at_once, state.drafts_at_once)
    if 0 < max_calls <= len(under_way):
        return max(at, lane.held_until, [*under_way.values()][-max_calls] + LATE_S)
    ready = _lane_ready_at(lane, budget, reserve + len(under_way), at)
    return max(ready, _edits_ready_at(state, rank, at)) if rank is Rank.DRAFT else ready


def _edits_ready_at(state: Pacing, rank: Rank, at: float) -> float:
    """Return the instant when the edit budget allows an edit, at or after `at`."""
    budget = state.limits.edit_budget
    return _lane_ready_at(state.edits, budget, _reserve(budget, rank, at - state.started), at)


def _is_apart(state: Pacing, request: Request) -> bool:
    """Whether a request counts against the edit budget and not against its chat's."""
    return bool(request.message and state.limits.edit_budget.per_s)


def _lane_ready_at(lane: Lane, budget: Budget, reserve: int, at: float) -> float:
    """Return the instant when a bucket has one token more than `reserve`."""
    ready = max(at, lane.held_until)
    if lane.gap_s:
        ready = max(ready, lane.last + lane.gap_s)
    if budget.per_s:
        missing = 1 + reserve - _tokens(lane, budget, at)
        ready = max(ready, at + missing / budget.per_s)
    return ready


def _reserve(budget: Budget, rank: Rank, after_s: float) -> int:
    """Return the calls that this rank must leave in a bucket, `after_s` after the start."""
    if rank is Rank.FINAL or not budget.per_s:
        return 0
    # At most that share of the tokens earned so far: with 48 calls a minute, first words would
    # otherwise come a quarter of a minute late.
    earned = int((after_s + TOLERANCE_S) * budget.per_s)
    return min(max(0, budget.burst - 1), max(1, min(budget.burst, earned) // FINALS_SHARE))


def _tokens(lane: Lane, budget: Budget, at: float) -> float:
    return min(float(max(budget.burst, 1)), lane.tokens + (at - lane.at) * budget.per_s)


def _grant(state: Pacing, request: Request, at: float) -> Pacing:
    messages, served, edits = state.messages, state.served, state.edits
    chat, lane = request.chat, _lane(state, request.chat)
    if request.message or request.rank is Rank.DRAFT:
        edits = _spend(edits, state.limits.edit_budget, at)
    if _is_apart(state, request):
        lane = replace(lane, last=at)
    else:
        lane = _spend(lane, _budget(state, chat), at)
    if request.message:
        name = _name(chat, request.message)
        messages = {**_without_key(messages, name), name: at}
    if request.rank is Rank.DRAFT:
        served = {**served, request.id: state.grants + 1}
    return replace(
        _without(state, request.id),
        edits=edits,
        chats={**state.chats, chat: lane},
        messages=messages,
        served=served,
        busy=state.busy | {chat},
        under_way={**state.under_way, chat: at},
        grants=state.grants + 1,
    )


def _spend(lane: Lane, budget: Budget, at: float) -> Lane:
    return replace(lane, tokens=max(0.0, _tokens(lane, budget, at) - 1), at=at, last=at)


# --- bookkeeping ---------------------------------------------------------------------------------


def _spent(at: float) -> Lane:
    return Lane(tokens=0.0, at=at, held_until=at, gap_s=0.0, last=at)


def _budget(state: Pacing, chat: str) -> Budget:
    group = state.limits.group_budget
    return group if group is not None and chat in state.groups else state.limits.chat_budget


def _lane(state: Pacing, chat: str) -> Lane:
    return state.chats.get(chat) or _spent(state.started)


def _name(chat: str, message: str) -> str:
    # Some platforms number messages per chat.
    return f"{chat} {message}"


def _with(state: Pacing, request: Request) -> Pacing:
    if request.in_group:
        state = replace(state, groups=state.groups | {request.chat})
    return replace(state, waiting={**state.waiting, request.id: request})


def _without(state: Pacing, id: str) -> Pacing:  # noqa: A002  as in `Request`
    return replace(state, waiting=_without_key(state.waiting, id))


def _without_key(mapping: Mapping[str, T], key: str) -> Mapping[str, T]:
    """Return a mapping without a key; copying and deleting is faster than rebuilding it."""
    if key not in mapping:
        return mapping
    copied = dict(mapping)
    del copied[key]
    return copied


def _forget_idle(state: Pacing, at: float) -> Pacing:
    """Forget the idle chats and messages, if there are many.

    An unknown lane counts as spent at the start, so a lane that has refilled since may be dropped.
    """
    if len(state.chats) > REMEMBERED:
        chats = {chat: lane for chat, lane in state.chats.items() if not _is_idle(state, chat, at)}
        waiting = {request.chat for request in state.waiting.values()}
        groups = frozenset(chat for chat in state.groups if chat in chats or chat in waiting)
        state = replace(state, chats=chats, groups=groups)
    longest = max(state.limits.min_edit_interval_s, LONGEST_GAP_S)
    # In batches: checking each of thousands for every answer would cost more than the answer.
    oldest = next(iter(state.messages.values()), at)
    if len(state.messages) > REMEMBERED and oldest + 2 * longest <= at:
        messages = {name: last for name, last in state.messages.items() if last + longest > at}
        state = replace(state, messages=messages)
    return state


def _is_idle(state: Pacing, chat: str, at: float) -> bool:
    lane, budget = state.chats[chat], _budget(state, chat)
    full = not budget.per_s or _tokens(lane, budget, at) >= max(budget.burst, 1)
    is_free = not lane.gap_s and lane.held_until <= at
    return full and is_free and lane.unreached + lane.outage_s <= at
