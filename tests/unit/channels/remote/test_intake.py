"""What ingress is shown comes again where it could not be stored; what people are shown may be lost."""

import asyncio

from channels._remote.intake import ShortAnswers, admitted
from tests.fakes.house_parts import Facts
from zeroclaw import (
    Accepted,
    Address,
    Admission,
    ChannelUnavailable,
    Envelope,
    Said,
    Sender,
    ZeroclawError,
)

ANN = Address(channel="chat", account="1", chat="77", direct=True)
HELLO = Envelope(
    address=ANN, sender=Sender(id="77", verified=True), dedup=("1",), body=Said(text="hello")
)


async def test_what_could_not_be_stored_is_told_and_has_no_admission() -> None:
    log, faults = Facts(), [ZeroclawError("the disk is full")]

    async def admit(envelope: Envelope) -> Admission:
        assert envelope == HELLO
        if faults:
            raise faults.pop()
        return Accepted()

    assert await admitted(admit, HELLO, log) is None
    assert await admitted(admit, HELLO, log) == Accepted()
    why = {"why": "the disk is full", "level": "warning"}
    assert log.seen == [("event_not_admitted", why)]


async def test_a_short_answer_beyond_the_most_is_lost_and_one_that_fails_is_told() -> None:
    log, given, free = Facts(), list[int](), asyncio.Event()
    answers = ShortAnswers(log, "toast_lost", most=2)

    async def give() -> None:
        given.append(len(given))
        await free.wait()
        message = "`chat` is away"
        raise ChannelUnavailable(message)

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            answers.begin(group, give)
            await asyncio.sleep(0)
        assert given == [0, 1]
        free.set()
    assert log.seen == [("toast_lost", {"why": "`chat` is away"})] * 2
    async with asyncio.TaskGroup() as group:
        answers.begin(group, give)
    assert given == [0, 1, 2]
