"""An event that breaks our own code is tried for a while, and then told and let go."""

from collections.abc import Callable

import pytest

from tests.fakes.house_parts import Facts
from zeroclaw.envelope import Accepted, Address, Admission, Envelope, Ignored, Said, Sender
from zeroclaw.errors import ChannelUnavailable, StoreUnusable
from zeroclaw.inbound.supervisor import REMEMBERED, TRIES, PoisonMessages
from zeroclaw.text.language import Localized


def event(key: str) -> Envelope:
    return Envelope(
        address=Address(channel="chat", account="bot", chat="7", direct=True),
        sender=Sender(id="7", verified=True),
        dedup=(key,),
        body=Said(text="hi"),
    )


class Rig:
    def __init__(self, fault: Callable[[str], Exception | None]) -> None:
        self.fault = fault
        self.told: list[tuple[str, str]] = []
        self.log = Facts()
        self.poison = PoisonMessages(
            channel="chat", ingress=self.admit, tell_operators=self.tell, log=self.log
        )

    async def admit(self, envelope: Envelope) -> Admission:
        error = self.fault(envelope.dedup[0])
        if error is not None:
            raise error
        return Accepted()

    async def tell(self, name: str, says: Localized) -> None:
        self.told.append((name, says.to("en")))


async def test_what_breaks_our_code_is_let_go_after_enough_tries_and_told() -> None:
    """It neither silences its channel for ever nor is lost without a word (P9)."""
    rig = Rig(lambda key: KeyError("hunter2") if key == "bad" else None)
    for _ in range(TRIES - 1):
        with pytest.raises(ChannelUnavailable, match="an event raised KeyError"):
            await rig.poison.admit(event("bad"))
        assert await rig.poison.admit(event("good")) == Accepted()
    assert rig.told == []
    assert await rig.poison.admit(event("bad")) == Ignored()
    ((name, said),) = rig.told
    assert name == ""
    assert "`chat`" in said
    assert "hunter2" not in said
    with pytest.raises(ChannelUnavailable):
        await rig.poison.admit(event("bad"))


async def test_a_store_that_is_away_is_waited_for_however_long() -> None:
    """Nothing is given up because a disk is full (P1)."""
    rig = Rig(lambda _key: StoreUnusable("the disk is full"))
    for _ in range(TRIES * 2):
        with pytest.raises(StoreUnusable):
            await rig.poison.admit(event("a"))
    assert rig.told == []


async def test_few_events_are_counted() -> None:
    """Memory stays bounded however many break (P9)."""
    rig = Rig(lambda _key: KeyError())
    for number in range(REMEMBERED + 1):
        for _ in range(TRIES - 1):
            with pytest.raises(ChannelUnavailable):
                await rig.poison.admit(event(str(number)))
    with pytest.raises(ChannelUnavailable):
        await rig.poison.admit(event("0"))
    assert await rig.poison.admit(event(str(REMEMBERED))) == Ignored()
