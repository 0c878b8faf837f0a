"""The protocol of a process that plays a platform and its people for the bench.

The first line of its output says where it is; then each line of input is one order, and each is
answered with one line:

    {"listening": SINCE}                                  when the bot first listened
    {"say": TEXT, "people": N, "ends": WORD, "times": M}  what became of it, each time and person

All times are seconds of the machine's one monotonic clock, so that processes can compare them.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NotRequired, TypedDict, cast

from zeroclaw.codec import encode
from zeroclaw.value import Value

Kind = Literal["send", "edit", "draft"]


class Shown(Value):
    """A call that showed a text, or was to.

    Attributes:
        refused: It was one too many (429); any other answer counts against the limits.
    """

    kind: Kind
    at: float
    refused: bool = False


@dataclass(eq=False, kw_only=True)
class Exchange:
    """A person's message and its answer.

    Attributes:
        sent: When it was written.
        delivered: When the bot was first sent it.
        final: When a message with the whole answer stood.
        text: That message's.
        calls: All that showed a text in the chat, until everyone was answered.
    """

    sent: float
    delivered: float = 0.0
    final: float = 0.0
    text: str = ""
    calls: list[Shown] = field(default_factory=list[Shown])

    @property
    def first(self) -> float:
        """When the first text was seen."""
        return next(call.at for call in self.calls if not call.refused)


class Order(TypedDict):
    """An order of the bench; see the file's first lines."""

    listening: NotRequired[float]
    say: str
    people: int
    ends: str
    times: int


class Facts(TypedDict):
    """Where the platform is.

    Attributes:
        channel: The keys of the daemon's channel.
        secrets: What is in its environment.
        floor: The arguments of the floor's process.
    """

    channel: Mapping[str, object]
    secrets: Mapping[str, str]
    floor: Sequence[str]


async def take_orders(
    facts: Facts,
    wait_listening: Callable[[float], Awaitable[float]],
    say: Callable[[Order], Awaitable[Sequence[Exchange]]],
) -> None:
    """Carry out orders until the input ends."""
    _answer(facts)
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(orders), sys.stdin
    )
    while line := await orders.readline():
        order = cast("Order", json.loads(line))
        if "listening" in order:
            _answer(await wait_listening(order["listening"]))
        else:
            _answer([await say(order) for _ in range(order["times"])])


def _answer(found: object) -> None:
    print(encode(found).decode(), flush=True)
