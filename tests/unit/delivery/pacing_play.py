"""Requests of a pacing, and events played to it."""

from zeroclaw.channel import Budget
from zeroclaw.delivery.pacing import (
    Answered,
    Effect,
    Ended,
    Event,
    Limits,
    Pacing,
    Rank,
    Refused,
    Request,
    Unreached,
    step,
)

FREE = Limits(chat=Budget(), account=Budget())


def draft(name: str, chat: str = "c", message: str = "") -> Request:
    return Request(id=name, chat=chat, rank=Rank.DRAFT, message=message)


def final(name: str, chat: str = "c", message: str = "") -> Request:
    return Request(id=name, chat=chat, rank=Rank.FINAL, message=message)


def play(state: Pacing, *events: Event) -> tuple[Pacing, list[Effect]]:
    """The state after the events, and the effects of the last one; what was answered has ended."""
    effects: tuple[Effect, ...] = ()
    for event in events:
        state, effects = step(state, event)
        if isinstance(event, Answered | Refused | Unreached):
            state, effects = step(state, Ended(chat=event.chat, at=event.at))
    return state, list(effects)
