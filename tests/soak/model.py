"""A model for hours: what it answers hangs on the question alone, so it needs no scripts."""

import asyncio
import random
import re

from tests.emulators.model_scripts import (
    JSON_HEADERS,
    Cut,
    Head,
    Planned,
    Received,
    Send,
    Step,
    Wait,
    call_fragments,
    delta,
    ending,
    role,
)
from tests.emulators.model_server import ModelServer

KEY = re.compile(r"\b(?:text|slow|long|look|ask) \w+\.\d+")
"""What a message is known by; its first word says what the model does with it."""
PIECES = 8
SLOWLY_S = 0.15
LONG_PARAGRAPHS = 60
FAULTS = 0.03
"""Of the requests that run into something; none of a message does twice."""
REFUSALS = ((429, b"slow down"), (500, b"internal error"), (503, b"warming up"))


def answer_to(key: str) -> str:
    """Return the whole answer to a message."""
    if not key.startswith("long"):
        return f"This is the answer to {key}, and all of it."
    paragraphs = (
        f"Paragraph {number} about {key} says nothing new." for number in range(LONG_PARAGRAPHS)
    )
    return "\n\n".join((*paragraphs, f"This is the answer to {key}, and all of it."))


class SoakModel(ModelServer):
    """Answers each message by its key, at once or slowly, after a call or without.

    Attributes:
        faults: How many requests ran into something.
    """

    def __init__(self, chance: random.Random) -> None:
        """Begin; `chance` decides what runs into something."""
        super().__init__()
        self._chance = chance
        self._met: set[str] = set()
        self.faults = 0

    def _choose(self, received: Received) -> Planned:
        self.requests.clear()
        key = (KEY.findall(received.last_user) or ["text nobody.0"])[-1]
        if key not in self._met and self._chance.random() < FAULTS:
            self._met.add(key)
            self.faults += 1
            return self._fault(key)
        tool = {"look": "peek", "ask": "knock"}.get(key.partition(" ")[0])
        if tool is not None and received.round == 0:
            call = call_fragments(0, "call_0", tool, {"what": key})
            return Planned(steps=(Head(), role(), *call, *ending("tool_calls", (20, 9))))
        return Planned(steps=(Head(), role(), *self._pieces(key), *ending("stop", (12, 40))))

    def _pieces(self, key: str) -> list[Step]:
        text = answer_to(key)
        size = len(text) // PIECES + 1
        steps: list[Step] = []
        for at in range(0, len(text), size):
            if key.startswith("slow"):
                steps.append(Wait(gate=self._opens_in(SLOWLY_S * (1 + at // size), f"{key} {at}")))
            steps.append(delta(content=text[at : at + size]))
        return steps

    def _opens_in(self, seconds: float, name: str) -> str:
        asyncio.get_running_loop().call_later(seconds, self.gate(name).open)
        return name

    def _fault(self, key: str) -> Planned:
        match self._chance.choice(("cut", "gone", "refused")):
            case "cut":
                return Planned(steps=(Head(), role(), delta(content=answer_to(key)[:20]), Cut()))
            case "gone":
                return Planned(steps=(Cut(),))
            case _:
                status, reason = self._chance.choice(REFUSALS)
                head = Head(status=status, headers={**JSON_HEADERS, "retry-after": "0.2"})
                return Planned(steps=(head, Send(data=b'{"error": {"message": "%b"}}' % reason)))
