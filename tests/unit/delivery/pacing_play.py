"""Requests of a pacing, and events played to it."""

from zeroclaw.channel import Budget
from zeroclaw.delivery.pacing import Effect, Event, Limits, Pacing, Rank, Request, step

FREE = Limits(chat=Budget(), account=Budget())


def draft(name: str, chat: str = "c", message: str = "") -> Request:
    return Request(id=name, chat=chat, rank=Rank.DRAFT, message=message)


def final(name: str, chat: str = "c", message: str = "") -> Request:
    return Request(id=name, chat=chat, rank=Rank.FINAL, message=message)


def play(state: Pacing, *events: Event) -> tuple[Pacing, list[Effect]]:
    """The state after the events, and the effects of the last one."""
    effects: tuple[Effect, ...] = ()
    for event in events:
        state, effects = step(state, event)
    return state, list(effects)
