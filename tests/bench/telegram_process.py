"""Telegram for the bench: the emulator and its people in a process of their own.

Run as `python -m tests.bench.telegram_process off|published PEOPLE`. The first line of output says
where it is; then each line of input is one order, and each is answered with one line:

    {"polled": SINCE}                                     when the bot first asked for updates
    {"say": TEXT, "people": N, "ends": WORD, "times": M}  what became of it, each time and person

All times are seconds of the machine's one monotonic clock, so that processes can compare them.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NotRequired, TypedDict, cast

from channels.telegram.emulator import Actor, Emulator, Limits
from channels.telegram.emulator.faults import Call
from channels.telegram.emulator.people import Deed
from zeroclaw.codec import encode
from zeroclaw.host.clock import SystemClock
from zeroclaw.value import Value

Kind = Literal["send", "edit", "draft"]
KINDS: dict[str, Kind] = {
    "sendmessage": "send",
    "sendrichmessage": "send",
    "editmessagetext": "edit",
    "sendmessagedraft": "draft",
    "sendrichmessagedraft": "draft",
}
"""The calls that show a text; no others are looked at."""


class Shown(Value):
    """A call that showed a text, or was to.

    Attributes:
        refused: It was one too many (429); any other answer counts against the limits.
    """

    kind: Kind
    at: float
    refused: bool


@dataclass(eq=False, kw_only=True)
class Told:
    """A person's message and what came of it.

    Attributes:
        said: When it was written.
        delivered: When the bot was first sent it.
        final: When a message with the whole answer stood.
        text: That message's.
        calls: All that showed a text in the chat, until everybody was answered.
    """

    said: float
    delivered: float = 0.0
    final: float = 0.0
    text: str = ""
    calls: list[Shown] = field(default_factory=list[Shown])

    @property
    def first(self) -> float:
        """When the first text was seen."""
        return next(one.at for one in self.calls if not one.refused)


class Order(TypedDict):
    """What the bench asks for; see the file's first lines."""

    polled: NotRequired[float]
    say: str
    people: int
    ends: str
    times: int


class _Round:
    """Some people who write at once, until all are answered."""

    def __init__(self, telegram: Emulator, people: Sequence[Actor], text: str, ends: str) -> None:
        self._telegram = telegram
        self._ends = ends
        self._read = len(telegram.calls)
        self._deeds: dict[int, Deed] = {one.id: one.says(text) for one in people}
        self.told = {one.id: Told(said=time.monotonic()) for one in people}
        self._unanswered = set(self.told)

    def is_over(self) -> bool:
        """Look at what is new; called at each change."""
        now = time.monotonic()
        for chat in [chat for chat, deed in self._deeds.items() if deed.update.deliveries]:
            self.told[chat].delivered = now
            del self._deeds[chat]
        calls = self._telegram.calls
        while self._read < len(calls):
            call = calls[self._read]
            kind = KINDS.get(call.method.lower())
            if kind is not None and call.chat in self.told:
                if not (call.is_done or call.refusal):
                    break
                self._take(call, kind)
            self._read += 1
        return not self._unanswered

    def _take(self, call: Call, kind: Kind) -> None:
        told = self.told[call.chat]
        told.calls.append(Shown(kind=kind, at=call.at, refused=call.refusal.startswith("Too Many")))
        newest = self._telegram.account.chats[call.chat].messages[-1]
        if newest.is_from_bot and self._ends in newest.text and call.chat in self._unanswered:
            told.final, told.text = call.at, newest.text
            self._unanswered.discard(call.chat)


async def _polled(telegram: Emulator, since: float) -> float:
    def polls() -> list[Call]:
        return [call for call in telegram.called("getUpdates") if call.at >= since]

    return (await telegram.until(polls))[0].at


async def _main(limits: str, people: int) -> None:
    clock = SystemClock()
    async with Emulator(clock=clock, limits=Limits() if limits == "published" else None) as here:
        actors = [here.person(f"P{number}") for number in range(people)]
        ids = [str(one.id) for one in actors]
        _answer({"url": here.url, "token": here.token, "people": ids})
        orders = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(orders), sys.stdin
        )
        while line := await orders.readline():
            asked = cast("Order", json.loads(line))
            if "polled" in asked:
                _answer(await _polled(here, asked["polled"]))
                continue
            rounds: list[list[Told]] = []
            for _ in range(asked["times"]):
                some = actors[: asked["people"]]
                one = _Round(here, some, asked["say"], asked["ends"])
                await here.until(one.is_over)
                rounds.append([*one.told.values()])
            _answer(rounds)


def _answer(found: object) -> None:
    print(encode(found).decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2])))
