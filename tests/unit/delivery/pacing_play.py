"""Requests of a pacing, and events played to it."""

from zeroclaw.channel import Budget, Capabilities
from zeroclaw.delivery.pacing import (
    CallAnswered,
    CallEnded,
    CallRefused,
    CallUnreached,
    Effect,
    Event,
    Pacing,
    Rank,
    Request,
    step,
)

NO_BUDGET = Budget()


def limited(
    *,
    chat: Budget = NO_BUDGET,
    account: Budget = NO_BUDGET,
    edits: Budget = NO_BUDGET,
    edit_interval_s: float = 0.0,
    group: Budget | None = None,
) -> Capabilities:
    """What a platform is capable of that allows no more than this."""
    return Capabilities(
        max_length=4096,
        can_edit=True,
        can_delete=True,
        chat_budget=chat,
        account_budget=account,
        edit_budget=edits,
        min_edit_interval_s=edit_interval_s,
        group_budget=group,
    )


FREE = limited()


def draft(name: str, chat: str = "c", message: str = "") -> Request:
    return Request(id=name, chat=chat, rank=Rank.DRAFT, message=message)


def final(name: str, chat: str = "c", message: str = "") -> Request:
    return Request(id=name, chat=chat, rank=Rank.FINAL, message=message)


def play(state: Pacing, *events: Event) -> tuple[Pacing, list[Effect]]:
    """The state after the events, and the effects of the last one; what was answered has ended."""
    effects: tuple[Effect, ...] = ()
    for event in events:
        state, effects = step(state, event)
        if isinstance(event, CallAnswered | CallRefused | CallUnreached):
            state, effects = step(state, CallEnded(chat=event.chat, at=event.at))
    return state, list(effects)
