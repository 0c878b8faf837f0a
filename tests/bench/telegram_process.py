"""Telegram for the bench: the emulator and its people in a process of their own.

Run as `python -m tests.bench.telegram_process telegram off|published PEOPLE`; for its orders see
`tests.bench.stage_process`.
"""

import asyncio
import sys
import time
from collections.abc import Sequence

from channels.telegram.emulator import Actor, Emulator, Limits
from channels.telegram.emulator.faults import Call
from channels.telegram.emulator.people import UserAction
from tests.bench.stage_process import Exchange, Kind, Order, Shown, take_orders
from zeroclaw.host.clock import SystemClock

TOKEN = "BENCH_TELEGRAM_TOKEN"
KINDS: dict[str, Kind] = {
    "sendmessage": "send",
    "sendrichmessage": "send",
    "editmessagetext": "edit",
    "sendmessagedraft": "draft",
    "sendrichmessagedraft": "draft",
}
"""The calls that show a text; no others are looked at."""


class _Round:
    """Some people who write at once, until all are answered."""

    def __init__(self, telegram: Emulator, people: Sequence[Actor], text: str, ends: str) -> None:
        self._telegram = telegram
        self._ends = ends
        self._read = len(telegram.calls)
        self._actions: dict[int, UserAction] = {person.id: person.says(text) for person in people}
        self.exchanges = {person.id: Exchange(sent=time.monotonic()) for person in people}
        self._unanswered = set(self.exchanges)

    def is_over(self) -> bool:
        """Look at what is new; called at each change."""
        now = time.monotonic()
        for chat in [chat for chat, action in self._actions.items() if action.update.deliveries]:
            self.exchanges[chat].delivered = now
            del self._actions[chat]
        calls = self._telegram.calls
        while self._read < len(calls):
            call = calls[self._read]
            kind = KINDS.get(call.method.lower())
            if kind is not None and call.chat in self.exchanges:
                if not (call.is_done or call.refusal):
                    break
                self._take(call, kind)
            self._read += 1
        return not self._unanswered

    def _take(self, call: Call, kind: Kind) -> None:
        exchange = self.exchanges[call.chat]
        exchange.calls.append(
            Shown(kind=kind, at=call.at, refused=call.refusal.startswith("Too Many"))
        )
        newest = self._telegram.account.chats[call.chat].messages[-1]
        if newest.is_from_bot and self._ends in newest.text and call.chat in self._unanswered:
            exchange.final, exchange.text = call.at, newest.text
            self._unanswered.discard(call.chat)


async def _main(limits: str, people: int) -> None:
    clock = SystemClock()
    async with Emulator(
        clock=clock, limits=Limits() if limits == "published" else None
    ) as emulator:
        actors = [emulator.person(f"P{number}") for number in range(people)]

        async def wait_listening(since: float) -> float:
            def polls() -> list[Call]:
                return [call for call in emulator.called("getUpdates") if call.at >= since]

            return (await emulator.until(polls))[0].at

        async def say(order: Order) -> list[Exchange]:
            round_ = _Round(emulator, actors[: order["people"]], order["say"], order["ends"])
            await emulator.until(round_.is_over)
            return [*round_.exchanges.values()]

        channel = {
            "allowed_users": [str(actor.id) for actor in actors],
            "token": {"env": TOKEN},
            "api_base_url": emulator.url,
            "limits": limits,
        }
        await take_orders(
            {
                "channel": channel,
                "secrets": {TOKEN: emulator.token},
                "floor": [emulator.url, emulator.token],
            },
            wait_listening,
            say,
        )


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[2], int(sys.argv[3])))
