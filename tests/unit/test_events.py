"""The events of the turns: a subscriber sees them all, and can change nothing."""

from zeroclaw.envelope import ConversationId, TurnId
from zeroclaw.events import Bus, Event, TextStreamed
from zeroclaw.foreign import Raised


def text(content: str) -> Event:
    conversation, what = ConversationId("here"), TextStreamed(text=content)
    return Event(conversation=conversation, turn=TurnId("t"), correlation="c", what=what)


def test_any_callable_that_takes_an_event_may_subscribe() -> None:
    """Each subscriber gets every event from then on, in order (S3-02, S3-04)."""
    first: list[Event] = []
    second: list[Event] = []
    bus = Bus(failed=lambda _: None)
    bus.publish(text("before"))
    bus.subscribe(first.append)
    bus.publish(text("a"))
    bus.subscribe(second.append)
    bus.publish(text("b"))
    assert first == [text("a"), text("b")]
    assert second == [text("b")]


def test_a_subscriber_that_fails_changes_nothing() -> None:
    """An event asks for nothing: an exception is reported, and stops neither the turn nor the others.

    S0-26, P9.
    """
    seen: list[Event] = []
    failed: list[Raised] = []

    def refuse(_: Event) -> None:
        raise RuntimeError("stop this answer")

    bus = Bus(failed=failed.append)
    bus.subscribe(refuse)
    bus.subscribe(seen.append)
    bus.publish(text("a"))
    assert seen == [text("a")]
    assert [str(failure.error) for failure in failed] == ["stop this answer"]
